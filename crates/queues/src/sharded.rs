//! Sharded: our own queue for many threads at both ends, of which no two ever write to the same place.
//!
//! Each pair of a sender and a receiver has a ring of [`DemotingBaton`] for itself, and all rings together hold what
//! the queue may. A sender puts its elements into the rings of its receivers in turn, and passes over one that is full.
//! A receiver goes on to the ring of the next sender after each element, so that none starves, however fast another one
//! is.
//!
//! What is given up is order: elements of one sender come out in order at each receiver, and no order holds between two
//! senders, or two receivers. An attempt that fails has looked at as many rings as there are threads at the other end.

use super::demoting::DemotingBaton;
use super::element::Words;
use super::interface::{
    NewEnds, Queue, QueueError, ReceiveOnly, Receiver, SendOnly, Sender, SharedEnds, alone,
};
use super::parameters::Parameters;
use super::slots::check_capacity;

#[derive(Debug)]
pub(crate) struct Sharded;

/// The ends of one thread: of a ring for each thread at the other end.
#[derive(Debug)]
pub struct Shards<E> {
    rings: Box<[E]>,
    /// The ring that is tried first.
    next: usize,
}

impl<E> Shards<E> {
    fn new(rings: Vec<E>, first: usize) -> Self {
        Shards {
            next: first % rings.len(),
            rings: rings.into_boxed_slice(),
        }
    }

    /// Tries the rings in turn, from the one behind that of the last success, until one takes or gives.
    #[inline(always)]
    fn any<R>(&mut self, mut attempt: impl FnMut(&mut E) -> Option<R>) -> Option<R> {
        for _ in 0..self.rings.len() {
            let found = attempt(&mut self.rings[self.next]);
            self.next += 1;
            if self.next == self.rings.len() {
                self.next = 0;
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

type ShardSender<const N: usize> = <DemotingBaton as Queue<Words<N>>>::Sender;
type ShardReceiver<const N: usize> = <DemotingBaton as Queue<Words<N>>>::Receiver;

impl<const N: usize> Sender<Words<N>> for SendOnly<Shards<ShardSender<N>>> {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<N>) -> bool {
        let taken = self.0.any(|ring| ring.enqueue(element).then_some(()));
        taken.is_some()
    }
}

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<Shards<ShardReceiver<N>>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        self.0.any(ShardReceiver::<N>::dequeue)
    }
}

impl<const N: usize> Queue<Words<N>> for Sharded {
    type Sender = SendOnly<Shards<ShardSender<N>>>;
    type Receiver = ReceiveOnly<Shards<ShardReceiver<N>>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        Self::shared(capacity, &Parameters::default(), 1, 1).map(alone)
    }

    fn shared(
        capacity: usize,
        _given: &Parameters,
        senders: usize,
        receivers: usize,
    ) -> SharedEnds<Self, Words<N>> {
        let of_ring = check_capacity(capacity)? / (senders * receivers);
        if of_ring == 0 {
            return Err(QueueError {
                asked: capacity,
                allowed: "each pair of a sender and a receiver has a place at least",
            });
        }
        let mut to_receivers = Vec::new();
        let mut from_senders: Vec<Vec<_>> = (0..receivers).map(|_| Vec::new()).collect();
        for sender in 0..senders {
            let mut rings = Vec::new();
            for of_receiver in &mut from_senders {
                let (to, from) = <DemotingBaton as Queue<Words<N>>>::with_capacity(of_ring)?;
                rings.push(to);
                of_receiver.push(from);
            }
            // Each begins with another one, so that they do not all go to the same.
            to_receivers.push(SendOnly(Shards::new(rings, sender)));
        }
        let from_senders = from_senders.into_iter().enumerate();
        let from_senders =
            from_senders.map(|(first, rings)| ReceiveOnly(Shards::new(rings, first)));
        Ok((to_receivers, from_senders.collect()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn made(capacity: usize, senders: usize, receivers: usize) -> SharedEnds<Sharded, Words<1>> {
        Sharded::shared(capacity, &Parameters::default(), senders, receivers)
    }

    #[test]
    fn elements_go_to_receivers_and_come_from_senders_in_turn() {
        let (mut senders, mut receivers) = made(24, 2, 3).unwrap();
        for number in 1..=12 {
            assert!(senders[0].enqueue(Words::from_words([number])));
            assert!(senders[1].enqueue(Words::from_words([100 + number])));
        }
        // Four in each of the six rings, so that all are full.
        assert!(
            senders
                .iter_mut()
                .all(|sender| !sender.enqueue(Words::from_words([1])))
        );
        let mut taken = |receiver: usize| -> Vec<u64> {
            let next = || receivers[receiver].dequeue().map(|words| words.words()[0]);
            std::iter::from_fn(next).collect()
        };
        // The second sender begins with the second receiver, as the second receiver does with the second sender.
        assert_eq!(taken(0), [1, 103, 4, 106, 7, 109, 10, 112]);
        assert_eq!(taken(1), [101, 2, 104, 5, 107, 8, 110, 11]);
        assert_eq!(taken(2), [3, 102, 6, 105, 9, 108, 12, 111]);
        // A receiver that takes nothing holds up nobody.
        for number in 1..=12 {
            let is_taken = senders[0].enqueue(Words::from_words([number]));
            assert_eq!(is_taken, number <= 12);
        }
        assert_eq!(
            receivers[2].dequeue().map(|words| words.words()[0]),
            Some(3)
        );
        assert!(senders[0].enqueue(Words::from_words([13])));
        assert!(!senders[0].enqueue(Words::from_words([14])));
    }

    #[test]
    fn all_rings_together_hold_no_more_than_the_queue() {
        let (mut senders, _receivers) = made(100, 3, 3).unwrap();
        let mut taken = 0;
        for sender in &mut senders {
            taken += (0..)
                .take_while(|_| sender.enqueue(Words::from_words([1])))
                .count();
        }
        assert_eq!(taken, 99);
        let refused = made(8, 3, 3).unwrap_err().to_string();
        assert!(refused.contains("each pair"), "{refused}");
        assert!(made(9, 3, 3).is_ok());
    }
}
