//! What rank 0 keeps in memory of the rows: the few figures by which all is judged, a matrix each by round, and where
//! the row stands in `runs.csv`. Of 1024 ranks these are some 70 MB a round.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::fabric::matrix::Matrix;
use crate::bench::fabric::scores::median;
use crate::launch::schedule::Pair;
use crate::results::schema::between::DECLARED;
use crate::results::schema::fabric::{self as columns, SCHEMA};
use crate::results::schema::{COMPLETE, Column, ORDER, ROUND, STATUS};
use crate::results::{Cell, ReportError};
use crate::time::Nanos;
use crate::time::between::{BoundingLines, ExchangeSummary, HostPairs, Span};

mod third_hosts;

pub(super) use third_hosts::{BoundsNarrowing, ThirdHostGain};

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
/// What a row tells of two clocks: see [`ExchangeSummary`].
const OF_CLOCKS: [Column; 9] = [
    columns::OFFSET_LOW,
    columns::OFFSET_HIGH,
    columns::OFFSET_AT,
    columns::EXCHANGES_LASTED,
    columns::RATE_LOW,
    columns::RATE_HIGH,
    columns::LINES_RATE,
    columns::LINES_LOW,
    columns::LINES_HIGH,
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
type ColumnPlace = (Column, usize);

/// What is kept of all rows.
#[derive(Debug)]
pub(super) struct RowFigures {
    /// All, or those of the sample.
    pairs: HostPairs,
    figures: Vec<ColumnPlace>,
    /// Round, status, what the bounds of one way rest on, and order.
    places: [usize; 4],
    /// Of [`OF_CLOCKS`].
    clocks: [usize; 9],
    /// The order of the first row of each time that the run went on.
    resumed_at: Vec<u64>,
    rounds: BTreeMap<u32, RoundFigures>,
}

/// What is kept of a round, by place of the ordered pair.
#[derive(Debug)]
struct RoundFigures {
    rows: Vec<u64>,
    is_complete: Vec<bool>,
    /// As the columns of [`RowFigures`]; of complete rows.
    figures: Vec<Matrix>,
    /// The second rank's clock less the first one's, where the bounds of one way rest on nothing else; empty once third
    /// hosts are asked, as what follows.
    theta: Vec<(Ends, Span)>,
    /// What they exchanged.
    exchanged: Vec<(Ends, ExchangeSummary)>,
    /// How often the run had gone on when these were measured: clocks of different times are not compared.
    resumed: usize,
    /// What third hosts tell; empty before that is known.
    third: Vec<ThirdHostGain>,
}

impl RoundFigures {
    fn new(pairs: &HostPairs, figures: usize) -> Self {
        RoundFigures {
            rows: vec![NONE; pairs.places()],
            is_complete: vec![false; pairs.places()],
            figures: vec![Matrix::missing_of(pairs); figures],
            theta: Vec::new(),
            exchanged: Vec::new(),
            resumed: 0,
            third: Vec::new(),
        }
    }
}

impl RoundFigures {
    /// Where the row of a pair is, or [`NONE`].
    fn row(&self, pairs: &HostPairs, (from, to): Ends) -> u64 {
        let place = pairs.place(from, to);
        place.map_or(NONE, |place| self.rows[place])
    }
}

impl RowFigures {
    /// Of these pairs. `more`: figures beside those that are always kept.
    pub(super) fn new(pairs: HostPairs, more: &[Column]) -> Self {
        let mut columns = JUDGED_BY.to_vec();
        for column in more {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(*column);
            }
        }
        let with_place = |column: Column| (column, place_of(&column));
        let places = [ROUND, STATUS, columns::ONE_WAY_STATUS, ORDER];
        RowFigures {
            pairs,
            figures: columns.into_iter().map(with_place).collect(),
            places: places.map(|column| place_of(&column)),
            clocks: OF_CLOCKS.map(|column| place_of(&column)),
            resumed_at: Vec::new(),
            rounds: BTreeMap::new(),
        }
    }

    /// Without rows, of the same columns.
    pub(super) fn empty(&self) -> Self {
        RowFigures {
            pairs: self.pairs.clone(),
            figures: self.figures.clone(),
            places: self.places,
            clocks: self.clocks,
            resumed_at: self.resumed_at.clone(),
            rounds: BTreeMap::new(),
        }
    }

    /// The run went on with the row of this order.
    pub(super) fn resumed_at(&mut self, order: u64) {
        self.resumed_at.push(order);
    }

    /// Whether there are such ranks: a file may have been changed.
    pub(super) fn check(&self, (from, to): Ends, path: &Path) -> Result<(), ReportError> {
        if from != to && self.pairs.place(from, to).is_some() {
            return Ok(());
        }
        let ranks = self.pairs.hosts();
        let reason = format!("{from} to {to} is not a pair that is measured of {ranks} ranks");
        Err(ReportError::unfit("read", path, reason))
    }

    /// Takes a row with the columns of `runs.csv`, which stands there at `row`.
    pub(super) fn take(&mut self, ends: Ends, row: u64, cells: &[Cell]) {
        let [round, status, bounds, order] = self.places.map(|place| &cells[place]);
        let number = round.number().unwrap_or(0.0) as u32;
        let (from, to) = ends;
        let place = self.pairs.place(from, to);
        let at = place.expect("rows of others are refused, and no others are measured");
        let (pairs, count) = (&self.pairs, self.figures.len());
        let round = self.rounds.entry(number);
        let round = round.or_insert_with(|| RoundFigures::new(pairs, count));
        round.rows[at] = row;
        round.is_complete[at] = matches!(status, Cell::Text(status) if status == COMPLETE);
        for ((_, place), figures) in self.figures.iter().zip(&mut round.figures) {
            let number = cells[*place].number().filter(|_| round.is_complete[at]);
            figures.set(from, to, number.unwrap_or(f64::NAN));
        }
        let order = order.number().unwrap_or(0.0) as u64;
        let resumed = self.resumed_at.partition_point(|first| *first <= order);
        if resumed > round.resumed {
            (round.exchanged, round.theta) = (Vec::new(), Vec::new());
        }
        round.resumed = round.resumed.max(resumed);
        if resumed < round.resumed {
            return;
        }
        let Some(theta) = span(self.clocks.map(|place| &cells[place])) else {
            return;
        };
        if let Some(exchanged) = exchanged(theta, self.clocks.map(|place| &cells[place])) {
            round.exchanged.push((ends, exchanged));
        }
        // Bounds that rest on a declaration are of other, narrower offsets than those of the row.
        if !matches!(bounds, Cell::Text(clocks) if clocks == DECLARED) {
            round.theta.push((ends, theta));
        }
    }

    /// Whether a pair is complete in a round, in both directions.
    pub(super) fn is_whole(&self, pair: Pair, round: u32) -> bool {
        let [low, high] = pair.ranks().map(|rank| rank as usize);
        let both = [(low, high), (high, low)].map(|(from, to)| self.pairs.place(from, to));
        let is_complete = |round: &RoundFigures| {
            let mut places = both.iter();
            places.all(|place| place.is_some_and(|place| round.is_complete[place]))
        };
        self.rounds.get(&round).is_some_and(is_complete)
    }

    /// Whether there is a row of a round.
    pub(super) fn has(&self, round: u32) -> bool {
        self.rounds.contains_key(&round)
    }

    /// The places of all rows of pairs that are whole, in order, but for those of some rounds; how many others there are.
    pub(super) fn whole_rows(&self, but_for: &[u32]) -> (Vec<u64>, usize) {
        let (mut whole, mut others) = (Vec::new(), 0);
        for (number, round) in &self.rounds {
            let is_whole = |ends: Ends| {
                let pair = Pair::of(ends.0 as u32, ends.1 as u32);
                !but_for.contains(number) && self.is_whole(pair, *number)
            };
            for ends in self.pairs.each() {
                match round.row(&self.pairs, ends) {
                    NONE => {}
                    row if is_whole(ends) => {
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
        self.pairs.each().filter(|ends| {
            let mut rounds = self.rounds.values();
            rounds.any(|round| round.row(&self.pairs, *ends) != NONE)
        })
    }

    /// The places of a pair's rows, with what third hosts tell of them.
    pub(super) fn rows(&self, (from, to): Ends) -> impl Iterator<Item = (u64, ThirdHostGain)> + '_ {
        let at = self.pairs.place(from, to);
        let rounds = self.rounds.values();
        let of = rounds.map(move |round| {
            let third = at.and_then(|at| round.third.get(at).copied());
            let row = at.map_or(NONE, |at| round.rows[at]);
            (row, third.unwrap_or_default())
        });
        of.filter(|(row, _)| *row != NONE)
    }

    /// The median over complete rounds of a figure of each pair; missing of one that is not kept.
    pub(super) fn matrix(&self, column: &Column) -> Matrix {
        let place = (self.figures.iter()).position(|(it, _)| it.name == column.name);
        let Some(place) = place else {
            return Matrix::missing_of(&self.pairs);
        };
        let mut rounds = self.rounds.values().map(|round| &round.figures[place]);
        if self.rounds.len() == 1 {
            return rounds.next().cloned().expect("there is one");
        }
        let rounds: Vec<&Matrix> = rounds.collect();
        Matrix::missing_of(&self.pairs).alike(|from, to| {
            let of = rounds.iter().filter_map(|round| round.get(from, to));
            median(of.collect())
        })
    }
}

/// A whole number that fits.
fn whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Integer(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

/// The offset of two clocks, of the cells of [`OF_CLOCKS`].
fn span([low, high, ..]: [&Cell; 9]) -> Option<Span> {
    Some(Span::new(whole(low)?, whole(high)?))
}

/// All that the cells of [`OF_CLOCKS`] tell.
fn exchanged(theta: Span, cells: [&Cell; 9]) -> Option<ExchangeSummary> {
    let [.., at, lasted, least, most, rate, low, high] = cells;
    Some(ExchangeSummary {
        at: Nanos(u64::try_from(whole(at)?).ok()?),
        lasted_ns: u64::try_from(whole(lasted)?).ok()?,
        theta,
        rate_ppm: [least.number()?, most.number()?],
        lines: BoundingLines {
            rate_ppb: whole(rate)?,
            low_ns: whole(low)?,
            high_ns: whole(high)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::INCOMPLETE;

    pub(super) fn row(round: u32, status: &str, figures: &[(Column, Cell)]) -> Vec<Cell> {
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
        let mut kept = RowFigures::new(HostPairs::all(3), &[columns::HALF_MAX]);
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
        assert_eq!(matrix.get(0, 1), Some(20.0));
        assert_eq!(matrix.get(1, 0), Some(5.0));
        assert_eq!(matrix.get(0, 2), None);
        assert_eq!(kept.matrix(&columns::HALF_P90).measured(), 0);
        let pair = Pair::of(0, 1);
        let whole: Vec<u32> = (0..5).filter(|round| kept.is_whole(pair, *round)).collect();
        assert_eq!(whole, [1]);
        assert_eq!(kept.whole_rows(&[]), (vec![50, 101], 3));
        assert_eq!(kept.whole_rows(&[1]), (vec![], 5));
        assert_eq!(kept.pairs().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        let rows: Vec<u64> = kept.rows((0, 1)).map(|(row, _)| row).collect();
        assert_eq!(rows, [100, 101, 102, 200]);
        assert!(kept.has(3) && !kept.empty().has(3));
    }
}
