//! Medians, or other percentiles, over a setting: a line for each combination of the others, and of medians bars for the
//! middle 80 %. Upright lines are places that a search found.

use serde::Serialize;

use super::drawing::{Colour, Drawing};
use super::frame::{Chart, Entry, GOES_ON, LegendSymbol, NOT_DRAWN, both, incomplete_entry, ring};
use super::palette::{CurveStyle, MOST_SERIES, look};
use super::scale::{Axis, ScaleKind, Unit, counted, ends};
use super::{PlotError, at_most};

/// The share of an axis of numbers that is left free at either end.
const ROOM: f64 = 0.05;

/// One mark: a median with what 10 % of the samples lie below and above, or another percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianMark {
    /// The setting: its number, or its place among `names`.
    pub x: f64,
    pub value: f64,
    /// The 10th and the 90th percentile, where they are known and it is the median.
    pub most: Option<(f64, f64)>,
    /// The interval of the value over rounds, where it is known.
    pub interval: Option<(f64, f64)>,
    /// Whether it is of a part of the samples only.
    pub incomplete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MedianLine {
    pub label: String,
    /// Its marks, in ascending order of the setting.
    pub middles: Vec<MedianMark>,
}

/// A place on an axis of numbers at which conditions hold or fail: an upright line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundPlace {
    pub x: f64,
    /// What is found there, in words.
    pub label: String,
    /// Whether the conditions hold; the line of a place at which they fail is dashed.
    pub holds: bool,
    /// The number of the line whose colour it has; black without one.
    pub line: Option<usize>,
}

/// The strokes and gaps of the line at a place at which conditions fail.
const DASHES_OF_FAILURE: &[f64] = &[6.0, 4.0];

/// The figure; the setting is on the horizontal axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Medians {
    #[serde(flatten)]
    pub chart: Chart,
    /// The values of the setting with their texts, ascending; words are at 0, 1, 2 and so on.
    pub ticks: Vec<(f64, String)>,
    /// Whether the values of the setting are words.
    pub named: bool,
    /// The horizontal scale of settings that are numbers; `None` for the one that fits.
    pub setting_scale: Option<ScaleKind>,
    pub lines: Vec<MedianLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundPlace>,
}

impl Medians {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let middles = || self.lines.iter().flat_map(|line| &line.middles);
        let bar = |middle: &MedianMark| middle.most.unwrap_or((middle.value, middle.value));
        let values = middles().flat_map(|middle| {
            let (low, high) = bar(middle);
            let (lower, upper) = middle.interval.unwrap_or((low, high));
            [middle.value, low, high, lower, upper]
        });
        let ends = ends(values).ok_or_else(PlotError::no_median)?;
        at_most(self.lines.len(), MOST_SERIES, "lines")?;
        let y = self.chart.axis_of_values(&self.chart.y, ends);
        let outside = y.outside("marks", middles().map(|middle| middle.value))?;
        let is_cut = |middle: &&MedianMark| {
            let (low, high) = bar(middle);
            y.holds(middle.value) && !(y.holds(low) && y.holds(high))
        };
        let cut = middles().filter(is_cut).count();
        let note = both(
            &counted(outside, "mark", NOT_DRAWN.0, NOT_DRAWN.1),
            &counted(cut, "bar", GOES_ON.0, GOES_ON.1),
        );
        let sign = match self.named {
            true => LegendSymbol::Mark,
            false => LegendSymbol::LineAndMark,
        };
        let labels = self.lines.iter().map(|line| line.label.clone());
        let mut entries = self.chart.legend(labels, sign);
        if middles().any(|middle| middle.incomplete) {
            entries.push(incomplete_entry());
        }
        entries.extend(self.found.iter().map(|place| Entry {
            label: place.label.clone(),
            look: self.look_of(place),
            sign: LegendSymbol::Line,
        }));
        let axes = (self.setting_axis(), y);
        let (mut drawing, plot) = self.chart.framed(size, &note, axes, &entries)?;
        for place in &self.found {
            let (x, _) = plot.at(place.x, plot.y.low);
            let CurveStyle { colour, dashes, .. } = self.look_of(place);
            drawing.dashed(&[(x, plot.bottom), (x, plot.top)], dashes, 1.4, colour);
        }

        // Marks of one place are beside each other, on an axis of numbers within the room at its ends.
        let places = self.ticks.len().max(2) as f64;
        let width = plot.right - plot.left;
        let most = match self.named {
            true => 24.0,
            false => 6.0_f64.min(width * ROOM / (self.lines.len().max(2) - 1) as f64),
        };
        let apart = (width / places / (self.lines.len() + 1) as f64).min(most);
        let mut incomplete = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let look = self.chart.look(number);
            let beside = (number as f64 - (self.lines.len() - 1) as f64 / 2.0) * apart;
            let place = |x: f64, y: f64| {
                let (x, y) = plot.at(x, y);
                (x + beside, y)
            };
            for middle in &line.middles {
                let interval = look.colour.covering(0.55);
                let bars = [
                    (Some(bar(middle)), 1.2, look.colour),
                    (middle.interval, 4.0, interval),
                ];
                for (ends, width, colour) in bars {
                    let Some((low, high)) = ends else { continue };
                    for run in plot.inside(&[place(middle.x, low), place(middle.x, high)]) {
                        drawing.path(run, width, colour);
                    }
                }
                let (low, high) = middle.most.unzip();
                for end in [low, high].into_iter().flatten() {
                    let (x, y) = place(middle.x, end);
                    if plot.holds((x, y)) {
                        drawing.line((x - 3.5, y), (x + 3.5, y), 1.2, look.colour);
                    }
                }
            }
            let medians: Vec<(f64, f64)> = line
                .middles
                .iter()
                .map(|middle| place(middle.x, middle.value))
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
        // On top, so that no other mark is in the ring.
        for (median, look) in incomplete {
            drawing.dot(median, 5.4, Colour::WHITE);
            look.mark_at(&mut drawing, median, 4.0);
            ring(&mut drawing, median);
        }
        Ok(drawing)
    }

    /// How the line at a place looks.
    fn look_of(&self, place: &FoundPlace) -> CurveStyle {
        let of_line = |line| self.chart.look(line).colour;
        CurveStyle {
            colour: place.line.map_or(Colour::INK, of_line),
            dashes: if place.holds { &[] } else { DASHES_OF_FAILURE },
            ..look((0, 0))
        }
    }

    fn setting_axis(&self) -> Axis {
        if self.named {
            return Axis::named(&self.chart.x, self.ticks.clone());
        }
        let low = self.ticks.first().map_or(0.0, |tick| tick.0);
        let high = self.ticks.last().map_or(1.0, |tick| tick.0);
        let fits = if low > 0.0 && high / low >= 8.0 {
            ScaleKind::Log
        } else {
            ScaleKind::Linear
        };
        let kind = self.setting_scale.unwrap_or(fits);
        let ends = match kind {
            ScaleKind::Linear => (low - (high - low) * ROOM, high + (high - low) * ROOM),
            ScaleKind::Log => {
                let room = (high / low).powf(ROOM);
                (low / room, high * room)
            }
        };
        let mut axis = Axis::new(&self.chart.x, ends, kind, Unit::Number);
        axis.given = Some(self.ticks.clone());
        axis
    }
}
