//! Messages that are spread over several queue pairs.

use std::time::{Duration, Instant};

use hcabench::bench::hca::ends::endpoints::{Endpoints, Receives};
use hcabench::bench::hca::ends::{BurstPort, Link, ReceivingEnd, SendingEnd};
use hcabench::bench::hca::loops::port::{CompletionPort, PollResult, SendPort};
use hcabench::bench::hca::loops::tag::Tag;
use hcabench::rdma::cm::EventChannel;
use hcabench::time::Ticks;

use crate::connections::{SERVICES, ends, settings};
use crate::machine::Machine;
use crate::program::hcabench;
use crate::scratch;
use crate::settings::{lossy_sweep, sweep};

const LIMIT: Duration = Duration::from_secs(20);
const QUEUE_PAIRS: u32 = 3;
/// Twice round.
const MESSAGES: u32 = 2 * QUEUE_PAIRS;

library_tests! {
    fn each_message_goes_over_the_queue_pair_whose_turn_it_is() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        for (service, channel) in SERVICES.iter().flat_map(|service| [(*service, Some(&channel)), (*service, None)]) {
            let mut settings = settings(service);
            settings.point.queue_pairs = QUEUE_PAIRS;
            let share = settings.point.share(settings.point.burst);
            settings.receives = Receives { requests: share, slots: share };
            let endpoints = Endpoints::connect(channel, &from, &to, &settings).unwrap();
            for slot in 0..endpoints.receiver.slots() {
                endpoints.receiver.post(slot).unwrap();
            }
            let (mut port, tag) = (endpoints.sender.spread_port(), Tag::new(9));
            port.set_tag(tag);
            for sequence in 0..MESSAGES {
                port.prepare(sequence, true);
                port.stamp(Ticks(1));
                port.post().unwrap();
            }
            let mut sources = vec![None; QUEUE_PAIRS as usize];
            let (mut arriving, deadline) = (endpoints.receiver.port(0, 0), Instant::now() + LIMIT);
            for _ in 0..MESSAGES {
                let arrived = loop {
                    match arriving.poll() {
                        PollResult::Done(completion) => break completion,
                        PollResult::Empty => assert!(Instant::now() < deadline, "{service:?}: something is missing"),
                        PollResult::Failed(failure) => panic!("{service:?}: {failure}"),
                    }
                };
                // Its receive request was one of that queue pair.
                let (slot, sequence) = (arrived.request as u32, Tag::sequence(arrived.immediate_data));
                let (turn, round) = (sequence % QUEUE_PAIRS, sequence / QUEUE_PAIRS);
                assert_eq!(slot, turn * share + round, "{service:?}");
                let source = arrived.source_queue_pair;
                assert_eq!(*sources[turn as usize].get_or_insert(source), source);
            }
            let expected = endpoints.receiver.sources();
            if !expected.is_empty() {
                let found: Vec<u32> = sources.into_iter().flatten().collect();
                assert_eq!(found, expected);
            }
            let troubles = [endpoints.sender.link(), endpoints.receiver.link()].map(Link::trouble);
            assert_eq!(troubles, [None, None]);
        }
    }
}

/// Sends and writes over one queue pair and over three, connected by these ways.
fn delivers_over_one_and_over_several(arguments: &str, points: usize) {
    let arguments = format!(
        "--service rc,uc,ud --operation send,write --queue-pairs 1,3 --burst 40 --repeat 2 --warmup 10 {arguments}"
    );
    let results = sweep(&arguments, points);
    for point in results.points() {
        let of = &point.settings["point"];
        let queue_pairs = of["queue_pairs"].as_u64().unwrap();
        let several = point.name().ends_with("-3queue_pairs");
        assert_eq!(several, queue_pairs == 3, "{}", point.name());
        // Unsignalled, the last of each queue pair completes.
        let completed = results.row_of(&point).count("completions");
        let of_burst = if of["unsignaled"] == "on" {
            queue_pairs
        } else {
            40
        };
        assert_eq!(completed, 2 * of_burst, "{}", point.name());
    }
}

#[test]
fn every_service_and_operation_delivers_over_one_and_over_several() {
    delivers_over_one_and_over_several("--unsignaled off,on", 5 * 2 * 2);
}

#[test]
fn so_it_does_without_the_connection_manager() {
    let arguments = "--connect direct --unsignaled on";
    delivers_over_one_and_over_several(arguments, 5 * 2);
}

#[test]
fn events_work_over_several_and_stamps_are_rewritten_over_one_only() {
    let words = "--service rc,ud --queue-pairs 1,4 --poll event --timestamp submit,send --burst 20 --pause 200us";
    let results = sweep(words, 6);
    for one in results.left_out().rows {
        let said = "--queue-pairs 4 is impossible with --timestamp send";
        assert!(one.text("reason").starts_with(said), "{one:?}");
    }
}

#[test]
fn losses_over_several_are_counted_right_and_a_reliable_connection_has_none() {
    // A request that a lost message left behind keeps its slot, and none runs short in later bursts.
    let words = "--service uc,ud --queue-pairs 3 --burst 300 --repeat 3";
    let (machine, _loss, _) = lossy_sweep("loss 10%", words, 2);
    let words = "--service rc --queue-pairs 3 --burst 100 --warmup 0";
    let reliable = machine.measured_as("reliable", words).summary();
    assert_eq!(reliable.rows[0].count("messages_received"), 100);
}

#[test]
fn more_than_there_are_messages_is_refused_or_left_out_with_the_reason() {
    let machine = Machine::take();
    let said = "--queue-pairs 9 is impossible with --burst 8";
    let alone = hcabench("--queue-pairs 9 --burst 8").ends(2);
    alone.says(&[said]);
    let folder = scratch();
    let out = folder.path().join("results");
    let left_out = machine
        .measured_as(&out, "--queue-pairs 2,9 --burst 8 --warmup 0")
        .left_out()
        .rows;
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(left_out[0].text("queue_pairs"), "9");
    assert!(left_out[0].text("reason").contains(said), "{left_out:?}");
}
