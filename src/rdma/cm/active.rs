//! The active end: it resolves the peer's address and connects.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CmError, Connection, EventChannel, EventKind, Id, IdService};
use crate::rdma::verbs::{Context, ProtectionDomain, QueuePair, QueuePairAttributes};

/// The end that connects, in a state.
#[derive(Debug)]
pub struct ActiveEndpoint<State> {
    state: State,
    id: Arc<Id>,
}

/// The way to the peer is known.
#[derive(Debug)]
pub struct Resolved;

/// There is a queue pair, so receive requests can be posted and a connection asked for.
#[derive(Debug)]
pub struct Prepared {
    queue_pair: QueuePair,
}

/// A connection was asked for.
#[derive(Debug)]
pub struct Connecting {
    queue_pair: QueuePair,
}

impl ActiveEndpoint<Resolved> {
    /// Resolves the way from a local address, which must lead to `device` and `port`, to the peer.
    ///
    /// # Errors
    /// When there is no way, it is not found in time, or it leads over another device.
    pub fn resolve(
        channel: &Arc<EventChannel>,
        service: IdService,
        (device, port): (&str, u8),
        from: IpAddr,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<Self, CmError> {
        let id = Id::create(channel, service, from)?;
        resolve_address(&id, from, to, limit)?;
        id.resolve_route(limit)?;
        id.expect(EventKind::RouteResolved, "resolving the route", limit)?;
        id.check_device(from, device, port)?;
        Ok(ActiveEndpoint {
            state: Resolved,
            id: Arc::new(id),
        })
    }

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
    ) -> Result<ActiveEndpoint<Prepared>, CmError> {
        let queue_pair = self.id.create_queue_pair(domain, attributes)?;
        Ok(ActiveEndpoint {
            state: Prepared { queue_pair },
            id: self.id,
        })
    }
}

/// One attempt of the kernel to resolve an address.
const ATTEMPT: Duration = Duration::from_millis(250);

/// Resolves the address in short attempts: where the two ports are joined without a wire (veth), the answer of the
/// neighbour can come before the kernel waits for it, and is then noticed at the end of the attempt only.
fn resolve_address(id: &Id, from: IpAddr, to: SocketAddr, limit: Duration) -> Result<(), CmError> {
    let deadline = Instant::now() + limit;
    loop {
        id.resolve_address(from, to, ATTEMPT)?;
        let left = deadline.saturating_duration_since(Instant::now());
        match id.expect(EventKind::AddressResolved, "resolving the address", left) {
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

impl ActiveEndpoint<Prepared> {
    /// Asks the peer for a connection.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn connect(self) -> Result<ActiveEndpoint<Connecting>, CmError> {
        self.id.connect()?;
        Ok(ActiveEndpoint {
            state: Connecting {
                queue_pair: self.state.queue_pair,
            },
            id: self.id,
        })
    }
}

impl ActiveEndpoint<Connecting> {
    /// Waits until the peer has accepted.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub fn established(self, limit: Duration) -> Result<Connection, CmError> {
        let event = self
            .id
            .expect(EventKind::Established, "connecting", limit)?;
        Ok(Connection::new(
            self.state.queue_pair,
            self.id,
            event.address,
        ))
    }
}
