//! On a machine with two CPUs no generator has one: that is told. Where one is left, it is measured.

use crate::LIMIT;
use crate::common;
use crate::testing::{Has as _, temporary};
use std::path::Path;
use std::time::Duration;

use common::{Row, ends, figure, hcabench, json, rows, until};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

const QUEUE: &str = "queue --queue baton --count 2000 --warmup 1ms --clock monotonic";

fn loads_of(path: &Path) -> (Vec<Row>, Vec<String>) {
    let rows = rows(path);
    let loads = rows.iter().map(|row| row["memory_load_percent"].clone());
    let loads = loads.collect();
    (rows, loads)
}

fn cpus() -> usize {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count())
        .filter(|&cpu| allowed.is_set(cpu) == Ok(true))
        .count()
}

/// Whether a generator has a CPU beside two threads.
fn has_room() -> bool {
    cpus() > 2 && cfg!(target_arch = "x86_64")
}

#[test]
fn points_with_load_are_measured_where_a_cpu_is_left_else_left_out_with_the_reason() {
    let folder = &*temporary("");
    let words = format!("{QUEUE} --memory-load off,50%,100% --rounds 2 --out results");
    let ended = ends(folder, &words, 0);
    let results = folder.join("results");
    let (summary, loads) = loads_of(&results.join("summary.csv"));
    for row in &summary {
        assert_eq!([&row["status"], &row["rounds"]], ["complete", "2"]);
    }
    assert_eq!(summary[0]["memory_load_mb_s"], "");
    if !has_room() {
        assert_eq!(loads, ["0"]);
        let (left_out, loads) = loads_of(&results.join("left_out.csv"));
        assert_eq!(loads, ["50", "100"]);
        for row in &left_out {
            row["reason"].has(&["no CPU is left for a generator"]);
        }
        (ended.stderr).has(&["2 impossible (see left_out.csv)"]);
        return;
    }
    assert_eq!(loads, ["0", "50", "100"]);
    ended.stderr.has(&["memory load: "]);
    ended.stdout.has(&["memory load", "issued"]);
    for row in &summary[1..] {
        assert!(figure(row, "memory_load_mb_s") > 0.0, "{row:?}");
        let found = json(&results.join(&row["point"]).join("settings.json"));
        let calibration = &found["instrument"]["memory_load"];
        assert!(calibration["peak_mb_s"].as_f64() > Some(0.0), "{found}");
        assert_eq!(calibration["loads"].as_array().map(Vec::len), Some(2));
        assert!(found["obtained"]["memory_load"]["buffer_bytes"].as_u64() >= Some(2 << 20));
    }
    // One setting, by which points are compared and drawn.
    ends(folder, "compare results --by memory-load", 0);
    let plot = "plot median results --x memory-load --out load.svg";
    ends(folder, plot, 0);
}

#[test]
fn load_alone_is_refused_where_no_cpu_is_left() {
    let folder = &*temporary("");
    let words = format!("{QUEUE} --memory-load 50 --dry-run");
    let code = if has_room() { 0 } else { 2 };
    let told = ends(folder, &words, code).stderr;
    let is_refused = told.contains("--memory-load 50% is impossible on this machine");
    assert_eq!(is_refused, code == 2, "{told}");
    for bad in ["0", "101%", "half"] {
        let ended = ends(folder, &format!("{QUEUE} --memory-load {bad}"), 2);
        ended.stderr.has(&["--memory-load", "from 1 to 100"]);
    }
}

#[test]
fn without_load_points_are_named_as_ever() {
    let folder = &*temporary("");
    let names = |words: &str| {
        let words = format!("{QUEUE} --dry-run --json {words}");
        let plan = ends(folder, &words, 0).json();
        let time = plan["time_s"].as_f64().unwrap();
        (plan["points"][0]["rows"].clone(), time)
    };
    let (plain, off) = (names(""), names("--memory-load off"));
    assert_eq!(plain, off);
    plain.0[0].has(&["-cpu"]);
    plain.0.lacks(&["memory_load"]);
    let both = names("--memory-load off,30%");
    assert_eq!(both.0, plain.0);
    // Finding the pause takes its time in each round.
    assert_eq!(both.1 > plain.1 + 1.0, has_room());
}

#[test]
fn a_run_under_load_is_taken_up_again_and_ends_by_a_signal() {
    let folder = &*temporary("");
    let words = format!("{QUEUE} --memory-load off,100% --rounds 3 --order-seed 1 --out results");
    ends(folder, &format!("{words} --until-round 1"), 0);
    ends(folder, "queue --resume results", 0);
    let results = folder.join("results");
    let points = if has_room() { 2 } else { 1 };
    assert_eq!(rows(&results.join("runs.csv")).len(), 3 * points);

    let load = if has_room() { "100%" } else { "off" };
    let words = format!(
        "queue --queue baton --count 1000000 --load constant-wait --wait 100us --clock monotonic --memory-load {load} \
         --rounds 1 --quiet --out ended"
    );
    let running = hcabench(folder, &words).start();
    let ended = folder.join("ended");
    until("its begin", || {
        ended.join("runs.csv").exists().then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::SIGINT);
    running.wait(LIMIT).expect(1);
    assert!(ended.join("INCOMPLETE").exists());
}

#[cfg(feature = "rdma")]
#[test]
fn the_hca_benchmark_knows_before_it_opens_a_device() {
    let folder = &*temporary("");
    let words = "--memory-load off,50% --dry-run --json";
    let plan = ends(folder, words, 0).json();
    // The completion thread takes a third CPU.
    let measured = if cpus() > 3 && has_room() { 2 } else { 1 };
    let count = |what: &str| plan[what].as_array().map(Vec::len);
    assert_eq!(count("points"), Some(measured));
    assert_eq!(count("left_out"), Some(2 - measured));
    if measured == 1 {
        let ended = ends(folder, "--memory-load 50% --dry-run", 2);
        (ended.stderr).has(&["no CPU is left for a generator"]);
    }
}
