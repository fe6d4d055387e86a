//! What plots and reports show of it.

use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::results::schema::queue::{
    COUNT, DEPTH_MEAN, DEQUEUE_EACH, DEQUEUES_BATCHED, ELEMENTS_MEASURED, ENQUEUE_EACH,
    ENQUEUES_BATCHED, GROUP, LOST, MISSED_ENQUEUES, PERCENT_OF_SATURATION, QUEUE, RATE, SCHEMA,
    THROUGHPUT, dequeue, element, enqueue, intended, latency,
};

const MEASURED: &str = "The cost of queues between two threads";

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "Queues between two threads",
    opening: Opening::Best(&[
        (MEASURED, latency::P50, "Median latency in the queue"),
        (MEASURED, THROUGHPUT, "Throughput"),
    ]),
    plural: "elements",
    metrics: &[
        Metric::new("latency", "latency through the queue", &[element::LATENCY]),
        Metric::new(
            "enqueue",
            "time of an enqueue",
            &[element::ENQUEUE, element::ENQUEUED],
        ),
        Metric::new(
            "dequeue",
            "time of a dequeue",
            &[element::DEQUEUE, element::DEQUEUED],
        ),
        Metric::intended(&[element::INTENDED, element::DEQUEUED]),
        Metric {
            stem: "enqueue_batch",
            plural: Some("batches"),
            ..Metric::new("enqueue-batch", "time of a batch of enqueues", &[])
        },
        Metric {
            stem: "dequeue_batch",
            plural: Some("batches"),
            ..Metric::new("dequeue-batch", "time of a batch of dequeues", &[])
        },
    ],
    // Over the queues, what an operation costs.
    usual_medians: &["enqueue", "dequeue"],
    together: "time",
    without_file: "measure with --elements",
    time: element::STAMP,
    x: &[PERCENT_OF_SATURATION, RATE, QUEUE],
    // Bursts of others are of messages.
    axes: &[(GROUP.name, "elements of a group")],
    shares: &[("started late", MISSED_ENQUEUES, &[COUNT])],
    lost: Some(("elements", LOST, ELEMENTS_MEASURED)),
    columns: &[
        &[enqueue::P50, dequeue::P50],
        &[ENQUEUE_EACH, DEQUEUE_EACH, ENQUEUES_BATCHED, DEQUEUES_BATCHED],
        &[latency::P50, latency::P99],
        &[intended::P50, intended::P99],
        &[THROUGHPUT, DEPTH_MEAN, MISSED_ENQUEUES],
    ],
    figures: &[
        ReportFigure::new(
            "median",
            "The time of an operation",
            "The median of each point, the time stamp included; thin bars hold the middle 80 %, thick bars, \
             with several rounds, the 95 % interval of the median.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "percentiles",
            "The tail of the latency in the queue",
            "Latency of elements by percentile; the axis is stretched towards 100 %.",
        )
        .with("metric", "latency"),
        ReportFigure::new(
            "percentiles",
            "The tail of an enqueue",
            "Time of an enqueue by percentile, the time stamp included.",
        )
        .with("metric", "enqueue"),
        ReportFigure::by_interval(
            "Latency in the queue over time",
            "Percentiles and the maximum of the elements enqueued in each interval of the first round; a gap is an \
             interval with too few elements for the percentile.",
        ),
    ],
    reading: &[
        "enqueue, dequeue: The time of one operation, the time stamp included.",
        "latency: From before the first attempt to enqueue an element to after its dequeue: a full queue is in it.",
        "batch: The time of several operations of one end together (--per-stamp), one after the other; its mean is \
         that time divided by their number.",
        "intended: From when the schedule wanted the element sent: a sender that was stalled does not hide what that \
         caused.",
        "medians over runs: Each figure is the median over the runs of its point. Two modes: the runs fall into two \
         groups, and the median may be a figure that never occurred.",
        "a time stamp: Its cost is in each of the times. An operation that takes little more has a \
         negligible cost.",
    ],
    ..Presentation::of(&SCHEMA)
};
