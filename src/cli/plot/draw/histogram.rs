//! `histogram`: distributions over each other.

use std::path::PathBuf;

use super::names::named;
use super::{capital, marked, nothing_measured, one_metric_label, samples_in_words, samples_usual};
use crate::cli::plot::config::{Checked, Range};
use crate::cli::plot::made::Made;
use crate::cli::plot::options::Figure;
use crate::cli::plot::sources::{Source, Sources};
use crate::plot::PlotError;
use crate::plot::at_most;
use crate::plot::histogram::{Distribution, Histogram, MOST, WHAT};
use crate::plot::scale::duration;
use crate::results::read::Benchmark;
use crate::stats::percentile_of_sorted;

/// What all histograms reach to, so that they can be compared at a glance.
const USUAL_RANGE: (f64, f64) = (0.0, 10_000.0);
/// Samples that may be kept in memory to be looked at a second time; of more, the file is read again.
const KEPT: usize = 30_000_000;

pub(in crate::cli::plot) fn histogram(
    from: &[PathBuf],
    settings: &Checked,
) -> anyhow::Result<Made> {
    let sources = Sources::open(from, settings, samples_usual)?;
    sources.must_have_samples(Figure::Histogram, settings)?;
    let labels = sources.labels(&[]);
    let wanted: Vec<(&Source, String)> = sources
        .all
        .iter()
        .zip(&labels)
        .filter(|(source, _)| !nothing_measured(source))
        .map(|(source, label)| (source, marked(label, source)))
        .collect();
    at_most(wanted.len(), MOST, WHAT)?;
    if let Some((source, _)) = wanted.iter().find(|(source, _)| !source.has_samples()) {
        return Err(source.nothing_there());
    }
    let mut kept: Vec<Option<(Vec<i64>, u64)>> = Vec::new();
    let range = match settings.range {
        Range::Given(low, high) => (low, high),
        Range::Usual if sources.benchmark != Benchmark::Clock => USUAL_RANGE,
        Range::Usual | Range::Auto => {
            let (mut low, mut high, mut room) = (f64::INFINITY, f64::NEG_INFINITY, KEPT);
            for (source, _) in &wanted {
                let found = source.sorted()?;
                let at = |percent| percentile_of_sorted(&found.values, percent);
                if let (Some(first), Some(p90), Some(p99)) = (at(0.0), at(90.0), at(99.0)) {
                    low = low.min(first);
                    // A long tail would leave no room for the rest.
                    high = high.max(p99.min(first + 2.5 * (p90 - first).max(0.1 * first.abs())));
                }
                let fits = found.values.len() <= room;
                room -= if fits { found.values.len() } else { 0 };
                kept.push(fits.then_some((found.values, found.lost)));
            }
            auto_range(low, high)
        }
    };
    kept.resize_with(wanted.len(), || None);
    let mut series = Vec::new();
    let mut lowest = i64::MAX;
    for ((source, label), kept) in wanted.iter().zip(kept) {
        let (values, lost) = match kept {
            Some(found) => found,
            None => {
                let found = source.sorted()?;
                (found.values, found.lost)
            }
        };
        lowest = lowest.min(values.first().copied().unwrap_or(i64::MAX));
        series.push(Distribution::of_sorted(
            label,
            &values,
            lost,
            range,
            settings.bins,
        ));
    }
    let (series, looks, mut told) =
        named(series, |series| &mut series.label, Some(&sources), settings)?;
    let value = one_metric_label(&sources);
    let inside: u64 = series.iter().flat_map(|series| &series.counts).sum();
    let all: u64 = series.iter().map(|series| series.total).sum();
    let highest = series.iter().filter_map(|series| series.max).max();
    if let (0, Range::Given(..), Some(highest)) = (inside, settings.range, highest) {
        return Err(PlotError::Outside {
            what: "samples",
            from: duration(lowest as f64),
            to: duration(highest as f64),
            on_any_range: false,
        }
        .into());
    }
    if inside * 2 < all && settings.range != Range::Auto {
        told.hints.push(format!(
            "{inside} of {all} samples are within {} to {}: --range auto shows them",
            duration(range.0),
            duration(range.1)
        ));
    }
    let lost = series.iter().any(|series| series.lost > 0);
    let figure = Histogram {
        words: sources.words(&capital(value), &[], settings),
        value: settings.x_label(value),
        share: settings.y_label(format!("share of {}", samples_in_words(&sources, lost))),
        range,
        series,
        looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(told.made(figure, drawing))
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
