//! What a placement had to give up.

use serde::Serialize;

/// Something in a placement that is less than it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Compromise {
    SingleCpu {
        cpu: usize,
    },
    /// Two roles run on one CPU, by turns.
    SharedCpu {
        first: &'static str,
        second: &'static str,
        cpu: usize,
    },
    /// Two roles run on two threads of one physical core.
    SmtSiblings {
        first: &'static str,
        first_cpu: usize,
        second: &'static str,
        second_cpu: usize,
    },
    /// A role runs on another NUMA node than its device.
    NumaRemote {
        role: &'static str,
        #[serde(skip)]
        option: &'static str,
        cpu: usize,
        cpu_node: usize,
        device_node: usize,
    },
    /// A role runs on a small core of a hybrid processor.
    EfficiencyCore {
        role: &'static str,
        #[serde(skip)]
        option: &'static str,
        cpu: usize,
    },
    /// No core is left for a role that can be done without.
    NoCoreLeft {
        role: &'static str,
    },
    /// No CPU is left for the rest of the process.
    SupervisorShares,
}

impl Compromise {
    /// Whether it is one of a role, or of another with it.
    pub fn concerns(&self, name: &str) -> bool {
        match self {
            Self::SharedCpu { first, second, .. } | Self::SmtSiblings { first, second, .. } => {
                [*first, *second].contains(&name)
            }
            Self::NumaRemote { role, .. }
            | Self::EfficiencyCore { role, .. }
            | Self::NoCoreLeft { role } => *role == name,
            Self::SingleCpu { .. } | Self::SupervisorShares => false,
        }
    }
}
