//! The memory of a queue of any author: huge pages that are touched and locked, at an address that differs from run to
//! run, because addresses decide as much as queues differ.
//!
//! Crates allocate by themselves. So the program's [`Allocator`] gives a thread that makes a queue memory of an
//! [`Arena`], and everybody else that of the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::buffer::{BufferError, Bytes, HugeBuffer, HugePagePolicy, PageKind};

/// Arenas that there can be at a time: of a run and of its floor, and of threads that were left behind.
const MOST: usize = 8;
/// Where the first allocation begins, at most; a multiple of [`STEP`].
const FURTHEST: usize = 512 << 10;
const STEP: usize = 128;
/// What queues allocate beside their slots.
const BESIDE: usize = 256 << 10;

/// Memory that is given out and not taken back before all of it is free.
struct Range {
    /// Behind the end where there is none.
    start: AtomicUsize,
    /// 0 where it is free.
    end: AtomicUsize,
    next: AtomicUsize,
    live: AtomicUsize,
    /// Allocations that were the system's because they did not fit.
    outside: AtomicUsize,
}

static RANGES: [Range; MOST] = [const {
    Range {
        start: AtomicUsize::new(usize::MAX),
        end: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        live: AtomicUsize::new(0),
        outside: AtomicUsize::new(0),
    }
}; MOST];

thread_local! {
    /// The range that this thread's allocations are from.
    static MAKING: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Range {
    fn allocate(&self, layout: Layout) -> Option<*mut u8> {
        let end = self.end.load(Ordering::Relaxed);
        let fitted = |next: usize| {
            let start = next.checked_next_multiple_of(layout.align())?;
            start
                .checked_add(layout.size())
                .filter(|after| *after <= end)
        };
        let found = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fitted);
        let Ok(next) = found else {
            self.outside.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.live.fetch_add(1, Ordering::Relaxed);
        let start = self.start.load(Ordering::Relaxed);
        // An address within the arena: its memory was exposed when the range was taken.
        let at = next.next_multiple_of(layout.align());
        debug_assert!(at >= start);
        Some(std::ptr::with_exposed_provenance_mut(at))
    }

    /// The start is read twice, as a start that was and the end that came after it would hold the memory of others.
    /// Acquire, of the end, which was stored behind that the old start was taken away: who sees the one sees the other.
    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        (start..end).contains(&address) && self.start.load(Ordering::Relaxed) == start
    }
}

/// Memory of the range that this thread allocates from, if it does.
fn from_range(layout: Layout) -> Option<*mut u8> {
    // A thread that ends has no such variable any more.
    let making = MAKING.try_with(Cell::get).ok().flatten();
    making.and_then(|range| RANGES[range].allocate(layout))
}

/// The allocator of the program.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: memory is from the system, or from a range that stays mapped until all that was given out of it has come back;
// no two allocations of a range overlap, as each begins behind the one before.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's word.
        from_range(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    // The system's own ways: pages that were not written are zero, and large memory grows without a copy.

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match from_range(layout) {
            Some(start) => {
                // SAFETY: just allocated with this size.
                unsafe { start.write_bytes(0, layout.size()) };
                start
            }
            // SAFETY: by the caller's word.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !RANGES.iter().any(|range| range.holds(start.addr())) {
            // SAFETY: of no range, so it is from the system; the rest by the caller's word.
            return unsafe { System.realloc(start, layout, size) };
        }
        // SAFETY: the caller has seen to it that the size is possible with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the size is not 0, by the caller's word.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: two allocations, each of at least this many bytes.
            unsafe { std::ptr::copy_nonoverlapping(start, moved, layout.size().min(size)) };
            // SAFETY: by the caller's word.
            unsafe { self.dealloc(start, layout) };
        }
        moved
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match RANGES.iter().find(|range| range.holds(start.addr())) {
            // Release, so that what was done with the memory is over when it is unmapped.
            Some(range) => {
                range.live.fetch_sub(1, Ordering::Release);
            }
            // SAFETY: of no range, so it is from the system; the rest by the caller's word.
            None => unsafe { System.dealloc(start, layout) },
        }
    }
}

/// Memory for a queue.
#[derive(Debug)]
pub struct Arena {
    range: usize,
    /// `None` once it is left behind.
    buffer: Option<HugeBuffer>,
}

impl Arena {
    /// The size of one for a queue of this many bytes.
    pub fn length_for(queue: u64, policy: HugePagePolicy) -> Bytes {
        HugeBuffer::length_for(Self::asked(queue), policy)
    }

    fn asked(queue: u64) -> Bytes {
        Bytes(queue.saturating_add((FURTHEST + BESIDE) as u64))
    }

    /// For a queue of this many bytes, which begins at one of many addresses: `place` decides which. `None` if too many
    /// were left behind.
    ///
    /// # Errors
    /// If there is no such memory, or it cannot be locked.
    pub fn new(
        queue: u64,
        policy: HugePagePolicy,
        place: u64,
    ) -> Result<Option<Self>, BufferError> {
        let buffer = HugeBuffer::new(Self::asked(queue), policy)?;
        let start = buffer.as_ptr().expose_provenance();
        let end = start + buffer.length().0 as usize;
        let first = start + (place as usize % (FURTHEST / STEP)) * STEP;
        let is_free = |range: &Range| {
            let (none, taken) = (0, usize::MAX);
            let order = Ordering::Relaxed;
            range
                .end
                .compare_exchange(none, taken, Ordering::Acquire, order)
                .is_ok()
        };
        let Some(range) = RANGES.iter().position(is_free) else {
            return Ok(None);
        };
        let of = &RANGES[range];
        of.next.store(first, Ordering::Relaxed);
        of.live.store(0, Ordering::Relaxed);
        of.outside.store(0, Ordering::Relaxed);
        // Release, both: see `holds`. What gives memory out of the range was handed it by this thread.
        of.end.store(end, Ordering::Release);
        of.start.store(start, Ordering::Release);
        Ok(Some(Arena {
            range,
            buffer: Some(buffer),
        }))
    }

    /// Does what allocates, and has it allocate here; what does not fit is of the system's memory, and
    /// [`pages`](Self::pages) reports nothing any more.
    pub fn within<T>(&self, make: impl FnOnce() -> T) -> T {
        struct Before(Option<usize>);
        impl Drop for Before {
            fn drop(&mut self) {
                MAKING.set(self.0);
            }
        }
        let _before = Before(MAKING.replace(Some(self.range)));
        make()
    }

    /// The pages, which are locked, of all that was allocated within; `None` if something did not fit, or if nothing is
    /// here because the program has another allocator.
    pub fn pages(&self) -> Option<PageKind> {
        let range = &RANGES[self.range];
        let is_used = range.live.load(Ordering::Relaxed) > 0;
        let holds_all = range.outside.load(Ordering::Relaxed) == 0;
        self.buffer
            .as_ref()
            .filter(|_| is_used && holds_all)
            .map(HugeBuffer::page_kind)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let range = &RANGES[self.range];
        if range.live.load(Ordering::Acquire) > 0 {
            // Something is still there: a thread that was left behind, or what a crate keeps for good.
            std::mem::forget(self.buffer.take());
            return;
        }
        range.start.store(usize::MAX, Ordering::Relaxed);
        self.buffer = None;
        range.end.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(layout: Layout) -> (*mut u8, usize) {
        // SAFETY: the layout is not empty.
        let start = unsafe { Allocator.alloc(layout) };
        (start, start.addr())
    }

    #[test]
    fn what_is_made_within_an_arena_lies_there_apart_and_aligned_and_the_rest_elsewhere() {
        let arena = |place| {
            Arena::new(1 << 20, HugePagePolicy::Off, place)
                .unwrap()
                .unwrap()
        };
        let (first, second) = (arena(0), arena(3));
        let layouts = [(8, 8), (100, 128), (1 << 20, 64), (1, 1)]
            .map(|(size, align)| Layout::from_size_align(size, align).unwrap());
        let mut taken: Vec<(*mut u8, usize)> = Vec::new();
        first.within(|| taken.extend(layouts.map(address)));
        let range = &RANGES[first.range];
        for ((_, at), layout) in taken.iter().zip(layouts) {
            assert!(range.holds(*at) && at.is_multiple_of(layout.align()));
        }
        assert!(
            taken
                .windows(2)
                .zip(layouts)
                .all(|(two, layout)| two[0].1 + layout.size() <= two[1].1)
        );
        // What grows moves with what it holds; what is to be zero is.
        // SAFETY: the layouts are not empty, and the pointer is the first one's.
        let grown = unsafe {
            taken[0].0.write_bytes(5, 8);
            let zeroed = first.within(|| Allocator.alloc_zeroed(layouts[1]));
            assert_eq!(std::slice::from_raw_parts(zeroed, 100), [0; 100]);
            Allocator.dealloc(zeroed, layouts[1]);
            let grown = first.within(|| Allocator.realloc(taken[0].0, layouts[0], 100));
            assert_eq!(std::slice::from_raw_parts(grown, 8), [5; 8]);
            Allocator.realloc(grown, Layout::from_size_align(100, 8).unwrap(), 8)
        };
        let before = taken[0].1;
        taken[0] = (grown, before);
        // Another place in its page.
        let small = Layout::new::<u64>();
        let moved = second.within(|| address(small));
        let offset = |arena: &Arena, at: usize| at - arena.buffer.as_ref().unwrap().as_ptr().addr();
        assert_eq!(offset(&first, taken[0].1), 0);
        assert_eq!(offset(&second, moved.1), 3 * STEP);
        assert_eq!(first.pages(), Some(PageKind::Small));
        // Too large for what is left, and outside.
        let large = Layout::from_size_align(1 << 20, 8).unwrap();
        let outside = [first.within(|| address(large)), address(small)];
        assert!(
            outside
                .iter()
                .all(|(_, at)| !RANGES.iter().any(|range| range.holds(*at)))
        );
        // What is not all here has not these pages; what nobody asked to be here does not count.
        assert_eq!(first.pages(), None);
        assert_eq!(second.pages(), Some(PageKind::Small));
        let all = (taken.into_iter().zip(layouts)).chain([
            (moved, small),
            (outside[0], large),
            (outside[1], small),
        ]);
        for ((start, _), layout) in all {
            // SAFETY: allocated above with this layout.
            unsafe { Allocator.dealloc(start, layout) };
        }
        assert_eq!((first.pages(), second.pages()), (None, None));
    }

    #[test]
    fn an_arena_that_is_still_used_stays_mapped() {
        let arena = Arena::new(1 << 12, HugePagePolicy::Off, 1)
            .unwrap()
            .unwrap();
        let layout = Layout::new::<u64>();
        let (start, at) = arena.within(|| address(layout));
        drop(arena);
        // SAFETY: the memory is there, as it was not given back.
        unsafe { start.cast::<u64>().write(7) };
        assert!(RANGES.iter().any(|range| range.holds(at)));
        // SAFETY: allocated above.
        unsafe { Allocator.dealloc(start, layout) };
    }
}
