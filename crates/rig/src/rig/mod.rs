//! What every benchmark shares, whatever it measures.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `benchmark` | the trait of a benchmark, its plan and its outcome |
//! | `child` | this program once more, as a child that is asked and answers |
//! | `control` | what threads of a run share: ready barrier, stop flag, heartbeats |
//! | `role` | what a thread does, as data |
//! | `workers` | pinned threads with roles, and their one supervisor |
//! | `memory` | whether a run fits into the machine and its control group |
//! | `ledger` | what was sent against what arrived |
//! | `error` | what can go wrong in any benchmark |
//! | `findings` | findings that several benchmarks make |
//! | `json_lines` | messages between processes, a line of JSON each |
//! | `in_threads` | short work in several threads at once |
//! | `exchange`, `clock_offset` | the offset of two CPUs' clocks |
//! | [`limit`] | a limit on a length of time |
//! | [`named`] | settings with a fixed set of named values |
//! | `priority` | whether threads that spin can have a real-time priority |
//! | [`ports`], `port_choice` | ports as the user names them, and which two a run uses |
//! | `sweep` | the order of points over rounds, and the time for them |
//! | `trust` | whether the processor's counter can be trusted: flags, rate, offsets, steps back |

#[allow(missing_docs)]
pub mod benchmark;
pub mod child;
pub mod clock_offset;
#[allow(missing_docs)]
pub mod control;
#[allow(missing_docs)]
pub mod error;
#[allow(missing_docs)]
pub mod exchange;
pub mod findings;
#[allow(missing_docs)]
pub mod in_threads;
pub(crate) mod json_lines;
#[allow(missing_docs)]
pub mod ledger;
pub mod limit;
#[allow(missing_docs)]
pub mod memory;
pub mod named;
#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod port_choice;
pub mod ports;
pub mod priority;
pub mod role;
#[allow(missing_docs)]
pub mod sweep;
#[allow(missing_docs)]
pub mod trust;
#[allow(missing_docs)]
pub mod workers;
