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
    /// Where RDMA writes go.
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
        let destination = match (point.service, point.operation) {
            (Service::Ud, _) => {
                let vector = link.connection.address().ok_or(RunError::NoAddress)?;
                Destination::Datagram(AddressHandle::create(link.region.domain(), vector)?)
            }
            (_, Operation::Send) => Destination::Send,
            (_, Operation::Write) => Destination::Write {
                remote_key: remote.key,
            },
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

    /// A port that writes to `remote` without immediate data.
    pub(super) fn plain_writes(&self, remote: RemoteSlots) -> VerbsSendPort {
        let remote_key = remote.key;
        let (region, length) = (&self.link.region, self.link.payload.message_size() as u32);
        let request = SendRequest::new(
            region,
            length,
            Destination::PlainWrite { remote_key },
            false,
        );
        VerbsSendPort::new(self.queue_pair(), request, &self.link.payload, remote)
    }

    /// Where messages come from.
    pub fn payload(&self) -> &Payload {
        &self.link.payload
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
        let length = self.link.payload.message_size() as u32;
        let request = SendRequest::new(
            &self.link.region,
            length,
            self.destination.clone(),
            self.inline,
        );
        VerbsSendPort::new(self.queue_pair(), request, &self.link.payload, self.remote)
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
