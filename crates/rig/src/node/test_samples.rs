//! Samples with known words, sent and read by the ends of any node-type, for its tests.

use std::time::{Duration, Instant};

use super::{Ends, Node, Pool, Scenario, Slot, Wiring};
use crate::buffer::HugePagePolicy;

/// The words of a sample, where their number does not matter.
pub(super) const WORDS: usize = 3;
/// Far more than it takes, however busy the machine is.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn pool(words: usize) -> Pool {
    Pool::new(16, words, HugePagePolicy::Off).unwrap()
}

/// Writes a sample whose words follow from a number; returns whether it was taken.
pub(super) fn write(publisher: &mut impl Node, pool: &mut Pool, number: u64) -> bool {
    let mut samples = Vec::new();
    pool.fill(&mut samples, 1);
    for at in 0..pool.sample_bytes() / 8 {
        pool.set_word(&samples[0], at, number * 1000 + at as u64);
    }
    let taken = publisher.write(pool, &mut samples).unwrap();
    pool.release_all(&mut samples);
    taken == 1
}

/// The numbers of the samples that one call takes; each must be whole.
pub(super) fn read(subscriber: &mut impl Node, pool: &mut Pool) -> Vec<u64> {
    let mut samples = Vec::new();
    pool.fill(&mut samples, 4);
    let end = Instant::now() + Duration::from_millis(50);
    let read = subscriber.read(pool, &mut samples, || Instant::now() < end);
    let number = |slot: &Slot| {
        let number = pool.word(slot, 0) / 1000;
        for at in 0..pool.sample_bytes() / 8 {
            assert_eq!(pool.word(slot, at), number * 1000 + at as u64);
        }
        number
    };
    let found = samples[..read.unwrap()].iter().map(number).collect();
    pool.release_all(&mut samples);
    found
}

/// Reads as many as are to come, however busy the machine is.
pub(super) fn read_all(subscriber: &mut impl Node, pool: &mut Pool, count: usize) -> Vec<u64> {
    let limit = Instant::now() + LIMIT;
    let mut all = Vec::new();
    while all.len() < count && Instant::now() < limit {
        all.extend(read(subscriber, pool));
    }
    all
}

/// Sends samples in each scenario, with ends that `started` has connected and what they need until
/// they end, and checks who gets which, and that no more
/// come.
pub(super) fn come_to_the_subscribers_of_each_scenario<P: Node, S: Node, K>(
    what: &str,
    started: impl Fn(&Wiring) -> (Ends<P, S>, K),
) {
    let scenarios: [(_, _, [&[u64]; 2]); 4] = [
        (Scenario::StraightRun, [2, 2], [&[1, 2], &[11, 12]]),
        (Scenario::FanIn, [2, 1], [&[1, 2, 11, 12], &[]]),
        (Scenario::FanOut, [2, 2], [&[1, 2, 11, 12], &[1, 2, 11, 12]]),
        (Scenario::RoundRobin, [2, 2], [&[1, 11], &[2, 12]]),
    ];
    for (scenario, [publishers, subscribers], expected) in scenarios {
        let wiring = Wiring::new(scenario, publishers, subscribers);
        let (mut ends, _kept) = started(&wiring);
        let mut pool = pool(WORDS);
        for (publisher, first) in ends.publishers.iter_mut().zip([1, 11]) {
            assert!(write(publisher, &mut pool, first));
            assert!(write(publisher, &mut pool, first + 1));
        }
        for (subscriber, expected) in ends.subscribers.iter_mut().zip(expected) {
            let mut found = read_all(subscriber, &mut pool, expected.len());
            // Those of several publishers come as they come.
            found.sort_unstable();
            assert_eq!(found, expected, "{what}, {}", scenario.name());
            assert_eq!(read(subscriber, &mut pool), [0; 0]);
        }
        for publisher in &mut ends.publishers {
            publisher.stop(&mut pool).unwrap();
        }
        for subscriber in &mut ends.subscribers {
            subscriber.stop(&mut pool).unwrap();
        }
        assert!(pool.is_whole());
    }
}
