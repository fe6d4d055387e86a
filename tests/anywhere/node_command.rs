//! `hcabench node` as its user has it, with the node-types that need nothing installed.

use crate::LIMIT;
use crate::common;
use crate::testing::{Has as _, temporary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::program::{self, Program, Running, threads};
use common::node::{ends, start};
use common::{Row, json, number, rows, until};
use hcabench::node::NodeType;
use hcabench::pacing::SplitMix64;
use hcabench::rig::named::Named as _;
use hcabench::time::TscTrust;
use nix::sys::signal::Signal;

const TYPES: &[&str] = &[
    "loopback",
    "shmem",
    "udp",
    "tcp",
    "unix",
    #[cfg(feature = "iceoryx2")]
    "iceoryx2",
    #[cfg(feature = "grpc")]
    "grpc",
];

fn publishes(running: &Running) {
    let is_there = || !threads(running.id(), "hcabench-pub").is_empty();
    until("the publisher", || is_there().then_some(()));
}

fn summary(folder: &Path) -> Vec<(Row, PathBuf)> {
    let run = folder.join("run");
    let rows = rows(&run.join("summary.csv")).into_iter();
    rows.map(|row| {
        let place = run.join(&row["point"]);
        (row, place)
    })
    .collect()
}

#[test]
fn bad_input_is_refused_with_the_rule_before_anything_is_written() {
    let folder = &*temporary("");
    for (words, parts) in [
        (
            "--type pipe",
            [
                "--type",
                "\"pipe\" is not one of infiniband, shmem, udp, tcp, unix",
            ],
        ),
        ("--rate 0", ["--rate", "from 0.001 to 1G"]),
        ("--rate 1k..10", ["--rate", "ends before it starts"]),
        (
            "--find-rate p98<5us",
            ["--find-rate", "\"p98\" is not one of p10, p50"],
        ),
        (
            "--find-rate p99<5us --rate 1k",
            ["--rate 1000", "--find-rate p99<5us needs the least and"],
        ),
        (
            "--find-rate p99<5us --rounds 5",
            ["--rounds 5", "give 6 or more"],
        ),
        (
            "--find-rate p99<5us --after-miss skip",
            ["--after-miss skip", "use catch-up"],
        ),
        ("--values 0", ["--values", "from 1 to 4096"]),
        ("--values 4097", ["--values", "from 1 to 4096"]),
        ("--count 0", ["--count", "from 1 to 1000000000"]),
        ("--count 5 --duration 1s", ["--count", "--duration"]),
        ("--duration 5", ["--duration", "from 1ms to 1year"]),
        (
            "--scenario ring",
            ["--scenario", "straight-run, fan-in, fan-out, round-robin"],
        ),
        (
            "--publishers 2",
            ["--publishers 2", "both numbers must be equal"],
        ),
        (
            "--scenario fan-in --subscribers 2",
            ["--publishers 1", "at least as many publishers"],
        ),
        ("--publishers 0", ["--publishers", "from 1 to 1024"]),
        ("--subscribers 1025", ["--subscribers", "from 1 to 1024"]),
        ("--timer hpet", ["--timer", "tsc, timerfd"]),
        ("--poll never", ["--poll", "busy, event"]),
        (
            "--poll event --type loopback,shmem",
            ["--poll event", "use --poll busy"],
        ),
        ("--after-miss stop", ["--after-miss", "skip, catch-up"]),
        ("--warmup 5", ["--warmup", "from 0s to 1day"]),
        ("--drain 5", ["--drain", "from 0s to 1day"]),
        ("--vectorize 0", ["--vectorize", "from 1 to 4096"]),
        ("--send-queue 0", ["--send-queue", "from 1 to 1000000"]),
        (
            "--receive-queue 1000001",
            ["--receive-queue", "from 1 to 1000000"],
        ),
        ("--timeout 0", ["--timeout", "from 1ms to 1day"]),
        ("--samples --format csv", ["--format", "hcabench, villas"]),
        ("--format villas", ["required", "--samples"]),
        ("--log disk", ["--log", "memory, file"]),
        ("--tcp-nodelay maybe", ["--tcp-nodelay", "on, off"]),
        ("--tcp-busy-poll 2s", ["--tcp-busy-poll", "from 0s to 1s"]),
        (
            "--unix-socket dgram",
            ["--unix-socket", "stream, seqpacket"],
        ),
        (
            "--type multicast --multicast-interface hcabench9",
            ["--multicast-interface hcabench9", "must be one of"],
        ),
        (
            "--type udp --broker-process 1",
            ["--broker-process 1", "--broker HOST:PORT"],
        ),
        (
            "--type all --multicast-interface hcabench9",
            ["--multicast-interface hcabench9", "must be one of"],
        ),
        (
            "--type multicast --scenario round-robin",
            ["--type multicast", "--scenario round-robin"],
        ),
        ("--log-buffer 0", ["--log-buffer", "from 1 byte to 1 GiB"]),
        ("--hugepages maybe", ["--hugepages", "required, try, off"]),
        (
            "--rate 1G --duration 1h",
            ["--rate 1000000000", "most of it for logs"],
        ),
        (
            "--type shmem --scenario fan-out --publishers 1000 --subscribers 1000 --count 1",
            ["--receive-queue", "most of it for rings"],
        ),
    ] {
        ends(folder, words, 2).stderr.has(&parts);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn what_a_wiring_or_a_type_rules_out_is_listed_and_the_rest_is_measured() {
    let folder = &*temporary("");
    let words = "--type loopback,udp --scenario straight-run,fan-in --publishers 2 --count 20 --warmup 0 \
                 --poll event --rate 1k";
    ends(folder, words, 0);
    let found = summary(folder);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0["type"], "udp");
    assert_eq!(found[0].0["scenario"], "fan-in");
    let left_out = rows(&folder.join("run/left_out.csv"));
    let reasons: BTreeSet<(&str, &str, bool)> = left_out
        .iter()
        .map(|row| {
            let is_poll = row["reason"].contains("--poll event");
            (row["type"].as_str(), row["scenario"].as_str(), is_poll)
        })
        .collect();
    let expected = [
        ("loopback", "fan-in", true),
        ("loopback", "straight-run", false),
        ("udp", "straight-run", false),
    ];
    assert_eq!(reasons, BTreeSet::from(expected));
    assert!(left_out.iter().all(|row| row["poll"] == "event"));
}

/// Each type is measured, or left out with a reason.
#[test]
fn all_are_the_types_that_this_machine_can_run() {
    let folder = &*temporary("");
    ends(
        folder,
        "--type all --rounds 1 --count 50 --warmup 0 --rate 500",
        0,
    );
    let measured = summary(folder)
        .into_iter()
        .map(|(row, _)| row["type"].clone());
    let measured: BTreeSet<String> = measured.collect();
    let left_out = rows(&folder.join("run/left_out.csv"));
    assert!(
        left_out.iter().all(|row| !row["reason"].is_empty()),
        "{left_out:?}"
    );
    let left_out: BTreeSet<String> = left_out.iter().map(|row| row["type"].clone()).collect();
    assert!(measured.is_disjoint(&left_out));
    let of_build = NodeType::ALL.iter().map(|one| one.name());
    let all = of_build.chain(NodeType::NOT_BUILT.iter().copied());
    assert_eq!(&measured | &left_out, all.map(str::to_owned).collect());
    // Neither needs anything of the machine.
    assert!(
        ["loopback", "shmem"]
            .iter()
            .all(|one| measured.contains(*one))
    );
}

#[test]
fn a_dry_run_measures_nothing() {
    let folder = &*temporary("");
    let words = "--type loopback,udp --rate 100..10k --values 1..4 --rounds 3 --dry-run --json";
    let document = ends(folder, words, 0).json();
    assert_eq!(document["rounds"], 3);
    assert_eq!(document["points"].as_array().unwrap().len(), 2 * 3 * 3);
    // Warm-up and measurement take 5 s each.
    assert!(document["time_s"].as_f64().unwrap() >= 3.0 * 18.0 * 10.0);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    for (more, rounds) in [("", 8), ("--rounds 2", 2)] {
        let document = ends(folder, &format!("--type all --dry-run --json {more}"), 0).json();
        assert_eq!(document["rounds"], rounds, "{more}");
    }
}

#[test]
fn what_a_kill_leaves_is_completed_by_resume() {
    let folder = &*temporary("");
    let words = "--type loopback,udp --rate 1k --count 400 --warmup 0 --samples --rounds 3";
    let running = start(folder, words);
    let runs = folder.join("run/runs.csv");
    until("the first points", || {
        let text = fs::read_to_string(&runs);
        (text.is_ok_and(|text| text.lines().count() >= 3)).then_some(())
    });
    running.signal(Signal::SIGKILL);
    running.wait(LIMIT);
    let run = folder.join("run");
    assert!(run.join("INCOMPLETE").exists());
    let before = rows(&runs);
    common::ends(folder, "node --resume run", 0);
    assert!(!run.join("INCOMPLETE").exists());
    let after = rows(&runs);
    assert_eq!(after.len(), 6);
    let whole = before.iter().filter(|row| row["status"] == "complete");
    let kept = whole.clone().filter(|row| after.contains(row)).count();
    assert!(kept > 0, "{before:?}, {after:?}");
    assert!(kept + 1 >= whole.count(), "{before:?}, {after:?}");
    for (row, place) in summary(folder) {
        assert_eq!([&row["rounds"], &row["status"]], ["3", "complete"]);
        let steps = number(&row, "steps_made") + number(&row, "steps_missed");
        assert_eq!(steps, 3 * 400);
        for (file, column) in [("in.csv", "steps_made"), ("out.csv", "arrivals")] {
            let found = rows(&place.join(file)).len() as u64;
            assert_eq!(found, number(&row, column), "{file}");
        }
    }
}

#[test]
fn an_interrupt_ends_it_with_files_that_are_marked() {
    for node_type in ["loopback", "udp --poll event"] {
        let folder = &*temporary("");
        // It would go on for an hour: who does not look for the signal hangs.
        let words = format!("--type {node_type} --rate 1 --duration 1h --warmup 0");
        let running = start(folder, &words);
        publishes(&running);
        running.signal(Signal::SIGINT);
        running.wait(LIMIT).expect(1);
        let run = folder.join("run");
        let mark = fs::read_to_string(run.join("INCOMPLETE")).unwrap();
        mark.has(&["interrupted by SIGINT"]);
        assert_eq!(json(&run.join("settings.json"))["status"], "incomplete");
    }
}

/// The rows of `out.csv` by subscriber, and by publisher.
fn counts(place: &Path) -> [BTreeMap<u64, u64>; 2] {
    let rows = rows(&place.join("out.csv"));
    ["subscriber", "publisher"].map(|column| {
        let mut counts = BTreeMap::new();
        for row in &rows {
            *counts.entry(number(row, column)).or_default() += 1;
        }
        counts
    })
}

#[test]
fn sockets_are_as_asked_for_and_each_member_of_a_group_gets_each_sample() {
    const STEPS: u64 = 40;
    let folder = &*temporary("");
    let words = format!(
        "--type tcp,unix,multicast,udp --tcp-nodelay off --unix-socket seqpacket --scenario fan-out,round-robin \
         --publishers 2 --subscribers 3 --ends threads,processes --rate 200 --count {STEPS} --warmup 20ms \
         --poll event --timer timerfd"
    );
    ends(folder, &words, 0);
    let found = summary(folder);
    let mut points = BTreeSet::new();
    for (row, _) in &found {
        let copies = 2 * STEPS * if row["scenario"] == "fan-out" { 3 } else { 1 };
        for (column, expected) in [
            ("messages_sent", 2 * STEPS),
            ("messages_received", copies),
            ("messages_lost", 0),
            ("messages_refused", 0),
            ("messages_duplicated", 0),
            ("messages_never_sent", 0),
        ] {
            assert_eq!(number(row, column), expected, "{column}: {row:?}");
        }
        let columns = [
            "type",
            "distributed_by",
            "tcp_nodelay",
            "tcp_busy_poll_ns",
            "unix_socket",
            "multicast_interface",
        ];
        points.insert(columns.map(|column| row[column].as_str()));
    }
    let expected = [
        ["tcp", "sender", "false", "0", "", ""],
        ["unix", "sender", "", "", "seqpacket", ""],
        ["multicast", "network", "", "", "", "lo"],
        ["udp", "sender", "", "", "", ""],
    ];
    assert_eq!(points, BTreeSet::from(expected));
    // Four types in two scenarios, but one.
    assert_eq!(found.len(), 7 * 2);
    let left_out = rows(&folder.join("run/left_out.csv"));
    assert_eq!(left_out.len(), 2);
    for row in left_out {
        assert_eq!(
            [&row["type"], &row["scenario"]],
            ["multicast", "round-robin"]
        );
        row["reason"].has(&["--type multicast is impossible", "use fan-out"]);
    }
}

/// P publishers, S subscribers, n steps: P n copies in all, divided among the subscribers; P n S in fan-out.
#[test]
fn each_subscriber_gets_what_its_scenario_says() {
    const STEPS: u64 = 40;
    for (scenarios, publishers) in [("straight-run", 2), ("fan-in,fan-out,round-robin", 4)] {
        let folder = &*temporary("");
        let words = format!(
            "--type {} --scenario {scenarios} --publishers {publishers} --subscribers 2 --rate 500 \
             --count {STEPS} --warmup 20ms --samples",
            TYPES.join(",")
        );
        ends(folder, &words, 0);
        let found = summary(folder);
        assert_eq!(found.len(), TYPES.len() * scenarios.split(',').count());
        for (row, place) in found {
            let sent = publishers * STEPS;
            let copies = sent * if row["scenario"] == "fan-out" { 2 } else { 1 };
            // All that was due was sent: the default of scenarios is to catch up.
            assert_eq!(row["after_miss"], "catch-up");
            for (column, expected) in [
                ("steps_missed", 0),
                ("messages_expected", copies),
                ("messages_sent", sent),
                ("copies_sent", copies),
                ("messages_received", copies),
            ] {
                assert_eq!(number(&row, column), expected, "{column}: {row:?}");
            }
            let [by_subscriber, by_publisher] = counts(&place);
            let halves = BTreeMap::from([0, 1].map(|one| (one, copies / 2)));
            assert_eq!(by_subscriber, halves, "{row:?}");
            let of_each = (0..publishers).map(|publisher| (publisher, copies / publishers));
            assert_eq!(by_publisher, of_each.collect(), "{row:?}");
            let [fairness, delivered] =
                ["fairness", "delivery_rate"].map(|column| row[column].parse());
            assert_eq!((fairness, delivered), (Ok(1.0), Ok(1.0)), "{row:?}");
        }
    }
}

#[test]
fn files_of_samples_agree_with_the_summary() {
    for log in ["memory", "file --log-buffer 1k"] {
        check_files_of_samples(log);
    }
}

fn check_files_of_samples(log: &str) {
    let folder = &*temporary("");
    // More than there is time for, and rings of one sample: steps are missed, and samples refused.
    let words = format!(
        "--type {} --rate 500k --count 5000 --receive-queue 1 --warmup 0 --samples --rounds 2 \
         --log {log}",
        TYPES.join(",")
    );
    ends(folder, &words, 0);
    let found = summary(folder);
    assert_eq!(found.len(), TYPES.len());
    for (row, place) in found {
        let [sent, arrived, lost] =
            ["in.csv", "out.csv", "lost.csv"].map(|name| rows(&place.join(name)));
        let count = |column: &str| number(&row, column);
        assert_eq!(sent.len() as u64, count("steps_made"));
        assert_eq!(arrived.len() as u64, count("arrivals"));
        assert_eq!(lost.len() as u64, count("not_delivered"));
        for (cause, column) in [
            ("missed", "steps_missed"),
            ("refused", "messages_refused"),
            ("lost", "messages_lost"),
        ] {
            let listed = lost.iter().filter(|row| row["cause"] == cause).count();
            assert_eq!(listed as u64, count(column), "{cause}: {row:?}");
        }
        assert_eq!(count("steps_made") + count("steps_missed"), 2 * 5000);
        assert!(count("steps_missed") > 0, "{row:?}");
        let key = |row: &Row, column: &str| [number(row, "round"), number(row, column)];
        let taken: Vec<&Row> = sent.iter().filter(|row| !row["seq"].is_empty()).collect();
        assert_eq!(taken.len() as u64, count("messages_sent"));
        assert_eq!(count("errors"), count("messages_refused"));
        let refused = (sent.len() - taken.len()) as u64;
        assert_eq!(refused, count("messages_refused"));
        let numbers: BTreeSet<_> = taken.iter().map(|row| key(row, "seq")).collect();
        let came: BTreeSet<_> = arrived.iter().map(|row| key(row, "seq")).collect();
        assert_eq!(numbers.len() - came.len(), count("messages_lost") as usize);
        assert!(came.is_subset(&numbers));
        // A step was made, or it is listed with its cause; those that did not come are listed too.
        let came_of: BTreeMap<_, _> = taken
            .iter()
            .map(|row| (key(row, "seq"), key(row, "step")))
            .collect();
        let mut steps: BTreeSet<_> = came.iter().map(|seq| came_of[seq]).collect();
        for row in &lost {
            assert!(steps.insert(key(row, "step")), "{row:?}");
        }
        assert_eq!(steps.len(), 2 * 5000);
        for row in &arrived {
            let latency: i64 = row["latency_ns"].parse().unwrap();
            let apart = number(row, "t_received_ns").wrapping_sub(number(row, "t_sent_ns"));
            assert_eq!(latency, apart.cast_signed());
            assert_eq!(row["intact"], "true");
        }
        let latencies = arrived
            .iter()
            .map(|row| row["latency_ns"].parse::<i64>().unwrap());
        let (least, most) = (latencies.clone().min().unwrap(), latencies.max().unwrap());
        assert_eq!(row["latency_min_ns"].parse(), Ok(least));
        assert_eq!(row["latency_max_ns"].parse(), Ok(most));
        // Three digits.
        for (column, ns) in [("latency_min_us", least), ("latency_max_us", most)] {
            let (told, us): (f64, f64) = (row[column].parse().unwrap(), (ns as f64 / 1e3).round());
            assert!((told - us).abs() <= us * 1e-3, "{column}: {told}, {ns}");
        }
    }
}

/// A whole number of 64 bits, with or without a sign.
fn value(cell: &str) -> u64 {
    let signed = cell.parse::<i64>().map(i64::cast_unsigned);
    signed.unwrap_or_else(|_| cell.parse().unwrap())
}

/// A line as VILLASnode reads it: stamp, offset and number in nanoseconds, and its signals.
type Line = (u64, Option<i64>, Option<u64>, Vec<u64>);

/// Reads `SECONDS.NANOSECONDS[+OFFSET][(SEQUENCE)]` and signals behind tabs; lines that begin with # are none.
fn villas(path: &Path) -> Vec<Line> {
    let nanos = |text: &str| -> u64 {
        let (seconds, fraction) = text.split_once('.').unwrap();
        assert_eq!(fraction.len(), 9, "{text}");
        seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()
    };
    let line = |line: &str| -> Line {
        let mut cells = line.split('\t');
        let time = cells.next().unwrap();
        let (time, number) = match time.split_once('(') {
            Some((time, number)) => {
                let number = number.strip_suffix(')').unwrap();
                (time, Some(number.parse().unwrap()))
            }
            None => (time, None),
        };
        let (time, offset) = match time.find(['+', '-']) {
            Some(at) => {
                let offset = nanos(&time[at + 1..]).cast_signed();
                let is_negative = time[at..].starts_with('-');
                (
                    &time[..at],
                    Some(if is_negative { -offset } else { offset }),
                )
            }
            None => (time, None),
        };
        let signals = cells.map(value);
        (nanos(time), offset, number, signals.collect())
    };
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(line).collect()
}

#[test]
fn lines_for_villasnode_tell_what_our_own_rows_tell() {
    let folder = &*temporary("");
    // Rings of one sample, and more than there is time for: some are refused.
    let words = "--type loopback --scenario fan-in --publishers 2 --rate 500k --count 3000 --receive-queue 1 \
                 --warmup 0 --samples --format hcabench,villas --rounds 2";
    ends(folder, words, 0);
    let (row, place) = summary(folder).remove(0);
    let sent = rows(&place.join("in.csv"));
    let expected = sent.iter().map(|row| -> Line {
        let signals = ["round", "publisher", "step", "t_intended_ns"];
        let signals = signals.map(|column| number(row, column)).into_iter();
        let values = row["values"].split(' ').map(value);
        let signals = signals.chain(values).collect();
        (
            number(row, "t_sent_ns"),
            None,
            row["seq"].parse().ok(),
            signals,
        )
    });
    let expected: Vec<Line> = expected.collect();
    assert!(expected.iter().any(|line| line.2.is_none()), "{row:?}");
    assert_eq!(villas(&place.join("in.villas")), expected);
    // Four signals of ours and eight values, which follow from the seed, publisher and number.
    assert!(expected.iter().all(|line| line.3.len() == 4 + 8));
    let values = |row: &Row| -> Vec<u64> { row["values"].split(' ').map(value).collect() };
    for row in &sent {
        let before_it = number(row, "publisher") << 48;
        if let Ok(seq) = row["seq"].parse::<u64>() {
            let mut expected = SplitMix64::new(1 ^ (before_it | seq));
            assert!(
                values(row)
                    .into_iter()
                    .all(|value| value == expected.draw()),
                "{row:?}"
            );
        }
    }
    let arrived = rows(&place.join("out.csv"));
    let expected = arrived.iter().map(|row| -> Line {
        let signals = ["round", "subscriber", "publisher"];
        let mut signals = signals.map(|column| number(row, column)).to_vec();
        signals.push(u64::from(row["intact"] == "true"));
        let offset = number(row, "t_received_ns").wrapping_sub(number(row, "t_sent_ns"));
        (
            number(row, "t_sent_ns"),
            Some(offset.cast_signed()),
            Some(number(row, "seq")),
            signals,
        )
    });
    let expected: Vec<Line> = expected.collect();
    assert_eq!(expected.len() as u64, number(&row, "arrivals"));
    assert_eq!(villas(&place.join("out.villas")), expected);
    let text = fs::read_to_string(place.join("out.villas")).unwrap();
    let header = "# seconds.nanoseconds+offset(sequence)\tround\tsubscriber\tpublisher\tintact";
    assert_eq!(text.lines().next(), Some(header));
}

fn timers() -> Vec<&'static str> {
    let counter = TscTrust::find().is_ok();
    if !counter {
        println!("not tested here: --timer counter");
    }
    let counter = counter.then_some("counter");
    counter.into_iter().chain(["timerfd"]).collect()
}

#[test]
fn a_stopped_process_misses_as_many_steps_as_its_gap_is_long_and_loses_nothing() {
    const PERIOD_NS: f64 = 1e6;
    for timer in timers() {
        let folder = &*temporary("");
        // The ring holds all: what a busy machine does to the subscriber has nothing refused.
        let words = format!(
            "--type loopback --timer {timer} --rate 1k --count 6000 --warmup 0 --samples \
             --receive-queue 8000"
        );
        let running = start(folder, &words);
        publishes(&running);
        sleep(Duration::from_millis(700));
        running.signal(Signal::SIGSTOP);
        sleep(Duration::from_millis(200));
        running.signal(Signal::SIGCONT);
        running.wait(LIMIT).expect(0);
        let (row, place) = summary(folder).remove(0);
        let gone = ["messages_lost", "messages_refused"].map(|column| number(&row, column));
        assert_eq!(gone, [0, 0]);
        let made: Vec<[u64; 3]> = rows(&place.join("in.csv"))
            .iter()
            .map(|row| ["step", "t_intended_ns", "t_sent_ns"].map(|column| number(row, column)))
            .collect();
        let stamp = |at: usize| made[at][2] as f64;
        let gap = |at: usize| stamp(at + 1) - stamp(at);
        let longest = (0..made.len() - 1).max_by(|&one, &other| gap(one).total_cmp(&gap(other)));
        let longest = longest.unwrap();
        assert!(gap(longest) >= 190e6, "{timer}: {}", gap(longest));
        // A busy machine adds gaps of its own. Between two samples that were in time all of them are judged together.
        let is_in_time = |at: &usize| stamp(*at) < made[*at][1] as f64 + PERIOD_NS;
        let before = (0..=longest).rev().find(is_in_time).unwrap();
        let after = (longest + 1..made.len()).find(is_in_time).unwrap();
        let steps = (made[after][0] - made[before][0]) as f64;
        let periods = (stamp(after) - stamp(before)) / PERIOD_NS;
        let is_close = (steps - periods).abs() <= 1.0;
        assert!(is_close, "{timer}: {steps} steps in {periods} periods");
        let all = made.last().unwrap()[0] - (made.len() as u64 - 1);
        let at_the_end = 5999 - made.last().unwrap()[0];
        assert_eq!(number(&row, "steps_missed"), all + at_the_end, "{timer}");
    }
}

/// A line of strace: thread, time since the epoch in nanoseconds, and the call from its name on.
fn calls(trace: &str) -> Vec<(u32, u64, &str)> {
    let call = |line: &'_ str| -> Option<(u32, u64, usize)> {
        let mut words = line.split_ascii_whitespace();
        let thread = words.next()?.parse().ok()?;
        let time = words.next()?;
        let (seconds, micros) = time.split_once('.')?;
        let time =
            seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000;
        Some((thread, time, line.find(words.next()?)?))
    };
    let lines = trace.lines();
    lines
        .filter_map(|line| call(line).map(|(thread, time, at)| (thread, time, &line[at..])))
        .collect()
}

/// The calls of the thread of that name: time since the epoch in nanoseconds, and the call from its name on.
fn calls_of<'a>(trace: &'a str, name: &str) -> Vec<(u64, &'a str)> {
    let calls = calls(trace);
    let named = format!("prctl(PR_SET_NAME, \"{name}");
    let thread = calls.iter().find(|(.., call)| call.starts_with(&named));
    let (thread, ..) = *thread.unwrap_or_else(|| panic!("{name}: {trace}"));
    let own = calls.into_iter().filter(|(of, ..)| *of == thread);
    own.map(|(_, time, call)| (time, call)).collect()
}

/// Runs under strace to its end, and returns what those calls were, beside the names of threads.
fn traced(folder: &Path, calls: &str, words: &str) -> String {
    let calls = format!("trace=prctl,{calls}");
    let strace = ["strace", "-f", "-ttt", "-qq", "-o", "trace", "-e", &calls];
    let program = Program::under(&strace, program::path(), &format!("node --out run {words}"));
    program.in_folder(folder).ends(0);
    fs::read_to_string(folder.join("trace")).unwrap()
}

#[test]
fn the_loops_make_no_more_calls_of_timers_than_their_timer_needs() {
    for timer in timers() {
        let folder = &*temporary("");
        let words =
            format!("--type loopback --timer {timer} --rate 1k --count 300 --warmup 0 --samples");
        let trace = traced(
            folder,
            "read,timerfd_settime,timerfd_gettime,nanosleep,clock_nanosleep,timer_settime,setitimer",
            &words,
        );
        let (row, place) = summary(folder).remove(0);
        let made = rows(&place.join("in.csv"));
        let stamps = made.iter().map(|row| number(row, "t_sent_ns"));
        let (first, last) = (stamps.clone().min().unwrap(), stamps.max().unwrap());
        let own = calls_of(&trace, "hcabench-pub");
        // strace and the stamps have the time from the same clock, but to a microsecond, and it may be set meanwhile.
        let own_time = |time: u64| time > first + 1_000_000 && time + 1_000_000 < last;
        let in_loop: Vec<&str> = own
            .iter()
            .filter(|(time, _)| own_time(*time))
            .map(|(_, call)| *call)
            .collect();
        if timer == "counter" {
            assert_eq!(in_loop, [""; 0]);
            continue;
        }
        let is_read = |call: &&str| call.starts_with("read(") || call.starts_with("<... read");
        assert!(in_loop.iter().all(is_read), "{in_loop:?}");
        let set = own
            .iter()
            .position(|(_, call)| call.starts_with("timerfd_settime("));
        let set = set.unwrap_or_else(|| panic!("{trace}"));
        let descriptor = own[set].1.trim_start_matches("timerfd_settime(");
        let descriptor = descriptor.split(',').next().unwrap();
        let read = format!("read({descriptor}, ");
        let reads = own[set..]
            .iter()
            .filter(|(_, call)| call.starts_with(&read))
            .count();
        // One for each step that was made, and one for that behind the last, at which the loop ends.
        assert_eq!(reads as u64, number(&row, "steps_made") + 1, "{trace}");
    }
}

/// The file without a name that a thread has opened, if it has.
fn log_of(calls: &[(u64, &str)]) -> Option<u32> {
    let is_log = |call: &str| call.contains("O_TMPFILE") || call.contains("/.log-");
    let opened = (0..calls.len()).filter(|&at| is_log(calls[at].1));
    let mut descriptors = opened.filter_map(|at| {
        // strace tells the end of a call apart, if another thread called in between.
        let end = calls[at..].iter().find_map(|it| it.1.rsplit_once(" = "))?;
        end.1.trim().parse().ok()
    });
    descriptors.next()
}

#[test]
fn a_log_in_a_file_makes_no_more_writes_than_it_has_buffers_and_one_in_memory_none() {
    const BUFFER: u64 = 4096;
    for log in ["memory".to_owned(), format!("file --log-buffer {BUFFER}")] {
        let folder = &*temporary("");
        let words = format!(
            "--type loopback --timer timerfd --rate 2k --count 1500 --warmup 0 --samples --log {log}"
        );
        let trace = traced(folder, "write,pwrite64,writev,openat", &words);
        let (row, place) = summary(folder).remove(0);
        let [sent, read] = [("in.csv", "t_sent_ns"), ("out.csv", "t_received_ns")].map(
            |(file, column)| -> Vec<u64> {
                let rows = rows(&place.join(file));
                rows.iter().map(|row| number(row, column)).collect()
            },
        );
        assert_eq!(read.len() as u64, number(&row, "arrivals"));
        for (name, stamps, bytes) in [("hcabench-pub", sent, 24), ("hcabench-sub", read, 32)] {
            let own = calls_of(&trace, name);
            let is_write = |call: &str| {
                ["write", "pwrite", "<... write"]
                    .iter()
                    .any(|it| call.starts_with(it))
            };
            let first_and_last = [stamps[0] + 1_000_000, stamps[stamps.len() - 1] - 1_000_000];
            let in_loop = own.iter().filter(|(time, call)| {
                is_write(call) && (first_and_last[0]..first_and_last[1]).contains(time)
            });
            let in_loop = in_loop.count();
            let Some(descriptor) = log_of(&own) else {
                assert_eq!((log.as_str(), in_loop), ("memory", 0), "{name}: {trace}");
                continue;
            };
            let write = format!("write({descriptor}, ");
            let writes = own
                .iter()
                .filter(|(_, call)| call.starts_with(&write))
                .count() as u64;
            let most = stamps.len() as u64 * bytes / BUFFER + 1;
            assert!(writes <= most, "{name}: {writes} of {most}: {trace}");
            // It is written while it is measured, not afterwards.
            assert!(in_loop > 0 && log != "memory", "{name}: {trace}");
        }
        // Nothing of it is left.
        let left = fs::read_dir(&place).unwrap().flatten();
        let names: Vec<_> = left.map(|file| file.file_name()).collect();
        format!("{names:?}").lacks(&["log"]);
    }
}
