//! The queues, one file each: those written here, in `crates` those from crates.io, and in `cpp` those of C++.
//!
//! All but `BatchingBaton`, `DemotingBaton` and `Sharded` are ideas of others. They are kept as they were published,
//! with the parameters of their authors where they are known, but for what a non-blocking queue of any capacity needs.
//! Where that changes something, the file and `--list` describe it. What an end does after a failed attempt is up to
//! who calls it. Indices that count elements run freely and wrap around with the integer. A mask makes slots of them,
//! and the capacity is kept exactly nevertheless.
//!
//! Each ordering has its reason beside it, in terms of the language's memory model, which both architectures keep: on
//! x86-64 a load with acquire and a store with release are plain moves, and the reason shows only in what the compiler
//! may do; on Arm they are `ldar` (or `ldapr`) and `stlr`, and without them a slot can be seen before what is in it.
//! Nothing relies on the order of relaxed accesses, nor on data dependencies. That each ordering is needed is shown by
//! loom: with any one taken away it finds a wrong queue (`loom_tests`).
//!
//! Values of two threads are 128 bytes apart (`CachePadded`, and the alignments written here): two lines of 64 bytes,
//! as x86-64 fetches lines in pairs, and one line of those Arm processors whose lines have 128. On one with lines of 256
//! two threads share a line, which costs time and nothing else.

// They panic where the output is closed or full.
#![cfg_attr(not(any(test, loom)), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

use hcabench_platform::buffer;

#[cfg(feature = "cpp")]
#[allow(missing_docs)]
pub mod cpp;
#[cfg(feature = "competitors")]
pub(crate) mod crates;

pub mod arena;
pub mod element;
pub mod interface;
pub mod many;
pub mod parameters;
#[allow(missing_docs)]
pub mod registry;
pub mod slots;
mod sync;
#[cfg(loom)]
#[allow(missing_docs, unreachable_pub)]
mod weakened;

mod b_queue;
mod batching;
pub mod baton;
pub mod demoting;
pub(crate) mod equeue;
mod fastforward;
mod ffq;
mod lamport;
mod linked_blocks;
#[allow(missing_docs)]
mod mcringbuffer;
pub mod ring;
mod sharded;

pub(crate) use b_queue::BQueue;
pub use batching::BatchingBaton;
pub(crate) use demoting::DemotingBaton;
pub(crate) use equeue::EQueue;
pub use fastforward::FastForward;
pub(crate) use fastforward::TunedFastForward;
pub(crate) use ffq::Ffq;
pub use lamport::Lamport;
pub(crate) use linked_blocks::LinkedBlocks;
pub use mcringbuffer::McRingBuffer;
pub(crate) use sharded::Sharded;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
