//! The sending end on verbs: connected queue pairs and the memory that messages come from.

use std::sync::Arc;

use super::hardware_stamps::HardwareStamps;
use super::path_proof::PathEnd;
use super::verbs_link::{Connection, VerbsLink};
use super::verbs_port::{
    PayloadStamps, RemoteSlots, SpreadSendPort, VerbsCompletionPort, VerbsSendPort,
};
use super::{Link, SendingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::{Operation, Service};
use crate::buffer::Payload;
use crate::rdma::verbs::{AddressHandle, Destination, QueuePair, SendRequest};

#[derive(Debug)]
pub struct Sender {
    link: VerbsLink,
    /// Of each queue pair.
    destinations: Vec<Destination>,
    /// Where RDMA writes go, and reads and atomics, too.
    remote: RemoteSlots,
    inline: bool,
}

impl Sender {
    pub(crate) fn new(
        link: VerbsLink,
        point: &Point,
        remote: RemoteSlots,
    ) -> Result<Self, RunError> {
        for queue_pair in link.queue_pairs() {
            let (granted, wanted) = (queue_pair.granted().inline_bytes, point.inline_bytes());
            if granted < wanted {
                return Err(RunError::Inline {
                    device: queue_pair.device_name().to_owned(),
                    wanted,
                    granted,
                });
            }
        }
        let remote_key = remote.key;
        let destination = |connection: &Connection| match (point.service, point.operation) {
            (Service::Ud, _) => {
                let vector = connection.address().ok_or(RunError::NoAddress)?;
                let handle = AddressHandle::create(link.region.domain(), vector)?;
                Ok(Destination::Datagram(handle))
            }
            (_, Operation::Send) if !link.has_immediate_data() => Ok(Destination::PlainSend),
            (_, Operation::Send) => Ok(Destination::Send),
            (_, Operation::Write) => Ok(Destination::Write { remote_key }),
            (_, Operation::WritePolled) => Ok(Destination::SilentWrite { remote_key }),
            (_, Operation::Read) => Ok(Destination::Read { remote_key }),
            (_, Operation::CompareSwap) => Ok(Destination::CompareSwap { remote_key }),
            (_, Operation::FetchAdd) => Ok(Destination::FetchAdd { remote_key, add: 1 }),
        };
        let destinations = link.connections.iter().map(destination);
        let destinations = destinations.collect::<Result<_, RunError>>()?;
        Ok(Sender {
            link,
            destinations,
            remote,
            inline: point.inline.is_on(),
        })
    }

    /// The first of its queue pairs.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.link.first()
    }

    /// Ports of its queue pairs.
    fn ports(&self) -> impl Iterator<Item = VerbsSendPort> {
        let each = self.link.queue_pairs().zip(&self.destinations);
        each.map(|(queue_pair, destination)| {
            let request = self.request_to(destination);
            VerbsSendPort::new(queue_pair, request, &self.link.payload, self.remote)
        })
    }

    /// What the kernel has of this end of the path.
    pub fn path_end(&self) -> PathEnd {
        self.link.path_end()
    }

    /// Where messages come from.
    pub fn payload(&self) -> &Payload {
        &self.link.payload
    }

    /// The stamps of its send completions, if its adapter stamps them.
    pub(crate) fn hardware(&self) -> Option<&HardwareStamps> {
        self.link.hardware.as_ref()
    }

    /// What it reaches of the other end's memory.
    pub(crate) fn remote(&self) -> RemoteSlots {
        self.remote
    }

    /// A request of its own for the first of its queue pairs, to be turned to each message.
    pub(crate) fn request(&self) -> SendRequest {
        self.request_to(&self.destinations[0])
    }

    fn request_to(&self, destination: &Destination) -> SendRequest {
        let length = self.link.payload.message_size() as u32;
        SendRequest::new(&self.link.region, length, destination.clone(), self.inline)
    }
}

impl SendingEnd for Sender {
    type Port = VerbsSendPort;
    type SpreadPort = SpreadSendPort;
    type Completions = VerbsCompletionPort;
    type Stamps = PayloadStamps;

    fn fill(&self, burst: u32, sequence: u32) {
        self.link.payload.fill(sequence as usize, burst, sequence);
    }

    fn port(&self) -> VerbsSendPort {
        let mut ports = self.ports();
        ports.next().expect("an end has a queue pair")
    }

    fn spread_port(&self) -> SpreadSendPort {
        SpreadSendPort::new(self.ports().collect())
    }

    fn completions(&self) -> VerbsCompletionPort {
        VerbsCompletionPort::new(self.queue_pair().send_queue().poller())
    }

    fn stamps(&self) -> PayloadStamps {
        PayloadStamps(Arc::clone(&self.link.payload))
    }

    fn link(&self) -> &dyn Link {
        &self.link
    }
}
