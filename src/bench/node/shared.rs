//! What publishers and subscribers of a run tell each other: that they hear each other, when it begins, and how much
//! there is to come.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::log::Log;
use super::result::Received;
use super::sample::Header;
use crate::node::Wiring;
use crate::rig::control::Control;
use crate::time::Ticks;

/// The log of a subscriber.
pub(super) type ReceivedLog = Log<{ Received::WORDS }>;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) run: Arc<Control>,
    pub(super) wiring: Wiring,
    /// By subscriber, and within it by publisher: whether a greeting has come.
    heard: Vec<AtomicBool>,
    greeted: AtomicU32,
    start: AtomicU64,
    /// By publisher: the number of its first sample that counts.
    first: Vec<AtomicU64>,
    /// By publisher: samples that count and were sent; before its end a 0.
    sent: Vec<AtomicU64>,
    ended: CachePadded<AtomicU32>,
    /// By subscriber: samples that count and have come.
    received: Vec<CachePadded<AtomicU64>>,
    /// By subscriber: where it notes them.
    logs: Vec<OnceLock<Arc<ReceivedLog>>>,
    left: AtomicU32,
}

impl Shared {
    pub(super) fn new(wiring: Wiring, run: Arc<Control>) -> Self {
        let pairs = wiring.publishers as usize * wiring.subscribers as usize;
        Shared {
            run,
            wiring,
            heard: (0..pairs).map(|_| AtomicBool::new(false)).collect(),
            greeted: AtomicU32::new(0),
            start: AtomicU64::new(0),
            first: (0..wiring.publishers)
                .map(|_| AtomicU64::new(u64::MAX))
                .collect(),
            sent: (0..wiring.publishers).map(|_| AtomicU64::new(0)).collect(),
            ended: CachePadded::default(),
            received: (0..wiring.subscribers)
                .map(|_| CachePadded::default())
                .collect(),
            logs: (0..wiring.subscribers).map(|_| OnceLock::new()).collect(),
            left: AtomicU32::new(0),
        }
    }

    fn pair(&self, subscriber: u32, publisher: u32) -> &AtomicBool {
        &self.heard[subscriber as usize * self.wiring.publishers as usize + publisher as usize]
    }

    /// A greeting of that publisher has come to that subscriber. A publisher that there is not is somebody else's.
    pub(super) fn hear(&self, subscriber: u32, publisher: u32) {
        if publisher < self.wiring.publishers {
            self.pair(subscriber, publisher)
                .store(true, Ordering::Relaxed);
        }
    }

    /// A subscriber that a publisher has not reached yet.
    pub(super) fn not_reached_by(&self, publisher: u32) -> Option<u32> {
        let mut subscribers = self.wiring.subscribers_of(publisher);
        subscribers.find(|&subscriber| !self.pair(subscriber, publisher).load(Ordering::Relaxed))
    }

    /// A publisher has reached all that it is to reach.
    pub(super) fn has_greeted(&self) {
        self.greeted.fetch_add(1, Ordering::Release);
    }

    /// When the first step of all publishers is due: set by the one who asks first, once all have greeted.
    pub(super) fn start(&self, soon: Ticks) -> Option<Ticks> {
        if self.greeted.load(Ordering::Acquire) < self.wiring.publishers {
            return None;
        }
        let set = self
            .start
            .compare_exchange(0, soon.0, Ordering::AcqRel, Ordering::Acquire);
        Some(Ticks(set.map_or_else(|earlier| earlier, |_| soon.0)))
    }

    /// From this sample on what a publisher sends counts. Told before it is sent.
    pub(super) fn begin_to_count(&self, publisher: u32, number: u64) {
        self.first[publisher as usize].store(number, Ordering::Release);
    }

    /// Whether a sample counts: it was not sent in the warm-up. One of a publisher that there is not does, as a fault.
    #[inline(always)]
    pub(super) fn counts(&self, header: Header) -> bool {
        let first = self.first.get(header.publisher() as usize);
        first.is_none_or(|first| header.number() >= first.load(Ordering::Acquire))
    }

    /// A publisher has sent its last sample. Release: whoever sees the end sees how many there were.
    pub(super) fn end_publishing(&self, publisher: u32, sent: u64) {
        self.sent[publisher as usize].store(sent, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn publishers_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) == self.wiring.publishers
    }

    /// So many samples have come to a subscriber by now. Release: whoever sees the count sees as many in its log.
    #[inline(always)]
    pub(super) fn set_received(&self, subscriber: u32, count: u64) {
        self.received[subscriber as usize].store(count, Ordering::Release);
    }

    pub(super) fn received_by(&self, subscriber: u32) -> u64 {
        self.received[subscriber as usize].load(Ordering::Acquire)
    }

    /// Where a subscriber notes what comes.
    pub(super) fn show_log(&self, subscriber: u32, log: &Arc<ReceivedLog>) {
        // It is shown once.
        let _ = self.logs[subscriber as usize].set(Arc::clone(log));
    }

    pub(super) fn log_of(&self, subscriber: u32) -> Option<&ReceivedLog> {
        self.logs[subscriber as usize].get().map(Arc::as_ref)
    }

    pub(super) fn received(&self) -> u64 {
        let each = self.received.iter();
        each.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether as much as was sent has come to a subscriber, once all publishers have ended. What came again counts
    /// too: to know it apart, the loop of the subscriber would have to keep what it has seen. So a subscriber may leave
    /// before as many of the last samples as came again.
    pub(super) fn has_all(&self, subscriber: u32) -> bool {
        let sent = |publisher: u32| self.sent[publisher as usize].load(Ordering::Relaxed);
        let expected: u64 = self.wiring.publishers_of(subscriber).map(sent).sum();
        let received = if self.wiring.takes_turns() {
            self.received()
        } else {
            self.received[subscriber as usize].load(Ordering::Relaxed)
        };
        received >= expected
    }

    /// A subscriber waits for no more samples.
    pub(super) fn leave(&self) {
        self.left.fetch_add(1, Ordering::Release);
    }

    pub(super) fn subscribers_left(&self) -> bool {
        self.left.load(Ordering::Acquire) == self.wiring.subscribers
    }
}
