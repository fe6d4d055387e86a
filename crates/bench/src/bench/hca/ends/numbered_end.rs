//! The receiving end of sends without immediate data, which iWARP does not have.
//!
//! A reliable connection delivers messages in the order in which they were posted, and each takes the next receive
//! request. So a message's place in that order is its number. Whether it is that message is checked as for all others:
//! by its length, its stamp and, where it is longer than the stamp, the pattern of burst and number behind it. One that
//! were missing would have all that follow it counted as corrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::receiving_end::Receiver;
use super::verbs_port::VerbsCompletionPort;
use super::{Link, ReceivingEnd};
use crate::bench::hca::loops::port::{
    CompletionPort, EventPort, Failure, PollResult, QueuePairPort,
};
use crate::bench::hca::loops::tag::Tag;
use crate::buffer::Arrival;
use crate::rdma::verbs::VerbsError;
use crate::time::Ticks;

/// A receiver that identifies messages by their order.
#[derive(Debug)]
pub(crate) struct NumberedReceiver {
    receiver: Arc<Receiver>,
    order: Arc<MessageOrder>,
}

impl NumberedReceiver {
    /// For messages that come in bursts of `burst`, none of which has arrived yet.
    pub(crate) fn new(receiver: Arc<Receiver>, burst: u32) -> Self {
        let numbers = receiver.numbers();
        let turns = Turns::new(&numbers, receiver.slots_of_queue_pairs());
        NumberedReceiver {
            receiver,
            order: Arc::new(MessageOrder::new(burst, numbers.len(), turns)),
        }
    }
}

impl ReceivingEnd for NumberedReceiver {
    type Port = NumberingPort<VerbsCompletionPort>;

    fn slots(&self) -> usize {
        self.receiver.slots()
    }

    fn requests(&self) -> usize {
        self.receiver.requests()
    }

    fn clear(&self, slot: usize) {
        self.receiver.clear(slot);
    }

    fn post(&self, slot: usize) -> Result<(), VerbsError> {
        self.receiver.post(slot)
    }

    fn port(&self, burst: u32, messages: usize) -> Self::Port {
        NumberingPort {
            port: self.receiver.port(burst, messages),
            order: Arc::clone(&self.order),
        }
    }

    fn sources(&self) -> &[u32] {
        self.receiver.sources()
    }

    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        self.receiver.delivered(burst, arrival, sequence)
    }

    fn link(&self) -> &dyn Link {
        self.receiver.link()
    }
}

/// The label of a message of no queue pair of ours: its number is larger than that of any message.
const OF_NO_BURST: u32 = u32::MAX;

/// What the next message of each queue pair is. It lasts from burst to burst: one that comes late is known as such.
#[derive(Debug)]
struct MessageOrder {
    /// As the immediate data would be.
    next: Box<[AtomicU32]>,
    turns: Turns,
    burst: u32,
}

/// By which a message shows to which of the queue pairs, in turn, it came. Finding it stands before the stamp.
#[derive(Debug)]
enum Turns {
    /// There is one.
    Single,
    /// The slot of its request, in a table, so that it takes no division.
    OfSlots(Box<[u32]>),
    /// The number of the queue pair, where they share the requests: numbers with turns, in order of the numbers.
    OfNumbers(Box<[(u32, u32)]>),
}

impl Turns {
    /// For queue pairs of these numbers, each with that number of separate slots, or with those of all.
    fn new(numbers: &[u32], own_slots: Option<usize>) -> Self {
        match (numbers, own_slots) {
            ([_], _) => Turns::Single,
            (_, Some(slots)) => {
                let of_slots = |turn| std::iter::repeat_n(turn, slots);
                Turns::OfSlots((0..numbers.len() as u32).flat_map(of_slots).collect())
            }
            (_, None) => {
                let mut turns: Vec<(u32, u32)> = numbers.iter().copied().zip(0..).collect();
                turns.sort_unstable();
                Turns::OfNumbers(turns.into())
            }
        }
    }

    /// None for a queue pair that is none of ours.
    #[inline(always)]
    fn of(&self, slot: u64, queue_pair: impl FnOnce() -> u32) -> Option<u32> {
        match self {
            Turns::Single => Some(0),
            Turns::OfSlots(turns) => Some(turns[slot as usize]),
            Turns::OfNumbers(turns) => {
                let at = turns.binary_search_by_key(&queue_pair(), |(number, _)| *number);
                at.ok().map(|at| turns[at].1)
            }
        }
    }
}

impl MessageOrder {
    fn new(burst: u32, queue_pairs: usize, turns: Turns) -> Self {
        let first = |queue_pair: u32| AtomicU32::new(Tag::new(0).immediate_data(queue_pair));
        MessageOrder {
            next: (0..queue_pairs as u32).map(first).collect(),
            turns,
            burst,
        }
    }

    /// What a message is that took the request of a slot.
    #[inline(always)]
    fn take(&self, slot: u64, queue_pair: impl FnOnce() -> u32) -> u32 {
        let queue_pairs = self.next.len() as u32;
        let Some(queue_pair) = self.turns.of(slot, queue_pair) else {
            return OF_NO_BURST;
        };
        // Only the thread of the port changes it.
        let next = &self.next[queue_pair as usize];
        let this = next.load(Ordering::Relaxed);
        // Message `i` of a burst goes over queue pair `i`, counted round and round.
        let following = Tag::sequence(this) + queue_pairs;
        let following = match following < self.burst {
            true => this + queue_pairs,
            false => Tag::after(this).immediate_data(queue_pair),
        };
        next.store(following, Ordering::Relaxed);
        this
    }
}

/// A port that gives each message the number that its place says.
#[derive(Debug)]
pub(crate) struct NumberingPort<P> {
    port: P,
    order: Arc<MessageOrder>,
}

impl<P: QueuePairPort> CompletionPort for NumberingPort<P> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        let mut found = self.port.poll();
        if let PollResult::Done(completion) = &mut found {
            let queue_pair = || self.port.queue_pair();
            completion.immediate_data = self.order.take(completion.request, queue_pair);
        }
        found
    }
}

impl<P: EventPort + QueuePairPort> EventPort for NumberingPort<P> {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Failure> {
        self.port.arm()
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Failure> {
        self.port.sleep()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::bench::hca::loops::control::Control;
    use crate::bench::hca::loops::port::scripted::{Counting, Look, Script};
    use crate::bench::hca::loops::port::{BusyPolling, Completion};
    use crate::bench::hca::loops::receiver::receive;
    use crate::bench::hca::loops::tag::Expected;

    /// The slot of a request, and the queue pair that took it.
    type Taken = (u64, u32);

    fn of_slot(slot: u64) -> Taken {
        (slot, 0)
    }

    impl QueuePairPort for Script<'_> {
        fn queue_pair(&self) -> u32 {
            0
        }
    }

    /// One of a single queue pair.
    fn single(burst: u32) -> MessageOrder {
        MessageOrder::new(burst, 1, Turns::new(&[77], Some(8)))
    }

    /// The numbers of bursts and messages that completions get.
    fn taken(order: &MessageOrder, of: impl IntoIterator<Item = Taken>) -> Vec<(u32, u32)> {
        let numbers = |(slot, queue_pair): Taken| {
            let label = order.take(slot, || queue_pair);
            let number = (0..4).find(|number| Tag::new(*number).is_of(label));
            (number.unwrap(), Tag::sequence(label))
        };
        of.into_iter().map(numbers).collect()
    }

    #[test]
    fn the_place_in_the_order_of_its_queue_pair_is_the_number_of_a_message() {
        let found = taken(&single(3), [4, 0, 1, 2, 3, 4, 0].map(of_slot));
        let wanted = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)];
        assert_eq!(found, wanted);
        // Five messages over two queue pairs: 0, 2, 4 over the first, 1 and 3 over the second.
        let slots = [0, 10, 11, 12, 1, 2, 3, 13];
        let wanted = [
            (0, 0),
            (0, 1),
            (0, 3),
            (1, 1),
            (0, 2),
            (0, 4),
            (1, 0),
            (1, 3),
        ];
        let two = |own_slots| MessageOrder::new(5, 2, Turns::new(&[930, 12], own_slots));
        assert_eq!(taken(&two(Some(10)), slots.map(of_slot)), wanted);
        // The same where they share the receive requests: by the number of the queue pair, whatever the slot.
        let shared = slots.map(|slot| (3, if slot < 10 { 930 } else { 12 }));
        assert_eq!(taken(&two(None), shared), wanted);
        // A number that is none of ours changes the place of no other message.
        let order = two(None);
        for queue_pair in [11, 13, 931] {
            let label = order.take(0, || queue_pair);
            assert_eq!(Tag::sequence(label), 65_535, "{queue_pair}");
            let expected = Expected::new(0, 5, &[]);
            let labelled = Completion {
                immediate_data: label,
                ..Completion::default()
            };
            assert!(!expected.includes(&labelled) && !expected.is_late(&labelled, 65_535));
        }
        assert_eq!(taken(&order, shared), wanted);
    }

    /// Completions, each by slot and queue pair, with looks between them that find none.
    struct OfQueuePairs {
        looks: VecDeque<Option<Taken>>,
        last: u32,
    }

    impl CompletionPort for OfQueuePairs {
        fn poll(&mut self) -> PollResult {
            match self.looks.pop_front().flatten() {
                Some((request, queue_pair)) => {
                    self.last = queue_pair;
                    PollResult::Done(Completion {
                        request,
                        ..Completion::default()
                    })
                }
                None => PollResult::Empty,
            }
        }
    }

    impl QueuePairPort for OfQueuePairs {
        fn queue_pair(&self) -> u32 {
            self.last
        }
    }

    #[test]
    fn the_queue_pair_is_that_of_the_completion_just_taken() {
        let looks = [None, Some(930), Some(12), None, Some(930), Some(12)];
        let looks = looks.map(|queue_pair| queue_pair.map(|number| (3, number)));
        let mut port = NumberingPort {
            port: OfQueuePairs {
                looks: looks.into(),
                last: 0,
            },
            order: Arc::new(MessageOrder::new(8, 2, Turns::new(&[930, 12], None))),
        };
        let polled = looks.map(|_| match port.poll() {
            PollResult::Done(completion) => Some(Tag::sequence(completion.immediate_data)),
            _ => None,
        });
        assert_eq!(polled, [None, Some(0), Some(1), None, Some(2), Some(3)]);
    }

    #[test]
    fn bursts_as_long_as_there_are_numbers_keep_their_order() {
        let order = single(65_536);
        for slot in 0..65_536_u32 {
            let label = order.take(slot.into(), || 0);
            assert_eq!(label, Tag::new(0).immediate_data(slot));
        }
        assert_eq!(order.take(0, || 0), Tag::new(1).immediate_data(0));
    }

    #[test]
    fn what_comes_late_is_counted_to_its_own_burst() {
        let order = Arc::new(single(2));
        let run = |number: u32, looks: Vec<Look>| {
            let control = Control::default();
            let port = Script::new(looks, Look::Stop, &control);
            let mut port = NumberingPort {
                port,
                order: Arc::clone(&order),
            };
            let mut arrivals = [Arrival::default(); 2];
            let expected = Expected::new(number, 2, &[]);
            let ended = receive(
                &Counting,
                &mut port,
                BusyPolling,
                expected,
                &mut arrivals,
                &control,
            );
            (ended.received, ended.strays.late, ended.strays.foreign)
        };
        assert_eq!(run(0, vec![Look::Done(0, 9)]), (1, 0, 0));
        let looks = vec![Look::Done(1, 9), Look::Done(2, 9), Look::Done(3, 9)];
        assert_eq!(run(1, looks), (2, 1, 0));
    }
}
