//! What rank 0 keeps in memory of the rows: the few figures by which all is judged, a matrix each by round, and where
//! the row stands in `runs.csv`. Of 1024 ranks these are some 70 MB a round.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::fabric::matrix::{Matrix, ordered_pairs};
use crate::bench::fabric::scores::median;
use crate::launch::schedule::Pair;
use crate::results::schema::between::DECLARED;
use crate::results::schema::fabric::{self as columns, SCHEMA};
use crate::results::schema::{COMPLETE, Column, ROUND, STATUS};
use crate::results::{Cell, ReportError};
use crate::time::between::{Hosts, Span};

/// The figures by which pairs and nodes are judged.
const JUDGED_BY: [Column; 7] = [
    columns::HALF_P50,
    columns::HALF_P99,
    columns::EXCESS_P50,
    columns::EXCESS_P99,
    columns::ONE_WAY_P50_LOW,
    columns::ONE_WAY_P50_HIGH,
    columns::LOST,
];
/// Lower and upper bounds of one way.
const BOUNDS: [(Column, Column); 3] = [
    (columns::ONE_WAY_MIN_LOW, columns::ONE_WAY_MIN_HIGH),
    (columns::ONE_WAY_P50_LOW, columns::ONE_WAY_P50_HIGH),
    (columns::ONE_WAY_P99_LOW, columns::ONE_WAY_P99_HIGH),
];
/// No row.
const NONE: u64 = u64::MAX;

/// An ordered pair: from and to.
pub(super) type Ends = (usize, usize);

/// The place of a column in a row of `runs.csv`.
pub(super) fn place_of(column: &Column) -> usize {
    let columns = SCHEMA.runs();
    let found = columns.iter().position(|(name, _)| name == column.name);
    found.expect("it is a column of runs.csv")
}

/// A column and its place in a row.
type Place = (Column, usize);

/// What is kept of all rows.
#[derive(Debug)]
pub(super) struct Kept {
    nodes: usize,
    figures: Vec<Place>,
    /// Round, status, and both bounds of the offset.
    places: [usize; 4],
    /// The place of what the bounds of one way rest on.
    clocks: usize,
    rounds: BTreeMap<u32, Round>,
}

/// What is kept of a round, by ordered pair.
#[derive(Debug)]
struct Round {
    rows: Vec<u64>,
    is_complete: Vec<bool>,
    /// As the columns of [`Kept`]; of complete rows.
    figures: Vec<Matrix>,
    /// The higher rank's clock less the lower one's.
    theta: Vec<(Ends, Span)>,
    /// By how much third hosts raise the lower bound of one way, and lower the upper one; empty before that is known.
    gains: Vec<Option<[f64; 2]>>,
}

impl Round {
    fn new(nodes: usize, figures: usize) -> Self {
        Round {
            rows: vec![NONE; nodes * nodes],
            is_complete: vec![false; nodes * nodes],
            figures: vec![Matrix::missing(nodes); figures],
            theta: Vec::new(),
            gains: Vec::new(),
        }
    }
}

impl Kept {
    /// Of so many nodes. `more`: figures beside those that are always kept.
    pub(super) fn new(nodes: usize, more: &[Column]) -> Self {
        let mut columns = JUDGED_BY.to_vec();
        for column in more {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(*column);
            }
        }
        let with_place = |column: Column| (column, place_of(&column));
        let places = [ROUND, STATUS, columns::OFFSET_LOW, columns::OFFSET_HIGH];
        Kept {
            nodes,
            figures: columns.into_iter().map(with_place).collect(),
            places: places.map(|column| place_of(&column)),
            clocks: place_of(&columns::ONE_WAY_STATUS),
            rounds: BTreeMap::new(),
        }
    }

    /// Without rows, of the same columns.
    pub(super) fn empty(&self) -> Self {
        Kept {
            nodes: self.nodes,
            figures: self.figures.clone(),
            places: self.places,
            clocks: self.clocks,
            rounds: BTreeMap::new(),
        }
    }

    /// Whether there are such ranks: a file may have been changed.
    pub(super) fn check(&self, (from, to): Ends, path: &Path) -> Result<(), ReportError> {
        if from != to && from.max(to) < self.nodes {
            return Ok(());
        }
        let reason = format!("{from} to {to} is no pair of {} ranks", self.nodes);
        Err(ReportError::unfit("read", path, reason))
    }

    /// Takes a row with the columns of `runs.csv`, which stands there at `row`.
    pub(super) fn take(&mut self, ends: Ends, row: u64, cells: &[Cell]) {
        let [round, status, low, high] = self.places.map(|place| &cells[place]);
        let number = round.number().unwrap_or(0.0) as u32;
        let (nodes, count) = (self.nodes, self.figures.len());
        let round = self.rounds.entry(number);
        let round = round.or_insert_with(|| Round::new(nodes, count));
        let (from, to) = ends;
        let at = from * nodes + to;
        round.rows[at] = row;
        round.is_complete[at] = matches!(status, Cell::Text(status) if status == COMPLETE);
        for ((_, place), figures) in self.figures.iter().zip(&mut round.figures) {
            let number = cells[*place].number().filter(|_| round.is_complete[at]);
            figures.set(from, to, number.unwrap_or(f64::NAN));
        }
        // Bounds that rest on a declaration are of other, narrower offsets than those of the row.
        if let (Cell::Integer(low), Cell::Integer(high)) = (low, high)
            && !matches!(&cells[self.clocks], Cell::Text(clocks) if clocks == DECLARED)
            && let (Ok(low_ns), Ok(high_ns)) = (i64::try_from(*low), i64::try_from(*high))
        {
            round.theta.push((ends, Span { low_ns, high_ns }));
        }
    }

    /// Whether a pair is complete in a round, in both directions.
    pub(super) fn is_whole(&self, pair: Pair, round: u32) -> bool {
        let [low, high] = pair.ranks().map(|rank| rank as usize);
        let both = [low * self.nodes + high, high * self.nodes + low];
        let round = self.rounds.get(&round);
        round.is_some_and(|round| both.iter().all(|at| round.is_complete[*at]))
    }

    /// Whether there is a row of a round.
    pub(super) fn has(&self, round: u32) -> bool {
        self.rounds.contains_key(&round)
    }

    /// The places of all rows of pairs that are whole, in order; how many others there are.
    pub(super) fn whole_rows(&self) -> (Vec<u64>, usize) {
        let (mut whole, mut others) = (Vec::new(), 0);
        for (number, round) in &self.rounds {
            for (from, to) in ordered_pairs(self.nodes) {
                match round.rows[from * self.nodes + to] {
                    NONE => {}
                    row if self.is_whole(Pair::of(from as u32, to as u32), *number) => {
                        whole.push(row);
                    }
                    _ => others += 1,
                }
            }
        }
        whole.sort_unstable();
        (whole, others)
    }

    /// The pairs of which there are rows.
    pub(super) fn pairs(&self) -> impl Iterator<Item = Ends> + '_ {
        ordered_pairs(self.nodes).filter(|(from, to)| {
            let at = from * self.nodes + to;
            self.rounds.values().any(|round| round.rows[at] != NONE)
        })
    }

    /// The places of a pair's rows, with what third hosts gain in them.
    pub(super) fn rows(
        &self,
        (from, to): Ends,
    ) -> impl Iterator<Item = (u64, Option<[f64; 2]>)> + '_ {
        let at = from * self.nodes + to;
        let rounds = self.rounds.values();
        let of = rounds.map(move |round| (round.rows[at], round.gains.get(at).copied().flatten()));
        of.filter(|(row, _)| *row != NONE)
    }

    /// The median over complete rounds of a figure of each pair; missing of one that is not kept.
    pub(super) fn matrix(&self, column: &Column) -> Matrix {
        let place = (self.figures.iter()).position(|(it, _)| it.name == column.name);
        let Some(place) = place else {
            return Matrix::missing(self.nodes);
        };
        let mut rounds = self.rounds.values().map(|round| &round.figures[place]);
        if self.rounds.len() == 1 {
            return rounds.next().cloned().expect("there is one");
        }
        let rounds: Vec<&Matrix> = rounds.collect();
        Matrix::of(self.nodes, |from, to| {
            let of = rounds.iter().filter_map(|round| round.get(from, to));
            median(of.collect())
        })
    }

    /// Makes the bounds of one way as tight as third hosts leave them, round by round.
    /// Returns what the clocks contradict each other in.
    pub(super) fn tighten(&mut self, names: &[String]) -> Vec<String> {
        let place = |column: &Column| {
            let mut figures = self.figures.iter();
            figures.position(|(it, _)| it.name == column.name)
        };
        let bounds = place(&columns::ONE_WAY_P50_LOW).zip(place(&columns::ONE_WAY_P50_HIGH));
        let nodes = self.nodes;
        let mut contradictions = Vec::new();
        for (number, round) in &mut self.rounds {
            let mut hosts = Hosts::new(names.iter().cloned());
            for ((from, to), theta) in &round.theta {
                hosts.bound(*from, *to, *theta);
            }
            let tight = match hosts.tighten() {
                Ok(tight) => tight,
                Err(cycle) => {
                    contradictions.push(format!(
                        "round {number}: clocks at one rate contradict each other: {cycle}"
                    ));
                    continue;
                }
            };
            round.gains = vec![None; nodes * nodes];
            for ((from, to), own) in &round.theta {
                let Some(theta) = tight.theta(*from, *to) else {
                    continue;
                };
                // What the upper bound of theta loses, the lower bound of the latency there gains.
                let gains = [own.high_ns - theta.high_ns, theta.low_ns - own.low_ns]
                    .map(|gain| gain.max(0) as f64);
                round.gains[from * nodes + to] = Some(gains);
            }
            let Some((of_low, of_high)) = bounds else {
                continue;
            };
            for (from, to) in ordered_pairs(nodes) {
                let Some([lower, upper]) = round.gains[from * nodes + to] else {
                    continue;
                };
                let both = [of_low, of_high].map(|place| round.figures[place].get(from, to));
                if let [Some(low), Some(high)] = both {
                    round.figures[of_low].set(from, to, low + lower);
                    round.figures[of_high].set(from, to, high - upper);
                }
            }
        }
        contradictions
    }
}

/// Raises the lower bounds of one way in a row, and lowers the upper ones.
#[derive(Debug)]
pub(super) struct Narrow {
    bounds: [(Place, Place); 3],
    third_hosts: usize,
}

impl Narrow {
    pub(super) fn new() -> Self {
        let with_place = |column: Column| (column, place_of(&column));
        Narrow {
            bounds: BOUNDS.map(|(low, high)| (with_place(low), with_place(high))),
            third_hosts: place_of(&columns::THIRD_HOSTS),
        }
    }

    /// By so much.
    pub(super) fn row(&self, cells: &mut [Cell], [lower, upper]: [f64; 2]) {
        for ((low, at_low), (high, at_high)) in &self.bounds {
            if let Some((from, to)) = cells[*at_low].number().zip(cells[*at_high].number()) {
                cells[*at_low] = Cell::from(from + lower).with_decimals_of(low);
                cells[*at_high] = Cell::from(to - upper).with_decimals_of(high);
            }
        }
        cells[self.third_hosts] = (lower > 0.0 || upper > 0.0).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::INCOMPLETE;

    fn row(round: u32, status: &str, figures: &[(Column, Cell)]) -> Vec<Cell> {
        let mut cells = vec![Cell::Empty; SCHEMA.runs().len()];
        cells[place_of(&ROUND)] = round.into();
        cells[place_of(&STATUS)] = status.into();
        for (column, cell) in figures {
            cells[place_of(column)] = cell.clone();
        }
        cells
    }

    #[test]
    fn medians_are_of_complete_rounds_and_whole_pairs_have_both_directions() {
        let mut kept = Kept::new(3, &[columns::HALF_MAX]);
        let half = |ns: f64| [(columns::HALF_MAX, Cell::from(ns))];
        for (number, ns) in [(0, 10.0), (1, 30.0), (2, 20.0)] {
            kept.take(
                (0, 1),
                100 + number,
                &row(number as u32, COMPLETE, &half(ns)),
            );
        }
        kept.take((0, 1), 200, &row(3, INCOMPLETE, &half(1e6)));
        kept.take((1, 0), 50, &row(1, COMPLETE, &half(5.0)));
        let matrix = kept.matrix(&columns::HALF_MAX);
        assert_eq!(
            (matrix.get(0, 1), matrix.get(1, 0), matrix.get(0, 2)),
            (Some(20.0), Some(5.0), None)
        );
        assert_eq!(kept.matrix(&columns::HALF_P90).measured(), 0);
        let pair = Pair::of(0, 1);
        let whole: Vec<u32> = (0..5).filter(|round| kept.is_whole(pair, *round)).collect();
        assert_eq!(whole, [1]);
        assert_eq!(kept.whole_rows(), (vec![50, 101], 3));
        assert_eq!(kept.pairs().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        let rows: Vec<u64> = kept.rows((0, 1)).map(|(row, _)| row).collect();
        assert_eq!(rows, [100, 101, 102, 200]);
        assert!(kept.has(3) && !kept.empty().has(3));
    }

    #[test]
    fn third_hosts_narrow_the_bounds_of_their_round_alone() {
        let mut kept = Kept::new(3, &[]);
        let mut add = |ends: Ends, round: u32, theta: (i64, i64)| {
            let figures = [
                (columns::OFFSET_LOW, theta.0.into()),
                (columns::OFFSET_HIGH, theta.1.into()),
                (columns::ONE_WAY_P50_LOW, 1000.0.into()),
                (columns::ONE_WAY_P50_HIGH, 2000.0.into()),
            ];
            kept.take(ends, 0, &row(round, COMPLETE, &figures));
        };
        add((0, 1), 0, (-500, 400));
        // Of the way back the pair itself knows more: it was measured by itself.
        add((1, 0), 0, (-30, 25));
        // By way of rank 2 the clocks differ by -20 to 20.
        add((0, 2), 0, (-10, 10));
        add((1, 2), 0, (-10, 10));
        let names = ["a", "b", "c"].map(str::to_owned);
        assert!(kept.tighten(&names).is_empty());
        let bounds = |kept: &Kept, from, to| {
            [columns::ONE_WAY_P50_LOW, columns::ONE_WAY_P50_HIGH]
                .map(|column| kept.matrix(&column).get(from, to).unwrap())
        };
        assert_eq!(bounds(&kept, 0, 1), [1380.0, 1520.0]);
        assert_eq!(bounds(&kept, 1, 0), [1005.0, 1990.0]);
        assert_eq!(bounds(&kept, 0, 2), [1000.0, 2000.0]);
        let (_, gains) = kept.rows((0, 1)).next().unwrap();
        let mut cells = row(0, COMPLETE, &[]);
        cells[place_of(&columns::ONE_WAY_P99_LOW)] = 5.0.into();
        cells[place_of(&columns::ONE_WAY_P99_HIGH)] = 900.0.into();
        Narrow::new().row(&mut cells, gains.unwrap());
        let text = |column| cells[place_of(&column)].text();
        assert_eq!(text(columns::ONE_WAY_P99_LOW), "385.0");
        assert_eq!(text(columns::ONE_WAY_P99_HIGH), "420.0");
        assert_eq!(text(columns::ONE_WAY_P50_LOW), "");
        assert_eq!(text(columns::THIRD_HOSTS), "true");
    }

    #[test]
    fn clocks_that_contradict_each_other_over_third_hosts_are_told() {
        let mut kept = Kept::new(3, &[]);
        for (ends, low) in [((0, 1), 100_i64), ((1, 2), 100), ((0, 2), 0)] {
            let figures = [
                (columns::OFFSET_LOW, low.into()),
                (columns::OFFSET_HIGH, (low + 50).into()),
            ];
            kept.take(ends, 0, &row(0, COMPLETE, &figures));
        }
        let told = kept.tighten(&["a", "b", "c"].map(str::to_owned));
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("round 0: "), "{told:?}");
    }
}
