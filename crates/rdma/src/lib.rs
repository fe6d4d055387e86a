//! Verbs and the RDMA connection manager, as safe types. They know bytes and work requests.

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

use hcabench_platform::{buffer, host};

pub mod cm;
pub mod direct;
pub mod environment;
mod error;
mod loaded;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
pub mod verbs;
