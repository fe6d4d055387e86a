//! What two hosts exchange: messages with a stamp of each clock, and probes, which are a message and its answer.

use serde::{Deserialize, Serialize};

use super::Span;
use crate::named::names;
use crate::time::Nanos;

names! {
    /// Which way a message goes.
    Direction {
        /// From this host, whose clock is A, to its peer, whose clock is B.
        Forward = "forward",
        /// From the peer to this host.
        Backward = "backward",
    }
}

impl Direction {
    /// Bounds of the latency of a message whose apparent latency (received less posted, each by its own clock, in
    /// nanoseconds) is known, where theta = B - A lies in `theta`. The lower one is 0 where less would follow: no
    /// message arrives before it is posted. `None` where even the upper one is negative: then the message contradicts
    /// `theta`.
    pub fn latency(self, apparent_ns: i64, theta: Span) -> Option<Span> {
        let (low, high) = match self {
            Direction::Forward => (
                apparent_ns.saturating_sub(theta.high_ns),
                apparent_ns.saturating_sub(theta.low_ns),
            ),
            Direction::Backward => (
                apparent_ns.saturating_add(theta.low_ns),
                apparent_ns.saturating_add(theta.high_ns),
            ),
        };
        (high >= 0).then(|| Span::new(low.max(0), high))
    }
}

/// A message that arrived: when it was posted by the sender's clock, and when it was received by the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its direction.
    pub direction: Direction,
    /// Read by the sender before it posted the message, in nanoseconds of the sender's clock.
    pub posted: Nanos,
    /// Read by the receiver after the message had come, in nanoseconds of the receiver's clock.
    pub received: Nanos,
}

impl Message {
    /// A message from this host to its peer.
    pub const fn forward(posted: Nanos, received: Nanos) -> Self {
        Message {
            direction: Direction::Forward,
            posted,
            received,
        }
    }

    /// A message from the peer to this host.
    pub const fn backward(posted: Nanos, received: Nanos) -> Self {
        Message {
            direction: Direction::Backward,
            posted,
            received,
        }
    }

    /// Its stamp by this host's clock A.
    pub const fn own(&self) -> Nanos {
        match self.direction {
            Direction::Forward => self.posted,
            Direction::Backward => self.received,
        }
    }

    /// Received less posted, in nanoseconds, although the two stamps are of two clocks. Lengths that no 64 bits hold
    /// are cut to the largest that they do.
    pub fn apparent_ns(&self) -> i64 {
        clamped(i128::from(self.received.0) - i128::from(self.posted.0))
    }
}

/// To 64 bits, cut where it does not fit.
pub(super) fn clamped(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

names! {
    /// When a probe was exchanged.
    Phase {
        /// Before the first burst.
        Before = "before",
        /// Between two bursts.
        Between = "between",
        /// After the last burst.
        After = "after",
    }
}

/// A message and its answer, with the four stamps in the order of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Clock A before the message was posted.
    pub a_sent: Nanos,
    /// Clock B after the message had come.
    pub b_received: Nanos,
    /// Clock B before the answer was posted.
    pub b_sent: Nanos,
    /// Clock A after the answer had come.
    pub a_received: Nanos,
}

impl Probe {
    /// The message, and its answer.
    pub const fn messages(&self) -> [Message; 2] {
        [
            Message::forward(self.a_sent, self.b_received),
            Message::backward(self.b_sent, self.a_received),
        ]
    }

    /// Time under way in both directions together, in nanoseconds: from `a_sent` to `a_received` by clock A, less from
    /// `b_received` to `b_sent` by clock B. Negative only where a stamp is wrong.
    pub fn round_trip_ns(&self) -> i64 {
        let whole = i128::from(self.a_received.0) - i128::from(self.a_sent.0);
        let turned = i128::from(self.b_sent.0) - i128::from(self.b_received.0);
        clamped(whole - turned)
    }

    /// Half of [`Probe::round_trip_ns`]: what one direction takes, if both take the same. That is assumed and not
    /// measured.
    pub fn half_round_trip_ns(&self) -> f64 {
        self.round_trip_ns() as f64 / 2.0
    }
}
