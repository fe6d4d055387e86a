//! What is wrong with the files of a run, and what of its tables counts all the same.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::folder::mark_of;
use super::table::{Row, Table};
use crate::results::curves;
use crate::results::folder::{LEFT_OUT, MARK, PACKAGE, RUNS, SETTINGS};
use crate::results::read_error::ReadError;
use crate::results::record::{Cell, Record};
use crate::results::runs::over_rounds;
use crate::results::schema::{Column, Data, NamedColumn, POINT, ROUND, Schema};
use crate::results::whole::whole;

/// What is wrong with the files of a folder, the first of each.
#[derive(Debug, Default)]
pub(super) struct Damage(pub Vec<ReadError>);

impl Damage {
    pub(super) fn add(&mut self, error: ReadError) {
        if self.0.iter().all(|known| known.path != error.path) {
            self.0.push(error);
        }
    }

    /// What was read; without it, the error is kept.
    pub(super) fn keep<T>(&mut self, read: Result<T, ReadError>) -> Option<T> {
        read.map_err(|error| self.add(error)).ok()
    }

    /// A table as far as it can be read.
    pub(super) fn table(&mut self, (table, wrong): (Table, Option<ReadError>)) -> Table {
        wrong.into_iter().for_each(|error| self.add(error));
        table
    }
}

/// Why a folder is incomplete; of a mark that cannot be read, that.
pub(super) fn marked(folder: &Path, damage: &mut Damage) -> Option<String> {
    let unknown = || Some(format!("its file {MARK} cannot be read"));
    damage.keep(mark_of(folder)).unwrap_or_else(unknown)
}

/// Leaves one row for each point and round.
pub(super) fn keep_rounds(path: &Path, runs: &mut Table, damage: &mut Damage) {
    let file = path.join(RUNS);
    if !runs.columns.is_empty() && !runs.has(POINT.name) {
        let reason = format!("there is no column {}", POINT.name);
        damage.add(ReadError::foreign(&file, 1, reason));
        *runs = Table::default();
    }
    let mut known: HashMap<[String; 2], u64> = HashMap::new();
    let mut line = 1;
    runs.rows.retain(|row| {
        line += 1;
        let cell = |column: &Column| row.text(column.name).unwrap_or_default().to_owned();
        let key = [cell(&POINT), cell(&ROUND)];
        let [point, round] = key.clone();
        let first = *known.entry(key).or_insert(line);
        if first != line {
            let reason = format!(
                "round {round} of {point} is in it twice, first in line {first}; only the first is read"
            );
            damage.add(ReadError::foreign(&file, line, reason));
        }
        first == line
    });
}

/// A table must have the columns of its schema; of one that an older hcabench wrote, those that its `datapackage.json`
/// describes.
pub(super) fn check_columns(
    path: &Path,
    name: &str,
    table: &Table,
    columns: &[NamedColumn],
    damage: &mut Damage,
) {
    let is_whole = columns.iter().all(|(column, _)| table.has(column));
    if is_whole || table.columns.is_empty() {
        return;
    }
    let text = whole(&path.join(PACKAGE), "").unwrap_or_default();
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    let resources = package["resources"].as_array().into_iter().flatten();
    let fields = resources
        .filter(|it| it["path"] == name)
        .filter_map(|it| it["schema"]["fields"].as_array());
    let mut names = fields.flatten().filter_map(|it| it["name"].as_str());
    if let Some(lacking) = names.find(|column| !table.has(column)) {
        let reason = format!("there is no column {lacking}, which {PACKAGE} describes");
        damage.add(ReadError::foreign(&path.join(name), 1, reason));
    }
}

/// Whether as many points are in the table of those that were left out as the settings of the run state.
pub(super) fn check_left_out(path: &Path, found: usize, told: Option<u64>, damage: &mut Damage) {
    let file = path.join(LEFT_OUT);
    let Some(told) = told.filter(|told| *told != found as u64) else {
        return;
    };
    let reason = format!("{found} points instead of the {told} in {SETTINGS}");
    damage.add(match (found as u64) < told {
        true => ReadError::truncated(&file, 0, reason),
        false => ReadError::foreign(&file, 0, reason),
    });
}

/// What is neither empty nor a number was changed: it must not count as not measured.
pub(super) fn check_numbers(
    file: &Path,
    table: &Table,
    columns: &[NamedColumn],
    damage: &mut Damage,
) {
    let is_number = |column: &Column| matches!(column.data, Data::Whole | Data::Number(_));
    for (name, _) in columns.iter().filter(|(_, column)| is_number(column)) {
        for (text, line) in table.cells(name).zip(2..) {
            let is_finite = text.parse().is_ok_and(f64::is_finite);
            if !text.is_empty() && !is_finite {
                let reason = format!("{name} is {text:?}, no number");
                damage.add(ReadError::foreign(file, line, reason));
            }
        }
    }
}

/// Whether a point has all rounds of the summary.
pub(super) fn check_rounds(path: &Path, name: &str, found: usize, told: u64, damage: &mut Damage) {
    let file = path.join(RUNS);
    let reason = format!("{found} rounds of {name} instead of the {told} in the summary");
    match (found as u64).cmp(&told) {
        Ordering::Less => damage.add(ReadError::truncated(&file, 0, reason)),
        Ordering::Greater => damage.add(ReadError::foreign(&file, 0, reason)),
        Ordering::Equal => {}
    }
}

/// The summary of the rows of `runs.csv`, in the order that the points have in an older one, and then as measured.
pub(super) fn summary_of(schema: &'static Schema, runs: &Table, older: &Table) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for row in older.rows.iter().chain(&runs.rows) {
        if let Some(name) = row.text(POINT.name).filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    let columns = schema.runs();
    let record = |row: &Row| {
        let mut record = Record::new();
        for (name, column) in &columns {
            let text = row.text(name).unwrap_or_default();
            record.push(
                name.clone(),
                Cell::parse(column, text).unwrap_or(Cell::Empty),
            );
        }
        record
    };
    let of_point = |name: &&str| {
        let rows = runs
            .rows
            .iter()
            .filter(|row| row.text(POINT.name) == Some(name));
        let records: Vec<Record> = rows.map(record).collect();
        (!records.is_empty()).then(|| over_rounds(schema, &records))
    };
    let mut summary: Vec<Record> = names.iter().filter_map(of_point).collect();
    curves::complete(schema, &mut summary);
    let columns = schema.summary();
    let cells = |record: &Record| {
        let cell = |(name, column): &NamedColumn| {
            let cell = record.get(name).cloned().unwrap_or(Cell::Empty);
            cell.with_decimals_of(column).text()
        };
        columns.iter().map(cell).collect()
    };
    let names = columns.iter().map(|(name, _)| name.to_string()).collect();
    Table::made(names, summary.iter().map(cells))
}
