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

pub mod cli;

pub use hcabench_bench::bench;
pub use hcabench_platform::{buffer, host, pacing, time};
pub use hcabench_queues as queues;
#[cfg(feature = "rdma")]
pub use hcabench_rdma as rdma;
pub use hcabench_results::{compare, page, plot, results, stats};
pub use hcabench_rig::{generators, launch, node, rig};

#[cfg(test)]
#[path = "../tests/anywhere/made_up_run/mod.rs"]
mod made_up_run;

#[cfg(test)]
#[path = "../crates/refused.rs"]
mod refused;

// Under this name, tests of the library share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
