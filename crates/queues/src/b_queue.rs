//! B-Queue: FastForward's slots, looked at once a batch: if the slot behind a batch is empty (or full), all of it is.
//!
//! Junchang Wang, Kai Zhang, Xinan Tang, Bei Hua: B-Queue: Efficient and Practical Queuing for Fast Core-to-Core
//! Communication. International Journal of Parallel Programming 41 (1), 2013. An end that works through a batch touches
//! only slots that the other has left, so the two stay a batch apart. A receiver that waited for a whole batch would
//! wait forever when the sender stops in the middle of one: it backtracks, halving the batch until its end is full or
//! nothing is left of it. What it found is where the next search begins, half a batch larger. After each look that
//! found nothing an end waits.
//!
//! The parameters are those of the authors' program: a batch is a sixteenth of the ring, a wait is 1000 cycles. It is
//! "full" while up to a batch of slots is free.

use crate::element::Words;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};
use crate::sync::wait_cycles;

/// What can be chosen.
pub(super) const PARAMETERS: [Parameter; 2] = [
    Parameter::share("batch", 16, "slots between two checks, at most"),
    Parameter::number(
        "penalty",
        1000,
        "cycles to wait after a check that found nothing",
    ),
];

#[derive(Debug)]
pub(crate) struct BQueue;

/// What both ends are: a place on the ring, and how far the slots from there on are known to be the end's own.
#[derive(Debug)]
pub struct BQueueEnd<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
    /// The slots from the next one up to this one are the end's own; none if both are the same.
    until: usize,
    /// The largest batch. Less than the number of slots, unless that is one.
    batch: usize,
    /// The size of the batch that was last found.
    found: usize,
    penalty: usize,
}

impl<const N: usize> BQueueEnd<N> {
    #[inline(always)]
    fn slot(&self, index: usize) -> &FusedSlot<N> {
        // SAFETY: `next`, and what `behind` returns, are less than the number of slots.
        unsafe { self.slots.at(index) }
    }

    /// The slot behind a batch from the next one on. A batch ends with the ring: then that is the first slot.
    #[inline(always)]
    fn behind(&self, batch: usize) -> usize {
        let index = self.next + batch;
        if index >= self.slots.count() {
            0
        } else {
            index
        }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.next = self.behind(1);
    }
}

impl<const N: usize> Sender<Words<N>> for SendOnly<BQueueEnd<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let end = &mut self.0;
        if end.next == end.until {
            let behind = end.behind(end.batch);
            if !end.slot(behind).is_empty() {
                wait_cycles(end.penalty);
                return false;
            }
            end.until = behind;
        }
        // SAFETY: the slot behind this batch was seen empty, and the receiver empties slots in order, this one before:
        // that slot was filled after it, in the lap before or, being the first, at the beginning of this one. This is
        // the only sender.
        unsafe { end.slot(end.next).put(&element) };
        end.advance();
        true
    }
}

impl<const N: usize> ReceiveOnly<BQueueEnd<N>> {
    /// Looks for a batch of full slots, in halving steps.
    #[inline(always)]
    fn search(&mut self) -> bool {
        let end = &mut self.0;
        let mut batch = (end.found + (end.batch / 2).max(1)).min(end.batch);
        while end.slot(end.behind(batch)).is_empty() {
            wait_cycles(end.penalty);
            if batch == 0 {
                return false;
            }
            batch /= 2;
        }
        end.found = batch;
        // Of no batch at all the next slot itself was looked at.
        end.until = end.behind(batch.max(1));
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<BQueueEnd<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        if self.0.next == self.0.until && !self.search() {
            return None;
        }
        let end = &mut self.0;
        // SAFETY: this is the only receiver. The slot is full, as the sender fills them in order.
        let element = unsafe { end.slot(end.next).take() }?;
        end.advance();
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for BQueue {
    type Sender = SendOnly<BQueueEnd<N>>;
    type Receiver = ReceiveOnly<BQueueEnd<N>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::with_parameters(capacity, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let [batch, penalty] = given.values(&PARAMETERS, capacity);
        let batch = batch.clamp(1, capacity.saturating_sub(1).max(1));
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        let end = |slots| BQueueEnd {
            slots,
            next: 0,
            until: 0,
            batch,
            found: batch,
            penalty,
        };
        Ok((SendOnly(end(slots.clone())), ReceiveOnly(end(slots))))
    }
}
