//! FastForward: no shared index at all; a slot says itself whether it is full.
//!
//! John Giacomoni, Tipp Moseley, Manish Vachharajani: FastForward for Efficient Pipeline Parallelism: A Cache-Optimized
//! Concurrent Lock-Free Queue. PPoPP 2008. Each end keeps its index to itself, and the one line that travels is that of
//! the element. Left out is the paper's temporal slipping, by which the receiver waits for some distance to the
//! sender: that wait would be measured as latency here.

use crate::queues::element::Words;
use crate::queues::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::queues::slots::{FusedSlot, SharedSlots, check_capacity};

/// FastForward.
#[derive(Debug)]
pub struct FastForward;

/// The sending end.
#[derive(Debug)]
pub struct FastForwardSender<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The slot to be filled next; less than their number.
    next: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct FastForwardReceiver<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The slot to be emptied next; less than their number.
    next: usize,
}

impl<const N: usize> Sender<Words<N>> for FastForwardSender<N> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        // SAFETY: `next` is less than the number of slots.
        let slot = unsafe { self.slots.at(self.next) };
        if !slot.is_empty() {
            return false;
        }
        // SAFETY: seen empty, and this is the only sender.
        unsafe { slot.put(&element) };
        self.next += 1;
        if self.next == self.slots.count() {
            self.next = 0;
        }
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for FastForwardReceiver<N> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: `next` is less than the number of slots, and this is the only receiver.
        let element = unsafe { self.slots.at(self.next).take() }?;
        self.next += 1;
        if self.next == self.slots.count() {
            self.next = 0;
        }
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for FastForward {
    type Sender = FastForwardSender<N>;
    type Receiver = FastForwardReceiver<N>;

    const NAME: &'static str = "fastforward";
    const SOURCE: &'static str = "Giacomoni, Moseley, Vachharajani: FastForward for Efficient Pipeline Parallelism. PPoPP 2008";
    const ENDS: Ends = Ends::Spsc;

    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        let capacity = check_capacity("fastforward", capacity)?;
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        Ok((
            FastForwardSender {
                slots: slots.clone(),
                next: 0,
            },
            FastForwardReceiver { slots, next: 0 },
        ))
    }
}
