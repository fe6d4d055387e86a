//! The queue benchmark: what an enqueue and a dequeue cost, and how long an element stays in the queue.
//!
//! [`interface`] says what a queue is, [`element`] what goes through it, [`queues`] are the queues, one file each.

pub mod element;
pub mod interface;
pub mod queues;
