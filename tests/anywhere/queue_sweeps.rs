//! `hcabench queue` over many points: all queues under each load, pairs of cores, the list, and what stands in their
//! tables.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Output};

type Row = HashMap<String, String>;

fn queue(folder: &Path, words: &str) -> Output {
    Command::new(crate::common::program())
        .arg("queue")
        .args(words.split_ascii_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs to a good end in a folder of its own; what it printed, and the rows of the summary.
fn measured(words: &str) -> (String, Vec<Row>) {
    let folder = tempfile::tempdir().unwrap();
    // The TSC may not be trusted where the tests run.
    let output = queue(folder.path(), &format!("{words} --clock monotonic --out r"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words}: {errors}");
    let mut reader = csv::Reader::from_path(folder.path().join("r/summary.csv")).unwrap();
    let rows = reader.deserialize().map(Result::unwrap).collect();
    (String::from_utf8(output.stdout).unwrap(), rows)
}

/// The queues there are, by the program itself.
fn all_queues() -> Vec<serde_json::Value> {
    let output = queue(Path::new("."), "--list --json");
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_list_names_each_queue_with_its_source() {
    let output = queue(Path::new("."), "--list");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let all = all_queues();
    assert!(all.len() >= 8, "{all:?}");
    for entry in &all {
        let of = |key: &str| entry[key].as_str().unwrap();
        let line = text.lines().find(|line| line.starts_with(of("name")));
        let line = line.unwrap_or_else(|| panic!("{} is missing: {text}", of("name")));
        assert!(line.contains(of("ends")), "{line}");
        assert!(!of("source").is_empty());
    }
}

#[test]
fn all_queues_are_measured_at_a_rate() {
    let (text, rows) = measured(
        "--queue all --load constant-rate --rate 20k --count 1000 --warmup 1ms --repeat 1 --capacity 64",
    );
    let measured: BTreeSet<&str> = rows.iter().map(|row| row["queue"].as_str()).collect();
    let all = all_queues();
    let expected: BTreeSet<&str> = all
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(measured, expected);
    for row in &rows {
        let figure = |column: &str| -> f64 {
            let cell = &row[column];
            cell.parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
        };
        assert_eq!(row["status"], "complete", "{row:?}");
        assert!(figure("intended_latency_p50_ns") > 0.0);
        assert!(figure("enqueue_floor_min_ns") > 0.0 && figure("latency_floor_min_ns") > 0.0);
    }
    // Only what hands over in batches has anything to hand over, and only if it is ever in time.
    let handed_over: BTreeSet<&str> = rows
        .iter()
        .filter(|row| row["handed_over_enqueues"] != "0")
        .map(|row| row["queue"].as_str())
        .collect();
    assert!(
        handed_over.iter().all(|name| *name == "mcringbuffer"),
        "{handed_over:?}"
    );
    let is_noted = text.contains("mcringbuffer hands over in batches");
    assert_eq!(is_noted, !handed_over.is_empty(), "{text}");
    if rows.len() > 8 {
        let line = text.lines().find(|line| line.starts_with("flume"));
        assert!(line.unwrap().contains("mpmc"), "{text}");
    }
}

#[test]
fn more_points_than_the_tables_hold_are_told_of() {
    let (text, rows) = measured(
        "--queue lamport --capacity 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21 --count 200 --warmup 1ms --repeat 1",
    );
    assert_eq!(rows.len(), 21);
    assert!(text.contains("summary.csv"), "{text}");
}

#[test]
fn pairs_of_cores_are_measured_as_far_as_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--queue baton --topology --count 500 --warmup 1ms --repeat 1 --clock monotonic --out r --json";
    let output = queue(folder.path(), words);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) {
        // A machine that does not tell what its cores have in common.
        assert!(errors.contains("--topology: no two CPUs"), "{errors}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds = |list: &str| -> Vec<String> {
        let list = document[list].as_array().unwrap().iter();
        list.map(|entry| entry["cores"].as_str().unwrap().to_owned())
            .collect()
    };
    let (measured, left_out) = (kinds("points"), kinds("left_out"));
    assert!(!measured.is_empty());
    // Each kind is one or the other.
    let all: BTreeSet<&String> = measured.iter().chain(&left_out).collect();
    assert_eq!((all.len(), measured.len() + left_out.len()), (4, 4));
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
        let figure = |column: &str| row[column].parse::<f64>().unwrap();
        assert!(figure("failed_enqueues") > 0.0, "{row:?}");
        assert!((4.0..=5.0).contains(&figure("depth_max")), "{row:?}");
        figure("enqueue_p90_ns")
    };
    let (without, with) = (p90(words), p90(&format!("{words} --measure-failed")));
    assert!(with >= 10_000.0, "{with}");
    assert!(without < with / 2.0, "{without} {with}");
}
