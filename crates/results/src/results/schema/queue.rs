//! The queue benchmark.

use super::{
    Better, Column, Data, FIND_RATE, HLOG_INTERVAL, Over, ROUND, SampleFile, Schema, SearchedRate,
};
use super::{columns, distribution_columns, join};

columns! {
    /// The processor's counters in user space: the sender's four, then the receiver's.
    COUNTERS;
    SENDER_CYCLES = measured("sender_cycles_per_element", "cycles of the sender for an element", 3);
    SENDER_INSTRUCTIONS = measured("sender_instructions_per_element", "instructions of the sender for an element", 3);
    SENDER_CACHE_MISSES = measured("sender_cache_misses_per_element",
        "last-level cache misses of the sender for an element", 3);
    SENDER_BRANCH_MISSES = measured("sender_branch_misses_per_element",
        "mispredicted branches of the sender for an element", 3);
    RECEIVER_CYCLES = measured("receiver_cycles_per_element", "cycles of the receiver for an element", 3);
    RECEIVER_INSTRUCTIONS = measured("receiver_instructions_per_element",
        "instructions of the receiver for an element", 3);
    RECEIVER_CACHE_MISSES = measured("receiver_cache_misses_per_element",
        "last-level cache misses of the receiver for an element", 3);
    RECEIVER_BRANCH_MISSES = measured("receiver_branch_misses_per_element",
        "mispredicted branches of the receiver for an element", 3);
}

columns! {
    /// Faults of the queue.
    FAULTS;
    LOST = count("elements_lost", "elements that were put in and never came out").better(Better::Lower);
    DUPLICATED = count("elements_duplicated", "elements that came out again").better(Better::Lower);
    REORDERED = count("elements_reordered", "elements that came out after one that was put in later")
        .better(Better::Lower);
    INVENTED = count("elements_invented", "elements that came out and were never put in").better(Better::Lower);
    DAMAGED = count("elements_damaged", "elements that came out with other words than were put in")
        .better(Better::Lower);
    BELATED = count("elements_belated", "elements that came out only after the receiver had given up waiting for them")
        .better(Better::Lower);
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

distribution_columns!(
    /// The time of a round trip.
    round_trip, "round_trip", "", "time from before an enqueue to after the dequeue of the answer"
);

distribution_columns!(
    /// The time of a batch of enqueues.
    enqueue_batch, "enqueue_batch", "", "time of a batch of enqueues (--per-stamp)"
);
distribution_columns!(
    /// The time of a batch of dequeues.
    dequeue_batch, "dequeue_batch", "", "time of a batch of dequeues (--per-stamp)"
);

/// What is measured of each element, or of each batch of operations: its distribution, and the floor of that.
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
    ($module:ident, $prefix:literal, $title:literal) => {{
        const LEAST: &str = concat!(
            "least of what the same loops measure without a queue: ",
            $title
        );
        const MEDIAN: &str = concat!(
            "median of what the same loops measure without a queue: ",
            $title
        );
        let floor_min = Column::measured(concat!($prefix, "_floor_min_ns"), 0, LEAST);
        Operation {
            title: $title,
            floor_min: floor_min.over(Over::Least),
            floor_p50: Column::measured(concat!($prefix, "_floor_p50_ns"), 1, MEDIAN),
            columns: $module::ALL,
        }
    }};
}

/// The operations, in the order of the files.
pub const OPERATIONS: [Operation; 7] = [
    operation!(enqueue, "enqueue", "enqueue"),
    operation!(dequeue, "dequeue", "dequeue"),
    operation!(latency, "latency", "latency"),
    operation!(intended, "intended_latency", "from intended"),
    operation!(round_trip, "round_trip", "round trip"),
    operation!(enqueue_batch, "enqueue_batch", "batch of enqueues"),
    operation!(dequeue_batch, "dequeue_batch", "batch of dequeues"),
];

columns! {
    /// The settings of a point.
    POINT;
    QUEUE = setting("queue", "the queue, by its name in --list");
    ENDS = setting("ends", "threads that each end is made for: spsc, mpsc or mpmc");
    WRITTEN = setting("written", "here, or in a crate of others");
    CAPACITY = setting("capacity", "elements that the queue holds at most").whole();
    PAYLOAD = setting("payload_bytes", "bytes of an element").whole().title("size");
    LOAD = setting("load", "what the sender does between two enqueues");
    RATE = setting("rate_per_s", "enqueues in a second that are offered; on a load curve known once the saturation is")
        .data(Data::Number(3)).over(Over::Median).title("rate");
    WAIT = setting("wait_ns", "time between two enqueues").whole().title("wait");
    GROUP = setting("burst", "enqueues of a group (--group) with --load bursty").whole().title("group");
    JITTER = setting("jitter_percent", "by how much a wait of the sender is longer or shorter at most")
        .data(Data::Number(2)).title("jitter");
    RECEIVER_LOAD = setting("receiver_load", "what the receiver does between two dequeues").title("receiver");
    RECEIVER_RATE = setting("receiver_rate_per_s", "dequeues in a second that are tried")
        .data(Data::Number(3)).title("receiver rate");
    RECEIVER_WAIT = setting("receiver_wait_ns", "time between two dequeues").whole().title("receiver wait");
    RECEIVER_GROUP = setting("receiver_burst", "dequeues of a group with --receiver-load bursty")
        .whole().title("receiver group");
    RECEIVER_JITTER = setting("receiver_jitter_percent",
        "by how much a wait of the receiver is longer or shorter at most")
        .data(Data::Number(2)).title("receiver jitter");
    PERCENT_OF_SATURATION = setting("percent_of_saturation",
        "on a load curve, the offered rate in per cent of the saturation").whole().title("of saturation");
    MEMORY_LOAD = setting("memory_load_percent", "the memory bandwidth that generators on other CPUs draw, in per cent \
                                                  of their peak; 0 is off, empty in a run without such a \
                                                  load").whole().title("memory load").unset("0");
    SCENARIO = setting("scenario", "with several threads, how they share queues: straight-run, fan-in, fan-out or \
        round-robin");
    PRODUCERS = setting("producers", "threads that enqueue; empty in a run of one and one").whole();
    CONSUMERS = setting("consumers", "threads that dequeue; empty in a run of one and one").whole();
    CORES = setting("cores", "what the cores of the two ends share");
    SENDER_CPU = setting("sender_cpu", "CPU of the sender").whole();
    RECEIVER_CPU = setting("receiver_cpu", "CPU of the receiver").whole();
    MEASURE = setting("measure", "what is measured: time, round-trip, throughput or counters");
    MEASURE_FAILED = setting("measure_failed",
        "whether the time of failed attempts belongs to the operation that succeeded at last").data(Data::Flag);
    RETRY = setting("retry", "what an end does between two attempts: none, pause or backoff");
    CLOCK = setting("clock", "clock of all stamps and waits");
    PER_STAMP = setting("per_stamp", "operations of a batch, which are timed together (--per-stamp); empty where each \
        is timed by itself").whole();
    COUNT = setting("count", "elements that are measured in a round; with a duration known once the rate is")
        .whole().over(Over::Median);
    DURATION = setting("duration_ns", "how long a round is measured, by the rate that a short run finds before").whole();
    WARMUP = setting("warmup_ns", "how long elements go through before those that are measured").whole();
    PRIORITY = setting("priority", "SCHED_FIFO priority of both ends; empty without").whole();
}

columns! {
    /// The round.
    OF_A_ROUND;
    OUTCOME = label("outcome",
        "clean, wrong (the queue is broken), gave-up, unjudged (the clock is too coarse) or failed");
    SATURATION = measured("saturation_per_s", "on a load curve, elements in a second that the queue takes at most", 1)
        .better(Better::Higher).title("saturation");
    QUEUE_IS = label("queue_is", "which queue it is, where its name stands for one of several: baton, baton-by-call");
    ELEMENTS_MEASURED = count("elements_measured",
        "elements that the figures are made of: those after the warm-up of clean rounds").title("elements");
}
columns! {
    /// The loops.
    OF_THE_LOOPS;
    ENQUEUE_EACH = measured("enqueue_batch_each_ns",
        "mean of the enqueues of a batch (--per-stamp), in the median batch of those that were timed", 2)
        .with_bounds().title("enqueue batch mean");
    DEQUEUE_EACH = measured("dequeue_batch_each_ns",
        "mean of the dequeues of a batch (--per-stamp), in the median batch of those that were timed", 2)
        .with_bounds().title("dequeue batch mean");
    ENQUEUE_BATCHES = count("enqueue_batches",
        "batches of enqueues that were timed; an attempt that found the queue full ends one without a time");
    DEQUEUE_BATCHES = count("dequeue_batches",
        "batches of dequeues that were timed; an attempt that found the queue empty ends one without a time");
    ENQUEUES_BATCHED = measured("enqueues_in_batches_percent",
        "enqueues of a round that are in batches that were timed: as many in a row as a batch has, of which none found \
         the queue full, unless failed attempts are measured", 1)
        .better(Better::Neither).title("enqueues in batches");
    DEQUEUES_BATCHED = measured("dequeues_in_batches_percent",
        "dequeues of a round that are in batches that were timed: as many in a row as a batch has, of which none found \
         the queue empty, unless failed attempts are measured", 1)
        .better(Better::Neither).title("dequeues in batches");
    THROUGHPUT = measured("throughput_per_s",
        "elements in a second, over the intervals from the first dequeue to the last, by the receiver's clock; of \
         several threads, over the time from the first enqueue to the last dequeue or the last pause", 1)
        .better(Better::Higher).with_bounds().title("through");
    SENT_PER_S = measured("sent_per_s",
        "elements in a second, over the intervals from the begin of the load, with the first enqueue, to the last one, by \
         the sender's clock; of several threads, the sum of theirs", 1).better(Better::Higher);
    THROUGHPUT_MB_S = measured("throughput_mb_s", "bytes of the elements in a second, in 10^6 bytes", 1)
        .better(Better::Higher);
    DEPTH_MEAN = measured("depth_mean", "elements in the queue, on average over time", 2)
        .better(Better::Neither).title("depth");
    DEPTH_MAX = count("depth_max",
        "elements in the queue at most; one more than its capacity while a dequeue has not ended").over(Over::Greatest);
    HANDED_OVER = count("handed_over_enqueues",
        "enqueues of a round whose time holds handing over what the queue had held back").over(Over::Median);
    FAILED_ENQUEUES = count("failed_enqueues", "attempts of a round that found the queue full").over(Over::Median);
    FAILED_DEQUEUES = count("failed_dequeues", "attempts of a round that found the queue empty").over(Over::Median);
    MISSED_ENQUEUES = count("missed_enqueues",
        "enqueues, or groups, of a round that were due when the one before them ended").over(Over::Median);
    MISSED_DEQUEUES = count("missed_dequeues",
        "dequeues, or groups, of a round that were due when the one before them ended").over(Over::Median);
    MEMORY_LOAD_MB_S = measured("memory_load_mb_s", "bytes of the lines that generators of memory load read and stored in a \
        second while the point was measured, in 10^6 bytes; empty without them", 1)
        .better(Better::Neither).title("issued");
    SENDER_STAMP = measured("sender_stamp_ns", "what a time stamp costs the sender", 1);
    RECEIVER_STAMP = measured("receiver_stamp_ns", "what a time stamp costs the receiver", 1);
    CLOCK_OFFSET = measured("clock_offset_ns", "how far the receiver's clock is ahead of the sender's", 1)
        .better(Better::Neither);
    CLOCK_OFFSET_BOUND = measured("clock_offset_bound_ns",
        "the offset lies within so much on either side: half of the shortest round trip between the CPUs", 1)
        .better(Better::Neither);
    RESOLUTION = measured("clock_resolution_ns", "resolution of the clock", 2);
    SENDER_PAGE_FAULTS = count("sender_page_faults", "page faults in the sender's loop; there should be none")
        .better(Better::Lower);
    RECEIVER_PAGE_FAULTS = count("receiver_page_faults", "page faults in the receiver's loop; there should be none")
        .better(Better::Lower);
}

columns! {
    /// How several threads shared a queue.
    SHARES;
    FAIRNESS_PRODUCERS = measured("fairness_producers",
        "Jain's index of the elements by producer: 1 if all put in as many, 1/producers if one put in all", 4)
        .better(Better::Higher).title("producers");
    FAIRNESS_CONSUMERS = measured("fairness_consumers",
        "Jain's index of the elements by consumer: 1 if all took out as many, 1/consumers if one took out all", 4)
        .better(Better::Higher).title("consumers");
    LEAST_PRODUCER = measured("least_producer_percent",
        "what the producer with the fewest elements put in, in per cent of an equal share; in the worst round", 1)
        .better(Better::Higher).over(Over::Least).title("least producer");
    LEAST_CONSUMER = measured("least_consumer_percent",
        "what the consumer with the fewest elements took out, in per cent of an equal share; in the worst round", 1)
        .better(Better::Higher).over(Over::Least).title("least consumer");
    STARVED = count("starved_threads", "threads that had less than 10 % of an equal share; empty where that may be the \
        scheduler's doing, because threads share CPUs and the round was over within 100 ms").better(Better::Lower);
}

/// What is found of a point.
pub const FIGURES: [Column; 4 + 7 * (2 + 13) + 24 + 5 + 8 + 6] = join(&[
    &OF_A_ROUND,
    &[OPERATIONS[0].floor_min, OPERATIONS[0].floor_p50],
    &enqueue::ALL,
    &[OPERATIONS[1].floor_min, OPERATIONS[1].floor_p50],
    &dequeue::ALL,
    &[OPERATIONS[2].floor_min, OPERATIONS[2].floor_p50],
    &latency::ALL,
    &[OPERATIONS[3].floor_min, OPERATIONS[3].floor_p50],
    &intended::ALL,
    &[OPERATIONS[4].floor_min, OPERATIONS[4].floor_p50],
    &round_trip::ALL,
    &[OPERATIONS[5].floor_min, OPERATIONS[5].floor_p50],
    &enqueue_batch::ALL,
    &[OPERATIONS[6].floor_min, OPERATIONS[6].floor_p50],
    &dequeue_batch::ALL,
    &OF_THE_LOOPS,
    &SHARES,
    &COUNTERS,
    &FAULTS,
]);

/// More per cent of the starts being late than this mean that the load asked for was not had.
pub const LATE_PERCENT: f64 = 5.0;

/// Settings that are measured where the one before them is given: the rate of a point on a load curve is a share of
/// what the queue took in that run, and a round with a duration has as many elements as went through.
pub const MEASURED_SETTINGS: [[&str; 2]; 2] = [
    [PERCENT_OF_SATURATION.name, RATE.name],
    [DURATION.name, COUNT.name],
];

/// With fewer per cent of its operations in timed batches the figures of an end are those of a selection.
pub const BATCHED_PERCENT: f64 = 50.0;

/// Whether a sender was late so often that the load asked for was not had: this many of `count` enqueues, or of their
/// groups.
pub fn misses_load(late: f64, count: f64, group: Option<f64>) -> bool {
    100.0 * late > LATE_PERCENT * (count / group.unwrap_or(1.0)).ceil()
}

/// The same of a row, by its numbers; none of a row without a load.
pub fn row_misses_load(number: impl Fn(&str) -> Option<f64>) -> bool {
    let of = |column: &Column| number(column.name);
    let late = of(&MISSED_ENQUEUES).zip(of(&COUNT));
    late.is_some_and(|(late, count)| misses_load(late, count, of(&GROUP)))
}

/// A thread with less than this many per cent of an equal share is starved.
pub const STARVED_PERCENT: f64 = 10.0;

/// The columns of an element.
pub mod element {
    use super::{Better, Column, Data, columns};

    columns! {
        /// All of it, behind the round.
        ALL;
        SEQ = label("seq", "the element's number in its round, from 0").data(Data::Whole);
        INTENDED = measured("t_intended_ns", "when it was meant to be enqueued", 0).whole().better(Better::Neither);
        STAMP = measured("t_stamp_ns", "what it carried: read before the first attempt to enqueue it", 0)
            .whole().better(Better::Neither);
        ENQUEUE = measured("t_enqueue_ns", "read before the enqueue that succeeded", 0)
            .whole().better(Better::Neither);
        ENQUEUED = measured("t_enqueued_ns",
            "read after it; moved by as long as handing over took, where that belongs to it", 0)
            .whole().better(Better::Neither);
        DEQUEUE = measured("t_dequeue_ns", "read before the dequeue that succeeded", 0)
            .whole().better(Better::Neither);
        DEQUEUED = measured("t_dequeued_ns", "read after it", 0).whole().better(Better::Neither);
        LATENCY = measured("latency_ns", "from t_stamp to t_dequeued", 0).whole();
    }
}

/// A point's elements, one row each.
pub const ELEMENTS: SampleFile = SampleFile {
    name: "elements.csv",
    columns: &join::<9>(&[&[ROUND], &element::ALL]),
    counted_by: ELEMENTS_MEASURED,
    meaning: "a row an element, with --elements",
};

columns! {
    /// The settings of a run.
    RUN;
    SEED = setting("seed", "what the jitter of the loads follows from").whole();
    TIMEOUT = setting("timeout_ns", "time without progress after which a queue has given up").whole();
    HUGE_PAGES = setting("hugepages", "whether stamps must, may or must not lie in huge pages");
    ROWS_OF_ELEMENTS = setting("elements", "whether the stamps of each element are written").data(Data::Flag);
}

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "queue",
    title: "queue",
    run: &join::<{ RUN.len() + 2 }>(&[&RUN, &[FIND_RATE, HLOG_INTERVAL]]),
    point: &POINT,
    figures: &FIGURES,
    samples: &[ELEMENTS],
    across: None,
    searched: Some(SearchedRate {
        rate: RATE,
        follow: &[COUNT],
        latency: &intended::ALL,
        delivered: None,
        sent: (SENT_PER_S, Some(PRODUCERS)),
    }),
    headline: [ELEMENTS_MEASURED, latency::P50, latency::P99],
};
