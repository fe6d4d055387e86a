//! The times of a clean run by interval.
//!
//! They are made of what was noted, when the run is over. Their memory is that of the lengths before: one kind of time
//! is divided after another.

use std::time::{Duration, SystemTime};

use super::analysis::{ElementRecords, length_ns};
use super::config::RoundLength;
use super::result::DISTRIBUTIONS;
use super::shared::{self, EndReports};
use super::task::Task;
use crate::results::hlog::{LoggedRound, RoundLog, beside};
use crate::stats::{TimedSamples, interval_of};
use crate::time::{Clock, Ticks};

/// The places of these among the distributions.
const ROUND_TRIP: usize = 4;
const ENQUEUE_BATCH: usize = 5;
const DEQUEUE_BATCH: usize = 6;

/// The logs of a round; none where it was too short for them. `noted`: what a sender and a receiver noted that have a
/// queue alone.
pub(super) fn of(
    task: &Task,
    reports: &EndReports,
    noted: Option<&ElementRecords<'_>>,
    round: u32,
) -> Vec<RoundLog> {
    let (config, has_latencies) = (&task.config, task.config.has_latencies());
    if let RoundLength::Time(time) = config.length
        && interval_of(time, config.hlog_interval).is_none()
    {
        return Vec::new();
    }
    let logs = RoundLogs { task, round };
    if let Some(noted) = noted {
        return logs.of_elements(noted, has_latencies);
    }
    if task.point.wiring.is_some() {
        let records = shared::records(task, reports).filter(|_| config.measure.has_times());
        return records.map_or_else(Vec::new, |mut it| logs.of_elements(&it.records(), true));
    }
    let (sender, receiver) = (&reports.sender[0], &reports.receiver[0]);
    let round_trips = sender.round_trips(receiver).and_then(|noted| {
        let there_and_back = noted.iter().map(|[stamp, _, back]| [*stamp, *back]);
        logs.of_times(ROUND_TRIP, there_and_back)
    });
    let batches = [(ENQUEUE_BATCH, sender), (DEQUEUE_BATCH, receiver)];
    let batches = batches.into_iter().filter_map(|(place, end)| {
        let noted = end.batches()?;
        logs.of_times(place, noted.iter().copied())
    });
    round_trips.into_iter().chain(batches).collect()
}

struct RoundLogs<'a> {
    task: &'a Task,
    round: u32,
}

impl RoundLogs<'_> {
    fn of_elements(&self, noted: &ElementRecords<'_>, has_latencies: bool) -> Vec<RoundLog> {
        let moments = noted.moments(has_latencies);
        let all = moments.all().into_iter().enumerate();
        let logs = all.filter_map(|(place, of)| {
            let of = (*of)?;
            self.of_times(place, (0..noted.count()).map(|at| of(noted, at)))
        });
        logs.collect()
    }

    /// The log of times from a moment to another, beside the distribution at that place.
    fn of_times(
        &self,
        place: usize,
        times: impl Iterator<Item = [Ticks; 2]> + Clone,
    ) -> Option<RoundLog> {
        let (clock, config) = (&self.task.clock, &self.task.config);
        let run = match config.length {
            RoundLength::Time(time) => time,
            RoundLength::Elements(_) => {
                let begun = || times.clone().map(|[from, _]| from);
                let ends = [begun().min()?, begun().max()?];
                Duration::from_nanos(length_ns(clock, ends).unsigned_abs())
            }
        };
        let interval = interval_of(run, config.hlog_interval)?;
        let samples: TimedSamples = times
            .map(|time| (clock.to_nanos(time[0]).0, length_ns(clock, time)))
            .collect();
        let since_zero = Duration::from_nanos(clock.to_nanos(clock.now()).0);
        let now = SystemTime::now();
        let round = LoggedRound {
            number: self.round,
            interval,
            zero: now.checked_sub(since_zero).unwrap_or(now),
        };
        RoundLog::of(beside(DISTRIBUTIONS[place]), samples, 0, &round)
    }
}
