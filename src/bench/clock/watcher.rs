//! One thread's watch over the clock: the loop, and what is done between two passes of it.
//!
//! A jump ends a pass. It is then filed, perhaps counters are read ([`credit`](super::credit)), and the loop starts anew
//! from a fresh reading. The time between is *blind*. It is added up and reported. Where it takes much longer than what
//! is done in it, by more than [`STOP`], the thresholds and the usual cost of reading counters, the excess is a jump of a
//! cause of its own, [`Cause::NotWatched`]. Stops shorter than that are not seen in blind time, and a stop that falls into
//! a reading of counters is not charged.
//!
//! A difference between the baseline and the threshold is no jump, but ends a pass as well: it is a rival for what the
//! counters say, and they are read behind it when there is credit, so that the window of the next jump begins there.

use std::collections::TryReserveError;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rig::control::StopFlag;
use crate::time::{AnyClock, Clock, Nanos, Reading, Ticks};

use super::cause::{Cause, Sampler};
use super::credit::Credit;
use super::highest::Peak;
use super::hot_loop::{Found, watch};
use super::jump::JumpStore;
use super::ranking::Ranking;
use super::recorder::{First, Recorder};
use super::sampling::Sampling;
use super::timeline::{Backward, Timeline, Unwatched};
use super::window::Sum;

/// Blind time is a stop only beyond this.
pub const STOP: Nanos = Nanos(2_000);

/// What a thread is to do, in ticks of its clock.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Readings to make; until told to stop if `None`.
    pub readings: Option<u64>,
    /// Readings between two looks at the stop flag.
    pub block: u64,
    /// Twice the mean difference.
    pub baseline: u64,
    /// A difference above this is a jump.
    pub threshold: u64,
    /// The length of the windows, if sums over windows are wanted.
    pub window: Option<u64>,
    /// Whether the ten largest differences are wanted.
    pub highest: bool,
    /// Jumps to keep.
    pub keep: usize,
}

impl Task {
    /// Differences above this are jumps, or rivals of jumps for what the counters say.
    fn edge(&self) -> u64 {
        self.threshold.min(self.baseline)
    }
}

/// What others see of a watch that goes on.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Seen {
    /// Readings so far.
    pub readings: AtomicU64,
    /// The largest difference so far, in ticks.
    pub largest: AtomicU64,
}

/// What a thread has seen, in ticks. Steps backwards are taken out of all times.
#[derive(Debug)]
pub struct Watched {
    /// The first ten differences.
    pub first: Vec<u64>,
    /// The jumps.
    pub jumps: JumpStore,
    /// The highest sums over windows.
    pub windows: Vec<Sum>,
    /// Whether the sums are lower bounds, because windows had more jumps than there is room for.
    pub windows_merged: bool,
    /// The ten largest differences.
    pub highest: Vec<Peak>,
    /// The largest difference, or stop while the clock was not watched.
    pub largest: u64,
    /// Steps backwards.
    pub backward: Backward,
    /// Differences that were judged, backward steps among them.
    pub readings: u64,
    /// The first reading, since the start of the run.
    pub start: u64,
    /// The last reading.
    pub end: u64,
    /// Ticks between passes of the loop.
    pub blind: u64,
    /// The longest time between two passes.
    pub longest_blind: u64,
    /// Of the blind ticks, those in which counters were read, without stops.
    pub sampling: u64,
    /// How often counters were read.
    pub samples: u64,
    /// Jumps whose counters were not read, because that would have taken too much of the time.
    pub not_sampled: u64,
}

impl Watched {
    /// Counts all times from `first` on.
    pub(super) fn count_from(&mut self, first: u64) {
        self.start -= first;
        self.end -= first;
        self.jumps.shift(first);
        self.highest.iter_mut().for_each(|peak| peak.begin -= first);
        for sum in &mut self.windows {
            sum.begin -= first;
            sum.last -= first;
        }
    }

    /// Ticks from the first reading to the last.
    pub fn elapsed(&self) -> u64 {
        self.end - self.start
    }

    /// The share of the time in which the clock was not watched.
    pub fn blind_share(&self) -> f64 {
        self.blind as f64 / self.elapsed().max(1) as f64
    }

    /// The mean difference, in ticks.
    pub fn mean(&self) -> Option<f64> {
        let watched = self.elapsed() - self.blind.min(self.elapsed());
        (self.readings > 0).then(|| watched as f64 / self.readings as f64)
    }
}

/// A jump that was filed and is to be stored.
#[derive(Debug, Clone, Copy)]
struct Pending {
    begin: u64,
    length: u64,
    backward: bool,
}

/// Differences that one way out of the loop can have to judge: the first ten and two more.
const MOST_PENDING: usize = 12;

/// The watch of one thread.
pub struct Watcher<'a, R, K, S> {
    clock: R,
    scale: AnyClock,
    task: Task,
    stop: &'a StopFlag,
    seen: &'a Seen,
    recorder: K,
    ranking: Ranking,
    sampling: Sampling<S>,
    jumps: JumpStore,
    pending: Vec<Pending>,
    first: Vec<u64>,
    /// Blind time beyond this is a stop.
    stop_from: u64,
    /// The largest difference between baseline and threshold in this pass.
    lesser: u64,
    /// Whether the store of the jumps took time for itself.
    tidied: bool,
    readings: u64,
    not_sampled: u64,
    sampled_for: u64,
}

/// What a watch has once its clock runs.
struct Running {
    time: Timeline,
    credit: Credit,
}

impl<'a, R: Reading, K: Recorder, S: Sampler> Watcher<'a, R, K, S> {
    /// A watch that has all its memory.
    ///
    /// # Errors
    /// When the memory for the jumps is refused.
    pub fn new(
        (clock, scale): (R, AnyClock),
        recorder: K,
        sampler: S,
        task: Task,
        (stop, seen): (&'a StopFlag, &'a Seen),
    ) -> Result<Self, TryReserveError> {
        Ok(Watcher {
            clock,
            scale,
            task,
            stop,
            seen,
            recorder,
            ranking: Ranking::new(task.baseline, task.highest, task.window),
            sampling: Sampling::new(sampler, scale, task.edge()),
            jumps: JumpStore::new(task.keep)?,
            pending: Vec::with_capacity(MOST_PENDING),
            first: Vec::with_capacity(10),
            stop_from: (scale.ticks_in(STOP).0)
                .max(task.threshold)
                .max(task.baseline.saturating_mul(2)),
            lesser: 0,
            tidied: false,
            readings: 0,
            not_sampled: 0,
            sampled_for: 0,
        })
    }

    /// Watches to the end, and counts the time from the reading `epoch` on, which must be before the first.
    pub fn run(mut self, epoch: Ticks) -> (Watched, K) {
        // Once for nothing: what it costs, and the counters as they stand.
        let before = self.clock.read();
        self.sampling.read_ahead();
        let first = self.clock.read();
        let time = Timeline::since(epoch);
        let start = time.at(first);
        self.sampling.begin(start);
        let mut running = Running {
            credit: Credit::new(self.scale, first.0.saturating_sub(before.0), start),
            time,
        };
        let mut last = self.begin(&mut running, first);
        while let Some(readings) = self.next_block() {
            let limit = self.limit();
            let pass = watch(&self.clock, &mut self.recorder, last, readings, limit);
            self.readings += pass.readings;
            last = match pass.found {
                None => pass.last,
                Some(found) => self.judge(&mut running, found),
            };
            self.publish();
        }
        let (windows, windows_merged) = self.ranking.windows();
        let watched = Watched {
            first: self.first,
            jumps: self.jumps,
            windows,
            windows_merged,
            highest: self.ranking.peaks(),
            largest: self.ranking.largest(),
            backward: running.time.backward,
            readings: self.readings,
            start,
            end: running.time.at(last),
            blind: running.time.blind,
            longest_blind: running.time.longest_blind,
            sampling: self.sampled_for,
            samples: self.sampling.samples(),
            not_sampled: self.not_sampled,
        };
        (watched, self.recorder)
    }

    /// The first ten differences, kept as they come and judged afterwards: no way out of the loop is between them.
    fn begin(&mut self, running: &mut Running, start: Ticks) -> Ticks {
        let readings = self.task.readings.unwrap_or(10).min(10);
        if readings == 0 {
            return start;
        }
        let mut first = First::default();
        let pass = watch(&self.clock, &mut first, start, readings, u64::MAX >> 1);
        self.readings += pass.readings;
        let mut end = start;
        for &difference in first.values() {
            end = Ticks(end.0 + difference);
            self.first.push(difference);
            self.file(running, difference, end);
        }
        match pass.found {
            None => self.store(running, end),
            Some(found) => self.judge(running, found),
        }
    }

    fn next_block(&self) -> Option<u64> {
        if self.stop.is_raised() {
            return None;
        }
        let left = self
            .task
            .readings
            .map_or(u64::MAX, |readings| readings - self.readings);
        Some(left.min(self.task.block)).filter(|&block| block > 0)
    }

    /// Differences above this leave the loop.
    fn limit(&self) -> u64 {
        let limit = self.recorder.direct_limit().min(self.task.edge());
        limit.min(self.ranking.limit())
    }

    /// Files the difference that ended a pass and the one behind it. Returns the reading to go on from.
    fn judge(&mut self, running: &mut Running, found: Found) -> Ticks {
        self.file(running, found.difference, found.end);
        let Some(after) = found.after else {
            return self.store(running, found.end);
        };
        self.file(running, after.0.wrapping_sub(found.end.0), after);
        self.store(running, after)
    }

    /// Files one difference.
    fn file(&mut self, running: &mut Running, difference: u64, end: Ticks) {
        if (difference as i64) < 0 {
            let length = difference.wrapping_neg();
            running.time.step_back(length);
            self.pending.push(Pending {
                begin: running.time.at(end),
                length,
                backward: true,
            });
            return;
        }
        if difference <= self.recorder.direct_limit() {
            self.recorder.record(difference);
        } else {
            self.recorder.record_above(difference);
        }
        let begin = running.time.at(end) - difference;
        self.ranking.offer(begin, difference);
        if difference > self.task.edge() {
            self.sampling.notice(difference);
        }
        if difference > self.task.threshold {
            self.pending.push(Pending {
                begin,
                length: difference,
                backward: false,
            });
        } else if difference > self.task.edge() {
            self.lesser = self.lesser.max(difference);
        }
    }

    /// Stores the jumps that were filed, the longest with counters if there is credit for it. Returns a fresh reading to
    /// go on from.
    fn store(&mut self, running: &mut Running, seen: Ticks) -> Ticks {
        let now = running.time.at(seen);
        running.credit.earn(now);
        let jumps = self.pending.iter().filter(|jump| !jump.backward);
        let longest = jumps.map(|jump| jump.length).max();
        let lesser = std::mem::take(&mut self.lesser);
        let length = longest.unwrap_or(lesser);
        let affordable = running.credit.affords(length, longest.is_some());
        // A lesser one that cannot have been an interrupt takes nothing from the counters.
        let renew = longest.is_none() && affordable && self.sampling.can_be_interrupt(lesser);
        let mut to_sample = longest.filter(|_| affordable);
        let reads = renew || to_sample.is_some();
        for at in 0..self.pending.len() {
            let Pending {
                begin,
                length,
                backward,
            } = self.pending[at];
            let (cause, sample) = if backward {
                (Cause::Backward, None)
            } else if to_sample == Some(length) {
                to_sample = None;
                let (cause, sample) = self.sampling.read(length, now);
                (cause, Some(sample))
            } else {
                self.not_sampled += 1;
                (Cause::NotSampled, None)
            };
            self.tidied |= self.jumps.push(begin, length, cause, sample);
        }
        self.pending.clear();
        if renew {
            self.sampling.read(lesser, now);
        }
        let mut again = self.clock.read();
        let usual = if reads { running.credit.cost() } else { 0 };
        let stop = self.lose_sight(&mut running.time, seen, again, usual);
        if reads {
            // The clock may have been set back meanwhile.
            let took = again.0.saturating_sub(seen.0);
            let charged = took - stop.min(took);
            self.sampled_for += charged;
            // Behind a clock that was set back nothing is known.
            if again >= seen {
                running.credit.learn(took);
            }
            running.credit.charge(length, charged);
        }
        if stop > 0 {
            // What was done for it must not be part of the next difference.
            let filed = again;
            again = self.clock.read();
            self.add_blind(&mut running.time, filed, again);
        }
        running.credit.skip_to(running.time.at(again));
        again
    }

    /// Adds up the time from the last reading of a pass to the first of the next, in which `usual` ticks are not
    /// surprising. Much more is a jump, whose length is returned, else 0.
    fn lose_sight(&mut self, time: &mut Timeline, seen: Ticks, again: Ticks, usual: u64) -> u64 {
        let begin = time.at(seen);
        let Some(blind) = self.add_blind(time, seen, again) else {
            return 0;
        };
        time.longest_blind = time.longest_blind.max(blind);
        let stop = blind.saturating_sub(usual);
        let tidied = std::mem::take(&mut self.tidied);
        if tidied || stop <= self.stop_from || blind / 2 <= usual {
            return 0;
        }
        self.ranking.offer(begin, stop);
        self.jumps.push(begin, stop, Cause::NotWatched, None);
        self.sampling.notice(stop);
        stop
    }

    /// Adds time that was not watched; `None` if the clock was set back in it.
    fn add_blind(&mut self, time: &mut Timeline, from: Ticks, to: Ticks) -> Option<u64> {
        match time.pass_blind(from, to) {
            Unwatched::Blind(blind) => Some(blind),
            Unwatched::Back(length) => {
                self.jumps.push(time.at(to), length, Cause::Backward, None);
                None
            }
        }
    }

    fn publish(&self) {
        let seen = self.seen;
        seen.readings.store(self.readings, Ordering::Relaxed);
        seen.largest
            .store(self.ranking.largest(), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
