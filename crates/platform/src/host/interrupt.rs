//! SIGINT and SIGTERM as a request to end: what is finished stays whole on disk, and the run stops between two points.
//!
//! The first signal sets a flag, the second of the same kind kills at once (but not the child of a sweep). A thread
//! that waits must look at the flag: nothing is woken but a `poll` or a sleep of the thread that happens to get the
//! signal. To get a thread out of a system call, use [`super::wake`].

use super::error::HostError;
use super::threads;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::sys::time::TimeSpec;
use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// How often [`unless_requested`] looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// The number of the first signal that came, 0 before.
static REQUESTED: AtomicI32 = AtomicI32::new(0);

/// Takes SIGINT and SIGTERM as a request to end, from here on. A signal that is ignored (`nohup`, `&` in a script)
/// stays so.
pub fn install() -> Result<(), HostError> {
    // SA_RESETHAND brings the default action back as the handler is entered, so the next signal kills.
    install_with(SaFlags::SA_RESETHAND)
}

/// As [`install`], for a process whose parent passes signals on and kills it where it takes too long: it may get one
/// that is meant for the whole group as well, and ends by the first.
pub fn install_under_parent() -> Result<(), HostError> {
    install_with(SaFlags::empty())
}

fn install_with(flags: SaFlags) -> Result<(), HostError> {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let action = SigAction::new(
            SigHandler::Handler(note),
            flags | SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: `note` only touches an atomic, which a handler may do in any thread at any moment.
        let before = unsafe { sigaction(signal, &action) }.map_err(failed(signal))?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: puts back what was there a moment ago, and runs no code of ours.
            unsafe { sigaction(signal, &before) }.map_err(failed(signal))?;
        }
    }
    Ok(())
}

/// The first signal that asked to end, if one did.
pub fn requested() -> Option<Signal> {
    match REQUESTED.load(Ordering::Relaxed) {
        0 => None,
        number => Signal::try_from(number).ok(),
    }
}

/// Does work that does not look for signals itself, however long it takes: in a separate thread, which is left behind
/// when a signal comes. Only a program that ends then may use it.
///
/// # Errors
/// The signal.
///
/// # Panics
/// When the work does.
pub fn unless_requested<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Signal> {
    unless(requested, work)
}

fn taken<W>(work: &Mutex<Option<W>>) -> W {
    let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
    work.take().expect("it is done once")
}

fn unless<T: Send + 'static>(
    requested: impl Fn() -> Option<Signal>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Signal> {
    let (give, take) = channel();
    let work = Arc::new(Mutex::new(Some(work)));
    let started = threads::start(Builder::new(), {
        let work = Arc::clone(&work);
        move || {
            let work = taken(&work);
            // No thread listens after a signal.
            let _ = give.send(work());
        }
    });
    let Ok(worker) = started else {
        // Without a second thread a signal waits for the end of the work.
        return Ok(taken(&work)());
    };
    loop {
        if let Some(signal) = requested() {
            return Err(signal);
        }
        match take.recv_timeout(LOOK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("work that ends is sent"),
            },
        }
    }
}

/// SIGINT and SIGTERM held back from the calling thread, and from the threads that it starts, except while it waits. So
/// the signal comes to a thread that can act on it, and never between its look at the flag and its sleep.
///
/// A thread may have several, and end them in any order: the first one's mask is that of all waits, and is set again
/// when none is left.
#[derive(Debug)]
pub struct BlockedSignals {
    before: SigSet,
    /// It is the thread's.
    _of_this_thread: PhantomData<*const ()>,
}

thread_local! {
    /// How many this thread has, and its mask before the first of them.
    static HELD: Cell<(u32, Option<SigSet>)> = const { Cell::new((0, None)) };
}

impl BlockedSignals {
    /// Holds the signals back until it is dropped.
    pub fn new() -> Result<Self, HostError> {
        let held = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        let now = held.thread_swap_mask(SigmaskHow::SIG_BLOCK);
        let now = now.map_err(failed(Signal::SIGINT))?;
        let (count, first) = HELD.get();
        let before = first.unwrap_or(now);
        HELD.set((count + 1, Some(before)));
        Ok(BlockedSignals {
            before,
            _of_this_thread: PhantomData,
        })
    }

    /// Waits until there is something to read from `what`, or it was closed; until a signal comes, or `limit` has
    /// passed. Returns whether it was the first.
    pub fn wait(&self, what: BorrowedFd<'_>, limit: Duration) -> Result<bool, HostError> {
        let mut what = [PollFd::new(what, PollFlags::POLLIN)];
        let limit = TimeSpec::from_duration(limit);
        match ppoll(&mut what, Some(limit), Some(self.before)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => {
                let advice = "the run cannot be watched over in this environment";
                Err(HostError::system("ppoll", "a pipe between threads", advice)(errno))
            }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let (count, _) = HELD.get();
        if count > 1 {
            return HELD.set((count - 1, Some(self.before)));
        }
        HELD.set((0, None));
        // Fails only for an unknown way of setting.
        let _ = self.before.thread_set_mask();
    }
}

extern "C" fn note(signal: libc::c_int) {
    // Relaxed: nothing else is published by the flag. An error means that another signal came first.
    let _ = REQUESTED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

fn failed(signal: Signal) -> impl FnOnce(Errno) -> HostError {
    let advice = "the run cannot be ended cleanly by a signal in this environment";
    HostError::system("sigaction", signal.as_str(), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_let_through_again_when_the_last_one_that_held_them_back_has_gone() {
        let is_held = || {
            let mask = SigSet::thread_get_mask().unwrap();
            [Signal::SIGINT, Signal::SIGTERM].map(|signal| mask.contains(signal))
        };
        let before = is_held();
        let first = BlockedSignals::new().unwrap();
        let second = BlockedSignals::new().unwrap();
        assert_eq!(is_held(), [true; 2]);
        // Both wait with the mask of before, and the order of their ends is of no matter.
        assert_eq!(second.before.contains(Signal::SIGINT), before[0]);
        drop(first);
        assert_eq!(is_held(), [true; 2]);
        drop(second);
        assert_eq!(is_held(), before);
        drop(BlockedSignals::new().unwrap());
        assert_eq!(is_held(), before);
    }
    use nix::sys::signal::raise;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    /// How a process ends in which both signals had this handler, when it installs its own and gets some.
    fn ended(
        install: fn() -> Result<(), HostError>,
        before: SigHandler,
        signals: &[Signal],
    ) -> Result<Option<Signal>, Signal> {
        let child = || {
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                let action = SigAction::new(before, SaFlags::empty(), SigSet::empty());
                // SAFETY: the default action and ignoring a signal run no code of ours.
                let _ = unsafe { sigaction(signal, &action) };
            }
            let failed = install().is_err() || requested().is_some();
            let failed = failed || signals.iter().any(|signal| raise(*signal).is_err());
            if failed {
                -1
            } else {
                requested().map_or(0, |signal| signal as i32)
            }
        };
        // SAFETY: the child does what a signal handler may: sigaction, raise, atomics and _exit.
        match unsafe { fork() }.unwrap() {
            // SAFETY: _exit may be called anywhere, and runs none of the test's destructors a second time.
            ForkResult::Child => unsafe { libc::_exit(child()) },
            ForkResult::Parent { child } => match waitpid(child, None).unwrap() {
                WaitStatus::Exited(_, 0) => Ok(None),
                WaitStatus::Exited(_, number) => Ok(Some(Signal::try_from(number).unwrap())),
                WaitStatus::Signaled(_, by, _) => Err(by),
                other => panic!("{other:?}"),
            },
        }
    }

    #[test]
    fn the_first_signal_is_a_request_and_a_second_of_its_kind_kills() {
        use Signal::{SIGINT, SIGTERM};
        let (default, ignored) = (SigHandler::SigDfl, SigHandler::SigIgn);
        for (before, signals, end) in [
            (default, &[SIGINT][..], Ok(Some(SIGINT))),
            (default, &[SIGTERM], Ok(Some(SIGTERM))),
            (default, &[SIGINT, SIGINT], Err(SIGINT)),
            (default, &[SIGTERM, SIGTERM], Err(SIGTERM)),
            (default, &[SIGTERM, SIGINT], Ok(Some(SIGTERM))),
            // Whoever started a program in the background of a shell has SIGINT ignored, and so it stays.
            (ignored, &[SIGINT, SIGINT], Ok(None)),
        ] {
            assert_eq!(ended(install, before, signals), end, "{signals:?}");
        }
        // Under a parent the second changes nothing.
        let found = ended(install_under_parent, default, &[SIGTERM, SIGTERM]);
        assert_eq!(found, Ok(Some(SIGTERM)));
    }

    #[test]
    fn work_is_left_behind_when_a_signal_comes_and_else_done() {
        use std::time::Instant;
        let begun = Instant::now();
        let signal = || (begun.elapsed() > Duration::from_millis(100)).then_some(Signal::SIGTERM);
        let long = || std::thread::sleep(Duration::from_secs(30));
        assert_eq!(unless(signal, long), Err(Signal::SIGTERM));
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(unless(|| None, || 7), Ok(7));
    }

    #[test]
    fn work_that_panics_does_so_in_the_caller() {
        let caught = std::panic::catch_unwind(|| {
            // Without the message of the panic hook.
            unless::<()>(|| None, || std::panic::resume_unwind(Box::new("work")))
        });
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"work"));
    }
}
