//! The tables of the queue benchmark, made of the rows of `summary.csv` and `runs.csv`.

use crate::bench::queue::config::Measure;
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::rows::{LOAD_OF_RECEIVER, LOAD_OF_SENDER};
use crate::cli::table::{Column as Shown, Table};
use crate::cli::{TEXT_WIDTH, wrap};
use crate::results::schema::queue as columns;
use crate::results::schema::{COMPLETE, Column, POINT, STATUS};
use crate::results::{Record, units};
use crate::stats::{TwoModes, median_of};

/// More points than this are shown in one line each.
const MOST_IN_DETAIL: usize = 20;

/// A point as the tables see it.
struct Finished<'a> {
    record: &'a Record,
    runs: Vec<&'a Record>,
    /// Why it has no figures to be believed: a queue that is wrong once is wrong.
    mark: Option<&'static str>,
}

impl<'a> Finished<'a> {
    fn new(record: &'a Record, runs: &'a [Record]) -> Self {
        let name = record.text(&POINT);
        let of_point = runs.iter().filter(|run| run.text(&POINT) == name);
        let runs: Vec<&Record> = of_point.collect();
        let outcomes = runs.iter().map(|run| run.text(&columns::OUTCOME));
        let mut failed = outcomes.filter(|outcome| outcome != Outcome::Clean.name());
        let words = [
            (Outcome::Wrong, "BROKEN"),
            (Outcome::GaveUp, "GAVE UP"),
            (Outcome::Unjudged, "UNJUDGED"),
        ];
        let word = |outcome: String| {
            let found = words.iter().find(|(known, _)| known.name() == outcome);
            found.map_or("FAILED", |(_, word)| word)
        };
        let is_incomplete = record.text(&STATUS) != COMPLETE;
        let mark = failed.next_back().map(word);
        Finished {
            record,
            runs,
            mark: mark.or(is_incomplete.then_some("FAILED")),
        }
    }

    fn text(&self, column: &Column) -> String {
        self.record.text(column)
    }

    fn number(&self, column: &Column) -> Option<f64> {
        let found = self.record.number(column.name);
        found.filter(|_| self.mark.is_none())
    }

    fn bounds(&self, column: &Column) -> Option<[f64; 2]> {
        let [low, high] = column.bounds().map(|name| self.record.number(&name));
        low.zip(high)
            .filter(|_| self.mark.is_none())
            .map(|(low, high)| [low, high])
    }

    /// On a load curve, the offered rate in per cent of saturation.
    fn percent(&self) -> Option<f64> {
        self.record.number(columns::PERCENT_OF_SATURATION.name)
    }

    fn is_curve(&self) -> bool {
        self.percent().is_some()
    }

    /// The figures by which its rounds fall into two groups.
    fn modes(&self) -> Vec<&'static str> {
        if self.mark.is_some() {
            return Vec::new();
        }
        let medians = columns::OPERATIONS.iter();
        let medians = medians.map(|operation| (operation.title, p50(operation)));
        let figures = std::iter::once(("throughput", columns::THROUGHPUT)).chain(medians);
        let has_modes = |column: &Column| {
            let found = self.runs.iter().filter_map(|run| run.number(column.name));
            TwoModes::of(&found.collect::<Vec<_>>()).is_some()
        };
        figures
            .filter(|(_, column)| has_modes(column))
            .map(|(title, _)| title)
            .collect()
    }
}

/// The percentiles that are shown, by their place in a distribution: p50, p90, p99, p99.9, p99.99.
const PERCENTILES: [usize; 5] = [2, 3, 5, 6, 7];
const MIN: usize = 0;
const MAX: usize = 8;

fn p50(operation: &columns::Operation) -> Column {
    operation.columns[PERCENTILES[0]]
}

/// The tables, with what is to be said below them.
pub fn tables(summary: &[Record], runs: &[Record], width: Option<usize>) -> String {
    let finished: Vec<Finished> = (summary.iter())
        .map(|record| Finished::new(record, runs))
        .collect();
    let Some(first) = finished.first() else {
        return String::new();
    };
    let measure = first.record.text(&columns::MEASURE);
    let measures_time = measure == Measure::Time.name();
    let has_details = !first.is_curve() && finished.len() <= MOST_IN_DETAIL;
    let mut shown = match has_details {
        true => details(&finished, width),
        false => String::new(),
    };
    if !shown.is_empty() {
        shown += "\n";
    }
    shown += &overview(&finished, &measure, width);
    shown += "\n";
    let instrument = instrument(&finished).filter(|_| measures_time);
    let left_out = format!(
        "note: all percentiles of these {} points, with their bounds, are in summary.csv: the table of them is left out on a \
         load curve and beyond {MOST_IN_DETAIL} points",
        finished.len()
    );
    let modes = finished.iter().filter_map(note_on_modes);
    let lines = instrument
        .into_iter()
        .chain(modes)
        .chain((measures_time && !has_details).then_some(left_out));
    let text_width = width.map_or(TEXT_WIDTH, |width| width.clamp(40, TEXT_WIDTH)) - 2;
    for line in lines {
        shown += &format!("{}\n", wrap(&line, text_width).join("\n  "));
    }
    shown
}

fn load_in_words(record: &Record, load: [&Column; 5]) -> String {
    let [load, rate, wait, burst, jitter] = load;
    let number = |column: &Column| record.number(column.name);
    let mut words = match (number(rate), number(wait), number(burst)) {
        (Some(rate), ..) => units::rate(rate),
        (None, Some(wait), Some(burst)) => format!("{burst} x {}", units::duration(wait)),
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

/// A column of settings, and what stands in it.
type Setting = (Shown, fn(&Finished) -> String);

fn settings() -> [Setting; 8] {
    [
        (Shown::text("queue"), |one| one.text(&columns::QUEUE)),
        (Shown::text("ends"), |one| one.text(&columns::ENDS)),
        (Shown::number("capacity", ""), |one| {
            one.text(&columns::CAPACITY)
        }),
        (Shown::number("size", "B"), |one| {
            one.text(&columns::PAYLOAD)
        }),
        (Shown::text("load"), |one| {
            let load = load_in_words(one.record, LOAD_OF_SENDER);
            match one.is_curve() {
                true => format!(
                    "{:>3} % = {load}",
                    one.text(&columns::PERCENT_OF_SATURATION)
                ),
                false => load,
            }
        }),
        (Shown::text("receiver"), |one| {
            load_in_words(one.record, LOAD_OF_RECEIVER)
        }),
        (Shown::text("cores"), |one| one.text(&columns::CORES)),
        (Shown::text("CPUs"), |one| {
            let [sender, receiver] = [columns::SENDER_CPU, columns::RECEIVER_CPU];
            format!("{} to {}", one.text(&sender), one.text(&receiver))
        }),
    ]
}

fn setting_columns() -> Vec<Shown> {
    settings().map(|(column, _)| column.setting()).into()
}

fn setting_cells(one: &Finished) -> Vec<String> {
    settings().map(|(_, cell)| cell(one)).into()
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
fn details(finished: &[Finished], width: Option<usize>) -> String {
    let mut shown = setting_columns();
    // Without it the lines of a queue could not be told apart where the table continues below.
    shown.push(Shown::text("operation").setting());
    shown.push(Shown::number("floor", "min ns"));
    shown.push(Shown::number("", "p50 ns"));
    shown.extend(["min", "p50"].map(|title| Shown::number(title, "ns")));
    shown.push(Shown::number("95 % of p50", "ns"));
    let higher = ["p90", "p99", "p99.9", "p99.99", "max"];
    shown.extend(higher.map(|title| Shown::number(title, "ns")));
    let mut table = Table::new(shown);
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
                operation.title.to_owned(),
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

fn overview(finished: &[Finished], measure: &str, width: Option<usize>) -> String {
    let with_times = measure == Measure::Time.name();
    let with_counters = measure == Measure::Counters.name();
    let has_schedule = finished
        .iter()
        .any(|one| one.number(&columns::intended::P50).is_some());
    let mut shown = setting_columns();
    let (unit, per_s) = unit_of_throughput(finished);
    shown.push(Shown::number("through", unit));
    shown.push(Shown::number("95 %", unit));
    let mut figures: Vec<(Shown, Column, usize)> = Vec::new();
    if with_times {
        for operation in &columns::OPERATIONS[..3] {
            let column = Shown::number(operation.title, "p50 ns");
            figures.push((column, p50(operation), 0));
        }
        figures.push((Shown::number("", "p99 ns"), columns::latency::P99, 0));
        if has_schedule {
            let column = Shown::number("intended", "p99 ns");
            figures.push((column, columns::intended::P99, 0));
        }
        figures.push((Shown::number("depth", "mean"), columns::DEPTH_MEAN, 1));
        figures.push((Shown::number("", "max"), columns::DEPTH_MAX, 0));
    }
    if with_counters {
        for (place, title) in ["cycles", "instructions", "cache misses"]
            .into_iter()
            .enumerate()
        {
            let [sender, receiver] = [place, place + 4].map(|place| columns::COUNTERS[place]);
            figures.push((Shown::number(title, "sender"), sender, 3));
            figures.push((Shown::number("", "receiver"), receiver, 3));
        }
    }
    for (title, unit, column) in [
        ("failed", "enqueues", columns::FAILED_ENQUEUES),
        ("failed", "dequeues", columns::FAILED_DEQUEUES),
        ("late", "enqueues", columns::MISSED_ENQUEUES),
    ] {
        figures.push((Shown::number(title, unit), column, 0));
    }
    shown.extend(figures.iter().map(|(column, ..)| column.clone()));
    shown.push(Shown::text("mark"));
    let mut table = Table::new(shown);
    let mut before: Option<&Finished> = None;
    for one in finished {
        if before.is_some_and(|before| one.is_curve() && !is_next_step(before, one)) {
            table.separator();
        }
        before = Some(one);
        let mut cells = setting_cells(one);
        let through = one.number(&columns::THROUGHPUT);
        cells.push(number(through.map(|rate| rate / per_s), 2));
        cells.push(interval(one.bounds(&columns::THROUGHPUT), per_s, 2));
        let figures = figures.iter();
        cells.extend(figures.map(|(_, column, decimals)| number(one.number(column), *decimals)));
        let modes = !one.modes().is_empty();
        let mark = one.mark.or(modes.then_some("two modes"));
        cells.push(mark.unwrap_or_default().to_owned());
        table.row(cells);
    }
    table.render(width)
}

/// Whether a row goes on with the load curve of the one before it.
fn is_next_step(before: &Finished, one: &Finished) -> bool {
    before.percent() < one.percent()
        && before.record.text(&columns::QUEUE) == one.record.text(&columns::QUEUE)
}

/// A unit in which two decimals tell something of each throughput, and what it is in elements a second.
fn unit_of_throughput(finished: &[Finished]) -> (&'static str, f64) {
    let medians = finished
        .iter()
        .filter_map(|one| one.number(&columns::THROUGHPUT));
    match medians.fold(f64::INFINITY, f64::min) {
        rate if rate >= 1e5 => ("M/s", 1e6),
        rate if rate >= 1e2 => ("k/s", 1e3),
        _ => ("/s", 1.0),
    }
}

fn note_on_modes(one: &Finished) -> Option<String> {
    let modes = one.modes();
    (!modes.is_empty()).then(|| {
        format!(
            "note: {}: its rounds fall into two groups by {}, so that their median is a figure of one of them or of none: see \
             runs.csv",
            one.record.text(&POINT),
            modes.join(", ")
        )
    })
}

fn instrument(finished: &[Finished]) -> Option<String> {
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
    Some(format!(
        "instrument: clock {}: a stamp costs {sender} at the sender, {receiver} at the receiver; resolution {resolution}. \
         The floor of a time is what the same loops measure without a queue: of an operation the measuring alone, of a \
         latency an element that is handed over by a bare store",
        finished[0].text(&columns::CLOCK)
    ))
}

#[cfg(test)]
mod tests;
