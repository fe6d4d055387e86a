//! Messages without a completion: RDMA writes without immediate data, found by looking at the memory.
//!
//! The receiving loop polls this port as it polls a completion queue. A look is a load of the word with the last byte
//! of the next message, and returns what it finds as a completion: slots are looked at in the order of the messages. So
//! one look costs less than one into a completion queue, no receive request is taken, and the HCA writes no completion:
//! that is what the difference to `write` shows.
//!
//! On RC no message is lost, and each is found at the first look after it, or after those before it. On UC a message
//! may be lost, so a look that finds nothing goes to three more slots, the near ones most often. Here messages are
//! assumed to become visible in the order in which they were posted, which no specification promises across messages:
//! one that becomes visible after a later one was taken counts as lost.
//!
//! A message that is not whole at the end of the burst fails the check there, and counts as corrupted. One whose last
//! byte was there a moment before the rest ([`PolledSlots`]) passes, with a latency too short by that moment.

use super::port::{Completion, CompletionPort, EventPort, Failure, PollResult};
use super::tag::Tag;
use crate::buffer::PolledSlots;

/// The messages of a burst, as they come to memory. Where they `MAY_BE_LOST` (UC), one is passed over as soon as a
/// later one is found.
#[derive(Debug)]
pub struct MemoryPollingPort<const MAY_BE_LOST: bool> {
    slots: PolledSlots,
    tag: Tag,
    next: usize,
    /// Looks that found nothing at the next slot.
    empty: usize,
    /// The slot that was last looked at of all those behind.
    last: usize,
}

/// Slots behind the second next of which each look takes one: a message behind 2 to 9 lost ones is found within 8
/// looks.
const NEAR: usize = 8;
/// Slots behind those of which every second look takes one: behind 10 to 73 lost ones it takes 128 looks at the most.
const MIDDLE: usize = 64;

impl<const MAY_BE_LOST: bool> MemoryPollingPort<MAY_BE_LOST> {
    /// Finds the messages of burst number `burst`, for which `slots` is prepared.
    pub fn new(slots: PolledSlots, burst: u32) -> Self {
        MemoryPollingPort {
            slots,
            tag: Tag::new(burst),
            next: 0,
            empty: 0,
            last: 0,
        }
    }

    /// Looks behind the next message for one that is there, so that those before it are lost. The second next is looked
    /// at each time, so that it is found as soon as the next would be.
    #[inline(always)]
    fn passes_over_lost(&mut self) -> bool {
        let looks = self.empty;
        self.empty += 1;
        let second = self.next + 1;
        let near = second + 1 + looks % NEAR;
        let other = match looks % 2 {
            0 => second + 1 + NEAR + looks / 2 % MIDDLE,
            _ => self.one_of_all(),
        };
        let mut found = [second, near, other].into_iter();
        match found.find(|index| self.slots.has_arrived(*index)) {
            None => false,
            Some(found) => self.goes_to_first_of(found),
        }
    }

    /// One of those behind the next, each in turn.
    #[inline(always)]
    fn one_of_all(&mut self) -> usize {
        let following = self.last + 1;
        let is_behind = self.next < following && following < self.slots.messages();
        self.last = if is_behind { following } else { self.next + 1 };
        self.last
    }

    /// Makes the first message up to the last of these slots the next one, if one is there. Those before a message that
    /// was found may have come between the looks: they are visible by now.
    fn goes_to_first_of(&mut self, last: usize) -> bool {
        let mut slots = self.next..=last;
        let first = slots.find(|index| self.slots.has_arrived(*index));
        self.next = first.unwrap_or(self.next);
        first.is_some()
    }
}

impl<const MAY_BE_LOST: bool> CompletionPort for MemoryPollingPort<MAY_BE_LOST> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        let is_there = self.slots.has_arrived(self.next) || MAY_BE_LOST && self.passes_over_lost();
        if !is_there {
            return PollResult::Empty;
        }
        let sequence = self.next as u32;
        self.next += 1;
        PollResult::Done(Completion {
            request: u64::from(sequence),
            immediate_data: self.tag.immediate_data(sequence),
            bytes: self.slots.message_size() as u32,
            source_queue_pair: 0,
        })
    }

    #[inline(always)]
    fn finds_behind(&mut self, slots: usize) -> bool {
        let last = self.next.saturating_add(slots);
        let last = last.min(self.slots.messages().saturating_sub(1));
        MAY_BE_LOST && self.goes_to_first_of(last)
    }
}

/// Memory has no events: [`plan`](crate::bench::hca::plan) leaves such points out.
impl<const MAY_BE_LOST: bool> EventPort for MemoryPollingPort<MAY_BE_LOST> {
    fn arm(&mut self) -> Result<(), Failure> {
        Err(Failure {
            request: None,
            code: 0,
            vendor_error: 0,
            consequence: false,
            foreign: false,
            describe: |_, _| "memory that is written makes no event".to_owned(),
        })
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        self.arm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::loops::busy_receiver::BusyReceiver;
    use crate::bench::hca::loops::control::Control;
    use crate::bench::hca::loops::port::scripted::Counting;
    use crate::bench::hca::loops::port::{BusyPolling, WaitForEvent};
    use crate::bench::hca::loops::receiver::{Strays, receive};
    use crate::bench::hca::loops::tag::Expected;
    use crate::buffer::{Arrival, HugePagePolicy, Payload, PayloadBuffer};
    use crate::pacing::{ConstantWait, NoPause};
    use crate::time::{Nanos, Posix, Ticks};

    const BURST: u32 = 65_537;
    const MESSAGES: usize = 500;

    fn target(size: usize) -> Payload {
        Payload::new(PayloadBuffer::new(MESSAGES, size, 0, HugePagePolicy::Off).unwrap())
    }

    /// Writes a message as it arrives: the pattern, and its stamp.
    fn arrive(target: &Payload, index: usize) {
        target.fill(index, BURST, index as u32);
        target.slot(index).store_stamp(Ticks(1 + index as u64));
    }

    #[test]
    fn the_unchanged_loop_finds_all_messages_in_order_while_they_are_written() {
        for (size, pause) in [(8, 0), (9, 0), (4096, 0), (9, 2000)] {
            let (target, control, clock) = (target(size), Control::default(), Posix::MONOTONIC);
            let mut port =
                MemoryPollingPort::<false>::new(PolledSlots::new(&target, BURST, MESSAGES), BURST);
            let mut arrivals = vec![Arrival::default(); MESSAGES];
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while control.ready() == 0 {
                        std::thread::yield_now();
                    }
                    (0..MESSAGES).for_each(|index| arrive(&target, index));
                });
                let expected = Expected::new(BURST, MESSAGES, &[]);
                let work = ConstantWait::new(&clock, Nanos(pause));
                let (log, stop) = (&mut arrivals, control.stop_flag());
                let mut port = BusyReceiver::new(&mut port, &clock, work, stop);
                receive(&clock, &mut port, BusyPolling, expected, log, &control)
            });
            let counts = (outcome.received, outcome.strays);
            assert_eq!(counts, (MESSAGES, Strays::default()), "{size} B");
            for (index, arrival) in arrivals.iter().enumerate() {
                let label = Tag::new(BURST).immediate_data(index as u32);
                assert_eq!((arrival.label, arrival.slot as usize), (label, index));
                assert_eq!(arrival.bytes as usize, size);
                assert!(target.holds(index, BURST, index as u32));
            }
        }
    }

    #[test]
    fn a_message_behind_one_that_is_missing_is_not_looked_for() {
        let target = target(64);
        let mut port = MemoryPollingPort::<false>::new(PolledSlots::new(&target, BURST, 3), BURST);
        arrive(&target, 1);
        assert!(matches!(port.poll(), PollResult::Empty));
        arrive(&target, 0);
        for sequence in [0, 1] {
            let PollResult::Done(completion) = port.poll() else {
                panic!("message {sequence} is there");
            };
            assert_eq!(completion.request, sequence);
        }
        assert!(matches!(port.poll(), PollResult::Empty));
    }

    /// Looks until a message is found: how many it took, and the message.
    fn look<P: CompletionPort>(port: &mut P, most: usize) -> Option<(usize, u64)> {
        (1..=most).find_map(|looks| match port.poll() {
            PollResult::Done(completion) => Some((looks, completion.request)),
            _ => None,
        })
    }

    #[test]
    fn a_message_behind_lost_ones_is_found_in_as_many_looks_as_its_distance_allows() {
        const TAKEN: usize = 5;
        for (lost, most) in [
            (0, 1),
            (1, 1),
            (2, NEAR),
            (NEAR + 1, NEAR),
            (NEAR + 2, 2 * MIDDLE),
            (NEAR + MIDDLE + 1, 2 * MIDDLE),
            (NEAR + MIDDLE + 2, 2 * MESSAGES),
            (MESSAGES - TAKEN - 1, 2 * MESSAGES),
        ] {
            // Whatever was looked at before the message came.
            for empty in [0, 1, 7, 100, 1001, 2 * MESSAGES] {
                let target = target(64);
                let slots = PolledSlots::new(&target, BURST, MESSAGES);
                let mut port = MemoryPollingPort::<true>::new(slots, BURST);
                for index in 0..TAKEN {
                    arrive(&target, index);
                    assert_eq!(look(&mut port, 1), Some((1, index as u64)));
                }
                assert_eq!(look(&mut port, empty), None);
                arrive(&target, TAKEN + lost);
                let (looks, found) = look(&mut port, most).unwrap();
                assert_eq!(found, (TAKEN + lost) as u64, "{lost} lost, {looks} looks");
                assert_eq!(look(&mut port, 10), None, "none is found twice");
            }
        }
    }

    #[test]
    fn of_those_behind_lost_ones_the_first_is_taken_first_and_the_last_ends_it() {
        let target = target(64);
        let mut port = MemoryPollingPort::<true>::new(PolledSlots::new(&target, BURST, 400), BURST);
        for index in [0, 2, 300, 301, 303, 399] {
            arrive(&target, index);
        }
        let found = |_| look(&mut port, 800).map(|(_, found)| found);
        let found: Vec<_> = (0..7).map_while(found).collect();
        assert_eq!(found, [0, 2, 300, 301, 303, 399]);
    }

    /// The first look finds the first message, the second the last one: none costs a pause for each slot.
    #[test]
    fn a_busy_receiver_looks_over_the_slots_nearby_at_once() {
        let target = target(64);
        let control = Control::default();
        let mut port = MemoryPollingPort::<true>::new(PolledSlots::new(&target, BURST, 400), BURST);
        let mut busy = BusyReceiver::new(&mut port, &Counting, NoPause, control.stop_flag());
        arrive(&target, 0);
        arrive(&target, 64);
        assert_eq!(look(&mut busy, 1), Some((1, 0)));
        assert_eq!(look(&mut busy, 1), Some((1, 64)));
        assert_eq!(look(&mut busy, 1), None);
    }

    #[test]
    fn what_came_before_the_stop_flag_is_found_wherever_it_is() {
        for is_busy in [false, true] {
            let target = target(64);
            let control = Control::default();
            let mut port =
                MemoryPollingPort::<true>::new(PolledSlots::new(&target, BURST, MESSAGES), BURST);
            for index in [3, 200, 201, MESSAGES - 1] {
                arrive(&target, index);
            }
            control.stop();
            let mut arrivals = vec![Arrival::default(); MESSAGES];
            let expected = Expected::new(BURST, MESSAGES, &[]);
            let log = &mut arrivals;
            let outcome = if is_busy {
                let stop = control.stop_flag();
                let mut port = BusyReceiver::new(&mut port, &Counting, NoPause, stop);
                receive(&Counting, &mut port, BusyPolling, expected, log, &control)
            } else {
                receive(&Counting, &mut port, BusyPolling, expected, log, &control)
            };
            assert_eq!(outcome.received, 4);
            let slots: Vec<_> = arrivals[..4].iter().map(|arrival| arrival.slot).collect();
            assert_eq!(slots, [3, 200, 201, MESSAGES as u32 - 1]);
        }
    }

    #[test]
    fn missing_messages_end_with_the_stop_flag_and_there_are_no_events() {
        let target = target(8);
        let port = || MemoryPollingPort::<false>::new(PolledSlots::new(&target, BURST, 2), BURST);
        let control = Control::default();
        let mut arrivals = vec![Arrival::default(); 2];
        let mut first = port();
        arrive(&target, 0);
        control.stop();
        let mut busy = BusyReceiver::new(&mut first, &Counting, NoPause, control.stop_flag());
        let expected = Expected::new(BURST, 2, &[]);
        let outcome = receive(
            &Counting,
            &mut busy,
            BusyPolling,
            expected,
            &mut arrivals,
            &control,
        );
        assert_eq!(outcome.received, 1);
        let mode = WaitForEvent::default();
        let outcome = receive(
            &Counting,
            &mut port(),
            mode,
            expected,
            &mut arrivals,
            &control,
        );
        let failure = outcome.failure.unwrap().to_string();
        assert!(failure.contains("no event"), "{failure}");
    }
}
