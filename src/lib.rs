//! The measurement suite for engineers of low-latency systems.
//!
//! `hcabench` measures how long a message is inside an InfiniBand or RoCE fabric, one way, between two host channel
//! adapters of one host, with every time stamp taken from one clock; and what it costs to hand data from one thread to
//! another through a queue.
//!
//! | layer | modules | may use |
//! | --- | --- | --- |
//! | ground | [`time`], [`buffer`], [`host`], [`pacing`], [`stats`] | each other; nothing of RDMA |
//! | RDMA | `verbs`, then `cm` | the ground |
//! | benchmarks | [`mod@bench`] | all below; never each other, and they never print |
//! | output | [`report`] | results as data; no benchmark's inside |
//! | command line | [`cli`] | benchmarks and report |

pub mod bench;
pub mod buffer;
pub mod cli;
#[cfg(feature = "rdma")]
pub mod cm;
pub mod host;
pub mod pacing;
pub mod report;
pub mod stats;
pub mod time;
#[cfg(feature = "rdma")]
pub mod verbs;

// Under this name, tests of the library share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
