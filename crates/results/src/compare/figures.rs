//! What of a benchmark's results is judged: percentiles, losses, rates. Columns, units and directions are the schema's.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::{CompareError, Request};
use crate::results::read::{Point, Row};
use crate::results::schema::{
    self, Better, Column, Over, Schema, clock, cores, hca, memory, node, queue,
};

/// The percentiles that are compared where none are asked for.
pub const USUAL: [f64; 2] = [50.0, 99.0];

/// What kind of figure it is; also how a limit names it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Percentile(f64),
    /// The share of messages that were lost or damaged.
    Lost,
    Throughput,
    /// The mean latency of a memory; between CPUs half of a round trip.
    Latency,
    /// From the stamp of one CPU to that of another.
    OneWay,
    /// The bandwidth that is drawn from a memory, or passes between CPUs.
    Bandwidth,
    /// How many jumps of the clock there are in a second.
    Jumps,
    /// The share of time that is in jumps.
    JumpTime,
}

/// Those that are no percentiles: their names, those in sentences, and their columns.
const NAMED: [(Kind, &str, &str, Column); 10] = [
    (Kind::Lost, "lost", LOST, hca::DELIVERY_RATE),
    (Kind::Lost, "lost", LOST, node::DELIVERY_RATE),
    (
        Kind::Throughput,
        "throughput",
        "throughput",
        queue::THROUGHPUT,
    ),
    (Kind::Latency, "latency", "latency", memory::LATENCY),
    (Kind::Bandwidth, "bandwidth", "bandwidth", memory::ISSUED),
    (Kind::Latency, "latency", "latency", cores::HALF),
    (Kind::OneWay, "one-way", "one-way latency", cores::ONE_WAY),
    (Kind::Bandwidth, "bandwidth", "bandwidth", cores::STREAM),
    (Kind::Jumps, "jumps", "jumps in a second", clock::JUMP_RATE),
    (
        Kind::JumpTime,
        "jump-time",
        "share of time in jumps",
        clock::JUMP_TIME,
    ),
];

const LOST: &str = "share of lost messages";

/// What is wrong with messages, elements or a clock.
pub const FAULTS: [Column; 19] = [
    hca::LOST,
    hca::CORRUPTED,
    hca::DUPLICATED,
    hca::FAILED_COMPLETIONS,
    queue::LOST,
    queue::DUPLICATED,
    queue::REORDERED,
    queue::INVENTED,
    queue::DAMAGED,
    clock::STEPS_BACKWARDS,
    node::STEPS_MISSED,
    node::REFUSED,
    node::LOST,
    node::DUPLICATED,
    node::REORDERED,
    node::DAMAGED,
    node::NEVER_SENT,
    memory::STALLED,
    cores::UNMEASURED,
];

/// What those are a share of; each benchmark has one.
pub const ALL: [Column; 6] = [
    hca::SENT,
    queue::ELEMENTS_MEASURED,
    clock::ITERATIONS,
    node::SENT,
    memory::MEASURED_WINDOWS,
    cores::DIRECTIONS,
];

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Percentile(percent) => write!(formatter, "p{percent}"),
            _ => {
                let named = NAMED.iter().find(|(kind, ..)| kind == self);
                formatter.write_str(named.map_or("", |(_, name, ..)| name))
            }
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
        let named = NAMED.iter().find(|(_, name, ..)| *name == text);
        percentile.or(named.map(|(kind, ..)| *kind)).ok_or_else(|| {
            format!(
                "{text:?} is not a percentile such as p50, latency.p50 or p99.9, \
                     nor lost, throughput, latency, one-way, bandwidth, jumps or jump-time"
            )
        })
    }
}

/// A kind of figure of one thing or, without a scope, of all that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Which {
    /// Of what: `latency`, `completion`.
    pub scope: Option<String>,
    pub kind: Kind,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Percentiles have a point, too: p99.9.
        let scoped = text
            .split_once(".p")
            .filter(|(scope, _)| !scope.starts_with('p') || scope.len() > 3);
        Ok(match scoped {
            Some((scope, _)) => Which {
                scope: Some(scope.to_owned()),
                kind: text[scope.len() + 1..].parse()?,
            },
            None => Which {
                scope: None,
                kind: text.parse()?,
            },
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(formatter, "{scope}.{}", self.kind),
            None => write!(formatter, "{}", self.kind),
        }
    }
}

impl Serialize for Which {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// By how much a figure may get worse.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Percent of BASE; of figures that are percentages themselves, percentage points.
    pub percent: f64,
    pub of: Which,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Of what, where that is not plain: `latency`.
    pub scope: String,
    pub kind: Kind,
    pub unit: &'static str,
    pub better: Better,
    /// For sentences: `median completion latency`.
    pub words: String,
    column: &'static str,
}

impl Figure {
    fn of_percentile(column: &'static Column) -> Option<Self> {
        let counts = matches!(column.over, Over::Median | Over::MedianWithBounds);
        let (scope, percent) = column.percentile()?;
        (counts && column.better != Better::Neither && !is_instrument(column)).then(|| Figure {
            scope: scope.strip_suffix("_latency").unwrap_or(scope).to_owned(),
            kind: Kind::Percentile(percent),
            unit: column.unit(),
            better: column.better,
            words: in_words(scope, percent),
            column: column.name,
        })
    }

    /// Whether it is meant.
    pub fn is(&self, which: &Which) -> bool {
        let mut scope = which.scope.iter();
        self.kind == which.kind && scope.all(|scope| *scope == self.scope)
    }

    /// Its value in each whole round of a point, by number of the round.
    pub fn values(&self, point: &Point) -> BTreeMap<u64, f64> {
        const ROUND: &str = schema::ROUND.name;
        let value = |row: &Row| match self.kind {
            // Of the counts: the share in the file is rounded.
            Kind::Lost => {
                // A sample of a node may have several copies.
                let copies = row.number(node::COPIES.name);
                let sent = copies.or_else(|| row.number(hca::SENT.name));
                let sent = sent.filter(|sent| *sent > 0.0)?;
                Some((1.0 - row.number(hca::RECEIVED.name)? / sent) * 100.0)
            }
            _ => row.number(self.column),
        };
        let rounds = point.rounds.iter();
        let values = rounds.filter_map(|round| Some((round.count(ROUND)?, value(round)?)));
        values.collect()
    }
}

/// As the tables name it, and limits.
impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scope.is_empty() {
            write!(formatter, "{}", self.kind)
        } else {
            write!(formatter, "{}.{}", self.scope, self.kind)
        }
    }
}

fn in_words(scope: &str, percent: f64) -> String {
    let kind = match percent {
        50.0 => "median".to_owned(),
        _ => Kind::Percentile(percent).to_string(),
    };
    match scope {
        "" => format!("{kind} difference of readings"),
        "enqueue" | "dequeue" => format!("{kind} {scope} time"),
        _ => format!("{kind} {}", scope.replace('_', " ")),
    }
}

/// Whether it is a figure of the instrument: not judged, but told where two are far apart.
pub fn is_instrument(column: &Column) -> bool {
    let words = ["floor", "stamp", "baseline", "saturation"];
    column.kind == schema::ColumnKind::Measured
        && words.iter().any(|word| column.name.contains(word))
}

/// All that results of a benchmark can be judged by.
pub fn all_of_schema(schema: &'static Schema) -> Vec<Figure> {
    let percentiles = schema.figures.iter().filter_map(Figure::of_percentile);
    let named = NAMED.iter().filter_map(|&(kind, _, words, named)| {
        let column = schema.figures.iter().find(|column| **column == named)?;
        let (unit, better) = match kind {
            Kind::Lost => ("%", Better::Lower),
            // With the same settings more of it is more of the same work.
            Kind::Bandwidth => (column.unit(), Better::Higher),
            _ => (column.unit(), column.better),
        };
        Some(Figure {
            scope: String::new(),
            kind,
            unit,
            better,
            words: words.to_owned(),
            column: column.name,
        })
    });
    percentiles.chain(named).collect()
}

pub fn of_schema(schema: &'static Schema, request: &Request) -> Result<Vec<Figure>, CompareError> {
    let all = all_of_schema(schema);
    let plain = |percent: &f64| Which {
        scope: None,
        kind: Kind::Percentile(*percent),
    };
    let limits = request.limits.iter();
    let limited = limits.map(|limit| (limit.of.clone(), "--max-regression"));
    let asked = request.percentiles.iter().map(plain);
    for (which, option) in limited.chain(asked.map(|which| (which, "--percentiles"))) {
        // Those that are usual go without saying, where there are no percentiles at all.
        let goes_without = matches!(which.kind, Kind::Percentile(percent) if USUAL.contains(&percent))
            && option == "--percentiles"
            && !schema.has_percentiles();
        if !goes_without && !all.iter().any(|figure| figure.is(&which)) {
            let have: Vec<String> = all.iter().map(Figure::to_string).collect();
            return Err(CompareError::NoSuchFigure {
                option,
                benchmark: schema.title,
                asked: which.to_string(),
                have: have.join(", "),
            });
        }
    }
    let is_asked = |figure: &Figure| match figure.kind {
        Kind::Percentile(percent) => {
            let limited = request.limits.iter().any(|limit| figure.is(&limit.of));
            limited || request.percentiles.contains(&percent)
        }
        _ => true,
    };
    Ok(all.into_iter().filter(is_asked).collect())
}
