//! Samples over time, as marks.

use std::collections::HashSet;

use serde::Serialize;

use super::drawing::Drawing;
use super::ecdf::entries;
use super::frame::{NOT_DRAWN, Sign, Words, frame};
use super::palette::{Looks, MOST_SERIES};
use super::scale::{Axis, Kind, Unit, ends, fitting, so_many, with_room};
use super::{PlotError, at_most};

/// Marks of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cloud {
    /// What it is called.
    pub label: String,
    /// Messages that were lost, and are not among the samples, where that is known.
    pub lost: u64,
    /// Samples outside of the range that was asked for.
    pub outside: u64,
    /// Time and value, both in nanoseconds; of many, those that can be told apart.
    pub points: Vec<(i64, i64)>,
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// The words.
    pub words: Words,
    /// What the times are, for the horizontal axis.
    pub time: String,
    /// What the samples are, for the vertical axis.
    pub value: String,
    /// The range of values; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The vertical scale; `None` for the one that fits.
    pub scale: Option<Kind>,
    /// The marks, those of the first kinds on top.
    pub clouds: Vec<Cloud>,
    /// Their looks.
    #[serde(skip)]
    pub looks: Looks,
}

/// Marks nearer than this to one of their kind that is drawn already are left out: nobody could see them.
const GRAIN: f64 = 1.5;

/// Samples over time, of which so many are kept as the figure can show: a file of millions would not fit into memory.
#[derive(Debug, Clone)]
pub struct Thinned {
    points: Vec<(i64, i64)>,
    /// Cells of the grid that hold one of each other's points.
    cells: (f64, f64),
    range: Option<(f64, f64)>,
    limit: usize,
    outside: u64,
}

impl Thinned {
    /// As many points as are kept in any case.
    pub const KEPT: usize = 1 << 20;

    /// For a figure of this size and range of values, if one was asked for.
    pub fn new(size: (u32, u32), range: Option<(f64, f64)>) -> Self {
        Thinned {
            points: Vec::new(),
            cells: (f64::from(size.0) / GRAIN, f64::from(size.1) / GRAIN),
            range,
            limit: Self::KEPT,
            outside: 0,
        }
    }

    /// Adds time and value.
    pub fn push(&mut self, point: (i64, i64)) {
        if self.points.len() == self.limit {
            self.thin();
            // No more than the grid has cells, however many there are.
            self.limit = Self::KEPT.max(2 * self.points.len());
            self.points.reserve_exact(self.limit - self.points.len());
        }
        let (low, high) = self.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        self.outside += u64::from(!(low..=high).contains(&(point.1 as f64)));
        self.points.push(point);
    }

    /// How many samples were outside of the range.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// The points, in the order in which they came.
    pub fn into_points(self) -> Vec<(i64, i64)> {
        self.points
    }

    /// Leaves one point of each cell, and the extremes, from which the axes follow. A cell is as large as a mark's grain
    /// both on a linear scale and on a logarithmic one.
    fn thin(&mut self) {
        let ends = |of: fn(&(i64, i64)) -> i64| {
            let all = || self.points.iter().map(of);
            (all().min().unwrap_or(0), all().max().unwrap_or(0))
        };
        let (times, values) = (ends(|point| point.0), ends(|point| point.1));
        let (low, high) = self
            .range
            .unwrap_or((values.0.min(0) as f64, values.1 as f64));
        let cell = |value: f64, low: f64, high: f64, cells: f64| {
            ((value - low) / (high - low).max(1.0) * cells) as i32
        };
        let (across, along) = self.cells;
        let mut seen = HashSet::with_capacity(self.points.len() / 2);
        self.points.retain(|&(time, value)| {
            // 64 cells to each factor of two.
            let ratio = (value as f64).to_bits() >> 46;
            let extreme = (
                time == times.0,
                time == times.1,
                value == values.0,
                value == values.1,
            );
            let outside = (value as f64) < low || value as f64 > high;
            seen.insert((
                cell(time as f64, times.0 as f64, times.1 as f64, across),
                cell((value as f64).clamp(low, high), low, high, along),
                if outside { 0 } else { ratio },
                extreme,
            ))
        });
    }
}

impl OverTime {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::Outside`], [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let all = || self.clouds.iter().flat_map(|cloud| &cloud.points);
        let times = ends(all().map(|point| point.0 as f64));
        let values = ends(all().map(|point| point.1 as f64));
        let (Some(times), Some(values)) = (times, values) else {
            return Err(PlotError::Nothing("no samples".to_owned()));
        };
        at_most(self.clouds.len(), MOST_SERIES, "kinds of marks")?;
        let kind = fitting(values, self.scale);
        let range = self.range.unwrap_or(with_room(values, kind));
        let x = Axis::new(&self.time, times, Kind::Linear, Unit::Nanoseconds);
        let y = Axis::new(&self.value, range, kind, Unit::Nanoseconds);
        let values = all().map(|point| point.1 as f64);
        let without_place = y.outside("samples", values)? as u64;
        let note = match self.range {
            // Of many samples outside of the range not all are kept, and within it a logarithmic axis has not for all a place.
            Some((low, high)) => {
                let is_inside = |value: f64| (low..=high).contains(&value);
                let values = all().map(|point| point.1 as f64);
                let off_axis = values.filter(|&value| is_inside(value) && !y.holds(value));
                let outside: u64 = self.clouds.iter().map(|cloud| cloud.outside).sum();
                outside + off_axis.count() as u64
            }
            None => without_place,
        };
        let note = so_many(note as usize, "sample", NOT_DRAWN.0, NOT_DRAWN.1);
        let mut drawing = Drawing::new(size, &self.words.title);
        let plot = frame(
            &mut drawing,
            &self.words.warned(&note),
            x,
            y,
            &entries(
                self.clouds.iter().map(|cloud| (&*cloud.label, cloud.lost)),
                &self.looks,
                Sign::Mark,
            ),
        )?;
        for (number, cloud) in self.clouds.iter().enumerate().rev() {
            let look = self.looks.of(number);
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
