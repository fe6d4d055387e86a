//! Percentiles by interval: how a distribution changed within a run. A line has a gap where an interval has too few
//! samples for its percentile.

use serde::Serialize;

use super::drawing::Drawing;
use super::frame::{Chart, LegendSymbol, NOT_DRAWN};
use super::palette::MOST_SERIES;
use super::scale::{Axis, ScaleKind, Unit, counted, ends};
use super::{PlotError, at_most};

/// What a figure has lines for.
pub const WHAT: &str = "percentiles of points";

/// A percentile of a point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalLine {
    pub label: String,
    /// The middle of each interval, in nanoseconds since the first began, and the value there, if it has one.
    pub values: Vec<(f64, Option<f64>)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByInterval {
    #[serde(flatten)]
    pub chart: Chart,
    pub lines: Vec<IntervalLine>,
    /// When the last interval ends, in nanoseconds since the first began.
    pub end_ns: f64,
}

impl ByInterval {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let all = || self.lines.iter().flat_map(|line| &line.values);
        let values = || all().filter_map(|(_, value)| *value);
        let ends = ends(values()).ok_or_else(PlotError::no_samples)?;
        at_most(self.lines.len(), MOST_SERIES, WHAT)?;
        let times = (0.0, self.end_ns);
        let x = Axis::new(&self.chart.x, times, ScaleKind::Linear, Unit::Nanoseconds);
        let y = self.chart.axis_of_values(&self.chart.y, ends);
        let outside = y.outside("percentiles", values())?;
        let note = counted(outside, "value", NOT_DRAWN.0, NOT_DRAWN.1);
        let labels = self.lines.iter().map(|line| line.label.clone());
        let entries = self.chart.legend(labels, LegendSymbol::Line);
        let (mut drawing, plot) = self.chart.framed(size, &note, (x, y), &entries)?;
        for (number, line) in self.lines.iter().enumerate() {
            let look = self.chart.look(number);
            for run in line.values.split(|(_, value)| value.is_none()) {
                let places = run
                    .iter()
                    .filter_map(|&(time, value)| Some(plot.at(time, value?)));
                let places: Vec<(f64, f64)> = places.collect();
                match places[..] {
                    [one] if plot.holds(one) => look.mark_at(&mut drawing, one, 2.4),
                    _ => plot.curve(&mut drawing, &places, &look, 1.5),
                }
            }
        }
        Ok(drawing)
    }
}
