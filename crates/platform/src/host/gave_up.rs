//! What is said where an allocation or a library ends the program because a resource ends.
//!
//! Rust's own allocations abort where there is no memory, and libzmq where it gets no file or thread. Both print what
//! they lacked. This adds the limits in force, and makes it an exit code: what was measured is on disk by then. A panic
//! is a fault of the program, and aborts as before.

use std::sync::OnceLock;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::error::HostError;
use super::resources;

/// A process that ends otherwise with this code has reported its failure before.
pub const EXIT_CODE: i32 = 1;

static TEXT: OnceLock<String> = OnceLock::new();

/// From now on. The limits are those of this moment.
///
/// # Errors
/// When the system refuses the handler.
pub fn name_limits_on_abort() -> Result<(), HostError> {
    TEXT.get_or_init(|| {
        format!(
            "hcabench: ended, as memory, threads or files do not suffice: raise the limit that was reached ({})\n",
            resources::in_force()
        )
    });
    let handler = SigHandler::Handler(end);
    let action = SigAction::new(handler, SaFlags::SA_RESETHAND, SigSet::empty());
    // SAFETY: the handler only makes system calls, and reads a text and a counter of its thread that exist by now.
    let set = unsafe { sigaction(Signal::SIGABRT, &action) };
    set.map(drop).map_err(HostError::system(
        "sigaction",
        "SIGABRT",
        "see man 2 sigaction",
    ))
}

extern "C" fn end(_: libc::c_int) {
    if std::thread::panicking() {
        // abort(3) goes on when this returns, with the default action.
        return;
    }
    if let Some(text) = TEXT.get() {
        // SAFETY: the text is static.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: it ends the process, and runs nothing of it.
    unsafe { libc::_exit(EXIT_CODE) };
}
