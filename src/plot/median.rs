//! Medians over a setting: a line for each combination of the others, and bars for the middle 80 %.

use serde::Serialize;

use super::drawing::{Colour, Drawing};
use super::frame::{Entry, GOES_ON, NOT_DRAWN, Sign, Words, both, frame, incomplete_entry, ring};
use super::palette::{Looks, MOST_SERIES};
use super::scale::{Axis, Kind, Unit, ends, fitting, so_many, with_room};
use super::{PlotError, at_most};

/// One mark: a median, and what 10 % of the samples lie below and above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    /// The setting: its number, or where it stands among `names`.
    pub x: f64,
    /// The median.
    pub median: f64,
    /// The 10th and the 90th percentile, where they are known.
    pub most: Option<(f64, f64)>,
    /// The interval of the median over rounds, where it is known.
    pub interval: Option<(f64, f64)>,
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
    /// Their looks.
    #[serde(skip)]
    pub looks: Looks,
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
        at_most(self.lines.len(), MOST_SERIES, "lines")?;
        let bar = |middle: &Middle| middle.most.unwrap_or((middle.median, middle.median));
        let values = middles().flat_map(|middle| {
            let (low, high) = bar(middle);
            let (lower, upper) = middle.interval.unwrap_or((low, high));
            [middle.median, low, high, lower, upper]
        });
        let values = ends(values).unwrap_or_default();
        let kind = fitting(values, self.scale);
        let range = self.range.unwrap_or(with_room(values, kind));
        let y = Axis::new(&self.value, range, kind, self.unit);
        let outside = y.outside("medians", middles().map(|middle| middle.median))?;
        let is_cut = |middle: &&Middle| {
            let (low, high) = bar(middle);
            y.holds(middle.median) && !(y.holds(low) && y.holds(high))
        };
        let cut = middles().filter(is_cut).count();
        let note = both(
            &so_many(outside, "median", NOT_DRAWN.0, NOT_DRAWN.1),
            &so_many(cut, "bar", GOES_ON.0, GOES_ON.1),
        );
        let x = self.setting_axis();
        let marks = self.lines.iter().enumerate().map(|(number, line)| Entry {
            label: line.label.clone(),
            look: self.looks.of(number),
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
            let look = self.looks.of(number);
            let beside = (number as f64 - (self.lines.len() - 1) as f64 / 2.0) * apart;
            let place = |x: f64, y: f64| {
                let (x, y) = plot.at(x, y);
                (x + beside, y)
            };
            for middle in &line.middles {
                let (low, high) = bar(middle);
                let bar = [place(middle.x, low), place(middle.x, high)];
                for run in plot.inside(&bar) {
                    drawing.path(run, 1.2, look.colour);
                }
                if let Some((low, high)) = middle.interval {
                    let interval = [place(middle.x, low), place(middle.x, high)];
                    for run in plot.inside(&interval) {
                        drawing.path(run, 4.0, look.colour.covering(0.55));
                    }
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
