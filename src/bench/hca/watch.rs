//! Seeing when nothing more is to be expected of a burst.

use std::time::{Duration, Instant};

use super::control::Control;
use crate::time::Nanos;

/// How often the running burst is looked at. Each look costs a hot thread a few microseconds where no CPU is left.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait for late arrivals once something has failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Sees when nothing more is to be expected.
pub(super) struct Watch {
    pub(super) look: Duration,
    timeout: Duration,
    pause: Duration,
    counts: (u32, u32, u32),
    changed: Instant,
    looked: Instant,
}

impl Watch {
    pub(super) fn new(timeout: Duration, pause: Nanos) -> Self {
        Watch {
            look: LOOK.min(timeout / 4).max(Duration::from_millis(1)),
            timeout,
            pause: Duration::from_nanos(pause.0),
            counts: (0, 0, 0),
            changed: Instant::now(),
            looked: Instant::now(),
        }
    }

    /// Whether it is time for a look at what costs a system call.
    pub(super) fn due(&mut self) -> bool {
        let due = self.looked.elapsed() >= LOOK.min(self.look);
        if due {
            self.looked = Instant::now();
        }
        due
    }

    /// Whether nothing has happened for so long that nothing will.
    pub(super) fn is_over(&mut self, control: &Control) -> bool {
        let counts = (control.posted(), control.received(), control.completed());
        if counts != self.counts {
            self.counts = counts;
            self.changed = Instant::now();
            return false;
        }
        let patience = if control.failed() {
            self.timeout.min(AFTER_FAILURE)
        } else if control.sender_done() {
            self.timeout
        } else {
            self.timeout + self.pause
        };
        self.changed.elapsed() >= patience
    }
}
