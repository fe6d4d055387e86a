//! The fabric benchmark.
//!
//! A *pair* is ordered: what goes from one endpoint to another. `runs.csv` has a row for each pair and round, and
//! `pairs.csv` one for each pair, which [`over_rounds`](crate::results::runs::over_rounds) makes of it. The results of
//! all pairs together are in more columns of `pairs.csv`, in `nodes.csv` and in `summary.csv`.

use super::{Better, Column, Data, LEFT_OUT, NamedColumn, Over, RUNS, SUMMARY, Schema};
use super::{columns, plain};

/// A row for each ordered pair.
pub const PAIRS: &str = "pairs.csv";
/// A row for each node.
pub const NODES: &str = "nodes.csv";
/// A row for each rule and what it judges, of a run that is judged by rules.
pub const RULES: &str = "rules.csv";
/// The ranks with their nodes and devices, the launcher and the schedule.
pub const FABRIC: &str = "fabric.json";

columns! {
    /// Which pair it is.
    PAIR;
    FROM = setting("from", "the node that sends, as the launcher names it, with the place on it where it has several ranks");
    TO = setting("to", "the node that receives");
    FROM_RANK = setting("from_rank", "the rank that sends").whole();
    TO_RANK = setting("to_rank", "the rank that receives").whole();
    TIER = setting("tier", "how far apart the two are: only pairs of one tier are compared; unknown if the source of \
        the tiers does not name one of them");
    CONCURRENCY = setting("concurrency", "how many pairs were measured at the same time: alone, together or a number");
}

columns! {
    /// What is found of a pair in a round.
    FIGURES;
    HALF_MIN = measured("half_round_trip_min_ns", "half of the shortest round trip, assumed symmetric", 1)
        .over(Over::Least).title("rtt/2 min");
    HALF_P50 = measured("half_round_trip_p50_ns", "half of the median round trip, assumed symmetric", 1)
        .with_bounds().title("rtt/2 p50");
    HALF_P90 = measured("half_round_trip_p90_ns", "half of the round trip's 90th percentile", 1)
        .title("rtt/2 p90");
    HALF_P99 = measured("half_round_trip_p99_ns", "half of the round trip's 99th percentile", 1)
        .title("rtt/2 p99");
    HALF_MAX = measured("half_round_trip_max_ns", "half of the longest round trip", 1)
        .over(Over::Greatest).title("rtt/2 max");
    ONE_WAY_MIN_LOW = measured("one_way_min_low_ns", "lower bound of the least one-way latency", 1);
    ONE_WAY_MIN_HIGH = measured("one_way_min_high_ns", "upper bound of it", 1);
    ONE_WAY_P50_LOW = measured("one_way_p50_low_ns", "lower bound of the median one-way latency", 1)
        .title("one-way low");
    ONE_WAY_P50_HIGH = measured("one_way_p50_high_ns", "upper bound of it", 1).title("one-way high");
    ONE_WAY_P99_LOW = measured("one_way_p99_low_ns", "lower bound of the one-way latency's 99th percentile", 1);
    ONE_WAY_P99_HIGH = measured("one_way_p99_high_ns", "upper bound of it", 1);
    ONE_WAY_STATUS = label("one_way_status", "where the bounds come from: proven (of the exchanges alone), declared \
        (of the uncertainty that was declared as well) or contradiction, which has none; over rounds the least sure")
        .title("bounds");
    THIRD_HOSTS = label("third_hosts", "whether third hosts made the bounds tighter than the pair's own exchanges")
        .data(Data::Flag);
    EXCESS_P50 = measured("excess_p50_ns", "median of what a message took beyond the least of its direction, which no \
        offset of the clocks changes", 1).with_bounds().title("excess p50");
    EXCESS_P90 = measured("excess_p90_ns", "90th percentile of it", 1).title("excess p90");
    EXCESS_P99 = measured("excess_p99_ns", "99th percentile of it", 1).with_bounds().title("excess p99");
    EXCESS_ERROR = measured("excess_error_ns", "how far drift may have moved any excess at most", 1)
        .over(Over::Greatest);
    OFFSET_LOW = label("offset_low_ns", "lower bound of the receiver's clock minus the sender's, amid the first round")
        .data(Data::Whole);
    OFFSET_HIGH = label("offset_high_ns", "upper bound of it").data(Data::Whole);
    OFFSET_AT = label("offset_at_ns", "when the sender's clock was read for it: the middle of the exchanges")
        .data(Data::Whole);
    EXCHANGES_LASTED = label("exchanges_lasted_ns", "from the first exchange to the last").data(Data::Whole);
    RATE_LOW = measured("rate_low_ppm", "lower bound of how much faster the receiver's clock runs, in 10^-6", 4)
        .better(Better::Neither);
    RATE_HIGH = measured("rate_high_ppm", "upper bound of it", 4).better(Better::Neither);
    LINES_RATE = label("lines_rate_ppb", "the rate, in 10^-9, of two lines over time between which the offset may lie, with \
        as much room as any").data(Data::Whole);
    LINES_LOW = label("lines_low_ns", "the lower line amid the exchanges: above all that messages back prove")
        .data(Data::Whole);
    LINES_HIGH = label("lines_high_ns", "the upper line there: below all apparent latencies of messages there")
        .data(Data::Whole);
    PROBES = count("probes", "round trips that were measured");
    SENT = count("messages_sent", "messages posted").title("sent");
    LOST = count("messages_lost", "messages sent that did not arrive").better(Better::Lower).title("lost");
    RETRANSMITTED = count("retransmitted", "packets that the sender's port sent again, by its counters; empty without \
        them").better(Better::Lower);
}

columns! {
    /// What is found of a pair by looking at all of them, and by measuring it once more.
    JUDGED;
    EXPECTED = measured("expected_ns", "half a round trip as its tier and its two nodes lead to expect", 1)
        .better(Better::Neither).title("expected");
    REST = measured("rest_ns", "how far the median half of a round trip lies above that", 1).title("rest");
    SCORE = measured("score", "the rest in robust standard deviations of all rests", 2).title("score");
    ROLE = label("measured_again", "why it was measured once more alone: suspect or control; empty if it was not");
    ALONE_P50 = measured("alone_half_round_trip_p50_ns", "half of the median round trip, measured alone", 1)
        .title("alone p50");
    ALONE_P99 = measured("alone_half_round_trip_p99_ns", "half of its 99th percentile, measured alone", 1)
        .title("alone p99");
    VERDICT = label("verdict", "ok, slow (also alone), congested (beside others, and not alone), suspect (not measured \
        alone), not-judged (its tier is unknown) or missing");
    SLOWER_WAY = label("slower_way", "whether this direction is proved to be slower than the other: yes or no; empty \
                                      if the bounds do not show it");
    SLOWER_BY = measured("slower_by_at_least_ns", "by how much this direction is slower than it has to be, at least, in each \
        round: so much longer each of its messages took than the ways over a third host; empty if that is not proved", 0)
        .whole().title("slower by at least");
}

/// The columns of a node.
pub mod node {
    use super::super::{Better, Column, Data, columns};

    columns! {
        /// A node.
        NODE;
        NAME = label("node", "the node, as the launcher names it, with the place on it where it has several ranks");
        RANK = label("rank", "its rank").data(Data::Whole);
        GROUP = label("group", "the switch or group that it belongs to; empty if unknown");
        PAIRS = count("pairs", "ordered pairs with it that have figures");
        MISSING = count("pairs_missing", "ordered pairs with it that were to be measured and have none").better(Better::Lower).title("missing");
        SCORE = measured("score", "how far its worst direction stands out, in robust standard deviations", 2)
            .title("score");
        VERDICT = label("verdict", "ok, slow, not-judged (three nodes or fewer, too few pairs, or an unknown tier) or missing");
        DIRECTION = label("direction", "egress, ingress or both; unknown if only round trips show it; empty if not \
                                        slow");
        FIGURE = label("figure", "the figure that the score is of");
        EGRESS = measured("egress_ns", "by how much what it sends takes longer than what others send", 1);
        INGRESS = measured("ingress_ns", "by how much what it receives takes longer than what others receive", 1);
        EGRESS_SCORE = measured("egress_score", "the same in robust standard deviations", 2);
        INGRESS_SCORE = measured("ingress_score", "the same in robust standard deviations", 2);
    }
}

/// The columns of a tier.
pub mod tier {
    use super::super::{Better, Column, Data, columns};

    columns! {
        /// A tier.
        TIER;
        NAME = label("tier", "the tier, or all");
        PAIRS = label("pairs", "ordered pairs in it, to be measured or not").data(Data::Whole);
        MEASURED = label("pairs_measured", "those that have figures").data(Data::Whole).title("measured");
        HALF_LEAST = measured("half_round_trip_p50_least_ns", "of their median halves of a round trip the least", 1);
        HALF_P50 = measured("half_round_trip_p50_ns", "their median", 1).title("rtt/2 p50");
        HALF_GREATEST = measured("half_round_trip_p50_greatest_ns", "the greatest", 1);
        EXCESS_P99 = measured("excess_p99_ns", "median of the pairs' 99th percentiles of the excess", 1)
            .title("excess p99");
        EXCESS_GREATEST = measured("excess_p99_greatest_ns", "the greatest of them", 1);
        LOST = count("messages_lost", "messages that did not arrive").better(Better::Lower).title("lost");
        SLOW = label("pairs_slow", "pairs that are slow, also alone").data(Data::Whole).title("slow");
        CONGESTED = label("pairs_congested", "pairs that are slow beside others, and not alone").data(Data::Whole)
            .title("congested");
        SUSPECT = label("pairs_suspect", "pairs that are slow beside others, and were not measured alone")
            .data(Data::Whole).title("suspect");
        SLOW_WAYS = label("ways_slow", "pairs of which this direction is proved to be slower than it has to be")
            .data(Data::Whole).title("slow ways");
    }
}

/// The columns of what rules judge.
pub mod rule {
    use super::super::{Better, Column, columns};

    columns! {
        /// A rule with a node, pair or tier.
        RULE;
        METRIC = label("metric", "the figure");
        SCOPE = label("scope", "node, pair or tier; of pairs only those that are out have a row");
        NAME = label("name", "the node, the tier, or the pair as in n1 to n2");
        ABOVE = measured("above_percent", "how far it is above the baseline; of loss and missing the share itself, empty \
            of a verdict", 2);
        BOUND = measured("bound_percent", "from where on it is out: the limit, or what chance makes likely if that is more", 2)
            .better(Better::Neither);
        STATE = label("state", "ok or out");
        DIRECTION = label("direction", "egress, ingress or both; unknown if only round trips show it; empty if not out");
        OUT_RUNS = count("out_runs", "in how many of the last runs it was out; empty if not out").better(Better::Lower);
        RUNS = label("runs", "in how many of how many runs it must be out to break the rule");
        BROKEN = label("broken", "whether it breaks the rule: yes or no");
    }
}

columns! {
    /// The settings of a run.
    RUN;
    SEED = setting("seed", "what the control set and the order of the rounds follow from").whole();
    CLOCK_UNCERTAINTY = setting("clock_uncertainty_ns", "how far clocks are apart at most, as declared; empty without")
        .whole();
}

/// What a row of `runs.csv` has, and of `left_out.csv`; of `pairs.csv` those that come from `runs.csv`.
pub const SCHEMA: Schema = Schema {
    benchmark: "fabric",
    title: "fabric",
    run: &RUN,
    point: &PAIR,
    figures: &FIGURES,
    samples: &[],
    across: None,
    searched: None,
    headline: [PROBES, HALF_P50, HALF_P99],
};

/// The columns of `pairs.csv`, in order.
pub fn pairs() -> Vec<NamedColumn> {
    let mut columns = SCHEMA.summary();
    columns.extend(JUDGED.map(plain));
    columns
}

/// The columns of `nodes.csv`, in order.
pub fn nodes() -> Vec<NamedColumn> {
    node::NODE.map(plain).to_vec()
}

/// The columns of `rules.csv`, in order.
pub fn rules() -> Vec<NamedColumn> {
    rule::RULE.map(plain).to_vec()
}

/// The columns of `summary.csv`, in order.
pub fn summary() -> Vec<NamedColumn> {
    tier::TIER.map(plain).to_vec()
}

/// The tables of a run: file, what a row is, columns.
pub fn tables() -> [(&'static str, &'static str, Vec<NamedColumn>); 6] {
    [
        (SUMMARY, "a row a tier, and one for all", summary()),
        (PAIRS, "a row an ordered pair, over all rounds", pairs()),
        (NODES, "a row a node", nodes()),
        (RUNS, "a row for each ordered pair and round", SCHEMA.runs()),
        (
            LEFT_OUT,
            "pairs that were not measured, with the reason",
            SCHEMA.left_out(),
        ),
        (RULES, "a row a rule with each node and tier", rules()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::results::Record;
    use crate::results::runs::over_rounds;
    use crate::results::schema::{COMPLETE, POINT, ROUND, STATUS};

    #[test]
    fn no_name_occurs_twice_in_a_file_and_each_has_a_meaning() {
        for (_, _, columns) in tables() {
            let names: BTreeSet<&str> = columns.iter().map(|(name, _)| name.as_ref()).collect();
            assert_eq!(names.len(), columns.len(), "{columns:?}");
            assert!(columns.iter().all(|(_, column)| !column.meaning.is_empty()));
        }
    }

    #[test]
    fn a_pair_s_row_is_made_of_its_rounds_and_offsets_stay_exact() {
        let offset = i64::MAX - 1;
        let round = |number: u32, half: f64| {
            let mut row = Record::new();
            row.set(&POINT, "a-to-b")
                .set(&ROUND, number)
                .set(&STATUS, COMPLETE)
                .set(&FROM, "a")
                .set(&TO, "b")
                .set(&HALF_P50, half)
                .set(&HALF_MIN, half - 10.0)
                .set(&OFFSET_LOW, offset - i64::from(number))
                .set(&LOST, 2_u32);
            row
        };
        let rounds = [round(0, 1000.0), round(1, 1100.0), round(2, 5000.0)];
        let mut row = over_rounds(&SCHEMA, &rounds);
        row.set(&VERDICT, "ok");
        let row = row.arranged(&pairs());
        for (column, text) in [
            ("from", "a"),
            ("rounds", "3"),
            ("half_round_trip_p50_ns", "1100.0"),
            ("half_round_trip_min_ns", "990.0"),
            ("offset_low_ns", "9223372036854775806"),
            ("messages_lost", "6"),
            ("verdict", "ok"),
            ("excess_p99_ns", ""),
        ] {
            assert_eq!(row.get(column).unwrap().text(), text, "{column}");
        }
    }
}
