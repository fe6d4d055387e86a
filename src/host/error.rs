//! What can go wrong between the program and the machine.

use super::cpu_set::{CpuListError, CpuSet};
use nix::errno::Errno;
use std::path::PathBuf;

/// An error of the layer `host`. Each names the operation, its object, the errno where there is one, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A file of procfs or sysfs that must be there could not be read.
    #[error("cannot read {}: {source}; are /proc and /sys mounted?", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },

    /// A file was read and holds what it should not.
    #[error("{} holds {text:?}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is in it.
        text: String,
        /// What is wrong with that.
        reason: String,
    },

    /// A text is no list of CPUs.
    #[error(transparent)]
    CpuList(#[from] CpuListError),

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

    /// A CPU that was asked for cannot be had.
    #[error("{option} {cpu}: CPU {cpu} {reason}; choose one of {allowed}")]
    CpuUnavailable {
        /// The option that asked.
        option: &'static str,
        /// The CPU it named.
        cpu: usize,
        /// Why it cannot be had.
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
        /// The CPUs that can be had.
        allowed: CpuSet,
    },

    /// There is no CPU to run on.
    #[error(
        "no CPU is both online and allowed to this process; look at its cpuset and at taskset -p"
    )]
    NoCpu,

    /// Pinning returned success, and the thread is somewhere else.
    #[error(
        "the thread was pinned to CPU {wanted} and runs on {found}; \
         does something else (a cpuset, taskset) move the threads of this process?"
    )]
    NotPinned {
        /// The CPUs asked for.
        wanted: CpuSet,
        /// The CPUs found.
        found: CpuSet,
    },

    /// A SCHED_FIFO priority outside of what the kernel has.
    #[error("SCHED_FIFO has no priority {priority}; choose one from {lowest} to {highest}")]
    PriorityRange {
        /// The priority asked for.
        priority: i32,
        /// The lowest there is.
        lowest: i32,
        /// The highest there is.
        highest: i32,
    },

    /// Setting the priority returned success, and the thread has another one.
    #[error(
        "the thread was given {wanted} and has {found}; does something else set the scheduling of this process?"
    )]
    PriorityNotSet {
        /// The policy asked for.
        wanted: String,
        /// The policy found.
        found: String,
    },

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

    /// A signal this layer needs has a handler of somebody else.
    #[error(
        "signal {signal} already has a handler; a library in this process uses it, and {purpose} needs it"
    )]
    SignalInUse {
        /// The signal's number.
        signal: i32,
        /// What it is needed for.
        purpose: &'static str,
    },
}
