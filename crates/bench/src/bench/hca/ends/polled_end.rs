//! The receiving end of RDMA writes without immediate data: the same memory, looked at instead of a completion queue.

use std::sync::Arc;

use super::receiving_end::Receiver;
use super::{Link, ReceivingEnd};
use crate::bench::hca::loops::memory_polling::MemoryPollingPort;
use crate::buffer::{Arrival, PolledSlots};
use crate::rdma::verbs::VerbsError;
use crate::time::Ticks;

/// A receiver whose memory is polled, for messages that may be lost or not.
#[derive(Debug)]
pub(crate) struct PolledReceiver<const MAY_BE_LOST: bool>(pub Arc<Receiver>);

impl<const MAY_BE_LOST: bool> ReceivingEnd for PolledReceiver<MAY_BE_LOST> {
    type Port = MemoryPollingPort<MAY_BE_LOST>;

    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn clear(&self, slot: usize) {
        self.0.clear(slot);
    }

    fn requests(&self) -> usize {
        self.0.requests()
    }

    /// No receive request is needed.
    fn post(&self, _slot: usize) -> Result<(), VerbsError> {
        Ok(())
    }

    fn port(&self, burst: u32, messages: usize) -> Self::Port {
        let slots = PolledSlots::new(self.0.payload(), burst, messages);
        MemoryPollingPort::new(slots, burst)
    }

    fn sources(&self) -> &[u32] {
        self.0.sources()
    }

    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks> {
        self.0.delivered(burst, arrival, sequence)
    }

    fn link(&self) -> &dyn Link {
        self.0.link()
    }
}
