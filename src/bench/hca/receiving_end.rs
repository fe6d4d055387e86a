//! The receiving end on verbs: a connected queue pair and the memory that messages arrive in.

use std::sync::Arc;

use super::config::{Operation, Service};
use super::ends::{Link, ReceivingEnd};
use super::path_proof::PathEnd;
use super::plan::Point;
use super::verbs_link::VerbsLink;
use super::verbs_port::{RemoteSlots, VerbsCompletionPort};
use crate::buffer::{Arrival, Payload};
use crate::rdma::verbs::QueuePair;
use crate::time::Ticks;

#[derive(Debug)]
pub struct Receiver {
    link: VerbsLink,
    source: Option<u32>,
    /// Whether a message lies in the slot of its number (RDMA write), not in that of the receive request (send).
    by_sequence: bool,
}

impl Receiver {
    /// `source`: the number of the queue pair that sends.
    pub(super) fn new(link: VerbsLink, point: &Point, source: u32) -> Self {
        Receiver {
            link,
            source: (point.service == Service::Ud).then_some(source),
            by_sequence: point.operation != Operation::Send,
        }
    }

    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.link.connection.queue_pair()
    }

    /// What the kernel has of this end of the path.
    pub fn path_end(&self) -> PathEnd {
        self.link.path_end()
    }

    /// Where messages arrive.
    pub fn payload(&self) -> &Payload {
        &self.link.payload
    }

    /// What the sender needs to write into the slots, or to read them.
    pub(super) fn remote_slots(&self) -> RemoteSlots {
        RemoteSlots {
            key: self.link.region.remote_key(),
            first: self.link.payload.slot(0).address(),
            stride: self.link.payload.stride() as u64,
        }
    }
}

impl ReceivingEnd for Receiver {
    type Port = VerbsCompletionPort;

    fn slots(&self) -> usize {
        self.link.payload.slots()
    }

    fn clear(&self, slot: usize) {
        self.link.payload.clear(slot);
    }

    fn post(&self, slot: usize) -> Result<(), String> {
        let header = self.link.payload.header_size();
        let address = self.link.payload.slot(slot).address() - header as u64;
        let length = (self.link.payload.message_size() + header) as u32;
        self.queue_pair()
            .post_receive(&self.link.region, slot as u64, address, length)
            .map_err(|error| error.to_string())
    }

    fn port(&self, _burst: u32, _messages: usize) -> VerbsCompletionPort {
        let queue = self.queue_pair().receive_queue();
        match self.source {
            Some(_) => VerbsCompletionPort::of_datagrams(queue, self.link.payload.header_size()),
            None => VerbsCompletionPort::new(queue),
        }
    }

    fn source(&self) -> Option<u32> {
        self.source
    }

    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        let payload = &self.link.payload;
        let slot = if self.by_sequence {
            sequence as usize
        } else {
            arrival.slot as usize
        };
        let intact = arrival.bytes as usize == payload.message_size()
            && slot < payload.slots()
            && payload.holds(slot, burst, sequence);
        intact.then(|| payload.slot(slot).load_stamp())
    }

    fn link(&self) -> &dyn Link {
        &self.link
    }
}
