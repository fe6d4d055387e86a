//! Several threads at each end: how much goes through queues that they share, and whether all get alike.
//!
//! | concept | module |
//! | --- | --- |
//! | which thread has which end of which queue, and its CPU | `plan` |
//! | the loops of [`runner`](super::runner), with elements that tell who sent them | `loops` |
//! | a run: threads that begin together and end by time | `run` |
//! | what came out of what was put in, and the shares of the threads | `judge` |
//! | what the rig calls | `benchmark` |
//!
//! A run ends for all when it has lasted for its time, or when one thread has noted as many elements as it has room for:
//! who is measured alone has no one to share with. Not measured: how a sleeping thread is woken, and the floor of a
//! latency.

#[allow(missing_docs)]
pub mod benchmark;
#[cfg(test)]
mod faulty;
mod judge;
mod loops;
pub(super) mod plan;
mod run;

pub use plan::MOST_THREADS;
