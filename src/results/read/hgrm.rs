//! Distributions in HdrHistogram's percentile text, as [`report::hgrm`](crate::results::hgrm) and other programs write
//! them.

use std::path::Path;

use super::error::ReadError;
use super::table::whole;

/// A line of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HgrmLine {
    /// The value, in the file's unit: nanoseconds in files of hcabench.
    pub value: f64,
    /// The percentile as a fraction, 0 to 1.
    pub quantile: f64,
    /// Samples up to the value.
    pub count: u64,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Hgrm {
    /// Its lines, values, fractions and counts each ascending.
    pub lines: Vec<HgrmLine>,
    /// The mean, in the file's unit.
    pub mean: f64,
    /// The maximum, in the file's unit.
    pub max: f64,
    /// The number of samples.
    pub total: u64,
}

impl Hgrm {
    /// Reads a `.hgrm` file.
    ///
    /// # Errors
    /// [`ReadError::MissingFile`]; [`ReadError::Truncated`] when the closing lines are not all there;
    /// [`ReadError::Foreign`] when a line is none of the format; [`ReadError::TooLarge`], [`ReadError::Io`].
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let why = "percentiles are drawn from it; name a file that is there";
        Self::of(path, &whole(path, why)?)
    }

    fn of(path: &Path, text: &str) -> Result<Self, ReadError> {
        let mut lines: Vec<HgrmLine> = Vec::new();
        let mut closing = Closing::default();
        let mut header = false;
        let mut number = 0;
        for line in text.lines() {
            number += 1;
            let foreign = |reason: String| ReadError::foreign(path, number, reason);
            let line = line.trim();
            if let Some(figures) = line.strip_prefix("#[") {
                match figures.strip_suffix(']') {
                    Some(figures) => closing
                        .add(figures)
                        .ok_or_else(|| foreign(format!("{line:?} has no figures")))?,
                    None => return Err(ReadError::truncated(path, number, "no closing bracket")),
                }
            } else if line.is_empty() || line.starts_with('#') {
            } else if !header {
                let names: Vec<&str> = line.split_whitespace().collect();
                if !names.starts_with(&["Value", "Percentile", "TotalCount"]) {
                    return Err(
                        if "Value Percentile TotalCount".starts_with(&names.join(" ")) {
                            ReadError::truncated(path, number, "the header is not whole")
                        } else {
                            foreign(
                                "it does not begin with Value, Percentile, TotalCount".to_owned(),
                            )
                        },
                    );
                }
                header = true;
            } else {
                let Some(found) = figures_of(line) else {
                    // What is cut off has no lines behind it.
                    return Err(if text.lines().count() as u64 == number {
                        ReadError::truncated(path, number, "the last line is not whole")
                    } else {
                        foreign(format!("{line:?} is not a value, a percentile and a count"))
                    });
                };
                if lines.last().is_some_and(|before| {
                    before.value > found.value
                        || before.quantile > found.quantile
                        || before.count > found.count
                }) {
                    return Err(foreign("it descends from the line before it".to_owned()));
                }
                lines.push(found);
            }
        }
        let (Some(mean), Some(max), Some(total), true) =
            (closing.mean, closing.max, closing.total, closing.buckets)
        else {
            let reason = "the closing lines (Mean, Max, Buckets) are not all there";
            return Err(ReadError::truncated(path, number, reason));
        };
        let counted = lines.last().map_or(0, |line| line.count);
        if counted != total || lines.last().is_some_and(|line| line.quantile < 1.0) {
            let reason = format!("its lines end at {counted} of {total} samples");
            return Err(ReadError::truncated(path, number, reason));
        }
        Ok(Hgrm {
            lines,
            mean,
            max,
            total,
        })
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

#[derive(Default)]
struct Closing {
    mean: Option<f64>,
    max: Option<f64>,
    total: Option<u64>,
    buckets: bool,
}

impl Closing {
    fn add(&mut self, figures: &str) -> Option<()> {
        for figure in figures.split(',') {
            let (name, value) = figure.split_once('=')?;
            let finite = || value.trim().parse().ok().filter(|it: &f64| it.is_finite());
            match name.trim() {
                "Mean" => self.mean = Some(finite()?),
                "Max" => self.max = Some(finite()?),
                "Total count" => self.total = Some(value.trim().parse().ok()?),
                "Buckets" => self.buckets = true,
                _ => {}
            }
        }
        Some(())
    }
}
