//! What the stamps of two clocks say: the figures of a point, and the rows of its samples.

use serde::Serialize;

use super::remote::FarEnd;
use crate::bench::node::log::LogError;
use crate::bench::node::point::Point;
use crate::bench::node::result::{OutRow, RunOutcome};
use crate::bench::node::rows;
use crate::between::peer::PeerConfig;
use crate::between::proof::{BoundedMessage, ProvedBounds, set_bounds};
use crate::results::Record;
use crate::results::schema::node_between;
use crate::stats::LatencyHistogram;
use crate::time::between::BoundsError;

/// The distributions in a point's folder.
const DISTRIBUTIONS: [&str; 2] = ["excess.hgrm", "half_round_trip.hgrm"];

/// Proves what probes and samples prove of a run.
///
/// # Errors
/// When they contradict each other, or what is declared.
pub(in crate::bench::node) fn prove(
    outcome: &RunOutcome,
    far: &FarEnd,
    asked: &PeerConfig,
) -> Result<ProvedBounds, BoundsError> {
    let crossed = || outcome.crossed.iter().copied();
    ProvedBounds::prove(crossed, &far.probes, asked, far.times_of_day)
}

/// The figures of a point, and its distributions by file name.
pub(in crate::bench::node) fn figures(
    point: &Point,
    outcome: &RunOutcome,
    far: &FarEnd,
    proved: Option<&ProvedBounds>,
) -> (Record, Vec<(String, LatencyHistogram)>) {
    let mut record = rows::figures(point, outcome).of_columns(&node_between::FIGURES);
    let distributions = set_bounds(&mut record, (&far.probes, far.unanswered), proved);
    let named = DISTRIBUTIONS.map(str::to_owned).into_iter();
    (record, named.zip(distributions).collect())
}

/// A row of `out.csv`.
#[derive(Debug, Serialize)]
pub(in crate::bench::node) struct BoundedOutRow {
    round: u32,
    subscriber: u32,
    publisher: u32,
    seq: i64,
    t_sent_ns: u64,
    t_received_ns: u64,
    latency_low_ns: Option<i64>,
    latency_high_ns: Option<i64>,
    excess_ns: Option<i64>,
    intact: bool,
}

/// The rows of samples that arrived, in order, with their bounds.
pub(in crate::bench::node) fn bounded_rows(
    rows: impl Iterator<Item = Result<OutRow, LogError>>,
    proved: Option<&ProvedBounds>,
) -> impl Iterator<Item = Result<BoundedOutRow, LogError>> {
    let bounded = proved.into_iter().flat_map(|proved| &proved.messages);
    let mut bounded = bounded.peekable();
    rows.enumerate().map(move |(place, row)| {
        let found = bounded.next_if(|it| it.place == place);
        let row = row?;
        Ok(BoundedOutRow {
            round: row.round,
            subscriber: row.subscriber,
            publisher: row.publisher,
            seq: row.seq,
            t_sent_ns: row.t_sent_ns,
            t_received_ns: row.t_received_ns,
            latency_low_ns: found.map(|it| it.latency.low_ns),
            latency_high_ns: found.map(|it| it.latency.high_ns),
            excess_ns: found.map(BoundedMessage::excess_ns),
            intact: row.intact,
        })
    })
}
