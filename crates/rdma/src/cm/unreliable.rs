//! UC over the connection manager, which has no port space for it: two routes to an id.
//!
//! The kernel takes a service type beside the port space, and with `RDMA_PS_IB` it makes UC, also for IPv4 addresses
//! and on RoCE. `rdma_create_id` does not let the caller choose: it derives the service type from the port space.
//!
//! - [`UcRoute::Endpoint`]: `rdma_create_ep` passes on the content of the address information it is handed. It works
//!   with a separate channel, from which the id is then moved to ours. Both ends are made as passive ones, which are
//!   only bound to their address: for an active one it would resolve the way to the peer as well, but in a call that
//!   blocks, that no signal ends and that makes one attempt.
//! - [`UcRoute::Patched`]: `rdma_create_id2`, which `rdma-cm-patch` makes public, creates the id on our channel. It is
//!   looked up at run time, so one hcabench runs with any librdmacm.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use rdma_sys as sys;

use super::{CmError, EventChannel, Id};
use crate::loaded;
use crate::verbs::library_versions;

/// A way to an id for UC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum UcRoute {
    /// By `rdma_create_ep` of any librdmacm.
    Endpoint,
    /// By `rdma_create_id2` of a librdmacm with the patch of `rdma-cm-patch`.
    Patched,
}

impl UcRoute {
    /// All routes, in the order in which they are tried.
    pub const ALL: [UcRoute; 2] = [UcRoute::Endpoint, UcRoute::Patched];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            UcRoute::Endpoint => "endpoint",
            UcRoute::Patched => "patched",
        }
    }

    /// The one that is not this one.
    pub fn other(self) -> Self {
        match self {
            UcRoute::Endpoint => UcRoute::Patched,
            UcRoute::Patched => UcRoute::Endpoint,
        }
    }

    /// The function that creates the id.
    pub fn function(self) -> &'static str {
        match self {
            UcRoute::Endpoint => "rdma_create_ep",
            UcRoute::Patched => CREATE_ID2_NAME,
        }
    }

    /// Checks that the librdmacm in use has the function. Touches no device.
    ///
    /// # Errors
    /// [`CmError::NoCreateId2`] for the patched route, where it is not exported; [`CmError::Verbs`] where there is no
    /// librdmacm at all.
    pub fn check(self) -> Result<(), CmError> {
        match self {
            UcRoute::Endpoint => Ok(()),
            UcRoute::Patched => create_id2().map(drop),
        }
    }

    /// Tries the route: creates an id, binds it to a local address and drops it. That it connects is not shown by that.
    ///
    /// # Errors
    /// When librdmacm lacks the function, or the kernel refuses.
    pub fn probe(self, channel: &Arc<EventChannel>, address: IpAddr) -> Result<(), CmError> {
        self.bound_id(channel, address).map(drop)
    }

    /// An id for UC, bound to a local address, ready to listen or to resolve the way to a peer.
    pub(super) fn bound_id(
        self,
        channel: &Arc<EventChannel>,
        address: IpAddr,
    ) -> Result<Id, CmError> {
        match self {
            UcRoute::Endpoint => by_endpoint(channel, address),
            UcRoute::Patched => by_create_id2(channel, address),
        }
    }
}

/// `rdma_create_id2` as librdmacm/cma.c of rdma-core defines it.
type CreateId2 = unsafe extern "C" fn(
    *mut sys::rdma_event_channel,
    *mut *mut sys::rdma_cm_id,
    *mut c_void,
    sys::rdma_port_space::Type,
    sys::ibv_qp_type::Type,
) -> c_int;

const CREATE_ID2_NAME: &str = "rdma_create_id2";

fn create_id2() -> Result<CreateId2, CmError> {
    loaded::load()?;
    // SAFETY: a function of that name is the one of rdma-cm-patch, whose type this is.
    let found = unsafe { loaded::optional(c"rdma_create_id2") };
    found.ok_or_else(|| CmError::NoCreateId2 {
        library: library_in_use(),
    })
}

/// The file of the librdmacm that this process runs with.
fn library_in_use() -> String {
    let library = library_versions().remove("librdmacm");
    let path = library.map(|library| library.path.display().to_string());
    path.unwrap_or_else(|| "librdmacm".to_owned())
}

fn by_create_id2(channel: &Arc<EventChannel>, address: IpAddr) -> Result<Id, CmError> {
    let create = create_id2()?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the channel exists and is held by the id; `raw` is writable; the context may be null.
    let code = unsafe {
        create(
            channel.as_ptr(),
            &mut raw,
            std::ptr::null_mut(),
            sys::rdma_port_space::RDMA_PS_IB,
            sys::ibv_qp_type::IBV_QPT_UC,
        )
    };
    let id = match NonNull::new(raw) {
        // SAFETY: just created.
        Some(raw) if code == 0 => unsafe { Id::from_raw(raw, channel) },
        _ => return Err(CmError::last(CREATE_ID2_NAME, format!("UC, {address}"))),
    };
    id.bind(address)?;
    Ok(id)
}

/// `RAI_PASSIVE` of rdma/rdma_cma.h, which the bindings leave out.
const FLAG_PASSIVE: i32 = 1;

fn by_endpoint(channel: &Arc<EventChannel>, address: IpAddr) -> Result<Id, CmError> {
    let object = || format!("UC, {address}");
    let from = SockaddrStorage::from(SocketAddr::new(address, 0));
    // The kernel checks the exact length.
    let (family, length) = match address {
        IpAddr::V4(_) => (libc::AF_INET, size_of::<libc::sockaddr_in>()),
        IpAddr::V6(_) => (libc::AF_INET6, size_of::<libc::sockaddr_in6>()),
    };
    let mut information = sys::rdma_addrinfo {
        ai_flags: FLAG_PASSIVE,
        ai_family: family,
        ai_qp_type: sys::ibv_qp_type::IBV_QPT_UC as i32,
        ai_port_space: sys::rdma_port_space::RDMA_PS_IB as i32,
        ai_src_len: length as libc::socklen_t,
        ai_dst_len: 0,
        ai_src_addr: from.as_ptr().cast_mut(),
        ai_dst_addr: std::ptr::null_mut(),
        ai_src_canonname: std::ptr::null_mut(),
        ai_dst_canonname: std::ptr::null_mut(),
        ai_route_len: 0,
        ai_route: std::ptr::null_mut(),
        ai_connect_len: 0,
        ai_connect: std::ptr::null_mut(),
        ai_next: std::ptr::null_mut(),
    };
    let mut raw = std::ptr::null_mut();
    // SAFETY: the information and the address it points to live through the call; `raw` is writable; domain and queue
    // pair attributes may be null.
    let code = unsafe {
        loaded::rdma_create_ep(
            &mut raw,
            &mut information,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    let id = match NonNull::new(raw) {
        // SAFETY: just created; it is moved to the channel right below, or destroyed.
        Some(raw) if code == 0 => unsafe { Id::from_raw(raw, channel) },
        _ => return Err(CmError::last("rdma_create_ep", object())),
    };
    // SAFETY: id and channel exist, and no event of the id is unacknowledged.
    let code = unsafe { loaded::rdma_migrate_id(id.as_ptr(), channel.as_ptr()) };
    CmError::check(code, "rdma_migrate_id", object())?;
    Ok(id)
}
