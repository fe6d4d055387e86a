//! The choice among made-up devices.

use super::*;
use crate::rdma::verbs::{DeviceLimits, OnDemandPaging, PhysicalPort, VerbsError};
use crate::testing::{Has as _, Refused as _};

pub(crate) fn port(number: u8, active: bool, addresses: &[&str]) -> Port {
    Port {
        number,
        active,
        state: if active { "active" } else { "down" },
        link_layer: LinkLayer::Ethernet,
        mtu: 1024,
        max_message: 1 << 30,
        gigabits_per_second: 100.0,
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        networks: Vec::new(),
        lid: 0,
        sm_lid: 0,
        subnet_prefix: None,
        physical: PhysicalPort::default(),
    }
}

fn in_network(number: u8, addresses: &[&str]) -> Port {
    let mut port = port(number, true, addresses);
    let network = |address: &IpAddr| IpNetwork::of(*address, 24);
    port.networks = port.addresses.iter().map(network).collect();
    port
}

fn infiniband(number: u8, prefix: &str, sm_lid: u16, address: &str) -> Port {
    Port {
        link_layer: LinkLayer::InfiniBand,
        subnet_prefix: Some(prefix.to_owned()),
        sm_lid,
        ..port(number, true, &[address])
    }
}

fn device(name: &str, ports: Vec<Port>) -> Device {
    Device {
        name: name.to_owned(),
        node_guid: String::new(),
        adapter_guid: None,
        transport: Transport::InfiniBand,
        firmware: String::new(),
        driver: None,
        vendor: (0, 0),
        numa_node: None,
        pci_address: None,
        software: false,
        limits: DeviceLimits {
            max_queue_pairs: 1,
            max_queue_pair_work_requests: 1,
            max_completion_queue_entries: 1,
            completion_vectors: 1,
            max_outstanding_reads: 16,
            max_served_reads: 16,
            atomics: true,
            completion_timestamps: None,
            hardware_clock: None,
            max_shared_receive_queues: 0,
            max_shared_receive_requests: 0,
            on_demand_paging: Some(OnDemandPaging::default()),
        },
        ports,
    }
}

fn request(name: &str, port: Option<u8>, address: Option<&str>) -> PortRequest {
    PortRequest {
        device: name.to_owned(),
        port,
        address: address.map(|text| text.parse().unwrap()),
    }
}

fn of(usable: &[Device]) -> Devices {
    Devices {
        usable: usable.to_vec(),
        refused: Vec::new(),
    }
}

#[track_caller]
fn leads(pair: Result<PortPair, ChoiceError>, expected: [(&str, u8); 2]) {
    let pair = pair.unwrap();
    let found = [&pair.sender, &pair.receiver];
    let found = found.map(|end| (end.device.name.as_str(), end.port.number));
    assert_eq!(found, expected);
}

#[test]
fn two_devices_are_preferred_to_two_ports_of_one() {
    let first = port(1, true, &["10.0.0.1"]);
    let devices = [
        device("a", vec![first, port(2, true, &["10.0.0.2"])]),
        device(
            "b",
            vec![port(1, false, &["10.0.0.3"]), port(2, true, &["10.0.0.4"])],
        ),
    ];
    let both = of(&devices);
    leads(choose(&both, None, None), [("a", 1), ("b", 2)]);
    let one = of(&devices[..1]);
    leads(choose(&one, None, None), [("a", 1), ("a", 2)]);
    let receiver = request("a", None, None);
    let chosen = choose(&both, None, Some(&receiver));
    leads(chosen, [("b", 2), ("a", 1)]);
    // An address without a port number finds its port.
    let sender = request("a", None, Some("10.0.0.2"));
    let chosen = choose(&both, Some(&sender), None);
    leads(chosen, [("a", 2), ("b", 2)]);
}

#[test]
fn the_same_port_twice_only_if_named_twice() {
    let devices = of(&[device("a", vec![port(1, true, &["10.0.0.1"])])]);
    let named = request("a", Some(1), None);
    assert!(choose(&devices, Some(&named), Some(&named)).is_ok());
    for sender in [None, Some(&named)] {
        let error = choose(&devices, sender, None).unwrap_err().to_string();
        error.has(&["only one usable RDMA port (a port 1)"]);
    }
}

#[test]
fn two_ports_of_one_subnet_are_preferred_to_two_adapters() {
    let devices = of(&[
        device(
            "a",
            vec![in_network(1, &["10.0.0.1"]), in_network(2, &["10.0.1.2"])],
        ),
        device("b", vec![in_network(1, &["10.9.0.1"])]),
        device("c", vec![in_network(1, &["10.0.1.3"])]),
    ]);
    leads(choose(&devices, None, None), [("a", 2), ("c", 1)]);
    let sender = request("b", None, None);
    let pair = choose(&devices, Some(&sender), None).unwrap();
    assert_eq!(pair.receiver.name(), "a:1");
    let doubts = pair.doubts();
    doubts[0].problem.has(&["10.9.0.0/24 and 10.0.0.0/24"]);
    // Of a port without a number that which suits the other.
    let [sender, receiver] = [request("a", None, None), request("c", None, None)];
    let pair = choose(&devices, Some(&sender), Some(&receiver));
    assert_eq!(pair.as_ref().unwrap().doubts(), []);
    leads(pair, [("a", 2), ("c", 1)]);
}

#[test]
fn infiniband_subnets_are_told_by_prefix_and_subnet_manager() {
    let default = "fe80:0000:0000:0000";
    let a = device("a", vec![infiniband(1, default, 1, "10.0.0.1")]);
    let other = infiniband(1, "fe80:0000:0000:0007", 1, "10.0.0.2");
    let elsewhere = infiniband(1, default, 9, "10.0.0.3");
    let same = infiniband(1, default, 1, "10.0.0.4");
    let devices = [
        a,
        device("b", vec![other]),
        device("c", vec![elsewhere]),
        device("d", vec![same]),
    ];
    leads(choose(&of(&devices), None, None), [("a", 1), ("d", 1)]);
    for end in [1, 2] {
        let two = [devices[0].clone(), devices[end].clone()];
        let doubts = choose(&of(&two), None, None).unwrap().doubts();
        doubts[0].problem.has(&["different subnets (fe80:"]);
    }
}

#[test]
fn two_functions_of_one_physical_port_come_last_and_are_told() {
    let on = |name, physical: &str, address| {
        let mut port = in_network(1, &[address]);
        port.physical.physical_function = Some(physical.to_owned());
        device(name, vec![port])
    };
    let devices = [
        on("vf0", "0000:3b:00.0", "10.0.0.1"),
        on("vf1", "0000:3b:00.0", "10.0.0.2"),
        on("vf2", "0000:3b:00.1", "10.9.0.3"),
    ];
    // Another subnet is better than no wire.
    leads(choose(&of(&devices), None, None), [("vf0", 1), ("vf2", 1)]);
    let pair = choose(&of(&devices[..2]), None, None).unwrap();
    let doubts = pair.doubts();
    doubts[0]
        .problem
        .has(&["vf0:1 and vf1:1", "two functions of one physical port"]);
    assert_eq!(doubts.len(), 1);
}

#[test]
fn two_ports_of_one_virtual_function_are_two_ports() {
    let on = |number, address| {
        let mut port = in_network(number, &[address]);
        port.physical.physical_function = Some("0000:3b:00.0".to_owned());
        port
    };
    let both = device("vf0", vec![on(1, "10.0.0.1"), on(2, "10.0.0.2")]);
    let pair = choose(&of(&[both]), None, None).unwrap();
    assert_eq!(pair.doubts(), []);
    // Nor are the first port of one and the second of another one on one wire.
    let of_two = [
        device("vf0", vec![on(1, "10.0.0.1")]),
        device("vf1", vec![on(2, "10.0.0.2")]),
    ];
    let pair = choose(&of(&of_two), None, None).unwrap();
    assert_eq!(pair.doubts(), []);
}

#[test]
fn a_second_port_that_is_down_is_named_with_what_makes_it_active() {
    let devices = of(&[
        device("a", vec![port(1, true, &["10.0.0.1"])]),
        device("b", vec![port(1, false, &["10.0.0.3"])]),
    ]);
    let error = choose(&devices, None, None).unwrap_err().to_string();
    error.has(&[
        "only one usable RDMA port (a port 1)",
        "not active: b port 1 (down, 10.0.0.3); plug its cable in",
        "or name it by both",
    ]);
}

#[test]
fn a_bond_is_named_as_what_makes_one_port_of_two() {
    let mut port = in_network(1, &["10.0.0.1"]);
    port.physical.bond = Some("bond0".to_owned());
    let alone = of(&[device("mlx5_bond_0", vec![port])]);
    let error = choose(&alone, None, None).unwrap_err().to_string();
    error.has(&[
        "only one usable RDMA port (mlx5_bond_0 port 1)",
        "the bond bond0",
        "--peer",
    ]);
}

#[test]
fn what_makes_a_port_active_is_said_of_its_kind_and_state() {
    let infiniband = |state| Port {
        active: false,
        state,
        ..infiniband(1, "fe80:0000:0000:0000", 0, "10.0.0.1")
    };
    let down = |name: &str, port: Port| device(name, vec![port]);
    let refused = |devices: &[Device]| choose(&of(devices), None, None).unwrap_err().to_string();
    for (state, told) in [
        ("initialising", "start one on the switch"),
        ("armed", "start one on the switch"),
        ("down", "plug its InfiniBand cable in"),
        ("unknown", "plug its InfiniBand cable in"),
    ] {
        let text = refused(&[down("a", infiniband(state)), down("b", infiniband(state))]);
        assert_eq!(text.matches(told).count(), 1, "{text}");
        assert!(
            text.contains("opensm") && !text.contains("ip link"),
            "{text}"
        );
        let named = request("a", None, None);
        let text = choose(&of(&[down("a", infiniband(state))]), Some(&named), None);
        let text = text.unwrap_err().to_string();
        assert!(text.contains(told), "{text}");
    }
    let ethernet = refused(&[
        down("a", port(1, false, &[])),
        down("b", infiniband("down")),
    ]);
    assert!(
        ethernet.contains("ip link set DEV up") && ethernet.contains("opensm"),
        "{ethernet}"
    );
}

#[test]
fn two_adapters_are_preferred_to_two_devices_of_one_adapter() {
    let on = |name, adapter: &str, address| Device {
        adapter_guid: Some(adapter.to_owned()),
        ..device(name, vec![in_network(1, &[address])])
    };
    let devices = of(&[
        on("mlx5_0", "card0", "10.0.0.1"),
        on("mlx5_1", "card0", "10.0.0.2"),
        on("mlx5_2", "card1", "10.0.0.3"),
    ]);
    leads(choose(&devices, None, None), [("mlx5_0", 1), ("mlx5_2", 1)]);
    let one_card = of(&devices.usable[..2]);
    leads(
        choose(&one_card, None, None),
        [("mlx5_0", 1), ("mlx5_1", 1)],
    );
}

#[test]
fn ports_that_cannot_talk_are_passed_over_and_refused_where_they_are_named() {
    let iwarp = Device {
        transport: Transport::Iwarp,
        ..device("siw", vec![in_network(1, &["10.0.0.4"])])
    };
    let devices = [
        device(
            "ib",
            vec![infiniband(1, "fe80:0000:0000:0000", 1, "10.0.0.1")],
        ),
        device("v6", vec![in_network(1, &["fd00::1"])]),
        iwarp,
        device("both", vec![in_network(1, &["10.0.0.2", "fd00::2"])]),
        device("v4", vec![in_network(1, &["10.0.0.3"])]),
    ];
    // v6 and both come first, by the address that they have in common.
    let pair = choose(&of(&devices), None, None).unwrap();
    for end in [&pair.sender, &pair.receiver] {
        assert!(end.address.is_some_and(|address| address.is_ipv6()));
    }
    leads(Ok(pair), [("v6", 1), ("both", 1)]);
    for (sender, receiver, reason) in [
        ("ib", "v4", "one is InfiniBand, the other Ethernet"),
        (
            "v6",
            "v4",
            "the address fd00::1 is of another family than 10.0.0.3",
        ),
        ("v4", "siw", "only one of them is iWARP"),
    ] {
        let [sender, receiver] = [sender, receiver].map(|name| request(name, None, None));
        let error = choose(&of(&devices), Some(&sender), Some(&receiver)).unwrap_err();
        assert!(matches!(error, ChoiceError::Apart { .. }), "{error}");
        let begins = format!(
            "--sender {}:1 and --receiver {}:1 cannot communicate: {reason}",
            sender.device, receiver.device
        );
        assert!(error.to_string().starts_with(&begins), "{error}");
    }
    let two = [devices[0].clone(), devices[4].clone()];
    let error = choose(&of(&two), None, None).unwrap_err().to_string();
    let said = "no two usable RDMA ports can communicate; of ib:1 and v4:1, one is";
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn ports_without_addresses_are_a_pair_without_the_connection_manager() {
    let without = |name| device(name, vec![port(1, true, &[])]);
    let both = of(&[without("a"), without("b")]);
    let pair = choose(&both, None, None).unwrap();
    let reason = pair.without_address().unwrap();
    let expected = "--connect cm is impossible: a port 1 has no IP address";
    assert!(reason.starts_with(expected), "{reason}");
    assert_eq!(pair.receiver.request().to_string(), "b:1");
    assert_eq!(pair.doubts(), []);
    // Those with addresses come first, also where they are of one adapter.
    let one = device(
        "c",
        vec![port(1, true, &["10.0.0.1"]), port(2, true, &["10.0.0.2"])],
    );
    let pair = choose(&of(&[without("a"), without("b"), one]), None, None);
    assert_eq!(pair.as_ref().unwrap().without_address(), None);
    leads(pair, [("c", 1), ("c", 2)]);
}

#[test]
fn what_is_missing_is_named() {
    let devices = of(&[
        device("a", vec![port(1, false, &[])]),
        device("b", vec![port(1, false, &["10.0.0.3"])]),
    ]);
    choose(&of(&[]), None, None).refused(&["no RDMA device on this host"]);
    let error = choose(&devices, None, None).unwrap_err().to_string();
    error.has(&["no RDMA port is active: a port 1 (down, no address); b port 1 (down, 10.0.0.3)"]);
    let unknown = "--sender c: there is no device of that name; the devices are a, b";
    let elsewhere = "does not have the address 10.9.9.9; it has: 10.0.0.4";
    let devices = of(&[
        device("a", vec![port(1, true, &["10.0.0.4"])]),
        device("b", vec![port(1, false, &["10.0.0.3"])]),
    ]);
    for (name, number, address, said) in [
        ("c", None, None, unknown),
        ("b", None, None, "not active"),
        ("a", Some(3), None, "--sender a:3: a has 1 port(s)"),
        ("a", None, Some("10.9.9.9"), elsewhere),
    ] {
        let sender = request(name, number, address);
        let error = choose(&devices, Some(&sender), None).unwrap_err();
        assert!(matches!(error, ChoiceError::Named { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_device_that_cannot_be_opened_matters_only_if_it_is_named() {
    let refusal = VerbsError::code("ibv_open_device", "c", libc::EACCES);
    let mut devices = of(&[
        device("a", vec![port(1, true, &["10.0.0.1"])]),
        device("b", vec![port(1, true, &["10.0.0.2"])]),
    ]);
    devices.refused.push(("c".to_owned(), refusal));
    assert!(choose(&devices, None, None).is_ok());
    let receiver = request("c", None, None);
    let error = choose(&devices, None, Some(&receiver)).unwrap_err();
    let said = "--receiver c: ibv_open_device";
    assert!(error.to_string().contains(said), "{error}");
    devices.usable.clear();
    let error = choose(&devices, None, None).unwrap_err();
    assert!(error.to_string().contains("/dev/infiniband"), "{error}");
}
