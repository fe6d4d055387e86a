//! One thread's watch over the clock: the loop, and what is done between two passes of it.
//!
//! A jump ends a pass. It is then filed, perhaps counters are read, and the loop starts anew from a fresh reading. The
//! time between is *blind*. It is added up and reported. Where it takes much longer than what is done in it, by more
//! than [`STOP`], the thresholds and the usual cost of reading counters, the excess is a jump of a cause of its own,
//! [`Cause::NotWatched`]. Stops shorter than that are not seen in blind time.
//!
//! A difference between the baseline and the threshold is no jump, but ends a pass as well: it is a rival for what the
//! counters say, and they are read behind it when there is credit, so that the window of the next jump begins there.
//!
//! Reading counters takes as long as many iterations, so it is bounded: it may use a tenth of the time that was watched
//! ([`SAMPLING_SHARE`]), saved up for at most [`MOST_CREDIT`], half of which is there from the start. What is left of
//! that half is kept for jumps from [`LONG`] on, so that the many shorter ones do not use up what the rare ones need.
//! Jumps below [`SHORT`], too short for most interrupts, have credit of their own out of the tenth, a hundredth of the
//! time ([`SHORT_SHARE`]). A stop that falls into a reading is not charged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::time::{Nanos, Reading, Scale, Ticks};

use super::cause::{Cause, FAR, Jumped, Sampler};
use super::highest::{Highest, Peak};
use super::hot_loop::{Found, watch};
use super::jump::{JumpStore, Sample};
use super::recorder::{First, Recorder};
use super::window::{SlidingWindows, Sum};

/// Of so many ticks one may be spent on reading counters.
pub const SAMPLING_SHARE: u64 = 10;
/// The part of it for short jumps.
pub const SHORT_SHARE: u64 = 100;
/// Credit for reading counters that can be saved up.
pub const MOST_CREDIT: Nanos = Nanos(20_000_000);
/// Jumps from this length on may use all of the credit, shorter ones what is beyond the half.
pub const LONG: Nanos = Nanos(100_000);
/// Jumps shorter than this have credit of their own.
pub const SHORT: Nanos = Nanos(1_000);
/// Blind time is a stop only beyond this.
pub const STOP: Nanos = Nanos(2_000);

/// What a thread is to do, in ticks of its clock.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Readings to make; until told to stop if `None`.
    pub readings: Option<u64>,
    /// Readings between two looks at the word to stop.
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

/// What others see of a watch that goes on.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Seen {
    /// Readings so far.
    pub readings: AtomicU64,
    /// The largest difference so far, in ticks.
    pub largest: AtomicU64,
}

/// Steps of the clock backwards, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backward {
    /// How many.
    pub steps: u64,
    /// Their sizes together.
    pub total: u64,
    /// The largest.
    pub largest: u64,
}

/// What a thread has seen, in ticks. Steps backwards are taken out of all times.
#[derive(Debug)]
pub struct Watched<K> {
    /// What was stored of the differences.
    pub recorder: K,
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
    /// The largest difference.
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
    scale: Scale,
    sampler: S,
    stop: &'a AtomicBool,
    seen: &'a Seen,
    task: Task,
    epoch: u64,
    windows: Option<SlidingWindows>,
    top: Highest,
    short: u64,
    long: u64,
    /// Blind time beyond this is a stop.
    stop_from: u64,
    most_credit: i64,
    credit: i64,
    short_credit: i64,
    credited: u64,
    cost: u64,
    sampled_at: u64,
    unsampled: Unsampled,
    /// The largest difference between baseline and threshold in this pass.
    lesser: u64,
    /// Whether the store of the jumps took time for itself.
    tidied: bool,
    pending: Vec<Pending>,
    watched: Watched<K>,
}

/// Differences above baseline or threshold, and stops in blind time, without a sample since the last one.
#[derive(Debug, Clone, Copy, Default)]
struct Unsampled {
    all: u64,
    not_short: u64,
    longest: u64,
}

impl Unsampled {
    fn add(&mut self, length: u64, short: u64) {
        self.all += 1;
        self.not_short += u64::from(length >= short);
        self.longest = self.longest.max(length);
    }
}

impl<'a, R: Reading, K: Recorder, S: Sampler> Watcher<'a, R, K, S> {
    /// A watch that has all its memory.
    pub fn new(
        (clock, scale): (R, Scale),
        recorder: K,
        sampler: S,
        task: Task,
        (stop, seen): (&'a AtomicBool, &'a Seen),
    ) -> Self {
        Watcher {
            clock,
            scale,
            sampler,
            stop,
            seen,
            task,
            epoch: 0,
            windows: task
                .window
                .map(|length| SlidingWindows::new(length, task.baseline)),
            top: Highest::default(),
            short: scale.ticks_in(SHORT).0,
            long: scale.ticks_in(LONG).0,
            stop_from: (scale.ticks_in(STOP).0)
                .max(task.threshold)
                .max(task.baseline.saturating_mul(2)),
            most_credit: scale.ticks_in(MOST_CREDIT).0 as i64,
            credit: 0,
            short_credit: 0,
            credited: 0,
            cost: 0,
            sampled_at: 0,
            unsampled: Unsampled::default(),
            lesser: 0,
            tidied: false,
            pending: Vec::with_capacity(MOST_PENDING),
            watched: Watched {
                recorder,
                first: Vec::with_capacity(10),
                jumps: JumpStore::new(task.keep),
                windows: Vec::new(),
                windows_merged: false,
                highest: Vec::new(),
                largest: 0,
                backward: Backward::default(),
                readings: 0,
                start: 0,
                end: 0,
                blind: 0,
                longest_blind: 0,
                sampling: 0,
                samples: 0,
                not_sampled: 0,
            },
        }
    }

    /// Watches to the end, and counts the time from the reading `epoch` on, which must be before the first.
    pub fn run(mut self, epoch: Ticks) -> Watched<K> {
        self.epoch = epoch.0;
        // Once for nothing: what it costs, and the counters as they stand.
        let before = self.clock.read();
        self.sampler.read();
        let start = self.clock.read();
        let took = start.0.saturating_sub(before.0);
        self.cost = took.clamp(1, self.most_credit.max(1) as u64);
        self.credit = (self.most_credit / 2 + self.cost as i64).min(self.most_credit);
        self.watched.start = self.time(start);
        (self.credited, self.sampled_at) = (self.watched.start, self.watched.start);

        let mut last = self.begin(start);
        while let Some(readings) = self.next_block() {
            let limit = self.limit();
            let pass = watch(
                &self.clock,
                &mut self.watched.recorder,
                last,
                readings,
                limit,
            );
            self.watched.readings += pass.readings;
            last = match pass.found {
                None => pass.last,
                Some(found) => self.judge(found),
            };
            self.publish();
        }
        self.watched.end = self.time(last);
        self.watched.highest = self.top.peaks().to_vec();
        if let Some(windows) = &self.windows {
            self.watched.windows = windows.highest().to_vec();
            self.watched.windows_merged = windows.merged();
        }
        self.watched
    }

    /// The first ten differences, kept as they come and judged afterwards: no way out of the loop is between them.
    fn begin(&mut self, start: Ticks) -> Ticks {
        let readings = self.task.readings.unwrap_or(10).min(10);
        if readings == 0 {
            return start;
        }
        let mut first = First::default();
        let pass = watch(&self.clock, &mut first, start, readings, u64::MAX >> 1);
        self.watched.readings += pass.readings;
        let mut end = start;
        for &difference in first.values() {
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
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let left = self
            .task
            .readings
            .map_or(u64::MAX, |readings| readings - self.watched.readings);
        Some(left.min(self.task.block)).filter(|&block| block > 0)
    }

    /// Differences above this are jumps, or rivals of jumps for what the counters say.
    fn edge(&self) -> u64 {
        self.task.threshold.min(self.task.baseline)
    }

    /// Differences above this leave the loop.
    fn limit(&self) -> u64 {
        let mut limit = self.watched.recorder.direct_limit().min(self.edge());
        if self.task.highest {
            limit = limit.min(self.top.limit().unwrap_or(0));
        }
        limit
    }

    /// Time since the start of the run, steps backwards taken out.
    fn time(&self, reading: Ticks) -> u64 {
        (reading.0.wrapping_sub(self.epoch)).wrapping_add(self.watched.backward.total)
    }

    /// Files the difference that ended a pass and the one behind it. Returns the reading to go on from.
    fn judge(&mut self, found: Found) -> Ticks {
        self.file(found.difference, found.end);
        let Some(after) = found.after else {
            return self.store(found.end);
        };
        self.file(after.0.wrapping_sub(found.end.0), after);
        self.store(after)
    }

    /// Files one difference.
    fn file(&mut self, difference: u64, end: Ticks) {
        if (difference as i64) < 0 {
            let pending = self.step_back(difference.wrapping_neg(), end);
            self.pending.push(pending);
            return;
        }
        let limit = self.watched.recorder.direct_limit();
        if difference <= limit {
            self.watched.recorder.record(difference);
        } else {
            self.watched.recorder.record_above(difference);
        }
        let begin = self.time(end) - difference;
        self.rank(begin, difference);
        if difference > self.edge() {
            self.unsampled.add(difference, self.short);
        }
        if difference > self.task.threshold {
            self.pending.push(Pending {
                begin,
                length: difference,
                backward: false,
            });
        } else if difference > self.edge() {
            self.lesser = self.lesser.max(difference);
        }
    }

    /// The largest, the ten largest, and the windows.
    fn rank(&mut self, begin: u64, length: u64) {
        self.watched.largest = self.watched.largest.max(length);
        if self.task.highest {
            self.top.offer(Peak { length, begin });
        }
        if let Some(windows) = &mut self.windows
            && length > self.task.baseline
        {
            windows.push(begin, length - self.task.baseline);
        }
    }

    fn step_back(&mut self, size: u64, end: Ticks) -> Pending {
        let backward = &mut self.watched.backward;
        backward.steps += 1;
        backward.total += size;
        backward.largest = backward.largest.max(size);
        Pending {
            begin: self.time(end),
            length: size,
            backward: true,
        }
    }

    /// Credit for the time watched since the last pass.
    fn earn(&mut self, now: u64) {
        let passed = now - self.credited;
        let short = (passed / SHORT_SHARE) as i64;
        let rest = (passed / SAMPLING_SHARE) as i64 - short;
        self.credit = (self.credit + rest).min(self.most_credit);
        self.short_credit = (self.short_credit + short).min(self.most_credit);
    }

    /// Whether counters may be read behind a jump, or a lesser difference, of this length.
    fn affords(&self, length: u64, is_jump: bool) -> bool {
        let credit = if length < self.short {
            self.short_credit
        } else if is_jump && length >= self.long {
            self.credit
        } else {
            self.credit - self.most_credit / 2
        };
        credit >= (self.cost as i64).min(self.most_credit / 2)
    }

    /// Stores the jumps that were filed, the longest with counters if there is credit for it. Returns a fresh reading to
    /// go on from.
    fn store(&mut self, seen: Ticks) -> Ticks {
        let now = self.time(seen);
        self.earn(now);
        let jumps = self.pending.iter().filter(|jump| !jump.backward);
        let longest = jumps.map(|jump| jump.length).max();
        let lesser = std::mem::take(&mut self.lesser);
        let length = longest.unwrap_or(lesser);
        let affordable = self.affords(length, longest.is_some());
        // A lesser one that cannot have been an interrupt takes nothing from the counters.
        let renew = longest.is_none() && lesser >= self.short && affordable;
        let mut to_sample = longest.filter(|_| affordable);
        let reads = renew || to_sample.is_some();
        for at in 0..self.pending.len() {
            let jump = self.pending[at];
            let Pending { begin, length, .. } = jump;
            let (cause, sample) = if jump.backward {
                (Cause::Backward, None)
            } else if to_sample == Some(length) {
                to_sample = None;
                let (cause, sample) = self.read_counters(length, now);
                (cause, Some(sample))
            } else {
                self.watched.not_sampled += 1;
                (Cause::NotSampled, None)
            };
            self.tidied |= self.watched.jumps.push(begin, length, cause, sample);
        }
        self.pending.clear();
        if renew {
            self.read_counters(lesser, now);
        }
        let mut again = self.clock.read();
        let usual = if reads { self.cost } else { 0 };
        let stop = self.lose_sight(seen, again, usual);
        if reads {
            // The clock may have been set back meanwhile.
            let took = again.0.saturating_sub(seen.0);
            let charged = took - stop.min(took);
            self.watched.sampling += charged;
            // Once in a while it is the reading that is interrupted: that must not stand for what it costs. Nor must the
            // quickest one, and behind a clock that was set back nothing is known.
            if again >= seen {
                self.cost = took
                    .min(self.cost * 2)
                    .max(self.cost - self.cost / 16)
                    .max(1);
            }
            let credit = if length < self.short {
                &mut self.short_credit
            } else {
                &mut self.credit
            };
            *credit -= charged as i64;
        }
        if stop > 0 {
            // What was done for it must not be part of the next difference.
            let filed = again;
            again = self.clock.read();
            self.add_blind(filed, again);
        }
        self.credited = self.time(again);
        again
    }

    fn read_counters(&mut self, length: u64, now: u64) -> (Cause, Sample) {
        let deltas = self.sampler.read();
        let unsampled = std::mem::take(&mut self.unsampled);
        let rivals = if length < self.short {
            unsampled.all
        } else {
            unsampled.not_short
        };
        let sample = Sample {
            deltas,
            window: now - std::mem::replace(&mut self.sampled_at, now),
            // The jump itself is one of them.
            others: rivals - 1,
        };
        let jumped = Jumped {
            nanos: self.scale.to_nanos(Ticks(length)).0,
            longer_in_window: unsampled.longest > length,
            rivals: sample.others,
            hidden_rivals: self.edge() >= self.short && sample.window > length.saturating_mul(FAR),
        };
        self.watched.samples += 1;
        (Cause::of(&deltas, jumped), sample)
    }

    /// Adds up the time from the last reading of a pass to the first of the next, in which `usual` ticks are not
    /// surprising. Much more is a jump, whose length is returned, else 0.
    fn lose_sight(&mut self, seen: Ticks, again: Ticks, usual: u64) -> u64 {
        let begin = self.time(seen);
        let Some(blind) = self.add_blind(seen, again) else {
            return 0;
        };
        self.watched.longest_blind = self.watched.longest_blind.max(blind);
        let stop = blind.saturating_sub(usual);
        let tidied = std::mem::take(&mut self.tidied);
        if tidied || stop <= self.stop_from || blind / 2 <= usual {
            return 0;
        }
        self.rank(begin, stop);
        self.watched
            .jumps
            .push(begin, stop, Cause::NotWatched, None);
        self.unsampled.add(stop, self.short);
        stop
    }

    /// Adds time that was not watched; `None` if the clock was set back in it.
    fn add_blind(&mut self, from: Ticks, to: Ticks) -> Option<u64> {
        let blind = to.0.wrapping_sub(from.0);
        if (blind as i64) < 0 {
            let Pending { begin, length, .. } = self.step_back(blind.wrapping_neg(), to);
            self.watched
                .jumps
                .push(begin, length, Cause::Backward, None);
            return None;
        }
        self.watched.blind += blind;
        Some(blind)
    }

    fn publish(&self) {
        let seen = self.seen;
        seen.readings
            .store(self.watched.readings, Ordering::Relaxed);
        seen.largest.store(self.watched.largest, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
