//! `hcabench devices` and `hcabench host`.

use crate::machine::Machine;
use crate::program::hcabench;
use crate::testing::Has as _;

#[test]
fn devices_lists_both_and_the_pair_of_a_run() {
    let _machine = Machine::take();
    let ended = hcabench("devices").ends(0);
    ended.stdout.has(&[
        "rxe0",
        "rxe1",
        "rxe0:1",
        "10.77.0.1",
        "10.77.0.2",
        "Ethernet",
        "active",
        "1024",
        "max_qp_wr",
        "max_cqe",
        "inline rc",
        "A run would use: --sender rxe0:1@10.77.0.1 --receiver rxe1:1@10.77.0.2",
    ]);
    assert_eq!(ended.stderr, "");

    let ended = hcabench("devices --json").ends(0);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["sender"], "rxe0:1@10.77.0.1");
    assert_eq!(document["receiver"], "rxe1:1@10.77.0.2");
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for described in devices {
        let device = &described["device"];
        assert_eq!(device["ports"][0]["active"], true);
        assert_eq!(device["ports"][0]["link_layer"], "Ethernet");
        let is_enough = device["limits"]["max_queue_pair_work_requests"]
            .as_u64()
            .unwrap()
            >= 8192;
        assert!(is_enough);
        assert_eq!(device["limits"]["completion_timestamps"], false);
        assert!(described["inline_bytes_granted"]["ud"].as_u64().unwrap() >= 8);
    }
}

#[test]
fn host_calls_out_the_emulation() {
    let _machine = Machine::take();
    let ended = hcabench("host").ends(1);
    ended.stdout.has(&["SPOILS", "Not ready to measure"]);
    assert!(
        ended.stdout.to_lowercase().contains("virtual")
            || ended.stdout.to_lowercase().contains("emulat"),
        "{}",
        ended.stdout
    );
    let ended = hcabench("host --json").ends(1);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["ready"], false);
}
