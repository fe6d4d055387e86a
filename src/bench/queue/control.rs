//! What the two threads of a run and their supervisor tell each other, and how long anyone waits.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::rig::flags::{Apart, Stop};

/// Signs of life of an end: its thread counts them up, and only the supervisor looks. One is given where a loop looks
/// around anyway, and at the beginning of each pause; none while an operation of the queue lasts.
#[derive(Debug, Default)]
pub struct Pulse(Apart<AtomicU64>);

impl Pulse {
    /// The end has taken the queue apart for all that matters.
    const OVER: u64 = u64::MAX;

    /// Gives a sign. Relaxed, as the supervisor learns nothing else from it; a load and a store, because nobody else stores.
    #[inline(always)]
    pub fn beat(&self) {
        let count = self.0.0.load(Ordering::Relaxed);
        self.0.0.store(count + 1, Ordering::Relaxed);
    }

    /// The last sign: no operation of the queue follows.
    pub fn end(&self) {
        self.0.0.store(Self::OVER, Ordering::Relaxed);
    }

    /// How many signs there were: none before the end is ready, `None` behind the last operation.
    pub fn beats(&self) -> Option<u64> {
        Some(self.0.0.load(Ordering::Relaxed)).filter(|count| *count != Self::OVER)
    }
}

/// Shared by the threads of a run. While the loops run it is only read but for the pulses, which nobody but the supervisor
/// reads, and written when an end is done or told to stop.
#[derive(Debug, Default)]
pub struct Control {
    /// The sender's signs of life.
    pub sender: Pulse,
    /// The receiver's.
    pub receiver: Pulse,
    ready: Apart<AtomicU32>,
    stop: Stop,
    sender_done: Apart<AtomicBool>,
    receiver_done: Apart<AtomicBool>,
}

impl Control {
    /// Tells both threads to leave their loops.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Whether to leave.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Waits until both threads are here, so that they start together; `false` when told to stop.
    pub fn start_together(&self) -> bool {
        self.ready.0.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.ready.0.load(Ordering::Acquire) < 2 {
            if self.stopped() {
                return false;
            }
            looks += 1;
            // On one CPU the other one comes only if this one lets it.
            if looks.is_multiple_of(1024) {
                std::thread::yield_now();
            }
        }
        true
    }

    /// The sender has enqueued, and flushed, all it will.
    pub fn set_sender_done(&self) {
        self.sender_done.0.store(true, Ordering::Release);
    }

    /// Whether the sender is done.
    pub fn sender_done(&self) -> bool {
        self.sender_done.0.load(Ordering::Acquire)
    }

    /// The receiver takes nothing more.
    pub fn set_receiver_done(&self) {
        self.receiver_done.0.store(true, Ordering::Release);
    }

    /// Whether the receiver is done.
    pub fn receiver_done(&self) -> bool {
        self.receiver_done.0.load(Ordering::Acquire)
    }
}

impl Control {
    /// Every so many elements: gives a sign of life, and tells whether the sender is to leave and why.
    #[inline(always)]
    pub fn look_of_sender(&self) -> Option<Ending> {
        self.sender.beat();
        match (self.stopped(), self.receiver_done()) {
            (true, _) => Some(Ending::Stopped),
            (false, true) => Some(Ending::OtherDone),
            (false, false) => None,
        }
    }

    /// The same for the receiver.
    #[inline(always)]
    pub fn look_of_receiver(&self) -> Option<Ending> {
        self.receiver.beat();
        self.stopped().then_some(Ending::Stopped)
    }

    /// Whether the sender is to leave: nobody takes what it still has.
    #[inline(always)]
    pub fn sender_is_over(&self) -> bool {
        self.stopped() || self.receiver_done.0.load(Ordering::Relaxed)
    }
}

/// How an end left its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All elements went through.
    Complete,
    /// It was told to.
    Stopped,
    /// Nothing went through for as long as it may take.
    GaveUp,
    /// The other end was done, and nothing more went through.
    OtherDone,
}

/// A look at the time and at [`Control`] is made every so many failed attempts.
pub const ATTEMPTS_PER_LOOK: u64 = 1024;
/// A look for the word to stop is made every so many elements that went through.
pub const ELEMENTS_PER_LOOK: usize = 4096;
/// How long a receiver goes on once it has seen that the sender is done: what was enqueued is there at once or never.
const AFTER_SENDER: Duration = Duration::from_millis(100);

/// Decides when an end that fails again and again gives up.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    waiting: Option<(u64, Instant)>,
    /// Whether the receiver has seen that the sender is done.
    is_after_sender: bool,
}

impl Patience {
    /// Gives up after `limit` without an element.
    pub fn new(limit: Duration) -> Self {
        Patience {
            limit,
            waiting: None,
            is_after_sender: false,
        }
    }

    /// A loop begins: what was waited for before does not count, whatever number of elements that was at.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.waiting = None;
    }

    /// How long the end has waited since `done` elements had gone through, which it says again at each look.
    fn waited(&mut self, done: u64) -> Duration {
        match self.waiting {
            Some((at, since)) if at == done => since.elapsed(),
            _ => {
                self.waiting = Some((done, Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Whether the sender, whose queue is full, is to leave.
    #[cold]
    #[inline(never)]
    pub fn end_of_sender(&mut self, control: &Control, done: u64) -> Option<Ending> {
        control.sender.beat();
        if control.stopped() {
            Some(Ending::Stopped)
        } else if control.receiver_done() {
            Some(Ending::OtherDone)
        } else {
            (self.waited(done) >= self.limit).then_some(Ending::GaveUp)
        }
    }

    /// Whether the receiver, whose queue is empty, is to leave.
    #[cold]
    #[inline(never)]
    pub fn end_of_receiver(&mut self, control: &Control, done: u64) -> Option<Ending> {
        control.receiver.beat();
        let (limit, ending) = if control.sender_done() {
            if !self.is_after_sender {
                self.is_after_sender = true;
                // The last elements may have come after the attempts that failed up to here.
                self.waiting = None;
            }
            (self.limit.min(AFTER_SENDER), Ending::OtherDone)
        } else {
            (self.limit, Ending::GaveUp)
        };
        if control.stopped() {
            Some(Ending::Stopped)
        } else {
            (self.waited(done) >= limit).then_some(ending)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    #[test]
    fn patience_ends_after_the_limit_and_begins_anew_with_each_element() {
        let control = Control::default();
        let mut patience = Patience::new(LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 0), None);
        std::thread::sleep(2 * LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 1), None);
        std::thread::sleep(2 * LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 1), Some(Ending::GaveUp));
        assert_eq!(patience.end_of_sender(&control, 1), Some(Ending::GaveUp));
    }

    #[test]
    fn what_was_waited_for_in_a_loop_does_not_count_in_the_next() {
        let control = Control::default();
        let mut patience = Patience::new(LIMIT);
        patience.begin();
        assert_eq!(patience.end_of_receiver(&control, 0), None);
        std::thread::sleep(2 * LIMIT);
        patience.begin();
        assert_eq!(patience.end_of_receiver(&control, 0), None);
        assert_eq!(
            (control.receiver.beats(), control.sender.beats()),
            (Some(2), Some(0))
        );
    }

    #[test]
    fn nobody_waits_for_an_end_that_is_done() {
        let control = Control::default();
        let mut patience = Patience::new(Duration::from_secs(3600));
        control.set_receiver_done();
        assert_eq!(patience.end_of_sender(&control, 5), Some(Ending::OtherDone));
        control.set_sender_done();
        assert_eq!(patience.end_of_receiver(&control, 5), None);
        std::thread::sleep(2 * AFTER_SENDER);
        assert_eq!(
            patience.end_of_receiver(&control, 5),
            Some(Ending::OtherDone)
        );
    }

    #[test]
    fn the_last_elements_are_waited_for_from_when_the_sender_was_seen_to_be_done() {
        let control = Control::default();
        let mut patience = Patience::new(Duration::from_secs(3600));
        assert_eq!(patience.end_of_receiver(&control, 5), None);
        std::thread::sleep(2 * AFTER_SENDER);
        control.set_sender_done();
        // What it enqueued last may have come after the attempts before this look.
        assert_eq!(patience.end_of_receiver(&control, 5), None);
        std::thread::sleep(2 * AFTER_SENDER);
        assert_eq!(
            patience.end_of_receiver(&control, 5),
            Some(Ending::OtherDone)
        );
    }

    #[test]
    fn a_stop_is_seen_at_the_next_look() {
        let control = Control::default();
        let mut patience = Patience::new(Duration::from_secs(3600));
        control.stop();
        assert_eq!(patience.end_of_sender(&control, 0), Some(Ending::Stopped));
        assert_eq!(patience.end_of_receiver(&control, 0), Some(Ending::Stopped));
        assert!(!control.start_together());
    }
}
