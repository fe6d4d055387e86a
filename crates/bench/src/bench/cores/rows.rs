//! The rows of the benchmark in the results: settings of a point, figures of a round, directions of pairs.

use serde::Serialize;

use super::one_pair::PairFigures;
use super::plan::{Point, name_of};
use crate::results::Record;
use crate::results::schema::cores as columns;
use crate::stats::median_of;

/// The settings of a point.
pub(super) fn settings(point: &Point) -> Record {
    let mut record = Record::new();
    record.set(&columns::CORES, name_of(point.cores));
    record
}

/// A row of `pairs.csv`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DirectionRow {
    pub round: u32,
    pub t_start_ns: u64,
    pub sender_cpu: usize,
    pub receiver_cpu: usize,
    pub memory_node: Option<usize>,
    /// The node that was asked for.
    #[serde(skip)]
    pub asked_node: Option<usize>,
    pub half_round_trip_ns: f64,
    pub half_round_trip_least_ns: f64,
    pub round_trip_ns: f64,
    pub one_way_ns: Option<f64>,
    pub clock_offset_ns: Option<f64>,
    pub clock_offset_bound_ns: Option<f64>,
    pub stream_mb_s: Option<f64>,
    pub batches: usize,
    pub handovers: usize,
}

/// Rounded to this number of decimals, as the files have them.
fn rounded(value: f64, decimals: i32) -> f64 {
    let places = 10_f64.powi(decimals);
    (value * places).round() / places
}

impl DirectionRow {
    /// Both directions of a pair, the first CPU's to the second first. Nodes are those of the lines that the first
    /// writes, and the second: those that were asked for, and those that the kernel reports.
    pub(super) fn both(
        round: u32,
        start_ns: u64,
        cpus: [usize; 2],
        asked_nodes: [Option<usize>; 2],
        nodes: [Option<usize>; 2],
        found: &PairFigures,
    ) -> [Self; 2] {
        let to_two = |value: f64| rounded(value, 2);
        let row = |way: usize| DirectionRow {
            round,
            t_start_ns: start_ns,
            sender_cpu: cpus[way],
            receiver_cpu: cpus[1 - way],
            memory_node: nodes[way],
            asked_node: asked_nodes[way],
            half_round_trip_ns: to_two(found.round_trip_ns / 2.0),
            half_round_trip_least_ns: to_two(found.least_round_trip_ns / 2.0),
            round_trip_ns: to_two(found.round_trip_ns),
            one_way_ns: found.one_way_ns[way].map(to_two),
            clock_offset_ns: found.offset_ns.map(|[ahead, _]| match way {
                0 => to_two(ahead),
                _ => to_two(-ahead),
            }),
            clock_offset_bound_ns: found.offset_ns.map(|[_, bound]| to_two(bound)),
            stream_mb_s: found.stream_mb_s[way].map(|rate| rounded(rate, 1)),
            batches: found.batches,
            handovers: found.handovers,
        };
        [row(0), row(1)]
    }
}

/// What the directions of a point in a round come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PointCounts {
    /// Pairs without figures.
    pub unmeasured: usize,
    /// Pairs that lack a figure.
    pub partly: usize,
    /// Directions with a negative one-way time.
    pub negative: usize,
    /// Directions whose lines are on another node than was asked for.
    pub elsewhere: usize,
}

impl PointCounts {
    pub(super) fn of(rows: &[DirectionRow], unmeasured: usize) -> Self {
        let is_negative = |row: &&DirectionRow| row.one_way_ns.is_some_and(|time| time < 0.0);
        let lacks = |row: &DirectionRow| row.one_way_ns.is_none() || row.stream_mb_s.is_none();
        let is_elsewhere = |row: &&DirectionRow| {
            (row.asked_node.zip(row.memory_node)).is_some_and(|(asked, found)| asked != found)
        };
        PointCounts {
            unmeasured,
            partly: rows.chunks(2).filter(|both| both.iter().any(lacks)).count(),
            negative: rows.iter().filter(is_negative).count(),
            elsewhere: rows.iter().filter(is_elsewhere).count(),
        }
    }
}

/// The figures of a round.
pub(super) fn figures(rows: &[DirectionRow], counts: PointCounts, stamp_ns: Option<f64>) -> Record {
    let all =
        |of: fn(&DirectionRow) -> Option<f64>| -> Vec<f64> { rows.iter().filter_map(of).collect() };
    let halves = all(|row| Some(row.half_round_trip_ns));
    let mut record = Record::new();
    record
        .set(&columns::HALF, median_of(&halves))
        .set(
            &columns::HALF_MIN,
            halves.iter().copied().min_by(f64::total_cmp),
        )
        .set(
            &columns::HALF_MAX,
            halves.iter().copied().max_by(f64::total_cmp),
        )
        .set(
            &columns::ROUND_TRIP,
            median_of(&all(|row| Some(row.round_trip_ns))),
        )
        .set(&columns::ONE_WAY, median_of(&all(|row| row.one_way_ns)))
        .set(
            &columns::OFFSET_BOUND,
            median_of(&all(|row| row.clock_offset_bound_ns)),
        )
        .set(&columns::STREAM, median_of(&all(|row| row.stream_mb_s)))
        .set(&columns::DIRECTIONS, rows.len())
        .set(&columns::UNMEASURED, counts.unmeasured)
        .set(&columns::PARTLY, counts.partly)
        .set(&columns::NEGATIVE, counts.negative)
        .set(&columns::ELSEWHERE, counts.elsewhere)
        .set(&columns::STAMP_COST, stamp_ns);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::ROUND;

    fn found(half: f64, there: f64) -> PairFigures {
        PairFigures {
            round_trip_ns: 2.0 * half,
            least_round_trip_ns: 1.9 * half,
            batches: 7,
            one_way_ns: [Some(there), Some(2.0 * half - there)],
            handovers: 90,
            offset_ns: Some([3.0, 40.0]),
            stream_mb_s: [Some(9000.04), None],
        }
    }

    #[test]
    fn a_pair_is_a_row_in_each_direction_under_the_columns_of_the_schema() {
        let rows = DirectionRow::both(
            2,
            77,
            [5, 1],
            [Some(1), Some(0)],
            [Some(1), None],
            &found(50.004, 70.0),
        );
        let [there, back] = &rows;
        assert_eq!(
            (there.sender_cpu, there.receiver_cpu, there.memory_node),
            (5, 1, Some(1))
        );
        assert_eq!(
            (back.sender_cpu, back.receiver_cpu, back.memory_node),
            (1, 5, None)
        );
        assert_eq!(
            [there.half_round_trip_ns, back.half_round_trip_ns],
            [50.0, 50.0]
        );
        assert_eq!(
            [there.one_way_ns, back.one_way_ns],
            [Some(70.0), Some(30.01)]
        );
        assert_eq!(
            [there.clock_offset_ns, back.clock_offset_ns],
            [Some(3.0), Some(-3.0)]
        );
        assert_eq!([there.stream_mb_s, back.stream_mb_s], [Some(9000.0), None]);
        let fields = serde_json::to_value(there).unwrap();
        let fields: Vec<&String> = fields.as_object().unwrap().keys().collect();
        let declared = columns::PAIRS_FILE.columns.iter().map(|column| column.name);
        assert!(fields.into_iter().eq(declared));
        assert_eq!(columns::PAIRS_FILE.columns[0], ROUND);
    }

    #[test]
    fn a_point_has_medians_over_its_pairs_and_counts() {
        let pairs = [found(40.0, 35.0), found(50.0, -1.0), found(90.0, 80.0)];
        let rows: Vec<DirectionRow> = (pairs.iter())
            .flat_map(|found| DirectionRow::both(0, 0, [0, 1], [None; 2], [None; 2], found))
            .collect();
        let record = figures(&rows, PointCounts::of(&rows, 4), Some(11.0));
        let number = |column: &crate::results::schema::Column| record.number(column.name);
        assert_eq!(number(&columns::HALF), Some(50.0));
        assert_eq!(number(&columns::HALF_MIN), Some(40.0));
        assert_eq!(number(&columns::HALF_MAX), Some(90.0));
        assert_eq!(number(&columns::STREAM), Some(9000.0));
        assert_eq!(number(&columns::DIRECTIONS), Some(6.0));
        assert_eq!(number(&columns::UNMEASURED), Some(4.0));
        assert_eq!(number(&columns::PARTLY), Some(3.0));
        assert_eq!(number(&columns::NEGATIVE), Some(1.0));
        assert_eq!(number(&columns::ELSEWHERE), Some(0.0));
        let none = figures(&[], PointCounts::of(&[], 1), None);
        assert_eq!(none.number(columns::HALF.name), None);
    }
}
