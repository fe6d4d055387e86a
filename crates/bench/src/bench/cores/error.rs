//! Why a run cannot start, or go on.

use crate::buffer::RegionError;
use crate::host::HostError;
use crate::results::ReportError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::in_threads::ThreadsError;
use crate::time::ClockError;

/// A run cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What every benchmark knows.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The lines could not be made.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Both ends of a pair could not be run.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// Rows could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A line came with other words than were written.
    #[error(
        "between CPU {} and CPU {} a line arrived with other words than were written to it: the processor or the memory \
         is faulty", .0[0], .0[1]
    )]
    Damaged([usize; 2]),
    /// Another value of an option is needed.
    #[error("{0}")]
    Refused(String),
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RunError::Rig(error.into())
    }
}

impl From<ClockError> for RunError {
    fn from(error: ClockError) -> Self {
        RunError::Rig(error.into())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Rig(error) => error.into(),
            RunError::Threads(ThreadsError::Host(error)) => RigError::Host(error).into(),
            RunError::Region(error) if error.is_shortage() => Failure::Shortage(error.to_string()),
            RunError::Region(error) => Failure::Usage(format!("--memory-node: {error}")),
            RunError::Refused(text) => Failure::Usage(text),
            other => Failure::Run(other.to_string()),
        }
    }
}
