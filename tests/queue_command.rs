//! `hcabench queue` as its user has it: exit codes, what is on disk, and what ends it early.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn queue(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hcabench"));
    command
        .arg("queue")
        .args(words.split_ascii_whitespace())
        // The TSC may not be trusted where the tests run.
        .args(["--clock", "monotonic", "--out"])
        .arg(folder.join("results"))
        .current_dir(folder);
    command
}

fn done(folder: &Path, words: &str) -> Output {
    let output = queue(folder, words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words}: {errors}");
    output
}

/// The rows of a CSV file as maps from the column to the cell.
fn rows(path: &Path) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn a_run_leaves_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let output = done(
        folder.path(),
        "--queue lamport,baton --capacity 64,128 --payload 64 --count 2000 --warmup 100 --repeat 6 --elements",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("lamport") && text.contains("instrument: clock monotonic"),
        "{text}"
    );
    let results = folder.path().join("results");
    assert!(!results.join("INCOMPLETE").exists());
    let summary = rows(&results.join("summary.csv"));
    assert_eq!(summary.len(), 4);
    for row in &summary {
        assert_eq!(row["status"], "complete");
        assert_eq!(
            (row["runs"].as_str(), row["elements_lost"].as_str()),
            ("6", "0")
        );
        let figure = |column: &str| row[column].parse::<f64>().unwrap();
        assert!(figure("enqueue_min_ns") > 0.0);
        assert!(figure("latency_p50_low_ns") <= figure("latency_p50_ns"));
        assert!(figure("latency_p50_ns") <= figure("latency_p9999_ns"));
        assert!(figure("throughput_per_s") > 0.0 && figure("sender_stamp_ns") > 0.0);
    }
    let points: Vec<_> = std::fs::read_dir(&results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(points.len(), 4);
    for point in points {
        assert_eq!(rows(&point.join("runs.csv")).len(), 6);
        assert_eq!(rows(&point.join("elements.csv")).len(), 6 * 2000);
        for name in ["latency.hgrm", "enqueue.hgrm", "dequeue.hgrm"] {
            let text = std::fs::read_to_string(point.join(name)).unwrap();
            assert!(text.contains("Total count    =        12000"), "{text}");
        }
        let settings = std::fs::read_to_string(point.join("settings.json")).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings["status"], "complete");
        assert_eq!(settings["runs"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn a_schedule_is_kept_and_measured_from() {
    let folder = tempfile::tempdir().unwrap();
    done(
        folder.path(),
        "--queue baton --load bursty --burst 20 --wait 2us --jitter 10% --count 4000 --warmup 100 --repeat 5 --json",
    );
    let row = &rows(&folder.path().join("results/summary.csv"))[0];
    let figure = |column: &str| row[column].parse::<f64>().unwrap();
    assert_eq!(figure("burst"), 20.0);
    assert!(figure("intended_latency_min_ns") > 0.0);
    // Blocks come no faster than they should, 2 us an element on average, in a run whose warm-up was not so late that the
    // rest had to catch up.
    let point = std::fs::read_dir(folder.path().join("results")).unwrap();
    let mut points = point.map(|entry| entry.unwrap().path().join("runs.csv"));
    let runs = rows(&points.find(|path| path.exists()).unwrap());
    let throughput = |run: &std::collections::HashMap<String, String>| {
        run["throughput_per_s"].parse::<f64>().unwrap()
    };
    assert!(
        runs.iter().any(|run| throughput(run) < 550_000.0),
        "{runs:?}"
    );
}

#[test]
fn a_curve_has_a_row_for_each_rate_up_to_saturation() {
    let folder = tempfile::tempdir().unwrap();
    done(
        folder.path(),
        "--queue lamport --load-curve --count 500 --warmup 50 --repeat 1 --quiet",
    );
    let rows = rows(&folder.path().join("results/summary.csv"));
    assert_eq!(rows.len(), 14);
    let saturation: f64 = rows[0]["saturation_per_s"].parse().unwrap();
    for row in &rows {
        let percent: f64 = row["percent_of_saturation"].parse().unwrap();
        let rate: f64 = row["rate_per_s"].parse().unwrap();
        assert!(
            (rate / saturation - percent / 100.0).abs() < 0.001,
            "{row:?}"
        );
    }
}

#[test]
fn throughput_alone_leaves_the_times_empty() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--queue lamport --measure throughput --count 5000 --repeat 1 --quiet";
    let output = done(folder.path(), words);
    assert!(output.stdout.is_empty());
    let row = &rows(&folder.path().join("results/summary.csv"))[0];
    assert_eq!(row["latency_p50_ns"], "");
    assert!(row["throughput_per_s"].parse::<f64>().unwrap() > 0.0);
}

#[test]
fn the_memory_of_a_queue_is_locked_or_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let output = done(folder.path(), "--queue lamport --count 500 --repeat 1");
    let errors = String::from_utf8_lossy(&output.stderr);
    let limit = hcabench::host::MemoryLock::read().unwrap();
    let is_permitted = limit.permits(u64::MAX) || limit.hard.permits(u64::MAX);
    let results = folder.path().join("results");
    let points = std::fs::read_dir(&results).unwrap();
    let mut paths = points.map(|entry| entry.unwrap().path().join("settings.json"));
    let settings = paths.find(|path| path.exists()).unwrap();
    let settings: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(settings).unwrap()).unwrap();
    let is_locked = settings["runs"][0]["queue_locked"].as_bool().unwrap();
    assert!(is_locked || !is_permitted, "{errors}");
    assert_eq!(errors.contains("touched but not locked"), !is_locked);
}

#[test]
fn huge_pages_that_are_required_and_not_there_are_told_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--queue lamport --count 5000 --repeat 1 --hugepages required";
    let output = queue(folder.path(), words).output().unwrap();
    let pool = hcabench::host::HugePages::read();
    let there = pool.map_or(0, |pool| pool.available() + pool.overcommit);
    if there >= 2 {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("vm.nr_hugepages="), "{errors}");
        assert!(!folder.path().join("results").exists());
    }
}

#[test]
fn counters_are_had_or_it_is_said_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--queue lamport --measure counters --count 5000 --repeat 1 --quiet";
    let output = queue(folder.path(), words).output().unwrap();
    if output.status.success() {
        let row = &rows(&folder.path().join("results/summary.csv"))[0];
        let instructions: f64 = row["sender_instructions_per_element"].parse().unwrap();
        assert!(instructions > 1.0, "{row:?}");
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("hardware counters"), "{errors}");
        assert!(!folder.path().join("results").exists());
    }
}

/// What became of a run that got a signal.
struct Interrupted {
    took: Duration,
    code: Option<i32>,
    errors: String,
    /// What the mark in the folder said, if there was a folder.
    mark: Option<String>,
}

/// Starts a run, waits until `when` says so and then so long, and sends SIGTERM. `None` if it ended before that.
fn interrupt(words: &str, when: fn(&Path) -> bool, delay: Duration) -> Option<Interrupted> {
    let folder = tempfile::tempdir().unwrap();
    let mut child: Child = queue(folder.path(), words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let results = folder.path().join("results");
    let begun = Instant::now();
    while !when(&results) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{words}: it does not begin"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(delay);
    if child.try_wait().unwrap().is_some() {
        return None;
    }
    let told = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if told.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("{words}: it does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let took = told.elapsed();
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    Some(Interrupted {
        took,
        code: status.code(),
        errors,
        mark: std::fs::read_to_string(results.join("INCOMPLETE")).ok(),
    })
}

/// A signal ends it within a second, wherever it is, in one of three tries: other work on this machine may take longer.
fn ends_within_a_second(words: &str, when: fn(&Path) -> bool, delay: Duration) -> Interrupted {
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let ended = interrupt(words, when, delay)
            .unwrap_or_else(|| panic!("{words}: it was over before the signal"));
        assert_eq!(ended.code, Some(1), "{words}: {}", ended.errors);
        let told = ended.mark.as_ref().unwrap_or(&ended.errors);
        assert!(told.contains("interrupted by SIGTERM"), "{words}: {told}");
        if ended.took < Duration::from_secs(1) {
            return ended;
        }
        slowest = slowest.max(ended.took);
    }
    panic!("{words}: {slowest:?} until it ended");
}

fn has_begun(results: &Path) -> bool {
    results.join("INCOMPLETE").exists()
}

#[test]
fn a_signal_ends_a_paced_run_within_a_second_and_leaves_the_mark() {
    // An hour and more, at both ends.
    let words = "--queue baton --load constant-rate --rate 10 --count 100000 --warmup 0 --repeat 1";
    let ended = ends_within_a_second(words, has_begun, Duration::from_millis(500));
    assert!(ended.mark.is_some());
}

#[test]
fn a_signal_ends_the_trial_of_queues_within_a_second() {
    // Minutes of making queues, before there is a folder.
    let capacities: Vec<String> = (0..64).map(|less| (4_194_304 - less).to_string()).collect();
    let words = format!(
        "--queue lamport,linked-blocks --capacity {}",
        capacities.join(",")
    );
    let ended = ends_within_a_second(&words, |_| true, Duration::from_millis(700));
    assert!(ended.mark.is_none(), "{:?}", ended.mark);
}

#[test]
fn a_signal_ends_the_making_of_a_queue_and_the_analysis_within_a_second() {
    // Each of these runs spends most of its time there.
    for words in [
        "--queue linked-blocks --capacity 16777216 --count 1 --warmup 0 --repeat 1000",
        "--queue lamport --capacity 64 --count 3000000 --warmup 0 --repeat 1000",
        "--queue lamport --capacity 64 --count 3000000 --warmup 0 --repeat 10 --elements",
    ] {
        for delay in [1000, 2300, 3700] {
            let ended = ends_within_a_second(words, has_begun, Duration::from_millis(delay));
            assert!(ended.mark.is_some());
        }
    }
}

#[test]
fn a_signal_ends_the_writing_of_elements_within_a_second() {
    fn writes(results: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(results) else {
            return false;
        };
        let mut points = entries.filter_map(|entry| Some(entry.ok()?.path().join("elements.csv")));
        points.any(|path| path.metadata().is_ok_and(|file| file.len() > 0))
    }
    let words = "--queue lamport --count 2000000 --warmup 0 --repeat 1 --elements";
    ends_within_a_second(words, writes, Duration::from_millis(100));
}

#[test]
fn bad_input_is_told_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("--queue nonsense", "lamport"),
        ("--rate 1M", "constant-rate"),
        ("--sender-cpu 99999", "--sender-cpu"),
        ("--count 1073741824 --warmup 1073741824", "is allowed"),
        ("--count 1073741824 --hugepages off", "use --count"),
    ] {
        let output = queue(folder.path(), words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(expected), "{words}: {errors}");
    }
    assert!(!folder.path().join("results").exists());
}
