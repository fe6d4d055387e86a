//! What the thread of one CPU does: it measures the baseline, and later it watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::buffer::StampBuffer;
use crate::host::counters::{CounterAvailability, CpuCounters, Deltas, ThreadUsage};
use crate::host::{pinning, running};
use crate::rig::control::{Control, StopFlag};
use crate::rig::workers::Reporter;
use crate::time::{AnyClock, Clock, Nanos, Reading, ReadingUser, Ticks};

use super::baseline::{self, Baseline};
use super::cause::CounterNames;
use super::config::{Causes, Config, Length, Report};
use super::distribution::Distribution;
use super::error::RunError;
use super::recorder::{CountingRecorder, KeepingRecorder, Recorder};
use super::result::{CpuResult, CpuThrottling, RecordMemory, StoredDifferences};
use super::trace;
use super::watcher::{WatchProgress, WatchTask, Watcher};

pub(super) struct BaselineMeasurement<'a> {
    pub(super) asked: Option<u64>,
    pub(super) stop: &'a StopFlag,
}

impl ReadingUser for BaselineMeasurement<'_> {
    type Output = Baseline;
    fn with<R: Reading>(self, reading: R) -> Baseline {
        baseline::measure(&reading, self.asked, self.stop)
    }
}

/// What a watching thread tells.
#[derive(Debug)]
pub(super) enum WatchReport {
    /// It has its memory, and begins when all others have theirs.
    Ready,
    /// It did not begin, as another one failed.
    GivenUp,
    Done(Box<CpuResult>),
}

/// What all threads of a watch share.
#[derive(Debug)]
pub(super) struct WatchContext {
    pub(super) config: Arc<Config>,
    pub(super) scale: AnyClock,
    /// Earlier than any thread's first reading, also where the counters of the CPUs differ a little.
    pub(super) epoch: Ticks,
    pub(super) keep: Option<u64>,
    pub(super) guest: bool,
    pub(super) control: Arc<Control>,
    /// Set when all are ready.
    pub(super) go: AtomicBool,
    /// What each shows of itself.
    pub(super) seen: Vec<WatchProgress>,
    /// What each tells the trace's reader; empty without a trace.
    pub(super) told: Arc<[trace::WatchState]>,
}

/// One CPU's thread, on its CPU.
pub(super) struct PreparedThread<'a> {
    pub(super) cpu: usize,
    pub(super) baseline: Baseline,
    pub(super) together: &'a WatchContext,
    pub(super) seen: &'a WatchProgress,
    pub(super) told: Option<&'a trace::WatchState>,
    pub(super) supervisor: &'a Reporter<WatchReport>,
}

impl ReadingUser for PreparedThread<'_> {
    type Output = Result<WatchReport, RunError>;

    fn with<R: Reading>(self, reading: R) -> Self::Output {
        let cpu = self.cpu;
        let config = &self.together.config;
        let kept = self.together.keep.map(|readings| {
            let readings = usize::try_from(readings).unwrap_or(usize::MAX / 8);
            StampBuffer::new(readings, config.huge_pages).map(KeepingRecorder::new)
        });
        let kept = kept.transpose();
        let kept = kept.map_err(|source| RunError::Buffer { cpu, source })?;
        let counters = CountingRecorder::for_baseline(self.baseline.ticks());
        match kept {
            None if config.counts() => self.watch(reading, counters, |it| of_counted(&it)),
            None => self.watch(reading, |_: u64| (), |_| StoredDifferences::default()),
            // What cannot be kept is counted: how many differences a time has is not known for sure.
            Some(kept) => self.watch(reading, (counters, kept), |(counted, kept)| {
                match kept.missed() {
                    0 => of_kept(&kept),
                    not_kept => StoredDifferences {
                        not_kept,
                        ..of_counted(&counted)
                    },
                }
            }),
        }
    }
}

fn of_kept(kept: &KeepingRecorder) -> StoredDifferences {
    StoredDifferences {
        distribution: Some(Distribution::of(kept.iter())),
        kept_in: Some(RecordMemory {
            capacity: kept.slots().len() as u64,
            pages: kept.slots().page_kind(),
        }),
        not_kept: 0,
    }
}

fn of_counted(counted: &CountingRecorder) -> StoredDifferences {
    StoredDifferences {
        distribution: Some(Distribution::of_counted(counted)),
        ..StoredDifferences::default()
    }
}

impl PreparedThread<'_> {
    fn task(&self) -> WatchTask {
        let (config, scale) = (&self.together.config, self.together.scale);
        let ticks = |nanos| scale.ticks_in(nanos).0;
        WatchTask {
            readings: match config.length {
                Length::Iterations(readings) => Some(readings),
                Length::Duration(_) | Length::Jumps(_) => None,
            },
            until: match config.length {
                Length::Jumps(jumps) => Some(jumps),
                Length::Duration(_) | Length::Iterations(_) => None,
            },
            causes: config.causes == Causes::Counters,
            block: self.baseline.block(ticks(Nanos::from(baseline::LOOK))),
            baseline: self.baseline.ticks(),
            threshold: config.threshold.map_or(self.baseline.ticks(), ticks),
            window: config
                .wants(Report::Cumulative)
                .then(|| ticks(config.window)),
            highest: config.wants(Report::Highest),
            keep: config.kept_jumps(),
        }
    }

    fn watch<R: Reading, K: Recorder>(
        self,
        reading: R,
        recorder: K,
        stored: impl FnOnce(K) -> StoredDifferences,
    ) -> Result<WatchReport, RunError> {
        let (task, together, config) = (self.task(), self.together, &self.together.config);
        let control = &together.control;
        let has_quota = config.priority.is_none();
        let open = || CpuCounters::open(self.cpu, together.guest, has_quota);
        let mut counters = task.causes.then(open);
        let mut read = || {
            counters
                .as_mut()
                .map_or_else(Deltas::default, CpuCounters::read)
        };
        // What is touched for the first time in the loop would be a page fault there.
        read();
        let watcher = Watcher::new(
            (reading, together.scale),
            recorder,
            read,
            task,
            (control.stop_flag(), self.seen),
        );
        let watcher = watcher.map_err(|_| RunError::Jumps { keep: task.keep })?;
        if let Some(told) = self.told {
            told.begin();
        }
        self.supervisor.send(WatchReport::Ready);
        while !together.go.load(Ordering::Acquire) {
            if control.stopped() || control.failed() {
                return Ok(WatchReport::GivenUp);
            }
            // The supervisor may have to run on this CPU, and with a priority none yields to it.
            match config.priority {
                None => std::thread::yield_now(),
                Some(_) => std::thread::sleep(Duration::from_micros(50)),
            }
        }
        if let Some(told) = self.told {
            told.start();
        }
        let before = (ThreadUsage::now(), running::waited());
        let (watched, recorder) = watcher.run(together.epoch);
        if let Some(told) = self.told {
            told.end();
        }
        let usage = ThreadUsage::now().since(before.0);
        let waited = running::waited().zip(before.1);
        let moved = pinning::check_still_on(self.cpu).err();
        Ok(WatchReport::Done(Box::new(CpuResult {
            cpu: self.cpu,
            baseline: self.baseline,
            threshold: task.threshold,
            watched,
            stored: stored(recorder),
            names: counters
                .as_ref()
                .map_or_else(CounterNames::default, |counters| CounterNames {
                    interrupts: counters.interrupt_names(),
                    softirqs: counters.softirq_names(),
                    threads: Vec::new(),
                }),
            available: counters
                .map_or_else(CounterAvailability::default, |it| it.available().clone()),
            usage,
            waited: waited.map(|(after, before)| after.saturating_sub(before)),
            throttled: CpuThrottling::default(),
            ran: Vec::new(),
            guest: together.guest,
            traced: None,
            moved,
            judgements: Vec::new(),
        })))
    }
}
