//! The CPUs of the machine: cores, shared caches, packages, NUMA nodes, isolation, and which of them this process may
//! use.
//!
//! Left out: the sizes of caches, interconnects and interrupt affinities.

use super::cpu_set::CpuSet;
use super::error::HostError;
use super::pinning;
use super::system_files::SystemFiles;
use std::collections::{BTreeMap, BTreeSet};

/// One CPU that is online, as the kernel counts them: a hardware thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    pub id: usize,
    pub package: Option<usize>,
    pub numa_node: Option<usize>,
    /// The online CPUs of the same physical core, itself among them.
    pub siblings: CpuSet,
    /// Whether sysfs reports them; else it is taken to be alone on its core.
    pub reports_siblings: bool,
    /// The online CPUs of its cluster, itself among them: cores that share a cache or an interconnect below the last
    /// level; `None` if sysfs does not report it, or reports all of the package as one.
    pub cluster: Option<CpuSet>,
    /// The online CPUs that share its last level of cache, itself among them; `None` if sysfs does not report it.
    pub last_level_cache: Option<CpuSet>,
    /// Whether the scheduler keeps other threads off it (`isolcpus`, or an isolated cpuset).
    pub isolated: bool,
    /// Whether the scheduler's tick stops on it while one thread runs (`nohz_full`).
    pub nohz_full: bool,
    pub allowed: bool,
    /// Whether it is one of the small cores of a hybrid processor.
    pub efficiency: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Those online, by ascending number; at least one, where it could be read.
    pub cpus: Vec<Cpu>,
    /// Those present and offline.
    pub offline: CpuSet,
}

impl Topology {
    /// Reads the topology of this machine.
    ///
    /// Call it before any thread is pinned: a pinned thread may use one CPU only, and finds only that one allowed.
    pub fn read() -> Result<Self, HostError> {
        let files = SystemFiles::of_this_machine();
        let isolated = files.cpu_list(ISOLATED)?.unwrap_or_default();
        let allowed = effective_allowed(
            &pinning::current_affinity()?,
            &pinning::reachable_cpus()?,
            &isolated,
        );
        Self::from_files(&files, &allowed)
    }

    /// Where nothing can be read of it.
    pub(super) fn unknown() -> Self {
        Self {
            cpus: Vec::new(),
            offline: CpuSet::new(),
        }
    }

    pub(crate) fn from_files(files: &SystemFiles, allowed: &CpuSet) -> Result<Self, HostError> {
        // An error with the path if it is missing: without this list there is no topology.
        files.text(ONLINE)?;
        let online = files.cpu_list(ONLINE)?.filter(|set| !set.is_empty());
        let online = online.ok_or(HostError::NoCpu)?;
        let present = files.cpu_list(&format!("{CPUS}/present"))?;
        let isolated = files.cpu_list(ISOLATED)?.unwrap_or_default();
        let nohz_full = files.cpu_list(&format!("{CPUS}/nohz_full"))?;
        let nohz_full = nohz_full.unwrap_or_default();
        let nodes = numa_nodes(files)?;
        let efficiency = efficiency_cpus(files, &online)?;

        let mut cpus = Vec::with_capacity(online.len());
        for id in online.iter() {
            let topology = format!("{CPUS}/cpu{id}/topology");
            // Named core_cpus_list since Linux 5.3; the older name is still beside it.
            let siblings = match files.cpu_list(&format!("{topology}/core_cpus_list"))? {
                None => files.cpu_list(&format!("{topology}/thread_siblings_list"))?,
                found => found,
            };
            let with_itself = |cpus: CpuSet| -> CpuSet {
                let online = cpus.iter().filter(|cpu| online.contains(*cpu));
                online.chain([id]).collect()
            };
            // Since Linux 5.16.
            let cluster = files.cpu_list(&format!("{topology}/cluster_cpus_list"))?;
            let node = nodes.iter().find(|(_, cpus)| cpus.contains(id));
            cpus.push(Cpu {
                id,
                package: files.number(&format!("{topology}/physical_package_id")),
                numa_node: node.map(|(node, _)| *node),
                reports_siblings: siblings.is_some(),
                siblings: with_itself(siblings.unwrap_or_default()),
                cluster: cluster.map(with_itself),
                last_level_cache: last_level_cache(files, id)?.map(with_itself),
                isolated: isolated.contains(id),
                nohz_full: nohz_full.contains(id),
                allowed: allowed.contains(id),
                efficiency: efficiency.contains(id),
            });
        }
        let mut in_package = BTreeMap::<Option<usize>, usize>::new();
        for cpu in &cpus {
            *in_package.entry(cpu.package).or_default() += 1;
        }
        for cpu in &mut cpus {
            let is_part = |cluster: &CpuSet| cluster.len() < in_package[&cpu.package];
            cpu.cluster = cpu.cluster.take().filter(is_part);
        }
        Ok(Self {
            cpus,
            offline: present.unwrap_or_default().difference(&online),
        })
    }

    /// The CPU of that number, if it is online.
    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        let index = self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok()?;
        self.cpus.get(index)
    }

    pub fn select(&self, predicate: impl Fn(&Cpu) -> bool) -> CpuSet {
        let cpus = self.cpus.iter().filter(|cpu| predicate(cpu));
        cpus.map(|cpu| cpu.id).collect()
    }

    pub fn allowed(&self) -> CpuSet {
        self.select(|cpu| cpu.allowed)
    }

    /// The physical cores of which this process may use a CPU, each as the set of its CPUs.
    pub fn allowed_cores(&self) -> BTreeSet<CpuSet> {
        let allowed = self.cpus.iter().filter(|cpu| cpu.allowed);
        allowed.map(|cpu| cpu.siblings.clone()).collect()
    }

    /// The number of physical cores of which this process may use a CPU, and which have one of these.
    pub fn allowed_cores_with(&self, cpus: &CpuSet) -> usize {
        let cores = self.allowed_cores();
        cores.iter().filter(|core| !core.is_disjoint(cpus)).count()
    }

    /// All physical cores with a CPU online, each as the set of its CPUs.
    pub fn cores(&self) -> BTreeSet<CpuSet> {
        self.cpus.iter().map(|cpu| cpu.siblings.clone()).collect()
    }

    /// Whether a core runs more than one thread at a time.
    pub fn has_smt(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.siblings.len() > 1)
    }

    /// The number of packages, if sysfs reports them.
    pub fn packages(&self) -> Option<usize> {
        let packages: Option<BTreeSet<usize>> = self.cpus.iter().map(|cpu| cpu.package).collect();
        packages.map(|packages| packages.len())
    }

    /// The NUMA nodes that have CPUs online.
    pub fn numa_nodes(&self) -> BTreeSet<usize> {
        self.cpus.iter().filter_map(|cpu| cpu.numa_node).collect()
    }
}

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
const ONLINE: &str = "sys/devices/system/cpu/online";
const ISOLATED: &str = "sys/devices/system/cpu/isolated";

/// The CPUs a process may be placed on.
///
/// With `isolcpus`, processes start with an affinity that leaves the isolated CPUs out, although they may be pinned
/// there, which is what isolation is for. So an affinity that is just this default means all reachable CPUs; any other
/// one was chosen by somebody (taskset, numactl) and is kept to.
fn effective_allowed(affinity: &CpuSet, reachable: &CpuSet, isolated: &CpuSet) -> CpuSet {
    if *affinity == reachable.difference(isolated) {
        reachable.clone()
    } else {
        affinity.clone()
    }
}

fn numa_nodes(files: &SystemFiles) -> Result<Vec<(usize, CpuSet)>, HostError> {
    let Some(nodes) = files.cpu_list(&format!("{NODES}/online"))? else {
        return Ok(Vec::new());
    };
    let cpus_of = |node| {
        let cpus = files.cpu_list(&format!("{NODES}/node{node}/cpulist"))?;
        Ok((node, cpus.unwrap_or_default()))
    };
    nodes.iter().map(cpus_of).collect()
}

/// The CPUs that share the last level of cache with a CPU (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
fn last_level_cache(files: &SystemFiles, id: usize) -> Result<Option<CpuSet>, HostError> {
    let mut last: Option<(u32, CpuSet)> = None;
    for index in 0.. {
        let cache = format!("{CPUS}/cpu{id}/cache/index{index}");
        let Some(level) = files.number::<u32>(&format!("{cache}/level")) else {
            break;
        };
        if last.as_ref().is_none_or(|(highest, _)| level > *highest)
            && let Some(cpus) = files.cpu_list(&format!("{cache}/shared_cpu_list"))?
        {
            last = Some((level, cpus));
        }
    }
    Ok(last.map(|(_, cpus)| cpus))
}

/// The small cores of a hybrid processor: what the PMU driver `cpu_atom` names, else those with well below the largest
/// capacity (the favoured cores of one kind differ by a few per cent only).
fn efficiency_cpus(files: &SystemFiles, online: &CpuSet) -> Result<CpuSet, HostError> {
    if let Some(atom) = files.cpu_list("sys/devices/cpu_atom/cpus")? {
        return Ok(atom);
    }
    let capacity_of = |id| {
        let capacity: u32 = files.number(&format!("{CPUS}/cpu{id}/cpu_capacity"))?;
        Some((id, u64::from(capacity)))
    };
    let capacities: Vec<(usize, u64)> = online.iter().filter_map(capacity_of).collect();
    let largest = capacities.iter().map(|(_, capacity)| *capacity).max();
    let is_small = |capacity: u64| capacity * 4 < largest.unwrap_or(0) * 3;
    let small = capacities
        .iter()
        .filter(|(_, capacity)| is_small(*capacity));
    Ok(small.map(|(id, _)| *id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Refused as _;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn two_sockets_with_smt() {
        let topology = Machine::new(2, 4, 2).topology();
        assert_eq!(topology.cpus.len(), 16);
        assert_eq!(topology.cores().len(), 8);
        assert_eq!(topology.packages(), Some(2));
        assert_eq!(topology.numa_nodes(), BTreeSet::from([0, 1]));
        assert!(topology.has_smt());
        let cpu = topology.cpu(13).unwrap();
        assert_eq!((cpu.package, cpu.numa_node), (Some(1), Some(1)));
        assert_eq!(cpu.siblings, set("5,13"));
        let topology = Machine::new(1, 1, 1).topology();
        assert!(topology.cpus.len() == 1 && !topology.has_smt());
    }

    #[test]
    fn isolated_and_tickless_cpus() {
        let machine = Machine::new(1, 4, 1);
        machine
            .isolate("2-3")
            .file("sys/devices/system/cpu/nohz_full", "3");
        let topology = machine.topology();
        assert_eq!(topology.select(|cpu| cpu.isolated), set("2-3"));
        assert_eq!(topology.select(|cpu| cpu.nohz_full), set("3"));
    }

    #[test]
    fn offline_cpus_are_no_siblings() {
        let machine = Machine::new(1, 2, 2);
        machine.file("sys/devices/system/cpu/online", "0-1,3");
        let topology = machine.topology();
        assert_eq!(topology.offline, set("2"));
        assert!(topology.cpu(2).is_none());
        assert_eq!(topology.cpu(0).unwrap().siblings, set("0"));
        assert_eq!(topology.cpu(1).unwrap().siblings, set("1,3"));
    }

    #[test]
    fn a_hybrid_processor_by_its_pmu_or_by_capacity() {
        let machine = Machine::new(1, 6, 1);
        machine.file("sys/devices/cpu_atom/cpus", "4-5");
        assert_eq!(machine.topology().select(|cpu| cpu.efficiency), set("4-5"));

        let machine = Machine::new(1, 4, 1);
        for (cpu, capacity) in [(0, "446"), (1, "446"), (2, "1009"), (3, "1024")] {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
            machine.file(&file, capacity);
        }
        assert_eq!(machine.topology().select(|cpu| cpu.efficiency), set("0-1"));
    }

    #[test]
    fn the_last_level_of_cache_is_the_highest() {
        let machine = Machine::new(1, 4, 1);
        machine
            .cache(0, 0, 1, "0")
            .cache(0, 1, 3, "0-1,9")
            .cache(0, 2, 2, "0");
        let topology = machine.topology();
        assert_eq!(topology.cpu(0).unwrap().last_level_cache, Some(set("0-1")));
        assert_eq!(topology.cpu(1).unwrap().last_level_cache, None);
    }

    #[test]
    fn older_kernels_name_the_siblings_otherwise() {
        let machine = Machine::new(1, 2, 1);
        let folder = "sys/devices/system/cpu/cpu0/topology";
        machine.without(&format!("{folder}/core_cpus_list"));
        machine.file(&format!("{folder}/thread_siblings_list"), "0-1");
        assert_eq!(machine.topology().cpu(0).unwrap().siblings, set("0-1"));
    }

    #[test]
    fn what_sysfs_does_not_tell_is_unknown() {
        let machine = Machine::new(1, 2, 1);
        machine
            .without("sys/devices/system/node")
            .without("sys/devices/system/cpu/cpu0/topology")
            .without("sys/devices/system/cpu/isolated");
        let topology = machine.topology();
        let cpu = topology.cpu(0).unwrap();
        assert_eq!((cpu.package, cpu.numa_node), (None, None));
        assert!(!cpu.isolated && !cpu.reports_siblings && cpu.siblings == set("0"));
        assert!(topology.cpu(1).unwrap().reports_siblings);
        assert_eq!(topology.packages(), None);
    }

    #[test]
    fn no_list_of_cpus_is_an_error_with_its_path() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        let read = || Topology::from_files(&files, &set("0"));
        machine.file(ONLINE, "many");
        read().refused(&["cpu/online", "many"]);
        machine.without(ONLINE);
        read().refused(&["cpu/online"]);
    }

    #[test]
    fn the_default_affinity_does_not_keep_us_off_isolated_cpus() {
        for (affinity, isolated, allowed) in [
            ("0-5", "6-7", "0-7"),
            ("0-7", "", "0-7"),
            ("0-3", "6-7", "0-3"),
            ("6", "6-7", "6"),
        ] {
            let found = effective_allowed(&set(affinity), &set("0-7"), &set(isolated));
            assert_eq!(found, set(allowed), "{affinity}");
        }
    }

    #[test]
    fn this_machine_agrees_with_the_kernel() {
        let topology = Topology::read().unwrap();
        let here = pinning::current_cpu().unwrap();
        assert!(topology.cpu(here).unwrap().allowed);
        for cpu in &topology.cpus {
            for sibling in cpu.siblings.iter() {
                assert_eq!(topology.cpu(sibling).unwrap().siblings, cpu.siblings);
            }
        }
    }
}
