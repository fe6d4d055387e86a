//! Distributions in HdrHistogram's percentile text, as [`results::hgrm`](crate::results::hgrm) and other programs write
//! them.

use std::path::Path;

use crate::results::read_error::ReadError;
use crate::results::whole::whole;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HgrmLine {
    /// The value, in the file's unit: nanoseconds in files of hcabench.
    pub value: f64,
    /// The percentile as a fraction, 0 to 1.
    pub quantile: f64,
    /// Samples up to the value.
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hgrm {
    /// Its lines, values, fractions and counts each ascending.
    pub lines: Vec<HgrmLine>,
    pub total: u64,
}

/// The names of the columns that are read. Rust's example writes two quantiles: of the value, and of the step.
const VALUE: &str = "Value";
const QUANTILE: [&str; 2] = ["Percentile", "QuantileIteration"];
const COUNT: &str = "TotalCount";

/// What the closing lines call the number of samples: Java, C, Go and Rust, and Python.
const TOTAL: [&str; 2] = ["Total count", "TotalCount"];

/// The places of value, quantile and count in a line.
type Places = [usize; 3];

impl Hgrm {
    /// Reads a `.hgrm` file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let why = "percentiles are drawn from it; name a file that is there";
        Self::of(path, &whole(path, why)?)
    }

    pub(in crate::results) fn of(path: &Path, text: &str) -> Result<Self, ReadError> {
        let cut = |reason: &str| {
            let lines = text.lines().count() as u64;
            ReadError::truncated(path, lines, reason)
        };
        if text.trim().is_empty() {
            return Err(cut("it is empty"));
        }
        let mut lines = text.lines().map(str::trim);
        let last = lines.rfind(|line| line.starts_with("#["));
        // Not every program writes the last of them, but those that are begun are whole.
        if !last.is_some_and(|line| line.ends_with(']')) {
            return Err(cut(
                "the closing lines (Mean, Max, Buckets) are not all there",
            ));
        }
        let foreign = |(line, number): (&str, u64), reason: &str| {
            ReadError::foreign(path, number, format!("{line:?} {reason}"))
        };
        let rows = text.lines().map(str::trim).zip(1..);
        let mut rows = rows.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let places = match rows.next() {
            None => [0, 1, 2],
            Some(header) => {
                let reason = "is not Value, Percentile, TotalCount";
                places_in(header.0).ok_or_else(|| foreign(header, reason))?
            }
        };
        let mut lines: Vec<HgrmLine> = Vec::new();
        for row in rows {
            let no_figures = || foreign(row, "is not a value, a percentile and a count");
            let found = figures_of(row.0, places).ok_or_else(no_figures)?;
            let descends = |before: &HgrmLine| {
                before.value > found.value
                    || before.quantile > found.quantile
                    || before.count > found.count
            };
            if lines.last().is_some_and(descends) {
                return Err(foreign(row, "descends from the line before it"));
            }
            lines.push(found);
        }
        let Some(total) = total_of(text) else {
            return Err(cut("it has no Total count"));
        };
        // Some write one line for no samples.
        if total == 0 {
            lines.retain(|line| line.count > 0);
        }
        let counted = lines.last().map_or(0, |line| line.count);
        if counted != total || lines.last().is_some_and(|line| line.quantile < 1.0) {
            return Err(cut(&format!(
                "its lines end at {counted} of {total} samples"
            )));
        }
        Ok(Hgrm { lines, total })
    }
}

/// Where the columns are, by the header.
fn places_in(header: &str) -> Option<Places> {
    let names: Vec<&str> = header.split_whitespace().collect();
    let place = |name: &str| names.iter().position(|it| *it == name);
    let quantile = QUANTILE.iter().find_map(|name| place(name))?;
    Some([place(VALUE)?, quantile, place(COUNT)?])
}

fn figures_of(line: &str, [value, quantile, count]: Places) -> Option<HgrmLine> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let value: f64 = cells.get(value)?.parse().ok()?;
    let quantile: f64 = cells.get(quantile)?.parse().ok()?;
    let count = cells.get(count)?.parse().ok()?;
    (value.is_finite() && (0.0..=1.0).contains(&quantile)).then_some(HgrmLine {
        value,
        quantile,
        count,
    })
}

/// The number of samples by the closing lines: `#[Max = 2.5, Total count = 2]`. Python's has decimals.
fn total_of(text: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("#["));
    let total = lines.find_map(|line| {
        let behind = |name: &&str| line.split_once(*name).map(|(_, total)| total);
        TOTAL.iter().find_map(behind)
    })?;
    let total = total.trim_start().strip_prefix('=')?.trim_end();
    let total = total.trim_end_matches(']').trim();
    let (whole, decimals) = total.split_once('.').unwrap_or((total, ""));
    let is_whole = decimals.bytes().all(|digit| digit == b'0');
    whole.parse().ok().filter(|_| is_whole)
}
