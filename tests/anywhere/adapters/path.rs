//! What a run proves of the way: counters, queue pairs as the kernel has them, and the driver's promises.

use super::{Host, Measured};
use crate::common::number;
use crate::testing::Has as _;

/// The end of a path of the first point, as the kernel has it.
fn queue_pair(measured: &Measured, end: &str) -> serde_json::Value {
    let settings = measured.settings(&measured.rows()[0]);
    settings["obtained"]["path"][end]["queue_pair"].clone()
}

#[test]
fn packets_that_do_not_grow_on_the_wire_stayed_in_the_adapter() {
    let kind = "loopback-in-adapter";
    let measured = Host::with("connectx-one-wire").measured("--service rc");
    measured.is_whole().findings()[kind].has(&["only 0 packets", "50 messages"]);
    for character in ["connectx-roce", "connectx-virtual", "connectx-ib", "bnxt"] {
        let measured = Host::with(character).measured("--service rc");
        let found = measured.is_whole().findings();
        assert!(!found.contains_key(kind), "{character}: {found:?}");
        let row = &measured.rows()[0];
        for column in ["packets_sent", "packets_received"] {
            assert!(number(row, column) >= 50, "{character}: {row:?}");
        }
    }
}

#[test]
fn a_counter_that_has_stopped_leaves_its_column_empty() {
    let measured = Host::with("connectx-ib").measured("--service rc");
    let row = &measured.rows()[0];
    assert_eq!(row["sender_wait_ticks"], "", "{row:?}");
    assert_eq!(row["sender_port_errors"], "", "{row:?}");
    let measured = Host::with("connectx-roce").measured("--service rc");
    let row = &measured.rows()[0];
    assert_eq!(row["sender_wait_ticks"], "0", "{row:?}");
}

#[test]
fn pauses_are_warned_of_and_ticks_of_unknown_length_are_not() {
    let measured = Host::with("connectx-roce-paused").measured("--service rc");
    let found = measured.is_whole().findings();
    found["paused"].has(&["the sender's port was paused for ", " of "]);
    found["pause-frames"].has(&["the receiver's port sent ", " pause frames"]);
    found["port-waited"].has(&["the sender's port waited for ", " ticks in "]);
    let row = &measured.rows()[0];
    assert!(number(row, "sender_wait_ticks") >= 50, "{row:?}");
    // On a path without pauses there are none.
    let measured = Host::with("connectx-roce").measured("--service rc");
    let found = measured.is_whole().findings();
    for kind in ["paused", "pause-frames", "port-waited"] {
        assert!(!found.contains_key(kind), "{found:?}");
    }
}

#[test]
fn the_driver_is_asked_whether_writes_appear_in_order() {
    let kind = "order-not-promised";
    let words = "--service rc --operation write-polled --size 64";
    let measured = Host::with("connectx-roce-relaxed").measured(words);
    assert!(measured.is_whole().findings().contains_key(kind));
    let measured = Host::with("connectx-roce").measured(words);
    assert!(!measured.is_whole().findings().contains_key(kind));
    let path = &measured.settings(&measured.rows()[0])["obtained"]["path"];
    assert_eq!(path["receiver"]["writes_in_order"], true);
}

#[test]
fn the_time_of_a_receiver_that_is_not_ready_is_the_same_either_way() {
    let words = "--service rc --connect cm,direct";
    let measured = Host::with("connectx-roce").measured(words);
    let rows = measured.is_whole().rows();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let path = &measured.settings(&row)["obtained"]["path"];
        for end in ["sender", "receiver"] {
            let reliability = &path[end]["queue_pair"]["reliability"];
            assert_eq!(reliability["min_rnr_timer"], 12, "{row:?}");
        }
    }
}

#[test]
fn a_device_that_knows_few_attributes_is_asked_for_these() {
    let measured = Host::with("efa").measured("--service ud");
    let state = queue_pair(measured.is_whole(), "sender");
    assert_eq!(state["state"], "RTS", "{state}");
    // Its messages have a global route, as it has no other addresses.
    let to = &state["route"]["global"]["destination_gid"];
    assert_eq!(to, "fe80::41:a1ff:fe41:2", "{state}");
    let state = queue_pair(&measured, "receiver");
    assert_eq!(state["state"], "RTS", "{state}");
}

#[test]
fn messages_on_infiniband_go_to_the_lid_of_the_other_port() {
    let measured = Host::with("connectx-ib").measured("--service rc");
    let state = queue_pair(measured.is_whole(), "sender");
    assert_eq!(state["route"]["destination_lid"], 4, "{state}");
    assert!(state["route"]["global"].is_null(), "{state}");
    let points = measured.points(&["connect"]);
    assert_eq!(points, ["direct"]);
}

/// What it says of its firmware goes into results: they cannot be taken for those of a device.
#[test]
fn a_result_names_the_model() {
    let measured = Host::with("connectx-roce").measured("--service rc");
    let settings = measured.settings(&measured.rows()[0]);
    for end in ["sender", "receiver"] {
        let device = &settings["obtained"]["devices"][end]["device"];
        assert_eq!(device["firmware"], "model of an adapter");
    }
    measured.ended.stderr.lacks(&["panicked"]);
}
