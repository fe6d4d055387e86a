//! What leaves the program, and what is made of it: statistics, results folders, comparing, figures and pages.
//!
//! It knows data and their schemas, and no benchmark.

// Only the other crates of the program use it: what a name says needs no sentence.
#![allow(missing_docs)]

#[cfg(test)]
use hcabench_platform::pacing;

pub mod compare;
pub mod page;
pub mod plot;
#[cfg(test)]
#[path = "../../refused.rs"]
mod refused;
pub mod results;
pub mod stats;

// Under this name, tests share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
