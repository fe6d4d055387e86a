//! Sweeps as their user has them: rounds, what a kill leaves and how it is completed, budgets, files of options, and
//! the turns of `compare --run`. Measured on queues, which need no device.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Row, hcabench, json, rows, told};
use hcabench::bench::Assignment;
use hcabench::bench::queue::config::{Config, Length, Measure};
use hcabench::bench::queue::cpus::CpuChoice;
use hcabench::bench::queue::plan::Sweep;
use hcabench::bench::queue::retry::Retry;
use hcabench::buffer::HugePagePolicy;
use hcabench::generators::MemoryLoad;
use hcabench::pacing::EndLoad;
use hcabench::time::ClockKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Two points of a moment each.
const SHORT: &str =
    "queue --queue lamport --capacity 64,128 --count 300 --warmup 1ms --clock monotonic";
/// Two points of more than half a second each: their elements come at a rate.
const LONG: &str = "queue --queue lamport --capacity 64,128 --load constant-rate --rate 10k --count 6000 --warmup 1ms \
                    --clock monotonic --elements";
/// Only what hangs takes longer.
const HANGS: Duration = Duration::from_secs(120);

/// Runs to its end, and must end so.
fn ends(folder: &Path, words: &str, code: i32) -> Output {
    let output = hcabench(folder, words).output().unwrap();
    let errors = told(&output);
    assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
    output
}

/// The points of each round, in the order measured.
fn orders(runs: &[Row]) -> Vec<Vec<String>> {
    let mut orders: BTreeMap<u32, Vec<(u32, String)>> = BTreeMap::new();
    for row in runs {
        let number = |column: &str| row[column].parse::<u32>().unwrap();
        let round = orders.entry(number("round")).or_default();
        round.push((number("order"), row["point"].clone()));
    }
    let in_order = |mut round: Vec<(u32, String)>| {
        round.sort();
        round.into_iter().map(|(_, point)| point).collect()
    };
    orders.into_values().map(in_order).collect()
}

/// All CSV files below a results folder, as paths relative to it.
fn csv_files(run: &Path) -> BTreeSet<String> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    let below = |path: PathBuf| match path.is_dir() {
        true => entries(&path),
        false => vec![path],
    };
    entries(run)
        .into_iter()
        .flat_map(below)
        .filter(|path| path.extension().is_some_and(|kind| kind == "csv"))
        .map(|path| path.strip_prefix(run).unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// The command lines of processes that run in this folder.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let within = |path: &PathBuf| fs::read_link(path.join("cwd")).is_ok_and(|it| it == folder);
    all.map(|entry| entry.path())
        .filter(within)
        .filter_map(|path| fs::read(path.join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < HANGS, "{what}: not within {HANGS:?}");
        sleep(Duration::from_millis(5));
    }
}

/// A run of several rounds whose first point is measured, and others are not.
fn under_way(folder: &Path, more: &str) -> Child {
    let out = folder.join("run");
    let words = format!("{LONG} {more} --out {}", out.display());
    let child = hcabench(folder, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the first point", || {
        let text = fs::read_to_string(out.join("runs.csv"));
        text.is_ok_and(|text| text.lines().count() >= 2)
    });
    child
}

fn signalled(mut child: Child, signal: Signal) -> Output {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    until("the end of the run", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

#[test]
fn rounds_are_shuffled_and_a_figure_is_their_median() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = format!("{SHORT} --capacity 64,128,256,512 --elements --rounds 3");
    ends(folder, &format!("{words} --order-seed 7 --out run"), 0);
    let run = folder.join("run");
    let (runs, summary) = (rows(&run.join("runs.csv")), rows(&run.join("summary.csv")));
    assert_eq!((runs.len(), summary.len()), (12, 4));
    let sweep: Vec<&str> = summary.iter().map(|row| row["point"].as_str()).collect();
    let capacities: Vec<&str> = summary.iter().map(|row| row["capacity"].as_str()).collect();
    assert_eq!(capacities, ["64", "128", "256", "512"]);
    let orders_of_rounds = orders(&runs);
    assert_eq!(orders_of_rounds.len(), 3);
    assert!(orders_of_rounds.iter().any(|order| *order != sweep));
    for row in &summary {
        let of_point = runs.iter().filter(|run| run["point"] == row["point"]);
        let mut medians: Vec<f64> = of_point
            .map(|run| run["latency_p50_ns"].parse().unwrap())
            .collect();
        medians.sort_by(f64::total_cmp);
        assert_eq!(row["latency_p50_ns"].parse(), Ok(medians[1]), "{row:?}");
        assert_eq!(
            (row["rounds"].as_str(), row["status"].as_str()),
            ("3", "complete")
        );
        let place = run.join(&row["point"]);
        assert_eq!(json(&place.join("settings.json"))["rounds"]["done"], 3);
        assert_eq!(rows(&place.join("elements.csv")).len(), 3 * 300);
    }
    let settings = json(&run.join("settings.json"));
    assert_eq!(settings["rounds"]["seed"], 7);
    assert_eq!(settings["rounds"]["planned"], 3);
    // The same seed, the same orders.
    ends(folder, "rerun run --out again --quiet", 0);
    assert_eq!(
        orders(&rows(&folder.join("again/runs.csv"))),
        orders_of_rounds
    );
    assert!(ends(folder, "rerun run --out again", 2).stdout.is_empty());

    let package = json(&run.join("datapackage.json"));
    let described: BTreeSet<String> = package["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["path"].as_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".csv"))
        .collect();
    assert_eq!(described, csv_files(&run));
    assert_eq!(described.len(), 2 + 4);
}

#[test]
fn what_a_kill_leaves_is_marked_and_completed_by_resume() {
    for (signal, resume) in [
        (Signal::SIGKILL, "--resume run".to_owned()),
        (Signal::SIGTERM, format!("{LONG} --rounds 3 --resume run")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let output = signalled(under_way(folder, "--rounds 3"), signal);
        match signal {
            Signal::SIGKILL => assert_eq!(output.status.signal(), Some(9)),
            _ => {
                assert_eq!(output.status.code(), Some(1));
                assert!(
                    told(&output).contains("interrupted by SIGTERM"),
                    "{}",
                    told(&output)
                );
            }
        }
        until("the end of its child", || processes(folder).is_empty());
        let run = folder.join("run");
        assert!(run.join("INCOMPLETE").exists());
        let before = rows(&run.join("runs.csv"));
        let is_complete = |row: &&Row| row["status"] == "complete";
        let whole: Vec<&Row> = before.iter().filter(is_complete).collect();
        assert!(!whole.is_empty() && whole.len() < 6, "{before:?}");

        for (words, part) in [
            ("--resume run --rounds 4".to_owned(), "--rounds 4"),
            (format!("{LONG} --resume run --rounds 4"), "--rounds 4"),
            (format!("{LONG} --count 7000 --resume run"), "count"),
            (format!("{LONG} --capacity 64 --resume run"), "128"),
            ("clock --resume run".to_owned(), "benchmark queue"),
        ] {
            let error = told(&ends(folder, &words, 2));
            assert!(
                error.contains("--resume") && error.contains(part),
                "{words}: {error}"
            );
        }
        assert_eq!(rows(&run.join("runs.csv")), before, "refused, and changed");

        ends(folder, &resume, 0);
        assert!(!run.join("INCOMPLETE").exists());
        let after = rows(&run.join("runs.csv"));
        assert_eq!(after.len(), 6);
        let kept = after.iter().filter(|row| whole.contains(row)).count();
        // Of the round in which it was killed, a row may stand without its distribution: that is measured again.
        assert!(kept + 1 >= whole.len(), "{after:?}");
        for row in rows(&run.join("summary.csv")) {
            assert_eq!(
                (row["rounds"].as_str(), row["status"].as_str()),
                ("3", "complete")
            );
            let place = run.join(&row["point"]);
            assert!(!place.join("INCOMPLETE").exists() && !place.join("histograms.json").exists());
            assert_eq!(rows(&place.join("elements.csv")).len(), 3 * 6000);
            let text = fs::read_to_string(place.join("latency.hgrm")).unwrap();
            assert!(text.contains("Total count    =        18000"), "{text}");
        }
        assert_eq!(json(&run.join("settings.json"))["status"], "complete");
        let error = told(&ends(folder, "--resume run", 2));
        assert!(error.contains("complete: nothing is missing"), "{error}");
    }
}

#[test]
fn a_signal_ends_the_run_and_its_child() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let folder = tempfile::tempdir().unwrap();
        // It would go on for minutes: who does not look for the signal hangs.
        let child = under_way(folder.path(), "--rounds 100");
        let all = processes(folder.path());
        assert!(!all.is_empty());
        let output = signalled(child, signal);
        if signal == Signal::SIGINT {
            assert_eq!(output.status.code(), Some(1));
            // The parent waits for it.
            assert_eq!(processes(folder.path()), [""; 0]);
            let run = folder.path().join("run");
            let mark = fs::read_to_string(run.join("INCOMPLETE")).unwrap();
            assert!(mark.contains("interrupted by SIGINT"), "{mark}");
            assert_eq!(json(&run.join("settings.json"))["status"], "incomplete");
        }
        until("the end of its child", || {
            processes(folder.path()).is_empty()
        });
    }
}

#[test]
fn a_dry_run_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = ends(folder, &format!("{LONG} --rounds 5 --dry-run --out run"), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("5 rounds take about") && text.contains("a round of 2 points"),
        "{text}"
    );
    let output = ends(folder, &format!("{LONG} --rounds 5 --dry-run --json"), 0);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rounds"], 5);
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    assert!(document["time_s"].as_f64().unwrap() >= 5.0 * 2.0 * 0.6);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn a_budget_gives_whole_rounds_and_tells_the_shortfall() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rounds_in = |run: &str| {
        let run = folder.join(run);
        assert!(!run.join("INCOMPLETE").exists());
        let orders = orders(&rows(&run.join("runs.csv")));
        assert!(orders.iter().all(|round| round.len() == 2), "{orders:?}");
        (
            orders.len(),
            json(&run.join("settings.json"))["rounds"].clone(),
        )
    };
    // 100 rounds take two minutes at the least.
    let output = ends(
        folder,
        &format!("{LONG} --rounds 100 --budget 4s --out a"),
        0,
    );
    let (count, told_rounds) = rounds_in("a");
    assert!((1..100).contains(&count));
    assert_eq!(
        (&told_rounds["planned"], &told_rounds["done"]),
        (&100.into(), &count.into())
    );
    let shortfall = format!("{count} of 100 rounds were measured");
    assert!(told(&output).contains(&shortfall), "{}", told(&output));
    // Without a number: as many as fit, and none are missing.
    let output = ends(folder, &format!("{LONG} --budget 4s --out b"), 0);
    let (count, told_rounds) = rounds_in("b");
    assert_eq!(
        (&told_rounds["planned"], &told_rounds["done"]),
        (&count.into(), &count.into())
    );
    assert!(
        !told(&output).contains("rounds were measured"),
        "{}",
        told(&output)
    );
    let error = told(&ends(folder, &format!("{LONG} --budget 10ms --out c"), 2));
    assert!(
        error.contains("--budget 10ms") && !folder.join("c").exists(),
        "{error}"
    );
}

#[test]
fn options_are_saved_and_taken_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(
        folder,
        &format!("{SHORT} --rounds 2 --save-config q.toml --out a --quiet"),
        0,
    );
    let text = fs::read_to_string(folder.join("q.toml")).unwrap();
    assert!(
        text.contains("command = \"queue\"") && !text.contains("out"),
        "{text}"
    );
    ends(folder, "--config q.toml --out b --quiet", 0);
    ends(
        folder,
        "queue --config q.toml --capacity 64 --out c --quiet",
        0,
    );
    let points = |run: &str| -> Vec<String> {
        let rows = rows(&folder.join(run).join("summary.csv"));
        rows.into_iter().map(|row| row["point"].clone()).collect()
    };
    assert_eq!(points("a"), points("b"));
    assert_eq!(points("a")[..1], points("c")[..]);
    let settings = json(&folder.join("b/settings.json"));
    assert_eq!(
        settings["run"],
        json(&folder.join("a/settings.json"))["run"]
    );
    assert_eq!(settings["rounds"]["done"], 2);
    // Nobody overwrites it, and what it cannot hold is named.
    ends(folder, &format!("{SHORT} --save-config q.toml --out d"), 2);
    fs::write(
        folder.join("bad.toml"),
        "command = \"queue\"\ncapacities = 5\n",
    )
    .unwrap();
    let error = told(&ends(folder, "--config bad.toml --out d", 2));
    assert!(
        error.contains("bad.toml") && error.contains("'capacities'"),
        "{error}"
    );
    assert!(!folder.join("d").exists());
    // A run that was begun from a file goes on without it.
    fs::remove_file(folder.join("q.toml")).unwrap();
    ends(folder, "rerun b --out e --quiet", 0);
    assert_eq!(points("b"), points("e"));
}

#[test]
fn the_settings_of_all_benchmarks_have_the_same_keys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &format!("{SHORT} --rounds 1 --quiet --out q"), 0);
    let watch = "clock --clock monotonic-raw --iterations 10k --baseline-iterations 1k --rounds 2 --quiet --out c";
    ends(folder, watch, 0);
    let keys =
        |path: &Path| -> Vec<String> { json(path).as_object().unwrap().keys().cloned().collect() };
    let expected = keys(&folder.join("q/settings.json"));
    assert!(expected.len() >= 14, "{expected:?}");
    for run in ["q", "c"] {
        let run = folder.join(run);
        assert_eq!(keys(&run.join("settings.json")), expected);
        assert!(json(&run.join("settings.json"))["instrument"]["clock"].is_object());
        for row in rows(&run.join("summary.csv")) {
            assert_eq!(
                keys(&run.join(&row["point"]).join("settings.json")),
                expected
            );
        }
    }
    assert_eq!(
        rows(&folder.join("c/runs.csv")).len(),
        2 * rows(&folder.join("c/summary.csv")).len()
    );
}

#[test]
fn results_stay_when_nobody_reads_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = hcabench(folder.path(), &format!("{SHORT} --rounds 2 --out run"))
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told(&output).contains("cannot write to standard output"),
        "{}",
        told(&output)
    );
    assert!(!folder.path().join("run/INCOMPLETE").exists());
    assert_eq!(rows(&folder.path().join("run/runs.csv")).len(), 4);
}

#[test]
fn two_command_lines_are_measured_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = hcabench(folder, "compare --rounds 3 --out both")
        .args(["--run", SHORT, "--run", SHORT])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let mut turns = Vec::new();
    for side in ["A", "B"] {
        let run = folder.join("both").join(side);
        assert!(!run.join("INCOMPLETE").exists());
        let settings = json(&run.join("settings.json"));
        assert_eq!(settings["status"], "complete");
        assert_eq!(settings["rounds"]["done"], 3);
        let runs = rows(&run.join("runs.csv"));
        assert_eq!(runs.len(), 6);
        let turn = |row: &Row| (row["started_at"].clone(), side, row["round"].clone());
        turns.extend(runs.iter().map(turn));
    }
    turns.sort();
    turns.dedup_by_key(|(_, side, round)| (*side, round.clone()));
    let turns: Vec<String> = turns
        .into_iter()
        .map(|(_, side, round)| format!("{side}{round}"))
        .collect();
    assert_eq!(turns, ["A0", "B0", "B1", "A1", "A2", "B2"]);
    // What is refused is refused before anything is compared, and what is there is not overwritten.
    let again = hcabench(folder, "compare --rounds 3 --out both")
        .args(["--run", SHORT, "--run", SHORT])
        .output();
    assert_eq!(again.unwrap().status.code(), Some(2));
    let bad = hcabench(folder, "compare --rounds 3 --out bad")
        .args(["--run", "queue --queue nothing", "--run", SHORT])
        .output();
    assert_eq!(bad.unwrap().status.code(), Some(2));
}

#[test]
fn a_round_that_waits_to_be_asked_ends_well_with_its_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let mut round = hcabench(folder.path(), "")
        .env("HCABENCH_CHILD", "round")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let config = Config {
        length: Length::Elements(6000),
        warmup: Duration::from_millis(1),
        measure: Measure::Time,
        measure_failed: false,
        retry: Retry::None,
        clock: ClockKind::Monotonic,
        priority: None,
        timeout: HANGS,
        huge_pages: HugePagePolicy::Off,
        keep_elements: true,
        has_memory_load: false,
    };
    let sweep = Sweep {
        queues: vec!["lamport".to_owned()],
        capacities: vec![64, 128],
        payloads: vec![8],
        senders: vec![EndLoad::NONE],
        receiver: EndLoad::NONE,
        curve: None,
        cpus: CpuChoice::Pair {
            sender: None,
            receiver: None,
        },
        memory_loads: vec![MemoryLoad::default()],
        wirings: Vec::new(),
    };
    let assignment = serde_json::to_string(&Assignment::Queue(config, sweep)).unwrap();
    writeln!(round.stdin.as_ref().unwrap(), "{assignment}").unwrap();
    let mut line = String::new();
    let answers = round.stdout.take().unwrap();
    BufReader::new(answers).read_line(&mut line).unwrap();
    assert_eq!(line, "\"ready\"\n");
    drop(round.stdin.take());
    until("the end of the round", || {
        round.try_wait().unwrap().is_some()
    });
    assert_eq!(round.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_in_use_is_not_resumed_or_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let child = under_way(folder, "--rounds 100");
    for words in [
        "--resume run".to_owned(),
        format!("{LONG} --out run --force"),
    ] {
        let output = ends(folder, &words, 2);
        assert!(told(&output).contains("is in use"), "{}", told(&output));
    }
    assert_eq!(signalled(child, Signal::SIGTERM).status.code(), Some(1));
    let runs = rows(&folder.join("run/runs.csv"));
    assert!(!runs.is_empty());
}

/// As `systemctl stop` and `scancel` do.
#[test]
fn a_signal_to_the_run_and_its_child_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let child = under_way(folder.path(), "--rounds 100");
    let id = child.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    for round in children.split_whitespace() {
        kill(Pid::from_raw(round.parse().unwrap()), Signal::SIGTERM).unwrap();
    }
    let output = signalled(child, Signal::SIGTERM);
    assert_eq!(output.status.code(), Some(1));
    let run = folder.path().join("run");
    let document = json(&run.join("settings.json"));
    assert_eq!(document["status"], "incomplete");
    assert!(
        document["failure"]
            .as_str()
            .unwrap()
            .contains("interrupted by SIGTERM")
    );
}
