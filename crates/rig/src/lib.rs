//! What the benchmarks share: workers and their roles, rounds, memory load, node-types, and several processes as one
//! measurement.

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

use hcabench_platform::{buffer, host, pacing, time};
use hcabench_queues as queues;
#[cfg(feature = "rdma")]
use hcabench_rdma as rdma;
use hcabench_results::{results, sorting, stats};

pub mod between;
pub mod generators;
pub mod launch;
pub mod node;
pub mod rig;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
