//! The receiving end on verbs: a connected queue pair and the memory that messages arrive in.

use std::sync::Arc;

use super::analysis::PayloadDelivery;
use super::config::{Operation, Service};
use super::endpoints::{EndpointSettings, Made, lowered_mtu, removal, trouble};
use super::ends::ReceivingEnd;
use super::verbs_port::{RemoteSlots, VerbsCompletionPort};
use crate::buffer::{PageKind, Payload};
use crate::rdma::cm::Connection;
use crate::rdma::verbs::{Context, MemoryRegion, QueuePair};

/// The receiving end.
#[derive(Debug)]
pub struct Receiver {
    connection: Connection,
    context: Arc<Context>,
    port: u8,
    payload: Payload,
    region: Arc<MemoryRegion>,
    source: Option<u32>,
    /// Whether a message lies in the slot of its number (RDMA write), not in that of the receive request (send).
    by_sequence: bool,
}

impl Receiver {
    /// `source`: the number of the queue pair that sends.
    pub(super) fn new(
        connection: Connection,
        port: u8,
        made: Made,
        settings: &EndpointSettings,
        source: u32,
    ) -> Self {
        Receiver {
            connection,
            context: made.context,
            port,
            payload: made.payload,
            region: made.region,
            source: (settings.service == Service::Ud).then_some(source),
            by_sequence: settings.operation == Operation::Write,
        }
    }

    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.connection.queue_pair()
    }

    /// Where messages arrive.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// What the sender needs to write into the slots.
    pub(super) fn slots_for_writing(&self) -> RemoteSlots {
        RemoteSlots {
            key: self.region.remote_key(),
            first: self.payload.slot(0).address(),
            stride: self.payload.stride() as u64,
        }
    }
}

impl ReceivingEnd for Receiver {
    type Port = VerbsCompletionPort;
    type Delivered<'a> = PayloadDelivery<'a>;

    fn slots(&self) -> usize {
        self.payload.slots()
    }

    fn clear(&self, slot: usize) {
        self.payload.clear(slot);
    }

    fn post(&self, slot: usize) -> Result<(), String> {
        let header = self.payload.header_size();
        let address = self.payload.slot(slot).address() - header as u64;
        let length = (self.payload.message_size() + header) as u32;
        self.queue_pair()
            .post_receive(&self.region, slot as u64, address, length)
            .map_err(|error| error.to_string())
    }

    fn port(&self) -> VerbsCompletionPort {
        let queue = self.queue_pair().receive_queue();
        match self.source {
            Some(_) => VerbsCompletionPort::of_datagrams(queue, self.payload.header_size()),
            None => VerbsCompletionPort::new(queue),
        }
    }

    fn source(&self) -> Option<u32> {
        self.source
    }

    fn delivered(&self, burst: u32) -> PayloadDelivery<'_> {
        PayloadDelivery {
            payload: &self.payload,
            burst,
            by_sequence: self.by_sequence,
        }
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
