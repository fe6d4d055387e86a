//! Made-up machines for tests: trees of procfs and sysfs files in a temporary folder.

use super::cpu_set::CpuSet;
use super::system_files::SystemFiles;
use super::topology::Topology;
use std::path::Path;
use tempfile::TempDir;

/// A tree of files that stands for a machine.
pub struct Machine {
    folder: TempDir,
}

impl Machine {
    /// A machine with `packages` packages, a NUMA node each, of `cores` cores with `threads` threads; the first threads
    /// of all cores come first in the numbering, as on most x86 servers.
    pub fn new(packages: usize, cores: usize, threads: usize) -> Self {
        let machine = Self {
            folder: TempDir::new().unwrap(),
        };
        let all = packages * cores;
        let first = |number: usize| (0..number).collect::<CpuSet>().to_string();
        let everything = first(all * threads);
        machine
            .file("sys/devices/system/cpu/online", &everything)
            .file("sys/devices/system/cpu/present", &everything)
            .file("sys/devices/system/cpu/isolated", "")
            .file("sys/devices/system/cpu/nohz_full", " (null)")
            .file("sys/devices/system/node/online", &first(packages));
        for package in 0..packages {
            let cpus: Vec<String> = (0..threads)
                .map(|thread| {
                    let first = thread * all + package * cores;
                    format!("{first}-{}", first + cores - 1)
                })
                .collect();
            let file = format!("sys/devices/system/node/node{package}/cpulist");
            machine.file(&file, &cpus.join(","));
        }
        for cpu in 0..all * threads {
            let core = cpu % all;
            let siblings: Vec<String> = (0..threads)
                .map(|thread| (core + thread * all).to_string())
                .collect();
            let package = (core / cores).to_string();
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            machine
                .file(&format!("{topology}/physical_package_id"), &package)
                .file(&format!("{topology}/core_cpus_list"), &siblings.join(","));
        }
        machine
    }

    /// Writes a file, replacing what was there.
    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// Removes a file or folder that must be there.
    pub fn without(&self, path: &str) -> &Self {
        let path = self.root().join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        self
    }

    /// Gives a CPU a cache, its sysfs entry number `index`, of a level that it shares with `cpus`.
    pub fn cache(&self, cpu: usize, index: usize, level: u32, cpus: &str) -> &Self {
        let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        self.file(&format!("{cache}/level"), &level.to_string())
            .file(&format!("{cache}/shared_cpu_list"), cpus)
    }

    /// Gives a CPU an idle state: its number, name, the microseconds it takes to leave it, and whether it is off.
    pub fn idle_state(
        &self,
        cpu: usize,
        number: usize,
        name: &str,
        latency: u32,
        off: u32,
    ) -> &Self {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
        self.file(&format!("{folder}/name"), name)
            .file(&format!("{folder}/latency"), &latency.to_string())
            .file(&format!("{folder}/residency"), &(2 * latency).to_string())
            .file(&format!("{folder}/disable"), &off.to_string())
    }

    /// Isolates CPUs.
    pub fn isolate(&self, cpus: &str) -> &Self {
        self.file("sys/devices/system/cpu/isolated", cpus)
    }

    /// Fills the pool of huge pages of 2 MiB.
    pub fn huge_pages(&self, total: u64, free: u64, reserved: u64) -> &Self {
        let pool = "sys/kernel/mm/hugepages/hugepages-2048kB";
        self.file(&format!("{pool}/nr_hugepages"), &total.to_string())
            .file(&format!("{pool}/free_hugepages"), &free.to_string())
            .file(&format!("{pool}/resv_hugepages"), &reserved.to_string())
    }

    /// Puts the process into control groups, lines of `/proc/self/cgroup`, in no namespace of them. Each mount has the
    /// group at its top, the kind of file system and its options; the first is at `cgroup`, the next at `cgroup1` and
    /// so on.
    pub fn in_group(&self, groups: &str, mounts: &[(&str, &str, &str)]) -> &Self {
        let mounts = mounts.iter().enumerate();
        let lines = mounts.map(|(at, (top, kind, options))| {
            let number = if at == 0 { String::new() } else { at.to_string() };
            let of_process = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
            for group in of_process.filter(|group| !group.contains("..")) {
                let below = group.strip_prefix(top.trim_end_matches('/'));
                if let Some(below) = below.filter(|it| it.is_empty() || it.starts_with('/')) {
                    let folder = self.root().join(format!("cgroup{number}{below}"));
                    std::fs::create_dir_all(folder).unwrap();
                }
            }
            format!("3{at} 24 0:2{at} {top} /cgroup{number} rw,nosuid shared:9 - {kind} none {options}\n")
        });
        self.file("proc/self/cgroup", groups)
            .file("proc/self/mountinfo", &lines.collect::<String>())
            .in_namespace(4_026_531_835)
    }

    /// Puts the process into a namespace of control groups; the kernel's first is number 4026531835.
    pub fn in_namespace(&self, number: u64) -> &Self {
        let link = self.root().join("proc/self/ns/cgroup");
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("cgroup:[{number}]"), link).unwrap();
        self
    }

    /// The folder that stands for `/`.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The topology of the machine for a process that may use the CPUs in `allowed`.
    pub fn topology_for(&self, allowed: &str) -> Topology {
        let files = SystemFiles::below(self.root());
        Topology::from_files(&files, &allowed.parse().unwrap()).unwrap()
    }

    /// The topology of the machine for a process that may use every CPU.
    pub fn topology(&self) -> Topology {
        self.topology_for("0-1023")
    }
}
