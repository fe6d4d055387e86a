//! The row of the summary for one point, from its rows of `runs.csv`.

use std::cmp::Ordering;

use super::super::record::{Cell, Record};
use super::super::schema::{self, Column, NamedColumn, Over, Schema};
use crate::stats::confidence::lower_rank;
use crate::stats::median_of;

/// The row of the summary for one point, from its rows of `runs.csv`.
///
/// Medians are those of the complete rounds (of what there is, when none is complete); sums and extremes are of all
/// rounds. Bounds are a distribution-free 95 % interval of the median, empty below six rounds.
pub fn over_rounds(schema: &Schema, rows: &[Record]) -> Record {
    let columns = schema.runs();
    let cells_of = |row: &Record| -> Vec<Cell> {
        let cells = columns.iter().map(|(name, _)| row.get(name).cloned());
        cells.map(|cell| cell.unwrap_or(Cell::Empty)).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells_of).collect();
    let over = RoundAggregator::new(schema);
    let names = over.columns.iter().map(|(name, _)| name.to_string());
    Record {
        cells: names.zip(over.fold(&rows)).collect(),
    }
}

/// What becomes of a column.
#[derive(Debug, Clone, Copy)]
enum Rule {
    First,
    /// Only one of several words is kept: of a round that failed, if there is one.
    FirstOfFailed,
    Status,
    Rounds,
    Median,
    /// The lower bound of the median, or the upper one.
    Bound(usize),
    Least,
    Greatest,
    Sum,
}

/// [`over_rounds`] by the places of columns instead of their names: for a million rows.
#[derive(Debug, Clone)]
pub struct RoundAggregator {
    columns: Vec<NamedColumn>,
    /// By column: what becomes of it, and its place in a row of `runs.csv`.
    rules: Vec<(Rule, usize)>,
    status: usize,
}

impl RoundAggregator {
    /// Of rows with the columns of `runs.csv`, to one with those of the summary.
    pub fn new(schema: &Schema) -> Self {
        let runs = schema.runs();
        let place = |column: &Column| runs.iter().position(|(name, _)| name == column.name);
        let place = |column: &Column| place(column).unwrap_or(0);
        let mut rules = vec![(Rule::First, place(&schema::POINT))];
        for column in schema.point {
            let rule = match column.over {
                // A rate that follows from what each round found.
                Over::Median => Rule::Median,
                _ => Rule::First,
            };
            rules.push((rule, place(column)));
        }
        let status = place(&schema::STATUS);
        rules.push((Rule::Status, status));
        rules.push((Rule::First, place(&schema::FAILURE)));
        rules.push((Rule::Rounds, status));
        for column in schema.figures {
            let rule = match column.over {
                Over::First => Rule::FirstOfFailed,
                Over::Least => Rule::Least,
                Over::Greatest => Rule::Greatest,
                Over::Sum => Rule::Sum,
                Over::Median | Over::MedianWithBounds => Rule::Median,
            };
            rules.push((rule, place(column)));
            if column.over == Over::MedianWithBounds {
                rules.extend([0, 1].map(|bound| (Rule::Bound(bound), place(column))));
            }
        }
        RoundAggregator {
            columns: schema.summary(),
            rules,
            status,
        }
    }

    /// The columns of what [`fold`](Self::fold) makes.
    pub fn columns(&self) -> &[NamedColumn] {
        &self.columns
    }

    /// The row over these.
    pub fn fold(&self, rows: &[Vec<Cell>]) -> Vec<Cell> {
        let is_complete =
            |row: &&[Cell]| matches!(&row[self.status], Cell::Text(it) if it == schema::COMPLETE);
        let all: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let (complete, mut failed_first): (Vec<_>, Vec<_>) =
            all.iter().copied().partition(is_complete);
        let status = match failed_first.is_empty() && !all.is_empty() {
            true => schema::COMPLETE,
            false => schema::INCOMPLETE,
        };
        failed_first.extend(&complete);
        let whole = if complete.is_empty() { &all } else { &complete };
        let of_rule = |&(rule, place): &(Rule, usize)| match rule {
            Rule::First => first(&all, place),
            Rule::FirstOfFailed => first(&failed_first, place),
            Rule::Status => status.into(),
            Rule::Rounds => complete.len().into(),
            Rule::Median => median_of(&numbers(whole, place)).into(),
            Rule::Bound(bound) => bounds(numbers(whole, place)).map(|it| it[bound]).into(),
            Rule::Least => extreme(&all, place, f64::total_cmp),
            Rule::Greatest => extreme(&all, place, |one, other| other.total_cmp(one)),
            Rule::Sum => sum(&all, place),
        };
        let cells = self.rules.iter().map(of_rule).zip(&self.columns);
        cells
            .map(|(cell, (_, column))| cell.with_decimals_of(column))
            .collect()
    }
}

fn numbers(rows: &[&[Cell]], place: usize) -> Vec<f64> {
    rows.iter().filter_map(|row| row[place].number()).collect()
}

fn bounds(mut values: Vec<f64>) -> Option<[f64; 2]> {
    let rank = lower_rank(values.len())?;
    values.sort_unstable_by(f64::total_cmp);
    Some([values[rank - 1], values[values.len() - rank]])
}

/// The cells of a column that are not empty.
fn cells<'a>(rows: &'a [&'a [Cell]], place: usize) -> impl Iterator<Item = &'a Cell> {
    let cells = rows.iter().map(move |row| &row[place]);
    cells.filter(|cell| **cell != Cell::Empty)
}

fn first(rows: &[&[Cell]], place: usize) -> Cell {
    cells(rows, place).next().cloned().unwrap_or(Cell::Empty)
}

/// The cell with the number that comes first in an order.
fn extreme(rows: &[&[Cell]], place: usize, order: fn(&f64, &f64) -> Ordering) -> Cell {
    let numbers = rows
        .iter()
        .filter_map(|row| Some((row[place].number()?, &row[place])))
        .filter(|(number, _)| !number.is_nan());
    let found = numbers.min_by(|(one, _), (other, _)| order(one, other));
    found.map_or(Cell::Empty, |(_, cell)| cell.clone())
}

fn sum(rows: &[&[Cell]], place: usize) -> Cell {
    let add = |sum: Cell, cell: &Cell| match (sum, cell) {
        (Cell::Empty, cell) => cell.clone(),
        (Cell::Integer(sum), Cell::Integer(number)) => Cell::Integer(sum.saturating_add(*number)),
        (Cell::Decimal(sum, decimals), Cell::Decimal(number, _)) => {
            Cell::Decimal(sum + number, decimals)
        }
        (sum, _) => sum,
    };
    cells(rows, place).fold(Cell::Empty, add)
}
