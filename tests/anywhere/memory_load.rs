//! `--memory-load` with the real program. On a machine with two CPUs no generator has one: that is told. Where one is left,
//! it is measured.

use crate::common;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use common::{hcabench, rows};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const QUEUE: &str = "queue --queue baton --count 2000 --warmup 1ms --clock monotonic";

fn ended(folder: &Path, words: &str, code: i32) -> (Output, String) {
    let output = hcabench(folder, words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
    (output, errors)
}

/// CPUs that this process may use.
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

fn settings(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn points_with_load_are_measured_where_a_cpu_is_left_else_left_out_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{QUEUE} --memory-load off,50%,100% --rounds 2 --out results");
    let (output, errors) = ended(folder.path(), &words, 0);
    let results = folder.path().join("results");
    let summary = rows(&results.join("summary.csv"));
    let loads: Vec<&str> = (summary.iter())
        .map(|row| row["memory_load_percent"].as_str())
        .collect();
    assert!(
        summary
            .iter()
            .all(|row| row["status"] == "complete" && row["rounds"] == "2")
    );
    assert_eq!(summary[0]["memory_load_mb_s"], "");
    if !has_room() {
        assert_eq!(loads, ["0"]);
        let left_out = rows(&results.join("left_out.csv"));
        let loads: Vec<&str> = (left_out.iter())
            .map(|row| row["memory_load_percent"].as_str())
            .collect();
        assert_eq!(loads, ["50", "100"]);
        for row in &left_out {
            assert!(
                row["reason"].contains("no CPU is left for a generator"),
                "{row:?}"
            );
        }
        assert!(
            errors.contains("2 impossible (see left_out.csv)"),
            "{errors}"
        );
        return;
    }
    assert_eq!(loads, ["0", "50", "100"]);
    assert!(errors.contains("memory load: "), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("memory load") && text.contains("issued"),
        "{text}"
    );
    for row in &summary[1..] {
        let issued: f64 = row["memory_load_mb_s"].parse().unwrap();
        assert!(issued > 0.0, "{row:?}");
        let found = settings(&results.join(&row["point"]));
        let calibration = &found["instrument"]["memory_load"];
        assert!(calibration["peak_mb_s"].as_f64() > Some(0.0), "{found}");
        assert_eq!(calibration["loads"].as_array().map(Vec::len), Some(2));
        assert!(found["obtained"]["memory_load"]["buffer_bytes"].as_u64() >= Some(2 << 20));
    }
    // One setting, by which points are compared and drawn.
    ended(folder.path(), "compare results --by memory-load", 0);
    ended(
        folder.path(),
        "plot median results --x memory-load --out load.svg",
        0,
    );
}

#[test]
fn load_alone_is_refused_where_no_cpu_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{QUEUE} --memory-load 50 --dry-run");
    let code = if has_room() { 0 } else { 2 };
    let (_, errors) = ended(folder.path(), &words, code);
    assert_eq!(
        errors.contains("--memory-load 50% is impossible here"),
        code == 2,
        "{errors}"
    );
    for bad in ["0", "101%", "half"] {
        let (_, errors) = ended(folder.path(), &format!("{QUEUE} --memory-load {bad}"), 2);
        assert!(
            errors.contains("--memory-load") && errors.contains("from 1 to 100"),
            "{errors}"
        );
    }
}

#[test]
fn without_load_points_are_named_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let names = |words: &str| {
        let (output, _) = ended(
            folder.path(),
            &format!("{QUEUE} --dry-run --json {words}"),
            0,
        );
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            plan["points"][0]["rows"].clone(),
            plan["time_s"].as_f64().unwrap(),
        )
    };
    let (plain, off) = (names(""), names("--memory-load off"));
    assert_eq!(plain, off);
    assert!(plain.0[0].as_str().unwrap().contains("-cpu"), "{plain:?}");
    assert!(!plain.0.to_string().contains("memory_load"), "{plain:?}");
    let both = names("--memory-load off,30%");
    assert_eq!(both.0, plain.0);
    // Finding the pause takes its time in each round.
    assert_eq!(both.1 > plain.1 + 1.0, has_room());
}

#[test]
fn a_run_under_load_is_taken_up_again_and_ends_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{QUEUE} --memory-load off,100% --rounds 3 --order-seed 1 --out results");
    ended(folder.path(), &format!("{words} --until-round 1"), 0);
    ended(folder.path(), "queue --resume results", 0);
    let results = folder.path().join("results");
    let points = if has_room() { 2 } else { 1 };
    assert_eq!(rows(&results.join("runs.csv")).len(), 3 * points);

    let words =
        "queue --queue baton --count 1000000 --load constant-wait --wait 100us --clock monotonic";
    let load = if has_room() { "100%" } else { "off" };
    let mut child = hcabench(folder.path(), words)
        .args([
            "--memory-load",
            load,
            "--rounds",
            "1",
            "--quiet",
            "--out",
            "ended",
        ])
        .spawn()
        .unwrap();
    let ended = folder.path().join("ended");
    let begun = Instant::now();
    while !ended.join("runs.csv").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not begin"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(ended.join("INCOMPLETE").exists());
}

#[cfg(feature = "rdma")]
#[test]
fn the_hca_benchmark_knows_before_it_opens_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--memory-load off,50% --dry-run --json";
    let (output, _) = ended(folder.path(), words, 0);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // The completion thread takes a third CPU.
    let measured = if cpus() > 3 && has_room() { 2 } else { 1 };
    let count = |what: &str| plan[what].as_array().map(Vec::len);
    assert_eq!(
        (count("points"), count("left_out")),
        (Some(measured), Some(2 - measured))
    );
    if measured == 1 {
        let (_, errors) = ended(folder.path(), "--memory-load 50% --dry-run", 2);
        assert!(
            errors.contains("no CPU is left for a generator"),
            "{errors}"
        );
    }
}
