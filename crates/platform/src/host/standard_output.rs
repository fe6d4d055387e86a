//! Whether standard output was open when this program started.
//!
//! The runtime of Rust opens `/dev/null` in place of standard streams that are closed, before `main`. What is printed
//! would be lost, and the program would end as if it had been read.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when this program started.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: it reads the flags of a descriptor, or fails where that is closed.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

// SAFETY: the loader calls all functions in this section once, before `main`; this one needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_BEFORE_MAIN: extern "C" fn() = look;
