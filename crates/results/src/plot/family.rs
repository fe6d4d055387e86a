//! A family of curves: latency over the bandwidth of a memory, a curve for each share of reads. Points are joined in
//! the order of load, never by bandwidth, so that a curve that bends backwards is seen to.
//!
//! Dots are what was measured. The line through them is the smoothed one; where there is none, a thin one joins the
//! dots. Hollow marks are points with a reservation. Curves of others lie below, dashed and grey.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::frame::{Chart, Entry, GOES_ON, LegendSymbol, NOT_DRAWN, Plot, both, hollow};
use super::palette::{CurveStyle, MOST_SERIES, graded, look};
use super::scale::{Axis, ScaleKind, Unit, counted, ends, with_room};
use super::{PlotError, at_most, font};

/// A point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dot {
    /// In 10^9 bytes a second.
    pub bandwidth_gb_s: f64,
    pub latency_ns: f64,
    /// The interval of the latency over rounds, where it is known.
    pub interval: Option<(f64, f64)>,
    /// Its reservations, with blanks between; empty if nothing.
    pub marks: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyCurve {
    pub label: String,
    /// The place of its colour between the first and the last, 0 to 1: its share of reads.
    pub shade: f64,
    /// Which kind of line and mark it has: curves that differ in more than the share of reads have another.
    pub kind: usize,
    /// In the order of load.
    pub dots: Vec<Dot>,
    /// Bandwidth and smoothed latency in the order of load; none if it was not smoothed.
    pub smoothed: Vec<(f64, f64)>,
}

/// A curve of others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// The text at its end: its share of reads.
    pub label: String,
    /// Bandwidth in 10^9 bytes a second and latency in nanoseconds, in the order of load.
    pub points: Vec<(f64, f64)>,
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Family {
    #[serde(flatten)]
    pub chart: Chart,
    pub curves: Vec<FamilyCurve>,
    /// What those of others are called in the legend.
    pub published_as: String,
    pub published: Vec<Published>,
}

const OF_OTHERS: Colour = Colour(0x8c, 0x8c, 0x8c, 1.0);
const DASHES_OF_OTHERS: &[f64] = &[5.0, 3.0];
const LABEL_OF_OTHERS_EM: f64 = 10.0;

impl FamilyCurve {
    fn look(&self) -> CurveStyle {
        CurveStyle {
            colour: graded(self.shade),
            ..look((0, self.kind))
        }
    }
}

impl Family {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        at_most(self.curves.len(), MOST_SERIES, "curves")?;
        let y = self.latencies()?;
        let dots = || self.curves.iter().flat_map(|curve| &curve.dots);
        let outside = y.outside("points", dots().map(|dot| dot.latency_ns))?;
        let goes_on = |curve: &&Published| curve.points.iter().any(|point| !y.holds(point.1));
        let cut = self.published.iter().filter(goes_on).count();
        let note = both(
            &counted(outside, "point", NOT_DRAWN.0, NOT_DRAWN.1),
            &counted(cut, "published curve", GOES_ON.0, GOES_ON.1),
        );
        let axes = (self.bandwidths(), y);
        let (mut drawing, plot) = self.chart.framed(size, &note, axes, &self.legend())?;
        self.draw_published(&mut drawing, &plot);
        for curve in &self.curves {
            curve.draw_lines(&mut drawing, &plot);
        }
        // On top of all lines.
        for curve in &self.curves {
            curve.draw_dots(&mut drawing, &plot);
        }
        Ok(drawing)
    }

    /// The vertical axis: it has room for all that was measured, and for the curves of others.
    fn latencies(&self) -> Result<Axis, PlotError> {
        let of_dot = |dot: &Dot| {
            let (low, high) = dot.interval.unwrap_or((dot.latency_ns, dot.latency_ns));
            [dot.latency_ns, low, high]
        };
        let curves = self.curves.iter();
        let own = curves.flat_map(|curve| {
            let dots = curve.dots.iter().flat_map(of_dot);
            dots.chain(curve.smoothed.iter().map(|point| point.1))
        });
        let others = self.published.iter().flat_map(|curve| &curve.points);
        let ends = ends(own.chain(others.map(|point| point.1)));
        let nothing = || PlotError::Nothing("no point has a bandwidth and a latency".to_owned());
        let ends = ends.ok_or_else(nothing)?;
        Ok(self.chart.axis_of_values(&self.chart.y, ends))
    }

    fn bandwidths(&self) -> Axis {
        let dots = self.curves.iter().flat_map(|curve| &curve.dots);
        let others = self.published.iter().flat_map(|curve| &curve.points);
        let all = dots.map(|dot| dot.bandwidth_gb_s);
        let most = all.chain(others.map(|point| point.0)).fold(0.0, f64::max);
        let range = with_room((0.0, most), ScaleKind::Linear);
        Axis::new(
            &self.chart.x,
            range,
            ScaleKind::Linear,
            Unit::GigabytesPerSecond,
        )
    }

    fn legend(&self) -> Vec<Entry> {
        let curves = self.curves.iter();
        let mut entries: Vec<Entry> = curves
            .map(|curve| Entry {
                label: curve.label.clone(),
                look: curve.look(),
                sign: LegendSymbol::LineAndMark,
            })
            .collect();
        entries.retain(|entry| !entry.label.is_empty());
        if let Some(marks) = self.marks() {
            entries.push(Entry {
                label: marks,
                look: CurveStyle {
                    colour: Colour::INK,
                    ..look((0, 0))
                },
                sign: LegendSymbol::Hollow,
            });
        }
        if !self.published.is_empty() {
            entries.push(Entry {
                label: self.published_as.clone(),
                look: CurveStyle {
                    colour: OF_OTHERS,
                    dashes: DASHES_OF_OTHERS,
                    ..look((0, 0))
                },
                sign: LegendSymbol::Line,
            });
        }
        entries
    }

    /// All marks that points have, each once; `None` without any.
    fn marks(&self) -> Option<String> {
        let mut all: Vec<&str> = Vec::new();
        for dot in self.curves.iter().flat_map(|curve| &curve.dots) {
            for mark in dot.marks.split_whitespace() {
                if !all.contains(&mark) {
                    all.push(mark);
                }
            }
        }
        (!all.is_empty()).then(|| all.join(" or "))
    }

    fn draw_published(&self, drawing: &mut Drawing, plot: &Plot) {
        let mut labels: Vec<(f64, f64)> = Vec::new();
        for curve in &self.published {
            let places: Vec<(f64, f64)> =
                curve.points.iter().map(|&(x, y)| plot.at(x, y)).collect();
            for run in plot.inside(&places) {
                drawing.dashed(&run, DASHES_OF_OTHERS, 1.2, OF_OTHERS);
            }
            let mut inside = places.iter().rev().filter(|place| plot.holds(**place));
            let Some(&(x, y)) = inside.next() else {
                continue;
            };
            // A label that would lie on another is left out: the next curve has about the same share.
            let width = font::width(&curve.label, LABEL_OF_OTHERS_EM);
            let is_free = |&(at, height): &(f64, f64)| {
                (at - x).abs() > width + 4.0 || (height - y).abs() > LABEL_OF_OTHERS_EM
            };
            if labels.iter().all(is_free) {
                labels.push((x, y));
                let at = (
                    x.clamp(plot.left + width + 3.0, plot.right - 2.0),
                    (y - 4.0).max(plot.top + LABEL_OF_OTHERS_EM),
                );
                let (em, colour) = (LABEL_OF_OTHERS_EM, Colour::FAINT_INK);
                drawing.text(at, &curve.label, em, Anchor::End, colour);
            }
        }
    }
}

impl FamilyCurve {
    fn draw_lines(&self, drawing: &mut Drawing, plot: &Plot) {
        let look = self.look();
        let dots = || {
            self.dots
                .iter()
                .map(|dot| plot.at(dot.bandwidth_gb_s, dot.latency_ns))
        };
        match self.smoothed[..] {
            [] => {
                let places: Vec<(f64, f64)> = dots().collect();
                plot.curve(drawing, &places, &look, 0.8);
            }
            _ => {
                let places: Vec<(f64, f64)> =
                    self.smoothed.iter().map(|&(x, y)| plot.at(x, y)).collect();
                plot.curve(drawing, &places, &look, 2.0);
            }
        }
        for dot in &self.dots {
            if let Some((low, high)) = dot.interval {
                let bar = [low, high].map(|value| plot.at(dot.bandwidth_gb_s, value));
                for run in plot.inside(&bar) {
                    drawing.path(run, 3.0, look.colour.covering(0.45));
                }
            }
        }
    }

    fn draw_dots(&self, drawing: &mut Drawing, plot: &Plot) {
        let look = self.look();
        for dot in &self.dots {
            let place = plot.at(dot.bandwidth_gb_s, dot.latency_ns);
            if !plot.holds(place) {
                continue;
            }
            match dot.marks.is_empty() {
                true => {
                    drawing.dot(place, 4.2, Colour::WHITE);
                    look.mark_at(drawing, place, 3.2);
                }
                false => hollow(drawing, &look, place),
            }
        }
    }
}
