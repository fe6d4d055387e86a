//! What can go wrong between the program and the machine.

use super::cpu_set::CpuSet;
use super::remedies::remedy;
use nix::errno::Errno;
use std::path::PathBuf;

/// An error of the layer `host`. Each names the operation, its object, the errno where there is one, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A file of procfs or sysfs that must be there could not be read.
    #[error(
        "cannot read {}: {source}; {}",
        path.display(),
        remedy(source).as_deref().unwrap_or("mount /proc and /sys")
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },

    /// A file was read and holds a text that it should not; what is wrong with that.
    #[error("{} holds {:?}: {}", .0.display(), .1, .2)]
    Malformed(PathBuf, String, String),

    /// A system call failed.
    #[error("{operation} of {object} failed: {errno}; {advice}")]
    System {
        /// What was tried, by the name of the call.
        operation: &'static str,
        /// What it was tried on.
        object: String,
        /// The error number.
        errno: Errno,
        /// What to do about it.
        advice: String,
    },

    /// Something takes more than this process may have.
    #[error("{what}: {reason}")]
    Shortage {
        /// What takes it.
        what: String,
        /// Which limit, its value, what is needed, and how to raise it.
        reason: String,
    },

    /// A thread could not be started.
    #[error("a thread could not be started: {source}: {advice}")]
    NoThread {
        /// Why not.
        source: std::io::Error,
        /// Which limit that is.
        advice: String,
    },

    /// A requested CPU cannot be used.
    #[error("{option} {cpu}: CPU {cpu} {reason}; choose one of {allowed}")]
    CpuUnavailable {
        /// The option that asked.
        option: &'static str,
        /// The CPU it named.
        cpu: usize,
        /// Why it cannot be used.
        reason: &'static str,
        /// The CPUs that can.
        allowed: CpuSet,
    },

    /// Two roles that must run at the same time were put on one CPU although there are more.
    #[error(
        "{first} {cpu} and {second} {cpu} name the same CPU, and one would keep the other from running; \
         choose two of {allowed}"
    )]
    SameCpu {
        /// The option of one role.
        first: &'static str,
        /// The option of the other role.
        second: &'static str,
        /// The CPU both name.
        cpu: usize,
        /// The CPUs that can be used.
        allowed: CpuSet,
    },

    /// There is no CPU to run on.
    #[error("no CPU is both online and allowed to this process; check its cpuset and taskset -p")]
    NoCpu,

    /// Pinning to the first set returned success, and the thread runs on the second.
    #[error(
        "the thread was pinned to CPU {0} and runs on {1}; keep other programs (cpusets, taskset) from moving its \
         threads"
    )]
    NotPinned(CpuSet, CpuSet),

    /// A SCHED_FIFO priority outside of what the kernel has.
    #[error("SCHED_FIFO has no priority {0}; choose one from 1 to 99")]
    PriorityRange(i32),

    /// Setting the first policy and priority returned success, and the thread has the second.
    #[error(
        "the thread was given {0} and has {1}; keep other programs from setting the scheduling of this process"
    )]
    PriorityNotSet(String, String),

    /// The limit on locked memory is too small.
    #[error("memlock limit is {limit}, {needed} are needed: {advice}")]
    MemoryLockLimit {
        /// The limit in force, with its unit.
        limit: String,
        /// What is needed, with its unit.
        needed: String,
        /// How to raise it.
        advice: String,
    },

    /// The signal of this number has a handler of somebody else, and is needed for this purpose.
    #[error(
        "signal {0} already has a handler; a library in this process uses it, and {1} needs it"
    )]
    SignalInUse(i32, &'static str),
}

impl HostError {
    /// The failure of a system call on an object, with what to do about it, for `map_err`.
    pub(super) fn system(
        operation: &'static str,
        object: impl Into<String>,
        advice: impl Into<String>,
    ) -> impl FnOnce(Errno) -> Self {
        let (object, advice) = (object.into(), advice.into());
        move |errno| Self::System {
            operation,
            object,
            errno,
            advice: remedy(&errno.into()).unwrap_or(advice),
        }
    }

    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        let of_limit = |errno: i32| [libc::EMFILE, libc::ENFILE, libc::ENOMEM].contains(&errno);
        match self {
            HostError::Shortage { .. } | HostError::NoThread { .. } => true,
            HostError::System { errno, .. } => of_limit(*errno as i32),
            HostError::Read { source, .. } => source.raw_os_error().is_some_and(of_limit),
            _ => false,
        }
    }
}

/// The object of calls that are about the thread that makes them.
pub(super) const THIS_THREAD: &str = "the calling thread";
