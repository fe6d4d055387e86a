//! How much memory the control group of this process may still take.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit of a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes that the group may take at all.
    pub limit: u64,
    /// Bytes that it has not taken yet.
    pub free: u64,
    /// The file that the limit stands in.
    pub file: PathBuf,
}

/// The tightest limit of memory on the way from this process's control group to the root; `None` where there is none. Version 2 and
/// version 1 of control groups.
pub fn memory_limit() -> Option<MemoryLimit> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    memory_limit_in(Path::new("/sys/fs/cgroup"), &groups)
}

fn memory_limit_in(root: &Path, groups: &str) -> Option<MemoryLimit> {
    let candidates = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let path = path.trim_start_matches('/');
        let (top, limit, taken) = match controllers {
            "" => (root.to_path_buf(), "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => (
                root.join("memory"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => return Vec::new(),
        };
        let folder = top.join(path);
        let within = folder.ancestors().take_while(|it| it.starts_with(&top));
        within
            .filter_map(|it| read(&it.join(limit), &it.join(taken)))
            .collect::<Vec<_>>()
    });
    candidates.min_by_key(|found| found.free)
}

fn read(limit: &Path, taken: &Path) -> Option<MemoryLimit> {
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let (most, used) = (number(limit)?, number(taken).unwrap_or(0));
    // Version 1 says "no limit" by the largest number of pages.
    (most < 1 << 60).then(|| MemoryLimit {
        limit: most,
        free: most.saturating_sub(used),
        file: limit.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

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
    fn version_1_is_read_and_its_lack_of_a_limit_is_none() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "memory/x/memory.limit_in_bytes", "4096\n");
        put(root.path(), "memory/x/memory.usage_in_bytes", "96\n");
        put(
            root.path(),
            "memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        let groups = "5:cpu,cpuacct:/x\n4:memory:/x\n";
        assert_eq!(memory_limit_in(root.path(), groups).unwrap().free, 4000);
    }
}
