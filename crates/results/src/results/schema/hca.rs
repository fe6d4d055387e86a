//! The HCA benchmark.

use super::{Better, Column, Data, FIND_RATE, Over, ROUND, SampleFile, Schema, SearchedRate};
use super::{columns, distribution_columns, join};
use crate::results::finding::{Finding, kinds};

/// Send completions.
pub const COMPLETIONS: Column = Column::count(
    "completions",
    "send completions with a stamp: of reads and atomics all that is counted",
);

distribution_columns!(
    /// One-way latency.
    latency, "latency", "", "one-way latency"
);
distribution_columns!(
    /// Completion latency.
    completion, "completion_latency", "comp ", "completion latency"
);
distribution_columns!(
    /// Latency from the intended time.
    intended, "intended_latency", "intended ", "latency from when a message was meant to be posted"
);

columns! {
    /// The settings of a run.
    RUN;
    TIMEOUT = setting("timeout_ns", "time without an arrival after which what is missing counts as lost").whole();
    WARMUP_TIME = setting("warmup_ns", "time before the measured messages of each point").whole();
    PRIORITY = setting("priority", "SCHED_FIFO priority of the measuring threads").whole();
    HUGE_PAGES = setting("hugepages", "whether buffers must, may or must not lie in huge pages");
    COMP_VECTOR = setting("comp_vector", "completion vectors of sender and receiver, as asked for");
    HW_TIMESTAMPS = setting("hw_timestamps", "whether adapters stamp completions by their own clock").data(Data::Flag)
        .unset("false");
    ALLOW_IDLE_STATES = setting("allow_idle_states", "whether idle CPUs may sleep deeply").data(Data::Flag);
    UC_ROUTE = setting("uc_route", "how UC is connected, as asked for");
    SENDER = setting("sender", "the sender's port, as asked for");
    RECEIVER = setting("receiver", "the receiver's port, as asked for");
    SENDER_CPU = setting("sender_cpu", "CPU of the sending thread, as asked for").whole();
    RECEIVER_CPU = setting("receiver_cpu", "CPU of the receiving thread, as asked for").whole();
    COMPLETION_CPU = setting("completion_cpu", "CPU of the completion thread, as asked for").whole();
    STAMP_CPU = setting("stamp_cpu", "CPU of the thread that rewrites stamps, as asked for").whole();
    BACKGROUND_CPU = setting("background_cpu", "CPU of the thread in the background, as asked for").whole();
    SEED = setting("seed", "what the times of Poisson arrivals follow from, with the number of the round").whole();
    TSC_RATE = setting("tsc_khz", "rate of the TSC, as given").whole();
}

columns! {
    /// The settings of a point.
    POINT;
    SERVICE = setting("service", "service type: rc, uc or ud");
    OPERATION = setting("operation", "operation: send, write, write-polled, read, compare-swap or fetch-add");
    SIZE = setting("size_bytes", "bytes of a message").whole().title("size");
    BURST = setting("burst", "messages of a burst").whole();
    INLINE = setting("inline", "whether the data is copied into the work request");
    UNSIGNALED = setting("unsignaled", "whether only the last message of a queue's length is signalled");
    POLL_RECV = setting("poll_recv", "how the receiver waits: busy or event").title("recv");
    POLL_COMP = setting("poll_comp", "how send completions are waited for").title("comp");
    PAUSE = setting("pause_ns", "time between two posts; empty where they are posted at a rate").whole().title("pause");
    RATE = setting("rate_per_s", "messages posted in a second, as asked for; empty with a pause").whole().title("rate");
    ARRIVALS = setting("arrivals", "how posts at a rate are spread over time: constant or poisson");
    RECEIVER_PAUSE = setting("receiver_pause_ns",
        "time the receiver is away for before each look at its completion queue").whole().title("recv pause");
    TIMESTAMP = setting("timestamp", "the moment that latency counts from").title("stamp");
    CLOCK = setting("clock", "clock of all stamps");
    CONNECT = setting("connect", "how the queue pairs are connected: cm or direct");
    GID_INDEX = setting("gid_index", "index of the GID, where it was asked for").whole();
    SERVICE_LEVEL = setting("service_level", "service level, where it was asked for").whole();
    TRAFFIC_CLASS = setting("traffic_class", "traffic class, where it was asked for").whole();
    PATH_MTU = setting("path_mtu_bytes", "largest payload of a packet, where it was asked for").whole()
        .title("path mtu");
    PKEY_INDEX = setting("pkey_index", "index of the partition key, where it was asked for").whole();
    FLOW_LABEL = setting("flow_label", "flow label, where it was asked for").whole();
    RETRY_COUNT = setting("retry_count", "repetitions of a packet without an answer, where it was asked for").whole();
    RNR_RETRY = setting("rnr_retry",
        "repetitions when the receiver has no request posted, where it was asked for").whole();
    QP_TIMEOUT = setting("qp_timeout",
        "exponent of the time until a packet is sent again, where it was asked for").whole();
    QUEUE_PAIRS = setting("queue_pairs", "queue pairs that the messages are spread over in turn").whole().unset("1");
    SRQ = setting("srq", "whether the receiver's queue pairs take receive requests from one shared receive queue; \
                          empty in a run without one").title("srq").unset("off");
    RELAXED_ORDERING = setting("relaxed_ordering", "whether the messages' memory was registered for relaxed ordering \
                                                    of PCI Express; empty in a run without it").unset("off");
    ODP = setting("odp", "whether the messages' memory is paged on demand; empty in a run without it").title("odp")
        .unset("off");
    THREAD_DOMAIN = setting("thread_domain",
        "whether the queue pairs of each end belong to a thread domain; empty in a run without one").unset("off");
    DEPTH = setting("depth", "messages in flight at most; empty where it is the burst").whole();
    WARMUP = setting("warmup", "messages before the measured ones of a point, in whole bursts; none where it was a time")
        .whole();
    REPEAT = setting("repeat", "bursts in a round").whole();
    BACKGROUND = setting("background",
        "what is sent in the background: 0, or messages a second, @, bytes of each, and x with the queue pairs, if several")
        .unset("0");
    BACKGROUND_TRAFFIC = setting("background_traffic",
        "whether the background sends: sent, or none where its thread only copies as much in memory; empty without one")
        .title("bg traffic");
    BACKGROUND_THREAD = setting("background_thread",
        "where the thread in the background runs: own-cpu, or cpu-shared on that of a measuring thread; empty without one")
        .title("bg thread");
    MEMORY_LOAD = setting("memory_load_percent", "the memory bandwidth that generators on other CPUs draw, in per cent \
                                                  of their peak; 0 is off, empty in a run without such a \
                                                  load").whole().title("memory load").unset("0");
}

columns! {
    /// What was counted.
    COUNTS;
    SENT = count("messages_sent", "messages posted; without those that were under way when a signal ended the burst")
        .title("sent");
    RECEIVED = count("messages_received",
        "messages received whole; empty for reads and atomics, of which nothing arrives").title("received");
    LOST = count("messages_lost", "messages sent that did not arrive").better(Better::Lower).title("lost");
    CORRUPTED = count("messages_corrupted",
        "messages that arrived with other bytes than were sent, or reads and atomics that brought back other ones")
        .better(Better::Lower).title("bad");
    DUPLICATED = count("messages_duplicated", "arrivals of a message that had arrived").better(Better::Lower);
    LATE = count("messages_late", "arrivals after the end of their burst").better(Better::Lower);
    FOREIGN = count("messages_foreign",
        "arrivals that this run did not send: of another queue pair, or with a number that was never posted")
        .better(Better::Lower).title("foreign");
    FAILED_COMPLETIONS = count("failed_completions", "send requests that completed with an error")
        .better(Better::Lower);
    NOT_RESTAMPED = count("messages_not_restamped",
        "messages received before their stamp was rewritten: they have no t_send and no latency")
        .better(Better::Lower);
    DELIVERY_RATE = measured("delivery_rate", "share of the messages that were received, of 1", 6)
        .better(Better::Higher);
}
columns! {
    /// How far messages queued, and came late.
    QUEUEING;
    MISSED_STEPS = count("missed_steps",
        "messages whose intended time had passed by more than the mean time from post to post when they were posted; \
         empty without a rate").better(Better::Lower).title("missed");
    IN_FLIGHT_P50 = measured("in_flight_p50",
        "median number of messages in flight when one was posted: posted before it in its burst and not yet received, or \
         for reads and atomics not yet completed; lost ones do not count", 1)
        .better(Better::Neither).title("in flight p50");
    IN_FLIGHT_MAX = measured("in_flight_max", "most messages in flight when one was posted", 0)
        .whole().over(Over::Greatest).better(Better::Neither).title("in flight max");
    ALONE_SHARE = measured("alone_share", "share of the messages that were posted when no other was in flight, of 1", 6)
        .better(Better::Neither).title("alone");
    LATENCY_ALONE_P50 = measured("latency_alone_p50_ns",
        "median one-way latency of the messages that were posted when no other was in flight", 1)
        .better(Better::Neither).title("p50 alone");
}
columns! {
    /// The instrument, and what disturbed it.
    INSTRUMENT;
    POST_RATE = measured("post_rate_per_s",
        "messages posted in a second, over the intervals from the first of a burst, or when it was due, to the last", 1)
        .better(Better::Higher).title("posts");
    PAGE_FAULTS = count("loop_page_faults", "page faults in the loops; there should be none").better(Better::Lower);
    STAMP_COST = measured("stamp_cost_ns", "what a time stamp costs", 1).over(Over::Median);
    RESOLUTION = measured("clock_resolution_ns", "resolution of the clock", 1);
    STAMP_REFRESH = measured("stamp_refresh_ns",
        "mean time between two rewritings of a message's stamp, which is the maximum age of t_send; empty if unknown",
        1);
    FLOOR_P50 = measured("floor_p50_ns",
        "median of the floor: the same loops over shared memory between the same CPUs", 1);
    FLOOR_P99 = measured("floor_p99_ns", "99th percentile of the floor", 1);
    FLOOR_BACK_P50 = measured("floor_back_p50_ns", "median of the floor from the receiver's CPU to the sender's", 1);
    CLOCK_OFFSET = measured("clock_offset_ns", "how far the receiver's clock is ahead of the sender's", 1);
    CLOCK_OFFSET_BOUND = measured("clock_offset_bound_ns",
        "the offset lies within so much on either side: half of the shortest round trip between the CPUs", 1);
}

columns! {
    /// The path, by the counters of the ports. Empty where the driver does not count it.
    PATH;
    PACKETS_SENT = count("packets_sent", "packets of any kind that left the sender's port during the bursts");
    PACKETS_RECEIVED = count("packets_received", "packets of any kind that came to the receiver's port during them");
    RETRANSMISSIONS = count("retransmissions", "how often the sender's adapter had reason to send again")
        .better(Better::Lower).title("resent");
    CONGESTION_NOTIFICATIONS = count("congestion_notifications",
        "congestion notifications that made the sender slower").better(Better::Lower);
    SENDER_WAIT = count("sender_wait_ticks",
        "ticks in which the sender's port had something to send and did not").better(Better::Lower);
    SENDER_PORT_ERRORS = count("sender_port_errors", "errors that the sender's port counted").better(Better::Lower);
    RECEIVER_PORT_ERRORS = count("receiver_port_errors", "errors that the receiver's port counted")
        .better(Better::Lower);
    PORT_COUNTERS = count("port_counters", "rows of counters.csv");
}

columns! {
    /// What others did during the bursts: messages in the background, and memory load.
    IN_BACKGROUND;
    BACKGROUND_OFFERED = measured("background_offered_bytes_per_s",
        "bytes a second that were to be sent in the background", 0).better(Better::Neither).title("bg offered");
    BACKGROUND_DELIVERED = measured("background_delivered_bytes_per_s",
        "bytes a second of it that were sent and acknowledged", 0).better(Better::Neither).title("bg delivered");
    BACKGROUND_COMPLETED = count("background_completed",
        "messages in the background that completed; where none are sent, copies in memory");
    BACKGROUND_MISSED = count("background_missed",
        "messages in the background that were not posted, because as many as may be were in flight")
        .better(Better::Lower);
    MEMORY_LOAD_MB_S = measured("memory_load_mb_s", "bytes of the lines that generators of memory load read and stored in a \
        second while the point was measured, in 10^6 bytes; empty without them", 1)
        .better(Better::Neither).title("issued");
}

/// The columns of what lies between the adapter's stamp of a completion and ours, at one end.
macro_rules! lag_columns {
    ($(#[$outer:meta])* $module:ident, $prefix:literal, $title:literal, $ours:literal) => {
        $(#[$outer])*
        pub mod $module {
            use super::{Better, Column, Over, columns};

            columns! {
                /// All of them.
                ALL;
                MIN = measured(concat!($prefix, "_min_ns"),
                    concat!("least time from the adapter's stamp of a completion to ", $ours,
                        "; all of these are empty without --hw-timestamps"), 0)
                    .over(Over::Least).title(concat!($title, "min"));
                P50 = measured(concat!($prefix, "_p50_ns"), "median of that time", 1)
                    .title(concat!($title, "p50"));
                P90 = measured(concat!($prefix, "_p90_ns"), "90th percentile of that time", 1)
                    .title(concat!($title, "p90"));
                P99 = measured(concat!($prefix, "_p99_ns"), "99th percentile of that time", 1)
                    .title(concat!($title, "p99"));
                P999 = measured(concat!($prefix, "_p999_ns"), "99.9th percentile of that time", 1)
                    .title(concat!($title, "p99.9"));
                MAX = measured(concat!($prefix, "_max_ns"), "greatest of these times", 0)
                    .over(Over::Greatest).title(concat!($title, "max"));
                ERROR = measured(concat!($prefix, "_error_ns"),
                    "by how much a stamp of the adapter may be off, converted to the run's clock", 0)
                    .over(Over::Greatest).title(concat!($title, "within"));
                MISSING = count(concat!($prefix, "_missing"), "completions without a stamp of the adapter")
                    .better(Better::Lower);
                OUTSIDE = count(concat!($prefix, "_outside"),
                    "completions whose stamp lies outside of their burst; they are in none of these times")
                    .better(Better::Lower);
                TOO_LATE = count(concat!($prefix, "_too_late"),
                    concat!("stamps of the adapter that are later than ", $ours, " by more than they may be off"))
                    .better(Better::Lower);
            }
        }
    };
}

lag_columns!(
    /// At the receiver.
    recv_lag, "recv_lag", "hw to t_recv ", "t_recv"
);
lag_columns!(
    /// At the sender.
    comp_lag, "comp_lag", "hw to t_comp ", "t_comp"
);

/// What is found of a point.
pub const FIGURES: [Column; 10 + 13 + 1 + 13 + 13 + 5 + 8 + 10 + 5 + 10 + 10] = join(&[
    &COUNTS,
    &latency::ALL,
    &[COMPLETIONS],
    &completion::ALL,
    &intended::ALL,
    &QUEUEING,
    &PATH,
    &INSTRUMENT,
    &IN_BACKGROUND,
    &recv_lag::ALL,
    &comp_lag::ALL,
]);

/// The columns of a message.
pub mod message {
    use super::{Better, Column, Data, columns};

    columns! {
        /// All of it, behind the round.
        ALL;
        REPEAT = label("repeat", "the burst in its round, from 0").data(Data::Whole);
        SEQ = label("seq", "the message's number in its burst, from 0").data(Data::Whole);
        INTENDED = measured("t_intended_ns", "when it was meant to be posted; empty without a rate", 0)
            .whole().better(Better::Neither);
        SUBMITTED = measured("t_subm_ns", "read right before the work request is posted", 0).whole();
        SENT = measured("t_send_ns", "rewritten until the HCA reads the memory", 0).whole();
        RECEIVED = measured("t_recv_ns",
            "read right after the receive completion was taken, or the message seen in memory", 0).whole();
        COMPLETED = measured("t_comp_ns", "read right after the send completion was taken", 0).whole();
        IN_FLIGHT = measured("in_flight",
            "messages of its burst that were posted before it and received after its t_subm, reads and atomics completed; \
             lost ones do not count", 0)
            .whole().better(Better::Neither);
        LATENCY = measured("latency_ns", "one-way latency: from t_subm, or t_send, to t_recv", 0).whole();
        COMPLETION_LATENCY = measured("completion_latency_ns", "from t_subm to t_comp", 0).whole();
        HW_RECEIVED = measured("t_recv_hw_ns",
            "the receiving adapter's stamp of the receive completion, converted; empty without --hw-timestamps", 0)
            .whole();
        HW_COMPLETED = measured("t_comp_hw_ns",
            "the sending adapter's stamp of the send completion, converted; empty without --hw-timestamps", 0).whole();
    }
}

/// A point's messages, one row each.
pub const MESSAGES: SampleFile = SampleFile {
    name: "messages.csv",
    columns: &join::<13>(&[&[ROUND], &message::ALL]),
    counted_by: SENT,
    meaning: "a row a message; empty where nothing was measured",
};

/// By how much the counters of both ports grew, one row each.
pub const COUNTERS: SampleFile = SampleFile {
    name: "counters.csv",
    columns: &[
        ROUND,
        Column::label("end", "whose port it is: sender or receiver"),
        Column::label("counter", "the counter, by its folder and name in sysfs"),
        Column::count("difference", "by how much it grew during the bursts"),
    ],
    counted_by: PORT_COUNTERS,
    meaning: "a row a counter of either port",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "hca",
    title: "HCA",
    run: &join::<{ RUN.len() + 1 }>(&[&RUN, &[FIND_RATE]]),
    point: &POINT,
    figures: &FIGURES,
    samples: &[MESSAGES, COUNTERS],
    across: None,
    searched: Some(SearchedRate {
        rate: RATE,
        follow: &[],
        latency: &intended::ALL,
        delivered: Some((RECEIVED, SENT)),
        sent: (POST_RATE, None),
    }),
    headline: [RECEIVED, latency::P50, latency::P99],
};

/// Above this the floor's median shows that something else had the CPUs: two stamps and a cache line that changes hands
/// take less than a microsecond, and a few where instructions are emulated.
const HIGHEST_FLOOR_NS: f64 = 10_000.0;
/// Above this share of the median latency the floor's median is most of what was measured.
const LARGEST_SHARE: f64 = 0.5;

/// Why figures are in doubt where the floor is above 10 us or above half of the latency, by their medians in
/// nanoseconds.
pub fn doubt_of_floor(floor: f64, latency: Option<f64>) -> Option<Finding> {
    let found = if floor > HIGHEST_FLOOR_NS {
        Finding::of(&kinds::FLOOR_TOO_HIGH)
    } else {
        let latency = latency.filter(|latency| floor > LARGEST_SHARE * latency)?;
        Finding::of(&kinds::FLOOR_NEAR_LATENCY).measure("latency_ns", latency)
    };
    Some(found.measure("floor_ns", floor))
}

/// Above this share of the median latency the clocks of the two CPUs differ too much for it.
const LARGEST_SHARE_OF_CLOCKS: f64 = 0.25;

/// Why latencies are uncertain, where the clocks of the two CPUs may differ by more than a quarter of the median
/// latency: their offset and its bound, and the latency, in nanoseconds.
pub fn doubt_of_clocks(offset: f64, bound: f64, latency: f64) -> Option<Finding> {
    let most = offset.abs() + bound;
    (most > LARGEST_SHARE_OF_CLOCKS * latency).then(|| {
        Finding::of(&kinds::CLOCKS_MAY_DIFFER)
            .measure("most_ns", most)
            .measure("latency_ns", latency)
            .measure("offset_ns", offset)
            .measure("bound_ns", bound)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn clocks_that_may_differ_by_more_than_a_quarter_of_the_latency_are_told() {
        for (offset, bound, latency, told) in [
            (0.0, 250.0, 1000.0, false),
            (0.0, 251.0, 1000.0, true),
            (-200.0, 60.0, 1000.0, true),
            (200.0, 60.0, 1100.0, false),
        ] {
            let doubt = doubt_of_clocks(offset, bound, latency);
            assert_eq!(doubt.is_some(), told, "{doubt:?}");
        }
        let doubt = doubt_of_clocks(-300.0, 100.0, 1000.0).unwrap();
        assert_eq!(doubt.kind, kinds::CLOCKS_MAY_DIFFER.id);
        let text = doubt.line(1);
        text.has(&["up to 400 ns", "p50 1.00 us", "-300 ns within 100 ns"]);
    }

    #[test]
    fn a_floor_above_ten_microseconds_or_half_of_the_latency_is_not_believed() {
        let (busy, most) = (kinds::FLOOR_TOO_HIGH.id, kinds::FLOOR_NEAR_LATENCY.id);
        for (floor, latency, told) in [
            (200.0, Some(400.0), None),
            (10_000.0, Some(20_000.0), None),
            (0.0, Some(0.0), None),
            (8e6, Some(2.8e6), Some(("8.00 ms", busy))),
            (10_001.0, None, Some(("10.0 us", busy))),
            // Of a latency that is a little more than the loops themselves.
            (201.0, Some(400.0), Some(("201 ns", most))),
        ] {
            let found = doubt_of_floor(floor, latency);
            assert_eq!(found.is_some(), told.is_some(), "{found:?}");
            if let (Some(found), Some((floor, kind))) = (found, told) {
                assert_eq!(found.kind, kind);
                found.problem.has(&[&format!("p50 {floor}")]);
            }
        }
    }
}
