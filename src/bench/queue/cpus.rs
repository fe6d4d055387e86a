//! Which CPUs the ends run on.

use serde::Serialize;

use super::error::RunError;
use super::plan::LeftOut;
use crate::host::core_pairs::core_pairs;
use crate::host::{CoreRelation, Placement, Topology};

/// The CPUs of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Cpus {
    /// The sender's.
    pub sender: usize,
    /// The receiver's.
    pub receiver: usize,
    /// What lies between them, if it is known.
    pub cores: Option<CoreRelation>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuChoice {
    /// One pair; what is not named is chosen.
    Pair {
        /// The sender's.
        sender: Option<usize>,
        /// The receiver's.
        receiver: Option<usize>,
    },
    /// A pair of cores of each relation that there is.
    EachRelation,
}

impl CpuChoice {
    /// The pairs, and the relations that this machine does not have.
    ///
    /// # Errors
    /// When a CPU that was named cannot be had, or no pair is known.
    pub fn pairs(self, topology: &Topology) -> Result<(Vec<Cpus>, Vec<LeftOut>), RunError> {
        match self {
            CpuChoice::Pair { sender, receiver } => {
                let ([sender, receiver], _) = Placement::of_pair(topology, sender, receiver)?;
                let both = topology.cpu(sender).zip(topology.cpu(receiver));
                let cores = both.and_then(|(first, second)| CoreRelation::between(first, second));
                let cpus = Cpus {
                    sender,
                    receiver,
                    cores,
                };
                Ok((vec![cpus], Vec::new()))
            }
            CpuChoice::EachRelation => each_relation(topology),
        }
    }
}

impl Cpus {
    /// Where all threads of a run go.
    ///
    /// # Errors
    /// When one of the CPUs cannot be had.
    pub(super) fn placement(&self, topology: &Topology) -> Result<Placement, RunError> {
        let placed = Placement::of_pair(topology, Some(self.sender), Some(self.receiver))?;
        Ok(placed.1)
    }
}

fn each_relation(topology: &Topology) -> Result<(Vec<Cpus>, Vec<LeftOut>), RunError> {
    let found = core_pairs(topology);
    if found.is_empty() {
        return Err(RunError::NoPair);
    }
    let is_absent = |relation: &CoreRelation| found.iter().all(|pair| pair.relation != *relation);
    let absent = CoreRelation::ALL.into_iter().filter(is_absent);
    let left_out = absent.map(|relation| LeftOut {
        queue: None,
        capacity: None,
        cores: Some(relation),
        reason: format!(
            "--topology: this machine has no pair of cores of the kind {} that this process may use",
            relation.name()
        ),
    });
    let cpus = found.iter().map(|pair| Cpus {
        sender: pair.first,
        receiver: pair.second,
        cores: Some(pair.relation),
    });
    Ok((cpus.collect(), left_out.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    #[test]
    fn a_topology_is_a_pair_of_each_kind_and_what_there_is_not_is_left_out() {
        use crate::host::CoreRelation::*;
        let machine = Machine::new(1, 2, 2);
        for cpu in 0..4 {
            machine.cache(cpu, 0, 3, "0-3");
        }
        let each = CpuChoice::EachRelation;
        let (cpus, absent) = each.pairs(&machine.topology()).unwrap();
        let kinds: Vec<_> = cpus.iter().map(|cpus| cpus.cores).collect();
        assert_eq!(kinds, [Some(SmtSiblings), Some(SameCache)]);
        assert!(cpus.iter().all(|cpus| cpus.sender != cpus.receiver));
        let missing: Vec<_> = absent.iter().map(|left_out| left_out.cores).collect();
        assert_eq!(missing, [Some(OtherCache), Some(OtherSocket)]);
        assert!(absent[1].reason.contains("other-socket"));

        let one = Machine::new(1, 1, 1);
        let error = each.pairs(&one.topology()).unwrap_err();
        assert!(error.to_string().contains("--topology"), "{error}");
    }
}
