//! Whether this machine is ready to measure, and what to change if not.
//!
//! Each check is a function of `Facts` in a file by subject: `processor`, `rdma`, `pci`, `clock`, `memory`, `limits`,
//! `system`. A check spoils only where figures would be wrong or a default run impossible; what adds some noise or
//! widens a tail is advice.
//!
//! Left out: the state of the RDMA devices themselves (ports, firmware), what their interrupts do, and measuring
//! anything.

mod clock;
mod limits;
mod memory;
mod pci;
mod processor;
mod rdma;
mod system;

use super::error::HostError;
use super::fingerprint::Fingerprint;
use super::memory_lock::{MemoryLock, address_space_size};
use super::system_files::SystemFiles;
use super::topology::Topology;
use serde::Serialize;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Good,
    /// A measurement is valid, and would be better after what is advised.
    Advice,
    /// A measurement would be wrong, or is impossible.
    Spoils,
}

/// One property of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name for programs; it stays the same from version to version.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// How the machine is.
    pub found: String,
    pub verdict: Verdict,
    /// What to change, if there is anything.
    pub advice: Option<String>,
}

/// What a run needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Whether there is nothing to measure without RDMA devices.
    pub devices: bool,
    /// Physical cores without which no figure is right.
    pub cores: usize,
    /// Physical cores with which no role shares one.
    pub better_cores: usize,
    /// CPUs that its threads keep busy all the time.
    pub cpus: usize,
    /// Whether these threads have a real-time priority.
    pub realtime: bool,
    pub huge_pages: u64,
    /// Bytes to lock: the whole address space of the process in a run.
    pub locked_bytes: u64,
}

impl Needs {
    /// What a run with default settings needs between RDMA devices.
    pub fn between_devices() -> Self {
        Self {
            devices: true,
            ..Self::between_threads()
        }
    }

    /// What a run with default settings needs between two threads.
    ///
    /// Locked is what this process has mapped now, the huge pages, and the stacks of the threads, of 2 MiB each.
    pub fn between_threads() -> Self {
        const BUFFERS: u64 = 8;
        const THREADS: u64 = 6;
        const PAGE: u64 = 2 << 20;
        Self {
            devices: false,
            cores: 2,
            better_cores: 3,
            cpus: 2,
            realtime: false,
            huge_pages: BUFFERS,
            locked_bytes: address_space_size().unwrap_or(0) + (BUFFERS + THREADS) * PAGE,
        }
    }

    /// What a pointer chase beside a generator of memory load needs. Their buffers are not locked.
    pub fn of_memory_load() -> Self {
        Self {
            devices: false,
            cores: 2,
            better_cores: 3,
            cpus: 2,
            realtime: false,
            huge_pages: 0,
            locked_bytes: 0,
        }
    }

    /// The needs of a watch over the clock that keeps this many bytes: one core is enough to watch it.
    pub fn of_a_watch(kept_bytes: u64) -> Self {
        Self {
            devices: false,
            cores: 1,
            better_cores: 1,
            cpus: 1,
            realtime: false,
            huge_pages: kept_bytes.div_ceil(2 << 20),
            locked_bytes: kept_bytes,
        }
    }

    /// The same, where threads keep this many CPUs busy.
    #[must_use]
    pub fn with_busy(self, cpus: usize) -> Self {
        Self { cpus, ..self }
    }

    /// The same, where these threads have that priority (SCHED_FIFO), if they have one.
    #[must_use]
    pub fn with_priority(self, priority: Option<u8>) -> Self {
        Self {
            realtime: priority.is_some(),
            ..self
        }
    }
}

/// What the checks are made on.
struct Facts {
    files: SystemFiles,
    /// Without CPUs where it cannot be read.
    topology: Topology,
    fingerprint: Fingerprint,
    memory_lock: MemoryLock,
    needs: Needs,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Readiness {
    /// Whether nothing spoils a measurement.
    pub ready: bool,
    /// What it was judged by.
    pub needs: Needs,
    pub checks: Vec<Check>,
    pub machine: Fingerprint,
}

impl Readiness {
    /// Checks this machine. Call it before any thread is pinned.
    pub fn assess(needs: Needs) -> Result<Self, HostError> {
        Self::of(needs, Topology::read()?)
    }

    /// As [`assess`](Self::assess), of what there is to read where /sys is missing.
    pub fn assess_in_part(needs: Needs) -> Result<Self, HostError> {
        let topology = match Topology::read() {
            Err(HostError::Read { .. }) => Topology::unknown(),
            read => read?,
        };
        Self::of(needs, topology)
    }

    fn of(needs: Needs, topology: Topology) -> Result<Self, HostError> {
        Ok(Self::from_facts(Facts {
            files: SystemFiles::of_this_machine(),
            topology,
            fingerprint: Fingerprint::collect(),
            memory_lock: MemoryLock::read()?,
            needs,
        }))
    }

    fn from_facts(facts: Facts) -> Self {
        let check = |(id, title, look): (&'static str, &'static str, CheckFunction)| {
            let assessment = match facts.topology.cpus.is_empty() && BY_SYSFS.contains(&id) {
                true if id == "cores" => "unknown: /sys cannot be read"
                    .spoils("the CPUs are listed there: mount -t sysfs sysfs /sys"),
                true => unknown("sys"),
                false => look(&facts),
            };
            assessment.map(|(found, verdict, advice)| Check {
                id,
                title,
                found,
                verdict,
                advice,
            })
        };
        let checks: Vec<Check> = CHECKS.into_iter().filter_map(check).collect();
        let ready = checks.iter().all(|check| check.verdict < Verdict::Spoils);
        Self {
            ready,
            needs: facts.needs,
            checks,
            machine: facts.fingerprint,
        }
    }

    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Check> {
        self.checks
            .iter()
            .filter(move |check| check.verdict == verdict)
    }
}

/// How the machine was found, what that came to, and what to change; `None` where there is nothing to judge.
type Assessment = Option<(String, Verdict, Option<String>)>;
type CheckFunction = fn(&Facts) -> Assessment;

/// The name of the check of CPU quotas.
pub const CPU_QUOTA: &str = "cpu_quota";

/// Each check with its name for programs and for people.
const CHECKS: [(&str, &str, CheckFunction); 27] = [
    ("cores", "cores", processor::cores),
    (CPU_QUOTA, "CPU quota", limits::cpu_quota),
    ("cpuset", "cpuset", limits::cpuset),
    ("isolated_cpus", "isolated CPUs", processor::isolation),
    ("smt", "SMT", processor::smt),
    ("governor", "frequency governor", processor::governor),
    ("idle_states", "idle states", processor::idle_states),
    ("rdma_devices", "RDMA devices", rdma::nodes),
    ("pci_link", "PCI Express link", pci::link),
    ("pci_power", "PCI Express sleep", pci::power),
    ("iommu", "IOMMU", pci::iommu),
    ("clock_source", "clock source", clock::source),
    ("tsc", "TSC", clock::tsc),
    ("generic_timer", "generic timer", clock::generic_timer),
    ("huge_pages", "huge pages, 2 MiB", memory::huge_pages),
    ("memlock", "memlock limit", memory::lock_limit),
    ("memory_limit", "memory limit", limits::memory),
    ("pids_limit", "pids limit", limits::pids),
    ("ulimits", "ulimits", limits::ulimits),
    (
        "transparent_huge_pages",
        "transparent huge pages",
        memory::transparent_huge_pages,
    ),
    ("swap", "swap", memory::swap),
    ("numa_balancing", "NUMA balancing", memory::numa_balancing),
    ("virtualisation", "virtualisation", system::virtualisation),
    (
        "virtual_machines",
        "virtual machines",
        system::virtual_machines,
    ),
    ("load", "load", system::load),
    ("irqbalance", "irqbalance", system::interrupts),
    (
        "realtime_throttling",
        "real-time throttling",
        system::realtime_throttling,
    ),
];

/// The checks that have nothing to judge where there is no /sys.
const BY_SYSFS: [&str; 10] = [
    "cores",
    "isolated_cpus",
    "smt",
    "governor",
    "idle_states",
    "rdma_devices",
    "clock_source",
    "huge_pages",
    "transparent_huge_pages",
    "numa_balancing",
];

/// What cannot be judged without a file of the kernel, or without all of them.
fn unknown(missing: &str) -> Assessment {
    let found = format!("unknown: /{missing} cannot be read");
    Some((found, Verdict::Advice, None))
}

/// The text that describes how the machine was found.
trait ToAssessment: Into<String> {
    fn good(self) -> Assessment {
        Some((self.into(), Verdict::Good, None))
    }

    fn advise(self, advice: impl Into<String>) -> Assessment {
        Some((self.into(), Verdict::Advice, Some(advice.into())))
    }

    fn spoils(self, advice: impl Into<String>) -> Assessment {
        Some((self.into(), Verdict::Spoils, Some(advice.into())))
    }
}

impl ToAssessment for String {}
impl ToAssessment for &str {}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
