//! A row of the summary with its rounds, and its mark.

use super::p50;
use crate::bench::queue::config::Measure;
use crate::bench::queue::judge::Outcome;
use crate::results::Record;
use crate::results::schema::queue as columns;
use crate::results::schema::{COMPLETE, Column, POINT, STATUS};
use crate::stats::TwoModes;

/// What a row is marked with that carried less than was offered.
pub(super) const LOAD_MISSED: &str = "load missed";

/// A point as the tables see it.
pub(super) struct FinishedPoint<'a> {
    pub(super) record: &'a Record,
    pub(super) runs: Vec<&'a Record>,
    /// Why it has no figures to be believed: a queue that is wrong once is wrong.
    pub(super) mark: Option<&'static str>,
}

impl<'a> FinishedPoint<'a> {
    pub(super) fn new(record: &'a Record, runs: &'a [Record]) -> Self {
        let name = record.text(&POINT);
        let of_point = runs.iter().filter(|run| run.text(&POINT) == name);
        let runs: Vec<&Record> = of_point.collect();
        let outcomes = runs.iter().map(|run| run.text(&columns::OUTCOME));
        let mut failed = outcomes.filter(|outcome| outcome != Outcome::Clean.name());
        let words = [
            (Outcome::Wrong, "BROKEN"),
            (Outcome::GaveUp, "GAVE UP"),
            (Outcome::Unjudged, "UNJUDGED"),
        ];
        let word = |outcome: String| {
            let found = words.iter().find(|(known, _)| known.name() == outcome);
            found.map_or("FAILED", |(_, word)| word)
        };
        let is_incomplete = record.text(&STATUS) != COMPLETE;
        let mark = failed.next_back().map(word);
        FinishedPoint {
            record,
            runs,
            mark: mark.or(is_incomplete.then_some("FAILED")),
        }
    }

    pub(super) fn text(&self, column: &Column) -> String {
        self.record.text(column)
    }

    pub(super) fn number(&self, column: &Column) -> Option<f64> {
        let found = self.record.number(column.name);
        found.filter(|_| self.mark.is_none())
    }

    pub(super) fn bounds(&self, column: &Column) -> Option<[f64; 2]> {
        let [low, high] = column.bounds().map(|name| self.record.number(&name));
        low.zip(high)
            .filter(|_| self.mark.is_none())
            .map(|(low, high)| [low, high])
    }

    /// On a load curve, the offered rate in per cent of saturation.
    pub(super) fn percent(&self) -> Option<f64> {
        self.record.number(columns::PERCENT_OF_SATURATION.name)
    }

    pub(super) fn is_unpaced(&self) -> bool {
        self.text(&columns::LOAD) == "none"
            && self.text(&columns::MEASURE) == Measure::Time.name()
            && !self.is_curve()
    }

    /// Whether the time of an element in the queue was measured, while nothing spaced elements.
    pub(super) fn has_times_in_queue(&self) -> bool {
        self.is_unpaced() && self.number(&columns::PER_STAMP).is_none() && !self.is_unfenced()
    }

    /// Whether its stamps have no fences, so that none of one CPU is compared with one of another.
    pub(super) fn is_unfenced(&self) -> bool {
        self.text(&columns::CLOCK).ends_with("-unfenced")
    }

    pub(super) fn is_curve(&self) -> bool {
        self.percent().is_some()
    }

    /// Whether it carried less than was offered.
    pub(super) fn misses_load(&self) -> bool {
        self.mark.is_none() && columns::row_misses_load(|name| self.record.number(name))
    }

    /// What the table marks it with.
    pub(super) fn in_a_word(&self) -> Option<&'static str> {
        let starved = self.is_unfair().then_some("UNFAIR");
        let missed = self.misses_load().then_some(LOAD_MISSED);
        let modes = !self.modes().is_empty();
        self.mark
            .or(starved)
            .or(missed)
            .or(modes.then_some("two modes"))
    }

    /// Whether one of several threads got almost nothing.
    pub(super) fn is_unfair(&self) -> bool {
        self.number(&columns::STARVED) > Some(0.0)
    }

    /// The figures by which its rounds fall into two groups.
    pub(super) fn modes(&self) -> Vec<&'static str> {
        if self.mark.is_some() {
            return Vec::new();
        }
        let medians = columns::OPERATIONS.iter();
        let medians = medians.map(|operation| (operation.title, p50(operation)));
        let figures = std::iter::once(("throughput", columns::THROUGHPUT)).chain(medians);
        let has_modes = |column: &Column| {
            let found = self.runs.iter().filter_map(|run| run.number(column.name));
            TwoModes::of(&found.collect::<Vec<_>>()).is_some()
        };
        figures
            .filter(|(_, column)| has_modes(column))
            .map(|(title, _)| title)
            .collect()
    }
}
