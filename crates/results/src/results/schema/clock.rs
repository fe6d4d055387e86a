//! The clock benchmark.

use super::{Better, Column, Data, HLOG_INTERVAL, Over, ROUND, SampleFile, Schema, columns, join};

/// The percentiles that are reported, each with its column, in ascending order.
pub const PERCENTILES: [(f64, Column); 9] = [
    (50.0, P50),
    (75.0, P75),
    (90.0, P90),
    (95.0, P95),
    (99.0, P99),
    (99.9, P999),
    (99.99, P9999),
    (99.999, P99999),
    (99.9999, P999999),
];

columns! {
    /// The settings of a run.
    RUN;
    DURATION = setting("duration_ns", "how long the clock is watched").whole();
    READINGS = setting("iterations", "how often the clock is read, where that was asked for").whole();
    REPORTS = setting("reports", "what is reported of the differences");
    KEEP = setting("keep_jumps", "jumps kept for each CPU; as many as fit into 32 MiB for all if empty").whole();
    WINDOW = setting("window_ns", "length of the windows that slide").whole();
    ASKED_THRESHOLD = setting("threshold_ns", "longer differences are jumps; twice the mean if empty").whole();
    COINCIDENCE = setting("coincidence_ns", "jumps of several CPUs that begin within this of each other coincide").whole();
    BASELINE_READINGS = setting("baseline_iterations", "readings for the baseline; those of half a second, and 100,000 at least, if empty").whole();
    HUGE_PAGES = setting("hugepages", "whether kept differences must, may or must not lie in huge pages");
    LIMITS = setting("limits", "what --fail-above allows");
    CAUSES = setting("causes", "what is looked at to find out what causes a jump");
    UNTIL = setting("until_jumps", "jumps of each CPU that end the watch, where that was asked for").whole();
    INTERVAL = setting("interval_ns", "time between two wake-ups by a timer").whole();
    PRIORITY = setting("priority", "SCHED_FIFO priority of the measuring threads").whole();
    ALLOW_IDLE_STATES = setting("allow_idle_states", "whether idle CPUs may sleep deeply").data(Data::Flag);
    TSC_RATE = setting("tsc_khz", "rate of the TSC, as given").whole();
}

columns! {
    /// The settings of a point, which is a watched CPU.
    POINT;
    CLOCK = setting("clock", "how the clock is read");
    TIMER = setting("timer", "what wakes the thread, its figures are how late; empty where a clock is read without pause");
    CPU = setting("cpu", "the CPU that is watched").whole().title("CPU");
}

columns! {
    /// What is found of it.
    FIGURES;
    ITERATIONS = count("iterations", "readings, each with its difference to the one before");
    ELAPSED = measured("elapsed_ns", "from the first reading to the last", 0)
        .whole().better(Better::Neither).over(Over::Sum).title("time");
    NANOS_PER_TICK = measured("nanos_per_tick", "nanoseconds in a tick of the clock", 9)
        .better(Better::Neither).title("tick ns");
    MEAN = measured("mean_ns", "mean difference, without the time that was not watched", 3).with_bounds().title("mean");
    MIN = measured("min_ns", "least difference", 3).over(Over::Least).title("min");
    P50 = measured("p50_ns", "median difference", 3).with_bounds().title("p50");
    P75 = measured("p75_ns", "75th percentile of the differences", 3).with_bounds().title("p75");
    P90 = measured("p90_ns", "90th percentile of the differences", 3).with_bounds().title("p90");
    P95 = measured("p95_ns", "95th percentile of the differences", 3).with_bounds().title("p95");
    P99 = measured("p99_ns", "99th percentile of the differences", 3).with_bounds().title("p99");
    P999 = measured("p999_ns", "99.9th percentile of the differences", 3).with_bounds().title("p99.9");
    P9999 = measured("p9999_ns", "99.99th percentile of the differences", 3).with_bounds().title("p99.99");
    P99999 = measured("p99999_ns", "99.999th percentile of the differences", 3).with_bounds().title("p99.999");
    P999999 = measured("p999999_ns", "99.9999th percentile of the differences", 3).with_bounds().title("p99.9999");
    MAX = measured("max_ns", "greatest difference, or stop while the clock was not watched", 3)
        .over(Over::Greatest).title("max");
    BASELINE = measured("baseline_ns", "twice the mean difference before the watch", 3).title("baseline");
    BASELINE_ITERATIONS = count("baseline_iterations", "readings for the baseline").over(Over::Least);
    THRESHOLD = measured("threshold_ns", "longer differences are jumps", 3).better(Better::Neither).title("above");
    JUMPS = count("jumps", "differences above the threshold").better(Better::Lower);
    JUMP_RATE = measured("jumps_per_s", "jumps in a second of the watch", 3).with_bounds().title("jumps");
    JUMPS_TOTAL = measured("jumps_total_ns", "time in jumps", 0).whole().over(Over::Sum).title("in jumps");
    JUMP_TIME = measured("jump_time_percent", "share of the watch that was spent in jumps", 6)
        .with_bounds().title("jumps");
    JUMPS_IN_FILE = count("jumps_in_file", "rows in jumps.csv");
    DIFFERENCES_IN_FILE = count("differences_in_file", "rows in histogram.csv: lengths that occurred");
    NOT_SAMPLED = count("jumps_not_sampled", "jumps behind which no counters were read, or whose trace was not kept");
    HIGHEST_WINDOW = measured("highest_window_ns",
        "highest sum, over a sliding window, of what jumps have above the baseline", 0).over(Over::Greatest);
    STEPS_BACKWARDS = count("steps_backwards", "how often the clock was set back").better(Better::Lower);
    LARGEST_STEP_BACKWARDS = measured("largest_step_backwards_ns", "the largest step backwards", 0)
        .whole().over(Over::Greatest);
    BLIND_SHARE = measured("blind_share",
        "share of the watch between two passes of the loop, where the clock was not watched, of 1; stops left out", 6)
        .title("not watched");
    INVOLUNTARY_SWITCHES = count("involuntary_switches", "context switches because another thread was to run")
        .better(Better::Lower);
    VOLUNTARY_SWITCHES = count("voluntary_switches", "context switches because the thread waited or was stopped")
        .better(Better::Lower);
    MISSED = count("missed", "wake-ups that were due while the thread was late for the one before").better(Better::Lower);
    PAGE_FAULTS = count("page_faults", "page faults of the thread").better(Better::Lower);
}

/// The columns of a jump.
pub mod jump {
    use super::{Better, Column, columns};

    columns! {
        /// All of it, behind the round.
        ALL;
        AT = measured("t_ns", "the reading before it, since the first reading of all CPUs", 0)
            .whole().better(Better::Neither);
        CYCLES = measured("jump_cycles", "its length in cycles; empty where the clock is not the TSC", 0).whole();
        LENGTH = measured("jump_ns", "its length; negative for a step of the clock backwards", 0).whole();
        CAUSE = label("cause", "its cause by the kernel's counters, or by its trace");
        OTHER_CPUS = count("other_cpus", "other CPUs that jumped at the same time");
        WINDOW = measured("window_ns", "time since the counters were read before", 0).whole().better(Better::Neither);
        WINDOW_OTHER_JUMPS = count("window_other_jumps",
            "other differences in that time to which the counters can belong");
        SMIS = count("smis", "system management interrupts");
        INVOLUNTARY = count("involuntary_switches", "context switches because another thread was to run");
        VOLUNTARY = count("voluntary_switches", "context switches because the thread waited");
        MAJOR_FAULTS = count("major_faults", "page faults that read from a disk");
        MINOR_FAULTS = count("minor_faults", "other page faults");
        STEAL = measured("steal_ns", "time that the hypervisor gave to others, in steps of 10 ms", 0).whole();
        THROTTLED = measured("throttled_ns", "time that a CPU quota stopped threads of the group, on all CPUs", 0)
            .whole();
        INTERRUPTS = label("interrupts", "interrupts of the CPU, as LOC:2;RES:1");
        SOFTIRQS = label("softirqs", "softirqs of the CPU, in the same way");
        TRACE = label("trace", "who had the CPU by the trace, and for how many ns, as sshd (812):40125;LOC local timer:1920");
        REST = measured("rest_ns", "the rest of its length: the way into and out of the kernel, or events that are not \
                                    in the trace", 0)
            .whole();
    }
}

/// A CPU's jumps, one row each.
pub const JUMPS_FILE: SampleFile = SampleFile {
    name: "jumps.csv",
    columns: &join::<19>(&[&[ROUND], &jump::ALL]),
    counted_by: JUMPS_IN_FILE,
    meaning: "a row a jump, in the order of time; empty where nothing was read",
};

/// How often each difference occurred.
pub const HISTOGRAM_FILE: SampleFile = SampleFile {
    name: "histogram.csv",
    columns: &[
        ROUND,
        Column::measured("difference_ticks", 0, "a difference between two readings").whole(),
        Column::measured("difference_ns", 3, "the same in nanoseconds"),
        Column::count("differences", "how often it occurred"),
    ],
    counted_by: DIFFERENCES_IN_FILE,
    meaning: "a row a difference that occurred, ascending; where it was counted in steps or to 0.1 %, a row stands for several",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "clock",
    title: "clock",
    run: &join::<{ RUN.len() + 1 }>(&[&RUN, &[HLOG_INTERVAL]]),
    point: &POINT,
    figures: &FIGURES,
    samples: &[JUMPS_FILE, HISTOGRAM_FILE],
    across: None,
    searched: None,
    headline: [ITERATIONS, P50, P99],
};
