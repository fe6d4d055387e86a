//! What publishers and subscribers of a run tell each other: that they hear each other, when it begins, and how much
//! there is to come. It lies in shared memory, whether they are threads or processes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use serde::{Deserialize, Serialize};

use super::log::Log;
use super::result::ReceivedSample;
use super::sample::Header;
use crate::buffer::{
    BufferError, Bytes, HugePagePolicy, MappedArena, MappedValue, SharedMemory, all_atomic,
};
use crate::node::Wiring;
use crate::rig::control::Control;
use crate::time::Ticks;

/// The log of a subscriber.
pub(super) type ReceivedLog = Log<{ ReceivedSample::WORDS }>;

#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) run: MappedValue<Control>,
    pub(super) wiring: Wiring,
    phases: MappedValue<Phases>,
    /// By subscriber, and within it by publisher: whether a greeting has come.
    heard: MappedValue<[AtomicBool]>,
    /// By publisher: one more than the number of its first sample that counts; before that is sent a 0.
    first: MappedValue<[AtomicU64]>,
    /// By publisher: samples that count and were sent; before its end a 0.
    sent: MappedValue<[AtomicU64]>,
    /// By subscriber: samples that count and have come.
    received: MappedValue<[CachePadded<AtomicU64>]>,
    /// By subscriber: where it notes them, as far as this process knows.
    logs: Vec<OnceLock<Arc<ReceivedLog>>>,
}

/// How far the subscribers of another host are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FarState {
    /// Those that are ready.
    ready: u32,
    /// Subscriber and publisher: a greeting has come, which was not told before.
    heard: Vec<(u32, u32)>,
    /// Samples that have come, those of the warm-up included.
    received: u64,
    /// Those that wait for no more.
    left: u32,
}

impl FarState {
    /// Whether there is more to it than that samples come.
    pub(super) fn has_news(&self, before: &Self) -> bool {
        let apart = |state: &Self| (state.ready, state.left);
        apart(self) != apart(before) || !self.heard.is_empty()
    }
}

/// What was passed on here by subscribers of another host.
#[derive(Debug, Default)]
pub(super) struct FarSubscribers {
    state: FarState,
    /// Samples that had come when the warm-up was over.
    warm_up: Option<u64>,
}

impl FarSubscribers {
    /// Samples that have come, those of the warm-up included.
    pub(super) fn received(&self) -> u64 {
        self.state.received
    }

    /// Takes over what they pass on now.
    pub(super) fn take_over(&mut self, now: FarState, shared: &SharedState) {
        let before = &self.state;
        (before.ready..now.ready).for_each(|_| shared.run.announce_ready());
        for &(subscriber, publisher) in &now.heard {
            if subscriber < shared.wiring.subscribers {
                shared.record_greeting(subscriber, publisher);
            }
        }
        (before.left..now.left).for_each(|_| shared.leave());
        // Of the warm-up nothing is shown. What was sent in it may have been lost: what came is subtracted.
        if shared.all_count() {
            let warm_up = *self.warm_up.get_or_insert(before.received);
            shared.set_received(0, now.received.saturating_sub(warm_up));
        }
        self.state = now;
    }
}

/// How far a run is.
#[derive(Debug)]
struct Phases {
    greeted: AtomicU32,
    start: AtomicU64,
    ended: CachePadded<AtomicU32>,
    left: AtomicU32,
}

all_atomic!(Phases {
    greeted,
    start,
    ended,
    left
});

impl AsRef<Control> for SharedState {
    fn as_ref(&self) -> &Control {
        &self.run
    }
}

fn pairs(wiring: &Wiring) -> usize {
    wiring.publishers as usize * wiring.subscribers as usize
}

impl SharedState {
    /// Memory for it.
    pub(super) fn memory(wiring: &Wiring) -> Result<SharedMemory, BufferError> {
        SharedMemory::new(Self::bytes(wiring), HugePagePolicy::Off)
    }

    /// What that takes.
    pub(super) fn bytes(wiring: &Wiring) -> Bytes {
        let publishers = wiring.publishers as usize;
        let parts = [
            MappedArena::bytes_for::<Control>(1),
            MappedArena::bytes_for::<Phases>(1),
            MappedArena::bytes_for::<AtomicBool>(pairs(wiring)),
            MappedArena::bytes_for::<AtomicU64>(publishers),
            MappedArena::bytes_for::<AtomicU64>(publishers),
            MappedArena::bytes_for::<CachePadded<AtomicU64>>(wiring.subscribers as usize),
        ];
        Bytes(parts.iter().map(|bytes| bytes.0).sum())
    }

    /// All who have that memory share it.
    pub(super) fn new(wiring: Wiring, memory: &SharedMemory) -> Result<Self, BufferError> {
        let mut room = MappedArena::new(memory)?;
        let publishers = wiring.publishers as usize;
        Ok(SharedState {
            run: room.one(),
            wiring,
            phases: room.one(),
            heard: room.several(pairs(&wiring)),
            first: room.several(publishers),
            sent: room.several(publishers),
            received: room.several(wiring.subscribers as usize),
            logs: (0..wiring.subscribers).map(|_| OnceLock::new()).collect(),
        })
    }

    fn pair(&self, subscriber: u32, publisher: u32) -> &AtomicBool {
        &self.heard[subscriber as usize * self.wiring.publishers as usize + publisher as usize]
    }

    /// A greeting of that publisher has come to that subscriber. A publisher that there is not is somebody else's.
    pub(super) fn record_greeting(&self, subscriber: u32, publisher: u32) {
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
        self.phases.greeted.fetch_add(1, Ordering::Release);
    }

    /// When the first step of all publishers is due: set by the one who asks first, once all have greeted.
    pub(super) fn start(&self, soon: Ticks) -> Option<Ticks> {
        if self.phases.greeted.load(Ordering::Acquire) < self.wiring.publishers {
            return None;
        }
        let set =
            (self.phases.start).compare_exchange(0, soon.0, Ordering::AcqRel, Ordering::Acquire);
        Some(Ticks(set.map_or_else(|earlier| earlier, |_| soon.0)))
    }

    /// From this sample on what a publisher sends counts. Told before it is sent.
    pub(super) fn begin_to_count(&self, publisher: u32, number: u64) {
        self.first[publisher as usize].store(number + 1, Ordering::Release);
    }

    /// Whether the warm-up is over: what each publisher sends counts.
    pub(super) fn all_count(&self) -> bool {
        let counts = |first: &AtomicU64| first.load(Ordering::Relaxed) > 0;
        self.first.iter().all(counts)
    }

    /// Whether a sample counts: it was not sent in the warm-up. One of a publisher that there is not does, as a fault.
    #[inline(always)]
    pub(super) fn counts(&self, header: Header) -> bool {
        let first = self.first.get(header.publisher() as usize);
        first.is_none_or(|first| {
            // Before it is known none counts.
            header.number() >= first.load(Ordering::Acquire).wrapping_sub(1)
        })
    }

    /// A publisher has sent its last sample. Release: whoever sees the end sees how many there were.
    pub(super) fn end_publishing(&self, publisher: u32, sent: u64) {
        self.sent[publisher as usize].store(sent, Ordering::Relaxed);
        self.phases.ended.fetch_add(1, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn publishers_ended(&self) -> bool {
        self.phases.ended.load(Ordering::Acquire) == self.wiring.publishers
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

    pub(super) fn log_of(&self, subscriber: u32) -> Option<&Arc<ReceivedLog>> {
        self.logs[subscriber as usize].get()
    }

    /// What the ends of this process count is passed on from here, where publishers are on another host: they cannot
    /// say in time where the warm-up ends, so all samples count.
    pub(super) fn count_all(&self) {
        (0..self.wiring.publishers).for_each(|publisher| self.begin_to_count(publisher, 0));
    }

    /// How many samples each publisher has sent, those of the warm-up included, once all have ended.
    pub(super) fn published(&self) -> Option<Vec<u64>> {
        let of = |publisher: usize| {
            let warm_up = self.warm_up(publisher);
            self.sent[publisher].load(Ordering::Relaxed) + warm_up
        };
        let publishers = self.wiring.publishers as usize;
        self.publishers_ended()
            .then(|| (0..publishers).map(of).collect())
    }

    /// All publishers of another host have ended, and have sent this many samples each.
    pub(super) fn end_all(&self, sent: &[u64]) {
        for (publisher, &sent) in (0..self.wiring.publishers).zip(sent) {
            self.end_publishing(publisher, sent);
        }
    }

    /// Samples that a publisher sent before the first that counts.
    fn warm_up(&self, publisher: usize) -> u64 {
        let first = self.first[publisher].load(Ordering::Acquire);
        first.saturating_sub(1)
    }

    /// What the subscribers of this process have to pass on to another host. `untold`: the places of pairs of which no
    /// greeting was told yet, of which those that are told now are taken out.
    pub(super) fn far_state(&self, untold: &mut Vec<usize>) -> FarState {
        let publishers = self.wiring.publishers as usize;
        let mut heard = Vec::new();
        untold.retain(|&place| {
            let has_come = self.heard[place].load(Ordering::Relaxed);
            if has_come {
                heard.push(((place / publishers) as u32, (place % publishers) as u32));
            }
            !has_come
        });
        FarState {
            ready: self.run.ready(),
            heard,
            received: self.received(),
            left: self.phases.left.load(Ordering::Acquire),
        }
    }

    /// All pairs, before anything was told of them.
    pub(super) fn untold(&self) -> Vec<usize> {
        (0..self.heard.len()).collect()
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
        self.phases.left.fetch_add(1, Ordering::Release);
    }

    pub(super) fn subscribers_left(&self) -> bool {
        self.phases.left.load(Ordering::Acquire) == self.wiring.subscribers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Scenario;

    #[test]
    fn two_hosts_pass_on_what_their_ends_share() {
        let wiring = Wiring::new(Scenario::FanOut, 2, 3);
        let memory = [(); 2].map(|()| SharedState::memory(&wiring).unwrap());
        let [here, there] = [0, 1].map(|at: usize| SharedState::new(wiring, &memory[at]).unwrap());
        // There the warm-up counts as well.
        there.count_all();
        assert!(there.counts(Header::new(1, 0)) && !here.counts(Header::new(1, 0)));
        there.run.announce_ready();
        there.record_greeting(2, 1);
        let (mut far, mut untold) = (FarSubscribers::default(), there.untold());
        let now = there.far_state(&mut untold);
        assert!(now.has_news(&FarState::default()));
        // What was told is not told again.
        let again = there.far_state(&mut untold);
        assert!(!again.has_news(&now) && again.heard.is_empty());
        far.take_over(now, &here);
        far.take_over(again, &here);
        assert_eq!(here.run.ready(), 1);
        there.record_greeting(0, 1);
        there.record_greeting(1, 1);
        // Of what was sent in the warm-up, 30 copies, some were lost.
        there.set_received(0, 12);
        far.take_over(there.far_state(&mut untold), &here);
        assert_eq!([0, 1].map(|it| here.not_reached_by(it)), [Some(0), None]);
        assert_eq!((here.received(), far.received()), (0, 12));
        assert_eq!(here.published(), None);
        for publisher in 0..2 {
            here.begin_to_count(publisher, 5);
        }
        there.set_received(0, 13);
        far.take_over(there.far_state(&mut untold), &here);
        assert_eq!((here.received(), far.received()), (1, 13));
        for publisher in 0..2 {
            here.end_publishing(publisher, 10);
        }
        assert_eq!(here.published(), Some(vec![15, 15]));
        there.end_all(&here.published().unwrap());
        assert!(there.publishers_ended());
        for subscriber in 0..3 {
            assert!(!there.has_all(subscriber));
            there.set_received(subscriber, 30);
            assert!(there.has_all(subscriber));
            there.leave();
        }
        far.take_over(there.far_state(&mut untold), &here);
        assert!(here.subscribers_left());
        assert_eq!(here.received(), 78);
    }
}
