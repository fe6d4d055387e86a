//! A sweep in which a queue fails.

use std::sync::PoisonError;

use clap::Parser;

use super::*;
use crate::bench::queue::plan::CURVE_PERCENTS;
use crate::bench::queue::run::tests::{ONE_AT_A_TIME, PANICS};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    queue: QueueArguments,
}

/// The rows of a CSV file as maps from the column to the cell.
fn rows(path: &std::path::Path) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn a_queue_without_a_saturation_leaves_the_curves_of_the_others_in_the_sweep() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let words = "queue --queue lamport --load-curve --payload 64 --count 500 --warmup 50 --repeat 1 --clock monotonic --quiet";
    let arguments = Line::parse_from(words.split(' ')).queue;
    let config = arguments.config().unwrap();
    let topology = Topology::read().unwrap();
    let mut plan = Plan::new(&Sweep {
        queues: arguments.queue.0.clone(),
        capacities: arguments.capacity.0.clone(),
        payloads: arguments.payload.0.clone(),
        curve: Some(arguments.senders().unwrap()[0]),
        senders: arguments.senders().unwrap(),
        receiver: arguments.receiver().unwrap(),
        cpus: vec![chosen(&topology, &arguments).unwrap()],
    });
    let good = plan.points.clone();
    let bad = good.iter().map(|point| Point {
        queue: PANICS.to_owned(),
        ..point.clone()
    });
    plan.points = bad.chain(good.clone()).collect();
    let bench = Bench::new(config.clone(), topology)
        .unwrap()
        .with_one_that_panics();
    let facts = RunFacts {
        started_at: String::new(),
        machine: json!(null),
        clock: json!(null),
    };
    let mut course = Course {
        arguments: &arguments,
        config,
        plan,
        bench,
        facts,
        finished: Vec::new(),
        warnings: Warnings::default(),
        broken: Vec::new(),
    };
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let written = ResultsFolder::create(&results, false, 0).unwrap();
    let Err(Ending::Failed(reason)) = course.measure_all(&written) else {
        panic!("a queue that panics is a failure");
    };
    assert!(
        reason.contains(PANICS) && reason.contains("saturation"),
        "{reason}"
    );

    let summary = rows(&results.join(SUMMARY));
    assert_eq!(summary.len(), 1 + CURVE_PERCENTS.len());
    assert_eq!(summary[0]["queue"], PANICS);
    assert_eq!(summary[0]["status"], "incomplete");
    for row in &summary[1..] {
        assert_eq!((&*row["queue"], &*row["status"]), ("lamport", "complete"));
    }
    let left_out = rows(&results.join(LEFT_OUT));
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0]["queue"], PANICS);
    let reason = &left_out[0]["reason"];
    assert!(
        reason.contains("other 13 points") && reason.contains("panicked"),
        "{reason}"
    );
}
