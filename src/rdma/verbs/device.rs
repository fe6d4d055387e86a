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
use serde::Serialize;

use super::{VerbsError, port_addresses};
use crate::rdma::loaded;

/// An RDMA device of this host with its ports.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    /// The kernel's name of it, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Its node GUID, as 16 hexadecimal digits.
    pub node_guid: String,
    /// The firmware's version; empty where there is none.
    pub firmware: String,
    /// Vendor and part number.
    pub vendor: (u32, u32),
    /// NUMA node of the slot it sits in, where it has one.
    pub numa_node: Option<usize>,
    /// Where it sits on PCI, such as `0000:3b:00.0`; `None` for what is no PCI function itself.
    pub pci_address: Option<String>,
    /// Whether it is a driver in software (rxe, siw), which sits in no slot.
    pub software: bool,
    /// The limits that matter for the benchmark.
    pub limits: DeviceLimits,
    /// All its ports.
    pub ports: Vec<Port>,
}

/// Limits of a device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceLimits {
    /// Work requests in one queue of a queue pair.
    pub max_queue_pair_work_requests: u32,
    /// Entries of a completion queue.
    pub max_completion_queue_entries: u32,
    /// Completion vectors: interrupts among which completion queues choose.
    pub completion_vectors: u32,
    /// Whether it can stamp completions itself; `None` if its driver does not tell.
    pub completion_timestamps: Option<bool>,
}

/// What a port is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE.
    Ethernet,
    /// Neither, or not told.
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
    /// The local identifier that the subnet manager gave it; 0 on Ethernet.
    pub lid: u16,
    /// Entries of its table of partition keys.
    pub partition_keys: u16,
    /// Signalling rate in Gbit/s, all lanes together.
    pub gigabits_per_second: f64,
    /// IP addresses by which the connection manager finds it, IPv4 first.
    pub addresses: Vec<IpAddr>,
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
        let (name, raw) = unsafe { (name_of(device), loaded::ibv_open_device(device)) };
        Ok(Context {
            raw: VerbsError::created(raw, "ibv_open_device", || &name)?,
            name,
            keeper: None,
        })
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
        Context {
            raw,
            // SAFETY: an opened context points to its device.
            name: unsafe { name_of((*raw.as_ptr()).device) },
            keeper: Some(keeper),
        }
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
        let ports = (1..=attributes.phys_port_cnt)
            .map(|number| self.port(number))
            .collect::<Result<_, _>>()?;
        let sysfs = Path::new("/sys/class/infiniband").join(&self.name);
        let numa_node = std::fs::read_to_string(sysfs.join("device/numa_node"));
        Ok(Device {
            name: self.name.clone(),
            node_guid: format!("{:016x}", u64::from_be(attributes.node_guid)),
            firmware: firmware.to_string_lossy().into_owned(),
            vendor: (attributes.vendor_id, attributes.vendor_part_id),
            numa_node: numa_node.ok().and_then(|text| text.trim().parse().ok()),
            pci_address: pci_address(&sysfs),
            software: std::fs::canonicalize(sysfs)
                .is_ok_and(|path| path.to_string_lossy().contains("/devices/virtual/")),
            limits: DeviceLimits {
                max_queue_pair_work_requests: attributes.max_qp_wr.max(0) as u32,
                max_completion_queue_entries: attributes.max_cqe.max(0) as u32,
                // SAFETY: the context is open.
                completion_vectors: unsafe { self.raw.as_ref().num_comp_vectors }.max(0) as u32,
                completion_timestamps: self.completion_timestamps(),
            },
            ports,
        })
    }

    /// Asks through the extended verbs; `None` where the provider has none. (The binding's own look-up of them compares
    /// the marker with 32 bits of ones instead of a pointer's, and never finds them.)
    fn completion_timestamps(&self) -> Option<bool> {
        let mut attributes = MaybeUninit::<sys::ibv_device_attr_ex>::zeroed();
        // SAFETY: infiniband/verbs.h: a context whose `abi_compat` has all bits set is the last member of a
        // `verbs_context`. The operation is checked to lie within the part that the provider's version has (`sz` counts
        // from its end), the context is open, no input is needed, and zero is a value of the attributes.
        unsafe {
            let context = self.as_ptr();
            if (*context).abi_compat as usize != usize::MAX {
                return None;
            }
            let extended = context
                .byte_sub(std::mem::offset_of!(sys::verbs_context, context))
                .cast::<sys::verbs_context>();
            let needed = size_of::<sys::verbs_context>()
                - std::mem::offset_of!(sys::verbs_context, query_device_ex);
            if (*extended).sz < needed {
                return None;
            }
            let query = (*extended).query_device_ex?;
            let size = size_of::<sys::ibv_device_attr_ex>();
            let code = query(context, std::ptr::null(), attributes.as_mut_ptr(), size);
            (code == 0).then(|| attributes.assume_init().completion_timestamp_mask != 0)
        }
    }

    /// Asks for the state of a port.
    ///
    /// # Errors
    /// When the query fails.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let mut attributes = MaybeUninit::<sys::ibv_port_attr>::zeroed();
        // SAFETY: the context is open and the attributes are writable; all-zero memory is a value of this structure,
        // and what the function writes is the beginning of it.
        let (code, attributes) = unsafe {
            let code =
                loaded::ibv_query_port(self.as_ptr(), number, attributes.as_mut_ptr().cast());
            (code, attributes.assume_init())
        };
        VerbsError::check(code, "ibv_query_port", || {
            format!("{} port {number}", self.name)
        })?;
        Ok(Port {
            number,
            active: attributes.state == sys::ibv_port_state::IBV_PORT_ACTIVE,
            state: port_state(attributes.state),
            link_layer: match attributes.link_layer {
                1 => LinkLayer::InfiniBand,
                2 => LinkLayer::Ethernet,
                _ => LinkLayer::Unspecified,
            },
            mtu: mtu_bytes(attributes.active_mtu),
            max_message: attributes.max_msg_sz,
            lid: attributes.lid,
            partition_keys: attributes.pkey_tbl_len,
            gigabits_per_second: lane_rate(attributes.active_speed)
                * lanes(attributes.active_width),
            addresses: port_addresses(&self.name, number),
        })
    }

    /// Takes an asynchronous event if one waits: its kind, and the port if it is about one. Never blocks, provided that
    /// nobody else takes this device's events.
    fn take_async_event(&self) -> Result<Option<(u32, i32)>, VerbsError> {
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
        Ok(Some((kind, port)))
    }

    /// What has happened to the device as a whole, or to this port of it, so that no further message can be expected.
    /// Takes all events that wait until it finds one. Never blocks, provided that nobody else takes this device's
    /// events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn fatal_event(&self, port: u8) -> Result<Option<String>, VerbsError> {
        use sys::ibv_event_type as of;
        let fatal = [
            (
                of::IBV_EVENT_DEVICE_FATAL,
                "the device has failed or has gone",
            ),
            (of::IBV_EVENT_PORT_ERR, "the port went down"),
            (of::IBV_EVENT_CQ_ERR, "a completion queue overran"),
            (of::IBV_EVENT_QP_FATAL, "a queue pair failed"),
            (
                of::IBV_EVENT_QP_REQ_ERR,
                "a queue pair got an invalid request",
            ),
            (
                of::IBV_EVENT_QP_ACCESS_ERR,
                "a queue pair refused an access",
            ),
        ];
        while let Some((kind, of_port)) = self.take_async_event()? {
            // Another port of the same device may go down without harm.
            let elsewhere = kind == of::IBV_EVENT_PORT_ERR as u32 && of_port as u8 != port;
            let known = fatal.iter().find(|(known, _)| *known as u32 == kind);
            if let Some((_, name)) = known.filter(|_| !elsewhere) {
                return Ok(Some(format!("{name} ({}, event {kind})", self.name)));
            }
        }
        Ok(None)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.keeper.is_none() {
            // SAFETY: opened here, and everything made from it holds it by Arc, so nothing is left.
            unsafe { loaded::ibv_close_device(self.as_ptr()) };
        }
    }
}

fn port_state(state: sys::ibv_port_state::Type) -> &'static str {
    match state {
        sys::ibv_port_state::IBV_PORT_DOWN => "down",
        sys::ibv_port_state::IBV_PORT_INIT => "initialising",
        sys::ibv_port_state::IBV_PORT_ARMED => "armed",
        sys::ibv_port_state::IBV_PORT_ACTIVE => "active",
        sys::ibv_port_state::IBV_PORT_ACTIVE_DEFER => "active, deferred",
        _ => "unknown",
    }
}

/// InfiniBand Architecture Specification, volume 1: MTU codes 1 to 5 are 256 to 4096 bytes.
pub(super) fn mtu_bytes(code: sys::ibv_mtu::Type) -> u32 {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
}

/// The code of an MTU in bytes: the reverse.
pub(crate) fn mtu_code(bytes: u32) -> sys::ibv_mtu::Type {
    bytes.max(256).ilog2().min(12) - 7
}

/// `ibv_query_port(3)`: codes of the width.
fn lanes(code: u8) -> f64 {
    match code {
        1 => 1.0,
        2 => 4.0,
        4 => 8.0,
        8 => 12.0,
        16 => 2.0,
        _ => 0.0,
    }
}

/// `ibv_query_port(3)`: codes of the speed of a lane, in Gbit/s.
fn lane_rate(code: u8) -> f64 {
    match code {
        1 => 2.5,
        2 => 5.0,
        4 | 8 => 10.0,
        16 => 14.0,
        32 => 25.0,
        64 => 50.0,
        128 => 100.0,
        _ => 0.0,
    }
}
