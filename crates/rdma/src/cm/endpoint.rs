//! Both ends of a connection, state by state: the active one resolves the peer's address and connects, the passive one
//! listens and accepts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CmError, Event, EventChannel, EventKind, Id, IdService};
use crate::verbs::{
    AddressVector, Context, OutstandingReads, ProtectionDomain, QueuePair, QueuePairAttributes,
    Retries,
};

/// The end that connects, with the way to its peer.
#[derive(Debug)]
pub struct ActiveEndpoint {
    id: Arc<Id>,
}

impl ActiveEndpoint {
    /// Resolves the way from a local address, which must lead to `device` and `port`, to the peer, with a traffic class
    /// if one is given, all within `limit`.
    ///
    /// # Errors
    /// When there is no way, it is not found in time, or it leads over another device.
    pub fn resolve(
        channel: &Arc<EventChannel>,
        service: IdService,
        (device, port): (&str, u8),
        (from, to): (IpAddr, SocketAddr),
        traffic_class: Option<u8>,
        limit: Duration,
    ) -> Result<Self, CmError> {
        let id = service.create(channel, from)?;
        if let Some(class) = traffic_class {
            id.set_traffic_class(class)?;
        }
        let deadline = Instant::now() + limit;
        resolve_address(&id, from, to, limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        id.resolve_route(left)?;
        id.expect(EventKind::RouteResolved, "resolving the route", left)?;
        id.check_device(from, device, port)?;
        Ok(ActiveEndpoint { id: Arc::new(id) })
    }

    /// The device's context.
    pub fn context(&self) -> Arc<Context> {
        self.id.context()
    }

    /// Makes a queue pair and asks the peer for a connection.
    ///
    /// # Errors
    /// When the device refuses, or the peer cannot be asked.
    pub fn connect(
        self,
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
        retries: Retries,
        reads: OutstandingReads,
    ) -> Result<PendingConnection, CmError> {
        let queue_pair = self.id.create_queue_pair(domain, attributes)?;
        self.connect_by(Arc::new(queue_pair), retries, reads)
    }

    /// Asks the peer where to send datagrams to. They will be sent by a queue pair that there is already, on the device
    /// of this end: one queue pair of UD reaches any number of peers.
    ///
    /// # Errors
    /// When the peer cannot be asked.
    pub fn connect_datagrams(
        self,
        queue_pair: &Arc<QueuePair>,
    ) -> Result<PendingConnection, CmError> {
        let (retries, reads) = (Retries::default(), OutstandingReads::default());
        self.connect_by(Arc::clone(queue_pair), retries, reads)
    }

    fn connect_by(
        self,
        queue_pair: Arc<QueuePair>,
        retries: Retries,
        reads: OutstandingReads,
    ) -> Result<PendingConnection, CmError> {
        self.id.connect(retries, reads)?;
        Ok(PendingConnection {
            queue_pair,
            id: self.id,
            awaited: Some(CONNECTING),
            not_ready_timer: retries.not_ready_timer,
        })
    }
}

/// What the active end waits for.
const CONNECTING: &str = "connecting";

/// One attempt of the kernel to resolve an address.
const ATTEMPT: Duration = Duration::from_millis(250);

/// Resolves the address in short attempts: where the two ports are joined without a wire (veth), the answer of the
/// neighbour can come before the kernel waits for it, and is then noticed at the end of the attempt only.
fn resolve_address(id: &Id, from: IpAddr, to: SocketAddr, limit: Duration) -> Result<(), CmError> {
    let deadline = Instant::now() + limit;
    loop {
        id.resolve_address(from, to, ATTEMPT)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let step = "resolving the address";
        match id.expect(EventKind::AddressResolved, step, left) {
            Ok(_) => return Ok(()),
            Err(CmError::Event {
                event: EventKind::AddressError,
                status,
                ..
            }) if status == -libc::ETIMEDOUT && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}

/// The end that is connected to: it waits for somebody to connect.
#[derive(Debug)]
pub struct PassiveEndpoint {
    address: SocketAddr,
    service: IdService,
    id: Id,
}

/// Somebody wants to connect.
#[derive(Debug)]
pub struct ConnectionRequest {
    service: IdService,
    id: Arc<Id>,
}

impl PassiveEndpoint {
    /// Listens on a local address, which must lead to `device` and `port`; the kernel chooses the port number. Of
    /// requests that come at once at most `waiting` are kept until they are asked for; it rejects the others.
    ///
    /// # Errors
    /// When the address has no RDMA device or another one.
    pub fn listen(
        channel: &Arc<EventChannel>,
        service: IdService,
        (device, port): (&str, u8),
        address: IpAddr,
        waiting: usize,
    ) -> Result<Self, CmError> {
        let id = service.bound(channel, address)?;
        id.check_device(address, device, port)?;
        id.listen(waiting)?;
        Ok(PassiveEndpoint {
            address: SocketAddr::new(address, id.local_port()),
            service,
            id,
        })
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for a request.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn request(&self, limit: Duration) -> Result<ConnectionRequest, CmError> {
        let step = "waiting for a connection request";
        let event = self.id.expect(EventKind::ConnectRequest, step, limit)?;
        let id = Id::requested(event, self.id.channel()).expect("a request brings an id");
        Ok(ConnectionRequest {
            service: self.service,
            id: Arc::new(id),
        })
    }
}

impl ConnectionRequest {
    /// The device's context.
    pub fn context(&self) -> Arc<Context> {
        self.id.context()
    }

    /// Makes a queue pair and accepts the request.
    ///
    /// # Errors
    /// When the device or the connection manager refuses.
    pub fn accept(
        self,
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
        retries: Retries,
        reads: OutstandingReads,
    ) -> Result<PendingConnection, CmError> {
        let queue_pair = self.id.create_queue_pair(domain, attributes)?;
        self.accept_by(Arc::new(queue_pair), retries, reads)
    }

    /// Accepts the request of one that will send datagrams, and sends it the number of an existing queue pair, on the
    /// device of this end: any number of peers send to one queue pair of UD.
    ///
    /// # Errors
    /// When the connection manager refuses.
    pub fn accept_datagrams(
        self,
        queue_pair: &Arc<QueuePair>,
    ) -> Result<PendingConnection, CmError> {
        let (retries, reads) = (Retries::default(), OutstandingReads::default());
        self.accept_by(Arc::clone(queue_pair), retries, reads)
    }

    fn accept_by(
        self,
        queue_pair: Arc<QueuePair>,
        retries: Retries,
        reads: OutstandingReads,
    ) -> Result<PendingConnection, CmError> {
        self.id.accept(&queue_pair, retries, reads)?;
        queue_pair.set_not_ready_timer(retries.not_ready_timer);
        let stands_at_once = self.service == IdService::UnreliableDatagram;
        Ok(PendingConnection {
            queue_pair,
            id: self.id,
            awaited: (!stands_at_once).then_some("accepting"),
            not_ready_timer: retries.not_ready_timer,
        })
    }
}

/// A queue pair whose connection was asked for or accepted.
#[derive(Debug)]
pub struct PendingConnection {
    queue_pair: Arc<QueuePair>,
    id: Arc<Id>,
    /// The event of the connection manager that is still to come, in words, unless the end is connected at once.
    awaited: Option<&'static str>,
    /// Of [`Retries`], to be set once the connection is established.
    not_ready_timer: u8,
}

impl PendingConnection {
    /// Waits until the connection is established.
    ///
    /// # Errors
    /// When it does not come about, or not in time.
    pub fn established(self, limit: Duration) -> Result<Connection, CmError> {
        let expect = |step| self.id.expect(EventKind::Established, step, limit);
        let event = self.awaited.map(expect).transpose()?;
        // This end receives from here on; librdmacm has just brought its queue pair to RTS.
        if self.awaited == Some(CONNECTING) {
            self.queue_pair.set_not_ready_timer(self.not_ready_timer);
        }
        Ok(Connection {
            queue_pair: self.queue_pair,
            id: self.id,
            address: event.and_then(|event| event.address),
        })
    }
}

/// A queue pair that reaches its peer: one end of an established connection, or of a UD pair that knows its peer.
#[derive(Debug)]
pub struct Connection {
    queue_pair: Arc<QueuePair>,
    id: Arc<Id>,
    address: Option<AddressVector>,
}

impl Connection {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        &self.queue_pair
    }

    /// Where the peer is; known to the active end of a UD pair.
    pub fn address(&self) -> Option<&AddressVector> {
        self.address.as_ref()
    }

    /// The event that ended the connection, if one came. Never blocks.
    pub fn ending(&self) -> Option<Event> {
        let ends = EventKind::ends_connection;
        self.id.find(ends)
    }

    /// Ends it: the queue pair fails, and all of its requests complete, if only by being flushed.
    pub fn disconnect(&self) {
        self.id.disconnect();
    }

    /// Whether its device was removed. Never blocks.
    pub fn was_removed(&self) -> bool {
        let removal = |kind| kind == EventKind::DeviceRemoval;
        self.id.find(removal).is_some()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.disconnect();
    }
}
