//! The queue benchmark: what an enqueue and a dequeue cost, and how long an element stays in the queue.
//!
//! | concept | modules |
//! | --- | --- |
//! | what the rig calls | `benchmark` |
//! | what is asked for | `config`, `plan`, `left_out`, `cpus`, `seats`, `crowded`, `memory` |
//! | a run: its threads, their supervisor, and the judge of what came out | `round`, `task`, `roles`, `ends`, `stage`, `threads`, `loops`, `warm_up`, `passage`, `notes`, `supervisor`, `judge` |
//! | the hot loops | [`runner`], `round_trip`, with a [`measurer`] (`tagging` for several threads, `batches` for short operations) and a pace of [`crate::pacing`]; [`retry`] is between two attempts, [`control`] and [`patience`] end them |
//! | several threads at each end, which share queues | `sharing`, `several`, `by_time`, `shared`, `shares` |
//! | what comes of it | `result`, `analysis`, `interval_logs`, `floor`, `counters`, `rows`, `findings`, `error`, `presentation` |
//!
//! Time is taken on either side of an operation, on one clock for both ends. Not measured: blocking, and what an
//! application does with an element.

pub mod analysis;
mod batches;
#[allow(missing_docs)]
pub mod benchmark;
mod by_time;
#[allow(missing_docs)]
pub mod config;
pub mod control;
#[allow(missing_docs)]
pub mod counters;
#[allow(missing_docs)]
pub mod cpus;
mod crowded;
mod ends;
#[allow(missing_docs)]
pub mod error;
mod estimate;
#[cfg(test)]
mod faulty;
mod findings;
#[allow(missing_docs)]
pub mod floor;
mod interval_logs;
#[allow(missing_docs)]
pub mod judge;
mod left_out;
mod loops;
pub mod measurer;
pub mod memory;
mod notes;
mod passage;
pub mod patience;
mod per_second;
#[allow(missing_docs)]
pub mod plan;
pub(super) mod presentation;
#[allow(missing_docs)]
pub mod result;
pub mod retry;
mod roles;
mod round;
mod round_trip;
pub mod rows;
pub mod runner;
mod seats;
mod several;
mod shared;
#[allow(missing_docs)]
pub mod shares;
#[allow(missing_docs)]
pub mod sharing;
mod stage;
mod supervisor;
mod tagging;
mod task;
mod threads;
mod warm_up;
