//! A run and its points.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::error::ReadError;
use super::rows::{Owner, RowFile, Samples};
use super::table::{Row, Table, whole};
use crate::results::folder::{LEFT_OUT, LIST, MARK, MARK_BEGINS, MESSAGES, SETTINGS, SUMMARY};

/// The file of a clock's jumps.
const JUMPS: &str = "jumps.csv";
/// The file of a queue's elements.
const ELEMENTS: &str = "elements.csv";
/// The first column of the summary that is no setting.
const STATUS: &str = "status";
/// Columns in front of it that are measured all the same.
const MEASURED: [&str; 1] = ["saturation_per_s"];

/// Whose results they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Benchmark {
    /// Messages between two HCAs.
    Hca,
    /// `hcabench queue`.
    Queue,
    /// `hcabench clock`.
    Clock,
}

impl Benchmark {
    /// The name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::Hca => "HCA",
            Benchmark::Queue => "queue",
            Benchmark::Clock => "clock",
        }
    }
}

/// A run: its points, its summary, and the circumstances.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its folder.
    pub path: PathBuf,
    /// Whose results they are.
    pub benchmark: Benchmark,
    /// Its points, in the order in which they were measured; only the one, if a point's folder was opened.
    pub points: Vec<Point>,
    /// The summary, with the rows of all points.
    pub summary: Table,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    document: Value,
}

/// A point of a run.
#[derive(Debug, Clone)]
pub struct Point {
    /// Its name: that of its folder, or `cpu1`.
    pub name: String,
    /// The folder that its files are in.
    pub folder: PathBuf,
    /// Its settings: column of the summary and text, in order. Of a point without a row they are the numbers and words
    /// in `point` of its `settings.json`, under their names there.
    pub settings: Vec<(String, String)>,
    /// Its row of the summary, if it has one.
    pub row: Option<Row>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    /// Its `settings.json`.
    pub document: Value,
    /// Of files that it shares with other points, the rows in which this column has this text are its own.
    share: Option<(&'static str, String)>,
}

impl Run {
    /// Reads the folder of a run, or of one of its points.
    ///
    /// Files of samples are not opened. An incomplete run is read as far as it goes.
    ///
    /// # Errors
    /// [`ReadError`]; the folder of a run that ended before its first point is [`ReadError::NothingMeasured`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let names = names_in(path)?;
        let has = |name: &str| names.contains(name);
        if has(SUMMARY) || has(LIST) {
            return Self::open_run(path);
        }
        if has(SETTINGS) {
            return Self::open_point(path);
        }
        if has(MARK) {
            return Err(ReadError::NothingMeasured {
                path: path.to_path_buf(),
                reason: mark_of(path)?.unwrap_or_default(),
            });
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
        Err(ReadError::NoResults {
            path: path.to_path_buf(),
            reason,
        })
    }

    fn open_run(path: &Path) -> Result<Self, ReadError> {
        let incomplete = mark_of(path)?;
        let summary = read_summary(path, incomplete.is_some())?;
        if !summary.columns.is_empty() && !summary.has(STATUS) {
            return Err(ReadError::NoResults {
                path: path.to_path_buf(),
                reason: format!("its {SUMMARY} has no column {STATUS}"),
            });
        }
        let shared = path.join(SETTINGS);
        let (document, points) = if shared.exists() {
            let document = read_document(&shared)?;
            let points = shared_points(path, &summary, &document, incomplete.as_deref());
            (document, points)
        } else {
            let points = own_points(path, &summary)?;
            let first = points.iter().map(|point| &point.document);
            let document = first.into_iter().find(|document| document.is_object());
            (document.cloned().unwrap_or(Value::Null), points)
        };
        if points.is_empty() {
            return Err(match incomplete {
                Some(reason) => ReadError::NothingMeasured {
                    path: path.to_path_buf(),
                    reason,
                },
                None => ReadError::NoResults {
                    path: path.to_path_buf(),
                    reason: "there is no point in it".to_owned(),
                },
            });
        }
        let benchmark = benchmark_of(&document, &summary)
            .ok_or_else(|| ReadError::foreign(&path.join(SUMMARY), 1, UNKNOWN))?;
        Ok(Run {
            path: path.to_path_buf(),
            benchmark,
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
        let document = read_document(&path.join(SETTINGS))?;
        let benchmark = benchmark_of(&document, &Table::default())
            .ok_or_else(|| ReadError::foreign(&path.join(SETTINGS), 1, UNKNOWN))?;
        let name = full.file_name().unwrap_or(full.as_os_str());
        let point = Point::of(
            path,
            name.to_string_lossy().into_owned(),
            None,
            document.clone(),
        )?;
        Ok(Run {
            path: path.to_path_buf(),
            benchmark,
            incomplete: point.incomplete.clone(),
            points: vec![point],
            summary: Table::default(),
            document,
        })
    }

    /// What is the same for all points: the first `settings.json`.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The machine; `null` where it is not told.
    pub fn machine(&self) -> &Value {
        &self.document["machine"]
    }

    /// When it was started, as RFC 3339.
    pub fn started_at(&self) -> Option<&str> {
        self.document["started_at"].as_str()
    }

    /// The version of hcabench that measured it.
    pub fn version(&self) -> Option<&str> {
        let own = &self.document["hcabench"]["version"];
        own.as_str().or_else(|| self.document["version"].as_str())
    }

    /// What was left out of the sweep, with the reasons; empty when nothing was.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn left_out(&self) -> Result<Table, ReadError> {
        let path = self.path.join(LEFT_OUT);
        if !path.exists() {
            return Ok(Table::default());
        }
        Table::read(&path, "it tells what was left out")
    }
}

impl Point {
    fn of(
        folder: &Path,
        name: String,
        row: Option<Row>,
        document: Value,
    ) -> Result<Self, ReadError> {
        let settings = match &row {
            Some(row) => settings_of(row),
            None => {
                let mut leaves = Vec::new();
                leaves_of("", &document["point"], &mut leaves);
                leaves
            }
        };
        let told = |text: Option<&str>| text == Some("incomplete");
        let by_row = told(row.as_ref().and_then(|row| row.text(STATUS)));
        let incomplete = match mark_of(folder)? {
            Some(reason) => Some(reason),
            None if by_row || told(document[STATUS].as_str()) => Some(
                document["failure"]
                    .as_str()
                    .unwrap_or("it was not measured to its end")
                    .to_owned(),
            ),
            None => None,
        };
        Ok(Point {
            name,
            folder: folder.to_path_buf(),
            settings,
            row,
            incomplete,
            document,
            share: None,
        })
    }

    /// The text of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(column, _)| column == name);
        found.map(|(_, text)| text.as_str())
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens one of its files of rows. Of a file that it shares with others, only its own rows are read.
    ///
    /// # Errors
    /// As [`RowFile::open`].
    pub fn rows(&self, file: &str) -> Result<RowFile, ReadError> {
        Self::rows_of(&[self], file)
    }

    /// Opens a file that these points share, to read it once for all of them; [`Cells::owner`](super::Cells::owner) tells
    /// whose row it is. Points that share no file have to be read one at a time.
    ///
    /// # Errors
    /// As [`RowFile::open`].
    ///
    /// # Panics
    /// Without points.
    pub fn rows_of(points: &[&Point], file: &str) -> Result<RowFile, ReadError> {
        let first = points[0];
        debug_assert!(points.len() == 1 || first.shares(file).is_some());
        let owner = |point: &&Point| Owner {
            text: point.share.as_ref().map_or("", |(_, text)| text).to_owned(),
            told: point.rows_told(file),
        };
        let may_be_cut = points.iter().any(|point| point.incomplete.is_some());
        Ok(RowFile::open(&first.file(file))?
            .may_be_cut(may_be_cut)
            .owned(
                first.share.as_ref().map(|(column, _)| *column),
                points.iter().map(owner).collect(),
            ))
    }

    /// The path of a file, if other points have their rows in it as well.
    pub fn shares(&self, file: &str) -> Option<PathBuf> {
        self.share.as_ref().map(|_| self.file(file))
    }

    /// One column of whole numbers of one of its files, such as `latency_ns` of `messages.csv`.
    ///
    /// # Errors
    /// As [`RowFile::samples`].
    pub fn samples(&self, file: &str, column: &str) -> Result<Samples, ReadError> {
        self.rows(file)?.samples(column)
    }

    /// The rows that a file must have: by the summary or, of a point without its run, by its `settings.json`. Of an
    /// incomplete point nobody knows.
    fn rows_told(&self, file: &str) -> Option<u64> {
        if self.incomplete.is_some() {
            return None;
        }
        let Some(row) = &self.row else {
            return match file {
                MESSAGES => self.document["counts"]["sent"].as_u64(),
                ELEMENTS => {
                    let each = self.document["run"]["count"].as_u64()?;
                    each.checked_mul(self.document["runs"].as_array()?.len() as u64)
                }
                _ => None,
            };
        };
        match file {
            MESSAGES => row.count("messages_sent"),
            JUMPS => row.count("jumps_in_file"),
            ELEMENTS => row.count("count")?.checked_mul(row.count("runs")?),
            _ => None,
        }
    }
}

const UNKNOWN: &str = "it does not tell of a benchmark that this version knows";

fn benchmark_of(document: &Value, summary: &Table) -> Option<Benchmark> {
    match (document["benchmark"].as_str(), document["command"].as_str()) {
        (Some("queue"), _) => Some(Benchmark::Queue),
        (None, Some("clock")) => Some(Benchmark::Clock),
        (None, None) => {
            let by_point = document["point"]["service"].is_string();
            (by_point || summary.has("messages_sent")).then_some(Benchmark::Hca)
        }
        _ => None,
    }
}

fn names_in(path: &Path) -> Result<BTreeSet<String>, ReadError> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => ReadError::NoSuchFolder {
            path: path.to_path_buf(),
        },
        io::ErrorKind::NotADirectory => ReadError::NotAFolder {
            path: path.to_path_buf(),
        },
        _ => ReadError::io(path, cause),
    };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        names.insert(entry.file_name().to_string_lossy().into_owned());
    }
    if names.is_empty() {
        return Err(ReadError::EmptyFolder {
            path: path.to_path_buf(),
        });
    }
    Ok(names)
}

/// Why a folder is incomplete, by its mark.
fn mark_of(folder: &Path) -> Result<Option<String>, ReadError> {
    let path = folder.join(MARK);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = whole(&path, "it was there a moment ago")?;
    let line = text.lines().next().unwrap_or_default();
    let reason = line.strip_prefix(MARK_BEGINS).unwrap_or(line).trim();
    Ok(Some(if reason.is_empty() {
        "the run has not ended yet, or was killed".to_owned()
    } else {
        reason.to_owned()
    }))
}

fn read_summary(path: &Path, incomplete: bool) -> Result<Table, ReadError> {
    let file = path.join(SUMMARY);
    let why = "it has a row for each point; copy it from where it was measured";
    // A run that was killed has rows as far as it came.
    match Table::read(&file, why) {
        Err(ReadError::MissingFile { .. }) if incomplete => Ok(Table::default()),
        Err(ReadError::Truncated { .. }) if incomplete => {
            let text = whole(&file, why)?;
            match text.rfind('\n') {
                Some(end) => Table::of(&file, &text[..=end]),
                None => Ok(Table::default()),
            }
        }
        read => read,
    }
}

fn read_document(path: &Path) -> Result<Value, ReadError> {
    let why = "settings and machine are in it; copy it from where it was measured";
    let text = whole(path, why)?;
    serde_json::from_str(&text).map_err(|cause| {
        let (line, reason) = (cause.line() as u64, cause.to_string());
        if cause.is_eof() {
            ReadError::truncated(path, line, reason)
        } else {
            ReadError::foreign(path, line, reason)
        }
    })
}

/// The points of a run that has one folder and one document for all.
fn shared_points(
    path: &Path,
    summary: &Table,
    document: &Value,
    incomplete: Option<&str>,
) -> Vec<Point> {
    let of_row = |row: &Row| {
        let cpu = row.text("cpu").unwrap_or_default().to_owned();
        Point {
            name: format!("cpu{cpu}"),
            folder: path.to_path_buf(),
            settings: settings_of(row),
            row: Some(row.clone()),
            incomplete: incomplete.map(str::to_owned),
            document: document.clone(),
            share: Some(("cpu", cpu)),
        }
    };
    summary.rows.iter().map(of_row).collect()
}

/// The points of a run with a folder for each.
fn own_points(path: &Path, summary: &Table) -> Result<Vec<Point>, ReadError> {
    let listed = listed_folders(path)?;
    let names = match &listed {
        Some(names) => names.clone(),
        None => names_in(path)?
            .into_iter()
            .filter(|name| path.join(name).join(SETTINGS).exists())
            .collect(),
    };
    let mut free: Vec<&Row> = summary.rows.iter().collect();
    let mut points = Vec::new();
    for name in names {
        let folder = path.join(&name);
        if !folder.is_dir() {
            return Err(ReadError::MissingFile {
                path: folder,
                why: "the run's list names it; copy the folder whole".to_owned(),
            });
        }
        let file = folder.join(SETTINGS);
        let document = if file.exists() || mark_of(&folder)?.is_none() {
            read_document(&file)?
        } else {
            // Ended between making the folder and writing into it.
            Value::Null
        };
        let row = if listed.is_some() {
            // Rows are written in the order of the list; the last point may have ended without one.
            free.first().copied()
        } else {
            match &free[..] {
                rows if rows.iter().filter(|row| agrees(row, &document)).count() > 1 => {
                    return Err(ReadError::MissingFile {
                        path: path.join(LIST),
                        why: format!(
                            "without it, the rows of {SUMMARY} cannot be told apart; copy the folder whole, hidden files too"
                        ),
                    });
                }
                rows => rows.iter().copied().find(|row| agrees(row, &document)),
            }
        };
        if let Some(row) = row {
            if !agrees(row, &document) {
                let reason = format!("the settings of its row for {name} are others than there");
                return Err(ReadError::foreign(&path.join(SUMMARY), 0, reason));
            }
            free.retain(|other| !std::ptr::eq(*other, row));
        }
        let point = Point::of(&folder, name, row.cloned(), document)?;
        if point.row.is_none() && point.incomplete.is_none() {
            let reason = format!("it has no row for {}", point.name);
            return Err(ReadError::truncated(&path.join(SUMMARY), 0, reason));
        }
        points.push(point);
    }
    if !free.is_empty() {
        let reason = format!("{} rows more than there are folders of points", free.len());
        return Err(ReadError::foreign(&path.join(SUMMARY), 0, reason));
    }
    Ok(points)
}

/// The folders on the run's list, in order; `None` without a list.
fn listed_folders(path: &Path) -> Result<Option<Vec<String>>, ReadError> {
    let list = path.join(LIST);
    if !list.exists() {
        return Ok(None);
    }
    let text = whole(&list, "it was there a moment ago")?;
    let folder = |line: &str| {
        let name = line.strip_suffix('/')?;
        let mut parts = Path::new(name).components();
        let plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
        plain.then(|| name.to_owned())
    };
    Ok(Some(text.lines().filter_map(folder).collect()))
}

/// The settings in a row: the columns in front of its status.
fn settings_of(row: &Row) -> Vec<(String, String)> {
    row.cells()
        .take_while(|(column, _)| *column != STATUS)
        .filter(|(column, _)| !MEASURED.contains(column))
        .map(|(column, text)| (column.to_owned(), text.to_owned()))
        .collect()
}

/// Whether a row's settings do not contradict the numbers and words of a document's `point`: of those that have a column
/// of their name, or one with a unit behind it.
fn agrees(row: &Row, document: &Value) -> bool {
    let settings = settings_of(row);
    let Some(point) = document["point"].as_object() else {
        return true;
    };
    point.iter().all(|(key, value)| {
        let exact = settings.iter().find(|(column, _)| column == key);
        let with_unit = || {
            let behind = format!("{key}_");
            settings
                .iter()
                .find(|(column, _)| column.starts_with(&behind))
        };
        match exact.or_else(with_unit) {
            Some((_, text)) => same(value, text),
            None => true,
        }
    })
}

fn same(value: &Value, text: &str) -> bool {
    match value {
        Value::Null => text.is_empty(),
        Value::Bool(yes) => text == yes.to_string() || text == if *yes { "on" } else { "off" },
        Value::Number(number) => text
            .parse()
            .is_ok_and(|found: f64| Some(found) == number.as_f64()),
        Value::String(word) => word == text,
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// The numbers and words in a document, with the names on the way to them.
fn leaves_of(name: &str, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let below = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}_{key}")
                };
                leaves_of(&below, member, leaves);
            }
        }
        Value::String(word) => leaves.push((name.to_owned(), word.clone())),
        Value::Number(_) | Value::Bool(_) => leaves.push((name.to_owned(), value.to_string())),
        Value::Null | Value::Array(_) => {}
    }
}
