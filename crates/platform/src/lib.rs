//! The ground that all measurements stand on: clocks, memory, facts about the machine, and the wait between operations.
//!
//! Nothing here knows of RDMA or of a benchmark.

// Only the other crates of the program use it: what a name says needs no sentence.
#![allow(missing_docs)]

pub mod buffer;
pub mod host;
pub mod pacing;
#[cfg(test)]
#[path = "../../refused.rs"]
mod refused;
pub mod time;
