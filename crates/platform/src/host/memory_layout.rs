//! What memory there is by the kernel's word: the size of the last level of cache, and the NUMA nodes with memory.

use super::cpu_set::CpuSet;
use super::error::HostError;
use super::system_files::SystemFiles;

/// Bytes of the last level of cache of a CPU; none if sysfs does not report it. A guest's may be that of its host.
pub fn last_level_cache(cpu: usize) -> Option<u64> {
    last_level_cache_of(&SystemFiles::of_this_machine(), cpu)
}

fn last_level_cache_of(files: &SystemFiles, cpu: usize) -> Option<u64> {
    let caches = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let levels = files.names(&caches).into_iter().filter_map(|name| {
        let level: u32 = files.number(&format!("{caches}/{name}/level"))?;
        let size = files.optional(&format!("{caches}/{name}/size"))?;
        let kibibytes: u64 = size.strip_suffix('K')?.parse().ok()?;
        Some((level, kibibytes << 10))
    });
    levels.max().map(|(_, size)| size)
}

/// Bytes of a cache line of a CPU; none if sysfs does not report it.
pub fn cache_line() -> Option<u64> {
    cache_line_of(&SystemFiles::of_this_machine())
}

fn cache_line_of(files: &SystemFiles) -> Option<u64> {
    let caches = "sys/devices/system/cpu/cpu0/cache";
    let lines = files
        .names(caches)
        .into_iter()
        .filter_map(|name| files.number(&format!("{caches}/{name}/coherency_line_size")));
    lines.max()
}

/// The NUMA nodes that have memory, also those without CPUs; node 0 where the kernel knows none.
///
/// # Errors
/// When the text in sysfs is not a list.
pub fn nodes_with_memory() -> Result<CpuSet, HostError> {
    let files = SystemFiles::of_this_machine();
    let nodes = files.cpu_list("sys/devices/system/node/has_memory")?;
    Ok(nodes.unwrap_or_else(|| CpuSet::from_iter([0])))
}

/// The NUMA nodes whose memory this process may use; none if the kernel does not report them.
///
/// # Errors
/// When the text in procfs is not a list.
pub fn nodes_allowed() -> Result<Option<CpuSet>, HostError> {
    allowed_of(&SystemFiles::of_this_machine())
}

fn allowed_of(files: &SystemFiles) -> Result<Option<CpuSet>, HostError> {
    let list = files.field("proc/self/status", "Mems_allowed_list", ':');
    list.map(|list| {
        list.parse().map_err(|error| {
            HostError::Malformed("/proc/self/status".into(), list, format!("{error}"))
        })
    })
    .transpose()
}

/// Bytes of a node's memory that are free; none if sysfs does not report it.
pub fn free_on_node(node: u32) -> Option<u64> {
    free_of(&SystemFiles::of_this_machine(), node)
}

fn free_of(files: &SystemFiles, node: u32) -> Option<u64> {
    let key = format!("Node {node} MemFree");
    files.kibibytes(&format!("sys/devices/system/node/node{node}/meminfo"), &key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    #[test]
    fn the_last_level_is_the_highest_that_tells_its_size() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(last_level_cache_of(&files, 0), None);
        for (index, level, size) in [(0, "1", "32K"), (1, "3", "32768K"), (2, "2", "1024K")] {
            let cache = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
            machine.file(&format!("{cache}/level"), level);
            machine.file(&format!("{cache}/size"), size);
        }
        assert_eq!(last_level_cache_of(&files, 0), Some(32 << 20));
    }

    #[test]
    fn a_node_tells_its_free_memory() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(free_of(&files, 2), None);
        let text = "Node 2 MemTotal:       24650000 kB\nNode 2 MemFree:         2048 kB";
        machine.file("sys/devices/system/node/node2/meminfo", text);
        assert_eq!(free_of(&files, 2), Some(2 << 20));
    }

    #[test]
    fn the_nodes_that_this_process_may_use_are_told() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(allowed_of(&files).unwrap(), None);
        machine.file(
            "proc/self/status",
            "Name:\tx\nMems_allowed:\t00000005\nMems_allowed_list:\t0,2",
        );
        assert_eq!(allowed_of(&files).unwrap(), Some("0,2".parse().unwrap()));
        machine.file("proc/self/status", "Mems_allowed_list:\tmany");
        assert!(allowed_of(&files).unwrap_err().to_string().contains("many"));
    }

    #[test]
    fn this_machine_has_a_node() {
        assert!(!nodes_with_memory().unwrap().is_empty());
    }
}
