//! What stands in the files: rows of the summary and of single runs, and the document of settings. Each column's name
//! ends in its unit, unless it is a count or a word.

use serde_json::{Value, json};

use super::list::{ends_in_words, origin_in_words};
use crate::bench::queue::config::{Config, Measure};
use crate::bench::queue::counters::Counts;
use crate::bench::queue::floor::{Floor, Floors};
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::{LeftOut, Point};
use crate::bench::queue::result::{
    OverRuns, PerEnd, PointResult, RunResult, Times, over_runs, over_times,
};
use crate::pacing::{EndLoad, Load};
use crate::queues::registry;
use crate::results::{Cell, Record};
use crate::stats::{Summary, TwoModes};
use crate::time::AnyClock;

/// What is measured of an operation, under this name in the columns.
pub struct Figure {
    /// What the columns begin with.
    pub column: &'static str,
    /// What the tables call it.
    pub title: &'static str,
    /// Where it stands in the times of a run.
    pub of: fn(&Times) -> Option<&Summary>,
    /// What the loops measure of it without a queue.
    pub floor: fn(&Floors) -> Option<Floor>,
}

/// What is measured of each element, in the order of the columns.
pub const FIGURES: [Figure; 4] = [
    Figure {
        column: "enqueue",
        title: "enqueue",
        of: |times| Some(&times.enqueue),
        floor: |floors| Some(floors.enqueue),
    },
    Figure {
        column: "dequeue",
        title: "dequeue",
        of: |times| Some(&times.dequeue),
        floor: |floors| Some(floors.dequeue),
    },
    Figure {
        column: "latency",
        title: "latency",
        of: |times| Some(&times.latency),
        floor: |floors| floors.latency,
    },
    Figure {
        column: "intended_latency",
        title: "from intended",
        of: |times| times.intended.as_ref(),
        floor: |floors| floors.intended,
    },
];

/// A percentile: its name in the columns, and where it stands in a summary.
pub type Percentile = (&'static str, fn(&Summary) -> f64);

/// The percentiles, in the order of the columns.
pub const PERCENTILES: [Percentile; 5] = [
    ("p50", |summary| summary.p50_ns),
    ("p90", |summary| summary.p90_ns),
    ("p99", |summary| summary.p99_ns),
    ("p999", |summary| summary.p999_ns),
    ("p9999", |summary| summary.p9999_ns),
];

fn load_name(load: &Load) -> &'static str {
    match load {
        Load::None => "none",
        Load::ConstantWait { .. } => "constant-wait",
        Load::ConstantRate { .. } => "constant-rate",
        Load::Bursty { .. } => "bursty",
    }
}

fn add_load(record: &mut Record, prefix: &str, end: &EndLoad) {
    let (rate, wait, burst) = match end.load {
        Load::None => (None, None, None),
        Load::ConstantWait { wait_ns } => (None, Some(wait_ns), None),
        Load::ConstantRate { rate_per_s } => (Some(rate_per_s), None, None),
        Load::Bursty { wait_ns, burst } => (None, Some(wait_ns), Some(u64::from(burst))),
    };
    record
        .text(format!("{prefix}load"), load_name(&end.load))
        .decimal(format!("{prefix}rate_per_s"), rate, 3)
        .decimal(format!("{prefix}wait_ns"), wait, 0)
        .count(format!("{prefix}burst"), burst)
        .decimal(format!("{prefix}jitter_percent"), end.jitter_percent(), 2);
}

/// The settings of a point as cells.
pub fn point_record(point: &Point, config: &Config) -> Record {
    let entry = registry::entries()
        .iter()
        .find(|entry| entry.name == point.queue);
    let mut record = Record::new();
    record
        .text("queue", point.queue.as_str())
        .text("ends", entry.map_or("", |entry| ends_in_words(entry.ends)))
        .text(
            "written",
            entry.map_or("", |entry| origin_in_words(entry.origin)),
        )
        .count("capacity", point.capacity as u64)
        .count("payload_bytes", point.payload as u64);
    add_load(&mut record, "", &point.sender);
    add_load(&mut record, "receiver_", &point.receiver);
    record
        .count(
            "percent_of_saturation",
            point.percent_of_saturation.map(u64::from),
        )
        .text("cores", point.cpus.cores.map_or("", |cores| cores.name()))
        .count("sender_cpu", point.cpus.sender as u64)
        .count("receiver_cpu", point.cpus.receiver as u64)
        .text("measure", config.measure.name())
        .flag("measure_failed", config.measure_failed)
        .text("clock", config.clock.name())
        .count("count", config.count)
        .count("warmup", config.warmup);
    record
}

fn modes_in_words(modes: Option<TwoModes>, decimals: usize) -> String {
    modes.map_or_else(String::new, |modes| {
        format!(
            "{} runs at {:.decimals$}, {} at {:.decimals$}",
            modes.low_runs, modes.low, modes.high_runs, modes.high
        )
    })
}

fn add_over_runs(record: &mut Record, name: &str, unit: &str, found: Option<OverRuns>) {
    let interval = found.and_then(|found| found.interval);
    record
        .decimal(format!("{name}_{unit}"), found.map(|found| found.median), 1)
        .decimal(
            format!("{name}_low_{unit}"),
            interval.map(|(low, _)| low),
            1,
        )
        .decimal(
            format!("{name}_high_{unit}"),
            interval.map(|(_, high)| high),
            1,
        )
        .text(
            format!("{name}_two_modes"),
            modes_in_words(found.and_then(|found| found.modes), 1),
        );
}

/// The figures of some runs, one or all of a point, all empty without any: extremes of all of them, sums of page faults, and
/// medians over the runs of everything else.
pub fn add_figures(record: &mut Record, runs: &[RunResult]) {
    let times = || runs.iter().filter_map(|run| run.times.as_ref());
    for figure in &FIGURES {
        let of = figure.of;
        let name = figure.column;
        let lowest = times().filter_map(|times| Some(of(times)?.min_ns)).min();
        let highest = times().filter_map(|times| Some(of(times)?.max_ns)).max();
        let median = |value: fn(&Summary) -> f64| over_times(runs, |times| of(times).map(value));
        // Beside a figure that there is.
        let (floor_min, floor_p50) = floor_over_runs(runs, figure);
        let is_there = lowest.is_some();
        record
            .nanos(
                format!("{name}_floor_min_ns"),
                floor_min.filter(|_| is_there),
            )
            .decimal(
                format!("{name}_floor_p50_ns"),
                floor_p50.filter(|_| is_there),
                1,
            )
            .nanos(format!("{name}_min_ns"), lowest);
        for (percentile, value) in &PERCENTILES {
            add_over_runs(
                record,
                &format!("{name}_{percentile}"),
                "ns",
                median(*value),
            );
        }
        let mean = median(|summary| summary.mean_ns).map(|found| found.median);
        record
            .nanos(format!("{name}_max_ns"), highest)
            .decimal(format!("{name}_mean_ns"), mean, 1);
    }
    let throughput = over_runs(runs, |run| run.throughput_per_s);
    add_over_runs(record, "throughput", "per_s", throughput);
    let sum = |count: fn(&RunResult) -> u64| -> Option<u64> {
        (!runs.is_empty()).then(|| runs.iter().map(count).sum())
    };
    let count = |count: fn(&RunResult) -> u64| median_count(runs, count);
    let median = |value: fn(&RunResult) -> f64| {
        over_runs(runs, |run| Some(value(run))).map(|found| found.median)
    };
    let depth_mean = over_times(runs, |times| Some(times.depth.mean)).map(|found| found.median);
    record
        .decimal("depth_mean", depth_mean, 2)
        .count("depth_max", times().map(|times| times.depth.max).max())
        .count("handed_over_enqueues", count(|run| run.handed_over))
        .count("failed_enqueues", count(|run| run.failed.sender))
        .count("failed_dequeues", count(|run| run.failed.receiver))
        .count("missed_enqueues", count(|run| run.missed.sender))
        .count("missed_dequeues", count(|run| run.missed.receiver))
        .decimal("sender_stamp_ns", median(|run| run.stamp.sender.cost_ns), 1)
        .decimal(
            "receiver_stamp_ns",
            median(|run| run.stamp.receiver.cost_ns),
            1,
        )
        .decimal(
            "clock_resolution_ns",
            over_runs(runs, |run| run.stamp.sender.resolution_ns).map(|found| found.median),
            2,
        )
        .count(
            "sender_page_faults",
            sum(|run| run.page_faults.sender.total()),
        )
        .count(
            "receiver_page_faults",
            sum(|run| run.page_faults.receiver.total()),
        );
    add_counters(record, runs);
}

/// The floor of a figure over some runs: the lowest of all of them, and the median of their medians.
pub fn floor_over_runs(runs: &[RunResult], figure: &Figure) -> (Option<i64>, Option<f64>) {
    let of = |run: &RunResult| (figure.floor)(run.floors.as_ref()?);
    let lowest = runs.iter().filter_map(|run| Some(of(run)?.min_ns)).min();
    let median = over_runs(runs, |run| Some(of(run)?.p50_ns));
    (lowest, median.map(|found| found.median))
}

/// A count of each run: the median over them, to the next whole number.
pub fn median_count(runs: &[RunResult], count: fn(&RunResult) -> u64) -> Option<u64> {
    let found = over_runs(runs, |run| Some(count(run) as f64))?;
    Some(found.median.round() as u64)
}

/// What was wrong with the elements of some runs.
fn add_faults(record: &mut Record, runs: &[RunResult]) {
    let sum = |count: fn(&RunResult) -> u64| -> u64 { runs.iter().map(count).sum() };
    record
        .count("elements_lost", sum(|run| run.verdict.lost))
        .count("elements_duplicated", sum(|run| run.verdict.duplicated))
        .count("elements_reordered", sum(|run| run.verdict.reordered))
        .count("elements_invented", sum(|run| run.verdict.invented))
        .count("elements_damaged", sum(|run| run.verdict.damaged))
        .count("elements_belated", sum(|run| run.verdict.belated));
}

/// The processor's counters, for one element at each end.
fn add_counters(record: &mut Record, runs: &[RunResult]) {
    type Of<T, R> = fn(&T) -> R;
    let ends: [(&str, Of<PerEnd<Counts>, Counts>); 2] = [
        ("sender", |ends| ends.sender),
        ("receiver", |ends| ends.receiver),
    ];
    let counters: [(&str, Of<Counts, u64>); 4] = [
        ("cycles", |counts| counts.cycles),
        ("instructions", |counts| counts.instructions),
        ("cache_misses", |counts| counts.cache_misses),
        ("branch_misses", |counts| counts.branch_misses),
    ];
    for (end, counts_of) in ends {
        for (counter, value) in counters {
            let per_element = over_runs(runs, |run| {
                let counts = counts_of(run.counters.as_ref()?);
                Some(value(&counts) as f64 / run.elements.max(1) as f64)
            });
            record.decimal(
                format!("{end}_{counter}_per_element"),
                per_element.map(|found| found.median),
                3,
            );
        }
    }
}

/// A row of `summary.csv`.
pub fn summary_record(result: &PointResult, config: &Config) -> Record {
    let mut record = point_record(&result.point, config);
    record
        .decimal("saturation_per_s", result.saturation_per_s, 1)
        .text("status", status(result))
        .text("failure", result.failure.clone().unwrap_or_default())
        .count("runs", result.runs.len() as u64);
    add_figures(&mut record, result.figures());
    add_faults(&mut record, &result.runs);
    record
}

/// A row of `runs.csv`.
pub fn run_record(number: usize, run: &RunResult) -> Record {
    let mut record = Record::new();
    record
        .count("run", number as u64)
        .text("outcome", outcome_in_words(run.outcome));
    let run = std::slice::from_ref(run);
    let is_clean = run[0].outcome == Outcome::Clean;
    add_figures(&mut record, if is_clean { run } else { &[] });
    add_faults(&mut record, run);
    record
}

/// A row of `left_out.csv`.
pub fn left_out_record(left_out: &LeftOut) -> Record {
    let mut record = Record::new();
    record
        .text("queue", left_out.queue.as_deref().unwrap_or("all"))
        .push(
            "capacity",
            left_out
                .capacity
                .map_or(Cell::Empty, |capacity| Cell::Integer(capacity as i128)),
        )
        .text("cores", left_out.cores.map_or("", |cores| cores.name()))
        .text("reason", left_out.reason.as_str());
    record
}

/// How a run went, as the files have it.
const fn outcome_in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Clean => "clean",
        Outcome::Wrong => "wrong",
        Outcome::GaveUp => "gave-up",
        Outcome::Unjudged => "unjudged",
    }
}

fn status(result: &PointResult) -> &'static str {
    if result.failure.is_none() {
        "complete"
    } else {
        "incomplete"
    }
}

/// What is the same for all points of a run.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// When it began, UTC, RFC 3339.
    pub started_at: String,
    /// The machine.
    pub machine: Value,
    /// What is known of the clock.
    pub clock: Value,
}

impl RunFacts {
    /// What is known of a clock, for the document.
    pub fn of_clock(clock: &AnyClock) -> Value {
        json!({ "tsc": clock.tsc_facts() })
    }
}

/// The document `settings.json` of a point; without a result, of one that is still to be measured.
pub fn settings_document(
    point: &Point,
    config: &Config,
    facts: &RunFacts,
    result: Option<&PointResult>,
) -> Value {
    let entry = registry::entries()
        .iter()
        .find(|entry| entry.name == point.queue);
    let measures_time = config.measure == Measure::Time;
    json!({
        "hcabench": { "version": env!("CARGO_PKG_VERSION") },
        "benchmark": "queue",
        "started_at": facts.started_at,
        "status": result.map_or("incomplete", status),
        "failure": result.and_then(|result| result.failure.as_deref()),
        "point": result.map_or(point, |result| &result.point),
        "queue": entry,
        "run": config,
        "timeout_ms": config.timeout.as_secs_f64() * 1e3,
        "after_a_miss": { "sender": "catch-up", "receiver": "start-over" },
        "latency_is_from": measures_time.then_some("the first attempt to enqueue"),
        "saturation_per_s": result.and_then(|result| result.saturation_per_s),
        "placement_warnings": result.map(|result| &result.placement_warnings),
        "runs": result.map(|result| &result.runs),
        "clock": facts.clock,
        "machine": facts.machine,
    })
}
