//! `hcabench queue` as its user has it: exit codes, what is on disk, and what ends it early.

use crate::common;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{end_after_signal, rows};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn queue(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(crate::common::program());
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

#[test]
fn a_run_leaves_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let output = done(
        folder.path(),
        "--queue lamport,baton --capacity 64,128 --payload 64 --count 2000 --warmup 1ms --repeat 6 --elements",
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
            (row["rounds"].as_str(), row["elements_lost"].as_str()),
            ("6", "0")
        );
        let figure = |column: &str| row[column].parse::<f64>().unwrap();
        assert!(figure("enqueue_min_ns") > 0.0);
        assert!(figure("latency_p50_low_ns") <= figure("latency_p50_ns"));
        assert!(figure("latency_p50_ns") <= figure("latency_p9999_ns"));
        assert!(figure("throughput_per_s") > 0.0 && figure("sender_stamp_ns") > 0.0);
        assert!(figure("enqueue_floor_min_ns") > 0.0 && figure("dequeue_floor_min_ns") > 0.0);
        assert!(figure("latency_floor_min_ns") > 0.0);
        assert!((1.0..=figure("capacity") + 1.0).contains(&figure("depth_max")));
    }
    let points: Vec<_> = std::fs::read_dir(&results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(points.len(), 4);
    assert_eq!(rows(&results.join("runs.csv")).len(), 4 * 6);
    for point in points {
        assert_eq!(rows(&point.join("elements.csv")).len(), 6 * 2000);
        for name in ["latency.hgrm", "enqueue.hgrm", "dequeue.hgrm"] {
            let text = std::fs::read_to_string(point.join(name)).unwrap();
            assert!(text.contains("Total count    =        12000"), "{text}");
        }
        let settings = std::fs::read_to_string(point.join("settings.json")).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings["status"], "complete");
        assert_eq!(settings["rounds"]["done"], 6);
        // None where there is no git to ask.
        let commit = serde_json::json!(option_env!("HCABENCH_COMMIT"));
        assert_eq!(settings["hcabench"]["commit"], commit);
    }
}

#[test]
fn a_schedule_is_kept_and_measured_from() {
    let folder = tempfile::tempdir().unwrap();
    done(
        folder.path(),
        "--queue baton --load bursty --burst 20 --wait 2us --jitter 10% --count 4000 --warmup 1ms --repeat 5 --json \
         --elements",
    );
    let row = &rows(&folder.path().join("results/summary.csv"))[0];
    let figure = |column: &str| row[column].parse::<f64>().unwrap();
    assert_eq!(figure("burst"), 20.0);
    assert!(figure("intended_latency_min_ns") > 0.0);
    // Nothing starts before its time.
    let elements = folder
        .path()
        .join("results")
        .join(&row["point"])
        .join("elements.csv");
    for element in rows(&elements) {
        let at = |column: &str| element[column].parse::<u64>().unwrap();
        assert!(at("t_intended_ns") <= at("t_stamp_ns"), "{element:?}");
    }
    // Blocks come no faster than they should, 2 us an element on average, in a run whose warm-up was not so late that
    // the rest had to catch up.
    let runs = rows(&folder.path().join("results/runs.csv"));
    assert_eq!(runs.len(), 5);
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
        "--queue lamport --load-curve --count 500 --warmup 1ms --repeat 1 --quiet",
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
    let is_locked = settings["obtained"]["queue_locked"].as_bool().unwrap();
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

/// The program at work, which does not outlive a test that panics.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Its exit code, if it has ended.
    fn ended(&mut self) -> Option<Option<i32>> {
        self.0.try_wait().unwrap().map(|status| status.code())
    }

    /// Ends it, if it has not ended; what it said.
    fn errors(&mut self) -> String {
        let _ = self.0.kill();
        let mut errors = Vec::new();
        let mut stderr = self.0.stderr.take().unwrap();
        std::io::Read::read_to_end(&mut stderr, &mut errors).unwrap();
        String::from_utf8_lossy(&errors).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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

/// Whether a run, by its folder and its process, is where it is to be interrupted.
type When = fn(&Path, u32) -> bool;

/// Starts a run, waits until `when` says so and then so long, and sends SIGTERM.
fn interrupt(words: &str, when: When, delay: Duration) -> Interrupted {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(queue(folder.path(), words));
    let results = folder.path().join("results");
    let begun = Instant::now();
    while !when(&results, running.0.id()) {
        if let Some(code) = running.ended() {
            let errors = running.errors();
            panic!("{words}: it ended with {code:?} and did not begin: {errors}");
        }
        if begun.elapsed() > Duration::from_secs(60) {
            panic!("{words}: it does not begin: {}", running.errors());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(delay);
    if let Some(code) = running.ended() {
        let errors = running.errors();
        panic!("{words}: it was over before the signal, with {code:?}: {errors}");
    }
    let told = Instant::now();
    kill(Pid::from_raw(running.0.id() as i32), Signal::SIGTERM).unwrap();
    let code = loop {
        if let Some(code) = running.ended() {
            break code;
        }
        if told.elapsed() > Duration::from_secs(60) {
            panic!("{words}: it does not end: {}", running.errors());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Interrupted {
        took: told.elapsed(),
        code,
        errors: running.errors(),
        mark: std::fs::read_to_string(results.join("INCOMPLETE")).ok(),
    }
}

/// A signal ends it, wherever it is.
fn ends(words: &str, when: When, delay: Duration) -> Interrupted {
    let ended = interrupt(words, when, delay);
    assert_eq!(ended.code, Some(1), "{words}: {}", ended.errors);
    let told = ended.mark.as_ref().unwrap_or(&ended.errors);
    assert!(told.contains("interrupted by SIGTERM"), "{words}: {told}");
    assert!(ended.took < end_after_signal(), "{words}: {:?}", ended.took);
    ended
}

fn has_begun(results: &Path, _: u32) -> bool {
    results.join("INCOMPLETE").exists()
}

/// Elements whose stamps may be locked under the usual limit of 8 MiB.
const LOCKABLE: u32 = 80_000;

#[test]
fn a_signal_ends_a_paced_run_and_leaves_the_mark() {
    // Hours, at both ends.
    let words = format!(
        "--queue baton --load constant-rate --rate 10 --count {LOCKABLE} --warmup 0 --repeat 1"
    );
    let ended = ends(&words, has_begun, Duration::from_millis(500));
    assert!(ended.mark.is_some());
}

#[test]
fn a_signal_ends_the_trial_of_queues() {
    /// The signal is taken, and a second thread is there to try the queues.
    fn tries(_: &Path, process: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.unwrap_or_default();
        let value = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key))?;
            Some(line[key.len()..].trim())
        };
        let caught = value("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let threads = value("Threads:").and_then(|count| count.parse::<u32>().ok());
        caught.is_some_and(|mask| mask & 1 << (Signal::SIGTERM as i32 - 1) != 0)
            && threads.is_some_and(|count| count > 1)
    }
    // Minutes of making queues, before there is a folder.
    let capacities: Vec<String> = (0..64).map(|less| (8_388_608 - less).to_string()).collect();
    let words = format!(
        "--queue lamport,linked-blocks --capacity {}",
        capacities.join(",")
    );
    let ended = ends(&words, tries, Duration::from_millis(300));
    assert!(ended.mark.is_none(), "{:?}", ended.mark);
}

#[test]
fn a_signal_ends_the_making_of_a_queue_and_the_analysis() {
    // An analysis of seconds, where this user may lock the stamps of as many elements.
    let many = 1_000_000;
    let limit = hcabench::host::MemoryLock::read().unwrap();
    let stamps = 64 << 20;
    let is_permitted = limit.permits(stamps) || limit.hard.permits(stamps);
    let count = if is_permitted { many } else { LOCKABLE };
    // Each of these runs spends most of its time there.
    for words in [
        "--queue linked-blocks --capacity 16777216 --count 1 --warmup 0 --repeat 1000".to_owned(),
        format!("--queue lamport --capacity 64 --count {count} --warmup 0 --repeat 1000"),
        format!(
            "--queue lamport --capacity 64 --count {LOCKABLE} --warmup 0 --repeat 50 --elements"
        ),
    ] {
        for delay in [300, 1000, 1700] {
            let ended = ends(&words, has_begun, Duration::from_millis(delay));
            assert!(ended.mark.is_some());
        }
    }
}

#[test]
fn a_signal_ends_the_writing_of_elements() {
    fn writes(results: &Path, _: u32) -> bool {
        let Ok(entries) = std::fs::read_dir(results) else {
            return false;
        };
        let mut points = entries.filter_map(|entry| Some(entry.ok()?.path().join("elements.csv")));
        points.any(|path| path.metadata().is_ok_and(|file| file.len() > 0))
    }
    // Two million rows, some at the end of each round.
    let words = format!("--queue lamport --count {LOCKABLE} --warmup 0 --repeat 25 --elements");
    ends(&words, writes, Duration::from_millis(100));
}

#[test]
fn several_threads_leave_a_row_for_each_scenario_and_their_shares() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--queue lamport,sharded --producers 2 --consumers 2 --scenario straight-run,round-robin --duration 50ms \
                 --warmup 5ms --rounds 2";
    let output = done(folder.path(), words);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("fairness") && text.contains("2 to 2"),
        "{text}"
    );
    let results = folder.path().join("results");
    let summary = rows(&results.join("summary.csv"));
    let found: Vec<_> = summary
        .iter()
        .map(|row| (row["queue"].as_str(), row["scenario"].as_str()))
        .collect();
    let expected = [
        ("lamport", "straight-run"),
        ("sharded", "straight-run"),
        ("sharded", "round-robin"),
    ];
    assert_eq!(found, expected);
    for row in &summary {
        let figure = |column: &str| row[column].parse::<f64>().unwrap();
        assert_eq!((figure("producers"), figure("consumers")), (2.0, 2.0));
        assert_eq!(row["elements_lost"], "0");
        for end in ["producer", "consumer"] {
            let fairness = figure(&format!("fairness_{end}s"));
            assert!((0.5..=1.0).contains(&fairness), "{row:?}");
            assert!((0.0..=100.0).contains(&figure(&format!("least_{end}_percent"))));
        }
        assert!(figure("throughput_per_s") > 0.0 && figure("latency_p50_ns") > 0.0);
        assert_eq!(
            (row["sender_cpu"].as_str(), row["depth_mean"].as_str()),
            ("", "")
        );
    }
    // A queue of one and one cannot be shared.
    let left_out = rows(&results.join("left_out.csv"));
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0]["scenario"], "round-robin");
    assert!(left_out[0]["reason"].contains("lamport is made for spsc"));
}

#[test]
fn a_signal_ends_a_run_of_several_threads_and_keeps_what_was_measured() {
    fn has_a_row(results: &Path, _: u32) -> bool {
        let text = std::fs::read_to_string(results.join("runs.csv")).unwrap_or_default();
        text.lines().count() > 1
    }
    let words = "--queue sharded --producers 2 --consumers 2 --load constant-rate --rate 1000 --duration 2s --warmup 0 \
                 --rounds 100";
    let ended = ends(words, has_a_row, Duration::from_millis(300));
    assert!(ended.mark.is_some());
}

#[test]
fn bad_input_is_told_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("--queue nonsense", "lamport"),
        ("--rate 1M", "constant-rate"),
        ("--sender-cpu 99999", "--sender-cpu"),
        ("--producers 2 --scenario straight-run", "--consumers 1"),
        ("--producers 2 --load-curve", "several threads"),
        ("--producers 2 --queue lamport", "lamport is made for spsc"),
        ("--producers 64 --consumers 64 --queue sharded", "each pair"),
        ("--count 1073741824 --warmup 1ms", "allowed is"),
        ("--count 1073741824 --hugepages off", "use --count"),
    ] {
        let output = queue(folder.path(), words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(expected), "{words}: {errors}");
    }
    assert!(!folder.path().join("results").exists());
}

#[test]
fn progress_in_a_pipe_is_one_line_that_is_redrawn_and_warnings_stand_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = queue(
        folder.path(),
        "--queue lamport --capacity 64,65536 --count 2000 --repeat 2",
    )
    .env("HCABENCH_PROGRESS", "always")
    .env("COLUMNS", "40")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("1/4 [        ] 0:00"), "{errors:?}");
    assert!(errors.contains("\rwarning: capacity 65536"), "{errors:?}");
    assert!(!errors.contains('\u{1b}'), "{errors:?}");
    let redrawn = errors
        .split(['\r', '\n'])
        .filter(|line| line.contains("/4 ["));
    assert!(
        redrawn.clone().count() > 1 && redrawn.max_by_key(|line| line.len()).unwrap().len() < 40
    );
}
