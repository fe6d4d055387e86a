//! An interval of whole nanoseconds.

use serde::{Deserialize, Serialize};

/// From a lower to an upper bound, both in nanoseconds and both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// At least so much.
    pub low_ns: i64,
    /// At most so much.
    pub high_ns: i64,
}

impl Span {
    /// From `low_ns` to `high_ns`.
    pub const fn new(low_ns: i64, high_ns: i64) -> Self {
        Span { low_ns, high_ns }
    }

    /// How far the bounds are apart, in nanoseconds.
    pub fn width_ns(self) -> u64 {
        self.high_ns.saturating_sub(self.low_ns).max(0) as u64
    }

    /// Whether it lies within.
    pub fn contains(self, ns: i64) -> bool {
        (self.low_ns..=self.high_ns).contains(&ns)
    }

    /// What lies in both; `None` if nothing does.
    pub fn and(self, other: Span) -> Option<Span> {
        let both = Span::new(
            self.low_ns.max(other.low_ns),
            self.high_ns.min(other.high_ns),
        );
        (both.low_ns <= both.high_ns).then_some(both)
    }

    /// The least that holds both.
    pub fn around(self, other: Span) -> Span {
        Span::new(
            self.low_ns.min(other.low_ns),
            self.high_ns.max(other.high_ns),
        )
    }

    /// Wider by this many nanoseconds on either side.
    pub fn widened(self, by_ns: u64) -> Span {
        Span::new(
            self.low_ns.saturating_sub_unsigned(by_ns),
            self.high_ns.saturating_add_unsigned(by_ns),
        )
    }
}
