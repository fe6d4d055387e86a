use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::node::Ends;
use crate::node::test_samples::{
    WORDS, come_to_the_subscribers_of_each_scenario, pool, read, write,
};
use crate::testing::Has as _;

type AllEnds = Ends<Iceoryx2Publisher, Iceoryx2Subscriber>;

fn settings(receive_queue: u32) -> Settings {
    Settings {
        vectorize: 4,
        receive_queue,
        ..Settings::of_words(WORDS)
    }
}

/// Ends of a run of their own.
fn ends(wiring: &Wiring, settings: &Settings) -> (AllEnds, RunFiles) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("hcabench-{:x}-7e57{number:x}", std::process::id());
    let files = RunFiles::new(&name).unwrap();
    let maker = Iceoryx2 {
        wiring,
        settings,
        name: &name,
    };
    (Ends::of(&maker, wiring).unwrap(), files)
}

#[test]
fn samples_come_to_the_subscribers_of_each_scenario() {
    come_to_the_subscribers_of_each_scenario("iceoryx2", |wiring| ends(wiring, &settings(8)));
}

#[test]
fn the_shared_memory_of_a_run_is_reserved_and_no_more_than_was_calculated() {
    for (&scenario, receive_queue) in Scenario::ALL.iter().zip([8, 100, 1000, 10_000]) {
        let subscribers = match scenario {
            Scenario::StraightRun => 3,
            _ => 2,
        };
        let (wiring, settings) = (
            Wiring::new(scenario, 3, subscribers),
            settings(receive_queue),
        );
        let (mut ends, _files) = ends(&wiring, &settings);
        ends.publishers[0]
            .start(&mut pool(WORDS), &mut || true)
            .unwrap();
        let found: u64 = files::shared_memory(&ends.publishers[0].name)
            .map(|file| {
                let found = std::fs::metadata(file).unwrap();
                let allocated = found.blocks() * 512;
                assert!(allocated >= found.len());
                allocated
            })
            .sum();
        let calculated = bytes(&wiring, &settings);
        assert!(
            found <= calculated,
            "{} {receive_queue}: {found} of {calculated}",
            scenario.name()
        );
    }
}

#[test]
fn a_sample_without_room_is_refused_and_one_with_room_at_some_is_lost_at_the_others() {
    let wiring = Wiring::new(Scenario::FanOut, 1, 2);
    let (mut ends, _files) = ends(&wiring, &settings(3));
    let mut pool = pool(WORDS);
    let [one, other] = ends.subscribers.get_disjoint_mut([0, 1]).unwrap();
    let publisher = &mut ends.publishers[0];
    let taken = (1..=5).filter(|number| write(publisher, &mut pool, *number));
    assert_eq!(taken.count(), 3);
    assert_eq!(read(one, &mut pool), [1, 2, 3]);
    assert!(write(publisher, &mut pool, 6));
    assert_eq!(read(other, &mut pool), [1, 2, 3]);
    assert!(write(publisher, &mut pool, 7));
    assert_eq!(read(one, &mut pool), [6, 7]);
    assert_eq!(read(other, &mut pool), [7]);
}

#[test]
fn ends_may_go_to_other_threads_and_samples_of_another_size_are_passed_over() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let (ends, _files) = ends(&wiring, &settings(8));
    let (mut publishers, mut subscribers) = (ends.publishers, ends.subscribers);
    let sends = move || {
        assert_eq!(publishers[0].targets[0].send(&[1; 8]), Ok(1));
        assert!(write(&mut publishers[0], &mut pool(WORDS), 5));
        publishers
    };
    let publishers = crate::host::threads::start(std::thread::Builder::new(), sends);
    let publishers = publishers.unwrap().join().unwrap();
    assert_eq!(read(&mut subscribers[0], &mut pool(WORDS)), [5]);
    drop(publishers);
    assert_eq!(read(&mut subscribers[0], &mut pool(WORDS)), [0; 0]);
}

#[test]
fn a_publisher_finds_that_its_subscriber_has_ended() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let (mut ends, _files) = ends(&wiring, &settings(8));
    ends.subscribers.clear();
    let mut pool = pool(WORDS);
    let mut samples = Vec::new();
    pool.fill(&mut samples, 1);
    let error = ends.publishers[0]
        .write(&mut pool, &mut samples)
        .unwrap_err();
    assert!(matches!(error, NodeError::PeerEnded(_)), "{error}");
}

#[test]
fn shared_memory_that_is_missing_or_too_small_is_refused() {
    refusal_of(1, None)
        .unwrap()
        .has(&["/dev/shm", "mount -t tmpfs"]);
    let refused = refusal_of(65 << 20, Some(64 << 20)).unwrap();
    refused.has(&[
        "65 MiB of /dev/shm",
        "64 MiB left",
        "--receive-queue",
        "remount",
    ]);
    assert_eq!(refusal_of(64 << 20, Some(64 << 20)), None);
    let (wiring, mut settings) = (Wiring::new(Scenario::FanOut, 2, 3), settings(7));
    // Of both publishers three times seven places and one each, and the one that is written.
    let samples = 2 * (3 * 8 + 1) * (24 + HEADER + 3 * IN_CONNECTION);
    assert_eq!(bytes(&wiring, &settings), samples + (2 * 4 + 5) * OF_PORT);
    settings.poll = Poll::Event;
    refusal(&wiring, &settings)
        .unwrap()
        .has(&["--poll event", "use --poll busy"]);
}
