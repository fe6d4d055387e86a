//! What came of a watch, in ticks, with the way to nanoseconds.

use serde::Serialize;

use crate::buffer::PageKind;
use crate::host::counters::{Available, ThreadUsage};
use crate::time::{Nanos, ReadingKind, Scale, Ticks};

use super::baseline::Baseline;
use super::cause::{Cause, Names, Tally};
use super::coincidence::Coincidences;
use super::distribution::Distribution;
use super::highest::Peak;
use super::jump::JumpStore;
use super::limit::Judgement;
use super::watcher::{Backward, Watched};
use super::window::Sum;

/// The memory in which all differences were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeptIn {
    /// Differences that it had room for.
    pub capacity: u64,
    /// Its pages.
    pub pages: PageKind,
}

/// What was made of the differences.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) distribution: Option<Distribution>,
    pub(super) kept_in: Option<KeptIn>,
    pub(super) not_kept: u64,
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
    /// All differences, if they were counted or kept.
    pub distribution: Option<Distribution>,
    /// Where they were kept, if they were.
    pub kept_in: Option<KeptIn>,
    /// The first ten differences.
    pub first: Vec<u64>,
    /// The ten largest, if asked for.
    pub highest: Vec<Peak>,
    /// The highest sums over windows, if asked for.
    pub windows: Vec<Sum>,
    /// Whether their sums are lower bounds, because windows had more jumps than there was room for.
    pub windows_merged: bool,
    /// The largest difference, or stop while the clock was not watched.
    pub largest: u64,
    /// Steps backwards.
    pub backward: Backward,
    /// Readings, one for each difference.
    pub readings: u64,
    /// The first reading.
    pub start: u64,
    /// The last reading.
    pub end: u64,
    /// Ticks in which the clock was not watched.
    pub blind: u64,
    /// The longest time without a look at the clock.
    pub longest_blind: u64,
    /// Of the blind ticks, those in which counters were read, without stops.
    pub sampling: u64,
    /// How often counters were read.
    pub samples: u64,
    /// Jumps whose counters were not read.
    pub not_sampled: u64,
    /// The jumps.
    pub jumps: JumpStore,
    /// For each jump that is kept, the number of other CPUs that jumped at the same time.
    pub coincident: Vec<u32>,
    /// What the kernel calls its counters.
    pub names: Names,
    /// Which counters could be read.
    pub available: Available,
    /// Context switches and page faults of the thread while it watched.
    pub usage: ThreadUsage,
    /// Differences that there was no memory to keep: all of them were counted then.
    pub not_kept: u64,
}

impl CpuResult {
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
        (self.readings > 0).then(|| {
            (self.elapsed() - self.blind.min(self.elapsed())) as f64 / self.readings as f64
        })
    }

    /// What a thread watched; `stored` makes a distribution of what it kept or counted of the differences.
    pub(super) fn of<K>(
        (cpu, baseline, threshold): (usize, Baseline, u64),
        watched: Watched<K>,
        stored: impl FnOnce(K) -> Stored,
    ) -> Self {
        let Watched {
            recorder,
            first,
            jumps,
            windows,
            windows_merged,
            highest,
            largest,
            backward,
            readings,
            start,
            end,
            blind,
            longest_blind,
            sampling,
            samples,
            not_sampled,
        } = watched;
        let Stored {
            distribution,
            kept_in,
            not_kept,
        } = stored(recorder);
        CpuResult {
            cpu,
            baseline,
            threshold,
            distribution,
            kept_in,
            first,
            highest,
            windows,
            windows_merged,
            largest,
            backward,
            readings,
            start,
            end,
            blind,
            longest_blind,
            sampling,
            samples,
            not_sampled,
            coincident: vec![0; jumps.jumps().len()],
            jumps,
            names: Names::default(),
            available: Available::default(),
            usage: ThreadUsage::default(),
            not_kept,
        }
    }

    /// All jumps together: steps backwards are none.
    pub fn jumped(&self) -> Tally {
        let mut all = Tally::default();
        for (cause, tally) in self.jumps.causes() {
            if *cause != Cause::Backward {
                all.count += tally.count;
                all.alone += tally.alone;
                all.total += tally.total;
                all.largest = all.largest.max(tally.largest);
            }
        }
        all
    }

    /// Kept jumps without an explanation that happened on other CPUs at the same time.
    pub fn unexplained_on_several(&self) -> Tally {
        let mut tally = Tally::default();
        for (jump, &others) in self.jumps.jumps().iter().zip(&self.coincident) {
            if jump.cause == Cause::Unexplained && others > 0 {
                let alone = self.jumps.sample(jump).is_some_and(|it| it.others == 0);
                tally.add(jump.length, alone);
            }
        }
        tally
    }
}

/// Why a watch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// As asked for.
    Complete,
    /// Earlier, with the reason.
    Early(String),
}

/// What came of a watch.
#[derive(Debug)]
pub struct ClockResult {
    /// How the clock was read.
    pub clock: ReadingKind,
    /// How long a tick is.
    pub scale: Scale,
    /// Each CPU, in the order of their numbers.
    pub cpus: Vec<CpuResult>,
    /// Jumps of several CPUs at once; `None` for a single CPU.
    pub coincidences: Option<Coincidences>,
    /// The limits, and what was found.
    pub judgements: Vec<Judgement>,
    /// What is less than asked for, or must be known to read the figures.
    pub notes: Vec<String>,
    /// Whether it is all that was asked for.
    pub ended: Ended,
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

    /// Whether a limit was broken.
    pub fn limit_broken(&self) -> bool {
        self.judgements.iter().any(|judgement| judgement.broken)
    }
}
