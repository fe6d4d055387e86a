//! The tables of a run: `runs.csv`, a durable row for each point and round, and `summary.csv`, which is made from it.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use super::durable::{self, cut_torn_line, folder_of, sync_folder};
use super::error::ReportError;
use super::record::{Cell, Record};
use super::schema::{self, Named, Over, Schema};
use crate::stats::confidence::lower_rank;
use crate::stats::median_of;

/// `runs.csv`: its rows are durable one by one. A row that could not be written whole is cut off again.
#[derive(Debug)]
pub struct RunsFile {
    path: PathBuf,
    file: File,
    length: u64,
    columns: Vec<Named>,
}

impl RunsFile {
    /// Makes the file, which must not be there, with its header.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self, ReportError> {
        let file = durable::create_new(path).map_err(ReportError::on("create", path))?;
        let mut created = Self {
            path: path.to_path_buf(),
            file,
            length: 0,
            columns: schema.runs(),
        };
        created.write(&lines(path, Some(&created.columns), &[])?)?;
        sync_folder(folder_of(path))?;
        Ok(created)
    }

    /// Opens the file of an earlier run to go on, and reads its rows; a last row that is not whole is cut off.
    pub fn open(path: &Path, schema: &Schema) -> Result<(Self, Vec<Record>), ReportError> {
        let failed = |cause| ReportError::from_io("read", path, cause);
        let unfit = |reason: String| ReportError::unfit("read", path, reason);
        let columns = schema.runs();
        let mut file = durable::open_to_go_on(path).map_err(failed)?;
        let length = cut_torn_line(&mut file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let mut rows = Vec::new();
        let mut reader = csv::Reader::from_reader(&file);
        let from_csv = |cause| ReportError::from_csv("read", path, cause);
        let header = reader.headers().map_err(from_csv)?;
        if !header.iter().eq(columns.iter().map(|(name, _)| name)) {
            return Err(unfit("its columns are of another version".to_owned()));
        }
        for row in reader.records() {
            let row = row.map_err(from_csv)?;
            let mut record = Record::new();
            for (text, (name, column)) in row.iter().zip(&columns) {
                let cell = Cell::parse(column, text)
                    .ok_or_else(|| unfit(format!("{name} is {text:?}")))?;
                record.push(name.as_ref(), cell);
            }
            rows.push(record);
        }
        file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        let opened = Self {
            path: path.to_path_buf(),
            file,
            length,
            columns,
        };
        Ok((opened, rows))
    }

    /// Appends a row and returns when it is durable.
    pub fn append(&mut self, record: &Record) -> Result<(), ReportError> {
        let row = record.arranged(&self.columns);
        self.write(&lines(&self.path, None, &[row])?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ReportError> {
        let written = self.file.write_all(bytes);
        let written = written.and_then(|()| self.file.sync_data());
        if let Err(cause) = written {
            // The row's failure is what is reported; cutting it off is an attempt.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(io::SeekFrom::Start(self.length));
            return Err(ReportError::from_io("write a row to", &self.path, cause));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Writes a table whole and durably, its rows in the order given: `runs.csv` of a run that is taken up again without
/// some of its rows, `summary.csv` and `left_out.csv`.
pub fn write(path: &Path, columns: &[Named], rows: &[Record]) -> Result<(), ReportError> {
    let rows: Vec<Record> = rows.iter().map(|row| row.arranged(columns)).collect();
    let bytes = lines(path, Some(columns), &rows)?;
    durable::replace(path, |out| out.write_all(&bytes))
}

fn lines(path: &Path, header: Option<&[Named]>, rows: &[Record]) -> Result<Vec<u8>, ReportError> {
    let failed = |cause| ReportError::from_csv("write a row to", path, cause);
    let mut lines = csv::Writer::from_writer(Vec::new());
    if let Some(columns) = header {
        let names = columns.iter().map(|(name, _)| name.as_ref());
        lines.write_record(names).map_err(failed)?;
    }
    for row in rows {
        lines
            .write_record(row.cells().map(Cell::text))
            .map_err(failed)?;
    }
    lines
        .into_inner()
        .map_err(|cause| failed(cause.into_error().into()))
}

/// The row of the summary for one point, from its rows of `runs.csv`.
///
/// Medians are those of the complete rounds (of what there is, when none is complete); sums and extremes are of all
/// rounds. Bounds are a distribution-free 95 % interval of the median, empty below six rounds.
pub fn over_rounds(schema: &Schema, rows: &[Record]) -> Record {
    let is_complete = |row: &&Record| row.text(&schema::STATUS) == schema::COMPLETE;
    let complete: Vec<&Record> = rows.iter().filter(is_complete).collect();
    let all: Vec<&Record> = rows.iter().collect();
    let whole = if complete.is_empty() { &all } else { &complete };
    // Of words only one is told: of a round that failed, if there is one.
    let mut failed_first = all.clone();
    failed_first.sort_by_key(is_complete);
    let mut row = Record::new();
    for column in [schema::POINT].iter().chain(schema.point) {
        match column.over {
            // A rate that follows from what each round found.
            Over::Median => row.set(column, median_of(&numbers(whole, column.name))),
            _ => row.push(column.name, first(&all, column.name)),
        };
    }
    let status = if complete.len() == all.len() && !all.is_empty() {
        schema::COMPLETE
    } else {
        schema::INCOMPLETE
    };
    row.set(&schema::STATUS, status);
    row.push(schema::FAILURE.name, first(&all, schema::FAILURE.name));
    row.set(&schema::ROUNDS, complete.len());
    for column in schema.figures {
        let name = column.name;
        match column.over {
            Over::First => row.push(name, first(&failed_first, name)),
            Over::Least => row.push(name, extreme(&all, name, f64::total_cmp)),
            Over::Greatest => {
                row.push(name, extreme(&all, name, |one, other| other.total_cmp(one)))
            }
            Over::Sum => row.push(name, sum(&all, name)),
            Over::Median | Over::MedianWithBounds => {
                let mut values = numbers(whole, name);
                values.sort_unstable_by(f64::total_cmp);
                if column.over == Over::MedianWithBounds {
                    let rank = lower_rank(values.len());
                    let bounds = rank.map(|rank| [values[rank - 1], values[values.len() - rank]]);
                    for (place, name) in column.bounds().into_iter().enumerate() {
                        row.push(name, bounds.map(|bounds| bounds[place]).into());
                    }
                }
                row.set(column, median_of(&values))
            }
        };
    }
    row.arranged(&schema.summary())
}

fn numbers(rows: &[&Record], column: &str) -> Vec<f64> {
    rows.iter().filter_map(|row| row.number(column)).collect()
}

/// The cells of a column that are not empty.
fn cells<'a>(rows: &[&'a Record], column: &str) -> Vec<&'a Cell> {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells.filter(|cell| **cell != Cell::Empty).collect()
}

fn first(rows: &[&Record], column: &str) -> Cell {
    let first = cells(rows, column).first().copied();
    first.cloned().unwrap_or(Cell::Empty)
}

/// The cell with the number that comes first in an order.
fn extreme(rows: &[&Record], column: &str, order: fn(&f64, &f64) -> Ordering) -> Cell {
    let numbers = rows
        .iter()
        .filter_map(|row| Some((row.number(column)?, row.get(column)?)))
        .filter(|(number, _)| !number.is_nan());
    let found = numbers.min_by(|(one, _), (other, _)| order(one, other));
    found.map_or(Cell::Empty, |(_, cell)| cell.clone())
}

fn sum(rows: &[&Record], column: &str) -> Cell {
    let add = |sum: Cell, cell: &Cell| match (sum, cell) {
        (Cell::Empty, cell) => cell.clone(),
        (Cell::Integer(sum), Cell::Integer(number)) => Cell::Integer(sum.saturating_add(*number)),
        (Cell::Decimal(sum, decimals), Cell::Decimal(number, _)) => {
            Cell::Decimal(sum + number, decimals)
        }
        (sum, _) => sum,
    };
    cells(rows, column).into_iter().fold(Cell::Empty, add)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::refused::refused;
    use crate::results::schema::{FAILURE, ORDER, POINT, ROUND, STARTED_AT, STATUS, hca};

    const SCHEMA: &Schema = &hca::SCHEMA;

    fn round(number: u32, status: &str, p50: f64, sent: u64) -> Record {
        let mut row = Record::new();
        row.set(&hca::latency::P50, p50)
            .set(&hca::latency::MIN, (p50 / 2.0).round())
            .set(&hca::latency::MAX, p50 * 2.0)
            .set(&hca::SENT, sent)
            .set(&hca::SERVICE, "rc")
            .set(&hca::SIZE, 8_u32)
            .set(&POINT, "rc-8")
            .set(&ROUND, number)
            .set(&ORDER, 0_u32)
            .set(&STARTED_AT, "2026-01-02T03:04:05.678Z")
            .set(&STATUS, status);
        if status == schema::INCOMPLETE {
            row.set(&FAILURE, "a device, \"mlx5_0\",\nis gone");
        }
        row
    }

    fn text(row: &Record, column: &str) -> String {
        row.get(column).unwrap().text()
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let last = round(1, schema::INCOMPLETE, 1.0, 3);
        let rows = [round(0, schema::COMPLETE, 1234.5, u64::MAX), last];
        let mut file = RunsFile::create(&path, SCHEMA).unwrap();
        file.append(&rows[0]).unwrap();
        drop(file);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}rc-8,1,0,20")).unwrap();
        let (mut file, read) = RunsFile::open(&path, SCHEMA).unwrap();
        assert_eq!(read, [rows[0].arranged(&SCHEMA.runs())]);
        file.append(&rows[1]).unwrap();
        let (_, read) = RunsFile::open(&path, SCHEMA).unwrap();
        assert_eq!(read, rows.map(|row| row.arranged(&SCHEMA.runs())));
        assert!(RunsFile::create(&path, SCHEMA).is_err());
        fs::write(&path, whole.replace(",1234.5,", ",fast,")).unwrap();
        let told = "latency_p50_ns is \"fast\"";
        refused(RunsFile::open(&path, SCHEMA), &[told]);
        fs::write(&path, "a,b\n").unwrap();
        let told = "columns are of another version";
        refused(RunsFile::open(&path, SCHEMA), &[told]);
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        durable::tests::fill_the_disk_for(&path);
        let error = RunsFile::create(&path, SCHEMA).unwrap_err();
        assert!(error.is_full(), "{error}");
    }

    #[test]
    fn a_torn_row_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let mut file = RunsFile::create(&path, SCHEMA).unwrap();
        let header = fs::read(&path).unwrap();
        // Another handle on a full disk, which takes nothing.
        let mut full = RunsFile {
            file: File::options().write(true).open("/dev/full").unwrap(),
            path: path.clone(),
            ..file
        };
        full.append(&round(0, schema::COMPLETE, 1.0, 1))
            .unwrap_err();
        assert_eq!(full.length, header.len() as u64);
        file = RunsFile::open(&path, SCHEMA).unwrap().0;
        file.append(&round(0, schema::COMPLETE, 1.0, 1)).unwrap();
        assert_eq!(RunsFile::open(&path, SCHEMA).unwrap().1.len(), 1);
    }

    #[test]
    fn medians_and_bounds_are_of_complete_rounds_and_sums_of_all() {
        let medians = (0..).zip([60.0, 10.5, 20.0, 50.0, 40.0, 31.0]);
        let complete = medians.map(|(number, p50)| round(number, schema::COMPLETE, p50, 100));
        let mut rows: Vec<Record> = complete.collect();
        let row = over_rounds(SCHEMA, &rows[..5]);
        let figures = ["rounds", "latency_p50_ns", "latency_p50_low_ns"];
        assert_eq!(figures.map(|column| text(&row, column)), ["5", "40.0", ""]);
        rows.push(round(6, schema::INCOMPLETE, 1000.0, 7));
        let row = over_rounds(SCHEMA, &rows);
        for (column, expected) in [
            ("point", "rc-8"),
            ("service", "rc"),
            ("size_bytes", "8"),
            ("status", "incomplete"),
            ("failure", "a device, \"mlx5_0\",\nis gone"),
            ("rounds", "6"),
            ("messages_sent", "607"),
            ("latency_min_ns", "5"),
            ("latency_p50_ns", "35.5"),
            ("latency_p50_low_ns", "10.5"),
            ("latency_p50_high_ns", "60.0"),
            ("latency_max_ns", "2000"),
            ("latency_p99_low_ns", ""),
            ("messages_lost", ""),
        ] {
            assert_eq!(text(&row, column), expected, "{column}");
        }
        let columns: Vec<&str> = row.cells.iter().map(|(name, _)| name.as_str()).collect();
        let names = SCHEMA.summary();
        assert!(names.iter().map(|(name, _)| name.as_ref()).eq(columns));
        // Nothing is whole: what there was is told.
        let row = over_rounds(SCHEMA, &rows[6..]);
        let texts = figures.map(|column| text(&row, column));
        assert_eq!(texts, ["0", "1000.0", ""]);
    }

    #[test]
    fn the_summary_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.csv");
        let row = over_rounds(SCHEMA, &[round(0, schema::COMPLETE, 1.0, 1)]);
        for rows in [&[row.clone(), row.clone()][..], &[row]] {
            write(&path, &SCHEMA.summary(), rows).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), 1 + rows.len());
            assert!(text.starts_with("point,service,"), "{text}");
        }
    }
}
