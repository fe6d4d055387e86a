//! The ground that all measurements stand on: clocks, memory, facts about the machine, and the wait between operations.
//!
//! Nothing here knows of RDMA or of a benchmark.

#[cfg(test)]
#[path = "../../assertions.rs"]
mod assertions;
pub mod buffer;
pub mod host;
pub mod pacing;
pub mod time;
