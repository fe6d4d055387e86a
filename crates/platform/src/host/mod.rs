//! The machine under a measurement: what it is, where its threads run, and what would disturb them.
//!
//! | concept | modules |
//! | --- | --- |
//! | what the machine is | `topology`, `huge_pages`, `boot`, `idle_states`, `virtual_machines`, `fingerprint` |
//! | what memory and caches it has | `memory_layout`, `memory_modules`, `core_caches` |
//! | what limits a process | `cgroup`, `throttling`, `limits` |
//! | where threads run | [`cpu_set`], `placement`, `core_pairs`, `compromise`, [`pinning`], [`priority`] |
//! | what must not happen in a hot loop | [`memory_lock`], `counters` |
//! | what stops a thread | `counters`, `interrupt_lines`, `running`, `trace` |
//! | what moves between memory and the processor, what translations of addresses cost | [`uncore`], [`tlb`] |
//! | what keeps an idle CPU awake | `idle_hold` |
//! | how many files and threads there may be | `open_files`, `needs`, `resources`, `remedies`, `threads`, `gave_up` |
//! | whether anybody can read what is printed | `standard_output` |
//! | which machine it is | `machine_name` |
//! | how a run is ended from outside | `interrupt`, [`wake`] |
//! | libraries that a part of the program needs | `library` |
//! | how fast the TSC is by the kernel's word | `kernel_tsc` |
//! | whether it is fit to measure | `readiness` |
//!
//! Everything here is Linux, and nothing knows of RDMA: of the RDMA devices only their place in sysfs is read. What a
//! clock costs belongs to [`crate::time`], and mapping memory to [`crate::buffer`].

#[allow(missing_docs)]
pub mod boot;
#[allow(missing_docs)]
pub mod cgroup;
#[allow(missing_docs)]
pub mod compromise;
pub mod core_caches;
#[allow(missing_docs)]
pub mod core_pairs;
#[allow(missing_docs)]
pub mod counters;
pub mod cpu_set;
pub mod error;
#[allow(missing_docs)]
pub mod fingerprint;
pub mod gave_up;
pub mod huge_pages;
pub mod idle_hold;
#[allow(missing_docs)]
pub mod idle_states;
pub mod interrupt;
pub mod interrupt_lines;
#[allow(missing_docs)]
pub mod kernel_tsc;
#[cfg(feature = "libraries")]
pub mod library;
#[allow(missing_docs)]
pub mod limits;
pub mod machine_name;
#[cfg(any(test, feature = "testing"))]
pub mod made_up;
pub mod memory_layout;
pub mod memory_lock;
#[allow(missing_docs)]
pub mod memory_modules;
pub mod needs;
pub mod open_files;
pub mod pinning;
#[allow(missing_docs)]
pub mod placement;
pub mod priority;
#[allow(missing_docs)]
pub mod readiness;
pub mod remedies;
pub mod resources;
#[allow(missing_docs)]
pub mod running;
pub mod standard_output;
pub mod system_files;
pub mod threads;
#[allow(missing_docs)]
pub mod throttling;
pub mod tlb;
#[allow(missing_docs)]
pub mod topology;
#[allow(missing_docs)]
pub mod trace;
pub mod uncore;
mod virtual_machines;
pub mod wake;

pub use compromise::Compromise;
pub use core_caches::CoreCaches;
pub use core_pairs::CoreRelation;
pub use cpu_set::CpuSet;
pub use error::HostError;
pub use huge_pages::HugePages;
pub use memory_lock::MemoryLock;
pub use needs::Needs;
pub use placement::{Need, Placement, RoleSpec, WaitMode};
pub use topology::Topology;
pub use wake::Wakeable;
