//! `hcabench memory` as a user runs it.

use crate::common;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::node::{ended, number, until};
use common::{Row, alone, json, rows};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// With its results in `run`.
fn memory(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(crate::common::program());
    command
        .args(["memory", "--out", "run", "--size", "1M"])
        .args(words.split_ascii_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn run(folder: &Path, words: &str) -> Output {
    memory(folder, words).output().unwrap()
}

fn start(folder: &Path, words: &str) -> Child {
    let mut command = memory(folder, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn figure(row: &Row, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// Its error, after it was refused: before anything was measured.
fn refused(words: &str, told: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    refused_of(memory(folder.path(), words), words, told);
    assert!(!folder.path().join("run").exists(), "{words}");
}

fn refused_of(mut command: Command, words: &str, told: &[&str]) {
    let text = ended(&command.output().unwrap(), 2);
    for told in told {
        assert!(text.contains(told), "{words}: {told:?} is not in {text}");
    }
}

#[test]
fn each_point_has_a_row_and_each_window_counts() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let words = "--read-share 50,100 --store regular,non-temporal --pause 0,max,off --pages 4k --windows 8 --window 5ms \
                 --settle 50ms --rounds 2 --smooth none";
    ended(&run(folder.path(), words), 0);
    let out = folder.path().join("run");
    let summary = rows(&out.join("summary.csv"));
    assert_eq!(
        (summary.len(), rows(&out.join("left_out.csv")).len()),
        (9, 3)
    );
    for row in &summary {
        let windows = rows(&out.join(&row["point"]).join("windows.csv"));
        assert_eq!(windows.len() as u64, number(row, "windows_measured"));
        assert_eq!(windows.len(), 16);
        let kept = windows.iter().filter(|window| window["kept"] == "true");
        assert_eq!(
            kept.clone().count() as u64,
            16 - number(row, "windows_removed") - number(row, "windows_stalled")
        );
        let steps: u64 = kept.map(|window| number(window, "steps")).sum();
        assert_eq!(steps, number(row, "chase_steps"));
        assert_eq!(
            (row["pages"].as_str(), row["status"].as_str()),
            ("4k", "complete")
        );
        assert!(figure(row, "latency_ns") > 0.0);
        let lines = |column: &str| {
            windows
                .iter()
                .map(|window| number(window, column))
                .sum::<u64>()
        };
        let (read, stored) = (lines("lines_read"), lines("lines_stored"));
        let (issued, estimated) = (
            figure(row, "bandwidth_issued_mb_s"),
            figure(row, "bandwidth_estimated_mb_s"),
        );
        assert!(estimated > issued, "{row:?}");
        match (
            row["pause_nops"].as_str(),
            row["read_share_percent"].as_str(),
        ) {
            ("", _) => assert_eq!((read, stored, issued), (0, 0, 0.0)),
            (_, "100") => assert!(read > 0 && stored == 0),
            (_, _) => assert!(read > 0 && read == stored),
        }
        let is_limited = !row["pause_nops"].is_empty() && row["generator_count"] == "1";
        assert_eq!(row["core_limited"], is_limited.to_string());
        // A machine with a cache of less than 256 KiB is none of today's.
        assert_eq!(row["in_cache"], "true");
        let mut marks = row["marks"].split(' ');
        assert!(marks.any(|mark| mark == "in-cache"), "{row:?}");
    }
    let first = |pause: &str| {
        summary
            .iter()
            .find(|row| row["pause_nops"] == pause)
            .unwrap()
    };
    let issued = |pause: &str| figure(first(pause), "bandwidth_issued_mb_s");
    assert!(issued("0") > 10.0 * issued("4194304"), "{summary:?}");
    let settings = json(&out.join("settings.json"));
    assert_eq!(settings["run"]["pages"], "4k");
}

/// The least latency of all windows of its only point, in nanoseconds: nothing makes a step faster than it is.
fn least_latency(size: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let words = format!(
        "--pause off --read-share 100 --rounds 1 --windows 500 --window 1ms --smooth none --size {size}"
    );
    let mut command = Command::new(crate::common::program());
    command
        .args(["memory", "--out", "run"])
        .args(words.split_ascii_whitespace());
    ended(&command.current_dir(folder.path()).output().unwrap(), 0);
    let windows = rows(
        &folder
            .path()
            .join("run/reads100-regular-pause-off/windows.csv"),
    );
    let latencies = windows.iter().map(|window| figure(window, "latency_ns"));
    latencies.min_by(f64::total_cmp).unwrap()
}

#[test]
fn the_latency_rises_as_a_staircase_over_the_caches() {
    let _alone = alone();
    let [first, second, beyond] = ["16K", "384K", "256M"].map(least_latency);
    assert!(
        first * 1.5 < second && second * 3.0 < beyond,
        "{first} {second} {beyond}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (words, told) in [
        ("--read-share 27", ["--read-share", "even number"]),
        ("--pause 5000k", ["--pause", "max or off"]),
        ("--size 1k", ["--size", "16 KiB"]),
        ("--size 100G", ["--size 100 GiB", "allowed is"]),
        (
            "--memory-node 77",
            ["--memory-node 77", "allowed is one of 0"],
        ),
        ("--isa mmx", ["--isa", "sse2, avx2, avx512"]),
        ("--generators 4999", ["--generators 4999", "choose one of"]),
        (
            "--chase-cpu 1 --generators 0-1",
            ["--generators 1", "same CPU"],
        ),
        ("--smooth savgol:10:3", ["--smooth", "savgol"]),
        ("--pages 1g --size 64G", ["--size 64 GiB", "allowed is"]),
    ] {
        refused(words, &told);
    }
}

#[test]
fn one_cpu_is_not_enough_unless_nothing_is_generated() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let with_one = |words: &str| {
        let mut command = Command::new("taskset");
        command
            .args(["-c", "0"])
            .arg(crate::common::program())
            .args(["memory", "--size", "1M", "--out", "run"]);
        command
            .args(words.split_ascii_whitespace())
            .current_dir(folder.path());
        command
    };
    refused_of(
        with_one("--pause 0"),
        "one CPU",
        &["--generators", "no CPU is left", "--pause off"],
    );
    ended(
        &with_one("--pause off --rounds 1 --windows 2 --smooth none")
            .output()
            .unwrap(),
        0,
    );
}

#[test]
fn huge_pages_that_are_not_there_are_refused() {
    use std::os::unix::process::CommandExt as _;
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let pool = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let free: u64 = pool.map_or(0, |text| text.trim().parse().unwrap());
    // Three buffers: more than there is.
    let size = format!("{}M", 2 * (free / 3 + 1));
    let words = "--pages 2m --pause 0 --rounds 1 --windows 2 --smooth none --size";
    let mut command = memory(folder.path(), words);
    command.arg(size);
    // SAFETY: one system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    refused_of(command, words, &["--pages", "2 MiB", "vm.nr_hugepages"]);
}

#[test]
fn counters_that_are_required_are_read_or_refused() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let words = "--bandwidth uncore --pause 0 --read-share 50 --rounds 1 --windows 4 --smooth none";
    let output = run(folder.path(), words);
    if output.status.code() == Some(2) {
        assert!(
            common::told(&output).contains("--bandwidth uncore"),
            "{output:?}"
        );
        assert!(!folder.path().join("run").exists());
    } else {
        ended(&output, 0);
        let row = &rows(&folder.path().join("run/summary.csv"))[0];
        assert_eq!(row["bandwidth_source"], "measured");
    }
}

#[test]
fn a_signal_ends_it_at_once_and_what_there_is_stays() {
    let _alone = alone();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let words =
            "--read-share 50 --pause off,0 --rounds 1 --windows 200 --window 5ms --smooth none";
        let child = start(folder.path(), words);
        let second = folder.path().join("run/reads50-regular-pause-0");
        until("the second point", || second.exists().then_some(()));
        sleep(Duration::from_millis(200));
        let begun = Instant::now();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let told = ended(&child.wait_with_output().unwrap(), 1);
        assert!(told.contains(signal.as_str()), "{told}");
        // The bound is of the program; a busy machine makes it later.
        assert!(begun.elapsed() < Duration::from_secs(20));
        let out = folder.path().join("run");
        assert!(out.join("INCOMPLETE").exists());
        let summary = rows(&out.join("summary.csv"));
        let status: Vec<&str> = summary.iter().map(|row| row["status"].as_str()).collect();
        assert_eq!(status, ["complete", "incomplete"]);
        let windows = rows(&second.join("windows.csv")).len() as u64;
        assert_eq!(windows, number(&summary[1], "windows_measured"));
        assert!(windows < 200);
    }
}

#[test]
fn windows_in_which_generators_stand_still_are_told() {
    let _alone = alone();
    for stops_all in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let words = "--read-share 50 --pause 0 --rounds 1 --windows 1000 --window 10ms --settle 0 --smooth none";
        let child = start(folder.path(), words);
        let process = Pid::from_raw(child.id() as i32);
        until("its folder", || {
            folder
                .path()
                .join("run/reads50-regular-pause-0")
                .exists()
                .then_some(())
        });
        sleep(Duration::from_millis(700));
        if stops_all {
            kill(process, Signal::SIGSTOP).unwrap();
            sleep(Duration::from_millis(200));
            kill(process, Signal::SIGCONT).unwrap();
        } else {
            stop_thread(generator_of(child.id()), Duration::from_millis(200));
        }
        let output = child.wait_with_output().unwrap();
        ended(&output, 0);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains("stood still"), "{shown}");
        let out = folder.path().join("run");
        let row = &rows(&out.join("summary.csv"))[0];
        let windows = rows(&out.join("reads50-regular-pause-0/windows.csv"));
        let stalled: Vec<&Row> = windows
            .iter()
            .filter(|window| window["stalled"] == "true")
            .collect();
        assert_eq!(stalled.len() as u64, number(row, "windows_stalled"));
        assert!(stalled.iter().all(|window| window["kept"] == "false"));
        let standing: u64 = stalled.iter().map(|window| number(window, "time_ns")).sum();
        // All but the first and the last of them, in which it did something.
        assert!(
            standing >= 180_000_000,
            "{standing} ns, stops_all: {stops_all}"
        );
        assert!(row["marks"].contains("stalled"), "{row:?}");
    }
}

/// The first thread of a process that generates.
fn generator_of(process: u32) -> i32 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let generates = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("memory-load"))
    };
    let found = tasks
        .map(|task| task.unwrap().path())
        .find(generates)
        .unwrap();
    found
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// Stops one thread, and no other of its process, for that long.
fn stop_thread(thread: i32, time: Duration) {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: no memory of ours is touched. It is a thread of a child.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, none, none), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none), 0);
        assert_eq!(
            libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL),
            thread
        );
    }
    sleep(time);
    // SAFETY: as above.
    unsafe { assert_eq!(libc::ptrace(libc::PTRACE_DETACH, thread, none, none), 0) };
}

#[test]
fn latencies_are_smoothed_over_all_points_of_a_curve() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let words = "--read-share 50,100 --pause 0,64,off --windows 20 --window 5ms --settle 10ms --rounds 2 --outliers none \
                 --smooth savgol:3:1 --json";
    let output = run(folder.path(), words);
    ended(&output, 0);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let summary = rows(&folder.path().join("run/summary.csv"));
    let number = |row: &Row, column: &str| row[column].parse::<f64>().ok();
    for (row, point) in summary.iter().zip(told["points"].as_array().unwrap()) {
        let smoothed = number(row, "latency_smoothed_ns");
        assert_eq!(point["latency_smoothed_ns"].as_f64(), smoothed);
    }
    for reads in ["50", "100"] {
        let curve = || {
            summary
                .iter()
                .filter(|row| row["read_share_percent"] == reads)
        };
        assert_eq!(curve().count(), 3);
        let all = |column: &str| curve().map(|row| number(row, column)).sum::<Option<f64>>();
        // A straight line through three points has their mean. On a machine so busy that all windows of a point stood
        // still, there are not three.
        match all("latency_ns").zip(all("latency_smoothed_ns")) {
            Some((latencies, smoothed)) => {
                assert!((latencies - smoothed).abs() < 0.05, "{summary:?}");
            }
            None => assert!(
                all("latency_ns").is_none()
                    && curve().all(|row| row["latency_smoothed_ns"].is_empty()),
                "{summary:?}"
            ),
        }
    }
}
