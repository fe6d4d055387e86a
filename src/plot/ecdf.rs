//! The share of samples up to each value.

use serde::Serialize;

use super::PlotError;
use super::drawing::Drawing;
use super::frame::{Entry, Sign, Words, frame};
use super::palette::{MOST_SERIES, look};
use super::scale::{Axis, Kind, Unit};

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// What it is called.
    pub label: String,
    /// Messages that were lost, and are not among the samples, where that is known.
    pub lost: u64,
    /// Value and share of the samples up to it (0 to 1), both ascending.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// The curve of samples in ascending order: of many samples, as many points as can be seen, the extremes among them.
    pub fn of_sorted(label: &str, sorted: &[i64]) -> Self {
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
        Curve {
            label: label.to_owned(),
            lost: 0,
            points,
        }
    }
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
}

impl Ecdf {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::Outside`], [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let ends: Vec<(f64, f64)> = self
            .curves
            .iter()
            .filter_map(|curve| Some((curve.points.first()?.0, curve.points.last()?.0)))
            .collect();
        if ends.is_empty() {
            return Err(PlotError::Nothing("no samples".to_owned()));
        }
        if self.curves.len() > MOST_SERIES {
            return Err(PlotError::TooMuch {
                found: self.curves.len(),
                most: MOST_SERIES,
                what: "curves",
            });
        }
        let lowest = ends.iter().map(|end| end.0).fold(f64::INFINITY, f64::min);
        let highest = ends
            .iter()
            .map(|end| end.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let wide = lowest > 0.0 && highest / lowest > 30.0;
        let kind = self
            .scale
            .unwrap_or(if wide { Kind::Log } else { Kind::Linear });
        let x = Axis::new(
            &self.value,
            self.range.unwrap_or((lowest, highest)),
            kind,
            self.unit,
        );
        // A curve that lies beyond the range still tells so: it stays at 0 % or at 100 %.
        let values = self.curves.iter().flat_map(|curve| &curve.points);
        x.outside("samples", values.map(|point| point.0))?;
        let y = Axis::new(&self.share, (0.0, 100.0), Kind::Linear, Unit::Percent);
        let mut drawing = Drawing::new(size, &self.words.title);
        let plot = frame(
            &mut drawing,
            &self.words,
            x,
            y,
            &entries(self.curves.iter().map(|curve| (&*curve.label, curve.lost))),
        )?;
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
            plot.curve(&mut drawing, &steps, &look(number), 1.8);
        }
        Ok(drawing)
    }
}

/// A label, and how many messages were lost, if any.
pub(super) fn with_lost(label: &str, lost: u64) -> String {
    match (label, lost) {
        (_, 0) => label.to_owned(),
        ("", _) => format!("{lost} lost"),
        _ => format!("{label}, {lost} lost"),
    }
}

/// A legend of lines, each with its label and how many messages were lost; of a single one with neither, none.
pub(super) fn entries<'a>(lines: impl Iterator<Item = (&'a str, u64)>) -> Vec<Entry> {
    let entries: Vec<Entry> = lines
        .enumerate()
        .map(|(number, (label, lost))| Entry {
            label: with_lost(label, lost),
            look: look(number),
            sign: Sign::Line,
        })
        .collect();
    if entries.len() == 1 && entries[0].label.is_empty() {
        Vec::new()
    } else {
        entries
    }
}
