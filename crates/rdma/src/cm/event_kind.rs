//! What the connection manager reports.

use rdma_sys as sys;

/// The events of the connection manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The address has a device.
    AddressResolved,
    /// It has none.
    AddressError,
    /// The way to it is known.
    RouteResolved,
    /// It is not.
    RouteError,
    /// Somebody wants to connect to a listening id.
    ConnectRequest,
    /// Connecting failed.
    ConnectError,
    /// No answer came.
    Unreachable,
    /// The peer does not want to.
    Rejected,
    /// Connected, or for UD: the peer's address is known.
    Established,
    /// The peer disconnected.
    Disconnected,
    /// The device was removed.
    DeviceRemoval,
    /// The path has changed under the connection.
    AddressChange,
    /// The time in which old packets could arrive has passed.
    TimeWaitExit,
    /// Any other.
    Other(u32),
}

impl EventKind {
    pub(super) fn from_raw(raw: sys::rdma_cm_event_type::Type) -> Self {
        use sys::rdma_cm_event_type as of;
        match raw {
            of::RDMA_CM_EVENT_ADDR_RESOLVED => EventKind::AddressResolved,
            of::RDMA_CM_EVENT_ADDR_ERROR => EventKind::AddressError,
            of::RDMA_CM_EVENT_ROUTE_RESOLVED => EventKind::RouteResolved,
            of::RDMA_CM_EVENT_ROUTE_ERROR => EventKind::RouteError,
            of::RDMA_CM_EVENT_CONNECT_REQUEST => EventKind::ConnectRequest,
            of::RDMA_CM_EVENT_CONNECT_ERROR => EventKind::ConnectError,
            of::RDMA_CM_EVENT_UNREACHABLE => EventKind::Unreachable,
            of::RDMA_CM_EVENT_REJECTED => EventKind::Rejected,
            of::RDMA_CM_EVENT_ESTABLISHED => EventKind::Established,
            of::RDMA_CM_EVENT_DISCONNECTED => EventKind::Disconnected,
            of::RDMA_CM_EVENT_DEVICE_REMOVAL => EventKind::DeviceRemoval,
            of::RDMA_CM_EVENT_ADDR_CHANGE => EventKind::AddressChange,
            of::RDMA_CM_EVENT_TIMEWAIT_EXIT => EventKind::TimeWaitExit,
            other => EventKind::Other(other),
        }
    }

    /// Whether an established connection can carry no more messages after this.
    pub fn ends_connection(self) -> bool {
        matches!(
            self,
            EventKind::Disconnected
                | EventKind::DeviceRemoval
                | EventKind::ConnectError
                | EventKind::Unreachable
                | EventKind::Rejected
        )
    }
}
