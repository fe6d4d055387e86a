//! Two connected queue pairs with their memory, for one point.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::config::{Operation, Service};
use super::verbs_port::{PayloadStamps, VerbsCompletionPort, VerbsSendPort};
use crate::buffer::{BufferError, HugePagePolicy, PageKind, Payload, PayloadBuffer};
use crate::host::{HostError, pinning};
use crate::rdma::cm::{
    ActiveEndpoint, CmError, Connection, EventChannel, IdService, PassiveEndpoint, UcRoute,
};
use crate::rdma::verbs::{
    Access, AddressHandle, Capabilities, CompletionQueue, Context, Destination, MemoryRegion,
    ProtectionDomain, QueuePair, QueuePairAttributes, SendRequest, ServiceType, VerbsError,
};

/// The global route header that precedes a UD message in the receive buffer (InfiniBand Architecture Specification,
/// volume 1, 11.4.1.2).
pub(super) const GLOBAL_ROUTE_HEADER: usize = 40;

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

/// Both ends, connected.
#[derive(Debug)]
pub struct Endpoints {
    active: Connection,
    passive: Connection,
    source: Arc<MemoryRegion>,
    target: Arc<MemoryRegion>,
    destination: Destination,
    inline: bool,
    /// The devices, with the ports that are used.
    contexts: [(Arc<Context>, u8); 2],
    _listener: PassiveEndpoint<crate::rdma::cm::Listening>,
}

struct End {
    domain: Arc<ProtectionDomain>,
    region: Arc<MemoryRegion>,
    attributes: QueuePairAttributes,
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
        let end_of = |port: &EndPort| (port.device.clone(), port.port);
        let (to_device, to_port) = end_of(receiver);
        let listener =
            PassiveEndpoint::listen(channel, service, (&to_device, to_port), receiver.address)?;
        let (from_device, from_port) = end_of(sender);
        let active = ActiveEndpoint::resolve(
            channel,
            service,
            (&from_device, from_port),
            sender.address,
            listener.address(),
            STEP_LIMIT,
        )?;
        let active_context = active.context()?;
        let source = on_cpu(settings.sender_cpu, || {
            make_end(&active_context, settings, Access::Send)
        })?;
        let active = active
            .with_queue_pair(&source.domain, source.attributes)?
            .connect()?;

        let requested = listener.request(STEP_LIMIT)?;
        let passive_context = requested.context()?;
        let target = on_cpu(settings.receiver_cpu, || {
            make_end(&passive_context, settings, Access::Receive)
        })?;
        let accepting = requested
            .with_queue_pair(&target.domain, target.attributes)?
            .accept()?;
        let active = active.established(STEP_LIMIT)?;
        let passive = accepting.established(STEP_LIMIT)?;

        let granted = active.queue_pair().granted().inline_bytes;
        if settings.inline && (granted as usize) < settings.size {
            return Err(EndpointError::Inline {
                device: sender.device.clone(),
                wanted: settings.size as u32,
                granted,
            });
        }
        let destination = match (settings.service, settings.operation) {
            (Service::Ud, _) => {
                let vector = active.address().ok_or(EndpointError::NoAddress)?;
                Destination::Datagram(AddressHandle::create(&source.domain, vector)?)
            }
            (_, Operation::Send) => Destination::Send,
            (_, Operation::Write) => Destination::Write(Arc::clone(&target.region)),
        };
        Ok(Endpoints {
            active,
            passive,
            source: source.region,
            target: target.region,
            destination,
            inline: settings.inline,
            contexts: [(active_context, from_port), (passive_context, to_port)],
            _listener: listener,
        })
    }

    /// The sending queue pair.
    pub fn sending(&self) -> &Arc<QueuePair> {
        self.active.queue_pair()
    }

    /// The receiving queue pair.
    pub fn receiving(&self) -> &Arc<QueuePair> {
        self.passive.queue_pair()
    }

    /// Where messages are sent from.
    pub fn source(&self) -> &Payload {
        self.source.payload()
    }

    /// Where messages are received.
    pub fn target(&self) -> &Payload {
        self.target.payload()
    }

    /// The region in which messages are received.
    pub fn target_region(&self) -> &Arc<MemoryRegion> {
        &self.target
    }

    /// The pages of the sender's and of the receiver's payload.
    pub fn page_kinds(&self) -> [PageKind; 2] {
        [self.source().page_kind(), self.target().page_kind()]
    }

    /// A port for the sending loop.
    pub fn send_port(&self) -> VerbsSendPort {
        let request = SendRequest::new(&self.source, self.destination.clone(), self.inline);
        VerbsSendPort::new(self.sending(), request)
    }

    /// A port for the receiving loop.
    pub fn receive_port(&self) -> VerbsCompletionPort {
        VerbsCompletionPort::new(
            self.receiving().receive_queue(),
            self.target().header_size(),
        )
    }

    /// A port for taking send completions.
    pub fn completion_port(&self) -> VerbsCompletionPort {
        VerbsCompletionPort::new(self.sending().send_queue(), 0)
    }

    /// The stamps of the messages, for rewriting.
    pub fn stamps(&self) -> PayloadStamps {
        PayloadStamps(Arc::clone(self.source()))
    }

    /// What makes it impossible that any more messages arrive: the end of the connection or of a device. Never blocks.
    pub fn trouble(&self) -> Option<String> {
        if let Some(removal) = self.removal() {
            return Some(removal);
        }
        for connection in [&self.active, &self.passive] {
            if let Some(event) = connection.ending() {
                return Some(format!(
                    "the connection of {} ended: {:?}, status {}",
                    connection.queue_pair().device_name(),
                    event.kind,
                    event.status
                ));
            }
        }
        for (context, port) in &self.contexts {
            loop {
                match context.take_async_event() {
                    // Another port of the same device may go down without harm.
                    Ok(Some(event)) if event.port.is_some_and(|other| other != *port) => {}
                    Ok(Some(event)) if event.fatal => return Some(event.description),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => return Some(error.to_string()),
                }
            }
        }
        None
    }

    /// That one of the devices was removed, which also ends the other one's connection. Never blocks.
    pub fn removal(&self) -> Option<String> {
        let removed = |end: &&Connection| end.was_removed();
        let end = [&self.active, &self.passive].into_iter().find(removed)?;
        Some(format!(
            "the device {} was removed",
            end.queue_pair().device_name()
        ))
    }
}

/// Does `work` on a CPU, so that memory first touched in it lies near that CPU.
fn on_cpu<T>(
    cpu: usize,
    work: impl FnOnce() -> Result<T, EndpointError>,
) -> Result<T, EndpointError> {
    let before = pinning::current_affinity()?;
    pinning::pin_current_thread(cpu)?;
    let result = work();
    pinning::pin_current_thread_to(&before)?;
    result
}

/// What the sending and the receiving queue pair are made with: each end uses one of its two queues.
pub(super) fn queue_pair_lengths(depth: u32, inline_bytes: u32) -> (Capabilities, Capabilities) {
    let sending = Capabilities {
        send_requests: depth,
        receive_requests: 1,
        inline_bytes,
    };
    let receiving = Capabilities {
        send_requests: 1,
        receive_requests: depth,
        inline_bytes: 0,
    };
    (sending, receiving)
}

fn make_end(
    context: &Arc<Context>,
    settings: &EndpointSettings,
    access: Access,
) -> Result<End, EndpointError> {
    let header = match (settings.service, access) {
        (Service::Ud, Access::Receive) => GLOBAL_ROUTE_HEADER,
        _ => 0,
    };
    let payload = PayloadBuffer::new(
        settings.depth as usize,
        settings.size,
        header,
        settings.huge_pages,
    )?;
    let domain = ProtectionDomain::allocate(context)?;
    let region = MemoryRegion::register(&domain, &Arc::new(payload), access)?;
    let (sending, receiving) = queue_pair_lengths(
        settings.depth,
        if settings.inline {
            settings.size as u32
        } else {
            0
        },
    );
    let capabilities = match access {
        Access::Send => sending,
        Access::Receive => receiving,
    };
    Ok(End {
        attributes: QueuePairAttributes {
            service: ServiceType::from(settings.service),
            capabilities,
            send_queue: CompletionQueue::create(
                context,
                capabilities.send_requests,
                settings.completion_events && access == Access::Send,
            )?,
            receive_queue: CompletionQueue::create(
                context,
                capabilities.receive_requests,
                settings.receive_events && access == Access::Receive,
            )?,
        },
        domain,
        region,
    })
}
