//! How the connections of an end come about: it connects to its peers, or they connect to it. An end that cannot
//! connect falls back to listening, if so set, and then its peer is the one that connects.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fabric::{FabricPort, failed};
use super::fallback::{Notices, passes_over};
use crate::node::NodeError;
use crate::node::fallback::{ConnectFailure, Fallback, FallbackCounts};
use crate::rdma::cm::{
    ActiveEndpoint, CmError, Connection, ConnectionRequest, EventChannel, IdService,
    PassiveEndpoint,
};
use crate::rdma::verbs::{
    Capabilities, CompletionQueue, Context, OutstandingReads, ProtectionDomain, QueuePair,
    QueuePairAttributes, Retries, ServiceType,
};
use crate::rig::ports::Service;

/// How often an end that waits for its connections looks whether it is to go on.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// Header and values.
const ELEMENTS: u32 = 2;

/// What connects an end.
#[derive(Debug, Clone)]
pub(super) struct ConnectorSettings {
    pub(super) service: Service,
    pub(super) fallback: Fallback,
    pub(super) id_service: IdService,
    pub(super) end: FabricPort,
    pub(super) capabilities: Capabilities,
    /// Whether somebody sleeps until samples have come.
    pub(super) receive_events: bool,
    /// How long connecting to one peer may take.
    pub(super) limit: Duration,
    /// How long an end waits to be connected to.
    pub(super) patience: Duration,
}

/// Active if it was given the addresses of its peers, passive if not.
#[derive(Debug)]
pub(super) enum ConnectRole {
    Active(Active),
    Passive(Passive),
}

/// It connects.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) publisher: u32,
    pub(super) targets: Vec<SubscriberAddress>,
    pub(super) notices: Notices,
}

/// A subscriber, and where it listens.
#[derive(Debug, Clone, Copy)]
pub struct SubscriberAddress {
    /// Its number.
    pub subscriber: u32,
    /// Its address.
    pub address: SocketAddr,
}

/// It is connected to.
#[derive(Debug)]
pub(super) struct Passive {
    pub(super) subscriber: u32,
    pub(super) listener: PassiveEndpoint,
    /// Those that are to connect.
    pub(super) publishers: Vec<u32>,
    /// The address at which those of them listen that cannot.
    pub(super) peers: IpAddr,
    pub(super) notices: Notices,
}

impl ConnectRole {
    fn connections(&self) -> usize {
        match self {
            ConnectRole::Active(active) => active.targets.len(),
            ConnectRole::Passive(passive) => passive.publishers.len(),
        }
    }
}

/// What an end is made of, once it is connected.
#[derive(Debug)]
pub(super) struct ConnectedEnd {
    pub(super) domain: Arc<ProtectionDomain>,
    pub(super) send_queue: Arc<CompletionQueue>,
    pub(super) receive_queue: Arc<CompletionQueue>,
    pub(super) connections: Arc<Vec<Connection>>,
    pub(super) fell_back: FallbackCounts,
}

/// Why a connection did not come about.
enum ConnectorError {
    /// The connection manager reports it.
    Cm(CmError),
    /// What it takes could not be made.
    Node(NodeError),
}

impl From<CmError> for ConnectorError {
    fn from(error: CmError) -> Self {
        ConnectorError::Cm(error)
    }
}

impl From<NodeError> for ConnectorError {
    fn from(error: NodeError) -> Self {
        ConnectorError::Node(error)
    }
}

impl From<ConnectorError> for NodeError {
    fn from(failed_by: ConnectorError) -> Self {
        match failed_by {
            ConnectorError::Node(error) => error,
            ConnectorError::Cm(CmError::Interrupted { .. }) => NodeError::GivenUp,
            ConnectorError::Cm(error) => failed(error),
        }
    }
}

/// Brings all connections of an end about.
///
/// # Errors
/// When one of them does not come about, or not in time.
pub(super) fn connect(
    channel: &Arc<EventChannel>,
    way: &ConnectorSettings,
    role: &ConnectRole,
) -> Result<ConnectedEnd, NodeError> {
    let mut connector = Connector {
        channel,
        way,
        queue_pairs: match way.service {
            Service::Ud => 1,
            Service::Rc | Service::Uc => role.connections(),
        },
        made: None,
        connections: Vec::new(),
    };
    let fell_back = match role {
        ConnectRole::Active(active) => connector.connect_to_all(active)?,
        ConnectRole::Passive(passive) => {
            connector.be_connected(passive)?;
            FallbackCounts::default()
        }
    };
    let (domain, attributes) = connector.made.expect("an end has at least one peer");
    Ok(ConnectedEnd {
        domain,
        send_queue: attributes.send_queue,
        receive_queue: attributes.receive_queue,
        connections: Arc::new(connector.connections),
        fell_back,
    })
}

/// Brings the connections of an end about, one after the other.
struct Connector<'a> {
    channel: &'a Arc<EventChannel>,
    way: &'a ConnectorSettings,
    queue_pairs: usize,
    /// Made with the first connection, which brings the device's context.
    made: Option<(Arc<ProtectionDomain>, QueuePairAttributes)>,
    connections: Vec<Connection>,
}

impl Connector<'_> {
    fn make(
        &mut self,
        context: &Arc<Context>,
    ) -> Result<(Arc<ProtectionDomain>, QueuePairAttributes), NodeError> {
        if self.made.is_none() {
            self.made = Some(make(context, self.way, self.queue_pairs)?);
        }
        Ok(self.made.clone().expect("made above"))
    }

    /// On UD one queue pair reaches all peers, and is reached by them: that of the first connection.
    fn common(&self) -> Option<&Arc<QueuePair>> {
        let first = self.connections.first();
        let first = first.filter(|_| self.way.service == Service::Ud);
        first.map(Connection::queue_pair)
    }

    /// Connects to a peer.
    fn reach(&mut self, to: SocketAddr) -> Result<Connection, ConnectorError> {
        let (way, begun) = (self.way, Instant::now());
        let active = ActiveEndpoint::resolve(
            self.channel,
            way.id_service,
            (&way.end.device, way.end.port),
            (way.end.address, to),
            None,
            way.limit,
        )?;
        let connecting = match self.common() {
            Some(pair) => active.connect_datagrams(pair)?,
            None => {
                let (domain, attributes) = self.make(&active.context())?;
                let (retries, reads) = (Retries::PATIENT, OutstandingReads::default());
                active.connect(&domain, attributes, retries, reads)?
            }
        };
        let left = way.limit.saturating_sub(begun.elapsed());
        Ok(connecting.established(left)?)
    }

    fn accept(&mut self, requested: ConnectionRequest) -> Result<Connection, ConnectorError> {
        let accepted = match self.common() {
            Some(pair) => requested.accept_datagrams(pair)?,
            None => {
                let (domain, attributes) = self.make(&requested.context())?;
                let (retries, reads) = (Retries::PATIENT, OutstandingReads::default());
                requested.accept(&domain, attributes, retries, reads)?
            }
        };
        Ok(accepted.established(self.way.limit)?)
    }

    /// Connects to all targets. Where that fails by one of the five errors, and it may fall back, it listens, sends the
    /// target its address, and is connected to.
    fn connect_to_all(&mut self, role: &Active) -> Result<FallbackCounts, NodeError> {
        let (mut fell_back, mut to_be_told) = (FallbackCounts::default(), Vec::new());
        for target in &role.targets {
            let error = match self.reach(target.address) {
                Ok(connection) => {
                    self.connections.push(connection);
                    continue;
                }
                Err(ConnectorError::Cm(error)) => error,
                Err(ConnectorError::Node(error)) => return Err(error),
            };
            match (ConnectFailure::of(&error), self.way.fallback) {
                (None, _) => return Err(ConnectorError::Cm(error).into()),
                (Some(why), Fallback::Fatal) => {
                    return Err(NodeError::NotConnected {
                        why,
                        peer: target.address,
                        reason: error.to_string(),
                    });
                }
                (Some(why), Fallback::Listen) => {
                    fell_back.add(why);
                    to_be_told.push(target.subscriber);
                }
            }
        }
        if to_be_told.is_empty() {
            return Ok(fell_back);
        }
        let end = &self.way.end;
        let place = (end.device.as_str(), end.port);
        let (service, waiting) = (self.way.id_service, to_be_told.len());
        let listener = PassiveEndpoint::listen(self.channel, service, place, end.address, waiting);
        let listener = listener.map_err(ConnectorError::from)?;
        let port = listener.address().port();
        for &subscriber in &to_be_told {
            role.notices.post(role.publisher, subscriber, port);
        }
        let all = role.targets.len();
        self.accept_until(all, &listener, |_| Ok(None))?;
        Ok(fell_back)
    }

    /// Waits until all have connected to it, and connects to those that could not and listen themselves.
    fn be_connected(&mut self, role: &Passive) -> Result<(), NodeError> {
        self.accept_until(role.publishers.len(), &role.listener, |connector| {
            let mut publishers = role.publishers.iter();
            let told = publishers.find_map(|&one| role.notices.take(one, role.subscriber));
            let Some(port) = told else {
                return Ok(None);
            };
            Ok(Some(connector.reach((role.peers, port).into())?))
        })
    }

    /// Accepts requests, and takes connections that come `otherwise`, until there are this many.
    fn accept_until(
        &mut self,
        count: usize,
        listener: &PassiveEndpoint,
        mut otherwise: impl FnMut(&mut Self) -> Result<Option<Connection>, ConnectorError>,
    ) -> Result<(), NodeError> {
        let mut deadline = Instant::now() + self.way.patience;
        let mut passed_over = None;
        while self.connections.len() < count {
            let connection = match otherwise(self)? {
                Some(connection) => connection,
                None => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    match listener.request(left.min(LOOK)) {
                        Ok(requested) => match self.accept(requested) {
                            Ok(connection) => connection,
                            Err(ConnectorError::Cm(error))
                                if passes_over(&error, self.way.fallback) =>
                            {
                                passed_over = Some(error);
                                continue;
                            }
                            Err(error) => return Err(error.into()),
                        },
                        Err(CmError::TimedOut { .. }) if !left.is_zero() => continue,
                        Err(CmError::TimedOut { .. }) => {
                            let device = &self.way.end.device;
                            let last =
                                passed_over.map(|error| format!(" (the last request: {error})"));
                            return Err(NodeError::TooFew {
                                came: self.connections.len(),
                                all: count,
                                what: format!(
                                    "ends have connected to {device}{}",
                                    last.unwrap_or_default()
                                ),
                                patience: self.way.patience,
                            });
                        }
                        Err(error) => return Err(ConnectorError::Cm(error).into()),
                    }
                }
            };
            self.connections.push(connection);
            deadline = Instant::now() + self.way.patience;
        }
        Ok(())
    }
}

/// One completion queue a direction for all queue pairs, so that a loop polls one, however many these are.
fn make(
    context: &Arc<Context>,
    way: &ConnectorSettings,
    queue_pairs: usize,
) -> Result<(Arc<ProtectionDomain>, QueuePairAttributes), NodeError> {
    let queue = |requests: u32, events| {
        CompletionQueue::create(context, requests * queue_pairs as u32, events, 0).map_err(failed)
    };
    let attributes = QueuePairAttributes {
        service: ServiceType::from(way.service),
        capabilities: way.capabilities,
        send_elements: ELEMENTS,
        send_queue: queue(way.capabilities.send_requests, false)?,
        receive_queue: queue(way.capabilities.receive_requests, way.receive_events)?,
        shared_requests: None,
    };
    let domain = ProtectionDomain::allocate(context).map_err(failed)?;
    Ok((domain, attributes))
}
