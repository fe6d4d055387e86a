//! What of a benchmark's results can be compared: columns, units, and which direction is better.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::jumps::{self, Jumps};
use super::matching::Pair;
use super::{CompareError, Limit, Request};
use crate::results::folder::MESSAGES;
use crate::results::read::{Benchmark, Point, ReadError, Row, Table};
use crate::stats::{Estimate, Resampling, Series, TooFew};

/// What kind of figure it is; also how a limit names it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A percentile of times.
    Percentile(f64),
    /// The share of messages that were lost or damaged.
    Lost,
    /// What goes through in a second.
    Throughput,
    /// How many jumps of the clock there are in a second.
    Jumps,
    /// The share of time that is in jumps.
    JumpTime,
}

impl Kind {
    /// Whether more of it is better.
    pub const fn higher_is_better(self) -> bool {
        matches!(self, Kind::Throughput)
    }

    /// What it is made of, where that is events.
    pub(super) const fn events(self) -> &'static str {
        match self {
            Kind::Lost => "losses",
            Kind::JumpTime => "jumps, or too few that make up most of the time",
            Kind::Jumps => "jumps",
            Kind::Percentile(_) | Kind::Throughput => "samples",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Percentile(percent) => write!(formatter, "p{percent}"),
            Kind::Lost => formatter.write_str("lost"),
            Kind::Throughput => formatter.write_str("throughput"),
            Kind::Jumps => formatter.write_str("jumps"),
            Kind::JumpTime => formatter.write_str("jump-time"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percentile = text.strip_prefix('p').and_then(|number| {
            let percent: f64 = number.parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Kind::Percentile(percent))
        });
        match (text, percentile) {
            (_, Some(kind)) => Ok(kind),
            ("lost", _) => Ok(Kind::Lost),
            ("throughput", _) => Ok(Kind::Throughput),
            ("jumps", _) => Ok(Kind::Jumps),
            ("jump-time", _) => Ok(Kind::JumpTime),
            _ => Err(format!(
                "{text:?} is not a percentile such as p50 or p99.9, nor lost, throughput, jumps or jump-time"
            )),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A number in a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Percent.
    #[serde(rename = "%")]
    Percent,
}

/// A figure of a point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Of what, as the tables name it.
    pub of: &'static str,
    /// What kind of figure.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// The cause of the jumps that count, where not all do. Limits are on figures of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What its column in a file begins with, or is.
    #[serde(skip)]
    column: &'static str,
}

impl Figure {
    pub(super) fn new(of: &'static str, kind: Kind, unit: Unit, column: &'static str) -> Self {
        Figure {
            of,
            kind,
            unit,
            cause: None,
            column,
        }
    }

    /// The same of one cause.
    pub(super) fn by(self, cause: &str) -> Self {
        Figure {
            cause: Some(cause.to_owned()),
            ..self
        }
    }

    /// Whether a limit is on it.
    pub(super) fn is_of(&self, limit: &Limit) -> bool {
        self.cause.is_none() && self.kind == limit.of
    }
}

/// As the tables name it.
impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.cause) {
            (kind @ (Kind::Percentile(_) | Kind::Lost), _) => {
                write!(formatter, "{} {kind}", self.of)
            }
            (kind, Some(cause)) => write!(formatter, "{kind}: {cause}"),
            (kind, None) => write!(formatter, "{kind}"),
        }
    }
}

/// The times of a queue's elements: name and beginning of the columns.
const QUEUE_TIMES: [(&str, &str); 4] = [
    ("enqueue", "enqueue"),
    ("dequeue", "dequeue"),
    ("latency", "latency"),
    ("from intended", "intended_latency"),
];
/// The percentiles of each run of a queue.
const QUEUE_PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// The runs of a queue.
const RUNS: &str = "runs.csv";

/// All figures that can be compared.
///
/// # Errors
/// [`CompareError::NoSuchFigure`] when a limit is on something else.
pub fn of_benchmark(benchmark: Benchmark, request: &Request) -> Result<Vec<Figure>, CompareError> {
    let mut figures = Vec::new();
    let mut percentiles = |of, column| {
        for &percent in &request.percentiles {
            let kind = Kind::Percentile(percent);
            figures.push(Figure::new(of, kind, Unit::Nanoseconds, column));
        }
    };
    let have = match benchmark {
        Benchmark::Hca => {
            percentiles("latency", "latency_ns");
            percentiles("completion", "completion_latency_ns");
            figures.push(Figure::new(
                "messages",
                Kind::Lost,
                Unit::Percent,
                "latency_ns",
            ));
            "percentiles and lost"
        }
        Benchmark::Queue => {
            for (of, column) in QUEUE_TIMES {
                percentiles(of, column);
            }
            figures.push(Figure::new(
                "queue",
                Kind::Throughput,
                Unit::PerSecond,
                "throughput_per_s",
            ));
            "p50, p90, p99, p99.9, p99.99 and throughput"
        }
        Benchmark::Clock => {
            figures = jumps::figures(&request.percentiles);
            "percentiles of jump lengths, jump-time and jumps"
        }
    };
    let asked = request
        .percentiles
        .iter()
        .map(|&percent| (Kind::Percentile(percent), "--percentiles"));
    // The limits first: their percentiles are among those to compare, too.
    let limited = request
        .limits
        .iter()
        .map(|limit| (limit.of, "--max-regression"));
    for (asked, option) in limited.chain(asked) {
        let there = match (benchmark, asked) {
            (Benchmark::Queue, Kind::Percentile(percent)) => QUEUE_PERCENTILES.contains(&percent),
            _ => figures.iter().any(|figure| figure.kind == asked),
        };
        if !there {
            return Err(CompareError::NoSuchFigure {
                option,
                benchmark: benchmark.name(),
                asked: asked.to_string(),
                have: have.to_owned(),
            });
        }
    }
    Ok(figures)
}

/// The figures that these two points have; losses only where there are some, or a limit is on them.
pub fn present(
    figures: &[Figure],
    benchmark: Benchmark,
    pair: &Pair<'_>,
    limits: &[Limit],
) -> Vec<Figure> {
    let rows = [pair.base, pair.new].map(|point| point.row.as_ref());
    let has = |figure: &Figure| {
        // Of a point without a row only its files can tell.
        let mut rows = rows.iter().flatten().peekable();
        if rows.peek().is_none() {
            return benchmark != Benchmark::Queue;
        }
        rows.any(|row| match (benchmark, figure.kind, figure.column) {
            (Benchmark::Hca, Kind::Lost, _) => {
                lost(row) > 0 || limits.iter().any(|limit| figure.is_of(limit))
            }
            (Benchmark::Hca, _, "completion_latency_ns") => {
                row.count("completions").is_some_and(|count| count > 0)
            }
            (Benchmark::Queue, _, _) => row.number(&column_of(figure)).is_some(),
            _ => true,
        })
    };
    let mut present: Vec<Figure> = figures
        .iter()
        .filter(|figure| has(figure))
        .cloned()
        .collect();
    if benchmark == Benchmark::Clock {
        present.extend(jumps::by_cause(pair));
    }
    present
}

fn lost(row: &Row) -> u64 {
    let count = |column: &str| row.count(column).unwrap_or(0);
    count("messages_sent").saturating_sub(count("messages_received"))
}

/// The column of a figure in `runs.csv` and in the summary.
fn column_of(figure: &Figure) -> String {
    match figure.kind {
        Kind::Percentile(percent) => {
            let digits = percent.to_string().replace('.', "");
            format!("{}_p{digits}_ns", figure.column)
        }
        _ => figure.column.to_owned(),
    }
}

/// Why there is no interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A figure of one of two points.
#[derive(Debug, Clone)]
pub struct Side {
    /// The figure; infinite where it is that of a lost message.
    pub value: Option<f64>,
    /// With what it could have been.
    pub estimate: Result<Estimate, Missing>,
}

impl Side {
    pub(super) fn new(value: Option<f64>, estimate: Result<Estimate, TooFew>) -> Self {
        Side {
            value,
            estimate: estimate.map_err(Missing::from),
        }
    }

    pub(super) fn missing(reason: &str) -> Self {
        Side {
            value: None,
            estimate: Err(Missing(reason.to_owned())),
        }
    }
}

/// If a larger share of NEW's messages or elements than of BASE's is lost or wrong: what to say of it beside a better
/// figure.
pub fn more_faults(pair: &Pair<'_>) -> Option<String> {
    const FAULTS: [&str; 10] = [
        "messages_lost",
        "messages_corrupted",
        "messages_duplicated",
        "failed_completions",
        "elements_lost",
        "elements_duplicated",
        "elements_reordered",
        "elements_invented",
        "elements_damaged",
        "steps_backwards",
    ];
    let count = |point: &Point, column| point.row.as_ref()?.count(column);
    // Of as many as were sent or read, which need not be as many in both.
    let share = |point: &Point, number: u64| {
        let of = ["messages_sent", "count", "iterations"]
            .iter()
            .find_map(|column| count(point, column));
        number as f64 / of.unwrap_or(1).max(1) as f64
    };
    FAULTS.iter().find_map(|column| {
        let base = count(pair.base, column).unwrap_or(0);
        let new = count(pair.new, column)?;
        (share(pair.new, new) > share(pair.base, base))
            .then(|| format!("{column} rose from {base} to {new}"))
    })
}

/// What is the same for both points of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    resolution_ns: f64,
    jumps_above_ns: f64,
}

impl Context {
    /// That of a pair.
    pub fn of(pair: &Pair<'_>) -> Self {
        let largest = |columns: &[&str]| {
            let rows = [pair.base, pair.new].map(|point| point.row.as_ref());
            let told = rows
                .into_iter()
                .flatten()
                .flat_map(|row| columns.iter().filter_map(|column| row.number(column)));
            told.fold(0.0, f64::max)
        };
        Context {
            resolution_ns: largest(&["clock_resolution_ns", "nanos_per_tick"]),
            jumps_above_ns: jumps::told_above_ns(pair),
        }
    }

    /// What the clock can tell, in the unit of the figure.
    pub fn resolution(&self, figure: &Figure) -> f64 {
        match figure.unit {
            Unit::Nanoseconds => self.resolution_ns,
            Unit::PerSecond | Unit::Percent => 0.0,
        }
    }
}

/// Where the samples of a run are.
#[derive(Debug)]
pub enum Samples {
    /// In a file for each point.
    OfPoints(Benchmark),
    /// In a file of all, which was read.
    Jumps(Jumps),
}

impl Samples {
    /// Those of some points of a run.
    ///
    /// # Errors
    /// [`ReadError`] when a file that they share cannot be read.
    pub fn of(benchmark: Benchmark, points: &[&Point]) -> Result<Self, ReadError> {
        Ok(match benchmark {
            Benchmark::Clock => Samples::Jumps(Jumps::read(points)?),
            benchmark => Samples::OfPoints(benchmark),
        })
    }

    /// The figures of a point.
    ///
    /// # Errors
    /// [`CompareError`] when its files cannot be read; what an incomplete point has not got is missing.
    pub fn sides(
        &self,
        point: &Point,
        context: &Context,
        figures: &[Figure],
        resampling: Resampling,
    ) -> Result<Vec<Side>, CompareError> {
        let found = match self {
            Samples::Jumps(jumps) => {
                Ok(jumps.sides(point, context.jumps_above_ns, figures, resampling))
            }
            Samples::OfPoints(Benchmark::Queue) => of_runs(point, figures, resampling),
            Samples::OfPoints(_) => of_messages(point, figures, resampling),
        };
        match found {
            Err(CompareError::Read(ReadError::MissingFile { .. }))
                if point.incomplete.is_some() =>
            {
                Ok(vec![Side::missing("nothing was written"); figures.len()])
            }
            found => found,
        }
    }
}

/// Messages in the order in which they were sent, the lost ones slower than any other, by bursts.
fn of_messages(
    point: &Point,
    figures: &[Figure],
    resampling: Resampling,
) -> Result<Vec<Side>, CompareError> {
    let columns = ["repeat", "latency_ns", "completion_latency_ns"];
    let (mut latencies, mut completions) = (Bursts::default(), Bursts::default());
    let mut rows = 0;
    point.rows(MESSAGES)?.each(&columns, |cells| {
        rows += 1;
        let burst = cells.integer(0)?.unwrap_or(0);
        let latency = cells.integer(1)?;
        latencies.push(burst, latency.map_or(f64::INFINITY, |ns| ns as f64));
        // Not each message need be signalled, so what is missing is not lost.
        if let Some(ns) = cells.integer(2)? {
            completions.push(burst, ns as f64);
        }
        Ok(())
    })?;
    let told = point
        .row
        .as_ref()
        .and_then(|row| row.count("messages_sent"));
    if let (Some(told), None) = (told, &point.incomplete)
        && told != rows
    {
        return Err(CompareError::Rows {
            file: point.file(MESSAGES).display().to_string(),
            found: rows,
            told,
        });
    }
    // One after the other: each takes twice its samples.
    let mut sides: Vec<Option<Side>> = vec![None; figures.len()];
    for (column, bursts) in [
        ("latency_ns", latencies),
        ("completion_latency_ns", completions),
    ] {
        let series = Series::new(bursts.samples, bursts.lengths);
        for (figure, side) in figures.iter().zip(&mut sides) {
            if figure.column == column {
                *side = Some(of_series(&series, figure, resampling));
            }
        }
    }
    let or_missing = |side: Option<Side>| side.unwrap_or_else(|| Side::missing("no samples"));
    Ok(sides.into_iter().map(or_missing).collect())
}

/// Samples, and how many belong to each burst.
#[derive(Default)]
struct Bursts {
    samples: Vec<f64>,
    lengths: Vec<usize>,
    burst: Option<i64>,
}

impl Bursts {
    fn push(&mut self, burst: i64, sample: f64) {
        if self.burst != Some(burst) {
            self.burst = Some(burst);
            self.lengths.push(0);
        }
        if let Some(last) = self.lengths.last_mut() {
            *last += 1;
        }
        self.samples.push(sample);
    }
}

fn of_series(series: &Series, figure: &Figure, resampling: Resampling) -> Side {
    match figure.kind {
        Kind::Percentile(percent) => Side::new(
            series.value_at(percent),
            series.percentile(percent, resampling),
        ),
        _ => {
            let estimate = series.share_missing(resampling).map(|mut estimate| {
                estimate.value *= 100.0;
                estimate
                    .replicates
                    .iter_mut()
                    .for_each(|value| *value *= 100.0);
                estimate
            });
            let value = estimate.as_ref().ok().map(|estimate| estimate.value);
            Side::new(value, estimate)
        }
    }
}

/// The runs of a queue: each figure is the median of theirs.
fn of_runs(
    point: &Point,
    figures: &[Figure],
    resampling: Resampling,
) -> Result<Vec<Side>, CompareError> {
    let file = point.file(RUNS);
    let why =
        "the figures of each run are in it; copy it from where it was measured, or measure again";
    let runs = Table::read(&file, why)?;
    let told = point.row.as_ref().and_then(|row| row.count("runs"));
    let found = runs.rows.len() as u64;
    if let (Some(told), None) = (told, &point.incomplete)
        && told != found
    {
        let file = file.display().to_string();
        return Err(CompareError::Rows { file, found, told });
    }
    let of = |figure: &Figure| {
        let column = column_of(figure);
        let mut figures = Vec::new();
        for (place, row) in runs.rows.iter().enumerate() {
            match (row.number(&column), row.text(&column)) {
                (Some(number), _) => figures.push(number),
                // Not measured in that run.
                (None, None | Some("")) => {}
                (None, Some(text)) => {
                    return Err(ReadError::Foreign {
                        path: file.clone(),
                        line: place as u64 + 2,
                        reason: format!("{column} is {text:?}, no number"),
                    });
                }
            }
        }
        let series = Series::of_runs(figures);
        Ok(Side::new(
            series.value_at(50.0),
            series.percentile(50.0, resampling),
        ))
    };
    let sides: Result<Vec<Side>, ReadError> = figures.iter().map(of).collect();
    Ok(sides?)
}
