//! The node benchmark: messaging through node-types, as an application sees it.
//!
//! A publisher waits for its timer, stamps a sample and writes it to its node. A subscriber reads from its node and
//! stamps what has come. Between the two stamps lies the node-type, with all that it does on both sides: that is the
//! latency. The time from when the sample was meant to be sent is a second latency, which holds what a stall of the
//! publisher has caused.
//!
//! Ends are threads of one process, or processes, and have one clock. What a sample carries is that clock, moved by the
//! same amount for all of a run so that it counts from the Unix epoch: any program can measure against it.
//!
//! | concept | files |
//! | --- | --- |
//! | settings | `config`, `plan` |
//! | the trait, and one point of it | `benchmark`, `run`, `ends`, `broker`, `running_latency` |
//! | ends that are processes | [`process`] |
//! | ends on two hosts | [`between`] |
//! | the ports of infiniband | `verbs` |
//! | the loops | `task`, `publisher`, `subscriber`, `timer`, `sample`, `log`, `shared` |
//! | what came of it | `analysis`, `microseconds`, `result`, `rows`, `findings`, `files`, `presentation` |

pub mod benchmark;
pub mod between;
pub mod config;
pub mod plan;
pub mod process;

mod analysis;
pub mod broker;
mod ends;
mod error;
mod files;
mod findings;
mod log;
mod microseconds;
mod point;
pub(super) mod presentation;
mod publisher;
mod result;
mod rows;
mod run;
mod running_latency;
mod sample;
mod shared;
mod subscriber;
mod task;
mod timer;
#[cfg(feature = "rdma")]
mod verbs;
