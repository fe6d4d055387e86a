//! Seeing when nothing more is to be expected of a burst.

use std::time::{Duration, Instant};

use crate::bench::hca::loops::control::Control;

/// How often the running burst is looked at. Each look costs a hot thread a few microseconds where no CPU is left.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait for late arrivals once something has failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// How long filling the slots of a burst and posting its receive requests may take.
pub(crate) const PREPARATION: Duration = Duration::from_secs(120);

/// Why a burst is over before all its messages arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BurstTimeout {
    /// The threads did not get ready.
    NeverBegun,
    /// Nothing has happened for as long as the user wants to wait.
    Quiet,
}

/// Sees when nothing more is to be expected.
pub(crate) struct BurstWatch {
    pub(crate) look: Duration,
    timeout: Duration,
    pause: Duration,
    reliable: bool,
    arrived: fn(&Control) -> u32,
    counts: (u32, u32, u32),
    begun: bool,
    changed: Instant,
    looked: Instant,
}

impl BurstWatch {
    /// `arrived`: what counts as an arrival.
    pub(crate) fn new(
        timeout: Duration,
        pause: Duration,
        reliable: bool,
        arrived: fn(&Control) -> u32,
    ) -> Self {
        BurstWatch {
            look: LOOK.min(timeout / 4).max(Duration::from_millis(1)),
            timeout,
            pause,
            reliable,
            arrived,
            counts: (0, 0, 0),
            begun: false,
            changed: Instant::now(),
            looked: Instant::now(),
        }
    }

    /// Whether it is time for a look at what costs a system call.
    pub(crate) fn due(&mut self) -> bool {
        let due = self.looked.elapsed() >= LOOK.min(self.look);
        if due {
            self.looked = Instant::now();
        }
        due
    }

    /// Why nothing more is to be expected, if so.
    pub(crate) fn is_over(&mut self, control: &Control) -> Option<BurstTimeout> {
        if !control.begun() {
            let waited = self.changed.elapsed();
            return (waited >= PREPARATION).then_some(BurstTimeout::NeverBegun);
        }
        // Only an arrival is progress once something has failed: whoever goes on posting gets error after error. So it
        // is on a reliable connection while a message is outstanding: nothing that is posted after it overtakes it, and
        // some HCAs begin their retries anew with each post and would never give up.
        let (posted, arrived) = (control.posted(), (self.arrived)(control));
        let outstanding = self.reliable && posted > arrived;
        let counts = if control.failed() {
            // Of completions many are errors now.
            (0, control.received(), 0)
        } else if outstanding {
            (0, arrived, 0)
        } else {
            (posted, arrived, control.completed())
        };
        if !self.begun || counts != self.counts {
            self.begun = true;
            self.counts = counts;
            self.changed = Instant::now();
            return None;
        }
        let patience = if control.failed() {
            self.timeout.min(AFTER_FAILURE)
        } else if control.sender_done() || outstanding {
            self.timeout
        } else {
            self.timeout + self.pause
        };
        (self.changed.elapsed() >= patience).then_some(BurstTimeout::Quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(20);
    const HOUR: Duration = Duration::from_secs(3600);

    fn begun(pause: Duration, reliable: bool) -> (Control, BurstWatch) {
        let control = Control::default();
        control.set_begun();
        let mut watch = BurstWatch::new(TIMEOUT, pause, reliable, Control::received);
        assert_eq!(watch.is_over(&control), None);
        (control, watch)
    }

    fn later(watch: &mut BurstWatch, control: &Control) -> Option<BurstTimeout> {
        std::thread::sleep(2 * TIMEOUT);
        watch.is_over(control)
    }

    #[test]
    fn patience_begins_with_the_first_message_and_anew_with_each_arrival() {
        let control = Control::default();
        let mut watch = BurstWatch::new(TIMEOUT, Duration::ZERO, false, Control::received);
        assert_eq!(later(&mut watch, &control), None);
        control.set_begun();
        assert_eq!(watch.is_over(&control), None);
        control.set_received(1);
        assert_eq!(later(&mut watch, &control), None);
        assert_eq!(later(&mut watch, &control), Some(BurstTimeout::Quiet));
    }

    #[test]
    fn a_pause_between_posts_is_not_held_against_the_sender() {
        let (control, mut watch) = begun(HOUR, false);
        assert_eq!(later(&mut watch, &control), None);
        control.set_sender_done();
        assert_eq!(watch.is_over(&control), Some(BurstTimeout::Quiet));
    }

    #[test]
    fn a_reliable_connection_where_nothing_arrives_is_over_whatever_is_posted() {
        for (reliable, over) in [(true, Some(BurstTimeout::Quiet)), (false, None)] {
            let (control, mut watch) = begun(TIMEOUT, reliable);
            control.set_posted(1);
            assert_eq!(watch.is_over(&control), None);
            control.set_posted(2);
            assert_eq!(later(&mut watch, &control), over);
        }
    }

    #[test]
    fn a_reliable_connection_without_anything_outstanding_may_pause() {
        let (control, mut watch) = begun(HOUR, true);
        control.set_posted(1);
        control.set_received(1);
        assert_eq!(watch.is_over(&control), None);
        assert_eq!(later(&mut watch, &control), None);
        // From the post on it may take as long as any.
        control.set_posted(2);
        assert_eq!(watch.is_over(&control), None);
        assert_eq!(later(&mut watch, &control), Some(BurstTimeout::Quiet));
    }

    #[test]
    fn errors_without_end_are_no_progress() {
        for arrived in [Control::received, Control::completed] {
            let control = Control::default();
            control.set_begun();
            let mut watch = BurstWatch::new(TIMEOUT, HOUR, true, arrived);
            control.set_failed();
            watch.is_over(&control);
            control.set_posted(7);
            control.set_completed(7);
            assert_eq!(later(&mut watch, &control), Some(BurstTimeout::Quiet));
        }
    }

    #[test]
    fn where_nothing_arrives_completions_are_what_is_waited_for() {
        let control = Control::default();
        control.set_begun();
        let mut watch = BurstWatch::new(TIMEOUT, HOUR, true, Control::completed);
        control.set_posted(2);
        assert_eq!(watch.is_over(&control), None);
        control.set_completed(1);
        assert_eq!(later(&mut watch, &control), None);
        assert_eq!(later(&mut watch, &control), Some(BurstTimeout::Quiet));
    }
}
