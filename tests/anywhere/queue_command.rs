//! `hcabench queue` as its user has it: exit codes, what is on disk, and what ends it early.

use crate::common;
use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::program::{Ended, Program, until};
use common::{end_after_signal, figure, hcabench, json, number, rows};
use hcabench::time::{AnyClock, ClockKind, UnfencedCounter};
use nix::sys::signal::Signal;

/// The TSC may not be trusted where the tests run.
fn queue(folder: &Path, words: &str) -> Program {
    hcabench(
        folder,
        &format!("queue {words} --clock monotonic --out results"),
    )
}

#[track_caller]
fn done(folder: &Path, words: &str) -> Ended {
    queue(folder, words).ends(0)
}

#[test]
fn a_run_leaves_whole_files() {
    let folder = &*temporary("");
    let words = "--queue lamport,baton --capacity 64,128 --payload 64 --count 2000 --warmup 1ms --repeat 6 --elements";
    let ended = done(folder, words);
    ended
        .stdout
        .has(&["lamport", "instrument: clock monotonic"]);
    let results = folder.join("results");
    assert!(!results.join("INCOMPLETE").exists());
    let summary = rows(&results.join("summary.csv"));
    assert_eq!(summary.len(), 4);
    for row in &summary {
        let counts = [&row["status"], &row["rounds"], &row["elements_lost"]];
        assert_eq!(counts, ["complete", "6", "0"]);
        let figure = |column: &str| figure(row, column);
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
            let text = fs::read_to_string(point.join(name)).unwrap();
            text.has(&["Total count    =        12000"]);
        }
        let settings = json(&point.join("settings.json"));
        assert_eq!(settings["status"], "complete");
        assert_eq!(settings["rounds"]["done"], 6);
        // None where there is no git to ask.
        let commit = serde_json::json!(option_env!("HCABENCH_COMMIT"));
        assert_eq!(settings["hcabench"]["commit"], commit);
    }
}

#[test]
fn batches_have_their_own_columns_and_say_of_how_many_they_are() {
    let folder = &*temporary("");
    let words = "--queue lamport,baton --per-stamp 16 --count 20000 --warmup 1ms --repeat 6";
    let ended = done(folder, words);
    ended.stdout.has(&[
        "per stamp 16",
        "batch of enqueues",
        "enqueue batch mean",
        "batches",
        "queue is",
    ]);
    let results = folder.join("results");
    for row in rows(&results.join("summary.csv")) {
        assert_eq!((&*row["per_stamp"], &*row["elements_lost"]), ("16", "0"));
        let figure = |column: &str| figure(&row, column);
        // Rounded to a tenth and a hundredth.
        let each = figure("enqueue_batch_p50_ns") / 16.0;
        assert!(
            (each - figure("enqueue_batch_each_ns")).abs() < 0.02,
            "{row:?}"
        );
        assert!((1.0..=6.0 * 20000.0 / 16.0).contains(&figure("enqueue_batches")));
        assert!((0.0..=100.0).contains(&figure("enqueues_in_batches_percent")));
        assert!(figure("enqueue_batch_floor_p50_ns") > 0.0 && figure("throughput_per_s") > 0.0);
        for empty in [
            "enqueue_p50_ns",
            "latency_p50_ns",
            "enqueue_floor_p50_ns",
            "depth_max",
        ] {
            assert_eq!(row[empty], "", "{empty}");
        }
    }
    let point = "baton-cap1024-8B-max-recv_max";
    let point = fs::read_dir(&results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(point)
        })
        .unwrap();
    assert!(point.join("enqueue_batch.hgrm").exists() && !point.join("latency.hgrm").exists());
    let document = json(&point.join("settings.json"));
    let by = &document["obtained"]["queue_is_by"];
    assert!(by["first_level_bytes"].as_u64().unwrap() > 0, "{by}");
    assert!(by["is_assumed"].is_boolean(), "{by}");
    let words = "plot percentiles results --metric enqueue-batch --out batches.svg";
    common::ends(folder, words, 0);
    common::ends(folder, "report results --out report.html", 0);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    page.has(&["enqueue batch mean"]);
    let is = &document["obtained"]["queue_is"];
    assert!(is.as_str().unwrap().starts_with("baton-"), "{is}");
    let all = rows(&results.join("summary.csv"));
    let of = |name: &str| &all.iter().find(|row| row["queue"] == name).unwrap()["queue_is"];
    assert_eq!(
        (of("lamport").as_str(), Some(of("baton").as_str())),
        ("", is.as_str())
    );
}

/// Where nothing vouches for the counter the clock is refused, as it is with fences.
#[test]
fn the_counter_without_fences_is_a_clock_of_the_same_rate() {
    let folder = &*temporary("");
    let run = |clock: &str| {
        let words =
            "--queue lamport --load constant-rate --rate 100k --count 2000 --warmup 1ms --repeat 1";
        hcabench(
            folder,
            &format!("queue {words} --clock {clock} --force --out {clock}"),
        )
    };
    if let Err(reason) = AnyClock::prepare(ClockKind::Counter) {
        for clock in ["counter", "counter-unfenced"] {
            run(clock)
                .ends(1)
                .stderr
                .has(&[reason.to_string().split(':').next().unwrap()]);
        }
        return;
    }
    for (clock, name) in [
        ("counter", ClockKind::Counter.name()),
        ("counter-unfenced", UnfencedCounter::NAME),
    ] {
        run(clock).ends(0);
        let row = &rows(&folder.join(clock).join("summary.csv"))[0];
        assert_eq!(row["clock"], name);
        let rate = figure(row, "sent_per_s");
        let has_latency = clock == "counter";
        for column in ["latency_p50_ns", "intended_latency_p50_ns", "depth_max"] {
            assert_eq!(!row[column].is_empty(), has_latency, "{clock}: {column}");
        }
        assert!(figure(row, "enqueue_p50_ns") >= 0.0 && figure(row, "dequeue_p50_ns") >= 0.0);
        // Another unit would be far off, other load is not.
        assert!((1e4..1e6).contains(&rate), "{clock}: {rate}");
        assert!(figure(row, "sender_stamp_ns") > 0.0);
    }
}

#[test]
fn a_schedule_is_kept_and_measured_from() {
    let folder = &*temporary("");
    let words = "--queue baton --load bursty --burst 20 --wait 20us --jitter 10% --count 4000 --warmup 1ms --repeat 5 \
                 --json --elements";
    done(folder, words);
    let results = folder.join("results");
    let row = &rows(&results.join("summary.csv"))[0];
    assert_eq!(figure(row, "burst"), 20.0);
    assert!(figure(row, "intended_latency_min_ns") > 0.0);
    // Nothing starts before its time.
    for element in rows(&results.join(&row["point"]).join("elements.csv")) {
        let [intended, stamp] = ["t_intended_ns", "t_stamp_ns"].map(|it| number(&element, it));
        assert!(intended <= stamp, "{element:?}");
    }
    // Blocks come each 20 us an element on average, where the warm-up was not so late that all of the rest had to catch
    // up; an emulated processor is a few milliseconds late.
    let runs = rows(&results.join("runs.csv"));
    assert_eq!(runs.len(), 5);
    let is_paced = |run| figure(run, "throughput_per_s") < 55_000.0;
    assert!(runs.iter().any(is_paced), "{runs:?}");
}

#[test]
fn a_curve_has_a_row_for_each_rate_up_to_saturation() {
    let folder = &*temporary("");
    let words = "--queue lamport --load-curve --count 500 --warmup 1ms --repeat 1 --quiet";
    done(folder, words);
    let rows = rows(&folder.join("results/summary.csv"));
    assert_eq!(rows.len(), 14);
    let saturation = figure(&rows[0], "saturation_per_s");
    for row in &rows {
        let share = figure(row, "percent_of_saturation") / 100.0;
        let apart = figure(row, "rate_per_s") / saturation - share;
        assert!(apart.abs() < 0.001, "{row:?}");
    }
}

#[test]
fn throughput_alone_leaves_the_times_empty() {
    let folder = &*temporary("");
    let words = "--queue lamport --measure throughput --count 5000 --repeat 1 --quiet";
    assert_eq!(done(folder, words).stdout, "");
    let row = &rows(&folder.join("results/summary.csv"))[0];
    assert_eq!(row["latency_p50_ns"], "");
    assert!(figure(row, "throughput_per_s") > 0.0);
}

#[test]
fn the_memory_of_a_queue_is_locked_or_it_is_said() {
    let folder = &*temporary("");
    let errors = done(folder, "--queue lamport --count 500 --repeat 1").stderr;
    let limit = hcabench::host::MemoryLock::read().unwrap();
    let is_permitted = limit.permits(u64::MAX) || limit.hard.permits(u64::MAX);
    let results = folder.join("results");
    let points = std::fs::read_dir(&results).unwrap();
    let mut paths = points.map(|entry| entry.unwrap().path().join("settings.json"));
    let settings = paths.find(|path| path.exists()).unwrap();
    let settings = json(&settings);
    let is_locked = settings["obtained"]["queue_locked"].as_bool().unwrap();
    assert!(is_locked || !is_permitted, "{errors}");
    assert_eq!(errors.contains("touched but not locked"), !is_locked);
}

#[test]
fn huge_pages_that_are_required_and_not_there_are_told_before_anything_is_written() {
    let folder = &*temporary("");
    let words = "--queue lamport --count 5000 --repeat 1 --hugepages required";
    let pool = hcabench::host::HugePages::read();
    let there = pool.map_or(0, |pool| pool.available() + pool.overcommit);
    if there >= 2 {
        done(folder, words);
    } else {
        let ended = queue(folder, words).ends(2);
        ended.stderr.has(&["vm.nr_hugepages="]);
        assert!(!folder.join("results").exists());
    }
}

#[test]
fn counters_are_had_or_it_is_said_why_not() {
    let folder = &*temporary("");
    let words = "--queue lamport --measure counters --count 5000 --repeat 1 --quiet";
    let ended = queue(folder, words).run();
    if ended.is_success() {
        let row = &rows(&folder.join("results/summary.csv"))[0];
        let instructions = figure(row, "sender_instructions_per_element");
        assert!(instructions > 1.0, "{row:?}");
    } else {
        ended.expect(2).stderr.has(&["hardware counters"]);
        assert!(!folder.join("results").exists());
    }
}

/// Whether a run, by its folder and its process, is where it is to be interrupted.
type When = fn(&Path, u32) -> bool;

/// SIGTERM comes so long after `when`. Returns whether there is a mark in the folder.
fn ends(words: &str, when: When, delay: Duration) -> bool {
    const LIMIT: Duration = Duration::from_secs(60);
    let folder = &*temporary("");
    let mut running = queue(folder, words).start();
    let results = folder.join("results");
    let id = running.id();
    until(words, LIMIT, || {
        (running.has_ended() || when(&results, id)).then_some(())
    });
    std::thread::sleep(delay);
    if running.has_ended() {
        panic!("over before the signal: {:?}", running.wait(LIMIT));
    }
    let told = Instant::now();
    running.signal(Signal::SIGTERM);
    let ended = running.wait(LIMIT).expect(1);
    let took = told.elapsed();
    assert!(took < end_after_signal(), "{words}: {took:?}");
    let mark = fs::read_to_string(results.join("INCOMPLETE")).ok();
    let told = mark.as_ref().unwrap_or(&ended.stderr);
    told.has(&["interrupted by SIGTERM"]);
    mark.is_some()
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
    assert!(ends(&words, has_begun, Duration::from_millis(500)));
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
    assert!(!ends(&words, tries, Duration::from_millis(300)));
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
            assert!(ends(&words, has_begun, Duration::from_millis(delay)));
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
    let folder = &*temporary("");
    let words = "--queue lamport,sharded --producers 2 --consumers 2 --scenario straight-run,round-robin --duration 50ms \
                 --warmup 5ms --rounds 2";
    let ended = done(folder, words);
    ended.stdout.has(&["fairness", "2 to 2"]);
    let results = folder.join("results");
    let summary = rows(&results.join("summary.csv"));
    let found = summary.iter().map(|row| [&row["queue"], &row["scenario"]]);
    let expected = [
        ["lamport", "straight-run"],
        ["sharded", "straight-run"],
        ["sharded", "round-robin"],
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for row in &summary {
        let figure = |column: &str| figure(row, column);
        assert_eq!((figure("producers"), figure("consumers")), (2.0, 2.0));
        assert_eq!(row["elements_lost"], "0");
        for end in ["producer", "consumer"] {
            let fairness = figure(&format!("fairness_{end}s"));
            assert!((0.5..=1.0).contains(&fairness), "{row:?}");
            assert!((0.0..=100.0).contains(&figure(&format!("least_{end}_percent"))));
        }
        assert!(figure("throughput_per_s") > 0.0 && figure("latency_p50_ns") > 0.0);
        assert_eq!([&row["sender_cpu"], &row["depth_mean"]], [""; 2]);
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
    assert!(ends(words, has_a_row, Duration::from_millis(300)));
}

#[test]
fn bad_input_is_told_before_anything_is_written() {
    let folder = &*temporary("");
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
        let ended = queue(folder, words).ends(2);
        ended.stderr.has(&[expected]);
    }
    assert!(!folder.join("results").exists());
}

#[test]
fn progress_in_a_pipe_is_one_line_that_is_redrawn_and_warnings_stand_above_it() {
    let folder = &*temporary("");
    let words = "--queue lamport --capacity 64,65536 --count 2000 --repeat 2 --verbose";
    let program = queue(folder, words).env("HCABENCH_PROGRESS", "always");
    let errors = program.env("COLUMNS", "40").ends(0).stderr;
    errors.has(&["1/4 [        ] 0:00"]);
    let mut parts = errors
        .split('\r')
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_warning =
        |part: String| part.starts_with("warning: ") && part.contains("a queue of capacity 65536");
    assert!(parts.any(is_warning), "{errors:?}");
    assert!(!errors.contains('\u{1b}'), "{errors:?}");
    let redrawn = errors
        .split(['\r', '\n'])
        .filter(|line| line.contains("/4 ["));
    assert!(
        redrawn.clone().count() > 1 && redrawn.max_by_key(|line| line.len()).unwrap().len() < 40
    );
}
