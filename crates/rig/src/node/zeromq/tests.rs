use super::*;
use crate::buffer::HugePagePolicy;
use crate::node::Ends;
use crate::testing::Refused as _;

const WORDS: usize = 3;

fn settings(queue: u32) -> Settings {
    Settings {
        poll: Poll::Event,
        vectorize: 4,
        send_queue: queue,
        receive_queue: queue,
        ..Settings::of_words(WORDS)
    }
}

fn ends(
    wiring: &Wiring,
    settings: &Settings,
) -> Result<Ends<ZeromqPublisher, ZeromqSubscriber>, NodeError> {
    load().map_err(NodeError::Setting)?;
    Ends::of(&Zeromq { wiring, settings }, wiring)
}

fn write(publisher: &mut ZeromqPublisher, pool: &mut Pool, value: u64) {
    let mut samples = Vec::new();
    pool.fill(&mut samples, 1);
    pool.set_word(&samples[0], 2, value);
    while publisher.write(pool, &mut samples).unwrap() == 0 {}
    pool.release_all(&mut samples);
}

/// The values of what has come, once there is something.
fn read(subscriber: &mut ZeromqSubscriber, pool: &mut Pool) -> Vec<u64> {
    let mut samples = Vec::new();
    pool.fill(&mut samples, 4);
    let received = subscriber.read(pool, &mut samples, || true).unwrap();
    let values = samples[..received].iter().map(|slot| pool.word(slot, 2));
    let values = values.collect();
    pool.release_all(&mut samples);
    values
}

#[test]
fn samples_come_in_order_and_others_are_passed_over() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let mut ends = ends(&wiring, &settings(8)).unwrap();
    let mut pool = Pool::new(8, WORDS, HugePagePolicy::Off).unwrap();
    while !ends.publishers[0].socket.send(&[1; 25]).unwrap() {}
    (70..72).for_each(|value| write(&mut ends.publishers[0], &mut pool, value));
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(read(&mut ends.subscribers[0], &mut pool));
    }
    assert_eq!(found, [70, 71]);
    let mut samples = vec![pool.take().unwrap()];
    let nothing = ends.subscribers[0].read(&mut pool, &mut samples, || false);
    assert_eq!(nothing.unwrap(), 0);
    pool.release_all(&mut samples);
    assert!(pool.is_whole());
}

#[test]
fn a_pair_without_room_refuses_and_a_publisher_drops() {
    let mut pool = Pool::new(2, WORDS, HugePagePolicy::Off).unwrap();
    let mut refuses = |scenario| {
        let mut ends = ends(&Wiring::new(scenario, 1, 1), &settings(1)).unwrap();
        let mut samples = Vec::new();
        pool.fill(&mut samples, 2);
        // More than the sockets and the kernel's buffers hold.
        let found = (0..1_000_000).any(|_| {
            let taken = ends.publishers[0].write(&mut pool, &mut samples).unwrap();
            assert_eq!(samples.len(), 2);
            taken < 2
        });
        pool.release_all(&mut samples);
        found
    };
    assert!(refuses(Scenario::StraightRun));
    assert!(!refuses(Scenario::FanOut));
}

#[test]
fn a_port_that_is_in_use_or_too_high_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let on = |port, subscribers| {
        let settings = Settings {
            zeromq_port: Some(port),
            ..settings(8)
        };
        ends(
            &Wiring::new(Scenario::FanIn, subscribers, subscribers),
            &settings,
        )
        .map(drop)
    };
    on(port, 1).refused(&["--zeromq-port", &port.to_string(), "in use"]);
    on(65535, 2).refused(&["--zeromq-port 65535", "2 ends"]);
}
