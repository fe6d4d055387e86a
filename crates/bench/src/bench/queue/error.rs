//! Why a run of the queue benchmark cannot start or go on, and what that means for the sweep.

use std::time::Duration;

use super::counters::CounterError;
use crate::buffer::BufferError;
use crate::generators::GeneratorsError;
use crate::host::HostError;
use crate::host::pinning::ThreadMigration;
use crate::queues::interface::QueueError;
use crate::results::ReportError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::in_threads::ThreadsError;
use crate::rig::role::Role;

#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Moved(#[from] ThreadMigration),
    #[error("stamps of the elements of a round: {0}")]
    Buffer(#[from] BufferError),
    #[error("the queue {0} {1}")]
    Queue(String, QueueError),
    #[error(transparent)]
    Counters(#[from] CounterError),
    /// The other thread did not get ready; its own error says more.
    #[error("the other end of the queue did not get ready")]
    Alone,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Rig(#[from] RigError),
    #[error("--measure counters: {0}")]
    Counters(#[from] CounterError),
    #[error(
        "--topology: no two CPUs of this process have a known relation; it may use one only, or the kernel does not \
         report it; name two by --sender-cpu and --receiver-cpu"
    )]
    NoPair,
    /// No queue comes in any of the capacities, or no CPU is left for memory load.
    #[error("{0}")]
    NothingToMeasure(String),
    #[error("{0}: {1}")]
    Thread(Role, ThreadError),
    /// Elements went through, but by far too slowly.
    #[error(
        "the run was not over within {} s: the CPUs are too busy, or --count is too large for this queue",
        limit.as_secs()
    )]
    TooSlow { limit: Duration },
    #[error(transparent)]
    NotWritten(#[from] ReportError),
    /// The clocks of the two CPUs could not be compared.
    #[error("the clocks of sender and receiver: {0}")]
    Offset(#[from] ThreadsError),
    #[error("memory load: {0}")]
    Generators(GeneratorsError),
}

impl From<GeneratorsError> for RunError {
    fn from(error: GeneratorsError) -> Self {
        match error {
            GeneratorsError::Rig(error) => RunError::Rig(error),
            other => RunError::Generators(other),
        }
    }
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RunError::Rig(error.into())
    }
}

impl RunError {
    /// What a thread failed by.
    pub(super) fn of_thread(role: Role, error: ThreadError) -> Self {
        match error {
            ThreadError::Moved(moved) => RunError::Rig(RigError::Moved { role, moved }),
            error => RunError::Thread(role, error),
        }
    }

    /// Whether it is the failure of one queue, after which others can be measured, if need be by another process.
    pub(super) fn fails_its_point(&self) -> bool {
        self.leaves_thread_behind()
            || self.is_shortage()
            || matches!(
                self,
                RunError::TooSlow { .. }
                    | RunError::Rig(
                        RigError::Panicked { .. }
                            | RigError::Silent { .. }
                            | RigError::Moved { .. }
                    )
            )
    }

    fn is_shortage(&self) -> bool {
        match self {
            RunError::Rig(error) => error.is_shortage(),
            RunError::Offset(ThreadsError::Host(error))
            | RunError::Thread(_, ThreadError::Host(error)) => error.is_shortage(),
            RunError::Thread(_, ThreadError::Buffer(error)) => error.is_shortage(),
            RunError::Generators(error) => error.is_shortage(),
            _ => false,
        }
    }

    /// Whether a thread is left behind that may take the CPU of the next queue.
    pub(super) fn leaves_thread_behind(&self) -> bool {
        matches!(
            self,
            RunError::Rig(RigError::Stuck { .. } | RigError::NotReady { .. })
        )
    }

    /// What the row of its point says.
    pub(super) fn as_failure_of_point(&self) -> String {
        if self.leaves_thread_behind() {
            format!(
                "{self}: an operation of the queue blocks, and its thread is left behind, so that this process has to \
                 end"
            )
        } else {
            self.to_string()
        }
    }
}

impl From<RunError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Rig(error) => error.into(),
            error if error.is_shortage() => Failure::Shortage(text),
            RunError::NoPair
            | RunError::NothingToMeasure(_)
            | RunError::Counters(CounterError::None(_) | CounterError::Forbidden(_)) => {
                Failure::Usage(text)
            }
            _ => Failure::Run(text),
        }
    }
}
