//! `ecdf` and `percentiles`: curves of samples or of the distributions that stand for them.

use std::path::{Path, PathBuf};

use super::names::{Told, named};
use super::{capital, marked, nothing_measured, one_metric_label, samples_in_words, samples_usual};
use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::cli::plot::made::Made;
use crate::cli::plot::sources::Sources;
use crate::plot::ecdf::{Curve, Ecdf, shares_of_sorted};
use crate::plot::percentiles::{Percentiles, tail_of_sorted};
use crate::plot::scale::Unit;
use crate::plot::{Looks, Words};
use crate::results::read::{Benchmark, Hgrm};

/// Either samples or a distribution, of each source; and of each file that was named instead of a folder.
enum Known {
    Samples(Vec<i64>),
    /// With the nanoseconds in its unit.
    Distribution(Hgrm, f64),
}

struct Drawn {
    words: Words,
    value: String,
    samples: String,
    curves: Vec<Curve>,
    looks: Looks,
    told: Told,
}

/// What curves are drawn of, one at a time, so that no more than one is in memory; `points` makes those of a curve.
fn curves(
    from: &[PathBuf],
    settings: &Checked,
    usual: fn(Benchmark) -> &'static [&'static str],
    points: impl Fn(&Known) -> Vec<(f64, f64)>,
) -> anyhow::Result<Drawn> {
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        from.iter().cloned().partition(|path| is_distribution(path));
    let mut made = Vec::new();
    let without_effect = |name: String, value: &str, why: &str| {
        Err(UsageError(format!("{name} {value:?}: {why}")).into())
    };
    if let Some(unit) = settings.unit.as_deref().filter(|_| files.is_empty()) {
        let why = "it is that of .hgrm files named beside or instead of folders, and none is";
        return without_effect(settings.named("unit"), unit, why);
    }
    if folders.is_empty() {
        let why = "it chooses from the folder of a run or a point, and none is named";
        if !settings.metric.is_empty() {
            return without_effect(settings.named("metric"), &settings.metric.join(","), why);
        }
        if let Some(name) = settings.only.keys().next() {
            return without_effect(settings.named_only(name), name, why);
        }
    }
    let mut words = Words {
        title: "Distribution".to_owned(),
        ..Words::default()
    };
    let (mut value, mut samples) = ("value".to_owned(), "samples".to_owned());
    let mut all_sources = None;
    let mut any_lost = false;
    if !folders.is_empty() {
        let sources = Sources::open(&folders, settings, usual)?;
        let labels = sources.labels(&[]);
        for (source, label) in sources.all.iter().zip(&labels) {
            if nothing_measured(source) && source.distribution()?.is_none() {
                continue;
            }
            let (known, lost) = if source.has_samples() {
                let found = source.sorted()?;
                (Known::Samples(found.values), found.lost)
            } else {
                let found = source
                    .distribution()?
                    .ok_or_else(|| source.nothing_there())?;
                (Known::Distribution(found, 1.0), source.lost_told())
            };
            any_lost |= lost > 0;
            made.push(Curve {
                label: marked(label, source),
                lost,
                points: points(&known),
            });
        }
        value = one_metric_label(&sources).to_owned();
        words = sources.words(&capital(&value), &[], settings);
        samples = samples_in_words(&sources, any_lost);
        all_sources = Some(sources);
    } else {
        words.title = settings.title.clone().unwrap_or(words.title);
        words.subtitle = settings.subtitle.clone().unwrap_or_default();
    }
    for path in files {
        let found = Hgrm::read(&path)?;
        let name = if path.ends_with("latency.hgrm") {
            path.parent().unwrap_or(&path)
        } else {
            &path
        };
        let label = name
            .file_name()
            .unwrap_or(name.as_os_str())
            .to_string_lossy()
            .into_owned();
        made.push(Curve {
            label,
            lost: 0,
            points: points(&Known::Distribution(found, settings.nanoseconds_per_unit)),
        });
    }
    let sources = all_sources.as_ref();
    let (curves, looks, told) = named(made, |curve| &mut curve.label, sources, settings)?;
    Ok(Drawn {
        words,
        value,
        samples,
        curves,
        looks,
        told,
    })
}

fn is_distribution(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "hgrm")
}

fn shares_of(distribution: &Hgrm, nanoseconds_per_unit: f64) -> Vec<(f64, f64)> {
    let mut shares: Vec<(f64, f64)> = Vec::new();
    for line in &distribution.lines {
        let value = line.value * nanoseconds_per_unit;
        let share = line.count as f64 / distribution.total.max(1) as f64;
        match shares.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            _ => shares.push((value, share)),
        }
    }
    shares
}

pub(in crate::cli::plot) fn ecdf(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let drawn = curves(from, settings, samples_usual, |known| match known {
        Known::Samples(sorted) => shares_of_sorted(sorted),
        Known::Distribution(found, unit) => shares_of(found, *unit),
    })?;
    let figure = Ecdf {
        words: drawn.words,
        value: settings.x_label(drawn.value),
        share: settings.y_label(format!("share of {} up to it", drawn.samples)),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        curves: drawn.curves,
        looks: drawn.looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(drawn.told.made(figure, drawing))
}

fn tails_usual(benchmark: Benchmark) -> &'static [&'static str] {
    match benchmark {
        Benchmark::Clock => &["difference"],
        other => samples_usual(other),
    }
}

pub(in crate::cli::plot) fn percentiles(
    from: &[PathBuf],
    settings: &Checked,
) -> anyhow::Result<Made> {
    let drawn = curves(from, settings, tails_usual, |known| match known {
        Known::Samples(sorted) => tail_of_sorted(sorted),
        Known::Distribution(found, unit) => tail_of(found, *unit),
    })?;
    let figure = Percentiles {
        words: drawn.words,
        value: settings.y_label(drawn.value),
        percentile: settings.x_label("percentile"),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        curves: drawn.curves,
        looks: drawn.looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(drawn.told.made(figure, drawing))
}

/// Shares below 1, ascending, and the value at each. A line's value is that at its percentile, and up to its count; the
/// maximum is the value of all shares behind the last line's, up to the last sample but none.
fn tail_of(distribution: &Hgrm, nanoseconds_per_unit: f64) -> Vec<(f64, f64)> {
    let total = distribution.total.max(1) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut add = |share: f64, value: f64| {
        if share < 1.0 && points.last().is_none_or(|last| last.0 < share) {
            points.push((share, value * nanoseconds_per_unit));
        }
    };
    for line in &distribution.lines {
        add(line.quantile, line.value);
        add(line.count as f64 / total, line.value);
    }
    if let Some(last) = distribution.lines.last() {
        add(1.0 - 1.0 / total, last.value);
    }
    points
}
