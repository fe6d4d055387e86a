//! From results to the data of figures: a file for each figure, and what they share.

mod causes;
mod curves;
mod family;
mod histogram;
mod intervals;
mod load;
mod matrix;
mod median;
mod names;
mod node_pairs;
mod places;
mod surface;
mod time;

pub(super) use curves::curves;
pub(super) use family::family;
pub(super) use histogram::histogram;
pub(super) use load::load;
pub(super) use median::median;
pub(super) use node_pairs::matrix_of_any as matrix;
pub(super) use surface::surface;
pub(super) use time::time;

use super::made::{Asked, Made, NothingLeft, Told, TooMuch};
use super::options::{Figure, MEDIAN, Range, Settings, refused};
use super::settings::{apart, axis, capital, tick};
use super::source::{Sorted, Source};
use super::sources::{Colours, Sources, left_out};
use crate::arguments::UsageError;
use crate::bench::presentation::Metric;
use crate::plot::scale::counted;
use crate::plot::{INCOMPLETE, at_most};

/// A label, and whether it is of a part only.
fn marked(label: &str, source: &Source) -> String {
    match source.point.incomplete {
        Some(_) => format!("{label}{INCOMPLETE}"),
        None => label.to_owned(),
    }
}

/// Sources with their labels, at most so many, all of which have samples; a point that was not begun has none, and that
/// is known already.
fn with_samples<'a>(
    sources: &'a Sources,
    most: usize,
    what: &'static str,
) -> anyhow::Result<Vec<(&'a Source, String)>> {
    let all = sources.all.iter().zip(sources.labels(&[]));
    let begun = all.filter(|(it, _)| it.point.incomplete.is_none() || it.has_samples());
    let begun = begun.map(|(source, label)| (source, marked(&label, source)));
    let begun: Vec<(&Source, String)> = begun.collect();
    at_most(begun.len(), most, what)?;
    match begun.iter().find(|(source, _)| !source.has_samples()) {
        Some((source, _)) => Err(source.nothing_there()),
        None => Ok(begun),
    }
}

/// What is drawn of each point, in words.
fn figure_of(value: &str, sources: &Sources, settings: &Settings) -> String {
    match (
        sources.presentation.schema.has_percentiles(),
        &settings.percentile[..],
    ) {
        (false, [MEDIAN]) => value.to_owned(),
        _ => settings.percentile_of(value),
    }
}

/// What is said of intervals, where there are any.
fn intervals(mut all: impl Iterator<Item = Option<(f64, f64)>>) -> &'static str {
    match all.any(|interval| interval.is_some()) {
        true => "thick bars the 95 % interval over rounds",
        false => "",
    }
}

/// What is said of bars, where there are any.
fn bars(settings: &Settings) -> &'static str {
    match settings.percentile.contains(&MEDIAN) {
        true => "bars at medians hold the middle 80 %",
        false => "",
    }
}

fn one_metric_label(sources: &Sources) -> &'static str {
    let metric = sources.metric();
    metric.map_or(sources.presentation.together, |metric| metric.label)
}

/// What there are shares of; where some were lost, it must be said that these are not among them.
fn samples_in_words(sources: &Sources, lost: bool) -> String {
    let of = |metric: &Metric| metric.plural.unwrap_or(sources.presentation.plural);
    match sources.metric().map(of) {
        Some(plural) if lost => format!("received {plural}"),
        plural => plural.unwrap_or("samples").to_owned(),
    }
}

/// What is said in the figure and on standard error about points that have no place in it.
fn without_median(names: &[String]) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("1 point has no samples and is not drawn: {one}")),
        [first, others @ ..] => Some(format!(
            "{} points have no samples and are not drawn: {first} and {} more",
            names.len(),
            others.len()
        )),
    }
}

/// The same of points without a pause, where that is on an axis.
fn without_place(points: usize) -> String {
    let axis = "no place on the axis";
    let [one, more] = ["has", "have"].map(|has| format!("without generators {has} {axis}"));
    counted(points, "point", &one, &more)
}
