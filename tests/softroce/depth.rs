//! Fewer messages in flight than a burst has: all are sent, and what they took is posted anew.

use crate::settings::{lossy_sweep, sweep};

#[test]
fn every_service_and_operation_delivers_within_a_depth() {
    // Of a depth of one, each message is signalled.
    let words = "--service rc,uc,ud --operation send,write --depth 1,4 --unsignaled off,on --burst 200 --repeat 2 --warmup 0";
    let results = sweep(words, 5 * 3);
    for point in results.points() {
        let row = results.row_of(&point);
        let depth = row.count("depth");
        assert!(point.name().ends_with(&format!("-depth{depth}")), "{row:?}");
        // On RC a message is in flight at least until it arrived.
        let is_reliable = row.text("service") == "rc";
        let is_below = !is_reliable || row.count("in_flight_max") < depth;
        assert!(is_below, "{row:?}");
    }
}

/// Without a repetition the first message that finds no receive request posted would end the run.
#[test]
fn on_a_reliable_connection_no_message_finds_the_receiver_not_ready() {
    let words = "--service rc --rnr-retry 0 --depth 1,3 --queue-pairs 1,2 --poll busy,event --receiver-pause 0,300us --burst 60 \
         --warmup 60";
    sweep(words, 2 * 2 * 2 * 2);
}

#[test]
fn stamps_are_rewritten_and_rates_kept_within_a_depth() {
    let words = "--service rc,ud --timestamp submit,send --rate 2k --depth 2 --burst 30";
    let results = sweep(words, 4);
    for row in results.summary().rows {
        assert!(!row.text("intended_latency_p50_ns").is_empty(), "{row:?}");
    }
}

#[test]
fn what_is_lost_does_not_hold_up_the_sender() {
    let words = "--service uc,ud --depth 4 --unsignaled off,on --burst 200 --repeat 2";
    let (_machine, _loss, rows) = lossy_sweep("loss 20%", words, 4);
    assert!(rows.iter().all(|row| row.count("messages_lost") > 0));
}

#[test]
fn a_depth_of_a_burst_or_more_is_that_of_the_burst() {
    let results = sweep("--depth 40,50 --burst 40", 1);
    assert_eq!(results.summary().rows[0].text("depth"), "");
}
