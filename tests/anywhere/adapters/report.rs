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

/// In values of variables, which are anybody's, beside what the model plants in sysfs.
#[test]
fn names_of_users_folders_and_addresses_beside_letters_are_not_in_the_report() {
    let within = temporary("");
    let host = Host::with("connectx-roce");
    let program = host.hcabench("devices --report adapter");
    let mut program = program.in_folder(&*within).env("SUDO_USER", "grace");
    for (name, value) in [
        ("MLX5_A", "/srv/grace/secret project/lib"),
        ("MLX5_B", "GRACE_1 enx0c42a1030041np0 0C-42-A1-03-00-42"),
        (
            "MLX5_C",
            "10.41.0.1.nip.io 4c4c4544-0042-3510-8052-b4c04f4d3232",
        ),
    ] {
        program = program.env(name, value);
    }
    host.ended(program, 0);
    let folder = within.join("adapter");
    let software = read(&folder.join("software.json"));
    let shown = ["MLX5_A", "MLX5_B", "MLX5_C"].map(|name| &software["environment"][name]);
    let [file, named, numbered] = shown.map(|value| value.as_str().unwrap());
    assert_eq!(file, ".../lib");
    named.has(&["user-1_1 enxmac-", "np0 mac-"]);
    numbered.has(&["ipv4-1.nip.io id-"]);
    let ports = read(&folder.join("ports.json"));
    let switch = &ports["interfaces"][0]["phys_switch_id"];
    assert!(switch.as_str().unwrap().starts_with("id-"), "{switch}");
    for entry in fs::read_dir(&folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let planted = [
            "grace", "secret", "0c42a1", "0c-42", "10.41.", "4c4c4544", "5452",
        ];
        text.to_lowercase().lacks(&planted);
    }
}

#[test]
fn a_device_that_has_gone_leaves_the_others_in_the_report() {
    let within = temporary("");
    let host = Host::with("connectx-roce").but("gone");
    let program = host.hcabench("devices --report adapter");
    host.ended(program.in_folder(&*within), 0);
    let devices = read(&within.join("adapter/devices.json"));
    assert_eq!(devices["devices"][0]["device"]["name"], "mlx5_0");
    assert_eq!(devices["devices"].as_array().unwrap().len(), 1);
    assert_eq!(devices["refused"][0]["device"], "mlx5_1");
}

#[test]
fn a_device_without_uc_has_no_route_to_it() {
    for (character, device) in [("irdma-roce", "rocep59s0f0"), ("bnxt", "bnxt_re0")] {
        let shown = Host::with(character).ends("devices", 0).stdout;
        shown.has(&[&format!("endpoint  no: {device} has no UC")]);
        shown.lacks(&["an id can be bound"]);
    }
    let shown = Host::with("connectx-roce").ends("devices", 0).stdout;
    shown.has(&["an id can be bound"]);
}

#[test]
fn a_refused_service_type_is_in_the_report_with_its_errno_if_there_is_one() {
    for (character, reason, none) in [
        (
            "irdma-roce",
            "not supported (os error 95)",
            "without a reason",
        ),
        ("bnxt", "refused by the driver without a reason", "os error"),
    ] {
        let within = temporary("");
        let host = Host::with(character);
        let program = host.hcabench("devices --report adapter");
        host.ended(program.in_folder(&*within), 0);
        let devices = read(&within.join("adapter/devices.json"));
        let refused = devices["devices"][0]["services_refused"]["uc"].as_str();
        let refused = refused.unwrap();
        refused.has(&[reason]);
        refused.lacks(&[none]);
    }
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
    measured.left_out()[0]["reason"].has(&["fix: leave out --inline, or use --depth 4096"]);
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
