//! The base of all measurements: clocks, memory, facts about the machine, and the wait between operations.
//!
//! Nothing here knows of RDMA or of a benchmark.

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

pub mod buffer;
pub mod host;
pub mod named;
pub mod pacing;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
pub mod time;
