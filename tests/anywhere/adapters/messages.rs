//! Which points an adapter measures, which are left out and why, and that messages arrive as they were sent.

use super::{Host, Measured};
use crate::common::{Row, number};
use crate::testing::Has as _;

const ALL: &str =
    "--service rc,uc,ud --operation send,write,write-polled,read --inline off,on --size 8,32";

/// The reasons for points that were left out of a service type or an operation.
fn reasons(measured: &Measured, column: &str, value: &str) -> Vec<String> {
    let left_out = measured.left_out().into_iter();
    let of_it = left_out.filter(|row: &Row| row[column] == value);
    of_it.map(|row| row["reason"].clone()).collect()
}

#[test]
fn each_adapter_measures_what_it_has_and_names_what_it_refuses() {
    let connected = ["read", "send", "write", "write-polled"];
    for (character, services, operations) in [
        ("connectx-ib", &["rc", "uc", "ud"][..], &connected[..]),
        ("connectx-roce", &["rc", "uc", "ud"], &connected),
        ("irdma-roce", &["rc", "ud"], &connected),
        ("irdma-iwarp", &["rc"], &["read", "send", "write-polled"]),
        ("bnxt", &["rc", "ud"], &connected),
        ("hns", &["rc", "ud"], &connected),
        ("efa", &["ud"], &["send"]),
    ] {
        let measured = Host::with(character).measured(ALL);
        let found = measured.is_whole();
        assert_eq!(found.points(&["service"]), services, "{character}");
        assert_eq!(found.points(&["operation"]), operations, "{character}");
        // Reads have nothing to be sent inline, all else is measured either way.
        let mut expected = Vec::new();
        for operation in operations {
            let inline = match *operation {
                "read" => &["off"][..],
                _ => &["off", "on"],
            };
            for inline in inline {
                expected.extend([32, 8].map(|size| format!("{operation} {inline} {size}")));
            }
        }
        let points = found.points(&["operation", "inline", "size_bytes"]);
        assert_eq!(points, expected, "{character}");
        for service in ["rc", "uc", "ud"] {
            let reasons = reasons(found, "service", service);
            if !services.contains(&service) {
                assert!(!reasons.is_empty(), "{character} {service}");
            }
            for reason in reasons {
                reason.lacks(&["Success", "os error 0"]);
            }
        }
    }
}

#[test]
fn datagrams_are_whole_with_and_without_the_header_in_their_length() {
    for character in ["connectx-roce", "irdma-roce", "efa"] {
        for poll in ["busy", "event"] {
            let words = format!("--service ud --size 8,40,1024 --poll {poll} --burst 200");
            let measured = Host::with(character).measured(&words);
            let sizes = measured.is_whole().points(&["size_bytes"]);
            assert_eq!(sizes, ["1024", "40", "8"], "{character}");
        }
    }
}

#[test]
fn events_several_queue_pairs_and_unsignaled_requests_deliver() {
    for (words, columns, expected) in [
        (
            "--service rc,uc,ud --poll event",
            &["poll_recv", "service"][..],
            &["event rc", "event uc", "event ud"][..],
        ),
        (
            "--service rc --queue-pairs 3 --burst 90",
            &["queue_pairs", "burst"],
            &["3 90"],
        ),
        (
            "--service rc --unsignaled on,off --burst 300",
            &["unsignaled"],
            &["off", "on"],
        ),
        (
            "--service rc --depth 4 --burst 300",
            &["depth", "burst"],
            &["4 300"],
        ),
        ("--service rc --repeat 3", &["repeat"], &["3"]),
    ] {
        let measured = Host::with("connectx-roce").measured(words);
        let points = measured.is_whole().points(columns);
        assert_eq!(points, expected, "{words}");
        assert_eq!(measured.left_out().len(), 0, "{words}");
        for row in measured.rows() {
            let sent = number(&row, "messages_sent");
            assert_eq!(number(&row, "messages_received"), sent, "{words}: {row:?}");
        }
    }
}

/// The main job, and the two limits that bound each other.
#[test]
fn the_longest_burst_depends_on_the_size_of_a_request() {
    // 32768 blocks of 64 bytes: 8192 requests of RC with four each, which take 60 bytes inline.
    let words = "--service rc --inline off,on --size 8,128 --burst 4096,8192 --connect direct";
    let measured = Host::with("connectx-roce").measured(words);
    let points = measured.points(&["burst", "inline", "size_bytes"]);
    let expected = [
        "4096 off 128",
        "4096 off 8",
        "4096 on 128",
        "4096 on 8",
        "8192 off 128",
        "8192 off 8",
        "8192 on 8",
    ];
    assert_eq!(points, expected);
    measured.is_whole();
    let left_out = measured.left_out();
    assert_eq!(left_out.len(), 1);
    left_out[0]["reason"].has(&["mlx5_", "Invalid argument"]);
    // max_qp_wr is 4063 there.
    let measured = Host::with("irdma-roce").measured("--service rc --burst 1000,8192");
    assert_eq!(measured.is_whole().points(&["burst"]), ["1000"]);
    reasons(&measured, "burst", "8192")[0].has(&["4063"]);
}
