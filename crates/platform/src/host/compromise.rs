//! What a placement had to give up, in types and in words.

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
        instead: &'static str,
        #[serde(skip)]
        advice: &'static str,
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
            | Self::NoCoreLeft { role, .. } => *role == name,
            Self::SingleCpu { .. } | Self::SupervisorShares => false,
        }
    }

    /// What it is, and what to do about it, in a sentence each.
    fn in_words(&self) -> (String, String) {
        match self {
            Self::SingleCpu { cpu } => (
                format!("all threads share CPU {cpu}, the only one there is"),
                "latencies hold the scheduler's time slices, milliseconds each; use a machine with two cores or more"
                    .to_owned(),
            ),
            Self::SharedCpu { first, second, cpu } => (
                format!("{first} and {second} share CPU {cpu}"),
                format!(
                    "latencies hold the scheduler's time slices, and with --priority one of the two may never run; \
                     {OWN_CORE}"
                ),
            ),
            Self::SmtSiblings { first, first_cpu, second, second_cpu } => (
                format!("{first} (CPU {first_cpu}) and {second} (CPU {second_cpu}) share a physical core"),
                format!("each slows the other down; {OWN_CORE}"),
            ),
            Self::NumaRemote { role, option, cpu, cpu_node, device_node } => (
                format!("{role} runs on CPU {cpu} of NUMA node {cpu_node}, its device is on node {device_node}"),
                format!(
                    "each access to the device crosses the interconnect; name a CPU of node {device_node} by {option}"
                ),
            ),
            Self::EfficiencyCore { role, option, cpu } => (
                format!("{role} runs on CPU {cpu}, an efficiency core"),
                format!("it is slower; name a performance core by {option}"),
            ),
            Self::NoCoreLeft { role, instead, advice } => (
                format!("no core is left for a {role}: {instead}"),
                (*advice).to_owned(),
            ),
            Self::SupervisorShares => (
                "no CPU is left for the rest of the process, which runs on those of the measurement".to_owned(),
                "progress and connection handling may interrupt a measuring thread; one more core avoids it".to_owned(),
            ),
        }
    }
}

const OWN_CORE: &str =
    "give each a core of its own: name fewer CPUs or other ones, or use a machine with more cores";

/// A [`Compromise`] with its texts, as it stands in results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacementWarning {
    #[serde(flatten)]
    pub compromise: Compromise,
    pub message: String,
    pub advice: String,
}

impl From<Compromise> for PlacementWarning {
    fn from(compromise: Compromise) -> Self {
        let (message, advice) = compromise.in_words();
        Self {
            compromise,
            message,
            advice,
        }
    }
}

impl std::fmt::Display for PlacementWarning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.message, self.advice)
    }
}
