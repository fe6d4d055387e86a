//! The receiving end on verbs: connected queue pairs and the memory that messages arrive in.

use std::sync::Arc;

use super::hardware_stamps::HardwareStamps;
use super::path_proof::PathEnd;
use super::verbs_link::{EndpointSettings, Receives, VerbsLink};
use super::verbs_port::{RemoteSlots, VerbsCompletionPort};
use super::{Link, ReceivingEnd};
use crate::bench::hca::settings::config::{Operation, Service};
use crate::buffer::{Arrival, Payload};
use crate::rdma::verbs::{QueuePair, RequestQueue, VerbsError};
use crate::time::Ticks;

#[derive(Debug)]
pub struct Receiver {
    /// Where receive requests are posted: of each queue pair one, or one of all. They hold queue pairs, so they go
    /// before the memory region of the link.
    queues: Vec<RequestQueue>,
    link: VerbsLink,
    /// Of each of these queues.
    receives: Receives,
    /// The queue pairs that send, on UD.
    sources: Vec<u32>,
    /// Whether a message lies in the slot of its number (RDMA write), not in that of the receive request (send).
    by_sequence: bool,
}

impl Receiver {
    /// `sources`: the numbers of the queue pairs that send.
    pub(crate) fn new(link: VerbsLink, settings: &EndpointSettings, sources: Vec<u32>) -> Self {
        let point = &settings.point;
        let of_datagrams = point.service == Service::Ud;
        let queues = link.queue_pairs().map(RequestQueue::of);
        Receiver {
            queues: queues.take(point.receive_queues() as usize).collect(),
            link,
            receives: settings.receives,
            sources: if of_datagrams { sources } else { Vec::new() },
            by_sequence: point.operation != Operation::Send,
        }
    }

    /// The first of its queue pairs.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        self.link.first()
    }

    /// Whether messages bring immediate data, by which they are identified.
    pub(crate) fn has_immediate_data(&self) -> bool {
        self.link.has_immediate_data()
    }

    /// The numbers of its queue pairs.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.link.queue_pairs().map(|one| one.number()).collect()
    }

    /// The slots of each queue pair, where each has separate ones.
    pub(crate) fn slots_of_queue_pairs(&self) -> Option<usize> {
        let have_own = self.queues.len() == self.link.connections.len();
        have_own.then_some(self.receives.slots as usize)
    }

    /// What the kernel has of this end of the path.
    pub fn path_end(&self) -> PathEnd {
        self.link.path_end()
    }

    /// Where messages arrive.
    pub fn payload(&self) -> &Payload {
        &self.link.payload
    }

    /// The stamps of its receive completions, if its adapter stamps them.
    pub(crate) fn hardware(&self) -> Option<&HardwareStamps> {
        self.link.hardware.as_ref()
    }

    /// A port that takes completions by a poller of its queue.
    pub(super) fn port_of<P>(&self, poller: P) -> VerbsCompletionPort<P> {
        match self.sources[..] {
            [] => VerbsCompletionPort::new(poller),
            _ => VerbsCompletionPort::of_datagrams(poller, self.link.payload.header_size()),
        }
    }

    /// What the sender needs to write into the slots, or to read them.
    pub(crate) fn remote_slots(&self) -> RemoteSlots {
        RemoteSlots {
            key: self.link.region.remote_key(),
            first: self.link.payload.slot(0).address(),
            stride: self.link.payload.stride() as u64,
        }
    }
}

/// Whether a message of `size` came with all its bytes, of which the `header` that precedes a datagram was taken off.
/// The specification counts that header with the message (InfiniBand Architecture Specification, volume 1, 11.4.2.1);
/// where a driver does not, too much was taken off.
fn is_whole(bytes: u32, size: usize, header: usize) -> bool {
    bytes == size as u32 || bytes.wrapping_add(header as u32) == size as u32
}

impl ReceivingEnd for Receiver {
    type Port = VerbsCompletionPort;

    fn slots(&self) -> usize {
        self.link.payload.slots()
    }

    fn requests(&self) -> usize {
        self.receives.requests as usize
    }

    fn clear(&self, slot: usize) {
        self.link.payload.clear(slot);
    }

    fn post(&self, slot: usize) -> Result<(), VerbsError> {
        let header = self.link.payload.header_size();
        let address = self.link.payload.slot(slot).address() - header as u64;
        let length = (self.link.payload.message_size() + header) as u32;
        let queue = &self.queues[slot / self.receives.slots as usize];
        queue.post(&self.link.region, slot as u64, address, length)
    }

    fn port(&self, _burst: u32, _messages: usize) -> VerbsCompletionPort {
        self.port_of(self.queue_pair().receive_queue().poller())
    }

    fn sources(&self) -> &[u32] {
        &self.sources
    }

    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        let payload = &self.link.payload;
        let slot = if self.by_sequence {
            sequence as usize
        } else {
            arrival.slot as usize
        };
        let intact = is_whole(arrival.bytes, payload.message_size(), payload.header_size())
            && slot < payload.slots()
            && payload.holds(slot, burst, sequence);
        intact.then(|| payload.slot(slot).load_stamp())
    }

    fn link(&self) -> &dyn Link {
        &self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_whole_whether_or_not_the_driver_counts_its_header() {
        const HEADER: u32 = 40;
        for size in [8, 40, 4096] {
            let whole = |counted: u32| {
                let bytes = counted.wrapping_sub(HEADER);
                is_whole(bytes, size as usize, HEADER as usize)
            };
            assert!(whole(size + HEADER) && whole(size), "{size}");
            for counted in [0, size - 1, size + 1, size + HEADER - 1, size + HEADER + 1] {
                assert!(!whole(counted), "{counted} of {size}");
            }
            assert!(is_whole(size, size as usize, 0));
            assert!(!is_whole(size - 1, size as usize, 0));
        }
    }
}
