//! Values up to high percentiles. Each factor of ten towards 100 % has the same room, so that the tail can be seen.

use serde::Serialize;

use super::drawing::Drawing;
use super::ecdf::{Curve, curve_entries};
use super::frame::{GOES_ON, NOT_DRAWN, Words, both, frame};
use super::palette::{Looks, MOST_SERIES};
use super::scale::{Axis, Kind, Unit, ends, fitting, so_many, with_room};
use super::{PlotError, at_most};
use crate::stats::percentile_of_sorted;

/// The points of samples in ascending order: share of the samples (0 to below 1) and the value up to which they are, up to
/// the last percentile that is not the maximum.
pub fn tail_of_sorted(sorted: &[i64]) -> Vec<(f64, f64)> {
    const PER_TEN: i32 = 40;
    let count = sorted.len().max(1) as f64;
    let last = (count.log10() * f64::from(PER_TEN)).floor() as i32;
    let share_of = |step: i32| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(PER_TEN));
    let points = (0..=last).filter_map(|step| {
        let share = share_of(step);
        Some((share, percentile_of_sorted(sorted, 100.0 * share)?))
    });
    points.collect()
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Percentiles {
    /// The words.
    pub words: Words,
    /// The horizontal axis: "percentile".
    pub percentile: String,
    /// What the samples are, for the vertical axis.
    pub value: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The range of values; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The vertical scale; `None` for the one that fits.
    pub scale: Option<Kind>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Their looks.
    #[serde(skip)]
    pub looks: Looks,
}

/// The highest percentile shown is 99.9999 %.
const MOST_INVERSE: f64 = 1e6;

/// What is said of curves that the axis does not hold; `held` is `None` for points that are not shown on any axis.
fn note_on(curves: &[Curve], held: impl Fn(&(f64, f64)) -> Option<bool>) -> String {
    let (mut beyond, mut cut) = (0, 0);
    for curve in curves {
        let held: Vec<bool> = curve.points.iter().filter_map(&held).collect();
        let inside = held.iter().filter(|&&held| held).count();
        beyond += usize::from(!held.is_empty() && inside == 0);
        cut += usize::from(inside > 0 && inside < held.len());
    }
    let beyond = so_many(beyond, "curve", NOT_DRAWN.0, NOT_DRAWN.1);
    let cut = so_many(cut, "curve", GOES_ON.0, GOES_ON.1);
    both(&beyond, &cut)
}

impl Percentiles {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::Outside`], [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        at_most(self.curves.len(), MOST_SERIES, "curves")?;
        let inverse = |share: f64| 1.0 / (1.0 - share.clamp(0.0, 1.0 - 1e-12));
        let shown = || {
            self.curves
                .iter()
                .flat_map(|curve| &curve.points)
                .filter(|point| inverse(point.0) <= MOST_INVERSE * 1.0001)
        };
        let Some(ends) = ends(shown().map(|point| point.1)) else {
            return Err(PlotError::Nothing("no samples".to_owned()));
        };
        let farthest = shown().map(|point| inverse(point.0)).fold(10.0, f64::max);
        let kind = fitting(ends, self.scale);
        let range = self.range.unwrap_or(with_room(ends, kind));
        let y = Axis::new(&self.value, range, kind, self.unit);
        y.outside("percentiles", shown().map(|point| point.1))?;
        let note = note_on(&self.curves, |point| {
            (inverse(point.0) <= MOST_INVERSE * 1.0001).then(|| y.holds(point.1))
        });
        let mut x = Axis::new(
            &self.percentile,
            (1.0, farthest * 1.0001),
            Kind::Log,
            Unit::Number,
        );
        let ticks = [
            (1.0, "0 %"),
            (2.0, "50 %"),
            (10.0, "90 %"),
            (100.0, "99 %"),
            (1e3, "99.9 %"),
            (1e4, "99.99 %"),
            (1e5, "99.999 %"),
            (1e6, "99.9999 %"),
        ];
        let inside = ticks
            .into_iter()
            .filter(|(value, _)| *value <= farthest * 1.0001);
        x.given = Some(
            inside
                .map(|(value, text)| (value, text.to_owned()))
                .collect(),
        );
        let mut drawing = Drawing::new(size, &self.words.title);
        let entries = curve_entries(&self.curves, &self.looks);
        let plot = frame(&mut drawing, &self.words.warned(&note), x, y, &entries)?;
        for (number, curve) in self.curves.iter().enumerate() {
            let places: Vec<(f64, f64)> = curve
                .points
                .iter()
                .map(|&(share, value)| plot.at(inverse(share), value))
                .collect();
            let look = self.looks.of(number);
            if let [one] = places[..] {
                look.mark_at(&mut drawing, one, 4.0);
            }
            plot.curve(&mut drawing, &places, &look, 1.8);
        }
        Ok(drawing)
    }
}
