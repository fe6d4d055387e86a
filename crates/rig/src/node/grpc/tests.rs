use std::time::{Duration, Instant};

use super::*;
use crate::node::settings::Poll;
use crate::node::test_samples::{
    LIMIT, WORDS, come_to_the_subscribers_of_each_scenario, pool, read, read_all, write,
};
use crate::node::{BETWEEN_LOOKS, Ends, Node as _, Scenario};
use crate::testing::Has as _;

type AllEnds = Ends<GrpcPublisher, GrpcSubscriber>;

fn settings(words: usize, poll: Poll) -> Settings {
    Settings {
        poll,
        vectorize: 4,
        send_queue: 4,
        receive_queue: 4,
        ..Settings::of_words(words)
    }
}

/// Ends that are connected. The calls are taken by the threads of the subscribers, here by this one.
fn started(wiring: &Wiring, settings: &Settings) -> AllEnds {
    let maker = Grpc {
        wiring,
        settings,
        name: "hcabench-test",
    };
    let mut ends = Ends::of(&maker, wiring).unwrap();
    let (mut pool, mut other_pool) = (pool(settings.words), pool(settings.words));
    for subscriber in &mut ends.subscribers {
        subscriber.start(&mut pool, &mut || true).unwrap();
    }
    let subscribers = &mut ends.subscribers;
    for publisher in &mut ends.publishers {
        let mut go_on = || {
            let drive = |it: &mut GrpcSubscriber| assert_eq!(read(it, &mut other_pool), [0; 0]);
            subscribers.iter_mut().for_each(drive);
            true
        };
        publisher.start(&mut pool, &mut go_on).unwrap();
    }
    ends
}

#[test]
fn samples_come_to_the_subscribers_of_each_scenario() {
    for poll in [Poll::Busy, Poll::Event] {
        come_to_the_subscribers_of_each_scenario(poll.name(), |wiring| {
            (started(wiring, &settings(WORDS, poll)), ())
        });
    }
}

#[test]
fn without_room_samples_are_refused_for_all_and_those_taken_come() {
    /// Larger, so that fewer fill the windows.
    const WORDS: usize = 4096;
    let wiring = Wiring::new(Scenario::FanOut, 1, 2);
    let mut ends = started(&wiring, &settings(WORDS, Poll::Event));
    let mut pool = pool(WORDS);
    let [one, other] = ends.subscribers.get_disjoint_mut([0, 1]).unwrap();
    let (mut taken, mut found) = (0, Vec::new());
    let publisher = &mut ends.publishers[0];
    // The other does not read: what it has no room for is refused for both, for good.
    let mut refused_since = Instant::now();
    while refused_since.elapsed() < Duration::from_millis(500) {
        if write(publisher, &mut pool, taken) {
            taken += 1;
            assert!(taken < 100_000);
            refused_since = Instant::now();
        }
        found.extend(read(one, &mut pool));
    }
    let all: Vec<u64> = (0..taken).collect();
    found.extend(read_all(one, &mut pool, all.len() - found.len()));
    assert!(found == all, "{} of {taken}", found.len());
    let found = read_all(other, &mut pool, all.len());
    assert!(found == all, "{} of {taken}", found.len());
    let limit = Instant::now() + LIMIT;
    while !write(publisher, &mut pool, taken) {
        assert!(Instant::now() < limit, "there is room again");
    }
}

#[test]
fn a_call_of_another_run_is_refused_and_takes_no_place() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let mut settings = settings(WORDS, Poll::Event);
    settings.timeout = Duration::from_millis(100);
    let maker = |name| Grpc {
        wiring: &wiring,
        settings: &settings,
        name,
    };
    let (mut subscriber, address) = maker("hcabench-test").subscriber(0).unwrap();
    let mut publisher = maker("hcabench-other").publisher(0, &[address]).unwrap();
    let mut pool = pool(WORDS);
    let error = subscriber.start(&mut pool, &mut || true).unwrap_err();
    error.to_string().has(&["0 of 1 publishers", "--timeout"]);
    let error = publisher.start(&mut pool, &mut || true).unwrap_err();
    error.to_string().has(&["another run"]);
}

#[test]
fn a_publisher_finds_that_its_subscriber_has_ended() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let mut ends = started(&wiring, &settings(WORDS, Poll::Event));
    ends.subscribers.clear();
    let mut pool = pool(WORDS);
    let mut samples = Vec::new();
    pool.fill(&mut samples, 1);
    let limit = Instant::now() + LIMIT;
    let error = loop {
        match ends.publishers[0].write(&mut pool, &mut samples) {
            Err(error) => break error,
            Ok(_) => assert!(Instant::now() < limit),
        }
        std::thread::sleep(BETWEEN_LOOKS);
    };
    assert!(matches!(error, NodeError::PeerEnded(_)), "{error}");
}
