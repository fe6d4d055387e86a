//! Samples over time, as marks.

use std::collections::HashSet;

use serde::Serialize;

use super::PlotError;
use super::drawing::Drawing;
use super::frame::{Entry, Sign, Words, frame};
use super::palette::{MOST_SERIES, look};
use super::scale::{Axis, Kind, Unit};

/// Marks of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cloud {
    /// What it is called.
    pub label: String,
    /// Time and value, both in nanoseconds.
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
}

/// Marks nearer than this to one of their kind that is drawn already are left out: nobody could see them.
const GRAIN: f64 = 1.5;

impl OverTime {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let all = || self.clouds.iter().flat_map(|cloud| &cloud.points);
        let span = |of: fn(&(i64, i64)) -> i64| {
            Some((all().map(of).min()? as f64, all().map(of).max()? as f64))
        };
        let (Some(times), Some((lowest, highest))) = (span(|point| point.0), span(|point| point.1))
        else {
            return Err(PlotError::Nothing("no samples".to_owned()));
        };
        if self.clouds.len() > MOST_SERIES {
            return Err(PlotError::TooMuch {
                found: self.clouds.len(),
                most: MOST_SERIES,
                what: "kinds of marks",
            });
        }
        let wide = lowest > 0.0 && highest / lowest > 30.0;
        let kind = self
            .scale
            .unwrap_or(if wide { Kind::Log } else { Kind::Linear });
        let range = self.range.unwrap_or(match kind {
            Kind::Linear => (
                lowest.min(0.0),
                highest + (highest - lowest.min(0.0)) * 0.05,
            ),
            Kind::Log => (lowest / 1.2, highest * 1.2),
        });
        let x = Axis::new(&self.time, times, Kind::Linear, Unit::Nanoseconds);
        let y = Axis::new(&self.value, range, kind, Unit::Nanoseconds);
        let entries: Vec<Entry> = self
            .clouds
            .iter()
            .enumerate()
            .map(|(number, cloud)| Entry {
                label: cloud.label.clone(),
                look: look(number),
                sign: Sign::Mark,
            })
            .collect();
        let single = entries.len() == 1 && entries[0].label.is_empty();
        let mut drawing = Drawing::new(size, &self.words.title);
        let plot = frame(
            &mut drawing,
            &self.words,
            x,
            y,
            if single { &[] } else { &entries },
        )?;
        for (number, cloud) in self.clouds.iter().enumerate().rev() {
            let look = look(number);
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
