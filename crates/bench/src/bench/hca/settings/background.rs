//! Traffic in the background: RDMA writes of queue pairs and a thread of their own, from the sending to the receiving
//! port of a point, while its latency is measured.
//!
//! It is always RC, and without immediate data, so that it takes no receive request and the receiving end is not told.
//! Messages are posted at a rate, in turn over the queue pairs, from before the warm-up until after the last burst.
//! What counts is what was posted and acknowledged while bursts were measured. A message is missed where as many are in
//! flight as may be.
//!
//! Where its thread shares a CPU with a measuring thread, a point beside it does the same work on that CPU and sends
//! nothing: each message is copied in memory instead. What both have in common is the scheduler's, not the fabric's.
//!
//! `plan/placed` adds these points to a plan, `loops/background` is the loop, `session/background` its thread.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::rig::named::named;

/// How many queue pairs it may have.
pub const QUEUE_PAIRS: RangeInclusive<u32> = 1..=64;

/// Messages of a queue pair that may be in flight at the most, where their size allows it.
const MOST_IN_FLIGHT: u64 = 64;
/// Two, so that one is there when the other is done.
const LEAST_IN_FLIGHT: u64 = 2;
/// Bytes of a queue pair that may be in flight, where two messages are not more.
const BYTES_IN_FLIGHT: u64 = 4 << 20;

/// What is done in the background of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Background {
    /// Messages a second, over all queue pairs.
    pub per_second: u32,
    /// Bytes of each.
    pub size: u32,
    /// Queue pairs that post in turn.
    pub queue_pairs: u32,
    /// Whether the messages are sent.
    pub traffic: Traffic,
    /// Whether its thread has a CPU that a measuring thread has, too; `None` until the CPUs are chosen.
    pub shares_cpu: Option<bool>,
}

named! {
    /// What becomes of the messages.
    Traffic {
        /// They are sent.
        Sent = "sent",
        /// They are copied in memory, for comparison.
        None = "none",
    }
}

impl Background {
    /// Messages of a queue pair that may be in flight.
    pub fn in_flight(&self) -> u32 {
        let fit = BYTES_IN_FLIGHT / u64::from(self.size.max(1));
        fit.clamp(LEAST_IN_FLIGHT, MOST_IN_FLIGHT) as u32
    }

    /// Bytes of each message that leave the port.
    pub fn bytes_sent(&self) -> f64 {
        match self.traffic {
            Traffic::Sent => f64::from(self.size),
            Traffic::None => 0.0,
        }
    }

    /// Where its thread runs, as results name it.
    pub fn placed(&self) -> Option<&'static str> {
        self.shares_cpu.map(|shares| match shares {
            true => "cpu-shared",
            false => "own-cpu",
        })
    }
}

impl fmt::Display for Background {
    /// As the command line has it, with the size in bytes: `4000@4096x2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.per_second, self.size)?;
        match self.queue_pairs {
            1 => Ok(()),
            several => write!(formatter, "x{several}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn background(per_second: u32, size: u32, queue_pairs: u32) -> Background {
        Background {
            per_second,
            size,
            queue_pairs,
            traffic: Traffic::Sent,
            shares_cpu: None,
        }
    }

    #[test]
    fn small_messages_are_many_in_flight_and_large_ones_two() {
        for (size, in_flight) in [(8, 64), (65_536, 64), (1 << 20, 4), (1 << 31, 2)] {
            assert_eq!(background(1, size, 1).in_flight(), in_flight, "{size}");
        }
    }

    #[test]
    fn it_is_named_as_it_was_asked_for_and_copies_are_not_sent() {
        assert_eq!(background(200, 4096, 1).to_string(), "200@4096");
        let sent = background(4000, 4096, 2);
        assert_eq!(sent.to_string(), "4000@4096x2");
        assert_eq!(sent.bytes_sent(), 4096.0);
        let traffic = Traffic::None;
        assert_eq!(Background { traffic, ..sent }.bytes_sent(), 0.0);
    }
}
