//! Atomics and shared ownership for the queues: those of the standard library, or those of the model checker loom.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
