//! `hcabench queue` over many points, and what stands in its tables.

use crate::testing::{Has as _, temporary};
use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{Row, ends, figure, hcabench, rows};
use serde_json::Value;

/// Runs to a good end in a folder of its own; what it printed, and the rows of the summary.
#[track_caller]
fn measured(words: &str) -> (String, Vec<Row>) {
    let folder = &*temporary("");
    // The TSC may not be trusted where the tests run.
    let words = format!("queue {words} --clock monotonic --out r");
    let ended = ends(folder, &words, 0);
    (ended.stdout, rows(&folder.join("r/summary.csv")))
}

fn all_queues() -> Vec<Value> {
    let list = ends(Path::new("."), "queue --list --json", 0).json();
    list.as_array().unwrap().clone()
}

#[test]
fn the_list_names_each_queue_with_its_source() {
    let text = ends(Path::new("."), "queue --list", 0).stdout;
    let all = all_queues();
    assert!(all.len() >= 8, "{all:?}");
    for entry in &all {
        let of = |key: &str| entry[key].as_str().unwrap();
        let line = text.lines().find(|line| line.starts_with(of("name")));
        let line = line.unwrap_or_else(|| panic!("{} is missing: {text}", of("name")));
        line.has(&[of("ends")]);
        assert!(!of("source").is_empty());
    }
}

#[test]
fn all_queues_are_measured_at_a_rate() {
    let words = "--queue all --load constant-rate --rate 20k --count 1000 --warmup 1ms --repeat 1 --capacity 64 \
                 --verbose";
    let (text, rows) = measured(words);
    let measured: BTreeSet<&str> = rows.iter().map(|row| row["queue"].as_str()).collect();
    let all = all_queues();
    let expected = all.iter().map(|entry| entry["name"].as_str().unwrap());
    // The others are what baton can be.
    let expected = expected.filter(|name| !["baton-batching", "baton-demoting"].contains(name));
    assert_eq!(measured, expected.collect());
    for row in &rows {
        let figure = |column: &str| figure(row, column);
        assert_eq!(row["status"], "complete", "{row:?}");
        assert!(figure("intended_latency_p50_ns") > 0.0);
        assert!(figure("enqueue_floor_min_ns") > 0.0 && figure("latency_floor_min_ns") > 0.0);
    }
    // Only what hands over in batches has anything to hand over, and only if it is ever in time.
    let has_handed_over = |row: &&Row| row["handed_over_enqueues"] != "0";
    let mut handed_over = rows.iter().filter(has_handed_over);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_noted = said.contains("these queues hand over in batches: mcringbuffer");
    assert_eq!(is_noted, handed_over.clone().count() > 0, "{text}");
    assert!(handed_over.all(|row| row["queue"] == "mcringbuffer"));
    if rows.len() > 8 {
        let line = text.lines().find(|line| line.starts_with("flume"));
        assert!(line.unwrap().contains("mpmc"), "{text}");
    }
}

#[test]
fn more_points_than_the_tables_hold_are_told_of() {
    let capacities = Vec::from_iter((1..=21).map(|capacity| capacity.to_string()));
    let capacities = capacities.join(",");
    let words = "--queue lamport --count 200 --warmup 1ms --repeat 1 --capacity";
    let (text, rows) = measured(&format!("{words} {capacities}"));
    assert_eq!(rows.len(), 21);
    text.has(&["summary.csv"]);
}

#[test]
fn pairs_of_cores_are_measured_as_far_as_there_are() {
    let folder = &*temporary("");
    let words = "queue --queue baton --topology --count 500 --warmup 1ms --repeat 1 --clock monotonic --out r --json";
    let ended = hcabench(folder, words).run();
    if ended.status.code() == Some(2) {
        // A machine that does not tell what its cores have in common.
        ended.stderr.has(&["--topology: no two CPUs"]);
        return;
    }
    let document = ended.expect(0).json();
    let kinds = |list: &str| -> Vec<String> {
        let list = document[list].as_array().unwrap().iter();
        list.map(|entry| entry["cores"].as_str().unwrap().to_owned())
            .collect()
    };
    let (measured, left_out) = (kinds("points"), kinds("left_out"));
    assert!(!measured.is_empty());
    // Each kind is one or the other.
    let all: BTreeSet<&String> = measured.iter().chain(&left_out).collect();
    assert_eq!((all.len(), measured.len() + left_out.len()), (7, 7));
    for point in document["points"].as_array().unwrap() {
        assert_ne!(point["sender_cpu"], point["receiver_cpu"]);
    }
}

#[test]
fn failed_attempts_are_in_the_times_if_asked_for() {
    // A receiver that takes 20 us for each element, so that the queue is full.
    let words = "--queue lamport --capacity 4 --receiver-load constant-wait --receiver-wait 20us --count 1000 --warmup 1ms \
                 --repeat 1 --quiet";
    let p90 = |words: &str| {
        let row = &measured(words).1[0];
        let figure = |column: &str| figure(row, column);
        assert!(figure("failed_enqueues") > 0.0, "{row:?}");
        assert!((4.0..=5.0).contains(&figure("depth_max")), "{row:?}");
        figure("enqueue_p90_ns")
    };
    let (without, with) = (p90(words), p90(&format!("{words} --measure-failed")));
    assert!(with >= 10_000.0, "{with}");
    assert!(without < with / 2.0, "{without} {with}");
}

#[test]
fn a_slow_rate_is_told_by_its_intervals() {
    for (load, rate) in [
        ("--load constant-rate --rate 100 --count 6", 100.0),
        (
            "--load constant-rate --rate 100 --count 6 --measure throughput",
            100.0,
        ),
        (
            "--load bursty --group 3 --wait 5ms --count 9 --warmup 0",
            200.0,
        ),
    ] {
        let (_, rows) = measured(&format!("--queue lamport {load} --repeat 1"));
        for column in ["sent_per_s", "throughput_per_s"] {
            let found = figure(&rows[0], column);
            // Of six elements a fifth more, of three groups a half, if they were counted and not the times between.
            // However busy this machine is, no more go through.
            assert!(
                (0.2 * rate..1.3 * rate).contains(&found),
                "{load}: {column} {found}"
            );
        }
    }
}
