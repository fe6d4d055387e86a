//! Curves of samples: the share of them up to each value (`ecdf`), and values up to high percentiles, where each factor
//! of ten towards 100 % has the same room, so that the tail can be seen.

use serde::Serialize;

use super::drawing::Drawing;
use super::frame::{Chart, Entry, GOES_ON, LegendSymbol, NOT_DRAWN, both, with_absent, with_lost};
use super::palette::MOST_SERIES;
use super::scale::{Axis, ScaleKind, Unit, counted, ends, fitting};
use super::{PlotError, at_most};
use crate::stats::percentile_of_sorted;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DistributionCurve {
    pub label: String,
    /// Messages that were lost, and are not among the samples, where that is known.
    pub lost: u64,
    /// Why others were never sent, and how many.
    pub absent: Vec<(&'static str, u64)>,
    /// Its points, ascending in both: value and share of the samples up to it (0 to 1); of percentiles share and value.
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

/// The points of samples in ascending order: share of the samples (0 to below 1) and the value up to which they are, up
/// to the last percentile that is not the maximum.
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curves {
    #[serde(flatten)]
    pub chart: Chart,
    pub curves: Vec<DistributionCurve>,
}

/// The highest percentile shown is 99.9999 %.
const MOST_INVERSE: f64 = 1e6;

/// The place of a share: the inverse of what is above it; `None` for what is not shown.
fn inverse(share: f64) -> Option<f64> {
    let inverse = 1.0 / (1.0 - share.clamp(0.0, 1.0 - 1e-12));
    (inverse <= MOST_INVERSE * 1.0001).then_some(inverse)
}

impl Curves {
    fn legend(&self) -> Vec<Entry> {
        let curves = self.curves.iter();
        let label = |curve: &DistributionCurve| {
            with_absent(with_lost(&curve.label, curve.lost), &curve.absent)
        };
        let labels = curves.map(label);
        self.chart.legend(labels, LegendSymbol::Line)
    }

    /// Draws shares up to each value, which is on the horizontal axis.
    pub fn ecdf(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let chart = &self.chart;
        let values = || {
            let points = self.curves.iter().flat_map(|curve| &curve.points);
            points.map(|point| point.0)
        };
        let ends = ends(values()).ok_or_else(PlotError::no_samples)?;
        at_most(self.curves.len(), MOST_SERIES, "curves")?;
        let (range, kind) = (chart.range.unwrap_or(ends), fitting(ends, chart.scale));
        let x = Axis::new(&chart.x, range, kind, Unit::Nanoseconds);
        // A curve that lies beyond the range still shows it: it stays at 0 % or at 100 %.
        x.outside("samples", values())?;
        let y = Axis::new(&chart.y, (0.0, 100.0), ScaleKind::Linear, Unit::Percent);
        let (mut drawing, plot) = chart.framed(size, "", (x, y), &self.legend())?;
        for (number, curve) in self.curves.iter().enumerate() {
            let mut steps: Vec<(f64, f64)> = Vec::with_capacity(2 * curve.points.len());
            let mut before = 0.0;
            if chart.range.is_some() && curve.points.first().is_some_and(|it| it.0 > plot.x.low) {
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
            plot.curve(&mut drawing, &steps, &chart.look(number), 1.8);
        }
        Ok(drawing)
    }

    /// Draws values up to high percentiles, the values upwards.
    pub fn percentiles(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        at_most(self.curves.len(), MOST_SERIES, "curves")?;
        let shown = |curve: &DistributionCurve| -> Vec<(f64, f64)> {
            let points = curve.points.iter();
            let shown = points.filter_map(|&(share, value)| Some((inverse(share)?, value)));
            shown.collect()
        };
        let shown: Vec<Vec<(f64, f64)>> = self.curves.iter().map(shown).collect();
        let values = || shown.iter().flatten().map(|point| point.1);
        let ends = ends(values()).ok_or_else(PlotError::no_samples)?;
        let y = self.chart.axis_of_values(&self.chart.y, ends);
        y.outside("percentiles", values())?;
        let (mut beyond, mut cut) = (0, 0);
        for points in &shown {
            let inside = points.iter().filter(|point| y.holds(point.1)).count();
            beyond += usize::from(!points.is_empty() && inside == 0);
            cut += usize::from(inside > 0 && inside < points.len());
        }
        let note = both(
            &counted(beyond, "curve", NOT_DRAWN.0, NOT_DRAWN.1),
            &counted(cut, "curve", GOES_ON.0, GOES_ON.1),
        );
        let places = shown.iter().flatten().map(|point| point.0);
        let farthest = places.fold(10.0, f64::max) * 1.0001;
        let mut x = Axis::new(&self.chart.x, (1.0, farthest), ScaleKind::Log, Unit::Number);
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
        let inside = ticks.into_iter().filter(|(value, _)| *value <= farthest);
        let inside = inside.map(|(value, text)| (value, text.to_owned()));
        x.given = Some(inside.collect());
        let (mut drawing, plot) = self.chart.framed(size, &note, (x, y), &self.legend())?;
        for (number, points) in shown.iter().enumerate() {
            let places: Vec<(f64, f64)> = points.iter().map(|&(x, y)| plot.at(x, y)).collect();
            let look = self.chart.look(number);
            if let [one] = places[..] {
                look.mark_at(&mut drawing, one, 4.0);
            }
            plot.curve(&mut drawing, &places, &look, 1.8);
        }
        Ok(drawing)
    }
}
