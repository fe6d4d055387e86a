//! B-Queue: FastForward's slots, looked at once a batch: if the last slot of a batch is empty (or full), all of it is.
//!
//! Junchang Wang, Kai Zhang, Xinan Tang, Bei Hua: B-Queue: Efficient and Practical Queuing for Fast Core-to-Core
//! Communication. International Journal of Parallel Programming 41 (1), 2013. An end that works through a batch touches
//! only slots that the other has left, so the two stay a batch apart. A receiver that waited for a whole batch would
//! wait for ever when the sender stops in the middle of one: it backtracks, halving the batch until its end is full or
//! nothing is left of it, and begins the next search near what it last found.
//!
//! Here the sender backtracks as well, so that the last free slot can be used and the capacity is exact. The published
//! queue waits a thousand cycles after a look that found nothing; here it is one `pause` after each such look, as a
//! queue that does not block has no time for more. Without any, the receiver's looks take lines from a sender that is
//! still writing them: a quarter of the throughput, less than Lamport's queue.

use crate::queues::element::Words;
use crate::queues::interface::{In, Made, Out, Queue, Receiver, Sender};
use crate::queues::slots::{FusedSlot, SharedSlots, check_capacity};

/// The largest batch; in a small queue a batch is a quarter of it.
const BATCH: usize = 64;

#[derive(Debug)]
pub struct BQueue;

/// What both ends are: a place on the ring, and how far it is known to be free (or full) from there.
#[derive(Debug)]
pub struct End<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
    /// How many slots from there on are known to be the end's own.
    known: usize,
    /// The largest batch, at most the number of slots.
    largest: usize,
    /// The size of the batch that was last found.
    found: usize,
}

impl<const N: usize> End<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>) -> Self {
        let largest = (slots.count() / 4).clamp(1, BATCH);
        End {
            slots,
            next: 0,
            known: 0,
            largest,
            found: largest,
        }
    }

    /// The slot so many ahead of the next one, which are fewer than there are.
    #[inline(always)]
    fn ahead(&self, distance: usize) -> &FusedSlot<N> {
        let mut index = self.next + distance;
        if index >= self.slots.count() {
            index -= self.slots.count();
        }
        // SAFETY: `next` and `distance` are less than the number of slots, so their sum less than twice it.
        unsafe { self.slots.at(index) }
    }

    /// Looks for a batch of slots that are the end's own, of which the last tells, in halving steps from `batch`.
    #[inline(always)]
    fn search(&mut self, mut batch: usize, is_own: impl Fn(&FusedSlot<N>) -> bool) -> bool {
        while !is_own(self.ahead(batch - 1)) {
            std::hint::spin_loop();
            batch /= 2;
            if batch == 0 {
                self.found = 1;
                return false;
            }
        }
        self.found = batch;
        self.known = batch;
        true
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.known -= 1;
        self.next += 1;
        if self.next == self.slots.count() {
            self.next = 0;
        }
    }
}

impl<const N: usize> Sender<Words<N>> for In<End<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let end = &mut self.0;
        if end.known == 0 && !end.search(end.largest, FusedSlot::is_empty) {
            return false;
        }
        // SAFETY: the last slot of this batch was seen empty, and the receiver empties slots in order, so that looking
        // came after the emptying of this one too. This is the only sender.
        unsafe { end.ahead(0).put(&element) };
        end.advance();
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for Out<End<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let end = &mut self.0;
        if end.known == 0 {
            let batch = (end.found + 1).min(end.largest);
            if !end.search(batch, |slot| !slot.is_empty()) {
                return None;
            }
        }
        // SAFETY: this is the only receiver. The slot is full, as the sender fills them in order.
        let element = unsafe { end.ahead(0).take() }?;
        end.advance();
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for BQueue {
    type Sender = In<End<N>>;
    type Receiver = Out<End<N>>;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        Ok((In(End::new(slots.clone())), Out(End::new(slots))))
    }
}
