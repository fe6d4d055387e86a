//! From results to the data of figures: a file for each figure, and what they share.

mod causes;
mod curves;
mod histogram;
mod median;
mod names;
mod places;
mod surface;
mod time;

pub(super) use curves::{ecdf, percentiles};
pub(super) use histogram::histogram;
pub(super) use median::median;
pub(super) use surface::surface;
pub(super) use time::time;

use super::sources::{Source, Sources};
use crate::plot::INCOMPLETE;
use crate::results::read::Benchmark;

/// A label, and whether it is of a part only.
fn marked(label: &str, source: &Source) -> String {
    let mark = if source.point.incomplete.is_some() {
        INCOMPLETE
    } else {
        ""
    };
    format!("{label}{mark}")
}

/// A point that was not begun has no samples, and that is known already.
fn nothing_measured(source: &Source) -> bool {
    source.point.incomplete.is_some() && !source.has_samples()
}

fn one_metric_label(sources: &Sources) -> &'static str {
    let first = sources.all[0].metric;
    match (
        sources
            .all
            .iter()
            .all(|source| source.metric.name == first.name),
        sources.benchmark,
    ) {
        (true, _) => first.label,
        (false, Benchmark::Queue) => "time",
        (false, _) => "latency",
    }
}

/// What there are shares of; where some were lost, it must be said that these are not among them.
fn samples_in_words(sources: &Sources, lost: bool) -> String {
    let first = sources.all[0].metric;
    if sources
        .all
        .iter()
        .any(|source| source.metric.name != first.name)
    {
        return "samples".to_owned();
    }
    let received = if lost { "received " } else { "" };
    format!("{received}{}", first.plural)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

fn samples_usual(benchmark: Benchmark) -> &'static [&'static str] {
    match benchmark {
        Benchmark::Hca | Benchmark::Queue => &["latency"],
        Benchmark::Clock => &["jump"],
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
