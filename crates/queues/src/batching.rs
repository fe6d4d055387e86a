//! The baton that fills batches: news and element travel in one cache line, and no index does.
//!
//! - *The slot tells whether it is full*, as in FastForward: an index beside it is a second line that the receiver has
//!   to wait for, and half as much latency again. Each slot is given back at once.
//! - *The sender fills batches*: it looks at the last slot of a batch, as in B-Queue. The receiver empties slots in
//!   order, so if that one is empty, all from the sender's place up to there are. Else it looks at the next slot, so
//!   that the capacity is exact. A batch is up to half of the ring. Between two looks the sender compares its place
//!   with the end of the batch, and reads nothing that the receiver writes.
//! - *The receiver is that of FastForward.* Slots that are emptied line by line, or counted in an index that the sender
//!   looks at, were slower. So was one that works up to the end of a line or of the array.
//! - *Who finds nothing should pause for a moment*, which is up to who calls: else the processor looks ahead several
//!   times, and has to take all of it back when the line changes, just when the element arrives.
//! - *Each end stands alone on its cache lines*, wherever it is put: two ends side by side cost more than any queue.
//!
//! Sender and receiver came of measurements on an AMD EPYC, which has no `cldemote`; the rest is of those of
//! [`demoting`](super::demoting), for processors that have it. [`baton`](super::baton) decides which of the two is
//! made.

use crossbeam_utils::CachePadded;

use crate::element::Words;
use crate::fastforward;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};

/// What can be chosen, to find out which batch is the best.
pub(super) const PARAMETERS: [Parameter; 2] = [
    Parameter::number(
        "batch",
        0,
        "slots that the sender checks for at once, at most, cut to a power of two; 0: half of all",
    ),
    Parameter::number(
        "least",
        1,
        "slots that the sender checks for where the batch is not empty; with more than 1 the queue is full before it holds \
         its capacity",
    ),
];

/// The baton that fills batches.
#[derive(Debug)]
pub struct BatchingBaton;

/// The end that sends.
#[derive(Debug)]
#[repr(align(128))]
pub struct BatchSender<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot, or their number.
    next: usize,
    /// The end of the batch, at most the number of slots: those from the next one up to it are empty.
    end: usize,
    /// A batch ends before an index that has none of these bits, and at the end of the array.
    inside_batch: usize,
    /// Slots of the shortest batch, but at the end of the array.
    least: usize,
}

impl<const N: usize> BatchSender<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>, batch: usize, least: usize) -> Self {
        let longest = 1 << batch.clamp(1, slots.count()).ilog2();
        BatchSender {
            slots,
            next: 0,
            end: 0,
            inside_batch: longest - 1,
            least: least.max(1),
        }
    }

    /// Begins a batch: the longest one if its last slot is empty, else that of the next slot. False if that is full.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        if self.next == self.slots.count() {
            self.next = 0;
        }
        let longest = ((self.next | self.inside_batch) + 1).min(self.slots.count());
        let shortest = (self.next + self.least).min(self.slots.count());
        // SAFETY: the end of a batch is at least 1, and at most the number of slots.
        self.end = if unsafe { self.slots.at(longest - 1) }.is_empty() {
            longest
        // SAFETY: as above.
        } else if unsafe { self.slots.at(shortest - 1) }.is_empty() {
            shortest
        } else {
            self.next
        };
        self.next != self.end
    }
}

impl<const N: usize> Sender<Words<N>> for SendOnly<BatchSender<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let filling = &mut self.0;
        if filling.next == filling.end && !filling.begin() {
            return false;
        }
        // SAFETY: less than the end of the batch, which is at most the number of slots. This slot, or the last of the
        // batch, which the receiver empties after it, was seen empty; and this is the only sender.
        unsafe { filling.slots.at(filling.next).put(&element) };
        filling.next += 1;
        true
    }
}

impl<const N: usize> Receiver<Words<N>>
    for ReceiveOnly<CachePadded<fastforward::FastForwardEnd<N>>>
{
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: an `ReceiveOnly` is the only receiver.
        unsafe { self.0.take(None) }
    }
}

impl<const N: usize> Queue<Words<N>> for BatchingBaton {
    type Sender = SendOnly<BatchSender<N>>;
    type Receiver = ReceiveOnly<CachePadded<fastforward::FastForwardEnd<N>>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::with_parameters(capacity, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, Words<N>> {
        let slots = SharedSlots::new(check_capacity(capacity)?, FusedSlot::new);
        let [batch, least] = given.values(&PARAMETERS, capacity);
        // Of a longer batch the last slot is often full.
        let batch = match batch {
            0 => capacity.div_ceil(2),
            batch => batch,
        };
        let receiver = CachePadded::new(fastforward::FastForwardEnd::new(slots.clone()));
        Ok((
            SendOnly(BatchSender::new(slots, batch, least)),
            ReceiveOnly(receiver),
        ))
    }
}
