//! The share of samples up to each value.

use serde::Serialize;

use super::drawing::Drawing;
use super::frame::{Entry, Sign, Words, frame};
use super::palette::{Looks, MOST_SERIES};
use super::scale::{Axis, Kind, Unit, ends, fitting};
use super::{PlotError, at_most};

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What it is called.
    pub label: String,
    /// Messages that were lost, and are not among the samples, where that is known.
    pub lost: u64,
    /// Its points, ascending in both: here value and share of the samples up to it (0 to 1), of percentiles share and value.
    pub points: Vec<(f64, f64)>,
}

/// The points of samples in ascending order: of many samples, as many as can be seen, the extremes among them.
pub fn shares_of_sorted(sorted: &[i64]) -> Vec<(f64, f64)> {
    const MOST: usize = 2000;
    let count = sorted.len();
    let ranks: Vec<usize> = if count <= MOST {
        (0..count).collect()
    } else {
        (0..=MOST).map(|part| part * (count - 1) / MOST).collect()
    };
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let value = sorted[rank];
        // All samples of the same value are up to it.
        let up_to = sorted.partition_point(|&sample| sample <= value) as f64 / count as f64;
        if points.last().is_none_or(|last| last.0 < value as f64) {
            points.push((value as f64, up_to));
        }
    }
    points
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ecdf {
    /// The words.
    pub words: Words,
    /// What the samples are, for the horizontal axis.
    pub value: String,
    /// The vertical axis: "share of messages up to it".
    pub share: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The range of values; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The horizontal scale; `None` for the one that fits.
    pub scale: Option<Kind>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Their looks.
    #[serde(skip)]
    pub looks: Looks,
}

impl Ecdf {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::Outside`], [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let values = || {
            let points = self.curves.iter().flat_map(|curve| &curve.points);
            points.map(|point| point.0)
        };
        let Some(ends) = ends(values()) else {
            return Err(PlotError::Nothing("no samples".to_owned()));
        };
        at_most(self.curves.len(), MOST_SERIES, "curves")?;
        let kind = fitting(ends, self.scale);
        let x = Axis::new(&self.value, self.range.unwrap_or(ends), kind, self.unit);
        // A curve that lies beyond the range still tells so: it stays at 0 % or at 100 %.
        x.outside("samples", values())?;
        let y = Axis::new(&self.share, (0.0, 100.0), Kind::Linear, Unit::Percent);
        let mut drawing = Drawing::new(size, &self.words.title);
        let entries = curve_entries(&self.curves, &self.looks);
        let plot = frame(&mut drawing, &self.words, x, y, &entries)?;
        for (number, curve) in self.curves.iter().enumerate() {
            let mut steps: Vec<(f64, f64)> = Vec::with_capacity(2 * curve.points.len());
            let mut before = 0.0;
            if self.range.is_some() && curve.points.first().is_some_and(|it| it.0 > plot.x.low) {
                steps.push(plot.at(plot.x.low, 0.0));
            }
            for &(value, share) in &curve.points {
                // Left of the axis there is a place for what has no logarithm.
                steps.push(plot.at(value, 100.0 * before));
                steps.push(plot.at(value, 100.0 * share));
                before = share;
            }
            if let Some(last) = curve.points.last().filter(|last| last.0 < plot.x.high) {
                steps.push(plot.at(last.0, 100.0));
                steps.push(plot.at(plot.x.high, 100.0));
            }
            plot.curve(&mut drawing, &steps, &self.looks.of(number), 1.8);
        }
        Ok(drawing)
    }
}

/// A label, and how many messages were lost, if any.
fn with_lost(label: &str, lost: u64) -> String {
    match (label, lost) {
        (_, 0) => label.to_owned(),
        ("", _) => format!("{lost} lost"),
        _ => format!("{label}, {lost} lost"),
    }
}

/// A legend, each entry with its label and how many messages were lost; of a single one with neither, none.
pub(super) fn entries<'a>(
    lines: impl Iterator<Item = (&'a str, u64)>,
    looks: &Looks,
    sign: Sign,
) -> Vec<Entry> {
    let entries: Vec<Entry> = lines
        .enumerate()
        .map(|(number, (label, lost))| Entry {
            label: with_lost(label, lost),
            look: looks.of(number),
            sign,
        })
        .collect();
    if entries.len() == 1 && entries[0].label.is_empty() {
        Vec::new()
    } else {
        entries
    }
}

/// The legend of curves.
pub(super) fn curve_entries(curves: &[Curve], looks: &Looks) -> Vec<Entry> {
    let curves = curves.iter().map(|curve| (&*curve.label, curve.lost));
    entries(curves, looks, Sign::Line)
}
