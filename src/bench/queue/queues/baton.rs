//! Baton: our own queue; news and element travel in one cache line, and neither end touches more lines than it must.
//!
//! What was measured, and what came of it:
//!
//! - *The slot tells whether it is full*, as in FastForward: an index beside it is a second line that the receiver has to
//!   wait for, and half as much latency again.
//! - *The sender empties the slots* (of larger queues): it clears the slot behind the one that it is about to fill, which
//!   mostly lies in the line that it writes anyway. So it never reads a slot, the receiver never writes one, and
//!   each line goes there and back once a lap. In place of it the receiver counts what it has returned, once a
//!   batch, and the sender looks at that only when by its own count the queue is full. The price: the sender can find the
//!   queue full although slots are free, at most a quarter of them and at most [`BATCH`], until the receiver has returned
//!   the batch, or has found the queue empty.
//! - *In small queues the receiver empties the slots*, as in FastForward: there the ends meet so often that the count would
//!   travel with every few elements. Then the capacity is exact at any moment.
//! - *A look that finds nothing is finished before the next begins* (`lfence`): else the processor looks ahead several times,
//!   and has to take all of it back when the line changes, just when the element arrives. A sender that finds the queue
//!   full pauses for a moment before it returns, so that the receiver can get on.
//! - *Each end stands alone on its cache lines*, wherever it is put: two ends side by side cost more than any queue.

use crate::bench::queue::element::Words;
use crate::bench::queue::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::bench::queue::slots::{FusedSlot, Slots, check_capacity};
use crate::bench::queue::sync::{Alone, Arc, AtomicUsize, Ordering};

/// From this capacity on the sender empties the slots.
const LARGE: usize = 512;
/// So many elements are returned at once, at the most.
const BATCH: usize = 64;

/// Our own queue.
#[derive(Debug)]
pub struct Baton;

#[derive(Debug)]
struct Shared<const N: usize> {
    /// As many as elements; one more if the sender empties them, so that the one behind a full queue can be empty.
    slots: Slots<FusedSlot<N>>,
    capacity: usize,
    /// How many elements were taken out, wrapping, if the sender empties the slots. Written by the receiver.
    returned: Alone<AtomicUsize>,
}

/// The sending end.
#[derive(Debug)]
#[repr(align(128))]
pub struct BatonSender<const N: usize> {
    queue: Arc<Shared<N>>,
    /// The slot to be filled next; less than their number.
    next: usize,
    /// So many slots from there on are known to be free.
    free: usize,
    /// How many elements can have been put in when those are full, wrapping.
    limit: usize,
    /// Whether this end empties the slots.
    clears: bool,
}

/// The receiving end.
#[derive(Debug)]
#[repr(align(128))]
pub struct BatonReceiver<const N: usize> {
    queue: Arc<Shared<N>>,
    /// The slot to be read next; less than their number.
    next: usize,
    /// How many elements were taken out and not returned.
    held: usize,
    /// How many were returned, wrapping.
    returned: usize,
    batch: usize,
    /// Whether this end empties the slots.
    clears: bool,
}

impl<const N: usize> BatonSender<N> {
    /// Finds out whether there is room.
    #[inline(always)]
    fn look(&mut self) -> bool {
        if self.clears {
            // Acquire: the slots were read before they were returned.
            let returned = self.queue.returned.load(Ordering::Acquire);
            let limit = returned.wrapping_add(self.queue.capacity);
            self.free = limit.wrapping_sub(self.limit);
            self.limit = limit;
        } else {
            // SAFETY: kept less than the number of slots.
            let slot = unsafe { self.queue.slots.at(self.next) };
            self.free = usize::from(slot.is_empty());
        }
        self.free > 0
    }
}

impl<const N: usize> Sender<Words<N>> for BatonSender<N> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        if self.free == 0 && !self.look() {
            std::hint::spin_loop();
            return false;
        }
        self.free -= 1;
        // SAFETY: kept less than the number of slots.
        let slot = unsafe { self.queue.slots.at(self.next) };
        self.next += 1;
        if self.next == self.queue.slots.count() {
            self.next = 0;
        }
        if self.clears {
            // SAFETY: as above. The element in it went in one whole queue before the one that is put in now, for which there
            // is room only because that one was returned. The receiver looks there after it saw the element below.
            unsafe { self.queue.slots.at(self.next).clear() };
        }
        // SAFETY: this is the only sender. If it empties the slots, it emptied this one before the previous element
        // (the first is empty from the beginning), and its old element was returned; else it was seen empty.
        unsafe { slot.put(&element) };
        true
    }
}

impl<const N: usize> BatonReceiver<N> {
    #[inline(always)]
    fn give_back(&mut self) {
        if self.held > 0 {
            self.returned = self.returned.wrapping_add(self.held);
            self.held = 0;
            // Release: the slots are returned after they were read.
            self.queue.returned.store(self.returned, Ordering::Release);
        }
    }
}

impl<const N: usize> Receiver<Words<N>> for BatonReceiver<N> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: kept less than the number of slots.
        let slot = unsafe { self.queue.slots.at(self.next) };
        let element = if self.clears {
            // SAFETY: this is the only receiver.
            unsafe { slot.take() }
        } else {
            // SAFETY: the sender does not touch it before it is returned. What is in it is not left over from the last
            // lap: that was cleared before the previous element, which was seen, was put in.
            unsafe { slot.get() }
        };
        if element.is_none() {
            if !self.clears {
                self.give_back();
            }
            finish_looking();
            return None;
        }
        self.next += 1;
        if self.next == self.queue.slots.count() {
            self.next = 0;
        }
        if !self.clears {
            self.held += 1;
            if self.held == self.batch {
                self.give_back();
            }
        }
        element
    }
}

/// Lets no later load begin before the earlier ones are done.
#[inline(always)]
fn finish_looking() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

impl Baton {
    /// An empty queue that has seen so many elements, in the one or the other way of working.
    pub(in crate::bench::queue) fn starting_at<const N: usize>(
        capacity: usize,
        start: usize,
        sender_clears: bool,
    ) -> Result<(BatonSender<N>, BatonReceiver<N>), QueueError> {
        let capacity = check_capacity("baton", capacity)?;
        let queue = Arc::new(Shared {
            slots: Slots::new(capacity + usize::from(sender_clears), FusedSlot::new),
            capacity,
            returned: Alone(AtomicUsize::new(start)),
        });
        let sender = BatonSender {
            queue: queue.clone(),
            next: 0,
            free: 0,
            limit: start,
            clears: sender_clears,
        };
        let receiver = BatonReceiver {
            queue,
            next: 0,
            held: 0,
            returned: start,
            batch: (capacity / 4).clamp(1, BATCH),
            clears: !sender_clears,
        };
        Ok((sender, receiver))
    }
}

impl<const N: usize> Queue<Words<N>> for Baton {
    type Sender = BatonSender<N>;
    type Receiver = BatonReceiver<N>;

    const NAME: &'static str = "baton";
    const SOURCE: &'static str = "hcabench";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        Self::starting_at(capacity, 0, capacity >= LARGE)
    }
}
