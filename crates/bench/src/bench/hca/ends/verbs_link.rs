//! One end on verbs: what it is made of, and what both ends are when they are connected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Link;
use super::hardware_stamps::HardwareStamps;
use super::path_proof::PathEnd;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::{Operation, Poll, Service};
use crate::buffer::{HugePagePolicy, PageKind, Payload, PayloadBuffer};
use crate::rdma::cm::{self, UcRoute};
use crate::rdma::direct;
use crate::rdma::verbs::{
    Access, AddressVector, Capabilities, Context, CounterReading, EndPlan, EventPlan, MemoryRegion,
    OutstandingReads, PortCounters, QueuePair, QueuePairAttributes, Registration, ServiceType,
    StampedQueue, Transport,
};

/// The global route header that precedes a UD message in the receive buffer (InfiniBand Architecture Specification,
/// volume 1, 11.4.1.2).
const GLOBAL_ROUTE_HEADER: usize = 40;

/// Receive requests of a queue: that of a queue pair, or the one that all share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Receives {
    /// Those that are posted at a time.
    pub requests: u32,
    /// Those that a burst can take, each with a separate slot: no message overwrites another of its burst.
    pub slots: u32,
}

/// How long the steps of connecting by the connection manager may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepLimit {
    /// Each of them.
    Each(Duration),
    /// All of them, until then.
    AllUntil(Instant),
}

impl StepLimit {
    /// How long the next step may take.
    pub fn left(self) -> Duration {
        match self {
            StepLimit::Each(limit) => limit,
            StepLimit::AllUntil(until) => until.saturating_duration_since(Instant::now()),
        }
    }
}

/// What two endpoints are made for.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The point that they are for.
    pub point: Point,
    /// How queue pairs for UC are made.
    pub uc_route: UcRoute,
    /// Receive requests of each queue.
    pub receives: Receives,
    /// RDMA reads or atomics that the sending end may have outstanding, if it has any.
    pub reads: u8,
    /// By which interrupts events of the completion queues come.
    pub comp_vectors: CompletionVectors,
    /// How long connecting by the connection manager may take.
    pub limit: StepLimit,
    /// Pages of the payload.
    pub huge_pages: HugePagePolicy,
    /// Whether adapters stamp the completions that are measured.
    pub hw_timestamps: bool,
    /// CPU near which the sender's memory and queues are to lie.
    pub sender_cpu: usize,
    /// CPU near which the receiver's memory and queues are to lie.
    pub receiver_cpu: usize,
}

/// Which of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkSide {
    /// That posts the messages, reads or atomics.
    Sending,
    /// Where messages arrive, or whose memory is read or changed.
    Receiving,
}

impl LinkSide {
    /// What its memory is for.
    pub(crate) fn access(self, operation: Operation) -> Access {
        match (self, operation) {
            (LinkSide::Sending, of) if of.is_one_way() => Access::Send,
            (LinkSide::Sending, _) => Access::Fetch,
            (LinkSide::Receiving, Operation::Read) => Access::Serve,
            (LinkSide::Receiving, of) if of.is_atomic() => Access::ServeAtomics,
            (LinkSide::Receiving, _) => Access::Receive,
        }
    }

    /// What this end of a point is made with, where each of its queues holds that number of receive requests. Each end
    /// uses one of the two queues of a queue pair.
    pub(crate) fn plan(self, point: &Point, receives: u32) -> EndPlan {
        let resources = &point.resources;
        let (send_requests, receive_requests, inline_bytes) = match self {
            LinkSide::Sending => (point.sends(), 1, point.inline_bytes()),
            LinkSide::Receiving => (1, receives, 0),
        };
        EndPlan {
            service: ServiceType::from(point.service),
            capabilities: Capabilities {
                send_requests,
                receive_requests,
                inline_bytes,
            },
            queue_pairs: point.queue_pairs,
            shares_requests: resources.srq.is_on() && self == LinkSide::Receiving,
            // The thread of the receiving end posts and polls alone. At the sending end the sender takes the
            // completions itself (`start_sending` asserts it). The thread that connects and ends the point uses them
            // while these have no task.
            of_thread: resources.thread_domain.is_on(),
            registration: Registration {
                access: self.access(point.operation),
                relaxed_ordering: resources.relaxed_ordering.is_on(),
                on_demand: resources.odp.is_on(),
            },
        }
    }

    /// The reads and atomics that it may have outstanding, and serves.
    pub(crate) fn reads(self, settings: &EndpointSettings) -> OutstandingReads {
        match self {
            LinkSide::Sending => OutstandingReads {
                to_peer: settings.reads,
                from_peer: 0,
            },
            LinkSide::Receiving => OutstandingReads {
                to_peer: 0,
                from_peer: settings.reads,
            },
        }
    }
}

/// What one end is made of before it is connected.
#[derive(Debug)]
pub(crate) struct EndResources {
    context: Arc<Context>,
    payload: Payload,
    pub(crate) region: Arc<MemoryRegion>,
    /// Of each of its queue pairs.
    pub(crate) attributes: QueuePairAttributes,
    hardware: Option<HardwareStamps>,
}

impl EndResources {
    /// Makes an end; its memory, first touched here, lies near the CPU that this runs on.
    pub(crate) fn new(
        context: &Arc<Context>,
        settings: &EndpointSettings,
        side: LinkSide,
    ) -> Result<Self, RunError> {
        let (point, receives) = (&settings.point, settings.receives);
        let (slots, header) = match side {
            LinkSide::Sending => (point.burst, 0),
            LinkSide::Receiving => {
                let slots = receives.slots * point.receive_queues();
                (slots, header_of(point.service))
            }
        };
        let huge_pages = settings.huge_pages;
        let payload = PayloadBuffer::new(slots as usize, point.size as usize, header, huge_pages)?;
        let payload = Payload::new(payload);
        let vectors = settings.comp_vectors;
        let events = EventPlan {
            of_sends: point.poll_comp == Poll::Event && side == LinkSide::Sending,
            of_receives: point.poll_recv == Poll::Event && side == LinkSide::Receiving,
            vector: match side {
                LinkSide::Sending => vectors.sender,
                LinkSide::Receiving => vectors.receiver,
            },
        };
        let plan = side.plan(point, receives.requests);
        let (domain, mut attributes) = plan.make(context, events)?;
        let region = MemoryRegion::register(&domain, payload.clone(), plan.registration)?;
        // Memory that is polled has no completion.
        let has_completions = side == LinkSide::Sending || point.operation.has_immediate_data();
        let mut stamped = || {
            let [sends, receives] = plan.entries();
            let (entries, with_events, measured) = match side {
                LinkSide::Sending => (sends, events.of_sends, &mut attributes.send_queue),
                LinkSide::Receiving => {
                    (receives, events.of_receives, &mut attributes.receive_queue)
                }
            };
            let queue = StampedQueue::create(context, entries, with_events, events.vector)?;
            *measured = Arc::clone(queue.queue());
            HardwareStamps::new(context, queue, point.burst as usize, huge_pages)
        };
        let hardware = (settings.hw_timestamps && has_completions)
            .then(&mut stamped)
            .transpose()?;
        Ok(EndResources {
            attributes,
            hardware,
            context: Arc::clone(context),
            payload,
            region,
        })
    }

    /// With the connections of its queue pairs, which were made over `port`.
    pub(crate) fn connected(self, connections: Vec<Connection>, port: u8) -> VerbsLink {
        VerbsLink {
            connections,
            context: self.context,
            port,
            payload: self.payload,
            region: self.region,
            hardware: self.hardware,
        }
    }
}

/// A connection, by either way.
#[derive(Debug)]
pub(crate) enum Connection {
    /// The connection manager's.
    Manager(cm::Connection),
    /// Made without it.
    Direct(direct::DirectConnection),
}

impl Connection {
    pub(crate) fn queue_pair(&self) -> &Arc<QueuePair> {
        match self {
            Connection::Manager(connection) => connection.queue_pair(),
            Connection::Direct(connection) => connection.queue_pair(),
        }
    }

    /// Where the peer is, on UD.
    pub(crate) fn address(&self) -> Option<&AddressVector> {
        match self {
            Connection::Manager(connection) => connection.address(),
            Connection::Direct(connection) => connection.address(),
        }
    }

    /// That it has ended, in words. Only the connection manager tells.
    fn ending(&self) -> Option<String> {
        let Connection::Manager(connection) = self else {
            return None;
        };
        let event = connection.ending()?;
        Some(format!("{:?}, status {}", event.kind, event.status))
    }

    /// Whether the connection manager has told that the device was removed.
    fn was_removed(&self) -> bool {
        matches!(self, Connection::Manager(connection) if connection.was_removed())
    }
}

/// Connected queue pairs with the memory of their messages: what both ends have in common.
#[derive(Debug)]
pub(crate) struct VerbsLink {
    /// One for each queue pair; message `i` goes over that of number `i`, counted round and round.
    pub(crate) connections: Vec<Connection>,
    context: Arc<Context>,
    port: u8,
    pub(crate) payload: Payload,
    pub(crate) region: Arc<MemoryRegion>,
    pub(crate) hardware: Option<HardwareStamps>,
}

impl Link for VerbsLink {
    fn page_kind(&self) -> PageKind {
        self.payload.page_kind()
    }

    fn trouble(&self) -> Option<String> {
        if let Some(ending) = self.connections.iter().find_map(Connection::ending) {
            let device = self.context.device_name();
            return Some(format!("the connection of {device} ended: {ending}"));
        }
        let fatal = self.context.fatal_event(self.port);
        fatal.unwrap_or_else(|error| Some(error.to_string()))
    }

    fn root_cause(&self, _limit: Duration) -> Option<String> {
        let device = self.context.device_name();
        let removed = self.connections.iter().any(Connection::was_removed);
        removed.then(|| format!("the device {device} was removed"))
    }

    fn lowered_mtu(&self) -> Option<String> {
        let path = self.first().path_mtu().ok()?;
        let (device, port) = (self.context.device_name(), self.port);
        let now = self.context.port(port).ok()?.mtu;
        (now < path).then(|| {
            format!(
                "the MTU of {device} port {port} is {now} B now, and was at least {path} B when it was connected: set the \
                 MTU of the network interface back, and measure again"
            )
        })
    }

    fn counters(&self, reading: CounterReading) -> PortCounters {
        PortCounters::read(&self.context, self.port, reading)
    }

    fn changes(&self) -> Vec<String> {
        let changes = self.context.changes(self.port);
        changes.unwrap_or_else(|error| vec![error.to_string()])
    }
}

impl VerbsLink {
    /// Its queue pairs.
    pub(crate) fn queue_pairs(&self) -> impl Iterator<Item = &Arc<QueuePair>> {
        self.connections.iter().map(Connection::queue_pair)
    }

    /// Whether its messages can bring immediate data.
    pub(crate) fn has_immediate_data(&self) -> bool {
        self.context.transport() != Transport::Iwarp
    }

    /// The first of its queue pairs. In service, lengths and path all are the same.
    pub(crate) fn first(&self) -> &Arc<QueuePair> {
        self.connections[0].queue_pair()
    }

    /// What the kernel has of this end.
    pub(crate) fn path_end(&self) -> PathEnd {
        let address = self.connections[0].address();
        PathEnd::of(self.first(), self.port, address)
    }
}

/// Bytes that precede a message where it arrives.
pub(crate) fn header_of(service: Service) -> usize {
    match service {
        Service::Ud => GLOBAL_ROUTE_HEADER,
        Service::Rc | Service::Uc => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::Plan;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::Switch;

    #[test]
    fn both_ends_of_all_operations_register_as_asked() {
        let switch = |on| if on { Switch::On } else { Switch::Off };
        let both = [LinkSide::Sending, LinkSide::Receiving];
        for &operation in Operation::ALL {
            for (relaxed, paged) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut point = Plan::new(&single()).points[0];
                point.operation = operation;
                point.resources.relaxed_ordering = switch(relaxed);
                point.resources.odp = switch(paged);
                for side in both {
                    let wanted = Registration {
                        access: side.access(operation),
                        relaxed_ordering: relaxed,
                        on_demand: paged,
                    };
                    let plan = side.plan(&point, 1);
                    assert_eq!(plan.registration, wanted, "{side:?} {point}");
                }
            }
        }
    }
}
