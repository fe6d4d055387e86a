//! What plots and reports show of it.

use crate::bench::hca::settings::config::Operation;
use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure, Share};
use crate::results::read::Point;
use crate::results::schema::hca::{
    CORRUPTED, LOST, MISSED_STEPS, OPERATION, POST_RATE, RATE, SCHEMA, SENT, SIZE, comp_lag,
    completion, latency, message, recv_lag,
};

/// The services in the order of their colours.
pub(super) const SERVICES: [&str; 3] = ["rc", "uc", "ud"];
pub(super) const LOST_MESSAGES: Share = ("lost messages", LOST, &[SENT]);
pub(super) const COMPLETION: Metric = Metric {
    alias: "t_comp",
    stem: "completion_latency",
    ..Metric::new(
        "completion",
        "completion latency",
        &[message::COMPLETION_LATENCY],
    )
};

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "One-way latency between HCAs",
    opening: Opening::Best(&[
        (
            "One-way latency between two HCAs",
            latency::P50,
            "Median one-way latency",
        ),
        // Of reads and atomics nothing arrives.
        (
            "The time until a request between two HCAs is complete",
            completion::P50,
            "Median completion latency",
        ),
    ]),
    plural: "messages",
    metrics: &[
        Metric {
            alias: "t_lat",
            lost: Some(LOST),
            arrival: Some(message::RECEIVED),
            ..Metric::new("latency", "one-way latency", &[message::LATENCY])
        },
        COMPLETION,
        Metric::intended(&[message::INTENDED, message::RECEIVED]),
    ],
    time: message::SUBMITTED,
    coloured: &SERVICES,
    x: &[RATE, SIZE],
    // Of reads and atomics no message is lost.
    shares: &[
        ("missed steps", MISSED_STEPS, &[SENT]),
        LOST_MESSAGES,
        ("wrong answers", CORRUPTED, &[SENT]),
    ],
    only: Some((COMPLETION.name, "RDMA reads and atomics", nothing_arrives)),
    lost: Some(("messages", LOST, SENT)),
    columns: &[
        &[SENT, LOST, CORRUPTED],
        &[latency::MIN, latency::P50, latency::P90],
        &[latency::P99, latency::P999, latency::MAX],
        &[completion::P50, completion::P99],
        &[recv_lag::P50, recv_lag::P99, recv_lag::ERROR],
        &[comp_lag::P50, comp_lag::P99, comp_lag::ERROR],
        &[POST_RATE],
    ],
    figures: &[
        ReportFigure::new(
            "median",
            "Median latency",
            "The median of each point; thin bars hold the middle 80 % of its messages, thick bars, with several \
             rounds, the 95 % interval of the median.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "surface",
            "Median latency over two settings",
            "Height is the median; colour is the share of lost messages.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "histogram",
            "Latencies",
            "Share of messages by latency; the vertical line is the median, the box has the share above the range and \
             the maximum.",
        )
        .with("range", "auto"),
        ReportFigure::new(
            "percentiles",
            "The tail",
            "One-way latency by percentile; the axis is stretched towards 100 %.",
        ),
        ReportFigure::new(
            "percentiles",
            "The tail of completions",
            "Completion latency by percentile.",
        )
        .with("metric", "completion"),
    ],
    reading: &[
        "latency: One way, from right before a message is posted (with the time stamp 'send': from the \
         last moment before the adapter read it) to right after its completion was found at the receiver, both on one clock of one host. \
         Nothing is halved, and nothing is subtracted.",
        "comp: From the same beginning to when the sender found the completion of its request, and may use its buffer \
         again.",
        "hw to t_recv, hw to t_comp: With --hw-timestamps, from the adapter's stamp of a completion to ours. It is in the \
         latency, and holds what the host adds to it: writing the completion to memory, and polling.",
        "pause 0, and a burst: Without a pause messages queue behind each other, and latency grows with the burst. \
         With a pause longer than the latency each message is alone.",
        "lost: UC and UD may lose messages on a bad link, or where a buffer overflows. They are counted, and are in no percentile of the summary.",
        "the floor: The same two loops over shared memory between the same two cores. A latency close to it describes \
         the machine more than the fabric.",
    ],
    ..Presentation::of(&SCHEMA)
};

fn nothing_arrives(point: &Point) -> bool {
    let operation = point.setting(OPERATION.name);
    let mut operations = Operation::ALL.iter();
    let operation = operations.find(|one| Some(one.name()) == operation);
    operation.is_some_and(|operation| !operation.is_one_way())
}
