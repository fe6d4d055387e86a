//! The benchmarks: settings, plan, hot loops and analysis. They do not know each other and never print.

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

use hcabench_platform::{buffer, host, pacing, time};
use hcabench_queues as queues;
#[cfg(feature = "rdma")]
use hcabench_rdma as rdma;
use hcabench_results::{plot, results, sorting, stats};
use hcabench_rig::{between, generators, launch, node, rig};

pub mod bench;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
