//! Rings of our queue `baton-demoting`, one for each publisher and each of its subscribers.
//!
//! Inside the latency of a sample: copying it into a slot of the ring, the cache lines on their way to the other
//! processor, and copying it out. Nothing is lost: a full ring refuses a sample. A publisher distributes its samples
//! itself; a subscriber looks at its rings in turn.
//!
//! The node-types differ in the memory of the rings alone. For `loopback` it is that of the process: the floor of what
//! any node-type takes. For `shmem` it is shared memory, which publishers and subscribers have mapped separately, be they
//! threads or processes.

use std::cell::OnceCell;

use super::settings::Poll;
use super::wiring::Distribution;
use super::{Maker, Node, NodeError, Pool, Settings, Slot, Wiring};
use crate::buffer::{AtomicWords, Bytes, SharedMemory};
use crate::queues::ring::{RingReceiver, RingSender, Shape};

/// The end that sends.
#[derive(Debug)]
pub struct RingPublisher {
    rings: Vec<RingSender<AtomicWords>>,
    distribution: Distribution,
}

/// The end that receives.
#[derive(Debug)]
pub struct RingSubscriber {
    rings: Vec<RingReceiver<AtomicWords>>,
    /// The ring that is looked at next.
    next: usize,
}

/// Makes the ends of rings that lie behind one another in some memory.
#[derive(Debug)]
pub struct RingMaker<'a> {
    wiring: &'a Wiring,
    shape: Shape,
    /// Publisher and subscriber of each ring, by subscriber: so each publisher has its rings in the order of its targets.
    rings: Vec<(u32, u32)>,
    shared: Option<&'a SharedMemory>,
    sending: OnceCell<AtomicWords>,
    receiving: OnceCell<AtomicWords>,
}

impl<'a> RingMaker<'a> {
    fn new(wiring: &'a Wiring, settings: &Settings, shared: Option<&'a SharedMemory>) -> Self {
        let heard = |subscriber| {
            let publishers = wiring.publishers_of(subscriber);
            publishers.map(move |publisher| (publisher, subscriber))
        };
        RingMaker {
            wiring,
            shape: shape(settings),
            rings: (0..wiring.subscribers).flat_map(heard).collect(),
            shared,
            sending: OnceCell::new(),
            receiving: OnceCell::new(),
        }
    }

    /// The memory as a side has it, mapped when it is asked for first.
    fn mapped(&self, side: &OnceCell<AtomicWords>) -> Result<AtomicWords, NodeError> {
        if let (None, Some(shared)) = (side.get(), self.shared) {
            let words = self.rings.len() * self.shape.ring_words();
            let _ = side.set(AtomicWords::in_shared(shared, words)?);
        }
        Ok(side.get().expect("what is not shared is there").clone())
    }
}

/// Rings between threads of one process.
///
/// # Errors
/// When the memory cannot be allocated or locked.
pub fn loopback<'a>(wiring: &'a Wiring, settings: &Settings) -> Result<RingMaker<'a>, NodeError> {
    let memory = AtomicWords::new(words(wiring, settings), settings.huge_pages)?;
    Ok(RingMaker {
        sending: OnceCell::from(memory.clone()),
        receiving: OnceCell::from(memory),
        ..RingMaker::new(wiring, settings, None)
    })
}

/// Rings in shared memory, which each side maps for itself.
pub fn shmem<'a>(
    wiring: &'a Wiring,
    settings: &Settings,
    memory: &'a SharedMemory,
) -> RingMaker<'a> {
    RingMaker::new(wiring, settings, Some(memory))
}

/// Shared memory for all rings.
///
/// # Errors
/// When it cannot be allocated.
pub fn memory(wiring: &Wiring, settings: &Settings) -> Result<SharedMemory, NodeError> {
    Ok(AtomicWords::shared(
        words(wiring, settings),
        settings.huge_pages,
    )?)
}

fn shape(settings: &Settings) -> Shape {
    Shape {
        capacity: settings.receive_queue as usize,
        words: settings.words,
    }
}

/// Words of all rings.
fn words(wiring: &Wiring, settings: &Settings) -> usize {
    let heard = |subscriber| wiring.publishers_of(subscriber).count();
    let rings: usize = (0..wiring.subscribers).map(heard).sum();
    rings.saturating_mul(shape(settings).ring_words())
}

/// Bytes of all rings.
pub fn bytes(wiring: &Wiring, settings: &Settings) -> Bytes {
    Bytes((words(wiring, settings) as u64).saturating_mul(size_of::<u64>() as u64))
}

/// Why rings cannot be waited for so, if they cannot.
pub fn refusal(poll: Poll) -> Option<String> {
    (poll == Poll::Event).then(|| {
        "--poll event is impossible with --type loopback and shmem: a ring wakes no thread; use --poll busy"
            .to_owned()
    })
}

impl Maker for RingMaker<'_> {
    type Publisher = RingPublisher;
    type Subscriber = RingSubscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<RingPublisher, NodeError> {
        let memory = self.mapped(&self.sending)?;
        let rings = (0..).zip(&self.rings).filter(|(_, ends)| ends.0 == number);
        Ok(RingPublisher {
            rings: rings
                .map(|(ring, _)| RingSender::new(memory.clone(), ring, self.shape))
                .collect(),
            distribution: Distribution::new(self.wiring, number),
        })
    }

    fn subscriber(&self, number: u32) -> Result<(RingSubscriber, ()), NodeError> {
        let memory = self.mapped(&self.receiving)?;
        let rings = (0..).zip(&self.rings).filter(|(_, ends)| ends.1 == number);
        let subscriber = RingSubscriber {
            rings: rings
                .map(|(ring, _)| RingReceiver::new(memory.clone(), ring, self.shape))
                .collect(),
            next: 0,
        };
        Ok((subscriber, ()))
    }
}

impl Node for RingPublisher {
    #[inline(always)]
    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        for (taken, slot) in samples.iter().enumerate() {
            let targets = &mut self.rings[self.distribution.next_targets()];
            // All targets get it, or none.
            if !targets.iter().all(RingSender::has_room) {
                return Ok(taken);
            }
            let sample = pool.sample(slot);
            for ring in &mut *targets {
                ring.enqueue(|at| sample.word(at));
            }
            // Brings the lines of the next slots, which their receivers have, now rather than in the time of the next
            // sample, and once no target waits for this one.
            for ring in targets {
                std::hint::black_box(ring.has_room());
            }
        }
        Ok(samples.len())
    }
}

impl Node for RingSubscriber {
    #[inline(always)]
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let (mut received, mut empty) = (0, 0);
        'samples: while received < samples.len() {
            // Looked for before it comes, as nothing is in its time but the copy.
            let mut sample = pool.sample_mut(&samples[received]);
            loop {
                let ring = &mut self.rings[self.next];
                let is_there = ring.dequeue(|at, word| sample.set_word(at, word));
                self.next += 1;
                if self.next == self.rings.len() {
                    self.next = 0;
                }
                if is_there {
                    received += 1;
                    empty = 0;
                    break;
                }
                empty += 1;
                if empty == self.rings.len() {
                    if received > 0 || !go_on() {
                        break 'samples;
                    }
                    empty = 0;
                    // Else the processor looks ahead several times, and takes all of it back just when a sample comes.
                    std::hint::spin_loop();
                }
            }
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::HugePagePolicy;
    use crate::node::{Ends, Scenario};

    const WORDS: usize = 9;

    fn settings(receive_queue: u32) -> Settings {
        Settings {
            vectorize: 4,
            send_queue: 8,
            receive_queue,
            ..Settings::of_words(WORDS)
        }
    }

    fn pool() -> Pool {
        Pool::new(16, WORDS, HugePagePolicy::Off).unwrap()
    }

    /// Sends so many samples at once, whose words follow from `first`; returns how many were taken.
    fn send(publisher: &mut RingPublisher, pool: &mut Pool, first: u64, count: usize) -> usize {
        let mut samples = Vec::new();
        pool.fill(&mut samples, count);
        for (slot, number) in samples.iter().zip(first..) {
            (0..WORDS).for_each(|at| pool.set_word(slot, at, number * 100 + at as u64));
        }
        let taken = publisher.write(pool, &mut samples).unwrap();
        pool.release_all(&mut samples);
        taken
    }

    /// The numbers of the samples that one call takes.
    fn receive(subscriber: &mut RingSubscriber, pool: &mut Pool) -> Vec<u64> {
        let mut samples = Vec::new();
        pool.fill(&mut samples, 4);
        let received = subscriber.read(pool, &mut samples, || false).unwrap();
        let number = |slot: &Slot| {
            let number = pool.word(slot, 0) / 100;
            (0..WORDS).for_each(|at| assert_eq!(pool.word(slot, at), number * 100 + at as u64));
            number
        };
        let found = samples[..received].iter().map(number).collect();
        pool.release_all(&mut samples);
        found
    }

    fn both(wiring: &Wiring, settings: &Settings) -> [Ends<RingPublisher, RingSubscriber>; 2] {
        let memory = memory(wiring, settings).unwrap();
        let own = loopback(wiring, settings).unwrap();
        [own, shmem(wiring, settings, &memory)].map(|maker| Ends::of(&maker, wiring).unwrap())
    }

    #[test]
    fn samples_come_to_the_subscribers_of_each_scenario() {
        let scenarios: [(_, _, [&[u64]; 2]); 4] = [
            (Scenario::StraightRun, [2, 2], [&[1, 2], &[11, 12]]),
            (Scenario::FanIn, [2, 1], [&[1, 11, 2, 12], &[]]),
            (Scenario::FanOut, [1, 2], [&[1, 2], &[1, 2]]),
            (Scenario::RoundRobin, [2, 2], [&[1, 11], &[2, 12]]),
        ];
        for (scenario, [publishers, subscribers], expected) in scenarios {
            let wiring = Wiring::new(scenario, publishers, subscribers);
            for mut ends in both(&wiring, &settings(3)) {
                let mut pool = pool();
                for (publisher, first) in ends.publishers.iter_mut().zip([1, 11]) {
                    assert_eq!(send(publisher, &mut pool, first, 2), 2);
                }
                for (subscriber, expected) in ends.subscribers.iter_mut().zip(expected) {
                    let found = receive(subscriber, &mut pool);
                    assert_eq!(found, expected, "{}", scenario.name());
                    assert!(receive(subscriber, &mut pool).is_empty());
                }
                assert!(pool.is_whole());
            }
        }
    }

    #[test]
    fn a_full_ring_refuses_a_sample_and_all_its_copies() {
        let wiring = Wiring::new(Scenario::FanOut, 1, 2);
        for mut ends in both(&wiring, &settings(3)) {
            let mut pool = pool();
            let [one, other] = ends.subscribers.get_disjoint_mut([0, 1]).unwrap();
            assert_eq!(send(&mut ends.publishers[0], &mut pool, 1, 4), 3);
            assert_eq!(receive(one, &mut pool), [1, 2, 3]);
            // The other has none taken yet.
            assert_eq!(send(&mut ends.publishers[0], &mut pool, 4, 1), 0);
            assert_eq!(receive(other, &mut pool), [1, 2, 3]);
            assert_eq!(send(&mut ends.publishers[0], &mut pool, 5, 1), 1);
            assert_eq!(receive(one, &mut pool), [5]);
            assert_eq!(receive(other, &mut pool), [5]);
        }
    }

    #[test]
    fn a_subscriber_looks_at_its_rings_in_turn() {
        let wiring = Wiring::new(Scenario::FanIn, 3, 1);
        for mut ends in both(&wiring, &settings(8)) {
            let mut pool = pool();
            for (publisher, first) in ends.publishers.iter_mut().zip([1, 11, 21]) {
                send(publisher, &mut pool, first, 3);
            }
            let subscriber = &mut ends.subscribers[0];
            assert_eq!(receive(subscriber, &mut pool), [1, 11, 21, 2]);
            assert_eq!(receive(subscriber, &mut pool), [12, 22, 3, 13]);
            assert_eq!(receive(subscriber, &mut pool), [23]);
        }
    }
}
