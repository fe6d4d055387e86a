//! The signals of this process, which the library takes over.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

use iceoryx2_bb_posix::signal::SignalHandler;

use crate::host::HostError;
use crate::host::interrupt::BlockedSignals;

/// Those before the real-time ones.
const SIGNALS: std::ops::Range<libc::c_int> = 1..32;

/// When the library makes shared memory for the first time, it sets its handlers for SIGINT, SIGTERM, SIGABRT
/// and others, and never puts back what was there. It does so here, and those of this program are put back at once. A
/// signal that comes in between to another thread is raised again for them.
///
/// # Errors
/// When the system does not hold signals back meanwhile.
pub(super) fn keep() -> Result<(), HostError> {
    static DONE: Once = Once::new();
    if DONE.is_completed() {
        return Ok(());
    }
    let held = BlockedSignals::new()?;
    DONE.call_once(|| {
        let before = SIGNALS.filter_map(|signal| Some((signal, action(signal)?)));
        let before: Vec<_> = before.collect();
        let first = SignalHandler::last_signal();
        for (signal, action) in before {
            // SAFETY: it was the action of this signal a moment ago. It fails for those that cannot be set.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
        for signal in [first, SignalHandler::last_signal()].into_iter().flatten() {
            // SAFETY: what it does now is up to this program.
            unsafe { libc::raise(signal as libc::c_int) };
        }
    });
    drop(held);
    Ok(())
}

/// What a signal does now.
fn action(signal: libc::c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: nothing is set, and there is room for what is read.
    let got = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the kernel has filled it.
    (got == 0).then(|| unsafe { action.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flag that the C library adds.
    const RESTORER: libc::c_int = 0x0400_0000;

    #[test]
    fn signals_do_afterwards_what_they_did_before() {
        let shown = |it: libc::sigaction| (it.sa_sigaction, it.sa_flags & !RESTORER);
        let all = || SIGNALS.map(|signal| action(signal).map(shown));
        let before: Vec<_> = all().collect();
        keep().unwrap();
        assert_eq!(all().collect::<Vec<_>>(), before);
        // It was the first use, and no other sets them again.
        SignalHandler::last_signal();
        assert_eq!(all().collect::<Vec<_>>(), before);
    }
}
