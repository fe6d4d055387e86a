//! The system's allocator, with a count of its calls for each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    // Needs no destructor and no memory of its own, so that the allocator may use it.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is about to end has no counter any more, and nobody who reads it.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to the system's allocator as it came; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the block is the system's, because all are; the rest is the caller's duty.
        unsafe { System.realloc(block, layout, size) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` returns, and the calls of the allocator that it makes on this thread.
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = CALLS.get();
    let result = work();
    (result, CALLS.get() - before)
}
