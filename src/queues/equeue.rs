//! EQueue: an elastic ring: large while the sender finds it full, small (and within the cache) while the receiver finds
//! it empty.
//!
//! Junchang Wang, Yangfeng Tian, Xiong Fu: EQueue: Elastic Lock-Free FIFO Queue for Core-to-Core Communication on
//! Multi-Core Processors. IEEE Access 8, 2020. The slots are FastForward's. The capacity is the largest size, with
//! which it starts; once it has shrunk it says "full" earlier, down to 256 elements, until it has grown again.
//!
//! In the paper the receiver shrinks the ring, by compare-and-swap on a word that the sender writes too. Here the
//! sender does both at the end of a lap, where it knows the receiver's count of failures; each lap has its own size,
//! which travels ahead of the first element of that lap, so that no atomic read-modify-write is needed.

use crossbeam_utils::CachePadded;

use crate::queues::element::Words;
use crate::queues::interface::{Made, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::{FusedSlot, Slots, check_capacity};
use crate::queues::sync::{Arc, AtomicUsize, Ordering};

/// When a ring changes its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elasticity {
    /// It does not shrink below this size.
    pub smallest: usize,
    /// So many more failures of the sender than of the receiver double the size.
    pub enlarge: usize,
    /// So many more failures of the receiver than of the sender halve it.
    pub shrink: usize,
}

/// The one that is measured.
const ELASTICITY: Elasticity = Elasticity {
    smallest: 256,
    enlarge: 1024,
    shrink: 128,
};

#[derive(Debug)]
pub struct EQueue;

#[derive(Debug)]
struct Shared<const N: usize> {
    slots: Slots<FusedSlot<N>>,
    /// The sizes of the laps with an even and an odd number. Written by the sender.
    sizes: CachePadded<[AtomicUsize; 2]>,
    /// How often the receiver found nothing, wrapping. Written by the receiver.
    found_empty: CachePadded<AtomicUsize>,
}

#[derive(Debug)]
pub struct EQueueSender<const N: usize> {
    queue: Arc<Shared<N>>,
    /// The slot to be filled next; less than the size of the lap.
    next: usize,
    /// The number of the lap, as far as it matters: 0 or 1.
    lap: usize,
    /// How many slots the lap has; at least 1 and at most all.
    size: usize,
    /// How often the queue has been halved.
    halved: u32,
    /// How often the queue was full since its size was last looked at.
    found_full: usize,
    /// The receiver's count at that time.
    found_empty: usize,
    elasticity: Elasticity,
}

#[derive(Debug)]
pub struct EQueueReceiver<const N: usize> {
    queue: Arc<Shared<N>>,
    /// The slot to be emptied next; less than the size of the lap.
    next: usize,
    lap: usize,
    size: usize,
}

impl<const N: usize> EQueueSender<N> {
    /// Chooses the size of the next lap.
    #[inline(never)]
    fn begin_lap(&mut self) {
        let capacity = self.queue.slots.count();
        let Elasticity {
            smallest,
            enlarge,
            shrink,
        } = self.elasticity;
        // Relaxed: a hint.
        let count = self.queue.found_empty.load(Ordering::Relaxed);
        let found_empty = count.wrapping_sub(self.found_empty);
        let resized = if self.found_full >= found_empty.saturating_add(enlarge) && self.halved > 0 {
            self.halved -= 1;
            true
        } else if found_empty >= self.found_full.saturating_add(shrink)
            && capacity >> (self.halved + 1) >= smallest
        {
            self.halved += 1;
            true
        } else {
            false
        };
        if resized {
            self.found_full = 0;
            self.found_empty = count;
        }
        self.next = 0;
        self.lap ^= 1;
        self.size = capacity >> self.halved;
        // Relaxed: the first element of the lap publishes it. Overwritten is the size of the lap before the last, and
        // the receiver has read that: it did so before it emptied that lap's first slot, which was filled again in the
        // last.
        self.queue.sizes[self.lap].store(self.size, Ordering::Relaxed);
    }
}

impl<const N: usize> Sender<Words<N>> for EQueueSender<N> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        // SAFETY: less than the size of the lap, which is at most the number of slots.
        let slot = unsafe { self.queue.slots.at(self.next) };
        if !slot.is_empty() {
            self.found_full = self.found_full.saturating_add(1);
            return false;
        }
        // SAFETY: seen empty, and this is the only sender.
        unsafe { slot.put(&element) };
        self.next += 1;
        if self.next == self.size {
            self.begin_lap();
        }
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for EQueueReceiver<N> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: less than the size of the lap, which is at most the number of slots.
        let slot = unsafe { self.queue.slots.at(self.next) };
        // A full slot holds the element of this lap: those of earlier laps were taken, and in a later one the sender
        // passes this slot only when it is empty.
        if slot.is_empty() {
            let count = &self.queue.found_empty;
            // Relaxed: a hint that only this thread writes.
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
            return None;
        }
        if self.next == 0 {
            // Relaxed: written before the element that was just seen. Read before its slot is emptied.
            self.size = self.queue.sizes[self.lap].load(Ordering::Relaxed);
        }
        // SAFETY: this is the only receiver.
        let element = unsafe { slot.take() };
        self.next += 1;
        if self.next == self.size {
            self.next = 0;
            self.lap ^= 1;
        }
        element
    }
}

impl EQueue {
    /// An empty queue that changes its size so.
    pub(crate) fn with_elasticity<const N: usize>(
        capacity: usize,
        elasticity: Elasticity,
    ) -> Result<(EQueueSender<N>, EQueueReceiver<N>), QueueError> {
        let capacity = check_capacity(capacity)?;
        let queue = Arc::new(Shared {
            slots: Slots::new(capacity, FusedSlot::new),
            sizes: CachePadded::new([AtomicUsize::new(capacity), AtomicUsize::new(capacity)]),
            found_empty: CachePadded::new(AtomicUsize::new(0)),
        });
        let sender = EQueueSender {
            queue: queue.clone(),
            next: 0,
            lap: 0,
            size: capacity,
            halved: 0,
            found_full: 0,
            found_empty: 0,
            elasticity,
        };
        let receiver = EQueueReceiver {
            queue,
            next: 0,
            lap: 0,
            size: capacity,
        };
        Ok((sender, receiver))
    }
}

impl<const N: usize> Queue<Words<N>> for EQueue {
    type Sender = EQueueSender<N>;
    type Receiver = EQueueReceiver<N>;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<N>> {
        Self::with_elasticity(capacity, ELASTICITY)
    }
}
