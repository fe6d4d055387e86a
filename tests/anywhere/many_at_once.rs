//! Runs that begin at the same moment, in folders that nobody or everybody named.

use crate::LIMIT;
use crate::common::{ends, hcabench, json, rows, until};
use crate::program::{Ended, Running};
use crate::testing::temporary;
use nix::sys::signal::Signal;
use std::fs;
use std::path::{Path, PathBuf};

const SHORT: &str =
    "queue --queue lamport --capacity 64,128 --count 300 --warmup 1ms --clock monotonic";
/// Two points of more than half a second each: their elements come at a rate.
const LONG: &str = "queue --queue lamport --capacity 64,128 --load constant-rate --rate 10k --count 6000 --warmup 1ms \
                    --clock monotonic";

fn at_once(folder: &Path, words: &[String]) -> Vec<Ended> {
    let started: Vec<Running> = (words.iter())
        .map(|words| hcabench(folder, words).start())
        .collect();
    started.into_iter().map(|run| run.wait(LIMIT)).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn is_whole(run: &Path) {
    assert!(!run.join("INCOMPLETE").exists(), "{run:?}");
    for file in ["summary.csv", "runs.csv"] {
        assert_eq!(rows(&run.join(file)).len(), 2, "{run:?}");
    }
    assert_eq!(json(&run.join("settings.json"))["status"], "complete");
}

#[test]
fn six_runs_without_a_folder_have_one_each() {
    let folder = &*temporary("");
    let words = vec![format!("{SHORT} --rounds 1"); 6];
    for ended in at_once(folder, &words) {
        ended.expect(0);
    }
    let runs = folders_in(&folder.join("results"));
    assert_eq!(runs.len(), 6, "{runs:?}");
    runs.iter().for_each(|run| is_whole(run));
}

#[test]
fn two_comparisons_without_a_folder_have_one_each() {
    let folder = &*temporary("");
    let words = vec![format!("compare --run '{SHORT}' --run '{SHORT}' --rounds 1"); 2];
    for ended in at_once(folder, &words) {
        ended.expect(0);
    }
    let comparisons = folders_in(&folder.join("results"));
    assert_eq!(comparisons.len(), 2, "{comparisons:?}");
    let runs = comparisons.iter().flat_map(|it| folders_in(it));
    assert_eq!(runs.inspect(|run| is_whole(run)).count(), 4);
}

/// The first has the folder from before it measures until it ends, however long that takes: here it is stopped meanwhile.
/// The others have measured nothing, and have left nothing.
#[test]
fn of_runs_into_one_folder_one_is_whole_and_the_others_are_refused() {
    for force in ["", "--force"] {
        let folder = &*temporary("");
        let words = format!("{LONG} --rounds 1 --out deep/run {force}");
        let first = hcabench(folder, &words).start();
        let run = folder.join("deep/run");
        until("the folder", || {
            run.join("settings.json").exists().then_some(())
        });
        first.signal(Signal::SIGSTOP);
        for ended in at_once(folder, &vec![words; 3]) {
            let told = "deep/run is in use: a run writes to it";
            ended.expect(2).says(&["--out deep/run: ", told]);
        }
        first.signal(Signal::SIGCONT);
        first.wait(LIMIT).expect(0);
        is_whole(&run);
        assert_eq!(folders_in(&folder.join("deep")).len(), 1);
    }
}

#[test]
fn a_killed_run_can_be_replaced_or_go_on() {
    for (words, rounds) in [
        ("--resume run".to_owned(), 3),
        (format!("{SHORT} --rounds 1 --out run --force"), 1),
    ] {
        let folder = &*temporary("");
        let run = folder.join("run");
        let running = hcabench(folder, &format!("{LONG} --rounds 3 --out run")).start();
        until("the first point", || {
            let text = fs::read_to_string(run.join("runs.csv"));
            text.is_ok_and(|text| text.lines().count() >= 2)
                .then_some(())
        });
        running.signal(Signal::SIGKILL);
        drop(running);
        // At once: a round of it may not have ended yet.
        ends(folder, &words, 0);
        assert!(!run.join("INCOMPLETE").exists());
        assert_eq!(rows(&run.join("runs.csv")).len(), 2 * rounds);
    }
}

#[test]
fn links_that_lead_nowhere_are_named() {
    let folder = &*temporary("");
    let link = |name: &str| {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("gone", folder.join(name)).unwrap();
    };
    link("out");
    let told = ["out is a symbolic link to gone, which does not exist"];
    for words in [
        format!("{SHORT} --out out"),
        format!("{SHORT} --out out/deep --force"),
        format!("compare --run '{SHORT}' --run '{SHORT}' --rounds 1 --out out"),
    ] {
        ends(folder, &words, 2).says(&["--out out", told[0]]);
    }
    link("results");
    ends(folder, SHORT, 2).says(&["results is a symbolic link to gone, which does not exist"]);
    assert!(!folder.join("gone").exists());
    for (words, code) in [
        ("show out", 1),
        ("plot median out --out figure.svg", 1),
        ("report out --out page.html", 1),
        ("list out", 1),
        ("compare out --by capacity", 1),
        ("rerun out", 2),
        ("queue --resume out", 2),
    ] {
        ends(folder, words, code)
            .says(&["out", "is a symbolic link to gone, which does not exist"]);
    }
    // A file among results.
    ends(folder, &format!("{SHORT} --rounds 1 --out run"), 0);
    let run = folder.join("run");
    for file in ["runs.csv", "summary.csv"] {
        fs::remove_file(run.join(file)).unwrap();
        link(&format!("run/{file}"));
    }
    for command in [
        "show run",
        "plot median run --out figure.svg",
        "compare run run",
    ] {
        let ended = ends(folder, command, 1);
        ended.says(&[
            "run/",
            ".csv is a symbolic link to gone, which does not exist",
        ]);
    }
}
