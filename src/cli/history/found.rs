//! The changes of all series, with their size and what changed at that time.

use std::path::PathBuf;
use std::sync::Arc;

use super::causes::{Cause, Circumstances};
use super::runs::{StoredRun, StoredRuns};
use super::series::{self, Series};
use crate::history::{Change, Detector, ERROR};
use crate::results::read::ReadError;
use crate::results::schema::Better;
use crate::stats::median_of;
use crate::stats::rank::Shift;

/// In fewer runs no change is ever shown: such series do not count among those that are judged together.
const LEAST_JUDGED: usize = 8;

/// What was found.
#[derive(Debug)]
pub(super) struct History {
    pub(super) runs: Vec<StoredRun>,
    pub(super) series: Vec<JudgedSeries>,
    /// How many series are judged together.
    pub(super) judged: usize,
    /// How many runs it takes to show a change.
    pub(super) needed: usize,
    pub(super) left_out: Vec<String>,
    pub(super) unreadable: Vec<String>,
    pub(super) damaged: Vec<Arc<ReadError>>,
}

/// A series with its changes.
#[derive(Debug)]
pub(super) struct JudgedSeries {
    pub(super) series: Series,
    pub(super) changes: Vec<FoundChange>,
    /// At how many runs from either end no change can be shown; `None` where none can be shown at all.
    pub(super) unseen: Option<usize>,
}

/// A change of a figure.
#[derive(Debug)]
pub(super) struct FoundChange {
    /// Places are those in the series.
    pub(super) change: Change,
    /// The median of the runs between the change before and this one.
    pub(super) before: f64,
    pub(super) after: f64,
    /// How far the runs after it lie above those before it: in percent of these; of percentages in points.
    pub(super) shift: Option<f64>,
    pub(super) interval: Option<[f64; 2]>,
    pub(super) is_better: bool,
    /// What differs between two runs, with the place of the later one: those at the change first.
    pub(super) causes: Vec<(usize, Cause)>,
    /// Whether all runs could be read that may have one.
    pub(super) is_read: bool,
}

impl History {
    /// Judges all series of at most this many last runs; changes of less than `least` percent are left out.
    pub(super) fn of(stored: StoredRuns, last: usize, least: f64) -> Self {
        let all = series::all(&stored.runs, last);
        let judged = all
            .iter()
            .filter(|it| it.runs.len() >= LEAST_JUDGED)
            .count();
        let mut detector = Detector::new(judged);
        let mut circumstances = Circumstances::new(stored.any_host);
        let mut judge = |series: Series| {
            let runs = series.runs.len();
            let unseen = detector.can_show(runs).then(|| detector.unseen(runs));
            let changes = match unseen {
                Some(_) => detector.changes(&series.compared()),
                None => Vec::new(),
            };
            let found = |number: usize| {
                let mut found = sized(&series, &changes, number);
                if found.shift.is_some_and(|shift| shift.abs() < least) {
                    return None;
                }
                found.add_causes(&series, &stored.runs, &mut circumstances);
                Some(found)
            };
            let changes = (0..changes.len()).filter_map(found).collect();
            JudgedSeries {
                series,
                changes,
                unseen,
            }
        };
        let series: Vec<JudgedSeries> = all.into_iter().map(&mut judge).collect();
        History {
            needed: detector.runs_needed(),
            series,
            judged,
            runs: stored.runs,
            left_out: stored.left_out,
            unreadable: stored.unreadable,
            damaged: stored.damaged,
        }
    }

    /// All changes, with their series.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&JudgedSeries, &FoundChange)> {
        let series = self.series.iter();
        series.flat_map(|judged| judged.changes.iter().map(move |change| (judged, change)))
    }

    /// The same in the order of time.
    pub(super) fn changes_in_time(&self) -> Vec<(&JudgedSeries, &FoundChange)> {
        let mut all: Vec<_> = self.changes().collect();
        crate::sorting::sort_by_key(&mut all, |(series, found)| {
            series.series.runs[found.change.at].0
        });
        all
    }

    /// The run at a place of a series.
    pub(super) fn run_at(&self, series: &JudgedSeries, place: usize) -> &StoredRun {
        &self.runs[series.series.runs[place].0]
    }

    /// The folder of the run at a place of a series.
    pub(super) fn folder_at(&self, series: &JudgedSeries, place: usize) -> &PathBuf {
        &self.run_at(series, place).folder
    }
}

/// How large a change is, between those next to it.
fn sized(series: &Series, changes: &[Change], number: usize) -> FoundChange {
    let change = changes[number];
    let start = number.checked_sub(1).map_or(0, |before| changes[before].at);
    let end = changes
        .get(number + 1)
        .map_or(series.runs.len(), |after| after.at);
    let compared = series.compared();
    let shift = Shift::of_samples(
        &compared[start..change.at],
        &compared[change.at..end],
        ERROR,
    );
    let median = |from: usize, to: usize| {
        let values = series.runs[from..to].iter().map(|(_, value)| value.median);
        median_of(&values.collect::<Vec<f64>>()).unwrap_or_default()
    };
    let (before, after) = (median(start, change.at), median(change.at, end));
    let in_percent = |value: f64| match (series.figure.unit, series.is_ratio()) {
        ("%", _) => Some(value),
        (_, true) => Some(value.exp_m1() * 100.0),
        (_, false) if before != 0.0 => Some(value / before.abs() * 100.0),
        (_, false) => None,
    };
    let shown = shift.filter(|shift| shift.can_be_shown);
    FoundChange {
        change,
        before,
        after,
        shift: shift.and_then(|shift| in_percent(shift.value)),
        interval: shown.and_then(|shift| {
            let (low, high) = shift.interval;
            in_percent(low).zip(in_percent(high)).map(<[f64; 2]>::from)
        }),
        is_better: (after > before) == (series.figure.better == Better::Higher),
        causes: Vec::new(),
        is_read: true,
    }
}

impl FoundChange {
    /// Adds what differs between runs that follow each other, from the first to the last run that the change may be at.
    fn add_causes(
        &mut self,
        series: &Series,
        runs: &[StoredRun],
        circumstances: &mut Circumstances,
    ) {
        let change = self.change;
        let mut places: Vec<usize> = (change.from..=change.to).collect();
        crate::sorting::sort_by_key(&mut places, |place| place.abs_diff(change.at));
        for place in places {
            let pair = [place - 1, place].map(|place| &runs[series.runs[place].0]);
            let found = circumstances.between(pair, &series.settings);
            self.is_read &= found.is_some();
            let found = found.into_iter().flatten();
            self.causes.extend(found.map(|cause| (place, cause)));
        }
    }
}
