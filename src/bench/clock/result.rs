//! What came of a watch, in ticks, with the way to nanoseconds.

use serde::{Deserialize, Serialize};

use crate::buffer::PageKind;
use crate::host::counters::{Available, ThreadUsage};
use crate::host::pinning::Moved;
use crate::time::{AnyClock, Clock, Nanos, ReadingKind, Ticks};

use super::baseline::Baseline;
use super::cause::{Cause, Names, Tally};
use super::coincidence::Coincidences;
use super::distribution::Distribution;
use super::limit::Judgement;
use super::watcher::Watched;

/// The memory in which all differences were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptIn {
    /// Differences that it had room for.
    pub capacity: u64,
    /// Its pages.
    pub pages: PageKind,
}

/// What was made of the differences.
#[derive(Debug, Default)]
pub struct Stored {
    /// All differences, if they were counted or kept.
    pub distribution: Option<Distribution>,
    /// Where they were kept, if they were.
    pub kept_in: Option<KeptIn>,
    /// Differences that there was no memory to keep: all of them were counted then.
    pub not_kept: u64,
}

/// What one CPU's thread has seen. Times are ticks since the start of the first of all threads.
#[derive(Debug)]
pub struct CpuResult {
    /// The CPU.
    pub cpu: usize,
    /// The usual difference.
    pub baseline: Baseline,
    /// Longer differences are jumps, in ticks.
    pub threshold: u64,
    /// What its thread has seen.
    pub watched: Watched,
    /// The differences.
    pub stored: Stored,
    /// For each jump that is kept, the number of other CPUs that jumped at the same time.
    pub coincident: Vec<u32>,
    /// What the kernel calls its counters.
    pub names: Names,
    /// Which counters could be read.
    pub available: Available,
    /// Context switches and page faults of the thread while it watched.
    pub usage: ThreadUsage,
    /// Where the thread was found at the end, if that is not where it was pinned to.
    pub moved: Option<Moved>,
    /// The limits, and what was found.
    pub judgements: Vec<Judgement>,
}

impl CpuResult {
    /// All jumps together: steps backwards are none.
    pub fn jumped(&self) -> Tally {
        let causes = self.watched.jumps.causes().iter();
        let jumps = causes.filter(|(cause, _)| *cause != Cause::Backward);
        jumps.fold(Tally::default(), |all, (_, tally)| all.and(tally))
    }

    /// Kept jumps without an explanation that happened on other CPUs at the same time.
    pub fn unexplained_on_several(&self) -> Tally {
        let mut tally = Tally::default();
        let jumps = &self.watched.jumps;
        for (jump, &others) in jumps.jumps().iter().zip(&self.coincident) {
            if jump.cause == Cause::Unexplained && others > 0 {
                let alone = jumps.sample(jump).is_some_and(|it| it.others == 0);
                tally.add(jump.length, alone);
            }
        }
        tally
    }

    /// A percentile of all differences, in ticks.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.stored.distribution.as_ref()?.percentile(percent)
    }
}

/// What came of a watch.
#[derive(Debug)]
pub struct ClockResult {
    /// How the clock was read.
    pub clock: ReadingKind,
    /// How long a tick is.
    pub scale: AnyClock,
    /// Each CPU, in the order of their numbers.
    pub cpus: Vec<CpuResult>,
    /// Jumps of several CPUs at once; `None` for a single CPU.
    pub coincidences: Option<Coincidences>,
    /// What is less than asked for, or must be known to read the figures.
    pub notes: Vec<String>,
    /// The signal that ended it early, if one did.
    pub interrupted: Option<String>,
}

impl ClockResult {
    /// Ticks as nanoseconds.
    pub fn nanos(&self, ticks: u64) -> Nanos {
        self.scale.to_nanos(Ticks(ticks))
    }

    /// A fraction of ticks as nanoseconds.
    pub fn nanos_f64(&self, ticks: f64) -> f64 {
        ticks * self.scale.nanos_per_tick()
    }
}
