//! Memory load: threads that read and store lines of memory as fast as they can, or with pauses, and the pointer chase
//! that finds what a load of one line then takes.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`accesses`] | a function for each instruction set, kind of store and share of reads: a group of 50 lines each |
//! | [`generator`] | the loop of a generator, and its count of groups |
//! | [`crew`] | generators on their CPUs, which generate or rest on command |
//! | [`calibration`] | the pause that draws a share of the generators' own peak |
//! | [`cpus_left`] | the CPUs of generators beside what another benchmark measures |
//! | [`run_generators`] | their load while it measures |
//! | [`chase`] | one random cycle over all lines of a buffer, and steps along it |
//!
//! What is left out: bandwidths of caches, loads that several cores share, and all but x86-64 and
//! aarch64.

pub mod accesses;
pub mod calibration;
pub mod chase;
pub mod cpus_left;
pub mod crew;
pub mod generator;
pub mod run_generators;
#[cfg(test)]
mod traced;

pub use accesses::{Accesses, GROUP, InstructionSet, LINE, Store};
pub use chase::Chase;
pub use cpus_left::CpusLeft;
pub use crew::{BUFFERS, BufferSettings, CACHES, Generators, GeneratorsError};
pub use generator::{LONGEST_PAUSE, LineCounts, Load};
pub use run_generators::{ActiveLoad, LoadTraffic, MemoryLoad, RunGenerators};
