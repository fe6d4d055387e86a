//! A run and its points.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::damage::{
    Damage, check_columns, check_left_out, check_numbers, check_rounds, keep_rounds, marked,
    summary_of,
};
use super::folder::{is_of_a_fabric, mark_of, names_in, salvage_table};
use super::rows::RowFile;
use super::table::{Row, Table};
use crate::results::curves::Curve;
use crate::results::document::read_value;
use crate::results::finding::Findings;
use crate::results::folder::{LEFT_OUT, LIST, MARK, RUNS, SETTINGS, SUMMARY, is_incomplete};
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::results::record::Record;
use crate::results::schema::memory::SIZE;
use crate::results::schema::{
    Column, FAILURE, INCOMPLETE, Over, POINT, ROUNDS, STATUS, Schema, queue,
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
    /// What was left out of the sweep, with the reasons; empty when nothing was.
    pub left_out: Table,
    /// What its file of findings has; `None` without one.
    pub findings: Option<Findings>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    /// Files that could not be read, or not all of them, each once with the reason.
    pub damaged: Vec<Arc<ReadError>>,
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
    ///
    /// # Errors
    /// Where one of its files is damaged.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (run, damage) = Self::read(path)?;
        damage.0.into_iter().next().map_or(Ok(run), Err)
    }

    /// The same of a folder with damaged files: what can be read of it. The others are in `damaged`.
    ///
    /// # Errors
    /// Where it holds no results that this version reads.
    pub fn salvage(path: &Path) -> Result<Self, ReadError> {
        let (run, damage) = Self::read(path)?;
        let damaged = damage.0.into_iter().map(Arc::new).collect();
        Ok(Run { damaged, ..run })
    }

    fn read(path: &Path) -> Result<(Self, Damage), ReadError> {
        let mut damage = Damage::default();
        let names = names_in(path)?;
        let has = |name: &str| names.contains(name);
        // It has a summary, too, of tiers.
        if is_of_a_fabric(path) {
            return Err(ReadErrorKind::OfAFabric.at(path));
        }
        if [SUMMARY, LIST, RUNS].into_iter().any(has) {
            let run = Self::read_run(path, &mut damage)?;
            return Ok((run, damage));
        }
        if has(SETTINGS) {
            let run = Self::read_point(path, &mut damage)?;
            return Ok((run, damage));
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

    fn read_run(path: &Path, damage: &mut Damage) -> Result<Self, ReadError> {
        let incomplete = marked(path, damage);
        let is_incomplete = incomplete.is_some();
        let mut summary = damage.table(salvage_table(path, SUMMARY, is_incomplete));
        let settings = path.join(SETTINGS);
        let read = read_document(&settings);
        if !summary.columns.is_empty() && !summary.has(POINT.name) {
            let reason = format!("its {SUMMARY} has no column {}", POINT.name);
            if summary.has(STATUS.name) {
                return Err(ReadErrorKind::OlderFormat.at(path));
            } else if read.is_err() {
                return Err(ReadErrorKind::NoResults(reason).at(path));
            }
            damage.add(ReadError::foreign(&path.join(SUMMARY), 1, reason));
            summary = Table::default();
        }
        let (document, schema) = match (read, &incomplete) {
            (Err(error), Some(reason)) if error.is_missing() && summary.rows.is_empty() => {
                return Err(ReadErrorKind::NothingMeasured(reason.clone()).at(path));
            }
            // Each point has what the run has, too.
            (Err(error), _) if error.is_damage() => match document_of_a_point(path) {
                Some(found) => {
                    damage.add(error);
                    found
                }
                None => return Err(error),
            },
            (read, _) => read?,
        };
        let mut runs = damage.table(salvage_table(path, RUNS, is_incomplete));
        if is_incomplete && runs.columns.is_empty() && !summary.rows.is_empty() {
            // Its rows are on disk before those of the summary.
            runs = damage.table(salvage_table(path, RUNS, false));
        }
        keep_rounds(path, &mut runs, damage);
        for (name, table, columns) in [
            (SUMMARY, &summary, schema.summary()),
            (RUNS, &runs, schema.runs()),
        ] {
            check_columns(path, name, table, &columns, damage);
            check_numbers(&path.join(name), table, &columns, damage);
        }
        // While a round is under way, its rows are in runs.csv alone; and a summary can be made of them again.
        let is_damaged = |damage: &Damage, name| {
            let file = path.join(name);
            damage.0.iter().any(|error| error.path == file)
        };
        let is_better = is_incomplete || is_damaged(damage, SUMMARY) && !is_damaged(damage, RUNS);
        if is_better && !runs.rows.is_empty() {
            summary = summary_of(schema, &runs, &summary);
        }
        let mut points = points_of(path, schema, &summary, is_incomplete, damage)?;
        // A row may be missing, where the file ends with a line.
        if !is_incomplete && !is_damaged(damage, RUNS) && points.iter().any(|it| it.row.is_none()) {
            summary = summary_of(schema, &runs, &summary);
            points = points_of(path, schema, &summary, is_incomplete, damage)?;
        }
        if points.is_empty() {
            let first = damage.0.drain(..).next();
            let none = || ReadErrorKind::NoResults("there is no point in it".to_owned()).at(path);
            let nothing = |reason| ReadErrorKind::NothingMeasured(reason).at(path);
            return Err(first.or(incomplete.map(nothing)).unwrap_or_else(none));
        }
        for point in &mut points {
            let is_of = |row: &&Row| row.text(POINT.name) == Some(&point.name);
            point.rounds = runs.rows.iter().filter(is_of).cloned().collect();
        }
        for point in points.iter().filter(|point| point.incomplete.is_none()) {
            if let Some(told) = point.count(&ROUNDS) {
                check_rounds(path, &point.name, point.rounds.len(), told, damage);
            }
        }
        let told = document["details"]["left_out"].as_u64();
        let is_there = path.join(LEFT_OUT).symlink_metadata().is_ok();
        let left_out = match is_there || told.is_some_and(|told| told > 0) {
            true => damage.table(salvage_table(path, LEFT_OUT, false)),
            false => Table::default(),
        };
        check_left_out(path, left_out.rows.len(), told, damage);
        Ok(Run {
            path: path.to_path_buf(),
            schema,
            points,
            summary,
            left_out,
            findings: damage.keep(Findings::read(path)).flatten(),
            incomplete,
            damaged: Vec::new(),
            document,
        })
    }

    /// A point's folder: with its run, if that is around it, else alone.
    fn read_point(path: &Path, damage: &mut Damage) -> Result<Self, ReadError> {
        let full = path
            .canonicalize()
            .map_err(|cause| ReadError::io(path, cause))?;
        if let (Some(parent), Some(name)) = (full.parent(), full.file_name())
            && (parent.join(SUMMARY).exists() || parent.join(LIST).exists())
        {
            let mut run = Self::read_run(parent, damage)?;
            run.points
                .retain(|point| point.folder.file_name() == Some(name));
            if !run.points.is_empty() {
                // What is wrong with the others is not asked for.
                let is_other = |error: &ReadError| {
                    let below = error.path.strip_prefix(parent).ok();
                    let mut parts = below.into_iter().flat_map(Path::components);
                    let folder = parts.next();
                    parts.next().is_some()
                        && folder.is_some_and(|folder| folder.as_os_str() != name)
                };
                damage.0.retain(|error| !is_other(error));
                return Ok(run);
            }
        }
        let (document, schema) = read_document(&path.join(SETTINGS))?;
        let name = full.file_name().unwrap_or(full.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let point = Point::of(path, name, schema, None, document.clone(), damage);
        Ok(Run {
            path: path.to_path_buf(),
            schema,
            incomplete: point.incomplete.clone(),
            points: vec![point],
            summary: Table::default(),
            left_out: Table::default(),
            findings: damage.keep(Findings::read(path)).flatten(),
            damaged: Vec::new(),
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

    /// Those of the largest buffer, and its bytes: smaller ones may be of caches.
    pub fn curves_of_largest(&self) -> (Vec<Curve>, Option<u64>) {
        let mut curves = self.curves();
        let size = |curve: &Curve| {
            let size = self.points[curve.loads[0].row].setting(SIZE.name)?;
            size.parse::<u64>().ok()
        };
        let largest = curves.iter().filter_map(size).max();
        curves.retain(|curve| size(curve) == largest);
        (curves, largest)
    }
}

impl Point {
    fn of(
        folder: &Path,
        name: String,
        schema: &'static Schema,
        row: Option<Row>,
        document: Value,
        damage: &mut Damage,
    ) -> Self {
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
                damage.add(ReadError::foreign(&summary, 0, reason));
            }
            if let Some(text) = found.map(str::to_owned).or(told) {
                settings.push((column.name.to_owned(), text));
            }
        }
        let of_row = |column: &str| row.as_ref().and_then(|row| row.text(column));
        let is_incomplete =
            [of_row(STATUS.name), document[STATUS.name].as_str()].contains(&Some(INCOMPLETE));
        let incomplete = match marked(folder, damage) {
            None if is_incomplete => {
                let told = document[FAILURE.name].as_str().or(of_row(FAILURE.name));
                Some(told.unwrap_or("it was not measured to its end").to_owned())
            }
            mark => mark,
        };
        Point {
            name,
            folder: folder.to_path_buf(),
            schema,
            settings,
            row,
            rounds: Vec::new(),
            incomplete,
            document,
        }
    }

    /// The text of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(column, _)| column == name);
        found.map(|(_, text)| text.as_str())
    }

    /// The text of a setting, or what it is where the run does not have it.
    pub fn setting_or_unset(&self, column: &Column) -> &str {
        let text = self.setting(column.name).filter(|text| !text.is_empty());
        text.unwrap_or(column.unset)
    }

    /// Whether a setting was measured in place of being chosen: it distinguishes no points, and differs from run to run.
    pub fn is_measured(&self, name: &str) -> bool {
        queue::MEASURED_SETTINGS.iter().any(|[given, measured]| {
            *measured == name && self.setting(given).is_some_and(|text| !text.is_empty())
        })
    }

    /// The settings that have a value, or are known without one, but those that were measured.
    pub fn chosen(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let columns = self.schema.point.iter();
        let settings = columns.map(|column| (column.name, self.setting_or_unset(column)));
        settings.filter(|(name, text)| !text.is_empty() && !self.is_measured(name))
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

/// A `settings.json` and what the results of its benchmark have.
fn read_document(path: &Path) -> Result<(Value, &'static Schema), ReadError> {
    let document = read_value(path)?;
    let schema = document["benchmark"].as_str().and_then(Schema::of);
    let unknown = "it does not name a benchmark that this version has";
    let schema = schema.ok_or_else(|| ReadError::foreign(path, 1, unknown))?;
    Ok((document, schema))
}

/// The same of the first of the points that has it.
fn document_of_a_point(path: &Path) -> Option<(Value, &'static Schema)> {
    let names = names_in(path).ok()?.into_iter();
    let mut files = names.map(|name| path.join(name).join(SETTINGS));
    files.find_map(|file| read_document(&file).ok())
}

/// The points in the summary, in its order; then those that have a folder and no row yet.
fn points_of(
    path: &Path,
    schema: &'static Schema,
    summary: &Table,
    incomplete: bool,
    damage: &mut Damage,
) -> Result<Vec<Point>, ReadError> {
    let mut rows: Vec<(String, Option<Row>)> = Vec::new();
    for (row, line) in summary.rows.iter().zip(2..) {
        let name = row.text(POINT.name).unwrap_or_default();
        let reason = match rows.iter().position(|(other, _)| other == name) {
            _ if !is_plain(name) => format!("{name:?} is not the name of a point"),
            Some(first) => {
                let first = first + 2;
                format!("{name} is in it twice, first in line {first}; only the first is read")
            }
            None => {
                rows.push((name.to_owned(), Some(row.clone())));
                continue;
            }
        };
        damage.add(ReadError::foreign(&path.join(SUMMARY), line, reason));
    }
    let listed = damage.keep(listed(path)).flatten();
    let names = listed.map_or_else(|| folders(path), Ok)?;
    for name in names {
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
            damage.add(ReadErrorKind::MissingFile(why.to_owned()).at(&folder));
            // Without a row nothing is known of it.
            if row.is_none() {
                continue;
            }
        }
        let document = match read_document(&folder.join(SETTINGS)) {
            // Ended between making the folder and writing into it.
            Err(error) if error.is_missing() && is_incomplete(&folder) => Value::Null,
            Err(_) if !folder.is_dir() => Value::Null,
            Err(error) if !error.is_damage() => return Err(error),
            read => damage
                .keep(read)
                .map_or(Value::Null, |(document, _)| document),
        };
        let point = Point::of(&folder, name, schema, row, document, damage);
        if point.row.is_none() && point.incomplete.is_none() && !incomplete {
            let reason = format!("it has no row for {}", point.name);
            damage.add(ReadError::truncated(&path.join(SUMMARY), 0, reason));
        }
        points.push(point);
    }
    Ok(points)
}

fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// The folders of points that look so.
fn folders(path: &Path) -> Result<Vec<String>, ReadError> {
    let names = names_in(path)?.into_iter();
    let is_point =
        |name: &String| !name.starts_with('.') && path.join(name).join(SETTINGS).exists();
    Ok(names.filter(is_point).collect())
}

/// The folders of points on the run's list; `None` without one.
fn listed(path: &Path) -> Result<Option<Vec<String>>, ReadError> {
    let list = path.join(LIST);
    if list.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = whole(&list, "it was there a moment ago")?;
    let folders = text.lines().filter_map(|line| line.strip_suffix('/'));
    let plain = folders.filter(|name| is_plain(name));
    Ok(Some(plain.map(str::to_owned).collect()))
}
