//! What the stamps of two clocks prove of each message, as figures.

use super::peer::PeerConfig;
use super::probe::{NumberedProbe, halves};
use super::time_of_day::TimeOfDayOffset;
use crate::results::Record;
use crate::results::schema::between as columns;
use crate::stats::{LatencyHistogram, Summary};
use crate::time::Nanos;
use crate::time::between::{Bounds, BoundsError, Direction, Message, RateLimit, Span};

/// A received message: its place among all, the bounds of its latency and of its excess.
#[derive(Debug, Clone, Copy)]
pub struct BoundedMessage {
    /// Its place among all messages.
    pub place: usize,
    /// From post to receipt.
    pub latency: Span,
    /// Above the least latency.
    pub excess: Span,
}

impl BoundedMessage {
    /// The middle of the bounds of its excess.
    pub fn excess_ns(&self) -> i64 {
        self.excess.low_ns + (self.excess.high_ns - self.excess.low_ns) / 2
    }
}

/// What is proved of a point in a round, and declared.
#[derive(Debug)]
pub struct ProvedBounds {
    /// What the exchanges prove.
    pub proven: Bounds,
    /// `proven`, or `declared`.
    pub status: &'static str,
    /// By their places.
    pub messages: Vec<BoundedMessage>,
}

/// A message with the peer's stamp moved.
fn moved(message: Message, shift: i64) -> Message {
    let by = |stamp: Nanos| Nanos(stamp.0.wrapping_add_signed(shift));
    match message.direction {
        Direction::Forward => Message {
            received: by(message.received),
            ..message
        },
        Direction::Backward => Message {
            posted: by(message.posted),
            ..message
        },
    }
}

impl ProvedBounds {
    /// Proves what probes and messages prove; `messages` are those that arrived, each with its place. The times of day
    /// are this host's and the other one's.
    ///
    /// # Errors
    /// When they contradict each other, or what is declared.
    pub fn prove<I: Iterator<Item = (usize, Message)>>(
        messages: impl Fn() -> I,
        probes: &[NumberedProbe],
        asked: &PeerConfig,
        [here, there]: [TimeOfDayOffset; 2],
    ) -> Result<Self, BoundsError> {
        let limit = RateLimit::new(asked.drift).unwrap_or(RateLimit::ANY);
        let exchanged = || probes.iter().flat_map(|probe| probe.stamps.messages());
        let all = || messages().map(|(_, message)| message).chain(exchanged());
        let proven = Bounds::prove(all(), limit)?;
        // What is declared is declared of the times of day: there both clocks are moved to.
        let (bounds, shift, status) = match asked.uncertainty {
            None => (proven.clone(), 0, columns::PROVEN),
            Some(uncertainty) => {
                let (shift, error) = here.shift_of(there);
                let moved = Bounds::prove(all().map(|message| moved(message, shift)), limit)?;
                let declared = moved.declared(uncertainty.0.saturating_add(error))?;
                (declared, shift, columns::DECLARED)
            }
        };
        let received = || messages().map(|(place, message)| (place, moved(message, shift)));
        let baseline = match messages().next().is_some() {
            false => None,
            true => {
                let arrived = received().map(|(_, message)| message);
                bounds.baseline(Direction::Forward, arrived)?
            }
        };
        let of = |(place, message): (usize, Message)| {
            Some(BoundedMessage {
                place,
                latency: bounds.latency(&message)?,
                excess: baseline.as_ref()?.excess(&message)?,
            })
        };
        let messages = received().filter_map(of).collect();
        Ok(ProvedBounds {
            proven,
            status,
            messages,
        })
    }
}

/// Sets what is known of probes and clocks, and the bounds of the messages. Returns the distributions of the excess and
/// of half a round trip.
pub fn set_bounds(
    record: &mut Record,
    (probes, unanswered): (&[NumberedProbe], u64),
    proved: Option<&ProvedBounds>,
) -> [LatencyHistogram; 2] {
    let halves = halves(probes);
    let half = Summary::of(&halves);
    record.distribution(&columns::half::ALL, half.as_ref());
    let shortest = probes
        .iter()
        .map(|probe| probe.stamps.round_trip_ns())
        .min();
    record
        .set(&columns::PROBES, probes.len() as u64)
        .set(&columns::UNANSWERED, unanswered)
        .set(&columns::SHORTEST, shortest);
    let mut histogram = LatencyHistogram::of(&[]);
    if let Some(proved) = proved {
        let middle_of_all = proved.proven.middle();
        let theta = proved.proven.at(middle_of_all);
        let rate = proved.proven.rate_ppm();
        record
            .set(&columns::CLOCKS, proved.status)
            .set(&columns::THETA_AT, middle_of_all.0)
            .set(&columns::THETA_LOW, theta.low_ns)
            .set(&columns::THETA_HIGH, theta.high_ns)
            .set(&columns::RATE_LOW, rate[0])
            .set(&columns::RATE_HIGH, rate[1]);
        let of = |take: fn(&BoundedMessage) -> i64| -> Option<Summary> {
            Summary::of(&proved.messages.iter().map(take).collect::<Vec<_>>())
        };
        let low = of(|message| message.latency.low_ns);
        let high = of(|message| message.latency.high_ns);
        if let (Some(low), Some(high)) = (low, high) {
            record
                .set(&columns::MIN_LOW, low.min_ns)
                .set(&columns::MIN_HIGH, high.min_ns)
                .set(&columns::P50_LOW, low.p50_ns)
                .set(&columns::P50_HIGH, high.p50_ns)
                .set(&columns::P99_LOW, low.p99_ns)
                .set(&columns::P99_HIGH, high.p99_ns);
        }
        let excess = proved.messages.iter().map(BoundedMessage::excess_ns);
        let excess: Vec<i64> = excess.collect();
        histogram = LatencyHistogram::of(&excess);
        record.distribution(&columns::excess::ALL, Summary::of(&excess).as_ref());
        let errors = proved
            .messages
            .iter()
            .map(|message| message.excess.width_ns().div_ceil(2));
        record.set(&columns::EXCESS_ERROR, errors.max());
    }
    [histogram, LatencyHistogram::of(&halves)]
}
