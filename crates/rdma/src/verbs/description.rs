//! What the devices of this host and their ports report.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::path::Path;

use rdma_sys as sys;

use super::context::{name_of, with_list};
use super::device::{driver, is_software, pci_address};
use super::port_address::{addresses_of, interfaces_of};
use super::port_codes::{gigabits_per_second, mtu_bytes, port_state};
use super::{
    Context, Device, DeviceLimits, Gid, LinkLayer, OnDemandPaging, PhysicalPort, Port, Transport,
    VerbsError,
};
use crate::loaded;

/// The devices of this host.
#[derive(Debug, Default)]
pub struct Devices {
    /// Those that can be used, in the kernel's order.
    pub usable: Vec<Device>,
    /// Those that are there but cannot be opened or asked, with the reason: without rights to them, or on their way
    /// out.
    pub refused: Vec<(String, VerbsError)>,
}

/// Lists the devices of this host with their ports.
///
/// # Errors
/// When the list itself cannot be read.
pub fn devices() -> Result<Devices, VerbsError> {
    let mut found = Devices::default();
    let listed = with_list(|list| {
        for &device in list {
            // SAFETY: the device is in the list.
            let (name, opened) = unsafe { (name_of(device), Context::open(device)) };
            match opened.and_then(|context| context.describe()) {
                Ok(device) => found.usable.push(device),
                Err(error) => found.refused.push((name, error)),
            }
        }
    });
    match listed {
        // Without the kernel's RDMA modules there are no devices; that is an empty list, not a failure.
        Err(error) if matches!(error.errno(), Some(libc::ENOSYS | libc::ENOENT)) => Ok(found),
        listed => listed.map(|()| found),
    }
}

impl Context {
    /// Asks the device and its ports for everything the benchmark wants to know.
    ///
    /// # Errors
    /// When a query fails.
    pub fn describe(&self) -> Result<Device, VerbsError> {
        let mut attributes = MaybeUninit::<sys::ibv_device_attr>::zeroed();
        // SAFETY: the context is open and the attributes are writable.
        let code = unsafe { loaded::ibv_query_device(self.as_ptr(), attributes.as_mut_ptr()) };
        VerbsError::check(code, "ibv_query_device", || self.device_name())?;
        // SAFETY: the query succeeded and filled it in.
        let attributes = unsafe { attributes.assume_init() };
        // SAFETY: the array is zero-terminated text within the attributes.
        let firmware = unsafe { CStr::from_ptr(attributes.fw_ver.as_ptr()) };
        let extended = self.extended_attributes();
        let ports = (1..=attributes.phys_port_cnt)
            .map(|number| self.port(number))
            .collect::<Result<_, _>>()?;
        let sysfs = Path::new("/sys/class/infiniband").join(self.device_name());
        let numa_node = std::fs::read_to_string(sysfs.join("device/numa_node"));
        Ok(Device {
            name: self.device_name().to_owned(),
            node_guid: guid(attributes.node_guid),
            adapter_guid: Some(attributes.sys_image_guid)
                .filter(|guid| *guid != 0)
                .map(guid),
            transport: self.transport(),
            firmware: firmware.to_string_lossy().into_owned(),
            driver: driver(&sysfs),
            vendor: (attributes.vendor_id, attributes.vendor_part_id),
            numa_node: numa_node.ok().and_then(|text| text.trim().parse().ok()),
            pci_address: pci_address(&sysfs),
            software: is_software(self.device_name()),
            limits: DeviceLimits {
                max_queue_pairs: attributes.max_qp.max(0) as u32,
                max_queue_pair_work_requests: attributes.max_qp_wr.max(0) as u32,
                max_completion_queue_entries: attributes.max_cqe.max(0) as u32,
                // SAFETY: the context is open.
                completion_vectors: unsafe { (*self.as_ptr()).num_comp_vectors }.max(0) as u32,
                max_outstanding_reads: reads(attributes.max_qp_init_rd_atom),
                max_served_reads: reads(attributes.max_qp_rd_atom),
                atomics: attributes.atomic_cap != sys::ibv_atomic_cap::IBV_ATOMIC_NONE,
                completion_timestamps: extended.map(|all| all.completion_timestamp_mask != 0),
                hardware_clock: self.reported_hardware_clock(extended.as_ref()).ok(),
                max_shared_receive_queues: attributes.max_srq.max(0) as u32,
                max_shared_receive_requests: attributes.max_srq_wr.max(0) as u32,
                on_demand_paging: extended.map(|all| OnDemandPaging::new(&all.odp_caps)),
            },
            ports,
        })
    }

    /// What carries its messages.
    pub fn transport(&self) -> Transport {
        // SAFETY: the context is open and points to its device.
        match unsafe { (*(*self.as_ptr()).device).transport_type } {
            sys::ibv_transport_type::IBV_TRANSPORT_IB => Transport::InfiniBand,
            sys::ibv_transport_type::IBV_TRANSPORT_IWARP => Transport::Iwarp,
            _ => Transport::Other,
        }
    }

    /// Asks for the attributes of a port, by the extended verbs where the provider has them: only these have a speed
    /// above that of NDR.
    fn port_attributes(&self, number: u8) -> Result<PortAttributes, VerbsError> {
        let mut attributes = MaybeUninit::<PortAttributes>::zeroed();
        let offset = std::mem::offset_of!(sys::verbs_context, query_port);
        // SAFETY: the provider has this member.
        let query = self
            .extended(offset)
            .and_then(|extended| unsafe { (*extended).query_port });
        // SAFETY: the context is open and the attributes are writable; zero is a value of them, and what either
        // function writes is the beginning of them, the first one no more than the length that it gets.
        let (code, attributes) = unsafe {
            let pointer = attributes.as_mut_ptr();
            let size = size_of::<PortAttributes>();
            let code = match query {
                Some(query) => query(self.as_ptr(), number, pointer.cast(), size),
                None => loaded::ibv_query_port(self.as_ptr(), number, pointer.cast()),
            };
            (code, attributes.assume_init())
        };
        VerbsError::check(code, "ibv_query_port", || {
            format!("{} port {number}", self.device_name())
        })?;
        Ok(attributes)
    }

    /// The network interfaces of a port: see [`interfaces_of`].
    pub(super) fn interfaces(&self, port: u8) -> BTreeSet<String> {
        let (class, gids) = (Path::new("/sys/class"), self.gids_in_use(port));
        interfaces_of(class, self.device_name(), port, gids)
    }

    /// Asks for the state of a port.
    ///
    /// # Errors
    /// When the query fails.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let PortAttributes { usual, speed } = self.port_attributes(number)?;
        let class = Path::new("/sys/class");
        let interfaces = self.interfaces(number);
        let (addresses, networks) = addresses_of(&interfaces).into_iter().unzip();
        Ok(Port {
            number,
            active: usual.state == sys::ibv_port_state::IBV_PORT_ACTIVE,
            state: port_state(usual.state),
            link_layer: match usual.link_layer {
                1 => LinkLayer::InfiniBand,
                2 => LinkLayer::Ethernet,
                _ => LinkLayer::Unspecified,
            },
            mtu: mtu_bytes(usual.active_mtu),
            max_message: usual.max_msg_sz,
            gigabits_per_second: gigabits_per_second(
                match speed {
                    0 => usual.active_speed.into(),
                    speed => speed,
                },
                usual.active_width,
            ),
            addresses,
            networks,
            lid: usual.lid,
            sm_lid: usual.sm_lid,
            subnet_prefix: Gid::read(self.device_name(), number, 0)
                .map(|gid| gid.subnet_prefix().to_owned()),
            physical: PhysicalPort::read(class, self.device_name(), interfaces.iter()),
        })
    }
}

/// `struct ibv_port_attr` as rdma-core 55 has it.
#[repr(C)]
struct PortAttributes {
    usual: sys::ibv_port_attr,
    /// `active_speed_ex`: the code of a lane's speed if it is above that of NDR, for which `active_speed` has no room.
    speed: u32,
}

/// A number of reads, for attributes of 8 bits, of which librdmacm takes 255 for the device's own most.
fn reads(number: i32) -> u8 {
    number.clamp(0, 254) as u8
}

fn guid(raw: u64) -> String {
    format!("{:016x}", u64::from_be(raw))
}
