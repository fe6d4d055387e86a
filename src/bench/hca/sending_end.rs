//! The sending end on verbs: a connected queue pair and the memory that messages come from.

use std::sync::Arc;

use super::config::{Operation, Service};
use super::ends::{Link, SendingEnd};
use super::error::RunError;
use super::path_proof::PathEnd;
use super::plan::Point;
use super::verbs_link::VerbsLink;
use super::verbs_port::{PayloadStamps, RemoteSlots, VerbsCompletionPort, VerbsSendPort};
use crate::buffer::Payload;
use crate::rdma::verbs::{AddressHandle, Destination, QueuePair, SendRequest};

#[derive(Debug)]
pub struct Sender {
    link: VerbsLink,
    destination: Destination,
    /// Where RDMA writes go, and reads and atomics, too.
    remote: RemoteSlots,
    inline: bool,
}

impl Sender {
    pub(super) fn new(
        link: VerbsLink,
        point: &Point,
        remote: RemoteSlots,
    ) -> Result<Self, RunError> {
        let queue_pair = link.connection.queue_pair();
        let (granted, wanted) = (queue_pair.granted().inline_bytes, point.inline_bytes());
        if granted < wanted {
            return Err(RunError::Inline {
                device: queue_pair.device_name().to_owned(),
                wanted,
                granted,
            });
        }
        let remote_key = remote.key;
        let destination = match (point.service, point.operation) {
            (Service::Ud, _) => {
                let vector = link.connection.address().ok_or(RunError::NoAddress)?;
                Destination::Datagram(AddressHandle::create(link.region.domain(), vector)?)
            }
            (_, Operation::Send) => Destination::Send,
            (_, Operation::Write) => Destination::Write { remote_key },
            (_, Operation::WritePolled) => Destination::SilentWrite { remote_key },
            (_, Operation::Read) => Destination::Read { remote_key },
            (_, Operation::CompareSwap) => Destination::CompareSwap { remote_key },
            (_, Operation::FetchAdd) => Destination::FetchAdd { remote_key, add: 1 },
        };
        Ok(Sender {
            link,
            destination,
            remote,
            inline: point.inline.is_on(),
        })
    }

    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.link.connection.queue_pair()
    }

    /// What the kernel has of this end of the path.
    pub fn path_end(&self) -> PathEnd {
        self.link.path_end()
    }

    /// Where messages come from.
    pub fn payload(&self) -> &Payload {
        &self.link.payload
    }

    /// What it reaches of the other end's memory.
    pub(super) fn remote(&self) -> RemoteSlots {
        self.remote
    }

    /// A request of its own, to be turned to each message.
    pub(super) fn request(&self) -> SendRequest {
        let length = self.link.payload.message_size() as u32;
        let destination = self.destination.clone();
        SendRequest::new(&self.link.region, length, destination, self.inline)
    }
}

impl SendingEnd for Sender {
    type Port = VerbsSendPort;
    type Completions = VerbsCompletionPort;
    type Stamps = PayloadStamps;

    fn fill(&self, burst: u32, sequence: u32) {
        self.link.payload.fill(sequence as usize, burst, sequence);
    }

    fn port(&self) -> VerbsSendPort {
        let (request, payload) = (self.request(), &self.link.payload);
        VerbsSendPort::new(self.queue_pair(), request, payload, self.remote)
    }

    fn completions(&self) -> VerbsCompletionPort {
        VerbsCompletionPort::new(self.queue_pair().send_queue())
    }

    fn stamps(&self) -> PayloadStamps {
        PayloadStamps(Arc::clone(&self.link.payload))
    }

    fn link(&self) -> &dyn Link {
        &self.link
    }
}
