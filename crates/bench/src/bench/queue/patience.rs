//! When an end leaves its loop before all elements went through.

use std::time::{Duration, Instant};

use super::control::{Ending, QueueControl};

/// A look at the time and at [`QueueControl`] is made every so many failed attempts.
pub const ATTEMPTS_PER_LOOK: u64 = 1024;
/// A look at the stop flag is made every so many elements that went through.
pub const ELEMENTS_PER_LOOK: usize = 4096;
/// How long a receiver goes on once it has seen that the sender is done: what was enqueued is there at once or never.
const AFTER_SENDER: Duration = Duration::from_millis(100);

/// Decides when an end that fails again and again gives up.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    after_sender: Duration,
    waiting: Option<(u64, Instant)>,
    /// Whether the receiver has seen that the sender is done.
    is_after_sender: bool,
}

impl Patience {
    /// Gives up after `limit` without an element.
    pub fn new(limit: Duration) -> Self {
        Patience {
            limit,
            after_sender: AFTER_SENDER,
            waiting: None,
            is_after_sender: false,
        }
    }

    /// The same for a receiver that always goes on for so long once the sender is done, as it does not know how many
    /// elements are for it.
    pub fn after_sender(self, after_sender: Duration) -> Self {
        Patience {
            after_sender,
            ..self
        }
    }

    /// A loop begins: what was waited for before does not count, whatever number of elements that was at.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.waiting = None;
    }

    /// The same for a loop that begins.
    pub fn anew(&self) -> Self {
        Patience {
            waiting: None,
            ..*self
        }
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
    pub fn end_of_sender(&mut self, control: &QueueControl, done: u64) -> Option<Ending> {
        control
            .look_of_sender()
            .or_else(|| (self.waited(done) >= self.limit).then_some(Ending::GaveUp))
    }

    /// Whether the receiver, whose queue is empty, is to leave.
    #[cold]
    #[inline(never)]
    pub fn end_of_receiver(&mut self, control: &QueueControl, done: u64) -> Option<Ending> {
        if let Some(ending) = control.look_of_receiver() {
            return Some(ending);
        }
        let (limit, ending) = if control.sender_done() {
            if !self.is_after_sender {
                self.is_after_sender = true;
                // The last elements may have come after the attempts that failed up to here.
                self.waiting = None;
            }
            (self.limit.min(self.after_sender), Ending::OtherDone)
        } else {
            (self.limit, Ending::GaveUp)
        };
        (self.waited(done) >= limit).then_some(ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::control::Heartbeat;

    const LIMIT: Duration = Duration::from_millis(20);

    #[test]
    fn patience_ends_after_the_limit_and_begins_anew_with_each_element_and_each_loop() {
        let control = QueueControl::default();
        let mut patience = Patience::new(LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 0), None);
        std::thread::sleep(2 * LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 1), None);
        std::thread::sleep(2 * LIMIT);
        patience.begin();
        assert_eq!(patience.end_of_receiver(&control, 1), None);
        std::thread::sleep(2 * LIMIT);
        assert_eq!(patience.end_of_receiver(&control, 1), Some(Ending::GaveUp));
        assert_eq!(patience.end_of_sender(&control, 1), Some(Ending::GaveUp));
        let signs = [&control.receiver, &control.sender].map(Heartbeat::beats);
        assert_eq!(signs, [Some(4), Some(1)]);
    }

    #[test]
    fn nobody_waits_for_an_end_that_is_done() {
        let control = QueueControl::default();
        let mut patience = Patience::new(Duration::from_secs(3600));
        control.set_receiver_done();
        assert_eq!(patience.end_of_sender(&control, 5), Some(Ending::OtherDone));
        assert_eq!(patience.end_of_receiver(&control, 5), None);
        std::thread::sleep(2 * AFTER_SENDER);
        control.set_sender_done();
        // What the sender enqueued last may have come after the attempts before this look.
        assert_eq!(patience.end_of_receiver(&control, 5), None);
        std::thread::sleep(2 * AFTER_SENDER);
        let ending = patience.end_of_receiver(&control, 5);
        assert_eq!(ending, Some(Ending::OtherDone));
    }

    #[test]
    fn a_stop_is_seen_at_the_next_look() {
        let control = QueueControl::default();
        let mut patience = Patience::new(Duration::from_secs(3600));
        control.run.stop();
        assert_eq!(patience.end_of_sender(&control, 0), Some(Ending::Stopped));
        assert_eq!(patience.end_of_receiver(&control, 0), Some(Ending::Stopped));
    }
}
