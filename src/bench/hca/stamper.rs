//! The thread that keeps a posted message's time stamp fresh until the HCA has read it.

use super::control::Control;
use crate::time::{Clock, Ticks};

/// Messages whose stamps can be rewritten while they are under way.
pub trait StampSlots: Send {
    /// Overwrites the stamp of message `sequence`.
    fn restamp(&self, sequence: u32, stamp: Ticks);
}

/// How the rewriting went.
#[derive(Debug, Clone, Copy, Default)]
pub struct StampOutcome {
    /// Stamps that were written.
    pub rewritten: u64,
}

/// Rewrites, over and over, the stamps of all messages that were posted and have not been received, the oldest first.
/// The more of them there are, the older a stamp is when the HCA reads it, so t_send wants a pause between messages.
/// Ends when all were received, or when told to stop.
pub fn restamp<C: Clock, L: StampSlots>(clock: &C, slots: &L, control: &Control) -> StampOutcome {
    let mut outcome = StampOutcome::default();
    control.announce_ready();
    while !control.stopped() {
        // Read before the number of messages: if the sender was done by then, that number is the last.
        let sender_done = control.sender_done();
        let posted = control.posted();
        let received = control.received();
        if received >= posted {
            if sender_done {
                break;
            }
            continue;
        }
        for sequence in received..posted {
            slots.restamp(sequence, clock.now());
        }
        outcome.rewritten += u64::from(posted - received);
    }
    outcome
}
