//! The tables of the queue benchmark, made of the rows of `summary.csv` and `runs.csv`.

mod finished;
mod ranks;

use std::collections::HashSet;

use finished::FinishedPoint;

use crate::bench::queue::config::Measure;
use crate::bench::queue::rows::{LOAD_OF_RECEIVER, LOAD_OF_SENDER};
use crate::driver::{Shown, View};
use crate::results::schema::queue as columns;
use crate::results::schema::{Column, POINT};
use crate::results::{Record, units};
use crate::stats::median_of;
use crate::terminal::table::{Column as Heading, Table};
use crate::terminal::{text_width_of, wrap};

/// More points than this are shown in one line each.
const MOST_IN_DETAIL: usize = 8;

/// The percentiles that are shown, by their place in a distribution: p50, p90, p99, p99.9, p99.99.
const PERCENTILES: [usize; 5] = [2, 3, 5, 6, 7];
const MIN: usize = 0;
const MAX: usize = 8;

/// What an operation is called: without a load nothing spaces elements, and how long one is in the queue is how full it
/// is, times the time of an element.
fn title_of(operation: &columns::Operation, is_unpaced: bool) -> &'static str {
    match operation.title {
        "latency" if is_unpaced => "in queue",
        title => title,
    }
}

fn has_times(measure: &str) -> bool {
    [Measure::Time, Measure::RoundTrip]
        .iter()
        .any(|one| one.name() == measure)
}

fn p50(operation: &columns::Operation) -> Column {
    operation.columns[PERCENTILES[0]]
}

/// The tables, with the lines below them.
pub(crate) fn tables(shown: &Shown<'_>) -> String {
    let finished: Vec<FinishedPoint> = (shown.summary.iter())
        .map(|record| FinishedPoint::new(record, shown.runs))
        .collect();
    let Some(first) = finished.first() else {
        return String::new();
    };
    let measures_time = has_times(&first.record.text(&columns::MEASURE));
    let has_details = !shown.brief && !first.is_curve() && finished.len() <= MOST_IN_DETAIL;
    let mut text = match has_details {
        true => details(&finished, shown.width),
        false => String::new(),
    };
    if !text.is_empty() {
        text += "\n";
    }
    text += &overview(&finished, shown);
    text += &ranks::ranks(&finished, shown);
    let with_all = measures_time && !shown.brief;
    let left_out = format!(
        "note: all percentiles of these {} points, with their bounds, are in summary.csv: the table of them is left out on a \
         load curve and beyond {MOST_IN_DETAIL} points",
        finished.len()
    );
    let lines = (instrument(&finished).filter(|_| with_all).into_iter())
        .chain(note_on_modes(&finished))
        .chain(
            (with_all && finished.iter().any(FinishedPoint::has_times_in_queue))
                .then(note_on_time_in_queue),
        )
        .chain((with_all && !has_details).then_some(left_out));
    for (place, line) in lines.enumerate() {
        text += if place == 0 { "\n" } else { "" };
        text += &format!(
            "{}\n",
            wrap(&line, text_width_of(shown.width) - 2).join("\n  ")
        );
    }
    text
}

fn note_on_time_in_queue() -> String {
    "note: with --load none nothing spaces elements, and how long one is in the queue follows from how full it is: how \
     soon a queue hands over an element is its latency under --load constant-rate"
        .to_owned()
}

fn load_in_words(record: &Record, load: [&Column; 5]) -> String {
    let [load, rate, wait, group, jitter] = load;
    let number = |column: &Column| record.number(column.name);
    let mut words = match (number(rate), number(wait), number(group)) {
        (Some(rate), ..) => units::rate(rate),
        (None, Some(wait), Some(group)) => format!("{group} x {}", units::duration(wait)),
        (None, Some(wait), None) => format!("wait {}", units::duration(wait)),
        (None, None, _) => match record.text(load).as_str() {
            "none" => "max".to_owned(),
            other => other.to_owned(),
        },
    };
    if let Some(percent) = number(jitter).filter(|percent| *percent > 0.0) {
        words += &format!(" +-{percent}%");
    }
    words
}

/// A column of settings, the key that rows are sorted by, mostly its text, and its other text.
type SettingColumn = (Heading, Column, Option<fn(&FinishedPoint) -> String>);

fn settings() -> [SettingColumn; 12] {
    [
        (Heading::text("queue"), columns::QUEUE, None),
        (Heading::text("ends"), columns::ENDS, None),
        (Heading::number("capacity", ""), columns::CAPACITY, None),
        (Heading::number("size", "B"), columns::PAYLOAD, None),
        (Heading::text("load"), columns::RATE, Some(sender_load)),
        (
            Heading::text("receiver"),
            columns::RECEIVER_RATE,
            Some(|one| load_in_words(one.record, LOAD_OF_RECEIVER)),
        ),
        (
            Heading::number("memory load", "% of peak"),
            columns::MEMORY_LOAD,
            None,
        ),
        (Heading::number("per stamp", ""), columns::PER_STAMP, None),
        (Heading::text("scenario"), columns::SCENARIO, None),
        (
            Heading::text("threads"),
            columns::PRODUCERS,
            Some(|one| {
                let ends = [columns::PRODUCERS, columns::CONSUMERS].map(|column| one.text(&column));
                joined(ends, " to ")
            }),
        ),
        (Heading::text("cores"), columns::CORES, None),
        (
            Heading::text("CPUs"),
            columns::SENDER_CPU,
            Some(|one| {
                let cpus = [columns::SENDER_CPU, columns::RECEIVER_CPU];
                joined(cpus.map(|column| one.text(&column)), " to ")
            }),
        ),
    ]
}

/// Two settings as one; nothing if there are none.
fn joined(parts: [String; 2], between: &str) -> String {
    match parts.concat().is_empty() {
        true => String::new(),
        false => parts.join(between),
    }
}

fn sender_load(one: &FinishedPoint) -> String {
    let load = load_in_words(one.record, LOAD_OF_SENDER);
    match one.is_curve() {
        true => format!(
            "{:>3} % = {load}",
            one.text(&columns::PERCENT_OF_SATURATION)
        ),
        false => load,
    }
}

fn setting_columns() -> Vec<Heading> {
    settings().map(|(heading, ..)| heading.setting()).into()
}

fn setting_cells(one: &FinishedPoint) -> Vec<String> {
    let cell =
        |(_, column, cell): SettingColumn| cell.map_or_else(|| one.text(&column), |cell| cell(one));
    settings().map(cell).into()
}

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables,
    columns,
    json: |_| serde_json::json!({}),
};

/// The columns that rows can be sorted by, with their headings.
pub(crate) fn columns() -> Vec<(String, Column)> {
    let settings = settings().map(|(heading, column, _)| (heading, column));
    let all = [Measure::Time, Measure::RoundTrip, Measure::Counters];
    let figures = all.map(|measure| {
        let of = |has_shares, has_batches| {
            let parts = OverviewParts {
                has_schedule: true,
                has_memory_load: true,
                has_shares,
                has_batches,
                has_latencies: true,
            };
            figures(measure.name(), &parts, false)
        };
        [of(true, false), of(false, false), of(false, true)].concat()
    });
    let mut figures: Vec<_> = figures.concat();
    let mut seen = HashSet::new();
    figures.retain(|(_, column, _)| seen.insert(column.name));
    let figures = figures.into_iter();
    let more = [
        (Heading::number("through", ""), columns::THROUGHPUT),
        (Heading::text("queue is"), columns::QUEUE_IS),
    ];
    let figures = figures.map(|(heading, column, _)| (heading, column));
    let all = settings.into_iter().chain(more).chain(figures);
    all.map(|(heading, column)| (heading.title().to_owned(), column))
        .collect()
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| units::fixed(value, decimals))
}

fn interval(found: Option<[f64; 2]>, unit: f64, decimals: usize) -> String {
    found.map_or_else(
        || "-".to_owned(),
        |[low, high]| format!("{:.decimals$}..{:.decimals$}", low / unit, high / unit),
    )
}

/// A line for each operation of each point, with all percentiles; empty where no time was measured.
fn details(finished: &[FinishedPoint], width: Option<usize>) -> String {
    let mut headings = setting_columns();
    // Without it the lines of a queue could not be distinguished where the table continues below.
    headings.push(Heading::text("operation").setting());
    headings.push(Heading::number("floor", "min ns"));
    headings.push(Heading::number("floor", "p50 ns"));
    headings.extend(["min", "p50"].map(|title| Heading::number(title, "ns")));
    headings.push(Heading::number("95 % of p50", "ns"));
    let higher = ["p90", "p99", "p99.9", "p99.99", "max"];
    headings.extend(higher.map(|title| Heading::number(title, "ns")));
    let mut table = Table::new(headings);
    for one in finished {
        for operation in &columns::OPERATIONS {
            if one.number(&p50(operation)).is_none() {
                continue;
            }
            let of = |column: &Column| number(one.number(column), 0);
            let percentiles = PERCENTILES.map(|place| of(&operation.columns[place]));
            let [median, higher @ ..] = percentiles;
            let mut cells = setting_cells(one);
            cells.extend([
                title_of(operation, one.is_unpaced()).to_owned(),
                of(&operation.floor_min),
                of(&operation.floor_p50),
                of(&operation.columns[MIN]),
                median,
                interval(one.bounds(&p50(operation)), 1.0, 0),
            ]);
            cells.extend(higher);
            cells.push(of(&operation.columns[MAX]));
            table.row(cells);
        }
        table.separator();
    }
    table.render(width)
}

/// What the overview has, beside what is in each.
struct OverviewParts {
    has_schedule: bool,
    has_memory_load: bool,
    has_shares: bool,
    has_batches: bool,
    has_latencies: bool,
}

/// The figures of the overview behind the throughput, with their decimals.
fn figures(
    measure: &str,
    parts: &OverviewParts,
    is_unpaced: bool,
) -> Vec<(Heading, Column, usize)> {
    let mut figures: Vec<(Heading, Column, usize)> = Vec::new();
    let &OverviewParts {
        has_schedule,
        has_memory_load,
        has_shares,
        has_batches,
        has_latencies,
    } = parts;
    if has_shares {
        figures.extend([
            (
                Heading::number("fairness", "producers"),
                columns::FAIRNESS_PRODUCERS,
                3,
            ),
            (
                Heading::number("fairness", "consumers"),
                columns::FAIRNESS_CONSUMERS,
                3,
            ),
            (
                Heading::number("least %", "producer").first(),
                columns::LEAST_PRODUCER,
                1,
            ),
            (
                Heading::number("least %", "consumer").first(),
                columns::LEAST_CONSUMER,
                1,
            ),
        ]);
    }
    if has_memory_load {
        let column = Heading::number("issued", "MB/s");
        figures.push((column.first(), columns::MEMORY_LOAD_MB_S, 0));
    }
    if measure == Measure::RoundTrip.name() {
        let column = Heading::number("round trip", "p50 ns").first();
        figures.push((column, columns::round_trip::P50, 0));
        let column = Heading::number("round trip", "p99 ns").first();
        figures.push((column, columns::round_trip::P99, 0));
    }
    if has_batches {
        for (title, unit, column, decimals) in [
            ("enqueue batch mean", "median ns", columns::ENQUEUE_EACH, 2),
            ("dequeue batch mean", "median ns", columns::DEQUEUE_EACH, 2),
            ("enqueue batch", "p50 ns", columns::enqueue_batch::P50, 0),
            ("dequeue batch", "p50 ns", columns::dequeue_batch::P50, 0),
            ("batches", "enqueues", columns::ENQUEUE_BATCHES, 0),
            ("batches", "dequeues", columns::DEQUEUE_BATCHES, 0),
            ("% in batches", "enqueues", columns::ENQUEUES_BATCHED, 1),
            ("% in batches", "dequeues", columns::DEQUEUES_BATCHED, 1),
        ] {
            figures.push((Heading::number(title, unit), column, decimals));
        }
    } else if measure == Measure::Time.name() {
        let operations = if has_latencies { 3 } else { 2 };
        for operation in &columns::OPERATIONS[..operations] {
            let column = Heading::number(title_of(operation, is_unpaced), "p50 ns");
            let is_latency = operation.title == "latency";
            let column = if is_latency { column.first() } else { column };
            figures.push((column, p50(operation), 0));
        }
        if has_latencies {
            figures.push((
                Heading::number(title_of(&columns::OPERATIONS[2], is_unpaced), "p99 ns").first(),
                columns::latency::P99,
                0,
            ));
        }
        if has_schedule {
            let column = Heading::number("intended", "p99 ns");
            figures.push((column, columns::intended::P99, 0));
        }
        if !has_shares && has_latencies {
            figures.push((Heading::number("depth", "mean"), columns::DEPTH_MEAN, 1));
            figures.push((Heading::number("depth", "max"), columns::DEPTH_MAX, 0));
        }
    }
    if measure == Measure::Counters.name() {
        for (place, title) in ["cycles", "instructions", "cache misses"]
            .into_iter()
            .enumerate()
        {
            let [sender, receiver] = [place, place + 4].map(|place| columns::COUNTERS[place]);
            figures.push((Heading::number(title, "sender"), sender, 3));
            figures.push((Heading::number(title, "receiver"), receiver, 3));
        }
    }
    for (title, unit, column) in [
        ("failed", "enqueues", columns::FAILED_ENQUEUES),
        ("failed", "dequeues", columns::FAILED_DEQUEUES),
        ("late", "enqueues", columns::MISSED_ENQUEUES),
    ] {
        figures.push((Heading::number(title, unit), column, 0));
    }
    figures
}

fn overview(finished: &[FinishedPoint], shown: &Shown<'_>) -> String {
    let measure = finished
        .first()
        .map(|one| one.text(&columns::MEASURE))
        .unwrap_or_default();
    let has = |column: &Column| finished.iter().any(|one| one.number(column).is_some());
    let parts = OverviewParts {
        has_schedule: has(&columns::intended::P50),
        has_memory_load: has(&columns::MEMORY_LOAD_MB_S),
        has_shares: has(&columns::FAIRNESS_PRODUCERS),
        has_batches: has(&columns::PER_STAMP),
        has_latencies: !finished.iter().all(FinishedPoint::is_unfenced),
    };
    let mut headings = setting_columns();
    let (unit, per_s) = unit_of_throughput(finished);
    headings.push(Heading::number("through", unit).first());
    headings.push(Heading::number("95 %", unit));
    let figures = figures(
        &measure,
        &parts,
        finished.iter().all(FinishedPoint::is_unpaced),
    );
    headings.extend(figures.iter().map(|(column, ..)| column.clone()));
    // No setting that distinguishes rows.
    let names_queue = (finished.iter()).any(|one| !one.text(&columns::QUEUE_IS).is_empty());
    headings.extend(names_queue.then(|| Heading::text("queue is").first()));
    let has_marks = finished.iter().any(|one| one.in_a_word().is_some());
    headings.extend(has_marks.then(|| Heading::text("mark").first()));
    let mut table = Table::new(headings);
    let mut before: Option<&FinishedPoint> = None;
    for one in finished {
        let is_new = |before: &FinishedPoint| one.is_curve() && !is_next_step(before, one);
        if !shown.sorted && before.is_some_and(is_new) {
            table.separator();
        }
        before = Some(one);
        let mut cells = setting_cells(one);
        let through = one.number(&columns::THROUGHPUT);
        cells.push(number(through.map(|rate| rate / per_s), 2));
        cells.push(interval(one.bounds(&columns::THROUGHPUT), per_s, 2));
        let figures = figures.iter();
        cells.extend(figures.map(|(_, column, decimals)| number(one.number(column), *decimals)));
        cells.extend(names_queue.then(|| one.text(&columns::QUEUE_IS)));
        cells.extend(has_marks.then(|| one.in_a_word().unwrap_or_default().to_owned()));
        table.row(cells);
    }
    table.brief(shown.brief).render(shown.width)
}

/// Whether a row goes on with the load curve of the one before it.
fn is_next_step(before: &FinishedPoint, one: &FinishedPoint) -> bool {
    before.percent() < one.percent()
        && before.record.text(&columns::QUEUE) == one.record.text(&columns::QUEUE)
}

/// A unit in which two decimals suffice for each throughput, and its size in elements a second.
fn unit_of_throughput(finished: &[FinishedPoint]) -> (&'static str, f64) {
    let medians = finished
        .iter()
        .filter_map(|one| one.number(&columns::THROUGHPUT));
    match medians.fold(f64::INFINITY, f64::min) {
        rate if rate >= 1e5 => ("M/s", 1e6),
        rate if rate >= 1e2 => ("k/s", 1e3),
        _ => ("/s", 1.0),
    }
}

fn note_on_modes(finished: &[FinishedPoint]) -> Option<String> {
    let with_modes = finished.iter().filter_map(|one| {
        let modes = one.modes();
        let name = one.record.text(&POINT);
        (!modes.is_empty()).then(|| format!("{name} ({})", modes.join(", ")))
    });
    let with_modes = Vec::from_iter(with_modes);
    (!with_modes.is_empty()).then(|| {
        format!(
            "note: the rounds of some rows fall into two groups, so that their median is a figure of one of them or of \
             none: see runs.csv. By these figures: {}",
            with_modes.join("; ")
        )
    })
}

fn instrument(finished: &[FinishedPoint]) -> Option<String> {
    let median = |column: &Column| {
        let found: Vec<f64> = finished
            .iter()
            .filter_map(|one| one.number(column))
            .collect();
        median_of(&found).map(units::duration)
    };
    let sender = median(&columns::SENDER_STAMP)?;
    let receiver = median(&columns::RECEIVER_STAMP)?;
    let resolution = median(&columns::RESOLUTION).unwrap_or_else(|| "unknown".to_owned());
    let of_latency = match median(&columns::OPERATIONS[2].floor_min) {
        Some(_) => ", of a latency an element that is handed over by a bare store",
        None => "",
    };
    Some(format!(
        "instrument: clock {}: a stamp costs {sender} at the sender, {receiver} at the receiver; resolution {resolution}. \
         The floor of a time is what the same loops measure without a queue: of an operation the measuring alone{of_latency}",
        finished[0].text(&columns::CLOCK)
    ))
}

#[cfg(test)]
mod tests;
