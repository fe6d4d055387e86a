//! Atomic values in mapped memory, which several processes may share.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crossbeam_utils::CachePadded;

use super::{BufferError, Bytes, HugeBuffer, PageKind, SharedMemory};

/// Where values begin, so that none shares a pair of cache lines with another.
const ALIGNMENT: usize = 128;

/// Types of which processes of this program may share a value.
///
/// # Safety
/// A value must consist of atomics alone, hold no address, and be one where all its bytes are zero.
pub unsafe trait Atomic: Sync {}

// SAFETY: an atomic, which may be zero.
unsafe impl Atomic for AtomicBool {}
// SAFETY: as above.
unsafe impl Atomic for AtomicU32 {}
// SAFETY: as above.
unsafe impl Atomic for AtomicU64 {}
// SAFETY: it adds padding only.
unsafe impl<T: Atomic> Atomic for CachePadded<T> {}

/// Makes a structure [`Atomic`] whose fields are: `all_atomic!(Pair { one, other })`, by their numbers if they have no
/// names.
#[macro_export]
macro_rules! all_atomic {
    ($type:ident { $($field:tt),* }) => {
        const _: fn(&$type) = |value| {
            fn is_atomic(_: &impl $crate::buffer::Atomic) {}
            // There are no others.
            let $type { $($field: _),* } = value;
            $(is_atomic(&value.$field);)*
        };
        // SAFETY: each field is, as is checked above, and so is all of it.
        unsafe impl $crate::buffer::Atomic for $type {}
    };
}
pub use crate::all_atomic;

/// A value, or several, in mapped memory, which lives as long.
#[derive(Debug)]
pub struct MappedValue<T: ?Sized> {
    /// Not behind the `Arc`, where each look would be one more line that may not be in the cache.
    value: NonNull<T>,
    memory: Arc<HugeBuffer>,
}

// SAFETY: it hands out shared references only, as an `Arc` does, and what it keeps alive is bound to no thread.
unsafe impl<T: ?Sized + Sync> Send for MappedValue<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for MappedValue<T> {}

impl<T: ?Sized> MappedValue<T> {
    /// The pages of its memory.
    pub fn page_kind(&self) -> PageKind {
        self.memory.page_kind()
    }
}

impl<T: ?Sized> Clone for MappedValue<T> {
    fn clone(&self) -> Self {
        MappedValue {
            value: self.value,
            memory: Arc::clone(&self.memory),
        }
    }
}

impl<T: ?Sized> Deref for MappedValue<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it was placed in the memory, aligned, and was a value from the beginning, of zeros. All processes
        // that have the memory mapped change it by its atomics only.
        unsafe { self.value.as_ref() }
    }
}

/// Mapped memory out of which values are taken. All processes that share it take the same ones in the same order.
#[derive(Debug)]
pub struct MappedArena {
    memory: Arc<HugeBuffer>,
    used: usize,
}

impl MappedArena {
    /// All of that memory.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn new(memory: &SharedMemory) -> Result<Self, BufferError> {
        Ok(Self::over(memory.map()?))
    }

    /// All of that memory, which is zero or holds these values.
    pub(super) fn over(memory: HugeBuffer) -> Self {
        MappedArena {
            memory: Arc::new(memory),
            used: 0,
        }
    }

    /// The size of this many values.
    pub const fn bytes_for<T: Atomic>(count: usize) -> Bytes {
        Bytes((count * size_of::<T>()).next_multiple_of(ALIGNMENT) as u64)
    }

    /// The next values.
    ///
    /// # Panics
    /// When there is no room for them.
    pub fn several<T: Atomic>(&mut self, count: usize) -> MappedValue<[T]> {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        let at = self.used;
        self.used += Self::bytes_for::<T>(count).0 as usize;
        assert!(self.used as u64 <= self.memory.length().0, "no room");
        let first = self.memory.as_ptr().wrapping_add(at).cast::<T>();
        let first = NonNull::new(first).expect("it lies in the memory");
        MappedValue {
            value: NonNull::slice_from_raw_parts(first, count),
            memory: Arc::clone(&self.memory),
        }
    }

    /// The next value.
    ///
    /// # Panics
    /// When there is no room for it.
    pub fn one<T: Atomic>(&mut self) -> MappedValue<T> {
        let MappedValue { value, memory } = self.several::<T>(1);
        MappedValue {
            value: value.cast(),
            memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::buffer::HugePagePolicy;

    #[derive(Debug)]
    struct Pair {
        one: AtomicBool,
        other: CachePadded<AtomicU64>,
    }

    all_atomic!(Pair { one, other });

    fn take(memory: &SharedMemory) -> (MappedValue<[AtomicU32]>, MappedValue<Pair>) {
        let mut room = MappedArena::new(memory).unwrap();
        (room.several(33), room.one())
    }

    #[test]
    fn who_takes_the_same_values_in_the_same_order_shares_them() {
        let bytes = MappedArena::bytes_for::<AtomicU32>(33).0 + MappedArena::bytes_for::<Pair>(1).0;
        let memory = SharedMemory::new(Bytes(bytes), HugePagePolicy::Off).unwrap();
        let (numbers, pair) = take(&memory);
        let (same_numbers, same_pair) = take(&memory);
        drop(memory);
        assert!(numbers.iter().all(|number| number.load(Relaxed) == 0));
        numbers[32].store(7, Relaxed);
        pair.one.store(true, Relaxed);
        pair.other.store(u64::MAX, Relaxed);
        assert_eq!(same_numbers.len(), 33);
        assert_eq!(same_numbers[32].load(Relaxed), 7);
        assert!(same_pair.one.load(Relaxed));
        assert_eq!(same_pair.other.load(Relaxed), u64::MAX);
        assert_eq!(&raw const *pair as usize % ALIGNMENT, 0);
    }

    #[test]
    #[should_panic(expected = "no room")]
    fn there_is_no_room_beyond_the_memory() {
        let memory = SharedMemory::new(Bytes(4096), HugePagePolicy::Off).unwrap();
        MappedArena::new(&memory).unwrap().several::<AtomicU64>(513);
    }
}
