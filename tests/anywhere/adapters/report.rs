//! What is sent of an adapter, what a refusal advises, and the interrupts of two ends of one device.

use std::fs;

use serde_json::json;

use super::Host;
use crate::common::json as read;
use crate::testing::{Has as _, temporary};

#[test]
fn the_report_of_each_adapter_has_what_sysfs_has_without_addresses() {
    for (character, device, gid) in [
        ("connectx-ib", "mlx5_0", "fe80::guid-1"),
        ("connectx-roce", "mlx5_0", "gid(ipv4-1)"),
        ("connectx-bond", "mlx5_bond_0", "gid(ipv4-1)"),
        ("irdma-iwarp", "iwp59s0f0", "gid(mac-1)"),
        ("efa", "rdmap0s6", "fe80::guid(mac-1)"),
    ] {
        let within = temporary("");
        let words = "devices --report adapter";
        let ended = Host::with(character)
            .hcabench(words)
            .in_folder(&*within)
            .ends(0);
        assert_eq!(ended.stderr, "", "{character}");
        let folder = within.join("adapter");
        let ports = read(&folder.join("ports.json"));
        let described = &ports["devices"][0];
        assert_eq!(described["name"], device, "{character}");
        let gids = described["ports"][0]["gids"].as_array().unwrap();
        assert!(
            gids.iter().any(|one| one["gid"] == gid),
            "{character}: {gids:?}"
        );
        for entry in fs::read_dir(&folder).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path())
                .unwrap()
                .to_lowercase();
            // Of the characters: MAC and IP addresses, GUIDs as sysfs and as the program writes them.
            text.lacks(&[
                "0c:42:a1",
                "10.41.0.",
                "0c42:a1",
                "0c42a1",
                "0a29:0001",
                "a1ff:fe41",
            ]);
        }
    }
    let within = temporary("");
    let virtual_ones = Host::with("connectx-virtual");
    virtual_ones
        .hcabench("devices --report adapter")
        .in_folder(&*within)
        .ends(0);
    let ports = read(&within.join("adapter/ports.json"));
    assert_eq!(ports["devices"][0]["function"]["physfn"], "0000:3b:00.0");
    let devices = read(&within.join("adapter/devices.json"));
    assert_eq!(devices["devices"][0]["services_refused"], json!({}));
}

#[test]
fn a_refused_service_type_is_in_the_report_with_its_errno() {
    let within = temporary("");
    let host = Host::with("irdma-roce");
    host.hcabench("devices --report adapter")
        .in_folder(&*within)
        .ends(0);
    let devices = read(&within.join("adapter/devices.json"));
    let refused = devices["devices"][0]["services_refused"]["uc"].as_str();
    refused.unwrap().has(&["not supported", "95"]);
}

#[test]
fn iwarp_has_no_route_to_uc() {
    let ended = Host::with("irdma-iwarp").ends("devices", 0);
    ended
        .stdout
        .has(&["endpoint  no: iwp59s0f0 is iWARP, which has no UC"]);
    ended.stdout.lacks(&["an id can be bound"]);
}

#[test]
fn a_refusal_says_whether_inline_data_or_requests_are_too_many() {
    let words = "--service rc --inline off,on --size 128 --burst 8192 --connect direct";
    let measured = Host::with("connectx-roce").measured(words);
    assert_eq!(measured.is_whole().points(&["inline"]), ["off"]);
    measured.left_out()[0]["reason"].has(&["leave out --inline, or use --depth 4096"]);
}

#[test]
fn two_ends_of_one_device_have_two_vectors() {
    let words =
        "--sender mlx5_bond_0 --receiver mlx5_bond_0 --service rc --connect direct --poll event";
    let measured = Host::with("connectx-bond").measured(words);
    let vectors = &measured.settings(&measured.rows()[0])["obtained"]["completion_vectors"];
    assert_eq!(
        [&vectors["sender"]["vector"], &vectors["receiver"]["vector"]],
        [0, 1]
    );
}
