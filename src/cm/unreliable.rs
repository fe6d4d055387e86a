//! UC over the connection manager, which has no port space for it.
//!
//! `rdma_create_id` takes the service type from the port space. `rdma_create_ep` takes it from the address information
//! it is handed, and with `RDMA_PS_IB` it passes UC on to the kernel, also for IPv4 addresses and on RoCE. It works
//! with a channel of its own, from which the id is then moved to ours.
//!
//! Both ends are made as passive ones, which are only bound to their address. For an active one it would resolve the
//! way to the peer as well, but in a call that blocks, that no signal ends and that makes one attempt.

use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;
use std::sync::Arc;

use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use rdma_sys as sys;

use super::{CmError, EventChannel, Id};

/// `RAI_PASSIVE` of rdma/rdma_cma.h, which the bindings leave out.
const FLAG_PASSIVE: i32 = 1;

/// An id for UC, bound to a local address, ready to listen or to resolve the way to a peer.
pub(super) fn bound_id(channel: &Arc<EventChannel>, address: IpAddr) -> Result<Id, CmError> {
    let source = SocketAddr::new(address, 0);
    let object = || format!("UC, {address}");
    let from = SockaddrStorage::from(source);
    let mut information = sys::rdma_addrinfo {
        ai_flags: FLAG_PASSIVE,
        ai_family: if source.is_ipv4() {
            libc::AF_INET
        } else {
            libc::AF_INET6
        },
        ai_qp_type: sys::ibv_qp_type::IBV_QPT_UC as i32,
        ai_port_space: sys::rdma_port_space::RDMA_PS_IB as i32,
        ai_src_len: length_of(source),
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
        sys::rdma_create_ep(
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
    match unsafe { sys::rdma_migrate_id(id.as_ptr(), channel.as_ptr()) } {
        0 => Ok(id),
        _ => Err(CmError::last("rdma_migrate_id", object())),
    }
}

/// The exact length of an address, which the kernel checks.
fn length_of(address: SocketAddr) -> libc::socklen_t {
    let length = if address.is_ipv4() {
        size_of::<libc::sockaddr_in>()
    } else {
        size_of::<libc::sockaddr_in6>()
    };
    length as libc::socklen_t
}
