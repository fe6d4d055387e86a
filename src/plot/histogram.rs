//! Distributions over each other: the share of samples in each of equally wide bins, a line at each median, and a box
//! with what lies above the range.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::frame::{Entry, Plot, Sign, Words, frame};
use super::palette::{Look, Looks};
use super::scale::{Axis, Kind, Unit, duration};
use super::{PlotError, at_most, font};
use crate::stats::percentile_of_sorted;

/// As many distributions as can be told apart over each other.
pub const MOST: usize = 8;

pub(crate) const WHAT: &str = "histograms over each other";

/// One distribution, counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// What it is called.
    pub label: String,
    /// Samples in each bin.
    pub counts: Vec<u64>,
    /// All samples.
    pub total: u64,
    /// Samples below the range.
    pub below: u64,
    /// Samples above the range.
    pub above: u64,
    /// The median in nanoseconds.
    pub median: Option<f64>,
    /// The largest sample in nanoseconds.
    pub max: Option<i64>,
    /// Messages that were lost, where that is known.
    pub lost: u64,
}

impl Distribution {
    /// Counts samples in ascending order into `bins` equal parts of `low` to `high`; `high` itself belongs to the last.
    pub fn of_sorted(
        label: &str,
        sorted: &[i64],
        lost: u64,
        (low, high): (f64, f64),
        bins: usize,
    ) -> Self {
        debug_assert!(sorted.is_sorted());
        let total = sorted.len() as u64;
        let bins = bins.max(1);
        let up_to = |edge: f64| sorted.partition_point(|&sample| (sample as f64) < edge) as u64;
        let below = up_to(low);
        let inside = sorted.partition_point(|&sample| sample as f64 <= high) as u64;
        let edge = |bin: usize| low + (high - low) * bin as f64 / bins as f64;
        let mut counts = Vec::with_capacity(bins);
        let mut before = below;
        for bin in 1..=bins {
            let end = if bin == bins {
                inside
            } else {
                up_to(edge(bin))
            };
            counts.push(end - before);
            before = end;
        }
        Distribution {
            label: label.to_owned(),
            counts,
            total,
            below,
            above: total - inside,
            median: percentile_of_sorted(sorted, 50.0),
            max: sorted.last().copied(),
            lost,
        }
    }
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// The words.
    pub words: Words,
    /// What the samples are, for the horizontal axis.
    pub value: String,
    /// The vertical axis: "share of messages".
    pub share: String,
    /// The range in nanoseconds.
    pub range: (f64, f64),
    /// The distributions.
    pub series: Vec<Distribution>,
    /// Their looks.
    #[serde(skip)]
    pub looks: Looks,
}

const BOX_EM: f64 = 11.5;
const BOX_LINE: f64 = 1.5 * BOX_EM;

impl Histogram {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without samples, [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        if self.series.iter().all(|series| series.total == 0) {
            let lost: u64 = self.series.iter().map(|series| series.lost).sum();
            let why = if lost > 0 {
                format!("all of {lost} messages were lost")
            } else {
                "no samples".to_owned()
            };
            return Err(PlotError::Nothing(why));
        }
        at_most(self.series.len(), MOST, WHAT)?;
        let mut drawing = Drawing::new(size, &self.words.title);
        let entries: Vec<Entry> = self
            .series
            .iter()
            .enumerate()
            .map(|(number, series)| self.entry(number, series))
            .collect();
        let shares: Vec<Vec<f64>> = self
            .series
            .iter()
            .map(|series| {
                series
                    .counts
                    .iter()
                    .map(|&count| 100.0 * count as f64 / series.total.max(1) as f64)
                    .collect()
            })
            .collect();
        let highest = shares.iter().flatten().copied().fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let rows = self.rows();
        let box_size = box_size(&rows);

        // The box goes where there is less below it; the axis gets as high as it needs.
        let inside = drawing.width - 120.0;
        let reach = ((box_size.0 + 24.0) / inside).min(1.0);
        let bins = self.series[0].counts.len();
        let far = ((reach * bins as f64).ceil() as usize).min(bins);
        let peak = |from: usize, to: usize| {
            shares
                .iter()
                .flat_map(|all| &all[from..to])
                .copied()
                .fold(0.0, f64::max)
        };
        let (at_left, at_right) = (peak(0, far), peak(bins - far, bins));
        let on_the_left = at_left < at_right;
        let plot_height = (drawing.height * 0.66).max(1.0);
        let free = (1.0 - (box_size.1 + 20.0) / plot_height).max(0.25);
        let top = (highest * 1.06).max(at_left.min(at_right) / free);

        let x = Axis::new(&self.value, self.range, Kind::Linear, Unit::Nanoseconds);
        let y = Axis::new(&self.share, (0.0, top), Kind::Linear, Unit::Percent);
        let plot = frame(&mut drawing, &self.words, x, y, &entries)?;
        for (number, all) in shares.iter().enumerate() {
            if self.series[number].total > 0 {
                self.steps(&mut drawing, &plot, all, &self.looks.of(number));
            }
        }
        for (number, series) in self.series.iter().enumerate() {
            let Some(median) = series.median else {
                continue;
            };
            let (from, to) = (plot.at(median, 0.0), plot.at(median, plot.y.high));
            if plot.holds(from) {
                drawing.line(from, to, 3.6, Colour::WHITE.covering(0.7));
                let look = self.looks.of(number);
                drawing.dashed(&[from, to], look.dashes, 1.8, look.colour);
            }
        }
        draw_box(&mut drawing, &plot, &rows, box_size, on_the_left);
        Ok(drawing)
    }

    fn entry(&self, number: usize, series: &Distribution) -> Entry {
        let median = match series.median {
            Some(median) if median < self.range.0 || median > self.range.1 => {
                format!("median {}, outside", duration(median))
            }
            Some(median) => format!("median {}", duration(median)),
            None => "no samples".to_owned(),
        };
        let lost = if series.lost > 0 {
            format!(", {} lost", series.lost)
        } else {
            String::new()
        };
        let name = if series.label.is_empty() {
            String::new()
        } else {
            format!("{}: ", series.label)
        };
        Entry {
            label: format!("{name}{median}{lost}"),
            look: self.looks.of(number),
            sign: Sign::Patch,
        }
    }

    /// An outline of bins that hold something, and a faint area below.
    fn steps(&self, drawing: &mut Drawing, plot: &Plot, shares: &[f64], look: &Look) {
        let (low, high) = self.range;
        let edge = |bin: usize| low + (high - low) * bin as f64 / shares.len() as f64;
        let mut bin = 0;
        while bin < shares.len() {
            if shares[bin] <= 0.0 {
                bin += 1;
                continue;
            }
            let mut outline = vec![plot.at(edge(bin), 0.0)];
            while bin < shares.len() && shares[bin] > 0.0 {
                outline.push(plot.at(edge(bin), shares[bin]));
                outline.push(plot.at(edge(bin + 1), shares[bin]));
                bin += 1;
            }
            outline.push(plot.at(edge(bin), 0.0));
            drawing.area(outline.clone(), look.colour.covering(0.28));
            drawing.path(outline, 1.3, look.colour);
        }
    }

    /// What the box says: a head, then a line for each distribution.
    fn rows(&self) -> Vec<(Option<Look>, Vec<String>)> {
        let (low, high) = (duration(self.range.0), duration(self.range.1));
        let below = self.series.iter().any(|series| series.below > 0);
        let mut head = vec![format!("above {high}"), "max".to_owned()];
        if below {
            head.insert(0, format!("below {low}"));
        }
        let mut rows = vec![(None, head)];
        for (number, series) in self.series.iter().enumerate() {
            let Some(max) = series.max else { continue };
            let look = (self.series.len() > 1).then(|| self.looks.of(number));
            let mut cells = vec![
                share_in_words(series.above, series.total),
                duration(max as f64),
            ];
            if below {
                cells.insert(0, share_in_words(series.below, series.total));
            }
            rows.push((look, cells));
        }
        rows
    }
}

/// A share in per cent, of which something is never shown as nothing, and not all never as all.
pub(super) fn share_in_words(part: u64, of: u64) -> String {
    let percent = 100.0 * part as f64 / of.max(1) as f64;
    match part {
        0 => "0 %".to_owned(),
        part if part == of => "100 %".to_owned(),
        _ if percent < 0.001 => "<0.001 %".to_owned(),
        _ if percent < 0.1 => format!("{percent:.3} %"),
        _ if percent < 99.95 => format!("{percent:.1} %"),
        _ => ">99.9 %".to_owned(),
    }
}

const SIGN: f64 = 22.0;
const GAP: f64 = 14.0;

/// The width of the signs, and of each column.
fn columns(rows: &[(Option<Look>, Vec<String>)]) -> (f64, Vec<f64>) {
    let sign = if rows.iter().any(|(look, _)| look.is_some()) {
        SIGN
    } else {
        0.0
    };
    let widest = |column: usize| {
        rows.iter()
            .map(|(_, cells)| font::width(&cells[column], BOX_EM))
            .fold(0.0, f64::max)
    };
    let count = rows.first().map_or(0, |(_, cells)| cells.len());
    (sign, (0..count).map(widest).collect())
}

fn box_size(rows: &[(Option<Look>, Vec<String>)]) -> (f64, f64) {
    let (sign, widths) = columns(rows);
    let gaps = GAP * widths.len().saturating_sub(1) as f64;
    (
        sign + widths.iter().sum::<f64>() + gaps + 16.0,
        rows.len() as f64 * BOX_LINE + 10.0,
    )
}

fn draw_box(
    drawing: &mut Drawing,
    plot: &Plot,
    rows: &[(Option<Look>, Vec<String>)],
    (width, height): (f64, f64),
    on_the_left: bool,
) {
    let left = if on_the_left {
        plot.left + 10.0
    } else {
        plot.right - 10.0 - width
    };
    let top = plot.top + 8.0;
    drawing.rectangle(
        left,
        top,
        left + width,
        top + height,
        Colour::WHITE.covering(0.9),
    );
    drawing.outline(
        [left, top, left + width, top + height],
        0.8,
        Colour::FAINT_INK,
    );
    let (sign, widths) = columns(rows);
    for (number, (look, cells)) in rows.iter().enumerate() {
        let y = top + 5.0 + (number as f64 + 0.5) * BOX_LINE;
        if let Some(look) = look {
            drawing.rectangle(
                left + 8.0,
                y - 4.0,
                left + SIGN,
                y + 4.0,
                look.colour.covering(0.3),
            );
            drawing.dashed(
                &[
                    (left + 8.0, y + 4.0),
                    (left + 8.0, y - 4.0),
                    (left + SIGN, y - 4.0),
                    (left + SIGN, y + 4.0),
                ],
                look.dashes,
                1.3,
                look.colour,
            );
        }
        let colour = if number == 0 {
            Colour::FAINT_INK
        } else {
            Colour::INK
        };
        let mut end = left + 8.0 + sign - GAP;
        for (cell, width) in cells.iter().zip(&widths) {
            end += GAP + width;
            let at = (end, y + 0.36 * BOX_EM);
            drawing.text(at, cell, BOX_EM, Anchor::End, colour);
        }
    }
}
