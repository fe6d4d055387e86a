//! A run as comparisons see it: its points, and the figures of each of their rounds.

use std::path::Path;

use serde_json::Value;

use crate::results::Document;
use crate::results::folder::{SETTINGS, SUMMARY};
use crate::results::read::{ReadError, Row, Table};
use crate::results::schema::{self, Data, Kind, Schema};

/// The file with a row for each point and round.
pub const RUNS: &str = "runs.csv";

/// A run.
#[derive(Debug, Clone)]
pub struct Recording {
    /// What its results have.
    pub schema: &'static Schema,
    /// Its `settings.json`.
    pub document: Document,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    /// Its points, in the order of the sweep; only the one, if a point's folder was opened.
    pub points: Vec<RecordedPoint>,
}

/// A point of a run.
#[derive(Debug, Clone)]
pub struct RecordedPoint {
    /// The name of its folder.
    pub name: String,
    /// Its settings: column and text, in order.
    pub settings: Vec<(String, String)>,
    /// What was obtained for it; null where that is not told.
    pub obtained: Value,
    /// Its whole rounds.
    pub rounds: Vec<RecordedRound>,
    /// Why rounds of it are not whole, if any are not.
    pub incomplete: Option<String>,
}

/// A round of a point.
#[derive(Debug, Clone)]
pub struct RecordedRound {
    /// Its number.
    pub number: u64,
    /// When it was begun, as RFC 3339 in UTC: the order of the texts is that of the moments.
    pub started_at: String,
    /// Its row.
    pub row: Row,
}

impl Recording {
    /// Reads the folder of a run, or of one of its points.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        if !path.exists() {
            let path = path.to_path_buf();
            return Err(ReadError::NoSuchFolder { path });
        }
        if path.join(RUNS).exists() {
            return Self::open_run(path);
        }
        let full = path
            .canonicalize()
            .map_err(|cause| unreadable(path, cause))?;
        if let (Some(parent), Some(name)) = (full.parent(), full.file_name())
            && path.join(SETTINGS).exists()
            && parent.join(RUNS).exists()
        {
            let mut run = Self::open_run(parent)?;
            let name = name.to_string_lossy();
            run.points.retain(|point| point.name == name);
            return Ok(run);
        }
        let older = path.join(SUMMARY).exists() || path.join(SETTINGS).exists();
        Err(no_results(path, if older { OLDER } else { NO_RUNS }))
    }

    fn open_run(path: &Path) -> Result<Self, ReadError> {
        let settings = path.join(SETTINGS);
        let document = Document::read(&settings)?;
        let schema = document.schema().ok_or_else(|| {
            foreign(
                &settings,
                0,
                "it names no benchmark that this version knows",
            )
        })?;
        let file = path.join(RUNS);
        let runs = Table::read(&file, "it has a row for each round; measure again")?;
        let mut points = points_of(path, schema, &file, &runs)?;
        // The rows stand in the order measured; the summary has the sweep's. A run that was killed may have none.
        if let Ok(summary) = Table::read(&path.join(SUMMARY), "it has the order of the points") {
            let place = |point: &RecordedPoint| {
                let mut rows = summary.rows.iter();
                rows.position(|row| row.text(schema::POINT.name) == Some(&point.name))
            };
            points.sort_by_key(|point| place(point).unwrap_or(usize::MAX));
        }
        Ok(Recording {
            schema,
            incomplete: incomplete(&document),
            document,
            points,
        })
    }

    /// The version and commit of hcabench that measured it.
    pub fn version(&self) -> String {
        let program = &self.document.hcabench;
        let commit = program.commit.as_deref().unwrap_or("commit not told");
        format!("{} ({commit})", program.version)
    }

    /// When its first round was begun, and its last.
    pub fn time_range(&self) -> Option<(&str, &str)> {
        let rounds = self.points.iter().flat_map(|point| &point.rounds);
        let times = || rounds.clone().map(|round| round.started_at.as_str());
        Some((times().min()?, times().max()?))
    }
}

impl RecordedPoint {
    /// The text of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(column, _)| column == name);
        found.map(|(_, text)| text.as_str())
    }
}

const OLDER: &str = "it was written by an older hcabench (results format 1), and this version reads format 2: \
                     measure again, or use hcabench 0.1";
const NO_RUNS: &str = "there is no runs.csv in it";

fn no_results(path: &Path, reason: &str) -> ReadError {
    ReadError::NoResults {
        path: path.to_path_buf(),
        reason: reason.to_owned(),
    }
}

fn foreign(path: &Path, line: u64, reason: impl Into<String>) -> ReadError {
    ReadError::Foreign {
        path: path.to_owned(),
        line,
        reason: reason.into(),
    }
}

fn unreadable(path: &Path, cause: std::io::Error) -> ReadError {
    ReadError::Io {
        path: path.to_owned(),
        cause,
    }
}

fn incomplete(document: &Document) -> Option<String> {
    (document.status == schema::INCOMPLETE).then(|| {
        let failure = document.failure.as_deref();
        failure
            .unwrap_or("it was not measured to its end")
            .to_owned()
    })
}

fn points_of(
    path: &Path,
    schema: &Schema,
    file: &Path,
    runs: &Table,
) -> Result<Vec<RecordedPoint>, ReadError> {
    let mut points: Vec<RecordedPoint> = Vec::new();
    for (place, row) in runs.rows.iter().enumerate() {
        let line = place as u64 + 2;
        let cell = |column: &str| {
            row.text(column)
                .ok_or_else(|| foreign(file, line, format!("there is no column {column}")))
        };
        for column in schema.figures {
            let is_number = matches!(column.data, Data::Whole | Data::Number(_));
            if let Some(text) = row.text(column.name)
                && is_number
                && !text.is_empty()
                && row.number(column.name).is_none()
            {
                return Err(foreign(
                    file,
                    line,
                    format!("{} is {text:?}, no number", column.name),
                ));
            }
        }
        let name = cell(schema::POINT.name)?;
        let known = points.iter().position(|point| point.name == name);
        let index = match known {
            Some(index) => index,
            None => {
                let settings = schema
                    .point
                    .iter()
                    .filter(|column| column.kind == Kind::Setting);
                let settings = settings.filter_map(|column| {
                    Some((column.name.to_owned(), row.text(column.name)?.to_owned()))
                });
                points.push(RecordedPoint {
                    name: name.to_owned(),
                    settings: settings.collect(),
                    obtained: Document::of_run(&path.join(name))
                        .map_or(Value::Null, |own| own.obtained),
                    rounds: Vec::new(),
                    incomplete: None,
                });
                points.len() - 1
            }
        };
        if cell(schema::STATUS.name)? == schema::COMPLETE {
            let number = cell(schema::ROUND.name)?;
            points[index].rounds.push(RecordedRound {
                number: number
                    .parse()
                    .map_err(|_| foreign(file, line, format!("round is {number:?}, no number")))?,
                started_at: cell(schema::STARTED_AT.name)?.to_owned(),
                row: row.clone(),
            });
        } else {
            let failure = row.text(schema::FAILURE.name).unwrap_or_default();
            points[index].incomplete = Some(failure.to_owned());
        }
    }
    Ok(points)
}
