//! What plots and reports show of it.

use super::benchmark::INTENDED;
use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::results::schema::Column;
use crate::results::schema::node::{
    COPIES, DELIVERY_RATE, FAIRNESS, LOST, OUT, RATE, REFUSED, SCHEMA, SENT, STEPS_MADE,
    STEPS_MISSED, intended, latency, sample,
};

/// Steps without a sample, by cause.
const ABSENT: [(&str, Column); 2] = [("missed", STEPS_MISSED), ("refused", REFUSED)];

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "Samples through node-types",
    opening: Opening::Best(&[(
        "The latency of samples through node-types",
        latency::P50,
        "Median latency of a sample",
    )]),
    plural: "samples",
    metrics: &[
        Metric {
            lost: Some(LOST),
            absent: &ABSENT,
            ..Metric::new("latency", "latency of a sample", &[sample::LATENCY])
        },
        Metric {
            lost: Some(LOST),
            absent: &ABSENT,
            distribution: Some(INTENDED),
            ..Metric::intended(&[])
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
        &[latency::P50, latency::P99, latency::MAX],
        &[intended::P50, intended::P99],
        &[FAIRNESS],
    ],
    figures: &[
        ReportFigure::new(
            "median",
            "Median latency",
            "The median of each point; thin bars hold the middle 80 % of its samples, thick bars, with several \
             rounds, the 95 % interval of the median.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "surface",
            "Median latency over two settings",
            "Height is the median; colour is the share of missed steps.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "percentiles",
            "The tail",
            "Latency of samples by percentile; the axis is stretched towards 100 %.",
        ),
        ReportFigure::new(
            "percentiles",
            "The tail from the intended time",
            "Latency from the intended time of sending, by percentile.",
        )
        .with("metric", "intended"),
        ReportFigure::by_interval(
            "Latency over time",
            "Percentiles and the maximum of the samples sent in each interval of the first round; a gap is an interval \
             with too few samples for the percentile.",
        ),
    ],
    reading: &[
        "latency: From the stamp of a sample, taken right before it is handed to its node, to right after its \
         subscriber has read it. The node-type lies between the two, with all that it does on both sides.",
        "intended: From when the sample was meant to be sent: a publisher that was stalled does not hide what that \
         caused.",
        "missed: Steps for which no sample was made, as their publisher was busy for a period or longer. That is the \
         publisher's fault, not the node's.",
        "refused, lost: The node had no room for a sample; or it took it, and a copy of it never arrived.",
        "delivery rate: Copies that arrived, as a share of those that were to arrive if no step was missed.",
    ],
    ..Presentation::of(&SCHEMA)
};
