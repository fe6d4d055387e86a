//! Why a run of the memory benchmark cannot start, or go on.

use crate::buffer::RegionError;
use crate::generators::GeneratorsError;
use crate::host::HostError;
use crate::results::ReportError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::memory::MemoryLimitError;

/// A run cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What every benchmark knows.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// Generators could not be had, or do not obey.
    #[error(transparent)]
    Generators(#[from] GeneratorsError),
    /// The buffer of the chase could not be made.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// What the memory controllers count could be read, and cannot any more.
    #[error(
        "the counters of the memory controllers cannot be read any more ({0}): does another program use them? Use \
         --bandwidth software"
    )]
    Controllers(std::io::Error),
    /// Rows could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What was asked for is not there.
    #[error("{0}")]
    Refused(String),
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RunError::Rig(error.into())
    }
}

impl From<MemoryLimitError> for RunError {
    fn from(error: MemoryLimitError) -> Self {
        RunError::Rig(error.into())
    }
}

impl RunError {
    /// The same where nodes are those of `--node-pairs`, beside which no others can be asked for.
    pub(super) fn of_node_pairs(self) -> Self {
        match self {
            RunError::Region(error @ RegionError::Node(_))
            | RunError::Generators(GeneratorsError::Region(error @ RegionError::Node(_))) => {
                RunError::Refused(format!("--node-pairs: {error}"))
            }
            other => other,
        }
    }

    /// The option by which a buffer that cannot be had can be asked for otherwise.
    fn of_buffer(error: &RegionError) -> String {
        let option = match error {
            RegionError::NoPages { .. } | RegionError::NotJoined { .. } => "--pages",
            RegionError::Node(_) => "--memory-node",
            _ => "--size",
        };
        format!("{option}: {error}")
    }
}

impl From<RunError> for Failure {
    /// Buffers and CPUs that are not there are the user's: with other values of options there are some.
    fn from(error: RunError) -> Self {
        match error {
            RunError::Rig(error) => error.into(),
            RunError::Generators(GeneratorsError::Rig(error)) => error.into(),
            RunError::Generators(GeneratorsError::Region(error)) | RunError::Region(error) => {
                let text = RunError::of_buffer(&error);
                match error.is_shortage() {
                    true => Failure::Shortage(text),
                    false => Failure::Usage(text),
                }
            }
            RunError::Refused(text) => Failure::Usage(text),
            other => Failure::Run(other.to_string()),
        }
    }
}
