//! `hcabench clock` as a user runs it, on the real clock.

use crate::common;
use crate::testing::{Has as _, temporary};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::{Ended, LIMIT, Program, Running, hcabench as program, threads};
use common::{Row, alone, end_after_signal, figure, json, rows, until};
use hcabench::host::{CpuSet, pinning};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

fn hcabench(words: &str, out: &Path) -> Program {
    program(&format!("clock {words}")).out(out)
}

/// Runs it in a folder of its own, to its end, which must have this code.
fn ends(words: &str, code: i32) -> (tempfile::TempDir, PathBuf, Ended) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ended = hcabench(words, &out).ends(code);
    (folder, out, ended)
}

fn settings(out: &Path) -> Value {
    json(&out.join("settings.json"))
}

fn first_row(out: &Path) -> Row {
    rows(&out.join("summary.csv")).remove(0)
}

fn first_cpu(out: &Path) -> PathBuf {
    out.join(&first_row(out)["point"])
}

#[test]
fn every_report_of_every_clock_has_its_files_and_its_figures() {
    let _alone = alone();
    let of_processor: &[&str] = if cfg!(target_arch = "aarch64") {
        &["counter", "counter-ss"]
    } else {
        &["rdtsc", "rdtscp", "rdtscp-lfence"]
    };
    let of_kernel = ["realtime", "monotonic", "monotonic-raw"];
    for clock in of_kernel.iter().chain(of_processor) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let words =
            format!("--clock {clock} --iterations 20k --baseline-iterations 1k --report all");
        let mut ended = hcabench(&words, &out).run();
        // On a busy machine the counter may need a second chance.
        for _ in 0..4 {
            if ended.stderr.contains("does not settle") {
                ended = hcabench(&words, &out).run();
            }
        }
        if !ended.is_success() {
            let text = ended.expect(2).stderr;
            let reasons = [
                "TSC",
                "CNTVCTSS_EL0",
                "time stamp counter",
                "does not settle",
            ];
            let has_reason = reasons.iter().any(|reason| text.contains(reason));
            assert!(of_processor.contains(clock), "{clock}: {text}");
            assert!(has_reason, "{clock}: {text}");
            continue;
        }
        let folder = first_cpu(&out);
        assert!(!out.join("INCOMPLETE").exists());
        let summary = &first_row(&out);
        assert_eq!(summary["clock"].as_str(), *clock);
        assert_eq!(summary["iterations"].as_str(), "20000");
        let mean = figure(summary, "mean_ns");
        assert!(figure(summary, "p50_ns") > 0.0 && figure(summary, "min_ns") <= mean);
        assert!(figure(summary, "p50_ns") <= figure(summary, "p999999_ns"));
        assert!(figure(summary, "p999999_ns") <= figure(summary, "max_ns") * 1.0011);
        assert_eq!(summary["point"], format!("cpu{}", summary["cpu"]));
        let histogram = std::fs::read_to_string(folder.join("histogram.hgrm")).unwrap();
        histogram.has(&["Total count    =        20000"]);
        let counts = rows(&folder.join("histogram.csv"));
        let counted: f64 = counts.iter().map(|row| figure(row, "differences")).sum();
        assert_eq!(counted, 20_000.0);
        assert_eq!(counts.len() as f64, figure(summary, "differences_in_file"));
        let details = &settings(&folder)["details"];
        assert_eq!(details["first_ten_ticks"].as_array().unwrap().len(), 10);
        assert_eq!(details["highest"].as_array().unwrap().len(), 10);
        // Jumps lie within the run, in order, and above the threshold.
        let mut last = 0.0;
        for jump in rows(&folder.join("jumps.csv")) {
            if jump["cause"] == "clock set back" {
                continue;
            }
            assert!(figure(&jump, "t_ns") >= last);
            last = figure(&jump, "t_ns");
            assert!(figure(&jump, "jump_ns") + 1.0 > figure(summary, "threshold_ns"));
            assert!(last + figure(&jump, "jump_ns") <= figure(summary, "elapsed_ns") + 2.0);
            let is_counter = of_processor.contains(clock);
            assert_eq!(jump["jump_cycles"].is_empty(), !is_counter);
        }
        ended.stdout.has(&[
            "p99.9999",
            "largest differences",
            "windows of 1.00 ms",
            "causes of the jumps",
        ]);
    }
}

#[test]
fn one_iteration_is_enough() {
    let _alone = alone();
    let (_folder, out, _) = ends(
        "--clock monotonic-raw --iterations 1 --baseline-iterations 1",
        0,
    );
    assert_eq!(rows(&out.join("summary.csv"))[0]["iterations"], "1");
}

#[test]
fn differences_of_a_time_are_all_kept_or_said_not_to_be() {
    let _alone = alone();
    // As short as fits into the usual memlock limit of 8 MiB. What is not kept must be told.
    let (_folder, out, ended) = ends(
        "--clock monotonic-raw --report percentiles --duration 10ms --baseline-iterations 1k --hugepages off --json",
        0,
    );
    let row = &first_row(&out);
    assert_eq!(row["status"], "complete");
    let document = ended.json();
    let cpu = &document["cpus"][0];
    let not_kept = cpu["differences_not_kept"].as_u64().unwrap();
    let findings = document["findings"].as_array().unwrap();
    let noted = findings
        .iter()
        .any(|it| it["kind"] == "differences-counted");
    assert_eq!(noted, not_kept > 0, "{document}");
    assert_eq!(cpu["differences_kept_in"].is_null(), not_kept > 0);
    assert_eq!(cpu["percentiles"]["are"] == "exact", not_kept == 0);
}

#[test]
fn all_cpus_start_together_and_each_has_a_row() {
    let _alone = alone();
    let (_folder, out, ended) = ends(
        "--clock monotonic-raw --all-cpus --duration 1s --baseline-iterations 10k --verbose",
        0,
    );
    let summary = rows(&out.join("summary.csv"));
    let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let allowed: Vec<String> = (0..nix::sched::CpuSet::count())
        .filter(|&cpu| allowed.is_set(cpu).unwrap())
        .map(|cpu| cpu.to_string())
        .collect();
    let found: Vec<&str> = summary.iter().map(|row| row["cpu"].as_str()).collect();
    assert_eq!(found, allowed);
    for row in &summary {
        assert!(figure(row, "elapsed_ns") > 3e8, "{row:?}");
    }
    let text = ended.stdout;
    let findings = common::json(&out.join("findings.json"));
    let mut findings = findings["findings"].as_array().unwrap().iter();
    let all_watched = findings.find(|it| it["kind"] == "no-free-cpu").unwrap();
    assert_eq!(
        all_watched["points"].as_array().unwrap().len(),
        allowed.len()
    );
    assert_eq!(text.contains("at once:"), allowed.len() > 1, "{text}");
}

#[test]
fn bad_input_ends_with_2_and_names_the_option() {
    let _alone = alone();
    let folder = &*temporary("");
    let holding = folder.join("holding");
    std::fs::create_dir(&holding).unwrap();
    std::fs::write(holding.join("summary.csv"), "x").unwrap();
    for (words, out, expected) in [
        (
            "--cpu 60000",
            "new",
            ["--cpu 60000", "does not exist", "choose one of"],
        ),
        (
            "--report percentiles --iterations 9000000G",
            "new",
            ["--report percentiles", "--iterations", "available"],
        ),
        (
            "--iterations 10",
            "holding",
            ["--out", "already holds results", "--force"],
        ),
        (
            "--until 5 --report cumulative,wakeup",
            "new",
            ["--until 5", "--report wakeup", "--duration or --iterations"],
        ),
        (
            "--causes trace --clock realtime",
            "new",
            ["--causes trace", "--clock realtime", "another clock"],
        ),
        ("--report most", "new", ["--report", "most", "histogram"]),
    ] {
        let ended = hcabench(words, &folder.join(out)).ends(2);
        ended.stderr.has(&expected);
    }
    assert!(!folder.join("new").exists());
}

#[test]
fn a_broken_limit_ends_with_3_and_a_kept_one_with_0() {
    let _alone = alone();
    let short = "--clock monotonic-raw --iterations 100k --baseline-iterations 1k --report highest";
    let (_folder, out, ended) = ends(&format!("{short} --fail-above 1ns,1h"), 3);
    ended.stderr.has(&["--fail-above 1ns is broken on CPU"]);
    ended.stdout.has(&["BROKEN", "limit 1h on CPU"]);
    assert!(!out.join("INCOMPLETE").exists());
    ends(&format!("{short} --fail-above 1h,1ms@p50"), 0);
    ends(&format!("{short} --fail-above 1ns@p50"), 3);
}

#[test]
fn json_and_quiet() {
    let _alone = alone();
    let short = "--clock monotonic-raw --iterations 10k --baseline-iterations 1k";
    let (_folder, out, ended) = ends(&format!("{short} --json --quiet"), 0);
    let document = ended.json();
    assert_eq!(document["points"][0]["status"], "complete");
    assert_eq!(document["points"][0]["iterations"], 10_000);
    let stated = settings(&first_cpu(&out));
    assert_eq!(stated["details"], document["cpus"][0]);
    let (_folder, _, ended) = ends(&format!("{short} --quiet"), 0);
    assert!(ended.stdout.is_empty(), "{ended:?}");
    // Warnings of a busy machine are no part of it.
    (ended.stderr).lacks(&["machine:", "watch:", "note:", "results:"]);
}

fn begin(words: &str, out: &Path) -> Running {
    // Before others as far as permitted: this machine may be busy with other tests.
    let nice = ["nice", "-n", "-20"];
    let words = format!("clock {words}");
    let running = Program::under(&nice, crate::program::path(), &words)
        .out(out)
        .start();
    until("a watch", || {
        (out.join("settings.json").exists() && watching_thread(&running).is_some()).then_some(())
    });
    // The baseline is measured by threads of the same name.
    std::thread::sleep(Duration::from_millis(300));
    running
}

#[test]
fn a_signal_ends_it_with_what_was_measured() {
    let _alone = alone();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        end_by(signal);
    }
}

fn end_by(signal: Signal) {
    let out = temporary("out");
    let words = "--clock monotonic-raw --report histogram --duration 1h --baseline-iterations 10k --keep-jumps 1000";
    let running = begin(words, &out);
    let sent = Instant::now();
    running.signal(signal);
    // None: is it ignored here, as in the background of a script?
    running.wait(Duration::from_secs(60)).expect(1);
    let took = sent.elapsed();
    assert!(took < end_after_signal(), "{signal}: {took:?}");
    let mark = std::fs::read_to_string(out.join("INCOMPLETE")).unwrap();
    mark.has(&[&format!("interrupted by {signal}")]);
    let summary = &first_row(&out);
    assert_eq!(summary["status"], "incomplete");
    assert!(figure(summary, "iterations") > 1000.0);
}

/// By `CLOCK_MONOTONIC_RAW`, in ns: stopped between `told` and `stood`, going on between `woken` and `going`.
#[derive(Debug, Clone, Copy)]
struct Stop {
    told: f64,
    stood: f64,
    woken: f64,
    going: f64,
    /// How long its thread had to wait for its CPU besides; none if it never got it.
    waited: Option<f64>,
}

impl Stop {
    fn shortest(&self) -> f64 {
        self.woken - self.stood
    }

    fn longest(&self) -> f64 {
        self.going - self.told
    }

    /// Whether it is known to 10 % how long the thread did not run.
    fn is_known(&self) -> bool {
        self.waited
            .is_some_and(|waited| (self.longest() + waited) / self.shortest() < 1.1)
    }
}

fn raw_now() -> f64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC_RAW).unwrap();
    now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
}

/// The times that a thread was given a CPU, and how long it has waited for that, in ns.
fn given_and_waited(thread: &Path) -> (u64, f64) {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap();
    let figures: Vec<u64> = text
        .split_whitespace()
        .map(|figure| figure.parse().unwrap())
        .collect();
    (figures[2], figures[1] as f64)
}

fn watching_thread(running: &Running) -> Option<PathBuf> {
    let id = threads(running.id(), "watch-").first().copied()?;
    Some(PathBuf::from(format!("/proc/{}/task/{id}", running.id())))
}

fn stop(running: &Running, thread: &Path, length: Duration) -> Stop {
    let (_, before) = given_and_waited(thread);
    let pid = Pid::from_raw(running.id().cast_signed());
    let told = raw_now();
    running.signal(Signal::SIGSTOP);
    let state = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    let stood = raw_now();
    assert!(matches!(state, WaitStatus::Stopped(..)), "{state:?}");
    std::thread::sleep(length);
    let (given, _) = given_and_waited(thread);
    let woken = raw_now();
    running.signal(Signal::SIGCONT);
    let going = raw_now();
    // What it waited is known when it has got its CPU.
    let mut after = given_and_waited(thread);
    while after.0 == given && raw_now() - going < 50e6 {
        std::thread::sleep(Duration::from_micros(200));
        after = given_and_waited(thread);
    }
    Stop {
        told,
        stood,
        woken,
        going,
        waited: (after.0 > given).then_some(after.1 - before),
    }
}

/// What a thread needs to see the clock stand still, and to be seen to stand.
const SLACK: f64 = 100_000.0;

/// The jump of each stop: the one that begins while the process is told to stop, if the run began at `origin`.
fn jumps_of<'a>(stops: &[Stop], jumps: &'a [Row], origin: f64) -> Vec<(Stop, Option<&'a Row>)> {
    let begins = |jump: &Row| origin + figure(jump, "t_ns");
    let of = |stop: &Stop| {
        let beginning = jumps.iter().filter(|jump| {
            (stop.told - SLACK..=stop.stood + SLACK).contains(&begins(jump))
                && figure(jump, "jump_ns") > stop.shortest() / 2.0
        });
        beginning.max_by(|a, b| figure(a, "jump_ns").total_cmp(&figure(b, "jump_ns")))
    };
    stops.iter().map(|stop| (*stop, of(stop))).collect()
}

/// Watches a process that is stopped again and again, and returns the jump of each stop whose length is known.
fn watch_stops() -> Vec<(Stop, Option<Row>)> {
    let out = temporary("out");
    let words = "--clock monotonic-raw --report highest --duration 4s --baseline-iterations 10k";
    let running = begin(words, &out);
    let thread = watching_thread(&running).expect("no thread watches");
    // On the watched CPU the helper would be a jump itself.
    let allowed = pinning::current_affinity().unwrap();
    let name = std::fs::read_to_string(thread.join("comm")).unwrap();
    let watched: CpuSet = name.trim().trim_start_matches("watch-").parse().unwrap();
    let free = allowed.difference(&watched);
    if !free.is_empty() {
        pinning::pin_current_thread_to(&free).unwrap();
    }
    let began = Instant::now();
    let mut stops = Vec::new();
    while began.elapsed() < Duration::from_secs(2) {
        // No two pauses alike: only one beginning of the run makes all stops meet their jumps.
        std::thread::sleep(Duration::from_millis(20 + 7 * (stops.len() as u64 * 5 % 8)));
        stops.push(stop(&running, &thread, Duration::from_millis(5)));
    }
    // The next process inherits what this thread may use.
    pinning::pin_current_thread_to(&allowed).unwrap();
    running.wait(LIMIT).expect(0);
    let jumps: Vec<Row> = rows(&first_cpu(&out).join("jumps.csv"))
        .into_iter()
        .filter(|jump| figure(jump, "jump_ns") > 2e6)
        .collect();
    let mut begins: Vec<f64> = jumps.iter().map(|jump| figure(jump, "t_ns")).collect();
    begins.sort_by(f64::total_cmp);
    // The file counts from the beginning of the watch: the one that lets most stops meet a jump.
    let origins = stops.iter().flat_map(|stop| {
        let middle = (stop.told + stop.stood) / 2.0;
        begins.iter().map(move |begin| middle - begin)
    });
    let met = |origin: f64| {
        let meets = |stop: &&Stop| {
            let next = begins.partition_point(|begin| origin + begin < stop.told - SLACK);
            begins
                .get(next)
                .is_some_and(|begin| origin + begin <= stop.stood + SLACK)
        };
        stops.iter().filter(meets).count()
    };
    let Some(origin) = origins.max_by_key(|&origin| met(origin)) else {
        return Vec::new();
    };
    let found = jumps_of(&stops, &jumps, origin);
    found
        .into_iter()
        .filter(|(stop, _)| stop.is_known())
        .map(|(stop, jump)| (stop, jump.cloned()))
        .collect()
}

#[test]
fn a_process_that_is_stopped_sees_a_jump_of_that_length_which_is_no_interrupt() {
    // Fewer that the helper knows the length of show nothing.
    const FEWEST: usize = 10;
    const ROUNDS: usize = 6;
    let _alone = alone();
    let mut rounds = Vec::new();
    // On a busy machine the helper measures badly, and the process gets its CPU late before and after a stop.
    while rounds.len() < ROUNDS {
        let found = watch_stops();
        let is_right = |(stop, jump): &(Stop, Option<Row>)| {
            let Some(jump) = jump else { return false };
            let length = figure(jump, "jump_ns");
            let right = (stop.shortest() * 0.9..=stop.longest() * 1.1).contains(&length);
            // Another length may be that of another jump, which began beside the stop.
            let is_other = !right || !jump["cause"].starts_with("interrupt");
            assert!(is_other, "{jump:?}");
            right
        };
        let right = found.iter().filter(|each| is_right(each)).count();
        rounds.push((right, found));
        let known = rounds.iter().map(|(_, found)| found.len()).sum::<usize>();
        let all_right = rounds.iter().map(|(right, _)| right).sum::<usize>();
        let last = rounds.last().map(|(right, found)| (*right, found.len()));
        let enough = |(right, known)| known >= FEWEST && right * 10 >= known * 8;
        if enough((all_right, known)) || last.is_some_and(enough) {
            return;
        }
        // So busy that the helper knows next to nothing: what it knows must hold at least once.
        if rounds.len() == ROUNDS && known < FEWEST && all_right > 0 {
            return;
        }
    }
    for (right, found) in &rounds {
        eprintln!("{right} right of {}", found.len());
    }
    panic!("in no round 80 % of the stops are jumps of their length: {rounds:?}");
}

/// What a report shows of the longest stop, in ns.
fn longest_of(report: &str, out: &Path) -> f64 {
    let row = &first_row(out);
    match report {
        "cumulative" => figure(row, "highest_window_ns"),
        "histogram" => {
            let counts = rows(&first_cpu(out).join("histogram.csv"));
            figure(counts.last().unwrap(), "difference_ns")
        }
        "highest" => {
            let details = &settings(&first_cpu(out))["details"];
            details["highest"][0]["jump_ns"].as_f64().unwrap()
        }
        // The last of them is the largest.
        "percentiles" => {
            let details = &settings(&first_cpu(out))["details"];
            details["percentiles"]["max_ticks"].as_f64().unwrap()
        }
        _ => figure(row, "max_ns"),
    }
}

#[test]
fn a_stop_of_20_ms_is_found_in_each_report() {
    const STOP: Duration = Duration::from_millis(20);
    // What a report may leave out of a stop: the reading to which it belongs, and the time to a wake-up.
    const LEFT_OUT: f64 = 2e6;
    let _alone = alone();
    let (_, most_locked) =
        nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK).unwrap();
    for report in [
        "highest",
        "cumulative",
        "histogram",
        "percentiles",
        "wakeup",
    ] {
        if report == "percentiles" && most_locked < 1 << 30 && !nix::unistd::geteuid().is_root() {
            eprintln!(
                "percentiles of two seconds do not fit into {most_locked} B of locked memory"
            );
            continue;
        }
        // The stop comes in the first second, later on a busy machine: the watch goes on where its memory allows it.
        let (length, code) = match report {
            "percentiles" => ("2s", 0),
            _ => ("1h", 1),
        };
        let words = format!(
            "--clock monotonic-raw --report {report} --duration {length} --baseline-iterations 10k --hugepages off"
        );
        let out = temporary("out");
        let running = begin(&words, &out);
        std::thread::sleep(Duration::from_millis(500));
        let thread = watching_thread(&running).expect("a thread watches");
        let stop = stop(&running, &thread, STOP);
        if code != 0 {
            running.signal(Signal::SIGINT);
        }
        running.wait(LIMIT).expect(code);
        let found = longest_of(report, &out);
        let elapsed = figure(&first_row(&out), "elapsed_ns");
        assert!(elapsed < 60e9, "{report}: {elapsed}");
        let is_long_enough = found + LEFT_OUT >= stop.shortest();
        assert!(is_long_enough, "{report}: {found}, {stop:?}");
    }
}

#[test]
fn a_trace_names_who_ran_or_says_before_the_run_what_it_takes() {
    let _alone = alone();
    let out = temporary("out");
    let words = "--clock monotonic-raw --causes trace --iterations 100k --baseline-iterations 1k";
    let ended = hcabench(words, &out).run();
    if ended.is_success() {
        let trace = &settings(&first_cpu(&out))["details"]["trace"];
        assert!(trace["records"].as_u64().unwrap() > 0, "{trace}");
        return;
    }
    (ended.expect(2).stderr).has(&["--causes trace: ", "root", "--causes counters"]);
    assert!(!out.exists());
}

#[test]
fn a_given_rate_that_is_off_is_doubted() {
    let _alone = alone();
    let words = "--clock rdtsc --iterations 10k --baseline-iterations 1k --report highest";
    // No counter runs at less than a tenth of what one sold today does.
    let off = format!("{words} --tsc-khz 100000");
    if cfg!(not(target_arch = "x86_64")) {
        ends(&off, 2);
        return;
    }
    let (_folder, out, ended) = ends(&off, 0);
    ended.stdout.has(&["- --tsc-khz 100000 "]);
    let findings = common::json(&out.join("findings.json"));
    let findings = findings["findings"].as_array().unwrap();
    let is_doubt = |found: &Value| found["kind"] == "tsc-rate";
    assert!(findings.iter().any(is_doubt), "{findings:?}");
    assert_eq!(
        settings(&out)["instrument"]["clock"]["tsc"]["source"],
        "tsc-khz"
    );
    ended.stdout.has(&["--tsc-khz 100000"]);
    // The measured one is not doubted.
    ends(words, 0).2.stderr.lacks(&["--tsc-khz"]);
}

fn most_memory(words: &str) -> u64 {
    let folder = &*temporary("");
    let mut running = hcabench(words, &folder.join("out")).start();
    let mut most = 0;
    while !running.has_ended() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    running.wait(LIMIT).expect(0);
    most
}

#[test]
fn a_longer_run_of_the_histogram_takes_no_more_memory() {
    let _alone = alone();
    let words = "--clock monotonic-raw --report histogram --baseline-iterations 10k --keep-jumps 4096 --duration";
    let short = most_memory(&format!("{words} 500ms"));
    let long = most_memory(&format!("{words} 5s"));
    assert!(short > 1000, "{short} KiB, then {long} KiB");
    assert!(long <= short + 1024, "{short} KiB, then {long} KiB");
}

#[test]
fn by_default_it_takes_at_most_64_mib_and_begins_soon() {
    let _alone = alone();
    let may_trace =
        std::fs::File::open("/sys/kernel/tracing/events/sched/sched_switch/format").is_ok();
    for causes in ["counters", "trace"]
        .iter()
        .take(1 + usize::from(may_trace))
    {
        // The best of three: other work makes it longer.
        let begins_soon = (0..3).any(|_| {
            let begun = Instant::now();
            let words = format!("--clock monotonic-raw --duration 2s --causes {causes}");
            let most = most_memory(&words);
            assert!((1000..=64 << 10).contains(&most), "{causes}: {most} KiB");
            begun.elapsed() <= Duration::from_secs(2) + end_after_signal()
        });
        assert!(begins_soon, "{causes}");
    }
}

#[test]
fn it_begins_with_a_verdict_and_names_the_thread_that_ran_instead() {
    let _alone = alone();
    let allowed = pinning::current_affinity().unwrap();
    let cpu = allowed.iter().next().unwrap();
    let on_cpu = ["taskset", "-c", &cpu.to_string()];
    let beside = Program::under(&on_cpu, "sh", "-c 'while :; do :; done'").start();
    let words =
        format!("--clock monotonic-raw --duration 1s --baseline-iterations 10k --cpu {cpu}");
    let (_folder, out, ended) = ends(&words, 0);
    let text = ended.stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = format!("CPU {cpu} was taken for ");
    assert!(text.starts_with(&begin), "{text}");
    text.has(&["The main cause is other threads"]);
    let details = &settings(&first_cpu(&out))["details"];
    let ran = details["ran_instead"].as_array().unwrap();
    let is_beside = |ran: &&Value| ran["thread"] == beside.id();
    let found = ran.iter().find(is_beside).expect("it ran");
    assert_eq!(found["only_here"], true);
    assert!(found["ran_ns"].as_f64().unwrap() > 1e7, "{found}");
    let has_waited = details["waited_for_cpu_ns"].as_f64().unwrap() > 1e7;
    assert!(has_waited, "{details}");
}

#[test]
fn both_timers_have_a_row_of_how_late_they_wake() {
    let _alone = alone();
    let (_folder, out, ended) = ends("--report wakeup --iterations 100 --interval 200us", 0);
    let rows = rows(&out.join("summary.csv"));
    let timers: Vec<&str> = rows.iter().map(|row| row["timer"].as_str()).collect();
    assert_eq!(timers, ["nanosleep", "timerfd"]);
    for row in &rows {
        assert_eq!(row["iterations"], "100");
        assert!(figure(row, "min_ns") > 0.0 && figure(row, "min_ns") <= figure(row, "p50_ns"));
        assert!(figure(row, "p50_ns") <= figure(row, "max_ns") && row["jumps"].is_empty());
        assert!(out.join(&row["point"]).join("histogram.hgrm").exists());
    }
    let text = ended.stdout;
    text.begins("nanosleep wakes a thread on CPU ");
    ends("--report wakeup --iterations 20 --fail-above 1ns", 3);
}

#[test]
fn everything_is_all_clocks_and_all_reports() {
    let _alone = alone();
    let words =
        "--everything --iterations 1k --baseline-iterations 1k --interval 10us --hugepages off";
    let (_folder, out, ended) = ends(words, 0);
    let rows = rows(&out.join("summary.csv"));
    let has = |clock: &str, timer: &str| {
        rows.iter()
            .any(|row| row["clock"] == clock && row["timer"] == timer)
    };
    for (clock, timer) in [
        ("realtime", ""),
        ("monotonic-raw", ""),
        ("monotonic", ""),
        ("monotonic", "timerfd"),
    ] {
        assert!(has(clock, timer), "{clock} {timer}");
    }
    let text = ended.stdout;
    text.has(&["=== realtime", "p99.9999"]);
}

#[test]
fn it_ends_at_so_many_jumps_and_reads_no_counters_if_told_so() {
    let _alone = alone();
    let (_folder, out, _) = ends(
        "--clock monotonic-raw --until 100 --causes off --baseline-iterations 1k",
        0,
    );
    let row = &first_row(&out);
    assert!((100.0..110.0).contains(&figure(row, "jumps")), "{row:?}");
    let details = &settings(&first_cpu(&out))["details"];
    assert_eq!(details["not_watched"]["counters_read"], 0);
}

#[test]
fn the_memory_of_percentiles_is_announced() {
    let _alone = alone();
    let words =
        "--clock monotonic-raw --iterations 100k --baseline-iterations 1k --hugepages off --report";
    for (report, announced) in [("all", true), ("percentiles", true), ("highest", false)] {
        let (_folder, _, ended) = ends(&format!("{words} {report}"), 0);
        let told = ended.stderr;
        assert_eq!(told.contains("memory:"), announced, "{report}: {told}");
        let is_announced = !announced || told.contains("--report percentiles");
        assert!(is_announced, "{told}");
    }
}

#[test]
fn a_thread_that_is_moved_off_its_cpu_marks_its_point() {
    let _alone = alone();
    let allowed = pinning::current_affinity().unwrap();
    let (Some(cpu), Some(other)) = (allowed.iter().next(), allowed.iter().nth(1)) else {
        return;
    };
    let out = temporary("out");
    let words = "--clock monotonic-raw --report highest --duration 3s --baseline-iterations 10k";
    let running = begin(&format!("{words} --cpu {cpu}"), &out);
    let id = threads(running.id(), "watch-")[0];
    let mut set = nix::sched::CpuSet::new();
    set.set(other).unwrap();
    nix::sched::sched_setaffinity(Pid::from_raw(id.cast_signed()), &set).unwrap();
    running.wait(LIMIT).expect(1);
    let summary = &first_row(&out);
    assert_eq!(summary["status"], "incomplete");
    let told =
        format!("the thread watch-{cpu} was moved away from CPU {cpu}: it runs on CPU {other}");
    assert!(summary["failure"].starts_with(&told), "{summary:?}");
    assert!(first_cpu(&out).join("INCOMPLETE").exists());
}

#[test]
fn memory_for_jumps_that_is_refused_is_told_with_its_option() {
    let _alone = alone();
    let folder = &*temporary("");
    let words = "clock --clock monotonic-raw --iterations 1k --baseline-iterations 1k --report highest --keep-jumps 10M";
    // 400 MiB of address space: the jumps take more.
    let limited = ["prlimit", "--as=419430400"];
    let program = Program::under(&limited, crate::program::path(), words);
    let ended = program.out(folder.join("out")).ends(2);
    ended
        .stderr
        .has(&["--keep-jumps 10000000", "ulimit -v", "2 to 100M"]);
}

#[test]
fn rounds_are_added_up_in_the_folder_of_each_cpu() {
    let _alone = alone();
    let (_folder, out, ended) = ends(
        "--clock monotonic-raw --iterations 20k --baseline-iterations 1k --rounds 3 --keep-jumps 100",
        0,
    );
    let runs = rows(&out.join("runs.csv"));
    assert_eq!(runs.len(), 3);
    let summary = &first_row(&out);
    assert_eq!(summary["rounds"].as_str(), "3");
    assert_eq!(summary["iterations"].as_str(), "60000");
    let folder = first_cpu(&out);
    for (file, column) in [
        ("jumps.csv", "jumps_in_file"),
        ("histogram.csv", "differences_in_file"),
    ] {
        let all = rows(&folder.join(file));
        assert_eq!(all.len() as f64, figure(summary, column), "{file}");
        for (round, run) in runs.iter().enumerate() {
            let of_round = all.iter().filter(|row| row["round"] == round.to_string());
            assert_eq!(
                of_round.count() as f64,
                figure(run, column),
                "{file}, round {round}"
            );
        }
    }
    for run in &runs {
        let rate = figure(run, "jumps") / figure(run, "elapsed_ns") * 1e9;
        let is_close = (figure(run, "jumps_per_s") - rate).abs() <= 0.001 + rate * 1e-6;
        assert!(is_close, "{run:?}");
        let share = figure(run, "jumps_total_ns") / figure(run, "elapsed_ns") * 100.0;
        let is_close = (figure(run, "jump_time_percent") - share).abs() < 1e-3;
        assert!(is_close, "{run:?}");
    }
    let text = ended.stdout;
    assert!(!text.contains("causes of the jumps"), "{text}");
}
