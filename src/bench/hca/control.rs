//! What the threads of a burst tell each other while it runs: counters, and the word to stop.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::rig::flags::{Apart, Stop};

/// Shared by the threads of a burst. Each counter is written by one thread.
#[derive(Debug, Default)]
pub struct Control {
    stop: Stop,
    ready: Apart<AtomicU32>,
    begun: Apart<AtomicBool>,
    posted: Apart<AtomicU32>,
    sender_done: Apart<AtomicBool>,
    received: Apart<AtomicU32>,
    completed: Apart<AtomicU32>,
    failed: Apart<AtomicBool>,
}

impl Control {
    /// Tells all threads to leave their loops.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Whether to leave.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// A thread other than the sender is about to enter its loop.
    pub fn announce_ready(&self) {
        self.ready.0.fetch_add(1, Ordering::Release);
    }

    /// Threads that are ready, for tests that must not wait.
    #[cfg(test)]
    pub(crate) fn ready(&self) -> u32 {
        self.ready.0.load(Ordering::Acquire)
    }

    /// The sender waits until `others` threads are ready. Returns false if told to stop, or if one of them failed.
    pub fn wait_until_ready(&self, others: u32) -> bool {
        while self.ready.0.load(Ordering::Acquire) < others {
            if self.stopped() || self.failed() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// All threads are ready and the first message is about to be posted.
    pub fn set_begun(&self) {
        self.begun.0.store(true, Ordering::Relaxed);
    }

    /// Whether messages are being posted, or were.
    pub fn begun(&self) -> bool {
        self.begun.0.load(Ordering::Relaxed)
    }

    /// Sets the number of posted messages. Release, so that who sees it may rewrite their stamps.
    #[inline(always)]
    pub fn set_posted(&self, count: u32) {
        self.posted.0.store(count, Ordering::Release);
    }

    /// Messages posted so far.
    #[inline(always)]
    pub fn posted(&self) -> u32 {
        self.posted.0.load(Ordering::Acquire)
    }

    /// The sender has posted its last message.
    pub fn set_sender_done(&self) {
        self.sender_done.0.store(true, Ordering::Release);
    }

    /// Whether the sender has posted its last message.
    #[inline(always)]
    pub fn sender_done(&self) -> bool {
        self.sender_done.0.load(Ordering::Acquire)
    }

    /// Sets how far receiving is: one more than the number of the message that came last. After a loss that is more than
    /// came, so that who rewrites stamps does not go on with those that will never arrive.
    #[inline(always)]
    pub fn set_received(&self, count: u32) {
        self.received.0.store(count, Ordering::Relaxed);
    }

    /// How far receiving is: one more than the number of the message that came last.
    #[inline(always)]
    pub fn received(&self) -> u32 {
        self.received.0.load(Ordering::Relaxed)
    }

    /// Sets the number of send completions taken, good or bad.
    #[inline(always)]
    pub fn set_completed(&self, count: u32) {
        self.completed.0.store(count, Ordering::Relaxed);
    }

    /// Send completions taken so far.
    pub fn completed(&self) -> u32 {
        self.completed.0.load(Ordering::Relaxed)
    }

    /// Something failed, so that not all messages can arrive any more.
    pub fn set_failed(&self) {
        self.failed.0.store(true, Ordering::Relaxed);
    }

    /// Whether something failed.
    pub fn failed(&self) -> bool {
        self.failed.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use super::*;

    /// The sender, waiting for two others.
    fn waiting(control: &Arc<Control>) -> JoinHandle<bool> {
        let control = Arc::clone(control);
        std::thread::spawn(move || control.wait_until_ready(2))
    }

    fn ended(sender: JoinHandle<bool>) -> bool {
        let limit = Instant::now() + Duration::from_secs(20);
        while !sender.is_finished() {
            assert!(Instant::now() < limit, "the sender waits for ever");
            std::thread::yield_now();
        }
        sender.join().unwrap()
    }

    #[test]
    fn the_sender_waits_for_all_others() {
        let control = Arc::new(Control::default());
        let sender = waiting(&control);
        control.announce_ready();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!sender.is_finished());
        control.announce_ready();
        assert!(ended(sender));
    }

    #[test]
    fn who_waits_is_told_to_stop_and_of_failures() {
        for tell in [Control::stop, Control::set_failed] {
            let control = Arc::new(Control::default());
            let sender = waiting(&control);
            control.announce_ready();
            tell(&control);
            assert!(!ended(sender));
        }
    }

    #[test]
    fn no_two_counters_share_a_cache_line() {
        let control = Control::default();
        let mut lines = [
            &raw const control.stop as usize,
            &raw const control.ready as usize,
            &raw const control.posted as usize,
            &raw const control.sender_done as usize,
            &raw const control.received as usize,
            &raw const control.completed as usize,
            &raw const control.failed as usize,
        ]
        .map(|address| address / 128);
        lines.sort_unstable();
        assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "{lines:?}");
    }
}
