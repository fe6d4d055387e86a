//! Why a watch could not be held.

use crate::buffer::{BufferError, Bytes};
use crate::host::HostError;
use crate::host::remedies::memory_remedy;
use crate::host::trace::TraceError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;

use super::jump::JumpStore;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Rig(#[from] RigError),
    #[error("CPU {cpu}: {source}")]
    Buffer { cpu: usize, source: BufferError },
    #[error(
        "--keep-jumps {keep}: no memory for {} jumps on each CPU; allowed are 2 to 100M, as far as the machine and \
         ulimit -v permit; use fewer, or the default of at most 262144",
        Bytes(JumpStore::bytes(*keep))
    )]
    Jumps { keep: usize },
    #[error(
        "--report percentiles reserves memory for every difference: {readings} of them on each of {cpus} CPUs take {needed}, and \
         {available} are available: use fewer --iterations or a shorter --duration, or leave percentiles out"
    )]
    Memory {
        readings: u64,
        cpus: usize,
        needed: Bytes,
        available: Bytes,
    },
    #[error("--causes trace: {0}; or use --causes counters, which needs no root")]
    Trace(#[from] TraceError),
    #[error(
        "--causes trace: --clock realtime can be set, so that its jumps cannot be matched with the trace: choose another \
         clock, or use --causes counters"
    )]
    TraceOfRealtime,
    #[error("--causes trace: there is no memory for it: {}", memory_remedy(None))]
    TraceMemory,
    #[error("the timer {0}: {1}")]
    Timer(&'static str, nix::errno::Errno),
    #[error(
        "--report percentiles reserves locked memory for every difference: {0}; or use a shorter --duration, or leave percentiles \
         out"
    )]
    Lock(HostError),
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RunError::Rig(error.into())
    }
}

impl From<RunError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Rig(error) => error.into(),
            RunError::Buffer { source, .. } if source.is_shortage() => Failure::Shortage(text),
            RunError::Buffer { .. } | RunError::Timer(..) => Failure::Run(text),
            RunError::Jumps { .. }
            | RunError::Memory { .. }
            | RunError::Lock(_)
            | RunError::Trace(_)
            | RunError::TraceOfRealtime
            | RunError::TraceMemory => Failure::Usage(text),
        }
    }
}
