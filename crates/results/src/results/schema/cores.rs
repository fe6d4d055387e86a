//! The benchmark of cache lines between CPUs.

use super::{Better, Column, Data, ROUND, SampleFile, Schema};
use super::{columns, join};

columns! {
    /// The settings of a point.
    POINT;
    CORES = setting("cores", "what the two CPUs of a pair have in common: smt-siblings (a core), same-cluster, same-cache \
        (the last level), other-core (no cache is reported), other-cache (a socket and a NUMA node), other-node (a socket), other-socket (nothing); unknown \
        where the kernel does not report it");
}

columns! {
    /// What is found of a point.
    FIGURES;
    HALF = measured("half_round_trip_ns", "half of the time in which a line is handed over and another one comes back, \
        which no clock's offset is in: the median over the pairs, of each the median of its batches", 1)
        .with_bounds().title("half round trip");
    HALF_MIN = measured("half_round_trip_min_ns", "the same of the fastest pair", 1).title("fastest pair");
    HALF_MAX = measured("half_round_trip_max_ns", "the same of the slowest pair", 1).title("slowest pair");
    ROUND_TRIP = measured("round_trip_ns", "the whole round trip: the median over the pairs", 1).title("round trip");
    ONE_WAY = measured("one_way_ns", "time from the stamp of the CPU that writes a line to that of the CPU that sees it, \
        with both stamps in it: the median over the directions, of each the median of its hand-overs", 1)
        .with_bounds().title("one way");
    OFFSET_BOUND = measured("clock_offset_bound_ns", "the clocks of the two CPUs are known to differ by no more than \
        their offset and this much on either side: half of the shortest round trip with stamps; the median over the \
        pairs", 1).better(Better::Neither).title("clock within");
    STREAM = measured("stream_mb_s", "bytes of lines of 64 bytes that one CPU writes, and the other reads, in a second, \
        in 10^6 bytes: the median over the directions", 1).with_bounds().better(Better::Higher).title("stream");
    DIRECTIONS = count("directions", "ordered pairs that were measured, the rows of pairs.csv").title("directions");
    UNMEASURED = count("pairs_unmeasured", "pairs whose CPUs did not run at the same time, which have no figures")
        .better(Better::Lower);
    PARTLY = count("pairs_partly_measured", "pairs whose CPUs ran at the same time for a part of the measurement, which \
        lack figures").better(Better::Lower);
    NEGATIVE = count("one_way_negative", "directions with a negative one-way time: the clocks of the two CPUs differ")
        .better(Better::Lower);
    ELSEWHERE = count("lines_on_other_node", "directions whose lines lie on another NUMA node than was asked for")
        .better(Better::Lower);
    STAMP_COST = measured("stamp_cost_ns", "cost of a time stamp", 1);
}

/// The columns of a direction.
pub mod pair {
    use super::{Better, Column, Data, columns};

    columns! {
        /// A direction.
        PAIR;
        START = measured("t_start_ns", "when its pair was begun, since the first of its point in the round", 0).whole()
            .better(Better::Neither);
        SENDER = label("sender_cpu", "the CPU that writes").data(Data::Whole);
        RECEIVER = label("receiver_cpu", "the CPU that reads").data(Data::Whole);
        NODE = label("memory_node", "the NUMA node on which the lines lie that the sender writes, as the kernel \
            reports it; empty if it does not")
            .data(Data::Whole);
        HALF = measured("half_round_trip_ns", "half of a round trip, the same in both directions: the median of the \
            batches", 2);
        HALF_LEAST = measured("half_round_trip_least_ns", "the same of the fastest batch", 2);
        ROUND_TRIP = measured("round_trip_ns", "a round trip", 2);
        ONE_WAY = measured("one_way_ns", "time from the sender's stamp to the receiver's: the median of the hand-overs", 2);
        OFFSET = measured("clock_offset_ns", "how far the receiver's clock is ahead of the sender's, if the shortest \
            round trip takes the same time there and back", 2).better(Better::Neither);
        OFFSET_BOUND = measured("clock_offset_bound_ns", "the offset is known to this much on either side", 2)
            .better(Better::Neither);
        STREAM = measured("stream_mb_s", "bytes of lines that pass in a second, in 10^6 bytes; empty if its CPUs did \
            not run at the same time until its end", 1).better(Better::Higher);
        BATCHES = measured("batches", "batches of 100 round trips that count", 0).whole().better(Better::Neither);
        HANDOVERS = measured("handovers", "hand-overs with stamps that count", 0).whole().better(Better::Neither);
    }
}

/// All pairs of a point, a row for each direction.
pub const PAIRS_FILE: SampleFile = SampleFile {
    name: "pairs.csv",
    columns: &join::<14>(&[&[ROUND], &pair::PAIR]),
    counted_by: DIRECTIONS,
    meaning: "a row a direction of a pair, in the order in which pairs were measured",
};

columns! {
    /// The settings of a run.
    RUN;
    CPUS = setting("cpus", "the CPUs whose pairs are measured; empty: all that the process may use");
    DURATION = setting("duration_ns", "how long a pair is measured in a round, both directions together").whole();
    MEMORY_NODE = setting("memory_node", "on which NUMA node lines lie: that of the CPU that writes them (writer) or reads \
        them (reader), or a number");
    CLOCK = setting("clock", "the clock that is read");
}

/// What the results have.
pub const SCHEMA: Schema = Schema {
    benchmark: "cores",
    title: "cores",
    run: &RUN,
    point: &POINT,
    figures: &FIGURES,
    samples: &[PAIRS_FILE],
    across: None,
    searched: None,
    headline: [DIRECTIONS, HALF, HALF_MAX],
};
