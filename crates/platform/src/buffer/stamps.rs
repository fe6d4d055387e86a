//! Arrays for what a hot loop stores.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::{BufferError, Bytes, HugeBuffer, HugePagePolicy, PageKind};
use crate::time::Ticks;

/// Types for which all-zero memory is a value and that need no dropping.
///
/// # Safety
/// Every bit pattern of zeros must be a valid value of the type.
pub unsafe trait Plain: Copy + Send + 'static {}

// SAFETY: integers may be zero.
unsafe impl Plain for u64 {}
// SAFETY: integers may be zero.
unsafe impl Plain for u32 {}
// SAFETY: a transparent wrapper of an integer.
unsafe impl Plain for Ticks {}

// SAFETY: an array of what may be zero may be zero.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Something that arrived, as a hot loop stores it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// When it was noticed.
    pub stamp: Ticks,
    /// What it calls itself: the immediate data of a message.
    pub label: u32,
    /// Where it lies.
    pub slot: u32,
    /// Its bytes.
    pub bytes: u32,
}

// SAFETY: integers, all of which may be zero.
unsafe impl Plain for Arrival {}

/// A fixed number of values in a [`HugeBuffer`], zero at the start; owned by one thread at a time.
#[derive(Debug)]
pub struct StampBuffer<T: Plain> {
    memory: HugeBuffer,
    count: usize,
    values: PhantomData<T>,
}

impl<T: Plain> StampBuffer<T> {
    /// What the memory for `count` values takes, and locks.
    pub fn length_for(count: usize, policy: HugePagePolicy) -> Bytes {
        HugeBuffer::length_for(Self::bytes(count), policy)
    }

    fn bytes(count: usize) -> Bytes {
        Bytes((count * size_of::<T>()) as u64)
    }

    /// Memory for `count` values.
    pub fn new(count: usize, policy: HugePagePolicy) -> Result<Self, BufferError> {
        const {
            assert!(align_of::<T>() <= 4096);
        }
        Ok(StampBuffer {
            memory: HugeBuffer::new(Self::bytes(count), policy)?,
            count,
            values: PhantomData,
        })
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.memory.page_kind()
    }
}

impl<T: Plain> Deref for StampBuffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `count` values, page-aligned, initialised with zeros (`Plain`), and only this
        // buffer's owner can write it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for StampBuffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut self` keeps every other reference away.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().cast(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_zero_and_keeps_what_is_stored() {
        let mut stamps = StampBuffer::<u64>::new(8192, HugePagePolicy::Try).unwrap();
        assert_eq!(stamps.len(), 8192);
        assert!(stamps.iter().all(|&stamp| stamp == 0));
        stamps[8191] = 5;
        assert_eq!(stamps[8191], 5);
    }
}
