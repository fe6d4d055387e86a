//! Baton: our own queue; news and element travel in one cache line, and no index does.
//!
//! *The slot tells whether it is full*, as in FastForward: an index beside it is a second line that the receiver has to
//! wait for, and half as much latency again. There is no index that both ends know, and each slot is given back at once.
//! There are two kinds. [`registry`](super::registry) takes the one that suits the processor.
//!
//! [`Baton`] is for processors without `cldemote`, such as an AMD EPYC, where this was measured (`ci/compare-queues`):
//!
//! - *The sender fills stretches*: where it has seen a slot empty, all slots before it are empty as well, as the receiver
//!   empties them in order. So it looks at the last slot of half a ring, and only if that is full at the next one.
//!   Between two such looks it compares its place with the end of the stretch, and reads nothing that the receiver
//!   writes.
//! - *The receiver is that of FastForward.* Slots that are emptied line by line, or counted in an index that the sender
//!   looks at, were slower.
//!
//! [`DemotingBaton`] is for those that have the instruction, and was made for two cores of a Xeon of the Sapphire Rapids
//! generation, elements of 8 bytes:
//!
//! - *A line that was filled, or emptied, is demoted* (`cldemote`, a hint) to the cache that both processors share.
//!   Left in the first-level cache of its last writer it costs two transfers that a processor cannot look far enough
//!   ahead to hide: some 420 million elements a second in FastForward as in any other, twice that with it. Both ends
//!   must do it. Arm has no such instruction.
//! - *Not in large arrays*: where the ends are further apart than a first-level cache reaches, lines have left it
//!   anyway, and what fetches ahead in the hardware does better without.
//! - *The step past the last slot is a branch*, not a conditional move: the next slot's index depends on one addition,
//!   not on three instructions in a row.
//! - Tried there and left out, because it was slower or no faster: batches looked at by their last slot, lines emptied as
//!   a whole, lines fetched ahead for writing by either end, longer pauses, `lfence` instead of the pause.
//!
//! In both:
//!
//! - *Who finds nothing should pause for a moment* (`pause`, ten nanoseconds on that Xeon; `isb` on Arm, as the standard
//!   library's `spin_loop` has it on either), which is up to who calls: else the processor looks ahead several times, and
//!   has to take all of it back when the line changes, just when the element arrives.
//! - *Each end stands alone on its cache lines*, wherever it is put: two ends side by side cost more than any queue.
//!
//! The price: in large arrays the rate depends on whether one end keeps waiting for the other, as in FastForward: less
//! than half if it does. A few instructions in the loops around the queue decide that.

use crate::queues::element::Words;
use crate::queues::fastforward;
use crate::queues::interface::{In, Made, Out, Queue, Receiver, Sender};
use crate::queues::slots::{FusedSlot, SharedSlots, check_capacity};

/// The words of a cache line.
pub(super) const LINE: usize = 8;
/// The largest array of which lines are demoted, in words: 128 KiB, a few first-level caches.
const LARGEST_DEMOTED: usize = 1 << 14;

/// The kind that fills stretches.
#[derive(Debug)]
pub struct Baton;

/// The kind that demotes lines.
#[derive(Debug)]
pub struct DemotingBaton;

/// The sender of [`Baton`].
#[derive(Debug)]
#[repr(align(128))]
pub struct Stretches<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot, or their number.
    next: usize,
    /// All slots from the next one up to this are empty.
    end: usize,
    /// A stretch ends before an index that has none of these bits, and at the end of the array.
    inside: usize,
}

/// The receiver of [`Baton`].
#[derive(Debug)]
#[repr(align(128))]
pub struct Following<const N: usize>(fastforward::End<N>);

impl<const N: usize> Stretches<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>) -> Self {
        let capacity = slots.count();
        // Half a ring is seldom found full. Model checkers do not get as far as two stretches of several slots.
        let longest = if cfg!(loom) {
            capacity
        } else {
            capacity.div_ceil(2)
        };
        Stretches {
            slots,
            next: 0,
            end: 0,
            inside: (1 << longest.ilog2()) - 1,
        }
    }

    /// Begins a stretch: the longest one if its last slot is empty, else that of the next slot. False if that is full.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        if self.next == self.slots.count() {
            keep_branch();
            self.next = 0;
        }
        let longest = ((self.next | self.inside) + 1).min(self.slots.count());
        // SAFETY: at least 1, and no more than the number of slots.
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
}

impl<const N: usize> Sender<Words<N>> for In<Stretches<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let stretches = &mut self.0;
        if stretches.next == stretches.end && !stretches.begin() {
            return false;
        }
        // SAFETY: less than the end of the stretch. The last slot of it was seen empty, which the receiver empties after
        // this one, and this is the only sender.
        unsafe { stretches.slots.at(stretches.next).put(&element) };
        stretches.next += 1;
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for Out<Following<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: an `Out` is the only receiver.
        unsafe { self.0.0.take(None) }
    }
}

impl<const N: usize> Queue<Words<N>> for Baton {
    type Sender = In<Stretches<N>>;
    type Receiver = Out<Following<N>>;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<N>> {
        let slots = SharedSlots::new(check_capacity(capacity)?, FusedSlot::new);
        let receiver = Following(fastforward::End::new(slots.clone()));
        Ok((In(Stretches::new(slots)), Out(receiver)))
    }
}

/// Whether this processor has `cldemote`. Others pass over the instruction.
pub(super) fn can_demote() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        const FEATURES: u32 = 7;
        const CLDEMOTE: u32 = 1 << 25;
        __cpuid(0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & CLDEMOTE != 0
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// What both ends of [`DemotingBaton`] are: a place on the ring.
#[derive(Debug)]
#[repr(align(128))]
pub struct End<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
    /// A slot ends a line that is to be demoted if none of these bits is set in the index of the next one, which is not
    /// zero.
    inside_line: usize,
}

/// Which bits of an index say that a line has not ended: none where each slot has lines of its own, all where no line
/// is to be demoted.
pub(crate) const fn inside_line(capacity: usize, words: usize) -> usize {
    if capacity * words > LARGEST_DEMOTED {
        usize::MAX
    } else if words < LINE {
        LINE / words - 1
    } else {
        0
    }
}

impl<const N: usize> End<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>) -> Self {
        let inside_line = inside_line(slots.count(), N);
        End {
            slots,
            next: 0,
            inside_line,
        }
    }

    #[inline(always)]
    fn slot(&self) -> &FusedSlot<N> {
        // SAFETY: kept less than the number of slots.
        unsafe { self.slots.at(self.next) }
    }

    /// Goes on to the next slot, and gives away the line behind it.
    #[inline(always)]
    fn advance(&mut self) {
        let after = self.next + 1;
        if after & self.inside_line == 0 {
            demote(self.slot());
        }
        self.next = after;
        if after == self.slots.count() {
            keep_branch();
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

/// Gives the lines of a slot away.
#[inline(always)]
fn demote<const N: usize>(slot: &FusedSlot<N>) {
    #[cfg(all(test, not(loom)))]
    tests::note(slot);
    // SAFETY: within the slot, whose memory is there as long as the queue.
    unsafe { demote_lines(std::ptr::from_ref(slot).cast(), N.div_ceil(LINE)) };
}

/// Has lines move from this processor's own caches to the shared one, soon.
///
/// # Safety
/// The memory of the lines is there.
#[inline(always)]
pub(super) unsafe fn demote_lines(first: *const u64, lines: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..lines {
        // SAFETY: there, by the caller's word. The instruction neither reads nor writes data, so it may meet the other
        // end's; `readonly` only keeps it behind the store before it. Processors without it pass over it, as it has
        // the code of one that does nothing.
        unsafe {
            std::arch::asm!(
                "cldemote [{}]",
                in(reg) first.add(line * LINE),
                options(readonly, nostack, preserves_flags)
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (first, lines);
}

/// Has the compiler keep the branch that this stands in.
#[inline(always)]
fn keep_branch() {
    #[cfg(not(miri))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

impl<const N: usize> Queue<Words<N>> for DemotingBaton {
    type Sender = In<End<N>>;
    type Receiver = Out<End<N>>;

    fn starting_at(capacity: usize, _start: usize) -> Made<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        Ok((In(End::new(slots.clone())), Out(End::new(slots))))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::RefCell;
    use std::num::NonZeroU64;

    use super::*;
    use crate::queues::element::Element;

    thread_local! {
        static DEMOTED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note<T>(slot: &T) {
        DEMOTED.with_borrow_mut(|slots| slots.push(std::ptr::from_ref(slot).addr()));
    }

    /// The indices of the slots that were demoted since the last look.
    fn demoted<const N: usize>(end: &End<N>) -> Vec<usize> {
        // SAFETY: there is a first slot.
        let first = std::ptr::from_ref(unsafe { end.slots.at(0) }).addr();
        DEMOTED.with_borrow_mut(|slots| {
            let index = |slot: usize| (slot - first) / size_of::<FusedSlot<N>>();
            slots.drain(..).map(index).collect()
        })
    }

    fn twice_round<const N: usize>(capacity: usize, expected: &[usize]) {
        let (mut sender, mut receiver) =
            <DemotingBaton as Queue<Words<N>>>::with_capacity(capacity).unwrap();
        for lap in 0..2 {
            for number in 1..=capacity as u64 {
                let element = Words::<N>::with_stamp(NonZeroU64::new(number).unwrap());
                assert!(sender.enqueue(element));
            }
            assert_eq!(demoted(&sender.0), expected, "filled, lap {lap}");
            for number in 1..=capacity as u64 {
                assert_eq!(receiver.dequeue().unwrap().stamp(), number);
            }
            assert_eq!(demoted(&receiver.0), expected, "emptied, lap {lap}");
        }
    }

    #[test]
    fn each_end_gives_a_line_away_when_it_is_done_with_it() {
        twice_round::<1>(24, &[7, 15, 23]);
        // The last line is not whole.
        twice_round::<1>(20, &[7, 15]);
        twice_round::<2>(8, &[3, 7]);
        twice_round::<8>(3, &[0, 1, 2]);
        twice_round::<1>((1 << 14) + 8, &[]);
    }
}
