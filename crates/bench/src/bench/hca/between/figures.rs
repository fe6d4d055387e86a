//! What the stamps of two clocks say: rows of the results' files.

use serde::Serialize;

use super::prober::NumberedProbe;
use super::remote::{FarEnd, PeerConfig};
use crate::bench::hca::message::{Fate, Message};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::result::rows::figures_of_sender;
use crate::results::Record;
use crate::results::schema::between as columns;
use crate::results::schema::fabric;
use crate::stats::{LatencyHistogram, Summary};
use crate::time::Nanos;
use crate::time::between::{self, Bounds, BoundsError, RateLimit, Span};

/// What is proved of a point in a round, and declared.
pub(super) struct ProvedBounds {
    /// What the exchanges prove.
    proven: Bounds,
    /// `proven`, or `declared`.
    status: &'static str,
    /// Of each received message: the bounds of its latency and of its excess, and its place.
    messages: Vec<(usize, Span, Span)>,
}

/// A received message, as the theory knows it.
fn forward(message: &Message) -> Option<between::Message> {
    let received = message
        .received_ns
        .filter(|_| message.fate == Fate::Received)?;
    if message.never_restamped {
        return None;
    }
    let posted = message.sent_ns.unwrap_or(message.submitted_ns);
    Some(between::Message::forward(Nanos(posted), Nanos(received)))
}

/// A message with the peer's stamp moved.
fn moved(message: between::Message, shift: i64) -> between::Message {
    let by = |stamp: Nanos| Nanos(stamp.0.wrapping_add_signed(shift));
    match message.direction {
        between::Direction::Forward => between::Message {
            received: by(message.received),
            ..message
        },
        between::Direction::Backward => between::Message {
            posted: by(message.posted),
            ..message
        },
    }
}

/// Proves what the exchanges of a point prove; the messages of its bursts are exchanges, too.
///
/// # Errors
/// When they contradict each other, or what is declared.
pub(super) fn prove(
    result: &PointResult,
    far: &FarEnd,
    asked: &PeerConfig,
) -> Result<ProvedBounds, BoundsError> {
    let limit = RateLimit::new(asked.drift).unwrap_or(RateLimit::ANY);
    let messages = || result.messages.iter();
    let probes = || far.probes.iter().flat_map(|probe| probe.stamps.messages());
    let all = || messages().filter_map(forward).chain(probes());
    let proven = Bounds::prove(all(), limit)?;
    // What is declared is declared of the times of day: there both clocks are moved to.
    let (bounds, shift, status) = match asked.uncertainty {
        None => (proven.clone(), 0, columns::PROVEN),
        Some(uncertainty) => {
            let (shift, error) = far.time_of_day.shift_of(far.made.time_of_day);
            let moved = Bounds::prove(all().map(|message| moved(message, shift)), limit)?;
            let declared = moved.declared(uncertainty.0.saturating_add(error))?;
            (declared, shift, columns::DECLARED)
        }
    };
    let received: Vec<_> = messages()
        .enumerate()
        .filter_map(|(place, message)| Some((place, moved(forward(message)?, shift))))
        .collect();
    let baseline = match received.is_empty() {
        true => None,
        false => {
            let arrived = received.iter().map(|(_, message)| *message);
            bounds.baseline(between::Direction::Forward, arrived)?
        }
    };
    let of = |(place, message): (usize, between::Message)| {
        let excess = baseline.as_ref()?.excess(&message)?;
        Some((place, bounds.latency(&message)?, excess))
    };
    let messages = received.into_iter().filter_map(of).collect();
    Ok(ProvedBounds {
        proven,
        status,
        messages,
    })
}

impl ProvedBounds {
    /// Sets what a row of a fabric tells of the clocks: also what rank 0 needs to ask third hosts.
    fn set_of_fabric(&self, record: &mut Record) {
        let found = self.proven.exchanged();
        record
            .set(&fabric::ONE_WAY_STATUS, self.status)
            .set(&fabric::OFFSET_LOW, found.theta.low_ns)
            .set(&fabric::OFFSET_HIGH, found.theta.high_ns)
            .set(&fabric::RATE_LOW, found.rate_ppm[0])
            .set(&fabric::RATE_HIGH, found.rate_ppm[1])
            .set(&fabric::OFFSET_AT, found.at.0)
            .set(&fabric::EXCHANGES_LASTED, found.lasted_ns)
            .set(&fabric::LINES_RATE, found.lines.rate_ppb)
            .set(&fabric::LINES_LOW, found.lines.low_ns)
            .set(&fabric::LINES_HIGH, found.lines.high_ns);
    }
}

/// The middle of two bounds.
fn middle(span: Span) -> i64 {
    span.low_ns + (span.high_ns - span.low_ns) / 2
}

/// Half of the round trip of each probe, without the first of each phase, which find caches and queues cold.
fn halves(probes: &[NumberedProbe]) -> Vec<i64> {
    const COLD: usize = 8;
    let mut at = None;
    let mut seen = 0;
    let warm = probes.iter().filter(|probe| {
        if at != Some(probe.place) {
            (at, seen) = (Some(probe.place), 0);
        }
        seen += 1;
        seen > COLD
    });
    let halves: Vec<i64> = warm.map(|probe| probe.stamps.round_trip_ns() / 2).collect();
    match halves.is_empty() {
        true => probes
            .iter()
            .map(|probe| probe.stamps.round_trip_ns() / 2)
            .collect(),
        false => halves,
    }
}

/// The figures of a point, and the distributions of the excess and of half a round trip.
pub(super) fn figures(
    result: &PointResult,
    far: &FarEnd,
    proved: Option<&ProvedBounds>,
) -> (Record, [LatencyHistogram; 2]) {
    let mut record = figures_of_sender(result);
    let halves = halves(&far.probes);
    let half = Summary::of(&halves);
    record.distribution(&columns::half::ALL, half.as_ref());
    let shortest = far
        .probes
        .iter()
        .map(|probe| probe.stamps.round_trip_ns())
        .min();
    record
        .set(&columns::PROBES, far.probes.len() as u64)
        .set(&columns::UNANSWERED, far.unanswered)
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
        let of = |take: fn(&(usize, Span, Span)) -> i64| -> Option<Summary> {
            Summary::of(&proved.messages.iter().map(take).collect::<Vec<_>>())
        };
        let low = of(|(_, latency, _)| latency.low_ns);
        let high = of(|(_, latency, _)| latency.high_ns);
        if let (Some(low), Some(high)) = (low, high) {
            record
                .set(&columns::MIN_LOW, low.min_ns)
                .set(&columns::MIN_HIGH, high.min_ns)
                .set(&columns::P50_LOW, low.p50_ns)
                .set(&columns::P50_HIGH, high.p50_ns)
                .set(&columns::P99_LOW, low.p99_ns)
                .set(&columns::P99_HIGH, high.p99_ns);
        }
        let excess: Vec<i64> = proved
            .messages
            .iter()
            .map(|(_, _, excess)| middle(*excess))
            .collect();
        histogram = LatencyHistogram::of(&excess);
        record.distribution(&columns::excess::ALL, Summary::of(&excess).as_ref());
        let errors = proved
            .messages
            .iter()
            .map(|(_, _, excess)| excess.width_ns().div_ceil(2));
        record.set(&columns::EXCESS_ERROR, errors.max());
    }
    (record, [histogram, LatencyHistogram::of(&halves)])
}

/// The figures of a pair of a fabric.
pub(super) fn figures_of_pair(
    result: &PointResult,
    far: &FarEnd,
    proved: Result<&ProvedBounds, &BoundsError>,
) -> Record {
    let (mut record, _) = figures(result, far, proved.ok());
    match proved {
        Ok(proved) => proved.set_of_fabric(&mut record),
        Err(error) if error.is_contradiction() => {
            record.set(&fabric::ONE_WAY_STATUS, columns::CONTRADICTION);
        }
        Err(_) => {}
    }
    record.set(
        &fabric::RETRANSMITTED,
        result.ports.sender.retransmissions(),
    );
    record.of_columns(&fabric::FIGURES)
}

/// A row of `messages.csv`.
#[derive(Debug, Serialize)]
pub(super) struct BoundedMessageRow {
    round: u32,
    repeat: u32,
    seq: u32,
    t_intended_ns: Option<u64>,
    t_subm_ns: u64,
    t_send_ns: Option<u64>,
    t_recv_ns: Option<u64>,
    t_comp_ns: Option<u64>,
    latency_low_ns: Option<i64>,
    latency_high_ns: Option<i64>,
    excess_ns: Option<i64>,
    completion_latency_ns: Option<i64>,
}

/// The rows of `messages.csv`.
pub(super) fn message_rows<'a>(
    round: u32,
    result: &'a PointResult,
    proved: Option<&'a ProvedBounds>,
) -> impl Iterator<Item = BoundedMessageRow> + 'a {
    let mut spans = proved
        .into_iter()
        .flat_map(|proved| &proved.messages)
        .peekable();
    let messages = result.messages.iter().enumerate();
    messages.map(move |(place, message)| {
        let found = spans.next_if(|(of, ..)| *of == place);
        BoundedMessageRow {
            round,
            repeat: message.repeat,
            seq: message.sequence,
            t_intended_ns: message.intended_ns,
            t_subm_ns: message.submitted_ns,
            t_send_ns: message.sent_ns,
            t_recv_ns: message.received_ns,
            t_comp_ns: message.completed_ns,
            latency_low_ns: found.map(|(_, latency, _)| latency.low_ns),
            latency_high_ns: found.map(|(_, latency, _)| latency.high_ns),
            excess_ns: found.map(|(_, _, excess)| middle(*excess)),
            completion_latency_ns: message.completion_latency_ns(),
        }
    })
}

/// A row of `probes.csv`.
#[derive(Debug, Serialize)]
pub(super) struct ProbeRow {
    round: u32,
    phase: &'static str,
    probe: u32,
    a_sent_ns: u64,
    b_received_ns: u64,
    b_sent_ns: u64,
    a_received_ns: u64,
}

/// The rows of `probes.csv`.
pub(super) fn probe_rows(
    round: u32,
    probes: &[NumberedProbe],
) -> impl Iterator<Item = ProbeRow> + '_ {
    probes.iter().map(move |probe| ProbeRow {
        round,
        phase: probe.phase.name(),
        probe: probe.number,
        a_sent_ns: probe.stamps.a_sent.0,
        b_received_ns: probe.stamps.b_received.0,
        b_sent_ns: probe.stamps.b_sent.0,
        a_received_ns: probe.stamps.a_received.0,
    })
}
