//! What came of a watch, in ticks, with the way to nanoseconds.

use serde::Serialize;

use crate::buffer::PageKind;
use crate::host::cgroup::Throttling;
use crate::host::counters::{CounterAvailability, ThreadUsage};
use crate::host::pinning::ThreadMigration;
use crate::host::running::ThreadRun;
use crate::results::finding::Finding;
use crate::time::{AnyClock, Clock, Nanos, ReadingKind, Ticks};

use super::baseline::Baseline;
use super::cause::{Cause, CauseTally, CounterNames};
use super::coincidence::Coincidences;
use super::distribution::Distribution;
use super::trace::{MatchedTrace, Trace};
use super::watcher::WatchResult;

/// The memory in which all differences were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct RecordMemory {
    pub capacity: u64,
    pub pages: PageKind,
}

/// What was made of the differences.
#[derive(Debug, Default)]
pub(super) struct StoredDifferences {
    pub distribution: Option<Distribution>,
    pub kept_in: Option<RecordMemory>,
    /// Differences that there was no memory to keep: all of them were counted then.
    pub not_kept: u64,
}

/// A limit, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Judgement {
    pub cpu: usize,
    pub limit: String,
    pub found_ns: f64,
    pub broken: bool,
}

/// What one CPU's thread has seen. Times are ticks of one clock.
#[derive(Debug)]
pub(super) struct CpuResult {
    pub cpu: usize,
    pub baseline: Baseline,
    /// Longer differences are jumps, in ticks.
    pub threshold: u64,
    pub watched: WatchResult,
    pub stored: StoredDifferences,
    pub names: CounterNames,
    pub available: CounterAvailability,
    /// Context switches and page faults of the thread while it watched.
    pub usage: ThreadUsage,
    /// How long it waited for its CPU meanwhile, in nanoseconds; `None` where the kernel does not tell.
    pub waited: Option<u64>,
    /// How often a CPU quota stopped the control group meanwhile, and for how long of that this CPU's thread.
    pub throttled: Throttling,
    /// The threads that have or had this CPU and ran meanwhile.
    pub ran: Vec<ThreadRun>,
    /// Whether the machine is a virtual one.
    pub guest: bool,
    /// What the tracepoints told, if they were asked.
    pub(super) traced: Option<MatchedTrace>,
    /// Where the thread was found at the end, if that is not where it was pinned to.
    pub moved: Option<ThreadMigration>,
    pub judgements: Vec<Judgement>,
}

#[cfg(test)]
impl CpuResult {
    /// Of a CPU of which nothing else is known.
    pub(super) fn made_up(cpu: usize, watched: WatchResult) -> Self {
        CpuResult {
            cpu,
            baseline: Baseline::default(),
            threshold: 40,
            watched,
            stored: StoredDifferences::default(),
            names: CounterNames::default(),
            available: CounterAvailability::default(),
            usage: ThreadUsage::default(),
            waited: None,
            throttled: Throttling::default(),
            ran: Vec::new(),
            guest: true,
            traced: None,
            moved: None,
            judgements: Vec::new(),
        }
    }
}

impl CpuResult {
    /// All jumps together: steps backwards are none.
    pub(super) fn jumped(&self) -> CauseTally {
        let causes = self.watched.jumps.causes().iter();
        let jumps = causes.filter(|(cause, _)| *cause != Cause::Backward);
        jumps.fold(CauseTally::default(), |all, (_, tally)| all.and(tally))
    }

    /// Tells the causes by a trace, whose records count from the reading `epoch` on.
    pub(super) fn match_with(&mut self, trace: Trace, epoch: Ticks) {
        // A clock that was set back is not that of the trace any more.
        if self.watched.time.steps_back > 0 {
            return;
        }
        let traced = trace.matched(&mut self.watched.jumps, epoch.0);
        let causes = self.watched.jumps.causes().iter();
        let not_known = causes.filter(|(cause, _)| *cause == Cause::NotSampled);
        self.watched.not_sampled = not_known.map(|(_, tally)| tally.count).sum();
        self.names = traced.names();
        self.ran = traced.ran();
        self.traced = Some(traced);
    }

    /// Kept jumps without an explanation that happened on other CPUs at the same time.
    pub(super) fn unexplained_on_several(&self) -> CauseTally {
        let mut tally = CauseTally::default();
        let jumps = &self.watched.jumps;
        let unexplained = jumps.iter().filter(|jump| jump.cause == Cause::Unexplained);
        for jump in unexplained.filter(|jump| jump.other_cpus > 0) {
            let alone = jumps.sample(jump).is_some_and(|it| it.others == 0);
            tally.add(jump.length, alone);
        }
        tally
    }

    pub(super) fn percentile(&self, percent: f64) -> Option<u64> {
        self.stored.distribution.as_ref()?.percentile(percent)
    }
}

/// Divides the time in which a CPU quota stopped the threads of all CPUs among them: by the time in jumps, which
/// contains it.
pub(super) fn share_throttling(cpus: &mut [CpuResult], found: Throttling, nanos_per_tick: f64) {
    let jumped: Vec<f64> = cpus.iter().map(|cpu| cpu.jumped().total as f64).collect();
    let all: f64 = jumped.iter().sum();
    for (cpu, jumped) in cpus.iter_mut().zip(jumped) {
        let share = found.throttled_ns as f64 * jumped / all.max(1.0);
        cpu.throttled = Throttling {
            throttled_ns: share.min(jumped * nanos_per_tick) as u64,
            ..found
        };
    }
}

/// What came of a watch.
#[derive(Debug)]
pub(super) struct ClockResult {
    pub clock: ReadingKind,
    pub scale: AnyClock,
    /// The first reading of all CPUs, in ticks.
    pub origin: u64,
    pub cpus: Vec<CpuResult>,
    /// Jumps of several CPUs at once; `None` for a single CPU.
    pub coincidences: Option<Coincidences>,
    /// What it comes to, in two sentences.
    pub verdict: String,
    /// What is known of all CPUs.
    pub findings: Vec<Finding>,
    /// The signal that ended it early, if one did.
    pub interrupted: Option<String>,
}

impl ClockResult {
    pub(super) fn nanos(&self, ticks: u64) -> Nanos {
        self.scale.to_nanos(Ticks(ticks))
    }

    /// When something was, in nanoseconds since the first reading of all CPUs.
    pub(super) fn when(&self, ticks: u64) -> u64 {
        self.nanos(ticks - self.origin).0
    }

    /// A fraction of ticks as nanoseconds.
    pub(super) fn nanos_f64(&self, ticks: f64) -> f64 {
        ticks * self.scale.nanos_per_tick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::jump::Jump;
    use crate::bench::clock::watcher::WatchTask;

    #[test]
    fn the_time_of_a_quota_is_divided_by_the_time_in_jumps_and_no_more_than_that() {
        for (throttled_ns, expected) in [(8_000, [6_000, 2_000]), (80_000, [9_000, 3_000])] {
            let mut cpus: Vec<CpuResult> = [9_000, 3_000]
                .into_iter()
                .enumerate()
                .map(|(cpu, length)| {
                    let mut watched = WatchResult::nothing(&WatchTask::made_up(100)).unwrap();
                    watched
                        .jumps
                        .push(Jump::new(1, length, Cause::NotSampled), None);
                    CpuResult::made_up(cpu, watched)
                })
                .collect();
            let found = Throttling {
                periods: 29,
                throttled: 28,
                throttled_ns,
            };
            share_throttling(&mut cpus, found, 1.0);
            let times = [0, 1].map(|cpu: usize| cpus[cpu].throttled.throttled_ns);
            assert_eq!(times, expected);
            assert_eq!(cpus[1].throttled.throttled, 28);
        }
    }
}
