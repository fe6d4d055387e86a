//! Which metrics of a benchmark are drawn, and which points have them.

use super::options::{Settings, refused};
use crate::arguments::UsageError;
use crate::bench::presentation::{Metric, Presentation};
use crate::results::read::Point;

/// The metrics of the names that were asked for; without any, of these; without these, the first.
fn chosen(
    presentation: &'static Presentation,
    settings: &Settings,
    usual: &[&str],
) -> Result<Vec<&'static Metric>, UsageError> {
    let own = presentation.metrics;
    let found = |name: &str| {
        let mut all = own.iter();
        let found = all.find(|metric| [metric.name, metric.alias].contains(&name));
        found.filter(|_| !name.is_empty()).ok_or_else(|| {
            let names: Vec<&str> = own.iter().map(|metric| metric.name).collect();
            let (whose, names) = (presentation.name, names.join(", "));
            let why = format!("results of {whose} have {names}");
            refused("metric", name, &why)
        })
    };
    let names = &settings.metric;
    let first = [own[0].name];
    let usual: &[&str] = if usual.is_empty() { &first } else { usual };
    if names.is_empty() {
        return usual.iter().map(|name| found(name)).collect();
    }
    let mut metrics: Vec<&'static Metric> = Vec::new();
    for name in names {
        let metric = found(name)?;
        if let Some(same) = metrics.iter().position(|other| *other == metric) {
            let other = &names[same];
            return Err(UsageError(format!(
                "--metric: {other:?} and {name:?} are the same, name it once"
            )));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

/// The same for some points: where these have none of the usual ones, that which they have.
pub(super) fn of_points<'a>(
    presentation: &'static Presentation,
    settings: &Settings,
    usual: &[&str],
    points: impl Iterator<Item = &'a Point>,
) -> Result<Vec<&'static Metric>, UsageError> {
    let metrics = chosen(presentation, settings, usual)?;
    let mut points = points.peekable();
    let lacks_all = |point: &Point| !metrics.iter().any(|it| presentation.has(it, point));
    match presentation.only {
        Some((only, ..)) if points.peek().is_some() && points.all(lacks_all) => {
            chosen(presentation, settings, &[only])
        }
        _ => Ok(metrics),
    }
}

/// What is said of the points that lack metrics, by the names of both.
pub(super) fn lacking(
    presentation: &Presentation,
    lack: &[(&'static Metric, &str)],
) -> Option<String> {
    let ((only, of, _), (metric, name)) = presentation.only.zip(lack.first())?;
    let (label, count) = (metric.label, lack.len());
    Some(format!(
        "no {label} of {count} point(s) of {of}, such as {name}: --metric {only} draws them"
    ))
}
