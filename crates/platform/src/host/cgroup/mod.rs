//! The control groups of this process, from its own up to the root, and what they limit. Version 1 and version 2, also
//! side by side.
//!
//! The folders are those of `/proc/self/cgroup` below the mounts of `/proc/self/mountinfo`. Within a container the
//! groups above its own may not show: what they limit is not known then, which is not the same as no limit.

mod hierarchy;

use std::io;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use self::hierarchy::{Hierarchy, Level};
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

impl ControlGroups {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self::from_files(&SystemFiles::of_this_machine())
    }

    pub(crate) fn from_files(files: &SystemFiles) -> Self {
        ControlGroups {
            files: files.clone(),
            hierarchies: hierarchy::all(files),
        }
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

    /// Why there may be groups above those that show.
    pub(super) fn hidden(&self, controller: &str) -> Option<&String> {
        self.hierarchy(controller)?.hidden.as_ref()
    }

    /// The limits of all levels, and why there may be others.
    pub(super) fn limits<T>(
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
        (found, unknown.or(self.hidden(controller).cloned()))
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

    pub(super) fn path(&self, level: Level<'_>, file: &str) -> PathBuf {
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

    pub(super) fn cpu_quota(&self, level: Level<'_>) -> Result<Option<CpuQuota>, String> {
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

/// The limit of memory that leaves this process the least.
pub fn memory_limit() -> Option<MemoryLimit> {
    ControlGroups::of_this_process().memory_limit().limit
}

#[cfg(test)]
mod tests;
