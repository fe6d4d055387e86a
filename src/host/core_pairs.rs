//! Pairs of CPUs by what lies between them: a core, a cache, nothing but the processor, or two sockets.
//!
//! Left out: interconnects within a processor that sysfs knows nothing of, and NUMA nodes within a package.

use super::topology::{Cpu, Topology};
use serde::Serialize;

/// What two CPUs have in common, from the most to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreRelation {
    /// Hardware threads of one core.
    SmtSiblings,
    /// Two cores below one last level of cache.
    SameCache,
    /// Two cores of a package, each with its own last level of cache.
    OtherCache,
    /// Two cores in two packages.
    OtherSocket,
}

impl CoreRelation {
    /// All of them, the closest first.
    pub const ALL: [Self; 4] = [
        Self::SmtSiblings,
        Self::SameCache,
        Self::OtherCache,
        Self::OtherSocket,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SmtSiblings => "smt-siblings",
            Self::SameCache => "same-cache",
            Self::OtherCache => "other-cache",
            Self::OtherSocket => "other-socket",
        }
    }

    /// The relation of two CPUs; `None` for one and the same, and where sysfs does not tell.
    pub fn between(first: &Cpu, second: &Cpu) -> Option<Self> {
        if first.id == second.id {
            return None;
        }
        if first.siblings.contains(second.id) {
            return Some(Self::SmtSiblings);
        }
        let cache = first.last_level_cache.as_ref();
        if cache.is_some_and(|cpus| cpus.contains(second.id)) {
            return Some(Self::SameCache);
        }
        match (first.package, second.package) {
            (Some(one), Some(other)) if one != other => Some(Self::OtherSocket),
            (Some(_), Some(_)) => cache.map(|_| Self::OtherCache),
            _ => None,
        }
    }
}

/// Two CPUs of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CorePair {
    /// What they have in common.
    pub relation: CoreRelation,
    /// One of them.
    pub first: usize,
    /// The other one, with the higher number.
    pub second: usize,
}

/// For each relation that two CPUs of this process have, the pair that suits a measurement best: isolated, big cores, not
/// the core of CPU 0, the lowest numbers. The closest relation comes first.
pub fn core_pairs(topology: &Topology) -> Vec<CorePair> {
    let allowed: Vec<&Cpu> = topology.cpus.iter().filter(|cpu| cpu.allowed).collect();
    let cost = |cpu: &Cpu| {
        [
            usize::from(!cpu.isolated),
            usize::from(cpu.efficiency),
            usize::from(cpu.siblings.contains(0)),
        ]
    };
    let mut best: Vec<(CorePair, [usize; 3])> = Vec::new();
    for (index, first) in allowed.iter().enumerate() {
        for second in &allowed[index + 1..] {
            let Some(relation) = CoreRelation::between(first, second) else {
                continue;
            };
            let pair = CorePair {
                relation,
                first: first.id,
                second: second.id,
            };
            let (one, other) = (cost(first), cost(second));
            let cost = std::array::from_fn(|place| one[place] + other[place]);
            match best
                .iter_mut()
                .find(|(known, _)| known.relation == relation)
            {
                None => best.push((pair, cost)),
                // An equal one has higher numbers.
                Some(known) if cost < known.1 => *known = (pair, cost),
                Some(_) => {}
            }
        }
    }
    best.sort_by_key(|(pair, _)| pair.relation);
    best.into_iter().map(|(pair, _)| pair).collect()
}

#[cfg(test)]
mod tests {
    use super::CoreRelation::*;
    use super::*;
    use crate::host::made_up::Machine;

    fn found(topology: &Topology) -> Vec<(CoreRelation, usize, usize)> {
        let pairs = core_pairs(topology);
        pairs
            .iter()
            .map(|pair| (pair.relation, pair.first, pair.second))
            .collect()
    }

    /// Two packages of four cores with two threads; a last level of cache for each two cores.
    fn large() -> Machine {
        let machine = Machine::new(2, 4, 2);
        for cpu in 0..16 {
            let core = cpu % 8;
            let (low, high) = (core / 2 * 2, core / 2 * 2 + 1);
            machine
                .cache(cpu, 0, 1, &format!("{core},{}", core + 8))
                .cache(cpu, 1, 3, &format!("{low}-{high},{}-{}", low + 8, high + 8));
        }
        machine
    }

    #[test]
    fn a_machine_with_all_kinds() {
        assert_eq!(
            found(&large().topology()),
            [
                (SmtSiblings, 1, 9),
                (SameCache, 2, 3),
                (OtherCache, 1, 2),
                (OtherSocket, 1, 4)
            ]
        );
    }

    #[test]
    fn isolated_cores_are_taken_first_and_foreign_ones_never() {
        let machine = large();
        machine.isolate("6-7");
        assert_eq!(
            found(&machine.topology()),
            [
                (SmtSiblings, 6, 14),
                (SameCache, 6, 7),
                (OtherCache, 4, 6),
                (OtherSocket, 1, 6)
            ]
        );
        assert_eq!(found(&machine.topology_for("0,1")), [(SameCache, 0, 1)]);
    }

    #[test]
    fn one_cpu_makes_no_pair() {
        assert_eq!(found(&Machine::new(1, 1, 1).topology()), []);
    }

    #[test]
    fn without_caches_in_sysfs_only_threads_and_sockets_are_known() {
        assert_eq!(
            found(&Machine::new(2, 2, 2).topology()),
            [(SmtSiblings, 1, 5), (OtherSocket, 1, 2)]
        );
    }

    #[test]
    fn small_cores_come_last() {
        let machine = Machine::new(1, 6, 1);
        machine.file("sys/devices/cpu_atom/cpus", "1-2");
        for cpu in 0..6 {
            machine.cache(cpu, 0, 3, "0-5");
        }
        assert_eq!(found(&machine.topology()), [(SameCache, 3, 4)]);
    }
}
