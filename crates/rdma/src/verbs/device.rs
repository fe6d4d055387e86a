//! What an RDMA device is and can do.

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{IpNetwork, OnDemandPaging, PhysicalPort};

/// An RDMA device of this host with its ports.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    /// The kernel's name of it, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Its node GUID, as 16 hexadecimal digits.
    pub node_guid: String,
    /// The GUID of the adapter that it is a part of: that of two ports of one card is the same, though they are often
    /// two devices. None where the driver does not report it.
    pub adapter_guid: Option<String>,
    /// What carries its messages.
    pub transport: Transport,
    /// The firmware's version; empty where there is none.
    pub firmware: String,
    /// The kernel's driver of its slot, such as `mlx5_core`, with which that of RDMA (`mlx5_ib`) comes for some adapters,
    /// and for others (`ice` and `irdma`) does not; `None` for a device in software, whose driver is of the kernel, or where sysfs
    /// does not name it.
    pub driver: Option<DeviceDriver>,
    /// Vendor and part number.
    pub vendor: (u32, u32),
    /// NUMA node of the slot it sits in, where it has one.
    pub numa_node: Option<usize>,
    /// Where it sits on PCI, such as `0000:3b:00.0`; `None` for a device that is not a PCI function itself.
    pub pci_address: Option<String>,
    /// Whether it is a driver in software (rxe, siw), which sits in no slot.
    pub software: bool,
    /// The limits that matter for the benchmark.
    pub limits: DeviceLimits,
    /// All its ports.
    pub ports: Vec<Port>,
}

/// The kernel's driver of a device, as sysfs has it (`Documentation/ABI/stable/sysfs-module`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDriver {
    /// The module, such as `mlx5_core`.
    pub module: String,
    /// The version that the module states, as those of MLNX_OFED do; `None` for one that goes by the kernel's.
    pub version: Option<String>,
}

/// Limits of a device.
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
pub struct DeviceLimits {
    /// Queue pairs.
    pub max_queue_pairs: u32,
    /// Work requests in one queue of a queue pair.
    pub max_queue_pair_work_requests: u32,
    /// Entries of a completion queue.
    pub max_completion_queue_entries: u32,
    /// Completion vectors: interrupts among which completion queues choose.
    pub completion_vectors: u32,
    /// RDMA reads and atomics that a queue pair may have outstanding to its peer (`max_qp_init_rd_atom`).
    pub max_outstanding_reads: u8,
    /// The same that it serves its peer (`max_qp_rd_atom`).
    pub max_served_reads: u8,
    /// Whether it has atomic operations, between queue pairs of this device at least (`atomic_cap`).
    pub atomics: bool,
    /// Whether it can stamp completions itself; `None` if its driver does not report it.
    pub completion_timestamps: Option<bool>,
    /// Its clock, if it can.
    #[serde(default)]
    pub hardware_clock: Option<HardwareClock>,
    /// Shared receive queues (`max_srq`).
    pub max_shared_receive_queues: u32,
    /// Receive requests in one of them (`max_srq_wr`).
    pub max_shared_receive_requests: u32,
    /// For what it has on-demand paging; `None` if its driver does not report it.
    pub on_demand_paging: Option<OnDemandPaging>,
}

/// What a driver reports of the clock of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareClock {
    /// The bits that a stamp has (`completion_timestamp_mask`).
    pub mask: u64,
    /// Its nominal rate (`hca_core_clock`); `None` where the driver does not report it.
    pub khz: Option<u64>,
    /// Whether it can be read now, without which stamps have no time: irdma and ionic have a mask and no
    /// `query_rt_values` (rdma-core, providers/irdma and providers/ionic).
    pub readable: bool,
}

impl HardwareClock {
    /// How many bits a stamp has.
    pub fn bits(&self) -> u32 {
        u64::BITS - self.mask.leading_zeros()
    }
}

/// What carries the messages of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum Transport {
    /// That of InfiniBand, which RoCE has as well.
    InfiniBand,
    /// TCP: iWARP, which has no immediate data.
    Iwarp,
    /// Any other.
    Other,
}

/// What a port is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE.
    Ethernet,
    /// Neither, or not reported.
    Unspecified,
}

impl LinkLayer {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            LinkLayer::InfiniBand => "InfiniBand",
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Unspecified => "unspecified",
        }
    }
}

/// A port of a device.
#[derive(Debug, Clone, Serialize)]
pub struct Port {
    /// Counted from 1.
    pub number: u8,
    /// Whether it can carry messages.
    pub active: bool,
    /// The state in words.
    pub state: &'static str,
    /// InfiniBand or Ethernet.
    pub link_layer: LinkLayer,
    /// Largest payload of a packet, in bytes, as in force.
    pub mtu: u32,
    /// Largest message, in bytes.
    pub max_message: u32,
    /// Signalling rate in Gbit/s, all lanes together.
    pub gigabits_per_second: f64,
    /// IP addresses by which the connection manager finds it, IPv4 first.
    pub addresses: Vec<IpAddr>,
    /// The networks that they are in, in the same order.
    pub networks: Vec<IpNetwork>,
    /// Its LID; 0 on Ethernet.
    pub lid: u16,
    /// The LID of its subnet manager; 0 on Ethernet.
    pub sm_lid: u16,
    /// The upper half of its first GID, which identifies an InfiniBand subnet.
    pub subnet_prefix: Option<String>,
    /// The wire that it is on.
    pub physical: PhysicalPort,
}

/// Whether a device is a driver in software.
pub(super) fn is_software(device: &str) -> bool {
    is_software_in(Path::new("/sys/class"), device)
}

fn is_software_in(class: &Path, device: &str) -> bool {
    std::fs::canonicalize(class.join("infiniband").join(device))
        .is_ok_and(|path| path.to_string_lossy().contains("/devices/virtual/"))
}

/// The driver of a device by its folder in sysfs.
pub(super) fn driver(device: &Path) -> Option<DeviceDriver> {
    let module = std::fs::canonicalize(device.join("device/driver/module")).ok()?;
    let version = std::fs::read_to_string(module.join("version"));
    Some(DeviceDriver {
        module: module.file_name()?.to_string_lossy().into_owned(),
        version: version.ok().map(|text| text.trim().to_owned()),
    })
}

/// The PCI address of a device by its folder in sysfs.
pub(super) fn pci_address(device: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(device.join("device")).ok()?;
    let is_pci = std::fs::canonicalize(folder.join("subsystem"))
        .ok()?
        .ends_with("bus/pci");
    let name = folder.file_name()?.to_string_lossy().into_owned();
    is_pci.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::put;

    #[test]
    fn a_device_in_software_sits_in_no_slot() {
        let sys = tempfile::tempdir().unwrap();
        for (device, place) in [
            ("rxe0", "devices/virtual/infiniband/rxe0"),
            (
                "mlx5_0",
                "devices/pci0000:3a/0000:3b:00.0/infiniband/mlx5_0",
            ),
        ] {
            put(&sys, &format!("{place}/node_type"), "1: CA\n");
            let class = sys.path().join("class/infiniband");
            std::fs::create_dir_all(&class).unwrap();
            std::os::unix::fs::symlink(sys.path().join(place), class.join(device)).unwrap();
        }
        let found = ["rxe0", "mlx5_0", "none"];
        let found = found.map(|device| is_software_in(&sys.path().join("class"), device));
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn a_driver_states_its_version_or_goes_by_the_kernels() {
        let sys = tempfile::tempdir().unwrap();
        let link = |to: &str, from: &str| {
            let from = sys.path().join(from);
            std::fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(sys.path().join(to), from).unwrap();
        };
        let found = |version: Option<&str>| {
            Some(DeviceDriver {
                module: "mlx5_core".to_owned(),
                version: version.map(str::to_owned),
            })
        };
        let device = sys.path().join("infiniband/mlx5_0");
        assert_eq!(driver(&device), None);
        put(&sys, "module/mlx5_core/refcnt", "1\n");
        put(&sys, "devices/0000:3b:00.0/numa_node", "0\n");
        link("devices/0000:3b:00.0", "infiniband/mlx5_0/device");
        link("bus/pci/drivers/mlx5_core", "devices/0000:3b:00.0/driver");
        link("module/mlx5_core", "bus/pci/drivers/mlx5_core/module");
        assert_eq!(driver(&device), found(None));
        put(&sys, "module/mlx5_core/version", "24.10-0.7.0\n");
        assert_eq!(driver(&device), found(Some("24.10-0.7.0")));
    }
}
