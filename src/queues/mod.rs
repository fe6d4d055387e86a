//! The queues, one file each: those written here, in `crates` those from crates.io, and in `cpp` those of C++.
//!
//! All but `Baton` are ideas of others, kept as they were published, with the parameters of their authors where they are
//! known, but for what a non-blocking queue of any capacity needs; where that changes something, the file and
//! `--list` say what. What an end does after a failed attempt is up to who calls it. Indices that count elements run
//! freely and wrap around with the integer; a mask makes slots of them, and the capacity is kept exactly nevertheless.

#[cfg(feature = "cpp")]
pub(crate) mod cpp;
#[cfg(feature = "competitors")]
pub(crate) mod crates;

pub mod arena;
pub mod element;
pub mod interface;
pub(crate) mod many;
pub(crate) mod parameters;
pub(crate) mod registry;
pub(crate) mod slots;
mod sync;

mod b_queue;
pub(crate) mod baton;
pub(crate) mod equeue;
mod fastforward;
mod ffq;
mod lamport;
mod linked_blocks;
mod mcringbuffer;
pub(crate) mod ring;
mod sharded;

pub(crate) use b_queue::BQueue;
pub(crate) use baton::Baton;
pub(crate) use equeue::EQueue;
pub use fastforward::FastForward;
pub(crate) use ffq::Ffq;
pub use lamport::Lamport;
pub(crate) use linked_blocks::LinkedBlocks;
pub(crate) use mcringbuffer::McRingBuffer;
pub(crate) use sharded::Sharded;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
