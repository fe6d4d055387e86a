//! Distributions over each other: the share of samples in each of equally wide bins, a line at each median, and a box
//! with what lies above the range.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::frame::{Chart, LegendSymbol, Plot, with_absent, with_lost};
use super::palette::CurveStyle;
use super::scale::{Axis, ScaleKind, Unit, duration};
use super::{PlotError, at_most, font};
use crate::stats::percentile_of_sorted;

/// The number of distributions that can be distinguished over each other.
pub const MOST: usize = 8;

pub const WHAT: &str = "histograms over each other";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    pub label: String,
    pub counts: Vec<u64>,
    pub total: u64,
    pub below: u64,
    pub above: u64,
    /// The median in nanoseconds.
    pub median: Option<f64>,
    /// The largest sample in nanoseconds.
    pub max: Option<i64>,
    /// Messages that were lost, where that is known.
    pub lost: u64,
    /// Why others were never sent, and how many.
    pub absent: Vec<(&'static str, u64)>,
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
        let edge = |bin: usize| low + (high - low) * bin as f64 / bins as f64;
        let inside = sorted.partition_point(|&sample| sample as f64 <= high) as u64;
        let ends = (0..bins).map(|bin| up_to(edge(bin))).chain([inside]);
        let ends: Vec<u64> = ends.collect();
        Distribution {
            label: label.to_owned(),
            counts: ends.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            total,
            below: ends[0],
            above: total - inside,
            median: percentile_of_sorted(sorted, 50.0),
            max: sorted.last().copied(),
            lost,
            absent: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Its range is the one that the bins part.
    #[serde(flatten)]
    pub chart: Chart,
    pub series: Vec<Distribution>,
}

impl Histogram {
    fn range(&self) -> (f64, f64) {
        self.chart.range.unwrap_or_default()
    }

    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        if self.series.iter().all(|series| series.total == 0) {
            let lost: u64 = self.series.iter().map(|series| series.lost).sum();
            return Err(match lost {
                0 => PlotError::no_samples(),
                lost => PlotError::Nothing(format!("all of {lost} messages were lost")),
            });
        }
        at_most(self.series.len(), MOST, WHAT)?;
        let of_bins = |series: &Distribution| -> Vec<f64> {
            let share = |&count: &u64| 100.0 * count as f64 / series.total.max(1) as f64;
            series.counts.iter().map(share).collect()
        };
        let shares: Vec<Vec<f64>> = self.series.iter().map(of_bins).collect();
        let bins = self.series[0].counts.len();
        let peak = |from: usize, to: usize| {
            let all = shares.iter().flat_map(|all| &all[from..to]);
            all.copied().fold(0.0, f64::max)
        };
        let highest = peak(0, bins);
        let highest = if highest > 0.0 { highest } else { 1.0 };

        // The box goes where there is less below it; the axis gets as high as it needs.
        let told = OutlierBox::of(self);
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let reach = ((told.width + 24.0) / (width - 120.0)).min(1.0);
        let far = ((reach * bins as f64).ceil() as usize).min(bins);
        let (at_left, at_right) = (peak(0, far), peak(bins - far, bins));
        let on_the_left = at_left < at_right;
        // Title, axis and legend take about the rest.
        let plot_height = (height - 130.0 - 19.0 * self.series.len() as f64).max(60.0);
        let free = (1.0 - (told.height + 20.0) / plot_height).max(0.25);
        let top = (highest * 1.06).max(at_left.min(at_right) / free);

        let chart = &self.chart;
        let x = Axis::new(&chart.x, self.range(), ScaleKind::Linear, Unit::Nanoseconds);
        let y = Axis::new(&chart.y, (0.0, top), ScaleKind::Linear, Unit::Percent);
        let labels = self.series.iter().map(|series| self.label(series));
        let entries = chart.legend(labels, LegendSymbol::Patch);
        let (mut drawing, plot) = chart.framed(size, "", (x, y), &entries)?;
        for (number, all) in shares.iter().enumerate() {
            self.steps(&mut drawing, &plot, all, &chart.look(number));
        }
        for (number, series) in self.series.iter().enumerate() {
            let Some(median) = series.median else {
                continue;
            };
            let (from, to) = (plot.at(median, 0.0), plot.at(median, plot.y.high));
            if plot.holds(from) {
                drawing.line(from, to, 3.6, Colour::WHITE.covering(0.7));
                let look = chart.look(number);
                drawing.dashed(&[from, to], look.dashes, 1.8, look.colour);
            }
        }
        told.draw(&mut drawing, &plot, on_the_left);
        Ok(drawing)
    }

    /// A name with the median, and what was lost.
    fn label(&self, series: &Distribution) -> String {
        let (low, high) = self.range();
        let median = match series.median {
            Some(median) if median < low || median > high => {
                format!("median {}, outside", duration(median))
            }
            Some(median) => format!("median {}", duration(median)),
            None => "no samples".to_owned(),
        };
        let told = with_absent(with_lost(&median, series.lost), &series.absent);
        match series.label.as_str() {
            "" => told,
            name => format!("{name}: {told}"),
        }
    }

    /// An outline of bins that hold something, and a faint area below.
    fn steps(&self, drawing: &mut Drawing, plot: &Plot, shares: &[f64], look: &CurveStyle) {
        let (low, high) = self.range();
        let edge = |bin: usize| low + (high - low) * bin as f64 / shares.len() as f64;
        let mut end = 0;
        for run in shares.chunk_by(|one, next| (*one > 0.0) == (*next > 0.0)) {
            let begin = end;
            end += run.len();
            if run[0] <= 0.0 {
                continue;
            }
            let mut outline = vec![plot.at(edge(begin), 0.0)];
            for (bin, &share) in (begin..).zip(run) {
                outline.extend([bin, bin + 1].map(|bin| plot.at(edge(bin), share)));
            }
            outline.push(plot.at(edge(end), 0.0));
            drawing.area(outline.clone(), look.colour.covering(0.28));
            drawing.path(outline, 1.3, look.colour);
        }
    }
}

/// A share in per cent, of which something is never shown as nothing, and not all never as all.
fn share_in_words(part: u64, of: u64) -> String {
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

const BOX_EM: f64 = 11.5;
const BOX_LINE: f64 = 1.5 * BOX_EM;
const SIGN: f64 = 22.0;
const GAP: f64 = 14.0;

/// The box with what lies outside of the range.
struct OutlierBox {
    /// A head, then a line for each distribution.
    rows: Vec<(Option<CurveStyle>, Vec<String>)>,
    /// The width of the signs, and of each column.
    sign: f64,
    columns: Vec<f64>,
    width: f64,
    height: f64,
}

impl OutlierBox {
    fn of(figure: &Histogram) -> Self {
        let series = &figure.series;
        let below = series.iter().any(|series| series.below > 0);
        // Samples below are mentioned only if there are any.
        let cells = |cells: [String; 3]| cells.into_iter().skip(usize::from(!below)).collect();
        let (low, high) = figure.range();
        let (low, high) = (duration(low), duration(high));
        let head = [
            format!("below {low}"),
            format!("above {high}"),
            "max".to_owned(),
        ];
        let mut rows: Vec<(Option<CurveStyle>, Vec<String>)> = vec![(None, cells(head))];
        for (number, one) in series.iter().enumerate() {
            let Some(max) = one.max else { continue };
            let look = (series.len() > 1).then(|| figure.chart.look(number));
            let share = |part| share_in_words(part, one.total);
            let texts = [share(one.below), share(one.above), duration(max as f64)];
            rows.push((look, cells(texts)));
        }
        let widest = |column: usize| {
            let texts = rows.iter().map(|(_, cells)| &cells[column]);
            font::widest(texts, BOX_EM)
        };
        let columns: Vec<f64> = (0..rows[0].1.len()).map(widest).collect();
        let sign = if series.len() > 1 { SIGN } else { 0.0 };
        let gaps = GAP * (columns.len() - 1) as f64;
        OutlierBox {
            sign,
            width: sign + columns.iter().sum::<f64>() + gaps + 16.0,
            height: rows.len() as f64 * BOX_LINE + 10.0,
            columns,
            rows,
        }
    }

    fn draw(&self, drawing: &mut Drawing, plot: &Plot, on_the_left: bool) {
        let left = match on_the_left {
            true => plot.left + 10.0,
            false => plot.right - 10.0 - self.width,
        };
        let top = plot.top + 8.0;
        let (right, bottom) = (left + self.width, top + self.height);
        let sides = [left, top, right, bottom];
        drawing.rectangle(sides, Colour::WHITE.covering(0.9));
        drawing.outline(sides, 0.8, Colour::FAINT_INK);
        for (number, (look, cells)) in self.rows.iter().enumerate() {
            let y = top + 5.0 + (number as f64 + 0.5) * BOX_LINE;
            if let Some(look) = look {
                let (from, to) = (left + 8.0, left + SIGN);
                let (above, below) = (y - 4.0, y + 4.0);
                drawing.rectangle([from, above, to, below], look.colour.covering(0.3));
                let around = [(from, below), (from, above), (to, above), (to, below)];
                drawing.dashed(&around, look.dashes, 1.3, look.colour);
            }
            let colour = match number {
                0 => Colour::FAINT_INK,
                _ => Colour::INK,
            };
            let mut end = left + 8.0 + self.sign - GAP;
            for (cell, width) in cells.iter().zip(&self.columns) {
                end += GAP + width;
                let at = (end, y + 0.36 * BOX_EM);
                drawing.text(at, cell, BOX_EM, Anchor::End, colour);
            }
        }
    }
}
