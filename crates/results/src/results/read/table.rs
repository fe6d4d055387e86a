//! Small tables with named columns, such as the summary.

use std::path::Path;
use std::sync::Arc;

use crate::results::content;
use crate::results::read_error::ReadError;

/// A table: rows of text under named columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    pub columns: Arc<[String]>,
    pub rows: Vec<Row>,
}

/// A row: a text for each column, empty where nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    columns: Arc<[String]>,
    cells: Vec<String>,
}

impl Table {
    /// The table of a CSV file, whose first line names the columns: its rows before the first that is damaged, and what
    /// is wrong with that.
    pub(super) fn salvage(path: &Path, text: &str) -> (Self, Option<ReadError>) {
        let mut table = Table::default();
        let wrong = table.read(path, text).err();
        (table, wrong)
    }

    fn read(&mut self, path: &Path, text: &str) -> Result<(), ReadError> {
        if text.is_empty() {
            return Err(ReadError::truncated(path, 1, "it is empty"));
        }
        let lines = text.lines().count() as u64;
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let whole = &text[..end];
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.flexible(true).from_reader(whole.as_bytes());
        let failed = |cause: csv::Error| {
            let line = cause.position().map_or(0, csv::Position::line);
            ReadError::foreign(path, line, cause.to_string())
        };
        let header = reader.headers().map_err(failed)?;
        if let (1, Some(reason)) = (
            header.len(),
            content::wrong_separator(header.get(0).unwrap_or_default()),
        ) {
            return Err(ReadError::foreign(path, 1, reason));
        }
        self.columns = header.iter().map(str::to_owned).collect();
        for record in reader.records() {
            let record = record.map_err(failed)?;
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != self.columns.len() {
                let (found, wanted) = (record.len(), self.columns.len());
                let reason = format!("{found} cells under {wanted} columns");
                return Err(if line >= lines && found < wanted {
                    ReadError::truncated(path, line, reason)
                } else {
                    ReadError::foreign(path, line, reason)
                });
            }
            self.rows.push(Row {
                columns: Arc::clone(&self.columns),
                cells: record.iter().map(str::to_owned).collect(),
            });
        }
        match end == text.len() {
            true => Ok(()),
            false => Err(ReadError::truncated(
                path,
                lines,
                "the last line has no end",
            )),
        }
    }

    /// A table of cells, in the order of the columns.
    pub(super) fn made(columns: Arc<[String]>, rows: impl Iterator<Item = Vec<String>>) -> Self {
        let row = |cells| Row {
            columns: Arc::clone(&columns),
            cells,
        };
        let rows = rows.map(row).collect();
        Table { columns, rows }
    }

    /// The texts of a column; none without such a column.
    pub(super) fn cells<'a>(&'a self, column: &str) -> impl Iterator<Item = &'a str> {
        let place = self.columns.iter().position(|name| name == column);
        let rows = self.rows.iter();
        rows.filter_map(move |row| row.cells.get(place?).map(String::as_str))
    }

    /// Whether there is a column of that name.
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

impl Row {
    /// The text of a cell; `None` without such a column.
    pub fn text(&self, column: &str) -> Option<&str> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.cells.get(place).map(String::as_str)
    }

    /// A cell as a finite number; `None` without such a column, when it is empty, or when it is not a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        let number: f64 = self.text(column)?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    pub fn count(&self, column: &str) -> Option<u64> {
        self.text(column)?.parse().ok()
    }
}
