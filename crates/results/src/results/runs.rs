//! The tables of a run: `runs.csv`, a durable row for each point and round, and `summary.csv`, which is made from it.
//!
//! Many rows are sent as lists of cells in the order of the columns. `runs.csv` is then durable once for many
//! ([`RunsFile::append_cells`], [`RunsFile::sync`]), its rows are read one by one, and tables are written row by row
//! ([`write_each`]).

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use self::over::{RoundAggregator, over_rounds};

use csv_core::ReadRecordResult;

use super::durable::{self, cut_torn_line, folder_of, sync_folder};
use super::error::ReportError;
use super::record::{Cell, Record};
use super::schema::{NamedColumn, Schema};

mod over;

/// `runs.csv`: its rows are durable one by one. A row that could not be written whole is cut off again.
#[derive(Debug)]
pub struct RunsFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Whether all of it is durable.
    is_synced: bool,
    columns: Vec<NamedColumn>,
}

impl RunsFile {
    /// Makes the file, which must not be there, with its header.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self, ReportError> {
        let columns = schema.runs();
        let file = durable::create_new(path).map_err(ReportError::on("create", path))?;
        let mut created = Self {
            path: path.to_path_buf(),
            file,
            length: 0,
            is_synced: false,
            columns,
        };
        created.write(&lines(path, Some(&created.columns), &[])?)?;
        created.sync()?;
        sync_folder(folder_of(path))?;
        Ok(created)
    }

    /// Writes a table whole and durably, with these rows in their order, and opens it to append more.
    pub fn written(
        path: &Path,
        columns: Vec<NamedColumn>,
        rows: &[Record],
    ) -> Result<Self, ReportError> {
        write(path, &columns, rows)?;
        let opened = durable::open_to_go_on(path)
            .and_then(|mut file| Ok((file.seek(io::SeekFrom::End(0))?, file)));
        let (length, file) = opened.map_err(ReportError::on("open", path))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            length,
            is_synced: true,
            columns,
        })
    }

    /// Opens the file of an earlier run to go on, and reads its rows; a last row that is not whole is cut off.
    pub fn open(path: &Path, schema: &Schema) -> Result<(Self, Vec<Record>), ReportError> {
        let columns = schema.runs();
        let names: Vec<String> = columns.iter().map(|(name, _)| name.to_string()).collect();
        let mut rows = Vec::new();
        let opened = Self::open_each(path, columns, |_, cells| {
            let cells = names.iter().cloned().zip(cells).collect();
            rows.push(Record { cells });
            Ok(())
        })?;
        Ok((opened, rows))
    }

    /// As [`open`](Self::open), of a table with these columns: each row is given with its place in the file.
    pub fn open_each(
        path: &Path,
        columns: Vec<NamedColumn>,
        mut take: impl FnMut(u64, Vec<Cell>) -> Result<(), ReportError>,
    ) -> Result<Self, ReportError> {
        let failed = |cause| ReportError::from_io("read", path, cause);
        let unfit = |reason: String| ReportError::unfit("read", path, reason);
        let mut file = durable::open_to_go_on(path).map_err(failed)?;
        let length = cut_torn_line(&mut file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let mut reader = csv::Reader::from_reader(&file);
        let from_csv = |cause| ReportError::from_csv("read", path, cause);
        let header = reader.headers().map_err(from_csv)?;
        if !header.iter().eq(columns.iter().map(|(name, _)| name)) {
            return Err(unfit("its columns are of another version".to_owned()));
        }
        let mut row = csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(from_csv)? {
            let place = row.position().map_or(0, csv::Position::byte);
            let texts = (0..row.len()).map(|cell| &row[cell]);
            take(place, cells_of(texts, &columns).map_err(unfit)?)?;
        }
        file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            length,
            is_synced: false,
            columns,
        })
    }

    /// Appends a row and returns when it is durable.
    pub fn append(&mut self, record: &Record) -> Result<(), ReportError> {
        let row = record.arranged(&self.columns);
        self.write(&lines(&self.path, None, &[row])?)?;
        self.sync()
    }

    /// Appends a row, a cell for each column, and returns its place in the file. It is durable after the next
    /// [`sync`](Self::sync).
    pub fn append_cells(&mut self, cells: &[Cell]) -> Result<u64, ReportError> {
        let place = self.length;
        let failed = |cause| ReportError::from_csv("write a row to", &self.path, cause);
        let mut line = csv::WriterBuilder::new()
            .buffer_capacity(ROW)
            .from_writer(Vec::with_capacity(ROW));
        line.write_record(cells.iter().map(Cell::text))
            .map_err(failed)?;
        let line = line.into_inner();
        let line = line.map_err(|cause| failed(cause.into_error().into()))?;
        self.write(&line)?;
        Ok(place)
    }

    /// Makes durable what was appended.
    pub fn sync(&mut self) -> Result<(), ReportError> {
        if !self.is_synced {
            let synced = self.file.sync_data();
            synced.map_err(ReportError::on("write a row to", &self.path))?;
        }
        self.is_synced = true;
        Ok(())
    }

    /// Opens the same file to read rows of which the place is known.
    pub fn reader(&self) -> Result<RowReader, ReportError> {
        let file = durable::open_regular(&self.path);
        Ok(RowReader {
            file: file.map_err(ReportError::on("read", &self.path))?,
            path: self.path.clone(),
            columns: self.columns.clone(),
            parser: csv_core::Reader::new(),
            bytes: vec![0; ROW],
            text: vec![0; ROW],
            ends: vec![0; self.columns.len() + 1],
        })
    }

    /// Appends bytes; what is not written whole is cut off again.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ReportError> {
        self.is_synced = false;
        if let Err(cause) = self.file.write_all(bytes) {
            // The row's failure is what is reported; cutting it off is an attempt.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(io::SeekFrom::Start(self.length));
            return Err(ReportError::from_io("write a row to", &self.path, cause));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Most rows are shorter.
const ROW: usize = 1024;

/// Reads rows of a [`RunsFile`].
#[derive(Debug)]
pub struct RowReader {
    file: File,
    path: PathBuf,
    columns: Vec<NamedColumn>,
    /// To make one takes longer than to read a row.
    parser: csv_core::Reader,
    bytes: Vec<u8>,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl RowReader {
    /// The row at a place that [`RunsFile`] gave.
    pub fn at(&mut self, place: u64) -> Result<Vec<Cell>, ReportError> {
        let unfit = |reason: String| ReportError::unfit("read", &self.path, reason);
        let count = loop {
            let read = self.file.read_at(&mut self.bytes, place);
            let read = read.map_err(ReportError::on("read", &self.path))?;
            self.parser.reset();
            let bytes = &self.bytes[..read];
            let parsed = self
                .parser
                .read_record(bytes, &mut self.text, &mut self.ends);
            match parsed {
                (ReadRecordResult::Record, _, _, count) => break count,
                (ReadRecordResult::InputEmpty, ..) if read == self.bytes.len() => {
                    self.bytes.resize(2 * read, 0);
                    self.text.resize(2 * read, 0);
                }
                _ => return Err(unfit(format!("there is no row at {place}"))),
            }
        };
        let mut begin = 0;
        let texts = self.ends[..count].iter().map(|end| {
            let text = &self.text[begin..*end];
            begin = *end;
            std::str::from_utf8(text).unwrap_or("no text")
        });
        cells_of(texts, &self.columns).map_err(unfit)
    }
}

/// The cells of a row; the error: what is wrong with it.
fn cells_of<'a>(
    texts: impl ExactSizeIterator<Item = &'a str>,
    columns: &[NamedColumn],
) -> Result<Vec<Cell>, String> {
    if texts.len() != columns.len() {
        let (cells, columns) = (texts.len(), columns.len());
        return Err(format!("{cells} cells under {columns} columns"));
    }
    let cells = texts.zip(columns).map(|(text, (name, column))| {
        Cell::parse(column, text).ok_or_else(|| format!("{name} is {text:?}"))
    });
    cells.collect()
}

/// Writes a table whole and durably, row by row: `rows` calls what it is given with the cells of each.
pub fn write_each(
    path: &Path,
    columns: &[NamedColumn],
    rows: impl FnOnce(&mut dyn FnMut(&[Cell]) -> Result<(), ReportError>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let failed = |cause| ReportError::from_csv("write a row to", path, cause);
    durable::replace_with(path, |out| {
        let mut lines = csv::Writer::from_writer(out);
        let names = columns.iter().map(|(name, _)| name.as_ref());
        lines.write_record(names).map_err(failed)?;
        rows(&mut |cells| {
            lines
                .write_record(cells.iter().map(Cell::text))
                .map_err(failed)
        })?;
        lines.flush().map_err(ReportError::on("write", path))
    })
}

/// Writes a table whole and durably, its rows in the order given.
pub fn write(path: &Path, columns: &[NamedColumn], rows: &[Record]) -> Result<(), ReportError> {
    let rows: Vec<Record> = rows.iter().map(|row| row.arranged(columns)).collect();
    let bytes = lines(path, Some(columns), &rows)?;
    durable::replace(path, |out| out.write_all(&bytes))
}

fn lines(
    path: &Path,
    header: Option<&[NamedColumn]>,
    rows: &[Record],
) -> Result<Vec<u8>, ReportError> {
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

#[cfg(test)]
mod tests {
    use crate::testing::{Refused as _, temporary};
    use std::fs;

    use super::*;
    use crate::results::schema::{self, FAILURE, ORDER, POINT, ROUND, STARTED_AT, STATUS, hca};

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
        let path = temporary("runs.csv");
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
        RunsFile::open(&path, SCHEMA).refused(&[told]);
        fs::write(&path, "a,b\n").unwrap();
        let told = "columns are of another version";
        RunsFile::open(&path, SCHEMA).refused(&[told]);
    }

    #[test]
    fn rows_are_read_at_their_places_however_long_they_are() {
        let path = temporary("runs.csv");
        let mut file = RunsFile::create(&path, SCHEMA).unwrap();
        let cells = |number: u32, failure: &str| -> Vec<Cell> {
            let mut row = round(number, schema::COMPLETE, 1.5, 3);
            row.replace(&FAILURE, failure);
            row.arranged(&SCHEMA.runs()).cells().cloned().collect()
        };
        let rows = [
            cells(0, "no"),
            cells(1, &"x,\"\n".repeat(5000)),
            cells(2, "last"),
        ];
        let places = rows.each_ref().map(|row| file.append_cells(row).unwrap());
        file.sync().unwrap();
        let mut reader = file.reader().unwrap();
        for place in [2, 0, 1, 2] {
            assert_eq!(reader.at(places[place]).unwrap(), rows[place]);
        }
        let mut found = Vec::new();
        let opened = RunsFile::open_each(&path, SCHEMA.runs(), |place, cells| {
            found.push((place, cells));
            Ok(())
        });
        opened.unwrap();
        assert!(found.into_iter().eq(places.into_iter().zip(rows)));
        let end = fs::metadata(&path).unwrap().len();
        reader.at(end).refused(&["there is no row at"]);
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own() {
        let path = temporary("runs.csv");
        durable::tests::fill_the_disk_for(&path);
        let error = RunsFile::create(&path, SCHEMA).unwrap_err();
        assert!(error.is_full(), "{error}");
    }

    #[test]
    fn a_torn_row_is_cut_off() {
        let path = temporary("runs.csv");
        let mut file = RunsFile::create(&path, SCHEMA).unwrap();
        let header = fs::read(&path).unwrap();
        // Another handle on a full disk, which takes nothing.
        let mut full = RunsFile {
            file: File::options().write(true).open("/dev/full").unwrap(),
            path: path.to_owned(),
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
        let path = temporary("summary.csv");
        let row = over_rounds(SCHEMA, &[round(0, schema::COMPLETE, 1.0, 1)]);
        for rows in [&[row.clone(), row.clone()][..], &[row]] {
            write(&path, &SCHEMA.summary(), rows).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), 1 + rows.len());
            assert!(text.starts_with("point,service,"), "{text}");
        }
    }
}
