//! A watch on one or more CPUs, step by step: the clock is made ready, baselines are measured, and a thread pinned to each
//! CPU watches. The calling thread supervises; where there is a CPU that is not watched it goes there. It sleeps until the
//! watch is over, a signal comes, or there is progress to be shown: on a machine that is watched on all CPUs it disturbs
//! one of them each time that it wakes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::host::cpu_set::CpuSet;
use crate::host::pinning;
use crate::rig::control::Control;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Collected, Crew, Patience, Role, Seat};
use crate::time::{AnyReading, Clock, Nanos, Reading, ReadingKind, ReadingUser, Ticks};

use super::baseline::{self, Baseline};
use super::conclude::conclude;
use super::config::{Config, Length};
use super::memory::{self, Room};
use super::result::ClockResult;
use super::thread::{MeasureBaseline, Prepared, Told};
use super::watcher::Seen;

pub use super::error::RunError;

/// Threads must be ready after this.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// The loops of all threads must have ended so long after the stop flag was raised.
const END_LIMIT: Duration = Duration::from_secs(60);
/// What was kept must then be counted at this rate.
const COUNT_LIMIT_FOR_EACH: Duration = Duration::from_nanos(1_000);

/// How far a watch is.
#[derive(Debug, Clone, Copy)]
pub struct SoFar {
    /// Since it began.
    pub elapsed: Duration,
    /// Readings of the CPU that has the fewest.
    pub readings: u64,
    /// The CPU with the largest difference, and its length in ticks.
    pub largest: (usize, u64),
}

/// Who is told how far it is, and how often; without, the supervisor sleeps to the end.
pub type Observer<'a> = Option<(Duration, &'a mut dyn FnMut(SoFar))>;

/// A watch whose clock is ready.
#[derive(Debug, Clone)]
pub struct Session {
    config: Arc<Config>,
    reading: AnyReading,
    guest: bool,
    /// CPUs that are not watched.
    free: CpuSet,
    notes: Vec<String>,
}

impl Session {
    /// Makes the clock ready. `allowed`: the CPUs that this process may use; `guest`: whether the machine is a virtual one.
    ///
    /// # Errors
    /// When the clock cannot be used, or the differences or jumps cannot be kept.
    pub fn prepare(config: Config, allowed: &CpuSet, guest: bool) -> Result<Self, RunError> {
        memory::jumps_fit(&config)?;
        let reading = AnyReading::prepare(config.clock, config.tsc_khz)?;
        let watched: CpuSet = config.cpus.iter().copied().collect();
        let free = allowed.difference(&watched);
        let mut notes = Vec::new();
        if free.is_empty() {
            notes.push(
                "all CPUs are watched: the rest of the process, which sleeps but for a look at each update of the \
                 progress, runs on one of them"
                    .to_owned(),
            );
        }
        if guest && config.clock == ReadingKind::Rdtscp {
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
            free,
            notes,
        };
        if let Length::Iterations(readings) = session.config.length {
            // Refused now, or not at all.
            let _room = memory::room(&session.config, readings)?;
        }
        Ok(session)
    }

    /// The clock.
    pub fn reading(&self) -> &AnyReading {
        &self.reading
    }

    /// What speaks against the rate of the clock that was given.
    pub fn doubt(&self) -> Option<String> {
        let doubt = self.reading.tsc_facts()?.rate.doubt()?;
        Some(doubt.to_string())
    }

    /// What is known beforehand to be less than asked for, or must be known to read the figures.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Measures the baseline of each CPU, of all at the same time, and moves the calling thread to a CPU that is not watched,
    /// if there is one.
    fn baselines(&self) -> Result<Vec<Baseline>, RunError> {
        // Not before: processes that are started meanwhile inherit it.
        if !self.free.is_empty() {
            pinning::pin_current_thread_to(&self.free)?;
        }
        let control = Arc::new(Control::default());
        let mut crew = Crew::<Baseline, RunError>::new(&control)?;
        let reading = self.reading;
        let iterations = self.config.baseline_iterations;
        for &cpu in &self.config.cpus {
            let control = Arc::clone(&control);
            crew.start(seat(cpu), move |supervisor| {
                supervisor.send(reading.visit(MeasureBaseline {
                    iterations,
                    stop: control.stop_flag(),
                }));
                Ok(())
            })?;
        }
        let limit = baseline::LONGEST * 2;
        let begun = Instant::now();
        let patience = patience(limit, Duration::ZERO);
        let late = || (begun.elapsed() >= limit).then_some(());
        let mut baselines = ended(crew.collect(&patience, late, || ())?)?;
        baselines.sort_by_key(|(place, _)| *place);
        Ok(baselines.into_iter().map(|(_, it)| it).collect())
    }

    /// Memory for so many differences of each CPU, if they are to be kept.
    fn room(&mut self, baselines: &[Baseline]) -> Result<Option<u64>, RunError> {
        let iterations = self.config.baseline_iterations;
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
        Ok(match memory::room(&self.config, readings)? {
            Room::Keep(readings) => Some(readings),
            Room::Count(note) => {
                self.notes.push(note);
                None
            }
            Room::None => None,
        })
    }

    /// Measures the baselines, and watches. A signal ends it early, with what was seen until then.
    ///
    /// # Errors
    /// When a thread cannot run where it should, or does not get its memory.
    pub fn watch(mut self, observer: Observer<'_>) -> Result<ClockResult, RunError> {
        let baselines = self.baselines()?;
        let keep = self.room(&baselines)?;
        self.watch_with(&baselines, keep, observer)
    }

    fn watch_with(
        self,
        baselines: &[Baseline],
        keep: Option<u64>,
        observer: Observer<'_>,
    ) -> Result<ClockResult, RunError> {
        let Session {
            config,
            reading,
            guest,
            notes,
            ..
        } = self;
        let control = Arc::new(Control::default());
        let seen: Arc<Vec<Seen>> = Arc::new(config.cpus.iter().map(|_| Seen::default()).collect());
        let go = Arc::new(AtomicBool::new(false));
        let scale = reading.scale();
        let second = scale.ticks_in(Nanos(1_000_000_000));
        let epoch = Ticks(reading.visit(ReadOnce).0.saturating_sub(second.0));
        let mut crew = Crew::<Told, RunError>::new(&control)?;
        for (at, (&cpu, &baseline)) in config.cpus.iter().zip(baselines).enumerate() {
            let (config, control) = (Arc::clone(&config), Arc::clone(&control));
            let (seen, go) = (Arc::clone(&seen), Arc::clone(&go));
            crew.start(seat(cpu), move |supervisor| {
                let told = reading.visit(Prepared {
                    cpu,
                    config: &config,
                    scale,
                    epoch,
                    baseline,
                    keep,
                    guest,
                    control: &control,
                    go: &go,
                    seen: &seen[at],
                    supervisor,
                })?;
                supervisor.send(told);
                Ok(())
            })?;
        }
        get_ready(&mut crew, &config)?;
        go.store(true, Ordering::Release);
        let (reports, signal) = watch(&mut crew, &config, &seen, keep, observer)?;
        let mut cpus: Vec<_> = reports
            .into_iter()
            .filter_map(|(place, told)| match told {
                Told::Done(result) => Some((place, *result)),
                Told::Ready | Told::GivenUp => None,
            })
            .collect();
        cpus.sort_by_key(|(place, _)| *place);
        let cpus = cpus.into_iter().map(|(_, result)| result).collect();
        Ok(conclude(&config, scale, notes, cpus, signal))
    }
}

/// Waits until all threads have their memory.
fn get_ready(crew: &mut Crew<Told, RunError>, config: &Config) -> Result<(), RunError> {
    let waiting = Instant::now();
    let late = || (waiting.elapsed() >= READY_LIMIT).then_some(());
    let found = crew.collect(&patience(READY_LIMIT, Duration::ZERO), late, || ())?;
    if let Some(Cause::Watch(())) = found.cause {
        let ready = |place| {
            found
                .reports
                .iter()
                .any(|(at, told)| *at == place && matches!(told, Told::Ready))
        };
        let missing = (0..config.cpus.len()).find(|&place| !ready(place));
        return Err(RunError::Rig(RigError::NotReady {
            role: seat(config.cpus[missing.unwrap_or(0)]).role,
            limit: READY_LIMIT,
        }));
    }
    ended(found).map(|_| ())
}

type Reports = Vec<(usize, Told)>;

/// Waits until the watch is over. Returns what the threads saw, and the signal that ended it early.
fn watch(
    crew: &mut Crew<Told, RunError>,
    config: &Config,
    seen: &[Seen],
    keep: Option<u64>,
    mut observer: Observer<'_>,
) -> Result<(Reports, Option<String>), RunError> {
    let started = Instant::now();
    let limit = match config.length {
        Length::Duration(duration) => duration,
        // A year: the threads end by themselves, a signal ends them earlier.
        Length::Iterations(_) => Duration::from_secs(365 * 86_400),
    };
    let interval = observer.as_ref().map_or(limit, |(interval, _)| *interval);
    // The last look is when the time is over.
    let looks = (limit.as_secs_f64() / interval.as_secs_f64())
        .ceil()
        .max(1.0);
    let look = limit.div_f64(looks).max(Duration::from_nanos(1));
    let over = || {
        let elapsed = started.elapsed();
        if elapsed + Duration::from_millis(1) >= limit {
            return Some(());
        }
        if let Some((_, observe)) = &mut observer {
            let readings = seen
                .iter()
                .map(|seen| seen.readings.load(Ordering::Relaxed));
            let largest = seen.iter().zip(&config.cpus);
            let largest = largest.map(|(seen, &cpu)| (cpu, seen.largest.load(Ordering::Relaxed)));
            observe(SoFar {
                elapsed,
                readings: readings.min().unwrap_or(0),
                largest: largest.max_by_key(|(_, ticks)| *ticks).unwrap_or_default(),
            });
        }
        None
    };
    let counting = COUNT_LIMIT_FOR_EACH * u32::try_from(keep.unwrap_or(0)).unwrap_or(u32::MAX);
    let found = crew.collect(&patience(look, counting), over, || ())?;
    let signal = match found.cause {
        Some(Cause::Signal(signal)) => Some(format!("interrupted by {signal}")),
        _ => None,
    };
    match found.failures.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok((found.reports, signal)),
    }
}

/// Where a CPU's thread runs. Its name lives as long as the program: some bytes for each CPU and round.
fn seat(cpu: usize) -> Seat {
    Seat {
        role: Role {
            name: format!("thread that watches CPU {cpu}").leak(),
            thread: format!("watch-{cpu}").leak(),
        },
        cpu,
        priority: None,
    }
}

fn patience(look: Duration, counting: Duration) -> Patience {
    Patience {
        look,
        grace: END_LIMIT + counting,
        // What was seen until then is to be shown, however long others keep the CPU.
        grace_after_signal: END_LIMIT + counting,
    }
}

/// The reports, if nothing ended it before they were there.
fn ended<R>(found: Collected<R, RunError, ()>) -> Result<Vec<(usize, R)>, RunError> {
    if let Some((_, error)) = found.failures.into_iter().next() {
        return Err(error);
    }
    match found.cause {
        Some(Cause::Signal(signal)) => Err(RunError::Rig(RigError::Interrupted(signal))),
        _ => Ok(found.reports),
    }
}

struct ReadOnce;

impl ReadingUser for ReadOnce {
    type Output = Ticks;
    fn with<R: Reading>(self, reading: R) -> Ticks {
        reading.read()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::clock::config::Report;
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
            let baselines = session.baselines().unwrap();
            session.watch_with(&baselines, Some(keep), None).unwrap()
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
            .find(|result| usual(result.cpus[0].watched.readings))
            .expect("the watches read the clock too often or not often enough, five times")
    }

    #[test]
    fn memory_that_is_too_small_costs_no_difference() {
        for reports in [&[Report::Percentiles][..], &Report::ALL] {
            let result = watched_until(reports, 100, 50, |readings| readings > 50);
            let cpu = &result.cpus[0];
            assert_eq!(result.interrupted, None);
            assert_eq!(
                (cpu.stored.not_kept, cpu.stored.kept_in.is_some()),
                (cpu.watched.readings - 50, false)
            );
            let counted = cpu.stored.distribution.as_ref().unwrap();
            assert_eq!(counted.count(), cpu.watched.readings);
            let note = format!(
                "all but {} of {} differences",
                cpu.stored.not_kept, cpu.watched.readings
            );
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
        assert_eq!(
            (cpu.stored.not_kept, cpu.stored.kept_in.is_some()),
            (0, true)
        );
        assert_eq!(
            cpu.stored
                .distribution
                .as_ref()
                .map(|it| (it.exact, it.count())),
            Some((true, cpu.watched.readings))
        );
        assert!(
            !result.notes.iter().any(|it| it.contains("counted instead")),
            "{:?}",
            result.notes
        );
    }
}
