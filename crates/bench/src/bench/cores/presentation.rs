//! What plots and reports show of it.

use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::results::schema::cores::{
    DIRECTIONS, HALF, HALF_MAX, HALF_MIN, OFFSET_BOUND, ONE_WAY, ROUND_TRIP, SCHEMA, STREAM, pair,
};

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "Cache lines between CPUs",
    opening: Opening::Best(&[(
        "The time of a cache line between two CPUs",
        HALF,
        "Median half of a round trip",
    )]),
    plural: "directions of pairs",
    metrics: &[
        Metric::new("half-round-trip", "half of a round trip", &[pair::HALF]),
        Metric::new("one-way", "one-way latency", &[pair::ONE_WAY]),
    ],
    time: pair::START,
    has_usual_range: false,
    columns: &[
        &[HALF, HALF_MIN, HALF_MAX, ROUND_TRIP],
        &[ONE_WAY, OFFSET_BOUND],
        &[STREAM, DIRECTIONS],
    ],
    figures: &[
        ReportFigure::new(
            "matrix",
            "Half of a round trip of each pair",
            "Each square is a pair of CPUs: dark takes long. Lines separate sockets, NUMA nodes, caches and cores.",
        )
        .with("metric", "half-round-trip"),
        ReportFigure::new(
            "matrix",
            "One-way latency of each direction",
            "Each square is a direction: the row writes, the column reads. A difference between a square and its mirror \
             image may be the offset of the two clocks, which is known to about half of a round trip only.",
        )
        .with("metric", "one-way"),
    ],
    reading: &[
        "half of a round trip: A CPU stores a number to a line and waits until it finds the same in another line, which \
         the other CPU stores when it finds the first: both read by plain loads. Without a time stamp in between, and \
         without a common clock.",
        "one way: From the sender's stamp before its store to the receiver's stamp after the load that finds it, both \
         stamps included. The offset of the two clocks is in it, and the column beside it has the bound of that.",
        "stream: Bytes of lines that one CPU writes and the other reads in a second, through a ring of 64 KiB.",
        "smt-siblings, same-cluster, same-cache, other-core, other-cache, other-node, other-socket: The kinds of pairs, by what the \
         kernel reports that their CPUs share: from a core to nothing. A virtual machine has the topology that its host \
         gave it.",
    ],
    ..Presentation::of(&SCHEMA)
};
