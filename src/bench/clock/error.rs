//! Why a watch could not be held.

use crate::buffer::{BufferError, Bytes};
use crate::host::HostError;
use crate::time::ReadingError;

/// A watch could not be held.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The clock cannot be used here.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A CPU's thread was refused by the machine.
    #[error("CPU {cpu}: {source}")]
    Thread {
        /// The CPU.
        cpu: usize,
        /// Why.
        source: HostError,
    },
    /// The memory for the differences was refused.
    #[error("CPU {cpu}: {source}")]
    Buffer {
        /// The CPU.
        cpu: usize,
        /// Why.
        source: BufferError,
    },
    /// There is not enough memory to keep all differences.
    #[error(
        "--report percentiles reserves memory for every difference: {readings} of them on each of {cpus} CPUs take {needed}, and \
         {available} are available: use fewer --iterations or a shorter --duration, or --report histogram"
    )]
    Memory {
        /// Differences of a CPU.
        readings: u64,
        /// CPUs.
        cpus: usize,
        /// What they take.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// The memory for the differences must not be locked.
    #[error(
        "--report percentiles reserves locked memory for every difference: {0}; or use --report histogram"
    )]
    Lock(HostError),
    /// A thread did not get ready.
    #[error(
        "after {seconds} s the threads of only {ready} of {cpus} CPUs are ready: does something else take these CPUs?"
    )]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// Threads that are.
        ready: usize,
        /// Threads in all.
        cpus: usize,
    },
    /// A thread did not end when it was told to.
    #[error(
        "{0} s after they were told to end, not all threads have: does something else take their CPUs?"
    )]
    NotEnded(u64),
    /// Ended by a signal before anything was watched.
    #[error("interrupted by {0}")]
    Interrupted(String),
}
