//! Why nothing is proved.

use std::fmt;

use super::{Direction, Message, RateLimit, Span};

/// Why there are no bounds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoundsError {
    /// One direction, or both, had no message. Without one, theta has no bound on one side.
    #[error(
        "no message went {}: the offset of two clocks is bounded by messages in both directions",
        .missing.name()
    )]
    OneWayOnly {
        /// The direction without a message, the first if both have none.
        missing: Direction,
    },
    /// The stamps cannot be those of one measurement.
    #[error(
        "the stamps of the {} message posted at {} ns and received at {} ns are years away from those of the first \
         message, or above 2^63 ns: they are not readings of the clocks of one measurement",
        .message.direction.name(), .message.posted.0, .message.received.0
    )]
    TooFarApart {
        /// The message with such a stamp.
        message: Message,
    },
    /// The messages contradict each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// What was declared of the clocks contradicts what is proved.
    #[error(
        "the clocks were declared to agree within {uncertainty_ns} ns, and the exchanges prove that the peer's clock \
         is ahead by {} ns at least and {} ns at most{}",
        .proved.low_ns,
        .proved.high_ns,
        if .proved.and(Span::new(0, 0).widened(*.uncertainty_ns)).is_some() {
            ", at a rate with which it leaves the declared range"
        } else {
            ""
        }
    )]
    Declared {
        /// What was declared, in nanoseconds on either side of 0.
        uncertainty_ns: u64,
        /// What is proved where the two are farthest apart.
        proved: Span,
    },
}

impl BoundsError {
    /// Whether the exchanges contradict each other, or what was declared; not that there are too few.
    pub fn is_contradiction(&self) -> bool {
        matches!(
            self,
            BoundsError::Contradiction(_) | BoundsError::Declared { .. }
        )
    }
}

/// Messages that no two clocks within the limit can have stamped: a clock was set, changed its rate while it was
/// measured, or a stamp is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Contradiction {
    /// What the rates were allowed to differ by.
    pub limit: RateLimit,
    /// The rate, in parts per million, at which the least is missing.
    pub rate_ppm: f64,
    /// By how many nanoseconds the bounds miss each other even then, rounded up.
    pub missing_ns: i64,
    /// Two to four messages that contradict each other, in the order of clock A.
    pub messages: Vec<Message>,
}

impl std::error::Error for Contradiction {}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the exchanges contradict each other by {} ns",
            self.missing_ns
        )?;
        if self.limit == RateLimit::CONSTANT {
            f.write_str(" if the peer's clock runs at the rate of this one")?;
        } else {
            write!(
                f,
                " even if the peer's clock runs {:+.3} ppm faster, which fits best of what is allowed ({})",
                self.rate_ppm, self.limit
            )?;
        }
        for (number, message) in self.messages.iter().enumerate() {
            let (bound, theta) = match message.direction {
                Direction::Forward => ("most", message.apparent_ns()),
                Direction::Backward => ("least", message.apparent_ns().saturating_neg()),
            };
            write!(
                f,
                "{}by the {} message posted at {} ns and received at {} ns it was ahead by {theta} ns at {bound}",
                if number == 0 { ": " } else { "; " },
                message.direction.name(),
                message.posted.0,
                message.received.0,
            )?;
        }
        f.write_str(
            ". A clock was set or changed its rate while it was measured, or a stamp is wrong",
        )
    }
}
