//! A figure over runs, in the order of time, with its levels and the runs at which it changed.

use serde::Serialize;

use super::PlotError;
use super::drawing::{Colour, Drawing};
use super::frame::Chart;
use super::scale::{Axis, ScaleKind, Unit, ends};

/// Room above and below what is drawn, as a share of it.
const ROOM: f64 = 0.08;
/// Dates below the axis are at least this many units apart.
const DATE_WIDTH: f64 = 62.0;
const OF_CHANGE: Colour = Colour(0xd5, 0x5e, 0x00, 1.0);

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunValue {
    /// Below the axis.
    pub date: String,
    /// The median of its rounds.
    pub value: f64,
    /// The least and the greatest of its rounds.
    pub rounds: (f64, f64),
}

/// A change: the first run after it, and the first and the last one that it may be, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChangeMark {
    pub at: usize,
    pub from: usize,
    pub to: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    #[serde(flatten)]
    pub chart: Chart,
    /// Whether the values are in nanoseconds; of others, the label of the axis has the unit.
    pub are_times: bool,
    pub runs: Vec<RunValue>,
    /// In the order of runs.
    pub changes: Vec<ChangeMark>,
}

impl History {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let all = || {
            self.runs
                .iter()
                .flat_map(|run| [run.rounds.0, run.value, run.rounds.1])
        };
        let (low, high) = ends(all()).ok_or_else(PlotError::no_samples)?;
        let room = ROOM * (high - low).max(1e-3 * high.abs());
        let unit = if self.are_times {
            Unit::Nanoseconds
        } else {
            Unit::Number
        };
        let y = Axis::new(
            &self.chart.y,
            (low - room, high + room),
            ScaleKind::Linear,
            unit,
        );
        let x = self.axis_of_runs(f64::from(size.0));
        let (mut drawing, plot) = self.chart.framed(size, "", (x, y), &[])?;
        // The values begin where a run does, half a run before its mark.
        let begin = |run: usize| run as f64 - 0.5;
        for change in &self.changes {
            let left = plot.at(begin(change.from), low).0;
            let right = plot.at(begin(change.to), low).0;
            let sides = [left - 2.0, plot.top, right + 2.0, plot.bottom];
            drawing.rectangle(sides, OF_CHANGE.covering(0.15));
            let place = plot.at(begin(change.at), low).0;
            let line = [(place, plot.bottom), (place, plot.top)];
            drawing.dashed(&line, &[5.0, 3.0], 1.6, OF_CHANGE);
        }
        let look = self.chart.look(0);
        for (number, run) in self.runs.iter().enumerate() {
            let bar = [run.rounds.0, run.rounds.1].map(|value| plot.at(number as f64, value));
            drawing.line(bar[0], bar[1], 1.2, look.colour.covering(0.5));
        }
        for level in self.levels() {
            let from = plot.at(begin(level.0), level.2);
            let to = plot.at(begin(level.1), level.2);
            drawing.line(from, to, 1.8, Colour::INK.covering(0.7));
        }
        for (number, run) in self.runs.iter().enumerate() {
            look.mark_at(&mut drawing, plot.at(number as f64, run.value), 3.0);
        }
        Ok(drawing)
    }

    /// The runs between two changes, and their median.
    fn levels(&self) -> Vec<(usize, usize, f64)> {
        let places = self.changes.iter().map(|change| change.at);
        let mut bounds: Vec<usize> = [0].into_iter().chain(places).collect();
        bounds.push(self.runs.len());
        let level = |pair: &[usize]| {
            let values: Vec<f64> = self.runs[pair[0]..pair[1]]
                .iter()
                .map(|run| run.value)
                .collect();
            Some((pair[0], pair[1], crate::stats::median_of(&values)?))
        };
        bounds.windows(2).filter_map(level).collect()
    }

    /// As many dates as there is room for.
    fn axis_of_runs(&self, width: f64) -> Axis {
        let count = self.runs.len();
        let most = ((width - 110.0) / DATE_WIDTH).max(1.0) as usize;
        let every = count.div_ceil(most.max(1)).max(1);
        let dates = self.runs.iter().enumerate().step_by(every);
        let dates = dates.map(|(number, run)| (number as f64, run.date.clone()));
        let range = (-0.5, count as f64 - 0.5);
        let mut axis = Axis::new(&self.chart.x, range, ScaleKind::Linear, Unit::Number);
        axis.given = Some(dates.collect());
        axis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::drawing::Shape;
    use crate::plot::svg;

    fn history(runs: usize, changes: Vec<ChangeMark>) -> History {
        let run = |number: usize| {
            let value =
                1000.0 + 10.0 * (number % 3) as f64 + if number >= 20 { 100.0 } else { 0.0 };
            RunValue {
                date: format!("01-{:02}", number + 1),
                value,
                rounds: (value - 5.0, value + 5.0),
            }
        };
        History {
            chart: Chart::default(),
            are_times: true,
            runs: (0..runs).map(run).collect(),
            changes,
        }
    }

    #[test]
    fn marks_levels_and_changes_are_where_the_runs_are() {
        let change = ChangeMark {
            at: 20,
            from: 19,
            to: 21,
        };
        let drawn = history(30, vec![change]).draw((620, 300)).unwrap();
        let plain = history(30, Vec::new()).draw((620, 300)).unwrap();
        let count = |drawing: &Drawing, is: fn(&Shape) -> bool| {
            drawing.shapes.iter().filter(|shape| is(shape)).count()
        };
        let is_dot = |shape: &Shape| matches!(shape, Shape::Dot { .. });
        assert_eq!(count(&drawn, is_dot), 30);
        let is_of_change = |shape: &Shape| {
            let colour = match shape {
                Shape::Area { colour, .. } | Shape::Path { colour, .. } => *colour,
                _ => return false,
            };
            (colour.0, colour.1, colour.2) == (OF_CHANGE.0, OF_CHANGE.1, OF_CHANGE.2)
        };
        assert_eq!(count(&plain, is_of_change), 0);
        assert!(count(&drawn, is_of_change) > 2);
        let levels = history(30, vec![change]).levels();
        assert_eq!(levels, [(0, 20, 1010.0), (20, 30, 1110.0)]);
    }

    #[test]
    fn dates_have_room_on_wide_and_narrow_drawings() {
        for (width, runs) in [(620, 200), (360, 200), (360, 1), (300, 30)] {
            let drawing = history(runs, Vec::new()).draw((width, 260)).unwrap();
            let dates = drawing.texts().filter(|text| text.text.starts_with("01-"));
            let dates = dates.count();
            assert!((1..=10).contains(&dates), "{width} {runs}: {dates}");
            let text = svg(&drawing).unwrap();
            roxmltree::Document::parse(&text).unwrap();
        }
        assert!(history(0, Vec::new()).draw((620, 300)).is_err());
    }
}
