//! What the stamps of two clocks say: rows of the results' files.

use serde::Serialize;

use super::remote::FarEnd;
use crate::bench::hca::message::{Fate, Message};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::result::rows::figures_of_sender;
use crate::between::peer::PeerConfig;
use crate::between::proof::{BoundedMessage, ProvedBounds, set_bounds};
use crate::results::Record;
use crate::results::schema::{between as columns, fabric};
use crate::stats::LatencyHistogram;
use crate::time::Nanos;
use crate::time::between::{self, BoundsError};

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

/// Proves what the exchanges of a point prove; the messages of its bursts are exchanges, too.
///
/// # Errors
/// When they contradict each other, or what is declared.
pub(super) fn prove(
    result: &PointResult,
    far: &FarEnd,
    asked: &PeerConfig,
) -> Result<ProvedBounds, BoundsError> {
    let messages = || {
        let messages = result.messages.iter().enumerate();
        messages.filter_map(|(place, message)| Some((place, forward(message)?)))
    };
    let times_of_day = [far.time_of_day, far.made.time_of_day];
    ProvedBounds::prove(messages, &far.probes, asked, times_of_day)
}

/// Sets what a row of a fabric has of the clocks: also what rank 0 needs to ask third hosts.
fn set_of_fabric(proved: &ProvedBounds, record: &mut Record) {
    let found = proved.proven.exchanged();
    record
        .set(&fabric::ONE_WAY_STATUS, proved.status)
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

/// The figures of a point, and the distributions of the excess and of half a round trip.
pub(super) fn figures(
    result: &PointResult,
    far: &FarEnd,
    proved: Option<&ProvedBounds>,
) -> (Record, [LatencyHistogram; 2]) {
    let mut record = figures_of_sender(result);
    let distributions = set_bounds(&mut record, (&far.probes, far.unanswered), proved);
    (record, distributions)
}

/// The figures of a pair of a fabric.
pub(super) fn figures_of_pair(
    result: &PointResult,
    far: &FarEnd,
    proved: Result<&ProvedBounds, &BoundsError>,
) -> Record {
    let (mut record, _) = figures(result, far, proved.ok());
    match proved {
        Ok(proved) => set_of_fabric(proved, &mut record),
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
        let found = spans.next_if(|bounded| bounded.place == place);
        BoundedMessageRow {
            round,
            repeat: message.repeat,
            seq: message.sequence,
            t_intended_ns: message.intended_ns,
            t_subm_ns: message.submitted_ns,
            t_send_ns: message.sent_ns,
            t_recv_ns: message.received_ns,
            t_comp_ns: message.completed_ns,
            latency_low_ns: found.map(|it| it.latency.low_ns),
            latency_high_ns: found.map(|it| it.latency.high_ns),
            excess_ns: found.map(BoundedMessage::excess_ns),
            completion_latency_ns: message.completion_latency_ns(),
        }
    })
}
