//! The measurement suite for engineers of low-latency systems.
//!
//! `hcabench` measures how long a message is inside an InfiniBand or RoCE fabric, one way, between two host channel
//! adapters of one host, with every time stamp taken from one clock; and what it costs to hand data from one thread to
//! another through a queue.
//!
//! | layer | modules | may use |
//! | --- | --- | --- |
//! | ground | [`time`], [`buffer`], [`host`], [`pacing`], [`stats`] | each other; nothing of RDMA |
//! | RDMA | `rdma::verbs`, then `rdma::cm` | the ground |
//! | queues | [`queues`] | the ground |
//! | rig | [`rig`] | all of these; no benchmark |
//! | several processes | [`launch`] | the rig and all below |
//! | nodes | [`node`] | all of these; no benchmark |
//! | benchmarks | [`mod@bench`] | the rig and all below; never each other, and they never print |
//! | results | [`results`], `compare`, `plot`, `page` | data and schemas; no benchmark |
//! | command line | [`cli`] | all |

pub mod bench;
pub mod buffer;
pub mod cli;
mod compare;
pub mod generators;
pub mod host;
pub mod launch;
pub mod node;
pub mod pacing;
mod page;
mod plot;
pub mod queues;
#[cfg(feature = "rdma")]
pub mod rdma;
#[cfg(test)]
mod refused;
pub mod results;
pub mod rig;
pub mod stats;
pub mod time;

// Under this name, tests of the library share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
