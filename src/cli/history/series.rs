//! Runs that can be compared: of one benchmark, point and machine.

use std::collections::{BTreeMap, BTreeSet};

use super::runs::{RunValue, Settings, StoredRun};
use crate::compare::figures::Figure;
use crate::figures::{in_words, is_told};
use crate::results::schema::Schema;

/// A figure of a point over runs, in the order of time.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) schema: &'static Schema,
    pub(super) machine: String,
    /// The settings that distinguish it from other series of the benchmark, in words.
    pub(super) point: String,
    pub(super) settings: Settings,
    pub(super) figure: Figure,
    /// Places in the list of runs, with the value of each.
    pub(super) runs: Vec<(usize, RunValue)>,
}

/// By what series are told apart.
type Key<'a> = (&'static str, &'a str, &'a Settings);

/// All series of runs that are in the order of time, each with at most this many of the last ones.
pub(super) fn all(runs: &[StoredRun], last: usize) -> Vec<Series> {
    let mut places: BTreeMap<(Key<'_>, String), usize> = BTreeMap::new();
    let mut all: Vec<Series> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for point in &run.points {
            for (figure, value) in &point.values {
                let key: Key<'_> = (run.schema.benchmark, &run.machine, &point.settings);
                let place = *places.entry((key, figure.to_string())).or_insert_with(|| {
                    all.push(Series {
                        schema: run.schema,
                        machine: run.machine.clone(),
                        point: String::new(),
                        settings: point.settings.clone(),
                        figure: figure.clone(),
                        runs: Vec::new(),
                    });
                    all.len() - 1
                });
                all[place].runs.push((number, *value));
            }
        }
    }
    for series in &mut all {
        let beyond = series.runs.len().saturating_sub(last);
        series.runs.drain(..beyond);
    }
    // Of one point together, in the order in which the points were first measured.
    let key = |it: &Series| (it.schema.benchmark, it.machine.clone(), it.settings.clone());
    let mut order = BTreeMap::new();
    for (place, series) in all.iter().enumerate() {
        order.entry(key(series)).or_insert(place);
    }
    crate::sorting::sort_by_key(&mut all, |it| {
        (it.schema.benchmark, it.machine.clone(), order[&key(it)])
    });
    let varying = varying(&all);
    for series in &mut all {
        let benchmark = series.schema.benchmark;
        let settings = series.settings.iter();
        let named = settings
            .filter(|(name, text)| is_told(name, text) && varying.contains(&(benchmark, *name)));
        let words: Vec<String> = named.map(|(name, text)| in_words(name, text)).collect();
        series.point = words.join(", ");
    }
    all
}

/// Benchmarks and settings that do not have the same text, or are not known, in all series of the benchmark.
fn varying(all: &[Series]) -> BTreeSet<(&'static str, &'static str)> {
    let mut series: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut texts: BTreeMap<_, BTreeMap<&str, usize>> = BTreeMap::new();
    for one in all {
        let benchmark = one.schema.benchmark;
        *series.entry(benchmark).or_default() += 1;
        for (name, text) in &one.settings {
            *texts
                .entry((benchmark, *name))
                .or_default()
                .entry(text)
                .or_default() += 1;
        }
    }
    let varies = |((benchmark, name), texts): (_, BTreeMap<&str, usize>)| {
        let is_in_all = texts.len() == 1 && texts.into_values().sum::<usize>() == series[benchmark];
        (!is_in_all).then_some((benchmark, name))
    };
    texts.into_iter().filter_map(varies).collect()
}

impl Series {
    /// The values as they are compared: what has no zero as logarithms, since nothing falls by more than 100 %.
    pub(super) fn compared(&self) -> Vec<f64> {
        let as_ratio = self.is_ratio();
        let values = self.runs.iter().map(|(_, value)| value.median);
        values
            .map(|value| if as_ratio { value.ln() } else { value })
            .collect()
    }

    /// Whether differences are shares of the figure.
    pub(super) fn is_ratio(&self) -> bool {
        self.figure.unit != "%" && self.runs.iter().all(|(_, value)| value.median > 0.0)
    }

    /// The figure for people: `median latency`, `throughput`.
    pub(super) fn figure_in_words(&self) -> &str {
        &self.figure.words
    }

    /// What it is of: benchmark, point and machine.
    pub(super) fn in_words(&self) -> String {
        let parts = [
            self.schema.benchmark,
            self.point.as_str(),
            self.machine.as_str(),
        ];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }
}
