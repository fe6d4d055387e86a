//! The tables of the queue benchmark, made of the rows of `summary.csv` and `runs.csv`.

use std::collections::HashSet;

use crate::bench::queue::config::Measure;
use crate::bench::queue::judge::Outcome;
use crate::bench::queue::rows::{LOAD_OF_RECEIVER, LOAD_OF_SENDER};
use crate::cli::driver::Shown;
use crate::cli::table::{Column as Heading, Table};
use crate::cli::{text_width_of, wrap};
use crate::results::schema::queue as columns;
use crate::results::schema::{COMPLETE, Column, POINT, STATUS};
use crate::results::{Record, units};
use crate::stats::{TwoModes, median_of};

/// More points than this are shown in one line each.
const MOST_IN_DETAIL: usize = 8;

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

    fn is_unpaced(&self) -> bool {
        self.text(&columns::LOAD) == "none"
            && self.text(&columns::MEASURE) == Measure::Time.name()
            && !self.is_curve()
    }

    fn is_curve(&self) -> bool {
        self.percent().is_some()
    }

    /// Whether it carried less than was offered.
    fn misses_load(&self) -> bool {
        self.mark.is_none() && columns::row_misses_load(|name| self.record.number(name))
    }

    /// What the table marks it with.
    fn in_a_word(&self) -> Option<&'static str> {
        let starved = self.is_unfair().then_some("UNFAIR");
        let missed = self.misses_load().then_some("load missed");
        let modes = !self.modes().is_empty();
        self.mark
            .or(starved)
            .or(missed)
            .or(modes.then_some("two modes"))
    }

    /// Whether one of several threads got next to nothing.
    fn is_unfair(&self) -> bool {
        self.number(&columns::STARVED) > Some(0.0)
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

/// The tables, with what is to be said below them.
pub fn tables(shown: &Shown<'_>) -> String {
    let finished: Vec<Finished> = (shown.summary.iter())
        .map(|record| Finished::new(record, shown.runs))
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
    let with_all = measures_time && !shown.brief;
    let left_out = format!(
        "note: all percentiles of these {} points, with their bounds, are in summary.csv: the table of them is left out on a \
         load curve and beyond {MOST_IN_DETAIL} points",
        finished.len()
    );
    let lines = (instrument(&finished).filter(|_| with_all).into_iter())
        .chain(note_on_modes(&finished))
        .chain((with_all && finished.iter().any(Finished::is_unpaced)).then(note_on_time_in_queue))
        .chain(answer(&finished))
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

/// A column of settings, what rows are sorted by and mostly what stands in it, and what stands there else.
type Setting = (Heading, Column, Option<fn(&Finished) -> String>);

fn settings() -> [Setting; 11] {
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

fn sender_load(one: &Finished) -> String {
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

fn setting_cells(one: &Finished) -> Vec<String> {
    let cell =
        |(_, column, cell): Setting| cell.map_or_else(|| one.text(&column), |cell| cell(one));
    settings().map(cell).into()
}

/// The columns that rows can be sorted by, with their headings.
pub fn columns() -> Vec<(String, Column)> {
    let settings = settings().map(|(heading, column, _)| (heading, column));
    let all = [Measure::Time, Measure::RoundTrip, Measure::Counters];
    let figures = all.map(|measure| {
        let of = |has_shares| figures(measure.name(), [true, true, has_shares], false);
        [of(true), of(false)].concat()
    });
    let mut figures: Vec<_> = figures.concat();
    let mut seen = HashSet::new();
    figures.retain(|(_, column, _)| seen.insert(column.name));
    let figures = figures.into_iter();
    let through = (Heading::number("through", ""), columns::THROUGHPUT);
    let figures = figures.map(|(heading, column, _)| (heading, column));
    let all = settings.into_iter().chain([through]).chain(figures);
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
fn details(finished: &[Finished], width: Option<usize>) -> String {
    let mut headings = setting_columns();
    // Without it the lines of a queue could not be told apart where the table continues below.
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

/// The figures of the overview behind the throughput, with their decimals.
fn figures(
    measure: &str,
    [has_schedule, has_memory_load, has_shares]: [bool; 3],
    is_unpaced: bool,
) -> Vec<(Heading, Column, usize)> {
    let mut figures: Vec<(Heading, Column, usize)> = Vec::new();
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
    if measure == Measure::Time.name() {
        for operation in &columns::OPERATIONS[..3] {
            let column = Heading::number(title_of(operation, is_unpaced), "p50 ns");
            let is_latency = operation.title == "latency";
            let column = if is_latency { column.first() } else { column };
            figures.push((column, p50(operation), 0));
        }
        figures.push((
            Heading::number(title_of(&columns::OPERATIONS[2], is_unpaced), "p99 ns").first(),
            columns::latency::P99,
            0,
        ));
        if has_schedule {
            let column = Heading::number("intended", "p99 ns");
            figures.push((column, columns::intended::P99, 0));
        }
        if !has_shares {
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

fn overview(finished: &[Finished], shown: &Shown<'_>) -> String {
    let measure = finished
        .first()
        .map(|one| one.text(&columns::MEASURE))
        .unwrap_or_default();
    let has = |column: &Column| finished.iter().any(|one| one.number(column).is_some());
    let parts = [
        columns::intended::P50,
        columns::MEMORY_LOAD_MB_S,
        columns::FAIRNESS_PRODUCERS,
    ];
    let mut headings = setting_columns();
    let (unit, per_s) = unit_of_throughput(finished);
    headings.push(Heading::number("through", unit).first());
    headings.push(Heading::number("95 %", unit));
    let figures = figures(
        &measure,
        parts.map(|column| has(&column)),
        finished.iter().all(Finished::is_unpaced),
    );
    headings.extend(figures.iter().map(|(column, ..)| column.clone()));
    let has_marks = finished.iter().any(|one| one.in_a_word().is_some());
    headings.extend(has_marks.then(|| Heading::text("mark").first()));
    let mut table = Table::new(headings);
    let mut before: Option<&Finished> = None;
    for one in finished {
        let is_new = |before: &Finished| one.is_curve() && !is_next_step(before, one);
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
        cells.extend(has_marks.then(|| one.in_a_word().unwrap_or_default().to_owned()));
        table.row(cells);
    }
    table.brief(shown.brief).render(shown.width)
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

fn note_on_modes(finished: &[Finished]) -> Option<String> {
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

/// Which of several queues has the lowest latency under a load that it kept.
fn answer(finished: &[Finished]) -> Option<String> {
    let has_load =
        |one: &&Finished| one.number(&columns::MISSED_ENQUEUES).is_some() && !one.is_curve();
    let with_load = Vec::from_iter(finished.iter().filter(has_load));
    let names = with_load.iter().map(|one| one.text(&columns::QUEUE));
    if names.collect::<HashSet<_>>().len() < 2 || with_load[0].text(&columns::LOAD) == "none" {
        return None;
    }
    let latency = columns::latency::P50;
    let kept = with_load.iter().filter(|one| !one.misses_load());
    let mut kept = Vec::from_iter(kept.filter_map(|one| Some((one.number(&latency)?, one))));
    kept.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let Some((lowest, best)) = kept.first() else {
        return Some(format!(
            "note: none of these {} rows kept the load that was asked for: no queue can be chosen by them; use a lower \
             --rate, or a machine with a core for each end",
            with_load.len()
        ));
    };
    let most = best.bounds(&latency)?[1];
    let as_good = kept[1..]
        .iter()
        .filter(|(_, one)| one.bounds(&latency).is_some_and(|[least, _]| least <= most));
    let as_good = Vec::from_iter(as_good.map(|(_, one)| one.record.text(&POINT)));
    let beside = match as_good.as_slice() {
        [] => "the intervals of all others are higher".to_owned(),
        names => format!(
            "the intervals of these overlap its own: {} (hcabench compare DIR --by queue compares each with the first)",
            names.join(", ")
        ),
    };
    Some(format!(
        "note: of {} rows that kept the load, {} has the lowest latency: p50 {}; {beside}",
        kept.len(),
        best.record.text(&POINT),
        units::duration(*lowest),
    ))
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
