//! What can go wrong in any benchmark.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::memory::MemoryLimitError;
use super::role::Role;
use crate::host::pinning::ThreadMigration;
use crate::host::remedies::remedy;
use crate::host::{HostError, interrupt};
use crate::time::ClockError;

/// A run cannot start, or go on, for a reason that every benchmark knows.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Clock(#[from] ClockError),
    #[error(transparent)]
    Memory(#[from] MemoryLimitError),
    /// Huge pages are required, and there are too few.
    #[error(
        "--hugepages required: {what} {needed} huge pages of 2 MiB, {free} are free: reserve them (sysctl \
         vm.nr_hugepages={pool}), or use --hugepages try"
    )]
    TooFewHugePages {
        /// What needs them, with its verb: `the stamps need`.
        what: String,
        needed: u64,
        free: u64,
        /// The size of the pool that would do.
        pool: u64,
    },
    #[error("the {role}: {source}")]
    Spawn { role: Role, source: HostError },
    #[error("the {role} was not ready within {} s: the machine may be out of memory or too busy", limit.as_secs())]
    NotReady { role: Role, limit: Duration },
    #[error(
        "the {role} made no progress for {} s: an operation took that long, or another thread has its CPU; allow \
         more by --timeout",
        silence.as_secs_f64()
    )]
    Silent { role: Role, silence: Duration },
    #[error("the {role} did not leave its loop within {} s after the stop flag was raised", grace.as_secs_f64())]
    Stuck { role: Role, grace: Duration },
    #[error("the {role} ended without a report")]
    NoReport { role: Role },
    #[error("the {role} panicked")]
    Panicked { role: Role },
    /// A thread did not stay where it was put.
    #[error(
        "the {role} {moved}: the measurement is not the one in the results; keep other programs from moving its threads"
    )]
    Moved {
        role: Role,
        /// From where to where.
        moved: ThreadMigration,
    },
    #[error(
        "--priority {0}: threads would spin on all CPUs that this process may use, and nothing else would ever run on \
         them, as kernel.sched_rt_runtime_us is -1: set that to 950000, leave a CPU out, or leave --priority out"
    )]
    NoneLeft(u8),
    #[error(
        "--priority {priority} is impossible where threads share a CPU: one would keep the other from ever running; give \
         each its own ({options}), or leave it out"
    )]
    PriorityShared {
        priority: u8,
        /// Those that give CPUs.
        options: &'static str,
    },
    #[error("interrupted by {0}")]
    Interrupted(Signal),
}

/// To be asked before each part of something long.
///
/// # Errors
/// When a signal has come that is to end this process.
pub fn unless_interrupted() -> Result<(), RigError> {
    match interrupt::requested() {
        Some(signal) => Err(RigError::Interrupted(signal)),
        None => Ok(()),
    }
}

impl RigError {
    pub(super) fn pipe(error: &std::io::Error) -> Self {
        RigError::Host(HostError::System {
            operation: "pipe",
            object: "this process".to_owned(),
            errno: nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(0)),
            advice: remedy(error).unwrap_or_else(|| "close other files".to_owned()),
        })
    }

    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        match self {
            RigError::Host(error) | RigError::Spawn { source: error, .. } => error.is_shortage(),
            _ => false,
        }
    }

    /// Whether another value of an option would avoid it.
    pub fn is_usage(&self) -> bool {
        match self {
            RigError::Clock(_)
            | RigError::Memory(_)
            | RigError::NoneLeft(_)
            | RigError::PriorityShared { .. }
            | RigError::TooFewHugePages { .. } => true,
            RigError::Host(error) => matches!(
                error,
                HostError::CpuUnavailable { .. }
                    | HostError::SameCpu { .. }
                    | HostError::MemoryLockLimit { .. }
            ),
            _ => false,
        }
    }
}
