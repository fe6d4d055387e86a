//! SIGINT and SIGTERM as a request to end: what is finished stays whole on disk, and the run stops between two points.
//!
//! The first signal sets a flag, the second of the same kind kills at once. Whoever waits must look at the flag:
//! nothing is woken but a `poll` or a sleep of the thread that happens to get the signal. To get a thread out of a
//! system call, use [`super::wake`].

use super::error::HostError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::sys::time::TimeSpec;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often [`unless_requested`] looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// The number of the first signal that came, 0 before.
static REQUESTED: AtomicI32 = AtomicI32::new(0);

/// Takes SIGINT and SIGTERM as a request to end, from here on. A signal that is ignored (`nohup`, `&` in a script)
/// stays so.
///
/// # Errors
/// [`HostError::System`] if the kernel refuses.
pub fn install() -> Result<(), HostError> {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SA_RESETHAND brings the default action back as the handler is entered, so the next signal kills.
        let action = SigAction::new(
            SigHandler::Handler(note),
            SaFlags::SA_RESETHAND | SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: `note` only touches an atomic, which a handler may do in any thread at any moment.
        let before =
            unsafe { sigaction(signal, &action) }.map_err(|errno| failed(signal, errno))?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: puts back what was there a moment ago, and runs no code of ours.
            unsafe { sigaction(signal, &before) }.map_err(|errno| failed(signal, errno))?;
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

/// Does work that does not look for signals itself, however long it takes: in a thread of its own, which is left behind
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

fn unless<T: Send + 'static>(
    requested: impl Fn() -> Option<Signal>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Signal> {
    let (give, take) = channel();
    let worker = std::thread::spawn(move || {
        // Nobody listens after a signal.
        let _ = give.send(work());
    });
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
#[derive(Debug)]
pub struct HeldBack {
    before: SigSet,
}

impl HeldBack {
    /// Holds the signals back until it is dropped.
    ///
    /// # Errors
    /// [`HostError::System`] if the kernel refuses.
    pub fn new() -> Result<Self, HostError> {
        let held = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        let before = held
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(|errno| failed(Signal::SIGINT, errno))?;
        Ok(HeldBack { before })
    }

    /// Waits until there is something to read from `what`, or it was closed; until a signal comes, or `limit` has
    /// passed. Returns whether it was the first.
    ///
    /// # Errors
    /// [`HostError::System`] if the kernel refuses.
    pub fn wait(&self, what: BorrowedFd<'_>, limit: Duration) -> Result<bool, HostError> {
        let mut what = [PollFd::new(what, PollFlags::POLLIN)];
        match ppoll(
            &mut what,
            Some(TimeSpec::from_duration(limit)),
            Some(self.before),
        ) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(HostError::System {
                operation: "ppoll",
                object: "a pipe between threads".to_owned(),
                errno,
                advice: "the run cannot be watched over in this environment".to_owned(),
            }),
        }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        // Fails only for an unknown way of setting.
        let _ = self.before.thread_set_mask();
    }
}

extern "C" fn note(signal: libc::c_int) {
    // Relaxed: nothing else is published by the flag. An error means that another signal came first.
    let _ = REQUESTED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

fn failed(signal: Signal, errno: nix::errno::Errno) -> HostError {
    HostError::System {
        operation: "sigaction",
        object: signal.to_string(),
        errno,
        advice: "the run cannot be ended cleanly by a signal in this environment".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    /// Runs `child` in a process of its own and tells how that ended.
    fn in_child(child: fn() -> i32) -> WaitStatus {
        // SAFETY: after a fork of a process with several threads, the child may only do what a signal handler may. All
        // that the children here do is sigaction, raise, atomics and _exit.
        match unsafe { fork() }.unwrap() {
            // SAFETY: _exit may be called anywhere, and runs none of the test's destructors a second time.
            ForkResult::Child => unsafe { libc::_exit(child()) },
            ForkResult::Parent { child } => waitpid(child, None).unwrap(),
        }
    }

    /// Whoever started the tests in the background of a shell has SIGINT ignored, and so it would stay.
    fn act(signal: Signal, handler: SigHandler) -> bool {
        let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action and ignoring a signal run no code of ours.
        unsafe { sigaction(signal, &action) }.is_ok()
    }

    #[test]
    fn the_first_signal_is_a_request_and_the_second_kills() {
        fn twice(signal: Signal) -> i32 {
            if !act(signal, SigHandler::SigDfl) {
                return 4;
            }
            if install().is_err() || requested().is_some() || raise(signal).is_err() {
                return 1;
            }
            if requested() != Some(signal) {
                return 2;
            }
            let _ = raise(signal);
            3
        }
        let children: [(Signal, fn() -> i32); 2] = [
            (Signal::SIGINT, || twice(Signal::SIGINT)),
            (Signal::SIGTERM, || twice(Signal::SIGTERM)),
        ];
        for (signal, child) in children {
            let status = in_child(child);
            let is_killed = matches!(status, WaitStatus::Signaled(_, by, _) if by == signal);
            assert!(is_killed, "{status:?}");
        }
    }

    #[test]
    fn the_first_of_two_kinds_is_told_and_neither_kills() {
        fn both() -> i32 {
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                act(signal, SigHandler::SigDfl);
            }
            let _ = install();
            let _ = raise(Signal::SIGTERM);
            let _ = raise(Signal::SIGINT);
            if requested() == Some(Signal::SIGTERM) {
                42
            } else {
                1
            }
        }
        assert!(matches!(in_child(both), WaitStatus::Exited(_, 42)));
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

    #[test]
    fn what_is_ignored_stays_ignored() {
        fn ignored() -> i32 {
            if !act(Signal::SIGINT, SigHandler::SigIgn) || install().is_err() {
                return 1;
            }
            let _ = raise(Signal::SIGINT);
            let _ = raise(Signal::SIGINT);
            if requested().is_none() { 42 } else { 2 }
        }
        assert!(matches!(in_child(ignored), WaitStatus::Exited(_, 42)));
    }
}
