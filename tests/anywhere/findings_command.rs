//! What a run states about itself is the same in the terminal, in findings.json, in `show`, `list` and a report.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::LIMIT;
use crate::common::{ends, json, until};
use crate::program::hcabench;
use crate::testing::{Has as _, temporary};

/// A run whose queue is gone through fewer than four times in a round, which is a finding, in two rounds.
const FEW_LAPS: &str =
    "queue --queue lamport --capacity 65536 --count 2000 --warmup 1ms --rounds 2 --clock monotonic";

/// A text in one line, with single spaces.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_finding_is_the_same_wherever_it_is_shown() {
    let folder = &*temporary("");
    let printed = ends(folder, &format!("{FEW_LAPS} --out run"), 0).stdout;
    let (_, verdict) = printed.split_once("\nverdict: ").unwrap();
    let verdict = joined(verdict.split("\n- ").next().unwrap());
    let found = json(&folder.join("run/findings.json"));
    let found = found["findings"].as_array().unwrap();
    let laps = found.iter().find(|it| it["kind"] == "few-laps").unwrap();
    assert_eq!(laps["severity"], "reservation");
    assert_eq!(laps["points"].as_array().unwrap().len(), 1);
    let problem = laps["problem"].as_str().unwrap();
    joined(&printed).has(&[problem]);
    let shown = ends(folder, "show run", 0).stdout;
    assert!(shown.ends_with(&printed), "{printed}\n---\n{shown}");
    let all = joined(&ends(folder, "show run --all", 0).stdout);
    for one in found {
        all.has(&[one["problem"].as_str().unwrap()]);
    }
    let document: serde_json::Value =
        serde_json::from_str(&ends(folder, "show run --json", 0).stdout).unwrap();
    assert_eq!(document["findings"], serde_json::json!(found));
    assert_eq!(document["verdict"], verdict.as_str());
    joined(&ends(folder, "list .", 0).stdout).has(&["./run", "queue", &verdict]);
    ends(folder, "report run --out page.html", 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    let begins = problem.split(',').next().unwrap();
    page.to_lowercase().has(&[&begins.to_lowercase()]);
}

#[test]
fn what_is_not_whole_says_so() {
    let folder = &*temporary("");
    let until = format!("{FEW_LAPS} --until-round 1 --out run");
    ends(folder, &until, 0);
    let shown = ends(folder, "show run", 0).stdout;
    shown.has(&["incomplete", "stopped by --until-round"]);
    assert!(!shown.contains("has not ended yet"), "{shown}");
    let resumed = ends(folder, "--resume run queue", 2);
    assert!(!resumed.stderr.is_empty());
    let line = FEW_LAPS.replacen("queue", "queue --resume run", 1);
    let printed = ends(folder, &line, 0).stdout;
    assert!(!printed.contains("incomplete"), "{printed}");
    assert!(
        !fs::read_to_string(folder.join("run/findings.json"))
            .unwrap()
            .contains("incomplete")
    );
}

#[test]
fn a_killed_run_keeps_its_findings_and_a_resumed_one_counts_no_round_twice() {
    let folder = &*temporary("");
    let running = hcabench(&format!("{FEW_LAPS} --rounds 400 --out run"))
        .in_folder(folder)
        .start();
    let found = folder.join("run/findings.json");
    until("findings of a point", || {
        let text = fs::read_to_string(&found).unwrap_or_default();
        text.contains("few-laps").then_some(())
    });
    running.signal(Signal::SIGKILL);
    running.wait(LIMIT);
    let killed = joined(&ends(folder, "show run", 0).stdout);
    killed.has(&[
        "verdict: incomplete; ",
        "is used fewer than 4 times in a round",
    ]);
    ends(folder, "--resume run --until-round 30", 0);
    let whole = json(&found);
    let laps = whole["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["kind"] == "few-laps")
        .unwrap();
    let rows = fs::read_to_string(folder.join("run/runs.csv"))
        .unwrap()
        .lines()
        .count()
        - 1;
    assert_eq!(laps["rounds"].as_array().unwrap().len(), rows);
}

/// Returns where it is copied from.
fn copy_of_a_sample(to: &Path) -> PathBuf {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/queue");
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let mut copied = std::process::Command::new("cp");
    let copied = copied.arg("-r").args([&sample, to]).status();
    assert!(copied.unwrap().success());
    sample
}

#[test]
fn a_file_of_settings_for_figures_that_cannot_be_read_is_named() {
    let folder = &*temporary("");
    let run = folder.join("run");
    copy_of_a_sample(&run);
    let report = "report run --out page.html";
    for (text, told) in [
        (b"unit = \"us".as_slice(), "TOML parse error at line 1"),
        (
            b"\x1f\x8b\x08",
            "compressed with gzip; unpack it with gunzip",
        ),
    ] {
        fs::write(run.join("plot.toml"), text).unwrap();
        let named = ["cannot read run/plot.toml", told];
        joined(&ends(folder, report, 1).stderr).has(&named);
        let page = fs::read_to_string(folder.join("page.html")).unwrap();
        page.has(&["plot.toml"]);
        let ended = ends(folder, "plot median run --out x.svg", 2);
        joined(&ended.stderr).has(&["run/plot.toml", told]);
    }
    fs::write(run.join("plot.toml"), "\u{feff}title = 'Mine'\r\n").unwrap();
    ends(folder, "plot median run --out x.svg --metric enqueue", 0);
    fs::read_to_string(folder.join("x.svg"))
        .unwrap()
        .has(&["Mine"]);
}

#[test]
fn folders_of_others_are_named_and_end_no_list() {
    let folder = &*temporary("");
    let sample = copy_of_a_sample(&folder.join("project/results/run"));
    fs::write(folder.join("project/settings.json"), "{\"editor\": 4}").unwrap();
    fs::create_dir(folder.join("project/damaged")).unwrap();
    fs::write(
        folder.join("project/damaged/summary.csv"),
        "point,status,\u{1b}[31m\n",
    )
    .unwrap();
    let ended = ends(folder, "list project", 1);
    ended
        .stderr
        .has(&["left out", "project/damaged/settings.json is missing"]);
    let listed = ended.stdout;
    listed.has(&["project/results/run", "project/damaged", "cannot be read"]);
    assert!(!listed.contains('\u{1b}'), "{listed:?}");
    // Files of other programs, also such as would be damaged if they were ours.
    fs::remove_dir_all(folder.join("project/damaged")).unwrap();
    for (name, text) in [
        ("summary.csv", "{}"),
        ("summary.csv", ""),
        ("summary.csv", "point;value\n1;2\n"),
        ("summary.csv", "\u{feff}region,total\n"),
        ("settings.json", "{\"point\": 1"),
        ("settings.json", ""),
        ("pairs.csv", "from,to\nhere,there\n"),
        ("INCOMPLETE", "a page is missing\n"),
    ] {
        fs::write(folder.join("project").join(name), text).unwrap();
        let ended = ends(folder, "list project", 0);
        assert_eq!(ended.stderr, "", "{name}");
        assert_eq!(
            ended.stdout.lines().count(),
            listed.lines().count() - 1,
            "{name}: {}",
            ended.stdout
        );
        ended.stdout.has(&["project/results/run"]);
        fs::remove_file(folder.join("project").join(name)).unwrap();
    }
    ends(folder, "list nowhere", 1)
        .stderr
        .has(&["nowhere", "name the folder"]);
    ends(folder, "show project", 1).stderr.has(&["project"]);
    let old = ends(folder, &format!("show {}", sample.display()), 0).stdout;
    old.has(&["verdict: usable with", "load missed"]);
}
