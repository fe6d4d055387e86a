//! The queue benchmark: what an enqueue and a dequeue cost, and how long an element stays in the queue.
//!
//! | concept | modules |
//! | --- | --- |
//! | what a queue is, and what goes through it | [`interface`], [`element`] |
//! | the queues, one file each, and their list | [`queues`], [`registry`] |
//! | the hot loops | [`runner`], with a [`measurer`] and a waiter of [`crate::pacing`]; [`control`] ends them |
//! | a run: two threads, their supervisor, and what comes of it | `task`, `threads`, `loops`, `passage`, `notes`, `supervisor`, [`judge`], [`analysis`], [`floor`], [`counters`] |
//! | all runs | [`config`], [`plan`], [`memory`], [`run`], [`result`] |
//!
//! Time is taken on either side of an operation, on one clock for both ends. Not measured: blocking, more than one thread
//! at an end, and what an application does with an element.

pub mod analysis;
pub mod config;
pub mod control;
pub mod counters;

pub mod floor;

pub mod judge;
mod loops;
pub mod measurer;
pub mod memory;
mod notes;
mod passage;
pub mod plan;

pub mod result;
pub mod role;
pub mod run;
pub mod runner;

mod supervisor;

mod task;
mod threads;
