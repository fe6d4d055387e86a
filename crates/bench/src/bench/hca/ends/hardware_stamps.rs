//! Ends whose adapters stamp completions by their own clock (`--hw-timestamps`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::receiving_end::Receiver;
use super::sending_end::Sender;
use super::verbs_port::VerbsCompletionPort;
use super::{Link, ReceivingEnd, SendingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::port::{CompletionPort, EventPort, Failure, PollResult};
use crate::buffer::{Arrival, AtomicWords, HugePagePolicy, PageKind};
use crate::rdma::verbs::{Context, NoHardwareClock, StampedPoller, StampedQueue, VerbsError};
use crate::time::{CounterKind, Ticks};

/// Reads the clock of an adapter.
type ReadClock = Box<dyn Fn() -> Result<u64, VerbsError> + Send + Sync>;

/// The stamps of an end: as its adapter counts, and where they are stored.
pub struct HardwareStamps {
    kind: CounterKind,
    read: ReadClock,
    kept: AtomicWords,
    /// None in tests, whose ports are no verbs.
    queue: Option<StampedQueue>,
}

impl std::fmt::Debug for HardwareStamps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "HardwareStamps({:?})", self.kind)
    }
}

impl HardwareStamps {
    /// With room for the stamps of so many messages, which is first touched here.
    pub(super) fn new(
        context: &Arc<Context>,
        queue: StampedQueue,
        messages: usize,
        huge_pages: HugePagePolicy,
    ) -> Result<Self, RunError> {
        let clock = context.hardware_clock().map_err(refused)?;
        let context = Arc::clone(context);
        Ok(HardwareStamps {
            kind: CounterKind {
                mask: clock.mask,
                hertz: clock.khz.map(|khz| khz as f64 * 1e3),
            },
            read: Box::new(move || context.read_hardware_clock()),
            kept: AtomicWords::new(messages, huge_pages)?,
            queue: Some(queue),
        })
    }

    #[cfg(test)]
    pub(crate) fn made_up(
        kind: CounterKind,
        messages: usize,
        read: impl Fn() -> Result<u64, VerbsError> + Send + Sync + 'static,
    ) -> Self {
        HardwareStamps {
            kind,
            read: Box::new(read),
            kept: AtomicWords::new(messages, HugePagePolicy::Off).unwrap(),
            queue: None,
        }
    }

    fn stamped_queue(&self) -> &StampedQueue {
        self.queue.as_ref().expect("made of one")
    }

    /// Where stamps are stored.
    pub(crate) fn words(&self) -> &AtomicWords {
        &self.kept
    }

    /// The pages of that.
    pub(crate) fn page_kind(&self) -> PageKind {
        self.kept.page_kind()
    }

    /// How the adapter counts.
    pub(crate) fn kind(&self) -> CounterKind {
        self.kind
    }

    /// What its clock shows now.
    pub(crate) fn read_clock(&self) -> Result<u64, VerbsError> {
        (self.read)()
    }

    /// What was stored at a place; 0 is no stamp.
    pub(crate) fn at(&self, place: usize) -> u64 {
        self.kept
            .get(place)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// A port has no stamps of its adapter.
pub(crate) fn refused(why: NoHardwareClock) -> RunError {
    RunError::Usage(format!(
        "--hw-timestamps: {why}: leave it out, or name ports of other adapters with --sender and --receiver (those \
         with bits and a clock under 'completion stamps' in hcabench devices)"
    ))
}

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
