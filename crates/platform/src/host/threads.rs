//! Threads are started here, where a limit is an error that names it: `clippy.toml` forbids the ways that panic.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use super::error::HostError;
use super::{remedies, resources};

/// Starts a thread.
///
/// # Errors
/// [`HostError::NoThread`].
#[expect(clippy::disallowed_methods)]
pub fn start<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, HostError> {
    room().and_then(|()| builder.spawn(work)).map_err(refused)
}

/// Starts a thread that ends within a scope.
///
/// # Errors
/// [`HostError::NoThread`].
#[expect(clippy::disallowed_methods)]
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, HostError> {
    room()
        .and_then(|()| builder.spawn_scoped(scope, work))
        .map_err(refused)
}

/// A thread that finds no room for its signal stack ends the process.
fn room() -> io::Result<()> {
    match remedies::AddressSpace::of_this_process() {
        Some(space) if space.left() < resources::STACK => {
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        }
        _ => Ok(()),
    }
}

fn refused(source: io::Error) -> HostError {
    let advice = resources::process_remedy(&source);
    HostError::NoThread { source, advice }
}
