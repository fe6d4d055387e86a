//! Sweeps as their user has them, measured on queues, which need no device.

use crate::LIMIT;
use crate::common;
use crate::testing::{Has as _, temporary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::program::{Ended, Running, send};
use common::{Row, ends, hcabench, json, number, rows};
use hcabench::bench::Assignment;
use hcabench::bench::queue::config::{Config, Measure, RoundLength};
use hcabench::bench::queue::cpus::CpuChoice;
use hcabench::bench::queue::plan::Sweep;
use hcabench::bench::queue::retry::Retry;
use hcabench::buffer::HugePagePolicy;
use hcabench::generators::MemoryLoad;
use hcabench::pacing::EndLoad;
use hcabench::time::ClockKind;
use nix::sys::signal::Signal;

const SHORT: &str =
    "queue --queue lamport --capacity 64,128 --count 300 --warmup 1ms --clock monotonic";
/// Two points of more than half a second each: their elements come at a rate.
const LONG: &str = "queue --queue lamport --capacity 64,128 --load constant-rate --rate 10k --count 6000 --warmup 1ms \
                    --clock monotonic --elements";

fn orders(runs: &[Row]) -> Vec<Vec<String>> {
    let mut orders: BTreeMap<u64, BTreeMap<u64, String>> = BTreeMap::new();
    for row in runs {
        let round = orders.entry(number(row, "round")).or_default();
        let other = round.insert(number(row, "order"), row["point"].clone());
        assert_eq!(other, None, "{row:?}");
    }
    let in_order = |round: BTreeMap<u64, String>| round.into_values().collect();
    orders.into_values().map(in_order).collect()
}

fn csv_files(run: &Path) -> BTreeSet<String> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
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

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    common::until(what, || is_so().then_some(()));
}

/// A run of several rounds whose first point is measured, and others are not.
fn under_way(folder: &Path, more: &str) -> Running {
    let out = folder.join("run");
    let words = format!("{LONG} {more} --out {}", out.display());
    let running = hcabench(folder, &words).start();
    until("the first point", || {
        let text = fs::read_to_string(out.join("runs.csv"));
        text.is_ok_and(|text| text.lines().count() >= 2)
    });
    running
}

fn signalled(running: Running, signal: Signal) -> Ended {
    running.signal(signal);
    running.wait(LIMIT)
}

#[test]
fn rounds_are_shuffled_and_a_figure_is_their_median() {
    let folder = &*temporary("");
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
        let medians = of_point.map(|run| common::figure(run, "latency_p50_ns"));
        let mut medians: Vec<f64> = medians.collect();
        medians.sort_by(f64::total_cmp);
        assert_eq!(row["latency_p50_ns"].parse(), Ok(medians[1]), "{row:?}");
        assert_eq!([&row["rounds"], &row["status"]], ["3", "complete"]);
        let place = run.join(&row["point"]);
        assert_eq!(json(&place.join("settings.json"))["rounds"]["done"], 3);
        assert_eq!(rows(&place.join("elements.csv")).len(), 3 * 300);
    }
    let settings = json(&run.join("settings.json"));
    assert_eq!(settings["rounds"]["seed"], 7);
    assert_eq!(settings["rounds"]["planned"], 3);
    // The same seed, the same orders.
    ends(folder, "rerun run --out again --quiet", 0);
    let again = rows(&folder.join("again/runs.csv"));
    assert_eq!(orders(&again), orders_of_rounds);
    assert_eq!(ends(folder, "rerun run --out again", 2).stdout, "");

    let package = json(&run.join("datapackage.json"));
    let described = package["resources"].as_array().unwrap().iter();
    let described = described.map(|it| it["path"].as_str().unwrap().to_owned());
    let described = Vec::from_iter(described.filter(|path| path.ends_with(".csv")));
    assert_eq!(described.len(), 2 + 4);
    assert_eq!(BTreeSet::from_iter(described), csv_files(&run));
}

#[test]
fn what_a_kill_leaves_is_marked_and_completed_by_resume() {
    for (signal, resume) in [
        (Signal::SIGKILL, "--resume run".to_owned()),
        (Signal::SIGTERM, format!("{LONG} --rounds 3 --resume run")),
    ] {
        let folder = &*temporary("");
        let ended = signalled(under_way(folder, "--rounds 3"), signal);
        match signal {
            Signal::SIGKILL => assert_eq!(ended.status.signal(), Some(9)),
            _ => ended.expect(1).stderr.has(&["interrupted by SIGTERM"]),
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
            ends(folder, &words, 2).stderr.has(&["--resume", part]);
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
            assert_eq!([&row["rounds"], &row["status"]], ["3", "complete"]);
            let place = run.join(&row["point"]);
            assert!(!place.join("INCOMPLETE").exists() && !place.join("histograms.json").exists());
            assert_eq!(rows(&place.join("elements.csv")).len(), 3 * 6000);
            let text = fs::read_to_string(place.join("latency.hgrm")).unwrap();
            text.has(&["Total count    =        18000"]);
        }
        assert_eq!(json(&run.join("settings.json"))["status"], "complete");
        let ended = ends(folder, "--resume run", 2);
        ended.stderr.has(&["complete: nothing is missing"]);
    }
}

#[test]
fn a_signal_ends_the_run_and_its_child() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let folder = &*temporary("");
        // It would go on for minutes: who does not look for the signal hangs.
        let running = under_way(folder, "--rounds 100");
        let all = processes(folder);
        assert!(!all.is_empty());
        let ended = signalled(running, signal);
        if signal == Signal::SIGINT {
            ended.expect(1);
            // The parent waits for it.
            assert_eq!(processes(folder), [""; 0]);
            let run = folder.join("run");
            let mark = fs::read_to_string(run.join("INCOMPLETE")).unwrap();
            mark.has(&["interrupted by SIGINT"]);
            assert_eq!(json(&run.join("settings.json"))["status"], "incomplete");
        }
        let is_over = || processes(folder).is_empty();
        until("the end of its child", is_over);
    }
}

#[test]
fn a_dry_run_measures_nothing() {
    let folder = &*temporary("");
    let dry = format!("{LONG} --rounds 5 --dry-run");
    let ended = ends(folder, &format!("{dry} --out run"), 0);
    (ended.stdout).has(&["5 rounds take about", "a round of 2 points"]);
    let document = ends(folder, &format!("{dry} --json"), 0).json();
    assert_eq!(document["rounds"], 5);
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    assert!(document["time_s"].as_f64().unwrap() >= 5.0 * 2.0 * 0.6);
    // The first group of a warm-up is waited for, and the last one is not.
    let bursty = "queue --queue lamport --load bursty --group 1k --wait 5ms --count 100 --rounds 1 --dry-run --json";
    let time = ends(folder, bursty, 0).json()["time_s"].as_f64().unwrap();
    assert!((5.0..6.0).contains(&time), "{time}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn a_budget_gives_whole_rounds_and_tells_the_shortfall() {
    let folder = &*temporary("");
    let rounds_in = |run: &str| {
        let run = folder.join(run);
        assert!(!run.join("INCOMPLETE").exists());
        let orders = orders(&rows(&run.join("runs.csv")));
        assert!(orders.iter().all(|round| round.len() == 2), "{orders:?}");
        let told = json(&run.join("settings.json"))["rounds"].clone();
        let [planned, done] = ["planned", "done"].map(|it| told[it].as_u64().unwrap());
        assert_eq!(done, orders.len() as u64);
        (planned, done)
    };
    // 100 rounds take two minutes at the least.
    let words = format!("{LONG} --rounds 100 --budget 4s --out a");
    let ended = ends(folder, &words, 0);
    let (planned, count) = rounds_in("a");
    assert!((1..100).contains(&count) && planned == 100);
    let shortfall = format!("{count} of 100 rounds were measured");
    ended.stdout.has(&[&shortfall]);
    // Without a number: as many as fit, and none are missing.
    let ended = ends(folder, &format!("{LONG} --budget 4s --out b"), 0);
    let (planned, count) = rounds_in("b");
    assert_eq!(planned, count);
    ended.stderr.lacks(&["rounds were measured"]);
    let ended = ends(folder, &format!("{LONG} --budget 10ms --out c"), 2);
    ended.stderr.has(&["--budget 10ms"]);
    assert!(!folder.join("c").exists());
}

#[test]
fn options_are_saved_and_taken_from_a_file() {
    let folder = &*temporary("");
    let saving = format!("{SHORT} --rounds 2 --save-config q.toml --out a --quiet");
    ends(folder, &saving, 0);
    let text = fs::read_to_string(folder.join("q.toml")).unwrap();
    text.has(&["command = \"queue\""]);
    text.lacks(&["out"]);
    ends(folder, "--config q.toml --out b --quiet", 0);
    let first = "queue --config q.toml --capacity 64 --out c --quiet";
    ends(folder, first, 0);
    let points = |run: &str| -> Vec<String> {
        let rows = rows(&folder.join(run).join("summary.csv"));
        rows.into_iter().map(|row| row["point"].clone()).collect()
    };
    assert_eq!(points("a"), points("b"));
    assert_eq!(points("a")[..1], points("c")[..]);
    let [a, b] = ["a", "b"].map(|run| json(&folder.join(run).join("settings.json")));
    assert_eq!(a["run"], b["run"]);
    assert_eq!(b["rounds"]["done"], 2);
    // Nobody overwrites it, and what it cannot hold is named.
    ends(folder, &format!("{SHORT} --save-config q.toml --out d"), 2);
    let bad = "command = \"queue\"\ncapacities = 5\n";
    fs::write(folder.join("bad.toml"), bad).unwrap();
    let ended = ends(folder, "--config bad.toml --out d", 2);
    ended.stderr.has(&["bad.toml", "'capacities'"]);
    assert!(!folder.join("d").exists());
    // A run that was begun from a file goes on without it.
    fs::remove_file(folder.join("q.toml")).unwrap();
    ends(folder, "rerun b --out e --quiet", 0);
    assert_eq!(points("b"), points("e"));
}

#[test]
fn the_settings_of_all_benchmarks_have_the_same_keys() {
    let folder = &*temporary("");
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
            let settings = run.join(&row["point"]).join("settings.json");
            assert_eq!(keys(&settings), expected);
        }
    }
    let points = rows(&folder.join("c/summary.csv")).len();
    assert_eq!(rows(&folder.join("c/runs.csv")).len(), 2 * points);
}

#[test]
fn results_stay_when_nobody_reads_what_is_printed() {
    let folder = &*temporary("");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let program = hcabench(folder, &format!("{SHORT} --rounds 2 --out run"));
    let ended = program.change(|command| command.stdout(full)).ends(1);
    ended.stderr.has(&["cannot write to standard output"]);
    assert!(!folder.join("run/INCOMPLETE").exists());
    assert_eq!(rows(&folder.join("run/runs.csv")).len(), 4);
}

#[test]
fn two_command_lines_are_measured_in_turn() {
    let folder = &*temporary("");
    let compare = |out: &str, run: &str, code| {
        let words = format!("compare --rounds 3 --out {out} --run '{run}' --run '{SHORT}'");
        ends(folder, &words, code)
    };
    compare("both", SHORT, 0);
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
    compare("both", SHORT, 2);
    compare("bad", "queue --queue nothing", 2);
}

#[test]
fn a_round_that_waits_to_be_asked_ends_well_with_its_sweep() {
    let folder = &*temporary("");
    let program = hcabench(folder, "").env("HCABENCH_CHILD", "round");
    let mut command = program.change(|command| command.stdin(Stdio::piped())).0;
    let mut round = command.spawn().unwrap();
    let config = Config {
        length: RoundLength::Elements(6000),
        warmup: Duration::from_millis(1),
        measure: Measure::Time,
        measure_failed: false,
        retry: Retry::None,
        clock: ClockKind::Monotonic,
        unfenced: false,
        per_stamp: 1,
        priority: None,
        timeout: Duration::from_secs(60),
        huge_pages: HugePagePolicy::Off,
        keep_elements: true,
        hlog_interval: None,
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
    let is_over = || round.try_wait().unwrap().is_some();
    until("the end of the round", is_over);
    assert_eq!(round.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_in_use_is_not_resumed_or_replaced() {
    let folder = &*temporary("");
    let running = under_way(folder, "--rounds 100");
    for words in [
        "--resume run".to_owned(),
        format!("{LONG} --out run --force"),
    ] {
        ends(folder, &words, 2).stderr.has(&["is in use"]);
    }
    signalled(running, Signal::SIGTERM).expect(1);
    let runs = rows(&folder.join("run/runs.csv"));
    assert!(!runs.is_empty());
}

/// As `systemctl stop` and `scancel` do.
#[test]
fn a_signal_to_the_run_and_its_child_keeps_what_was_measured() {
    let folder = &*temporary("");
    let running = under_way(folder, "--rounds 100");
    let id = running.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    for round in children.split_whitespace() {
        send(Signal::SIGTERM, round.parse().unwrap());
    }
    signalled(running, Signal::SIGTERM).expect(1);
    let document = json(&folder.join("run/settings.json"));
    assert_eq!(document["status"], "incomplete");
    document["failure"].has(&["interrupted by SIGTERM"]);
}

#[test]
fn a_dry_run_without_devices_does_not_mention_any() {
    let folder = &*temporary("");
    for words in ["queue", "clock", "memory", "node --type udp"] {
        let ended = ends(folder, &format!("{words} --dry-run"), 0);
        ended.stdout.lacks(&["device"]);
    }
}
