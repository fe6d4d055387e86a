//! Which wire a port is on: several functions of an adapter may share one, and a bond has several.

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

    /// Whether it is certain that two ports are on one wire: what goes from one to the other is switched within the
    /// adapter. `functions` are the PCI addresses of their devices.
    pub fn is_wire_of(&self, other: &Self, functions: [Option<&str>; 2]) -> bool {
        if let (Some(one), Some(other)) = (&self.identifier, &other.identifier) {
            return one == other;
        }
        let [one, another] = functions;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

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
        let same = |one: &PhysicalPort, other: &PhysicalPort, functions: [&str; 2]| {
            let functions = functions.map(|text| Some(text).filter(|text| !text.is_empty()));
            assert_eq!(
                one.is_wire_of(other, functions),
                other.is_wire_of(one, [functions[1], functions[0]])
            );
            one.is_wire_of(other, functions)
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
        assert!(
            !same(&nothing, &nothing, ["0000:3b:00.0", "0000:3b:00.0"]),
            "two ports of a device"
        );
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
