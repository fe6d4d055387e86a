//! Pairs of CPUs by what lies between them: a core, a cluster, a cache, nothing but the processor, or two sockets.
//!
//! Left out: interconnects within a processor that sysfs knows nothing of.

use super::cpu_set::CpuSet;
use super::topology::{Cpu, Topology};
use crate::named::names;
use serde::Serialize;
use std::collections::BTreeMap;

names! {
    /// What two CPUs have in common, from the most to the least.
    CoreRelation {
        SmtSiblings = "smt-siblings",
        /// Two cores of a cluster, which is a part of those below one last level of cache.
        SameCluster = "same-cluster",
        /// Two cores below one last level of cache.
        SameCache = "same-cache",
        /// Two cores of a package, of whose caches sysfs reports nothing.
        OtherCore = "other-core",
        /// Two cores of a package, each with its own last level of cache.
        OtherCache = "other-cache",
        /// The same on two NUMA nodes.
        OtherNode = "other-node",
        OtherSocket = "other-socket",
    }
}

impl CoreRelation {
    /// The relation of two CPUs; `None` for one and the same, and where sysfs does not report it.
    pub fn between(first: &Cpu, second: &Cpu) -> Option<Self> {
        if first.id == second.id {
            return None;
        }
        if first.siblings.contains(second.id) {
            return Some(Self::SmtSiblings);
        }
        let nodes = first.numa_node.zip(second.numa_node);
        let is_other_node = nodes.is_some_and(|(one, other)| one != other);
        let cache = first.last_level_cache.as_ref();
        if let Some(below) = cache.filter(|cpus| cpus.contains(second.id)) {
            // Where a processor is divided into nodes (sub-NUMA clustering), the kernel still reports one cache.
            if is_other_node {
                return Some(Self::OtherNode);
            }
            // Kernels report a core, or all of a cache, as a cluster where there is none.
            let is_part = |cluster: &&CpuSet| cluster.len() < below.len();
            let cluster = first.cluster.as_ref().filter(is_part);
            return Some(match cluster.is_some_and(|cpus| cpus.contains(second.id)) {
                true => Self::SameCluster,
                false => Self::SameCache,
            });
        }
        // Some kernels report clusters and no caches.
        let cluster = first
            .cluster
            .as_ref()
            .filter(|_| cache.is_none() && !is_other_node);
        if cluster.is_some_and(|cpus| cpus.contains(second.id)) {
            return Some(Self::SameCluster);
        }
        match (first.package, second.package) {
            (Some(one), Some(other)) if one != other => Some(Self::OtherSocket),
            (Some(_), Some(_)) if is_other_node => Some(Self::OtherNode),
            (Some(_), Some(_)) if cache.is_some() => Some(Self::OtherCache),
            (Some(_), Some(_)) => {
                let is_reported = first.reports_siblings && second.reports_siblings;
                is_reported.then_some(Self::OtherCore)
            }
            _ => None,
        }
    }
}

/// Two CPUs of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CorePair {
    pub relation: CoreRelation,
    pub first: usize,
    /// The other one, with the higher number.
    pub second: usize,
}

/// For each relation that two CPUs of this process have, the pair that suits a measurement best: isolated, big cores,
/// not the core of CPU 0, the lowest numbers. The closest relation comes first.
pub fn core_pairs(topology: &Topology) -> Vec<CorePair> {
    let allowed: Vec<&Cpu> = topology.cpus.iter().filter(|cpu| cpu.allowed).collect();
    let cost =
        |cpu: &Cpu| [!cpu.isolated, cpu.efficiency, cpu.siblings.contains(0)].map(usize::from);
    let mut best = BTreeMap::new();
    for (index, first) in allowed.iter().enumerate() {
        for second in &allowed[index + 1..] {
            let Some(relation) = CoreRelation::between(first, second) else {
                continue;
            };
            let (one, other) = (cost(first), cost(second));
            let costs = [0, 1, 2].map(|place| one[place] + other[place]);
            let found = (costs, first.id, second.id);
            let known = best.entry(relation).or_insert(found);
            *known = found.min(*known);
        }
    }
    let pair = |(relation, (_, first, second))| CorePair {
        relation,
        first,
        second,
    };
    best.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    /// The pairs of a machine, in words: `same-cache 2 3`.
    #[track_caller]
    fn check(topology: &Topology, expected: &str) {
        let pairs = core_pairs(topology).into_iter();
        let told = pairs.map(|it| format!("{} {} {}", it.relation.name(), it.first, it.second));
        assert_eq!(told.collect::<Vec<_>>().join(", "), expected);
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
        let all = "smt-siblings 1 9, same-cache 2 3, other-cache 1 2, other-socket 1 4";
        check(&large().topology(), all);
    }

    #[test]
    fn clusters_are_parts_of_a_cache_and_nodes_parts_of_a_socket() {
        let machine = Machine::new(1, 8, 1);
        for cpu in 0..8 {
            let (pair, half) = (cpu / 2 * 2, cpu / 4 * 4);
            machine.cache(cpu, 0, 3, &format!("{half}-{}", half + 3));
            let cluster = format!("sys/devices/system/cpu/cpu{cpu}/topology/cluster_cpus_list");
            machine.file(&cluster, &format!("{pair}-{}", pair + 1));
        }
        check(
            &machine.topology(),
            "same-cluster 2 3, same-cache 1 2, other-cache 1 4",
        );
        machine
            .file("sys/devices/system/node/online", "0-1")
            .file("sys/devices/system/node/node0/cpulist", "0-3")
            .file("sys/devices/system/node/node1/cpulist", "4-7");
        check(
            &machine.topology(),
            "same-cluster 2 3, same-cache 1 2, other-node 1 4",
        );
        // All of a cache is no cluster.
        for cpu in 0..8 {
            let cluster = format!("sys/devices/system/cpu/cpu{cpu}/topology/cluster_cpus_list");
            let half = cpu / 4 * 4;
            machine.file(&cluster, &format!("{half}-{}", half + 3));
        }
        check(&machine.topology(), "same-cache 1 2, other-node 1 4");
    }

    #[test]
    fn clusters_are_parts_of_a_package_where_no_cache_is_reported() {
        let machine = Machine::new(2, 4, 1);
        let clusters = |size: usize| {
            for cpu in 0..8 {
                let first = cpu / size * size;
                let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/cluster_cpus_list");
                machine.file(&file, &format!("{first}-{}", first + size - 1));
            }
        };
        clusters(2);
        check(
            &machine.topology(),
            "same-cluster 2 3, other-core 1 2, other-socket 1 4",
        );
        // A core, and all of a package, are none.
        for size in [1, 4] {
            clusters(size);
            check(&machine.topology(), "other-core 1 2, other-socket 1 4");
        }
    }

    #[test]
    fn nodes_that_are_parts_of_a_cache_are_other_nodes() {
        let machine = Machine::new(1, 8, 1);
        for cpu in 0..8 {
            machine.cache(cpu, 0, 3, "0-7");
        }
        check(&machine.topology(), "same-cache 1 2");
        machine
            .file("sys/devices/system/node/online", "0-1")
            .file("sys/devices/system/node/node0/cpulist", "0-3")
            .file("sys/devices/system/node/node1/cpulist", "4-7");
        check(&machine.topology(), "same-cache 1 2, other-node 1 4");
    }

    #[test]
    fn isolated_cores_are_taken_first_and_foreign_ones_never() {
        let machine = large();
        machine.isolate("6-7");
        let all = "smt-siblings 6 14, same-cache 6 7, other-cache 4 6, other-socket 1 6";
        check(&machine.topology(), all);
        check(&machine.topology_for("0,1"), "same-cache 0 1");
    }

    #[test]
    fn one_cpu_makes_no_pair() {
        check(&Machine::new(1, 1, 1).topology(), "");
    }

    #[test]
    fn without_caches_in_sysfs_threads_cores_and_sockets_are_known() {
        let machine = Machine::new(2, 2, 2);
        check(
            &machine.topology(),
            "smt-siblings 1 5, other-core 2 3, other-socket 1 2",
        );
        // Two CPUs whose siblings are not reported may share a core.
        for cpu in 0..8 {
            machine.without(&format!(
                "sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"
            ));
        }
        check(&machine.topology(), "other-socket 1 2");
    }

    #[test]
    fn small_cores_come_last() {
        let machine = Machine::new(1, 6, 1);
        machine.file("sys/devices/cpu_atom/cpus", "1-2");
        for cpu in 0..6 {
            machine.cache(cpu, 0, 3, "0-5");
        }
        check(&machine.topology(), "same-cache 3 4");
    }
}
