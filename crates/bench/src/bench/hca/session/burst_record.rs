//! What the threads brought back from one burst, and what went wrong in it, in words.

use crate::bench::hca::loops::completion::CompletionOutcome;
use crate::bench::hca::loops::receiver::ReceiveOutcome;
use crate::bench::hca::loops::sender::SendOutcome;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::result::LoopFaults;
use crate::bench::hca::result::hardware::HardwareBurst;
use crate::bench::hca::settings::config::{Operation, Service};
use crate::buffer::Arrival;
use crate::time::Ticks;

/// What to look at when a queue pair gives up: an HCA tells that nobody answered, and not why.
const LINK_ADVICE: &str =
    "are both ports up, and did an address, a route or the MTU of the link change in the middle?";

/// A burst as its threads saw it.
#[derive(Debug, Default)]
pub(crate) struct BurstRecord {
    /// Its number on this connection.
    pub(crate) number: u32,
    pub(crate) submitted: Vec<Ticks>,
    pub(crate) completed: Vec<Ticks>,
    /// When each message was meant to be posted, if they are posted at a rate.
    pub(crate) intended: Option<Vec<Ticks>>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) send: Option<SendOutcome>,
    pub(crate) receive: Option<ReceiveOutcome>,
    pub(crate) completion: Option<CompletionOutcome>,
    /// Stamps that were rewritten, if there is a thread for that.
    pub(crate) rewritten: Option<u64>,
    pub(crate) faults: LoopFaults,
    /// What adapters stamped, and the readings of their clocks around the burst: of sender and receiver.
    pub(crate) hardware: [Option<HardwareBurst>; 2],
    /// Whether a signal ended it.
    pub(crate) interrupted: bool,
    pub(crate) failure: Option<String>,
}

impl BurstRecord {
    /// Adds what another thread saw.
    pub(crate) fn add(&mut self, part: BurstRecord) {
        self.submitted.extend(part.submitted);
        self.completed.extend(part.completed);
        self.arrivals.extend(part.arrivals);
        self.intended = self.intended.take().or(part.intended);
        self.send = self.send.take().or(part.send);
        self.receive = self.receive.take().or(part.receive);
        self.completion = self.completion.take().or(part.completion);
        self.rewritten = self.rewritten.or(part.rewritten);
        self.faults += part.faults;
        self.failure = self.failure.take().or(part.failure);
    }

    /// Messages that were posted.
    pub(crate) fn posted(&self) -> usize {
        let send = self.send.as_ref();
        send.map_or(0, |outcome| outcome.posted as usize)
    }

    /// Puts in words what went wrong, unless that is known: a failure of the loops, of which what failed first says
    /// more than what follows, else that less was done than asked for. Messages that UC and UD lose are no failure,
    /// those of a reliable connection are. Of an operation that is not one-way nothing arrives, and its completions are
    /// what counts. `expected` completions; `cause` is asked for the cause of a link that gave up.
    pub(crate) fn find_failure(
        &mut self,
        count: usize,
        (service, operation): (Service, Operation),
        expected: u32,
        cause: impl Fn() -> Option<String>,
    ) {
        if self.failure.is_none() {
            let failed = self.failure_of_loops(&cause);
            self.failure =
                failed.or_else(|| self.shortage(count, (service, operation), expected, &cause));
        }
    }

    fn failure_of_loops(&self, cause: &dyn Fn() -> Option<String>) -> Option<String> {
        if let Some(completion) = &self.completion
            && let Some(failure) = &completion.failure
        {
            return Some(format!(
                "{} send requests completed with an error, the first: {failure}: {}",
                completion.failed,
                cause().unwrap_or_else(|| LINK_ADVICE.to_owned())
            ));
        }
        let receiving = self.receive.as_ref().and_then(|one| one.failure);
        let posting = self.send.as_ref().and_then(|one| one.failure);
        let (what, failure) = receiving
            .map(|failure| ("receiving", failure))
            .or(posting.map(|failure| ("posting", failure)))?;
        Some(format!("{what}: {failure}"))
    }

    fn shortage(
        &self,
        count: usize,
        (service, operation): (Service, Operation),
        expected: u32,
        cause: &dyn Fn() -> Option<String>,
    ) -> Option<String> {
        let posted = self.posted();
        let completion = self.completion.as_ref();
        let completed = completion.map_or(0, |outcome| outcome.succeeded + outcome.failed);
        let (settled, what) = if operation.is_one_way() {
            (
                self.arrivals.len(),
                "messages of a reliable connection did not arrive",
            )
        } else {
            (
                completed as usize,
                "requests of a reliable connection did not complete",
            )
        };
        let missing = posted.saturating_sub(settled);
        if service == Service::Rc && missing > 0 {
            let cause = cause();
            return Some(format!(
                "{missing} {what} within --timeout: {}",
                cause.unwrap_or_else(|| format!("raise it, or repair the link; {LINK_ADVICE}"))
            ));
        }
        if posted < count {
            return Some(format!("only {posted} of {count} messages were posted"));
        }
        (completed < expected).then(|| {
            format!(
                "{} send requests did not complete within --timeout: raise it, or repair the link",
                expected - completed
            )
        })
    }

    /// Of a burst that a signal ended, what was under way then was neither sent whole nor lost: whatever was posted
    /// after the last message that arrived over the same queue pair, or after the last request that completed.
    pub(crate) fn forget_what_was_under_way(&mut self, operation: Operation, queue_pairs: u32) {
        if !self.interrupted {
            return;
        }
        if !operation.is_one_way() {
            let last = self.completed.iter().rposition(|stamp| stamp.0 != 0);
            return self.submitted.truncate(last.map_or(0, |last| last + 1));
        }
        // Of each queue pair, the first message after the last one that arrived.
        let mut next: Vec<u32> = (0..queue_pairs).collect();
        for arrival in &self.arrivals {
            let sequence = Tag::sequence(arrival.label);
            let of_queue_pair = &mut next[(sequence % queue_pairs) as usize];
            *of_queue_pair = (*of_queue_pair).max(sequence + queue_pairs);
        }
        let settled = next.into_iter().min().unwrap_or(0);
        self.submitted.truncate(settled as usize);
        self.arrivals
            .retain(|arrival| Tag::sequence(arrival.label) < settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that count of a burst of 9 that a signal ended, and those that arrived of them.
    fn settled(arrived: &[u32], queue_pairs: u32) -> (usize, Vec<u32>) {
        let arrival = |&sequence: &u32| Arrival {
            label: Tag::new(7).immediate_data(sequence),
            ..Arrival::default()
        };
        let mut record = BurstRecord {
            submitted: vec![Ticks(1); 9],
            arrivals: arrived.iter().map(arrival).collect(),
            interrupted: true,
            ..BurstRecord::default()
        };
        record.forget_what_was_under_way(Operation::Send, queue_pairs);
        let kept = record.arrivals.iter();
        let kept = kept.map(|arrival| Tag::sequence(arrival.label));
        (record.submitted.len(), kept.collect())
    }

    #[test]
    fn what_was_posted_after_the_last_arrival_of_its_queue_pair_does_not_count() {
        assert_eq!(settled(&[], 1), (0, vec![]));
        // Over one queue pair what is missing before an arrival was lost.
        assert_eq!(settled(&[0, 3], 1), (4, vec![0, 3]));
        // Over three, number 4 may still be under way, and number 1 was lost before it if 4 arrived.
        assert_eq!(settled(&[0, 2, 1, 5, 3], 3), (4, vec![0, 2, 1, 3]));
        assert_eq!(settled(&[0, 2, 5, 3, 4], 3), (6, vec![0, 2, 5, 3, 4]));
        assert_eq!(settled(&[8, 7], 3), (0, vec![]));
    }
}
