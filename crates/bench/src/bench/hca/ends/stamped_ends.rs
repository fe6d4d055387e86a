//! Ends whose adapters stamp completions by their own clock (`--hw-timestamps`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::hardware_stamps::HardwareStamps;
use super::receiving_end::Receiver;
use super::sending_end::Sender;
use super::verbs_port::VerbsCompletionPort;
use super::{Link, ReceivingEnd, SendingEnd};
use crate::bench::hca::loops::port::{CompletionPort, EventPort, Failure, PollResult};
use crate::buffer::{Arrival, AtomicWords};
use crate::rdma::verbs::{StampedPoller, VerbsError};
use crate::time::Ticks;

/// Takes completions from a queue of the verbs, and keeps their stamps.
pub(crate) struct StampedPort {
    port: VerbsCompletionPort<StampedPoller>,
    kept: AtomicWords,
}

impl CompletionPort for StampedPort {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        self.port.poll()
    }

    #[inline(always)]
    fn keep_stamp(&mut self, place: usize) {
        if let Some(word) = self.kept.get(place) {
            word.store(self.port.poller.stamp(), Ordering::Relaxed);
        }
    }
}

impl EventPort for StampedPort {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Failure> {
        self.port.arm()
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Failure> {
        self.port.sleep()
    }
}

/// A sending end whose send completions are stamped; `of` is the end itself, or asks by it.
pub(crate) struct StampedSender<E> {
    of: Arc<E>,
    sender: Arc<Sender>,
}

impl<E> StampedSender<E> {
    /// Of a sender that has stamps.
    pub(crate) fn new(of: &Arc<E>, sender: &Arc<Sender>) -> Arc<Self> {
        let (of, sender) = (Arc::clone(of), Arc::clone(sender));
        Arc::new(StampedSender { of, sender })
    }
}

impl<E: SendingEnd> SendingEnd for StampedSender<E> {
    type Port = E::Port;
    type SpreadPort = E::SpreadPort;
    type Completions = StampedPort;
    type Stamps = E::Stamps;

    fn fill(&self, burst: u32, sequence: u32) {
        self.of.fill(burst, sequence);
    }

    fn port(&self) -> E::Port {
        self.of.port()
    }

    fn spread_port(&self) -> E::SpreadPort {
        self.of.spread_port()
    }

    fn completions(&self) -> StampedPort {
        let stamps = self.sender.hardware().expect("it has stamps");
        StampedPort {
            port: VerbsCompletionPort::new(stamps.stamped_queue().poller()),
            kept: stamps.words().clone(),
        }
    }

    fn stamps(&self) -> E::Stamps {
        self.of.stamps()
    }

    fn hardware(&self) -> Option<&HardwareStamps> {
        self.sender.hardware()
    }

    fn fetched(&self, burst: u32, sequence: u32) -> bool {
        self.of.fetched(burst, sequence)
    }

    fn link(&self) -> &dyn Link {
        self.of.link()
    }
}

/// A receiving end whose receive completions are stamped.
#[derive(Debug)]
pub(crate) struct StampedReceiver(pub Arc<Receiver>);

impl ReceivingEnd for StampedReceiver {
    type Port = StampedPort;

    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn requests(&self) -> usize {
        self.0.requests()
    }

    fn clear(&self, slot: usize) {
        self.0.clear(slot);
    }

    fn post(&self, slot: usize) -> Result<(), VerbsError> {
        self.0.post(slot)
    }

    fn port(&self, _burst: u32, _messages: usize) -> StampedPort {
        let stamps = self.0.hardware().expect("it has stamps");
        StampedPort {
            port: self.0.port_of(stamps.stamped_queue().poller()),
            kept: stamps.words().clone(),
        }
    }

    fn hardware(&self) -> Option<&HardwareStamps> {
        self.0.hardware()
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
