//! The base of all measurements: clocks, memory, facts about the machine, and the wait between operations.
//!
//! Nothing here knows of RDMA or of a benchmark.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

pub mod buffer;
pub mod host;
pub mod named;
pub mod pacing;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
pub mod time;
