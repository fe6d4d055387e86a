//! Which wire a port is on: several functions of an adapter may share one, and a bond has several.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// What sysfs has of the wire of a port (Documentation/ABI/testing/sysfs-class-net and sysfs-bus-pci of the kernel).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PhysicalPort {
    /// The driver's identifier of it: that of all functions on one wire is the same (`phys_port_id`).
    pub identifier: Option<String>,
    /// The PCI address of the physical function whose virtual function the device is (`physfn`).
    pub physical_function: Option<String>,
    /// The bond of network interfaces that the port is (`bonding`).
    pub bond: Option<String>,
}

impl PhysicalPort {
    /// That of a port with these network interfaces. `class` is `/sys/class`.
    pub(super) fn read<'a>(
        class: &Path,
        device: &str,
        interfaces: impl Iterator<Item = &'a String>,
    ) -> Self {
        let physical =
            fs::canonicalize(class.join("infiniband").join(device).join("device/physfn"));
        let mut found = PhysicalPort {
            physical_function: physical
                .ok()
                .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            ..PhysicalPort::default()
        };
        for interface in interfaces {
            let folder = class.join("net").join(interface);
            let identifier = fs::read_to_string(folder.join("phys_port_id")).ok();
            let identifier = identifier.map(|text| text.trim().to_owned());
            let identifier = identifier.filter(|text| !text.is_empty());
            found.identifier = found.identifier.or(identifier);
            if found.bond.is_none() && folder.join("bonding").is_dir() {
                found.bond = Some(interface.clone());
            }
        }
        found
    }

    /// Whether it is certain that ports of two devices are on one wire: what goes from one to the other is switched
    /// within the adapter. `functions` are the PCI addresses of the devices, and the numbers of the ports.
    pub fn is_wire_of(&self, other: &Self, functions: [(Option<&str>, u8); 2]) -> bool {
        if let (Some(one), Some(other)) = (&self.identifier, &other.identifier) {
            return one == other;
        }
        // A function may have both ports of its adapter (mlx4).
        let [(one, number), (another, number_of_another)] = functions;
        if number != number_of_another {
            return false;
        }
        let virtual_ones = [&self.physical_function, &other.physical_function];
        if virtual_ones == [&None, &None] {
            return false;
        }
        let root = |physical: &Option<String>, own: Option<&str>| {
            physical.clone().or_else(|| own.map(str::to_owned))
        };
        let root_of_one = root(&self.physical_function, one);
        root_of_one.is_some() && root_of_one == root(&other.physical_function, another)
    }
}

/// The network interfaces of a port whose statistics of the physical port count each packet that leaves it: those of an
/// Ethernet port that the device has as a physical function. The interface of a bond has one wire of several, IPoIB has
/// the statistics of an Ethernet that is not there (mlx5), and TCP, which iWARP uses, puts messages together.
/// `interfaces` are all interfaces of the port.
pub(super) fn on_wire(
    class: &Path,
    (device, port): (&str, u8),
    interfaces: BTreeSet<String>,
) -> BTreeSet<String> {
    let folder = class.join("infiniband").join(device);
    let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let is_ethernet = text(&format!("ports/{port}/link_layer")).trim() == "Ethernet";
    let physical = PhysicalPort::read(class, device, interfaces.iter());
    let bonded = |interface: &String| {
        let master = class.join("net").join(interface).join("master");
        master.join("bonding").is_dir()
    };
    let one_wire = physical.bond.is_none() && !interfaces.iter().any(bonded);
    match is_ethernet && one_wire && physical.physical_function.is_none() {
        true if !text("node_type").contains("RNIC") => interfaces,
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::port_address::interfaces_of;
    use super::*;
    use crate::testing::put;

    #[test]
    fn statistics_of_the_wire_are_those_of_an_ethernet_port_with_one() {
        let those = |link_layer: &str, more: &[(&str, &str)]| {
            let class = tempfile::tempdir().unwrap();
            let port = "infiniband/mlx5_0/ports/1";
            put(&class, &format!("{port}/link_layer"), link_layer);
            put(&class, &format!("{port}/gid_attrs/ndevs/0"), "eth0\n");
            put(&class, "net/eth0/address", "52:54:00:77:ab:01\n");
            for (path, text) in more {
                put(&class, path, text);
            }
            let interfaces = interfaces_of(class.path(), "mlx5_0", 1, None);
            on_wire(class.path(), ("mlx5_0", 1), interfaces)
        };
        let ethernet = "Ethernet\n";
        assert!(those(ethernet, &[]).iter().eq(["eth0"]));
        for (link_layer, path, text) in [
            ("InfiniBand\n", "net/eth0/mtu", "2044\n"),
            ("", "net/eth0/mtu", "1500\n"),
            (ethernet, "infiniband/mlx5_0/device/physfn/vendor", ""),
            (ethernet, "infiniband/mlx5_0/node_type", "4: RNIC\n"),
            (ethernet, "net/eth0/bonding/mode", ""),
            (ethernet, "net/eth0/master/bonding/mode", ""),
        ] {
            let found = those(link_layer, &[(path, text)]);
            assert!(found.is_empty(), "{link_layer} {path}: {found:?}");
        }
        // A bridge has one wire as well.
        let bridged = those(ethernet, &[("net/eth0/master/bridge/bridge_id", "")]);
        assert_eq!(bridged.len(), 1);
    }

    #[test]
    fn a_bond_a_virtual_function_and_the_identifier_of_the_wire_are_read() {
        let class = tempfile::tempdir().unwrap();
        put(&class, "net/bond0/bonding/mode", "802.3ad 4\n");
        put(&class, "net/eth1/phys_port_id", "0c42a1000001\n");
        put(&class, "pci/0000:3b:00.0/vendor", "0x15b3\n");
        put(&class, "pci/0000:3b:00.2/vendor", "0x15b3\n");
        put(&class, "infiniband/mlx5_2/node_type", "1: CA\n");
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(class.path().join(to), class.path().join(at)).unwrap();
        };
        link("pci/0000:3b:00.0", "pci/0000:3b:00.2/physfn");
        link("pci/0000:3b:00.2", "infiniband/mlx5_2/device");
        let read = |device: &str, interface: &str| {
            PhysicalPort::read(class.path(), device, [interface.to_owned()].iter())
        };
        assert_eq!(read("mlx5_bond_0", "bond0").bond.as_deref(), Some("bond0"));
        let of_function = read("mlx5_2", "eth1");
        let expected = PhysicalPort {
            identifier: Some("0c42a1000001".to_owned()),
            physical_function: Some("0000:3b:00.0".to_owned()),
            bond: None,
        };
        assert_eq!(of_function, expected);
        assert_eq!(read("none", "none"), PhysicalPort::default());
    }

    #[test]
    fn functions_of_one_physical_function_are_on_one_wire() {
        let of = |identifier: &str, physical: &str| PhysicalPort {
            identifier: Some(identifier.to_owned()).filter(|text| !text.is_empty()),
            physical_function: Some(physical.to_owned()).filter(|text| !text.is_empty()),
            bond: None,
        };
        let on_one_wire = |one: &PhysicalPort, other: &PhysicalPort, functions: [(&str, u8); 2]| {
            let functions = functions
                .map(|(text, number)| (Some(text).filter(|text| !text.is_empty()), number));
            assert_eq!(
                one.is_wire_of(other, functions),
                other.is_wire_of(one, [functions[1], functions[0]])
            );
            one.is_wire_of(other, functions)
        };
        let same = |one: &PhysicalPort, other: &PhysicalPort, functions: [&str; 2]| {
            on_one_wire(one, other, functions.map(|text| (text, 1)))
        };
        let (nothing, first, second) = (of("", ""), of("", "0000:3b:00.0"), of("", "0000:3b:00.1"));
        assert!(
            same(&first, &first, ["0000:3b:00.2", "0000:3b:00.3"]),
            "two virtual ones"
        );
        assert!(
            same(&first, &nothing, ["0000:3b:00.2", "0000:3b:00.0"]),
            "one and its physical one"
        );
        assert!(
            !same(&first, &second, ["0000:3b:00.2", "0000:3b:10.2"]),
            "of two ports of a card"
        );
        let of_port = |identifier: &str| {
            let one = of(identifier, "0000:3b:00.0");
            on_one_wire(&one, &one, [("0000:3b:00.2", 1), ("0000:3b:00.3", 2)])
        };
        assert!(!of_port(""), "the first and the second port of a card");
        assert!(of_port("a"), "the identifier is certain");
        assert!(!same(&nothing, &nothing, ["", ""]), "devices in software");
        assert!(same(
            &of("a", ""),
            &of("a", ""),
            ["0000:3b:00.0", "0000:3b:00.1"]
        ));
        assert!(!same(
            &of("a", "0000:3b:00.0"),
            &of("b", "0000:3b:00.0"),
            ["", ""]
        ));
    }
}
