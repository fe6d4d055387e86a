//! The clock-jump benchmark: how often, and for how long, does this machine stop a thread that wants to run?
//!
//! A thread reads a clock without pause and looks at each difference between two readings that follow each other. The
//! clock moves on by itself, so a difference far above the usual one, a *jump*, is time in which the thread did not
//! run: an interrupt, another thread, the hypervisor, an SMI. A jump lasts from the reading before it to the reading
//! behind it; one iteration of the loop is part of it.
//!
//! | concept | modules |
//! | --- | --- |
//! | what is asked for | `config` |
//! | the loop, and what it stores | [`hot_loop`], [`recorder`] |
//! | what is done with a jump, outside of the loop | `watcher` with `credit`, `sampling`, `timeline`, `ranking`, `window`; `jump`, `cause` |
//! | threads on all CPUs at once | `baseline`, `memory`, `thread`, `run` |
//! | what came out | `distribution`, `coincidence`, `pattern`, `conclude`, `verdict`, `result` |
//! | what is handed on | `benchmark`, `figures`, `details`, `files`, `findings`, `presentation` |
//! | who had the CPU, by the kernel's tracepoints | `trace` |
//! | how late a timer wakes a thread | `wakeup` |
//!
//! Left out: which thread ran in which jump, unless it is traced (`trace`).

mod baseline;
#[allow(missing_docs)]
pub mod benchmark;
mod cause;
mod coincidence;
mod conclude;
#[allow(missing_docs)]
pub mod config;
mod credit;
mod details;
mod distribution;
mod error;
mod figures;
mod files;
mod findings;
pub mod hot_loop;
mod jump;
mod memory;
#[allow(missing_docs)]
pub mod pattern;
pub(super) mod presentation;
mod ranking;
pub mod recorder;
mod result;
mod run;
mod sampling;
mod thread;
mod timeline;
mod trace;
mod verdict;
pub mod wakeup;
mod watcher;
mod window;

#[cfg(test)]
mod scripted;
