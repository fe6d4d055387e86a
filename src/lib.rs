//! The measurement suite for engineers of low-latency systems.
//!
//! `hcabench` measures how long a message is inside an InfiniBand or RoCE fabric, one way, between two host channel
//! adapters of one host, with every time stamp taken from one clock; and what it costs to hand data from one thread to
//! another through a queue.
//!
//! | crate | modules | may use |
//! | --- | --- | --- |
//! | platform | [`time`], [`buffer`], [`host`], [`pacing`] | each other; nothing of RDMA |
//! | results | [`stats`], [`results`], [`compare`], [`history`], [`plot`], [`page`] | data and schemas; no benchmark |
//! | rdma | `rdma::verbs`, then `rdma::cm` | platform |
//! | queues | [`queues`] | platform |
//! | rig | [`rig`], [`between`], [`generators`], [`launch`], [`node`] | all of these; no benchmark |
//! | bench | [`mod@bench`] | all of these; benchmarks never use each other, and never print |
//! | hcabench | [`arguments`], [`terminal`] | all of these |
//! | | `findings`, then `driver`, `figures`, `report` | arguments and terminal |
//! | | [`cli`] | all |

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

pub mod arguments;
pub mod cli;
mod driver;
mod figures;
mod findings;
mod report;
pub mod terminal;

pub use hcabench_bench::bench;
pub use hcabench_platform::{buffer, host, pacing, time};
pub use hcabench_queues as queues;
#[cfg(feature = "rdma")]
pub use hcabench_rdma as rdma;
use hcabench_results::sorting;
pub use hcabench_results::{compare, history, page, plot, results, stats};
pub use hcabench_rig::{between, generators, launch, node, rig};

#[cfg(test)]
#[path = "../tests/anywhere/made_up_run/mod.rs"]
mod made_up_run;

#[cfg(test)]
#[path = "../crates/testing.rs"]
mod testing;

// Under this name, tests of the library share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
