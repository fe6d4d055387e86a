//! What plots and reports show of it.

use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::results::schema::between::{P50_HIGH, P50_LOW, P99_HIGH, excess, half, message};
use crate::results::schema::node::{
    COPIES, DELIVERY_RATE, LOST, RATE, REFUSED, SENT, STEPS_MADE, STEPS_MISSED, sample,
};
use crate::results::schema::node_between::{OUT, SCHEMA};

const TITLE: &str = "Bounds of the latency of samples between two hosts";

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: TITLE,
    opening: Opening::Best(&[(TITLE, half::P50, "Median of half a round trip")]),
    plural: "samples",
    metrics: &[
        Metric {
            lost: Some(LOST),
            absent: &[("missed", STEPS_MISSED), ("refused", REFUSED)],
            distribution: Some("excess.hgrm"),
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
    ],
    file: OUT,
    without_file: "measure with --samples",
    time: sample::CARRIED,
    x: &[RATE],
    shares: &[("missed steps", STEPS_MISSED, &[STEPS_MADE, STEPS_MISSED])],
    lost: Some(("copies", LOST, COPIES)),
    columns: &[
        &[SENT, STEPS_MISSED, REFUSED],
        &[LOST, DELIVERY_RATE],
        &[half::P50, half::P99],
        &[P50_LOW, P50_HIGH, P99_HIGH],
        &[excess::P50, excess::P99],
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
            "Latency of samples above the least one, by percentile. No clock offset is in it.",
        ),
        ReportFigure::new(
            "median",
            "The excess of the slow samples",
            "The 99th percentile of each point's excess over the least latency.",
        )
        .with("percentile", "p99"),
    ],
    reading: &[
        "half rt: Half of a probe's round trip, without what the peer took: a sample to the other host and one back \
         through the node-type. It is the one-way latency only if both ways take the same, which is assumed and not \
         measured.",
        "at least, at most: Between these bounds lies the latency, from the stamp of a sample to right after it was \
         read. They follow from all samples and probes, as none arrives before it is sent; with --clock-uncertainty also \
         from what was declared.",
        "excess: The latency of a sample above the least of its round. The offset of the two clocks is not in it: it \
         shows queueing in this direction.",
        "missed: Steps for which no sample was made, as their publisher was busy for a period or longer. That is the \
         publisher's fault, not the node's.",
    ],
    ..Presentation::of(&SCHEMA)
};
