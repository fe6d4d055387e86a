//! What the two ends of a queue and their supervisor tell each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::rig::control::{self, Heartbeat};

/// How an end left its loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// All elements went through.
    #[default]
    Complete,
    /// It was told to.
    Stopped,
    /// Nothing went through for as long as it may take.
    GaveUp,
    /// The other end was done, and nothing more went through.
    OtherDone,
}

/// The parts of a warm-up that the sender has begun, and whether the last of them was the last.
#[derive(Debug, Default)]
pub struct WarmupParts(CachePadded<AtomicU64>);

impl WarmupParts {
    const OVER: u64 = 1 << 63;

    /// Part `number` begins, counted from 1.
    pub fn begin(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// None comes behind this one.
    pub fn end(&self, number: u64) {
        self.0.store(number | Self::OVER, Ordering::Relaxed);
    }

    /// Whether the last part was the last.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) & Self::OVER != 0
    }

    /// Whether another part comes behind this one, if that is known.
    fn is_followed(&self, number: u64) -> Option<bool> {
        let told = self.0.load(Ordering::Relaxed);
        match told & !Self::OVER > number {
            true => Some(true),
            false => (told & Self::OVER != 0).then_some(false),
        }
    }
}

/// Shared by the threads of a run. While the loops run it is only read but for the pulses, which nobody but the
/// supervisor reads, and written when an end is done or told to stop.
#[derive(Debug)]
pub struct QueueControl {
    /// The start and the stop flag.
    pub run: Arc<control::Control>,
    /// The sender's signs of life: one where its loop looks around anyway, and at the beginning of each pause; none
    /// while an operation of the queue lasts.
    pub sender: Heartbeat,
    /// The receiver's.
    pub receiver: Heartbeat,
    /// How far the warm-up is.
    pub warm_up: WarmupParts,
    /// How many start together.
    together: u32,
    sender_done: CachePadded<AtomicBool>,
    receiver_done: CachePadded<AtomicBool>,
}

impl Default for QueueControl {
    /// Of two threads.
    fn default() -> Self {
        QueueControl::of(&Arc::default(), 2)
    }
}

impl QueueControl {
    /// Of one or two threads of a run, of which so many start together: all threads, and under memory load the
    /// supervisor, who begins that.
    pub fn of(run: &Arc<control::Control>, together: u32) -> Self {
        QueueControl {
            run: Arc::clone(run),
            sender: Heartbeat::default(),
            receiver: Heartbeat::default(),
            warm_up: WarmupParts::default(),
            together,
            sender_done: CachePadded::default(),
            receiver_done: CachePadded::default(),
        }
    }

    /// Whether to leave.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.run.stopped()
    }

    /// Waits until all threads are here, so that they start together; `false` when told to stop.
    pub fn start_together(&self) -> bool {
        self.run.start_together(self.together)
    }

    /// The sender has enqueued, and flushed, all it will.
    pub fn set_sender_done(&self) {
        self.sender_done.store(true, Ordering::Release);
    }

    /// Whether the sender is done.
    pub fn sender_done(&self) -> bool {
        self.sender_done.load(Ordering::Acquire)
    }

    /// Waits for the sender to say whether another part of the warm-up comes behind this one. It says so when it has
    /// sent this one, so that there is next to nothing to wait for; nothing comes where the run was told to stop.
    pub fn comes_another_part(&self, number: u64) -> bool {
        loop {
            match self.warm_up.is_followed(number) {
                Some(is_followed) => return is_followed,
                None if self.stopped() => return false,
                // It may have said so just now, and gone.
                None if self.sender_done() => {
                    return self.warm_up.is_followed(number) == Some(true);
                }
                None => self.receiver.beat(),
            }
        }
    }

    /// The receiver takes nothing more.
    pub fn set_receiver_done(&self) {
        self.receiver_done.store(true, Ordering::Release);
    }

    /// Whether the receiver is done.
    pub fn receiver_done(&self) -> bool {
        self.receiver_done.load(Ordering::Acquire)
    }

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
        self.stopped() || self.receiver_done.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_warm_up_is_known_by_its_number() {
        let control = QueueControl::default();
        assert_eq!(control.warm_up.is_followed(0), None);
        control.warm_up.begin(2);
        assert!(control.comes_another_part(0) && control.comes_another_part(1));
        assert_eq!(control.warm_up.is_followed(2), None);
        control.warm_up.end(2);
        assert!(control.comes_another_part(1) && !control.comes_another_part(2));
        // None at all.
        let control = QueueControl::default();
        control.warm_up.end(0);
        assert!(!control.comes_another_part(0));
        // A sender that is gone.
        let control = QueueControl::default();
        control.set_sender_done();
        assert!(!control.comes_another_part(0));
    }

    #[test]
    fn under_memory_load_both_ends_wait_until_it_has_begun() {
        let control = QueueControl::of(&Arc::default(), 3);
        std::thread::scope(|scope| {
            let ends = [(); 2].map(|()| scope.spawn(|| control.start_together()));
            while control.run.ready() < 2 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(ends.iter().all(|end| !end.is_finished()));
            control.run.announce_ready();
            assert!(ends.into_iter().all(|end| end.join().unwrap()));
        });
    }
}
