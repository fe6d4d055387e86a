//! Which two ports a run uses.

use super::config::PortRequest;
use super::endpoints::EndPort;
use crate::rdma::verbs::{Device, Devices, Port};

/// Why no pair of ports can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// There is no device at all.
    #[error(
        "no RDMA device on this host (libibverbs finds none): load the driver, check with `hcabench devices`, or run on \
         SoftRoCE in a virtual machine with ci/hcabench"
    )]
    NoDevice,
    /// There are devices, and none can be opened.
    #[error("no RDMA device of this host can be used: {reason}")]
    Refused {
        /// The first one's reason.
        reason: String,
    },
    /// No active port with an address.
    #[error(
        "no RDMA port is active and has an IP address: {found}; bring a port up (ip link set DEV up, ip address add)"
    )]
    NoUsablePort {
        /// What there is.
        found: String,
    },
    /// Only one port where two are needed.
    #[error(
        "only one usable RDMA port ({found}): two are needed; name both by --sender and --receiver, also if they are to \
         be the same one"
    )]
    OnlyOne {
        /// The port.
        found: String,
    },
    /// A device that was named does not exist.
    #[error("{option} {value}: there is no device of that name; the devices are {devices}")]
    UnknownDevice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        devices: String,
    },
    /// A port that was named does not exist or is not active.
    #[error("{option} {value}: {reason}")]
    UnusablePort {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        reason: String,
    },
}

/// The two ports of a run, with their devices.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The sending end.
    pub sender: ChosenPort,
    /// The receiving end.
    pub receiver: ChosenPort,
}

/// A port of a device with the address to be used.
#[derive(Debug, Clone)]
pub struct ChosenPort {
    /// The device.
    pub device: Device,
    /// The port.
    pub port: Port,
    /// The address.
    pub address: std::net::IpAddr,
}

impl ChosenPort {
    /// What the connection manager is told of it.
    pub fn end(&self) -> EndPort {
        EndPort {
            device: self.device.name.clone(),
            port: self.port.number,
            address: self.address,
        }
    }
}

/// Chooses the sending and the receiving port: those that were named, else the first two active ports with an IP
/// address, on two devices if there are two.
///
/// # Errors
/// When there are no such ports, with what there is.
pub fn choose(
    all: &Devices,
    sender: Option<&PortRequest>,
    receiver: Option<&PortRequest>,
) -> Result<Pair, ChoiceError> {
    let devices = all.usable.as_slice();
    if devices.is_empty() {
        return Err(match all.refused.first() {
            None => ChoiceError::NoDevice,
            Some((_, error)) => ChoiceError::Refused {
                reason: error.to_string(),
            },
        });
    }
    for (option, request) in [("--sender", sender), ("--receiver", receiver)] {
        let named =
            |(name, _): &&(String, _)| request.is_some_and(|request| request.device == *name);
        if let Some((_, error)) = all.refused.iter().find(named) {
            return Err(ChoiceError::UnusablePort {
                option,
                value: request.map_or_else(String::new, |request| request.device.clone()),
                reason: error.to_string(),
            });
        }
    }
    let named_sender = sender
        .map(|request| find(devices, "--sender", request))
        .transpose()?;
    let named_receiver = receiver
        .map(|request| find(devices, "--receiver", request))
        .transpose()?;
    let usable = usable_ports(devices);
    let other_than = |taken: &ChosenPort| {
        let is_taken = |end: &&ChosenPort| {
            end.device.name == taken.device.name && end.port.number == taken.port.number
        };
        let elsewhere = usable
            .iter()
            .find(|end| end.device.name != taken.device.name);
        let free = elsewhere.or_else(|| usable.iter().find(|end| !is_taken(end)));
        free.cloned().ok_or_else(|| ChoiceError::OnlyOne {
            found: format!("{} port {}", taken.device.name, taken.port.number),
        })
    };
    let (sender, receiver) = match (named_sender, named_receiver) {
        (Some(sender), Some(receiver)) => (sender, receiver),
        (Some(sender), None) => {
            let receiver = other_than(&sender)?;
            (sender, receiver)
        }
        (None, Some(receiver)) => (other_than(&receiver)?, receiver),
        (None, None) => {
            let first = usable
                .first()
                .cloned()
                .ok_or_else(|| ChoiceError::NoUsablePort {
                    found: describe_all(devices),
                })?;
            let second = other_than(&first)?;
            (first, second)
        }
    };
    Ok(Pair { sender, receiver })
}

fn usable_ports(devices: &[Device]) -> Vec<ChosenPort> {
    let mut usable = Vec::new();
    for device in devices {
        for port in &device.ports {
            if let (true, Some(&address)) = (port.active, port.addresses.first()) {
                usable.push(ChosenPort {
                    device: device.clone(),
                    port: port.clone(),
                    address,
                });
            }
        }
    }
    usable
}

fn find(
    devices: &[Device],
    option: &'static str,
    request: &PortRequest,
) -> Result<ChosenPort, ChoiceError> {
    let value = match request.port {
        Some(port) => format!("{}:{port}", request.device),
        None => request.device.clone(),
    };
    let unusable = |reason: String| ChoiceError::UnusablePort {
        option,
        value: value.clone(),
        reason,
    };
    let device = devices
        .iter()
        .find(|device| device.name == request.device)
        .ok_or_else(|| ChoiceError::UnknownDevice {
            option,
            value: value.clone(),
            devices: names(devices),
        })?;
    let port = match request.port {
        Some(number) => device
            .ports
            .iter()
            .find(|port| port.number == number)
            .ok_or_else(|| {
                unusable(format!(
                    "{} has {} port(s), counted from 1",
                    device.name,
                    device.ports.len()
                ))
            })?,
        None => {
            let good = |port: &&Port| match request.address {
                Some(address) => port.addresses.contains(&address),
                None => port.active && !port.addresses.is_empty(),
            };
            let first = device.ports.iter().find(good).or(device.ports.first());
            first.ok_or_else(|| unusable("the device has no port".to_owned()))?
        }
    };
    if !port.active {
        return Err(unusable(format!(
            "port {} is {}, not active: bring it up",
            port.number, port.state
        )));
    }
    let address = match request.address {
        Some(address) if port.addresses.contains(&address) => address,
        Some(address) => {
            let there: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
            return Err(unusable(format!(
                "port {} does not have the address {address}; it has: {}",
                port.number,
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            )));
        }
        None => *port.addresses.first().ok_or_else(|| {
            unusable(format!(
                "port {} has no IP address, which the connection manager needs: give its network interface one \
                 (ip address add)",
                port.number
            ))
        })?,
    };
    Ok(ChosenPort {
        device: device.clone(),
        port: port.clone(),
        address,
    })
}

fn names(devices: &[Device]) -> String {
    devices
        .iter()
        .map(|device| device.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn describe_all(devices: &[Device]) -> String {
    let mut parts = Vec::new();
    for device in devices {
        for port in &device.ports {
            let address = port
                .addresses
                .first()
                .map_or("no address".to_owned(), ToString::to_string);
            parts.push(format!(
                "{} port {} ({}, {address})",
                device.name, port.number, port.state
            ));
        }
    }
    parts.join("; ")
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
            software: false,
            limits: DeviceLimits {
                max_queue_pair_work_requests: 1,
                max_completion_queue_entries: 1,
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

    fn ends(pair: &Pair) -> [(String, u8); 2] {
        [&pair.sender, &pair.receiver].map(|end| (end.device.name.clone(), end.port.number))
    }

    #[test]
    fn two_devices_are_preferred_to_two_ports_of_one() {
        let devices = [
            device(
                "a",
                vec![port(1, true, &["10.0.0.1"]), port(2, true, &["10.0.0.2"])],
            ),
            device(
                "b",
                vec![port(1, false, &["10.0.0.3"]), port(2, true, &["10.0.0.4"])],
            ),
        ];
        let pair = choose(&of(&devices), None, None).unwrap();
        assert_eq!(ends(&pair), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let pair = choose(&of(&devices[..1]), None, None).unwrap();
        assert_eq!(ends(&pair), [("a".to_owned(), 1), ("a".to_owned(), 2)]);
        let pair = choose(&of(&devices), None, Some(&request("a", None, None))).unwrap();
        assert_eq!(ends(&pair), [("b".to_owned(), 2), ("a".to_owned(), 1)]);
    }

    #[test]
    fn the_same_port_twice_only_if_named_twice() {
        let devices = [device("a", vec![port(1, true, &["10.0.0.1"])])];
        let named = request("a", Some(1), None);
        assert!(choose(&of(&devices), Some(&named), Some(&named)).is_ok());
        assert!(matches!(
            choose(&of(&devices), None, None),
            Err(ChoiceError::OnlyOne { .. })
        ));
        assert!(matches!(
            choose(&of(&devices), Some(&named), None),
            Err(ChoiceError::OnlyOne { .. })
        ));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(
            choose(&of(&[]), None, None).unwrap_err(),
            ChoiceError::NoDevice
        );
        let devices = [
            device("a", vec![port(1, true, &[])]),
            device("b", vec![port(1, false, &["10.0.0.3"])]),
        ];
        let text = |sender: Option<&PortRequest>| {
            choose(&of(&devices), sender, None).unwrap_err().to_string()
        };
        assert!(text(None).contains("a port 1 (active, no address); b port 1 (down, 10.0.0.3)"));
        assert!(text(Some(&request("c", None, None))).contains("--sender c: there is no device"));
        assert!(text(Some(&request("a", None, None))).contains("no IP address"));
        assert!(text(Some(&request("b", None, None))).contains("not active"));
        assert!(text(Some(&request("a", Some(3), None))).contains("a has 1 port(s)"));
        assert!(
            text(Some(&request("a", None, Some("10.9.9.9"))))
                .contains("does not have the address 10.9.9.9")
        );
    }

    #[test]
    fn a_device_that_cannot_be_opened_matters_only_if_it_is_named() {
        let refusal = || VerbsError::code("ibv_open_device", "c", libc::EACCES);
        let mut devices = of(&[
            device("a", vec![port(1, true, &["10.0.0.1"])]),
            device("b", vec![port(1, true, &["10.0.0.2"])]),
        ]);
        devices.refused.push(("c".to_owned(), refusal()));
        assert!(choose(&devices, None, None).is_ok());
        let error = choose(&devices, None, Some(&request("c", None, None))).unwrap_err();
        assert!(
            error.to_string().contains("--receiver c: ibv_open_device"),
            "{error}"
        );
        devices.usable.clear();
        let error = choose(&devices, None, None).unwrap_err();
        assert!(error.to_string().contains("/dev/infiniband"), "{error}");
    }

    #[test]
    fn an_address_without_a_port_number_finds_its_port() {
        let devices = of(&[
            device(
                "a",
                vec![port(1, true, &["10.0.0.1"]), port(2, true, &["10.0.0.2"])],
            ),
            device("b", vec![port(1, true, &["10.0.0.3"])]),
        ]);
        let pair = choose(&devices, Some(&request("a", None, Some("10.0.0.2"))), None).unwrap();
        assert_eq!(ends(&pair)[0], ("a".to_owned(), 2));
    }
}
