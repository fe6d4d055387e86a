//! FastForward: no shared index at all; a slot says itself whether it is full.
//!
//! John Giacomoni, Tipp Moseley, Manish Vachharajani: FastForward for Efficient Pipeline Parallelism: A Cache-Optimized
//! Concurrent Lock-Free Queue. PPoPP 2008. Each end keeps its index to itself, and the one line that travels is that of
//! the element. Left out is the paper's temporal slipping, by which the receiver waits for some distance to the
//! sender: that wait would be measured as latency here.

use crate::queues::element::Words;
use crate::queues::interface::{In, Made, Out, Queue, Receiver, Sender};
use crate::queues::slots::{FusedSlot, SharedSlots, check_capacity};

/// FastForward.
#[derive(Debug)]
pub struct FastForward;

/// A place on the ring.
#[derive(Debug)]
pub struct End<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
}

impl<const N: usize> End<N> {
    #[inline(always)]
    fn slot(&self) -> &FusedSlot<N> {
        // SAFETY: `next` is less than the number of slots.
        unsafe { self.slots.at(self.next) }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.slots.count() {
            self.next = 0;
        }
    }
}

impl<const N: usize> Sender<Words<N>> for In<End<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let slot = self.0.slot();
        if !slot.is_empty() {
            return false;
        }
        // SAFETY: seen empty, and this is the only sender.
        unsafe { slot.put(&element) };
        self.0.advance();
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for Out<End<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: this is the only receiver.
        let element = unsafe { self.0.slot().take() }?;
        self.0.advance();
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for FastForward {
    type Sender = In<End<N>>;
    type Receiver = Out<End<N>>;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        let end = |slots| End { slots, next: 0 };
        Ok((In(end(slots.clone())), Out(end(slots))))
    }
}
