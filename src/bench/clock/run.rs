//! A watch on one or more CPUs: a thread pinned to each, started together, and what is made of what they saw.
//!
//! The calling thread supervises. It sleeps until the watch is over, a signal comes, or there is progress to be shown; where
//! there is a CPU that is not watched it goes there. On a machine that is watched on all CPUs it disturbs one of them
//! each time that it wakes up.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::buffer::{BufferError, Bytes, PageKind, StampBuffer};
use crate::host::counters::{CpuCounters, ThreadUsage};
use crate::host::cpu_set::CpuSet;
use crate::host::interrupt::{self, HeldBack};
use crate::host::memory_lock::{MemoryLock, available_memory};
use crate::host::{HostError, pinning};
use crate::time::{AnyReading, Nanos, Reading, ReadingError, ReadingUser, Scale, Ticks};

use super::baseline::{self, Baseline};
use super::cause::Names;
use super::coincidence;
use super::config::{Config, Length, Report};
use super::distribution::Distribution;
use super::limit::Judgement;
use super::recorder::{Counted, Kept, Nothing, Recorder};
use super::result::{ClockResult, CpuResult, Ended, KeptIn};
use super::watcher::{Seen, Task, Watched, Watcher};

/// A watch could not be held.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The clock cannot be used here.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A CPU's thread was refused by the machine.
    #[error("CPU {cpu}: {source}")]
    Thread {
        /// The CPU.
        cpu: usize,
        /// Why.
        source: HostError,
    },
    /// The memory for the differences was refused.
    #[error("CPU {cpu}: {source}")]
    Buffer {
        /// The CPU.
        cpu: usize,
        /// Why.
        source: BufferError,
    },
    /// There is not enough memory to keep all differences.
    #[error(
        "--report percentiles keeps every difference: {readings} of them on each of {cpus} CPUs take {needed}, and \
         {available} of memory are available: use fewer --iterations or a shorter --duration, or --report histogram"
    )]
    Memory {
        /// Differences of a CPU.
        readings: u64,
        /// CPUs.
        cpus: usize,
        /// What they take.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// The memory for the differences must not be locked.
    #[error(
        "--report percentiles keeps every difference in locked memory: {0}; or use --report histogram"
    )]
    Lock(HostError),
    /// A thread did not get ready.
    #[error(
        "after {seconds} s the threads of only {ready} of {cpus} CPUs are ready: does something else take these CPUs?"
    )]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// Threads that are.
        ready: usize,
        /// Threads in all.
        cpus: usize,
    },
    /// A thread did not end when it was told to.
    #[error(
        "{0} s after they were told to end, not all threads have: does something else take their CPUs?"
    )]
    NotEnded(u64),
    /// Ended by a signal before anything was watched.
    #[error("interrupted by {0}")]
    Interrupted(String),
}

/// How far a watch is.
#[derive(Debug, Clone, Copy)]
pub struct SoFar {
    /// Since it began.
    pub elapsed: Duration,
    /// Readings of the CPU that has the fewest.
    pub readings: u64,
    /// The largest difference so far, and its CPU.
    pub largest: (Nanos, usize),
}

/// Who is told how far it is, and how often; without, the supervisor sleeps to the end.
pub type Observer<'a> = Option<(Duration, &'a mut dyn FnMut(SoFar))>;

/// Threads must be ready after this.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Threads must have ended so long after they were told to.
const END_LIMIT: Duration = Duration::from_secs(60);
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
             exactly below 4096 ticks and to 0.1 % above; --report percentiles alone insists on keeping them",
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
        stop.store(true, Ordering::Relaxed);
        waited?;
        all_ended(&held, &ended)?;
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
            // As many as there could be if each took no longer than the shortest.
            Length::Duration(duration) => {
                let ticks = self.reading.scale().ticks_in(Nanos::from(duration)).0;
                let least = baselines.iter().map(|one| one.least_ticks).min();
                (ticks as f64 / least.unwrap_or(1).max(1) as f64 * 1.05) as u64 + 1000
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
            threads.push(spawn(cpu, &own, move || {
                let done = reading.visit(prepared);
                if done.is_err() {
                    control.failed.store(true, Ordering::Release);
                }
                done
            })?);
        }
        drop(own);
        let watched = supervise(&control, config, reading, &held, &ended, observer);
        control.end();
        watched?;
        all_ended(&held, &ended)?;
        let watches = join_all(threads)?;
        drop(held);
        Ok(conclude(session, watches))
    }
}

/// What supervisor and threads share.
struct Control {
    stop: AtomicBool,
    failed: AtomicBool,
    ready: AtomicUsize,
    start: AtomicU8,
    epoch: AtomicU64,
    seen: Vec<Seen>,
}

const WAIT: u8 = 0;
const GO: u8 = 1;
const GIVE_UP: u8 = 2;

impl Control {
    fn new(cpus: usize) -> Self {
        Control {
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            start: AtomicU8::new(WAIT),
            epoch: AtomicU64::new(0),
            seen: (0..cpus).map(|_| Seen::default()).collect(),
        }
    }

    /// Tells all threads to end, also those that still wait.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self
            .start
            .compare_exchange(WAIT, GIVE_UP, Ordering::Release, Ordering::Relaxed);
    }

    /// Waits for the word to start: its epoch, or `None` to give up.
    fn wait_for_start(&self) -> Option<Ticks> {
        self.ready.fetch_add(1, Ordering::AcqRel);
        loop {
            match self.start.load(Ordering::Acquire) {
                GO => return Some(Ticks(self.epoch.load(Ordering::Relaxed))),
                GIVE_UP => return None,
                // The supervisor may have to run on this CPU.
                _ => std::thread::yield_now(),
            }
        }
    }

    fn so_far(&self, scale: Scale, cpus: &[usize], elapsed: Duration) -> SoFar {
        let largest = self.seen.iter().zip(cpus).map(|(seen, &cpu)| {
            let ticks = Ticks(seen.largest.load(Ordering::Relaxed));
            (scale.to_nanos(ticks), cpu)
        });
        let readings = self
            .seen
            .iter()
            .map(|seen| seen.readings.load(Ordering::Relaxed));
        SoFar {
            elapsed,
            readings: readings.min().unwrap_or(0),
            largest: largest
                .max_by_key(|(nanos, _)| nanos.0)
                .unwrap_or((Nanos(0), 0)),
        }
    }
}

/// Waits until all threads are ready, starts them, and waits until the watch is over.
fn supervise(
    control: &Control,
    config: &Config,
    reading: AnyReading,
    held: &HeldBack,
    ended: &PipeReader,
    mut observer: Observer<'_>,
) -> Result<(), RunError> {
    let cpus = config.cpus.len();
    let waiting = Instant::now();
    while control.ready.load(Ordering::Acquire) < cpus {
        if control.failed.load(Ordering::Acquire) || interrupt::requested().is_some() {
            return Ok(());
        }
        if waiting.elapsed() > READY_LIMIT {
            return Err(RunError::NotReady {
                seconds: READY_LIMIT.as_secs(),
                ready: control.ready.load(Ordering::Acquire),
                cpus,
            });
        }
        held.wait(ended.as_fd(), Duration::from_millis(1))?;
    }
    // Earlier than any thread's first reading, also where the counters of the CPUs differ a little.
    let now = reading.visit(ReadOnce);
    let margin = reading.scale().ticks_in(Nanos(1_000_000_000));
    control
        .epoch
        .store(now.0.saturating_sub(margin.0), Ordering::Relaxed);
    control.start.store(GO, Ordering::Release);
    let started = Instant::now();
    let scale = reading.scale();
    let so_far = || Some(control.so_far(scale, &config.cpus, started.elapsed()));
    let limit = match config.length {
        Length::Duration(duration) => duration,
        // A year: the threads end by themselves, a signal ends them earlier.
        Length::Iterations(_) => Duration::from_secs(365 * 86_400),
    };
    wait_for_end(held, ended, limit, &mut observer, &so_far)
}

/// Waits until all threads have ended, a signal came, or `limit` has passed.
fn wait_for_end(
    held: &HeldBack,
    ended: &PipeReader,
    limit: Duration,
    observer: &mut Observer<'_>,
    so_far: &dyn Fn() -> Option<SoFar>,
) -> Result<(), RunError> {
    let started = Instant::now();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        if left.is_zero() || interrupt::requested().is_some() {
            return Ok(());
        }
        let nap = observer
            .as_ref()
            .map_or(left, |(interval, _)| left.min(*interval));
        if held.wait(ended.as_fd(), nap)? {
            return Ok(());
        }
        if let (Some((_, observe)), Some(so_far)) = (observer.as_mut(), so_far()) {
            observe(so_far);
        }
    }
}

/// Waits until all threads have ended, whatever signals come.
fn all_ended(held: &HeldBack, ended: &PipeReader) -> Result<(), RunError> {
    let told = Instant::now();
    while !held.wait(ended.as_fd(), Duration::from_millis(100))? {
        if told.elapsed() > END_LIMIT {
            return Err(RunError::NotEnded(END_LIMIT.as_secs()));
        }
    }
    Ok(())
}

/// A pipe that is closed when the last thread has ended, however it ends.
fn pipe() -> Result<(PipeReader, PipeWriter), RunError> {
    std::io::pipe().map_err(|error| no_pipe(&error))
}

fn no_pipe(error: &std::io::Error) -> RunError {
    HostError::System {
        operation: "pipe",
        object: "this process".to_owned(),
        errno: nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(0)),
        advice: "close other files, or raise the limit with ulimit -n".to_owned(),
    }
    .into()
}

/// A thread on a CPU of its own that keeps the pipe open until it ends. It is not tied to a scope: one that never gets
/// its CPU must not keep the program from ending.
fn spawn<T: Send + 'static>(
    cpu: usize,
    own: &PipeWriter,
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<JoinHandle<Result<T, RunError>>, RunError> {
    let own = own.try_clone().map_err(|error| no_pipe(&error))?;
    let thread = std::thread::Builder::new().name(format!("watch-{cpu}"));
    let spawned = thread.spawn(move || {
        let _own = own;
        pinning::pin_current_thread(cpu).map_err(|source| RunError::Thread { cpu, source })?;
        work()
    });
    spawned.map_err(|error| RunError::Thread {
        cpu,
        source: HostError::System {
            operation: "pthread_create",
            object: "a watching thread".to_owned(),
            errno: nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(0)),
            advice: "raise the limit with ulimit -u".to_owned(),
        },
    })
}

fn join_all<T>(threads: Vec<JoinHandle<Result<T, RunError>>>) -> Result<Vec<T>, RunError> {
    let joined = threads.into_iter().map(|thread| {
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    joined.collect()
}

struct ReadOnce;

impl ReadingUser for ReadOnce {
    type Output = Ticks;
    fn with<R: Reading>(self, reading: R) -> Ticks {
        reading.read()
    }
}

struct MeasureBaseline<'a> {
    iterations: u64,
    stop: &'a AtomicBool,
}

impl ReadingUser for MeasureBaseline<'_> {
    type Output = Baseline;
    fn with<R: Reading>(self, reading: R) -> Baseline {
        baseline::measure(&reading, self.iterations, baseline::LONGEST, self.stop)
    }
}

/// One CPU's thread, on its CPU.
struct Prepared {
    cpu: usize,
    at: usize,
    config: Arc<Config>,
    scale: Scale,
    baseline: Baseline,
    keep: Option<u64>,
    guest: bool,
    control: Arc<Control>,
}

/// What a thread hands over: nothing if it was told to give up before it began.
type Handed = Option<CpuResult>;

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
        // Percentiles that cannot be kept are counted.
        let counts =
            self.config.counts() || (kept.is_none() && self.config.wants(Report::Percentiles));
        Ok(match (kept, counts) {
            (None, false) => self.watch(reading, Nothing, |_| (None, None)),
            (None, true) => self.watch(reading, Counted::default(), |counted| {
                (Some(Distribution::of_counted(&counted)), None)
            }),
            (Some((kept, pages)), false) => self.watch(reading, kept, |kept| of_kept(&kept, pages)),
            (Some((kept, pages)), true) => {
                self.watch(reading, (Counted::default(), kept), |(_, kept)| {
                    of_kept(&kept, pages)
                })
            }
        })
    }
}

fn of_kept(kept: &Kept, pages: PageKind) -> (Option<Distribution>, Option<KeptIn>) {
    let kept_in = KeptIn {
        capacity: kept.capacity() as u64,
        pages,
    };
    (Some(Distribution::of_kept(kept)), Some(kept_in))
}

impl Prepared {
    fn task(&self) -> Task {
        let ticks = |nanos| self.scale.ticks_in(nanos).0;
        Task {
            readings: match self.config.length {
                Length::Iterations(readings) => Some(readings),
                Length::Duration(_) => self.keep,
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
        distribution: impl FnOnce(K) -> (Option<Distribution>, Option<KeptIn>),
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
        let memory_full = matches!(self.config.length, Length::Duration(_))
            && self.keep.is_some_and(|room| watched.readings >= room);
        let Watched {
            recorder,
            first,
            jumps,
            windows,
            highest,
            largest,
            backward,
            readings,
            start,
            end,
            blind,
            sampling,
            samples,
            not_sampled,
        } = watched;
        let (distribution, kept_in) = distribution(recorder);
        Some(CpuResult {
            cpu: self.cpu,
            baseline: self.baseline,
            threshold: task.threshold,
            distribution,
            kept_in,
            first,
            highest,
            windows,
            largest,
            backward,
            readings,
            start,
            end,
            blind,
            sampling,
            samples,
            not_sampled,
            coincident: vec![0; jumps.jumps().len()],
            jumps,
            names: Names {
                interrupts: counters.interrupt_names(),
                softirqs: counters.softirq_names(),
            },
            available: counters.available().clone(),
            usage,
            memory_full,
        })
    }
}

/// Puts together what the threads saw.
fn conclude(session: Session, watches: Vec<Handed>) -> ClockResult {
    let Session {
        config,
        reading,
        notes,
        ..
    } = session;
    let cpus: Vec<CpuResult> = watches.into_iter().flatten().collect();
    let ended = match interrupt::requested() {
        Some(signal) => Ended::Early(format!("interrupted by {signal}")),
        None if cpus.iter().any(|cpu| cpu.memory_full) => Ended::Early(
            "the memory for the differences was full before the time was over: the clock was read faster than in the \
             baseline"
                .to_owned(),
        ),
        None => Ended::Complete,
    };
    let mut result = ClockResult {
        clock: config.clock,
        scale: reading.scale(),
        cpus,
        coincidences: None,
        judgements: Vec::new(),
        notes,
        ended,
    };
    start_at_zero(&mut result);
    coincide(&mut result, &config);
    judge(&mut result, &config);
    result
}

/// Counts all times from the first reading of all.
fn start_at_zero(result: &mut ClockResult) {
    let first = result.cpus.iter().map(|cpu| cpu.start).min().unwrap_or(0);
    for cpu in &mut result.cpus {
        cpu.start -= first;
        cpu.end -= first;
        cpu.jumps.shift(first);
        cpu.highest.iter_mut().for_each(|peak| peak.begin -= first);
        for sum in &mut cpu.windows {
            sum.begin -= first;
            sum.last -= first;
        }
    }
}

fn coincide(result: &mut ClockResult, config: &Config) {
    if result.cpus.len() < 2 {
        return;
    }
    let tolerance = result.scale.ticks_in(config.coincidence).0;
    let begins: Vec<Vec<u64>> = result
        .cpus
        .iter()
        .map(|cpu| cpu.jumps.jumps().iter().map(|jump| jump.begin).collect())
        .collect();
    let others = coincidence::others(&begins, tolerance);
    let elapsed = result
        .cpus
        .iter()
        .map(CpuResult::elapsed)
        .max()
        .unwrap_or(0);
    result.coincidences = Some(coincidence::summarise(&begins, &others, tolerance, elapsed));
    for (cpu, others) in result.cpus.iter_mut().zip(others) {
        cpu.coincident = others;
    }
}

fn judge(result: &mut ClockResult, config: &Config) {
    let mut judgements = Vec::new();
    for cpu in &result.cpus {
        for limit in &config.limits {
            let found = match limit.percent {
                None => Some(cpu.largest),
                Some(percent) => cpu
                    .distribution
                    .as_ref()
                    .and_then(|distribution| distribution.percentile(percent)),
            };
            let found_ns = result.nanos_f64(found.unwrap_or(0) as f64);
            judgements.push(Judgement {
                cpu: cpu.cpu,
                limit: limit.describe(),
                found_ns,
                broken: found_ns > limit.length.0 as f64,
            });
        }
    }
    result.judgements = judgements;
}
