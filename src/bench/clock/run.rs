//! A watch on one or more CPUs, step by step: the clock is made ready, baselines are measured, and a thread pinned to each
//! CPU watches. The calling thread supervises; where there is a CPU that is not watched it goes there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::buffer::Bytes;
use crate::host::cpu_set::CpuSet;
use crate::host::interrupt::{self, HeldBack};
use crate::host::memory_lock::{MemoryLock, available_memory};
use crate::host::pinning;
use crate::time::{AnyReading, Nanos};

use super::baseline::{self, Baseline};
use super::conclude::conclude;
use super::config::{Config, Length, Report};
use super::result::ClockResult;
use super::supervise::{
    Control, EndAll, Watching, all_ended, join_all, pipe, spawn, supervise, wait_for_end,
};
use super::thread::{MeasureBaseline, Prepared};

pub use super::error::RunError;
pub use super::supervise::{Observer, SoFar};

/// Of the memory that is available, all differences may take so much at the most.
const MOST_OF_MEMORY: f64 = 0.8;
/// As much as they may take where counting them will do as well.
const MOST_OF_MEMORY_UNASKED: f64 = 0.25;
const BYTES_PER_READING: u64 = 4;

/// Where all differences go.
enum Room {
    /// Into memory for so many of each CPU.
    Keep(u64),
    /// They are counted, for the reason given.
    Count(String),
    /// They are not asked for.
    None,
}

/// A watch whose clock is ready.
#[derive(Debug)]
pub struct Session {
    config: Arc<Config>,
    reading: AnyReading,
    guest: bool,
    notes: Vec<String>,
}

/// A watch whose baselines are known, and where its differences go.
#[derive(Debug)]
pub struct Ready {
    session: Session,
    baselines: Vec<Baseline>,
    keep: Option<u64>,
}

impl Session {
    /// Makes the clock ready and moves the calling thread to a CPU that is not watched, if there is one among
    /// `allowed`. `guest`: whether the machine is a virtual one.
    ///
    /// # Errors
    /// When the clock cannot be used, the thread cannot be moved, or the differences cannot be kept.
    pub fn prepare(config: Config, allowed: &CpuSet, guest: bool) -> Result<Self, RunError> {
        let reading = AnyReading::prepare(config.clock, config.tsc_khz)?;
        let watched: CpuSet = config.cpus.iter().copied().collect();
        let free = allowed.difference(&watched);
        let mut notes = Vec::new();
        if free.is_empty() {
            notes.push(
                "all CPUs are watched: the rest of the process, which sleeps but for a look at each update of the \
                 progress bar, runs on one of them"
                    .to_owned(),
            );
        } else {
            pinning::pin_current_thread_to(&free)?;
        }
        if guest && config.clock == crate::time::ReadingKind::Rdtscp {
            notes.push(
                "this is a guest: each cpuid of --clock rdtscp exits to the hypervisor, which takes thousands of cycles: \
                 --clock rdtscp-lfence does not"
                    .to_owned(),
            );
        }
        let session = Session {
            config: Arc::new(config),
            reading,
            guest,
            notes,
        };
        if let Length::Iterations(readings) = session.config.length {
            // Refused now, or not at all.
            let _room = session.room(readings)?;
        }
        Ok(session)
    }

    /// The clock.
    pub fn reading(&self) -> &AnyReading {
        &self.reading
    }

    /// What is known beforehand to be less than asked for, or must be known to read the figures.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether so many differences of each CPU are to be kept, and can be.
    fn room(&self, readings: u64) -> Result<Room, RunError> {
        if !self.config.wants(Report::Percentiles) {
            return Ok(Room::None);
        }
        let cpus = self.config.cpus.len();
        let needed = readings
            .saturating_mul(BYTES_PER_READING)
            .saturating_mul(cpus as u64);
        let available = available_memory().unwrap_or(u64::MAX);
        let lock = MemoryLock::read()?;
        if self.config.keep_all {
            if needed as f64 > available as f64 * MOST_OF_MEMORY {
                return Err(RunError::Memory {
                    readings,
                    cpus,
                    needed: Bytes(needed),
                    available: Bytes(available),
                });
            }
            lock.require(needed).map_err(RunError::Lock)?;
            return Ok(Room::Keep(readings));
        }
        let short_of = if needed as f64 > available as f64 * MOST_OF_MEMORY_UNASKED {
            format!("a quarter of the memory available ({})", Bytes(available))
        } else if !lock.permits(needed) {
            format!("the memlock limit ({})", lock.soft)
        } else {
            return Ok(Room::Keep(readings));
        };
        Ok(Room::Count(format!(
            "to keep {readings} differences on each CPU would take {}, more than {short_of}: they are counted instead, \
             to 0.1 %, and exactly below 4096 ticks where the baseline is; --report percentiles alone insists on that memory",
            Bytes(needed)
        )))
    }

    /// Measures the baseline of each CPU, of all at the same time.
    ///
    /// # Errors
    /// When a thread cannot run where it should, when a signal came, or the differences cannot be kept.
    pub fn baselines(mut self) -> Result<Ready, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let held = HeldBack::new()?;
        let reading = self.reading;
        let iterations = self.config.baseline_iterations;
        let end = || stop.store(true, Ordering::Relaxed);
        let end_all = EndAll(&end);
        let (ended, own) = pipe()?;
        let mut threads = Vec::new();
        for &cpu in &self.config.cpus {
            let stop = Arc::clone(&stop);
            threads.push(spawn(cpu, &own, move || {
                Ok(reading.visit(MeasureBaseline {
                    iterations,
                    stop: &stop,
                }))
            })?);
        }
        drop(own);
        let limit = baseline::LONGEST * 2;
        let waited = wait_for_end(&held, &ended, limit, &mut None, &|| None);
        drop(end_all);
        waited?;
        all_ended(&held, &ended, &|| false)?;
        let baselines = join_all(threads)?;
        drop(held);
        if let Some(signal) = interrupt::requested() {
            return Err(RunError::Interrupted(signal.to_string()));
        }
        if let Some(least) = baselines
            .iter()
            .filter(|baseline| baseline.shortened)
            .map(|baseline| baseline.iterations)
            .min()
        {
            self.notes.push(format!(
                "the baseline was measured over {least} iterations instead of {iterations}, which would have taken more than \
                 {} s",
                baseline::LONGEST.as_secs()
            ));
        }
        let readings = match self.config.length {
            Length::Iterations(readings) => readings,
            Length::Duration(duration) => {
                let ticks = self.reading.scale().ticks_in(Nanos::from(duration)).0;
                let quickest = baselines.iter().map(Baseline::quickest_mean);
                let quickest = quickest.fold(f64::INFINITY, f64::min);
                (ticks as f64 / quickest * 1.05) as u64 + 1000
            }
        };
        let keep = match self.room(readings)? {
            Room::Keep(readings) => Some(readings),
            Room::Count(note) => {
                self.notes.push(note);
                None
            }
            Room::None => None,
        };
        Ok(Ready {
            session: self,
            baselines,
            keep,
        })
    }
}

impl Ready {
    /// The baselines, in the order of the CPUs.
    pub fn baselines(&self) -> &[Baseline] {
        &self.baselines
    }

    /// What is known beforehand to be less than asked for.
    pub fn notes(&self) -> &[String] {
        &self.session.notes
    }

    /// Watches. A signal ends it early, with what was seen until then.
    ///
    /// # Errors
    /// When a thread cannot run where it should, or does not get its memory.
    pub fn watch(self, observer: Observer<'_>) -> Result<ClockResult, RunError> {
        let Ready {
            session,
            baselines,
            keep,
        } = self;
        let config = &session.config;
        let reading = session.reading;
        let control = Arc::new(Control::new(config.cpus.len()));
        let end = || control.end();
        let end_all = EndAll(&end);
        let held = HeldBack::new()?;
        let (ended, own) = pipe()?;
        let mut threads = Vec::new();
        for (at, (&cpu, baseline)) in config.cpus.iter().zip(&baselines).enumerate() {
            let prepared = Prepared {
                cpu,
                at,
                config: Arc::clone(config),
                scale: reading.scale(),
                baseline: *baseline,
                keep,
                guest: session.guest,
                control: Arc::clone(&control),
            };
            let control = Arc::clone(&control);
            let watching = Watching::new(control, at);
            threads.push(spawn(cpu, &own, move || {
                let done = reading.visit(prepared)?;
                watching.succeed();
                Ok(done)
            })?);
        }
        drop(own);
        let watched = supervise(&control, config, reading, &held, &ended, observer);
        drop(end_all);
        watched?;
        all_ended(&held, &ended, &|| control.loops_ended())?;
        let watches = join_all(threads)?;
        drop(held);
        let Session {
            config,
            reading,
            notes,
            ..
        } = session;
        Ok(conclude(&config, reading.scale(), notes, watches))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::clock::result::Ended;
    use crate::buffer::HugePagePolicy;
    use crate::host::topology::Topology;
    use crate::time::ReadingKind;

    /// A watch of so many milliseconds for which there is memory for so many differences.
    fn watched(reports: &[Report], millis: u64, keep: u64) -> ClockResult {
        let allowed = Topology::read().unwrap().allowed();
        let config = Config {
            clock: ReadingKind::MonotonicRaw,
            tsc_khz: None,
            reports: reports.iter().copied().collect(),
            keep_all: false,
            length: Length::Duration(Duration::from_millis(millis)),
            cpus: allowed.iter().take(1).collect(),
            window: Nanos(1_000_000),
            baseline_iterations: 10_000,
            threshold: None,
            coincidence: Nanos(10_000),
            keep: 100,
            huge_pages: HugePagePolicy::Off,
            limits: Vec::new(),
        };
        // Pins threads of its own only: this one is moved off the CPU.
        let watch = move || {
            let session = Session::prepare(config, &allowed, false).unwrap();
            let mut ready = session.baselines().unwrap();
            ready.keep = Some(keep);
            ready.watch(None).unwrap()
        };
        std::thread::spawn(watch).join().unwrap()
    }

    /// The first of five watches that read the clock as often as it is to: on a busy machine one may begin or end far too late.
    fn watched_until(
        reports: &[Report],
        millis: u64,
        keep: u64,
        usual: impl Fn(u64) -> bool,
    ) -> ClockResult {
        let mut results = (0..5).map(|_| watched(reports, millis, keep));
        results
            .find(|result| usual(result.cpus[0].readings))
            .expect("the watches read the clock too often or not often enough, five times")
    }

    #[test]
    fn memory_that_is_too_small_costs_no_difference() {
        for reports in [&[Report::Percentiles][..], &Report::ALL] {
            let result = watched_until(reports, 100, 50, |readings| readings > 50);
            let cpu = &result.cpus[0];
            assert_eq!(result.ended, Ended::Complete);
            assert_eq!(
                (cpu.not_kept, cpu.kept_in.is_some()),
                (cpu.readings - 50, false)
            );
            let counted = cpu.distribution.as_ref().unwrap();
            assert_eq!(counted.count(), cpu.readings);
            let note = format!("all but {} of {} differences", cpu.not_kept, cpu.readings);
            assert!(
                result.notes.iter().any(|it| it.contains(&note)),
                "{:?}",
                result.notes
            );
        }
    }

    #[test]
    fn memory_that_is_large_enough_keeps_every_difference() {
        // Half of the usual memlock limit of 8 MiB, as other tests lock memory as well.
        const KEEP: u64 = 1_000_000;
        let result = watched_until(&[Report::Percentiles], 1, KEEP, |readings| readings <= KEEP);
        let cpu = &result.cpus[0];
        assert_eq!((cpu.not_kept, cpu.kept_in.is_some()), (0, true));
        assert_eq!(
            cpu.distribution.as_ref().map(|it| (it.exact, it.count())),
            Some((true, cpu.readings))
        );
        assert!(
            !result.notes.iter().any(|it| it.contains("counted instead")),
            "{:?}",
            result.notes
        );
    }
}
