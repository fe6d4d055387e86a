//! Which ports a run takes, and what the devices are said to have.

use super::Host;
use crate::testing::Has as _;

#[test]
fn the_two_ports_of_a_card_are_taken_and_the_devices_described_by_what_they_grant() {
    // Bytes inline of RC, UC and UD; none where the device has no such service type.
    for (character, pair, inline, stamps) in [
        (
            "connectx-ib",
            "--sender mlx5_0:1 --receiver mlx5_1:1",
            [Some(828), Some(828), Some(956)],
            Some(true),
        ),
        (
            "connectx-roce",
            "--sender mlx5_0:1@10.41.0.1 --receiver mlx5_1:1@10.41.0.2",
            [Some(828), Some(828), Some(956)],
            Some(true),
        ),
        (
            "irdma-roce",
            "--sender rocep59s0f0:1@10.41.0.1 --receiver rocep59s0f1:1@10.41.0.2",
            [Some(101), None, Some(101)],
            Some(true),
        ),
        (
            "irdma-iwarp",
            "--sender iwp59s0f0:1@10.41.0.1 --receiver iwp59s0f1:1@10.41.0.2",
            [Some(101), None, None],
            Some(true),
        ),
        (
            "bnxt",
            "--sender bnxt_re0:1@10.41.0.1 --receiver bnxt_re1:1@10.41.0.2",
            [Some(96), None, Some(96)],
            Some(false),
        ),
        (
            "hns",
            "--sender hns_0:1@10.41.0.1 --receiver hns_1:1@10.41.0.2",
            [Some(1024), None, Some(1024)],
            Some(false),
        ),
        (
            "efa",
            "--sender rdmap0s6:1 --receiver rdmap0s7:1",
            [None, None, Some(32)],
            Some(false),
        ),
    ] {
        let host = Host::with(character);
        host.ends("devices", 0)
            .stdout
            .has(&[pair, "model of an adapter"]);
        let document = host.ends("devices --json", 0).json();
        let devices = document["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 2, "{character}");
        for device in devices {
            let granted =
                ["rc", "uc", "ud"].map(|name| device["inline_bytes_granted"][name].as_u64());
            assert_eq!(granted, inline, "{character}");
            let limits = &device["device"]["limits"];
            assert_eq!(limits["completion_timestamps"].as_bool(), stamps);
            assert_eq!(device["device"]["software"], false);
        }
    }
}

#[test]
fn ports_that_no_subnet_manager_has_set_up_need_one() {
    let host = Host::with("connectx-ib-no-manager");
    let refused = host.ends("--service rc --burst 10", 1).told();
    refused.has(&["mlx5_0 port 1 (initialising", "link is up", "opensm -g"]);
    refused.lacks(&["ip link", "cable in"]);
    host.ends("devices", 1).stdout.has(&["opensm"]);
}

#[test]
fn a_bond_is_one_port_and_is_named() {
    let refused = Host::with("connectx-bond").ends("--service rc --burst 10", 1);
    let words = ["mlx5_bond_0 port 1", "the bond bond41", "--peer"];
    refused.told().has(&words);
}

#[test]
fn functions_of_one_physical_port_are_measured_with_a_reservation() {
    let measured = Host::with("connectx-virtual").measured("--service rc");
    let found = &measured.is_whole().findings()["within-adapter"];
    found.has(&[
        "mlx5_2:1 and mlx5_3:1",
        "two functions of one physical port",
    ]);
}

/// As where the connection manager cannot be had or leads to another device; then messages go directly.
#[test]
fn without_the_connection_manager_ports_are_connected_directly() {
    for (circumstances, reason) in [
        ("no-manager", "rdma_create_event_channel"),
        ("no-routes", "mlx5_1 port 1"),
    ] {
        let host = Host::with("connectx-roce").but(circumstances);
        let measured = host.measured("--service rc,ud");
        let points = measured.is_whole().points(&["service", "connect"]);
        assert_eq!(points, ["rc direct", "ud direct"], "{circumstances}");
        measured.findings()["connected-directly"].has(&[reason]);
    }
    let host = Host::with("connectx-roce").but("no-routes");
    let refused = host.ends("--service rc --burst 10 --connect cm", 1).told();
    refused.has(&["mlx5_0 port 1", "mlx5_1 port 1"]);
    // With the routes it does.
    let measured = Host::with("connectx-roce").measured("--service rc,uc,ud");
    let points = measured.is_whole().points(&["service", "connect"]);
    assert_eq!(points, ["rc cm", "uc cm", "ud cm"]);
    assert!(!measured.findings().contains_key("connected-directly"));
}
