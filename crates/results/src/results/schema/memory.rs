//! The memory benchmark.

use super::{Better, Column, CrossRowFigure, Data, Over, ROUND, SampleFile, Schema};
use super::{columns, join};

columns! {
    /// The settings of a point.
    POINT;
    READ_SHARE = setting("read_share_percent", "of the accesses that are issued, those that read; the others store")
        .whole().title("reads");
    STORE = setting("store", "how lines are stored: regular (through the caches) or non-temporal (past them)");
    PAUSE = setting("pause_nops", "nops behind each group of 50 accesses: 0 is full speed; empty without generators")
        .whole().title("pause");
    ISA = setting("isa", "the instruction set of the accesses: sse2, avx2, avx512, neon or sve");
    SIZE = setting("size_bytes", "bytes of the buffer of the chase").whole().title("buffer");
    GENERATORS = setting("generators", "the CPUs of the generators");
    GENERATOR_COUNT = setting("generator_count", "how many generators there are").whole();
    CHASE_CPU = setting("chase_cpu", "the CPU of the pointer chase").whole();
    MEMORY_NODE = setting("memory_node", "the NUMA node of all buffers; empty if the kernel was left to choose").whole()
        .title("memory node");
    WINDOWS = setting("windows", "windows that are measured in a round").whole();
    WINDOW = setting("window_ns", "time of each").whole().title("window");
    SETTLE = setting("settle_ns", "how long is waited at most until the bandwidth is stable").whole();
    OUTLIERS = setting("outliers", "which windows are left out of the figures: mad (their latency is more than 3.5 \
        deviations from the median, by the median absolute deviation), sigma3 (more than three standard deviations from \
        the mean) or none");
    SMOOTH = setting("smooth", "how the latencies of a curve are smoothed: savgol:WINDOW:ORDER, or none");
}

columns! {
    /// What is found of a point.
    FIGURES;
    LATENCY = measured("latency_ns", "time of a step of the chase, a load that waits for the one before it: the mean of \
        the windows that were kept", 2).with_bounds().title("latency");
    SMOOTHED = measured("latency_smoothed_ns", "the latency smoothed along its curve, in the order of load; empty with \
        fewer points than the filter takes", 2).title("smoothed");
    DEVIATION = measured("latency_sd_ns", "standard deviation of the windows that were kept", 2);
    LATENCY_MAX = measured("latency_max_ns", "the latency of the slowest window, kept or not", 2).over(Over::Greatest);
    WITHOUT_TLB = measured("latency_without_tlb_ns", "the latency less the cycles of page walks and of hits of the \
        second-level TLB; empty where the processor does not count them, as instrument.tlb_counters in settings.json has \
        it", 2).title("without TLB");
    WALK_CYCLES = measured("walk_cycles_per_step", "cycles in which a page walk was under way; empty likewise", 3);
    WALKS = measured("page_walks_per_step", "page walks of the chase, on AMD its misses of the second-level TLB; empty \
        likewise", 4);
    TLB_HITS = measured("stlb_hits_per_step", "pages that were found in the second-level TLB, not in the first; empty \
        likewise", 4).better(Better::Neither);
    ISSUED = measured("bandwidth_issued_mb_s", "bytes of the lines that generators read and stored in a second, in 10^6 \
        bytes", 1).with_bounds().better(Better::Neither).title("issued");
    ESTIMATED = measured("bandwidth_estimated_mb_s", "the same with a line read for each regular store, and for each \
        step of the chase: an upper bound, as newer processors need not read a line that is stored whole", 1)
        .better(Better::Neither).title("estimated");
    MEASURED = measured("bandwidth_measured_mb_s", "what the memory controllers counted; empty without their counters", 1)
        .better(Better::Neither).title("measured");
    SOURCE = label("bandwidth_source", "the bandwidth to go by: measured where controllers count, else estimated");
    STEPS = count("chase_steps", "steps of the chase, in windows that were kept");
    MEASURED_WINDOWS = count("windows_measured", "windows that were measured").title("windows");
    REMOVED = count("windows_removed", "windows that were left out as outliers; those that were stalled are not among \
        them").better(Better::Lower).title("removed");
    STALLED = count("windows_stalled", "windows in which a generator did nothing for at least half of the time")
        .better(Better::Lower);
    UNSETTLED = count("rounds_unsettled", "rounds in which the bandwidth was not stable before the first window")
        .better(Better::Lower);
    SETTLE_TIME = measured("settle_time_ns", "how long was waited for it", 0).whole();
    SETUP_TIME = measured("setup_time_ns", "how long the buffers took to be made; only in the point that they were made for", 0)
        .whole().over(Over::Greatest);
    IN_CACHE = label("in_cache", "whether the buffer of the chase is smaller than four times the last level of cache, or \
        those of the generators that share such a cache together are").data(Data::Flag);
    CORE_LIMITED = label("core_limited", "whether there is one generator, whose bandwidth is limited by its core and \
                                          does not show that of the memory").data(Data::Flag);
    CORE_SHARED = label("core_shared", "whether a generator runs on the core of the chase, as another thread of it: they \
        share its caches and its way to memory").data(Data::Flag);
    CPU_NODE = label("cpu_node", "the NUMA node of the CPUs, where pairs of nodes are measured").data(Data::Whole)
        .title("CPU node");
    GENERATOR_SIZE = label("generator_size_bytes", "bytes of each of the two buffers of a generator; empty without \
        generators").data(Data::Whole);
    PAGES = label("pages", "the pages that the buffers got: 4k, 2m (reserved), 2m-transparent or 1g");
    MARKS = label("marks", "what to know before a figure is believed: in-cache, core-limited, core-shared, stalled, \
        unstable; empty if nothing");
}

/// The columns of a window.
pub mod window {
    use super::{Better, Column, Data, columns};

    columns! {
        /// A window.
        WINDOW;
        NUMBER = label("window", "its number in its round, from 0").data(Data::Whole);
        START = measured("t_start_ns", "when it began, since the first of its round", 0).whole()
            .better(Better::Neither);
        TIME = measured("time_ns", "how long it took", 0).whole().better(Better::Neither);
        STEPS = measured("steps", "steps of the chase", 0).whole().better(Better::Neither);
        LATENCY = measured("latency_ns", "time of a step", 3);
        READ = measured("lines_read", "lines of 64 bytes that generators read", 0).whole().better(Better::Neither);
        STORED = measured("lines_stored", "lines that they stored", 0).whole().better(Better::Neither);
        CONTROLLERS = measured("controllers_bytes", "bytes that the memory controllers counted, as a part of the time \
            between two readings of them; empty without them", 0)
            .whole().better(Better::Neither);
        WALK_CYCLES = measured("walk_cycles", "cycles in which a page walk of the chase was under way; empty where they \
            are not counted, or were not all the time", 0).whole();
        WALKS = measured("page_walks", "page walks of the chase, on AMD its misses of the second-level TLB; empty \
            likewise", 0).whole();
        TLB_HITS = measured("stlb_hits", "pages that it found in the second-level TLB, not in the first; empty likewise", 0)
            .whole().better(Better::Neither);
        STALLED = label("stalled", "whether a generator did nothing for at least half of it").data(Data::Flag);
        KEPT = label("kept", "whether it counts; false if it is an outlier or was stalled").data(Data::Flag);
    }
}

/// All windows, also those that do not count.
pub const WINDOWS_FILE: SampleFile = SampleFile {
    name: "windows.csv",
    columns: &join::<14>(&[&[ROUND], &window::WINDOW]),
    counted_by: MEASURED_WINDOWS,
    meaning: "a row a window: the chase, and what the generators did meanwhile",
};

columns! {
    /// The settings of a run.
    RUN;
    PAGES_ASKED = setting("pages", "the pages that were asked for: 4k, 2m, 1g, or largest");
    BANDWIDTH = setting("bandwidth", "where the measured bandwidth comes from: auto, software or uncore");
    READ_EVENT = setting("read_event", "the events that were named for what memory controllers read; empty if none were");
    WRITE_EVENT = setting("write_event", "the same for what they write");
    SEED = setting("seed", "what the order of the chase follows from").whole();
}

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "memory",
    title: "memory",
    run: &RUN,
    point: &POINT,
    figures: &FIGURES,
    samples: &[WINDOWS_FILE],
    across: Some(CrossRowFigure::Curves),
    searched: None,
    headline: [MEASURED_WINDOWS, LATENCY, LATENCY_MAX],
};
