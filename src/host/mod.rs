//! The machine under a measurement: what it is, where its threads run, and what would disturb them.
//!
//! | concept | modules |
//! | --- | --- |
//! | what the machine is | `topology`, `huge_pages`, `boot`, `idle_states`, `virtual_machines`, `fingerprint`, `memory_layout` |
//! | where threads run | [`cpu_set`], `placement`, `core_pairs`, `compromise`, [`pinning`], [`priority`] |
//! | what must not happen in a hot loop | [`memory_lock`], `counters` |
//! | what stops a thread | `counters`, `interrupt_lines`, `running`, `trace` |
//! | what moves between memory and the processor | [`uncore`] |
//! | what keeps an idle CPU awake | `idle_hold` |
//! | how many files may be open | `open_files` |
//! | which machine it is | `machine_name` |
//! | how a run is ended from outside | `interrupt`, [`wake`] |
//! | libraries that a part of the program needs | `library` |
//! | how fast the TSC is by the kernel's word | `kernel_tsc` |
//! | whether it is fit to measure | `readiness` |
//!
//! Everything here is Linux, and nothing knows of RDMA: of the RDMA devices only their place in sysfs is read. What a
//! clock costs belongs to [`crate::time`], and mapping memory to [`crate::buffer`].

pub(crate) mod boot;
pub(crate) mod cgroup;
pub(crate) mod compromise;
pub(crate) mod core_pairs;
pub(crate) mod counters;
pub mod cpu_set;
pub mod error;
pub(crate) mod fingerprint;
pub(crate) mod huge_pages;
pub(crate) mod idle_hold;
pub(crate) mod idle_states;
pub(crate) mod interrupt;
#[cfg_attr(not(feature = "rdma"), allow(dead_code))]
pub(crate) mod interrupt_lines;
pub(crate) mod kernel_tsc;
#[cfg(any(feature = "rdma", feature = "zeromq"))]
pub(crate) mod library;
#[cfg_attr(not(feature = "rdma"), allow(dead_code))]
pub(crate) mod machine_name;
#[cfg(test)]
pub(crate) mod made_up;
pub(crate) mod memory_layout;
pub mod memory_lock;
pub(crate) mod open_files;
pub mod pinning;
pub(crate) mod placement;
pub mod priority;
pub(crate) mod readiness;
pub(crate) mod running;
pub(crate) mod system_files;
pub(crate) mod topology;
pub(crate) mod trace;
pub mod uncore;
mod virtual_machines;
pub mod wake;

pub(crate) use compromise::PlacementWarning;
pub(crate) use core_pairs::CoreRelation;
pub use cpu_set::CpuSet;
pub use error::HostError;
pub use huge_pages::HugePages;
pub use memory_lock::MemoryLock;
pub(crate) use placement::{Need, Placement, RoleSpec, Waiting};
pub(crate) use topology::Topology;
pub use wake::Wakeable;
