//! What is shown of the results: two tables, and warnings with what to do about them.

use std::collections::BTreeSet;

use super::list::ends_in_words;
use super::settings::{FIGURES, PERCENTILES, floor_over_runs, median_count, summary_record};
use crate::bench::queue::config::{Config, Measure};
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::plan::Point;
use crate::bench::queue::result::{OverRuns, PointResult, RunResult, over_runs, over_times};
use crate::buffer::{HugePagePolicy, PageKind};
use crate::cli::table::{Column, Table};
use crate::pacing::{EndLoad, Load};
use crate::queues::registry;
use crate::results::{Record, units};
use crate::stats::{LatencyHistogram, resolvable};

/// More points than this are shown in one line each.
const MOST_IN_DETAIL: usize = 20;

/// One finished point, as far as the closing words need it.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its row of the summary.
    pub record: Record,
    point: Point,
    /// Those that figures are made of.
    runs: Vec<RunResult>,
    mark: Option<&'static str>,
}

impl Finished {
    /// Keeps what the closing words need of a result.
    pub fn new(result: &PointResult, config: &Config) -> Self {
        Finished {
            record: summary_record(result, config),
            point: result.point.clone(),
            runs: result.figures().to_vec(),
            mark: result.failure.is_some().then(|| match result.outcome() {
                Some(Outcome::Wrong) => "BROKEN",
                Some(Outcome::GaveUp) => "GAVE UP",
                Some(Outcome::Unjudged) => "UNJUDGED",
                Some(Outcome::Clean) | None => "FAILED",
            }),
        }
    }
}

fn setting_columns() -> Vec<Column> {
    [
        Column::text("queue"),
        Column::text("ends"),
        Column::number("capacity", ""),
        Column::number("size", "B"),
        Column::text("load"),
        Column::text("receiver"),
        Column::text("cores"),
        Column::text("CPUs"),
    ]
    .into_iter()
    .map(Column::setting)
    .collect()
}

fn load_in_words(end: &EndLoad) -> String {
    let mut text = match end.load {
        Load::None => "max".to_owned(),
        Load::ConstantWait { wait_ns } => format!("wait {}", units::duration(wait_ns)),
        Load::ConstantRate { rate_per_s } => units::rate(rate_per_s),
        Load::Bursty { wait_ns, burst } => format!("{burst} x {}", units::duration(wait_ns)),
    };
    if end.jitter > 0.0 {
        text += &format!(" +-{}%", end.jitter_percent());
    }
    text
}

fn setting_cells(point: &Point) -> Vec<String> {
    let percent = point.percent_of_saturation;
    let mut entries = registry::entries().iter();
    let entry = entries.find(|entry| entry.name == point.queue);
    vec![
        point.queue.clone(),
        entry
            .map_or("", |entry| ends_in_words(entry.ends))
            .to_owned(),
        point.capacity.to_string(),
        point.payload.to_string(),
        percent.map_or_else(
            || load_in_words(&point.sender),
            |percent| format!("{percent:>3} % = {}", load_in_words(&point.sender)),
        ),
        load_in_words(&point.receiver),
        point.cpus.cores.map_or("", |cores| cores.name()).to_owned(),
        format!("{} to {}", point.cpus.sender, point.cpus.receiver),
    ]
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| units::fixed(value, decimals))
}

fn bounds(found: Option<&OverRuns>) -> String {
    found.and_then(|found| found.interval).map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{low:.0}..{high:.0}"),
    )
}

/// A line for each operation of each point, with all percentiles; empty where no time was measured, and where there are
/// too many points to look at.
pub fn details(finished: &[Finished], width: Option<usize>) -> String {
    if finished.len() > MOST_IN_DETAIL {
        return String::new();
    }
    let mut columns = setting_columns();
    columns.push(Column::text("operation"));
    columns.push(Column::number("floor", "min ns"));
    columns.push(Column::number("", "p50 ns"));
    for title in ["min", "p50"] {
        columns.push(Column::number(title, "ns"));
    }
    columns.push(Column::number("95 % of p50", "ns"));
    for title in ["p90", "p99", "p99.9", "p99.99", "max"] {
        columns.push(Column::number(title, "ns"));
    }
    let mut table = Table::new(columns);
    for one in finished {
        for figure in &FIGURES {
            let of = figure.of;
            let summaries = || {
                let times = one.runs.iter().filter_map(|run| run.times.as_ref());
                times.filter_map(of)
            };
            if summaries().next().is_none() {
                continue;
            }
            let (floor_min, floor_p50) = floor_over_runs(&one.runs, figure);
            let over = |place: usize| {
                let (_, value) = PERCENTILES[place];
                over_times(&one.runs, |times| of(times).map(value))
            };
            let mut cells = setting_cells(&one.point);
            cells.push(figure.title.to_owned());
            cells.push(number(floor_min.map(|ns| ns as f64), 0));
            cells.push(number(floor_p50, 0));
            let lowest = summaries().map(|summary| summary.min_ns).min();
            cells.push(number(lowest.map(|ns| ns as f64), 0));
            cells.push(number(over(0).map(|found| found.median), 0));
            cells.push(bounds(over(0).as_ref()));
            cells.extend((1..5).map(|place| number(over(place).map(|found| found.median), 0)));
            let highest = summaries().map(|summary| summary.max_ns).max();
            cells.push(number(highest.map(|ns| ns as f64), 0));
            table.row(cells);
        }
        table.separator();
    }
    table.render(width)
}

/// Where the percentiles are, if there is no table of them.
pub fn note_on_details(finished: &[Finished], measure: Measure, is_curve: bool) -> Option<String> {
    let is_missing = measure == Measure::Time && (is_curve || finished.len() > MOST_IN_DETAIL);
    is_missing.then(|| {
        format!(
            "all percentiles of these {} points, with their bounds, are in summary.csv: the table of them is left out on a \
             load curve and beyond {MOST_IN_DETAIL} points",
            finished.len()
        )
    })
}

/// A line for each point.
pub fn overview(finished: &[Finished], measure: Measure, width: Option<usize>) -> String {
    let with_times = measure == Measure::Time;
    let has_schedule = finished
        .iter()
        .flat_map(|one| &one.runs)
        .filter_map(|run| run.times.as_ref())
        .any(|times| times.intended.is_some());
    let mut columns = setting_columns();
    let unit = unit_of_throughput(finished);
    columns.push(Column::number("through", unit.0));
    columns.push(Column::number("95 %", unit.0));
    if with_times {
        for title in ["enqueue", "dequeue", "latency"] {
            columns.push(Column::number(title, "p50 ns"));
        }
        columns.push(Column::number("", "p99 ns"));
        if has_schedule {
            columns.push(Column::number("intended", "p99 ns"));
        }
        columns.push(Column::number("depth", "mean"));
        columns.push(Column::number("", "max"));
    }
    if measure == Measure::Counters {
        for title in ["cycles", "instructions", "cache misses"] {
            columns.push(Column::number(title, "sender"));
            columns.push(Column::number("", "receiver"));
        }
    }
    columns.push(Column::number("failed", "enqueues"));
    columns.push(Column::number("failed", "dequeues"));
    columns.push(Column::number("late", "enqueues"));
    columns.push(Column::text("mark"));
    let mut table = Table::new(columns);
    let mut before: Option<&Point> = None;
    for one in finished {
        let is_next_step = |before: &Point| {
            before.percent_of_saturation < one.point.percent_of_saturation
                && before.queue == one.point.queue
        };
        if one.point.percent_of_saturation.is_some() && before.is_some_and(|it| !is_next_step(it)) {
            table.separator();
        }
        before = Some(&one.point);
        table.row(overview_cells(one, measure, has_schedule, unit.1));
    }
    table.render(width)
}

/// A unit in which two decimals tell something of each throughput, and what it is in elements a second.
fn unit_of_throughput(finished: &[Finished]) -> (&'static str, f64) {
    let medians = finished
        .iter()
        .filter_map(|one| Some(over_runs(&one.runs, |run| run.throughput_per_s)?.median));
    match medians.fold(f64::INFINITY, f64::min) {
        rate if rate >= 1e5 => ("M/s", 1e6),
        rate if rate >= 1e2 => ("k/s", 1e3),
        _ => ("/s", 1.0),
    }
}

fn overview_cells(
    one: &Finished,
    measure: Measure,
    has_schedule: bool,
    unit_per_s: f64,
) -> Vec<String> {
    let runs = &one.runs;
    let mut cells = setting_cells(&one.point);
    let through = over_runs(runs, |run| run.throughput_per_s);
    cells.push(number(through.map(|found| found.median / unit_per_s), 2));
    let interval = through.and_then(|found| found.interval);
    cells.push(interval.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{:.2}..{:.2}", low / unit_per_s, high / unit_per_s),
    ));
    if measure == Measure::Time {
        for figure in &FIGURES[..3] {
            let found = over_times(runs, |times| (figure.of)(times).map(|s| s.p50_ns));
            cells.push(number(found.map(|found| found.median), 0));
        }
        let p99 = |place: usize| {
            let found = over_times(runs, |times| (FIGURES[place].of)(times).map(|s| s.p99_ns));
            number(found.map(|found| found.median), 0)
        };
        cells.push(p99(2));
        if has_schedule {
            cells.push(p99(3));
        }
        let mean = over_times(runs, |times| Some(times.depth.mean));
        cells.push(number(mean.map(|found| found.median), 1));
        let most = runs
            .iter()
            .filter_map(|run| Some(run.times.as_ref()?.depth.max))
            .max();
        cells.push(most.map_or_else(|| "-".to_owned(), |most| most.to_string()));
    }
    if measure == Measure::Counters {
        for counter in ["cycles", "instructions", "cache_misses"] {
            for end in ["sender", "receiver"] {
                let cell = one.record.get(&format!("{end}_{counter}_per_element"));
                cells.push(cell.map(|cell| cell.text()).unwrap_or_default());
            }
        }
    }
    for count in [
        |run: &RunResult| run.failed.sender,
        |run: &RunResult| run.failed.receiver,
        |run: &RunResult| run.missed.sender,
    ] {
        let found = median_count(runs, count);
        cells.push(found.map_or_else(|| "-".to_owned(), |found| found.to_string()));
    }
    cells.push(mark(one).to_owned());
    cells
}

/// A word for what makes a row hard to believe.
fn mark(one: &Finished) -> &'static str {
    if let Some(mark) = one.mark {
        mark
    } else if !modes(one).is_empty() {
        "two modes"
    } else {
        ""
    }
}

/// The figures of a point whose runs fall into two groups.
fn modes(one: &Finished) -> Vec<&'static str> {
    let throughput = over_runs(&one.runs, |run| run.throughput_per_s);
    let mut found: Vec<&str> = throughput
        .filter(|found| found.modes.is_some())
        .map(|_| "throughput")
        .into_iter()
        .collect();
    for figure in &FIGURES {
        let median = over_times(&one.runs, |times| (figure.of)(times).map(|s| s.p50_ns));
        if median.is_some_and(|found| found.modes.is_some()) {
            found.push(figure.title);
        }
    }
    found
}

/// The points whose runs show two modes, in lines.
pub fn notes_on_modes(finished: &[Finished]) -> Vec<String> {
    finished
        .iter()
        .filter(|one| !modes(one).is_empty())
        .map(|one| {
            format!(
                "{}: its runs fall into two groups by {}, so that their median is a figure of one of them or of none: see \
                 runs.csv",
                one.point,
                modes(one).join(", ")
            )
        })
        .collect()
}

/// The queues that hand over in batches, in a line: what of that is in their enqueues.
pub fn note_on_hand_overs(finished: &[Finished]) -> Option<String> {
    let queues: BTreeSet<&str> = finished
        .iter()
        .filter(|one| one.runs.iter().any(|run| run.handed_over > 0))
        .map(|one| one.point.queue.as_str())
        .collect();
    let names: Vec<&str> = queues.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} hands over in batches: where the sender pauses, the enqueue before it holds handing over, and the two stamps \
             around that",
            names.join(", ")
        )
    })
}

/// A line about the instrument itself.
pub fn instrument_line(finished: &[Finished], config: &Config) -> Option<String> {
    let runs: Vec<RunResult> = finished.iter().flat_map(|one| one.runs.clone()).collect();
    let cost = |of: fn(&RunResult) -> f64| {
        over_runs(&runs, |run| Some(of(run))).map(|found| units::duration(found.median))
    };
    let (sender, receiver) = (
        cost(|run| run.stamp.sender.cost_ns)?,
        cost(|run| run.stamp.receiver.cost_ns)?,
    );
    let resolution = over_runs(&runs, |run| run.stamp.sender.resolution_ns).map_or_else(
        || "unknown".to_owned(),
        |found| units::duration(found.median),
    );
    Some(format!(
        "instrument: clock {}: a stamp costs {sender} at the sender, {receiver} at the receiver; resolution {resolution}. \
         The floor of a time is what the same loops measure without a queue: of an operation the measuring alone, of a \
         latency an element that is handed over by a bare store",
        config.clock.name()
    ))
}

/// Which percentiles the samples cannot tell from the maximum.
pub fn unresolved(config: &Config) -> Option<String> {
    let beyond: Vec<_> = [("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)]
        .into_iter()
        .filter(|(_, percent)| !resolvable(*percent, config.count))
        .map(|(name, _)| name)
        .collect();
    (config.measure == Measure::Time && !beyond.is_empty()).then(|| {
        format!(
            "with {} elements a run {} is little else than the maximum: use a larger --count",
            config.count,
            beyond.join(", ")
        )
    })
}

/// Warnings of a run, each once.
#[derive(Debug, Default)]
pub struct Warnings(BTreeSet<String>);

/// More than this share of the starts being late means that the rate asked for was not had.
const LATE_SHARE: f64 = 0.05;
/// A queue that is gone through fewer times than this is little else than memory that is written once.
const FEWEST_LAPS: u64 = 4;

impl Warnings {
    /// What a result gives reason to warn of; only what was not said before.
    pub fn of(&mut self, result: &PointResult, config: &Config) -> Vec<String> {
        let mut texts: Vec<String> = (result.placement_warnings.iter())
            .map(|warning| format!("{}: {}", warning.message, warning.advice))
            .collect();
        let point = &result.point;
        if let Some(failure) = &result.failure {
            let and_so = match result.outcome() {
                Some(Outcome::Wrong) => ": this queue is broken, and its figures are left out",
                _ => "",
            };
            texts.push(format!("{point}: {failure}{and_so}"));
        }
        let worst = (result.runs.iter())
            .flat_map(|run| [run.pages.sender, run.pages.receiver])
            .min();
        if config.huge_pages == HugePagePolicy::Try
            && let Some(worst) = worst.filter(|pages| *pages != PageKind::Huge)
        {
            texts.push(format!(
                "stamps are in {}: reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or ask for none with --hugepages off",
                worst.describe()
            ));
        }
        if result.runs.iter().any(|run| !run.queue_locked) {
            texts.push(
                "the memory of the queues is touched but not locked, because the memlock limit is too small for all of this \
                 process: raise it with ulimit -l unlimited"
                    .to_owned(),
            );
        }
        let sum = |count: fn(&RunResult) -> u64| -> u64 { result.runs.iter().map(count).sum() };
        let faults = sum(|run| run.page_faults.sender.total() + run.page_faults.receiver.total());
        if faults > 0 {
            texts.push(format!(
                "{faults} page fault(s) in the loops of {point}: its times hold theirs"
            ));
        }
        // Those of blocks, where the load has any.
        let (starts, what) = match point.sender.load {
            Load::Bursty { burst, .. } => (config.count.div_ceil(u64::from(burst)), "blocks"),
            _ => (config.count, "enqueues"),
        };
        let late = sum(|run| run.missed.sender);
        let all = starts * result.runs.len() as u64;
        if late as f64 > all as f64 * LATE_SHARE {
            texts.push(format!(
                "{point}: {late} of {all} {what} started late: the load that was asked for is more than this machine \
                 offers, time stamps included"
            ));
        }
        let laps = config.elements() / point.capacity as u64;
        if laps < FEWEST_LAPS {
            texts.push(format!(
                "capacity {} with {} elements, warm-up included: each place of the queue is used {laps} times or once more, \
                 so that it hardly wraps around and is not there to be filled: use a larger --count or a smaller --capacity",
                point.capacity,
                config.elements()
            ));
        }
        if has_negative(&result.histograms.latency) {
            texts.push(format!(
                "{point}: latencies are negative: the clock {} differs between CPUs; use --clock monotonic",
                config.clock.name()
            ));
        }
        texts
            .into_iter()
            .filter(|text| self.0.insert(text.clone()))
            .collect()
    }
}

fn has_negative(histogram: &LatencyHistogram) -> bool {
    histogram.negative() > 0
}
