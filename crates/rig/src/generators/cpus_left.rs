//! Which CPUs generators have beside what is measured: none that a measuring thread has, and the same ones at all points
//! of a run, so that these differ in the load only.
//!
//! Of the CPUs that this process may use and that are left, it is those on other cores than the measuring threads, if
//! there are any; of these the ones on the NUMA node of the messages' memory, if there are any and it is known.

use std::collections::BTreeSet;

use super::accesses::{InstructionSet, LINE};
use super::run_generators::MemoryLoad;
use crate::host::memory_layout;
use crate::host::{CpuSet, Topology};

/// The CPUs that the points of a run leave.
#[derive(Debug)]
pub struct CpusLeft<'a> {
    topology: &'a Topology,
    left: CpuSet,
    measuring: CpuSet,
    nodes: BTreeSet<Option<usize>>,
}

impl<'a> CpusLeft<'a> {
    /// All that this process may use.
    pub fn new(topology: &'a Topology) -> Self {
        CpusLeft {
            topology,
            left: topology.allowed(),
            measuring: CpuSet::new(),
            nodes: BTreeSet::new(),
        }
    }

    /// Keeps the CPUs of the measuring threads of a point free. `near`: a CPU on the node of the messages' memory.
    ///
    /// # Errors
    /// The reason in words where no CPU would be left; nothing is kept free then.
    pub fn keep_free(
        &mut self,
        load: MemoryLoad,
        measuring: &CpuSet,
        near: usize,
    ) -> Result<(), String> {
        let impossible = |why: &str| {
            Err(format!(
                "--memory-load {load} is impossible on this machine: {why}"
            ))
        };
        if InstructionSet::widest().is_none() {
            return impossible("generators of memory load run on x86-64 and aarch64 only");
        }
        if let Some(line) = memory_layout::cache_line().filter(|line| *line != LINE as u64) {
            return impossible(&format!(
                "a cache line of this processor has {line} bytes, and generators are made for {LINE}"
            ));
        }
        let allowed = self.topology.allowed();
        let left = self.left.difference(measuring);
        if allowed.difference(measuring).is_empty() {
            return impossible(&format!(
                "no CPU is left for a generator: this process may use CPU {allowed}, and threads that measure have all of \
                 them; allow it more CPUs, or use fewer measuring threads"
            ));
        }
        if left.is_empty() {
            return impossible(&format!(
                "CPU {}, which this point leaves, has threads that measure at other points, and all have the same \
                 generators: measure it in a separate run",
                allowed.difference(measuring)
            ));
        }
        self.left = left;
        self.measuring = self.measuring.iter().chain(measuring.iter()).collect();
        self.nodes
            .insert(self.topology.cpu(near).and_then(|cpu| cpu.numa_node));
        Ok(())
    }

    /// Those of the generators; none where no CPU was kept free.
    pub fn for_generators(&self) -> CpuSet {
        if self.measuring.is_empty() {
            return CpuSet::new();
        }
        let measuring = |id: usize| self.measuring.contains(id);
        let beside = |cpu: usize| {
            let cpu = self.topology.cpu(cpu);
            cpu.is_some_and(|cpu| cpu.siblings.iter().any(measuring))
        };
        let left = preferred(&self.left, |cpu| !beside(cpu));
        // With memory on several nodes none is better.
        let node = self.nodes.first().filter(|_| self.nodes.len() == 1);
        let Some(Some(node)) = node else { return left };
        let of_node = |cpu| self.topology.cpu(cpu).and_then(|cpu| cpu.numa_node) == Some(*node);
        preferred(&left, of_node)
    }
}

/// Those that are as wanted, if there are any; else all.
pub fn preferred(cpus: &CpuSet, is_wanted: impl Fn(usize) -> bool) -> CpuSet {
    let wanted: CpuSet = cpus.iter().filter(|&cpu| is_wanted(cpu)).collect();
    if wanted.is_empty() {
        cpus.clone()
    } else {
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Refused as _;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn half() -> MemoryLoad {
        MemoryLoad::of_percent(50).unwrap()
    }

    fn beside(topology: &Topology, points: &[&str]) -> CpuSet {
        let mut left = CpusLeft::new(topology);
        for measuring in points {
            let measuring = set(measuring);
            let near = measuring.iter().next_back().unwrap();
            left.keep_free(half(), &measuring, near).unwrap();
        }
        left.for_generators()
    }

    #[test]
    fn they_have_what_is_left_on_other_cores_and_near_the_memory() {
        let four = Machine::new(1, 4, 1).topology();
        assert_eq!(beside(&four, &["0-1"]), set("2-3"));
        assert_eq!(beside(&four, &["1-3"]), set("0"));
        // Two threads a core: CPUs 4 to 7 are the others of 0 to 3.
        let threads = Machine::new(1, 4, 2).topology();
        assert_eq!(beside(&threads, &["1-2"]), set("0,3-4,7"));
        let narrow = Machine::new(1, 2, 2).topology();
        assert_eq!(
            beside(&narrow, &["0-1"]),
            set("2-3"),
            "siblings are better than none"
        );
        // CPUs 4 to 7 are of the second node.
        let nodes = Machine::new(2, 4, 1).topology();
        assert_eq!(beside(&nodes, &["4-5"]), set("6-7"));
        assert_eq!(
            beside(&nodes, &["0-3"]),
            set("4-7"),
            "another node is better than none"
        );
        assert_eq!(
            beside(&nodes, &["0,5", "1-2"]),
            set("3-4,6-7"),
            "memory on both"
        );
        let affine = Machine::new(1, 4, 1).topology_for("1-3");
        assert_eq!(beside(&affine, &["1-2"]), set("3"));
    }

    #[test]
    fn all_points_of_a_run_have_the_same_ones() {
        let four = Machine::new(1, 4, 1).topology();
        assert_eq!(beside(&four, &["0-1", "0,2"]), set("3"));
        assert_eq!(beside(&four, &[]), set(""), "no point has a load");
    }

    #[test]
    fn where_none_is_left_the_reason_is_told() {
        let two = Machine::new(1, 2, 1).topology();
        let mut left = CpusLeft::new(&two);
        let told = [
            "--memory-load 50%",
            "no CPU is left",
            "CPU 0-1",
            "fewer measuring threads",
        ];
        left.keep_free(half(), &set("0-1"), 1).refused(&told);
        assert!(left.for_generators().is_empty());

        let three = Machine::new(1, 3, 1).topology();
        let mut left = CpusLeft::new(&three);
        left.keep_free(half(), &set("0-1"), 1).unwrap();
        let told = [
            "--memory-load 50%",
            "CPU 1",
            "other points",
            "a separate run",
        ];
        left.keep_free(half(), &set("0,2"), 2).refused(&told);
        assert_eq!(left.for_generators(), set("2"));
    }
}
