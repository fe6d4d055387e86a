//! The memory benchmark: how long a load takes while others draw bandwidth.
//!
//! A pointer chase runs on one CPU, generators of memory load on others. What is measured is a step of the chase: from
//! one dependent load to the next, whose address it has brought. Meanwhile each generator counts the lines that it reads
//! and stores. A point is one share of reads, one kind of store and one pause; a curve is all pauses of the same.
//!
//! Out of it are left: latencies of stores, lines that several cores share, and what processors do with lines ahead of
//! time (prefetching is on for generators, and cannot help the chase).
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`config`] | settings |
//! | [`plan`] | points, and CPUs, sizes and nodes as they will be |
//! | [`benchmark`] | the benchmark as the rig runs it |
//! | [`windows`] | waits for a stable bandwidth, then measures one window after another |
//! | [`analysis`] | which windows count, and what they come to |
//! | [`rows`] | settings, figures and rows of windows in the results |
//! | `presentation` | what plots and reports show |

pub mod analysis;
pub mod benchmark;
pub mod config;
pub mod error;
pub mod plan;
pub(super) mod presentation;
pub mod rows;
pub mod windows;
