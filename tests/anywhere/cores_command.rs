//! `hcabench cores` as a user runs it.

use crate::LIMIT;
use crate::common;
use crate::made_up_run::cores::cores_run;
use crate::program::{self, Program};
use crate::testing::{Has as _, temporary};
use common::figures::drawn;
use common::{alone, expect, figure, hcabench, json, number, rows, until};
use nix::sys::signal::Signal;
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
fn refused(words: &str, told: &[&str]) {
    let folder = &*temporary("");
    cores(folder, words).ends(2).stderr.has(told);
    assert!(!folder.join("run").exists(), "{words}");
}

/// Refused where there is one CPU only, which is checked there as well.
fn are_two_there(folder: &Path) -> bool {
    if cpus().len() > 1 {
        return true;
    }
    let told = ["a pair takes two CPUs", "taskset"];
    cores(folder, "").ends(2).stderr.has(&told);
    false
}

#[test]
fn each_pair_has_a_row_in_each_direction_and_each_kind_its_figures() {
    let _alone = alone();
    let folder = &*temporary("");
    if !are_two_there(folder) {
        return;
    }
    // No more than four, so that a large machine takes no longer.
    let cpus = &cpus()[..cpus().len().min(4)];
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let words = format!(
        "--cpus {} --duration 20ms --rounds 2 --clock monotonic",
        list.join(",")
    );
    let (text, _) = expect(folder, &format!("cores --out run {words}"), 0);
    let out = folder.join("run");
    let summary = rows(&out.join("summary.csv"));
    let (mut pairs, mut missing) = (BTreeSet::new(), 0);
    for row in &summary {
        let directions = rows(&out.join(&row["point"]).join("pairs.csv"));
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
            assert!(of("clock_offset_bound_ns") > 0.0 && of("one_way_ns").is_finite());
            assert!(number(direction, "batches") > 0 && number(direction, "handovers") > 0);
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
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["advised"]["receiver_cpu"], 1);
    assert_eq!(told["fastest"][0]["sender_cpu"], 0);
    assert_eq!(told["fastest"][2]["cores"], "other-socket");
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
    for (words, told) in [
        ("--cpus x", ["--cpus", "is not a number"]),
        ("--cpus 1,,2", ["--cpus", "not a list of CPUs"]),
        ("--duration 5us", ["--duration", "from 100us to 10s"]),
        ("--memory-node near", ["--memory-node", "writer or reader"]),
        ("--rounds 0", ["--rounds", "from 1 to"]),
        ("--clock sundial", ["--clock", "monotonic-raw"]),
    ] {
        refused(words, &told);
    }
    if cpus().len() > 1 {
        let told = ["--memory-node 777", "writer, reader or one of"];
        refused("--memory-node 777", &told);
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
    let (text, _) = expect(folder, "cores --dry-run --rounds 6 --duration 1ms", 0);
    text.has(&["6 rounds take", "nothing was started"]);
    assert!(!folder.join("results").exists());
    let (text, _) = expect(
        folder,
        "cores --dry-run --rounds 6 --duration 100ms --json",
        0,
    );
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pairs = (cpus().len() * (cpus().len() - 1) / 2) as f64;
    let time = told["time_s"].as_f64().unwrap();
    assert!(time > 0.6 * pairs && time < 0.7 * pairs + 10.0, "{told}");
}

#[test]
fn a_queue_is_measured_between_the_pair_that_is_advised() {
    let _alone = alone();
    let folder = &*temporary("");
    if !are_two_there(folder) {
        return;
    }
    let told = cores(folder, "--rounds 1 --duration 10ms --json")
        .ends(0)
        .json();
    let queue =
        "queue --queue lamport --count 300 --warmup 1ms --repeat 1 --clock monotonic --out queue";
    let queue = hcabench(folder, &format!("{queue} --cores-from run"));
    let best = &told["advised"];
    if best.is_null() {
        // Two threads of one core, or CPUs that never ran at the same time.
        queue
            .ends(2)
            .stderr
            .has(&["--cores-from run", "no pair on two cores"]);
    } else {
        queue.ends(0);
        let row = &rows(&folder.join("queue/summary.csv"))[0];
        for end in ["sender_cpu", "receiver_cpu"] {
            assert_eq!(best[end].as_u64(), Some(number(row, end)), "{told}");
        }
    }
}

#[test]
fn results_of_another_machine_or_benchmark_choose_no_cpu() {
    let folder = &*temporary("");
    cores_run(&folder.join("other"), 6, false);
    let queue = |words: &str| hcabench(folder, &format!("queue --dry-run {words}")).ends(2);
    let told = [
        "--cores-from other",
        "\"made-up\"",
        "run hcabench cores here",
    ];
    queue("--cores-from other").stderr.has(&told);
    let both = queue("--cores-from other --sender-cpu 0");
    both.stderr
        .has(&["--cores-from", "--sender-cpu", "cannot be used"]);
    let many = queue("--cores-from other --producers 2");
    many.stderr.has(&["--cores-from", "several threads"]);
    let told = ["--cores-from nowhere", "nowhere"];
    queue("--cores-from nowhere").stderr.has(&told);
}

#[test]
fn a_signal_ends_it_at_once_and_what_there_is_stays() {
    let _alone = alone();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = &*temporary("");
        if !are_two_there(folder) {
            return;
        }
        let running = cores(folder, "--duration 10s --rounds 1 --clock monotonic").start();
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
