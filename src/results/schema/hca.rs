//! The HCA benchmark.

use super::{Better, Column, Data, Over, ROUND, SampleFile, Schema, columns, join};
use crate::distribution_columns;

/// Send completions.
pub const COMPLETIONS: Column = Column::count("completions", "send completions with a stamp");

distribution_columns!(
    /// One-way latency.
    latency, "latency", "", "one-way latency"
);
distribution_columns!(
    /// Completion latency.
    completion, "completion_latency", "comp ", "completion latency"
);

columns! {
    /// The settings of a point.
    POINT;
    SERVICE = setting("service", "service type: rc, uc or ud");
    OPERATION = setting("operation", "operation: send or write");
    SIZE = setting("size_bytes", "bytes of a message").whole().title("size");
    BURST = setting("burst", "messages of a burst").whole();
    INLINE = setting("inline", "whether the data is copied into the work request");
    UNSIGNALED = setting("unsignaled", "whether only the last message of a queue's length is signalled");
    POLL_RECV = setting("poll_recv", "how the receiver waits: busy or event").title("recv");
    POLL_COMP = setting("poll_comp", "how send completions are waited for").title("comp");
    PAUSE = setting("pause_ns", "time between two posts").whole().title("pause");
    RECEIVER_PAUSE = setting("receiver_pause_ns",
        "time the receiver is away for before each look at its completion queue").whole().title("recv pause");
    TIMESTAMP = setting("timestamp", "the moment that latency counts from").title("stamp");
    CLOCK = setting("clock", "clock of all stamps");
    WARMUP = setting("warmup", "messages before the measured ones of a point").whole();
    REPEAT = setting("repeat", "bursts in a round").whole();
}

columns! {
    /// What was counted.
    COUNTS;
    SENT = count("messages_sent", "messages posted; without those that were under way when a signal ended the burst")
        .title("sent");
    RECEIVED = count("messages_received", "messages received whole").title("received");
    LOST = count("messages_lost", "messages sent that did not arrive").better(Better::Lower).title("lost");
    CORRUPTED = count("messages_corrupted", "messages that arrived with other bytes than were sent")
        .better(Better::Lower).title("bad");
    DUPLICATED = count("messages_duplicated", "arrivals of a message that had arrived").better(Better::Lower);
    LATE = count("messages_late", "arrivals after the end of their burst").better(Better::Lower);
    FOREIGN = count("messages_foreign",
        "arrivals that this run did not send: of another queue pair, or with a number that was never posted")
        .better(Better::Lower).title("foreign");
    FAILED_COMPLETIONS = count("failed_completions", "send requests that completed with an error")
        .better(Better::Lower);
    DELIVERY_RATE = measured("delivery_rate", "share of the messages that were received, of 1", 6)
        .better(Better::Higher);
}
columns! {
    /// The instrument, and what disturbed it.
    INSTRUMENT;
    POST_RATE = measured("post_rate_per_s", "messages posted in a second", 1).better(Better::Higher).title("posts");
    PAGE_FAULTS = count("loop_page_faults", "page faults in the loops; there should be none").better(Better::Lower);
    STAMP_COST = measured("stamp_cost_ns", "what a time stamp costs", 1).over(Over::Median);
    RESOLUTION = measured("clock_resolution_ns", "resolution of the clock", 1);
    FLOOR_P50 = measured("floor_p50_ns",
        "median of the floor: the same loops over shared memory between the same CPUs", 1);
    FLOOR_P99 = measured("floor_p99_ns", "99th percentile of the floor", 1);
}

/// What is found of a point.
pub const FIGURES: [Column; 9 + 13 + 1 + 13 + 6] = join(&[
    &COUNTS,
    &latency::ALL,
    &[COMPLETIONS],
    &completion::ALL,
    &INSTRUMENT,
]);

/// A message's columns.
pub const MESSAGE_COLUMNS: [Column; 9] = [
    ROUND,
    Column::label("repeat", "the burst in its round, from 0").data(Data::Whole),
    Column::label("seq", "the message's number in its burst, from 0").data(Data::Whole),
    Column::measured(
        "t_subm_ns",
        0,
        "read right before the work request is posted",
    )
    .whole(),
    Column::measured("t_send_ns", 0, "rewritten until the HCA reads the memory").whole(),
    Column::measured(
        "t_recv_ns",
        0,
        "read right after the receive completion was taken",
    )
    .whole(),
    Column::measured(
        "t_comp_ns",
        0,
        "read right after the send completion was taken",
    )
    .whole(),
    Column::measured(
        "latency_ns",
        0,
        "one-way latency: from t_subm, or t_send, to t_recv",
    )
    .whole(),
    Column::measured("completion_latency_ns", 0, "from t_subm to t_comp").whole(),
];

/// A point's messages, one row each.
pub const MESSAGES: SampleFile = SampleFile {
    name: "messages.csv",
    columns: &MESSAGE_COLUMNS,
    counted_by: SENT,
    meaning: "a row a message; empty where nothing was measured",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "hca",
    title: "HCA",
    point: &POINT,
    figures: &FIGURES,
    samples: &[MESSAGES],
    headline: [RECEIVED, latency::P50, latency::P99],
};
