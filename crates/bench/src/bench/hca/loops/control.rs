//! What the threads of a burst tell each other while it runs: counters, beside what the threads of every run share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_utils::CachePadded;

use crate::rig::control::Control as RunControl;

/// Shared by the threads of a burst: ready barrier, stop flag and failure of a run, and counters of messages. Each
/// counter is written by one thread.
#[derive(Debug, Default)]
pub struct Control {
    run: RunControl,
    begun: CachePadded<AtomicBool>,
    posted: CachePadded<AtomicU32>,
    sender_done: CachePadded<AtomicBool>,
    received: CachePadded<AtomicU32>,
    completed: CachePadded<AtomicU32>,
    left: CachePadded<AtomicU32>,
    renewed: CachePadded<AtomicU32>,
}

impl Deref for Control {
    type Target = RunControl;

    #[inline(always)]
    fn deref(&self) -> &RunControl {
        &self.run
    }
}

impl Control {
    /// All threads are ready and the first message is about to be posted.
    pub fn set_begun(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Whether messages are being posted, or were.
    pub fn begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Sets the number of posted messages. Release, so that who sees it may rewrite their stamps.
    #[inline(always)]
    pub fn set_posted(&self, count: u32) {
        self.posted.store(count, Ordering::Release);
    }

    /// Messages posted so far.
    #[inline(always)]
    pub fn posted(&self) -> u32 {
        self.posted.load(Ordering::Acquire)
    }

    /// The sender has posted its last message.
    pub fn set_sender_done(&self) {
        self.sender_done.store(true, Ordering::Release);
    }

    /// Whether the sender has posted its last message.
    #[inline(always)]
    pub fn sender_done(&self) -> bool {
        self.sender_done.load(Ordering::Acquire)
    }

    /// Sets how far receiving is: one more than the highest number of a message that came. After a loss that is more
    /// than came, so that who rewrites stamps does not go on with those that will never arrive.
    #[inline(always)]
    pub fn set_received(&self, count: u32) {
        self.received.store(count, Ordering::Relaxed);
    }

    /// How far receiving is: one more than the highest number of a message that came.
    #[inline(always)]
    pub fn received(&self) -> u32 {
        self.received.load(Ordering::Relaxed)
    }

    /// Sets the number of send completions taken, good or bad.
    #[inline(always)]
    pub fn set_completed(&self, count: u32) {
        self.completed.store(count, Ordering::Relaxed);
    }

    /// Sets the number of messages that completions have shown to have left their send queue.
    #[inline(always)]
    pub fn set_left(&self, count: u32) {
        self.left.store(count, Ordering::Release);
    }

    /// Messages that are known to have left their send queue.
    #[inline(always)]
    pub fn left(&self) -> u32 {
        self.left.load(Ordering::Acquire)
    }

    /// Sets the number of messages that have arrived and whose receive requests are posted anew. Release, so that who
    /// sees it may post messages that take them.
    #[inline(always)]
    pub fn set_renewed(&self, count: u32) {
        self.renewed.store(count, Ordering::Release);
    }

    /// Messages that have arrived and whose receive requests are posted anew.
    #[inline(always)]
    pub fn renewed(&self) -> u32 {
        self.renewed.load(Ordering::Acquire)
    }

    /// Send completions taken so far.
    pub fn completed(&self) -> u32 {
        self.completed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_counters_share_a_cache_line() {
        let control = Control::default();
        let mut lines = [
            &raw const control.run as usize,
            &raw const control.begun as usize,
            &raw const control.posted as usize,
            &raw const control.sender_done as usize,
            &raw const control.received as usize,
            &raw const control.completed as usize,
            &raw const control.left as usize,
            &raw const control.renewed as usize,
        ]
        .map(|address| address / 128);
        lines.sort_unstable();
        assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "{lines:?}");
    }
}
