//! The HCA benchmark.

use super::{Better, Column, Data, Over, ROUND, SampleFile, Schema, join};
use crate::distribution_columns;

/// Service type.
pub const SERVICE: Column = Column::setting("service", "service type: rc, uc or ud");
/// Operation.
pub const OPERATION: Column = Column::setting("operation", "operation: send or write");
/// Message size.
pub const SIZE: Column = Column::setting("size_bytes", "bytes of a message")
    .whole()
    .title("size");
/// Messages of a burst.
pub const BURST: Column = Column::setting("burst", "messages of a burst").whole();
/// Inline data.
pub const INLINE: Column =
    Column::setting("inline", "whether the data is copied into the work request");
/// Signalling.
pub const UNSIGNALED: Column = Column::setting(
    "unsignaled",
    "whether only the last message of a queue's length is signalled",
);
/// Poll mode of the receiver.
pub const POLL_RECV: Column =
    Column::setting("poll_recv", "how the receiver waits: busy or event").title("recv");
/// Poll mode of the sender's completions.
pub const POLL_COMP: Column =
    Column::setting("poll_comp", "how send completions are waited for").title("comp");
/// Pause between two posts.
pub const PAUSE: Column = Column::setting("pause_ns", "time between two posts")
    .whole()
    .title("pause");
/// What the receiver is away for.
pub const RECEIVER_PAUSE: Column = Column::setting(
    "receiver_pause_ns",
    "time the receiver is away for before each look at its completion queue",
)
.whole()
.title("recv pause");
/// Which moment is stamped.
pub const TIMESTAMP: Column =
    Column::setting("timestamp", "the moment that latency counts from").title("stamp");
/// Clock.
pub const CLOCK: Column = Column::setting("clock", "clock of all stamps");
/// Messages before the measured ones.
pub const WARMUP: Column =
    Column::setting("warmup", "messages before the measured ones of a point").whole();
/// Bursts in a round.
pub const REPEAT: Column = Column::setting("repeat", "bursts in a round").whole();

/// Messages posted.
pub const SENT: Column = Column::count(
    "messages_sent",
    "messages posted; without those that were under way when a signal ended the burst",
)
.title("sent");
/// Messages received.
pub const RECEIVED: Column =
    Column::count("messages_received", "messages received whole").title("received");
/// Messages lost.
pub const LOST: Column = Column::count("messages_lost", "messages sent that did not arrive")
    .better(Better::Lower)
    .title("lost");
/// Messages corrupted.
pub const CORRUPTED: Column = Column::count(
    "messages_corrupted",
    "messages that arrived with other bytes than were sent",
)
.better(Better::Lower)
.title("bad");
/// Messages that came twice.
pub const DUPLICATED: Column = Column::count(
    "messages_duplicated",
    "arrivals of a message that had arrived",
)
.better(Better::Lower);
/// Messages that came after their burst.
pub const LATE: Column =
    Column::count("messages_late", "arrivals after the end of their burst").better(Better::Lower);
/// Messages of others.
pub const FOREIGN: Column = Column::count(
    "messages_foreign",
    "arrivals that this run did not send: of another queue pair, or with a number that was never posted",
)
.better(Better::Lower)
.title("foreign");
/// Failed send completions.
pub const FAILED_COMPLETIONS: Column = Column::count(
    "failed_completions",
    "send requests that completed with an error",
)
.better(Better::Lower);
/// Share of messages received.
pub const DELIVERY_RATE: Column = Column::measured(
    "delivery_rate",
    6,
    "share of the messages that were received, of 1",
)
.better(Better::Higher);
/// Send completions.
pub const COMPLETIONS: Column = Column::count("completions", "send completions with a stamp");
/// Rate of posting.
pub const POST_RATE: Column = Column::measured("post_rate_per_s", 1, "messages posted in a second")
    .better(Better::Higher)
    .title("posts");
/// Page faults.
pub const PAGE_FAULTS: Column = Column::count(
    "loop_page_faults",
    "page faults in the loops; there should be none",
)
.better(Better::Lower);
/// Cost of a stamp.
pub const STAMP_COST: Column =
    Column::measured("stamp_cost_ns", 1, "what a time stamp costs").over(Over::Median);
/// Resolution of the clock.
pub const RESOLUTION: Column =
    Column::measured("clock_resolution_ns", 1, "resolution of the clock");
/// Median of the floor.
pub const FLOOR_P50: Column = Column::measured(
    "floor_p50_ns",
    1,
    "median of the floor: the same loops over shared memory between the same CPUs",
);
/// 99th percentile of the floor.
pub const FLOOR_P99: Column = Column::measured("floor_p99_ns", 1, "99th percentile of the floor");

distribution_columns!(
    /// One-way latency.
    latency, "latency", "", "one-way latency"
);
distribution_columns!(
    /// Completion latency.
    completion, "completion_latency", "comp ", "completion latency"
);

/// The settings of a point.
pub const POINT: [Column; 14] = [
    SERVICE,
    OPERATION,
    SIZE,
    BURST,
    INLINE,
    UNSIGNALED,
    POLL_RECV,
    POLL_COMP,
    PAUSE,
    RECEIVER_PAUSE,
    TIMESTAMP,
    CLOCK,
    WARMUP,
    REPEAT,
];

const COUNTS: [Column; 9] = [
    SENT,
    RECEIVED,
    LOST,
    CORRUPTED,
    DUPLICATED,
    LATE,
    FOREIGN,
    FAILED_COMPLETIONS,
    DELIVERY_RATE,
];
const INSTRUMENT: [Column; 6] = [
    POST_RATE,
    PAGE_FAULTS,
    STAMP_COST,
    RESOLUTION,
    FLOOR_P50,
    FLOOR_P99,
];

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
