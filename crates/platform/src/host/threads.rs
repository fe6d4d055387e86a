//! Threads are started here, where a limit is an error that names it: `clippy.toml` forbids the ways that panic.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use super::error::HostError;
use super::resources;

/// Starts a thread.
///
/// # Errors
/// [`HostError::NoThread`].
#[expect(clippy::disallowed_methods)]
pub fn start<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, HostError> {
    builder.spawn(work).map_err(refused)
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
    builder.spawn_scoped(scope, work).map_err(refused)
}

fn refused(source: io::Error) -> HostError {
    let advice = resources::process_remedy(&source);
    HostError::NoThread { source, advice }
}
