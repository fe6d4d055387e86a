//! What came of a watch, in ticks, with the way to nanoseconds.

use std::time::SystemTime;

use serde::Serialize;

use crate::buffer::PageKind;
use crate::host::counters::{CounterAvailability, ThreadUsage};
use crate::host::pinning::ThreadMigration;
use crate::host::running::ThreadRun;
use crate::host::throttling::{Throttling, ThrottlingRecord};
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

/// What a CPU quota did while a CPU was watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct CpuThrottling {
    /// To the control group, in which there may be other threads as well.
    pub group: Throttling,
    /// How long it stopped the thread of this CPU, at the most.
    pub thread_ns: u64,
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
    /// What a CPU quota did meanwhile.
    pub throttled: CpuThrottling,
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
            throttled: CpuThrottling::default(),
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

/// Gives each thread as much of the time in which its group was stopped as it can have lost to that: what it was in
/// jumps that may be such stops, and what it waited for its CPU. The group's time is a sum over all CPUs, and has parts
/// of threads that are not watched: those that are watched have no more of it together.
pub(super) fn attribute_throttling(
    cpus: &mut [CpuResult],
    found: &ThrottlingRecord,
    nanos_per_tick: f64,
) {
    let most = found.most_of_a_thread_ns() as f64;
    let lost = |cpu: &CpuResult| {
        let causes = cpu.watched.jumps.causes().iter();
        let may_be = causes.filter(|(cause, _)| cause.may_be_throttling());
        let jumped: u64 = may_be.map(|(_, tally)| tally.total).sum();
        let waited = cpu.waited.map_or(f64::MAX, |waited| waited as f64);
        (jumped as f64 * nanos_per_tick).min(waited).min(most)
    };
    let lost: Vec<f64> = cpus.iter().map(lost).collect();
    let all: f64 = lost.iter().sum();
    let share = (found.group.throttled_ns as f64 / all.max(1.0)).min(1.0);
    for (cpu, lost) in cpus.iter_mut().zip(lost) {
        cpu.throttled = CpuThrottling {
            group: found.group,
            thread_ns: (lost * share) as u64,
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
    /// When that was by the system's time, to some milliseconds.
    pub begun_at: SystemTime,
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
    fn a_thread_has_no_more_of_a_quotas_time_than_it_can_have_lost() {
        let timer = Cause::Interrupts([Some(0), None, None, None]);
        let of = |throttled_ns: u64, throttled, waited: [Option<u64>; 2]| {
            let jumps = [9_000, 3_000];
            let cpus = jumps.into_iter().zip(waited).enumerate();
            let cpus = cpus.map(|(cpu, (length, waited))| {
                let mut watched = WatchResult::nothing(&WatchTask::made_up(100)).unwrap();
                for (cause, length) in [(Cause::NotSampled, length), (timer, 50_000)] {
                    watched.jumps.push(Jump::new(1, length, cause), None);
                }
                CpuResult {
                    waited,
                    ..CpuResult::made_up(cpu, watched)
                }
            });
            let mut cpus: Vec<CpuResult> = cpus.collect();
            let found = ThrottlingRecord {
                group: Throttling {
                    periods: 29,
                    throttled,
                    throttled_ns,
                },
                period_ns: 1_000,
                elapsed_ns: 1_000_000,
                unknown: None,
            };
            attribute_throttling(&mut cpus, &found, 1.0);
            assert_eq!(cpus[1].throttled.group, found.group);
            [0, 1].map(|cpu: usize| cpus[cpu].throttled.thread_ns)
        };
        // Of a group with many threads, one has what it was in jumps, but not in those by interrupts.
        assert_eq!(of(80_000, 28, [None, None]), [9_000, 3_000]);
        // Both together have no more than the group.
        assert_eq!(of(10_000, 28, [None, None]), [7_500, 2_500]);
        // A thread that did not wait was not stopped.
        assert_eq!(of(80_000, 28, [Some(1_000), Some(0)]), [1_000, 0]);
        // A stop lasts for no longer than its period.
        assert_eq!(of(80_000, 2, [None, None]), [2_000, 2_000]);
    }
}
