//! The queue benchmark: what an enqueue and a dequeue cost, and how long an element stays in the queue.
//!
//! [`interface`] says what a queue is, [`element`] what goes through it, [`queues`] are the queues, one file each, and
//! [`registry`] finds them by name.

pub mod element;
pub mod interface;
pub mod queues;
pub mod registry;
mod slots;
mod sync;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
