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

/// What the last of the closing lines begins with.
const LAST: &str = "#[Buckets";

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
        let last = text.lines().rfind(|line| line.starts_with("#["));
        if !last.is_some_and(|line| line.starts_with(LAST) && line.trim_end().ends_with(']')) {
            return Err(cut(
                "the closing lines (Mean, Max, Buckets) are not all there",
            ));
        }
        let foreign = |(line, number): (&str, u64), reason: &str| {
            ReadError::foreign(path, number, format!("{line:?} {reason}"))
        };
        let rows = text.lines().map(str::trim).zip(1..);
        let mut rows = rows.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        if let Some(header) = rows.next() {
            let names = header.0.split_whitespace().take(3);
            if !names.eq(["Value", "Percentile", "TotalCount"]) {
                return Err(foreign(header, "is not Value, Percentile, TotalCount"));
            }
        }
        let mut lines: Vec<HgrmLine> = Vec::new();
        for row in rows {
            let no_figures = || foreign(row, "is not a value, a percentile and a count");
            let found = figures_of(row.0).ok_or_else(no_figures)?;
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
        let counted = lines.last().map_or(0, |line| line.count);
        if counted != total || lines.last().is_some_and(|line| line.quantile < 1.0) {
            return Err(cut(&format!(
                "its lines end at {counted} of {total} samples"
            )));
        }
        Ok(Hgrm { lines, total })
    }
}

fn figures_of(line: &str) -> Option<HgrmLine> {
    let mut cells = line.split_whitespace();
    let value: f64 = cells.next()?.parse().ok()?;
    let quantile: f64 = cells.next()?.parse().ok()?;
    let count = cells.next()?.parse().ok()?;
    (value.is_finite() && (0.0..=1.0).contains(&quantile)).then_some(HgrmLine {
        value,
        quantile,
        count,
    })
}

/// The number of samples by the closing lines: `#[Max = 2.5, Total count = 2]`.
fn total_of(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.trim().starts_with("#["));
    let (_, total) = lines.find_map(|line| line.split_once("Total count"))?;
    let total = total.trim_start().strip_prefix('=')?.trim_end();
    total.trim_end_matches(']').trim().parse().ok()
}
