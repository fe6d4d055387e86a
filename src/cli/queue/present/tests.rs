//! Tables of made-up rows.

use super::*;
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::Point;
use crate::bench::queue::result::made_up;
use crate::bench::queue::rows;
use crate::node::wiring::{Scenario, Wiring};
use crate::pacing::Load;
use crate::results::runs::over_rounds;
use crate::results::schema::{COMPLETE, FAILURE, INCOMPLETE, STATUS};
use crate::testing::Has as _;

/// A point's row of the summary and its rounds, by the time of an enqueue in each; the last went like this.
fn measured(point: &Point, rounds: &[i64], last: Option<Outcome>) -> (Record, Vec<Record>) {
    late(point, rounds, last, 0)
}

fn late(point: &Point, rounds: &[i64], last: Option<Outcome>, late: u64) -> (Record, Vec<Record>) {
    let round = |(round, &ns): (usize, &i64)| {
        let mut run = made_up::run(ns);
        run.ends.sender.tally.missed = late;
        let is_last = round + 1 == rounds.len();
        let outcome = if is_last { last } else { Some(Outcome::Clean) };
        let figures = outcome.map_or_else(rows::without_run, |outcome| {
            run.outcome = outcome;
            rows::figures(point, &run, None)
        });
        let is_clean = outcome == Some(Outcome::Clean);
        let mut row = rows::settings(point, &made_up::config());
        for column in columns::FIGURES
            .iter()
            .filter(|it| figures.get(it.name).is_some())
        {
            row.set_from(column, &figures);
        }
        let name = match point.payload {
            8 => format!("{}-cap64", point.queue),
            payload => format!("{}-cap64-{payload}B", point.queue),
        };
        row.set(&POINT, name)
            .set(&STATUS, if is_clean { COMPLETE } else { INCOMPLETE })
            .set(&FAILURE, (!is_clean).then_some("as a test wants it"));
        row
    };
    let runs: Vec<Record> = rounds.iter().enumerate().map(round).collect();
    (over_rounds(&columns::SCHEMA, &runs), runs)
}

fn clean(queue: &str, rounds: &[i64]) -> (Record, Vec<Record>) {
    measured(&made_up::point(queue), rounds, Some(Outcome::Clean))
}

fn shown(points: Vec<(Record, Vec<Record>)>, width: Option<usize>) -> String {
    let (summary, runs): (Vec<Record>, Vec<Vec<Record>>) = points.into_iter().unzip();
    tables(&Shown {
        folder: std::path::Path::new(""),
        summary: &summary,
        runs: &runs.concat(),
        details: &[],
        width,
        brief: false,
        sorted: false,
    })
}

#[test]
fn a_broken_queue_and_two_modes_are_marked() {
    let failed = |queue: &str, last| measured(&made_up::point(queue), &[40, 41], last);
    let text = shown(
        vec![
            clean("good", &[40, 40, 42, 42]),
            clean("split", &[40, 41, 90, 91]),
            failed("bad", Some(Outcome::Wrong)),
            failed("slow", Some(Outcome::GaveUp)),
            failed("coarse", Some(Outcome::Unjudged)),
            failed("gone", None),
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
    assert!(text.contains("By these figures: split-cap64 ("));
    // A queue that is wrong has no figures, also none of a round in which it was not.
    assert!(!line("bad").contains('.'), "{text}");
    assert!(line("good").contains("24.40"), "{text}");
}

fn at_a_rate(queue: &str, rounds: &[i64], missed: u64) -> (Record, Vec<Record>) {
    ended_at_a_rate(queue, rounds, Outcome::Clean, missed)
}

fn ended_at_a_rate(
    queue: &str,
    rounds: &[i64],
    outcome: Outcome,
    missed: u64,
) -> (Record, Vec<Record>) {
    let mut point = made_up::point(queue);
    point.sender.load = Load::ConstantRate { rate_per_s: 1e6 };
    late(&point, rounds, Some(outcome), missed)
}

fn around(ns: i64) -> Vec<i64> {
    (0..9).map(|round| ns + round * 4 % 9).collect()
}

/// The lines of the ranking: places, names and the places that are not told apart.
fn ranking(text: &str) -> Vec<Vec<&str>> {
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("ranks by"));
    let rows = lines.skip_while(|line| !line.starts_with("---")).skip(1);
    rows.take_while(|line| !line.starts_with("rank:"))
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn latencies_of_queues_that_kept_the_load_are_ranked() {
    let text = shown(
        vec![
            at_a_rate("slow", &around(90), 0),
            // 5 % of the 100 000 elements of a round are 5000.
            at_a_rate("fast", &around(10), 5001),
            at_a_rate("fair", &around(40), 5000),
            at_a_rate("alike", &around(41), 0),
        ],
        None,
    );
    assert!(text.contains("ranks by median latency\n"), "{text}");
    let rows = ranking(&text);
    let expected = [
        ["1", "fair", "-", "2"],
        ["2", "alike", "424", "1"],
        ["3", "slow", "-", "-"],
    ];
    assert_eq!(rows.len(), expected.len(), "{text}");
    for (row, [place, queue, from_first, alike]) in rows.iter().zip(expected) {
        assert_eq!(row[0], place, "{text}");
        assert_eq!(row[1], queue, "{text}");
        assert_eq!(row[3], from_first, "{text}");
        assert_eq!(row[4..].join(" "), alike.to_owned(), "{text}");
    }
    text.replace("\n  ", " ").has(&[
        "the first is not decided: fair is not distinguished from alike (3 pairs",
        "Not ranked: fast (load missed).",
    ]);
    let marked = |line: &str| line.starts_with("fast") && line.ends_with("load missed");
    assert!(text.lines().any(marked), "{text}");
    let none = [("a", 9000), ("b", 9000)].map(|(queue, late)| at_a_rate(queue, &[40; 6], late));
    let none = shown(none.into(), None);
    none.has(&["none of these 2 rows kept the requested load"]);
    let one = [("a", 9000), ("b", 0)].map(|(queue, late)| at_a_rate(queue, &[40; 6], late));
    let one = shown(one.into(), None);
    one.has(&["only one of these 2 rows kept the requested load"]);
    // A queue that is broken did not just miss the load.
    let broken = [("a", Outcome::Wrong), ("b", Outcome::Clean)]
        .map(|(queue, outcome)| ended_at_a_rate(queue, &[40; 6], outcome, 9000));
    let broken = shown(broken.into(), None);
    broken.has(&["fewer than two queues to compare. Not ranked: a (BROKEN)"]);
}

#[test]
fn rates_are_ranked_without_a_load_each_kind_of_point_by_itself() {
    let sized = |queue: &str, payload, ns| {
        let point = Point {
            payload,
            ..made_up::point(queue)
        };
        measured(&point, &around(ns), Some(Outcome::Clean))
    };
    let text = shown(
        vec![
            sized("lamport", 8, 400),
            sized("lamport", 64, 800),
            sized("baton", 8, 200),
            sized("baton", 64, 900),
            measured(&made_up::point("ffq"), &around(100), Some(Outcome::Wrong)),
        ],
        None,
    );
    let firsts = |size: &str| {
        let group = text
            .split(&format!("ranks by throughput, size {size}\n"))
            .nth(1)
            .unwrap();
        group.split("ranks by").next().unwrap()
    };
    firsts("8").has(&["rank: baton is first, and distinguished from all others"]);
    assert!(firsts("8").contains("Not ranked: ffq (BROKEN)"), "{text}");
    assert!(firsts("64").contains("rank: lamport is first"), "{text}");
    assert!(!firsts("64").contains("ffq"), "{text}");
}

#[test]
fn too_few_rounds_and_a_single_queue_and_a_curve_are_not_ranked() {
    let text = shown(vec![clean("a", &[40; 3]), clean("b", &[900; 3])], None);
    text.has(&["3 rounds are too few for 1 pair by"]);
    assert_eq!(
        ranking(&text)
            .iter()
            .map(|row| row[3..].join(" "))
            .collect::<Vec<_>>(),
        ["- 2", "4 1"]
    );
    assert!(!shown(vec![clean("a", &[40; 9])], None).contains("rank"));
    let on_a_curve = |queue: &str| Point {
        percent_of_saturation: Some(50),
        ..made_up::point(queue)
    };
    let points =
        ["a", "b"].map(|queue| measured(&on_a_curve(queue), &[40; 9], Some(Outcome::Clean)));
    let text = shown(points.into(), None);
    assert!(!text.contains("rank"), "{text}");
}

#[test]
fn each_block_of_a_folded_table_says_which_operation_a_line_is_of() {
    let text = shown(vec![clean("lamport", &[40_000; 6])], Some(80));
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let details = text.split("through").next().unwrap();
    let count = |word: &str| details.lines().filter(|line| line.contains(word)).count();
    assert!(count("operation") > 1, "{text}");
    assert_eq!(count("dequeue"), count("operation"), "{text}");
}

/// The rows of a run whose clock has no fences, as a run records them.
fn without_fences((summary, runs): (Record, Vec<Record>)) -> (Record, Vec<Record>) {
    let change = |mut row: Record| {
        row.replace(&columns::CLOCK, "tsc-unfenced");
        let latency = &columns::OPERATIONS[2];
        let floors = [latency.floor_min, latency.floor_p50];
        for column in latency.columns.iter().chain(&floors) {
            row.replace(column, None::<f64>);
        }
        row
    };
    (change(summary), runs.into_iter().map(change).collect())
}

#[test]
fn stamps_without_fences_have_no_latency_and_rank_by_both_operations() {
    let unpaced = without_fences(clean("lamport", &[40; 6]));
    let text = shown(vec![unpaced], None);
    text.has(&["enqueue", "dequeue"]);
    text.lacks(&["latency", "in queue", "depth"]);
    let rows = [("slow", 90), ("fast", 40)];
    let rows = rows.map(|(name, ns)| without_fences(at_a_rate(name, &around(ns), 0)));
    let text = shown(rows.into(), None);
    text.has(&["ranks by median enqueue", "ranks by median dequeue"]);
    assert_eq!(text.matches("rank: fast is first").count(), 2, "{text}");
    text.lacks(&["latency"]);
}

#[test]
fn a_queue_that_is_one_of_several_shows_which_and_is_ranked_with_the_others() {
    let text = shown(
        vec![clean("baton", &around(40)), clean("lamport", &around(90))],
        None,
    );
    text.has(&["queue is", "baton-", "rank: baton is first"]);
}

#[test]
fn means_of_batches_are_called_so() {
    let (summary, runs) = clean("lamport", &[40]);
    let change = |mut row: Record| {
        row.replace(&columns::PER_STAMP, 8_u64)
            .replace(&columns::ENQUEUE_EACH, 12.34)
            .replace(&columns::ENQUEUES_BATCHED, 56.7);
        row
    };
    let runs = runs.into_iter().map(change).collect();
    let text = shown(vec![(change(summary), runs)], None);
    let (batches, percent) = ("enqueue batch mean", "% in batches");
    text.has(&[batches, "median ns", percent, "12.34", "56.7"]);
    text.lacks(&["each enqueue"]);
}

#[cfg(feature = "competitors")]
#[test]
fn queues_for_many_threads_are_marked_in_the_tables() {
    let text = shown(vec![clean("lamport", &[40]), clean("flume", &[40])], None);
    for (name, ends) in [("lamport", " spsc "), ("flume", " mpmc ")] {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        assert!(lines.all(|line| line.contains(ends)), "{text}");
    }
}

#[test]
fn a_table_that_is_left_out_is_told_of() {
    let point = || clean("lamport", &[40]);
    let is_told = |text: String| text.contains("summary.csv");
    assert!(!is_told(shown(vec![point(); 8], None)));
    assert!(is_told(shown(vec![point(); 9], None)));
    let on_a_curve = Point {
        percent_of_saturation: Some(50),
        ..made_up::point("lamport")
    };
    let text = shown(
        vec![measured(&on_a_curve, &[40], Some(Outcome::Clean))],
        None,
    );
    assert!(text.contains(" 50 % ="), "{text}");
    assert!(is_told(text));
}

#[test]
fn a_throughput_is_never_shown_as_nothing() {
    for (fast, slow, expected) in [
        (40, 5_000, ["M/s", "25.00..25.00", "0.20..0.20"]),
        (40, 500_000, ["k/s", "25000.00..25000.00", "2.00..2.00"]),
        (
            1_000_000,
            100_000_000,
            ["/s", "1000.00..1000.00", "10.00..10.00"],
        ),
    ] {
        let text = shown(vec![clean("a", &[fast; 6]), clean("b", &[slow; 6])], None);
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn rows_of_several_threads_tell_their_shares_and_who_was_starved() {
    let point = |queue: &str| Point {
        wiring: Some(Wiring::new(Scenario::RoundRobin, 2, 3)),
        ..made_up::point(queue)
    };
    let shared = |queue: &str, least: f64| {
        let (_, mut runs) = measured(&point(queue), &[40, 40], Some(Outcome::Clean));
        for (run, least) in runs.iter_mut().zip([80.0, least]) {
            run.replace(&columns::FAIRNESS_PRODUCERS, 0.987)
                .replace(&columns::FAIRNESS_CONSUMERS, 1.0)
                .replace(&columns::LEAST_PRODUCER, least)
                .replace(&columns::LEAST_CONSUMER, 99.0)
                .replace(&columns::STARVED, u64::from(least < 10.0));
        }
        (over_rounds(&columns::SCHEMA, &runs), runs)
    };
    let text = shown(vec![shared("fair", 12.5), shared("greedy", 9.9)], None);
    text.has(&["round-robin", "2 to 3", "0.987", "least %"]);
    let line = |name: &str| text.lines().rfind(|line| line.starts_with(name)).unwrap();
    // In the worst of its rounds.
    line("greedy").has(&["9.9", "UNFAIR"]);
    line("fair").has(&["12.5"]);
    line("fair").lacks(&["UNFAIR"]);
    text.lacks(&["depth", "CPUs"]);
}
