//! How much memory the control group of this process may still take.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes that the group may take at all.
    pub limit: u64,
    /// Bytes that it has not taken yet, or that the kernel takes back when they are needed: clean pages of files.
    pub free: u64,
    pub file: PathBuf,
}

/// The tightest limit of memory on the way from this process's control group to the root; `None` where there is none.
/// Version 2 and version 1 of control groups.
pub fn memory_limit() -> Option<MemoryLimit> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    memory_limit_in(Path::new("/sys/fs/cgroup"), &groups)
}

fn memory_limit_in(root: &Path, groups: &str) -> Option<MemoryLimit> {
    let candidates = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let path = path.trim_start_matches('/');
        let (top, files) = match controllers {
            "" => (root.to_path_buf(), &VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), &VERSION_1)
            }
            _ => return Vec::new(),
        };
        let folder = top.join(path);
        let within = folder.ancestors().take_while(|it| it.starts_with(&top));
        within.filter_map(|it| read(it, files)).collect::<Vec<_>>()
    });
    candidates.min_by_key(|found| found.free)
}

/// How a version of control groups names its files, and lines of `memory.stat`.
struct ControlGroupFiles {
    limit: &'static str,
    taken: &'static str,
    /// Pages of files, and those of them that must be written first.
    of_files: [&'static str; 2],
    unwritten: [&'static str; 2],
}

const VERSION_1: ControlGroupFiles = ControlGroupFiles {
    limit: "memory.limit_in_bytes",
    taken: "memory.usage_in_bytes",
    of_files: ["total_inactive_file", "total_active_file"],
    unwritten: ["total_dirty", "total_writeback"],
};

const VERSION_2: ControlGroupFiles = ControlGroupFiles {
    limit: "memory.max",
    taken: "memory.current",
    of_files: ["inactive_file", "active_file"],
    unwritten: ["file_dirty", "file_writeback"],
};

fn read(group: &Path, files: &ControlGroupFiles) -> Option<MemoryLimit> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let (limit, taken) = (number(files.limit)?, number(files.taken).unwrap_or(0));
    let counts = text("memory.stat").unwrap_or_default();
    let count = |name: &&str| {
        let mut values = counts
            .lines()
            .filter_map(|line| line.strip_prefix(*name)?.strip_prefix(' '));
        values.next()?.parse::<u64>().ok()
    };
    let sum = |names: &[&str; 2]| names.iter().filter_map(count).sum::<u64>();
    let reclaimable = sum(&files.of_files).saturating_sub(sum(&files.unwritten));
    // Version 1 writes "no limit" as the largest number of pages.
    (limit < 1 << 60).then(|| MemoryLimit {
        limit,
        free: limit.saturating_sub(taken.saturating_sub(reclaimable)),
        file: group.join(files.limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

    #[test]
    fn the_tightest_limit_on_the_way_to_the_root_counts() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "a/memory.max", "1000\n");
        put(root.path(), "a/memory.current", "900\n");
        put(root.path(), "a/b/memory.max", "500\n");
        put(root.path(), "a/b/memory.current", "100\n");
        put(root.path(), "a/b/c/memory.max", "max\n");
        let found = memory_limit_in(root.path(), "0::/a/b/c\n").unwrap();
        assert_eq!((found.limit, found.free), (1000, 100));
        assert!(found.file.ends_with("a/memory.max"));
        let other = memory_limit_in(root.path(), "0::/elsewhere\n");
        assert_eq!(other, None);
    }

    #[test]
    fn clean_pages_of_files_are_free() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "a/memory.max", "1000\n");
        put(root.path(), "a/memory.current", "990\n");
        let counts = "anon 90\nfile 900\nfile_dirty 40\nfile_writeback 10\ninactive_file 700\nactive_file 200\n";
        put(root.path(), "a/memory.stat", counts);
        assert_eq!(memory_limit_in(root.path(), "0::/a\n").unwrap().free, 860);
    }

    #[test]
    fn version_1_is_read_and_its_lack_of_a_limit_is_none() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "memory/x/memory.limit_in_bytes", "4096\n");
        put(root.path(), "memory/x/memory.usage_in_bytes", "96\n");
        let none = "9223372036854771712\n";
        put(root.path(), "memory/memory.limit_in_bytes", none);
        let groups = "5:cpu,cpuacct:/x\n4:memory:/x\n";
        assert_eq!(memory_limit_in(root.path(), groups).unwrap().free, 4000);
    }
}
