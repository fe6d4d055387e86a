//! `ecdf` and `percentiles`: curves of samples or of the distributions that stand for them.

use std::path::{Path, PathBuf};

use super::names::named;
use super::{
    Colours, Figure, Made, NothingLeft, Settings, Sources, capital, left_out, marked,
    one_metric_label, refused, samples_in_words,
};
use crate::bench::presentation::Presentation;
use crate::plot::FigureTexts;
use crate::plot::curves::{Curves, DistributionCurve, shares_of_sorted, tail_of_sorted};
use crate::results::read::Hgrm;

/// The points of a curve.
type Points = Vec<(f64, f64)>;

/// Draws curves of either kind; what each of them is drawn of is in memory one at a time.
pub(in crate::figures) fn curves(
    from: &[PathBuf],
    settings: &Settings,
    of: Figure,
) -> anyhow::Result<Made> {
    let is_ecdf = of == Figure::Ecdf;
    let of_samples = if is_ecdf {
        shares_of_sorted
    } else {
        tail_of_sorted
    };
    let of_distribution = if is_ecdf { shares } else { tail };
    let usual = |of: &Presentation| match is_ecdf {
        false => of.usual_percentiles,
        true => &[],
    };
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        from.iter().cloned().partition(|path| is_distribution(path));
    let is_whole = |path: &PathBuf| settings.without.iter().all(|error| error.path != *path);
    let files: Vec<PathBuf> = files.into_iter().filter(is_whole).collect();
    NothingLeft::check(files.is_empty() && folders.is_empty(), &settings.without)?;
    let mut made = Vec::new();
    if let Some(unit) = settings.unit.as_ref().filter(|_| files.is_empty()) {
        let why = "it is that of .hgrm files named beside or instead of folders, and none is";
        return Err(refused("unit", unit, why).into());
    }
    if folders.is_empty() {
        let why = "it chooses from the folder of a run or a point, and none is named";
        if !settings.metric.is_empty() {
            return Err(refused("metric", &settings.metric.join(","), why).into());
        }
        if let Some((name, _)) = settings.only.first() {
            return Err(refused("only", name, why).into());
        }
    }
    let mut words = FigureTexts {
        title: settings.title.clone().unwrap_or("Distribution".to_owned()),
        subtitle: settings.subtitle.clone().unwrap_or_default(),
        warning: left_out(settings.without.iter()),
    };
    let (mut value, mut samples) = ("value".to_owned(), "samples".to_owned());
    let mut colours = Colours::default();
    if !folders.is_empty() {
        let mut any_lost = false;
        let sources = Sources::open(&folders, settings, usual)?;
        let labels = sources.labels(&[]);
        for (source, label) in sources.all.iter().zip(&labels) {
            let (points, lost) = if source.has_samples() {
                let found = source.sorted()?;
                (of_samples(&found.values), found.lost)
            } else if let Some(found) = source.distribution()? {
                (of_distribution(&found, 1.0), source.lost_told())
            } else if source.point.incomplete.is_some() {
                continue;
            } else {
                return Err(source.nothing_there());
            };
            any_lost |= lost > 0;
            made.push(DistributionCurve {
                label: marked(label, source),
                lost,
                absent: source.absent(),
                points,
            });
        }
        value = one_metric_label(&sources).to_owned();
        words = sources.words(&capital(&value), "", settings);
        samples = samples_in_words(&sources, any_lost);
        colours = sources.colours(&labels);
    }
    for path in files {
        let points = of_distribution(&Hgrm::read(&path)?, settings.nanoseconds_per_unit());
        let name = if path.ends_with("latency.hgrm") {
            path.parent().unwrap_or(&path)
        } else {
            &path
        };
        let name = name.file_name().unwrap_or(name.as_os_str());
        made.push(DistributionCurve {
            label: name.to_string_lossy().into_owned(),
            lost: 0,
            absent: Vec::new(),
            points,
        });
    }
    let (curves, looks, told) = named(made, |curve| &mut curve.label, colours, settings)?;
    let (x, y) = match is_ecdf {
        true => (value, format!("share of {samples} up to it")),
        false => ("percentile".to_owned(), value),
    };
    let chart = settings.chart(words, x, y, looks);
    let figure = Curves { chart, curves };
    let drawing = match is_ecdf {
        true => figure.ecdf(settings.sides())?,
        false => figure.percentiles(settings.sides())?,
    };
    Ok(Made::new(figure, drawing, told))
}

fn is_distribution(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "hgrm")
}

/// Values, ascending, and the share up to each; `unit` is the nanoseconds in the unit of the values.
fn shares(distribution: &Hgrm, unit: f64) -> Points {
    let total = distribution.total.max(1) as f64;
    let mut shares = Points::new();
    for line in &distribution.lines {
        let (value, share) = (line.value * unit, line.count as f64 / total);
        match shares.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            _ => shares.push((value, share)),
        }
    }
    shares
}

/// Shares below 1, ascending, and the value at each. A line's value is that at its percentile, and up to its count;
/// the maximum is the value of all shares behind the last line's, up to the last sample but none.
fn tail(distribution: &Hgrm, unit: f64) -> Points {
    let total = distribution.total.max(1) as f64;
    let mut points = Points::new();
    let mut add = |share: f64, value: f64| {
        if share < 1.0 && points.last().is_none_or(|last| last.0 < share) {
            points.push((share, value * unit));
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
