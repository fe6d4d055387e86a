//! The memory of a queue: arrays of slots that start on a cache line and were written once before use.
//!
//! A [`ValueSlot`] holds an element and leaves it to the queue to know whether it does. A [`FusedSlot`] knows it
//! itself: its first word is that of the element, which is never zero, or zero. One cache line then carries both the
//! element and the news of it. What the slots of loom do differently is only that each access is reported to it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::ptr::NonNull;

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use std::cell::UnsafeCell;

use super::element::Words;
use super::interface::QueueError;
use super::sync::{Arc, AtomicU64, Ordering};

/// No queue is made for more elements than this: 4 GiB of the largest.
pub const MAX_CAPACITY: usize = 1 << 24;

/// Where arrays start, so that no slot shares a pair of cache lines with anything else.
const ALIGNMENT: usize = 128;

/// Refuses what no queue written here can hold.
pub(super) fn check_capacity(asked: usize) -> Result<usize, QueueError> {
    if (1..=MAX_CAPACITY).contains(&asked) {
        return Ok(asked);
    }
    Err(QueueError {
        asked,
        allowed: "it comes for 1 to 16777216",
    })
}

/// An array of slots that threads share.
#[derive(Debug)]
pub(super) struct Slots<S> {
    first: NonNull<S>,
    count: usize,
}

// SAFETY: it owns its slots, as a boxed slice does, and hands out shared references only.
unsafe impl<S: Send> Send for Slots<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Slots<S> {}

/// One of several who keep the same slots alive. Where they lie is held here as well, for the registers of a loop:
/// behind the [`Arc`] it would be loaded again for each slot.
#[derive(Debug)]
pub(super) struct SharedSlots<S> {
    slots: ManuallyDrop<Slots<S>>,
    owner: Arc<Slots<S>>,
}

impl<S> SharedSlots<S> {
    /// This many new slots, as [`Slots::new`] makes them.
    pub(crate) fn new(count: usize, slot: impl FnMut() -> S) -> Self {
        Self::of(Arc::new(Slots::new(count, slot)))
    }

    fn of(owner: Arc<Slots<S>>) -> Self {
        let Slots { first, count } = *owner;
        let slots = ManuallyDrop::new(Slots { first, count });
        SharedSlots { slots, owner }
    }
}

impl<S> Clone for SharedSlots<S> {
    fn clone(&self) -> Self {
        Self::of(self.owner.clone())
    }
}

impl<S> Deref for SharedSlots<S> {
    type Target = Slots<S>;

    #[inline(always)]
    fn deref(&self) -> &Slots<S> {
        &self.slots
    }
}

impl<S> Slots<S> {
    /// This many new slots, each of them written, so that their pages are there.
    pub(crate) fn new(count: usize, mut slot: impl FnMut() -> S) -> Self {
        const { assert!(size_of::<S>() > 0) };
        let layout = Self::layout(count);
        assert!(count > 0);
        // SAFETY: the layout is not empty, as neither the slots nor their number are.
        let Some(first) = NonNull::new(unsafe { alloc(layout) }.cast::<S>()) else {
            handle_alloc_error(layout)
        };
        for index in 0..count {
            // SAFETY: it lies within what was just allocated for `count` slots, with at least their alignment.
            unsafe { first.add(index).write(slot()) };
        }
        Slots { first, count }
    }

    fn layout(count: usize) -> Layout {
        Layout::array::<S>(count)
            .and_then(|layout| layout.align_to(ALIGNMENT))
            .expect("MAX_CAPACITY slots fit into the address space")
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// A slot, without a look at the bounds.
    ///
    /// # Safety
    /// `index` is less than the number of slots.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, index: usize) -> &S {
        debug_assert!(index < self.count);
        // SAFETY: within the allocation by the caller's word; all slots were written in `new` and live as long as who
        // keeps them, and this is borrowed from there.
        unsafe { self.first.add(index).as_ref() }
    }
}

impl<S> Drop for Slots<S> {
    fn drop(&mut self) {
        let Slots { first, count } = *self;
        // SAFETY: each slot was written in `new`, and no thread can have a reference any more.
        unsafe { NonNull::slice_from_raw_parts(first, count).drop_in_place() };
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(first.as_ptr().cast(), Self::layout(count)) };
    }
}

/// Room for an element.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct ValueSlot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: elements go from one thread to another through it; that no two threads are in it at once is what the callers
// of `write` and `read` vouch for.
unsafe impl<T: Send> Sync for ValueSlot<T> {}

impl<T: Copy> ValueSlot<T> {
    pub(crate) fn new() -> Self {
        // Zeros, so that the memory is written: an uninitialised slot would not be.
        ValueSlot(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    /// Puts an element in.
    ///
    /// # Safety
    /// No other thread reads or writes this slot at the same time.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, element: T) {
        // SAFETY: no other access, by the caller's word.
        #[cfg(not(loom))]
        unsafe {
            self.0.get().write(MaybeUninit::new(element));
        }
        #[cfg(loom)]
        // SAFETY: as above, and loom checks it.
        self.0.with_mut(|slot| unsafe {
            slot.write(MaybeUninit::new(element));
        });
    }

    /// The element that was put in.
    ///
    /// # Safety
    /// An element was put in, what did that happened before, and no other thread writes to the slot at the same time.
    #[inline(always)]
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: written before and not being written now, by the caller's word.
        #[cfg(not(loom))]
        unsafe {
            self.0.get().read().assume_init()
        }
        #[cfg(loom)]
        // SAFETY: as above, and loom checks it.
        self.0.with(|slot| unsafe { slot.read().assume_init() })
    }
}

/// Room for an element whose first word shows whether there is one.
///
/// The protocol of a slot, whatever the queue: the sender fills it while it is empty, and stores the first word last.
/// While it is full only the receiver touches it, until it clears the first word.
#[derive(Debug)]
#[cfg_attr(not(loom), repr(transparent))]
pub(super) struct FusedSlot<const N: usize> {
    words: UnsafeCell<[u64; N]>,
    /// Loom's atomics are no plain memory: the first word is apart.
    #[cfg(loom)]
    first: AtomicU64,
}

// SAFETY: the first word is atomic; for the rest see the protocol, which the callers of `put` and `take` vouch for.
unsafe impl<const N: usize> Sync for FusedSlot<N> {}

impl<const N: usize> FusedSlot<N> {
    pub(crate) fn new() -> Self {
        const { assert!(N > 0) };
        FusedSlot {
            words: UnsafeCell::new([0; N]),
            #[cfg(loom)]
            first: AtomicU64::new(0),
        }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn first(&self) -> &AtomicU64 {
        // SAFETY: points to the first of the words, which are aligned as `u64`, live as long as `self`, and of which
        // the first is accessed in no other way.
        unsafe { AtomicU64::from_ptr(self.words.get().cast()) }
    }

    #[cfg(loom)]
    fn first(&self) -> &AtomicU64 {
        &self.first
    }

    /// The first word. Acquire: who sees it empty comes after the receiver's reading of the rest, and who sees it full
    /// after the sender's writing of it (and after all that either did before).
    #[inline(always)]
    fn look(&self) -> u64 {
        self.first().load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.look() == 0
    }

    /// Puts an element in.
    ///
    /// # Safety
    /// The caller is the only sender, and knows that the slot is empty: it, or a slot that the receiver empties after
    /// it, was seen empty.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, element: &Words<N>) {
        // SAFETY: empty, so the receiver does not touch it; there is no other sender. The rest has N - 1 words.
        #[cfg(not(loom))]
        unsafe {
            let source = element.words().as_ptr().add(1);
            let target = self.words.get().cast::<u64>().add(1);
            std::ptr::copy_nonoverlapping(source, target, N - 1);
        }
        #[cfg(loom)]
        if N > 1 {
            // SAFETY: as above, and loom checks it.
            self.words
                .with_mut(|rest| unsafe { *rest = *element.words() });
        }
        // Release: who sees the first word sees the rest.
        self.first().store(element.words()[0], Ordering::Release);
    }

    /// Takes the element out, if there is one.
    ///
    /// # Safety
    /// The caller is the only receiver.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> Option<Words<N>> {
        let first = self.look();
        if first == 0 {
            return None;
        }
        // SAFETY: full, so the sender does not touch it until the first word is cleared below.
        let element = unsafe { self.copy(first) };
        // Release: the sender, who writes after it saw this, writes after the copying.
        self.first().store(0, Ordering::Release);
        Some(element)
    }

    /// # Safety
    /// The slot is full, and the caller is the only receiver.
    #[inline(always)]
    unsafe fn copy(&self, first: u64) -> Words<N> {
        let mut words = [first; N];
        // SAFETY: full, so the sender does not touch it; the rest has N - 1 words.
        #[cfg(not(loom))]
        unsafe {
            let source = self.words.get().cast::<u64>().add(1);
            std::ptr::copy_nonoverlapping(source, words.as_mut_ptr().add(1), N - 1);
        }
        #[cfg(loom)]
        if N > 1 {
            // SAFETY: as above, and loom checks it.
            self.words.with(|rest| words = unsafe { *rest });
            words[0] = first;
        }
        Words::from_words(words)
    }
}
