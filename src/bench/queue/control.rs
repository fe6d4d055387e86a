//! What the two ends of a queue and their supervisor tell each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_utils::CachePadded;

use crate::rig::control::{self, Pulse};

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

/// Shared by the threads of a run. While the loops run it is only read but for the pulses, which nobody but the
/// supervisor reads, and written when an end is done or told to stop.
#[derive(Debug, Default)]
pub struct Control {
    /// The start and the stop flag.
    pub run: Arc<control::Control>,
    /// The sender's signs of life: one where its loop looks around anyway, and at the beginning of each pause; none
    /// while an operation of the queue lasts.
    pub sender: Pulse,
    /// The receiver's.
    pub receiver: Pulse,
    sender_done: CachePadded<AtomicBool>,
    receiver_done: CachePadded<AtomicBool>,
}

impl Control {
    /// Whether to leave.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.run.stopped()
    }

    /// Waits until both threads are here, so that they start together; `false` when told to stop.
    pub fn start_together(&self) -> bool {
        self.run.start_together(2)
    }

    /// The sender has enqueued, and flushed, all it will.
    pub fn set_sender_done(&self) {
        self.sender_done.store(true, Ordering::Release);
    }

    /// Whether the sender is done.
    pub fn sender_done(&self) -> bool {
        self.sender_done.load(Ordering::Acquire)
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
