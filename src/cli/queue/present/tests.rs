//! Tables of made-up rows.

use super::*;
use crate::results::Cell;
use crate::results::schema::INCOMPLETE;

/// A row with the settings of a queue and no load.
fn settings(queue: &str, measure: Measure) -> Record {
    let mut record = Record::new();
    record
        .set(&POINT, format!("{queue}-cap64"))
        .set(&columns::QUEUE, queue)
        .set(
            &columns::ENDS,
            if queue == "rings" { "mpmc" } else { "spsc" },
        )
        .set(&columns::CAPACITY, 64_u64)
        .set(&columns::PAYLOAD, 8_u64)
        .set(&columns::LOAD, "none")
        .set(&columns::RECEIVER_LOAD, "none")
        .set(&columns::SENDER_CPU, 0_u64)
        .set(&columns::RECEIVER_CPU, 1_u64)
        .set(&columns::MEASURE, measure.name())
        .set(&columns::CLOCK, "tsc");
    record
}

fn figures(record: &mut Record, ns: f64) {
    for (place, operation) in columns::OPERATIONS[..3].iter().enumerate() {
        let ns = ns * (place + 1) as f64;
        record
            .set(&operation.floor_min, 10.0)
            .set(&operation.floor_p50, 11.0);
        for column in &operation.columns[..9] {
            record.set(column, ns);
        }
        for bound in p50(operation).bounds() {
            record.push(bound, Cell::Decimal(ns, 1));
        }
    }
    let rate = 1e9 / ns;
    record.set(&columns::THROUGHPUT, rate);
    for bound in columns::THROUGHPUT.bounds() {
        record.push(bound, Cell::Decimal(rate, 1));
    }
    record
        .set(&columns::DEPTH_MEAN, 1.5)
        .set(&columns::FAILED_DEQUEUES, 7_u64)
        .set(&columns::SENDER_STAMP, 12.5)
        .set(&columns::RECEIVER_STAMP, 12.5);
}

/// Its row of the summary, and its rounds by what an enqueue took in each; the last one went like this.
fn rows(queue: &str, rounds: &[f64], last: &str) -> (Record, Vec<Record>) {
    let mut summary = settings(queue, Measure::Time);
    let is_clean = last == Outcome::Clean.name();
    let status = if is_clean { COMPLETE } else { INCOMPLETE };
    summary.set(&STATUS, status);
    figures(&mut summary, rounds[0]);
    let runs = rounds.iter().enumerate().map(|(round, ns)| {
        let is_last = round + 1 == rounds.len();
        let mut run = settings(queue, Measure::Time);
        let outcome = if is_last { last } else { Outcome::Clean.name() };
        run.set(&columns::OUTCOME, outcome);
        figures(&mut run, *ns);
        run
    });
    (summary, runs.collect())
}

fn shown(points: Vec<(Record, Vec<Record>)>, width: Option<usize>) -> String {
    let (summary, runs): (Vec<Record>, Vec<Vec<Record>>) = points.into_iter().unzip();
    tables(&summary, &runs.concat(), width)
}

#[test]
fn a_broken_queue_and_two_modes_are_marked() {
    let text = shown(
        vec![
            rows("good", &[40.0, 41.0, 42.0, 43.0], "clean"),
            rows("split", &[40.0, 41.0, 90.0, 91.0], "clean"),
            rows("bad", &[40.0, 41.0], "wrong"),
            rows("slow", &[40.0, 41.0], "gave-up"),
            rows("coarse", &[40.0, 41.0], "unjudged"),
            rows("gone", &[40.0, 41.0], "failed"),
        ],
        None,
    );
    // Of the last table, which has a line for each point.
    let line = |name: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        lines.next_back().unwrap()
    };
    for (name, mark) in [
        ("split", "two modes"),
        ("bad", "BROKEN"),
        ("slow", "GAVE UP"),
        ("coarse", "UNJUDGED"),
        ("gone", "FAILED"),
    ] {
        assert!(line(name).ends_with(mark), "{text}");
    }
    assert!(!line("good").contains("two modes"), "{text}");
    assert!(text.contains("note: split-cap64: its rounds fall into two groups"));
    // A queue that is wrong has no figures, also none of a round in which it was not.
    assert!(!line("bad").contains('.'), "{text}");
    assert!(line("good").contains("25.00"), "{text}");
}

#[test]
fn each_block_of_a_folded_table_says_which_operation_a_line_is_of() {
    let text = shown(vec![rows("lamport", &[40_000.0; 6], "clean")], Some(80));
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let details = text.split("through").next().unwrap();
    let blocks = details
        .lines()
        .filter(|line| line.contains("operation"))
        .count();
    let lines = details
        .lines()
        .filter(|line| line.contains("dequeue"))
        .count();
    assert!(blocks > 1, "{text}");
    assert_eq!(lines, blocks, "{text}");
}

#[test]
fn queues_for_many_threads_are_marked_in_the_tables() {
    let text = shown(
        vec![
            rows("lamport", &[40.0], "clean"),
            rows("rings", &[40.0], "clean"),
        ],
        None,
    );
    for (name, ends) in [("lamport", " spsc "), ("rings", " mpmc ")] {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        assert!(lines.all(|line| line.contains(ends)), "{text}");
    }
}

#[test]
fn a_table_that_is_left_out_is_told_of() {
    let point = || rows("lamport", &[40.0], "clean");
    let is_told = |text: String| text.contains("summary.csv");
    assert!(!is_told(shown(vec![point(); 20], None)));
    assert!(is_told(shown(vec![point(); 21], None)));
    let (mut summary, runs) = point();
    summary.set(&columns::PERCENT_OF_SATURATION, 50_u32);
    let text = shown(vec![(summary, runs)], None);
    assert!(text.contains(" 50 % ="), "{text}");
    assert!(is_told(text));
}

#[test]
fn a_throughput_is_never_shown_as_nothing() {
    for (fast, slow, expected) in [
        (40.0, 5_000.0, ["M/s", "25.00..25.00", "0.20..0.20"]),
        (40.0, 500_000.0, ["k/s", "25000.00..25000.00", "2.00..2.00"]),
        (1e6, 1e8, ["/s", "1000.00..1000.00", "10.00..10.00"]),
    ] {
        let text = shown(
            vec![rows("a", &[fast], "clean"), rows("b", &[slow], "clean")],
            None,
        );
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}
