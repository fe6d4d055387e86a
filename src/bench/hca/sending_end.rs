//! The sending end on verbs: a connected queue pair and the memory that messages come from.

use std::sync::Arc;

use super::config::{Operation, Service};
use super::endpoints::{EndpointError, EndpointSettings, Made, lowered_mtu, removal, trouble};
use super::ends::SendingEnd;
use super::verbs_port::{PayloadStamps, RemoteSlots, VerbsCompletionPort, VerbsSendPort};
use crate::buffer::{PageKind, Payload};
use crate::rdma::cm::Connection;
use crate::rdma::verbs::{
    AddressHandle, Context, Destination, MemoryRegion, QueuePair, SendRequest,
};

/// The sending end.
#[derive(Debug)]
pub struct Sender {
    connection: Connection,
    context: Arc<Context>,
    port: u8,
    payload: Payload,
    region: Arc<MemoryRegion>,
    destination: Destination,
    /// Where RDMA writes go.
    remote: RemoteSlots,
    inline: bool,
}

impl Sender {
    pub(super) fn new(
        connection: Connection,
        port: u8,
        made: Made,
        settings: &EndpointSettings,
        remote: RemoteSlots,
    ) -> Result<Self, EndpointError> {
        let granted = connection.queue_pair().granted().inline_bytes;
        if settings.inline && (granted as usize) < settings.size {
            return Err(EndpointError::Inline {
                device: made.context.device_name().to_owned(),
                wanted: settings.size as u32,
                granted,
            });
        }
        let destination = match (settings.service, settings.operation) {
            (Service::Ud, _) => {
                let vector = connection.address().ok_or(EndpointError::NoAddress)?;
                Destination::Datagram(AddressHandle::create(&made.domain, vector)?)
            }
            (_, Operation::Send) => Destination::Send,
            (_, Operation::Write) => Destination::Write {
                remote_key: remote.key,
            },
        };
        Ok(Sender {
            connection,
            context: made.context,
            port,
            payload: made.payload,
            region: made.region,
            destination,
            remote,
            inline: settings.inline,
        })
    }

    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.connection.queue_pair()
    }

    /// Where messages come from.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }
}

impl SendingEnd for Sender {
    type Port = VerbsSendPort;
    type Completions = VerbsCompletionPort;
    type Stamps = PayloadStamps;

    fn fill(&self, burst: u32, sequence: u32) {
        self.payload.fill(sequence as usize, burst, sequence);
    }

    fn port(&self) -> VerbsSendPort {
        let length = self.payload.message_size() as u32;
        let request = SendRequest::new(&self.region, length, self.destination.clone(), self.inline);
        VerbsSendPort::new(self.queue_pair(), request, &self.payload, self.remote)
    }

    fn completions(&self) -> VerbsCompletionPort {
        VerbsCompletionPort::new(self.queue_pair().send_queue())
    }

    fn stamps(&self) -> PayloadStamps {
        PayloadStamps(Arc::clone(&self.payload))
    }

    fn page_kind(&self) -> PageKind {
        self.payload.page_kind()
    }

    fn trouble(&self) -> Option<String> {
        trouble(&self.connection, &self.context, self.port)
    }

    fn removal(&self) -> Option<String> {
        removal(&self.connection)
    }

    fn lowered_mtu(&self) -> Option<String> {
        lowered_mtu(self.queue_pair(), &self.context, self.port)
    }
}
