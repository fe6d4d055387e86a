//! A list of blocks: the sender fills a block and links the next one to it, the receiver returns what it has emptied.
//!
//! Marco Aldinucci, Marco Danelutto, Peter Kilpatrick, Massimiliano Meneghin, Massimo Torquati: An Efficient Unbounded
//! Lock-Free Queue for Multi-core Systems. Euro-Par 2012. Blocks go round through a pool, so those in use are few and
//! stay in the cache, however large the queue may become. There the queue has no bound and the pool falls back on the
//! allocator; here all blocks are made in advance, because an allocation would be measured as an enqueue, and the
//! elements taken out are counted, so that the capacity is exact.

use crossbeam_utils::CachePadded;

use crate::element::Element;
use crate::interface::{NewEnds, Queue, Receiver, Sender};
use crate::slots::{SharedSlots, ValueSlot, check_capacity};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// The largest block, in elements; in a small queue a block is half of it.
const BLOCK: usize = 64;
/// The link of the last block.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(crate) struct LinkedBlocks;

#[derive(Debug)]
struct Header {
    /// How many elements were put into this block. Written by the sender.
    filled: AtomicUsize,
    /// The number of the block behind this one, or [`NONE`]. Written by the sender.
    next: AtomicUsize,
}

/// What each end has: where all is.
#[derive(Debug)]
struct Blocks<T> {
    /// Of all blocks, one behind the other.
    slots: SharedSlots<ValueSlot<T>>,
    headers: SharedSlots<CachePadded<Header>>,
    block: usize,
    capacity: usize,
    /// The numbers of the blocks that can be used again, a ring with room for all.
    pool: SharedSlots<AtomicUsize>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    /// How many numbers were ever put into the pool. Written by the receiver.
    returned: CachePadded<AtomicUsize>,
    /// How many elements were taken out, wrapping. Written by the receiver.
    taken: CachePadded<AtomicUsize>,
}

impl<T> Blocks<T> {
    #[inline(always)]
    fn header(&self, block: usize) -> &Header {
        // SAFETY: the ends and the pool hold numbers of blocks only, and there is a header for each.
        unsafe { self.headers.at(block) }
    }

    #[inline(always)]
    fn slot(&self, block: usize, index: usize) -> &ValueSlot<T> {
        debug_assert!(index < self.block);
        // SAFETY: a number of a block, and an index within it, as the ends keep it.
        unsafe { self.slots.at(block * self.block + index) }
    }
}

#[derive(Debug)]
pub(crate) struct LinkedBlocksSender<T> {
    queue: Blocks<T>,
    /// The block being filled.
    block: usize,
    /// How many elements are in it.
    filled: usize,
    /// How many elements were put in, wrapping.
    put: usize,
    /// What `taken` was when last looked at.
    taken: usize,
    /// Where in the pool the next number is read; less than the number of blocks.
    pool_place: usize,
    /// How many numbers were read from the pool.
    reused: usize,
}

#[derive(Debug)]
pub(crate) struct LinkedBlocksReceiver<T> {
    queue: Blocks<T>,
    /// The block being emptied.
    block: usize,
    /// How many elements were taken from it.
    emptied: usize,
    /// What its `filled` was when last looked at.
    filled: usize,
    /// How many elements were taken out, wrapping.
    taken: usize,
    /// Where in the pool the next number is written; less than the number of blocks.
    pool_place: usize,
    /// How many numbers were written to the pool.
    returned: usize,
}

impl<T> LinkedBlocksSender<T> {
    /// Links an empty block to the full one. There always is one: the elements that are in, fewer than the capacity,
    /// and the last one taken out touch at most all blocks but one.
    #[inline(never)]
    fn link(&mut self) -> bool {
        let queue = &self.queue;
        // Relaxed: the block that is next in the pool was returned before an element was taken whose count `enqueue` has
        // acquired, or it would not be below the capacity. With acquire here, and release there, loom finds no more.
        if queue.counts.returned.load(Ordering::Relaxed) == self.reused {
            debug_assert!(false, "no block is left below the capacity");
            return false;
        }
        // SAFETY: kept below the number of blocks.
        let block = unsafe { queue.pool.at(self.pool_place) }.load(Ordering::Relaxed);
        self.reused += 1;
        self.pool_place += 1;
        if self.pool_place == queue.pool.count() {
            self.pool_place = 0;
        }
        let header = queue.header(block);
        // Relaxed: the link publishes them.
        header.filled.store(0, Ordering::Relaxed);
        header.next.store(NONE, Ordering::Relaxed);
        // Release: who sees the link sees the header as it is now.
        (queue.header(self.block).next).store(block, Ordering::Release);
        self.block = block;
        self.filled = 0;
        true
    }
}

impl<T: Element> Sender<T> for LinkedBlocksSender<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        if self.put.wrapping_sub(self.taken) == self.queue.capacity {
            // Acquire: the blocks returned by then are in the pool.
            self.taken = self.queue.counts.taken.load(Ordering::Acquire);
            if self.put.wrapping_sub(self.taken) == self.queue.capacity {
                return false;
            }
        }
        if self.filled == self.queue.block && !self.link() {
            return false;
        }
        // SAFETY: what is not counted in the block's header the receiver does not touch.
        unsafe { self.queue.slot(self.block, self.filled).write(element) };
        self.filled += 1;
        self.put = self.put.wrapping_add(1);
        // Release: who sees the count sees the element.
        (self.queue.header(self.block).filled).store(self.filled, Ordering::Release);
        true
    }
}

impl<T> LinkedBlocksReceiver<T> {
    /// Finds out whether there is more: in this block, or in one behind it.
    #[inline(always)]
    fn look(&mut self) -> bool {
        let queue = &self.queue;
        if self.emptied == queue.block {
            // Acquire: the header of the block behind was made ready before.
            let next = queue.header(self.block).next.load(Ordering::Acquire);
            if next == NONE {
                return false;
            }
            self.give_back();
            self.block = next;
            self.emptied = 0;
        }
        // Acquire: the elements were written before they were counted.
        self.filled = self.queue.header(self.block).filled.load(Ordering::Acquire);
        self.filled != self.emptied
    }

    fn give_back(&mut self) {
        let queue = &self.queue;
        // SAFETY: kept below the number of blocks.
        let place = unsafe { queue.pool.at(self.pool_place) };
        // Relaxed: the count of the elements taken publishes it, and `returned`. The element that was there was read
        // long ago: there is room for all numbers.
        place.store(self.block, Ordering::Relaxed);
        self.pool_place += 1;
        if self.pool_place == queue.pool.count() {
            self.pool_place = 0;
        }
        self.returned += 1;
        queue
            .counts
            .returned
            .store(self.returned, Ordering::Relaxed);
    }
}

impl<T: Element> Receiver<T> for LinkedBlocksReceiver<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        if self.emptied == self.filled && !self.look() {
            return None;
        }
        // SAFETY: counted, so written, and the sender does not touch it before the block is given back.
        let element = unsafe { self.queue.slot(self.block, self.emptied).read() };
        self.emptied += 1;
        self.taken = self.taken.wrapping_add(1);
        // Release: who sees the count sees the blocks returned, and comes after all reading in them.
        self.queue.counts.taken.store(self.taken, Ordering::Release);
        Some(element)
    }
}

impl<T: Element> Queue<T> for LinkedBlocks {
    type Sender = LinkedBlocksSender<T>;
    type Receiver = LinkedBlocksReceiver<T>;

    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, T> {
        let capacity = check_capacity(capacity)?;
        let block = (capacity / 2).clamp(1, BLOCK);
        let blocks = capacity.div_ceil(block) + 1;
        // The first block is in use, all others are in the pool.
        let mut number = 0;
        let slots = SharedSlots::new(blocks * block, ValueSlot::new);
        let headers = SharedSlots::new(blocks, || {
            CachePadded::new(Header {
                filled: AtomicUsize::new(0),
                next: AtomicUsize::new(NONE),
            })
        });
        let pool = SharedSlots::new(blocks, || {
            number += 1;
            AtomicUsize::new(number)
        });
        let counts = Arc::new(Counts {
            returned: CachePadded::new(AtomicUsize::new(blocks - 1)),
            taken: CachePadded::new(AtomicUsize::new(start)),
        });
        let queue = || Blocks {
            slots: slots.clone(),
            headers: headers.clone(),
            block,
            capacity,
            pool: pool.clone(),
            counts: counts.clone(),
        };
        let sender = LinkedBlocksSender {
            queue: queue(),
            block: 0,
            filled: 0,
            put: start,
            taken: start,
            pool_place: 0,
            reused: 0,
        };
        let receiver = LinkedBlocksReceiver {
            queue: queue(),
            block: 0,
            emptied: 0,
            filled: 0,
            taken: start,
            pool_place: blocks - 1,
            returned: blocks - 1,
        };
        Ok((sender, receiver))
    }
}
