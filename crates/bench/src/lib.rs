//! The benchmarks: settings, plan, hot loops and analysis. They do not know each other and never print.

use hcabench_platform::{buffer, host, pacing, time};
use hcabench_queues as queues;
#[cfg(feature = "rdma")]
use hcabench_rdma as rdma;
use hcabench_results::{plot, results, sorting, stats};
#[cfg(feature = "rdma")]
use hcabench_rig::launch;
use hcabench_rig::{generators, node, rig};

pub mod bench;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
