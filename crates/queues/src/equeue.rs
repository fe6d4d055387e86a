//! EQueue: an elastic ring: large while the sender finds it full, small (and within the cache) while the receiver finds
//! it empty.
//!
//! Junchang Wang, Yangfeng Tian, Xiong Fu: EQueue: Elastic Lock-Free FIFO Queue for Core-to-Core Communication on
//! Multi-Core Processors. IEEE Access 8, 2020. The slots are FastForward's. The sender looks at the last slot of a
//! batch, in halving steps down to a slice, and waits after each look that found it full. The capacity is the largest
//! size, with which it starts; once it has shrunk it is "full" earlier, until it has grown again. The parameters are
//! those of the authors' program: its ring begins with 2048 slots, of which a batch is a quarter and a slice a
//! sixteenth.
//!
//! In the paper the receiver shrinks the ring, by compare-and-swap on a word that the sender writes too. Here the
//! sender does both at the end of a lap, where it knows the receiver's count of failures; each lap has its own size,
//! which travels ahead of the first element of that lap, so that no atomic read-modify-write is needed.

use crossbeam_utils::CachePadded;

use crate::element::Words;
use crate::interface::{NewEnds, Queue, QueueError, Receiver, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};
use crate::sync::{Arc, AtomicUsize, Ordering, wait_cycles};

/// When a ring changes its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elasticity {
    /// It does not shrink below this size.
    pub smallest: usize,
    /// This many more failures of the sender than of the receiver double the size.
    pub enlarge: usize,
    /// This many more failures of the receiver than of the sender halve it.
    pub shrink: usize,
}

/// How the sender looks for free slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batching {
    /// Slots of a batch.
    pub batch: usize,
    /// Slots of the smallest.
    pub slice: usize,
    /// Cycles to wait after a look that found none.
    pub penalty: usize,
}

/// The one that is measured.
const ELASTICITY: Elasticity = Elasticity {
    smallest: 256,
    enlarge: 1024,
    shrink: 128,
};

/// What can be chosen.
pub(super) const PARAMETERS: [Parameter; 3] = [
    Parameter::share("batch", 4, "slots that the sender checks for at once"),
    Parameter::share("slice", 16, "smallest number of slots that it goes on with"),
    Parameter::number(
        "penalty",
        1000,
        "cycles to wait after a check that found none",
    ),
];

#[derive(Debug)]
pub(crate) struct EQueue;

#[derive(Debug)]
struct EQueueState {
    /// The sizes of the laps with an even and an odd number. Written by the sender.
    sizes: CachePadded<[AtomicUsize; 2]>,
    /// How often the receiver found nothing, wrapping. Written by the receiver.
    found_empty: CachePadded<AtomicUsize>,
}

#[derive(Debug)]
pub(crate) struct EQueueSender<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    shared: Arc<EQueueState>,
    /// The slot to be filled next; less than the size of the lap.
    next: usize,
    /// The number of the lap, as far as it matters: 0 or 1.
    lap: usize,
    /// How many slots the lap has; at least 1 and at most all.
    size: usize,
    /// How many the lap before had.
    size_before: usize,
    /// The slots from the next one up to this one are known to be empty; at most the size of the lap.
    until: usize,
    batching: Batching,
    /// How often the queue has been halved.
    halved: u32,
    /// How often the queue was full since its size was last looked at.
    found_full: usize,
    /// The receiver's count at that time.
    found_empty: usize,
    elasticity: Elasticity,
}

#[derive(Debug)]
pub(crate) struct EQueueReceiver<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    shared: Arc<EQueueState>,
    /// The slot to be emptied next; less than the size of the lap.
    next: usize,
    lap: usize,
    size: usize,
}

impl<const N: usize> EQueueSender<N> {
    /// Chooses the size of the next lap.
    #[inline(never)]
    fn begin_lap(&mut self) {
        let capacity = self.slots.count();
        let Elasticity {
            smallest,
            enlarge,
            shrink,
        } = self.elasticity;
        // Relaxed: a hint.
        let count = self.shared.found_empty.load(Ordering::Relaxed);
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
        self.until = 0;
        self.lap ^= 1;
        self.size_before = self.size;
        self.size = capacity >> self.halved;
        // Relaxed: the first element of the lap publishes it. Overwritten is the size of the lap before the last, and
        // the receiver has read that: it did so before it emptied that lap's first slot, which was filled again in the
        // last.
        self.shared.sizes[self.lap].store(self.size, Ordering::Relaxed);
    }
}

impl<const N: usize> EQueueSender<N> {
    /// Looks for a batch of empty slots, by the last of them, in halving steps down to a slice.
    #[inline(always)]
    fn search(&mut self) -> bool {
        // A slot beyond the lap before was empty already in that lap, and does not show that the others are.
        let limit = match self.next < self.size_before {
            true => self.size.min(self.size_before),
            false => self.size,
        };
        let mut batch = self.batching.batch.min(limit - self.next);
        loop {
            // SAFETY: within the lap, whose size is at most the number of slots.
            if unsafe { self.slots.at(self.next + batch - 1) }.is_empty() {
                self.until = self.next + batch;
                return true;
            }
            wait_cycles(self.batching.penalty);
            if batch <= self.batching.slice {
                self.found_full = self.found_full.saturating_add(1);
                return false;
            }
            batch /= 2;
        }
    }
}

impl<const N: usize> Sender<Words<N>> for EQueueSender<N> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        if self.next == self.until && !self.search() {
            return false;
        }
        // SAFETY: less than the size of the lap, which is at most the number of slots.
        let slot = unsafe { self.slots.at(self.next) };
        // SAFETY: the last slot of this batch was seen empty, and the receiver empties those of a lap in order. This is
        // the only sender.
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
        let slot = unsafe { self.slots.at(self.next) };
        // A full slot holds the element of this lap: those of earlier laps were taken, and in a later one the sender
        // passes this slot only when it is empty.
        if slot.is_empty() {
            let count = &self.shared.found_empty;
            // Relaxed: a hint that only this thread writes.
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
            return None;
        }
        if self.next == 0 {
            // Relaxed: written before the element that was just seen. Read before its slot is emptied.
            self.size = self.shared.sizes[self.lap].load(Ordering::Relaxed);
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
        batching: Batching,
    ) -> Result<(EQueueSender<N>, EQueueReceiver<N>), QueueError> {
        let capacity = check_capacity(capacity)?;
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        let shared = Arc::new(EQueueState {
            sizes: CachePadded::new([AtomicUsize::new(capacity), AtomicUsize::new(capacity)]),
            found_empty: CachePadded::new(AtomicUsize::new(0)),
        });
        let sender = EQueueSender {
            slots: slots.clone(),
            shared: shared.clone(),
            next: 0,
            lap: 0,
            size: capacity,
            size_before: capacity,
            until: 0,
            batching: Batching {
                batch: batching.batch.max(1),
                slice: batching.slice.max(1),
                penalty: batching.penalty,
            },
            halved: 0,
            found_full: 0,
            found_empty: 0,
            elasticity,
        };
        let receiver = EQueueReceiver {
            slots,
            shared,
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

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::with_parameters(capacity, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, Words<N>> {
        let [batch, slice, penalty] = given.values(&PARAMETERS, capacity);
        let batching = Batching {
            batch,
            slice,
            penalty,
        };
        Self::with_elasticity(capacity, ELASTICITY, batching)
    }
}
