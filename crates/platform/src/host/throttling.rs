//! How often, and for how long, CPU quotas stopped the threads of this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::cgroup::ControlGroups;

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
        let hidden = groups.hidden("cpu");
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
    use crate::host::system_files::SystemFiles;

    fn groups(machine: &Machine) -> ControlGroups {
        ControlGroups::from_files(&SystemFiles::below(machine.root()))
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
