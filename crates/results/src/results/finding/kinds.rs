//! The kinds of findings, with all of their wording.

use super::{FindingKind, Severity};

/// `NAME "id" Severity "problem" "cause" "fix";`
macro_rules! kinds {
    ($($name:ident $id:literal $severity:ident $problem:literal $cause:literal $fix:literal;)+) => {
        $(
            #[allow(missing_docs)]
            pub const $name: FindingKind = FindingKind {
                id: $id,
                severity: Severity::$severity,
                problem: $problem,
                cause: $cause,
                fix: $fix,
            };
        )+

        /// All kinds.
        pub const ALL: &[FindingKind] = &[$($name),+];
    };
}

kinds! {
    // The machine.
    EMULATED_PROCESSOR "emulated-processor" Invalid
        "the processor is emulated in software ({hypervisor})" "latencies are not those of hardware"
        "use KVM, or measure on the machine itself";
    SOFTWARE_DEVICE "software-device" Invalid
        "software devices ({devices})" "latencies are not those of an adapter" "";
    MACHINE_NOT_READY "machine-not-ready" Invalid
        "{check}: {found}" "" "{advice}";
    MACHINE_COULD_BE_TUNED "machine-could-be-tuned" Advice
        "this machine could be tuned further: {checks}" "" "run `hcabench host`";
    IDLE_STATES "idle-states" Reservation
        "{text}" "" "";

    // Where threads run.
    SINGLE_CPU "single-cpu" Invalid "{message}" "" "{advice}";
    SHARED_CPU "shared-cpu" Reservation "{message}" "" "{advice}";
    SMT_SIBLINGS "smt-siblings" Reservation "{message}" "" "{advice}";
    NUMA_REMOTE "numa-remote" Reservation "{message}" "" "{advice}";
    EFFICIENCY_CORE "efficiency-core" Reservation "{message}" "" "{advice}";
    NO_CORE_LEFT "no-core-left" Reservation "{message}" "" "{advice}";
    SUPERVISOR_SHARES "supervisor-shares" Reservation "{message}" "" "{advice}";

    // What all benchmarks measure with.
    SMALL_PAGES "small-pages" Reservation
        "{what} are in {pages}" ""
        "reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or use --hugepages off";
    PAGE_FAULTS "page-faults" Reservation
        "page faults in the hot loops: {count}" "the figures contain their time" "raise --warmup";
    TSC_RATE "tsc-rate" Reservation "{text}" "" "";
    RECEIVER_CLOCK "receiver-clock" Reservation
        "the clock of the receiver's CPU is ahead by {offset_ns}" "latencies contain that" "use --clock monotonic";
    NEGATIVE_LATENCIES "negative-latencies" Invalid
        "{count} latencies are negative" "the clock differs between CPUs" "use --clock monotonic";
    PERCENTILES_UNRESOLVED "percentiles-unresolved" Advice
        "{percentiles}: essentially the maximum" "a round has {samples} samples" "increase {options}";
    GENERATORS_IN_CACHE "generators-in-cache" Reservation
        "the buffers of --memory-load ({buffer_bytes} each) are less than {caches} times the last level of cache \
         ({cache_bytes})"
        "part of their traffic may never leave the cache" "";

    INCOMPLETE "incomplete" Reservation "the run was not measured to its end" "{reason}" "";
    POINT_FAILED "point-failed" Reservation "{reason}" "" "";
    ROUNDS_MISSING "rounds-missing" Reservation "{text}" "" "";

    // One-way latency.
    FLOOR_TOO_HIGH "floor-too-high" Reservation
        "the floor is p50 {floor_ns}" "the host is busy" "stop other work on it and measure again";
    FLOOR_NEAR_LATENCY "floor-near-latency" Reservation
        "the floor (p50 {floor_ns}) is most of the latency (p50 {latency_ns})" "the loops are measured, not the path" "";
    CLOCKS_MAY_DIFFER "clocks-may-differ" Reservation
        "the clocks of sender and receiver may differ by up to {most_ns}"
        "the latency is p50 {latency_ns}; their offset is {offset_ns} within {bound_ns}" "";
    OFFERED_TOO_MUCH "offered-too-much" Reservation
        "the path carries about {taken_percent} of what is offered"
        "messages in flight grow through a burst, and latency with them: it is that of a queue"
        "use a longer --pause or a lower --rate";
    BACKGROUND_NOT_DELIVERED "background-not-delivered" Reservation
        "{share_percent} of --background {asked} was delivered" "{why}" "";
    MESSAGES_LOST "messages-lost" Reservation "{count} of {of} messages were lost" "" "";
    REQUESTS_INCOMPLETE "requests-incomplete" Reservation "{count} of {of} requests did not complete" "" "";
    MESSAGES_CORRUPTED "messages-corrupted" Invalid
        "{count} messages arrived with other bytes than were sent" "" "do not trust this path with data";
    ANSWERS_CORRUPTED "answers-corrupted" Invalid
        "{count} requests brought back wrong bytes" "" "do not trust this path with data";
    MESSAGES_DUPLICATED "messages-duplicated" Reservation
        "{count} messages arrived twice" "as many may be counted as lost" "";
    MESSAGES_LATE "messages-late" Reservation
        "{count} messages arrived after their burst was over" "they are counted as lost" "raise --timeout";
    MESSAGES_FOREIGN "messages-foreign" Reservation
        "{count} messages were sent by something else to this run's queue pair"
        "each used a receive request, so messages of this run may be lost" "";
    STEPS_MISSED "steps-missed" Reservation
        "{count} of {of} messages were posted more than a step late"
        "the sender does not keep the --rate; see intended_latency_p50_ns" "";
    NOT_RESTAMPED "not-restamped" Reservation
        "{count} of {of} messages were received before their stamp was rewritten" "they have no t_send and no latency"
        "give the stamp thread its own core (--stamp-cpu), and use a --pause";
    STAMPS_OUT_OF_ORDER "stamps-out-of-order" Invalid
        "{count} messages have a t_send before their t_subm" "the clock differs between CPUs"
        "use --clock monotonic";

    // The path of messages.
    SUBNETS_DIFFER "subnets-differ" Reservation "{text}" "" "";
    RETRANSMISSIONS "retransmissions" Reservation
        "{count} retransmissions" "packets were lost or late, and latencies contain the repetition" "";
    CONGESTION "congestion" Reservation
        "{count} congestion notifications" "packets were marked on their way, and the adapter sent slower" "";
    FLOW_CONTROL "flow-control" Reservation
        "{count} ticks in which the sender's port had to wait" "flow control held it back" "";
    SENDER_PORT_ERRORS "sender-port-errors" Reservation
        "{count} errors at the sender's port" "counters.csv names them" "";
    RECEIVER_PORT_ERRORS "receiver-port-errors" Reservation
        "{count} errors at the receiver's port" "counters.csv names them" "";
    PACKETS_NOT_SENT "packets-not-sent" Reservation
        "only {packets} packets left the sender's port for {count} messages that arrived"
        "the adapter looped them back, they took another way, or its counters are late" "";
    PACKETS_NOT_RECEIVED "packets-not-received" Reservation
        "only {packets} packets came to the receiver's port for {count} messages that arrived"
        "the adapter looped them back, they took another way, or its counters are late" "";
    PORT_CHANGED "port-changed" Reservation "{change} since it was connected" "" "";

    // Two hosts.
    ONE_HOST "one-host" Advice
        "both ends are on one host" "without --peer the latency is measured, not bounded" "leave out --peer";
    STEERED_CLOCK "steered-clock" Reservation
        "NTP or PTP change the rate of CLOCK_MONOTONIC" "the bounds assume that both clocks run at constant rates"
        "use --clock monotonic-raw or tsc";
    FAR_END "far-end" Reservation "receiver: {text}" "" "";
    HALF_ROUND_TRIP "half-round-trip" Advice
        "half a round trip is the latency of one way only if both ways take the same"
        "that is assumed; the bounds are proved" "";

    // Queues.
    ELEMENTS_LOST "elements-lost" Invalid
        "{count} elements were lost" "the queue is broken" "";
    QUEUE_NOT_LOCKED "queue-not-locked" Reservation
        "the memory of the queues is touched but not locked" "the memlock limit is too small for this process"
        "raise it with ulimit -l unlimited";
    LOAD_MISSED "load-missed" Reservation
        "more than {late_percent} of the {what} of a round started late" "the load is more than this machine can offer"
        "lower the load";
    FEW_LAPS "few-laps" Reservation
        "each place of a queue of capacity {capacity} is used fewer than {laps} times in a round"
        "the queue hardly wraps around" "use a larger --count or --duration, or a smaller --capacity";
    ROUND_CUT_SHORT "round-cut-short" Reservation
        "a round ends after {elements} elements, before --duration {duration}"
        "locked memory has no room for more stamps" "raise the memlock limit with ulimit -l unlimited, or shorten --duration";
    STARVED "starved" Reservation "{text}" "" "";
    BATCHES "batches" Advice
        "{queue} hands over in batches"
        "where the sender pauses, the enqueue before it contains the handing over and two stamps" "";

    // Nodes.
    NODE_STEPS_MISSED "node-steps-missed" Reservation
        "{count} of {of} steps were missed" "publishers were busy, or without a CPU, for a period or longer" "";
    COPIES_LOST "copies-lost" Reservation "{count} of {of} copies were lost" "" "";
    SAMPLES_REFUSED "samples-refused" Reservation "{count} samples were refused" "the node had no room for them" "";
    FELL_BACK "fell-back" Reservation
        "subscribers made connections that publishers could not ({which})" "those had fallen back to listening" "";

    // Memory.
    CORE_SHARED "core-shared" Reservation
        "CPU {cpu} and a generator's are threads of one core" "they share its caches and its way to memory"
        "choose others with --chase-cpu and --generators";
    UNSTABLE "unstable" Reservation "the bandwidth was not stable when --settle was over" "" "raise --settle";
    STALLED "stalled" Reservation
        "in some windows (windows_stalled) a generator stood still for half of the time" "they do not count" "";
    IN_CACHE "in-cache" Reservation
        "buffers of {size_bytes} are smaller than four times the last level of cache" "part of all accesses ends there" "";
    CACHE_UNKNOWN "cache-unknown" Reservation
        "the size of the last level of cache is unknown" "nothing is marked in-cache" "";
    CORE_LIMITED "core-limited" Reservation
        "one generator draws what its core can" "that is less than what the memory has" "";

    WINDOWS_REMOVED "windows-removed" Reservation
        "{count} windows were left out of all figures but the greatest latency" "" "";

    // The clock.
    CLOCK_SET_BACK "clock-set-back" Reservation "the clock was set back {count} times" "" "";
    CLOCK_NOTE "clock-note" Advice "{text}" "" "";
}
