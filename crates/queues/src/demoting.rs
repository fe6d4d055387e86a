//! The baton that demotes: our own queue for processors with `cldemote`, with slots as in
//! [`batching`](super::batching). [`baton`](super::baton) decides where it is made.
//!
//! What was measured, with elements of 8 bytes between two cores of a Xeon of the Sapphire Rapids generation, and what
//! came of it:
//!
//! - *A line that was filled, or emptied, is demoted* (`cldemote`, a hint) to the cache that both processors share.
//!   Left in the first-level cache of its last writer it costs two transfers that a processor cannot look far enough
//!   ahead to hide: some 420 million elements a second in FastForward as in any other, twice that with it. Both ends
//!   must do it. Where the processor has no such instruction, it is FastForward with more instructions. Arm has none
//!   like it.
//! - *Not in large arrays*: where the ends are further apart than a first-level cache reaches, lines have left it
//!   anyway, and what fetches ahead in the hardware does better without.
//! - *The step past the last slot is a branch*, not a conditional move: the next slot's index depends on one addition,
//!   not on three instructions in a row.
//!
//! Tried and left out, because it was slower or no faster: batches looked at by their last slot, lines emptied as a
//! whole, lines fetched ahead for writing by either end, longer pauses of who finds nothing, `lfence`
//! instead of them.
//!
//! The price: in large arrays the rate depends on whether one end keeps waiting for the other, as in FastForward: less
//! than half if it does. A few instructions in the loops around the queue decide that.

use crate::element::Words;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};

/// The words of a cache line.
pub(super) const LINE: usize = 8;
/// The largest array of which lines are demoted, in KiB: a few first-level caches.
pub(super) const LARGEST_DEMOTED_KIB: usize = 128;

/// What can be chosen, to find out where demoting pays.
pub(super) const PARAMETERS: [Parameter; 1] = [Parameter::number(
    "largest",
    LARGEST_DEMOTED_KIB,
    "KiB of slots above which no line is demoted",
)];

/// The baton that demotes.
#[derive(Debug)]
pub struct DemotingBaton;

/// What both ends are: a place on the ring.
#[derive(Debug)]
#[repr(align(128))]
pub struct DemotingBatonEnd<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
    /// A slot ends a line that is to be demoted if none of these bits is set in the index of the next one, which is not
    /// zero.
    inside_line: usize,
}

/// The bits of an index that show that a line has not ended: none where each slot has separate lines, all where no line
/// is to be demoted.
pub(crate) const fn inside_line(capacity: usize, words: usize) -> usize {
    inside_line_up_to(LARGEST_DEMOTED_KIB, capacity, words)
}

/// The same where arrays of up to this many KiB are demoted.
const fn inside_line_up_to(largest_kib: usize, capacity: usize, words: usize) -> usize {
    if capacity * words > (largest_kib << 10) / size_of::<u64>() {
        usize::MAX
    } else if words < LINE {
        LINE / words - 1
    } else {
        0
    }
}

impl<const N: usize> DemotingBatonEnd<N> {
    fn new(slots: SharedSlots<FusedSlot<N>>, largest_kib: usize) -> Self {
        let inside_line = inside_line_up_to(largest_kib, slots.count(), N);
        DemotingBatonEnd {
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

impl<const N: usize> Sender<Words<N>> for SendOnly<DemotingBatonEnd<N>> {
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

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<DemotingBatonEnd<N>> {
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
pub(super) fn demote<const N: usize>(slot: &FusedSlot<N>) {
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

/// Has the compiler keep the branch that this is in.
#[inline(always)]
fn keep_branch() {
    #[cfg(not(miri))]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

impl<const N: usize> Queue<Words<N>> for DemotingBaton {
    type Sender = SendOnly<DemotingBatonEnd<N>>;
    type Receiver = ReceiveOnly<DemotingBatonEnd<N>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::with_parameters(capacity, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let [largest_kib] = given.values(&PARAMETERS, capacity);
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        Ok((
            SendOnly(DemotingBatonEnd::new(slots.clone(), largest_kib)),
            ReceiveOnly(DemotingBatonEnd::new(slots, largest_kib)),
        ))
    }
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::num::NonZeroU64;

    use super::*;
    use crate::element::Element;

    thread_local! {
        static DEMOTED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note<T>(slot: &T) {
        DEMOTED.with_borrow_mut(|slots| slots.push(std::ptr::from_ref(slot).addr()));
    }

    /// Fills and empties a queue twice; each time either end demotes these slots, given by their index.
    pub(crate) fn demotes<const N: usize, Q: Queue<Words<N>>>(
        capacity: usize,
        (mut sender, mut receiver): (Q::Sender, Q::Receiver),
        first_slot: *const FusedSlot<N>,
        expected: &[usize],
    ) {
        let demoted = || {
            let index = |slot: usize| (slot - first_slot.addr()) / size_of::<FusedSlot<N>>();
            DEMOTED.with_borrow_mut(|slots| slots.drain(..).map(index).collect::<Vec<_>>())
        };
        for lap in 0..2 {
            for number in 1..=capacity as u64 {
                let element = Words::<N>::with_stamp(NonZeroU64::new(number).unwrap());
                assert!(sender.enqueue(element));
            }
            assert_eq!(demoted(), expected, "filled, lap {lap}");
            for number in 1..=capacity as u64 {
                assert_eq!(receiver.dequeue().unwrap().stamp(), number);
            }
            assert_eq!(demoted(), expected, "emptied, lap {lap}");
        }
    }

    fn baton_demotes<const N: usize>(given: &str, capacity: usize, expected: &[usize]) {
        let given = Parameters::parse(given, &PARAMETERS).unwrap();
        let ends = <DemotingBaton as Queue<Words<N>>>::with_parameters(capacity, &given).unwrap();
        let first_slot = std::ptr::from_ref(ends.0.0.slot());
        demotes::<N, DemotingBaton>(capacity, ends, first_slot, expected);
    }

    #[test]
    fn each_end_gives_a_line_away_when_it_is_done_with_it() {
        let usual = "largest=128";
        baton_demotes::<1>(usual, 24, &[7, 15, 23]);
        // The last line is not whole.
        baton_demotes::<1>(usual, 20, &[7, 15]);
        baton_demotes::<2>(usual, 8, &[3, 7]);
        baton_demotes::<8>(usual, 3, &[0, 1, 2]);
        baton_demotes::<1>(usual, (1 << 14) + 8, &[]);
        baton_demotes::<8>("largest=1", 16, &Vec::from_iter(0..16));
        baton_demotes::<8>("largest=1", 17, &[]);
        baton_demotes::<8>("largest=0", 1, &[]);
    }
}
