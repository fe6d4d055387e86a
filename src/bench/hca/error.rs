//! Why a run cannot start or go on.

use super::choice::ChoiceError;
use super::endpoints::EndpointError;
use super::floor::FloorError;
use super::plan::PlanError;
use super::session::SessionError;
use super::uc_route::RouteRefused;
use crate::host::HostError;
use crate::rdma::cm::CmError;
use crate::rdma::verbs::VerbsError;
use crate::rig::benchmark::Failure;
use crate::rig::error::RigError;
use crate::rig::memory::TooMuch;
use crate::time::ClockError;

/// A run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// For a reason that every benchmark knows.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A point's threads.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Nothing can be measured.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The devices do not suit the configuration.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The ends could not be connected.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The connection manager is not there.
    #[error(transparent)]
    Connection(#[from] CmError),
    /// The route to UC that was asked for does not work.
    #[error(transparent)]
    UcRoute(#[from] RouteRefused),
    /// The devices cannot be asked.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// The floor could not be measured.
    #[error(transparent)]
    Floor(#[from] FloorError),
    /// Real-time threads on all CPUs, and nothing that keeps them in check.
    #[error(
        "--priority {priority} is impossible here: the measuring threads would spin on every CPU, and \
         kernel.sched_rt_runtime_us is -1, so nothing else would ever run: set that to 950000, or leave out --priority"
    )]
    PriorityLeavesNothing {
        /// The priority asked for.
        priority: u8,
    },
    /// Two threads with a real-time priority on one CPU.
    #[error(
        "--priority {priority} is impossible where measuring threads share a CPU: one would keep the other from ever \
         running; give each its own (--sender-cpu, --receiver-cpu, --completion-cpu, --stamp-cpu) or leave it out"
    )]
    PriorityOnSharedCpu {
        /// The priority asked for.
        priority: u8,
    },
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> Self {
        RigError::from(error).into()
    }
}

impl From<ClockError> for RunError {
    fn from(error: ClockError) -> Self {
        RigError::from(error).into()
    }
}

impl From<TooMuch> for RunError {
    fn from(error: TooMuch) -> Self {
        RigError::from(error).into()
    }
}

impl From<RunError> for Failure {
    /// An error that another value of an option would avoid is the user's.
    fn from(error: RunError) -> Self {
        let usage = match &error {
            RunError::Rig(RigError::Interrupted(signal))
            | RunError::Session(SessionError::Rig(RigError::Interrupted(signal))) => {
                return Failure::Interrupted(signal.to_string());
            }
            // A limit of the machine, as long as no option lowers what is locked.
            RunError::Rig(RigError::Host(HostError::MemoryLockLimit { .. })) => false,
            RunError::Rig(RigError::TooFewHugePages { .. }) => false,
            RunError::Rig(error) => error.is_usage(),
            RunError::Choice(
                ChoiceError::UnknownDevice { .. } | ChoiceError::UnusablePort { .. },
            )
            | RunError::Plan(_)
            | RunError::UcRoute(_)
            | RunError::PriorityOnSharedCpu { .. }
            | RunError::PriorityLeavesNothing { .. } => true,
            _ => false,
        };
        if usage {
            Failure::Usage(error.to_string())
        } else {
            Failure::Run(error.to_string())
        }
    }
}
