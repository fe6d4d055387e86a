//! `hcabench memory` as a user runs it.

use crate::LIMIT;
use crate::common;
use crate::testing::{Has as _, temporary};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::{self, Program, Running, threads};
use common::{Row, alone, figure, hcabench, json, number, rows, until};
use nix::sys::signal::Signal;

/// With its results in `run`.
fn memory(folder: &Path, words: &str) -> Program {
    hcabench(folder, &format!("memory --out run --size 1M {words}"))
}

#[track_caller]
fn refused(words: &str, told: &[&str]) {
    let folder = &*temporary("");
    memory(folder, words).ends(2).stderr.has(told);
    assert!(!folder.join("run").exists(), "{words}");
}

#[test]
fn each_point_has_a_row_and_each_window_counts() {
    let _alone = alone();
    let folder = &*temporary("");
    let words = "--read-share 50,100 --store regular,non-temporal --pause 0,max,off --pages 4k --windows 8 --window 5ms \
                 --settle 50ms --rounds 2 --smooth none";
    memory(folder, words).ends(0);
    let out = folder.join("run");
    let summary = rows(&out.join("summary.csv"));
    let left_out = rows(&out.join("left_out.csv"));
    assert_eq!((summary.len(), left_out.len()), (9, 3));
    for row in &summary {
        let windows = rows(&out.join(&row["point"]).join("windows.csv"));
        assert_eq!(windows.len() as u64, number(row, "windows_measured"));
        assert_eq!(windows.len(), 16);
        let kept = windows.iter().filter(|window| window["kept"] == "true");
        let gone = number(row, "windows_removed") + number(row, "windows_stalled");
        assert_eq!(kept.clone().count() as u64 + gone, 16);
        let steps: u64 = kept.map(|window| number(window, "steps")).sum();
        assert_eq!(steps, number(row, "chase_steps"));
        assert_eq!([&row["pages"], &row["status"]], ["4k", "complete"]);
        assert!(figure(row, "latency_ns") > 0.0);
        let [read, stored] = ["lines_read", "lines_stored"].map(|column| {
            let lines = windows.iter().map(|window| number(window, column));
            lines.sum::<u64>()
        });
        let [issued, estimated] =
            ["issued", "estimated"].map(|kind| figure(row, &format!("bandwidth_{kind}_mb_s")));
        assert!(estimated > issued, "{row:?}");
        match (&*row["pause_nops"], &*row["read_share_percent"]) {
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
    let issued = |pause: &str| {
        let first = summary.iter().find(|row| row["pause_nops"] == pause);
        figure(first.unwrap(), "bandwidth_issued_mb_s")
    };
    assert!(issued("0") > 10.0 * issued("4194304"), "{summary:?}");
    let settings = json(&out.join("settings.json"));
    assert_eq!(settings["run"]["pages"], "4k");
    // What the machine does not show is stated with the reason.
    let modules = &settings["machine"]["memory"]["modules"];
    assert!(
        modules["installed"].is_array() != modules["unknown"].is_string(),
        "{modules}"
    );
    let counters = &settings["instrument"]["tlb_counters"];
    let is_read = counters["read"].as_bool().unwrap();
    assert!(is_read != counters["because"].is_string(), "{counters}");
    let counted = ["page_walks_per_step", "stlb_hits_per_step"];
    let counted = |row: &Row| counted.iter().any(|column| !row[*column].is_empty());
    assert!(is_read || !summary.iter().any(counted), "{summary:?}");
}

#[test]
fn a_sweep_over_sizes_has_a_point_for_each_and_a_figure() {
    let _alone = alone();
    let folder = &*temporary("");
    let words = "--read-share 100 --pause off,max --size 16k..64k,1M --windows 4 --window 1ms --settle 1ms --rounds 1 \
                 --smooth none";
    let said = memory(folder, words).ends(0).stdout;
    assert!(said.contains("buffer"), "{said}");
    let summary = rows(&folder.join("run/summary.csv"));
    let sizes: Vec<u64> = summary
        .iter()
        .map(|row| number(row, "size_bytes"))
        .collect();
    let expected = [16, 32, 64, 1024].map(|size| [size << 10; 2]).concat();
    assert_eq!(sizes, expected);
    for row in &summary {
        let loaded = !row["pause_nops"].is_empty();
        let of_generators = if loaded { "1048576" } else { "" };
        assert_eq!(row["generator_size_bytes"], of_generators);
        assert!(
            figure(row, "latency_ns") > 0.0 && number(row, "chase_steps") > 0,
            "{row:?}"
        );
    }
    common::ends(folder, "plot median run --x size_bytes --out sizes.svg", 0);
    let figure = std::fs::read_to_string(folder.join("sizes.svg")).unwrap();
    figure.has(&["latency of a load"]);
    common::ends(folder, "report run --out run.html", 0);
    let page = std::fs::read_to_string(folder.join("run.html")).unwrap();
    page.has(&["Latency by the size of the buffer"]);
}

/// The least latency of all windows of its only point, in nanoseconds: nothing makes a step faster than it is.
fn least_latency(size: &str) -> f64 {
    let folder = &*temporary("");
    let words = format!(
        "memory --pause off --read-share 100 --rounds 1 --windows 500 --window 1ms --smooth none --size {size} --out run"
    );
    common::ends(folder, &words, 0);
    let point = folder.join("run/reads100-regular-pause-off");
    let windows = rows(&point.join("windows.csv"));
    let latencies = windows.iter().map(|window| figure(window, "latency_ns"));
    latencies.min_by(f64::total_cmp).unwrap()
}

#[test]
fn the_latency_rises_as_a_staircase_over_the_caches() {
    let _alone = alone();
    let [first, second, beyond] = ["16K", "384K", "256M"].map(least_latency);
    assert!(first * 1.5 < second, "{first} {second} {beyond}");
    assert!(second * 3.0 < beyond, "{first} {second} {beyond}");
}

#[test]
fn the_cpus_of_each_node_are_measured_with_the_memory_of_each() {
    let _alone = alone();
    let folder = &*temporary("");
    let words = "--node-pairs --windows 2 --window 1ms --settle 1ms --rounds 1 --smooth none";
    let ended = memory(folder, words).run();
    if ended.status.code() == Some(2) {
        // The kernel shows no nodes, or a container may bind no memory to one.
        ended.stderr.has(&["--node-pairs: "]);
        assert!(!ended.stderr.contains("--memory-node"), "{}", ended.stderr);
        return;
    }
    ended.expect(0);
    let summary = rows(&folder.join("run/summary.csv"));
    assert!(!summary.is_empty());
    let pauses: Vec<&str> = summary[..2]
        .iter()
        .map(|row| row["pause_nops"].as_str())
        .collect();
    assert_eq!(pauses, ["", "0"], "{summary:?}");
    assert!(summary.iter().all(|row| row["read_share_percent"] == "100"));
    for row in &summary {
        let nodes = format!("-nodes-{}-{}", row["cpu_node"], row["memory_node"]);
        assert!(
            row["point"].ends_with(&nodes) && figure(row, "latency_ns") > 0.0,
            "{row:?}"
        );
    }
    common::ends(folder, "plot matrix run --out nodes.svg", 0);
    let drawn = std::fs::read_to_string(folder.join("nodes.svg")).unwrap();
    drawn.has(&["NUMA nodes: latency of a load, idle", "node 0"]);
    refused(
        "--node-pairs --memory-node 0",
        &["--node-pairs", "--memory-node"],
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (words, told) in [
        ("--read-share 27", ["--read-share", "even number"]),
        ("--pause 5000k", ["--pause", "max or off"]),
        ("--size 1k", ["--size", "16 KiB"]),
        ("--size 1M..16k", ["--size", "ends before it starts"]),
        ("--read-event imc/reads", ["--read-event", "--write-event"]),
        (
            "--read-event none_such/reads --write-event imc",
            ["--write-event", "no event"],
        ),
        (
            "--read-event none_such/reads --write-event none_such/event=1",
            ["--read-event, --write-event: none_such/reads", "no device"],
        ),
        (
            "--read-event a/b --write-event a/b --bandwidth software",
            ["--bandwidth software", "leave one out"],
        ),
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
    let folder = &*temporary("");
    let with_one = |words: &str| {
        let words = format!("memory --size 1M --out run {words}");
        let program = Program::under(&["taskset", "-c", "0"], program::path(), &words);
        program.in_folder(folder)
    };
    let refused = with_one("--pause 0").ends(2);
    (refused.stderr).has(&["--generators", "no CPU is left", "--pause off"]);
    with_one("--pause off --rounds 1 --windows 2 --smooth none").ends(0);
}

#[test]
fn huge_pages_that_are_not_there_are_refused() {
    use std::os::unix::process::CommandExt as _;
    let _alone = alone();
    let folder = &*temporary("");
    let pool = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let free: u64 = pool.map_or(0, |text| text.trim().parse().unwrap());
    // Three buffers: more than there is.
    let size = format!("{}M", 2 * (free / 3 + 1));
    let words = format!("--pages 2m --pause 0 --rounds 1 --windows 2 --smooth none --size {size}");
    let program = memory(folder, &words).change(|command| {
        // SAFETY: one system call, which may be made between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        }
    });
    (program.ends(2).stderr).has(&["--pages", "2 MiB", "vm.nr_hugepages"]);
}

#[test]
fn counters_that_are_required_are_read_or_refused() {
    let _alone = alone();
    let folder = &*temporary("");
    let words = "--bandwidth uncore --pause 0 --read-share 50 --rounds 1 --windows 4 --smooth none";
    let ended = memory(folder, words).run();
    if ended.status.code() == Some(2) {
        ended.stderr.has(&["--bandwidth uncore"]);
        assert!(!folder.join("run").exists());
    } else {
        ended.expect(0);
        let row = &rows(&folder.join("run/summary.csv"))[0];
        assert_eq!(row["bandwidth_source"], "measured");
    }
}

#[test]
fn a_signal_ends_it_at_once_and_what_there_is_stays() {
    let _alone = alone();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = &*temporary("");
        let words =
            "--read-share 50 --pause off,0 --rounds 1 --windows 200 --window 5ms --smooth none";
        let running = memory(folder, words).start();
        let second = folder.join("run/reads50-regular-pause-0");
        until("the second point", || second.exists().then_some(()));
        sleep(Duration::from_millis(200));
        let begun = Instant::now();
        running.signal(signal);
        running.wait(LIMIT).expect(1).stderr.has(&[signal.as_str()]);
        // The bound is of the program; a busy machine makes it later.
        assert!(begun.elapsed() < Duration::from_secs(20));
        let out = folder.join("run");
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
        let running = memory(folder.path(), words).start();
        let point = folder.path().join("run/reads50-regular-pause-0");
        until("its folder", || point.exists().then_some(()));
        sleep(Duration::from_millis(700));
        if stops_all {
            running.signal(Signal::SIGSTOP);
            sleep(Duration::from_millis(200));
            running.signal(Signal::SIGCONT);
        } else {
            stop_thread(generator_of(&running), Duration::from_millis(200));
        }
        running
            .wait(LIMIT)
            .expect(0)
            .stdout
            .has(&["a generator did nothing for half of the time"]);
        let row = &rows(&folder.path().join("run/summary.csv"))[0];
        let windows = rows(&point.join("windows.csv"));
        let stalled: Vec<&Row> = windows
            .iter()
            .filter(|window| window["stalled"] == "true")
            .collect();
        assert_eq!(stalled.len() as u64, number(row, "windows_stalled"));
        assert!(stalled.iter().all(|window| window["kept"] == "false"));
        let standing: u64 = stalled.iter().map(|window| number(window, "time_ns")).sum();
        // All but the first and the last of them, in which it did something.
        assert!(standing >= 180_000_000, "{standing} ns, {stops_all}");
        assert!(row["marks"].contains("stalled"), "{row:?}");
    }
}

fn generator_of(running: &Running) -> i32 {
    threads(running.id(), "memory-load")[0].cast_signed()
}

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
    let folder = &*temporary("");
    let words = "--read-share 50,100 --pause 0,64,off --windows 20 --window 5ms --settle 10ms --rounds 2 --outliers none \
                 --smooth savgol:3:1 --json";
    let told = memory(folder, words).ends(0).json();
    let summary = rows(&folder.join("run/summary.csv"));
    let number = |row: &Row, column: &str| row[column].parse::<f64>().ok();
    for (row, point) in summary.iter().zip(told["points"].as_array().unwrap()) {
        let smoothed = number(row, "latency_smoothed_ns");
        assert_eq!(point["latency_smoothed_ns"].as_f64(), smoothed);
    }
    for reads in ["50", "100"] {
        let of_curve = |row: &&Row| row["read_share_percent"] == reads;
        let curve = || summary.iter().filter(of_curve);
        assert_eq!(curve().count(), 3);
        let all = |column: &str| curve().map(|row| number(row, column)).sum::<Option<f64>>();
        // A straight line through three points has their mean. On a busy machine there may be fewer.
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
