//! The control groups of this process, from its own up to the root: what they limit, and how often a CPU quota stopped
//! them. Version 1 and version 2, also side by side.
//!
//! The folders are those of `/proc/self/cgroup` below the mounts of `/proc/self/mountinfo`. Within a container the
//! groups above its own may not show: what they limit is not known then.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cpu_set::CpuSet;
use super::system_files::SystemFiles;

/// How much CPU time the threads of a group may take together in each period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuQuota {
    pub quota_us: u64,
    pub period_us: u64,
    /// The CPUs that this comes to.
    pub cpus: f64,
    pub file: PathBuf,
}

/// How many threads a group may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadLimit {
    pub limit: u64,
    /// Threads that it may still start.
    #[serde(skip)]
    pub free: u64,
    pub file: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryLimit {
    /// Bytes that the group may take at all.
    #[serde(rename = "limit_bytes")]
    pub limit: u64,
    /// Bytes that it has not taken yet, or that the kernel takes back when they are needed: clean pages of files.
    #[serde(skip)]
    pub free: u64,
    pub file: PathBuf,
}

/// The CPUs that a group may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupCpus {
    pub cpus: CpuSet,
    pub file: PathBuf,
}

/// The groups of a process, in all hierarchies.
#[derive(Debug)]
pub struct ControlGroups {
    files: SystemFiles,
    hierarchies: Vec<Hierarchy>,
}

#[derive(Debug)]
struct Hierarchy {
    /// What it controls in version 1; in version 2 a hierarchy may control anything.
    controllers: Option<Vec<String>>,
    /// The folders, that of the process first.
    levels: Vec<String>,
}

/// A folder of a group, and how its version names files.
#[derive(Debug, Clone, Copy)]
struct Level<'a> {
    folder: &'a str,
    is_version_1: bool,
}

impl ControlGroups {
    /// Those of this process; `None` where the kernel does not report any.
    pub fn of_this_process() -> Option<Self> {
        Self::from_files(&SystemFiles::of_this_machine())
    }

    pub(crate) fn from_files(files: &SystemFiles) -> Option<Self> {
        let groups = files.text("proc/self/cgroup").ok()?;
        let mounts = files.text("proc/self/mountinfo").ok()?;
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::of).collect();
        let hierarchy = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, group) = (parts.next()?, parts.next()?);
            let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
            let levels = mounts
                .iter()
                .find_map(|mount| mount.levels(&names, group))?;
            let names = names.into_iter().map(str::to_owned).collect::<Vec<_>>();
            Some(Hierarchy {
                controllers: (!names.is_empty()).then_some(names),
                levels,
            })
        };
        Some(ControlGroups {
            files: files.clone(),
            hierarchies: groups.lines().filter_map(hierarchy).collect(),
        })
    }

    /// The groups in which something may be controlled, from that of the process up.
    fn levels(&self, controller: &str) -> impl Iterator<Item = Level<'_>> {
        let has = move |it: &&Hierarchy| {
            let names = it.controllers.as_ref();
            names.is_none_or(|names| names.iter().any(|name| name == controller))
        };
        self.hierarchies.iter().filter(has).flat_map(|hierarchy| {
            hierarchy.levels.iter().map(|folder| Level {
                folder,
                is_version_1: hierarchy.controllers.is_some(),
            })
        })
    }

    fn number(&self, level: Level<'_>, file: &str) -> Option<u64> {
        self.files.number(&level.file(file))
    }

    fn path(&self, level: Level<'_>, file: &str) -> PathBuf {
        self.files.path(&level.file(file))
    }

    /// The CPU quotas of all groups, the tightest first: that one is in force.
    pub fn cpu_quotas(&self) -> Vec<CpuQuota> {
        let levels = self.levels("cpu");
        let mut all: Vec<CpuQuota> = levels.filter_map(|level| self.cpu_quota(level)).collect();
        all.sort_by(|one, other| one.cpus.total_cmp(&other.cpus));
        all
    }

    fn cpu_quota(&self, level: Level<'_>) -> Option<CpuQuota> {
        let name = level.name("cpu.cfs_quota_us", "cpu.max");
        // Without a limit the quota is -1 in version 1, and the word max in version 2.
        let (quota, period) = match level.is_version_1 {
            true => (
                self.number(level, name)?,
                self.number(level, "cpu.cfs_period_us")?,
            ),
            false => {
                let text = self.files.optional(&level.file(name))?;
                let (quota, period) = text.split_once(' ')?;
                (quota.parse().ok()?, period.trim().parse().ok()?)
            }
        };
        (period > 0).then(|| CpuQuota {
            quota_us: quota,
            period_us: period,
            cpus: quota as f64 / period as f64,
            file: self.path(level, name),
        })
    }

    /// The limit of threads that leaves the fewest.
    pub fn thread_limit(&self) -> Option<ThreadLimit> {
        let limits = self.levels("pids").filter_map(|level| {
            let limit = self.number(level, "pids.max")?;
            let used = self.number(level, "pids.current").unwrap_or(0);
            Some(ThreadLimit {
                limit,
                free: limit.saturating_sub(used),
                file: self.path(level, "pids.max"),
            })
        });
        limits.min_by_key(|found| found.free)
    }

    /// The limit of memory that leaves the least.
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        let levels = self.levels("memory");
        let limits = levels.filter_map(|level| self.memory_limit_of(level));
        limits.min_by_key(|found| found.free)
    }

    fn memory_limit_of(&self, level: Level<'_>) -> Option<MemoryLimit> {
        let limit_file = level.name("memory.limit_in_bytes", "memory.max");
        let limit = self.number(level, limit_file)?;
        let taken = level.name("memory.usage_in_bytes", "memory.current");
        let taken = self.number(level, taken).unwrap_or(0);
        let counts = self.files.optional(&level.file("memory.stat"));
        let counts = counts.unwrap_or_default();
        let count = |name: &str| {
            let mut values = counts
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            values.next()?.parse::<u64>().ok()
        };
        let sum = |names: [&str; 2]| names.into_iter().filter_map(count).sum::<u64>();
        // Pages of files, and those of them that must be written first.
        let (of_files, unwritten) = match level.is_version_1 {
            true => (
                ["total_inactive_file", "total_active_file"],
                ["total_dirty", "total_writeback"],
            ),
            false => (
                ["inactive_file", "active_file"],
                ["file_dirty", "file_writeback"],
            ),
        };
        let reclaimable = sum(of_files).saturating_sub(sum(unwritten));
        // Version 1 writes "no limit" as the largest number of pages.
        (limit < 1 << 60).then(|| MemoryLimit {
            limit,
            free: limit.saturating_sub(taken.saturating_sub(reclaimable)),
            file: self.path(level, limit_file),
        })
    }

    /// The CPUs that the group of the process may use. They are within those of all groups above.
    pub fn cpus(&self) -> Option<GroupCpus> {
        let mut found = self.levels("cpuset").filter_map(|level| {
            let names: &[&str] = match level.is_version_1 {
                true => &["cpuset.effective_cpus", "cpuset.cpus"],
                false => &["cpuset.cpus.effective"],
            };
            names.iter().find_map(|name| {
                let cpus = self.files.cpu_list(&level.file(name)).ok().flatten()?;
                let file = self.path(level, name);
                (!cpus.is_empty()).then_some(GroupCpus { cpus, file })
            })
        });
        found.next()
    }
}

impl<'a> Level<'a> {
    fn file(self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The name of a file in version 1, or in version 2.
    fn name(self, in_version_1: &'a str, in_version_2: &'a str) -> &'a str {
        match self.is_version_1 {
            true => in_version_1,
            false => in_version_2,
        }
    }
}

/// Where a hierarchy of control groups is mounted.
struct Mount<'a> {
    /// The group that shows at the top.
    group: &'a str,
    folder: &'a str,
    /// `None` in version 2.
    controllers: Option<Vec<&'a str>>,
}

impl<'a> Mount<'a> {
    /// Of a line of mountinfo: see `proc_pid_mountinfo(5)`.
    fn of(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (group, folder) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup" => Some(kind.nth(1)?.split(',').collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount {
            group: group.trim_end_matches('/'),
            folder: folder.trim_matches('/'),
            controllers,
        })
    }

    /// The folders from that of a group up to the mount; `None` if this is another hierarchy, or the group does not
    /// show.
    fn levels(&self, controllers: &[&str], group: &str) -> Option<Vec<String>> {
        let is_it = match &self.controllers {
            None => controllers.is_empty(),
            Some(these) => controllers.iter().any(|name| these.contains(name)),
        };
        let below = group.strip_prefix(self.group).filter(|_| is_it)?;
        if !(below.is_empty() || below.starts_with('/')) || below.starts_with("/..") {
            return None;
        }
        let mut folder = format!("{}{}", self.folder, below.trim_end_matches('/'));
        let mut levels = vec![folder.clone()];
        while folder.len() > self.folder.len() {
            folder.truncate(folder.rfind('/')?);
            levels.push(folder.clone());
        }
        Some(levels)
    }
}

/// The limit of memory that leaves this process the least.
pub fn memory_limit() -> Option<MemoryLimit> {
    ControlGroups::of_this_process()?.memory_limit()
}

/// How often, and for how long, groups of a process were stopped because their CPU quota was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods in which the group wanted to run.
    pub periods: u64,
    /// Those of them in which it was stopped.
    pub throttled: u64,
    /// How long its threads were stopped, over all CPUs.
    pub throttled_ns: u64,
}

impl Throttling {
    fn since(self, before: Self) -> Self {
        Throttling {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(before.throttled_ns),
        }
    }

    /// Of `cpu.stat`: version 1 counts nanoseconds, version 2 microseconds.
    fn of(text: &[u8]) -> Self {
        let mut found = Throttling::default();
        for line in text.split(|&byte| byte == b'\n') {
            let Some((name, value)) = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.split_once(' '))
            else {
                continue;
            };
            let value: u64 = value.trim().parse().unwrap_or(0);
            match name {
                "nr_periods" => found.periods = value,
                "nr_throttled" => found.throttled = value,
                "throttled_time" => found.throttled_ns = value,
                "throttled_usec" => found.throttled_ns = value.saturating_mul(1_000),
                _ => {}
            }
        }
        found
    }
}

/// The counters of all groups of this process that have a CPU quota. Reading them takes no memory.
#[derive(Debug, Default)]
pub struct ThrottleCounters(Vec<GroupCounter>);

#[derive(Debug)]
struct GroupCounter {
    stat: File,
    before: Throttling,
}

impl ThrottleCounters {
    /// Those of this process; they count from now on. Without a quota there are none.
    pub fn open() -> Self {
        let groups = ControlGroups::of_this_process();
        groups.map_or_else(Self::default, |groups| Self::of(&groups))
    }

    fn of(groups: &ControlGroups) -> Self {
        let with_quota = groups
            .levels("cpu")
            .filter(|level| groups.cpu_quota(*level).is_some());
        let counters = with_quota.filter_map(|level| {
            let stat = File::open(groups.path(level, "cpu.stat")).ok()?;
            let before = read(&stat)?;
            Some(GroupCounter { stat, before })
        });
        ThrottleCounters(counters.collect())
    }

    /// What was added since the last time, of the group that was stopped for longest: times of groups within each other
    /// overlap.
    pub fn rise(&mut self) -> Throttling {
        let risen = self.0.iter_mut().map(|group| {
            let now = read(&group.stat).unwrap_or(group.before);
            now.since(std::mem::replace(&mut group.before, now))
        });
        let longest = risen.max_by_key(|it| (it.throttled_ns, it.throttled, it.periods));
        longest.unwrap_or_default()
    }
}

fn read(stat: &File) -> Option<Throttling> {
    let mut text = [0; 2048];
    let length = stat.read_at(&mut text, 0).ok()?;
    Some(Throttling::of(&text[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    fn groups(machine: &Machine) -> ControlGroups {
        ControlGroups::from_files(&SystemFiles::below(machine.root())).unwrap()
    }

    #[test]
    fn the_tightest_limit_on_the_way_to_the_root_counts() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/a/b/c", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/memory.max", "1000")
            .file("cgroup/a/memory.current", "900")
            .file("cgroup/a/b/memory.max", "500")
            .file("cgroup/a/b/memory.current", "100")
            .file("cgroup/a/b/c/memory.max", "max")
            .file("cgroup/pids.max", "30")
            .file("cgroup/pids.current", "28")
            .file("cgroup/a/b/pids.max", "20")
            .file("cgroup/a/b/pids.current", "17");
        let found = groups(&machine).memory_limit().unwrap();
        assert_eq!((found.limit, found.free), (1000, 100));
        assert!(found.file.ends_with("a/memory.max"));
        let threads = groups(&machine).thread_limit().unwrap();
        assert_eq!((threads.limit, threads.free), (30, 2));
        machine.in_group("0::/elsewhere", &[("/", "cgroup2", "rw")]);
        assert_eq!(groups(&machine).memory_limit(), None);
    }

    #[test]
    fn clean_pages_of_files_are_free() {
        let machine = Machine::new(1, 1, 1);
        let counts = "anon 90\nfile 900\nfile_dirty 40\nfile_writeback 10\ninactive_file 700\nactive_file 200";
        machine
            .in_group("0::/a", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/memory.max", "1000")
            .file("cgroup/a/memory.current", "990")
            .file("cgroup/a/memory.stat", counts);
        assert_eq!(groups(&machine).memory_limit().unwrap().free, 860);
    }

    #[test]
    fn version_1_is_read_and_its_lack_of_a_limit_is_none() {
        let machine = Machine::new(1, 1, 1);
        let mounts = [
            ("/", "cgroup", "rw,memory"),
            ("/", "cgroup", "rw,cpu,cpuacct"),
            ("/", "cgroup2", "rw"),
        ];
        machine
            .in_group("5:cpu,cpuacct:/x\n4:memory:/x\n0::/", &mounts)
            .file("cgroup/x/memory.limit_in_bytes", "4096")
            .file("cgroup/x/memory.usage_in_bytes", "96")
            .file("cgroup/memory.limit_in_bytes", "9223372036854771712")
            .file("cgroup1/x/cpu.cfs_quota_us", "-1")
            .file("cgroup1/x/cpu.cfs_period_us", "100000");
        assert_eq!(groups(&machine).memory_limit().unwrap().free, 4000);
        assert!(groups(&machine).cpu_quotas().is_empty());
        assert_eq!(groups(&machine).thread_limit(), None);
    }

    #[test]
    fn quotas_of_all_levels_are_found_and_the_smallest_share_is_first() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/pod/box", &[("/", "cgroup2", "rw")])
            .file("cgroup/pod/box/cpu.max", "200000 100000")
            // Fewer microseconds, and more of a CPU, than above.
            .file("cgroup/pod/cpu.max", "75000 50000")
            .file("cgroup/cpu.max", "max 100000");
        let all = groups(&machine).cpu_quotas();
        let cpus: Vec<f64> = all.iter().map(|quota| quota.cpus).collect();
        assert_eq!(cpus, [1.5, 2.0]);
        assert!(all[0].file.ends_with("cgroup/pod/cpu.max"));
        let version_1 = Machine::new(1, 1, 1);
        version_1
            .in_group("1:cpu:/pod/box", &[("/", "cgroup", "rw,cpu")])
            .file("cgroup/pod/box/cpu.cfs_quota_us", "-1")
            .file("cgroup/pod/box/cpu.cfs_period_us", "100000")
            .file("cgroup/pod/cpu.cfs_quota_us", "30000")
            .file("cgroup/pod/cpu.cfs_period_us", "100000");
        let found = &groups(&version_1).cpu_quotas()[0];
        assert_eq!((found.quota_us, found.period_us), (30_000, 100_000));
        assert!(found.file.ends_with("cgroup/pod/cpu.cfs_quota_us"));
    }

    #[test]
    fn in_a_container_the_groups_are_those_below_its_mount() {
        let machine = Machine::new(1, 1, 1);
        // Docker without a namespace of control groups shows a group at the top of the mount.
        machine
            .in_group("1:cpu:/docker/1f", &[("/docker/1f", "cgroup", "ro,cpu")])
            .file("cgroup/cpu.cfs_quota_us", "50000")
            .file("cgroup/cpu.cfs_period_us", "100000");
        assert_eq!(groups(&machine).cpu_quotas()[0].cpus, 0.5);
        // A group whose name begins alike, and one outside of the namespace, do not show.
        for group in ["1:cpu:/docker/1f2", "1:cpu:/", "1:cpu:/../other"] {
            machine.in_group(group, &[("/docker/1f", "cgroup", "ro,cpu")]);
            assert!(groups(&machine).cpu_quotas().is_empty(), "{group}");
        }
        machine.in_group("1:cpu:/../other", &[("/", "cgroup", "ro,cpu")]);
        assert!(groups(&machine).cpu_quotas().is_empty());
    }

    #[test]
    fn the_cpus_of_a_group_are_the_effective_ones() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/a/b", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/cpuset.cpus.effective", "2-3")
            .file("cgroup/cpuset.cpus.effective", "0-7");
        let found = groups(&machine).cpus().unwrap();
        assert_eq!(found.cpus.to_string(), "2-3");
        machine
            .in_group("3:cpuset:/a", &[("/", "cgroup", "rw,cpuset")])
            .file("cgroup/a/cpuset.cpus", "4");
        assert_eq!(groups(&machine).cpus().unwrap().cpus.to_string(), "4");
    }

    #[test]
    fn what_was_throttled_since_is_that_of_the_group_that_was_stopped_for_longest() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/a/b", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/cpu.max", "30000 100000")
            .file("cgroup/a/b/cpu.max", "50000 100000");
        let stat = |group: &str, periods: u64, throttled: u64, usec: u64| {
            let text = format!(
                "usage_usec 7\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {usec}"
            );
            machine.file(&format!("cgroup/{group}/cpu.stat"), &text);
        };
        stat("a", 10, 5, 100);
        stat("a/b", 10, 5, 900);
        let mut counters = ThrottleCounters::of(&groups(&machine));
        assert_eq!(counters.rise(), Throttling::default());
        stat("a", 39, 33, 1_980_100);
        stat("a/b", 39, 6, 40_900);
        let expected = Throttling {
            periods: 29,
            throttled: 28,
            throttled_ns: 1_980_000_000,
        };
        assert_eq!(counters.rise(), expected);
        assert_eq!(counters.rise(), Throttling::default());
    }

    #[test]
    fn version_1_counts_nanoseconds_and_without_a_quota_nothing_is_read() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("1:cpu:/a", &[("/", "cgroup", "rw,cpu")])
            .file("cgroup/a/cpu.cfs_quota_us", "30000")
            .file("cgroup/a/cpu.cfs_period_us", "100000")
            .file(
                "cgroup/a/cpu.stat",
                "nr_periods 0\nnr_throttled 0\nthrottled_time 0",
            );
        let mut counters = ThrottleCounters::of(&groups(&machine));
        machine.file(
            "cgroup/a/cpu.stat",
            "nr_periods 2\nnr_throttled 1\nthrottled_time 700",
        );
        let found = counters.rise();
        assert_eq!(
            (found.periods, found.throttled, found.throttled_ns),
            (2, 1, 700)
        );
        machine.file("cgroup/a/cpu.cfs_quota_us", "-1");
        assert!(ThrottleCounters::of(&groups(&machine)).0.is_empty());
    }
}
