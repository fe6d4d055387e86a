//! What plots and reports show of it.

use crate::bench::hca::presentation::{COMPLETION, LOST_MESSAGES, SERVICES};
use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::results::schema::between::{P50_HIGH, P50_LOW, P99_HIGH, SCHEMA, excess, half, message};
use crate::results::schema::hca;

const TITLE: &str = "Bounds of one-way latency between two hosts";

pub(crate) static PRESENTATION: Presentation = Presentation {
    name: "two hosts",
    title: TITLE,
    opening: Opening::Best(&[(TITLE, half::P50, "Median of half a round trip")]),
    plural: "messages",
    metrics: &[
        Metric {
            lost: Some(hca::LOST),
            arrival: Some(hca::message::RECEIVED),
            ..Metric::new("excess", "latency above the least", &[message::EXCESS])
        },
        Metric {
            stem: "half_round_trip",
            plural: Some("probes"),
            ..Metric::new(
                "half-round-trip",
                "half a round trip (one way if both ways are equal)",
                &[],
            )
        },
        COMPLETION,
    ],
    time: hca::message::SUBMITTED,
    coloured: &SERVICES,
    x: &[hca::RATE, hca::SIZE],
    shares: &[LOST_MESSAGES],
    lost: Some(("messages", hca::LOST, hca::SENT)),
    columns: &[
        &[hca::SENT, hca::LOST, hca::CORRUPTED],
        &[half::P50, half::P99],
        &[P50_LOW, P50_HIGH, P99_HIGH],
        &[excess::P50, excess::P99],
        &[hca::completion::P50],
    ],
    figures: &[
        ReportFigure::new(
            "percentiles",
            "Half a round trip",
            "Half a round trip of the probes by percentile: the time one way only if both ways are equal.",
        )
        .with("metric", "half-round-trip"),
        ReportFigure::new(
            "percentiles",
            "Latency above the least",
            "Latency above the least one, by percentile. No clock offset is in it.",
        ),
        ReportFigure::new(
            "median",
            "The excess of the slow messages",
            "The 99th percentile of each point's excess over the least latency.",
        )
        .with("percentile", "p99"),
        ReportFigure::new(
            "percentiles",
            "The tail of completions",
            "The time until the sender found the completion, on one clock.",
        )
        .with("metric", "completion"),
    ],
    reading: &[
        "rtt/2: Half of a probe's round trip, without what the peer took. It is the one-way latency only if both ways \
         take the same, which is assumed and not measured.",
        "at least, at most: Between these bounds lies the one-way latency. They follow from all exchanges, as no \
         message arrives before it is posted; with --clock-uncertainty also from what was declared.",
        "excess: The latency of a message above the least of its round. The offset of the two clocks is not in it: it \
         shows queueing in this direction.",
        "t_comp: It is of one clock, and exact.",
    ],
    ..Presentation::of(&SCHEMA)
};
