//! What the thread of one CPU does: it measures the baseline, and later it watches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::buffer::{PageKind, StampBuffer};
use crate::host::counters::{CpuCounters, ThreadUsage};
use crate::time::{Nanos, Reading, ReadingUser, Scale};

use super::baseline::{self, Baseline};
use super::cause::Names;
use super::config::{Config, Length, Report};
use super::distribution::Distribution;
use super::error::RunError;
use super::recorder::{Counted, Kept, Nothing, Recorder};
use super::result::{CpuResult, KeptIn, Stored};
use super::supervise::Control;
use super::watcher::{Task, Watcher};

pub(super) struct MeasureBaseline<'a> {
    pub(super) iterations: u64,
    pub(super) stop: &'a AtomicBool,
}

impl ReadingUser for MeasureBaseline<'_> {
    type Output = Baseline;
    fn with<R: Reading>(self, reading: R) -> Baseline {
        baseline::measure(&reading, self.iterations, baseline::LONGEST, self.stop)
    }
}

/// One CPU's thread, on its CPU.
pub(super) struct Prepared {
    pub(super) cpu: usize,
    pub(super) at: usize,
    pub(super) config: Arc<Config>,
    pub(super) scale: Scale,
    pub(super) baseline: Baseline,
    pub(super) keep: Option<u64>,
    pub(super) guest: bool,
    pub(super) control: Arc<Control>,
}

/// What a thread hands over: nothing if it was told to give up before it began.
pub(super) type Handed = Option<CpuResult>;

impl ReadingUser for Prepared {
    type Output = Result<Handed, RunError>;

    fn with<R: Reading>(self, reading: R) -> Self::Output {
        let cpu = self.cpu;
        let kept = match self.keep {
            None => None,
            Some(readings) => {
                let readings = usize::try_from(readings).unwrap_or(usize::MAX / 8);
                let slots = StampBuffer::new(readings, self.config.huge_pages)
                    .map_err(|source| RunError::Buffer { cpu, source })?;
                let pages = slots.page_kind();
                Some((Kept::new(slots), pages))
            }
        };
        // Percentiles that cannot be kept are counted; how many differences a time has is not known for sure.
        let sure = kept.is_some() && matches!(self.config.length, Length::Iterations(_));
        let counts = self.config.counts() || (!sure && self.config.wants(Report::Percentiles));
        let counters = Counted::for_baseline(self.baseline.ticks());
        Ok(match (kept, counts) {
            (None, false) => self.watch(reading, Nothing, |_| Stored::default()),
            (None, true) => self.watch(reading, counters, |counted| of_counted(&counted)),
            (Some((kept, pages)), false) => self.watch(reading, kept, |kept| of_kept(&kept, pages)),
            (Some((kept, pages)), true) => {
                self.watch(reading, (counters, kept), |(counted, kept)| {
                    match kept.missed() {
                        0 => of_kept(&kept, pages),
                        not_kept => Stored {
                            not_kept,
                            ..of_counted(&counted)
                        },
                    }
                })
            }
        })
    }
}

fn of_kept(kept: &Kept, pages: PageKind) -> Stored {
    Stored {
        distribution: Some(Distribution::of_kept(kept)),
        kept_in: Some(KeptIn {
            capacity: kept.capacity() as u64,
            pages,
        }),
        not_kept: 0,
    }
}

fn of_counted(counted: &Counted) -> Stored {
    Stored {
        distribution: Some(Distribution::of_counted(counted)),
        ..Stored::default()
    }
}

impl Prepared {
    fn task(&self) -> Task {
        let ticks = |nanos| self.scale.ticks_in(nanos).0;
        Task {
            readings: match self.config.length {
                Length::Iterations(readings) => Some(readings),
                Length::Duration(_) => None,
            },
            block: self.baseline.block(ticks(Nanos::from(baseline::LOOK))),
            baseline: self.baseline.ticks(),
            threshold: self.config.threshold.map_or(self.baseline.ticks(), ticks),
            window: self
                .config
                .wants(Report::Cumulative)
                .then(|| ticks(self.config.window)),
            highest: self.config.wants(Report::Highest),
            keep: self.config.keep,
        }
    }

    fn watch<R: Reading, K: Recorder>(
        self,
        reading: R,
        recorder: K,
        stored: impl FnOnce(K) -> Stored,
    ) -> Handed {
        let task = self.task();
        let mut counters = CpuCounters::open(self.cpu, self.guest);
        let control = Arc::clone(&self.control);
        // What is touched for the first time in the loop would be a page fault there.
        counters.read();
        let watcher = Watcher::new(
            (reading, self.scale),
            recorder,
            &mut counters,
            task,
            (&control.stop, &control.seen[self.at]),
        );
        let epoch = control.wait_for_start()?;
        let before = ThreadUsage::now();
        let watched = watcher.run(epoch);
        let usage = ThreadUsage::now().since(before);
        control.loop_ended(self.at);
        let result = CpuResult::of((self.cpu, self.baseline, task.threshold), watched, stored);
        Some(CpuResult {
            names: Names {
                interrupts: counters.interrupt_names(),
                softirqs: counters.softirq_names(),
            },
            available: counters.available().clone(),
            usage,
            ..result
        })
    }
}
