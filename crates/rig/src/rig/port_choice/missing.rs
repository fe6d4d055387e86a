//! Why there are not two ports, and what to do: no device, no second port, ports that are not active.

use std::path::Path;

use super::ChosenPort;
use crate::rdma::verbs::{Device, LinkLayer, Port};

/// Why there is no device, and what to do.
pub(super) fn no_device() -> &'static str {
    match Path::new("/sys/class").is_dir() {
        true => "no RDMA device on this host (libibverbs finds none): load its driver",
        false => "no RDMA device can be found without /sys: mount it (mount -t sysfs sysfs /sys)",
    }
}

/// That there is no second port beside this one, and what to do.
pub(super) fn no_other(only: &ChosenPort, devices: &[Device]) -> String {
    let advice = match &only.port.physical.bond {
        None => "name it by both --sender and --receiver for the way within the adapter".to_owned(),
        Some(bond) => format!(
            "it is the bond {bond}, which makes one device of several ports: take the bond apart to measure between \
             them, or measure to another host by --peer"
        ),
    };
    let (device, number) = (&only.device.name, only.port.number);
    let two = format!("only one usable RDMA port ({device} port {number}), and two are needed");
    match inactive(devices) {
        Some(inactive) => format!("{two}; not active: {inactive}; or {advice}"),
        None => format!("{two}: {advice}"),
    }
}

/// That no port is active, and what to do about each kind of them.
pub(super) fn none_active(devices: &[Device]) -> String {
    let all = inactive(devices).unwrap_or_default();
    format!("no RDMA port is active: {all}")
}

/// The ports that are not active, and what makes each kind of them active; none where all are.
fn inactive(devices: &[Device]) -> Option<String> {
    let (mut ports, mut advice) = (Vec::new(), Vec::new());
    for (device, port) in all_ports(devices).filter(|(_, port)| !port.active) {
        let address = port.addresses.first().map(ToString::to_string);
        let address = address.as_deref().unwrap_or("no address");
        let (name, number, state) = (&device.name, port.number, port.state);
        ports.push(format!("{name} port {number} ({state}, {address})"));
        let of_port = how_to_activate(port);
        if !advice.contains(&of_port) {
            advice.push(of_port);
        }
    }
    let (ports, advice) = (ports.join("; "), advice.join("; "));
    (!ports.is_empty()).then(|| format!("{ports}; {advice}"))
}

/// What makes a port active. Of InfiniBand a subnet manager does (InfiniBand Architecture Specification, volume 1,
/// 14.4): until it has come the link is up, and the port initialising or armed.
pub(super) fn how_to_activate(port: &Port) -> &'static str {
    match (port.link_layer, port.state) {
        (LinkLayer::InfiniBand, "initialising" | "armed") => {
            "its InfiniBand link is up, and no subnet manager has set it up: start one on the switch or on a host (opensm; \
             for two ports that are cabled to each other, opensm -g with the port GUID of one)"
        }
        (LinkLayer::InfiniBand, _) => {
            "plug its InfiniBand cable in, and see that a subnet manager (opensm) runs on the switch or on a host"
        }
        _ => "plug its cable in, and bring its network interface up (ip link set DEV up)",
    }
}

pub(super) fn all_ports(devices: &[Device]) -> impl Iterator<Item = (&Device, &Port)> {
    devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
}
