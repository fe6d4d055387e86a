//! The content of results: each column of each file, declared once.
//!
//! A [`Column`] has a name that ends in its unit, a kind, the direction in which it is better, and what becomes of it
//! over several rounds. Writers set cells by column ([`Record::set`](crate::results::Record::set)), and readers,
//! comparisons, figures and tables take name and meaning from here. One file a benchmark.

pub mod between;
pub mod clock;
pub mod cores;
pub mod fabric;
pub mod hca;
pub mod memory;
pub mod node;
pub mod node_between;
pub mod queue;

use std::borrow::Cow;

use serde::Serialize;

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Identifies the row, or how it ended.
    Label,
    /// Was set, or follows from what was set.
    Setting,
    /// Was measured.
    Measured,
    /// Was counted.
    Count,
}

/// What its cells hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number with this many decimals.
    Number(usize),
    /// `true` or `false`.
    Flag,
    /// A moment, in RFC 3339.
    Moment,
}

/// In which direction it is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither is.
    Neither,
}

/// What becomes of it over several rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It is the same in all of them, or only the first one's is kept.
    First,
    /// The least of all.
    Least,
    /// The greatest of all.
    Greatest,
    /// Their sum.
    Sum,
    /// Their median.
    Median,
    /// Their median, with its bounds in two more columns.
    MedianWithBounds,
}

/// One column, declared once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The name, with the unit at its end: `latency_p50_ns`. Without one it is a count, a share or a word.
    pub name: &'static str,
    /// What it is.
    pub kind: ColumnKind,
    /// What its cells hold.
    pub data: Data,
    /// In which direction it is better.
    pub better: Better,
    /// What becomes of it over rounds.
    pub over: Over,
    /// Its heading in tables, without the unit.
    pub title: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// Of a setting what an empty cell means, or that a run is older than the column; empty if that is unknown.
    pub unset: &'static str,
}

/// Ends of names and the units they stand for.
const UNITS: [(&str, &str); 16] = [
    ("_bytes", "B"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_per_s", "1/s"),
    ("_bytes_per_s", "B/s"),
    ("_percent", "%"),
    ("_ticks", "ticks"),
    ("_cycles", "cycles"),
    ("_per_element", "per element"),
    ("_per_step", "per step"),
    ("_per_tick", "per tick"),
    ("_hz", "Hz"),
    ("_khz", "kHz"),
    ("_mb_s", "MB/s"),
    ("_nops", "nops"),
    ("_ppm", "ppm"),
];

impl Column {
    const fn new(kind: ColumnKind, data: Data, over: Over, name: &'static str) -> Self {
        Column {
            name,
            kind,
            data,
            better: Better::Neither,
            over,
            title: name,
            meaning: "",
            unset: "",
        }
    }

    /// A word that identifies the row, or how it ended.
    pub const fn label(name: &'static str, meaning: &'static str) -> Self {
        Self::new(ColumnKind::Label, Data::Text, Over::First, name).meaning(meaning)
    }

    /// A setting in words.
    pub const fn setting(name: &'static str, meaning: &'static str) -> Self {
        Self::new(ColumnKind::Setting, Data::Text, Over::First, name).meaning(meaning)
    }

    /// A measured figure with this many decimals, of which less is better: its median over rounds counts.
    pub const fn measured(name: &'static str, decimals: usize, meaning: &'static str) -> Self {
        let column = Self::new(
            ColumnKind::Measured,
            Data::Number(decimals),
            Over::Median,
            name,
        );
        column.better(Better::Lower).meaning(meaning)
    }

    /// Something that was counted: its sum over rounds counts.
    pub const fn count(name: &'static str, meaning: &'static str) -> Self {
        Self::new(ColumnKind::Count, Data::Whole, Over::Sum, name).meaning(meaning)
    }

    /// The same with other cells.
    pub const fn data(mut self, data: Data) -> Self {
        self.data = data;
        self
    }

    /// The same with whole numbers.
    pub const fn whole(self) -> Self {
        self.data(Data::Whole)
    }

    /// The same with another direction.
    pub const fn better(mut self, better: Better) -> Self {
        self.better = better;
        self
    }

    /// The same with something else becoming of it over rounds.
    pub const fn over(mut self, over: Over) -> Self {
        self.over = over;
        self
    }

    /// The same with bounds of its median.
    pub const fn with_bounds(self) -> Self {
        self.over(Over::MedianWithBounds)
    }

    /// The same with a shorter heading.
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }

    /// The same of a setting that has this value where a run does not have it.
    pub const fn unset(mut self, text: &'static str) -> Self {
        self.unset = text;
        self
    }

    const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = meaning;
        self
    }

    /// The unit at the end of the name, as people write it; empty without one.
    pub fn unit(&self) -> &'static str {
        split_unit(self.name).1
    }

    /// Of `completion_latency_p999_ns` what comes before the percentile, `completion_latency`, and that, 99.9; `None`
    /// for a column that is not a percentile.
    pub fn percentile(&self) -> Option<(&'static str, f64)> {
        let (stem, _) = split_unit(self.name);
        let (of, digits) = stem
            .rsplit_once("_p")
            .or(stem.strip_prefix('p').map(|digits| ("", digits)))?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let (whole, fraction) = digits.split_at(digits.len().min(2));
        Some((of, format!("{whole}.{fraction}0").parse().ok()?))
    }

    /// The names of the columns of its bounds: `latency_p50_low_ns` and `latency_p50_high_ns`.
    pub fn bounds(&self) -> [String; 2] {
        let (stem, _) = split_unit(self.name);
        let end = &self.name[stem.len()..];
        ["low", "high"].map(|bound| format!("{stem}_{bound}{end}"))
    }
}

/// A name without its unit, and the unit as people write it; `("sent", "")` where there is none.
pub fn split_unit(name: &str) -> (&str, &'static str) {
    let units = UNITS.iter();
    let found = units.filter_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    // The longest end: `_per_element` may follow another.
    let longest = found.min_by_key(|(stem, _)| stem.len());
    longest.unwrap_or((name, ""))
}

/// The name of an option as columns are named: `receiver_pause` of `--receiver-pause`.
pub fn column_of_option(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}

/// The end of the names of files that VILLASnode reads.
pub const VILLAS: &str = ".villas";

/// A file of samples in the folder of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFile {
    /// Its name.
    pub name: &'static str,
    /// Its columns; one of them is [`ROUND`].
    pub columns: &'static [Column],
    /// The count in the summary that is its number of rows.
    pub counted_by: Column,
    /// What it holds, in a sentence.
    pub meaning: &'static str,
}

impl SampleFile {
    /// The separator of two cells: a tab in files as VILLASnode writes them, else a comma.
    pub fn delimiter(&self) -> u8 {
        match self.name.ends_with(VILLAS) {
            true => b'\t',
            false => b',',
        }
    }
}

/// What follows from all rows of a summary together, and not from each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossRowFigure {
    /// Rows that differ in the load make a curve ([`curves`](crate::results::curves)).
    Curves,
}

/// The conditions of a search for the highest rate.
pub const FIND_RATE: Column = Column::setting(
    "find_rate",
    "the conditions of which the highest rate was searched (--find-rate); each point is a rate that was tried",
)
.unset("none");

/// How a run is divided into intervals.
pub const HLOG_INTERVAL: Column = Column::setting(
    "hlog_interval_ns",
    "length of the intervals that have a distribution each (--hlog-interval)",
)
.data(Data::Whole)
.unset("1 s in runs of 60 s or more");

/// What a search for the highest rate goes by (`--find-rate`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchedRate {
    /// The rate that is offered.
    pub rate: Column,
    /// Settings that follow from it, and differ within a search.
    pub follow: &'static [Column],
    /// The latency from the intended time.
    pub latency: &'static [Column],
    /// What arrived, and what was to arrive; `None` where nothing is lost.
    pub delivered: Option<(Column, Column)>,
    /// The rate that was sent, and how many sent at the offered rate; one where its cell is empty.
    pub sent: (Column, Option<Column>),
}

/// What the results of a benchmark have.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The benchmark, as `settings.json` names it.
    pub benchmark: &'static str,
    /// For people.
    pub title: &'static str,
    /// The settings of a run that are no point's: `run` in `settings.json`.
    pub run: &'static [Column],
    /// The settings of a point.
    pub point: &'static [Column],
    /// What is found of it.
    pub figures: &'static [Column],
    /// The files of samples that its points may have.
    pub samples: &'static [SampleFile],
    /// What follows from all rows of its summary.
    pub across: Option<CrossRowFigure>,
    /// What a search for the highest rate goes by, where there is one.
    pub searched: Option<SearchedRate>,
    /// What the progress shows of a finished point: how many samples, their median (or mean, where there are no
    /// percentiles), and their 99th percentile.
    pub headline: [Column; 3],
}

/// The sweep's summary, one row a point.
pub const SUMMARY: &str = "summary.csv";
/// A row for each point and round, in the order measured.
pub const RUNS: &str = "runs.csv";
/// The points of a sweep that were left out, with the reason.
pub const LEFT_OUT: &str = "left_out.csv";

/// The name of a point's folder.
pub const POINT: Column = Column::label("point", "the point, which is the name of its folder");
/// The number of a round.
pub const ROUND: Column =
    Column::label("round", "the round of the sweep, from 0").data(Data::Whole);
/// The position in a round.
pub const ORDER: Column =
    Column::label("order", "the position in its round, from 0").data(Data::Whole);
/// When it was begun.
pub const STARTED_AT: Column =
    Column::label("started_at", "when it was begun, UTC").data(Data::Moment);
/// Whether it is whole.
pub const STATUS: Column = Column::label("status", "complete or incomplete");
/// Why it is not.
pub const FAILURE: Column = Column::label("failure", "what ended it early");
/// How many rounds a row of the summary is made of.
pub const ROUNDS: Column =
    Column::label("rounds", "complete rounds, of which the medians are").data(Data::Whole);
/// Why a point was left out.
pub const REASON: Column = Column::label("reason", "why it was left out");

/// [`STATUS`] of what is whole.
pub const COMPLETE: &str = "complete";
/// [`STATUS`] of what is not.
pub const INCOMPLETE: &str = "incomplete";

/// The version of the format of results, as in `settings.json`.
pub const FORMAT: u64 = 2;

/// A column of a file: as declared, or the bound of one.
pub type NamedColumn = (Cow<'static, str>, Column);

impl Schema {
    /// All schemas.
    pub const ALL: [&'static Schema; 8] = [
        &hca::SCHEMA,
        &between::SCHEMA,
        &queue::SCHEMA,
        &clock::SCHEMA,
        &node::SCHEMA,
        &node_between::SCHEMA,
        &memory::SCHEMA,
        &cores::SCHEMA,
    ];

    /// The schema of a benchmark.
    pub fn of(benchmark: &str) -> Option<&'static Schema> {
        Self::ALL
            .into_iter()
            .find(|schema| schema.benchmark == benchmark)
    }

    /// A setting of a point by its column's name, with or without its unit, or by that of its option; of an option that
    /// sets several, the first.
    pub fn setting(&self, asked: &str) -> Option<&'static str> {
        let asked = column_of_option(asked);
        let names = || self.point.iter().map(|column| column.name);
        let named = names().find(|name| *name == asked || split_unit(name).0 == asked);
        named.or_else(|| {
            let mut names = names();
            names.find(|name| {
                name.strip_prefix(&asked)
                    .is_some_and(|rest| rest.starts_with('_'))
            })
        })
    }

    /// Whether any figure is a percentile.
    pub fn has_percentiles(&self) -> bool {
        (self.figures.iter()).any(|column| column.percentile().is_some())
    }

    /// The columns of `summary.csv`, bounds included, in order.
    pub fn summary(&self) -> Vec<NamedColumn> {
        let mut columns = vec![plain(POINT)];
        columns.extend(self.point.iter().copied().map(plain));
        columns.extend([STATUS, FAILURE, ROUNDS].map(plain));
        for column in self.figures {
            columns.push(plain(*column));
            if column.over == Over::MedianWithBounds {
                columns.extend(column.bounds().map(|name| (Cow::Owned(name), *column)));
            }
        }
        columns
    }

    /// The columns of `runs.csv`, in order.
    pub fn runs(&self) -> Vec<NamedColumn> {
        let mut columns = [POINT, ROUND, ORDER, STARTED_AT].map(plain).to_vec();
        columns.extend(self.point.iter().copied().map(plain));
        columns.extend([STATUS, FAILURE].map(plain));
        columns.extend(self.figures.iter().copied().map(plain));
        columns
    }

    /// The columns of `left_out.csv`, in order.
    pub fn left_out(&self) -> Vec<NamedColumn> {
        let columns = self.point.iter().copied().chain([REASON]);
        columns.map(plain).collect()
    }
}

fn plain(column: Column) -> NamedColumn {
    (Cow::Borrowed(column.name), column)
}

/// Declares columns as constants with their meaning as documentation, and the list of them, in order. An entry is a
/// call of the function of [`Column`] of that name; of measured figures the decimals come last.
macro_rules! columns {
    (
        $(#[$of_list:meta])*
        $list:ident;
        $($name:ident = $kind:ident($column:expr, $meaning:expr $(, $decimals:literal)?)
            $(.$with:ident($($argument:expr),*))*;)+
    ) => {
        $(
            #[doc = concat!("`", $column, "`: ", $meaning, ".")]
            pub const $name: Column = Column::$kind($column, $($decimals,)? $meaning)$(.$with($($argument),*))*;
        )+
        $(#[$of_list])*
        pub const $list: [Column; [$($column),+].len()] = [$($name),+];
    };
}
use columns;

/// Declares the columns of a distribution, `PREFIX_min_ns` to `PREFIX_negative`, as the constants of a module of that
/// name, and `ALL`, which lists them in order.
macro_rules! distribution_columns {
    ($(#[$outer:meta])* $module:ident, $prefix:literal, $title:literal, $what:literal) => {
        $(#[$outer])*
        pub mod $module {
            use $crate::results::schema::{Better, Column, Over, columns};

            columns! {
                /// All of them, in the order of the files.
                ALL;
                MIN = measured(concat!($prefix, "_min_ns"), concat!("least ", $what), 0)
                    .over(Over::Least).title(concat!($title, "min"));
                P10 = measured(concat!($prefix, "_p10_ns"), concat!("10th percentile of the ", $what), 1)
                    .title(concat!($title, "p10"));
                P50 = measured(concat!($prefix, "_p50_ns"), concat!("median ", $what), 1)
                    .with_bounds().title(concat!($title, "p50"));
                P90 = measured(concat!($prefix, "_p90_ns"), concat!("90th percentile of the ", $what), 1)
                    .with_bounds().title(concat!($title, "p90"));
                P95 = measured(concat!($prefix, "_p95_ns"), concat!("95th percentile of the ", $what), 1)
                    .title(concat!($title, "p95"));
                P99 = measured(concat!($prefix, "_p99_ns"), concat!("99th percentile of the ", $what), 1)
                    .with_bounds().title(concat!($title, "p99"));
                P999 = measured(concat!($prefix, "_p999_ns"), concat!("99.9th percentile of the ", $what), 1)
                    .with_bounds().title(concat!($title, "p99.9"));
                P9999 = measured(concat!($prefix, "_p9999_ns"), concat!("99.99th percentile of the ", $what), 1)
                    .with_bounds().title(concat!($title, "p99.99"));
                MAX = measured(concat!($prefix, "_max_ns"), concat!("greatest ", $what), 0)
                    .over(Over::Greatest).title(concat!($title, "max"));
                MEAN = measured(concat!($prefix, "_mean_ns"), concat!("mean ", $what), 1)
                    .title(concat!($title, "mean"));
                STDEV = measured(concat!($prefix, "_stdev_ns"), concat!("standard deviation of the ", $what), 1)
                    .title(concat!($title, "stdev"));
                SHARE_ABOVE = measured(concat!($prefix, "_share_above_10000ns"),
                    concat!("share of the ", $what, " above 10 us, of 1"), 6).title(concat!($title, "above 10 us"));
                NEGATIVE = count(concat!($prefix, "_negative"),
                    concat!("negative samples of the ", $what, ": the clocks of two CPUs differ")).better(Better::Lower);
            }
        }
    };
}
use distribution_columns;

/// Puts lists of columns one behind the other, so that a file's list needs no second naming of what it is made of.
pub const fn join<const N: usize>(lists: &[&[Column]]) -> [Column; N] {
    let mut all = [POINT; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut column = 0;
        while column < lists[list].len() {
            all[at] = lists[list][column];
            at += 1;
            column += 1;
        }
        list += 1;
    }
    assert!(at == N, "the lists have another number of columns");
    all
}

#[cfg(test)]
mod tests;
