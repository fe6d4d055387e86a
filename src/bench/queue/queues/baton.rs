//! Baton: our own queue; news and element travel in one cache line, and lines change hands whole.
//!
//! What was measured, and what came of it:
//!
//! - *The slot tells whether it is full*, as in FastForward: an index beside it is a second line that the receiver has to
//!   wait for, and half as much latency again. There is no index that both ends know.
//! - *The receiver empties a whole line at once*, after it has taken the last element in it, instead of each slot: it takes the
//!   line from the sender once instead of up to eight times, and needs a few wide stores for it.
//! - *The sender looks a batch ahead*, as in B-Queue: if the last block of the batch is empty, all of it is, because they are
//!   emptied in order. A sender that finds the queue full looks at a line that neither end is writing to.
//! - *The lines of a batch are fetched for writing at once*, when it is known to be free: they come beside each other instead
//!   of one after the other. Without it, batches made large queues slower by six times.
//! - *A look that finds nothing is finished before the next begins* (`lfence`): else the processor looks ahead several times,
//!   and has to take all of it back when the line changes, just when the element arrives. A sender that finds the queue
//!   full pauses for a moment before it returns, so that the receiver can get on.
//! - *Each end stands alone on its cache lines*, wherever it is put: two ends side by side cost more than any queue.
//!
//! Tried and left out, because it was slower or no faster: emptying by the sender, with a count of what was returned; slots
//! fetched ahead by the receiver; a receiver that waits for some distance to the sender.
//!
//! The price: the sender can find the queue full although slots are free, fewer than a batch: an eighth of them, and never
//! more than eight cache lines. In capacities below 16 it is exact. The capacity is a multiple of the batch, so powers of two
//! are served best, and prime numbers worst.

use crate::bench::queue::element::Words;
use crate::bench::queue::interface::{Ends, Queue, QueueError, Receiver, Sender};
use crate::bench::queue::slots::{FusedSlot, SharedSlots, check_capacity};

/// The words of a cache line.
const LINE: usize = 8;
/// The longest batch in cache lines.
const BATCH_LINES: usize = 8;

/// Our own queue.
#[derive(Debug)]
pub struct Baton;

/// The slots of a cache line; those of larger elements have lines of their own.
const fn slots_in_line(words: usize) -> usize {
    if words < LINE { LINE / words } else { 1 }
}

/// How many slots change hands at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench::queue) struct Steps {
    /// Whether lines are emptied as a whole, or each slot on its own.
    pub whole_lines: bool,
    /// So many slots the sender gets at once: whole blocks, that is lines or slots, of which the capacity is a multiple.
    pub batch: usize,
}

impl Steps {
    /// For elements of `words` words.
    pub fn of(capacity: usize, words: usize) -> Self {
        let most = (capacity / 8).max(1);
        let line = slots_in_line(words);
        let whole_lines = line > 1 && line <= most && capacity.is_multiple_of(line);
        let block = if whole_lines { line } else { 1 };
        let longest = most.min(BATCH_LINES * LINE / words).max(block);
        let batch = (block..=longest)
            .rev()
            .find(|batch| batch.is_multiple_of(block) && capacity.is_multiple_of(*batch))
            .unwrap_or(block);
        Steps { whole_lines, batch }
    }

    const fn block(self, words: usize) -> usize {
        if self.whole_lines {
            slots_in_line(words)
        } else {
            1
        }
    }
}

/// The sending end.
#[derive(Debug)]
#[repr(align(128))]
pub struct BatonSender<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The slot to be filled next, of those up to `end`, which are free.
    next: usize,
    end: usize,
    /// Where the batch after that begins; less than the number of slots.
    following: usize,
    batch: usize,
    /// From the beginning of a batch to that of its last block.
    to_last_block: usize,
}

/// The receiving end.
#[derive(Debug)]
#[repr(align(128))]
pub struct BatonReceiver<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The slot to be read next; less than their number.
    next: usize,
    /// The length of a block, less one.
    mask: usize,
}

impl<const N: usize> BatonSender<N> {
    /// Goes on to the next batch if it is free.
    #[inline(always)]
    fn look(&mut self) -> bool {
        let slots = &self.slots;
        // SAFETY: a batch begins here, and the number of slots is a multiple of a batch.
        if !unsafe { slots.at(self.following + self.to_last_block) }.is_empty() {
            return false;
        }
        self.next = self.following;
        self.end = self.next + self.batch;
        self.following = if self.end == slots.count() {
            0
        } else {
            self.end
        };
        let mut slot = self.next;
        while slot < self.end {
            // SAFETY: within the batch.
            fetch_for_writing(unsafe { slots.at(slot) });
            slot += slots_in_line(N);
        }
        true
    }
}

impl<const N: usize> Sender<Words<N>> for BatonSender<N> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        if self.next == self.end && !self.look() {
            std::hint::spin_loop();
            return false;
        }
        // SAFETY: within a batch.
        let slot = unsafe { self.slots.at(self.next) };
        // SAFETY: this is the only sender. The slot is part of a batch whose last block was seen empty; the receiver
        // empties blocks in order, and all of a block before it shows.
        unsafe { slot.put(&element) };
        self.next += 1;
        true
    }
}

impl<const N: usize> BatonReceiver<N> {
    /// Empties the block behind this end.
    #[inline(always)]
    fn empty(&mut self) {
        let slots = &self.slots;
        if self.mask == 0 {
            // SAFETY: this is the slot that was just read, by the only receiver.
            unsafe { slots.empty(self.next - 1, 1) };
        } else {
            let line = slots_in_line(N);
            // SAFETY: the number of slots is a multiple of those in a line, and all in this one were read by this end, the only
            // receiver.
            unsafe { slots.empty(self.next - line, line) };
        }
        if self.next == slots.count() {
            self.next = 0;
        }
    }
}

impl<const N: usize> Receiver<Words<N>> for BatonReceiver<N> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let slots = &self.slots;
        // SAFETY: kept less than the number of slots. The sender leaves it alone until its block is emptied below.
        let Some(element) = (unsafe { slots.at(self.next).get() }) else {
            finish_looking();
            return None;
        };
        self.next += 1;
        if self.next & self.mask == 0 {
            self.empty();
        }
        Some(element)
    }
}

/// Has the line come to this processor, and leave the other one, before it is written to.
#[inline(always)]
fn fetch_for_writing<T>(target: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: changes nothing that a program can see. Processors without the instruction pass over it, as it has the code of
    // one that does nothing.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) std::ptr::from_ref(target),
            options(readonly, nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = target;
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
    /// An empty queue with other steps than those of its capacity.
    pub(in crate::bench::queue) fn with_steps<const N: usize>(
        capacity: usize,
        steps: Steps,
    ) -> Result<(BatonSender<N>, BatonReceiver<N>), QueueError> {
        let capacity = check_capacity("baton", capacity)?;
        assert!(steps.batch > 0 && capacity.is_multiple_of(steps.batch));
        assert!(steps.batch.is_multiple_of(steps.block(N)));
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        let sender = BatonSender {
            slots: slots.clone(),
            next: 0,
            end: 0,
            following: 0,
            batch: steps.batch,
            to_last_block: steps.batch - steps.block(N),
        };
        let receiver = BatonReceiver {
            slots,
            next: 0,
            mask: steps.block(N) - 1,
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
        Self::with_steps(capacity, Steps::of(capacity, N))
    }
}
