//! What takes a CPU, by the kernel's tracepoints: each interrupt, softirq and switch of threads, with its time.
//!
//! The records come from perf, which stamps them with CLOCK_MONOTONIC_RAW. All tracepoints of a CPU write to one ring
//! of memory, so that they come in order. Where it is full, records are lost; the next one reports that.
//!
//! Left out: what has no tracepoint. That are system management interrupts, NMIs, page faults, the hypervisor, and the
//! way into and out of the kernel; and the interrupt `irq_work`, which perf raises itself.
//!
//! Source: perf_event_open(2); Documentation/trace/events.rst of the kernel.

mod format;
mod record;
mod stretches;

use std::io;
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use record::Decoder;
pub use record::{Interrupter, Record, RecordKind};
pub use stretches::{PARTS, Parts, Stretch, Stretches};

use super::error::HostError;
use super::open_files;
use super::system_files::SystemFiles;

/// Where tracefs is mounted, the usual place first.
const TRACEFS: [&str; 2] = [
    "sys/kernel/tracing/events",
    "sys/kernel/debug/tracing/events",
];
const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";
const LOCKED: &str = "proc/sys/kernel/perf_event_mlock_kb";
const NAMESPACE: &str = "proc/self/ns/pid";
/// `PROC_PID_INIT_INO` of the kernel.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
/// Files that may be open beside those of the trace.
const FILES_BESIDE: u64 = 64;

/// Types of the ring's records.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;

/// `PERF_EVENT_IOC_SET_OUTPUT`, which is the same for all processors that the crate `perf-event2` knows.
const SET_OUTPUT: u64 = 0x2405;

/// Why a CPU cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is none, or it may not be read.
    #[error(
        "the tracepoints cannot be read ({0}): run as root, with tracefs at /sys/kernel/tracing (mount -t tracefs \
         tracefs /sys/kernel/tracing); a kernel without tracepoints has none"
    )]
    NoTracefs(#[from] HostError),
    /// The limit of open files is unknown, or cannot be raised.
    #[error(transparent)]
    Limit(HostError),
    /// A file of it holds something else than it should.
    #[error("/{0} is not as the kernel documents it")]
    Malformed(String),
    /// perf refuses.
    #[error(
        "perf_event_open of tracepoint {id} on CPU {cpu} is not allowed ({errno}): run as root or with CAP_PERFMON, or \
         set /{PARANOID}, which is {paranoid}, to -1"
    )]
    NotAllowed {
        /// The tracepoint.
        id: u16,
        /// The CPU.
        cpu: usize,
        /// The error number.
        errno: Errno,
        /// The setting that forbids it.
        paranoid: String,
    },
    /// The rings may not be locked in memory.
    #[error(
        "a ring of {bytes} bytes for CPU {cpu} is not allowed (EPERM): without CAP_IPC_LOCK the rings of all \
         CPUs may have /{LOCKED}, which is {allowed}, for each CPU of the machine, and `ulimit -l` beyond: raise one \
         of them"
    )]
    NotLocked {
        /// The CPU.
        cpu: usize,
        /// The size of the ring.
        bytes: usize,
        /// The setting that forbids it.
        allowed: String,
    },
    /// The ids of threads are others here than in the records.
    #[error(
        "this process is in a separate PID namespace, as in a container, and the kernel's records have the machine's \
         ids of threads: run it outside, or in a container that has the machine's (docker run --pid=host)"
    )]
    OtherNamespace,
    /// Too few files may be open.
    #[error(
        "{needed} files would be open for {cpus} CPUs, and the limit is {limit}, which allows {most}: watch fewer, \
         or raise it as root with ulimit -n {needed}"
    )]
    OpenFiles {
        /// As many as would be.
        needed: u64,
        /// The CPUs to be traced.
        cpus: usize,
        /// As many as may be.
        limit: u64,
        /// The CPUs for which that is enough.
        most: u64,
    },
    /// It failed for another reason.
    #[error("{operation} of tracepoint {id} on CPU {cpu} failed: {source}")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// The tracepoint.
        id: u16,
        /// The CPU.
        cpu: usize,
        /// Why.
        source: io::Error,
    },
}

/// The trace of one CPU, of all that runs there.
#[derive(Debug)]
pub struct Tracer {
    ring: Ring,
    /// All tracepoints but the first, which owns the ring.
    _others: Vec<Counter>,
    decoder: Decoder,
}

/// The memory that the kernel writes to.
struct Ring(Sampler);

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ring")
    }
}

impl Tracer {
    /// Opens the tracepoints on each of `cpus` with a ring of this many bytes. They write from now on.
    ///
    /// # Errors
    /// With what is missing: tracefs, the permission, or files that may be open.
    pub fn open(cpus: &[usize], bytes: usize) -> Result<Vec<Self>, TraceError> {
        let files = SystemFiles::of_this_machine();
        in_first_namespace(&files)?;
        let is_there = |events: &&&str| !files.names(events).is_empty();
        let events = TRACEFS.iter().find(is_there).unwrap_or(&TRACEFS[0]);
        let decoder = Decoder::read(&files, events)?;
        let of_a_cpu = decoder.ids().count() as u64;
        let limit = |needed| open_files::raise(needed).map_err(TraceError::Limit);
        enough_files(of_a_cpu, cpus.len(), limit)?;
        let open = |&cpu: &usize| Tracer::on_cpu(cpu, bytes, decoder.clone(), &files);
        cpus.iter().map(open).collect()
    }

    fn on_cpu(
        cpu: usize,
        bytes: usize,
        decoder: Decoder,
        files: &SystemFiles,
    ) -> Result<Self, TraceError> {
        let mut ring: Option<Sampler> = None;
        let mut others = Vec::new();
        for id in decoder.ids() {
            let failed = |operation| {
                move |source| TraceError::Failed {
                    operation,
                    id,
                    cpu,
                    source,
                }
            };
            let mut counter = open(id, cpu).map_err(|error| refused(id, cpu, error, files))?;
            match &ring {
                None => {
                    let not_locked = |error: io::Error| match error.raw_os_error() {
                        Some(libc::EPERM) => TraceError::NotLocked {
                            cpu,
                            bytes,
                            allowed: setting(LOCKED, files),
                        },
                        _ => failed("mapping the ring")(error),
                    };
                    let mut sampler = counter.sampled(bytes).map_err(not_locked)?;
                    sampler.enable().map_err(failed("enabling"))?;
                    ring = Some(sampler);
                }
                Some(ring) => {
                    redirect(&counter, ring).map_err(failed("PERF_EVENT_IOC_SET_OUTPUT"))?;
                    counter.enable().map_err(failed("enabling"))?;
                    others.push(counter);
                }
            }
        }
        let missing = || TraceError::Malformed(TRACEFS[0].to_owned());
        Ok(Tracer {
            ring: Ring(ring.ok_or_else(missing)?),
            _others: others,
            decoder,
        })
    }

    /// Takes all records out of the ring, in the order of time.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) {
        while let Some(record) = self.ring.0.next_record() {
            let bytes = record.to_contiguous();
            let stamp = |at: usize| {
                let bytes = bytes.get(at..)?.first_chunk()?;
                Some(u64::from_ne_bytes(*bytes))
            };
            let found = match record.ty() {
                // The time, the size of the rest, and that.
                SAMPLE => stamp(0).zip(bytes.get(12..).and_then(|raw| self.decoder.decode(raw))),
                // The time is last.
                LOST | THROTTLE | UNTHROTTLE | LOST_SAMPLES => bytes
                    .len()
                    .checked_sub(8)
                    .and_then(stamp)
                    .map(|at| (at, RecordKind::Lost)),
                _ => None,
            };
            if let Some((at, what)) = found {
                take(Record { at, what });
            }
        }
    }

    /// What the kernel calls the source of a record.
    pub fn name(&self, source: Interrupter) -> String {
        self.decoder.name(source)
    }
}

fn open(id: u16, cpu: usize) -> io::Result<Counter> {
    let mut builder = Builder::new(Tracepoint::with_id(u64::from(id)));
    builder
        .any_pid()
        .one_cpu(cpu)
        .exclude_kernel(false)
        .exclude_hv(false)
        .sample_period(1)
        .sample(SampleFlag::TIME | SampleFlag::RAW)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC_RAW)
        // No thread waits for the ring: who reads it looks by itself, and no interrupt is raised for it until then.
        .wakeup_watermark(i32::MAX as usize);
    builder.build()
}

/// Makes what a tracepoint writes go to the ring of another.
fn redirect(counter: &Counter, ring: &Sampler) -> io::Result<()> {
    // SAFETY: both are open files of perf, and the call takes no memory.
    let done = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT as _, ring.as_raw_fd()) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

fn in_first_namespace(files: &SystemFiles) -> Result<(), TraceError> {
    match files.inode(NAMESPACE) {
        None | Some(FIRST_NAMESPACE) => Ok(()),
        Some(_) => Err(TraceError::OtherNamespace),
    }
}

/// `limit`: raises the limit of open files as far as it can, and returns it.
fn enough_files(
    of_a_cpu: u64,
    cpus: usize,
    limit: impl FnOnce(u64) -> Result<u64, TraceError>,
) -> Result<(), TraceError> {
    let needed = FILES_BESIDE + of_a_cpu * cpus as u64;
    let limit = limit(needed)?;
    if needed <= limit {
        return Ok(());
    }
    Err(TraceError::OpenFiles {
        needed,
        cpus,
        limit,
        most: limit.saturating_sub(FILES_BESIDE) / of_a_cpu.max(1),
    })
}

fn setting(path: &str, files: &SystemFiles) -> String {
    let setting = files.optional(path);
    setting.unwrap_or_else(|| "unknown".to_owned())
}

fn refused(id: u16, cpu: usize, source: io::Error, files: &SystemFiles) -> TraceError {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(errno @ (Errno::EACCES | Errno::EPERM)) => TraceError::NotAllowed {
            id,
            cpu,
            errno,
            paranoid: setting(PARANOID, files),
        },
        _ => TraceError::Failed {
            operation: "perf_event_open",
            id,
            cpu,
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::Machine;
    use super::*;
    use crate::testing::{Has as _, Refused as _};

    #[test]
    fn what_may_not_be_opened_is_told_with_the_setting() {
        let machine = Machine::new(1, 1, 1);
        machine.file(PARANOID, "2");
        let files = SystemFiles::below(machine.root());
        let told = |errno: Errno| refused(13, 1, errno.into(), &files).to_string();
        let text = told(Errno::EACCES);
        text.has(&[
            "tracepoint 13 on CPU 1",
            "CAP_PERFMON",
            "perf_event_paranoid, which is 2",
        ]);
        assert!(told(Errno::ENODEV).contains("failed: "), "{text}");
    }

    #[test]
    fn where_threads_have_other_ids_and_where_too_few_files_may_be_open_is_told() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert!(in_first_namespace(&files).is_ok());
        machine.file(NAMESPACE, "");
        in_first_namespace(&files).refused(&["--pid=host"]);
        let limit = |_| Ok(64 + 70);
        assert!(enough_files(25, 2, limit).is_ok());
        let text = enough_files(25, 3, limit).unwrap_err().to_string();
        text.has(&["139 files", "134, which allows 2", "ulimit -n 139"]);
    }
}
