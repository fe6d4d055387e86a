//! The baton that fills batches: news and element travel in one cache line, and no index does.
//!
//! - *The slot tells whether it is full*, as in FastForward: an index beside it is a second line that the receiver has
//!   to wait for, and half as much latency again. Each slot is given back at once.
//! - *The sender fills batches*: it looks at the last slot of a batch, as in B-Queue. The receiver empties slots in
//!   order, so if that one is empty, all from the sender's place up to there are. Else it looks at the next slot, so
//!   that the capacity is exact. A batch is up to half of the ring. Between two looks the sender compares its place
//!   with the end of the batch, and reads nothing that the receiver writes.
//! - *Above a second-level cache the sender fetches lines ahead*: it does not read a slot before it fills it, so nothing
//!   else does. As for reading: fetched for writing (`prefetchw`) it had half of the throughput. In smaller rings the
//!   receiver would lose lines that it works on.
//! - *The receiver is that of FastForward.* Slots that are emptied line by line, or counted in an index that the sender
//!   looks at, were slower. So was one that works up to the end of a line or of the array.
//! - *Who finds nothing should pause for a moment*, which is up to who calls: else the processor looks ahead several
//!   times, and has to take all of it back when the line changes, just when the element arrives.
//! - *Each end stands alone on its cache lines*, wherever it is put: two ends side by side cost more than any queue.
//!
//! Sender and receiver came of measurements on an AMD EPYC, which has no `cldemote`; the rest is of those of
//! [`demoting`](super::demoting), for processors that have it. [`baton`](super::baton) decides which of the two is
//! made.

#[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use crossbeam_utils::CachePadded;

use crate::demoting::LINE;
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
        "fetch",
        LARGEST_KEPT_KIB,
        "KiB of slots above which the sender fetches lines ahead; x86-64 only, elements of a line or more",
    ),
];

/// Slots of up to this many KiB stay in the second-level caches, which have 2048 KiB on the Xeon that this was measured on:
/// above it fetching gave 1.1 times the throughput with 64 B, which may be chance, and 1.2 to 2.0 times with 256 B. In 1 MiB it
/// left a quarter with 256 B, as it took lines that the receiver works on.
const LARGEST_KEPT_KIB: usize = 2048;
/// How many slots ahead of the one that it filled the sender fetches lines. With 4, 8 and 16 it was slower in larger rings.
const SLOTS_AHEAD: usize = 2;

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
    /// Whether lines are fetched ahead.
    fetches: bool,
}

impl<const N: usize> BatchSender<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>, batch: usize, largest_kib: usize) -> Self {
        let is_large = slots.count() * N > (largest_kib << 10) / size_of::<u64>();
        let longest = 1 << batch.clamp(1, slots.count()).ilog2();
        BatchSender {
            slots,
            next: 0,
            end: 0,
            inside_batch: longest - 1,
            fetches: is_large,
        }
    }

    /// Begins a batch: the longest one if its last slot is empty, else that of the next slot. False if that is full.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        if self.next == self.slots.count() {
            self.next = 0;
        }
        let longest = ((self.next | self.inside_batch) + 1).min(self.slots.count());
        // SAFETY: the end of a batch is at least 1, and at most the number of slots.
        self.end = if unsafe { self.slots.at(longest - 1) }.is_empty() {
            longest
        // SAFETY: less than the number of slots.
        } else if unsafe { self.slots.at(self.next) }.is_empty() {
            self.next + 1
        } else {
            self.next
        };
        self.next != self.end
    }

    /// Fetches the lines of a slot ahead, where that pays.
    #[inline(always)]
    fn fetch_ahead(&self) {
        #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
        if N >= LINE && self.fetches {
            // SAFETY: `next` is less than the number of slots.
            let filled = std::ptr::from_ref(unsafe { self.slots.at(self.next) });
            // Behind the last slot it may be the memory of others, whose lines come back when they ask for them.
            let first = filled.wrapping_add(SLOTS_AHEAD).cast::<u64>();
            for line in 0..N.div_ceil(LINE) {
                let line = first.wrapping_add(line * LINE).cast();
                // SAFETY: a hint, which neither reads nor writes data, and does not fail whatever the address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
            }
        }
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
        filling.fetch_ahead();
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
        let [batch, largest_kib] = given.values(&PARAMETERS, capacity);
        let batch = match batch {
            // Of a longer batch the last slot is often full.
            0 => capacity.div_ceil(2),
            batch => batch,
        };
        let receiver = CachePadded::new(fastforward::FastForwardEnd::new(slots.clone()));
        Ok((
            SendOnly(BatchSender::new(slots, batch, largest_kib)),
            ReceiveOnly(receiver),
        ))
    }
}
