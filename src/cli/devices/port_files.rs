//! What sysfs and the drivers of network interfaces have of the RDMA devices and their ports.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use serde_json::{Map, Value, json};

use crate::host::error::HostError;
use crate::host::system_files::SystemFiles;
use crate::rdma::verbs::{Gid, UnreadFile};

const DEVICES: &str = "sys/class/infiniband";
const INTERFACES: &str = "sys/class/net";

/// The files of one thing, which are named by where they are in its folder.
const OF_DEVICE: &[&str] = &[
    "node_type",
    "node_guid",
    "sys_image_guid",
    "fw_ver",
    "hw_rev",
    "hca_type",
    "board_id",
];
const OF_FUNCTION: &[&str] = &[
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "link/l1_aspm",
    "link/clkpm",
    "power/control",
    "d3cold_allowed",
    "iommu_group/type",
    "sriov_numvfs",
    "sriov_totalvfs",
];
const OF_PORT: &[&str] = &[
    "state",
    "phys_state",
    "link_layer",
    "rate",
    "lid",
    "lid_mask_count",
    "sm_lid",
    "sm_sl",
    "cap_mask",
];
const OF_INTERFACE: &[&str] = &[
    "address",
    "type",
    "mtu",
    "operstate",
    "speed",
    "dev_port",
    "phys_port_id",
    "phys_port_name",
    "phys_switch_id",
    "bonding/mode",
    "bonding/slaves",
];

/// Reads, and keeps what cannot be read.
#[derive(Debug)]
pub(super) struct PortFiles<'a> {
    files: &'a SystemFiles,
    refused: Vec<Value>,
}

impl<'a> PortFiles<'a> {
    pub(super) fn new(files: &'a SystemFiles) -> Self {
        PortFiles {
            files,
            refused: Vec::new(),
        }
    }

    /// All devices with their ports, the network interfaces of these, and the files that could not be read.
    /// `interfaces_of` finds the interfaces of a port, `gids_of` the entries in use of its GID table and the files of it
    /// that cannot be read, `statistics_of` the names of the statistics of an interface.
    pub(super) fn document(
        mut self,
        interfaces_of: impl Fn(&str, u8) -> BTreeSet<String>,
        gids_of: impl Fn(&str, u8) -> (Vec<Gid>, Vec<UnreadFile>),
        statistics_of: impl Fn(&str) -> Vec<String>,
    ) -> Value {
        let names = self.files.names(DEVICES);
        let devices: Vec<_> = (names.iter())
            .map(|name| self.device(name, &interfaces_of, &gids_of))
            .collect();
        let of_ports = devices.iter().flat_map(|device| device["ports"].as_array());
        let of_ports = of_ports
            .flatten()
            .flat_map(|port| port["interfaces"].as_array());
        let of_ports = of_ports.flatten().filter_map(Value::as_str);
        let mut interfaces: BTreeSet<String> = of_ports.map(str::to_owned).collect();
        for interface in interfaces.clone() {
            interfaces.extend(self.of_same_bond(&interface));
        }
        let interfaces: Vec<_> = (interfaces.iter())
            .map(|name| self.interface(name, statistics_of(name)))
            .collect();
        json!({ "devices": devices, "interfaces": interfaces, "refused": self.refused })
    }

    fn device(
        &mut self,
        name: &str,
        interfaces_of: impl Fn(&str, u8) -> BTreeSet<String>,
        gids_of: impl Fn(&str, u8) -> (Vec<Gid>, Vec<UnreadFile>),
    ) -> Value {
        let folder = format!("{DEVICES}/{name}");
        let mut found = self.texts(&folder, OF_DEVICE);
        found.insert("name".to_owned(), json!(name));
        let function = format!("{folder}/device");
        let mut of_function = self.texts(&function, OF_FUNCTION);
        for link in ["driver", "physfn"] {
            of_function.insert(link.to_owned(), json!(self.link(&function, link)));
        }
        of_function.insert("address".to_owned(), json!(self.link(&folder, "device")));
        found.insert("function".to_owned(), Value::Object(of_function));
        found.insert("interrupts".to_owned(), json!(self.interrupts(&function)));
        let counters = self.numbers(&format!("{folder}/hw_counters"));
        found.insert("hw_counters".to_owned(), counters);
        let ports = self.files.names(&format!("{folder}/ports"));
        let numbers = ports.iter().filter_map(|name| name.parse::<u8>().ok());
        let ports: Vec<_> = numbers
            .map(|number| {
                let mut port = self.port(&folder, number);
                let (gids, unread) = gids_of(name, number);
                port.insert("gids".to_owned(), json!(gids));
                for (path, error) in unread {
                    self.refused(path.to_string_lossy().trim_start_matches('/'), &error);
                }
                port.insert("interfaces".to_owned(), json!(interfaces_of(name, number)));
                port
            })
            .collect();
        found.insert("ports".to_owned(), json!(ports));
        Value::Object(found)
    }

    fn port(&mut self, device: &str, number: u8) -> Map<String, Value> {
        let folder = format!("{device}/ports/{number}");
        let mut found = self.texts(&folder, OF_PORT);
        found.insert("number".to_owned(), json!(number));
        for counters in ["counters", "hw_counters"] {
            let numbers = self.numbers(&format!("{folder}/{counters}"));
            found.insert(counters.to_owned(), numbers);
        }
        found
    }

    fn interface(&mut self, name: &str, statistics: Vec<String>) -> Value {
        let folder = format!("{INTERFACES}/{name}");
        let mut found = self.texts(&folder, OF_INTERFACE);
        found.insert("name".to_owned(), json!(name));
        for (key, at, link) in [
            ("function", "", "device"),
            ("driver", "/device", "driver"),
            ("master", "", "master"),
        ] {
            let target = self.link(&format!("{folder}{at}"), link);
            found.insert(key.to_owned(), json!(target));
        }
        found.insert("ethtool_statistics".to_owned(), json!(statistics));
        Value::Object(found)
    }

    /// The bond that an interface is in, and the members of that or of the one that it is.
    fn of_same_bond(&mut self, interface: &str) -> Vec<String> {
        let master = self.link(&format!("{INTERFACES}/{interface}"), "master");
        let bond = master.as_deref().unwrap_or(interface);
        let members = self.text(&format!("{INTERFACES}/{bond}/bonding/slaves"));
        let members = members.unwrap_or_default();
        let members = members.split_whitespace().map(str::to_owned);
        members.chain(master.clone()).collect()
    }

    /// The interrupts of a PCI function: the names of who serves them, and the CPUs that they go to.
    fn interrupts(&mut self, function: &str) -> Vec<Value> {
        let mut numbers: Vec<u32> = (self.files.names(&format!("{function}/msi_irqs")))
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        numbers.sort_unstable();
        if numbers.is_empty() {
            return Vec::new();
        }
        let lines = self.text("proc/interrupts").unwrap_or_default();
        let described = numbers.into_iter().map(|number| {
            let line = lines.lines().find_map(|line| {
                let (of, rest) = line.split_once(':')?;
                (of.trim() == number.to_string()).then_some(rest)
            });
            // The names are last, after two blanks.
            let names = line.and_then(|line| line.rsplit("  ").next());
            let cpus = self.text(&format!("proc/irq/{number}/effective_affinity_list"));
            json!({ "number": number, "names": names.map(str::trim), "cpus": cpus })
        });
        described.collect()
    }

    /// Those of these files that are there.
    fn texts(&mut self, folder: &str, names: &[&str]) -> Map<String, Value> {
        let texts = names.iter().filter_map(|name| {
            let text = self.text(&format!("{folder}/{name}"))?;
            Some(((*name).to_owned(), json!(text)))
        });
        texts.collect()
    }

    /// The counters in a folder; texts where they are not numbers.
    fn numbers(&mut self, folder: &str) -> Value {
        let names = self.files.names(folder).into_iter();
        let numbers = names.filter_map(|name| {
            let text = self.text(&format!("{folder}/{name}"))?;
            let number = text.parse::<u64>().ok().map(Value::from);
            Some((name, number.unwrap_or_else(|| json!(text))))
        });
        Value::Object(numbers.collect())
    }

    /// The name of what a link leads to.
    fn link(&self, folder: &str, name: &str) -> Option<String> {
        self.files.name_behind(&format!("{folder}/{name}"))
    }

    fn text(&mut self, path: &str) -> Option<String> {
        match self.files.text(path) {
            Ok(text) => Some(text).filter(|text| !text.is_empty()),
            Err(error) => {
                if let HostError::Read { source, .. } = &error {
                    self.refused(path, source);
                }
                None
            }
        }
    }

    /// Keeps that a file cannot be read, if it is there.
    fn refused(&mut self, path: &str, error: &io::Error) {
        let kinds = [ErrorKind::NotFound, ErrorKind::NotADirectory];
        if !kinds.contains(&error.kind()) {
            let refusal = json!({ "file": path, "error": error.to_string() });
            self.refused.push(refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{put, temporary};
    use nix::errno::Errno;

    #[test]
    fn devices_ports_interfaces_and_interrupts_are_described() {
        let root = temporary("");
        for (file, text) in [
            (
                "sys/devices/pci/0000:3b:00.0/current_link_speed",
                "16.0 GT/s PCIe\n",
            ),
            ("sys/devices/pci/0000:3b:00.0/msi_irqs/121", "msix\n"),
            ("sys/devices/pci/0000:3b:00.0/msi_irqs/120", "msix\n"),
            (
                "sys/class/infiniband/mlx5_0/node_guid",
                "0c42:a103:0011:2233\n",
            ),
            ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            (
                "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error",
                "0\n",
            ),
            (
                "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait",
                "N/A (no PMA)\n",
            ),
            ("sys/class/net/bond0/bonding/slaves", "eth0 eth1\n"),
            ("sys/class/net/eth0/address", "0c:42:a1:11:22:33\n"),
            ("proc/irq/120/effective_affinity_list", "3\n"),
            (
                "proc/interrupts",
                "      CPU0  CPU1\n 120:  7  0  PCI-MSIX-0000:3b:00.0   1-edge      mlx5_comp1@pci:0000:3b:00.0\n",
            ),
        ] {
            put(&root, file, text);
        }
        // A file that cannot be read.
        std::fs::create_dir_all(root.join("sys/class/infiniband/mlx5_0/board_id")).unwrap();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link(
            "../../../devices/pci/0000:3b:00.0",
            "sys/class/infiniband/mlx5_0/device",
        );
        link("../bond0", "sys/class/net/eth0/master");
        let files = SystemFiles::below(&root);
        let found = PortFiles::new(&files).document(
            |device, port| {
                assert_eq!((device, port), ("mlx5_0", 1));
                BTreeSet::from(["eth0".to_owned()])
            },
            |device, port| {
                assert_eq!((device, port), ("mlx5_0", 1));
                let gid = Gid {
                    index: 3,
                    gid: "fe80:0000:0000:0000:0e42:a1ff:fe11:2233".to_owned(),
                    kind: Some("RoCE v2".to_owned()),
                    interface: None,
                };
                let unread = |name: &str, errno: Errno| -> UnreadFile {
                    let folder = "/sys/class/infiniband/mlx5_0/ports/1";
                    (format!("{folder}/{name}").into(), errno.into())
                };
                let missing = unread("gids/0", Errno::ENOENT);
                (vec![gid], vec![missing, unread("gids/4", Errno::EACCES)])
            },
            |interface| match interface {
                "eth0" => vec!["tx_packets_phy".to_owned()],
                _ => Vec::new(),
            },
        );
        for (place, value) in [
            ("/devices/0/name", json!("mlx5_0")),
            ("/devices/0/function/address", json!("0000:3b:00.0")),
            (
                "/devices/0/function/current_link_speed",
                json!("16.0 GT/s PCIe"),
            ),
            ("/devices/0/function/physfn", json!(null)),
            (
                "/devices/0/interrupts",
                json!([
                    {"number": 120, "names": "mlx5_comp1@pci:0000:3b:00.0", "cpus": "3"},
                    {"number": 121, "names": null, "cpus": null},
                ]),
            ),
            ("/devices/0/ports/0/state", json!("4: ACTIVE")),
            (
                "/devices/0/ports/0/gids",
                json!([{
                    "index": 3,
                    "gid": "fe80:0000:0000:0000:0e42:a1ff:fe11:2233",
                    "kind": "RoCE v2",
                    "interface": null,
                }]),
            ),
            (
                "/devices/0/ports/0/counters",
                json!({"port_xmit_wait": "N/A (no PMA)", "symbol_error": 0}),
            ),
            ("/interfaces/0/name", json!("bond0")),
            ("/interfaces/1/master", json!("bond0")),
            (
                "/interfaces/1/ethtool_statistics",
                json!(["tx_packets_phy"]),
            ),
            ("/interfaces/2/name", json!("eth1")),
            (
                "/refused/0/file",
                json!("sys/class/infiniband/mlx5_0/board_id"),
            ),
            (
                "/refused/1",
                json!({
                    "file": "sys/class/infiniband/mlx5_0/ports/1/gids/4",
                    "error": "Permission denied (os error 13)",
                }),
            ),
        ] {
            assert_eq!(found.pointer(place), Some(&value), "{place}: {found:#}");
        }
        let nowhere = temporary("none");
        let files = SystemFiles::below(&nowhere);
        let found = PortFiles::new(&files).document(
            |_, _| BTreeSet::new(),
            |_, _| Default::default(),
            |_| Vec::new(),
        );
        let nothing = json!({"devices": [], "interfaces": [], "refused": []});
        assert_eq!(found, nothing);
    }
}
