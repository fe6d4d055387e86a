//! The control groups of this process, from its own up to the root: what they limit, and how often a CPU quota stopped
//! them. Version 1 and version 2, also side by side.
//!
//! The folders are those of `/proc/self/cgroup` below the mounts of `/proc/self/mountinfo`. Within a container the
//! groups above its own may not show: what they limit is not known then, which is not the same as no limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize, Serializer};

use super::cpu_set::CpuSet;
use super::system_files::SystemFiles;

/// What is known of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known<T> {
    /// The tightest that shows.
    pub limit: Option<T>,
    /// Why there may be one, or a tighter one, that does not show.
    pub unknown: Option<String>,
}

impl<T> Default for Known<T> {
    /// No limit.
    fn default() -> Self {
        Known {
            limit: None,
            unknown: None,
        }
    }
}

impl<T: Serialize> Serialize for Known<T> {
    /// The limit, `none` or `unknown`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.limit, &self.unknown) {
            (Some(limit), _) => limit.serialize(serializer),
            (None, Some(_)) => "unknown".serialize(serializer),
            (None, None) => "none".serialize(serializer),
        }
    }
}

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
    /// Why they are not known, if they are not.
    hierarchies: Result<Vec<Hierarchy>, String>,
}

#[derive(Debug)]
struct Hierarchy {
    /// What it controls in version 1; in version 2 a hierarchy may control anything.
    controllers: Option<Vec<String>>,
    /// The folders, that of the process first.
    levels: Vec<String>,
    /// Why there may be groups above them.
    hidden: Option<String>,
}

/// A folder of a group, and how its version names files.
#[derive(Debug, Clone, Copy)]
struct Level<'a> {
    folder: &'a str,
    is_version_1: bool,
}

/// What `/proc/self/ns/cgroup` links to where no namespace hides groups: `PROC_CGROUP_INIT_INO` of the kernel.
const INITIAL_NAMESPACE: &str = "cgroup:[4026531835]";

impl ControlGroups {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self::from_files(&SystemFiles::of_this_machine())
    }

    pub(crate) fn from_files(files: &SystemFiles) -> Self {
        ControlGroups {
            files: files.clone(),
            hierarchies: Self::hierarchies(files),
        }
    }

    /// Each hierarchy that is in use has a line in `/proc/self/cgroup`, mounted here or not.
    fn hierarchies(files: &SystemFiles) -> Result<Vec<Hierarchy>, String> {
        let text = |path: &str| files.text(path).map_err(|error| error.to_string());
        let groups = text("proc/self/cgroup")?;
        let mounts = text("proc/self/mountinfo")?;
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::of).collect();
        let is_initial = files.link("proc/self/ns/cgroup").as_deref() == Some(INITIAL_NAMESPACE);
        let hierarchy = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, group) = (parts.next()?, parts.next()?);
            let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
            let mut found = mounts
                .iter()
                .filter_map(|mount| Some((mount, mount.levels(&names, group)?)));
            let (levels, hidden) = match found.next() {
                Some((mount, levels)) => {
                    let top = levels.last().map_or("", String::as_str);
                    let is_whole = mount.group.is_empty()
                        && (is_initial || is_root(files, top, names.is_empty()));
                    let hidden = (!is_whole).then(|| {
                        let top = files.path(top);
                        format!("groups above {} do not show", top.display())
                    });
                    (levels, hidden)
                }
                // The root has no limits.
                None if is_initial && group == "/" => (Vec::new(), None),
                None => {
                    let hidden = format!("the group {group} of this process does not show");
                    (Vec::new(), Some(hidden))
                }
            };
            let names = names.into_iter().map(str::to_owned).collect::<Vec<_>>();
            Some(Hierarchy {
                controllers: (!names.is_empty()).then_some(names),
                levels,
                hidden,
            })
        };
        Ok(groups.lines().filter_map(hierarchy).collect())
    }

    /// The hierarchy in which something is controlled, if it is in any: a controller of version 1 is in no other.
    fn hierarchy(&self, controller: &str) -> Option<&Hierarchy> {
        let all = self.hierarchies.as_ref().ok()?;
        let has = |it: &&Hierarchy| {
            let names = it.controllers.as_ref();
            names.is_some_and(|names| names.iter().any(|name| name == controller))
        };
        let version_2 = |it: &&Hierarchy| it.controllers.is_none();
        all.iter().find(has).or_else(|| all.iter().find(version_2))
    }

    /// The groups in which something may be controlled, from that of the process up.
    fn levels(&self, controller: &str) -> impl Iterator<Item = Level<'_>> {
        let hierarchy = self.hierarchy(controller).into_iter();
        hierarchy.flat_map(|hierarchy| {
            hierarchy.levels.iter().map(|folder| Level {
                folder,
                is_version_1: hierarchy.controllers.is_some(),
            })
        })
    }

    /// The limits of all levels, and why there may be others.
    fn limits<T>(
        &self,
        controller: &str,
        read: impl Fn(Level<'_>) -> Result<Option<T>, String>,
    ) -> (Vec<T>, Option<String>) {
        let (mut found, mut unknown) = (Vec::new(), self.hierarchies.as_ref().err().cloned());
        for level in self.levels(controller) {
            match read(level) {
                Ok(limit) => found.extend(limit),
                Err(reason) => unknown = unknown.or(Some(reason)),
            }
        }
        let hidden = self.hierarchy(controller).and_then(|it| it.hidden.clone());
        (found, unknown.or(hidden))
    }

    /// The text of a file of a group; `None` where the group lacks it, as one that has no such control.
    fn text(&self, level: Level<'_>, file: &str) -> Result<Option<String>, String> {
        let path = self.path(level, file);
        let error = match std::fs::read(&path) {
            Ok(bytes) => return Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
            Err(error) => error,
        };
        let has_folder = || self.files.path(level.folder).is_dir();
        match error.kind() {
            io::ErrorKind::NotFound if has_folder() => Ok(None),
            _ => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The number in a file; `None` also where it states that there is no limit.
    fn number(&self, level: Level<'_>, file: &str) -> Result<Option<u64>, String> {
        match self.text(level, file)?.as_deref() {
            None | Some("max" | "-1") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                let path = self.path(level, file);
                format!("{}: \"{text}\" is not a limit", path.display())
            }),
        }
    }

    fn path(&self, level: Level<'_>, file: &str) -> PathBuf {
        self.files.path(&level.file(file))
    }

    /// The CPU quotas of all groups, the tightest first: that one is in force.
    pub fn cpu_quotas(&self) -> Known<Vec<CpuQuota>> {
        let (mut all, unknown) = self.limits("cpu", |level| self.cpu_quota(level));
        all.sort_by(|one, other| one.cpus.total_cmp(&other.cpus));
        Known {
            limit: (!all.is_empty()).then_some(all),
            unknown,
        }
    }

    fn cpu_quota(&self, level: Level<'_>) -> Result<Option<CpuQuota>, String> {
        let name = level.name("cpu.cfs_quota_us", "cpu.max");
        let parsed = match level.is_version_1 {
            true => {
                let period = self.number(level, "cpu.cfs_period_us")?;
                self.number(level, name)?.zip(period)
            }
            false => match self.text(level, name)? {
                None => None,
                Some(text) if text.split(' ').next() == Some("max") => None,
                Some(text) => {
                    let both = text.split_once(' ').and_then(|(quota, period)| {
                        Some((quota.parse().ok()?, period.trim().parse().ok()?))
                    });
                    let path = self.path(level, name);
                    let wrong = || format!("{}: \"{text}\" is not a quota", path.display());
                    Some(both.ok_or_else(wrong)?)
                }
            },
        };
        let quota = parsed.filter(|(_, period)| *period > 0);
        Ok(quota.map(|(quota_us, period_us)| CpuQuota {
            quota_us,
            period_us,
            cpus: quota_us as f64 / period_us as f64,
            file: self.path(level, name),
        }))
    }

    /// The limit of threads that leaves the fewest.
    pub fn thread_limit(&self) -> Known<ThreadLimit> {
        let (limits, unknown) = self.limits("pids", |level| {
            let limit = self.number(level, "pids.max")?;
            let used = self.number(level, "pids.current")?.unwrap_or(0);
            Ok(limit.map(|limit| ThreadLimit {
                limit,
                free: limit.saturating_sub(used),
                file: self.path(level, "pids.max"),
            }))
        });
        Known {
            limit: limits.into_iter().min_by_key(|found| found.free),
            unknown,
        }
    }

    /// The limit of memory that leaves the least.
    pub fn memory_limit(&self) -> Known<MemoryLimit> {
        let (limits, unknown) = self.limits("memory", |level| self.memory_limit_of(level));
        Known {
            limit: limits.into_iter().min_by_key(|found| found.free),
            unknown,
        }
    }

    fn memory_limit_of(&self, level: Level<'_>) -> Result<Option<MemoryLimit>, String> {
        let limit_file = level.name("memory.limit_in_bytes", "memory.max");
        let Some(limit) = self.number(level, limit_file)? else {
            return Ok(None);
        };
        let taken = level.name("memory.usage_in_bytes", "memory.current");
        let taken = self.number(level, taken)?.unwrap_or(0);
        let counts = self.text(level, "memory.stat")?.unwrap_or_default();
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
        Ok((limit < 1 << 60).then(|| MemoryLimit {
            limit,
            free: limit.saturating_sub(taken.saturating_sub(reclaimable)),
            file: self.path(level, limit_file),
        }))
    }

    /// How many processes of the own group the kernel has killed because memory ended; `None` where it does not show.
    pub fn killed_for_memory(&self) -> Option<u64> {
        let own = self.levels("memory").next()?;
        let counts = own.name("memory.oom_control", "memory.events");
        let counts = self.text(own, counts).ok().flatten()?;
        let mut counts = counts.lines();
        counts.find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
    }

    /// The file that keeps threads of the process from having a real-time priority, even those of root: kernels with
    /// RT_GROUP_SCHED give a new group of version 1 no time for it.
    pub fn without_realtime(&self) -> Option<PathBuf> {
        let own = self
            .levels("cpu")
            .next()
            .filter(|level| level.is_version_1)?;
        let none = self.number(own, "cpu.rt_runtime_us").ok()? == Some(0);
        none.then(|| self.path(own, "cpu.rt_runtime_us"))
    }

    /// The CPUs that the group of the process may use. They are within those of all groups above, and known wherever
    /// the group shows.
    pub fn cpus(&self) -> Known<GroupCpus> {
        let (found, unknown) = self.limits("cpuset", |level| {
            let names: &[&str] = match level.is_version_1 {
                true => &["cpuset.effective_cpus", "cpuset.cpus"],
                false => &["cpuset.cpus.effective"],
            };
            for name in names {
                let Some(text) = self.text(level, name)? else {
                    continue;
                };
                let file = self.path(level, name);
                let cpus: CpuSet = (text.parse())
                    .map_err(|error| format!("{}: \"{text}\": {error}", file.display()))?;
                if !cpus.is_empty() {
                    return Ok(Some(GroupCpus { cpus, file }));
                }
            }
            Ok(None)
        });
        let limit = found.into_iter().next();
        Known {
            unknown: unknown.filter(|_| limit.is_none()),
            limit,
        }
    }
}

/// Whether a folder is the root of its hierarchy and not of a namespace: each version has a file there only, or not
/// there.
fn is_root(files: &SystemFiles, folder: &str, is_version_2: bool) -> bool {
    let has = |name: &str| files.path(&format!("{folder}/{name}")).exists();
    match is_version_2 {
        true => has("cgroup.procs") && !has("cgroup.events"),
        false => has("cgroup.sane_behavior"),
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
    group: String,
    folder: String,
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
            group: unescaped(group).trim_end_matches('/').to_owned(),
            folder: unescaped(folder).trim_matches('/').to_owned(),
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
        let below = group.strip_prefix(&self.group).filter(|_| is_it)?;
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

/// A name of mountinfo, in which a space, a tab, a line feed and a backslash are octal numbers.
fn unescaped(name: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let all = escapes.into_iter();
    all.fold(name.to_owned(), |name, (code, letter)| {
        name.replace(code, letter)
    })
}

/// The limit of memory that leaves this process the least.
pub fn memory_limit() -> Option<MemoryLimit> {
    ControlGroups::of_this_process().memory_limit().limit
}

/// How often, and for how long, a group was stopped because its CPU quota was used up: see
/// `Documentation/scheduler/sched-bwc.rst` of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods that passed while the group wanted to run (`nr_periods`).
    pub periods: u64,
    /// Those of them in which it was stopped (`nr_throttled`).
    pub throttled: u64,
    /// How long it was stopped on each CPU, added up (`throttled_time` or `throttled_usec`): more than the time that
    /// passed, where it was stopped on several.
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

    /// Of `cpu.stat`: version 1 counts nanoseconds, version 2 microseconds. `None` if one of them is missing.
    fn of(text: &[u8]) -> Option<Self> {
        let (mut periods, mut throttled, mut throttled_ns) = (None, None, None);
        for line in text.split(|&byte| byte == b'\n') {
            let line = std::str::from_utf8(line).ok();
            let Some((name, value)) = line.and_then(|line| line.split_once(' ')) else {
                continue;
            };
            let value: Option<u64> = value.trim().parse().ok();
            match name {
                "nr_periods" => periods = value,
                "nr_throttled" => throttled = value,
                "throttled_time" => throttled_ns = value,
                "throttled_usec" => throttled_ns = value.map(|usec| usec.saturating_mul(1_000)),
                _ => {}
            }
        }
        Some(Throttling {
            periods: periods?,
            throttled: throttled?,
            throttled_ns: throttled_ns?,
        })
    }
}

/// What CPU quotas did while something was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottlingRecord {
    /// Of the group that was stopped for longest: times of groups within each other overlap.
    pub group: Throttling,
    /// The period of its quota.
    pub period_ns: u64,
    pub elapsed_ns: u64,
    /// Why it may have been more, if that is not known.
    pub unknown: Option<String>,
}

impl ThrottlingRecord {
    /// How long one thread was stopped at the most: on one CPU at a time, and in throttled periods only.
    pub fn most_of_a_thread_ns(&self) -> u64 {
        let in_periods = self.group.throttled.saturating_mul(self.period_ns);
        let group = self.group.throttled_ns;
        group.min(in_periods).min(self.elapsed_ns)
    }
}

/// The counters of all groups of this process that have a CPU quota. Reading them takes no memory.
#[derive(Debug)]
pub struct ThrottleCounters {
    groups: Vec<GroupCounter>,
    unknown: Option<String>,
    begun: Instant,
}

#[derive(Debug)]
struct GroupCounter {
    stat: File,
    path: PathBuf,
    period_ns: u64,
    /// When it began.
    first: Throttling,
    /// The last time that it was read.
    last: Throttling,
}

impl ThrottleCounters {
    /// Those of this process; they count from now on. Without a quota there are none.
    pub fn open() -> Self {
        Self::of(&ControlGroups::of_this_process())
    }

    fn of(groups: &ControlGroups) -> Self {
        let (counters, unread) = groups.limits("cpu", |level| {
            let Some(quota) = groups.cpu_quota(level)? else {
                return Ok(None);
            };
            let path = groups.path(level, "cpu.stat");
            let open = || -> io::Result<GroupCounter> {
                let stat = File::open(&path)?;
                let first = read(&stat)?;
                Ok(GroupCounter {
                    stat,
                    path: path.clone(),
                    period_ns: quota.period_us.saturating_mul(1_000),
                    first,
                    last: first,
                })
            };
            let opened = open().map(Some);
            opened.map_err(|error| format!("{}: {error}", path.display()))
        });
        // That groups above a container do not show is a fact of the machine, which `Limits` has.
        let hidden = groups.hierarchy("cpu").and_then(|it| it.hidden.as_ref());
        ThrottleCounters {
            groups: counters,
            unknown: unread.filter(|reason| Some(reason) != hidden),
            begun: Instant::now(),
        }
    }

    /// Why the counters do not show whether a quota stopped threads, if they do not.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// What is measured begins.
    pub fn begin(&mut self) {
        self.rise();
        self.groups
            .iter_mut()
            .for_each(|group| group.first = group.last);
        self.begun = Instant::now();
    }

    /// What was found since it began.
    pub fn record(&mut self) -> ThrottlingRecord {
        self.rise();
        let groups = self.groups.iter();
        let found = groups.map(|it| (it.last.since(it.first), it.period_ns));
        let (group, period_ns) = found.max_by_key(longest).unwrap_or_default();
        ThrottlingRecord {
            group,
            period_ns,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            unknown: self.unknown.clone(),
        }
    }

    /// What was added since the last time, of the group that was stopped for longest.
    pub fn rise(&mut self) -> Throttling {
        let unknown = &mut self.unknown;
        let risen = self.groups.iter_mut().map(|group| {
            let now = read(&group.stat).unwrap_or_else(|error| {
                unknown.get_or_insert_with(|| format!("{}: {error}", group.path.display()));
                group.last
            });
            (now.since(std::mem::replace(&mut group.last, now)), 0)
        });
        risen.max_by_key(longest).unwrap_or_default().0
    }
}

fn longest((group, _): &(Throttling, u64)) -> (u64, u64, u64) {
    (group.throttled_ns, group.throttled, group.periods)
}

fn read(stat: &File) -> io::Result<Throttling> {
    let mut text = [0; 2048];
    let length = stat.read_at(&mut text, 0)?;
    Throttling::of(&text[..length]).ok_or_else(|| io::Error::other("it lacks nr_throttled"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    fn groups(machine: &Machine) -> ControlGroups {
        ControlGroups::from_files(&SystemFiles::below(machine.root()))
    }

    fn nothing<T>() -> Known<T> {
        Known::default()
    }

    /// Why there may be a CPU quota that does not show.
    fn unknown_quota(machine: &Machine) -> String {
        let found = groups(machine).cpu_quotas();
        assert_eq!(found.limit, None, "{found:?}");
        found.unknown.expect("it is not known that there is none")
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
        let found = groups(&machine).memory_limit();
        assert_eq!(found.unknown, None);
        let found = found.limit.unwrap();
        assert_eq!((found.limit, found.free), (1000, 100));
        assert!(found.file.ends_with("a/memory.max"));
        let threads = groups(&machine).thread_limit().limit.unwrap();
        assert_eq!((threads.limit, threads.free), (30, 2));
        machine.in_group("0::/elsewhere", &[("/", "cgroup2", "rw")]);
        assert_eq!(groups(&machine).memory_limit(), nothing());
    }

    #[test]
    fn processes_that_were_killed_for_memory_are_those_of_the_own_group() {
        for (line, mount, file, counts) in [
            (
                "7:memory:/a/b",
                ("/", "cgroup", "rw,memory"),
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
            ),
            (
                "0::/a/b",
                ("/", "cgroup2", "rw"),
                "memory.events",
                "max 7\noom 3\noom_kill 2\noom_group_kill 0",
            ),
        ] {
            let machine = Machine::new(1, 1, 1);
            machine.in_group(line, &[mount]);
            machine.file(&format!("cgroup/a/{file}"), "oom_kill 9");
            machine.file("cgroup/a/b/tasks", "");
            assert_eq!(groups(&machine).killed_for_memory(), None);
            machine.file(&format!("cgroup/a/b/{file}"), counts);
            assert_eq!(groups(&machine).killed_for_memory(), Some(2));
        }
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
        assert_eq!(groups(&machine).memory_limit().limit.unwrap().free, 860);
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
            .file("cgroup1/x/cpu.cfs_period_us", "100000")
            .file("cgroup2/pids.max", "70");
        assert_eq!(groups(&machine).memory_limit().limit.unwrap().free, 4000);
        assert_eq!(groups(&machine).cpu_quotas(), nothing());
        // What no hierarchy of version 1 controls, that of version 2 beside them may.
        assert_eq!(groups(&machine).thread_limit().limit.unwrap().limit, 70);
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
        let all = groups(&machine).cpu_quotas().limit.unwrap();
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
        let found = &groups(&version_1).cpu_quotas().limit.unwrap()[0];
        assert_eq!((found.quota_us, found.period_us), (30_000, 100_000));
        assert!(found.file.ends_with("cgroup/pod/cpu.cfs_quota_us"));
    }

    #[test]
    fn in_a_container_the_groups_are_those_below_its_mount_and_others_are_unknown() {
        let machine = Machine::new(1, 1, 1);
        // Docker without a namespace of control groups shows a group at the top of the mount.
        machine
            .in_group("1:cpu:/docker/1f", &[("/docker/1f", "cgroup", "ro,cpu")])
            .file("cgroup/cpu.cfs_quota_us", "50000")
            .file("cgroup/cpu.cfs_period_us", "100000");
        let found = groups(&machine).cpu_quotas();
        assert_eq!(found.limit.unwrap()[0].cpus, 0.5);
        let hidden = found.unknown.unwrap();
        assert!(hidden.contains("groups above ") && hidden.contains("/cgroup do not show"));
        // A group whose name begins alike, and one outside of the namespace, do not show.
        for group in ["/docker/1f2", "/", "/../other"] {
            machine
                .in_group(
                    &format!("1:cpu:{group}"),
                    &[("/docker/1f", "cgroup", "ro,cpu")],
                )
                .in_namespace(7);
            let expected = format!("the group {group} of this process does not show");
            assert_eq!(unknown_quota(&machine), expected);
        }
        machine.in_group("1:cpu:/../other", &[("/", "cgroup", "ro,cpu")]);
        assert!(unknown_quota(&machine).contains("/../other"));
    }

    #[test]
    fn the_top_of_a_namespace_is_the_root_only_if_it_looks_like_it() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/", &[("/", "cgroup2", "rw")])
            .file("cgroup/cgroup.procs", "1");
        assert_eq!(groups(&machine).cpu_quotas(), nothing());
        machine.in_namespace(7);
        assert_eq!(groups(&machine).cpu_quotas(), nothing());
        machine.file("cgroup/cgroup.events", "populated 1");
        assert!(unknown_quota(&machine).contains("groups above "));
        let version_1 = Machine::new(1, 1, 1);
        version_1
            .in_group("1:cpu:/", &[("/", "cgroup", "rw,cpu")])
            .in_namespace(7)
            .file("cgroup/cpu.cfs_quota_us", "-1");
        assert!(unknown_quota(&version_1).contains("groups above "));
        version_1.file("cgroup/cgroup.sane_behavior", "0");
        assert_eq!(groups(&version_1).cpu_quotas(), nothing());
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let machine = Machine::new(1, 1, 1);
        assert!(unknown_quota(&machine).contains("proc/self/cgroup"));
        // A hierarchy that is mounted elsewhere only. In its root there is no limit.
        machine.in_group("0::/a", &[]);
        assert!(unknown_quota(&machine).contains("the group /a of"));
        machine.in_group("0::/", &[]);
        assert_eq!(groups(&machine).cpu_quotas(), nothing());
        machine.in_namespace(7);
        assert!(unknown_quota(&machine).contains("the group / of"));
        // No hierarchy at all, as without systemd.
        machine.in_group("", &[]);
        assert_eq!(groups(&machine).cpu_quotas(), nothing());
        machine
            .in_group("0::/a", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/cpu.max", "much");
        assert!(unknown_quota(&machine).ends_with("cpu.max: \"much\" is not a quota"));
        machine.without("cgroup/a/cpu.max");
        std::fs::create_dir(machine.root().join("cgroup/a/cpu.max")).unwrap();
        assert!(unknown_quota(&machine).contains("cpu.max: "));
        machine
            .file("cgroup/cpu.max", "30000 100000")
            .file("cgroup/a/pids.max", "few");
        // What shows is a limit all the same.
        let found = groups(&machine).cpu_quotas();
        assert_eq!(found.limit.unwrap()[0].cpus, 0.3);
        assert!(found.unknown.unwrap().contains("a/cpu.max: "));
        let threads = groups(&machine).thread_limit();
        assert!(threads.limit.is_none() && threads.unknown.unwrap().contains("\"few\""));
        machine.without("cgroup/a");
        assert!(groups(&machine).memory_limit().unknown.is_some());
    }

    #[test]
    fn a_group_without_real_time_is_named() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("1:cpu:/x", &[("/", "cgroup", "rw,cpu")])
            .file("cgroup/cpu.rt_runtime_us", "950000")
            .file("cgroup/x/cpu.rt_runtime_us", "0");
        let file = groups(&machine).without_realtime().unwrap();
        assert!(file.ends_with("cgroup/x/cpu.rt_runtime_us"));
        for enough in ["-1", "950000"] {
            machine.file("cgroup/x/cpu.rt_runtime_us", enough);
            assert_eq!(groups(&machine).without_realtime(), None);
        }
        machine.in_group("0::/x", &[("/", "cgroup2", "rw")]);
        assert_eq!(groups(&machine).without_realtime(), None);
    }

    #[test]
    fn a_mount_point_may_have_any_name() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/a b", &[])
            .file(
                "proc/self/mountinfo",
                "31 24 0:21 / /run/of\\040me\\134 rw - cgroup2 none rw",
            )
            .file("run/of me\\/a b/cpu.max", "30000 100000");
        let found = groups(&machine).cpu_quotas().limit.unwrap();
        assert!(found[0].file.ends_with("run/of me\\/a b/cpu.max"));
    }

    #[test]
    fn the_cpus_of_a_group_are_the_effective_ones() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("0::/a/b", &[("/", "cgroup2", "rw")])
            .file("cgroup/a/cpuset.cpus.effective", "2-3")
            .file("cgroup/cpuset.cpus.effective", "0-7");
        let found = groups(&machine).cpus().limit.unwrap();
        assert_eq!(found.cpus.to_string(), "2-3");
        machine
            .in_group("3:cpuset:/a", &[("/", "cgroup", "rw,cpuset")])
            .file("cgroup/a/cpuset.cpus", "4");
        let found = groups(&machine).cpus().limit.unwrap();
        assert_eq!(found.cpus.to_string(), "4");
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
        stat("a", 12, 7, 20_100);
        // Before what is measured.
        counters.begin();
        stat("a", 41, 35, 2_000_100);
        stat("a/b", 39, 6, 40_900);
        let expected = Throttling {
            periods: 29,
            throttled: 28,
            throttled_ns: 1_980_000_000,
        };
        assert_eq!(counters.rise(), expected);
        assert_eq!(counters.rise(), Throttling::default());
        // A rise in between takes nothing away.
        let record = counters.record();
        assert_eq!((record.group, record.unknown), (expected, None));
        assert_eq!(record.period_ns, 100_000_000);
        // A file that cannot be read any more is not one that counts nothing.
        machine.file("cgroup/a/cpu.stat", "usage_usec 7");
        let unknown = counters.record().unknown.unwrap();
        assert!(unknown.contains("a/cpu.stat: "), "{unknown}");
    }

    #[test]
    fn version_1_counts_nanoseconds_and_without_a_quota_nothing_is_read() {
        let machine = Machine::new(1, 1, 1);
        machine
            .in_group("1:cpu:/a", &[("/", "cgroup", "rw,cpu")])
            .file("cgroup/a/cpu.cfs_quota_us", "30000")
            .file("cgroup/a/cpu.cfs_period_us", "100000");
        let unread = ThrottleCounters::of(&groups(&machine));
        assert!(unread.unknown().unwrap().contains("cgroup/a/cpu.stat: "));
        let stat = |text: &str| machine.file("cgroup/a/cpu.stat", text);
        stat("nr_periods 0\nnr_throttled 0\nthrottled_time 0");
        let mut counters = ThrottleCounters::of(&groups(&machine));
        stat("nr_periods 2\nnr_throttled 1\nthrottled_time 700");
        let found = counters.rise();
        assert_eq!(
            (found.periods, found.throttled, found.throttled_ns),
            (2, 1, 700)
        );
        machine.file("cgroup/a/cpu.cfs_quota_us", "-1");
        let none = ThrottleCounters::of(&groups(&machine));
        assert!(none.groups.is_empty() && none.unknown().is_none());
        // That groups above a container do not show is no error of each run.
        machine.in_group("1:cpu:/docker/1f", &[("/docker/1f", "cgroup", "ro,cpu")]);
        assert_eq!(ThrottleCounters::of(&groups(&machine)).unknown(), None);
    }

    #[test]
    fn a_thread_is_stopped_on_one_cpu_at_a_time_and_in_throttled_periods_only() {
        let of = |throttled, throttled_ns, elapsed_ns| {
            let record = ThrottlingRecord {
                group: Throttling {
                    periods: 10,
                    throttled,
                    throttled_ns,
                },
                period_ns: 100,
                elapsed_ns,
                unknown: None,
            };
            record.most_of_a_thread_ns()
        };
        assert_eq!(of(3, 80, 1000), 80);
        assert_eq!(of(3, 1200, 1000), 300);
        assert_eq!(of(10, 4000, 950), 950);
    }
}
