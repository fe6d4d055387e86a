//! As one program: each that is linked takes time. Those that need a process of their own are files beside this folder.

#![expect(clippy::disallowed_methods, reason = "a test may panic")]

use std::time::Duration;

mod common;
mod made_up_run;
#[path = "../program/mod.rs"]
mod program;
#[path = "../../crates/testing.rs"]
mod testing;

#[cfg(all(feature = "rdma", target_arch = "x86_64", target_env = "gnu"))]
mod adapters;
mod check_bounds;
mod clock;
#[cfg(target_arch = "x86_64")]
mod clock_trust;
mod compare_command;
#[cfg(feature = "rdma")]
mod container_limits;
mod cores_command;
#[cfg(feature = "rdma")]
mod devices_report;
// Pages describe the program that packages have.
#[cfg(feature = "packaged")]
mod documentation;
mod exports;
mod fabric_results;
mod find_rate;
mod findings_command;
mod health_command;
mod history;
mod interval_logs;
mod launchers;
mod limits_command;
#[cfg(target_arch = "x86_64")]
mod listings;
mod many_at_once;
mod memory_command;
#[cfg(target_arch = "x86_64")]
mod memory_kernels;
mod memory_load;
#[cfg(all(feature = "mqtt", feature = "zeromq"))]
mod node_broker;
mod node_command;
#[cfg(any(feature = "iceoryx2", feature = "grpc"))]
mod node_libraries;
mod node_peer;
mod node_processes;
mod node_results;
#[cfg(all(
    feature = "mqtt",
    feature = "nats",
    feature = "redis",
    feature = "zeromq"
))]
mod node_servers;
mod outputs;
mod plot_command;
mod queue_command;
mod queue_sweeps;
#[cfg(feature = "browser")]
mod report_browser;
mod requests_command;
mod secret;
mod stamps_command;
mod strangers;
mod sweep_command;
mod tables;
#[cfg(feature = "rdma")]
mod without_libraries;

/// Only what hangs takes longer.
pub const LIMIT: Duration = Duration::from_secs(600);
