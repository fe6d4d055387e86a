//! The thread that starts the others, waits for them, and is told by signals: it sleeps until the watch is over, a signal
//! comes, or there is progress to be shown. On a machine that is watched on all CPUs it disturbs one of them each time
//! that it wakes up.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::host::interrupt::{self, HeldBack};
use crate::host::{HostError, pinning};
use crate::time::{AnyReading, Nanos, Reading, ReadingUser, Scale, Ticks};

use super::config::{Config, Length};
use super::error::RunError;
use super::watcher::Seen;

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
/// The loops of all threads must have ended so long after they were told to.
pub(super) const END_LIMIT: Duration = Duration::from_secs(60);
/// What was kept must be counted so long after that: many gigabytes can be.
const COUNT_LIMIT: Duration = Duration::from_secs(1800);

/// What supervisor and threads share.
pub(super) struct Control {
    pub(super) stop: AtomicBool,
    pub(super) failed: AtomicBool,
    ready: AtomicUsize,
    start: AtomicU8,
    epoch: AtomicU64,
    looped: Vec<AtomicBool>,
    pub(super) seen: Vec<Seen>,
}

const WAIT: u8 = 0;
const GO: u8 = 1;
const GIVE_UP: u8 = 2;

impl Control {
    pub(super) fn new(cpus: usize) -> Self {
        Control {
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            start: AtomicU8::new(WAIT),
            epoch: AtomicU64::new(0),
            looped: (0..cpus).map(|_| AtomicBool::new(false)).collect(),
            seen: (0..cpus).map(|_| Seen::default()).collect(),
        }
    }

    /// Tells all threads to end, also those that still wait.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self
            .start
            .compare_exchange(WAIT, GIVE_UP, Ordering::Release, Ordering::Relaxed);
    }

    /// The thread in this place reads the clock no more.
    pub(super) fn loop_ended(&self, at: usize) {
        self.looped[at].store(true, Ordering::Release);
    }

    /// Whether no thread reads the clock any more.
    pub(super) fn loops_ended(&self) -> bool {
        self.looped
            .iter()
            .all(|ended| ended.load(Ordering::Acquire))
    }

    /// Waits for the word to start: its epoch, or `None` to give up.
    pub(super) fn wait_for_start(&self) -> Option<Ticks> {
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
pub(super) fn supervise(
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
        if held.wait(ended.as_fd(), Duration::from_millis(1))? {
            // All have ended before they began; why, they say when they are joined.
            return Ok(());
        }
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
pub(super) fn wait_for_end(
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

/// Waits until all threads have ended, whatever signals come. `loops_ended`: whether all that is left is to count what
/// was kept.
pub(super) fn all_ended(
    held: &HeldBack,
    ended: &PipeReader,
    loops_ended: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let told = Instant::now();
    while !held.wait(ended.as_fd(), Duration::from_millis(100))? {
        let limit = if loops_ended() {
            COUNT_LIMIT
        } else {
            END_LIMIT
        };
        if told.elapsed() > limit {
            return Err(RunError::NotEnded(limit.as_secs()));
        }
    }
    Ok(())
}

/// Held by a thread: says so if it ends without a result, in whatever way, also before it is on its CPU.
pub(super) struct Watching {
    control: Arc<Control>,
    at: usize,
    succeeded: bool,
}

impl Watching {
    pub(super) fn new(control: Arc<Control>, at: usize) -> Self {
        Watching {
            control,
            at,
            succeeded: false,
        }
    }

    pub(super) fn succeed(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.control.loop_ended(self.at);
        if !self.succeeded {
            self.control.failed.store(true, Ordering::Release);
            // A watch without all its CPUs is not the one asked for.
            self.control.end();
        }
    }
}

/// Ends the threads that were started when whoever started them leaves, in whatever way.
pub(super) struct EndAll<'a, F: Fn()>(pub(super) &'a F);

impl<F: Fn()> Drop for EndAll<'_, F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A pipe that is closed when the last thread has ended, however it ends.
pub(super) fn pipe() -> Result<(PipeReader, PipeWriter), RunError> {
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
pub(super) fn spawn<T: Send + 'static>(
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

pub(super) fn join_all<T>(
    threads: Vec<JoinHandle<Result<T, RunError>>>,
) -> Result<Vec<T>, RunError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_or_never_starts_ends_those_that_wait() {
        for panics in [true, false] {
            let control = Arc::new(Control::new(2));
            let waiting = Arc::clone(&control);
            let other = std::thread::spawn(move || waiting.wait_for_start());
            let watching = Watching::new(Arc::clone(&control), 0);
            let work = move || {
                let _watching = watching;
                assert!(!panics, "as a test wants it");
            };
            let ended = std::thread::spawn(work).join();
            assert_eq!(ended.is_err(), panics);
            assert!(control.failed.load(Ordering::Acquire));
            assert_eq!(other.join().unwrap(), None);
            assert!(!control.loops_ended());
            control.loop_ended(1);
            assert!(control.loops_ended());
        }
    }

    #[test]
    fn a_thread_that_has_its_result_ends_no_other() {
        let control = Arc::new(Control::new(1));
        Watching::new(Arc::clone(&control), 0).succeed();
        assert!(!control.failed.load(Ordering::Acquire) && control.loops_ended());
        assert!(!control.stop.load(Ordering::Relaxed));
    }

    #[test]
    fn threads_that_were_started_are_ended_by_whoever_leaves_early() {
        let ended = AtomicBool::new(false);
        let end = || ended.store(true, Ordering::Relaxed);
        let fails = || -> Option<()> {
            let _end_all = EndAll(&end);
            None?;
            Some(())
        };
        assert_eq!(fails(), None);
        assert!(ended.load(Ordering::Relaxed));
    }
}
