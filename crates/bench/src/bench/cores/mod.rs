//! The benchmark of cache lines between CPUs: what it takes to hand one over, for every pair of CPUs.
//!
//! Two threads, each pinned to a CPU of the pair, hand numbers to and fro. Measured is
//!
//! - a round trip, without time stamps between its hand-overs: from before the store of a line to after the load that
//!   finds the answer in another line, in batches. Half of it needs no common clock;
//! - one way, from the stamp before the store to the stamp after the load that finds it, in both directions. It depends
//!   on the clocks of two CPUs, whose offset is known to half of the shortest round trip;
//! - a stream, in each direction: lines that one CPU writes and the other reads, through a ring.
//!
//! The two ends load and store, as queues and flags do; they neither lock nor exchange. Left out: read-modify-write
//! operations, lines that more than two CPUs share, and what several pairs do to each other at once.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`config`] | settings |
//! | [`plan`] | points, which are the kinds of pairs, and their time |
//! | [`lines`] | the lines, on a NUMA node |
//! | [`loops`] | the hot loops of both ends |
//! | [`one_pair`] | both ends of a pair in threads, and what comes of it |
//! | `watch` | the threads of a pair, also on a CPU that never runs them |
//! | [`benchmark`] | the benchmark as the rig runs it |
//! | [`rows`] | figures and rows of pairs in the results |
//! | [`all_pairs`] | the figures of all pairs, read from a folder, and which pair to use |
//! | `presentation` | what plots and reports show |

pub mod all_pairs;
pub mod benchmark;
pub mod config;
pub mod error;
pub mod lines;
pub mod loops;
pub mod one_pair;
pub mod plan;
pub(super) mod presentation;
pub mod rows;
mod watch;
