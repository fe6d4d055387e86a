//! FastForward: no shared index at all; a slot itself shows whether it is full.
//!
//! John Giacomoni, Tipp Moseley, Manish Vachharajani: FastForward for Efficient Pipeline Parallelism: A Cache-Optimized
//! Concurrent Lock-Free Queue. PPoPP 2008. Each end keeps its index to itself, and the one line that travels is that of
//! the element. By the paper's temporal slip the receiver keeps some lines behind the sender, so that neither takes a
//! line that the other works on: where it has come too close it waits until there is room between them again, or the
//! sender does not go on. Such a wait is latency, so it has to be asked for. So has demoting lines, which is ours (see
//! [`demoting`](super::demoting)) and here to show its effect alone, against `demote=0`.

use super::demoting::{LINE, demote, inside_line};
use crate::element::Words;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly, Sender};
use crate::parameters::{Parameter, Parameters};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};

/// What can be chosen.
pub(super) const PARAMETERS: [Parameter; 3] = [
    Parameter::number(
        "slip",
        0,
        "lines between the ends that the receiver waits for, such as 6; 0: none",
    ),
    Parameter::number("danger", 2, "lines between the ends below which it waits"),
    Parameter::switch(
        "demote",
        "whether lines that an end is done with are demoted; x86-64 only",
    )
    .on_x86_64("cldemote"),
];

/// Elements between two looks at the slip. Model checkers do not get as far as 64.
const ELEMENTS_PER_LOOK: usize = if cfg!(loom) { 2 } else { 64 };
/// Pauses for each line that is missing, before the next look.
const PAUSES_PER_LINE: usize = 8;

/// FastForward.
#[derive(Debug)]
pub struct FastForward;

/// FastForward with parameters. It is a separate type, as asking for them takes registers and instructions even where
/// none is given.
#[derive(Debug)]
pub(crate) struct TunedFastForward;

/// A place on the ring.
#[derive(Debug)]
pub struct FastForwardEnd<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot; less than their number.
    next: usize,
}

/// An end that may demote lines.
#[derive(Debug)]
pub struct DemotingEnd<const N: usize> {
    end: FastForwardEnd<N>,
    /// The bits of an index that show that a line has not ended.
    inside_line: usize,
}

/// The end that receives, and how far it keeps behind the sender.
#[derive(Debug)]
pub struct SlippingReceiver<const N: usize> {
    end: DemotingEnd<N>,
    slip: TemporalSlip,
    /// Elements before the next look; never 0 without a slip.
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct TemporalSlip {
    /// Slots of a line.
    line: usize,
    /// Lines that are wanted between the ends, and below which there are too few.
    wanted: usize,
    danger: usize,
    /// Lines that were between them at the last look, while it waits.
    seen: Option<usize>,
}

impl<const N: usize> FastForwardEnd<N> {
    pub(super) const fn new(slots: SharedSlots<FusedSlot<N>>) -> Self {
        FastForwardEnd { slots, next: 0 }
    }

    /// The next slot.
    #[inline(always)]
    fn slot(&self) -> &FusedSlot<N> {
        // SAFETY: `next` is less than the number of slots.
        unsafe { self.slots.at(self.next) }
    }

    /// The slot this many ahead of the next one, fewer than there are.
    fn ahead(&self, distance: usize) -> &FusedSlot<N> {
        let mut index = self.next + distance;
        if index >= self.slots.count() {
            index -= self.slots.count();
        }
        // SAFETY: `next` and `distance` are less than the number of slots, so their sum less than twice it.
        unsafe { self.slots.at(index) }
    }

    /// Goes on, and demotes the lines of the slot where these bits of an index show that they end.
    #[inline(always)]
    fn advance(&mut self, inside_line: Option<usize>) {
        let after = self.next + 1;
        if inside_line.is_some_and(|inside| after & inside == 0) {
            demote(self.slot());
        }
        self.next = if after == self.slots.count() {
            0
        } else {
            after
        };
    }

    /// Puts an element in where the next slot is empty.
    ///
    /// # Safety
    /// The caller is the only sender.
    #[inline(always)]
    unsafe fn put(&mut self, element: &Words<N>, inside_line: Option<usize>) -> bool {
        let slot = self.slot();
        if !slot.is_empty() {
            return false;
        }
        // SAFETY: seen empty, and by the caller's word this is the only sender.
        unsafe { slot.put(element) };
        self.advance(inside_line);
        true
    }

    /// Takes an element out where the next slot is full.
    ///
    /// # Safety
    /// The caller is the only receiver.
    #[inline(always)]
    pub(super) unsafe fn take(&mut self, inside_line: Option<usize>) -> Option<Words<N>> {
        // SAFETY: by the caller's word.
        let element = unsafe { self.slot().take() }?;
        self.advance(inside_line);
        Some(element)
    }
}

impl<const N: usize> SlippingReceiver<N> {
    /// Whether the receiver may go on.
    #[cold]
    #[inline(never)]
    fn look(&mut self) -> bool {
        let SlippingReceiver { end, slip, left } = self;
        let lines = |most: usize| {
            let is_full = |lines: &usize| !end.end.ahead(lines * slip.line).is_empty();
            (1..=most).take_while(is_full).count()
        };
        let goes_on = match slip.seen {
            None => lines(slip.danger) == slip.danger,
            Some(seen) => {
                for _ in 0..PAUSES_PER_LINE * (slip.wanted + 1 - seen) {
                    std::hint::spin_loop();
                }
                let now = lines(slip.wanted);
                now == slip.wanted || now <= seen
            }
        };
        slip.seen = (!goes_on).then(|| lines(slip.wanted));
        if goes_on {
            *left = ELEMENTS_PER_LOOK;
        }
        goes_on
    }
}

impl<const N: usize> Sender<Words<N>> for SendOnly<FastForwardEnd<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        // SAFETY: an `SendOnly` is the only sender.
        unsafe { self.0.put(&element, None) }
    }
}

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<FastForwardEnd<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        // SAFETY: an `ReceiveOnly` is the only receiver.
        unsafe { self.0.take(None) }
    }
}

impl<const N: usize> Sender<Words<N>> for SendOnly<DemotingEnd<N>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let DemotingEnd { end, inside_line } = &mut self.0;
        // SAFETY: an `SendOnly` is the only sender.
        unsafe { end.put(&element, Some(*inside_line)) }
    }
}

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<SlippingReceiver<N>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let following = &mut self.0;
        if following.left == 0 && !following.look() {
            return None;
        }
        let DemotingEnd { end, inside_line } = &mut following.end;
        // SAFETY: an `ReceiveOnly` is the only receiver.
        let element = unsafe { end.take(Some(*inside_line)) }?;
        following.left = following
            .left
            .wrapping_sub(usize::from(following.slip.wanted > 0));
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for FastForward {
    type Sender = SendOnly<FastForwardEnd<N>>;
    type Receiver = ReceiveOnly<FastForwardEnd<N>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        let slots = SharedSlots::new(check_capacity(capacity)?, FusedSlot::new);
        Ok((
            SendOnly(FastForwardEnd::new(slots.clone())),
            ReceiveOnly(FastForwardEnd::new(slots)),
        ))
    }
}

impl<const N: usize> Queue<Words<N>> for TunedFastForward {
    type Sender = SendOnly<DemotingEnd<N>>;
    type Receiver = ReceiveOnly<SlippingReceiver<N>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::with_parameters(capacity, &Parameters::default())
    }

    fn with_parameters(capacity: usize, given: &Parameters) -> NewEnds<Self, Words<N>> {
        let capacity = check_capacity(capacity)?;
        let [wanted, danger, demote] = given.values(&PARAMETERS, capacity);
        let slots = SharedSlots::new(capacity, FusedSlot::new);
        let end = |slots| DemotingEnd {
            end: FastForwardEnd::new(slots),
            inside_line: match demote {
                0 => usize::MAX,
                _ => inside_line(capacity, N),
            },
        };
        let line = LINE.div_ceil(N);
        // No more than the ring has.
        let wanted = wanted.min((capacity - 1) / line);
        let slip = TemporalSlip {
            line,
            wanted,
            danger: danger.min(wanted),
            seen: None,
        };
        let receiver = SlippingReceiver {
            end: end(slots.clone()),
            slip,
            left: ELEMENTS_PER_LOOK,
        };
        Ok((SendOnly(end(slots)), ReceiveOnly(receiver)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::demoting::tests::demotes;

    #[test]
    fn both_ends_demote_where_that_is_asked_for() {
        let tuned = |given: &str, expected: &[usize]| {
            let given = Parameters::parse(given, &PARAMETERS).unwrap();
            let ends = <TunedFastForward as Queue<Words<2>>>::with_parameters(12, &given).unwrap();
            let first_slot = std::ptr::from_ref(ends.0.0.end.slot());
            demotes::<2, TunedFastForward>(12, ends, first_slot, expected);
        };
        if cfg!(target_arch = "x86_64") {
            tuned("demote=1", &[3, 7, 11]);
        }
        tuned("demote=0", &[]);
    }
}
