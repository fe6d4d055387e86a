//! The queue benchmark.

use super::{Better, Column, Data, Over, ROUND, SampleFile, Schema, join};
use crate::distribution_columns;

/// The queue.
pub const QUEUE: Column = Column::setting("queue", "the queue, by its name in --list");
/// How many threads its ends are made for.
pub const ENDS: Column = Column::setting(
    "ends",
    "threads that each end is made for: spsc, mpsc or mpmc",
);
/// Who wrote it.
pub const WRITTEN: Column = Column::setting("written", "here, or in a crate of others");
/// Capacity.
pub const CAPACITY: Column =
    Column::setting("capacity", "elements that the queue holds at most").whole();
/// Size of an element.
pub const PAYLOAD: Column = Column::setting("payload_bytes", "bytes of an element")
    .whole()
    .title("size");
/// The sender's load.
pub const LOAD: Column = Column::setting("load", "what the sender does between two enqueues");
/// The sender's rate.
pub const RATE: Column = Column::setting(
    "rate_per_s",
    "enqueues in a second that are offered; on a load curve known once the saturation is",
)
.data(Data::Number(3))
.over(Over::Median)
.title("rate");
/// The sender's wait.
pub const WAIT: Column = Column::setting("wait_ns", "time between two enqueues")
    .whole()
    .title("wait");
/// Enqueues of a block.
pub const BURST: Column =
    Column::setting("burst", "enqueues of a block with --load bursty").whole();
/// The sender's jitter.
pub const JITTER: Column = Column::setting(
    "jitter_percent",
    "by how much a wait of the sender is longer or shorter at most",
)
.data(Data::Number(2))
.title("jitter");
/// The receiver's load.
pub const RECEIVER_LOAD: Column = Column::setting(
    "receiver_load",
    "what the receiver does between two dequeues",
)
.title("receiver");
/// The receiver's rate.
pub const RECEIVER_RATE: Column =
    Column::setting("receiver_rate_per_s", "dequeues in a second that are tried")
        .data(Data::Number(3))
        .title("receiver rate");
/// The receiver's wait.
pub const RECEIVER_WAIT: Column = Column::setting("receiver_wait_ns", "time between two dequeues")
    .whole()
    .title("receiver wait");
/// Dequeues of a block.
pub const RECEIVER_BURST: Column = Column::setting(
    "receiver_burst",
    "dequeues of a block with --receiver-load bursty",
)
.whole()
.title("receiver burst");
/// The receiver's jitter.
pub const RECEIVER_JITTER: Column = Column::setting(
    "receiver_jitter_percent",
    "by how much a wait of the receiver is longer or shorter at most",
)
.data(Data::Number(2))
.title("receiver jitter");
/// The share of saturation on a load curve.
pub const PERCENT_OF_SATURATION: Column = Column::setting(
    "percent_of_saturation",
    "on a load curve, the offered rate in per cent of the saturation",
)
.whole()
.title("of saturation");
/// What lies between the two cores.
pub const CORES: Column = Column::setting("cores", "what the cores of the two ends share");
/// The sender's CPU.
pub const SENDER_CPU: Column = Column::setting("sender_cpu", "CPU of the sender").whole();
/// The receiver's CPU.
pub const RECEIVER_CPU: Column = Column::setting("receiver_cpu", "CPU of the receiver").whole();
/// What is measured.
pub const MEASURE: Column =
    Column::setting("measure", "what is measured: time, throughput or counters");
/// Whether failed attempts count.
pub const MEASURE_FAILED: Column = Column::setting(
    "measure_failed",
    "whether the time of failed attempts belongs to the operation that succeeded at last",
)
.data(Data::Flag);
/// Clock.
pub const CLOCK: Column = Column::setting("clock", "clock of all stamps and waits");
/// Elements of a run.
pub const COUNT: Column = Column::setting("count", "elements that are measured in a round").whole();
/// Elements before them.
pub const WARMUP: Column =
    Column::setting("warmup", "elements before the measured ones of a round").whole();

/// How the round went.
pub const OUTCOME: Column = Column::label(
    "outcome",
    "clean, wrong (the queue is broken), gave-up, unjudged (the clock is too coarse) or failed",
);
/// Saturation.
pub const SATURATION: Column = Column::measured(
    "saturation_per_s",
    1,
    "on a load curve, elements in a second that the queue takes at most",
)
.better(Better::Higher)
.title("saturation");
/// Elements that figures are made of.
pub const ELEMENTS_MEASURED: Column = Column::count(
    "elements_measured",
    "elements that the figures are made of: those after the warm-up of clean rounds",
)
.title("elements");
/// Throughput.
pub const THROUGHPUT: Column = Column::measured(
    "throughput_per_s",
    1,
    "elements in a second, by the receiver's clock",
)
.better(Better::Higher)
.with_bounds()
.title("through");
/// How full the queue was.
pub const DEPTH_MEAN: Column = Column::measured(
    "depth_mean",
    2,
    "elements in the queue, on average over time",
)
.better(Better::Neither)
.title("depth");
/// How full it was at most.
pub const DEPTH_MAX: Column = Column::count(
    "depth_max",
    "elements in the queue at most; one more than its capacity while a dequeue has not ended",
)
.over(Over::Greatest);

const fn each_round(name: &'static str, meaning: &'static str) -> Column {
    Column::count(name, meaning).over(Over::Median)
}

/// Enqueues that hold handing over.
pub const HANDED_OVER: Column = each_round(
    "handed_over_enqueues",
    "enqueues of a round whose time holds handing over what the queue had held back",
);
/// Enqueues that failed.
pub const FAILED_ENQUEUES: Column = each_round(
    "failed_enqueues",
    "attempts of a round that found the queue full",
);
/// Dequeues that failed.
pub const FAILED_DEQUEUES: Column = each_round(
    "failed_dequeues",
    "attempts of a round that found the queue empty",
);
/// Enqueues that were late.
pub const MISSED_ENQUEUES: Column = each_round(
    "missed_enqueues",
    "enqueues, or blocks, of a round that were due when the one before them ended",
);
/// Dequeues that were late.
pub const MISSED_DEQUEUES: Column = each_round(
    "missed_dequeues",
    "dequeues, or blocks, of a round that were due when the one before them ended",
);
/// What a stamp costs the sender.
pub const SENDER_STAMP: Column =
    Column::measured("sender_stamp_ns", 1, "what a time stamp costs the sender");
/// What it costs the receiver.
pub const RECEIVER_STAMP: Column = Column::measured(
    "receiver_stamp_ns",
    1,
    "what a time stamp costs the receiver",
);
/// Resolution of the clock.
pub const RESOLUTION: Column =
    Column::measured("clock_resolution_ns", 2, "resolution of the clock");
/// The sender's page faults.
pub const SENDER_PAGE_FAULTS: Column = Column::count(
    "sender_page_faults",
    "page faults in the sender's loop; there should be none",
)
.better(Better::Lower);
/// The receiver's.
pub const RECEIVER_PAGE_FAULTS: Column = Column::count(
    "receiver_page_faults",
    "page faults in the receiver's loop; there should be none",
)
.better(Better::Lower);

macro_rules! counters {
    ($($name:ident: $column:literal, $meaning:literal;)+) => {
        $(#[doc = concat!("In user space: ", $meaning, ".")]
        pub const $name: Column = Column::measured($column, 3, $meaning);)+
        /// The processor's counters: the sender's four, then the receiver's.
        pub const COUNTERS: [Column; 8] = [$($name),+];
    };
}

counters! {
    SENDER_CYCLES: "sender_cycles_per_element", "cycles of the sender for an element";
    SENDER_INSTRUCTIONS: "sender_instructions_per_element", "instructions of the sender for an element";
    SENDER_CACHE_MISSES: "sender_cache_misses_per_element", "last-level cache misses of the sender for an element";
    SENDER_BRANCH_MISSES: "sender_branch_misses_per_element", "mispredicted branches of the sender for an element";
    RECEIVER_CYCLES: "receiver_cycles_per_element", "cycles of the receiver for an element";
    RECEIVER_INSTRUCTIONS: "receiver_instructions_per_element", "instructions of the receiver for an element";
    RECEIVER_CACHE_MISSES: "receiver_cache_misses_per_element", "last-level cache misses of the receiver for an element";
    RECEIVER_BRANCH_MISSES: "receiver_branch_misses_per_element", "mispredicted branches of the receiver for an element";
}

macro_rules! faults {
    ($($name:ident: $column:literal, $meaning:literal;)+) => {
        $(#[doc = concat!("Faults of the queue: ", $meaning, ".")]
        pub const $name: Column = Column::count($column, $meaning).better(Better::Lower);)+
        const FAULTS: [Column; 6] = [$($name),+];
    };
}

faults! {
    LOST: "elements_lost", "elements that were put in and never came out";
    DUPLICATED: "elements_duplicated", "elements that came out again";
    REORDERED: "elements_reordered", "elements that came out after one that was put in later";
    INVENTED: "elements_invented", "elements that came out and were never put in";
    DAMAGED: "elements_damaged", "elements that came out with other words than were put in";
    BELATED: "elements_belated", "elements that came out only after the receiver had waited for them in vain";
}

distribution_columns!(
    /// The time of an enqueue.
    enqueue, "enqueue", "", "time of an enqueue"
);
distribution_columns!(
    /// The time of a dequeue.
    dequeue, "dequeue", "", "time of a dequeue"
);
distribution_columns!(
    /// The latency of an element.
    latency, "latency", "", "latency from the first attempt to enqueue to the end of the dequeue"
);
distribution_columns!(
    /// The latency from the intended time.
    intended, "intended_latency", "", "latency from when an element was meant to be enqueued"
);

/// What is measured of each element: its distribution, and the floor of that.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// What tables call it.
    pub title: &'static str,
    /// The least of what the same loops measure without a queue.
    pub floor_min: Column,
    /// The median of that.
    pub floor_p50: Column,
    /// The distribution.
    pub columns: [Column; 13],
}

macro_rules! operation {
    ($module:ident, $prefix:literal, $title:literal) => {
        Operation {
            title: $title,
            floor_min: Column::measured(
                concat!($prefix, "_floor_min_ns"),
                0,
                concat!(
                    "least of what the same loops measure without a queue: ",
                    $title
                ),
            )
            .over(Over::Least),
            floor_p50: Column::measured(
                concat!($prefix, "_floor_p50_ns"),
                1,
                concat!(
                    "median of what the same loops measure without a queue: ",
                    $title
                ),
            ),
            columns: $module::ALL,
        }
    };
}

/// The operations, in the order of the files.
pub const OPERATIONS: [Operation; 4] = [
    operation!(enqueue, "enqueue", "enqueue"),
    operation!(dequeue, "dequeue", "dequeue"),
    operation!(latency, "latency", "latency"),
    operation!(intended, "intended_latency", "from intended"),
];

/// The settings of a point.
pub const POINT: [Column; 24] = [
    QUEUE,
    ENDS,
    WRITTEN,
    CAPACITY,
    PAYLOAD,
    LOAD,
    RATE,
    WAIT,
    BURST,
    JITTER,
    RECEIVER_LOAD,
    RECEIVER_RATE,
    RECEIVER_WAIT,
    RECEIVER_BURST,
    RECEIVER_JITTER,
    PERCENT_OF_SATURATION,
    CORES,
    SENDER_CPU,
    RECEIVER_CPU,
    MEASURE,
    MEASURE_FAILED,
    CLOCK,
    COUNT,
    WARMUP,
];

const OF_A_ROUND: [Column; 3] = [OUTCOME, SATURATION, ELEMENTS_MEASURED];
const OF_THE_LOOPS: [Column; 13] = [
    THROUGHPUT,
    DEPTH_MEAN,
    DEPTH_MAX,
    HANDED_OVER,
    FAILED_ENQUEUES,
    FAILED_DEQUEUES,
    MISSED_ENQUEUES,
    MISSED_DEQUEUES,
    SENDER_STAMP,
    RECEIVER_STAMP,
    RESOLUTION,
    SENDER_PAGE_FAULTS,
    RECEIVER_PAGE_FAULTS,
];
const FLOORS: [[Column; 2]; 4] = {
    let mut floors = [[OUTCOME; 2]; 4];
    let mut at = 0;
    while at < 4 {
        floors[at] = [OPERATIONS[at].floor_min, OPERATIONS[at].floor_p50];
        at += 1;
    }
    floors
};

/// What is found of a point.
pub const FIGURES: [Column; 3 + 4 * (2 + 13) + 13 + 8 + 6] = join(&[
    &OF_A_ROUND,
    &FLOORS[0],
    &enqueue::ALL,
    &FLOORS[1],
    &dequeue::ALL,
    &FLOORS[2],
    &latency::ALL,
    &FLOORS[3],
    &intended::ALL,
    &OF_THE_LOOPS,
    &COUNTERS,
    &FAULTS,
]);

const fn moment(name: &'static str, meaning: &'static str) -> Column {
    Column::measured(name, 0, meaning)
        .whole()
        .better(Better::Neither)
}

/// An element's columns.
pub const ELEMENT_COLUMNS: [Column; 9] = [
    ROUND,
    Column::label("seq", "the element's number in its round, from 0").data(Data::Whole),
    moment("t_intended_ns", "when it was meant to be enqueued"),
    moment(
        "t_stamp_ns",
        "what it carried: read before the first attempt to enqueue it",
    ),
    moment("t_enqueue_ns", "read before the enqueue that succeeded"),
    moment(
        "t_enqueued_ns",
        "read after it; moved by as long as handing over took, where that belongs to it",
    ),
    moment("t_dequeue_ns", "read before the dequeue that succeeded"),
    moment("t_dequeued_ns", "read after it"),
    Column::measured("latency_ns", 0, "from t_stamp to t_dequeued").whole(),
];

/// A point's elements, one row each.
pub const ELEMENTS: SampleFile = SampleFile {
    name: "elements.csv",
    columns: &ELEMENT_COLUMNS,
    counted_by: ELEMENTS_MEASURED,
    meaning: "a row an element, with --elements",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "queue",
    title: "queue",
    point: &POINT,
    figures: &FIGURES,
    samples: &[ELEMENTS],
    headline: [ELEMENTS_MEASURED, latency::P50, latency::P99],
};
