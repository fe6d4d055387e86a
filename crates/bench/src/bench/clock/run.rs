//! A watch on one or more CPUs, step by step: the clock is made ready, baselines are measured, and a thread pinned to
//! each CPU watches. The calling thread supervises; where there is a CPU that is not watched it goes there. It sleeps
//! until the watch is over, a signal comes, or there is progress to be shown: on a machine that is watched on all CPUs
//! it disturbs one of them each time that it wakes up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::host::cpu_set::CpuSet;
use crate::host::pinning;
use crate::host::running::Threads;
use crate::host::throttling::ThrottleCounters;
use crate::results::finding::{Finding, kinds};
use crate::results::units;
use crate::rig::benchmark::Progress;
use crate::rig::control::{Control, StopFlag};
use crate::rig::error::RigError;
use crate::rig::findings::of_rate;
use crate::rig::findings::of_throttled_watch;
use crate::rig::priority::SpinPlacement;
use crate::rig::role::Role;
use crate::rig::workers::{Cause, Crew, CrewOutcome, SupervisorTimeouts, WorkerPlacement};
use crate::sorting::sort_by_key;
use crate::time::{AnyReading, Clock, Nanos, ReadingKind, Ticks};

use super::baseline::{self, Baseline};
use super::conclude::conclude;
use super::config::{Causes, Config, Length, Report};
use super::memory;
use super::result::{ClockResult, CpuResult, attribute_throttling};
use super::thread::{BaselineMeasurement, PreparedThread, WatchContext, WatchReport};
use super::trace;
use super::watcher::WatchProgress;

pub(super) use super::error::RunError;

/// Threads must be ready after this.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// The loops of all threads must have ended so long after the stop flag was raised.
const END_LIMIT: Duration = Duration::from_secs(60);
/// How the names of the threads that watch begin.
pub(super) const WATCHES: &str = "watch-";
/// What was kept must then be counted at this rate.
const COUNT_LIMIT_FOR_EACH: Duration = Duration::from_nanos(1_000);

/// Who is told how far it is, and how often; without, the supervisor sleeps to the end.
pub(super) type Observer<'a> = Option<(Duration, &'a mut dyn FnMut(Progress))>;

/// A watch whose clock is ready.
#[derive(Debug, Clone)]
pub(super) struct WatchSession {
    config: Arc<Config>,
    pub(super) reading: AnyReading,
    guest: bool,
    /// CPUs that are not watched.
    free: CpuSet,
    /// Differences of each CPU that there is to be memory for, if they are to be kept.
    pub(super) keep: Option<u64>,
    /// What is known beforehand to be less than asked for, or must be known to read the figures.
    pub(super) findings: Vec<Finding>,
}

impl WatchSession {
    /// Makes the clock ready. `allowed`: the CPUs that this process may use; `guest`: whether the machine is a virtual
    /// one.
    pub(super) fn prepare(config: Config, allowed: &CpuSet, guest: bool) -> Result<Self, RunError> {
        let watched: CpuSet = config.cpus.iter().copied().collect();
        let free = allowed.difference(&watched);
        memory::jumps_fit(&config)?;
        let places = SpinPlacement {
            shares_cpu: false,
            leaves_cpu: !free.is_empty(),
            options: "--cpu",
        };
        places.permit(config.priority)?;
        if config.causes == Causes::Trace {
            if config.clock == ReadingKind::Realtime {
                return Err(RunError::TraceOfRealtime);
            }
            trace::permitted(&config.cpus)?;
        }
        let reading = AnyReading::prepare(config.clock, config.tsc_khz).map_err(RigError::Clock)?;
        let doubt = reading.scale().tsc_facts();
        let doubt = doubt.and_then(|tsc| of_rate(&tsc.rate));
        let mut findings = Vec::from_iter(doubt);
        if free.is_empty() {
            findings.push(Finding::of(&kinds::NO_FREE_CPU));
        }
        if guest && config.clock == ReadingKind::Rdtscp {
            findings.push(Finding::of(&kinds::RDTSCP_IN_GUEST));
        }
        let keep = config
            .wants(Report::Percentiles)
            .then(|| readings(&config, reading));
        if let Some(readings) = keep {
            memory::differences_fit(&config, readings)?;
        }
        Ok(WatchSession {
            config: Arc::new(config),
            reading,
            guest,
            free,
            keep,
            findings,
        })
    }

    /// The bytes that all differences of all CPUs are to be kept in.
    pub(super) fn kept_bytes(&self) -> Option<u64> {
        let of_a_cpu = self.keep?.saturating_mul(super::config::BYTES_PER_READING);
        Some(of_a_cpu.saturating_mul(self.config.cpus.len() as u64))
    }

    /// What is watched, and how.
    pub(super) fn in_words(&self) -> String {
        let Config {
            clock,
            length,
            cpus,
            ..
        } = &*self.config;
        let rate = self.reading.scale().tsc_facts();
        let rate = rate.map_or_else(String::new, |it| {
            format!(", {:.3} MHz", it.rate.hertz / 1e6)
        });
        let cpus: CpuSet = cpus.iter().copied().collect();
        let (name, sequence) = (clock.name(), clock.sequence());
        format!("watch:    {name} ({sequence}){rate}, CPU {cpus}, {length}")
    }

    /// The clock.
    pub(super) fn instrument(&self) -> Value {
        let (clock, scale) = (self.config.clock, self.reading.scale());
        json!({
            "name": clock.name(),
            "sequence": clock.sequence(),
            "nanos_per_tick": scale.nanos_per_tick(),
            "tsc": scale.tsc_facts(),
        })
    }

    /// Measures the baseline of each CPU, of all at the same time, and moves the calling thread to a CPU that is not
    /// watched, if there is one.
    fn baselines(&self) -> Result<Vec<Baseline>, RunError> {
        // Not before: processes that are started meanwhile inherit it.
        if !self.free.is_empty() {
            pinning::pin_current_thread_to(&self.free)?;
        }
        let control = Arc::new(Control::default());
        let mut crew = Crew::<Baseline, RunError>::new(&control)?;
        let reading = self.reading;
        let asked = self.config.baseline_iterations;
        for &cpu in &self.config.cpus {
            let control = Arc::clone(&control);
            crew.start(seat(cpu, self.config.priority), move |supervisor| {
                let stop = control.stop_flag();
                supervisor.send(reading.visit(BaselineMeasurement { asked, stop }));
                Ok(())
            })?;
        }
        let limit = baseline::LONGEST * 2;
        let begun = Instant::now();
        let patience = patience(limit, Duration::ZERO);
        let late = || (begun.elapsed() >= limit).then_some(());
        uninterrupted(reports(crew.collect(&patience, late, || ())?)?)
    }

    /// States where a baseline has fewer readings than were asked for.
    fn note_shortened(&mut self, baselines: &[Baseline]) {
        let Some(asked) = self.config.baseline_iterations else {
            return;
        };
        let done = baselines.iter().map(|baseline| baseline.iterations);
        if let Some(least) = done.min().filter(|least| *least < asked) {
            let found = Finding::of(&kinds::BASELINE_SHORTENED).measure("iterations", least as f64);
            let longest = baseline::LONGEST.as_nanos() as f64;
            let found = found.measure("asked", asked as f64);
            self.findings.push(found.measure("longest_ns", longest));
        }
    }

    /// Measures the baselines, and watches. A signal ends it early, with what was seen until then.
    pub(super) fn watch(mut self, observer: Observer<'_>) -> Result<ClockResult, RunError> {
        let baselines = self.baselines()?;
        self.note_shortened(&baselines);
        self.watch_with(&baselines, observer)
    }

    fn watch_with(
        self,
        baselines: &[Baseline],
        observer: Observer<'_>,
    ) -> Result<ClockResult, RunError> {
        let control = Arc::new(Control::default());
        let reading = self.reading;
        let scale = reading.scale();
        let second = scale.ticks_in(Nanos(1_000_000_000));
        let traced = self.config.causes == Causes::Trace;
        let traced_cpus = if traced { &self.config.cpus[..] } else { &[] };
        let tellers = traced_cpus.iter().map(|_| trace::WatchState::default());
        let tellers: Arc<[trace::WatchState]> = tellers.collect();
        let start_reader = || {
            let beside = self.free.is_empty();
            trace::Reader::start(traced_cpus, reading, &tellers, beside)
        };
        let reader = traced.then(start_reader).transpose()?;
        let together = Arc::new(WatchContext {
            epoch: Ticks(reading.read().0.saturating_sub(second.0)),
            scale,
            keep: self.keep,
            guest: self.guest,
            control: Arc::clone(&control),
            go: AtomicBool::new(false),
            seen: baselines.iter().map(|_| WatchProgress::default()).collect(),
            told: tellers,
            config: self.config,
        });
        let config = &together.config;
        let before = Threads::now();
        let mut throttling = ThrottleCounters::open();
        let mut crew = Crew::<WatchReport, RunError>::new(&control)?;
        for (at, (&cpu, &baseline)) in config.cpus.iter().zip(baselines).enumerate() {
            let together = Arc::clone(&together);
            crew.start(seat(cpu, config.priority), move |supervisor| {
                let told = reading.visit(PreparedThread {
                    cpu,
                    baseline,
                    seen: &together.seen[at],
                    told: together.told.get(at),
                    together: &together,
                    supervisor,
                })?;
                supervisor.send(told);
                Ok(())
            })?;
        }
        get_ready(&mut crew, config)?;
        throttling.begin();
        together.go.store(true, Ordering::Release);
        let counting = together
            .keep
            .map_or(0, |kept| u32::try_from(kept).unwrap_or(u32::MAX));
        let counting = COUNT_LIMIT_FOR_EACH * counting;
        let length = config.length;
        let progress = |elapsed| progress(&together, elapsed);
        let begun_at = SystemTime::now();
        let (told, signal) = supervise(&mut crew, length, counting, observer, progress)?;
        let throttled = throttling.record();
        let after = Threads::now();
        let traces = reader.map_or_else(Vec::new, trace::Reader::finish);
        let traces = config.cpus.iter().zip(traces);
        let mut traces: BTreeMap<usize, trace::Trace> =
            traces.map(|(&cpu, trace)| (cpu, trace)).collect();
        let cpus = told.into_iter().filter_map(|told| match told {
            WatchReport::Done(result) => {
                let mut cpu = CpuResult {
                    ran: after.since(&before, result.cpu, WATCHES),
                    ..*result
                };
                if let Some(trace) = traces.remove(&cpu.cpu) {
                    cpu.match_with(trace, together.epoch);
                }
                Some(cpu)
            }
            WatchReport::Ready | WatchReport::GivenUp => None,
        });
        let mut cpus: Vec<CpuResult> = cpus.collect();
        if config.priority.is_none() {
            attribute_throttling(&mut cpus, &throttled, scale.nanos_per_tick());
        }
        let mut findings = self.findings;
        findings.extend(of_throttled_watch(&throttled, config.priority));
        let interrupted = signal.map(|signal| format!("interrupted by {signal}"));
        Ok(conclude(
            config,
            scale,
            findings,
            cpus,
            begun_at,
            interrupted,
        ))
    }
}

/// How many readings a watch makes; of a time, as many as fit into it where the clock is read at its quickest.
fn readings(config: &Config, reading: AnyReading) -> u64 {
    let duration = match config.length {
        Length::Iterations(readings) => return readings,
        Length::Duration(duration) => duration,
        // Refused before.
        Length::Jumps(_) => return 0,
    };
    let quick = reading.visit(BaselineMeasurement {
        asked: Some(20_000),
        stop: &StopFlag::default(),
    });
    let ticks = reading.scale().ticks_in(Nanos::from(duration)).0;
    (ticks as f64 / quick.quickest_mean() * 1.05) as u64 + 1000
}

/// Waits until all threads have their memory.
fn get_ready(crew: &mut Crew<WatchReport, RunError>, config: &Config) -> Result<(), RunError> {
    let waiting = Instant::now();
    let late = || (waiting.elapsed() >= READY_LIMIT).then_some(());
    let found = crew.collect(&patience(READY_LIMIT, Duration::ZERO), late, || ())?;
    if let Some(Cause::Watch(())) = found.cause {
        // Whoever told anything has its memory.
        let is_missing = |at: &usize| found.reports.iter().all(|(place, _)| place != at);
        let missing = (0..config.cpus.len()).find(is_missing);
        return Err(RunError::Rig(RigError::NotReady {
            role: seat(config.cpus[missing.unwrap_or(0)], None).role,
            limit: READY_LIMIT,
        }));
    }
    uninterrupted(reports(found)?).map(|_| ())
}

/// Waits until threads are to end, and have told what they saw. Returns that, and the signal that ended it early.
/// `counting`: how long they may take to tell.
pub(super) fn supervise<R: Send + 'static>(
    crew: &mut Crew<R, RunError>,
    length: Length,
    counting: Duration,
    mut observer: Observer<'_>,
    progress: impl Fn(Duration) -> Progress,
) -> Result<(Vec<R>, Option<Signal>), RunError> {
    let started = Instant::now();
    let limit = match length {
        Length::Duration(duration) => duration,
        // A year: the threads end by themselves, a signal ends them earlier.
        Length::Iterations(_) | Length::Jumps(_) => Duration::from_secs(365 * 86_400),
    };
    let interval = observer.as_ref().map_or(limit, |(interval, _)| *interval);
    // The last look is when the time is over.
    let looks = limit.div_duration_f64(interval).ceil().max(1.0);
    let look = limit.div_f64(looks).max(Duration::from_nanos(1));
    let over = || {
        let elapsed = started.elapsed();
        if elapsed + Duration::from_millis(1) >= limit {
            return Some(());
        }
        if let Some((_, observe)) = &mut observer {
            observe(progress(elapsed));
        }
        None
    };
    reports(crew.collect(&patience(look, counting), over, || ())?)
}

fn progress(together: &WatchContext, elapsed: Duration) -> Progress {
    let WatchContext { config, seen, .. } = together;
    let least = |of: fn(&WatchProgress) -> &AtomicU64| {
        let seen = seen.iter().map(|it| of(it).load(Ordering::Relaxed));
        seen.min().unwrap_or(0)
    };
    let (done, of) = match config.length {
        Length::Duration(duration) => (Nanos::from(elapsed).0, Nanos::from(duration).0),
        Length::Iterations(of) => (least(|it| &it.readings), of),
        Length::Jumps(of) => (least(|it| &it.jumps), of),
    };
    let largest = seen.iter().map(|it| it.largest.load(Ordering::Relaxed));
    let largest = largest.zip(&config.cpus).max();
    let (ticks, cpu) = largest.unwrap_or((0, &0));
    let largest = units::duration(ticks as f64 * together.scale.nanos_per_tick());
    let percent = done as f64 / of.max(1) as f64 * 100.0;
    Progress {
        done,
        of,
        text: Some(format!(
            "{percent:.0} %, largest jump {largest} on CPU {cpu}"
        )),
    }
}

/// Where a CPU's thread runs. Its name lives as long as the program: some bytes for each CPU and round.
pub(super) fn seat(cpu: usize, priority: Option<u8>) -> WorkerPlacement {
    let name = format!("thread that watches CPU {cpu}");
    WorkerPlacement {
        role: Role::new(name.leak(), format!("{WATCHES}{cpu}").leak()),
        cpu,
        priority,
    }
}

fn patience(look: Duration, counting: Duration) -> SupervisorTimeouts {
    SupervisorTimeouts {
        look,
        grace: END_LIMIT + counting,
        // What was seen until then is to be shown, however long others keep the CPU.
        grace_after_signal: END_LIMIT + counting,
    }
}

/// What the threads told, in the order of their CPUs, and the signal that ended it early.
fn reports<R>(
    mut found: CrewOutcome<R, RunError, ()>,
) -> Result<(Vec<R>, Option<Signal>), RunError> {
    if let Some((_, error)) = found.failures.into_iter().next() {
        return Err(error);
    }
    sort_by_key(&mut found.reports, |(place, _)| *place);
    let signal = match found.cause {
        Some(Cause::Signal(signal)) => Some(signal),
        _ => None,
    };
    let reports = found.reports.into_iter().map(|(_, report)| report);
    Ok((reports.collect(), signal))
}

fn uninterrupted<R>((reports, signal): (Vec<R>, Option<Signal>)) -> Result<Vec<R>, RunError> {
    match signal {
        Some(signal) => Err(RunError::Rig(RigError::Interrupted(signal))),
        None => Ok(reports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::distribution::Distribution;
    use crate::bench::clock::findings;
    use crate::host::topology::Topology;

    /// The first of five watches that reads the clock as often as it is to: one may begin far too late.
    fn watched(
        reports: &[Report],
        millis: u64,
        keep: u64,
        usual: impl Fn(u64) -> bool,
    ) -> ClockResult {
        let allowed = Topology::read().unwrap().allowed();
        let length = Length::Duration(Duration::from_millis(millis));
        let mut config = Config::made_up(reports, length);
        config.cpus = allowed.iter().take(1).collect();
        let watch = || {
            let mut session = WatchSession::prepare(config.clone(), &allowed, false).unwrap();
            session.keep = Some(keep);
            let baselines = session.baselines().unwrap();
            session.watch_with(&baselines, None).unwrap()
        };
        // Pins threads of its own only: this one is moved off the CPU.
        let in_a_thread = || std::thread::scope(|scope| scope.spawn(watch).join().unwrap());
        (0..5)
            .map(|_| in_a_thread())
            .find(|result| usual(result.cpus[0].watched.readings))
            .expect("the watches read the clock too often or not often enough, five times")
    }

    #[test]
    fn no_difference_is_lost_however_much_memory_there_is() {
        // Half of the usual memlock limit of 8 MiB, as other tests lock memory as well.
        const MUCH: u64 = 1_000_000;
        let percentiles = &[Report::Percentiles][..];
        for (reports, millis, keep) in [
            (percentiles, 100, 50),
            (Report::ALL, 100, 50),
            (percentiles, 1, MUCH),
        ] {
            let enough = keep == MUCH;
            let result = watched(reports, millis, keep, |readings| {
                (readings <= keep) == enough
            });
            assert_eq!(result.interrupted, None);
            let readings = result.cpus[0].watched.readings;
            let stored = &result.cpus[0].stored;
            assert_eq!(stored.not_kept, readings.saturating_sub(keep));
            assert_eq!(stored.kept_in.is_some(), enough);
            let count = stored.distribution.as_ref().map(Distribution::count);
            assert_eq!(count, Some(readings));
            let config = Config::made_up(reports, Length::Iterations(1));
            let all = findings::of(&result, &result.cpus[0], &config);
            let counted = all
                .iter()
                .find(|it| it.kind == kinds::DIFFERENCES_COUNTED.id);
            let figures = counted.map(|found| found.figures.clone());
            let expected = Finding::of(&kinds::DIFFERENCES_COUNTED)
                .count("count", stored.not_kept)
                .count("of", readings);
            assert_eq!(figures, (!enough).then_some(expected.figures));
        }
    }
}
