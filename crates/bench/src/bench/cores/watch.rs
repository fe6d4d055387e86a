//! The two ends of a pair, watched by the thread that waits for them: a thread on a CPU that never runs it, because
//! another one with a real-time priority does not leave, sees neither time nor signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{Pid, gettid};

use crate::rig::in_threads::SignalCheck;

/// Looks for a signal are this far apart: each wakes a thread up.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// What an end that runs takes at most to see that it is over.
const GRACE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndState {
    Starting,
    Running(Pid),
    /// It had to be moved off its CPU.
    Released(Pid),
    Ended {
        is_released: bool,
    },
}

/// Both ends of a pair.
#[derive(Debug)]
pub(super) struct PairWatch {
    ends: Mutex<[EndState; 2]>,
    changed: Condvar,
}

impl PairWatch {
    pub(super) fn new() -> Self {
        PairWatch {
            ends: Mutex::new([EndState::Starting; 2]),
            changed: Condvar::new(),
        }
    }

    fn ends(&self) -> MutexGuard<'_, [EndState; 2]> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread is that end, until what is returned is dropped.
    pub(super) fn enter(&self, end: usize) -> WatchedEnd<'_> {
        self.ends()[end] = EndState::Running(gettid());
        WatchedEnd { watch: self, end }
    }

    /// Whether each end had to be moved off its CPU.
    pub(super) fn released(&self) -> [bool; 2] {
        let is_released = |end| {
            matches!(
                end,
                EndState::Released(_) | EndState::Ended { is_released: true }
            )
        };
        self.ends().map(is_released)
    }

    /// Waits for both ends. After the limit and after a signal `over` is set, and an end that does not run by then is
    /// released until it ends.
    pub(super) fn wait(
        &self,
        limit: Duration,
        over: &AtomicBool,
        stop: SignalCheck<'_>,
        release: impl Fn(Pid),
    ) {
        let begun = Instant::now();
        let mut ends = self.ends();
        let mut over_since: Option<Instant> = None;
        while !ends.iter().all(|end| matches!(end, EndState::Ended { .. })) {
            if over_since.is_none() && (begun.elapsed() >= limit || stop()) {
                over.store(true, Ordering::Relaxed);
                over_since = Some(Instant::now());
            }
            if over_since.is_some_and(|since| since.elapsed() >= GRACE) {
                for end in ends.iter_mut() {
                    // Again, if it was about to go there.
                    if let EndState::Running(thread) | EndState::Released(thread) = *end {
                        *end = EndState::Released(thread);
                        release(thread);
                    }
                }
            }
            let waited = self.changed.wait_timeout(ends, BETWEEN_LOOKS);
            ends = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// An end that has not ended yet.
#[derive(Debug)]
pub(super) struct WatchedEnd<'a> {
    watch: &'a PairWatch,
    end: usize,
}

impl WatchedEnd<'_> {
    /// Whether it had to be moved off its CPU.
    pub(super) fn is_released(&self) -> bool {
        self.watch.released()[self.end]
    }
}

impl Drop for WatchedEnd<'_> {
    fn drop(&mut self) {
        let is_released = self.is_released();
        self.watch.ends()[self.end] = EndState::Ended { is_released };
        self.watch.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::in_threads::{ThreadJob, watched_threads};

    /// The first end runs and sees that it is over, the second does not until it is released. How often that was done.
    fn one_that_never_runs(limit: Duration, stop: SignalCheck<'_>) -> (usize, [bool; 2]) {
        let (watch, over) = (PairWatch::new(), AtomicBool::new(false));
        let released = Mutex::new(Vec::new());
        let runs: ThreadJob<'_, ()> = Box::new(|| {
            let _end = watch.enter(0);
            while !over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        });
        let hangs: ThreadJob<'_, ()> = Box::new(|| {
            let end = watch.enter(1);
            let mine = |thread: &Pid| *thread == gettid();
            while !released.lock().unwrap().iter().any(mine) {
                std::thread::yield_now();
            }
            assert!(end.is_released());
            Ok(())
        });
        let jobs = vec![("runs".to_owned(), runs), ("hangs".to_owned(), hangs)];
        let wait = || {
            let release = |thread| released.lock().unwrap().push(thread);
            watch.wait(limit, &over, stop, release);
        };
        let ended = watched_threads(jobs, &over, wait);
        ended.unwrap();
        let count = released.lock().unwrap().len();
        (count, watch.released())
    }

    #[test]
    fn an_end_that_never_runs_is_released_after_the_limit_and_after_a_signal() {
        for (limit, is_stopped) in [(0, false), (3600, true)] {
            let (count, released) = one_that_never_runs(Duration::from_secs(limit), &|| is_stopped);
            assert!(count >= 1 && released[1], "{count} {released:?}");
        }
    }

    #[test]
    fn ends_that_end_are_not_released() {
        let (watch, over) = (PairWatch::new(), AtomicBool::new(false));
        drop([watch.enter(0), watch.enter(1)]);
        let release = |thread| panic!("{thread} was released");
        watch.wait(Duration::ZERO, &over, &|| true, release);
        assert_eq!(watch.released(), [false; 2]);
        assert!(!over.load(Ordering::Relaxed));
    }
}
