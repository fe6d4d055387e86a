//! Runs that can be compared: of one benchmark, point and machine.

use std::collections::BTreeMap;

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
    let mut order: Vec<_> = Vec::new();
    for series in &all {
        let key = key(series);
        if !order.contains(&key) {
            order.push(key);
        }
    }
    crate::sorting::sort_by_key(&mut all, |it| {
        let key = key(it);
        (
            it.schema.benchmark,
            it.machine.clone(),
            order.iter().position(|other| *other == key),
        )
    });
    let points: Vec<String> = all.iter().map(|it| in_words_of(it, &all)).collect();
    for (series, point) in all.iter_mut().zip(points) {
        series.point = point;
    }
    all
}

/// Settings of a series that are not the same in all of its benchmark, in words.
fn in_words_of(series: &Series, all: &[Series]) -> String {
    let text = |of: &Series, name: &str| {
        let found = of.settings.iter().find(|(it, _)| *it == name);
        found.map(|(_, text)| text.clone())
    };
    let varies = |name: &str| {
        let mut others = all
            .iter()
            .filter(|it| it.schema.benchmark == series.schema.benchmark);
        others.any(|other| text(other, name) != text(series, name))
    };
    let settings = series.settings.iter();
    let told = settings.filter(|(name, text)| is_told(name, text) && varies(name));
    let words: Vec<String> = told.map(|(name, text)| in_words(name, text)).collect();
    words.join(", ")
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
