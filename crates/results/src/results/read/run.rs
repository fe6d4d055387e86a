//! A run and its points.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::folder::{is_of_a_fabric, mark_of, names_in, read_table};
use super::rows::RowFile;
use super::table::{Row, Table};
use crate::results::curves::{self, Curve};
use crate::results::document::read_value;
use crate::results::folder::{LEFT_OUT, LIST, MARK, RUNS, SETTINGS, SUMMARY};
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::results::record::{Cell, Record};
use crate::results::runs::over_rounds;
use crate::results::schema::{
    Column, FAILURE, INCOMPLETE, NamedColumn, Over, POINT, ROUNDS, STATUS, Schema, queue,
};
use crate::results::whole::whole;

/// A run: its points, its summary, and the circumstances.
#[derive(Debug, Clone)]
pub struct Run {
    pub path: PathBuf,
    pub schema: &'static Schema,
    /// Its points, in the order of the sweep; only the one, if a point's folder was opened.
    pub points: Vec<Point>,
    /// The summary, with the rows of all points.
    pub summary: Table,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    document: Value,
}

#[derive(Debug, Clone)]
pub struct Point {
    pub name: String,
    pub folder: PathBuf,
    pub schema: &'static Schema,
    /// Its settings: column and text, in the order of the schema.
    pub settings: Vec<(String, String)>,
    /// Its row of the summary, if it has one.
    pub row: Option<Row>,
    /// Its rows of `runs.csv`, one for each round, in the order measured.
    pub rounds: Vec<Row>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    pub document: Value,
}

impl Run {
    /// Reads the folder of a run, or of one of its points.
    ///
    /// Files of samples are not opened. An incomplete run is read as far as it goes.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let names = names_in(path)?;
        let has = |name: &str| names.contains(name);
        // It has a summary, too, of tiers.
        if is_of_a_fabric(path) {
            return Err(ReadErrorKind::OfAFabric.at(path));
        }
        if has(SUMMARY) || has(LIST) {
            return Self::open_run(path);
        }
        if has(SETTINGS) {
            return Self::open_point(path);
        }
        if has(MARK) {
            return Err(
                ReadErrorKind::NothingMeasured(mark_of(path)?.unwrap_or_default()).at(path),
            );
        }
        let below: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| path.join(name).join(SUMMARY).exists())
            .take(5)
            .collect();
        let reason = if below.is_empty() {
            format!("neither {SUMMARY} nor {SETTINGS} is in it")
        } else {
            format!("but these in it do: {}", below.join(", "))
        };
        Err(ReadErrorKind::NoResults(reason).at(path))
    }

    fn open_run(path: &Path) -> Result<Self, ReadError> {
        let incomplete = mark_of(path)?;
        let summary = read_table(path, SUMMARY, incomplete.is_some())?;
        let settings = path.join(SETTINGS);
        if !summary.columns.is_empty() && !summary.has(POINT.name) {
            let wrong = if summary.has(STATUS.name) {
                ReadErrorKind::OlderFormat
            } else {
                ReadErrorKind::NoResults(format!("its {SUMMARY} has no column {}", POINT.name))
            };
            return Err(wrong.at(path));
        }
        let (document, schema) = match (read_document(&settings), &incomplete) {
            (Err(error), Some(reason)) if error.is_missing() && summary.rows.is_empty() => {
                return Err(ReadErrorKind::NothingMeasured(reason.clone()).at(path));
            }
            (read, _) => read?,
        };
        let runs = read_table(path, RUNS, incomplete.is_some())?;
        // While a round is under way, its rows are in runs.csv alone.
        let summary = match incomplete.is_some() && !runs.rows.is_empty() {
            true => summary_of(schema, &runs, &summary),
            false => summary,
        };
        let mut points = points_of(path, schema, &summary, incomplete.is_some())?;
        if points.is_empty() {
            let none = || ReadErrorKind::NoResults("there is no point in it".to_owned());
            return Err(incomplete
                .map_or_else(none, ReadErrorKind::NothingMeasured)
                .at(path));
        }
        for point in &mut points {
            let is_of = |row: &&Row| row.text(POINT.name) == Some(&point.name);
            point.rounds = runs.rows.iter().filter(is_of).cloned().collect();
        }
        check_rounds(path, &points)?;
        Ok(Run {
            path: path.to_path_buf(),
            schema,
            points,
            summary,
            incomplete,
            document,
        })
    }

    /// A point's folder: with its run, if that is around it, else alone.
    fn open_point(path: &Path) -> Result<Self, ReadError> {
        let full = path
            .canonicalize()
            .map_err(|cause| ReadError::io(path, cause))?;
        if let (Some(parent), Some(name)) = (full.parent(), full.file_name())
            && (parent.join(SUMMARY).exists() || parent.join(LIST).exists())
        {
            let mut run = Self::open_run(parent)?;
            run.points
                .retain(|point| point.folder.file_name() == Some(name));
            if !run.points.is_empty() {
                return Ok(run);
            }
        }
        let (document, schema) = read_document(&path.join(SETTINGS))?;
        let name = full.file_name().unwrap_or(full.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let point = Point::of(path, name, schema, None, document.clone())?;
        Ok(Run {
            path: path.to_path_buf(),
            schema,
            incomplete: point.incomplete.clone(),
            points: vec![point],
            summary: Table::default(),
            document,
        })
    }

    /// What is the same for all points: the run's `settings.json`; of a point alone its own.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The machine; `null` where it is missing.
    pub fn machine(&self) -> &Value {
        &self.document["machine"]
    }

    /// When it was started, as RFC 3339.
    pub fn started_at(&self) -> Option<&str> {
        self.document["started_at"].as_str()
    }

    /// The version of hcabench that measured it.
    pub fn version(&self) -> Option<&str> {
        self.document["hcabench"]["version"].as_str()
    }

    /// A count at each point that has one.
    pub fn counts(&self, column: &Column) -> impl Iterator<Item = u64> {
        self.points.iter().filter_map(|point| point.count(column))
    }

    /// Their sum; `None` where no point has one.
    pub fn sum(&self, column: &Column) -> Option<u64> {
        self.counts(column).reduce(|sum, count| sum + count)
    }

    /// The curves that its points make.
    pub fn curves(&self) -> Vec<Curve> {
        Curve::all(&self.points, |point, column| {
            point.text(column).unwrap_or_default().to_owned()
        })
    }

    /// What was left out of the sweep, with the reasons; empty when nothing was.
    pub fn left_out(&self) -> Result<Table, ReadError> {
        let path = self.path.join(LEFT_OUT);
        if !path.exists() {
            return Ok(Table::default());
        }
        Table::of(&path, &whole(&path, "it lists points that were left out")?)
    }
}

impl Point {
    fn of(
        folder: &Path,
        name: String,
        schema: &'static Schema,
        row: Option<Row>,
        document: Value,
    ) -> Result<Self, ReadError> {
        let told: Record = serde_json::from_value(document["point"].clone()).unwrap_or_default();
        let mut settings = Vec::new();
        for column in schema.point {
            let told = told.get(column.name).cloned();
            let told = told.map(|cell| cell.with_decimals_of(column).text());
            let found = row.as_ref().and_then(|row| row.text(column.name));
            if let (Some(told), Some(found)) = (&told, found)
                && told != found
                // A median over rounds may lack one where a run was killed between the two files.
                && column.over != Over::Median
            {
                let column = column.name;
                let reason =
                    format!("{column} of {name} is {found:?}, and {told:?} in its {SETTINGS}");
                let summary = folder.with_file_name(SUMMARY);
                return Err(ReadError::foreign(&summary, 0, reason));
            }
            if let Some(text) = found.map(str::to_owned).or(told) {
                settings.push((column.name.to_owned(), text));
            }
        }
        let of_row = |column: &str| row.as_ref().and_then(|row| row.text(column));
        let is_incomplete =
            [of_row(STATUS.name), document[STATUS.name].as_str()].contains(&Some(INCOMPLETE));
        let incomplete = match mark_of(folder)? {
            None if is_incomplete => {
                let told = document[FAILURE.name].as_str().or(of_row(FAILURE.name));
                Some(told.unwrap_or("it was not measured to its end").to_owned())
            }
            mark => mark,
        };
        Ok(Point {
            name,
            folder: folder.to_path_buf(),
            schema,
            settings,
            row,
            rounds: Vec::new(),
            incomplete,
            document,
        })
    }

    /// The text of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(column, _)| column == name);
        found.map(|(_, text)| text.as_str())
    }

    /// Whether a setting was measured in place of being chosen: it distinguishes no points, and differs from run to run.
    pub fn is_measured(&self, name: &str) -> bool {
        queue::MEASURED_SETTINGS.iter().any(|[given, measured]| {
            *measured == name && self.setting(given).is_some_and(|text| !text.is_empty())
        })
    }

    /// The settings that were chosen, and not measured.
    pub fn chosen(&self) -> impl Iterator<Item = &(String, String)> {
        let settings = self.settings.iter();
        settings.filter(|(name, _)| !self.is_measured(name))
    }

    /// The text of a cell of its row.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.row.as_ref()?.text(column)
    }

    pub fn number(&self, column: &Column) -> Option<f64> {
        self.row.as_ref()?.number(column.name)
    }

    pub fn count(&self, column: &Column) -> Option<u64> {
        self.row.as_ref()?.count(column.name)
    }

    /// The bounds of a median over rounds.
    pub fn interval(&self, column: &Column) -> Option<(f64, f64)> {
        let row = self.row.as_ref()?;
        let [low, high] = column.bounds().map(|bound| row.number(&bound));
        low.zip(high)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens one of its files of rows.
    pub fn rows(&self, file: &str) -> Result<RowFile, ReadError> {
        let mut rows = RowFile::open(&self.file(file))?;
        rows.may_be_cut = self.incomplete.is_some();
        rows.told = self.rows_told(file);
        Ok(rows)
    }

    /// The rows that a file must have, by the summary. For an incomplete point it is unknown.
    fn rows_told(&self, file: &str) -> Option<u64> {
        if self.incomplete.is_some() {
            return None;
        }
        let file = self.schema.samples.iter().find(|it| it.name == file)?;
        self.count(&file.counted_by)
    }
}

/// The summary of the rows of `runs.csv`, in the order that the points have in an older one, and then as measured.
fn summary_of(schema: &'static Schema, runs: &Table, older: &Table) -> Table {
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

/// A `settings.json` and what the results of its benchmark have.
fn read_document(path: &Path) -> Result<(Value, &'static Schema), ReadError> {
    let document = read_value(path)?;
    let schema = document["benchmark"].as_str().and_then(Schema::of);
    let unknown = "it does not name a benchmark that this version has";
    let schema = schema.ok_or_else(|| ReadError::foreign(path, 1, unknown))?;
    Ok((document, schema))
}

/// The points in the summary, in its order; then those that have a folder and no row yet.
fn points_of(
    path: &Path,
    schema: &'static Schema,
    summary: &Table,
    incomplete: bool,
) -> Result<Vec<Point>, ReadError> {
    let in_summary = |row: &Row| row.text(POINT.name).unwrap_or_default().to_owned();
    let mut rows: Vec<(String, Option<Row>)> = summary
        .rows
        .iter()
        .map(|row| (in_summary(row), Some(row.clone())))
        .collect();
    for (place, (name, _)) in rows.iter().enumerate() {
        let line = place as u64 + 2;
        if !is_plain(name) || rows[..place].iter().any(|(other, _)| other == name) {
            let reason = format!("{name:?} is not the name of a point, or not its first row");
            return Err(ReadError::foreign(&path.join(SUMMARY), line, reason));
        }
    }
    for name in folders(path)? {
        // A run that was killed may have one on its list that it has not made yet, or not written to.
        let has = |file: &str| path.join(&name).join(file).symlink_metadata().is_ok();
        let is_there = !incomplete || has(MARK) || has(SETTINGS);
        if is_there && rows.iter().all(|(other, _)| *other != name) {
            rows.push((name, None));
        }
    }
    let mut points = Vec::new();
    for (name, row) in rows {
        let folder = path.join(&name);
        if !folder.is_dir() {
            let why = "it is a point of the run; copy the folder whole";
            return Err(ReadErrorKind::MissingFile(why.to_owned()).at(&folder));
        }
        let document = match read_document(&folder.join(SETTINGS)) {
            // Ended between making the folder and writing into it.
            Err(error) if error.is_missing() && mark_of(&folder)?.is_some() => Value::Null,
            read => read?.0,
        };
        let point = Point::of(&folder, name, schema, row, document)?;
        if point.row.is_none() && point.incomplete.is_none() && !incomplete {
            let reason = format!("it has no row for {}", point.name);
            return Err(ReadError::truncated(&path.join(SUMMARY), 0, reason));
        }
        points.push(point);
    }
    Ok(points)
}

/// Whether all rounds of the summary are there.
fn check_rounds(path: &Path, points: &[Point]) -> Result<(), ReadError> {
    for point in points.iter().filter(|point| point.incomplete.is_none()) {
        let (name, found) = (&point.name, point.rounds.len() as u64);
        let told = point.count(&ROUNDS);
        if let Some(told) = told.filter(|told| *told != found) {
            let reason = format!("{found} rounds of {name} instead of the {told} in the summary");
            return Err(ReadError::truncated(&path.join(RUNS), 0, reason));
        }
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// The folders of points: those on the run's list, or without one those that look so.
fn folders(path: &Path) -> Result<Vec<String>, ReadError> {
    let list = path.join(LIST);
    if list.symlink_metadata().is_err() {
        let names = names_in(path)?.into_iter();
        return Ok(names
            .filter(|name| !name.starts_with('.') && path.join(name).join(SETTINGS).exists())
            .collect());
    }
    let text = whole(&list, "it was there a moment ago")?;
    let folders = text.lines().filter_map(|line| line.strip_suffix('/'));
    let plain = folders.filter(|name| is_plain(name));
    Ok(plain.map(str::to_owned).collect())
}
