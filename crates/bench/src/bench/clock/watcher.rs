//! One thread's watch over the clock: the loop, and what is done between two passes of it.
//!
//! A jump ends a pass. It is then filed, perhaps counters are read ([`credit`](super::credit)), and the loop starts
//! anew from a fresh reading. The time between is *blind*. It is added up and reported. Where it takes much longer than
//! what is done in it, by more than [`STOP`], the thresholds and the usual cost of reading counters, the excess is a
//! jump of a cause of its own, [`Cause::NotWatched`], and one difference more; it is not blind then. Stops shorter than
//! that are not seen in blind time, and a stop that falls into a reading of counters is not charged. Tidying the store
//! of the jumps is watched by parts, as nobody knows how long all of it takes: of several stops in it the longest is
//! found.
//!
//! A difference between the baseline and the threshold is no jump, but ends a pass as well: it is a rival for what the
//! counters say, and they are read behind it when there is credit, so that the window of the next jump begins there.

use std::collections::TryReserveError;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::host::counters::Deltas;
use crate::rig::control::StopFlag;
use crate::time::{AnyClock, Clock, Nanos, Reading, Ticks};

use super::cause::Cause;
use super::credit::Credit;
use super::hot_loop::{LongDifference, watch};
use super::jump::{Jump, JumpStore, PART, SAMPLES};
use super::ranking::Ranking;
use super::recorder::Recorder;
use super::sampling::Sampling;
use super::timeline::Timeline;

/// Blind time is a stop only beyond this.
pub(super) const STOP: Nanos = Nanos(2_000);

/// What a part of tidying, or filing a stop, takes at the most: a microsecond for each jump of the part.
const TIDYING: Nanos = Nanos(PART as u64 * 1_000);

/// What a thread is to do, in ticks of its clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct WatchTask {
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
    pub keep: usize,
    /// Whether counters are read for the causes.
    pub causes: bool,
    /// Ends when there are so many jumps.
    pub until: Option<u64>,
}

impl WatchTask {
    /// Differences above this are jumps, or rivals of jumps for what the counters say.
    fn edge(&self) -> u64 {
        self.threshold.min(self.baseline)
    }
}

/// What others see of a watch that goes on.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WatchProgress {
    pub readings: AtomicU64,
    /// The largest difference so far, in ticks.
    pub largest: AtomicU64,
    pub jumps: AtomicU64,
}

/// What a thread has seen, in ticks. Steps backwards are taken out of all times.
#[derive(Debug)]
pub(super) struct WatchResult {
    pub first: Vec<u64>,
    pub jumps: JumpStore,
    /// The largest differences, and the highest sums over windows.
    pub ranking: Ranking,
    /// Steps backwards, and time between passes of the loop.
    pub time: Timeline,
    /// Jumps so far, steps backwards left out.
    pub found: u64,
    /// Differences that were judged, backward steps among them.
    pub readings: u64,
    /// The first reading, since the start of the run.
    pub start: u64,
    pub end: u64,
    /// Of the blind ticks, those in which counters were read, without stops.
    pub sampling: u64,
    pub samples: u64,
    /// Jumps whose counters were not read, because that would have taken too much of the time.
    pub not_sampled: u64,
}

impl WatchResult {
    /// Nothing yet, with memory for `task`.
    pub(super) fn nothing(task: &WatchTask) -> Result<Self, TryReserveError> {
        Ok(WatchResult {
            first: Vec::with_capacity(10),
            // Without counters there is nothing to sample.
            jumps: JumpStore::with_samples(task.keep, if task.causes { SAMPLES } else { 2 })?,
            ranking: Ranking::new(task.baseline, task.highest, task.window),
            time: Timeline::default(),
            found: 0,
            readings: 0,
            start: 0,
            end: 0,
            sampling: 0,
            samples: 0,
            not_sampled: 0,
        })
    }

    pub(super) fn elapsed(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn blind_share(&self) -> f64 {
        self.time.blind as f64 / self.elapsed().max(1) as f64
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let watched = self.elapsed().saturating_sub(self.time.blind);
        (self.readings > 0).then(|| watched as f64 / self.readings as f64)
    }
}

/// Differences that one way out of the loop can have to judge: the first ten and two more.
const MOST_PENDING: usize = 12;

pub(super) struct Watcher<'a, R, K, S> {
    clock: R,
    task: WatchTask,
    stop: &'a StopFlag,
    seen: &'a WatchProgress,
    recorder: K,
    sampling: Sampling<S>,
    credit: Credit,
    watched: WatchResult,
    /// Jumps that were filed and are to be stored.
    pending: Vec<Jump>,
    /// Blind time beyond this is a stop.
    stop_from: u64,
    /// The largest difference between baseline and threshold in this pass.
    lesser: u64,
    /// What a part of tidying takes at the most.
    tidying: u64,
}

/// Looks at the clock while time passes that is not watched, and remembers the longest time between two looks.
struct ClockPolls<R> {
    clock: R,
    first: Ticks,
    last: Ticks,
    longest: (Ticks, Ticks),
}

/// A stop that was filed, and the looks at the clock since.
struct FiledStop<R> {
    length: u64,
    looks: ClockPolls<R>,
}

impl<R: Reading> ClockPolls<R> {
    fn since(clock: R, first: Ticks) -> Self {
        ClockPolls {
            clock,
            first,
            last: first,
            longest: (first, first),
        }
    }

    fn look(&mut self) {
        let now = self.clock.read();
        let part = (std::mem::replace(&mut self.last, now), now);
        if between(part) > between(self.longest) {
            self.longest = part;
        }
    }
}

/// How long that was; 0 where the clock was set back.
fn between((from, to): (Ticks, Ticks)) -> u64 {
    to.0.saturating_sub(from.0)
}

impl<'a, R: Reading, K: Recorder, S: FnMut() -> Deltas> Watcher<'a, R, K, S> {
    /// A watch that has all its memory. `counters`: reads what was added to each since the last time.
    pub(super) fn new(
        (clock, scale): (R, AnyClock),
        recorder: K,
        counters: S,
        task: WatchTask,
        (stop, seen): (&'a StopFlag, &'a WatchProgress),
    ) -> Result<Self, TryReserveError> {
        Ok(Watcher {
            clock,
            task,
            stop,
            seen,
            recorder,
            sampling: Sampling::new(counters, scale, task.edge()),
            credit: Credit::new(scale),
            watched: WatchResult::nothing(&task)?,
            pending: Vec::with_capacity(MOST_PENDING),
            stop_from: (scale.ticks_in(STOP).0)
                .max(task.threshold)
                .max(task.baseline.saturating_mul(2)),
            lesser: 0,
            tidying: scale.ticks_in(TIDYING).0,
        })
    }

    /// Watches to the end, and counts the time from the reading `epoch` on, which must be before the first.
    pub(super) fn run(mut self, epoch: Ticks) -> (WatchResult, K) {
        // For nothing: what it costs, and the counters as they stand. Twice, as one of them may be interrupted: what is
        // taken for usual hides a stop.
        let (once, _) = self.read_ahead();
        let (again, first) = self.read_ahead();
        self.watched.time = Timeline::since(epoch);
        self.watched.start = self.watched.time.at(first);
        self.sampling.begin(self.watched.start);
        self.credit.begin(once.min(again), self.watched.start);
        let mut last = self.begin(first);
        while let Some(readings) = self.next_block() {
            let limit = self.limit();
            let pass = watch(&self.clock, &mut self.recorder, last, readings, limit);
            self.watched.readings += pass.readings;
            last = match pass.found {
                None => pass.last,
                Some(found) => self.judge(found),
            };
            self.publish();
        }
        self.watched.end = self.watched.time.at(last);
        (self.watched, self.recorder)
    }

    /// Reads the counters for nothing. Returns what that took, and the reading behind it.
    fn read_ahead(&mut self) -> (u64, Ticks) {
        let before = self.clock.read();
        self.sampling.read_ahead();
        let first = self.clock.read();
        (first.0.saturating_sub(before.0), first)
    }

    /// The first ten differences, kept as they come and judged afterwards: no way out of the loop is between them.
    fn begin(&mut self, start: Ticks) -> Ticks {
        let readings = self.task.readings.unwrap_or(10).min(10);
        if readings == 0 {
            return start;
        }
        let mut kept = [0; 10];
        let mut places = kept.iter_mut();
        let mut keep = |difference| {
            if let Some(place) = places.next() {
                *place = difference;
            }
        };
        let pass = watch(&self.clock, &mut keep, start, readings, u64::MAX >> 1);
        let used = 10 - places.len();
        self.watched.readings += pass.readings;
        let mut end = start;
        for &difference in &kept[..used] {
            end = Ticks(end.0 + difference);
            self.watched.first.push(difference);
            self.file(difference, end);
        }
        match pass.found {
            None => self.store(end),
            Some(found) => self.judge(found),
        }
    }

    fn next_block(&self) -> Option<u64> {
        if self.stop.is_raised() {
            return None;
        }
        Some(self.left().min(self.task.block)).filter(|&block| block > 0)
    }

    /// Readings that are still to be made.
    fn left(&self) -> u64 {
        let WatchTask {
            readings, until, ..
        } = self.task;
        if until.is_some_and(|until| self.watched.found >= until) {
            return 0;
        }
        readings.map_or(u64::MAX, |readings| readings - self.watched.readings)
    }

    /// Differences above this leave the loop.
    fn limit(&self) -> u64 {
        let limit = self.recorder.direct_limit().min(self.task.edge());
        limit.min(self.watched.ranking.limit())
    }

    /// Files the difference that ended a pass and the one behind it. Returns the reading to go on from.
    fn judge(&mut self, found: LongDifference) -> Ticks {
        self.file(found.difference, found.end);
        let Some(after) = found.after else {
            return self.store(found.end);
        };
        self.file(after.0.wrapping_sub(found.end.0), after);
        self.store(after)
    }

    fn file(&mut self, difference: u64, end: Ticks) {
        if (difference as i64) < 0 {
            let length = difference.wrapping_neg();
            self.watched.time.step_back(length);
            let begin = self.watched.time.at(end);
            let jump = Jump::new(begin, length, Cause::Backward);
            return self.pending.push(jump);
        }
        self.recorder.record(difference);
        let begin = self.watched.time.at(end) - difference;
        self.watched.ranking.offer(begin, difference);
        if difference > self.task.edge() {
            self.sampling.notice(difference);
        }
        if difference > self.task.threshold {
            let jump = Jump::new(begin, difference, Cause::NotSampled);
            self.watched.found += 1;
            self.pending.push(jump);
        } else if difference > self.task.edge() {
            self.lesser = self.lesser.max(difference);
        }
    }

    /// Stores the jumps that were filed, the longest with counters if there is credit for it. Returns a fresh reading
    /// to go on from.
    fn store(&mut self, seen: Ticks) -> Ticks {
        let now = self.watched.time.at(seen);
        self.credit.earn(now);
        let jumps = self.pending.iter();
        let jumps = jumps.filter(|jump| jump.cause != Cause::Backward);
        let longest = jumps.map(|jump| jump.length).max();
        let lesser = std::mem::take(&mut self.lesser);
        let length = longest.unwrap_or(lesser);
        let affordable = self.task.causes && self.credit.affords(length, longest.is_some());
        // A lesser one that cannot have been an interrupt takes nothing from the counters.
        let renew = longest.is_none() && affordable && self.sampling.can_be_interrupt(lesser);
        let mut to_sample = longest.filter(|_| affordable);
        let reads = renew || to_sample.is_some();
        let mut looks = ClockPolls::since(self.clock, seen);
        let mut tidied = false;
        for at in 0..self.pending.len() {
            let mut jump = self.pending[at];
            let mut sample = None;
            if jump.cause == Cause::NotSampled && to_sample == Some(jump.length) {
                to_sample = None;
                let (cause, read) = self.sampling.read(jump.length, now);
                (jump.cause, sample) = (cause, Some(read));
            }
            self.watched.not_sampled += u64::from(jump.cause == Cause::NotSampled);
            tidied |= (self.watched.jumps).push_in_parts(jump, sample, &mut || looks.look());
        }
        self.pending.clear();
        if renew {
            self.sampling.read(lesser, now);
        }
        looks.look();
        let usual = if reads { self.credit.cost } else { 0 };
        let usual = usual + if tidied { self.tidying } else { 0 };
        let mut filed = self.lose_sight(&looks, usual);
        if reads {
            let again = looks.last;
            let stop = filed.as_ref().map_or(0, |filed| filed.length);
            // The clock may have been set back meanwhile.
            let took = again.0.saturating_sub(seen.0);
            let charged = took - stop.min(took);
            self.watched.samples += 1;
            self.watched.sampling += charged;
            // Behind a clock that was set back nothing is known.
            if again >= seen {
                self.credit.learn(took);
            }
            self.credit.charge(length, charged);
        }
        // What was done to file a stop must not be part of the next difference, and may have been stopped as well.
        while let Some(stop) = filed {
            looks = stop.looks;
            looks.look();
            filed = self.lose_sight(&looks, self.tidying);
        }
        self.credit.skip_to(self.watched.time.at(looks.last));
        looks.last
    }

    /// Adds up the time from the last reading of a pass to the first of the next. In no part of it more than `usual`
    /// ticks are expected: much more is a stop, which is filed as a jump.
    fn lose_sight(&mut self, looks: &ClockPolls<R>, usual: u64) -> Option<FiledStop<R>> {
        let blind = self.add_blind(looks.first, looks.last)?;
        let time = &mut self.watched.time;
        time.longest_blind = time.longest_blind.max(blind);
        let part = between(looks.longest);
        // The clock may have been set back in another part.
        let stop = part.saturating_sub(usual).min(blind);
        if stop <= self.stop_from || part / 2 <= usual {
            return None;
        }
        let begin = self.watched.time.at(looks.longest.0);
        let mut looks = ClockPolls::since(self.clock, looks.last);
        self.watched.ranking.offer(begin, stop);
        let jump = Jump::new(begin, stop, Cause::NotWatched);
        (self.watched.jumps).push_in_parts(jump, None, &mut || looks.look());
        self.sampling.notice(stop);
        // It is a difference as any other, unless there are as many as are wanted.
        let is_wanted = self.left() > 0;
        self.watched.found += 1;
        if is_wanted {
            self.watched.time.blind -= stop;
            self.recorder.record(stop);
            self.watched.readings += 1;
        }
        Some(FiledStop {
            length: stop,
            looks,
        })
    }

    /// Adds time that was not watched; `None` if the clock was set back in it.
    fn add_blind(&mut self, from: Ticks, to: Ticks) -> Option<u64> {
        let watched = &mut self.watched;
        let passed = watched.time.pass_blind(from, to);
        if let Err(length) = passed {
            let jump = Jump::new(watched.time.at(to), length, Cause::Backward);
            watched.jumps.push(jump, None);
        }
        passed.ok()
    }

    fn publish(&self) {
        let (seen, watched) = (self.seen, &self.watched);
        seen.readings.store(watched.readings, Ordering::Relaxed);
        seen.jumps.store(watched.found, Ordering::Relaxed);
        seen.largest
            .store(watched.ranking.largest, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
