//! What several threads share: a sender to several queues at once, and what has to hold of each queue under several
//! threads.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "a test may panic"))]

use super::interface::Sender;

/// Puts each element into several queues.
#[derive(Debug)]
pub struct FanOutSender<S> {
    senders: Box<[S]>,
    /// The first that has not taken the element that is under way.
    next: usize,
}

impl<S> FanOutSender<S> {
    /// Into these.
    pub fn new(senders: Vec<S>) -> Self {
        FanOutSender {
            senders: senders.into_boxed_slice(),
            next: 0,
        }
    }
}

impl<T: Copy, S: Sender<T>> Sender<T> for FanOutSender<S> {
    /// `true` once all have taken it. One that is full is asked again with the next attempt, which has to be with the
    /// same element.
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> bool {
        while self.next < self.senders.len() {
            if !self.senders[self.next].enqueue(element) {
                return false;
            }
            self.next += 1;
        }
        self.next = 0;
        true
    }

    const HOLDS_BACK: bool = S::HOLDS_BACK;

    #[inline(always)]
    fn flush(&mut self) {
        self.senders.iter_mut().for_each(S::flush);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::num::NonZeroU64;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::BatchingBaton;
    use crate::element::{Element, Words};
    use crate::interface::{Queue, Receiver};
    use crate::parameters::Parameters;
    use crate::registry::{self, EachPayloadSize, QueueUser};

    /// Senders and receivers, a thread each, with so many elements of each sender.
    struct Shared {
        name: &'static str,
        capacity: usize,
        ends: [usize; 2],
        count: u64,
    }

    impl Shared {
        fn check<Q: Queue<Words<N>>, const N: usize>(&self) {
            let Shared {
                name,
                capacity,
                ends: [senders, receivers],
                count,
            } = *self;
            let given = Parameters::default();
            let (to, from) = Q::shared(capacity, &given, senders, receivers).unwrap();
            assert_eq!([to.len(), from.len()], self.ends);
            let deadline = Instant::now() + Duration::from_secs(120);
            let missing = AtomicU64::new(senders as u64 * count);
            let wait = || {
                // The other may need this CPU.
                std::thread::yield_now();
                assert!(Instant::now() < deadline, "{name} hangs");
            };
            let receive = |mut receiver: Q::Receiver| {
                let mut taken = Vec::new();
                while missing.load(Ordering::Relaxed) > 0 {
                    let Some(element) = receiver.dequeue() else {
                        wait();
                        continue;
                    };
                    missing.fetch_sub(1, Ordering::Relaxed);
                    assert!(element.is_intact(), "{name}");
                    taken.push(element.stamp());
                }
                taken
            };
            let mut taken: Vec<Vec<u64>> = std::thread::scope(|scope| {
                for (mut sender, number) in to.into_iter().zip(1_u64..) {
                    scope.spawn(move || {
                        for sequence in 0..count {
                            let stamp = NonZeroU64::new(number << 32 | sequence).unwrap();
                            while !sender.enqueue(Words::with_stamp(stamp)) {
                                wait();
                            }
                        }
                        sender.flush();
                    });
                }
                let receive = &receive;
                let all: Vec<_> = from
                    .into_iter()
                    .map(|one| scope.spawn(move || receive(one)))
                    .collect();
                all.into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            // From one sender to one receiver in order.
            for taken in &taken {
                let mut last = vec![None; senders + 1];
                for stamp in taken {
                    let before = last[(stamp >> 32) as usize].replace(*stamp);
                    assert!(before < Some(*stamp), "{name} changes the order");
                }
            }
            let mut all = taken.drain(..).flatten().collect::<Vec<_>>();
            all.sort_unstable();
            let sent =
                (1..=senders as u64).flat_map(|number| (0..count).map(move |at| number << 32 | at));
            assert!(
                all.into_iter().eq(sent),
                "{name} loses elements, or has some twice"
            );
        }
    }

    impl QueueUser for Shared {
        type Output = ();

        fn with<Q: EachPayloadSize>(self) {
            self.check::<Q, 1>();
            self.check::<Q, 8>();
        }
    }

    #[test]
    fn what_several_threads_put_in_comes_out_once_at_one_of_them() {
        let mut checked = 0;
        for &registry::Entry {
            name,
            origin,
            ends: made_for,
            ..
        } in registry::ENTRIES
        {
            let count = match (cfg!(miri), origin) {
                (false, _) => 20_000,
                (true, registry::Origin::Here) => 60,
                // Of what others wrote only the adapter is ours, and where they wait an interpreter takes a minute for
                // each number of ends.
                (true, _) => 8,
            };
            for ends in [[1, 1], [3, 1], [1, 3], [2, 2]] {
                let capacity = if cfg!(miri) { 7 } else { 16 };
                let refusal = registry::refusal_of_shared(name, capacity, ends);
                assert_eq!(
                    refusal.is_none(),
                    made_for.serve(ends[0], ends[1]),
                    "{name}: {refusal:?}"
                );
                if refusal.is_none() {
                    registry::visit(
                        name,
                        capacity,
                        Shared {
                            name,
                            capacity,
                            ends,
                            count,
                        },
                    );
                    checked += 1;
                }
            }
        }
        assert!(checked >= registry::ENTRIES.len() + 3);
    }

    #[test]
    fn a_sender_to_all_goes_on_where_one_was_full() {
        let made = |capacity| <BatchingBaton as Queue<Words<1>>>::with_capacity(capacity).unwrap();
        let ((first, mut at_first), (second, mut at_second)) = (made(4), made(1));
        let mut sender = FanOutSender::new(vec![first, second]);
        let element = |number| Words::from_words([number]);
        assert!(sender.enqueue(element(1)));
        assert!(!sender.enqueue(element(2)) && !sender.enqueue(element(2)));
        assert_eq!(at_second.dequeue(), Some(element(1)));
        assert!(sender.enqueue(element(2)));
        assert_eq!(
            [1, 2].map(|_| at_first.dequeue()),
            [1, 2].map(|number| Some(element(number)))
        );
        assert_eq!(
            (at_second.dequeue(), at_first.dequeue()),
            (Some(element(2)), None)
        );
    }
}
