//! The machine under a measurement: what it is, where its threads run, and what would disturb them.
//!
//! | concept | modules |
//! | --- | --- |
//! | what the machine is | [`topology`], [`huge_pages`], [`boot`], [`idle_states`], `virtual_machines`, [`fingerprint`] |
//! | where threads run | [`cpu_set`], [`placement`], [`core_pairs`], [`compromise`], [`pinning`], [`priority`] |
//! | what must not happen in a hot loop | [`memory_lock`], [`page_faults`] |
//! | what stops a thread | [`counters`] |
//! | how a run is ended from outside | [`interrupt`], [`wake`] |
//! | how fast the TSC is by the kernel's word | [`kernel_tsc`] |
//! | how an event of the performance counters is opened | `perf_event` |
//! | whether it is fit to measure | [`readiness`] |
//!
//! Everything here is Linux, and nothing knows of RDMA: of the RDMA devices only their place in sysfs is read. What a
//! clock costs belongs to [`crate::time`], and mapping memory to [`crate::buffer`].

pub mod boot;
pub mod cgroup;
pub mod compromise;
pub mod core_pairs;
pub mod counters;
pub mod cpu_set;
pub mod error;
pub mod fingerprint;
pub mod huge_pages;
pub mod idle_states;
pub mod interrupt;
pub mod kernel_tsc;
#[cfg(test)]
pub(crate) mod made_up;
pub mod memory_lock;
pub mod page_faults;
mod perf_event;
pub mod pinning;
pub mod placement;
pub mod priority;
pub mod readiness;
mod system_files;
pub mod topology;
mod virtual_machines;
pub mod wake;

pub use compromise::{Compromise, PlacementWarning};
pub use core_pairs::{CorePair, CoreRelation};
pub use cpu_set::CpuSet;
pub use error::HostError;
pub use fingerprint::Fingerprint;
pub use huge_pages::{HugePages, TransparentHugePages};
pub use memory_lock::{Limit, MemoryLock};
pub use page_faults::PageFaults;
pub use placement::{Need, Placement, RoleSpec, Waiting};
pub use readiness::Readiness;
pub use topology::{Cpu, Topology};
pub use wake::Wakeable;
