//! What the threads brought back from one burst, and what went wrong in it, in words.

use super::completion::CompletionOutcome;
use super::config::Service;
use super::port::Failure;
use super::receiver::ReceiveOutcome;
use super::result::LoopFaults;
use super::sender::SendOutcome;
use super::sending_half::completions_expected;
use super::stamper::StampOutcome;
use super::worker::{Done, Report};
use crate::buffer::Arrival;
use crate::rig::error::RigError;
use crate::rig::workers::Role;
use crate::time::Ticks;

/// What to look at when a queue pair gives up: an HCA tells that nobody answered, and not why.
const LINK_ADVICE: &str =
    "are both ports up, and did an address, a route or the MTU of the link change in the middle?";

/// A burst as its threads saw it.
#[derive(Debug, Default)]
pub(super) struct BurstRecord {
    /// Its number on this connection.
    pub(super) number: u32,
    pub(super) submitted: Vec<Ticks>,
    pub(super) completed: Vec<Ticks>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) send: Option<SendOutcome>,
    pub(super) receive: Option<ReceiveOutcome>,
    pub(super) completion: Option<CompletionOutcome>,
    pub(super) stamp: Option<StampOutcome>,
    pub(super) faults: LoopFaults,
    /// Whether a signal ended it.
    pub(super) interrupted: bool,
    pub(super) failure: Option<String>,
}

impl BurstRecord {
    /// Keeps what the thread of a role reports.
    pub(super) fn take(&mut self, role: Role, report: Report) {
        let Report::Done {
            what,
            faults,
            moved,
        } = report
        else {
            return;
        };
        if let Some(moved) = moved {
            let moved = RigError::Moved { role, moved };
            self.failure.get_or_insert(moved.to_string());
        }
        match what {
            Done::Sent {
                submitted,
                completed,
                outcome,
            } => {
                self.submitted = submitted;
                if let Some((completed, completion)) = completed {
                    self.completed = completed;
                    self.completion = Some(completion);
                }
                self.send = Some(outcome);
                self.faults.sender = faults;
            }
            Done::Received { arrivals, outcome } => {
                self.arrivals = arrivals;
                self.receive = Some(outcome);
                self.faults.receiver = faults;
            }
            Done::Completed { completed, outcome } => {
                self.completed = completed;
                self.completion = Some(outcome);
                self.faults.completion = faults;
            }
            Done::Restamped(outcome) => self.stamp = Some(outcome),
        }
    }

    /// Messages that were posted.
    pub(super) fn posted(&self) -> usize {
        self.send
            .as_ref()
            .map_or(0, |outcome| outcome.posted as usize)
    }

    /// Puts a failure of the loops in words, unless a graver one is known. What failed first says more than what follows.
    /// `cause` is asked for the cause of a link that gave up.
    pub(super) fn find_failure(&mut self, cause: impl Fn() -> Option<String>) {
        let failed_sends = self.completion.as_ref().and_then(|outcome| {
            outcome.failure.as_ref().map(|failure| {
                format!(
                    "{} send requests completed with an error, the first: {failure}: {}",
                    outcome.failed,
                    cause().unwrap_or_else(|| LINK_ADVICE.to_owned())
                )
            })
        });
        let of = |failure: &Option<Failure>, what: &str| {
            failure.as_ref().map(|failure| format!("{what}: {failure}"))
        };
        let posting = self
            .send
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "posting"));
        let receiving = self
            .receive
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "receiving"));
        if self.failure.is_none() {
            self.failure = failed_sends.or(receiving).or(posting);
        }
    }

    /// Calls it a failure when less was done than asked for and nothing else says why. Messages that UC and UD lose are
    /// none, those of a reliable connection are.
    pub(super) fn find_shortage(
        &mut self,
        count: usize,
        service: Service,
        signal_every: u32,
        cause: impl Fn() -> Option<String>,
    ) {
        let posted = self.posted();
        let completed = self
            .completion
            .as_ref()
            .map_or(0, |outcome| outcome.succeeded + outcome.failed);
        let expected = completions_expected(count, signal_every);
        let missing = posted.saturating_sub(self.arrivals.len());
        let shortage = if service == Service::Rc && missing > 0 {
            Some(format!(
                "{missing} messages of a reliable connection did not arrive within --timeout: {}",
                cause().unwrap_or_else(|| format!("raise it, or mend the link; {LINK_ADVICE}"))
            ))
        } else if posted < count {
            Some(format!("only {posted} of {count} messages were posted"))
        } else if completed < expected {
            Some(format!(
                "{} send requests did not complete within --timeout: raise it, or mend the link",
                expected - completed
            ))
        } else {
            None
        };
        if self.failure.is_none() {
            self.failure = shortage;
        }
    }

    /// Of a burst that a signal ended, what was under way then was neither sent whole nor lost: whatever was posted after the
    /// last message that arrived.
    pub(super) fn forget_what_was_under_way(&mut self) {
        if !self.interrupted {
            return;
        }
        let arrived = self.arrivals.iter();
        let sequences =
            arrived.map(|arrival| super::tag::Tag::sequence(arrival.label) as usize + 1);
        let settled = sequences.max().unwrap_or(0);
        self.submitted.truncate(settled);
    }
}
