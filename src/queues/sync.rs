//! Atomics and shared ownership for the queues: those of the standard library, or those of the model checker loom.

#[cfg(loom)]
pub(super) use loom::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Alone on its pair of cache lines: processors fetch lines in pairs, so one line of distance is not enough.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Alone<T>(pub T);

impl<T> std::ops::Deref for Alone<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
