//! What a placement had to give up, in types and in words.

use serde::Serialize;

/// Something in a placement that is less than it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Compromise {
    /// There is one CPU for everything.
    SingleCpu {
        /// That CPU.
        cpu: usize,
    },
    /// Two roles run on one CPU, by turns.
    SharedCpu {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// The CPU.
        cpu: usize,
    },
    /// Two roles run on two threads of one physical core.
    SmtSiblings {
        /// One of them.
        first: &'static str,
        /// Its CPU.
        first_cpu: usize,
        /// The other.
        second: &'static str,
        /// Its CPU.
        second_cpu: usize,
    },
    /// A role runs on another NUMA node than its device.
    NumaRemote {
        /// The role.
        role: &'static str,
        /// The option that names its CPU.
        #[serde(skip)]
        option: &'static str,
        /// Its CPU.
        cpu: usize,
        /// The node of the CPU.
        cpu_node: usize,
        /// The node of the device.
        device_node: usize,
    },
    /// A role runs on a small core of a hybrid processor.
    EfficiencyCore {
        /// The role.
        role: &'static str,
        /// The option that names its CPU.
        #[serde(skip)]
        option: &'static str,
        /// Its CPU.
        cpu: usize,
    },
    /// No core is left for a role that can be done without.
    NoCoreLeft {
        /// The role.
        role: &'static str,
        /// What happens instead, in words.
        instead: &'static str,
        /// What to do about it.
        #[serde(skip)]
        advice: &'static str,
    },
    /// No CPU is left for the rest of the process.
    SupervisorShares,
}

impl Compromise {
    /// What it is, in a sentence.
    pub fn message(&self) -> String {
        match self {
            Self::SingleCpu { cpu } => {
                format!("all threads share CPU {cpu}, the only one there is")
            }
            Self::SharedCpu { first, second, cpu } => {
                format!("{first} and {second} share CPU {cpu}")
            }
            Self::SmtSiblings {
                first,
                first_cpu,
                second,
                second_cpu,
            } => format!(
                "{first} (CPU {first_cpu}) and {second} (CPU {second_cpu}) share a physical core"
            ),
            Self::NumaRemote {
                role,
                cpu,
                cpu_node,
                device_node,
                ..
            } => format!(
                "{role} runs on CPU {cpu} of NUMA node {cpu_node}, its device is on node {device_node}"
            ),
            Self::EfficiencyCore { role, cpu, .. } => {
                format!("{role} runs on CPU {cpu}, an efficiency core")
            }
            Self::NoCoreLeft { role, instead, .. } => {
                format!("no core is left for a {role}: {instead}")
            }
            Self::SupervisorShares => {
                "no CPU is left for the rest of the process, which runs on those of the measurement"
                    .to_owned()
            }
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::SingleCpu { .. } => {
                "latencies hold the scheduler's time slices, milliseconds each; use a machine with two cores or more"
                    .to_owned()
            }
            Self::SharedCpu { .. } => format!(
                "latencies hold the scheduler's time slices, and with --priority one of the two may never run; {OWN_CORE}"
            ),
            Self::SmtSiblings { .. } => format!("each slows the other down; {OWN_CORE}"),
            Self::NumaRemote { option, device_node, .. } => format!(
                "each access to the device crosses the interconnect; name a CPU of node {device_node} by {option}"
            ),
            Self::EfficiencyCore { option, .. } => {
                format!("it is slower; name a performance core by {option}")
            }
            Self::NoCoreLeft { advice, .. } => (*advice).to_owned(),
            Self::SupervisorShares => {
                "progress and connection handling may interrupt a measuring thread; one more core avoids it".to_owned()
            }
        }
    }
}

const OWN_CORE: &str =
    "give each a core of its own: name fewer CPUs or other ones, or use a machine with more cores";

/// A [`Compromise`] with its texts, as it stands in results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacementWarning {
    /// What it is.
    #[serde(flatten)]
    pub compromise: Compromise,
    /// What it is, in a sentence.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

impl From<Compromise> for PlacementWarning {
    fn from(compromise: Compromise) -> Self {
        Self {
            message: compromise.message(),
            advice: compromise.advice(),
            compromise,
        }
    }
}
