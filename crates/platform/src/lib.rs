//! The base of all measurements: clocks, memory, facts about the machine, and the wait between operations.
//!
//! Nothing here knows of RDMA or of a benchmark.

pub mod buffer;
pub mod host;
pub mod named;
pub mod pacing;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;
pub mod time;
