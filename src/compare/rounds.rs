//! A run as comparisons see it: its points, and the figures of each of their rounds.

use std::path::Path;

use serde_json::Value;

use crate::results::read::{Point, ReadError, Row, Run};
use crate::results::schema::{self, Column, Data, Schema};

/// The file with a row for each point and round.
const RUNS: &str = "runs.csv";

/// A run.
#[derive(Debug, Clone)]
pub struct Recording {
    /// What its results have.
    pub schema: &'static Schema,
    /// Its `settings.json`.
    pub document: Value,
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
    /// [`ReadError`], also when a figure is no number.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let run = Run::open(path)?;
        let points = run.points.iter().map(|point| recorded(&run, point));
        Ok(Recording {
            schema: run.schema,
            points: points.collect::<Result<_, _>>()?,
            document: run.document().clone(),
            incomplete: run.incomplete,
        })
    }

    /// The version and commit of hcabench that measured it.
    pub fn version(&self) -> String {
        let part = |name: &str| self.document["hcabench"][name].as_str();
        let commit = part("commit").unwrap_or("commit not told");
        format!("{} ({commit})", part("version").unwrap_or("not told"))
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

fn recorded(run: &Run, point: &Point) -> Result<RecordedPoint, ReadError> {
    let mut rounds = Vec::new();
    let mut incomplete = point.incomplete.clone();
    for row in run.rounds_of(point) {
        check_numbers(run, row)?;
        let text = |column: Column| row.text(column.name).unwrap_or_default().to_owned();
        if text(schema::STATUS) != schema::COMPLETE {
            incomplete.get_or_insert_with(|| text(schema::FAILURE));
            continue;
        }
        rounds.push(RecordedRound {
            number: row.count(schema::ROUND.name).unwrap_or(0),
            started_at: text(schema::STARTED_AT),
            row: row.clone(),
        });
    }
    Ok(RecordedPoint {
        name: point.name.clone(),
        settings: point.settings.clone(),
        obtained: point.document["obtained"].clone(),
        rounds,
        incomplete,
    })
}

/// What is neither empty nor a number was changed by somebody: it must not count as not measured.
fn check_numbers(run: &Run, row: &Row) -> Result<(), ReadError> {
    let is_number = |column: &&Column| matches!(column.data, Data::Whole | Data::Number(_));
    for column in run.schema.figures.iter().filter(is_number) {
        let text = row.text(column.name).unwrap_or_default();
        if !text.is_empty() && row.number(column.name).is_none() {
            let (path, line) = (run.path.join(RUNS), 0);
            let reason = format!("{} is {text:?}, no number", column.name);
            return Err(ReadError::Foreign { path, line, reason });
        }
    }
    Ok(())
}
