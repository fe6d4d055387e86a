//! Latency under load: percentiles over what is delivered in the background, a line for each series and percentile.
//! From each mark a thin line leads to what was offered. Hollow marks are points with the same work beside the
//! measurement, and no traffic.

use serde::Serialize;

use super::drawing::{Colour, Drawing};
use super::frame::{
    Chart, Entry, GOES_ON, LegendSymbol, NOT_DRAWN, both, hollow, incomplete_entry, ring,
};
use super::palette::{CurveStyle, MOST_SERIES, look};
use super::scale::{Axis, ScaleKind, Unit, counted, ends};
use super::{PlotError, at_most};

/// The share of the axis that is left free at its end.
const ROOM: f64 = 0.04;
/// The offered load is shown up to this many times the largest delivered one.
const MOST_OFFERED: f64 = 3.0;

/// One mark.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// Bytes a second that were delivered in the background.
    pub delivered: f64,
    /// The same that were offered.
    pub offered: f64,
    /// The latency.
    pub value: f64,
    /// Its interval over rounds, where it is known.
    pub interval: Option<(f64, f64)>,
    /// Whether it is of a part of the samples only.
    pub incomplete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadLine {
    pub label: String,
    /// In ascending order of what was delivered.
    pub steps: Vec<Step>,
    /// Those with the same work and no traffic, each at what the point beside it delivered.
    pub unsent: Vec<Step>,
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loads {
    #[serde(flatten)]
    pub chart: Chart,
    pub lines: Vec<LoadLine>,
}

impl Loads {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let steps = || self.lines.iter().flat_map(|line| &line.steps);
        let all = || steps().chain(self.lines.iter().flat_map(|line| &line.unsent));
        let values = all().flat_map(|step| {
            let (low, high) = step.interval.unwrap_or((step.value, step.value));
            [step.value, low, high]
        });
        let ends_of_values = ends(values).ok_or_else(PlotError::no_median)?;
        at_most(self.lines.len(), MOST_SERIES, "lines")?;
        let y = self.chart.axis_of_values(&self.chart.y, ends_of_values);
        let outside = y.outside("marks", all().map(|step| step.value))?;
        let most = |of: fn(&Step) -> f64| all().map(of).fold(0.0, f64::max);
        let delivered = most(|step| step.delivered);
        let offered = most(|step| step.offered);
        let end = offered.min(MOST_OFFERED * delivered).max(delivered);
        let range = (-ROOM / 2.0 * end, (1.0 + ROOM) * end);
        let x = Axis::new(
            &self.chart.x,
            range,
            ScaleKind::Linear,
            Unit::BytesPerSecond,
        );
        let cut = steps().filter(|step| !x.holds(step.offered)).count();
        let cut = counted(cut, "thin line", GOES_ON.0, GOES_ON.1);
        let cut = match cut.as_str() {
            "" => cut,
            cut => format!("{cut}: up to {} was offered", x.in_words(offered)),
        };
        let note = both(&counted(outside, "mark", NOT_DRAWN.0, NOT_DRAWN.1), &cut);
        let labels = self.lines.iter().map(|line| line.label.clone());
        let mut entries = self.chart.legend(labels, LegendSymbol::LineAndMark);
        if self.lines.iter().any(|line| !line.unsent.is_empty()) {
            entries.push(Entry {
                label: "same work on that CPU, no traffic".to_owned(),
                look: CurveStyle {
                    colour: Colour::INK,
                    ..look((0, 0))
                },
                sign: LegendSymbol::Hollow,
            });
        }
        if all().any(|step| step.incomplete) {
            entries.push(incomplete_entry());
        }
        let (mut drawing, plot) = self.chart.framed(size, &note, (x, y), &entries)?;
        let mut marks = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let look = self.chart.look(number);
            let faint = look.colour.covering(0.55);
            for step in line.steps.iter().chain(&line.unsent) {
                if let Some((low, high)) = step.interval {
                    let bar = [low, high].map(|value| plot.at(step.delivered, value));
                    for run in plot.inside(&bar) {
                        drawing.path(run, 4.0, faint);
                    }
                }
            }
            for step in &line.steps {
                let [from, to] = [step.delivered, step.offered].map(|at| plot.at(at, step.value));
                for run in plot.inside(&[from, to]) {
                    drawing.path(run, 1.0, faint);
                }
                if plot.holds(to) {
                    drawing.line((to.0, to.1 - 5.0), (to.0, to.1 + 5.0), 1.0, look.colour);
                }
            }
            let at = |step: &Step| plot.at(step.delivered, step.value);
            let places: Vec<(f64, f64)> = line.steps.iter().map(at).collect();
            plot.curve(&mut drawing, &places, &look, 1.8);
            let filled = line.steps.iter().map(|step| (step, true));
            for (step, sent) in filled.chain(line.unsent.iter().map(|step| (step, false))) {
                let place = at(step);
                if plot.holds(place) {
                    marks.push((place, look, sent, step.incomplete));
                }
            }
        }
        // On top of all lines.
        for (place, look, sent, incomplete) in marks {
            match sent {
                true => {
                    drawing.dot(place, 5.4, Colour::WHITE);
                    look.mark_at(&mut drawing, place, 4.0);
                }
                false => hollow(&mut drawing, &look, place),
            }
            if incomplete {
                ring(&mut drawing, place);
            }
        }
        Ok(drawing)
    }
}
