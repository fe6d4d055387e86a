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
        "measure on the machine itself, or in a virtual machine with KVM";
    SOFTWARE_DEVICE "software-device" Invalid
        "software devices ({devices})" "latencies are not those of an adapter"
        "measure between two ports of RDMA adapters";
    RELAXED_ORDERING_IN_SOFTWARE "relaxed-ordering-in-software" Advice
        "--relaxed-ordering has no effect on software devices ({devices})" "they have no PCI Express"
        "leave it out, or measure between two ports of RDMA adapters";
    MACHINE_NOT_READY "machine-not-ready" Invalid
        "{check}: {found}" "" "{advice}";
    MACHINE_COULD_BE_TUNED "machine-could-be-tuned" Advice
        "this machine could be tuned further: {checks}" "" "run `hcabench host`";
    IDLE_STATES "idle-states" Reservation
        "idle CPUs may enter deep sleep states"
        "/dev/cpu_dma_latency cannot be opened ({error}), so threads that wait for an event may wake late"
        "run as root, make the file writable, or use --allow-idle-states";

    // Where threads run.
    SINGLE_CPU "single-cpu" Invalid
        "all threads share the only CPU ({cpu})" "latencies contain the scheduler's time slices of milliseconds"
        "use a machine with two or more cores";
    SHARED_CPU "shared-cpu" Reservation
        "threads share a CPU: {threads}"
        "latencies contain the scheduler's time slices of milliseconds; with --priority one thread may never run"
        "give each thread a core: name fewer or other CPUs, or use a machine with more cores";
    SMT_SIBLINGS "smt-siblings" Reservation
        "threads share a physical core: {threads}" "they slow each other down"
        "give each thread a core: name fewer or other CPUs, or use a machine with more cores";
    NUMA_REMOTE "numa-remote" Reservation
        "threads run on another NUMA node than their device: {threads}"
        "each access to the device crosses the interconnect" "name CPUs of the device's node with {options}";
    EFFICIENCY_CORE "efficiency-core" Reservation
        "threads run on efficiency cores: {threads}" "these cores are slower" "name performance cores with {options}";
    NO_CORE_LEFT "no-core-left" Reservation
        "no core is left for the {threads}"
        "the sender polls for completions between posts, and completion latencies contain the wait for that"
        "name a CPU with --completion-cpu, or use --poll-comp event";
    SUPERVISOR_SHARES "process-shares-cpus" Reservation
        "no CPU is left for the rest of the process"
        "progress and connection handling may interrupt a measuring thread" "use a machine with one CPU more";
    THREADS_SHARE_CPUS "threads-share-cpus" Reservation
        "{threads} threads share {cpus} CPUs"
        "rates, shares and latencies contain the scheduler's time slices of milliseconds"
        "use fewer --producers and --consumers, or a machine with more cores";

    // What all benchmarks measure with.
    SMALL_PAGES "small-pages" Reservation
        "{what} are in {pages}" ""
        "reserve 2 MiB pages (sysctl vm.nr_hugepages=N), or use --hugepages off";
    PAGE_FAULTS "page-faults" Reservation
        "page faults in the hot loops: {count}" "the figures contain their time" "raise --warmup";
    TSC_RATE "tsc-rate" Reservation
        "--tsc-khz {given} is {off_ppm} off the measured rate ({measured_khz})" "all times have that error"
        "leave out --tsc-khz to use the measured rate";
    FIRMWARE_RATE "firmware-rate" Reservation
        "the counter rate from firmware (CNTFRQ_EL0, {given} kHz) is {off_ppm} off the measured rate ({measured_khz})"
        "all times have that error" "give the correct rate with --tsc-khz";
    RATE_NOT_COMPARED "rate-not-compared" Reservation
        "--tsc-khz {given} could not be checked" "the measured rate did not settle" "";
    RECEIVER_CLOCK "receiver-clock" Reservation
        "the clock of the receiver's CPU is ahead by {offset_ns}" "latencies contain that offset"
        "use --clock monotonic";
    NEGATIVE_LATENCIES "negative-latencies" Invalid
        "{count} latencies are negative" "the clock differs between CPUs" "use --clock monotonic";
    PERCENTILES_UNRESOLVED "percentiles-unresolved" Advice
        "{lowest} and higher percentiles are essentially the maximum" "a round has {samples} samples"
        "increase {options}";
    GENERATORS_IN_CACHE "generators-in-cache" Reservation
        "the buffers of --memory-load ({buffer_bytes} each) are less than {caches} times the last level of cache \
         ({cache_bytes})"
        "part of their traffic may never leave the cache" "";

    PAIRS_UNMEASURED "pairs-unmeasured" Reservation
        "{count} of {of} pairs of CPUs have no figures" "their CPUs did not run at the same time"
        "stop other work on them, or leave them out with --cpus";
    PAIRS_PARTLY_MEASURED "pairs-partly-measured" Reservation
        "{count} of {of} pairs of CPUs lack figures" "their CPUs ran at the same time for a part of the measurement only"
        "stop other work on them, or leave them out with --cpus";
    LINES_ON_OTHER_NODE "lines-on-other-node" Reservation
        "the lines of {count} of {of} directions lie on another NUMA node than asked for"
        "the node had no memory left, or a policy of the process forbids it"
        "free memory there, or run without the policy";
    ONE_WAY_NEGATIVE "one-way-negative" Reservation
        "{count} of {of} directions have a negative one-way latency"
        "the clock differs between CPUs; half of a round trip does not depend on it" "use --clock monotonic";

    INCOMPLETE "incomplete" Reservation "the run was not measured to its end" "{reason}" "";
    NOTHING_MEASURED "nothing-measured" Invalid "no point was measured" "" "";
    POINT_FAILED "point-failed" Reservation "{reason}" "" "";
    ROUNDS_MISSING "rounds-missing" Reservation
        "{done} of {asked} rounds were measured" "another one would not have fitted into --budget {budget}"
        "raise --budget";

    RATE_NOT_FOUND "rate-not-found" Reservation "{search}" "" "";

    // One-way latency.
    FLOOR_TOO_HIGH "floor-too-high" Invalid
        "the floor, the same loops without a device, is p50 {floor_ns}" "the host is busy"
        "stop other work on it and measure again";
    FLOOR_NEAR_LATENCY "floor-near-latency" Reservation
        "the floor (p50 {floor_ns}) is most of the latency (p50 {latency_ns})"
        "the loops are measured, not the path" "";
    CLOCKS_MAY_DIFFER "clocks-may-differ" Reservation
        "the clocks of sender and receiver may differ by up to {most_ns}"
        "the latency is p50 {latency_ns}; their offset is {offset_ns} within {bound_ns}" "";
    OFFERED_TOO_MUCH "path-overloaded" Reservation
        "the path delivers {taken_percent} of the rate at which messages are posted"
        "messages in flight reached {in_flight} by the end of the burst, so latencies contain a growing queue"
        "use a longer --pause or a lower --rate";
    BACKGROUND_SHARES_CPU "background-shares-cpu" Reservation
        "{share_percent} of --background {asked} was delivered" "its thread shares a CPU with a measuring thread"
        "name another CPU with --background-cpu";
    BACKGROUND_NOT_TAKEN "background-not-taken" Reservation
        "{share_percent} of --background {asked} was delivered"
        "the path carries no more, and latencies are those of a saturated path" "";
    BACKGROUND_NOT_POSTED "background-not-posted" Reservation
        "{share_percent} of --background {asked} was delivered" "its thread cannot post faster" "";
    MESSAGES_LOST "messages-lost" Reservation "{count} of {of} messages were lost" "" "";
    REQUESTS_INCOMPLETE "requests-incomplete" Reservation "{count} of {of} requests did not complete" "" "";
    MESSAGES_CORRUPTED "messages-corrupted" Invalid
        "{count} messages arrived with wrong data" "" "check adapters, cables and memory before this path carries data";
    ANSWERS_CORRUPTED "answers-corrupted" Invalid
        "{count} reads or atomics returned wrong data" ""
        "check adapters, cables and memory before this path carries data";
    MESSAGES_DUPLICATED "messages-duplicated" Reservation
        "{count} messages arrived twice" "as many may be counted as lost" "";
    MESSAGES_LATE "messages-late" Reservation
        "{count} messages arrived after their burst was over" "they are counted as lost" "raise --timeout";
    MESSAGES_FOREIGN "messages-foreign" Reservation
        "{count} messages at this run's queue pair came from other senders"
        "each used a receive request, so messages of this run may be lost" "";
    STEPS_MISSED "steps-missed" Reservation
        "{count} of {of} messages were posted more than a step late"
        "the sender does not keep the --rate; intended_latency_p50_ns contains the delay" "";
    NOT_RESTAMPED "not-restamped" Reservation
        "{count} of {of} messages were received before their stamp was rewritten" "they have no t_send and no latency"
        "give the stamp thread its own core (--stamp-cpu), and use a --pause";
    STAMPS_OUT_OF_ORDER "stamps-out-of-order" Invalid
        "{count} messages have a t_send before their t_subm" "the clock differs between CPUs"
        "use --clock monotonic";
    HW_STAMPS_TOO_LATE "hw-stamps-too-late" Reservation
        "{count} of {of} hardware time stamps of the {end} are later than {ours} by more than {error_ns}"
        "no completion is found before it is there, so the stamps or their conversion are wrong"
        "do not use the times from the adapter to {ours}; the latency does not contain them";
    HW_STAMPS_MISSING "hw-stamps-missing" Reservation
        "{count} of {of} completions of the {end} have no hardware time stamp within their burst"
        "the times from the adapter to {ours} are of the others" "";
    HW_LAG_UNRESOLVED "hw-lag-unresolved" Advice
        "the median time from the {end}'s adapter to {ours}, {median_ns}, is not resolved"
        "its stamps are known within {error_ns}; differences between quantiles are known better"
        "use shorter bursts, more of them, and --clock monotonic-raw";
    HW_CLOCK_RATE "hw-clock-rate" Advice
        "the clock of the {end}'s adapter is {off_ppm} off the rate that its driver reports"
        "the conversion goes by readings of the clock, not by that rate" "";
    HELD_UP "held-up" Reservation
        "the receiver found {count} of {of} messages late, by up to {longest_ns}"
        "by their hardware time stamps they lay in its completion queue, so its thread was away; latencies contain that"
        "keep other work and interrupts off its CPU";

    // The path of messages.
    SUBNETS_DIFFER "subnets-differ" Reservation
        "{ports} are in different subnets ({subnets})" "packets between them need a router" "";
    WITHIN_ADAPTER "within-adapter" Reservation
        "{ports} are {what}" "messages are switched within the adapter and never take the wire"
        "measure between two physical ports";
    CONNECTED_DIRECTLY "connected-directly" Advice
        "the connection manager does not connect these ports: {reason}" "they were connected directly"
        "use --connect direct";
    ORDER_NOT_PROMISED "order-not-promised" Advice
        "the driver does not promise that a message is written in order"
        "one whose last byte came before the rest has a latency too short; on UC one that came after the next counts \
         as lost"
        "compare it with --operation write; docs/method.md lists what decides the order";
    LOOPBACK_IN_ADAPTER "loopback-in-adapter" Reservation
        "loopback in the adapter: only {packets} packets left the physical port for {count} messages"
        "the latency is not that of the wire"
        "measure between two physical ports, and not between two functions of one";
    RETRANSMISSIONS "retransmissions" Reservation
        "{count} retransmissions" "packets were lost or late, and latencies contain their retransmission" "";
    CONGESTION "congestion" Reservation
        "{count} congestion notifications" "packets were marked on the path, and the adapter reduced its rate" "";
    PORT_WAITED "port-waited" Advice
        "the sender's port waited for {count} ticks in {time_ns}"
        "flow control or other traffic held it back, for a time that is unknown: the device decides how long a tick is"
        "";
    PAUSED "paused" Reservation
        "the sender's port was paused for {paused_ns} of {time_ns}" "latencies may contain the wait" "";
    PAUSE_FRAMES "pause-frames" Reservation
        "{port} {count} pause frames" "latencies may contain the wait that they asked for" "";
    SENDER_PORT_ERRORS "sender-port-errors" Reservation
        "{count} errors at the sender's port" "counters.csv names them" "";
    RECEIVER_PORT_ERRORS "receiver-port-errors" Reservation
        "{count} errors at the receiver's port" "counters.csv names them" "";
    COUNTED_WITH_BACKGROUND "counted-with-background" Advice
        "counters of ports contain the packets of --background" "" "";
    PACKETS_NOT_SENT "packets-not-sent" Reservation
        "only {packets} packets left the sender's port for {count} messages that arrived"
        "the adapter looped them back, they took another way, or its counters are late" "";
    PACKETS_NOT_RECEIVED "packets-not-received" Reservation
        "only {packets} packets came to the receiver's port for {count} messages that arrived"
        "the adapter looped them back, they took another way, or its counters are late" "";
    PORT_CHANGED "port-changed" Reservation "ports changed during the measurement: {changes}" "" "";

    // Two hosts.
    ONE_HOST "one-host" Advice
        "both ends are on one host" "one clock could measure the one-way latency; two clocks only bound it"
        "leave out --peer";
    WITHOUT_SECRET "without-secret" Reservation
        "the control connection was without a secret"
        "any process that reached its port could take part, read and change it"
        "give all ends the same secret by --secret-file or HCABENCH_SECRET";
    STEERED_CLOCK "steered-clock" Reservation
        "NTP or PTP adjusts the rate of CLOCK_MONOTONIC" "the bounds assume that both clocks run at constant rates"
        "use --clock monotonic-raw or tsc";
    HALF_ROUND_TRIP "half-round-trip" Advice
        "half a round trip is the one-way latency only if both directions take the same time"
        "that is an assumption; the bounds are proved" "";

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
        "each slot of a queue of capacity {capacity} is used fewer than {laps} times in a round"
        "the queue hardly wraps around" "use a larger --count or --duration, or a smaller --capacity";
    ROUND_CUT_SHORT "round-cut-short" Reservation
        "a round ends after {elements} elements, before --duration {duration}"
        "locked memory has no room for more stamps"
        "raise the memlock limit with ulimit -l unlimited, or shorten --duration";
    RECORD_FULL "record-full" Advice
        "a round ends for all threads when one has recorded {elements} elements, even before --duration is over"
        "rounds shorter than {shortest_ns} with shared CPUs are not checked for starved threads" "";
    STARVED "starved" Reservation
        "in a round a thread had less than {least_percent} of an equal share: {threads}"
        "its row is marked UNFAIR" "";
    NO_BATCH_TIMED "no-batch-timed" Reservation
        "no batch of {what} was timed" "each was ended by an attempt that found the queue full or empty"
        "lower --per-stamp, or include failed attempts by --measure-failed";
    FEW_IN_BATCHES "few-in-batches" Reservation
        "less than {least_percent} of the {what} of a round are in batches that were timed"
        "their times are those of a queue that is neither full nor empty for as long"
        "lower --per-stamp, or include failed attempts by --measure-failed";
    BATCHES "batches" Advice
        "these queues hand over in batches: {queues}"
        "the last enqueue before a pause also contains the publication of the batch and two stamps" "";

    // Nodes.
    NODE_STEPS_MISSED "node-steps-missed" Reservation
        "{count} of {of} steps were missed" "publishers were busy, or without a CPU, for a period or longer" "";
    COPIES_LOST "copies-lost" Reservation "{count} of {of} copies were lost" "" "";
    SAMPLES_REFUSED "samples-refused" Reservation "{count} samples were refused" "the node had no room for them" "";
    FELL_BACK "fell-back" Reservation
        "publishers could not connect, so their subscribers did ({which})"
        "these publishers fell back to listening (--fallback listen)" "";

    // Memory.
    CORE_SHARED "core-shared" Reservation
        "CPU {cpu} and that of a generator are threads of one core" "they share its caches and its path to memory"
        "choose others with --chase-cpu and --generators";
    UNSTABLE "unstable" Reservation "the bandwidth was not stable when --settle was over" "" "raise --settle";
    STALLED "stalled" Reservation
        "in some windows (windows_stalled) a generator did nothing for half of the time"
        "these windows are left out of the figures" "keep other programs off the CPUs of the generators";
    IN_CACHE "in-cache" Reservation
        "buffers of {size_bytes} are smaller than four times the last level of cache"
        "the cache serves some of the accesses" "use a larger --size";
    CACHE_UNKNOWN "cache-unknown" Reservation
        "the size of the last level of cache is unknown"
        "points whose buffers fit into it are not marked in-cache" "";
    CORE_LIMITED "core-limited" Reservation
        "the core of the only generator limits the bandwidth" "the memory can deliver more" "use more --generators";
    TRAFFIC_MISSED "traffic-missed" Reservation
        "the memory controllers counted less than half of what generators read and stored"
        "some channels are not counted, or a count is of other bytes"
        "name all devices of the memory by --read-event and --write-event, or use --bandwidth software";
    TLB_COUNTERS_SHARED "tlb-counters-shared" Reservation
        "something else used the counters of page walks in windows: {count}"
        "latency_without_tlb_ns and page walks are empty where such a window counts"
        "end other programs that use perf, and the kernel's watchdog (kernel.nmi_watchdog=0)";
    WINDOWS_REMOVED "windows-removed" Reservation
        "{count} windows were left out as outliers" "only the greatest latency contains them" "";

    // A fabric.
    CLOCKS_CONTRADICT "clocks-contradict" Reservation "{text}" "" "";
    NODES_MISSING "nodes-missing" Reservation "nothing was measured of {nodes}" "" "";
    PAIRS_LEFT_OUT "pairs-left-out" Reservation
        "ordered pairs that were left out: {count}" "left_out.csv has the reasons" "";
    PAIRS_CONTRADICT "pairs-contradict" Reservation
        "ordered pairs whose clocks contradict each other: {count}"
        "no offset of the clocks fits all exchanges, so these pairs have no one-way bounds" "";
    PAIRS_SLOW "pairs-slow" Reservation
        "ordered pairs that are slow, also alone: {count}" "" "";
    PAIRS_CONGESTED "pairs-congested" Reservation
        "ordered pairs that are slow while others measure, and not alone: {count}" "they share a link" "";
    PAIRS_SUSPECT "pairs-suspect" Reservation
        "ordered pairs that are slow while others measure, and were not measured alone: {count}" "" "";
    NODES_NOT_JUDGED "nodes-not-judged" Reservation
        "not all nodes were judged" "a verdict needs at least four nodes, and figures of most pairs of each" "";

    // The clock.
    CLOCK_SET_BACK "clock-set-back" Reservation
        "the clock was set back {count} times" "these steps do not count as jumps, nor in the times" "";
    CLOCK_CAN_BE_SET "clock-can-be-set" Advice
        "CLOCK_REALTIME can be set: a step forward looks like a jump of all CPUs at once" "" "use another --clock";
    NO_FREE_CPU "no-free-cpu" Advice
        "all CPUs are watched" "other threads of this process run on one of them, as for the progress line" "";
    RDTSCP_IN_GUEST "rdtscp-in-guest" Reservation
        "each cpuid of --clock rdtscp exits to the hypervisor" "this is a guest, and an exit takes thousands of cycles"
        "use --clock rdtscp-lfence";
    BASELINE_SHORTENED "baseline-shortened" Advice
        "the baseline was measured over {iterations} iterations instead of {asked}"
        "all of them would have taken more than {longest_ns}" "";
    COUNTERS_NOT_READABLE "counters-not-readable" Advice
        "counters cannot be read: {counters}" "causes of jumps that only these show are not found" "";
    JUMPS_NOT_SAMPLED "jumps-not-sampled" Advice
        "{count} jumps are not sampled"
        "no counters were read after them: reading is limited to 10 % of the time, 1 % for jumps below 1 us"
        "raise --threshold";
    TRACE_NOT_MATCHED "trace-not-matched" Reservation
        "jumps cannot be matched with the trace" "the clock was set back" "";
    TRACE_RECORDS_LOST "trace-records-lost" Reservation
        "the trace lost records {count} times, for {lost_ns} on a CPU" "causes of jumps in that time are unknown" "";
    TRACE_CUT "trace-cut" Advice
        "the trace keeps only events longer than {kept_above_ns}" "shorter jumps are not sampled" "";
    TRACE_ERROR "trace-error" Advice
        "jumps are matched with the trace within {error_ns}" "the clock of the trace is CLOCK_MONOTONIC_RAW" "";
    DIFFERENCES_COUNTED "differences-counted" Advice
        "{count} of {of} differences are rounded to 0.1 % (those below 4096 ticks are exact)"
        "the clock was read faster than in the baseline, and the reserved memory was full" "";
    BELOW_RESOLUTION "below-resolution" Advice
        "most readings repeat the one before"
        "a reading takes {mean_ns} on average, less than the resolution of the clock" "";
    WATCHED_SHORT "watched-short" Reservation
        "watched for {watched_ns} of {asked_ns}" "other processes used the CPU at the beginning or the end" "";
    WINDOW_SUMS_CUT "window-sums-cut" Reservation
        "a window had more jumps than fit into memory" "the sums over windows are lower bounds"
        "use a shorter --window";
    JUMP_COUNTERS_LEFT_OUT "jump-counters-left-out" Advice
        "{count} jumps up to {longest_ns} are in jumps.csv with their cause, without its counters"
        "counters are kept for the longest jumps only" "";
    JUMPS_COUNTED "jumps-counted" Advice
        "{count} jumps up to {longest_ns} are only counted"
        "jumps.csv, the pattern and the coincidences contain the longer ones" "raise --keep-jumps";

    // Limits of control groups.
    THROTTLED "throttled" Invalid
        "a CPU quota throttled the group in {throttled} of {periods} periods: {throttled_ns} over all CPUs, \
         at most {of_time} % of the time of a thread"
        "the figures contain these stops" "lift the quota, which `hcabench host` names";
    THROTTLED_BRIEFLY "throttled-briefly" Reservation
        "a CPU quota throttled the group in {throttled} of {periods} periods: {throttled_ns} over all CPUs, \
         at most {of_time} % of the time of a thread"
        "maxima and the highest percentiles may be these stops" "lift the quota, which `hcabench host` names";
    THROTTLED_BESIDE "throttled-beside" Advice
        "a CPU quota throttled the group in {throttled} of {periods} periods: {throttled_ns} over all CPUs"
        "it stops threads without a real-time priority; those with --priority have kernel.sched_rt_runtime_us instead"
        "lift the quota, which `hcabench host` names";
    THROTTLED_WATCH "throttled-watch" Reservation
        "a CPU quota throttled the group in {throttled} of {periods} periods: {throttled_ns} over all CPUs"
        "jumps and late wake-ups contain these stops"
        "lift the quota, which `hcabench host --for clock` names, to see what else takes the CPU";
    THROTTLING_UNKNOWN "throttling-unknown" Reservation
        "whether a CPU quota stopped threads is unknown: {reasons}" "" "make these files readable, or lift the quota";

    // Pairs and nodes of a fabric.
    PAIRS_SAMPLED "pairs-sampled" Advice
        "each rank was measured with {partners} of {others} others, drawn at random"
        "a slow node shows in its own pairs, a slow link only if it is among the {percent} % of all pairs that were measured"
        "use --partners all for all pairs, or another --seed for others";
    TIER_UNKNOWN "tier-unknown" Reservation
        "the tier of {nodes} is unknown" "{source} does not name them, so their pairs are compared with none and not judged"
        "correct the names in the file, or name them with --topology or --group; docs/fabric.md has the rules";

    TIER_TOO_SMALL "tier-too-small" Reservation
        "the pairs of the tier {tiers} are not judged"
        "less than two of the tier have figures in both directions, so there is nothing to compare"
        "measure with more nodes that are as far apart";

    // Rates.
    RATE_MISSED "rate-missed" Advice
        "in a round {what} at a rate {off} % off the one asked for" "{why}" "use longer rounds, or a lower rate";

    // Files of the results.
    FILES_DAMAGED "files-damaged" Reservation
        "files are damaged, and what they lack is left out: {files}" "{reasons}"
        "copy them again, or measure again";
}
