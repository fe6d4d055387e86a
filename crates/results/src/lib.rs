//! What leaves the program, and what is made of it: statistics, results folders, comparing, figures and pages.
//!
//! It knows data and their schemas, and no benchmark.

// They panic where the output is closed or full.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

#[cfg(test)]
use hcabench_platform::pacing;

#[allow(missing_docs)]
pub mod compare;
pub mod history;
#[cfg(test)]
#[path = "../../../tests/anywhere/made_up_run/mod.rs"]
mod made_up_run;
#[allow(missing_docs)]
pub mod page;
#[allow(missing_docs)]
pub mod plot;
pub mod results;
pub mod sorting;
pub mod stats;
#[cfg(test)]
#[path = "../../testing.rs"]
mod testing;

// Under this name, tests share files with those of the program.
#[cfg(test)]
extern crate self as hcabench;
