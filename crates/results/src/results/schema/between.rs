//! The HCA benchmark between two hosts, each with a separate clock.

use super::hca::{self, COMPLETIONS, COUNTERS, COUNTS, PATH, POST_RATE, STAMP_COST};
use super::hca::{PAGE_FAULTS, RESOLUTION, SENT, STAMP_REFRESH, completion};
use super::{Better, Column, Data, Over, ROUND, SampleFile, Schema};
use super::{columns, distribution_columns, join};

distribution_columns!(
    /// Half a round trip.
    half, "half_round_trip", "half rt ", "half of a probe's round trip, without what the peer took: one way if both ways are \
        equal, which is assumed"
);
distribution_columns!(
    /// Excess over the least latency.
    excess, "excess", "excess ", "excess of a message over the least latency of its direction in its round, which no clock \
        offset is in"
);

/// [`CLOCKS`]: by the exchanges alone.
pub const PROVEN: &str = "proven";
/// [`CLOCKS`]: within what the exchanges prove and the user declares.
pub const DECLARED: &str = "declared";
/// In a fabric: there are no bounds, as the clocks contradict each other.
pub const CONTRADICTION: &str = "contradiction";

columns! {
    /// The bounds of one-way latency, and of the clocks.
    BOUNDS;
    CLOCKS = label("clocks", "what is known of the clocks: proven (by the exchanges alone) or declared (also by \
                              --clock-uncertainty)");
    MIN_LOW = measured("one_way_min_low_ns", "least one-way latency, at least", 0);
    MIN_HIGH = measured("one_way_min_high_ns", "least one-way latency, at most", 0);
    P50_LOW = measured("one_way_p50_low_ns", "median of the lower bounds of the messages' latency", 1)
        .with_bounds().title("p50 at least");
    P50_HIGH = measured("one_way_p50_high_ns", "median of the upper bounds", 1).with_bounds().title("p50 at most");
    P99_LOW = measured("one_way_p99_low_ns", "99th percentile of the lower bounds", 1).with_bounds()
        .title("p99 at least");
    P99_HIGH = measured("one_way_p99_high_ns", "99th percentile of the upper bounds", 1).with_bounds()
        .title("p99 at most");
    EXCESS_ERROR = measured("excess_error_ns", "the excess of each message lies within so much on either side: what the \
        clocks may have drifted apart between it and the least", 0).over(Over::Greatest);
    THETA_AT = measured("theta_at_ns", "the moment that theta is given of, by this host's clock; the first round's", 0)
        .whole().over(Over::First).better(Better::Neither);
    THETA_LOW = measured("theta_low_ns", "how far the peer's clock is ahead of this host's, at least; the first round's", 0)
        .whole().over(Over::First).better(Better::Neither);
    THETA_HIGH = measured("theta_high_ns", "the same, at most; the first round's", 0)
        .whole().over(Over::First).better(Better::Neither);
    RATE_LOW = measured("clock_rate_low_ppm", "how much faster the peer's clock runs, at least; the first round's", 4)
        .over(Over::First).better(Better::Neither);
    RATE_HIGH = measured("clock_rate_high_ppm", "the same, at most; the first round's", 4)
        .over(Over::First).better(Better::Neither);
    SHORTEST = measured("round_trip_min_ns", "shortest round trip of a probe, without what the peer took", 0)
        .over(Over::Least);
    PROBES = count("probes", "probes that were answered");
    UNANSWERED = count("probes_unanswered", "probes that were not answered").better(Better::Lower);
}

/// What is found of a point.
pub const FIGURES: [Column; 10 + 13 + 16 + 13 + 1 + 13 + 5 + 8] = join(&[
    &COUNTS,
    &half::ALL,
    &BOUNDS,
    &excess::ALL,
    &[COMPLETIONS],
    &completion::ALL,
    &[
        POST_RATE,
        PAGE_FAULTS,
        STAMP_COST,
        RESOLUTION,
        STAMP_REFRESH,
    ],
    &PATH,
]);

columns! {
    /// The settings of a run that a run on one host does not have.
    OF_PEER;
    PEER = setting("peer", "the other host, as asked for");
    PROBES_ASKED = setting("probes_of_phase", "probes before, between and after the bursts, each time").whole();
}

/// The settings of a run.
pub const RUN: [Column; 17 + 2] = join(&[&hca::RUN, &OF_PEER]);

columns! {
    /// The settings of a point that its bounds depend on.
    OF_CLOCKS;
    RATE_LIMIT = setting("clock_rate_limit_ppm",
        "how far the rates of the two clocks may lie apart, which the bounds assume; 0: theta is constant").whole();
    UNCERTAINTY = setting("clock_uncertainty_ns",
        "how far the two clocks are declared to be apart at most; empty where nothing is declared").whole();
}

/// The settings of a point.
pub const POINT: [Column; hca::POINT.len() + 2] = join(&[&hca::POINT, &OF_CLOCKS]);

/// The columns of a message, beside those on one host.
pub mod message {
    use super::{Better, Column, columns};

    columns! {
        /// The bounds.
        BOUNDS;
        LATENCY_LOW = measured("latency_low_ns", "one-way latency, at least", 0).whole();
        LATENCY_HIGH = measured("latency_high_ns", "one-way latency, at most", 0).whole();
        EXCESS = measured("excess_ns", "latency above the least of its direction in its round", 0).whole()
            .better(Better::Lower);
    }
}

/// A point's messages, one row each. t_recv is read from the peer's clock, all else from this host's.
pub const MESSAGES: SampleFile = SampleFile {
    name: "messages.csv",
    columns: &[
        ROUND,
        hca::message::REPEAT,
        hca::message::SEQ,
        hca::message::INTENDED,
        hca::message::SUBMITTED,
        hca::message::SENT,
        hca::message::RECEIVED,
        hca::message::COMPLETED,
        message::LATENCY_LOW,
        message::LATENCY_HIGH,
        message::EXCESS,
        hca::message::COMPLETION_LATENCY,
    ],
    counted_by: SENT,
    meaning: "a row a message; t_recv is of the peer's clock",
};

/// The columns of a probe.
pub mod probe {
    use super::{Better, Column, Data, columns};

    columns! {
        /// All of it, behind the round.
        ALL;
        PHASE = label("phase", "when it was exchanged: before, between or after the bursts");
        NUMBER = label("probe", "its number on its connection, from 0").data(Data::Whole);
        A_SENT = measured("a_sent_ns", "read by this host before the message was posted", 0).whole()
            .better(Better::Neither);
        B_RECEIVED = measured("b_received_ns", "read by the peer after it had come", 0).whole()
            .better(Better::Neither);
        B_SENT = measured("b_sent_ns", "read by the peer before the answer was posted", 0).whole()
            .better(Better::Neither);
        A_RECEIVED = measured("a_received_ns", "read by this host after the answer had come", 0).whole()
            .better(Better::Neither);
    }
}

/// Every exchange, so that anybody can compute the bounds again.
pub const PROBES_FILE: SampleFile = SampleFile {
    name: "probes.csv",
    columns: &join::<7>(&[&[ROUND], &probe::ALL]),
    counted_by: PROBES,
    meaning: "a row a probe that was answered",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "hca-between",
    title: "HCA between two hosts",
    run: &RUN,
    point: &POINT,
    figures: &FIGURES,
    samples: &[MESSAGES, PROBES_FILE, COUNTERS],
    across: None,
    searched: None,
    headline: [hca::RECEIVED, half::P50, P99_HIGH],
};
