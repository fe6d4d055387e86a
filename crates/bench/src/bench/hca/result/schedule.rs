//! What became of a rate: latency from the time when a message was meant to be posted, and missed steps.
//!
//! A sender that is held up posts later than it should. Latency from t_subm does not hold that wait, latency from the
//! intended time does. The first message of a burst is meant to be posted when the burst begins.

use std::time::Duration;

use crate::bench::hca::message::{Fate, Message};
use crate::stats::Summary;

/// What the messages of a point say about their schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleResult {
    /// From the intended time to t_recv, of the received ones.
    pub latency: Option<Summary>,
    /// Messages whose intended time had passed by more than a step when they were posted.
    pub missed_steps: u64,
}

impl ScheduleResult {
    /// Of the messages of a point; `step`: the mean time from post to post.
    pub fn of(messages: &[Message], step: Duration) -> Self {
        let latency = |message: &Message| {
            let received = message
                .received_ns
                .filter(|_| message.fate == Fate::Received)?;
            Some(received as i64 - message.intended_ns? as i64)
        };
        let latencies: Vec<i64> = messages.iter().filter_map(latency).collect();
        let is_missed = |message: &&Message| {
            let intended = message.intended_ns.unwrap_or(message.submitted_ns);
            u128::from(message.submitted_ns.saturating_sub(intended)) > step.as_nanos()
        };
        ScheduleResult {
            latency: Summary::of(&latencies),
            missed_steps: messages.iter().filter(is_missed).count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_the_sender_is_part_of_the_latency_and_a_step_late_is_missed() {
        let message = |intended_ns, submitted_ns, received_ns: Option<u64>| Message {
            fate: received_ns.map_or(Fate::Lost, |_| Fate::Received),
            intended_ns: Some(intended_ns),
            submitted_ns,
            received_ns,
            ..Message::default()
        };
        let messages = [
            message(0, 1, Some(31)),
            // Late by just a step, and by more.
            message(100, 200, Some(230)),
            message(200, 301, Some(331)),
            message(300, 401, None),
        ];
        let found = ScheduleResult::of(&messages, Duration::from_nanos(100));
        assert_eq!(found.missed_steps, 2);
        let latency = found.latency.unwrap();
        assert_eq!(latency.count, 3);
        assert_eq!(latency.min_ns, 31);
        assert_eq!(latency.p50_ns, 130.0);
        assert_eq!(latency.max_ns, 131);
    }
}
