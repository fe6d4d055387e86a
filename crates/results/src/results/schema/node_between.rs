//! The node benchmark between two hosts, each with a separate clock.

use super::between::{BOUNDS, OF_CLOCKS, OF_PEER, P99_HIGH, PROBES_FILE, excess, half, message};
use super::node::{self, ARRIVALS, BROKER, COUNTS, IN, LOST_FILE, RATES, RECEIVED, sample};
use super::{Better, Column, ROUND, SampleFile, Schema, join};

/// [`node::sample::RECEIVED`] by the clock of the other host.
pub const RECEIVED_THERE: Column = Column::measured(
    "t_received_ns",
    0,
    "when it was read, by the peer's clock, moved as far as this host's clock is for the Unix epoch",
)
.whole()
.better(Better::Neither);

/// What arrived, a row each.
pub const OUT: SampleFile = SampleFile {
    name: "out.csv",
    columns: &join::<10>(&[
        &[
            ROUND,
            sample::SUBSCRIBER,
            sample::OF_PUBLISHER,
            sample::OF_NUMBER,
            sample::CARRIED,
            RECEIVED_THERE,
        ],
        &message::BOUNDS,
        &[sample::INTACT],
    ]),
    counted_by: ARRIVALS,
    meaning: "a row a sample that arrived, with --samples; t_received is of the peer's clock",
};

/// What is found of a point.
pub const FIGURES: [Column; 13 + 16 + 13 + 23 + 5 + 4] =
    join(&[&half::ALL, &BOUNDS, &excess::ALL, &COUNTS, &RATES, &BROKER]);

/// The settings of a run.
pub const RUN: [Column; node::RUN.len() + 2] = join(&[&node::RUN, &OF_PEER]);

/// The settings of a point.
pub const POINT: [Column; node::POINT.len() + 2] = join(&[&node::POINT, &OF_CLOCKS]);

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "node-between",
    title: "node between two hosts",
    run: &RUN,
    point: &POINT,
    figures: &FIGURES,
    samples: &[IN, OUT, LOST_FILE, PROBES_FILE],
    across: None,
    searched: None,
    headline: [RECEIVED, half::P50, P99_HIGH],
};
