//! Which two ports a run uses.

use super::config::PortRequest;
use crate::rdma::verbs::{Device, Devices, Port};

/// Why no pair of ports can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// What was named does not exist or cannot be used.
    #[error("{option} {value}: {reason}")]
    Named {
        option: &'static str,
        value: String,
        reason: String,
    },
    /// There are not two ports to choose.
    #[error("{0}")]
    TooFew(String),
}

/// The two ports of a run, with their devices.
#[derive(Debug, Clone)]
pub struct Pair {
    pub sender: ChosenPort,
    pub receiver: ChosenPort,
}

/// A port of a device with the address to be used.
#[derive(Debug, Clone)]
pub struct ChosenPort {
    pub device: Device,
    pub port: Port,
    pub address: std::net::IpAddr,
}

/// Chooses the sending and the receiving port: those that were named, else the first two active ports with an IP
/// address, on two devices if there are two.
pub fn choose(
    all: &Devices,
    sender: Option<&PortRequest>,
    receiver: Option<&PortRequest>,
) -> Result<Pair, ChoiceError> {
    let devices = all.usable.as_slice();
    if devices.is_empty() {
        return Err(ChoiceError::TooFew(match all.refused.first() {
            None => "no RDMA device on this host (libibverbs finds none): load the driver, check with `hcabench \
                     devices`, or run on SoftRoCE in a virtual machine with ci/hcabench"
                .to_owned(),
            Some((_, reason)) => format!("no RDMA device of this host can be used: {reason}"),
        }));
    }
    let named = |option, request: Option<&PortRequest>| {
        let found = request.map(|request| find(all, option, request));
        found.transpose()
    };
    let usable = usable_ports(devices);
    let other_than = |taken: &ChosenPort| {
        let is_elsewhere = |end: &&ChosenPort| end.device.name != taken.device.name;
        let is_free = |end: &&ChosenPort| is_elsewhere(end) || end.port.number != taken.port.number;
        let free = usable.iter().find(is_elsewhere);
        let free = free.or_else(|| usable.iter().find(is_free));
        free.cloned().ok_or_else(|| {
            ChoiceError::TooFew(format!(
                "only one usable RDMA port ({} port {}): two are needed; name both by --sender and --receiver, also if \
                 they are to be the same one",
                taken.device.name, taken.port.number
            ))
        })
    };
    let first = || {
        let found = usable.first().cloned();
        found.ok_or_else(|| {
            ChoiceError::TooFew(format!(
                "no RDMA port is active and has an IP address: {}; bring a port up (ip link set DEV up, ip address \
                 add)",
                describe_all(devices)
            ))
        })
    };
    let (sender, receiver) = match (named("--sender", sender)?, named("--receiver", receiver)?) {
        (Some(sender), Some(receiver)) => (sender, receiver),
        (None, Some(receiver)) => (other_than(&receiver)?, receiver),
        (sender, None) => {
            let sender = sender.map_or_else(first, Ok)?;
            let receiver = other_than(&sender)?;
            (sender, receiver)
        }
    };
    Ok(Pair { sender, receiver })
}

fn usable_ports(devices: &[Device]) -> Vec<ChosenPort> {
    let chosen = |(device, port): (&Device, &Port)| {
        let address = port.addresses.first().filter(|_| port.active)?;
        Some(ChosenPort {
            device: device.clone(),
            port: port.clone(),
            address: *address,
        })
    };
    all_ports(devices).filter_map(chosen).collect()
}

fn find(
    all: &Devices,
    option: &'static str,
    request: &PortRequest,
) -> Result<ChosenPort, ChoiceError> {
    let value = match request.port {
        Some(port) => format!("{}:{port}", request.device),
        None => request.device.clone(),
    };
    let unusable = |reason| ChoiceError::Named {
        option,
        value,
        reason,
    };
    chosen(all, request).map_err(unusable)
}

/// The port that was asked for, or why not.
fn chosen(all: &Devices, request: &PortRequest) -> Result<ChosenPort, String> {
    if let Some((_, error)) = all.refused.iter().find(|(name, _)| *name == request.device) {
        return Err(error.to_string());
    }
    let mut devices = all.usable.iter();
    let device = devices
        .find(|device| device.name == request.device)
        .ok_or_else(|| {
            let names: Vec<_> = all.usable.iter().map(|one| one.name.as_str()).collect();
            let names = names.join(", ");
            format!("there is no device of that name; the devices are {names}")
        })?;
    let ports = &device.ports;
    let port = match request.port {
        Some(number) => ports.iter().find(|port| port.number == number),
        None => {
            let good = |port: &&Port| match request.address {
                Some(address) => port.addresses.contains(&address),
                None => port.active && !port.addresses.is_empty(),
            };
            ports.iter().find(good).or(ports.first())
        }
    };
    let port = port.ok_or_else(|| {
        let (name, count) = (&device.name, ports.len());
        format!("{name} has {count} port(s), counted from 1")
    })?;
    if !port.active {
        let (number, state) = (port.number, port.state);
        return Err(format!("port {number} is {state}, not active: bring it up"));
    }
    let address = request.address.or(port.addresses.first().copied());
    let address = address.ok_or_else(|| {
        format!(
            "port {} has no IP address, which the connection manager needs: give its network interface one (ip address \
             add)",
            port.number
        )
    })?;
    if !port.addresses.contains(&address) {
        let there: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
        let there = match there.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let number = port.number;
        return Err(format!(
            "port {number} does not have the address {address}; it has: {there}"
        ));
    }
    Ok(ChosenPort {
        device: device.clone(),
        port: port.clone(),
        address,
    })
}

fn describe_all(devices: &[Device]) -> String {
    let describe = |(device, port): (&Device, &Port)| {
        let address = port.addresses.first().map(ToString::to_string);
        let address = address.as_deref().unwrap_or("no address");
        let (name, number, state) = (&device.name, port.number, port.state);
        format!("{name} port {number} ({state}, {address})")
    };
    let all: Vec<_> = all_ports(devices).map(describe).collect();
    all.join("; ")
}

fn all_ports(devices: &[Device]) -> impl Iterator<Item = (&Device, &Port)> {
    devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::verbs::{DeviceLimits, LinkLayer, VerbsError};

    fn port(number: u8, active: bool, addresses: &[&str]) -> Port {
        Port {
            number,
            active,
            state: if active { "active" } else { "down" },
            link_layer: LinkLayer::Ethernet,
            mtu: 1024,
            max_message: 1 << 30,
            lid: 0,
            partition_keys: 1,
            gigabits_per_second: 100.0,
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    fn device(name: &str, ports: Vec<Port>) -> Device {
        Device {
            name: name.to_owned(),
            node_guid: String::new(),
            firmware: String::new(),
            vendor: (0, 0),
            numa_node: None,
            pci_address: None,
            software: false,
            limits: DeviceLimits {
                max_queue_pair_work_requests: 1,
                max_completion_queue_entries: 1,
                completion_vectors: 1,
                completion_timestamps: None,
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

    /// Asserts device and port of sender and receiver.
    #[track_caller]
    fn leads(pair: Result<Pair, ChoiceError>, expected: [(&str, u8); 2]) {
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
            assert!(
                error.contains("only one usable RDMA port (a port 1)"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let devices = of(&[
            device("a", vec![port(1, true, &[])]),
            device("b", vec![port(1, false, &["10.0.0.3"])]),
        ]);
        let error = choose(&of(&[]), None, None).unwrap_err().to_string();
        assert!(error.contains("no RDMA device on this host"), "{error}");
        let error = choose(&devices, None, None).unwrap_err().to_string();
        let both = "a port 1 (active, no address); b port 1 (down, 10.0.0.3)";
        assert!(error.contains(both), "{error}");
        let unknown = "--sender c: there is no device of that name; the devices are a, b";
        let elsewhere = "does not have the address 10.9.9.9; it has: none";
        for (name, number, address, said) in [
            ("c", None, None, unknown),
            ("a", None, None, "no IP address"),
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
}
