//! Which CPUs the ends run on.

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::left_out::left_out;
use crate::host::core_pairs::core_pairs;
use crate::host::{CoreRelation, Placement, Topology};
use crate::results::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpus {
    pub sender: usize,
    pub receiver: usize,
    /// What lies between them, if it is known.
    pub cores: Option<CoreRelation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuChoice {
    /// One pair; what is not named is chosen.
    Pair {
        sender: Option<usize>,
        receiver: Option<usize>,
    },
    /// A pair of cores of each relation that there is.
    EachRelation,
}

impl CpuChoice {
    /// The pairs, and the relations that this machine does not have.
    pub fn pairs(self, topology: &Topology) -> Result<(Vec<Cpus>, Vec<Record>), RunError> {
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
    pub(super) fn placement(&self, topology: &Topology) -> Result<Placement, RunError> {
        let placed = Placement::of_pair(topology, Some(self.sender), Some(self.receiver))?;
        Ok(placed.1)
    }
}

fn each_relation(topology: &Topology) -> Result<(Vec<Cpus>, Vec<Record>), RunError> {
    let found = core_pairs(topology);
    if found.is_empty() {
        return Err(RunError::NoPair);
    }
    let is_absent = |relation: &CoreRelation| found.iter().all(|pair| pair.relation != *relation);
    let absent = CoreRelation::ALL.iter().copied().filter(is_absent);
    let left_out = absent.map(|relation| {
        let reason = format!(
            "--topology: this machine has no pair of cores of the kind {} that this process may use",
            relation.name()
        );
        left_out(None, None, Some(relation), &reason)
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
    use crate::results::schema::{REASON, queue};
    use crate::testing::{Has as _, Refused as _};

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
        let missing = absent.iter().map(|row| row.text(&queue::CORES));
        let none = [SameCluster, OtherCore, OtherCache, OtherNode, OtherSocket];
        assert!(missing.eq(none.map(CoreRelation::name)));
        absent[4].text(&REASON).has(&["other-socket"]);

        let one = Machine::new(1, 1, 1);
        each.pairs(&one.topology()).refused(&["--topology"]);
    }
}
