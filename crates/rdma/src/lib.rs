//! Verbs and the RDMA connection manager, as safe types. They know bytes and work requests.

// Only the other crates of the program use it: what a name says needs no sentence.
#![allow(missing_docs)]

use hcabench_platform::{buffer, host};

pub mod cm;
pub mod direct;
pub mod environment;
mod loaded;
pub mod verbs;
