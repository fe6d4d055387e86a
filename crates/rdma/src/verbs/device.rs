//! RDMA devices, what they can do, and an opened one.

use std::any::Any;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys as sys;
use serde::{Deserialize, Serialize};

use super::async_event::{AsyncEvent, EventLog};
use super::port_address::{addresses_of, interfaces_of};
use super::port_codes::{gigabits_per_second, mtu_bytes, port_state};
use super::{Gid, IpNetwork, OnDemandPaging, PhysicalPort, VerbsError};
use crate::loaded;

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
    /// For what it has on-demand paging; nothing if its driver does not report it.
    pub on_demand_paging: OnDemandPaging,
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

/// Looks at the list of devices.
fn with_list<T>(look: impl FnOnce(&[*mut sys::ibv_device]) -> T) -> Result<T, VerbsError> {
    loaded::load()?;
    let mut count = 0;
    // SAFETY: `count` is valid for writing; the list is freed below.
    let list = unsafe { loaded::ibv_get_device_list(&mut count) };
    if list.is_null() {
        return Err(VerbsError::last("ibv_get_device_list", "this host"));
    }
    // SAFETY: the list holds `count` valid device pointers until it is freed.
    let result = look(unsafe { std::slice::from_raw_parts(list, count as usize) });
    // SAFETY: the list came from ibv_get_device_list; the contexts opened from it do not need it.
    unsafe { loaded::ibv_free_device_list(list) };
    Ok(result)
}

/// The kernel's name of a device.
///
/// # Safety
/// `device` must be in a device list that has not been freed, or belong to an open context.
unsafe fn name_of(device: *mut sys::ibv_device) -> String {
    // SAFETY: the caller vouches for the device, which has a zero-terminated name.
    let name = unsafe { CStr::from_ptr(loaded::ibv_get_device_name(device)) };
    name.to_string_lossy().into_owned()
}

/// Whether a device is a driver in software.
pub(super) fn is_software(device: &str) -> bool {
    is_software_in(Path::new("/sys/class"), device)
}

fn is_software_in(class: &Path, device: &str) -> bool {
    std::fs::canonicalize(class.join("infiniband").join(device))
        .is_ok_and(|path| path.to_string_lossy().contains("/devices/virtual/"))
}

/// The PCI address of a device by its folder in sysfs.
fn pci_address(device: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(device.join("device")).ok()?;
    let is_pci = std::fs::canonicalize(folder.join("subsystem"))
        .ok()?
        .ends_with("bus/pci");
    let name = folder.file_name()?.to_string_lossy().into_owned();
    is_pci.then_some(name)
}

/// An opened device.
#[derive(Debug)]
pub struct Context {
    raw: NonNull<sys::ibv_context>,
    name: String,
    /// What it belongs to (a connection manager id), kept alive; one that was opened here is closed on drop.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
    /// Its asynchronous events, and how many of them came before this handle was made.
    events: Arc<EventLog>,
    events_before: usize,
}

// SAFETY: verbs may be called from any thread, several at a time (ibv_open_device(3) and its companions).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device.
    ///
    /// # Safety
    /// `device` must be in a device list that has not been freed.
    unsafe fn open(device: *mut sys::ibv_device) -> Result<Self, VerbsError> {
        // SAFETY: the caller vouches for the device.
        let name = unsafe { name_of(device) };
        // SAFETY: as above.
        let open = || unsafe { loaded::ibv_open_device(device) };
        let raw = VerbsError::created(open, "ibv_open_device", || &name)?;
        Ok(Context::of(raw, name, None))
    }

    /// Opens a device by name.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be opened.
    pub fn open_by_name(name: &str) -> Result<Self, VerbsError> {
        with_list(|list| {
            // SAFETY: the device is in the list.
            let is_named = |device: &&*mut sys::ibv_device| unsafe { name_of(**device) } == name;
            match list.iter().find(is_named) {
                // SAFETY: as above.
                Some(&device) => unsafe { Context::open(device) },
                None => Err(VerbsError::code("ibv_open_device", name, libc::ENODEV)),
            }
        })?
    }

    /// A context that somebody else opened and closes.
    ///
    /// # Safety
    /// `raw` must stay open as long as `keeper` lives.
    pub(crate) unsafe fn borrowed(
        raw: NonNull<sys::ibv_context>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        // SAFETY: an opened context points to its device.
        let name = unsafe { name_of((*raw.as_ptr()).device) };
        Context::of(raw, name, Some(keeper))
    }

    fn of(
        raw: NonNull<sys::ibv_context>,
        name: String,
        keeper: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let events = EventLog::of(raw.as_ptr() as usize);
        let mut context = Context {
            raw,
            name,
            keeper,
            events_before: 0,
            events,
        };
        // What waits in the kernel is of the time before, too. An error comes again when somebody asks.
        let _ = context
            .events
            .concerning(0, 0, || context.take_async_event());
        context.events_before = context.events.length();
        context
    }

    pub(super) fn as_ptr(&self) -> *mut sys::ibv_context {
        self.raw.as_ptr()
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.name
    }

    /// Asks the device and its ports for everything the benchmark wants to know.
    ///
    /// # Errors
    /// When a query fails.
    pub fn describe(&self) -> Result<Device, VerbsError> {
        let mut attributes = MaybeUninit::<sys::ibv_device_attr>::zeroed();
        // SAFETY: the context is open and the attributes are writable.
        let code = unsafe { loaded::ibv_query_device(self.as_ptr(), attributes.as_mut_ptr()) };
        VerbsError::check(code, "ibv_query_device", || &self.name)?;
        // SAFETY: the query succeeded and filled it in.
        let attributes = unsafe { attributes.assume_init() };
        // SAFETY: the array is zero-terminated text within the attributes.
        let firmware = unsafe { CStr::from_ptr(attributes.fw_ver.as_ptr()) };
        let extended = self.extended_attributes();
        let ports = (1..=attributes.phys_port_cnt)
            .map(|number| self.port(number))
            .collect::<Result<_, _>>()?;
        let sysfs = Path::new("/sys/class/infiniband").join(&self.name);
        let numa_node = std::fs::read_to_string(sysfs.join("device/numa_node"));
        Ok(Device {
            name: self.name.clone(),
            node_guid: guid(attributes.node_guid),
            adapter_guid: Some(attributes.sys_image_guid)
                .filter(|guid| *guid != 0)
                .map(guid),
            transport: self.transport(),
            firmware: firmware.to_string_lossy().into_owned(),
            vendor: (attributes.vendor_id, attributes.vendor_part_id),
            numa_node: numa_node.ok().and_then(|text| text.trim().parse().ok()),
            pci_address: pci_address(&sysfs),
            software: is_software(&self.name),
            limits: DeviceLimits {
                max_queue_pairs: attributes.max_qp.max(0) as u32,
                max_queue_pair_work_requests: attributes.max_qp_wr.max(0) as u32,
                max_completion_queue_entries: attributes.max_cqe.max(0) as u32,
                // SAFETY: the context is open.
                completion_vectors: unsafe { self.raw.as_ref().num_comp_vectors }.max(0) as u32,
                max_outstanding_reads: reads(attributes.max_qp_init_rd_atom),
                max_served_reads: reads(attributes.max_qp_rd_atom),
                atomics: attributes.atomic_cap != sys::ibv_atomic_cap::IBV_ATOMIC_NONE,
                completion_timestamps: extended.map(|all| all.completion_timestamp_mask != 0),
                hardware_clock: self.reported_hardware_clock(extended.as_ref()).ok(),
                max_shared_receive_queues: attributes.max_srq.max(0) as u32,
                max_shared_receive_requests: attributes.max_srq_wr.max(0) as u32,
                on_demand_paging: extended
                    .map(|all| OnDemandPaging::new(&all.odp_caps))
                    .unwrap_or_default(),
            },
            ports,
        })
    }

    /// What carries its messages.
    pub fn transport(&self) -> Transport {
        // SAFETY: the context is open and points to its device.
        match unsafe { (*self.raw.as_ref().device).transport_type } {
            sys::ibv_transport_type::IBV_TRANSPORT_IB => Transport::InfiniBand,
            sys::ibv_transport_type::IBV_TRANSPORT_IWARP => Transport::Iwarp,
            _ => Transport::Other,
        }
    }

    /// The extended verbs, if the provider's version of them has the member at this offset. (The binding's own look-up
    /// of them compares the marker with 32 bits of ones instead of a pointer's, and never finds them.)
    pub(super) fn extended(&self, offset: usize) -> Option<*mut sys::verbs_context> {
        // SAFETY: infiniband/verbs.h: a context whose `abi_compat` has all bits set is the last member of a
        // `verbs_context`, of which the provider's version has the last `sz` bytes. The context is open.
        unsafe {
            let context = self.as_ptr();
            if (*context).abi_compat as usize != usize::MAX {
                return None;
            }
            let extended = context
                .byte_sub(std::mem::offset_of!(sys::verbs_context, context))
                .cast::<sys::verbs_context>();
            let needed = size_of::<sys::verbs_context>() - offset;
            ((*extended).sz >= needed).then_some(extended)
        }
    }

    /// Asks through the extended verbs; `None` where the provider has none.
    pub(super) fn extended_attributes(&self) -> Option<sys::ibv_device_attr_ex> {
        let extended = self.extended(std::mem::offset_of!(sys::verbs_context, query_device_ex))?;
        let mut attributes = MaybeUninit::<sys::ibv_device_attr_ex>::zeroed();
        // SAFETY: the provider has this member, the context is open, no input is needed, and zero is a value of the
        // attributes.
        unsafe {
            let query = (*extended).query_device_ex?;
            let size = size_of::<sys::ibv_device_attr_ex>();
            let code = query(
                self.as_ptr(),
                std::ptr::null(),
                attributes.as_mut_ptr(),
                size,
            );
            (code == 0).then(|| attributes.assume_init())
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
            format!("{} port {number}", self.name)
        })?;
        Ok(attributes)
    }

    /// Asks for the state of a port.
    ///
    /// # Errors
    /// When the query fails.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let PortAttributes { usual, speed } = self.port_attributes(number)?;
        let class = Path::new("/sys/class");
        let interfaces = interfaces_of(class, &self.name, number);
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
            subnet_prefix: Gid::read(&self.name, number, 0)
                .map(|gid| gid.subnet_prefix().to_owned()),
            physical: PhysicalPort::read(class, &self.name, interfaces.iter()),
        })
    }

    /// Takes an asynchronous event if one waits. Never blocks, provided that no other thread takes this device's
    /// events.
    fn take_async_event(&self) -> Result<Option<AsyncEvent>, VerbsError> {
        // SAFETY: the context is open, and so is its descriptor.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().async_fd) };
        let mut waiting = [PollFd::new(descriptor, PollFlags::POLLIN)];
        if !poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return Ok(None);
        }
        let mut event = MaybeUninit::<sys::ibv_async_event>::uninit();
        // SAFETY: the context is open and the event is writable.
        if unsafe { loaded::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) } != 0 {
            return Err(VerbsError::last("ibv_get_async_event", &self.name));
        }
        // SAFETY: the call succeeded, so the event is written; it is acknowledged exactly once. Its kind is read as the
        // number it is, as the kernel may know more kinds than the binding's enumeration.
        let (kind, port) = unsafe {
            let pointer = event.as_mut_ptr();
            let kind = (&raw const (*pointer).event_type).cast::<u32>().read();
            let port = (*pointer).element.port_num;
            loaded::ibv_ack_async_event(pointer);
            (kind, port)
        };
        Ok(Some(AsyncEvent::new(kind, port)))
    }

    /// The events since this handle was made that concern the device or this port of it.
    fn events_of(&self, port: u8) -> Result<Vec<AsyncEvent>, VerbsError> {
        let take = || self.take_async_event();
        self.events.concerning(port, self.events_before, take)
    }

    /// What has happened to the device as a whole, or to this port of it, so that no further message can be expected.
    /// Never blocks, provided that no other thread takes this device's events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn fatal_event(&self, port: u8) -> Result<Option<String>, VerbsError> {
        let events = self.events_of(port)?;
        let mut endings = events
            .iter()
            .filter_map(|event| Some((event.ending()?, event)));
        let first = endings.next();
        Ok(first.map(|(ending, event)| {
            format!("{ending} ({} port {port}, event {})", self.name, event.kind)
        }))
    }

    /// What has changed of this port since this handle was made, each change once, in words: LID, GIDs, partition keys,
    /// subnet manager. Never blocks, provided that no other thread takes this device's events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn changes(&self, port: u8) -> Result<Vec<String>, VerbsError> {
        let events = self.events_of(port)?;
        let mut changes: Vec<_> = events.iter().filter_map(AsyncEvent::change).collect();
        changes.sort_unstable();
        changes.dedup();
        let place = format!("{} port {port}", self.name);
        let in_words = |change| format!("{place}: {change}");
        Ok(changes.into_iter().map(in_words).collect())
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

impl Drop for Context {
    fn drop(&mut self) {
        if self.keeper.is_none() {
            // SAFETY: opened here, and everything made from it holds it by Arc, so nothing is left.
            unsafe { loaded::ibv_close_device(self.as_ptr()) };
        }
    }
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
}
