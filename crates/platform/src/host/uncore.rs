//! What the memory controllers have read and written, by their own counters, through perf.
//!
//! | controllers | perf's devices | events |
//! | --- | --- | --- |
//! | Intel, servers | `uncore_imc_N` | `cas_count_read`, `cas_count_write`; some with `_sch0` and `_sch1` |
//! | Intel, others | `uncore_imc` | `data_reads`, `data_writes` |
//! | | `uncore_imc_free_running_N` | `data_read`, `data_write` |
//! | AMD, Zen 4 and later | `amd_umc_N` | 0x0a with `rdwrmask` 1 and 2; the kernel names no events |
//!
//! A device that is not in the table counts where it has a pair of events of these names; others can be named
//! ([`ChosenEvents`]). They count whatever moves: other programs, devices and the kernel too. Each counter is opened on the CPUs that the
//! device's `cpumask` names, one for each package, and all of them are summed. They are pinned: a counter that does not
//! count all the time is an error, not an estimate.
//!
//! Left out: Arm; `uncore_imc_free_running_N` of Intel's servers, whose scale older kernels give wrongly.
//!
//! The tests find counters on made-up machines. Reading them was never tried: no machine at hand shows any, as virtual
//! machines have none.
//!
//! Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format} of the kernel, and its
//! arch/x86/events; perf_event_open(2).

mod chosen;
mod controllers;
mod device;

use std::io;

use nix::errno::Errno;
use perf_event::events::Raw;
use perf_event::{Builder, Counter};

pub use self::chosen::{ChosenEvent, ChosenEvents};
use self::controllers::{Event, TransferDirection, cpus_of_package, find};
use self::device::DEVICES;
use super::error::HostError;
use super::system_files::SystemFiles;

const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";

/// Why the memory controllers' counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UncoreError {
    /// perf has no such device.
    #[error(
        "no memory controller shows its counters below /{} (uncore_imc*, amd_umc*): virtual machines usually have \
         none; elsewhere load the kernel's module intel_uncore or amd_uncore",
        DEVICES
    )]
    NoDevice,
    /// There are devices, but none has the events.
    #[error(
        "{devices} below /{} have no events that are known to count reads and writes of memory",
        DEVICES
    )]
    NoEvents {
        /// The devices.
        devices: String,
    },
    /// An event that was chosen is not there.
    #[error("{event}: {what}: {there}")]
    NotThere {
        /// As it was chosen.
        event: String,
        /// What is not.
        what: String,
        /// What is.
        there: String,
    },
    /// Two choices are one counter.
    #[error(
        "{one} and {other} choose the same counter of {device}, which would be summed twice: leave one out"
    )]
    Twice {
        /// As it was chosen first.
        one: String,
        /// As it was chosen again.
        other: String,
        /// The device.
        device: String,
    },
    /// What a node without CPUs reads passes no controller of a package of CPUs.
    #[error(
        "which controllers serve NUMA node {node} is not known, as it has no CPUs of a known package"
    )]
    Unassigned {
        /// The node.
        node: u32,
    },
    /// Something there cannot be read.
    #[error(transparent)]
    Files(#[from] HostError),
    /// It may not be opened.
    #[error(
        "perf_event_open of {device} on CPU {cpu} is not allowed ({errno}): run as root or with CAP_PERFMON, or set \
         /{}, which is {paranoid}, to 0 or less",
        PARANOID
    )]
    NotAllowed {
        /// The device.
        device: String,
        /// The CPU.
        cpu: usize,
        /// The error number.
        errno: Errno,
        /// The setting that forbids it.
        paranoid: String,
    },
    /// It could not be opened for another reason.
    #[error("perf_event_open of {device} on CPU {cpu} failed: {errno}")]
    Refused {
        /// The device.
        device: String,
        /// The CPU.
        cpu: usize,
        /// The error number.
        errno: Errno,
    },
}

/// Bytes that the memory controllers have moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryTraffic {
    /// Out of memory.
    pub read: u64,
    /// Into memory.
    pub written: u64,
}

impl MemoryTraffic {
    /// Both ways.
    pub fn all(&self) -> u64 {
        self.read + self.written
    }
}

/// The counters of the memory controllers.
#[derive(Debug)]
pub struct Uncore {
    counters: Vec<(Event, Counter)>,
}

impl Uncore {
    /// Opens those of the package of a NUMA node if there is a node, else all of them. They count from now on. Events that
    /// are chosen are opened in place of those that are known, also for a node of which no package is known.
    ///
    /// # Errors
    /// With what is missing: the devices, their events, the package, or the permission.
    pub fn open(node: Option<u32>, chosen: &ChosenEvents) -> Result<Self, UncoreError> {
        let files = SystemFiles::of_this_machine();
        let mut counters = Vec::new();
        for event in find(&files, node, chosen)? {
            for cpu in event.cpus.iter() {
                let counter = event
                    .open(cpu)
                    .map_err(|error| event.refused(cpu, error, &files))?;
                counters.push((event.clone(), counter));
            }
        }
        Ok(Uncore { counters })
    }

    /// Whether the package of a node is known, whose controllers serve it.
    ///
    /// # Errors
    /// [`UncoreError::Unassigned`] where it is not.
    pub fn require_package(node: u32) -> Result<(), UncoreError> {
        cpus_of_package(&SystemFiles::of_this_machine(), node).map(|_| ())
    }

    /// The events that count, as perf writes them.
    pub fn events(&self) -> Vec<String> {
        let counters = self.counters.iter();
        let mut names: Vec<String> = counters
            .map(|(event, _)| format!("{}/{}/", event.device, event.name))
            .collect();
        names.dedup();
        names
    }

    /// What was moved since they were opened, all of them together.
    ///
    /// # Errors
    /// When a counter cannot be read; [`io::ErrorKind::UnexpectedEof`] if something else uses the hardware behind it.
    pub fn read(&mut self) -> io::Result<MemoryTraffic> {
        let mut moved = MemoryTraffic::default();
        for (event, counter) in &mut self.counters {
            let bytes = counter.read()?.saturating_mul(event.bytes);
            match event.direction {
                TransferDirection::Read => moved.read += bytes,
                TransferDirection::Written => moved.written += bytes,
            }
        }
        Ok(moved)
    }
}

impl Event {
    fn open(&self, cpu: usize) -> io::Result<Counter> {
        let [config, config1, config2] = self.config;
        let mut builder = Builder::new(Raw::new(config).config1(config1).config2(config2));
        builder.attrs_mut().type_ = self.kind;
        // These devices know no exclusion.
        builder
            .any_pid()
            .one_cpu(cpu)
            .exclude_kernel(false)
            .exclude_hv(false);
        builder.pinned(true).enabled(true).build()
    }

    fn refused(&self, cpu: usize, error: io::Error, files: &SystemFiles) -> UncoreError {
        let device = self.device.clone();
        match Errno::try_from(error).unwrap_or(Errno::UnknownErrno) {
            errno @ (Errno::EACCES | Errno::EPERM) => {
                let paranoid = files
                    .optional(PARANOID)
                    .unwrap_or_else(|| "unknown".to_owned());
                UncoreError::NotAllowed {
                    device,
                    cpu,
                    errno,
                    paranoid,
                }
            }
            errno => UncoreError::Refused { device, cpu, errno },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu_set::CpuSet;
    use super::super::made_up::Machine;
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn what_may_not_be_opened_is_told_with_the_setting() {
        let machine = Machine::new(1, 1, 1);
        machine.file(PARANOID, "4");
        let files = SystemFiles::below(machine.root());
        let event = Event {
            device: "uncore_imc_0".to_owned(),
            name: "cas_count_read".to_owned(),
            kind: 20,
            config: [0; 3],
            cpus: CpuSet::new(),
            direction: TransferDirection::Read,
            bytes: 64,
        };
        let refused = |errno: Errno| event.refused(4, errno.into(), &files).to_string();
        let text = refused(Errno::EACCES);
        text.has(&[
            "uncore_imc_0 on CPU 4",
            "EACCES",
            "perf_event_paranoid, which is 4",
        ]);
        assert!(refused(Errno::ENODEV).contains("uncore_imc_0 on CPU 4 failed: ENODEV"));
    }

    #[test]
    fn this_machine_counts_or_says_why_not() {
        match Uncore::open(None, &ChosenEvents::default()) {
            Ok(mut counters) => {
                let first = counters.read().unwrap();
                assert!(counters.read().unwrap().all() >= first.all());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
