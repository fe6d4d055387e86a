//! Which two ports a run uses.

mod missing;
mod one;
mod uc_route;

use std::net::IpAddr;

use serde_json::{Value, json};

use self::missing::{all_ports, how_to_activate, no_device, no_other, none_active};
pub use self::one::{choose_nth, choose_one};
pub use self::uc_route::choose_route;
use super::ports::{PortRequest, Service};
use crate::rdma::verbs::{Device, Devices, IpNetwork, LinkLayer, Port, ServiceType, Transport};
use crate::results::finding::Finding;
use crate::results::finding::kinds::{SUBNETS_DIFFER, WITHIN_ADAPTER};

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
    /// The ports that were named cannot communicate.
    #[error("--sender {sender} and --receiver {receiver} cannot communicate: {reason}")]
    Apart {
        sender: String,
        receiver: String,
        reason: String,
    },
    /// There are not two ports to choose.
    #[error("{0}")]
    TooFew(String),
}

/// The two ports of a run, with their devices.
#[derive(Debug, Clone)]
pub struct PortPair {
    pub sender: ChosenPort,
    pub receiver: ChosenPort,
}

/// A port of a device with the address to be used, if it has one; the connection manager needs it.
#[derive(Debug, Clone)]
pub struct ChosenPort {
    pub device: Device,
    pub port: Port,
    pub address: Option<IpAddr>,
}

/// How likely it is that packets pass from one port to another. The less, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reachability {
    SameSubnet,
    Unknown,
    OtherSubnet,
}

/// How much of the way the two ports have for themselves. The less, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Separation {
    Adapters,
    Devices,
    Ports,
    /// They are two functions on one wire, and what goes from one to the other never leaves the adapter.
    Functions,
    /// They are one port.
    Nothing,
}

impl ChosenPort {
    fn is_port_of(&self, other: &Self) -> bool {
        (&self.device.name, self.port.number) == (&other.device.name, other.port.number)
    }

    fn network(&self) -> Option<IpNetwork> {
        let mut places = self.port.addresses.iter().zip(&self.port.networks);
        let place = places.find(|(address, _)| Some(**address) == self.address);
        place.map(|(_, network)| *network)
    }

    fn name(&self) -> String {
        format!("{}:{}", self.device.name, self.port.number)
    }

    /// All of it, as `obtained.devices` of `settings.json` has it.
    pub fn details(&self) -> Value {
        json!({ "port": self.port.number, "address": self.address, "device": self.device })
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        let made_of = match (self.device.software, self.device.firmware.as_str()) {
            (true, _) => "software device".to_owned(),
            (false, "") => "firmware unknown".to_owned(),
            (false, firmware) => format!("firmware {firmware}"),
        };
        let iwarp = match self.device.transport {
            Transport::Iwarp => " (iWARP)",
            Transport::InfiniBand | Transport::Other => "",
        };
        let address = self.address.map(|address| format!(" at {address}"));
        format!(
            "{} port {}{}, {}{iwarp}, MTU {} B, {} Gbit/s, {made_of}",
            self.device.name,
            self.port.number,
            address.unwrap_or_default(),
            self.port.link_layer.name(),
            self.port.mtu,
            self.port.gigabits_per_second,
        )
    }

    /// As the command line has it.
    pub fn request(&self) -> PortRequest {
        PortRequest {
            device: self.device.name.clone(),
            port: Some(self.port.number),
            address: self.address,
        }
    }
}

impl PortPair {
    /// Why the two cannot communicate, if that is certain.
    fn obstacle(&self) -> Option<String> {
        let (sender, receiver) = (&self.sender, &self.receiver);
        let layers = [sender, receiver].map(|end| end.port.link_layer);
        let known = layers.iter().all(|layer| *layer != LinkLayer::Unspecified);
        if known && layers[0] != layers[1] {
            let [sender, receiver] = layers.map(LinkLayer::name);
            return Some(format!(
                "one is {sender}, the other {receiver}; name two ports of one kind (hcabench devices lists them)"
            ));
        }
        let [first, second] = [sender, receiver].map(|end| end.device.transport);
        if (first == Transport::Iwarp) != (second == Transport::Iwarp) {
            return Some("only one of them is iWARP; name two of one kind".to_owned());
        }
        let (sender, receiver) = sender.address.zip(receiver.address)?;
        (sender.is_ipv4() != receiver.is_ipv4()).then(|| {
            format!(
                "the address {sender} is of another family than {receiver}; give both ports IPv4 or both IPv6 addresses"
            )
        })
    }

    fn reach(&self) -> Reachability {
        let same = match self.sender.port.link_layer {
            LinkLayer::InfiniBand => {
                // Subnets without a configured prefix all have the default prefix; the subnet manager distinguishes
                // them.
                let subnet =
                    |end: &ChosenPort| Some((end.port.subnet_prefix.clone()?, end.port.sm_lid));
                subnet(&self.sender)
                    .zip(subnet(&self.receiver))
                    .map(|(one, other)| one == other)
            }
            LinkLayer::Ethernet | LinkLayer::Unspecified => {
                let networks = self.sender.network().zip(self.receiver.network());
                networks.map(|(one, other)| one == other)
            }
        };
        match same {
            Some(true) => Reachability::SameSubnet,
            None => Reachability::Unknown,
            Some(false) => Reachability::OtherSubnet,
        }
    }

    fn apart(&self) -> Separation {
        let (sender, receiver) = (&self.sender, &self.receiver);
        if sender.is_port_of(receiver) {
            return Separation::Nothing;
        }
        if sender.device.name == receiver.device.name {
            return Separation::Ports;
        }
        let functions =
            [sender, receiver].map(|end| (end.device.pci_address.as_deref(), end.port.number));
        let physical = &sender.port.physical;
        if physical.is_wire_of(&receiver.port.physical, functions) {
            return Separation::Functions;
        }
        let adapter = &sender.device.adapter_guid;
        if adapter.is_some() && *adapter == receiver.device.adapter_guid {
            Separation::Devices
        } else {
            Separation::Adapters
        }
    }

    /// Why the connection manager cannot connect the two.
    pub fn without_address(&self) -> Option<String> {
        let ends = [&self.sender, &self.receiver];
        without_address(ends.map(|end| (&*end.device.name, end.port.number, end.address)))
    }

    /// What makes it doubtful that messages take the wire: that the two are in one adapter, or that they do not talk to
    /// each other.
    pub fn doubts(&self) -> Vec<Finding> {
        let within = match self.apart() {
            Separation::Functions => Some("two functions of one physical port"),
            Separation::Nothing => Some("one port"),
            Separation::Adapters | Separation::Devices | Separation::Ports => None,
        };
        let within = within.map(|what| {
            let ends = [&self.sender, &self.receiver].map(ChosenPort::name);
            Finding::of(&WITHIN_ADAPTER)
                .name("ports", ends.join(" and "))
                .name("what", what)
        });
        within.into_iter().chain(self.other_subnets()).collect()
    }

    fn other_subnets(&self) -> Option<Finding> {
        (self.reach() == Reachability::OtherSubnet).then(|| {
            let (sender, receiver) = (&self.sender, &self.receiver);
            let subnets = match sender.port.link_layer {
                LinkLayer::InfiniBand => [sender, receiver].map(|end| {
                    let prefix = end.port.subnet_prefix.as_deref().unwrap_or("none");
                    format!(
                        "{prefix} with the subnet manager at LID {}",
                        end.port.sm_lid
                    )
                }),
                LinkLayer::Ethernet | LinkLayer::Unspecified => [sender, receiver].map(|end| {
                    let network = end.network().map(|network| network.to_string());
                    let address = end.address.map(|address| address.to_string());
                    network.or(address).unwrap_or_default()
                }),
            };
            Finding::of(&SUBNETS_DIFFER)
                .name(
                    "ports",
                    format!("{} and {}", sender.name(), receiver.name()),
                )
                .name("subnets", subnets.join(" and "))
        })
    }
}

/// Chooses the sending and the receiving port among those that were named, else among the active ports. Ports that
/// cannot communicate are no pair. Of the others the best is taken: first two with IP addresses, then two in the same
/// subnet, then two adapters before two devices of one adapter before two ports of one device, then the kernel's order. Two
/// functions of one physical port come last.
/// A port is both only if it was named twice.
///
/// # Errors
/// When a named port cannot be used, the named ones cannot communicate, or there are not two.
pub fn choose(
    all: &Devices,
    sender: Option<&PortRequest>,
    receiver: Option<&PortRequest>,
) -> Result<PortPair, ChoiceError> {
    let devices = all.usable.as_slice();
    if devices.is_empty() {
        return Err(ChoiceError::TooFew(match all.refused.first() {
            None => format!(
                "{}, until `hcabench devices` lists it, or run on SoftRoCE in a virtual machine with ci/hcabench",
                no_device()
            ),
            Some((_, reason)) => format!("no RDMA device of this host can be used: {reason}"),
        }));
    }
    let candidates = |option, request: Option<&PortRequest>| match request {
        Some(request) => find(all, option, request),
        None => Ok(usable_ports(devices)),
    };
    let senders = candidates("--sender", sender)?;
    let receivers = candidates("--receiver", receiver)?;
    let both_named = sender.is_some() && receiver.is_some();
    let pairs = senders.iter().flat_map(|sender| {
        let with = |receiver: &ChosenPort| PortPair {
            sender: sender.clone(),
            receiver: receiver.clone(),
        };
        receivers.iter().map(with)
    });
    let pairs: Vec<PortPair> = pairs
        .filter(|pair| both_named || pair.apart() != Separation::Nothing)
        .collect();
    // The first of those that are equally good.
    let possible = pairs.iter().filter(|pair| pair.obstacle().is_none());
    let rank = |pair: &&PortPair| {
        let apart = pair.apart();
        let within_adapter = apart >= Separation::Functions;
        (
            within_adapter,
            pair.without_address().is_some(),
            pair.reach(),
            apart,
        )
    };
    if let Some(best) = possible.min_by_key(rank) {
        return Ok(best.clone());
    }
    let Some((pair, reason)) = pairs
        .first()
        .and_then(|pair| Some((pair, pair.obstacle()?)))
    else {
        return Err(ChoiceError::TooFew(
            match senders.first().or(receivers.first()) {
                Some(only) => no_other(only, devices),
                None => none_active(devices),
            },
        ));
    };
    let (sender, receiver) = (pair.sender.name(), pair.receiver.name());
    Err(if both_named {
        ChoiceError::Apart {
            sender,
            receiver,
            reason,
        }
    } else {
        ChoiceError::TooFew(format!(
            "no two usable RDMA ports can communicate; of {sender} and {receiver}, {reason}"
        ))
    })
}

/// Each way to an active port.
fn usable_ports(devices: &[Device]) -> Vec<ChosenPort> {
    let active = all_ports(devices).filter(|(_, port)| port.active);
    active
        .flat_map(|(device, port)| ways_to(device, port))
        .collect()
}

/// A way is an address; the only one to a port that has none is without.
fn ways_to(device: &Device, port: &Port) -> Vec<ChosenPort> {
    let by = |address: Option<IpAddr>| ChosenPort {
        device: device.clone(),
        port: port.clone(),
        address,
    };
    match port.addresses.as_slice() {
        [] => vec![by(None)],
        addresses => addresses.iter().map(|address| by(Some(*address))).collect(),
    }
}

fn find(
    all: &Devices,
    option: &'static str,
    request: &PortRequest,
) -> Result<Vec<ChosenPort>, ChoiceError> {
    let value = match request.port {
        Some(port) => format!("{}:{port}", request.device),
        None => request.device.clone(),
    };
    let unusable = |reason| ChoiceError::Named {
        option,
        value,
        reason,
    };
    named(all, request).map_err(unusable)
}

/// The ways to the port that was asked for, or why there is none. Without a number they are those to all ports of the
/// device that can be used.
fn named(all: &Devices, request: &PortRequest) -> Result<Vec<ChosenPort>, String> {
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
    let is_asked_for = |port: &&Port| request.port.is_none_or(|number| port.number == number);
    let ports = || device.ports.iter().filter(is_asked_for);
    let has_address = |way: &ChosenPort| {
        let asked_for = request.address;
        asked_for.is_none_or(|address| way.address == Some(address))
    };
    let active = ports().filter(|port| port.active);
    let ways: Vec<_> = active
        .flat_map(|port| ways_to(device, port))
        .filter(has_address)
        .collect();
    if !ways.is_empty() {
        return Ok(ways);
    }
    // Of several, the one that comes closest.
    let has_it = |port: &&Port| match request.address {
        Some(address) => port.addresses.contains(&address),
        None => port.active,
    };
    let port = ports().find(has_it).or(ports().next()).ok_or_else(|| {
        let (name, count) = (&device.name, device.ports.len());
        format!("{name} has {count} port(s), counted from 1")
    })?;
    let number = port.number;
    if !port.active {
        let state = port.state;
        let advice = how_to_activate(port);
        return Err(format!("port {number} is {state}, not active: {advice}"));
    }
    let there: Vec<_> = port.addresses.iter().map(ToString::to_string).collect();
    let there = match there.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    let address = request.address.map(|address| address.to_string());
    let address = address.unwrap_or_default();
    Err(format!(
        "port {number} does not have the address {address}; it has: {there}"
    ))
}

/// Why the connection manager cannot connect two ports, of which the device, the number and the address are given.
pub fn without_address(ends: [(&str, u8, Option<IpAddr>); 2]) -> Option<String> {
    let (device, port, _) = ends.into_iter().find(|(.., address)| address.is_none())?;
    Some(format!(
        "--connect cm is impossible: {device} port {port} has no IP address, which the connection manager needs: give its \
         network interface one (ip address add), or use --connect direct"
    ))
}

impl From<Service> for ServiceType {
    fn from(service: Service) -> Self {
        match service {
            Service::Rc => ServiceType::ReliableConnection,
            Service::Uc => ServiceType::UnreliableConnection,
            Service::Ud => ServiceType::UnreliableDatagram,
        }
    }
}

#[cfg(test)]
mod tests;
