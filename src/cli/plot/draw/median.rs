//! `median`: medians over a setting.

use std::path::PathBuf;

use super::causes::by_cause;
use super::names::named;
use super::places::{Places, choose};
use super::{capital, one_metric_label, samples_usual, without_median};
use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::cli::plot::made::Made;
use crate::cli::plot::options::Figure;
use crate::cli::plot::settings::axis;
use crate::cli::plot::sources::{Source, Sources};
use crate::plot::median::{Line, Medians, Middle};
use crate::plot::scale::{Kind, Unit};
use crate::results::read::{Benchmark, Hgrm};
use crate::results::schema::{Column, hca, queue};
use crate::stats::percentile_of_sorted;

/// Median, 10th and 90th percentile of a source in nanoseconds, at `x`; `None` without samples.
pub(super) fn middle(source: &Source, x: f64) -> anyhow::Result<Option<Middle>> {
    let of = |median: Option<f64>, most: Option<(f64, f64)>| Middle {
        x,
        median: median.unwrap_or_default(),
        most,
        interval: None,
        incomplete: source.point.incomplete.is_some(),
    };
    let some = |median: Option<f64>, low: Option<f64>, high: Option<f64>| {
        median.map(|_| of(median, low.zip(high)))
    };
    let row = source.point.row.as_ref().filter(|_| source.of_all_rounds());
    if let (Some([p10, p50, p90]), Some(row)) = (&source.metric.summary, row)
        && row.text(p50.name).is_some()
    {
        let number = |column: &Column| row.number(column.name);
        let [low, high] = p50.bounds().map(|bound| row.number(&bound));
        // All lost: the cells are empty.
        return Ok(
            some(number(p50), number(p10), number(p90)).map(|middle| Middle {
                interval: low.zip(high),
                ..middle
            }),
        );
    }
    if let Some(found) = source.distribution()? {
        let at = |share| value_at(&found, share);
        return Ok(some(at(0.5), at(0.1), at(0.9)));
    }
    if source.has_samples() {
        let values = source.sorted()?.values;
        let at = |percent| percentile_of_sorted(&values, percent);
        return Ok(some(at(50.0), at(10.0), at(90.0)));
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
    let preferred = [
        queue::PERCENT_OF_SATURATION,
        queue::RATE,
        queue::QUEUE,
        hca::SIZE,
    ];
    let varying = sources.varying();
    let usual = preferred
        .iter()
        .map(|column| column.name)
        .find(|name| varying.iter().any(|it| it == name));
    let x = match choose(&sources, "x", settings, usual)? {
        Some(name) => name,
        None if sources.benchmark == Benchmark::Hca => hca::SIZE.name.to_owned(),
        None => queue::QUEUE.name.to_owned(),
    };
    if sources.benchmark == Benchmark::Queue
        && x != queue::PERCENT_OF_SATURATION.name
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
        let Some(middle) = middle(source, places.values[place].0)? else {
            empty.push(source.point.name.clone());
            continue;
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
    let (lines, looks, mut told) = named(lines, |line| &mut line.label, Some(&sources), settings)?;
    let value = one_metric_label(&sources);
    let has_intervals =
        (lines.iter().flat_map(|line| &line.middles)).any(|it| it.interval.is_some());
    let bars = match has_intervals {
        true => "bars hold the middle 80 %, thick ones the 95 % interval of the median over rounds",
        false => "bars hold the middle 80 %",
    };
    let title = format!("{} by {}", capital(value), axis(&x));
    let note = without_median(&empty);
    let words = sources
        .words(&title, &[bars], settings)
        .warned(note.as_deref().unwrap_or(""));
    told.hints.splice(0..0, note);
    let figure = Medians {
        words,
        setting: settings.x_label(axis(&x)),
        ticks: places.values.clone(),
        named: places.named,
        setting_scale: (x == queue::PERCENT_OF_SATURATION.name).then_some(Kind::Linear),
        value: settings.y_label(format!("median {value}")),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        lines,
        looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(told.made(figure, drawing))
}
