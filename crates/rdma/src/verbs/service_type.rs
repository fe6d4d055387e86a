//! Service types.

use rdma_sys as sys;
use serde::{Deserialize, Serialize};

/// The service type of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServiceType {
    /// Reliable connection.
    ReliableConnection,
    /// Unreliable connection.
    UnreliableConnection,
    /// Unreliable datagram.
    UnreliableDatagram,
}

impl ServiceType {
    pub(crate) fn raw(self) -> sys::ibv_qp_type::Type {
        match self {
            ServiceType::ReliableConnection => sys::ibv_qp_type::IBV_QPT_RC,
            ServiceType::UnreliableConnection => sys::ibv_qp_type::IBV_QPT_UC,
            ServiceType::UnreliableDatagram => sys::ibv_qp_type::IBV_QPT_UD,
        }
    }
}
