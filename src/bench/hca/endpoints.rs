//! Two connected queue pairs with their memory, for one point: where the sending and the receiving end meet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::config::{Operation, Service};
use super::receiving_end::Receiver;
use super::sending_end::Sender;
use crate::buffer::{BufferError, HugePagePolicy, Payload, PayloadBuffer};
use crate::host::{HostError, pinning};
use crate::rdma::cm::{
    ActiveEndpoint, CmError, Connection, EventChannel, IdService, PassiveEndpoint, UcRoute,
};
use crate::rdma::verbs::{
    Access, Capabilities, CompletionQueue, Context, MemoryRegion, ProtectionDomain, QueuePair,
    QueuePairAttributes, ServiceType, VerbsError,
};

/// The global route header that precedes a UD message in the receive buffer (InfiniBand Architecture Specification,
/// volume 1, 11.4.1.2).
pub(super) const GLOBAL_ROUTE_HEADER: usize = 40;

/// Receive requests beside those of a burst's messages, for UD, where anybody can send and each message takes one.
const SPARE_RECEIVES: u32 = 64;

/// How long each step of connecting may take: the connection manager repeats a lost message after 5 to 10 s.
const STEP_LIMIT: Duration = Duration::from_secs(30);

/// A port that was chosen for one of the two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndPort {
    /// The device.
    pub device: String,
    /// Its port.
    pub port: u8,
    /// The address that leads to it.
    pub address: IpAddr,
}

/// What two endpoints are made for.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// Service type.
    pub service: Service,
    /// How queue pairs for UC are made.
    pub uc_route: UcRoute,
    /// Operation.
    pub operation: Operation,
    /// Bytes of a message.
    pub size: usize,
    /// Messages that may be under way.
    pub depth: u32,
    /// Receive requests that may be posted ([`receive_requests`]).
    pub receives: u32,
    /// Whether data is copied into the work requests.
    pub inline: bool,
    /// Whether receive completions can be slept for.
    pub receive_events: bool,
    /// Whether send completions can be slept for.
    pub completion_events: bool,
    /// Pages of the payload.
    pub huge_pages: HugePagePolicy,
    /// CPU near which the sender's memory is to lie.
    pub sender_cpu: usize,
    /// CPU near which the receiver's memory is to lie.
    pub receiver_cpu: usize,
}

/// Connecting the two ends failed.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// In the connection manager.
    #[error(transparent)]
    Connection(#[from] CmError),
    /// At the verbs.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// For want of memory.
    #[error("memory for --burst messages of --size bytes: {0}")]
    Buffer(#[from] BufferError),
    /// In placing the memory.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Less inline data was granted than asked for.
    #[error(
        "--inline needs {wanted} bytes, {device} granted {granted} to this queue pair: use a smaller --size"
    )]
    Inline {
        /// The device.
        device: String,
        /// Bytes asked for.
        wanted: u32,
        /// Bytes granted.
        granted: u32,
    },
    /// The peer's UD address did not come.
    #[error("the connection manager's event does not tell the peer's UD address")]
    NoAddress,
}

impl From<Service> for ServiceType {
    fn from(service: Service) -> Self {
        match service {
            Service::Rc => ServiceType::ReliableConnection,
            Service::Uc => ServiceType::UnreliableConnection,
            Service::Ud => ServiceType::UnreliableDatagram,
        }
    }
}

/// Receive requests for `depth` messages: as many, and for UD some more, as far as the devices hold so many.
pub fn receive_requests(service: Service, depth: u32, most: u32) -> u32 {
    match service {
        Service::Rc | Service::Uc => depth,
        Service::Ud => (depth + SPARE_RECEIVES).min(most).max(depth),
    }
}

/// Both ends, connected.
#[derive(Debug)]
pub struct Endpoints {
    /// Where messages come from.
    pub sender: Arc<Sender>,
    /// Where they arrive.
    pub receiver: Arc<Receiver>,
    _listener: PassiveEndpoint<crate::rdma::cm::Listening>,
}

impl Endpoints {
    /// Connects `sender` to `receiver`.
    ///
    /// # Errors
    /// When something on the way is refused or takes too long; the message says what.
    pub fn connect(
        channel: &Arc<EventChannel>,
        sender: &EndPort,
        receiver: &EndPort,
        settings: &EndpointSettings,
    ) -> Result<Self, EndpointError> {
        let service = match settings.service {
            Service::Uc => IdService::UnreliableConnection(settings.uc_route),
            Service::Rc => IdService::ReliableConnection,
            Service::Ud => IdService::UnreliableDatagram,
        };
        let to = (receiver.device.as_str(), receiver.port);
        let listener = PassiveEndpoint::listen(channel, service, to, receiver.address)?;
        let from = (sender.device.as_str(), sender.port);
        let active = ActiveEndpoint::resolve(
            channel,
            service,
            from,
            sender.address,
            listener.address(),
            STEP_LIMIT,
        )?;
        let source = Made::on_cpu(
            settings.sender_cpu,
            &active.context()?,
            settings,
            Access::Send,
        )?;
        let active = active
            .with_queue_pair(&source.domain, source.attributes.clone())?
            .connect()?;

        let requested = listener.request(STEP_LIMIT)?;
        let target = Made::on_cpu(
            settings.receiver_cpu,
            &requested.context()?,
            settings,
            Access::Receive,
        )?;
        let accepting = requested
            .with_queue_pair(&target.domain, target.attributes.clone())?
            .accept()?;
        let active = active.established(STEP_LIMIT)?;
        let passive = accepting.established(STEP_LIMIT)?;
        let source_number = active.queue_pair().number();
        let receiver = Receiver::new(passive, receiver.port, target, settings, source_number);
        let sender = Sender::new(
            active,
            sender.port,
            source,
            settings,
            receiver.slots_for_writing(),
        )?;
        Ok(Endpoints {
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
            _listener: listener,
        })
    }
}

/// What one end is made of before it is connected.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) context: Arc<Context>,
    pub(super) domain: Arc<ProtectionDomain>,
    pub(super) payload: Payload,
    pub(super) region: Arc<MemoryRegion>,
    attributes: QueuePairAttributes,
}

impl Made {
    /// Makes an end on a CPU, so that its memory, first touched here, lies near that CPU.
    fn on_cpu(
        cpu: usize,
        context: &Arc<Context>,
        settings: &EndpointSettings,
        access: Access,
    ) -> Result<Self, EndpointError> {
        let before = pinning::current_affinity()?;
        pinning::pin_current_thread(cpu)?;
        let made = Self::new(context, settings, access);
        pinning::pin_current_thread_to(&before)?;
        made
    }

    fn new(
        context: &Arc<Context>,
        settings: &EndpointSettings,
        access: Access,
    ) -> Result<Self, EndpointError> {
        let inline_bytes = if settings.inline {
            settings.size as u32
        } else {
            0
        };
        let (sending, receiving) =
            queue_pair_lengths(settings.depth, settings.receives, inline_bytes);
        let (capabilities, slots, header) = match access {
            Access::Send => (sending, settings.depth, 0),
            Access::Receive => (receiving, settings.receives, header_of(settings.service)),
        };
        let huge_pages = settings.huge_pages;
        let payload = PayloadBuffer::new(slots as usize, settings.size, header, huge_pages)?;
        let payload = Payload::new(payload);
        let domain = ProtectionDomain::allocate(context)?;
        let region = MemoryRegion::register(&domain, payload.clone(), access)?;
        let queue = |requests, events| CompletionQueue::create(context, requests, events);
        Ok(Made {
            attributes: QueuePairAttributes {
                service: ServiceType::from(settings.service),
                capabilities,
                send_queue: queue(
                    capabilities.send_requests,
                    settings.completion_events && access == Access::Send,
                )?,
                receive_queue: queue(
                    capabilities.receive_requests,
                    settings.receive_events && access == Access::Receive,
                )?,
            },
            context: Arc::clone(context),
            domain,
            payload,
            region,
        })
    }
}

/// Bytes that precede a message where it arrives.
pub(super) fn header_of(service: Service) -> usize {
    match service {
        Service::Ud => GLOBAL_ROUTE_HEADER,
        Service::Rc | Service::Uc => 0,
    }
}

/// What makes it impossible that any more messages pass a connection, or a port of its device. Never blocks.
pub(super) fn trouble(connection: &Connection, context: &Context, port: u8) -> Option<String> {
    if let Some(event) = connection.ending() {
        return Some(format!(
            "the connection of {} ended: {:?}, status {}",
            connection.queue_pair().device_name(),
            event.kind,
            event.status
        ));
    }
    loop {
        match context.take_async_event() {
            // Another port of the same device may go down without harm.
            Ok(Some(event)) if event.port.is_some_and(|other| other != port) => {}
            Ok(Some(event)) if event.fatal => return Some(event.description),
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// That the device of a connection was removed, which also ends the other end's. Never blocks.
pub(super) fn removal(connection: &Connection) -> Option<String> {
    let device = connection.queue_pair().device_name();
    connection
        .was_removed()
        .then(|| format!("the device {device} was removed"))
}

/// That the MTU of a port has sunk below the path MTU of a connected queue pair.
pub(super) fn lowered_mtu(queue_pair: &QueuePair, context: &Context, port: u8) -> Option<String> {
    let (path, now) = (queue_pair.path_mtu().ok()?, context.port(port).ok()?.mtu);
    (now < path).then(|| {
        format!(
            "the MTU of {} port {port} is {now} B now, and was at least {path} B when it was connected: set the MTU of \
             the network interface back, and measure again",
            context.device_name()
        )
    })
}

/// What the sending and the receiving queue pair are made with: each end uses one of its two queues.
pub(super) fn queue_pair_lengths(
    depth: u32,
    receives: u32,
    inline_bytes: u32,
) -> (Capabilities, Capabilities) {
    let sending = Capabilities {
        send_requests: depth,
        receive_requests: 1,
        inline_bytes,
    };
    let receiving = Capabilities {
        send_requests: 1,
        receive_requests: receives,
        inline_bytes: 0,
    };
    (sending, receiving)
}
