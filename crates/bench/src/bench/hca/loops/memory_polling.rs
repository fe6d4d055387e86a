//! Messages without a completion: RDMA writes without immediate data, found by looking at the memory.
//!
//! The receiving loop polls this port as it polls a completion queue. A look is a load of the word with the last byte
//! of the next message, and what it finds is told as a completion would: slots are looked at in the order of the
//! messages, which a reliable connection keeps. So one look costs less than one into a completion queue, no receive
//! request is taken, and the HCA writes no completion: that is what the difference to `write` shows.
//!
//! A message that is not whole at the end of the burst fails the check there, and counts as corrupted. One whose last
//! byte was there a moment before the rest ([`PolledSlots`]) passes, with a latency too short by that moment.

use super::port::{Completion, CompletionPort, EventPort, Failure, PollResult};
use super::tag::Tag;
use crate::buffer::PolledSlots;

/// The messages of a burst, as they come to memory. Where they `MAY_BE_LOST`, but keep their order (UC), one is passed
/// over as soon as a later one is there.
#[derive(Debug)]
pub struct MemoryPollingPort<const MAY_BE_LOST: bool> {
    slots: PolledSlots,
    tag: Tag,
    next: usize,
    /// Looks that found nothing.
    empty: usize,
}

/// So many looks that find nothing go to the two next messages alone.
const LOOKS_NEARBY: usize = 64;

impl<const MAY_BE_LOST: bool> MemoryPollingPort<MAY_BE_LOST> {
    /// Finds the messages of burst number `burst`, for which `slots` is prepared.
    pub fn new(slots: PolledSlots, burst: u32) -> Self {
        MemoryPollingPort {
            slots,
            tag: Tag::new(burst),
            next: 0,
            empty: 0,
        }
    }

    /// Passes over those that are lost. The one behind the next is looked at each time, so that it is found as soon as
    /// the next would be; the others in turn, for losses in a row.
    #[inline(always)]
    fn pass_over_lost(&mut self) {
        self.empty += 1;
        let nearby = self.next + 1;
        let found = match self.empty % LOOKS_NEARBY {
            0 => self.look_far(),
            _ => nearby,
        };
        if self.slots.has_arrived(found) {
            // Those before it may have come between the looks: they are visible by now.
            let mut first = self.next..=found;
            self.next = first
                .find(|index| self.slots.has_arrived(*index))
                .unwrap_or(found);
        }
    }

    /// One of those behind the next, another one at each call.
    #[cold]
    fn look_far(&self) -> usize {
        let behind = self.slots.messages().saturating_sub(self.next + 1).max(1);
        self.next + 1 + self.empty / LOOKS_NEARBY % behind
    }
}

impl<const MAY_BE_LOST: bool> CompletionPort for MemoryPollingPort<MAY_BE_LOST> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        if !self.slots.has_arrived(self.next) {
            if MAY_BE_LOST {
                // What it finds the next look takes.
                self.pass_over_lost();
            }
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

    #[test]
    fn a_message_behind_lost_ones_is_found_where_they_may_be_lost() {
        let target = target(64);
        let mut port = MemoryPollingPort::<true>::new(PolledSlots::new(&target, BURST, 400), BURST);
        let mut found = |looks: usize| {
            let taken = (0..looks).filter_map(|_| match port.poll() {
                PollResult::Done(completion) => Some(completion.request),
                _ => None,
            });
            taken.collect::<Vec<_>>()
        };
        assert_eq!(found(1000), [0_u64; 0]);
        arrive(&target, 0);
        arrive(&target, 2);
        assert_eq!(found(3), [0, 2], "one is lost");
        for index in [300, 301, 303] {
            arrive(&target, index);
        }
        // Each of those behind is looked at once in so many looks.
        assert_eq!(found(400 * LOOKS_NEARBY), [300, 301, 303], "many are lost");
        arrive(&target, 399);
        assert_eq!(found(100 * LOOKS_NEARBY), [399]);
        assert_eq!(found(1000), [0_u64; 0]);
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
