//! Samples over time, as marks.

use std::collections::HashSet;

use serde::Serialize;

use super::drawing::Drawing;
use super::frame::{Chart, LegendSymbol, NOT_DRAWN, with_lost};
use super::palette::MOST_SERIES;
use super::scale::{Axis, ScaleKind, Unit, counted, ends};
use super::{PlotError, at_most};

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cloud {
    pub label: String,
    /// Messages that were lost, and are not among the samples, where that is known.
    pub lost: u64,
    /// Samples outside of the range that was asked for.
    pub outside: u64,
    /// Time and value, both in nanoseconds; of many, those that can be distinguished.
    pub points: Vec<(i64, i64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    #[serde(flatten)]
    pub chart: Chart,
    /// The marks, those of the first kinds on top.
    pub clouds: Vec<Cloud>,
}

pub const WHAT: &str = "kinds of marks";

/// Marks nearer than this to one of their kind that is drawn already are left out: they could not be seen.
const GRAIN: f64 = 1.5;

/// Marks of one kind while they come in, of which as many are kept as the figure can show: a file of millions would not
/// fit into memory.
#[derive(Debug, Clone)]
pub struct ThinnedCloud {
    pub cloud: Cloud,
    /// Cells of the grid that hold one of each other's points.
    cells: (f64, f64),
    range: Option<(f64, f64)>,
    limit: usize,
}

impl ThinnedCloud {
    /// As many points as are kept in any case.
    pub const KEPT: usize = 1 << 20;

    /// For a figure of this size and range of values, if one was asked for.
    pub fn new(label: String, size: (u32, u32), range: Option<(f64, f64)>) -> Self {
        ThinnedCloud {
            cloud: Cloud {
                label,
                ..Cloud::default()
            },
            cells: (f64::from(size.0) / GRAIN, f64::from(size.1) / GRAIN),
            range,
            limit: Self::KEPT,
        }
    }

    pub fn push(&mut self, point: (i64, i64)) {
        if self.cloud.points.len() == self.limit {
            self.thin();
            // No more than the grid has cells, however many there are.
            let kept = self.cloud.points.len();
            self.limit = Self::KEPT.max(2 * kept);
            self.cloud.points.reserve_exact(self.limit - kept);
        }
        let (low, high) = self.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        self.cloud.outside += u64::from(!(low..=high).contains(&(point.1 as f64)));
        self.cloud.points.push(point);
    }

    /// Leaves one point of each cell, and the extremes, from which the axes follow. A cell is as large as a mark's
    /// grain both on a linear scale and on a logarithmic one.
    fn thin(&mut self) {
        let points = &mut self.cloud.points;
        let of = |of: fn(&(i64, i64)) -> i64| {
            let all = points.iter().map(of);
            ends(all.map(|it| it as f64)).unwrap_or_default()
        };
        let (times, values) = (of(|point| point.0), of(|point| point.1));
        let (low, high) = self.range.unwrap_or((values.0.min(0.0), values.1));
        let cell = |value: f64, low: f64, high: f64, cells: f64| {
            ((value - low) / (high - low).max(1.0) * cells) as i32
        };
        let (across, along) = self.cells;
        let mut seen = HashSet::with_capacity(points.len() / 2);
        points.retain(|&(time, value)| {
            let (time, value) = (time as f64, value as f64);
            // 64 cells to each factor of two.
            let ratio = value.to_bits() >> 46;
            let ends = [times.0, times.1].map(|end| end == time);
            let extreme = [values.0, values.1].map(|end| end == value);
            let outside = !(low..=high).contains(&value);
            seen.insert((
                cell(time, times.0, times.1, across),
                cell(value.clamp(low, high), low, high, along),
                if outside { 0 } else { ratio },
                (ends, extreme),
            ))
        });
    }
}

impl OverTime {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let all = || self.clouds.iter().flat_map(|cloud| &cloud.points);
        let values = || all().map(|point| point.1 as f64);
        let times = ends(all().map(|point| point.0 as f64));
        let both = times.zip(ends(values()));
        let (times, ends) = both.ok_or_else(PlotError::no_samples)?;
        at_most(self.clouds.len(), MOST_SERIES, WHAT)?;
        let x = Axis::new(&self.chart.x, times, ScaleKind::Linear, Unit::Nanoseconds);
        let y = self.chart.axis_of_values(&self.chart.y, ends);
        let without_place = y.outside("samples", values())?;
        let outside = match self.chart.range {
            // Of many samples outside of the range not all are kept, and within it a logarithmic axis has not for all a
            // place.
            Some((low, high)) => {
                let off_axis = |value: &f64| (low..=high).contains(value) && !y.holds(*value);
                let outside: u64 = self.clouds.iter().map(|cloud| cloud.outside).sum();
                outside as usize + values().filter(off_axis).count()
            }
            None => without_place,
        };
        let note = counted(outside, "sample", NOT_DRAWN.0, NOT_DRAWN.1);
        let clouds = self.clouds.iter();
        let labels = clouds.map(|cloud| with_lost(&cloud.label, cloud.lost));
        let entries = self.chart.legend(labels, LegendSymbol::Mark);
        let (mut drawing, plot) = self.chart.framed(size, &note, (x, y), &entries)?;
        for (number, cloud) in self.clouds.iter().enumerate().rev() {
            let look = self.chart.look(number);
            let mut drawn = HashSet::new();
            let radius = if cloud.points.len() > 2000 { 1.6 } else { 2.4 };
            for &(time, value) in &cloud.points {
                let place = plot.at(time as f64, value as f64);
                let cell = ((place.0 / GRAIN) as i32, (place.1 / GRAIN) as i32);
                if plot.holds(place) && drawn.insert(cell) {
                    look.mark_at(&mut drawing, place, radius);
                }
            }
        }
        Ok(drawing)
    }
}
