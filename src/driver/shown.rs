//! What is shown of a run when its folder is closed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::search;
use crate::arguments::UsageError;
use crate::findings::{self, Detail};
use crate::results::document::Document;
use crate::results::finding::Findings;
use crate::results::folder::SETTINGS;
use crate::results::read::{ReadError, Row, Run, Table};
use crate::results::schema::{Column, NamedColumn, POINT};
use crate::results::text::printable;
use crate::results::{Cell, Record};
use crate::rig::benchmark::Outcome;
use crate::terminal::output::{OutputArguments, labelled, print_json, print_text, terminal_width};
use crate::terminal::table_options::{Order, TableOptions, key_of};

/// How the results of a benchmark are shown to people, and what `--json` has beside the common parts.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub tables: fn(&Shown<'_>) -> String,
    /// The columns that rows can be sorted by, with their headings.
    pub columns: fn() -> Vec<(String, Column)>,
    /// More for `--json`: an object, whose keys are beside the common ones.
    pub json: fn(&Shown<'_>) -> Value,
}

impl View {
    /// What the rows are to be sorted by.
    pub(crate) fn order(&self, options: &TableOptions) -> Result<Option<Order>, UsageError> {
        let columns = (self.columns)().into_iter();
        let named: Vec<_> = columns
            .map(|(heading, column)| (heading, column.name))
            .collect();
        options.order(&named)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The folder that it is in.
    pub folder: &'a Path,
    /// The rows of `summary.csv`, in the sweep's order.
    pub summary: &'a [Record],
    /// The rows of `runs.csv`, those of a point together.
    pub runs: &'a [Record],
    /// Of each row of the summary that has them, the details of the last round, as `settings.json` has them.
    pub details: &'a [(String, Value)],
    /// Columns of the terminal, if there is one.
    pub width: Option<usize>,
    /// Whether only the settings that vary and the figures asked for first are shown.
    pub brief: bool,
    /// Whether the rows were sorted, so that they are in no groups.
    pub sorted: bool,
}

pub(crate) struct Report {
    /// The folder of the run.
    pub folder: PathBuf,
    /// The rows of `summary.csv`, in the sweep's order.
    pub summary: Vec<Record>,
    /// The rows of `runs.csv`, those of a point together.
    pub runs: Vec<Record>,
    /// Those of `left_out.csv`.
    pub left_out: Vec<Record>,
    /// The details of each row of the summary, by its name.
    pub details: Vec<(String, Value)>,
    /// The common parts of `settings.json`.
    pub document: Document,
    /// The facts of all rounds, without their rows.
    pub told: Outcome,
    /// What the searches for the highest rate found, as it is recorded; null without one.
    pub found_rates: Value,
    /// What to know before the figures are believed; `None` where nothing was measured.
    pub findings: Option<Findings>,
    /// How many points it has, those without a row included.
    pub points: usize,
    /// Why the lines for other programs are not all there.
    pub lines_missing: Option<String>,
}

impl Report {
    /// What a run showed, from its folder.
    ///
    /// # Errors
    /// When a file of it is damaged.
    pub(crate) fn of(run: &Run) -> Result<Self, ReadError> {
        let document: Document = serde_json::from_value(run.document().clone())
            .map_err(|cause| ReadError::foreign(&run.path.join(SETTINGS), 0, cause.to_string()))?;
        let recorded = &document.details;
        let notes = recorded["notes"].as_array().into_iter().flatten();
        let told = Outcome {
            notes: notes
                .filter_map(|it| Some(it.as_str()?.to_owned()))
                .collect(),
            text: recorded["text"].as_str().map(printable_lines),
            ..Outcome::default()
        };
        let rows = |table: &Table, columns: Vec<NamedColumn>| {
            let rows = table.rows.iter();
            rows.map(|row| record_of(row, &columns)).collect()
        };
        let rounds = run.points.iter().flat_map(|point| &point.rounds);
        let columns = run.schema.runs();
        let details = run.points.iter();
        let mut summary: Vec<Record> = rows(&run.summary, run.schema.summary());
        let name = |row: &Record| row.get(POINT.name).map(|cell| cell.text());
        summary.retain(|row| {
            run.points
                .iter()
                .any(|point| name(row).as_ref() == Some(&point.name))
        });
        Ok(Report {
            folder: run.path.clone(),
            summary,
            runs: rounds.map(|row| record_of(row, &columns)).collect(),
            left_out: rows(&run.left_out, run.schema.left_out()),
            details: details
                .map(|point| (point.name.clone(), point.document["details"].clone()))
                .collect(),
            told,
            found_rates: recorded["find_rate"].clone(),
            findings: Some(findings::of(run)),
            points: run.points.len(),
            lines_missing: None,
            document,
        })
    }

    /// Prints it as asked for.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(crate) fn print(
        mut self,
        view: &View,
        output: &OutputArguments,
        order: Option<Order>,
    ) -> anyhow::Result<()> {
        // The JSON beside the points is in the order of the sweep.
        if let Some(order) = order.filter(|_| !output.json) {
            let (_, column) = &(view.columns)()[order.column];
            order.sort(&mut self.summary, |row| key_of(row, column));
        }
        let shown = Shown {
            folder: &self.folder,
            summary: &self.summary,
            runs: &self.runs,
            details: &self.details,
            width: terminal_width(),
            brief: output.table.brief.brief,
            sorted: order.is_some(),
        };
        if output.json {
            let mut document = json!({
                "points": self.summary,
                "left_out": self.left_out,
                "rounds": self.document.rounds,
                "obtained": self.document.obtained,
                "readiness": self.document.readiness,
                "status": self.document.status,
                "failure": self.document.failure,
                "verdict": self.findings.as_ref().map(Findings::verdict),
                "findings": self.findings,
                "notes": self.told.notes,
            });
            if !self.found_rates.is_null() {
                document["find_rate"] = self.found_rates;
            }
            if let (Value::Object(all), Value::Object(more)) = (&mut document, (view.json)(&shown))
            {
                all.extend(more);
            }
            return print_json(&document);
        }
        if output.quiet {
            return Ok(());
        }
        let mut text = match &self.told.text {
            _ if self.summary.is_empty() => String::new(),
            Some(text) => text.clone(),
            None => (view.tables)(&shown),
        };
        let searched = search::text_of(&self.found_rates, terminal_width());
        if !(text.is_empty() || searched.is_empty()) {
            text += "\n";
        }
        text += &printable_lines(&searched);
        let figure = search::figure_of(&self.found_rates, &self.folder);
        text += &figure
            .filter(|_| !self.summary.is_empty())
            .unwrap_or_default();
        if let Some(found) = &self.findings {
            let detail = match output.verbose {
                true => Detail::All,
                false => Detail::Short,
            };
            if !text.is_empty() {
                text += "\n";
            }
            text += &findings::text(found, self.points, detail);
        }
        // The others are findings.
        let is_of_instrument = |note: &&String| note.starts_with("instrument: ");
        let notes = self.told.notes.iter().filter(is_of_instrument);
        for note in notes.filter(|_| output.verbose) {
            text += &labelled("note", note);
            text += "\n";
        }
        print_text(&text)
    }
}

/// A text of several lines, each fit to be shown.
fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(|line| printable(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// A row of a file with the columns of this version; one that the file lacks is empty.
fn record_of(row: &Row, columns: &[NamedColumn]) -> Record {
    let mut record = Record::new();
    for (name, column) in columns {
        let text = row.text(name).unwrap_or_default();
        record.push(
            name.clone(),
            Cell::parse(column, text).unwrap_or(Cell::Empty),
        );
    }
    record
}
