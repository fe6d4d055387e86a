//! Rows as they would be in `runs.csv`, of layers that take a planted time.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::arguments::conditions::conditions;
use crate::results::finding::kinds::RATE_NOT_FOUND;
use crate::results::schema::{ROUND, STATUS, hca, node, queue};
use crate::rig::benchmark::{PlannedPoint, PlannedRow};
use crate::stats::rate_search::candidates;
use crate::testing::{Has as _, Noise, Refused as _};

const TYPES: [&str; 2] = ["udp", "tcp"];

fn asked(text: &str) -> Conditions {
    conditions(text).unwrap()
}

/// A point for each of these types and rates; the steps follow from the rate.
fn plan_of(types: &[&str], rates: &[f64]) -> Plan {
    let both = types
        .iter()
        .flat_map(|it| rates.iter().map(move |rate| (it, rate)));
    let points = both.enumerate().map(|(index, (kind, rate))| {
        let mut settings = Record::new();
        settings
            .set(&node::TYPE, *kind)
            .set(&node::RATE, *rate)
            .set(&node::STEPS, *rate as u64);
        PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: format!("{kind}-{rate}"),
                settings,
            }],
            // As with a number of samples, the slowest takes the longest time.
            time: Duration::from_secs_f64(1e4 / rate),
            bytes: *rate as u64,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        }
    });
    Plan {
        points: points.collect(),
        left_out: Vec::new(),
    }
}

fn searches(text: &str, plan: &Plan) -> Searches {
    Searches::new(&asked(text), &node::SCHEMA, None, plan).unwrap()
}

fn rows_of(plan: &Plan) -> Vec<Vec<Row>> {
    let points = plan.points.iter();
    points
        .map(|point| point.rows.iter().cloned().map(Row::new).collect())
        .collect()
}

/// What a round at a rate shows: the 99th percentile in nanoseconds, the share that arrived, and what was sent.
struct Shown {
    p99: f64,
    arrived: f64,
    sent: f64,
}

/// A whole round with a publisher.
fn run(round: u32, of: &Shown) -> Record {
    run_of(round, of, "complete", 1)
}

fn run_of(round: u32, of: &Shown, status: &str, publishers: u64) -> Record {
    let mut run = Record::new();
    run.set(&STATUS, status)
        .set(&ROUND, round)
        .set(&node::EXPECTED, 100_000_u64)
        .set(&node::RECEIVED, (of.arrived * 100_000.0).round() as u64)
        .set(&node::SEND_RATE, of.sent)
        .set(&node::PUBLISHERS, publishers)
        .set(&node::intended::P99, of.p99)
        .set(&node::intended::P999, 2.0 * of.p99);
    run
}

/// Measures to the end; which points, in this order.
fn measured(
    searches: &Searches,
    plan: &Plan,
    rows: &mut [Vec<Row>],
    rounds: std::ops::Range<u32>,
    mut show: impl FnMut(&str, f64) -> Shown,
) -> Vec<(u32, usize)> {
    let mut measured = Vec::new();
    let order: Vec<usize> = (0..searches.count()).collect();
    for round in rounds {
        let missing = searches.missing(&order, round, rows);
        let was_measured = |row: &Row| row.done.contains(&round);
        if missing.is_empty() && !rows.iter().flatten().any(was_measured) {
            break;
        }
        for (_, point) in missing {
            let settings = &plan.points[point].rows[0].settings;
            let rate = settings.number(node::RATE.name).unwrap();
            let shown = show(&settings.text(&node::TYPE), rate);
            rows[point][0].take(&node::SCHEMA, [run(round, &shown)]);
            measured.push((round, point));
        }
    }
    measured
}

/// A layer that carries this much, and is late by 1/(capacity - rate): a queue of one server.
fn of_capacity(capacity: f64, rate: f64) -> Shown {
    Shown {
        p99: match rate < capacity {
            true => 1e9 / (capacity - rate),
            false => 1e9,
        },
        arrived: 1.0,
        sent: rate.min(capacity),
    }
}

#[test]
fn each_type_is_a_search_whose_answers_are_the_planted_ones() {
    let rates = candidates(100.0, 1e5);
    let plan = plan_of(&TYPES, &rates);
    let searches = searches("p99<1ms,loss<1%", &plan);
    assert_eq!((searches.count(), searches.most_rounds()), (2, 40));
    let mut rows = rows_of(&plan);
    // 1 ms is the latency at 1000 a second less than the capacity.
    let capacity = |kind: &str| if kind == TYPES[0] { 20_000.0 } else { 51_000.0 };
    measured(&searches, &plan, &mut rows, 0..2000, |kind, rate| {
        of_capacity(capacity(kind), rate)
    });
    let found = searches.found(&rows);
    for (kind, found) in TYPES.iter().zip(&found) {
        let truth = capacity(kind) - 1000.0;
        let rate = found.document["rate_per_s"].as_f64().unwrap();
        assert!(rate < truth && rate > 0.98 * truth, "{kind}: {rate}");
        assert_eq!(found.document["of"], format!("type {kind}"));
        assert_eq!(found.at.as_deref(), Some(&*format!("{kind}-{rate}")));
        assert_eq!(found.finding(), None);
        let text = found.document["text"].as_str().unwrap();
        text.has(&[
            &format!(
                "highest rate of type {kind} with p99<1ms,loss<1%: {}",
                units::rate(rate)
            ),
            "holds at",
            "fails at",
            "loss 0 %",
            "rate missed by 0 %",
        ]);
    }
}

#[test]
fn a_search_that_goes_on_finds_what_it_would_have_found() {
    let plan = plan_of(&TYPES, &candidates(100.0, 1e5));
    let searches = searches("p99<1ms", &plan);
    let noisy = |seed| {
        let mut noise = Noise::new(seed);
        move |_: &str, rate: f64| {
            let mut shown = of_capacity(30_000.0, rate);
            shown.p99 *= (0.1 * noise.normal()).exp();
            shown
        }
    };
    let mut rows = rows_of(&plan);
    let all = measured(&searches, &plan, &mut rows, 0..2000, noisy(1));
    let found = searches.found(&rows);
    let last = all.last().unwrap().0;
    for end in [1, 6, 7, 20, last] {
        let mut show = noisy(1);
        let mut rows = rows_of(&plan);
        let first = measured(&searches, &plan, &mut rows, 0..end, &mut show);
        assert!(
            searches
                .found(&rows)
                .iter()
                .any(|it| it.finding().is_some())
        );
        // As they are read back.
        let mut again = rows_of(&plan);
        for (row, before) in again.iter_mut().flatten().zip(rows.iter().flatten()) {
            row.take(&node::SCHEMA, before.runs.clone());
        }
        let then = measured(&searches, &plan, &mut again, 0..2000, &mut show);
        assert_eq!([first, then].concat(), all, "ended at {end}");
        assert_eq!(searches.found(&again), found, "ended at {end}");
    }
}

#[test]
fn a_round_that_was_begun_is_completed_for_the_searches_that_lack_it() {
    let plan = plan_of(&TYPES, &candidates(100.0, 1e5));
    let searches = searches("p99<1ms", &plan);
    let mut rows = rows_of(&plan);
    let [(0, first), (1, second)] = searches.missing(&[0, 1], 0, &rows)[..] else {
        panic!("a point of each search");
    };
    rows[first][0].take(&node::SCHEMA, [run(0, &of_capacity(1e4, 100.0))]);
    assert_eq!(searches.missing(&[0, 1], 0, &rows), [(1, second)]);
    // In the order of the round.
    assert_eq!(
        searches.missing(&[1, 0], 1, &rows),
        [(0, second), (1, first)]
    );
}

#[test]
fn a_rate_whose_rounds_fail_is_one_that_fails_once_another_was_measured() {
    let plan = plan_of(&["udp"], &candidates(100.0, 1e5));
    let searches = searches("p99<1ms", &plan);
    let mut rows = rows_of(&plan);
    assert!(!searches.has_measured_beside(0, &rows));
    for round in 0..2000 {
        for (_, point) in searches.missing(&[0], round, &rows) {
            let settings = &plan.points[point].rows[0].settings;
            let rate = settings.number(node::RATE.name).unwrap();
            let status = if rate < 5e3 { "complete" } else { "incomplete" };
            let run = run_of(round, &of_capacity(1e9, rate), status, 1);
            rows[point][0].take(&node::SCHEMA, [run]);
            assert!(searches.has_measured_beside(0, &rows));
        }
    }
    let [found] = &searches.found(&rows)[..] else {
        panic!("a search");
    };
    let rate = found.document["rate_per_s"].as_f64().unwrap();
    assert!((4.7e3..5e3).contains(&rate), "{rate}");
    let text = found.document["text"].as_str().unwrap();
    text.has(&["p99 without end", "6 rounds failed"]);
    let failing = searches.failing(&rows);
    assert!(!failing.contains(&format!("udp-{rate}")) && failing.len() >= 2);
}

#[test]
fn a_point_that_fails_ends_its_search_alone() {
    let plan = plan_of(&TYPES, &candidates(100.0, 1e5));
    let searches = searches("p99<1ms", &plan);
    let mut rows = rows_of(&plan);
    rows[0][0].failure = Some("no socket".to_owned());
    let only_tcp = measured(&searches, &plan, &mut rows, 0..2000, |_, rate| {
        of_capacity(2e4, rate)
    });
    assert!(
        only_tcp
            .iter()
            .all(|(_, point)| *point >= plan.points.len() / 2)
    );
    let [udp, tcp] = &searches.found(&rows)[..] else {
        panic!("two searches");
    };
    assert_eq!(tcp.finding(), None);
    let finding = udp.finding().unwrap();
    assert_eq!(finding.kind, RATE_NOT_FOUND.id);
    let text = udp.document["text"].as_str().unwrap();
    text.has(&[
        "of type udp with p99<1ms: not found",
        "a rate could not be measured",
    ]);
    assert_eq!(udp.document["rate_per_s"], Value::Null);
}

#[test]
fn what_was_lost_or_not_sent_makes_a_rate_fail() {
    let plan = plan_of(&["udp"], &[1e3]);
    let figures = |text: &str, of: &Shown, publishers: u64| {
        let run = run_of(0, of, "complete", publishers);
        searches(text, &plan).figures(1e3, &run)
    };
    let of = |arrived, sent| Shown {
        p99: 5e3,
        arrived,
        sent,
    };
    let close = |found: Vec<f64>, expected: &[f64]| {
        let mut both = found.iter().zip(expected);
        let is_close = both.all(|(one, other)| one == other || (one - other).abs() < 1e-6);
        assert!(
            is_close && found.len() == expected.len(),
            "{found:?} {expected:?}"
        );
    };
    let text = "p99<1ms,loss<2%";
    close(figures(text, &of(1.0, 1e3), 1), &[5e3, 0.0, 0.0]);
    // 99 % of what was due are 99.497 % of what arrived: between p99, 5 us, and p99.9, 10 us.
    let way = -(100.0_f64 - 99.0 / 0.995).log10();
    close(
        figures(text, &of(0.995, 980.0), 1),
        &[5e3 + 5e3 * way, 0.005, 0.02],
    );
    // More was lost than lies above the percentile.
    close(
        figures(text, &of(0.989, 1e3), 1),
        &[f64::INFINITY, 0.011, 0.0],
    );
    close(
        figures(text, &of(0.985, 1e3), 1),
        &[f64::INFINITY, 0.015, 0.0],
    );
    // Each publisher sends at the rate.
    close(figures(text, &of(1.0, 3e3), 3), &[5e3, 0.0, 0.0]);
    close(figures(text, &of(1.0, 1e3), 2), &[5e3, 0.0, 0.5]);
    // What is not known is no better than the worst.
    let nothing = searches(text, &plan).figures(1e3, &Record::new());
    close(nothing, &[f64::INFINITY, f64::INFINITY, 1.0]);
}

#[test]
fn all_that_is_not_found_is_reported_with_its_reason_and_both_bounds() {
    let plan = plan_of(&["udp"], &candidates(100.0, 1e4));
    let searches = searches("p99<1ms", &plan);
    let told = |show: &mut dyn FnMut(&str, f64) -> Shown, rounds| {
        let mut rows = rows_of(&plan);
        measured(&searches, &plan, &mut rows, 0..rounds, show);
        let [found] = &searches.found(&rows)[..] else {
            panic!("a search");
        };
        assert!(found.finding().is_some());
        assert_eq!(found.document["found"], false);
        found.document["text"].as_str().unwrap().to_owned()
    };
    told(&mut |_, rate| of_capacity(1e6, rate), 2000).has(&[
        "not found up to 10.0 k/s: the greatest rate holds: raise the greatest --rate",
        "holds at 10.0 k/s",
    ]);
    told(&mut |_, rate| of_capacity(1000.0, rate), 2000)
        .has(&["not found between 100 /s and 10.0 k/s: no rate that was measured holds"]);
    told(&mut |_, rate| of_capacity(5000.0, rate), 3)
        .has(&["not found", "the search was not measured to its end"]);
    let mut noise = Noise::new(5);
    let mut wild = |_: &str, rate: f64| Shown {
        p99: 1e6 * (rate / 2000.0).sqrt() * (2.0 * noise.normal()).exp(),
        arrived: 1.0,
        sent: rate,
    };
    told(&mut wild, 4000).has(&["not found", "rounds differ too much: raise --rounds"]);
}

#[test]
fn what_no_figure_answers_and_too_few_rounds_are_refused() {
    let plan = plan_of(&["udp"], &[1e3]);
    let new = |text, schema, rounds| Searches::new(&asked(text), schema, rounds, &plan);
    for schema in [&node::SCHEMA, &hca::SCHEMA, &queue::SCHEMA] {
        new("p99<5us", schema, None).unwrap();
        new("p99<5us", schema, Some(5)).refused(&["--rounds 5", "6 rounds", "6 or more", "for 40"]);
        assert_eq!(new("p99<5us", schema, Some(6)).unwrap().most_rounds(), 6);
    }
    new("loss<1%", &hca::SCHEMA, None).unwrap();
    let why = ["--find-rate p99<5us,loss<1%", "loses nothing", "p99<50us"];
    new("p99<5us,loss<1%", &queue::SCHEMA, None).refused(&why);
}

#[test]
fn the_most_of_a_search_is_known_beforehand() {
    let rates = candidates(100.0, 1e5);
    let plan = plan_of(&TYPES, &rates);
    let searches = searches("p99<1ms", &plan);
    assert_eq!(searches.rounds(), searches.most_rates() * 40);
    searches.in_words().has(&[
        "the highest rate with p99<1ms, from 100 /s to 100 k/s, 2 searches: at most",
        &format!("of {} rates, each in 6 to 40 rounds", rates.len()),
    ]);
    // The time of the slowest, and the bytes of the fastest.
    let costliest = searches.costliest_round(&plan);
    let [udp, tcp] = &costliest.points[..] else {
        panic!("a point of each search");
    };
    assert_eq!([udp.time, tcp.time], [Duration::from_secs(100); 2]);
    assert_eq!([udp.bytes, tcp.bytes], [100_000; 2]);
    // Far less than the dearest rate in all rounds, and what a rate leaves once counts once.
    let most = searches.bytes(&plan);
    let all = 2 * 100_000 * u64::from(searches.rounds());
    assert!(most > all / 10 && 3 * most < 2 * all, "{most} {all}");
    let mut once = plan.clone();
    for point in &mut once.points {
        point.bytes_once = point.bytes;
    }
    assert_eq!(most, 40 * searches.bytes(&once));
    // To begin with: all of it without what losses add, and a round that loses all.
    assert_eq!(searches.bytes_to_begin(&plan), most + 200_000);
    let mut lossy = plan.clone();
    for point in &mut lossy.points {
        point.bytes_of_losses = point.bytes;
    }
    assert_eq!(searches.bytes(&lossy), most);
    assert_eq!(searches.bytes_to_begin(&lossy), 200_000);
}

#[test]
fn the_figure_of_a_search_shows_its_first_percentile() {
    let plan = plan_of(&["udp"], &candidates(100.0, 1e4));
    let figure = |text: &str| {
        let searches = searches(text, &plan);
        let found = searches.found(&rows_of(&plan));
        let recorded: Value = found.into_iter().map(|it| it.document).collect();
        figure_of(&recorded, Path::new("runs/a")).unwrap()
    };
    let command =
        "figure: hcabench plot median runs/a --x rate_per_s --metric intended --percentile";
    assert_eq!(
        figure("loss<1%,p99.9<1ms,p50<5us"),
        format!("{command} p99.9 --out rates.svg\n")
    );
    assert_eq!(
        figure("loss<1%"),
        format!("{command} p99 --out rates.svg\n")
    );
    let recorded: Value = (searches("p99<1ms", &plan)
        .found(&rows_of(&plan))
        .into_iter())
    .map(|it| it.document)
    .collect();
    let quoted = figure_of(&recorded, Path::new("my runs")).unwrap();
    quoted.has(&["plot median 'my runs' --x"]);
    assert_eq!(figure_of(&Value::Null, Path::new("somewhere")), None);
}

#[test]
fn several_searches_have_a_table_with_the_highest_rate_first() {
    let search = |of: &str, holds: Option<f64>, fails: Option<f64>, found: bool| {
        let ends = [("holds", holds), ("fails", fails)];
        let probes = ends
            .iter()
            .filter_map(|(what, rate)| Some((*what, (*rate)?)));
        let probes: Vec<Value> = probes
            .map(|(what, rate)| serde_json::json!({ "is": what, "rate_per_s": rate }))
            .collect();
        serde_json::json!({ "of": of, "found": found, "probes": probes, "text": format!("{of}.\n") })
    };
    let tcp = search("type tcp", Some(2e4), Some(2.1e4), true);
    let udp = search("type udp", Some(1e5), None, false);
    let mqtt = search("type mqtt", None, Some(100.0), false);
    let text = text_of(&Value::Array(vec![tcp.clone(), mqtt, udp]), None);
    let lines: Vec<String> = (text.lines())
        .filter(|line| !line.starts_with('-'))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "search highest rate that holds lowest that fails found",
            "type udp 100 k/s - no",
            "type tcp 20.0 k/s 21.0 k/s yes",
            "type mqtt - 100 /s no",
            "",
            "type tcp.",
            "type mqtt.",
            "type udp.",
        ]
    );
    assert_eq!(text_of(&Value::Array(vec![tcp]), None), "type tcp.\n");
}
