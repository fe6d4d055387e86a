//! The node benchmark.

use super::{
    Better, Column, Data, FIND_RATE, HLOG_INTERVAL, Over, ROUND, SampleFile, Schema, SearchedRate,
};
use super::{columns, distribution_columns, join};

columns! {
    /// The settings of a point.
    POINT;
    TYPE = setting("type", "the node-type");
    SERVICE = setting("service", "the service type of the node-type infiniband; empty for others");
    SCENARIO = setting("scenario", "who is wired to whom: straight-run, fan-in, fan-out or round-robin");
    PUBLISHERS = setting("publishers", "ends that send").whole();
    SUBSCRIBERS = setting("subscribers", "ends that receive").whole();
    ENDS = setting("ends", "what ends are: threads (of one process) or processes");
    RATE = setting("rate_per_s", "samples that each publisher is to send in a second").data(Data::Number(3))
        .title("rate");
    VALUES = setting("values", "values of a sample, of 8 bytes").whole();
    SAMPLE = setting("sample_bytes", "bytes of a sample: stamp, number and values").whole().title("sample");
    DISTRIBUTED_BY = setting("distributed_by",
        "who sends a sample to its subscribers, or chooses one: sender, network, library or broker");
    QOS = setting("qos", "the quality of service of the node-type mqtt: 0, 1 or 2; empty for others").data(Data::Whole);
    TCP_NODELAY = setting("tcp_nodelay", "whether TCP_NODELAY is set; tcp only, as the next one").data(Data::Flag);
    TCP_BUSY_POLL = setting("tcp_busy_poll_ns", "time for which a read polls the device's queue (SO_BUSY_POLL)").whole();
    REDIS_KIND = setting("redis_kind", "by what the node-type redis passes samples on: pubsub or streams; empty for \
        others");
    UNIX_SOCKET = setting("unix_socket", "the sockets of the node-type unix: stream or seqpacket; empty for others");
    MULTICAST_INTERFACE = setting("multicast_interface", "the interface of the node-type multicast; empty for others");
    TIMER = setting("timer", "what publishers wait for: tsc (the counter is read again and again; counter on \
        aarch64) or timerfd");
    POLL = setting("poll", "how subscribers wait: busy or event");
    AFTER_MISS = setting("after_miss", "what becomes of steps that were due while a publisher was busy: skip or \
        catch-up");
    VECTORIZE = setting("vectorize", "samples that a subscriber takes in one call at most").whole();
    SEND_QUEUE = setting("send_queue", "samples that may be on their way to be sent").whole();
    RECEIVE_QUEUE = setting("receive_queue", "samples that there is room for before they are read").whole();
    INLINE = setting("inline", "whether samples are copied into their work requests; infiniband only, as the next two")
        .data(Data::Flag);
    SIGNAL_EVERY = setting("signal_every", "one of this many inline samples is signalled, and not inline; empty if \
                                            none is inline").whole();
    RECEIVE_THRESHOLD = setting("receive_threshold", "receive requests that are posted before a subscriber looks for \
        samples").whole();
    STEPS = setting("steps", "steps of each publisher that count, in a round").whole();
    WARMUP = setting("warmup_ns", "time before them, at the same rate").whole();
}

distribution_columns!(
    /// The latency of a sample.
    latency, "latency", "", "latency from the stamp of a sample to when it was read"
);
distribution_columns!(
    /// The latency from the intended time.
    intended, "intended_latency", "", "latency from when a sample was meant to be sent"
);

columns! {
    /// The latency as benchmarks of messaging report it: of a histogram from 1 us to 10 s with three digits, in which
    /// what is negative counts as 0 and what is longer as 10 s. They repeat `latency`, so none of them is better or
    /// worse.
    MICROSECONDS;
    MIN_US = measured("latency_min_us", "least latency, of the histogram in microseconds", 0)
        .whole().over(Over::Least).better(Better::Neither);
    P50_US = measured("latency_p50_us", "median latency, of the histogram in microseconds", 0)
        .whole().better(Better::Neither);
    P95_US = measured("latency_p95_us", "95th percentile of the latency, of the histogram in microseconds", 0)
        .whole().better(Better::Neither);
    P99_US = measured("latency_p99_us", "99th percentile of the latency, of the histogram in microseconds", 0)
        .whole().better(Better::Neither);
    P999_US = measured("latency_p999_us", "99.9th percentile of the latency, of the histogram in microseconds", 0)
        .whole().better(Better::Neither);
    MAX_US = measured("latency_max_us", "greatest latency, of the histogram in microseconds", 0)
        .whole().over(Over::Greatest).better(Better::Neither);
    MEAN_US = measured("latency_mean_us", "mean latency, of the histogram in microseconds", 1)
        .better(Better::Neither);
    OUT_OF_RANGE = count("latency_out_of_range", "latencies above 10 s, which count as 10 s in that histogram")
        .better(Better::Lower);
}

columns! {
    /// What became of the samples.
    COUNTS;
    EXPECTED = count("messages_expected", "copies that were to arrive if no step was missed");
    SENT = count("messages_sent", "samples that nodes took").title("sent");
    COPIES = count("copies_sent", "copies of them that are to arrive");
    RECEIVED = count("messages_received", "copies that arrived, each counted once").better(Better::Higher)
        .title("received");
    LOST = count("messages_lost", "copies that were sent and never arrived").better(Better::Lower).title("lost");
    DELIVERY_RATE = measured("delivery_rate", "copies that arrived, as a share of those expected: missed steps count", 6)
        .better(Better::Higher).title("delivered");
    ACKED = count("messages_acked", "samples of those sent that were acknowledged to their publisher; empty where \
        nothing acknowledges");
    STEPS_MADE = count("steps_made", "steps for which a sample was made");
    STEPS_MISSED = count("steps_missed", "steps that were missed: their publisher was busy for a period or longer")
        .better(Better::Lower).title("missed");
    STEPS_LATE = count("steps_late", "steps that were due before their publisher waited for them")
        .better(Better::Lower);
    REFUSED = count("messages_refused", "samples that a node did not take, for want of room").better(Better::Lower);
    ARRIVALS = count("arrivals", "all that arrived, duplicates included");
    DUPLICATED = count("messages_duplicated", "copies that arrived again").better(Better::Lower);
    REORDERED = count("messages_reordered", "copies that arrived after a later one of the same publisher")
        .better(Better::Lower);
    DAMAGED = count("messages_damaged", "copies that arrived with other values than were sent")
        .better(Better::Lower);
    NEVER_SENT = count("messages_never_sent", "samples that arrived at a subscriber they were not sent to").better(Better::Lower);
    NOT_DELIVERED = count("not_delivered", "steps and copies that lost.csv lists: missed, refused or lost")
        .better(Better::Lower);
    BYTES_SENT = count("bytes_sent", "bytes of the samples that nodes took");
    BYTES_RECEIVED = count("bytes_received", "bytes of the copies that arrived");
    REQUESTS = count("send_requests", "work requests that publishers posted, a copy each, warm-up and what came before it \
        included; infiniband only");
    COMPLETIONS = count("send_completions", "completions of those that were signalled");
    FELL_BACK = count("connections_fallen_back", "connections that subscribers made, as their publishers could not and \
        had fallen back to listening; infiniband only");
    ERRORS = count("errors", "samples that a node did not take (messages_refused), and connections that their \
        publishers could not make (connections_fallen_back); other errors end a run").better(Better::Lower);
}

columns! {
    /// How fast, and how fairly.
    RATES;
    SEND_RATE = measured("send_rate_per_s",
        "samples sent in a second, by all publishers, over the intervals from when the first was due to the last", 1)
        .better(Better::Higher).with_bounds();
    RECEIVE_RATE = measured("receive_rate_per_s",
        "copies that arrived in a second, at all subscribers, over the intervals from the first to the last", 1)
        .better(Better::Higher).with_bounds();
    FAIRNESS = measured("fairness",
        "Jain's index of the copies by subscriber: 1 if all got as many, 1/subscribers if one got all", 4)
        .better(Better::Higher);
    LEAST_AT_ONE = count("least_at_one_subscriber", "copies that arrived at the subscriber with the fewest")
        .over(Over::Least);
    MOST_AT_ONE = count("most_at_one_subscriber", "copies that arrived at the subscriber with the most")
        .over(Over::Greatest);
}

columns! {
    /// What the broker took that was started for the run or is --broker-process; empty without one, or where less than
    /// half a second counts.
    BROKER;
    BROKER_CPU = measured("broker_cpu_percent", "processor time of the broker while samples that count were sent, of \
        one CPU", 1).better(Better::Lower);
    BROKER_BASELINE = count("broker_rss_baseline_bytes", "memory that the broker had before these, after the warm-up")
        .over(Over::Greatest);
    BROKER_RSS = count("broker_rss_bytes", "memory that the broker had while they were sent, the most that was seen")
        .over(Over::Greatest).better(Better::Lower);
    BROKER_PEAK = count("broker_rss_peak_bytes", "the most memory that the broker had since it was started")
        .over(Over::Greatest).better(Better::Lower);
}

/// What is found of a point.
pub const FIGURES: [Column; 13 + 13 + 8 + 23 + 5 + 4] = join(&[
    &latency::ALL,
    &intended::ALL,
    &MICROSECONDS,
    &COUNTS,
    &RATES,
    &BROKER,
]);

/// The columns of a sample.
pub mod sample {
    use super::{Better, Column, Data, columns};

    columns! {
        /// A step, as its publisher notes it.
        IN;
        PUBLISHER = label("publisher", "who sent it, from 0").data(Data::Whole);
        STEP = label("step", "the step at which it was made, from 0; those that are not there were missed")
            .data(Data::Whole);
        NUMBER = label("seq", "its number among the samples of its publisher; empty if the node did not take it")
            .data(Data::Whole);
        INTENDED = measured("t_intended_ns", "when it was meant to be sent, since the Unix epoch", 0)
            .whole().better(Better::Neither);
        STAMPED = measured("t_sent_ns", "its stamp, since the Unix epoch", 0).whole().better(Better::Neither);
        SAMPLE_VALUES = label("values", "its values, with a space between them (in.villas: a tab)");
    }

    columns! {
        /// A sample, as its subscriber notes it.
        OUT;
        SUBSCRIBER = label("subscriber", "who received it, from 0").data(Data::Whole);
        OF_PUBLISHER = label("publisher", "who sent it, from 0").data(Data::Whole);
        OF_NUMBER = label("seq", "its number among the samples of its publisher").data(Data::Whole);
        CARRIED = measured("t_sent_ns", "the stamp that it carries, since the Unix epoch", 0)
            .whole().better(Better::Neither);
        RECEIVED = measured("t_received_ns", "when it was read, since the Unix epoch", 0)
            .whole().better(Better::Neither);
        LATENCY = measured("latency_ns", "from its stamp to when it was read", 0).whole();
        INTACT = label("intact", "whether its values are those that were sent").data(Data::Flag);
    }

    columns! {
        /// What did not arrive.
        LOST;
        LOST_PUBLISHER = label("publisher", "whose sample it is, from 0").data(Data::Whole);
        LOST_SUBSCRIBER = label("subscriber", "whose copy it is; empty where no certain one was to get it")
            .data(Data::Whole);
        LOST_STEP = label("step", "the step at which it was, or was to be, made").data(Data::Whole);
        CAUSE = label("cause", "missed (no sample was made), refused (the node did not take it) or lost");
    }
}

/// What a line of VILLASnode begins with.
const TIME: Column = Column::label(
    "# seconds.nanoseconds+offset(sequence)",
    "the stamp since the Unix epoch, in seconds; of what arrived, how long after it that was read; its number among \
     the samples of its publisher, if the node took it",
);

/// What was sent, a row a step.
pub const IN: SampleFile = SampleFile {
    name: "in.csv",
    columns: &join::<7>(&[&[ROUND], &sample::IN]),
    counted_by: STEPS_MADE,
    meaning: "a row a step that was not missed, as its publisher notes it, with --samples",
};

/// What arrived, a row each.
pub const OUT: SampleFile = SampleFile {
    name: "out.csv",
    columns: &join::<8>(&[&[ROUND], &sample::OUT]),
    counted_by: ARRIVALS,
    meaning: "a row a sample that arrived, as its subscriber notes it, with --samples",
};

/// What did not.
pub const LOST_FILE: SampleFile = SampleFile {
    name: "lost.csv",
    columns: &join::<5>(&[&[ROUND], &sample::LOST]),
    counted_by: NOT_DELIVERED,
    meaning: "a row a step or copy that did not arrive, with its cause",
};

/// The same as `in.csv` for VILLASnode.
pub const IN_VILLAS: SampleFile = SampleFile {
    name: "in.villas",
    columns: &[
        TIME,
        ROUND,
        sample::PUBLISHER,
        sample::STEP,
        sample::INTENDED,
        sample::SAMPLE_VALUES,
    ],
    counted_by: STEPS_MADE,
    meaning: "the same in the format villas.human of VILLASnode, with --format villas",
};

/// The same as `out.csv` for VILLASnode.
pub const OUT_VILLAS: SampleFile = SampleFile {
    name: "out.villas",
    columns: &[
        TIME,
        ROUND,
        sample::SUBSCRIBER,
        sample::OF_PUBLISHER,
        sample::INTACT,
    ],
    counted_by: ARRIVALS,
    meaning: "the same in the format villas.human of VILLASnode, with --format villas",
};

columns! {
    /// The settings of a run.
    RUN;
    SEED = setting("seed", "what the values of samples follow from").whole();
    DRAIN = setting("drain_ns", "how long is waited at most for what is under way at the end").whole();
    BROKER_CHOICE = setting("broker", "who distributes the samples of mqtt, nats and redis: the address of a broker, or spawn");
    BROKER_PROCESS = setting("broker_process", "the process of that broker, as asked for").data(Data::Whole);
    TIMEOUT = setting("timeout_ns", "how long connecting may take").whole();
    HUGE_PAGES = setting("hugepages", "whether samples and stamps must, may or must not lie in huge pages");
    FALLBACK = setting("fallback", "what publishers of infiniband do that cannot connect, as asked for: listen, fatal");
    MAX_INLINE = setting("max_inline_bytes", "bytes of a sample up to which infiniband copies it into the work request")
        .whole();
    UC_ROUTE = setting("uc_route", "how UC is connected, as asked for");
    SENDER = setting("sender", "the port of infiniband's publishers, as asked for");
    RECEIVER = setting("receiver", "the port of its subscribers, as asked for");
    LOG = setting("log", "where ends note what they send and receive: memory or file");
    LOG_BUFFER = setting("log_buffer_bytes", "what an end notes before it writes that to the file").whole();
    KEEPS_SAMPLES = setting("samples", "whether a row is written for each sample").data(Data::Flag);
    FORMAT = setting("format", "the formats of these: hcabench (in.csv, out.csv), villas (in.villas, out.villas)");
}

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "node",
    title: "node",
    run: &join::<{ RUN.len() + 2 }>(&[&RUN, &[FIND_RATE, HLOG_INTERVAL]]),
    point: &POINT,
    figures: &FIGURES,
    samples: &[IN, IN_VILLAS, OUT, OUT_VILLAS, LOST_FILE],
    across: None,
    searched: Some(SearchedRate {
        rate: RATE,
        follow: &[STEPS],
        latency: &intended::ALL,
        delivered: Some((RECEIVED, EXPECTED)),
        sent: (SEND_RATE, Some(PUBLISHERS)),
    }),
    headline: [RECEIVED, latency::P50, latency::P99],
};
