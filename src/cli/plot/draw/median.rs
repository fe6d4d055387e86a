//! `median`: medians over a setting.

use std::path::PathBuf;

use super::causes::by_cause;
use super::names::named;
use super::places::{Places, choose};
use super::{capital, one_metric_label, samples_usual, warned, with_note, without_median};
use crate::cli::UsageError;
use crate::cli::plot::Made;
use crate::cli::plot::config::Checked;
use crate::cli::plot::options::Figure;
use crate::cli::plot::settings::axis;
use crate::cli::plot::sources::{Source, Sources};
use crate::plot::median::{Line, Medians, Middle};
use crate::plot::scale::{Kind, Unit};
use crate::results::read::{Benchmark, Hgrm};
use crate::stats::percentile_of_sorted;

/// A median, and the 10th and 90th percentile where they are known.
pub(super) type MedianAndMost = (f64, Option<(f64, f64)>);

/// Median, 10th and 90th percentile of a source in nanoseconds; `None` without samples.
pub(super) fn middle(source: &Source) -> anyhow::Result<Option<MedianAndMost>> {
    if let (Some(prefix), Some(row)) = (source.metric.summary, &source.point.row) {
        let figure = |name: &str| {
            row.number(&format!("{prefix}_{name}_us"))
                .map(|us| us * 1000.0)
        };
        // All lost: the cells are empty.
        return Ok(figure("p50").map(|median| (median, figure("p10").zip(figure("p90")))));
    }
    if let Some(found) = source.distribution()? {
        let at = |share| value_at(&found, share).map(|value| value * 1000.0);
        return Ok(at(0.5).map(|median| (median, at(0.1).zip(at(0.9)))));
    }
    if source.has_samples() {
        let values = source.sorted()?.values;
        let at = |percent| percentile_of_sorted(&values, percent);
        return Ok(at(50.0).map(|median| (median, at(10.0).zip(at(90.0)))));
    }
    if source.point.incomplete.is_some() {
        Ok(None)
    } else {
        Err(source.nothing_there())
    }
}

fn value_at(distribution: &Hgrm, share: f64) -> Option<f64> {
    distribution
        .lines
        .iter()
        .find(|line| line.quantile >= share - 1e-9)
        .map(|line| line.value)
}

pub(in crate::cli::plot) fn median(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    // Which metrics are usual depends on what varies: over the queues, what an operation costs.
    let mut sources = Sources::open(from, settings, samples_usual)?;
    sources.must_have_samples(Figure::Median, settings)?;
    if sources.benchmark == Benchmark::Clock {
        return by_cause(&sources, settings);
    }
    let preferred = ["percent_of_saturation", "rate_per_s", "queue", "size_bytes"];
    let varying = sources.varying();
    let usual = preferred
        .iter()
        .find(|name| varying.iter().any(|it| it == *name))
        .copied();
    let x = match choose(&sources, "x", settings, usual)? {
        Some(name) => name,
        None if sources.benchmark == Benchmark::Hca => "size_bytes".to_owned(),
        None => "queue".to_owned(),
    };
    if sources.benchmark == Benchmark::Queue
        && x != "percent_of_saturation"
        && settings.metric.is_empty()
    {
        sources = Sources::open(from, settings, |_| &["enqueue", "dequeue"])?;
    }
    let places = Places::of(&x, &sources);
    let labels = sources.labels(&[&x]);
    let mut lines: Vec<Line> = Vec::new();
    let mut empty = Vec::new();
    for (source, label) in sources.all.iter().zip(&labels) {
        let Some(place) = source.point.setting(&x).and_then(|text| places.place(text)) else {
            empty.push(source.point.name.clone());
            continue;
        };
        let Some((median, most)) = middle(source)? else {
            empty.push(source.point.name.clone());
            continue;
        };
        let middle = Middle {
            x: places.values[place].0,
            median,
            most,
            incomplete: source.point.incomplete.is_some(),
        };
        match lines.iter_mut().find(|line| line.label == *label) {
            Some(line) => line.middles.push(middle),
            None => lines.push(Line {
                label: label.clone(),
                middles: vec![middle],
            }),
        }
    }
    for line in &mut lines {
        line.middles.sort_by(|a, b| a.x.total_cmp(&b.x));
        if let Some(twice) = line.middles.windows(2).find(|pair| pair[0].x == pair[1].x) {
            return Err(UsageError(format!(
                "two points have the same place in the line {:?} ({x} {}): name one of the runs only, or choose by --only",
                line.label, twice[0].x
            ))
            .into());
        }
    }
    let lines = named(lines, |line| &mut line.label, settings)?;
    let value = one_metric_label(&sources);
    let mut words = sources.words(&format!("{} by {}", capital(value), axis(&x)), settings);
    words.subtitle = with_note(&words.subtitle, "bars hold the middle 80 %");
    let note = without_median(&empty);
    warned(&mut words, note.as_ref());
    let figure = Medians {
        words,
        setting: settings.x_label.clone().unwrap_or_else(|| axis(&x)),
        ticks: places.values.clone(),
        named: places.named,
        setting_scale: (x == "percent_of_saturation").then_some(Kind::Linear),
        value: settings
            .y_label
            .clone()
            .unwrap_or_else(|| format!("median {value}")),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        lines: lines.lines,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made {
        hints: note.into_iter().chain(lines.hints).collect(),
        asked: lines.asked,
        ..Made::new(figure, drawing)
    })
}
