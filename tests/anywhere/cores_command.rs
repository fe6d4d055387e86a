//! `hcabench cores` as a user runs it.

use crate::LIMIT;
use crate::common;
use crate::made_up_run::cores::cores_run;
use crate::program::{self, Ended, Program};
use crate::testing::{Has as _, temporary};
use common::figures::drawn;
use common::{Row, alone, expect, figure, hcabench, json, number, rows, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// The CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let all = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let count = nix::sched::CpuSet::count();
    (0..count)
        .filter(|cpu| all.is_set(*cpu) == Ok(true))
        .collect()
}

/// With its results in `run`.
fn cores(folder: &Path, words: &str) -> Program {
    hcabench(folder, &format!("cores --out run {words}"))
}

#[track_caller]
fn refused(words: &str, expected: &[&str]) {
    let folder = &*temporary("");
    cores(folder, words).ends(2).stderr.has(expected);
    assert!(!folder.join("run").exists(), "{words}");
}

/// The first of these CPUs, no more than four, as an option: a large machine takes no longer.
fn few() -> String {
    let all: Vec<String> = cpus().iter().take(4).map(usize::to_string).collect();
    format!("--cpus {}", all.join(","))
}

/// Whether a direction has all figures.
fn is_whole(direction: &Row) -> bool {
    ["one_way_ns", "stream_mb_s"].map(|column| !direction[column].is_empty()) == [true; 2]
}

/// Measures these CPUs again until a direction has all figures, which are in `run`: CPUs that other work keeps busy do
/// not run at the same time.
fn measured(folder: &Path, words: &str) -> Ended {
    let begun = Instant::now();
    loop {
        let ended = cores(folder, &format!("{} {words}", few())).run();
        let has_all = || {
            let summary = rows(&folder.join("run/summary.csv"));
            let file = |row: &Row| folder.join("run").join(&row["point"]).join("pairs.csv");
            summary
                .iter()
                .any(|row| rows(&file(row)).iter().any(is_whole))
        };
        if ended.is_success() && has_all() {
            return ended;
        }
        assert!(begun.elapsed() < LIMIT, "{ended:?}");
        std::fs::remove_dir_all(folder.join("run")).unwrap();
    }
}

/// Refused where there is one CPU only, which is checked there as well.
fn are_two_there(folder: &Path) -> bool {
    if cpus().len() > 1 {
        return true;
    }
    let expected = ["a pair takes two CPUs", "taskset"];
    cores(folder, "").ends(2).stderr.has(&expected);
    false
}

#[test]
fn each_pair_has_a_row_in_each_direction_and_each_kind_its_figures() {
    let _alone = alone();
    let folder = &*temporary("");
    if !are_two_there(folder) {
        return;
    }
    let words = "--duration 20ms --rounds 2 --clock monotonic";
    let text = measured(folder, words).stdout;
    let cpus: Vec<usize> = cpus().into_iter().take(4).collect();
    let out = folder.join("run");
    let summary = rows(&out.join("summary.csv"));
    let (mut pairs, mut missing) = (BTreeSet::new(), 0);
    for row in &summary {
        let directions = rows(&out.join(&row["point"]).join("pairs.csv"));
        let (parts, partly) = (
            directions.iter().filter(|it| !is_whole(it)).count(),
            "pairs_partly_measured",
        );
        assert!(parts as u64 <= 2 * number(row, partly), "{directions:?}");
        assert_eq!(directions.len() as u64, number(row, "directions"));
        missing += number(row, "pairs_unmeasured");
        for direction in &directions {
            let of = |column: &str| figure(direction, column);
            let both = ["sender_cpu", "receiver_cpu"].map(|end| number(direction, end) as usize);
            assert!(both[0] != both[1] && both.iter().all(|cpu| cpus.contains(cpu)));
            pairs.insert((number(direction, "round"), both));
            let half = of("half_round_trip_ns");
            assert!(half > 0.0 && of("half_round_trip_least_ns") <= half + 0.01);
            assert!(
                (of("round_trip_ns") - 2.0 * half).abs() < 0.02,
                "{direction:?}"
            );
            assert!(number(direction, "batches") > 0);
            if is_whole(direction) {
                assert!(of("clock_offset_bound_ns") > 0.0 && of("one_way_ns").is_finite());
                assert!(of("stream_mb_s") > 0.0 && number(direction, "handovers") > 0);
            }
        }
        if number(row, "directions") > 0 {
            let [least, median, most] =
                ["_min", "", "_max"].map(|end| figure(row, &format!("half_round_trip{end}_ns")));
            assert!(least <= median && median <= most, "{row:?}");
        }
    }
    // Two CPUs that others keep busy may not run at the same time.
    let all = 2 * cpus.len() * (cpus.len() - 1);
    assert_eq!(pairs.len() + 2 * missing as usize, all, "{summary:?}");
    let settings = json(&out.join("settings.json"));
    let known = settings["obtained"]["cpus"].as_array().unwrap();
    assert_eq!(known.len(), cpus.len());
    assert!(known.iter().all(|cpu| cpu["core"].is_string()), "{known:?}");
    assert_eq!(settings["run"]["memory_node"], "writer");
    text.has(&["half round trip", "fastest pair", "one way", "stream"]);
}

#[test]
fn what_is_read_again_is_compared_drawn_reported_and_shown() {
    let folder = &*temporary("");
    for name in ["base", "new"] {
        cores_run(&folder.join(name), 6, false);
    }
    let (text, _) = expect(folder, "compare base new", 0);
    text.has(&[
        "latency",
        "one-way",
        "bandwidth",
        "smt-siblings",
        "other-socket",
    ]);
    let (_, error) = expect(folder, "compare base new --percentiles p90", 2);
    error.has(&["p90", "latency"]);
    let (texts, data) = drawn(folder, "matrix base");
    texts.has(&["CPUs: half of a round trip", "7", "from CPU"]);
    assert_eq!(data["nodes"].as_array().unwrap().len(), 8);
    // Of 0 and 4, which share a core; the fastest of all others is advised.
    let (text, _) = expect(folder, "show base", 0);
    let advice = "--sender-cpu 0 --receiver-cpu 1 (same-cache, half a round trip 50.6 ns)";
    text.has(&[
        "smt-siblings",
        "half of a round trip (ns), each pair",
        advice,
    ]);
    let (text, _) = expect(folder, "show base --json", 0);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["advised"]["receiver_cpu"], 1);
    assert_eq!(shown["fastest"][0]["sender_cpu"], 0);
    assert_eq!(shown["fastest"][2]["cores"], "other-socket");
    expect(folder, "report base --out page.html", 0);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    page.has(&["Half of a round trip of each pair", "other-socket", "<svg"]);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let first = cpus()[0];
    refused(
        &format!("--cpus {first}"),
        &["--cpus", "two CPUs", "two or more"],
    );
    let absent = format!("--cpus {first},4999");
    refused(&absent, &["--cpus 4999", "choose one of"]);
    for (words, expected) in [
        ("--cpus x", ["--cpus", "is not a number"]),
        ("--cpus 1,,2", ["--cpus", "not a list of CPUs"]),
        ("--duration 5us", ["--duration", "from 100us to 10s"]),
        ("--memory-node near", ["--memory-node", "writer or reader"]),
        ("--rounds 0", ["--rounds", "from 1 to"]),
        ("--clock sundial", ["--clock", "monotonic-raw"]),
    ] {
        refused(words, &expected);
    }
    if cpus().len() > 1 {
        let expected = ["--memory-node 777", "writer, reader or one of"];
        refused("--memory-node 777", &expected);
    }
}

#[test]
fn one_cpu_is_refused_with_what_to_do() {
    let folder = &*temporary("");
    let cpu = cpus()[0].to_string();
    let words = "cores --out run";
    let program = Program::under(&["taskset", "-c", &cpu], program::path(), words);
    let refused = program.in_folder(folder).ends(2).stderr;
    refused.has(&[
        "a pair takes two CPUs",
        "taskset -p",
        "a machine with two or more",
    ]);
    assert!(!folder.join("run").exists());
}

#[test]
fn the_plan_has_the_time_of_each_kind_and_measures_nothing() {
    let folder = &*temporary("");
    if !are_two_there(folder) {
        return;
    }
    let (text, _) = expect(folder, &format!("cores --dry-run {}", few()), 0);
    text.has(&["6 rounds take", "nothing was started"]);
    assert!(!folder.join("results").exists());
    let words = format!(
        "cores --dry-run --rounds 6 --duration 100ms --json {}",
        few()
    );
    let (text, _) = expect(folder, &words, 0);
    let shown: Value = serde_json::from_str(&text).unwrap();
    let count = cpus().len().min(4);
    let pairs = (count * (count - 1) / 2) as f64;
    let time = shown["time_s"].as_f64().unwrap();
    assert!(time > 0.6 * pairs && time < 0.7 * pairs + 10.0, "{shown}");
}

#[test]
fn a_queue_is_measured_between_the_pair_that_is_advised() {
    let _alone = alone();
    let folder = &*temporary("");
    if !are_two_there(folder) {
        return;
    }
    let shown = measured(folder, "--rounds 1 --duration 10ms --json").json();
    let queue =
        "queue --queue lamport --count 300 --warmup 1ms --repeat 1 --clock monotonic --out queue";
    let queue = hcabench(folder, &format!("{queue} --cores-from run"));
    let best = &shown["advised"];
    if best.is_null() {
        // Two threads of one core.
        queue
            .ends(2)
            .stderr
            .has(&["--cores-from run", "no pair on two cores"]);
    } else if best["cores"] == "unknown" {
        queue
            .ends(2)
            .stderr
            .has(&["--cores-from run", "--sender-cpu"]);
    } else {
        queue.ends(0);
        let row = &rows(&folder.join("queue/summary.csv"))[0];
        for end in ["sender_cpu", "receiver_cpu"] {
            assert_eq!(best[end].as_u64(), Some(number(row, end)), "{shown}");
        }
    }
}

#[test]
fn results_of_another_machine_or_benchmark_choose_no_cpu() {
    let folder = &*temporary("");
    cores_run(&folder.join("other"), 6, false);
    let queue = |words: &str| hcabench(folder, &format!("queue --dry-run {words}")).ends(2);
    let expected = [
        "--cores-from other",
        "\"made-up\"",
        "run hcabench cores here",
    ];
    queue("--cores-from other").stderr.has(&expected);
    let both = queue("--cores-from other --sender-cpu 0");
    both.stderr
        .has(&["--cores-from", "--sender-cpu", "cannot be used"]);
    let many = queue("--cores-from other --producers 2");
    many.stderr.has(&["--cores-from", "several threads"]);
    let expected = ["--cores-from nowhere", "nowhere"];
    queue("--cores-from nowhere").stderr.has(&expected);
}

/// Makes results those of this machine by its name.
fn of_this_machine(run: &Path) -> Value {
    let mut document = json(&run.join("settings.json"));
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    document["machine"]["hostname"] = name.trim().into();
    std::fs::write(run.join("settings.json"), document.to_string()).unwrap();
    document
}

#[test]
fn results_that_are_not_whole_or_of_other_cpus_choose_no_cpu() {
    let folder = &*temporary("");
    let refused = |expected: &[&str]| {
        let words = "queue --dry-run --cores-from run";
        hcabench(folder, words)
            .ends(2)
            .stderr
            .has(&["--cores-from run", "hcabench cores again"]);
        hcabench(folder, words).ends(2).stderr.has(expected);
        std::fs::remove_dir_all(folder.join("run")).unwrap();
    };
    let run = cores_run(&folder.join("run"), 2, true);
    of_this_machine(&run);
    refused(&["incomplete", "interrupted by SIGINT"]);

    let head = "round,t_start_ns,sender_cpu,receiver_cpu,memory_node,half_round_trip_ns";
    for (row, reason) in [
        ("0,0,-1,1,0,50.0", "sender_cpu is \"-1\", no CPU"),
        ("0,0,0,1.5,0,50.0", "receiver_cpu is \"1.5\", no CPU"),
        ("0,0,0,1,0,0.0", "half_round_trip_ns is 0, no time"),
    ] {
        let run = cores_run(&folder.join("run"), 2, false);
        of_this_machine(&run);
        let file = run.join("same-cache/pairs.csv");
        std::fs::write(file, format!("{head}\n{row}\n")).unwrap();
        refused(&["damaged", "same-cache/pairs.csv", reason]);
    }

    let run = cores_run(&folder.join("run"), 2, false);
    let mut document = of_this_machine(&run);
    for cpu in document["obtained"]["cpus"].as_array_mut().unwrap() {
        cpu["socket"] = 4711.into();
    }
    std::fs::write(run.join("settings.json"), document.to_string()).unwrap();
    refused(&["the kernel reports CPU 0 otherwise"]);
}

#[test]
fn a_signal_ends_it_at_once_and_what_there_is_stays() {
    let _alone = alone();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = &*temporary("");
        if !are_two_there(folder) {
            return;
        }
        let running = cores(
            folder,
            &format!("{} --duration 10s --rounds 1 --clock monotonic", few()),
        );
        let running = running.start();
        let out = folder.join("run");
        until("its folder", || out.exists().then_some(()));
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        running.signal(signal);
        running.wait(LIMIT).expect(1).stderr.has(&[signal.as_str()]);
        assert!(begun.elapsed() < common::end_after_signal());
        assert!(out.join("INCOMPLETE").exists());
    }
}
