//! What the ends are made with: shared receive queues deliver, and what SoftRoCE lacks is refused by name.

use std::time::{Duration, Instant};

use hcabench::bench::hca::ends::endpoints::{Endpoints, Receives};
use hcabench::bench::hca::ends::{BurstPort, ReceivingEnd, SendingEnd};
use hcabench::bench::hca::loops::port::{CompletionPort, PollResult, QueuePairPort, SendPort};
use hcabench::bench::hca::loops::tag::Tag;
use hcabench::bench::hca::settings::config::{Service, Switch};
use hcabench::rdma::cm::EventChannel;
use hcabench::time::Ticks;

use crate::connections::{ends, settings};
use crate::machine::Machine;
use crate::program::hcabench;
use crate::settings::{lossy_sweep, sweep};

const LIMIT: Duration = Duration::from_secs(20);
const QUEUE_PAIRS: u32 = 3;
const MESSAGES: u32 = 4 * QUEUE_PAIRS;

fn next(port: &mut impl CompletionPort, what: &str) -> PollResult {
    let deadline = Instant::now() + LIMIT;
    loop {
        match port.poll() {
            PollResult::Empty => assert!(Instant::now() < deadline, "{what}: something is missing"),
            found => return found,
        }
    }
}

library_tests! {
    fn queue_pairs_take_the_requests_of_the_shared_queue_in_turn() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        for (service, channel) in [
            (Service::Rc, Some(&channel)), (Service::Rc, None), (Service::Ud, Some(&channel)), (Service::Ud, None),
        ] {
            let mut settings = settings(service);
            settings.point.queue_pairs = QUEUE_PAIRS;
            settings.point.resources.srq = Switch::On;
            settings.receives = Receives { requests: MESSAGES, slots: MESSAGES };
            let endpoints = Endpoints::connect(channel, &from, &to, &settings).unwrap();
            assert_eq!(endpoints.receiver.slots(), MESSAGES as usize);
            for slot in 0..endpoints.receiver.slots() {
                endpoints.receiver.post(slot).unwrap();
            }
            let (mut port, tag) = (endpoints.sender.spread_port(), Tag::new(9));
            let mut arriving = endpoints.receiver.port(0, 0);
            port.set_tag(tag);
            let mut numbers = vec![None; QUEUE_PAIRS as usize];
            for sequence in 0..MESSAGES {
                port.prepare(sequence, true);
                port.stamp(Ticks(1));
                port.post().unwrap();
                let PollResult::Done(arrived) = next(&mut arriving, service.name()) else {
                    panic!("{service:?}: message {sequence} failed");
                };
                assert_eq!(Tag::sequence(arrived.immediate_data), sequence);
                // With queues of their own the second message would take the first request of the second queue.
                assert_eq!(arrived.request, u64::from(sequence), "{service:?}");
                // The completion names the queue pair that took it.
                let number = &mut numbers[(sequence % QUEUE_PAIRS) as usize];
                let queue_pair = arriving.queue_pair();
                assert_eq!(*number.get_or_insert(queue_pair), queue_pair);
            }
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), QUEUE_PAIRS as usize, "{numbers:?}");
        }
    }

    fn a_message_that_finds_the_shared_queue_empty_is_tried_again_and_then_fails() {
        let _machine = Machine::take();
        let [from, to] = ends();
        let mut settings = settings(Service::Rc);
        settings.point.queue_pairs = QUEUE_PAIRS;
        settings.point.resources.srq = Switch::On;
        settings.point.path.rnr_retry = Some(1);
        settings.receives = Receives { requests: 2, slots: 2 };
        let endpoints = Endpoints::connect(None, &from, &to, &settings).unwrap();
        endpoints.receiver.post(0).unwrap();
        let (mut port, mut sent) = (endpoints.sender.spread_port(), endpoints.sender.completions());
        for (sequence, is_taken) in [(0, true), (1, false)] {
            port.prepare(sequence, true);
            port.stamp(Ticks(1));
            port.post().unwrap();
            match next(&mut sent, "the send completion") {
                PollResult::Done(_) => assert!(is_taken),
                PollResult::Failed(failure) => {
                    assert!(!is_taken, "{failure}");
                    assert!(failure.to_string().contains("RNR"), "{failure}");
                }
                PollResult::Empty => unreachable!(),
            }
        }
    }
}

#[test]
fn a_shared_receive_queue_delivers_over_one_and_over_many() {
    let words = "--service rc,ud --operation send,write --connect cm,direct --srq off,on --queue-pairs 1,16 --burst 60 \
                 --repeat 2 --warmup 10";
    let results = sweep(words, 3 * 2 * 2 * 2);
    for point in results.points() {
        let srq = point.settings["point"]["srq"].as_str().unwrap().to_owned();
        assert_eq!(
            srq == "on",
            point.name().ends_with("-srq"),
            "{}",
            point.name()
        );
        assert_eq!(results.row_of(&point).text("srq"), srq);
    }
}

#[test]
fn events_and_unsignaled_messages_work_with_a_shared_receive_queue() {
    let words = "--service rc,ud --srq --queue-pairs 4 --poll event --unsignaled off,on --burst 40 --pause 100us";
    sweep(words, 4);
}

/// Without a repetition the first message that finds no receive request posted would end the run.
#[test]
fn no_message_finds_the_shared_queue_empty() {
    let words = "--service rc --srq --rnr-retry 0 --depth 1,3,60 --queue-pairs 1,4 --receiver-pause 0,300us --burst 60 \
                 --warmup 60";
    sweep(words, 3 * 2 * 2);
}

#[test]
fn losses_over_a_shared_queue_are_counted_right() {
    lossy_sweep(
        "loss 10%",
        "--service ud --srq --queue-pairs 3 --burst 300 --repeat 3",
        1,
    );
}

#[test]
fn what_softroce_lacks_is_refused_by_name_or_left_out_with_the_reason() {
    let machine = Machine::take();
    for (words, says) in [
        (
            "--thread-domain",
            &[
                "--thread-domain is impossible with --service rc",
                "ibv_alloc_td on rxe0",
            ][..],
        ),
        (
            "--odp",
            &[
                "--odp is impossible",
                "rxe0 has no on-demand paging",
                "odp_caps",
            ],
        ),
        (
            "--relaxed-ordering --operation write-polled",
            &[
                "--relaxed-ordering is impossible with --operation write-polled",
                "last byte",
            ],
        ),
        (
            "--srq --service uc",
            &["--srq is impossible with --service uc", "RC and UD"],
        ),
        (
            "--srq --operation read",
            &["--srq is impossible with --operation read"],
        ),
    ] {
        hcabench(words).ends(2).says(says);
    }
    let words = "--thread-domain off,on --odp off,on --relaxed-ordering off,on --operation send,write-polled --burst 20";
    let results = machine.measured(words);
    // Relaxed ordering is for the driver to use or not.
    results.check(3);
    let rows = results.summary().rows;
    let found = rows
        .iter()
        .map(|row| (row.text("operation"), row.text("relaxed_ordering")));
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [("send", "off"), ("send", "on"), ("write-polled", "off")]
    );
    let left_out = results.left_out().rows;
    assert_eq!(left_out.len(), 16 - 3);
    for option in ["--thread-domain", "--odp", "--relaxed-ordering"] {
        let begins = format!("{option} is impossible");
        assert!(
            left_out
                .iter()
                .any(|row| row.text("reason").starts_with(&begins)),
            "{option}"
        );
    }
}
