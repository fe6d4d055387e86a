//! Two clocks, of which the truth is known, and what they exchange; for tests.

use super::*;
pub(super) use crate::testing::Noise;
use crate::time::Nanos;

pub(super) const START: i128 = 3_000_000_000_000_000_000;
pub(super) const BILLION: i128 = 1_000_000_000;

/// A clock B that is ahead of A by `theta` when A reads [`START`], and gains this many parts per billion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Truth {
    pub(super) theta: i128,
    pub(super) ppb: i128,
}

impl Truth {
    /// Theta at a time of A from [`START`], rounded down and up.
    pub(super) fn theta(self, at: i128) -> [i128; 2] {
        let gained = self.ppb * at;
        [
            self.theta + gained.div_euclid(BILLION),
            self.theta - (-gained).div_euclid(BILLION),
        ]
    }

    pub(super) fn a(at: i128) -> Nanos {
        Nanos((START + at) as u64)
    }

    pub(super) fn b(self, at: i128) -> Nanos {
        Nanos((START + at + self.theta(at)[0]) as u64)
    }

    /// Posted at a time of A, and so long under way.
    pub(super) fn message(self, direction: Direction, at: i128, takes: i128) -> Message {
        match direction {
            Direction::Forward => Message::forward(Self::a(at), self.b(at + takes)),
            Direction::Backward => Message::backward(self.b(at), Self::a(at + takes)),
        }
    }

    pub(super) fn probe(self, at: i128, there: i128, back: i128) -> Probe {
        Probe {
            a_sent: Self::a(at),
            b_received: self.b(at + there),
            b_sent: self.b(at + there + 50),
            a_received: Self::a(at + there + 50 + back),
        }
    }
}

/// At least `least`, and longer by `mean` on average.
pub(super) fn delay(random: &mut Noise, least: i128, mean: f64) -> i128 {
    least + (mean * random.exponential()) as i128
}

pub(super) fn is_in(span: Span, truth: [i128; 2]) -> bool {
    i128::from(span.low_ns) <= truth[0] && truth[1] <= i128::from(span.high_ns)
}

pub(super) fn messages_of(probes: &[Probe]) -> impl Iterator<Item = Message> + '_ {
    probes.iter().flat_map(Probe::messages)
}

pub(super) fn contradiction(
    messages: impl IntoIterator<Item = Message>,
    limit: RateLimit,
) -> Contradiction {
    match Bounds::prove(messages, limit) {
        Err(BoundsError::Contradiction(found)) => found,
        other => panic!("{other:?}"),
    }
}

/// Probes of a second, one each millisecond, with 800 ns one way at least.
pub(super) fn a_second(truth: Truth, random: &mut Noise) -> Vec<Probe> {
    let at = (0..1_000).map(|number| number * 1_000_000);
    at.map(|at| truth.probe(at, delay(random, 800, 300.0), delay(random, 800, 300.0)))
        .collect()
}
