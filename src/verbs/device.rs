//! RDMA devices, what they can do, and an opened one.

use std::any::Any;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_sys as sys;
use serde::Serialize;

use super::{VerbsError, port_addresses};

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
    /// Whether it can stamp completions itself.
    pub completion_timestamps: bool,
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
    /// Signalling rate in Gbit/s, all lanes together.
    pub gigabits_per_second: f64,
    /// IP addresses by which the connection manager finds it, IPv4 first.
    pub addresses: Vec<IpAddr>,
}

/// Lists the devices of this host with their ports, in the kernel's order.
///
/// # Errors
/// When the list cannot be read, or a device in it cannot be opened or asked.
pub fn devices() -> Result<Vec<Device>, VerbsError> {
    let mut count = 0;
    // SAFETY: `count` is valid for writing; the list is freed below.
    let list = unsafe { sys::__ibv_get_device_list(&mut count) };
    if list.is_null() {
        let error = std::io::Error::last_os_error();
        // Without the kernel's RDMA modules there are no devices; that is an empty list, not a failure.
        return match error.raw_os_error() {
            Some(libc::ENOSYS | libc::ENOENT) => Ok(Vec::new()),
            _ => Err(VerbsError::last("ibv_get_device_list", "this host")),
        };
    }
    let found = (0..count as usize)
        .map(|index| {
            // SAFETY: the list holds `count` valid device pointers until it is freed.
            let device = unsafe { *list.add(index) };
            // SAFETY: the device is in a list that has not been freed.
            unsafe { Context::open(device) }.and_then(|context| context.describe())
        })
        .collect();
    // SAFETY: the list came from ibv_get_device_list; the contexts opened from it do not need it.
    unsafe { sys::ibv_free_device_list(list) };
    found
}

/// An opened device.
pub struct Context {
    raw: NonNull<sys::ibv_context>,
    name: String,
    owner: Owner,
}

enum Owner {
    /// Opened here, closed on drop.
    Here,
    /// Belongs to something else (a connection manager id), which is kept alive.
    Borrowed(#[expect(dead_code, reason = "held, never read")] Arc<dyn Any + Send + Sync>),
}

// SAFETY: verbs may be called from any thread, several at a time (ibv_open_device(3) and its companions).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Something happened to a device as a whole, outside any work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncEvent {
    /// The event in words.
    pub description: String,
    /// Whether no further message can be expected.
    pub fatal: bool,
}

impl Context {
    /// Opens a device.
    ///
    /// # Safety
    /// `device` must be in a device list that has not been freed.
    unsafe fn open(device: *mut sys::ibv_device) -> Result<Self, VerbsError> {
        // SAFETY: the caller vouches for the device.
        let (name, raw) = unsafe {
            let name = CStr::from_ptr(sys::ibv_get_device_name(device))
                .to_string_lossy()
                .into_owned();
            (name, sys::ibv_open_device(device))
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Context {
                raw,
                name,
                owner: Owner::Here,
            }),
            None => Err(VerbsError::last("ibv_open_device", name)),
        }
    }

    /// Opens a device by name.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be opened.
    pub fn open_by_name(name: &str) -> Result<Self, VerbsError> {
        let mut count = 0;
        // SAFETY: `count` is valid for writing; the list is freed below.
        let list = unsafe { sys::__ibv_get_device_list(&mut count) };
        if list.is_null() {
            return Err(VerbsError::last("ibv_get_device_list", "this host"));
        }
        // SAFETY: the list holds `count` valid device pointers.
        let mut found = (0..count as usize).map(|index| unsafe { *list.add(index) });
        let device = found.find(|&device| {
            // SAFETY: a device of the list has a name that lives as long as the list.
            let candidate = unsafe { CStr::from_ptr(sys::ibv_get_device_name(device)) };
            candidate.to_bytes() == name.as_bytes()
        });
        let opened = match device {
            // SAFETY: the list has not been freed.
            Some(device) => unsafe { Context::open(device) },
            None => Err(VerbsError::code("ibv_open_device", name, libc::ENODEV)),
        };
        // SAFETY: the list came from ibv_get_device_list.
        unsafe { sys::ibv_free_device_list(list) };
        opened
    }

    /// A context that somebody else opened and closes.
    ///
    /// # Safety
    /// `raw` must stay open as long as `keeper` lives.
    pub(crate) unsafe fn borrowed(
        raw: NonNull<sys::ibv_context>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        // SAFETY: an opened context points to its device, which has a name.
        let name = unsafe { CStr::from_ptr(sys::ibv_get_device_name((*raw.as_ptr()).device)) };
        Context {
            raw,
            name: name.to_string_lossy().into_owned(),
            owner: Owner::Borrowed(keeper),
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
        let code = unsafe { sys::ibv_query_device(self.as_ptr(), attributes.as_mut_ptr()) };
        if code != 0 {
            return Err(VerbsError::code("ibv_query_device", &self.name, code));
        }
        // SAFETY: the query succeeded and filled it in.
        let attributes = unsafe { attributes.assume_init() };
        // SAFETY: the array is zero-terminated text within the attributes.
        let firmware = unsafe { CStr::from_ptr(attributes.fw_ver.as_ptr()) };
        let ports = (1..=attributes.phys_port_cnt)
            .map(|number| self.port(number))
            .collect::<Result<_, _>>()?;
        let numa_node = std::fs::read_to_string(format!(
            "/sys/class/infiniband/{}/device/numa_node",
            self.name
        ))
        .ok()
        .and_then(|text| text.trim().parse().ok());
        Ok(Device {
            name: self.name.clone(),
            node_guid: format!("{:016x}", u64::from_be(attributes.node_guid)),
            firmware: firmware.to_string_lossy().into_owned(),
            vendor: (attributes.vendor_id, attributes.vendor_part_id),
            numa_node,
            limits: DeviceLimits {
                max_queue_pair_work_requests: attributes.max_qp_wr.max(0) as u32,
                max_completion_queue_entries: attributes.max_cqe.max(0) as u32,
                completion_timestamps: self.completion_timestamps(),
            },
            ports,
        })
    }

    fn completion_timestamps(&self) -> bool {
        let mut attributes = MaybeUninit::<sys::ibv_device_attr_ex>::zeroed();
        // SAFETY: the context is open, no input is needed, and the attributes are writable. All-zero memory is a value
        // of this C structure of integers.
        unsafe {
            let code =
                sys::ibv_query_device_ex(self.as_ptr(), std::ptr::null(), attributes.as_mut_ptr());
            code == 0 && attributes.assume_init().completion_timestamp_mask != 0
        }
    }

    fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let mut attributes = MaybeUninit::<sys::ibv_port_attr>::zeroed();
        // SAFETY: the context is open and the attributes are writable; all-zero memory is a value of this structure.
        let (code, attributes) = unsafe {
            let code = sys::___ibv_query_port(self.as_ptr(), number, attributes.as_mut_ptr());
            (code, attributes.assume_init())
        };
        if code != 0 {
            return Err(VerbsError::code(
                "ibv_query_port",
                format!("{} port {number}", self.name),
                code,
            ));
        }
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
            gigabits_per_second: lane_rate(attributes.active_speed)
                * lanes(attributes.active_width),
            addresses: port_addresses(&self.name, number),
        })
    }

    /// Takes an asynchronous event if one waits. Never blocks, provided that nobody else takes this device's events.
    ///
    /// # Errors
    /// When a waiting event cannot be read.
    pub fn take_async_event(&self) -> Result<Option<AsyncEvent>, VerbsError> {
        // SAFETY: the context is open, and so is its descriptor.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().async_fd) };
        let mut waiting = [PollFd::new(descriptor, PollFlags::POLLIN)];
        if !poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return Ok(None);
        }
        let mut event = MaybeUninit::<sys::ibv_async_event>::uninit();
        // SAFETY: the context is open and the event is writable.
        if unsafe { sys::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) } != 0 {
            return Err(VerbsError::last("ibv_get_async_event", &self.name));
        }
        // SAFETY: the call succeeded, so the event is written; it is acknowledged exactly once.
        let (kind, description) = unsafe {
            let mut event = event.assume_init();
            let kind = event.event_type as u32;
            let text = CStr::from_ptr(sys::ibv_event_type_str(event.event_type))
                .to_string_lossy()
                .into_owned();
            sys::ibv_ack_async_event(&mut event);
            (kind, text)
        };
        use sys::ibv_event_type as of;
        let fatal = [
            of::IBV_EVENT_DEVICE_FATAL,
            of::IBV_EVENT_PORT_ERR,
            of::IBV_EVENT_CQ_ERR,
            of::IBV_EVENT_QP_FATAL,
            of::IBV_EVENT_QP_REQ_ERR,
            of::IBV_EVENT_QP_ACCESS_ERR,
        ]
        .iter()
        .any(|&candidate| candidate as u32 == kind);
        Ok(Some(AsyncEvent {
            description: format!("{description} ({})", self.name),
            fatal,
        }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if matches!(self.owner, Owner::Here) {
            // SAFETY: opened here, and everything made from it holds it by Arc, so nothing is left.
            unsafe { sys::ibv_close_device(self.as_ptr()) };
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Context").field(&self.name).finish()
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
fn mtu_bytes(code: sys::ibv_mtu::Type) -> u32 {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
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
