//! Medians over a setting: a line for each combination of the others, and bars for the middle 80 %.

use serde::Serialize;

use super::PlotError;
use super::drawing::{Colour, Drawing};
use super::frame::{Entry, Sign, Words, frame, incomplete_entry, ring};
use super::palette::{MOST_SERIES, look};
use super::scale::{Axis, Kind, Unit};

/// One mark: a median, and what 10 % of the samples lie below and above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    /// The setting: its number, or where it stands among `names`.
    pub x: f64,
    /// The median.
    pub median: f64,
    /// The 10th and the 90th percentile, where they are known.
    pub most: Option<(f64, f64)>,
    /// Whether it is of a part of the samples only.
    pub incomplete: bool,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// What it is called.
    pub label: String,
    /// Its marks, in ascending order of the setting.
    pub middles: Vec<Middle>,
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Medians {
    /// The words.
    pub words: Words,
    /// The setting, for the horizontal axis.
    pub setting: String,
    /// The values of the setting with their texts, ascending; words stand at 0, 1, 2 and so on.
    pub ticks: Vec<(f64, String)>,
    /// Whether the values of the setting are words.
    pub named: bool,
    /// The horizontal scale of settings that are numbers; `None` for the one that fits.
    pub setting_scale: Option<Kind>,
    /// What the values are, for the vertical axis.
    pub value: String,
    /// Their unit.
    pub unit: Unit,
    /// The range of values; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The vertical scale; `None` for the one that fits.
    pub scale: Option<Kind>,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Medians {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without a mark, [`PlotError::Outside`], [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let middles = || self.lines.iter().flat_map(|line| &line.middles);
        if middles().next().is_none() {
            return Err(PlotError::Nothing("no point has a median".to_owned()));
        }
        if self.lines.len() > MOST_SERIES {
            return Err(PlotError::TooMuch {
                found: self.lines.len(),
                most: MOST_SERIES,
                what: "lines",
            });
        }
        let ends = |middle: &Middle| middle.most.unwrap_or((middle.median, middle.median));
        let lowest = middles()
            .map(|middle| ends(middle).0.min(middle.median))
            .fold(f64::INFINITY, f64::min);
        let highest = middles()
            .map(|middle| ends(middle).1.max(middle.median))
            .fold(f64::NEG_INFINITY, f64::max);
        let wide = lowest > 0.0 && highest / lowest > 30.0;
        let kind = self
            .scale
            .unwrap_or(if wide { Kind::Log } else { Kind::Linear });
        let range = self.range.unwrap_or(match kind {
            Kind::Linear => (
                lowest.min(0.0),
                highest + (highest - lowest.min(0.0)) * 0.05,
            ),
            Kind::Log => (lowest / 1.2, highest * 1.2),
        });
        let y = Axis::new(&self.value, range, kind, self.unit);
        let outside = y.outside("medians", middles().map(|middle| middle.median))?;
        let outside = match outside {
            0 => None,
            1 => Some("1 median lies outside of the axis and is not drawn".to_owned()),
            more => Some(format!(
                "{more} medians lie outside of the axis and are not drawn"
            )),
        };
        let is_cut = |middle: &&Middle| {
            let (low, high) = ends(middle);
            y.holds(middle.median) && !(y.holds(low) && y.holds(high))
        };
        let cut = match middles().filter(is_cut).count() {
            0 => None,
            1 => Some("1 bar goes on outside of the axis".to_owned()),
            more => Some(format!("{more} bars go on outside of the axis")),
        };
        let note = outside
            .into_iter()
            .chain(cut)
            .collect::<Vec<_>>()
            .join("; ");
        let x = self.setting_axis();
        let marks = self.lines.iter().enumerate().map(|(number, line)| Entry {
            label: line.label.clone(),
            look: look(number),
            sign: if self.named {
                Sign::Mark
            } else {
                Sign::LineAndMark
            },
        });
        let mut entries: Vec<Entry> = if self.lines.len() > 1 || !self.lines[0].label.is_empty() {
            marks.collect()
        } else {
            Vec::new()
        };
        if middles().any(|middle| middle.incomplete) {
            entries.push(incomplete_entry());
        }
        let mut drawing = Drawing::new(size, &self.words.title);
        let plot = frame(&mut drawing, &self.words.warned(&note), x, y, &entries)?;

        // Bars of one place stand beside each other.
        let places = self.ticks.len().max(2) as f64;
        let apart = ((plot.right - plot.left) / places / (self.lines.len() + 1) as f64)
            .min(if self.named { 24.0 } else { 6.0 });
        let mut incomplete = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let look = look(number);
            let beside = (number as f64 - (self.lines.len() - 1) as f64 / 2.0) * apart;
            let place = |x: f64, y: f64| {
                let (x, y) = plot.at(x, y);
                (x + beside, y)
            };
            for middle in &line.middles {
                let (low, high) = ends(middle);
                let bar = [place(middle.x, low), place(middle.x, high)];
                for run in plot.inside(&bar) {
                    drawing.path(run, 1.2, look.colour);
                }
                for end in bar
                    .into_iter()
                    .filter(|&end| middle.most.is_some() && plot.holds(end))
                {
                    drawing.line((end.0 - 3.5, end.1), (end.0 + 3.5, end.1), 1.2, look.colour);
                }
            }
            // On an axis of numbers a median stands at its number, and only its bar beside those of the others.
            let medians: Vec<(f64, f64)> = line
                .middles
                .iter()
                .map(|middle| match self.named {
                    true => place(middle.x, middle.median),
                    false => plot.at(middle.x, middle.median),
                })
                .collect();
            if !self.named {
                plot.curve(&mut drawing, &medians, &look, 1.8);
            }
            for (&median, middle) in medians.iter().zip(&line.middles) {
                if plot.holds(median) {
                    drawing.dot(median, 5.4, Colour::WHITE);
                    look.mark_at(&mut drawing, median, 4.0);
                    incomplete.extend(middle.incomplete.then_some((median, look)));
                }
            }
        }
        // On top, so that no other mark stands in the ring.
        for (median, look) in incomplete {
            drawing.dot(median, 5.4, Colour::WHITE);
            look.mark_at(&mut drawing, median, 4.0);
            ring(&mut drawing, median);
        }
        Ok(drawing)
    }

    fn setting_axis(&self) -> Axis {
        if self.named {
            let names: Vec<String> = self.ticks.iter().map(|(_, text)| text.clone()).collect();
            return Axis::named(&self.setting, &names);
        }
        let low = self.ticks.first().map_or(0.0, |tick| tick.0);
        let high = self.ticks.last().map_or(1.0, |tick| tick.0);
        let fits = if low > 0.0 && high / low >= 8.0 {
            Kind::Log
        } else {
            Kind::Linear
        };
        let kind = self.setting_scale.unwrap_or(fits);
        let (low, high) = match kind {
            Kind::Linear => (low - (high - low) * 0.04, high + (high - low) * 0.04),
            Kind::Log => (
                low / (high / low).powf(0.04),
                high * (high / low).powf(0.04),
            ),
        };
        let mut axis = Axis::new(&self.setting, (low, high), kind, Unit::Number);
        axis.given = Some(self.ticks.clone());
        axis
    }
}
