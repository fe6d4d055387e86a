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

#[test]
fn the_report_shows_what_belongs_together_without_addresses() {
    let _machine = Machine::take();
    let folder = crate::scratch();
    let program = hcabench("devices --report adapter").in_folder(folder.path());
    let ended = program.ends(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout.lines().count(), 5);
    let text = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_str(&text(&format!("adapter/{file}"))).unwrap()
    };
    let [devices, ports] = ["devices.json", "ports.json"].map(read);
    let of_sysfs = |path: &str| {
        let text = std::fs::read_to_string(format!("/sys/class/{path}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let mut real = vec!["10.77.0.1".to_owned(), "10.77.0.2".to_owned()];
    for (number, name) in ["rxe0", "rxe1"].into_iter().enumerate() {
        let described = &devices["devices"][number]["device"];
        let device = &ports["devices"][number];
        assert_eq!(
            (&described["name"], &device["name"]),
            (&name.into(), &name.into())
        );
        // One node, two ways of writing it.
        assert_eq!(described["node_guid"], device["node_guid"]);
        let interface = ports["interfaces"].as_array().unwrap().iter();
        let mut interface =
            interface.filter(|one| one["name"] == device["ports"][0]["interfaces"][0]);
        let mac = interface.next().unwrap()["address"].as_str().unwrap();
        assert!(mac.starts_with("mac-"), "{mac}");
        assert_eq!(device["node_guid"], format!("guid({mac})"));
        let address = described["ports"][0]["addresses"][0].as_str().unwrap();
        assert!(address.starts_with("ipv4-"), "{address}");
        let gids = device["ports"][0]["gids"].as_array().unwrap();
        let of_address = gids
            .iter()
            .find(|gid| gid["gid"] == format!("gid({address})"));
        assert_eq!(of_address.unwrap()["kind"], "RoCE v2");
        assert!(device["ports"][0]["hw_counters"]["sent_pkts"].is_u64());
        let folder = format!("infiniband/{name}");
        real.push(of_sysfs(&format!("{folder}/node_guid")));
        real.push(of_sysfs(&format!("{folder}/node_guid")).replace(':', ""));
        real.extend((0..4).map(|index| of_sysfs(&format!("{folder}/ports/1/gids/{index}"))));
        real.push(of_sysfs(&format!("net/veth{number}/address")));
    }
    let networks =
        [0, 1].map(|at: usize| &devices["devices"][at]["device"]["ports"][0]["networks"][0]);
    assert_eq!(networks[0], networks[1], "in one network");
    real.retain(|text| text.chars().any(|digit| !matches!(digit, '0' | ':')));
    for file in [
        "devices.json",
        "host.json",
        "ports.json",
        "software.json",
        "README.txt",
    ] {
        let text = text(&format!("adapter/{file}"));
        for address in &real {
            assert!(
                !text.contains(address.as_str()),
                "{file} contains {address}"
            );
        }
    }
}
