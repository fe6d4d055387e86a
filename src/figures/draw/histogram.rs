//! `histogram`: distributions over each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::names::named;
use super::{
    Figure, Made, Range, Settings, Sorted, Sources, capital, one_metric_label, samples_in_words,
    with_samples,
};
use crate::plot::PlotError;
use crate::plot::histogram::{Distribution, Histogram, MOST, WHAT};
use crate::plot::scale::duration;
use crate::stats::percentile_of_sorted;

/// What all histograms reach to that have anything there, so that they can be compared at a glance.
const USUAL_RANGE: (f64, f64) = (0.0, 10_000.0);
/// Samples that may be kept in memory to be looked at a second time; of more, the file is read again.
const KEPT: usize = 30_000_000;

pub(in crate::figures) fn histogram(from: &[PathBuf], settings: &Settings) -> anyhow::Result<Made> {
    let sources = Sources::open(from, settings, |_| &[])?;
    sources.must_have_samples(Figure::Histogram)?;
    let wanted = with_samples(&sources, MOST, WHAT)?;
    let mut kept: BTreeMap<usize, Sorted> = BTreeMap::new();
    let may_be_usual = settings.range.is_none() && sources.presentation.has_usual_range;
    let is_usual = |value: f64| (USUAL_RANGE.0..USUAL_RANGE.1).contains(&value);
    let range = match settings.range {
        Some(Range::Given(low, high)) => (low, high),
        None | Some(Range::Auto) => {
            let (mut low, mut high, mut room) = (f64::INFINITY, f64::NEG_INFINITY, KEPT);
            let mut usual = None;
            for (number, (source, _)) in wanted.iter().enumerate() {
                let found = source.sorted()?;
                let at = |percent| percentile_of_sorted(&found.values, percent);
                if let (Some(first), Some(p90), Some(p99)) = (at(0.0), at(90.0), at(99.0)) {
                    usual = Some(USUAL_RANGE).filter(|_| may_be_usual && is_usual(first));
                    low = low.min(first);
                    // A long tail would leave no room for the rest.
                    high = high.max(p99.min(first + 2.5 * (p90 - first).max(0.1 * first.abs())));
                }
                if let Some(rest) = room.checked_sub(found.values.len()) {
                    room = rest;
                    kept.insert(number, found);
                }
                if usual.is_some() {
                    break;
                }
            }
            usual.unwrap_or_else(|| auto_range(low, high))
        }
    };
    let mut series = Vec::new();
    let mut lowest = i64::MAX;
    for (number, (source, label)) in wanted.iter().enumerate() {
        let found = match kept.remove(&number) {
            Some(found) => found,
            None => source.sorted()?,
        };
        let (values, lost) = (&found.values, found.lost);
        lowest = lowest.min(values.first().copied().unwrap_or(i64::MAX));
        series.push(Distribution {
            absent: source.absent(),
            ..Distribution::of_sorted(label, values, lost, range, settings.bins())
        });
    }
    let colours = sources.colours(&sources.labels(&[]));
    let (series, looks, mut told) = named(series, |series| &mut series.label, colours, settings)?;
    let value = one_metric_label(&sources);
    let inside: u64 = series.iter().flat_map(|series| &series.counts).sum();
    let all: u64 = series.iter().map(|series| series.total).sum();
    let highest = series.iter().filter_map(|series| series.max).max();
    if let (0, Some(Range::Given(..)), Some(highest)) = (inside, settings.range, highest) {
        return Err(PlotError::Outside {
            what: "samples",
            from: duration(lowest as f64),
            to: duration(highest as f64),
            on_any_range: false,
        }
        .into());
    }
    let is_outside = |one: &Distribution| one.counts.iter().sum::<u64>() == 0;
    let few = inside * 2 < all || series.iter().any(is_outside);
    if few && settings.range != Some(Range::Auto) {
        told.hints.push(format!(
            "{inside} of {all} samples are within {} to {}: --range auto shows them",
            duration(range.0),
            duration(range.1)
        ));
    }
    let lost = series.iter().any(|series| series.lost > 0);
    let words = sources.words(&capital(value), "", settings);
    let share = format!("share of {}", samples_in_words(&sources, lost));
    let mut chart = settings.chart(words, value, share, looks);
    chart.range = Some(range);
    let figure = Histogram { chart, series };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}

/// A range in which nearly all samples are, with round ends.
fn auto_range(low: f64, high: f64) -> (f64, f64) {
    if low > high {
        return USUAL_RANGE;
    }
    let width = (high - low).max(high.abs() * 0.02).max(10.0);
    let step = 10_f64.powf((width / 2.0).log10().floor());
    // From zero, unless that would waste most of the figure.
    let from = if low >= 0.0 && low < 2.0 * width {
        0.0
    } else {
        ((low - 0.1 * width) / step).floor() * step
    };
    (from, ((high + 0.1 * width) / step).ceil() * step)
}
