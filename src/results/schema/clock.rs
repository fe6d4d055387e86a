//! The clock benchmark.

use super::{Better, Column, Over, ROUND, SampleFile, Schema};

/// How the clock is read.
pub const CLOCK: Column = Column::setting("clock", "how the clock is read");
/// The watched CPU.
pub const CPU: Column = Column::setting("cpu", "the CPU that is watched")
    .whole()
    .title("CPU");

/// Readings.
pub const ITERATIONS: Column = Column::count(
    "iterations",
    "readings, each with its difference to the one before",
);
/// Time watched.
pub const ELAPSED: Column = Column::measured("elapsed_ns", 0, "from the first reading to the last")
    .whole()
    .better(Better::Neither)
    .over(Over::Sum)
    .title("time");
/// Length of a tick.
pub const NANOS_PER_TICK: Column =
    Column::measured("nanos_per_tick", 9, "nanoseconds in a tick of the clock")
        .better(Better::Neither)
        .title("tick ns");
/// Mean difference.
pub const MEAN: Column = Column::measured(
    "mean_ns",
    3,
    "mean difference, without the time that was not watched",
)
.with_bounds()
.title("mean");
/// Least difference.
pub const MIN: Column = Column::measured("min_ns", 3, "least difference")
    .over(Over::Least)
    .title("min");
/// Greatest difference.
pub const MAX: Column = Column::measured(
    "max_ns",
    3,
    "greatest difference, or stop while the clock was not watched",
)
.over(Over::Greatest)
.title("max");

const fn percentile(name: &'static str, title: &'static str, meaning: &'static str) -> Column {
    Column::measured(name, 3, meaning)
        .with_bounds()
        .title(title)
}

/// Median difference.
pub const P50: Column = percentile("p50_ns", "p50", "median difference");
/// 75th percentile.
pub const P75: Column = percentile("p75_ns", "p75", "75th percentile of the differences");
/// 90th percentile.
pub const P90: Column = percentile("p90_ns", "p90", "90th percentile of the differences");
/// 95th percentile.
pub const P95: Column = percentile("p95_ns", "p95", "95th percentile of the differences");
/// 99th percentile.
pub const P99: Column = percentile("p99_ns", "p99", "99th percentile of the differences");
/// 99.9th percentile.
pub const P999: Column = percentile("p999_ns", "p99.9", "99.9th percentile of the differences");
/// 99.99th percentile.
pub const P9999: Column = percentile(
    "p9999_ns",
    "p99.99",
    "99.99th percentile of the differences",
);
/// 99.999th percentile.
pub const P99999: Column = percentile(
    "p99999_ns",
    "p99.999",
    "99.999th percentile of the differences",
);
/// 99.9999th percentile.
pub const P999999: Column = percentile(
    "p999999_ns",
    "p99.9999",
    "99.9999th percentile of the differences",
);

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

/// Twice the mean difference before the watch.
pub const BASELINE: Column = Column::measured(
    "baseline_ns",
    3,
    "twice the mean difference before the watch",
)
.title("baseline");
/// Readings for it.
pub const BASELINE_ITERATIONS: Column =
    Column::count("baseline_iterations", "readings for the baseline").over(Over::Least);
/// What is a jump.
pub const THRESHOLD: Column = Column::measured("threshold_ns", 3, "longer differences are jumps")
    .better(Better::Neither)
    .title("above");
/// Jumps.
pub const JUMPS: Column =
    Column::count("jumps", "differences above the threshold").better(Better::Lower);
/// Rate of jumps.
pub const JUMP_RATE: Column = Column::measured("jumps_per_s", 3, "jumps in a second of the watch")
    .with_bounds()
    .title("jumps");
/// Time in jumps.
pub const JUMPS_TOTAL: Column = Column::measured("jumps_total_ns", 0, "time in jumps")
    .whole()
    .over(Over::Sum)
    .title("in jumps");
/// Share of the time in jumps.
pub const JUMP_TIME: Column = Column::measured(
    "jump_time_percent",
    6,
    "share of the watch that was spent in jumps",
)
.with_bounds()
.title("jumps");
/// Rows of the file of jumps.
pub const JUMPS_IN_FILE: Column = Column::count("jumps_in_file", "rows in jumps.csv");
/// Rows of the file of differences.
pub const DIFFERENCES_IN_FILE: Column = Column::count(
    "differences_in_file",
    "rows in histogram.csv: lengths that occurred",
);
/// Jumps without counters.
pub const NOT_SAMPLED: Column = Column::count(
    "jumps_not_sampled",
    "jumps behind which no counters were read",
);
/// The worst window.
pub const HIGHEST_WINDOW: Column = Column::measured(
    "highest_window_ns",
    0,
    "highest sum, over a sliding window, of what jumps have above the baseline",
)
.over(Over::Greatest);
/// Steps of the clock backwards.
pub const STEPS_BACKWARDS: Column =
    Column::count("steps_backwards", "how often the clock was set back").better(Better::Lower);
/// The largest of them.
pub const LARGEST_STEP_BACKWARDS: Column =
    Column::measured("largest_step_backwards_ns", 0, "the largest step backwards")
        .whole()
        .over(Over::Greatest);
/// Share of the time that was not watched.
pub const BLIND_SHARE: Column = Column::measured(
    "blind_share",
    6,
    "share of the watch between two passes of the loop, where the clock was not watched, of 1",
)
.title("not watched");
/// Context switches because others ran.
pub const INVOLUNTARY_SWITCHES: Column = Column::count(
    "involuntary_switches",
    "context switches because another thread was to run",
)
.better(Better::Lower);
/// Context switches because the thread waited.
pub const VOLUNTARY_SWITCHES: Column = Column::count(
    "voluntary_switches",
    "context switches because the thread waited or was stopped",
)
.better(Better::Lower);
/// Page faults.
pub const PAGE_FAULTS: Column =
    Column::count("page_faults", "page faults of the thread").better(Better::Lower);

/// The settings of a point, which is a watched CPU.
pub const POINT: [Column; 2] = [CLOCK, CPU];

/// What is found of it.
pub const FIGURES: [Column; 32] = [
    ITERATIONS,
    ELAPSED,
    NANOS_PER_TICK,
    MEAN,
    MIN,
    P50,
    P75,
    P90,
    P95,
    P99,
    P999,
    P9999,
    P99999,
    P999999,
    MAX,
    BASELINE,
    BASELINE_ITERATIONS,
    THRESHOLD,
    JUMPS,
    JUMP_RATE,
    JUMPS_TOTAL,
    JUMP_TIME,
    JUMPS_IN_FILE,
    DIFFERENCES_IN_FILE,
    NOT_SAMPLED,
    HIGHEST_WINDOW,
    STEPS_BACKWARDS,
    LARGEST_STEP_BACKWARDS,
    BLIND_SHARE,
    INVOLUNTARY_SWITCHES,
    VOLUNTARY_SWITCHES,
    PAGE_FAULTS,
];

/// A jump's columns.
pub const JUMP_COLUMNS: [Column; 16] = [
    ROUND,
    Column::measured(
        "t_ns",
        0,
        "the reading before it, since the first reading of all CPUs",
    )
    .whole()
    .better(Better::Neither),
    Column::measured(
        "jump_cycles",
        0,
        "its length in cycles; empty where the clock is not the TSC",
    )
    .whole(),
    Column::measured(
        "jump_ns",
        0,
        "its length; negative for a step of the clock backwards",
    )
    .whole(),
    Column::label("cause", "what the kernel's counters tell of its cause"),
    Column::count("other_cpus", "other CPUs that jumped at the same time"),
    Column::measured("window_ns", 0, "time since the counters were read before")
        .whole()
        .better(Better::Neither),
    Column::count(
        "window_other_jumps",
        "other differences in that time to which the counters can belong",
    ),
    Column::count("smis", "system management interrupts"),
    Column::count(
        "involuntary_switches",
        "context switches because another thread was to run",
    ),
    Column::count(
        "voluntary_switches",
        "context switches because the thread waited",
    ),
    Column::count("major_faults", "page faults that read from a disk"),
    Column::count("minor_faults", "other page faults"),
    Column::measured(
        "steal_ns",
        0,
        "time that the hypervisor gave to others, in steps of 10 ms",
    )
    .whole(),
    Column::label("interrupts", "interrupts of the CPU, as LOC:2;RES:1"),
    Column::label("softirqs", "softirqs of the CPU, in the same way"),
];

/// A CPU's jumps, one row each.
pub const JUMPS_FILE: SampleFile = SampleFile {
    name: "jumps.csv",
    columns: &JUMP_COLUMNS,
    counted_by: JUMPS_IN_FILE,
    meaning: "a row a jump, in the order of time; empty where nothing was read",
};

/// The columns of a difference.
pub const HISTOGRAM_COLUMNS: [Column; 4] = [
    ROUND,
    Column::measured("difference_ticks", 0, "a difference between two readings").whole(),
    Column::measured("difference_ns", 3, "the same in nanoseconds"),
    Column::count("differences", "how often it occurred"),
];

/// How often each difference occurred.
pub const HISTOGRAM_FILE: SampleFile = SampleFile {
    name: "histogram.csv",
    columns: &HISTOGRAM_COLUMNS,
    counted_by: DIFFERENCES_IN_FILE,
    meaning: "a row a difference that occurred, ascending; where it was counted in steps or to 0.1 %, a row stands for several",
};

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "clock",
    title: "clock",
    point: &POINT,
    figures: &FIGURES,
    samples: &[JUMPS_FILE, HISTOGRAM_FILE],
    headline: [ITERATIONS, P50, P99],
};
