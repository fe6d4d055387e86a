//! `hcabench node --ends processes`: they get what threads get, and none is left behind.

use crate::LIMIT;
use crate::common;
use crate::testing::{Has as _, temporary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::program::{self, Program, send, threads};
use common::node::{ends, start};
use common::{Row, number, rows, until};
use hcabench::time::TscTrust;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;

/// A run that would go on for an hour.
const LONG: &str = "--ends processes --timer timerfd --rate 1 --duration 1h --warmup 0";

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let all: Vec<String> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(of_task)
        .collect();
    let all = all.iter().flat_map(|list| list.split_whitespace());
    all.map(|id| id.parse().unwrap()).collect()
}

/// Whether it runs: one that nobody has waited for has ended.
fn runs(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

fn ends_of(run: u32, publishers: usize, subscribers: usize) -> Vec<u32> {
    until("the ends", || {
        let with = |name| {
            let all = children(run).into_iter();
            all.filter(move |&child| threads(child, name).len() == 1)
        };
        let found: Vec<u32> = with("hcabench-pub").chain(with("hcabench-sub")).collect();
        (found.len() == publishers + subscribers).then_some(found)
    })
}

fn shared_memory(process: u32) -> BTreeSet<String> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let shared = maps.lines().filter(|line| line.contains("/memfd:hcabench"));
    shared
        .map(|line| line.split_whitespace().nth(4).unwrap().to_owned())
        .collect()
}

fn all_are_gone(ends: &[u32]) {
    for &process in ends {
        until("the end of all ends", || (!runs(process)).then_some(()));
    }
}

/// Node-types whose ends can be processes here.
fn types() -> String {
    let mut types = vec!["shmem", "udp", "tcp", "unix"];
    if cfg!(feature = "zeromq") {
        types.push("zeromq");
    }
    if cfg!(feature = "mqtt") {
        types.push("mqtt");
    }
    if cfg!(feature = "nats") {
        types.push("nats");
    }
    if cfg!(feature = "redis") {
        types.push("redis");
    }
    if cfg!(feature = "iceoryx2") {
        types.push("iceoryx2");
    }
    if cfg!(feature = "grpc") {
        types.push("grpc");
    }
    types.join(",")
}

/// Samples by subscriber and publisher.
fn counts(folder: &Path, row: &Row) -> BTreeMap<(u64, u64), u64> {
    let mut counts = BTreeMap::new();
    for sample in rows(&folder.join("run").join(&row["point"]).join("out.csv")) {
        assert_eq!(sample["intact"], "true");
        let pair = (number(&sample, "subscriber"), number(&sample, "publisher"));
        *counts.entry(pair).or_default() += 1;
    }
    counts
}

#[test]
fn processes_get_what_threads_get_in_all_scenarios() {
    const STEPS: u64 = 40;
    let types = types();
    let in_file = "--log file --log-buffer 200";
    for (scenarios, publishers, log) in [
        ("straight-run", 2, ""),
        ("straight-run", 2, in_file),
        ("fan-in,fan-out,round-robin", 4, ""),
    ] {
        let folder = &*temporary("");
        let words = format!(
            "--type {types} --ends threads,processes --scenario {scenarios} --publishers {publishers} --subscribers 2 \
             --rate 200 --count {STEPS} --warmup 20ms --timer timerfd --qos 1 --redis-kind streams --samples {log}"
        );
        ends(folder, &words, 0);
        let summary = rows(&folder.join("run/summary.csv"));
        let points = types.split(',').count() * scenarios.split(',').count();
        assert_eq!(summary.len(), 2 * points);
        for pair in summary.chunks(2) {
            let [ends_of_one, ends_of_other] = [0, 1].map(|at: usize| pair[at]["ends"].as_str());
            assert_eq!([ends_of_one, ends_of_other], ["threads", "processes"]);
            for row in pair {
                let copies = publishers * STEPS * if row["scenario"] == "fan-out" { 2 } else { 1 };
                assert_eq!(number(row, "messages_expected"), copies, "{row:?}");
                assert_eq!(number(row, "messages_received"), copies, "{row:?}");
                for fault in ["lost", "refused", "duplicated", "reordered"] {
                    assert_eq!(number(row, &format!("messages_{fault}")), 0, "{row:?}");
                }
            }
            let [threads, processes] = [0, 1].map(|at: usize| counts(folder, &pair[at]));
            // A library or a broker that distributes in turn need not be fair.
            let by_others =
                pair[0]["scenario"] == "round-robin" && pair[0]["distributed_by"] != "sender";
            if !by_others {
                assert_eq!(threads, processes, "{:?}", pair[1]);
            }
        }
    }
}

/// A sample is converted by its publisher, `in.csv` by the process that started that one.
#[test]
fn all_processes_of_a_run_have_one_clock() {
    let counter = TscTrust::find().is_ok();
    if !counter {
        println!("not tested here: --timer counter");
    }
    for timer in counter.then_some("counter").into_iter().chain(["timerfd"]) {
        let folder = tempfile::tempdir().unwrap();
        let words = format!(
            "--type shmem --ends processes --timer {timer} --rate 500 --count 200 --warmup 20ms --samples"
        );
        ends(folder.path(), &words, 0);
        let point = folder
            .path()
            .join("run/shmem-rate500-8values-straight-run-1to1-processes");
        let stamps = |file: &str| -> BTreeSet<(u64, u64)> {
            let rows = rows(&point.join(file));
            let sent = rows.iter().filter(|row| !row["seq"].is_empty());
            sent.map(|row| (number(row, "seq"), number(row, "t_sent_ns")))
                .collect()
        };
        let sent = stamps("in.csv");
        assert!(!sent.is_empty());
        assert_eq!(sent, stamps("out.csv"), "{timer}");
        for row in rows(&point.join("out.csv")) {
            assert!(number(&row, "latency_ns") > 0, "{timer}: {row:?}");
        }
    }
}

#[test]
fn each_end_is_a_process_and_an_interrupt_ends_all() {
    for (node_type, signal) in [
        ("udp --poll event", Signal::SIGINT),
        ("shmem", Signal::SIGTERM),
    ] {
        let folder = &*temporary("");
        let words =
            format!("--type {node_type} {LONG} --scenario fan-out --publishers 2 --subscribers 3");
        let run = start(folder, &words);
        let ends = ends_of(run.id(), 2, 3);
        assert_eq!(ends.iter().collect::<BTreeSet<_>>().len(), 5);
        for name in ["hcabench-pub", "hcabench-sub"] {
            assert_eq!(threads(run.id(), name), [0; 0]);
        }
        run.signal(signal);
        let told = format!("interrupted by {signal}");
        run.wait(LIMIT).expect(1).stderr.has(&[&told]);
        assert!(folder.join("run/INCOMPLETE").exists());
        all_are_gone(&ends);
    }
}

/// Whoever maps it first touches it, and so decides in which NUMA node it lies.
#[test]
fn the_log_of_an_end_is_mapped_by_that_end_alone_while_it_runs() {
    let folder = &*temporary("");
    let run = start(folder, &format!("--type udp {LONG}"));
    for end in ends_of(run.id(), 1, 1) {
        let its = until("the log", || {
            Some(shared_memory(end)).filter(|its| its.len() == 2)
        });
        // What all ends share.
        let of_both = its.intersection(&shared_memory(run.id())).count();
        assert_eq!(of_both, 1, "{its:?}");
    }
    run.signal(Signal::SIGINT);
    run.wait(LIMIT).expect(1);
}

#[test]
fn no_end_begins_before_all_are_made() {
    const ENDS: usize = 9;
    loop {
        let folder = &*temporary("");
        let words = "--type udp --poll event --ends processes --scenario fan-in --publishers 8 --rate 50 --count 5 \
                     --warmup 0";
        let run = start(folder, words);
        // The subscriber is made before the first publisher is started.
        until("a publisher", || {
            (children(run.id()).len() > 1).then_some(())
        });
        run.signal(Signal::SIGSTOP);
        let started = children(run.id());
        let is_early = started.len() < ENDS;
        if is_early {
            // Long enough to begin.
            sleep(Duration::from_secs(1));
            let begun = |&&end: &&u32| !threads(end, "hcabench-sub").is_empty();
            assert_eq!(started.iter().filter(begun).count(), 0);
        }
        run.signal(Signal::SIGCONT);
        run.wait(LIMIT).expect(0);
        if is_early {
            return;
        }
    }
}

#[test]
fn an_end_that_dies_ends_the_run_and_is_named() {
    for (victim, name) in [(1, "publisher 1"), (2, "subscriber 0")] {
        let folder = &*temporary("");
        let words = format!("--type udp {LONG} --scenario fan-in --publishers 2");
        let run = start(folder, &words);
        let ends = ends_of(run.id(), 2, 1);
        send(Signal::SIGKILL, ends[victim]);
        let expected = format!("the process of {name} ended early: signal: 9");
        run.wait(LIMIT).expect(1).stderr.has(&[&expected]);
        assert!(folder.join("run/INCOMPLETE").exists());
        all_are_gone(&ends);
    }
}

#[test]
fn no_end_outlives_the_run() {
    let folder = &*temporary("");
    let run = start(folder, &format!("--type shmem {LONG}"));
    let ends = ends_of(run.id(), 1, 1);
    run.signal(Signal::SIGKILL);
    run.wait(LIMIT);
    all_are_gone(&ends);

    // One that is stopped neither: a process of its session collects it, as in a container.
    set_child_subreaper(true).unwrap();
    let run = start(folder, &format!("--type shmem {LONG} --force"));
    let ends = ends_of(run.id(), 1, 1);
    ends.iter().for_each(|&end| send(Signal::SIGSTOP, end));
    run.signal(Signal::SIGKILL);
    run.wait(LIMIT);
    all_are_gone(&ends);

    // Rounds are processes themselves.
    let two = format!("--type shmem {LONG} --rounds 2 --force");
    let run = start(folder, &two);
    let round = until("the round", || children(run.id()).first().copied());
    let ends = ends_of(round, 1, 1);
    run.signal(Signal::SIGKILL);
    run.wait(LIMIT);
    all_are_gone(&[&ends[..], &[round]].concat());
}

#[test]
fn what_cannot_be_made_is_told_as_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        "--type loopback,shmem --ends processes --rate 500 --count 20 --warmup 0 --timer timerfd";
    ends(folder.path(), words, 0);
    let run = folder.path().join("run");
    assert_eq!(rows(&run.join("summary.csv")).len(), 1);
    let left_out = rows(&run.join("left_out.csv"));
    assert_eq!(left_out.len(), 1);
    let place = [&left_out[0]["type"], &left_out[0]["ends"]];
    assert_eq!(place, ["loopback", "processes"]);
    assert!(left_out[0]["reason"].contains("use --type shmem"));

    let folder = &*temporary("");
    let fan_out = "--scenario fan-out --publishers 1000 --subscribers 1000 --count 1";
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let zeromq = format!("--type zeromq --ends processes --zeromq-port {port}");
    for (words, expected) in [
        (
            "--type loopback --ends processes",
            "--ends processes is impossible",
        ),
        ("--ends forks", "threads, processes"),
        (
            &format!("--ends processes {fan_out} --type shmem"),
            "--receive-queue",
        ),
        (&zeromq, "--zeromq-port: cannot bind"),
    ] {
        if cfg!(feature = "zeromq") || !words.contains("zeromq") {
            let words = format!("{words} --timer timerfd");
            ends(folder, &words, 2).stderr.has(&[expected]);
        }
    }
    assert!(!folder.join("run").join("summary.csv").exists());
}

#[test]
fn the_limit_of_open_files_is_raised_for_the_ends_or_tells_how_many_there_can_be() {
    let with_files = |ends: u32, code| {
        let folder = tempfile::tempdir().unwrap();
        let words = format!(
            "node --out run --type udp --poll event --scenario straight-run --ends processes --timer timerfd \
             --rate 50 --count 5 --warmup 0 --publishers {ends} --subscribers {ends}"
        );
        let limited = ["prlimit", "--nofile=40:200"];
        let program = Program::under(&limited, program::path(), &words).in_folder(folder.path());
        (program.ends(code).stderr, folder)
    };
    with_files(8, 0);
    let (told, folder) = with_files(10, 2);
    told.has(&["--publishers", "--ends", "allows 18 ends", "ulimit -n 208"]);
    assert!(!folder.path().join("run").exists());
}

#[test]
fn a_run_of_processes_is_resumed_as_one() {
    let folder = &*temporary("");
    let words =
        "--type shmem --ends processes --rate 500 --count 50 --warmup 0 --timer timerfd --rounds 3";
    ends(folder, &format!("{words} --until-round 1"), 0);
    common::ends(folder, "node --resume run", 0);
    let summary = rows(&folder.join("run/summary.csv"));
    assert_eq!(summary.len(), 1);
    let row = &summary[0];
    assert_eq!([&row["ends"], &row["rounds"]], ["processes", "3"]);
}
