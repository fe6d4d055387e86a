//! What limits this process from outside: its control groups, as in a container, and its own limits (`ulimit`). The
//! limit of locked memory is in [`memory_lock`](super::memory_lock).

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::cgroup::{ControlGroups, CpuQuota, GroupCpus, Known, MemoryLimit, ThreadLimit};
use super::memory_lock::{Limit, has_capability};
use super::system_files::SystemFiles;

/// Limits of this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Limits {
    /// The CPUs that the tightest quota comes to.
    pub cpus_by_quota: Known<f64>,
    /// The CPU quotas of all control groups, the tightest first.
    pub cpu_quotas: Known<Vec<CpuQuota>>,
    pub cpuset: Known<GroupCpus>,
    /// The limit of memory that leaves the least.
    pub memory: Known<MemoryLimit>,
    /// The limit of threads that leaves the fewest.
    pub pids: Known<ThreadLimit>,
    /// Why a limit, or a tighter one than is named here, is not known: by its name.
    pub unknown: BTreeMap<&'static str, String>,
    /// `None` where the kernel does not report them.
    pub ulimits: Option<Ulimits>,
}

impl Limits {
    pub fn of_this_process() -> Self {
        Self::from_files(&SystemFiles::of_this_machine())
    }

    pub(crate) fn from_files(files: &SystemFiles) -> Self {
        let groups = ControlGroups::from_files(files);
        let cpu_quotas = groups.cpu_quotas();
        let (cpuset, memory, pids) = (groups.cpus(), groups.memory_limit(), groups.thread_limit());
        let reasons = [
            ("cpu_quotas", &cpu_quotas.unknown),
            ("cpuset", &cpuset.unknown),
            ("memory", &memory.unknown),
            ("pids", &pids.unknown),
        ];
        let reasons = reasons.into_iter();
        let unknown = reasons.filter_map(|(name, reason)| Some((name, reason.clone()?)));
        let tightest = cpu_quotas.limit.as_ref().and_then(|all| all.first());
        Self {
            unknown: unknown.collect(),
            cpus_by_quota: Known {
                limit: tightest.map(|quota| quota.cpus),
                unknown: cpu_quotas.unknown.clone(),
            },
            cpu_quotas,
            cpuset,
            memory,
            pids,
            ulimits: Ulimits::from_files(files),
        }
    }
}

/// What is limited, its name in results, and its option of `ulimit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UlimitKind {
    /// Its line in `/proc/self/limits`.
    line: &'static str,
    pub name: &'static str,
    pub option: char,
}

const fn kind(line: &'static str, name: &'static str, option: char) -> UlimitKind {
    UlimitKind { line, name, option }
}

pub const ADDRESS_SPACE: UlimitKind = kind("Max address space", "address_space", 'v');
pub const CPU_TIME: UlimitKind = kind("Max cpu time", "cpu_time", 't');
pub const FILE_SIZE: UlimitKind = kind("Max file size", "file_size", 'f');
pub const OPEN_FILES: UlimitKind = kind("Max open files", "open_files", 'n');
pub const PROCESSES: UlimitKind = kind("Max processes", "processes", 'u');

const KINDS: [UlimitKind; 8] = [
    ADDRESS_SPACE,
    CPU_TIME,
    kind("Max data size", "data_size", 'd'),
    FILE_SIZE,
    OPEN_FILES,
    PROCESSES,
    kind("Max realtime priority", "realtime_priority", 'r'),
    kind("Max stack size", "stack_size", 's'),
];

/// A limit of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ulimit {
    /// The limit in force; bytes, seconds or a number.
    pub soft: Limit,
    /// How far the process may raise it by itself.
    pub hard: Limit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ulimits {
    limits: Vec<(UlimitKind, Ulimit)>,
    /// Whether the process has a capability to which the limit of processes does not apply.
    above_processes: bool,
}

impl Ulimits {
    fn from_files(files: &SystemFiles) -> Option<Self> {
        const CAP_SYS_ADMIN: u32 = 21;
        const CAP_SYS_RESOURCE: u32 = 24;
        let text = files.optional("proc/self/limits")?;
        let limit = |word: &str| match word {
            "unlimited" => Some(Limit::UNLIMITED),
            number => number.parse().ok().map(Limit),
        };
        let of = |kind: UlimitKind| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(kind.line));
            let mut words = lines.next()?.split_whitespace();
            let (soft, hard) = (limit(words.next()?)?, limit(words.next()?)?);
            Some((kind, Ulimit { soft, hard }))
        };
        let capabilities = files.field("proc/self/status", "CapEff", ':');
        let has = |one| {
            let capabilities = capabilities.as_ref();
            capabilities.is_some_and(|mask| has_capability(mask, one))
        };
        Some(Self {
            limits: KINDS.into_iter().filter_map(of).collect(),
            above_processes: has(CAP_SYS_ADMIN) || has(CAP_SYS_RESOURCE),
        })
    }

    /// Those below "unlimited" that apply.
    pub fn in_force(&self) -> impl Iterator<Item = (UlimitKind, Ulimit)> {
        let applies = |kind: UlimitKind| !(kind == PROCESSES && self.above_processes);
        let limits = self.limits.iter().copied();
        limits.filter(move |(kind, limit)| applies(*kind) && limit.soft != Limit::UNLIMITED)
    }
}

impl Serialize for Ulimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.limits.iter().map(|(kind, limit)| (kind.name, limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use serde_json::json;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max processes             20                   30                   processes
Max open files            1024                 1048576              files";

    #[test]
    fn limits_are_facts_by_name_and_those_in_force_are_told_apart() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/box", &[("/", "cgroup2", "rw")])
            .file("cgroup/box/cpu.max", "30000 100000")
            .file("cgroup/box/pids.max", "64")
            .file("cgroup/box/memory.max", "1000")
            .file("cgroup/box/cpuset.cpus.effective", "0")
            .file("proc/self/limits", LIMITS)
            .file("proc/self/status", "CapEff:\t0000000000000000");
        let files = SystemFiles::below(machine.root());
        let found = Limits::from_files(&files);
        let json = serde_json::to_value(&found).unwrap();
        for (place, value) in [
            ("/cpu_quotas/0/quota_us", json!(30_000)),
            ("/cpu_quotas/0/period_us", json!(100_000)),
            ("/cpus_by_quota", json!(0.3)),
            ("/cpuset/cpus", json!("0")),
            ("/memory/limit_bytes", json!(1000)),
            ("/pids/limit", json!(64)),
            (
                "/ulimits/open_files",
                json!({"soft": 1024, "hard": 1_048_576}),
            ),
            ("/ulimits/cpu_time/soft", json!("unlimited")),
        ] {
            assert_eq!(json.pointer(place), Some(&value), "{place}");
        }
        assert_eq!(json["unknown"], json!({}));
        // What changes from second to second is no fact.
        assert_eq!(json["pids"].get("free"), None);
        let options = |found: &Limits| -> String {
            let all = found.ulimits.as_ref().unwrap();
            all.in_force().map(|(kind, _)| kind.option).collect()
        };
        assert_eq!(options(&found), "nus");
        machine.file("proc/self/status", "CapEff:\t0000000001000000");
        assert_eq!(options(&Limits::from_files(&files)), "ns");
    }
    #[test]
    fn no_limit_is_not_an_unknown_one() {
        let names = ["cpus_by_quota", "cpu_quotas", "memory", "pids"];
        let machine = Machine::new(1, 1, 1);
        let of = |machine: &Machine| {
            let found = Limits::from_files(&SystemFiles::below(machine.root()));
            serde_json::to_value(&found).unwrap()
        };
        let found = of(&machine);
        let unread = found["unknown"]["memory"].as_str().unwrap();
        assert!(unread.contains("proc/self/cgroup"), "{found}");
        assert!(names.iter().all(|name| found[name] == "unknown"), "{found}");
        machine
            .in_group("0::/box", &[("/", "cgroup2", "rw")])
            .file("cgroup/box/cgroup.procs", "1");
        let found = of(&machine);
        assert!(names.iter().all(|name| found[name] == "none"), "{found}");
        assert_eq!(found["unknown"], json!({}));
        // In a container there may be some above.
        machine
            .in_group("0::/", &[("/", "cgroup2", "rw")])
            .in_namespace(4_026_532_000)
            .file("cgroup/cgroup.events", "populated 1")
            .file("cgroup/cpu.max", "50000 100000");
        let found = of(&machine);
        assert_eq!(found["cpus_by_quota"], 0.5);
        assert_eq!(found["memory"], "unknown");
        for name in ["cpu_quotas", "memory", "pids"] {
            let reason = found["unknown"][name].as_str().unwrap();
            assert!(reason.starts_with("groups above "), "{found}");
        }
    }
}
