//! Devices that are not there, not active, or without an address, before a run.

use crate::machine::{Away, LinkDown, Machine, WithoutAddress};
use crate::program::hcabench;
use crate::scratch;
use crate::testing::Has as _;

/// A run that must be refused, with nothing written.
fn refused(arguments: &str, code: i32, words: &[&str]) {
    let folder = scratch();
    let out = folder.path().join("results");
    let ended = hcabench(arguments).out(&out).ends(code).says(words);
    assert_eq!(ended.stdout, "");
    assert!(!out.exists(), "{}", ended.stderr);
}

#[test]
fn a_device_that_stamps_no_completions_is_refused_by_name() {
    let _machine = Machine::take();
    for words in ["", " --operation read", " --service rc,uc,ud --poll event"] {
        refused(
            &format!("--hw-timestamps{words}"),
            2,
            &[
                "--hw-timestamps: rxe0 does not stamp completions",
                "completion_timestamp_mask is 0",
                "leave it out",
            ],
        );
    }
}

#[test]
fn an_unknown_device_or_port() {
    let _machine = Machine::take();
    refused(
        "--sender mlx5_7",
        2,
        &["--sender mlx5_7", "no device of that name", "rxe0, rxe1"],
    );
    refused("--receiver rxe1:2", 2, &["--receiver rxe1:2", "1 port(s)"]);
    refused(
        "--receiver rxe1@10.77.0.9",
        2,
        &["--receiver rxe1", "10.77.0.9", "10.77.0.2"],
    );
}

#[test]
fn one_device_only() {
    let _machine = Machine::take();
    let away = Away::take("rxe1");
    refused(
        "",
        1,
        &["only one usable RDMA port", "rxe0 port 1", "--receiver"],
    );
    hcabench("devices").ends(1);
    away.bring_back();
}

#[test]
fn no_device_at_all() {
    let _machine = Machine::take();
    let away = [Away::take("rxe1"), Away::take("rxe0")];
    refused("", 1, &["no RDMA device on this host"]);
    refused("--sender rxe0", 1, &["no RDMA device on this host"]);
    let ended = hcabench("devices").ends(1);
    ended.stdout.has(&["no RDMA device"]);
    let ended = hcabench("devices --json").ends(1);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["devices"], serde_json::json!([]));
    let [second, first] = away;
    first.bring_back();
    second.bring_back();
}

#[test]
fn an_inactive_port() {
    let _machine = Machine::take();
    let down = LinkDown::take();
    refused(
        "",
        1,
        &["no RDMA port is active", "rxe1 port 1 (down", "ip link set"],
    );
    refused(
        "--receiver rxe1",
        2,
        &["--receiver rxe1", "down", "not active"],
    );
    down.take_up();
}

/// The connection manager needs addresses, the queue pairs themselves only GIDs: there is that of the link-local address.
#[test]
fn a_device_without_an_address() {
    let machine = Machine::take();
    let without = WithoutAddress::take();
    refused(
        "--connect cm",
        2,
        &[
            "--connect cm is impossible",
            "rxe1 port 1 has no IP address",
            "ip address add",
        ],
    );
    let results = machine.measured_as("direct", "--service rc,uc,ud --burst 50");
    results.check(3);
    for row in &results.summary().rows {
        assert_eq!(row.text("connect"), "direct");
        assert_eq!(row.count("messages_received"), 50);
    }
    without.give_back();
}
