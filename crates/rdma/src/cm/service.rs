//! Ids by their service type.

use std::net::IpAddr;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys as sys;

use super::{CmError, EventChannel, Id, UcRoute};
use crate::loaded;

/// The service type of an id, and how one for UC is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdService {
    /// RC.
    ReliableConnection,
    /// UC, by this route.
    UnreliableConnection(UcRoute),
    /// UD.
    UnreliableDatagram,
}

impl IdService {
    /// Creates an id. One for UC is bound to the local address already.
    pub(super) fn create(
        self,
        channel: &Arc<EventChannel>,
        address: IpAddr,
    ) -> Result<Id, CmError> {
        // rdma_create_id derives the service type from the port space.
        let port_space = match self {
            IdService::ReliableConnection => sys::rdma_port_space::RDMA_PS_TCP,
            IdService::UnreliableConnection(route) => return route.bound_id(channel, address),
            IdService::UnreliableDatagram => sys::rdma_port_space::RDMA_PS_UDP,
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the channel exists and is held by the id; `raw` is writable.
        let code = unsafe {
            loaded::rdma_create_id(channel.as_ptr(), &mut raw, std::ptr::null_mut(), port_space)
        };
        match NonNull::new(raw) {
            // SAFETY: just created.
            Some(raw) if code == 0 => Ok(unsafe { Id::from_raw(raw, channel) }),
            _ => Err(CmError::last("rdma_create_id", format!("{self:?}"))),
        }
    }

    /// Creates an id that is bound to a local address; the kernel chooses the port number.
    pub(super) fn bound(self, channel: &Arc<EventChannel>, address: IpAddr) -> Result<Id, CmError> {
        let id = self.create(channel, address)?;
        if !matches!(self, IdService::UnreliableConnection(_)) {
            id.bind(address)?;
        }
        Ok(id)
    }
}
