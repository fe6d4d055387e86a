//! Short work in several threads at once, of which none may wait for one that failed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::host::{HostError, threads};

/// Whether a signal has come; asked all the time.
pub type SignalCheck<'a> = &'a (dyn Fn() -> bool + Sync);

/// What a thread does.
pub type ThreadJob<'a, T> = Box<dyn FnOnce() -> Result<T, HostError> + Send + 'a>;

/// Why the threads have no result.
#[derive(Debug, thiserror::Error)]
pub enum ThreadsError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("interrupted before the end")]
    Interrupted,
}

/// Does each job in a separate thread, by its name, and returns their results. `over` is raised when one fails or
/// panics: the others must not wait for it. A panic goes on here.
pub fn in_threads<T: Send>(
    jobs: Vec<(String, ThreadJob<'_, T>)>,
    over: &AtomicBool,
    stop: SignalCheck<'_>,
) -> Result<Vec<T>, ThreadsError> {
    let found = watched_threads(jobs, over, || ())?;
    if stop() {
        return Err(ThreadsError::Interrupted);
    }
    Ok(found)
}

/// The same without a look for a signal at the end. Once all have started, the calling thread does `watch`, then waits
/// for them.
pub fn watched_threads<T: Send>(
    jobs: Vec<(String, ThreadJob<'_, T>)>,
    over: &AtomicBool,
    watch: impl FnOnce(),
) -> Result<Vec<T>, HostError> {
    thread::scope(|scope| {
        let started = jobs.into_iter().map(|(name, job)| {
            let work = move || {
                let done = catch_unwind(AssertUnwindSafe(job));
                if !matches!(done, Ok(Ok(_))) {
                    over.store(true, Ordering::Relaxed);
                }
                done
            };
            let started = threads::start_scoped(scope, thread::Builder::new().name(name), work);
            started.inspect_err(|_| over.store(true, Ordering::Relaxed))
        });
        let started: Vec<_> = started.collect();
        if started.iter().all(Result::is_ok) {
            watch();
        }
        let ended = started.into_iter().map(|thread| {
            let done = thread?.join();
            done.and_then(|done| done)
                .unwrap_or_else(|panic| resume_unwind(panic))
        });
        // All are joined, so that a panic of any of them goes on.
        let ended: Vec<_> = ended.collect();
        ended.into_iter().collect()
    })
}
