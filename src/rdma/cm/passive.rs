//! The passive end: it listens and accepts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::{CmError, Connection, EventChannel, EventKind, Id, IdService};
use crate::rdma::verbs::{Context, ProtectionDomain, QueuePair, QueuePairAttributes};

/// The end that is connected to, in a state.
#[derive(Debug)]
pub struct PassiveEndpoint<State> {
    state: State,
    service: IdService,
    id: Arc<Id>,
}

/// Waits for somebody to connect.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
}

/// Somebody wants to connect.
#[derive(Debug)]
pub struct Requested;

/// There is a queue pair for the one who wants to connect, and receive requests can be posted to it.
#[derive(Debug)]
pub struct RequestedWithQueuePair {
    queue_pair: QueuePair,
}

/// The request was accepted.
#[derive(Debug)]
pub struct Accepting {
    queue_pair: QueuePair,
}

impl PassiveEndpoint<Listening> {
    /// Listens on a local address, which must lead to `device` and `port`; the kernel chooses the port number.
    ///
    /// # Errors
    /// When the address has no RDMA device or another one.
    pub fn listen(
        channel: &Arc<EventChannel>,
        service: IdService,
        (device, port): (&str, u8),
        address: IpAddr,
    ) -> Result<Self, CmError> {
        let id = Id::bound(channel, service, address)?;
        id.check_device(address, device, port)?;
        id.listen()?;
        Ok(PassiveEndpoint {
            state: Listening {
                address: SocketAddr::new(address, id.local_port()),
            },
            service,
            id: Arc::new(id),
        })
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// Waits for a request.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn request(&self, limit: Duration) -> Result<PassiveEndpoint<Requested>, CmError> {
        let step = "waiting for a connection request";
        let event = self.id.expect(EventKind::ConnectRequest, step, limit)?;
        let id = event
            .into_request(self.id.channel())
            .expect("a request brings an id");
        Ok(PassiveEndpoint {
            state: Requested,
            service: self.service,
            id: Arc::new(id),
        })
    }
}

impl PassiveEndpoint<Requested> {
    /// The device's context.
    ///
    /// # Errors
    /// When the id has lost its device.
    pub fn context(&self) -> Result<Arc<Context>, CmError> {
        self.id.context()
    }

    /// Gives it a queue pair.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn with_queue_pair(
        self,
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
    ) -> Result<PassiveEndpoint<RequestedWithQueuePair>, CmError> {
        let queue_pair = self.id.create_queue_pair(domain, attributes)?;
        Ok(PassiveEndpoint {
            state: RequestedWithQueuePair { queue_pair },
            service: self.service,
            id: self.id,
        })
    }
}

impl PassiveEndpoint<RequestedWithQueuePair> {
    /// Accepts the request.
    ///
    /// # Errors
    /// When the connection manager refuses.
    pub fn accept(self) -> Result<PassiveEndpoint<Accepting>, CmError> {
        self.id.accept(&self.state.queue_pair)?;
        Ok(PassiveEndpoint {
            state: Accepting {
                queue_pair: self.state.queue_pair,
            },
            service: self.service,
            id: self.id,
        })
    }
}

impl PassiveEndpoint<Accepting> {
    /// Waits until the connection stands; a datagram end stands at once.
    ///
    /// # Errors
    /// When it does not come about, or not in time.
    pub fn established(self, limit: Duration) -> Result<Connection, CmError> {
        if self.service != IdService::UnreliableDatagram {
            self.id.expect(EventKind::Established, "accepting", limit)?;
        }
        Ok(Connection::new(self.state.queue_pair, self.id, None))
    }
}
