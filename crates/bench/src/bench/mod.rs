//! The benchmarks. They do not know each other and never print; what they find leaves as data.

pub mod clock;
pub mod fabric;
pub mod hca;
pub mod memory;
pub mod node;
pub mod queue;
