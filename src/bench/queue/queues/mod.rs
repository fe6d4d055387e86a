//! The queues, one file each: those written here, and in [`crates`] those from crates.io.
//!
//! All but [`Baton`] are ideas of others, kept as they were published but for what a non-blocking queue of any capacity
//! needs; where that changes something, the file says what. Indices that count elements run freely and wrap around with
//! the integer; a mask makes slots of them, and the capacity is kept exactly nevertheless.

#[cfg(feature = "competitors")]
pub mod crates;

mod b_queue;
pub(in crate::bench::queue) mod baton;
pub(in crate::bench::queue) mod equeue;
mod fastforward;
mod ffq;
mod lamport;
mod linked_blocks;
mod mcringbuffer;

pub use b_queue::BQueue;
pub use baton::Baton;
pub use equeue::EQueue;
pub use fastforward::FastForward;
pub use ffq::Ffq;
pub use lamport::Lamport;
pub use linked_blocks::LinkedBlocks;
pub use mcringbuffer::McRingBuffer;
