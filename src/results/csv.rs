//! Rows in comma-separated files: nanoseconds as integers, microseconds with three decimals, not measured is empty.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, Serializer};

use super::durable::{self, folder_of, sync_folder};
use super::error::ReportError;
use super::record::{Cell, Record};
use super::units::fixed;

/// Nanoseconds that are written as microseconds with exactly three decimals, `12345.0` as `12.345`.
///
/// It serializes as text, because formats choose a number's decimals themselves; a column that may be empty is an
/// `Option<Micros3>`.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Micros3(pub f64);

impl Serialize for Micros3 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&fixed(self.0 / 1000.0, 3))
    }
}

/// A CSV file of many rows of one type, buffered.
///
/// The header names the row's fields and stands in the file even if no row follows. Until [`finish`](Self::finish)
/// returns, nothing is promised to be on disk; a file dropped before keeps what was written so far.
#[derive(Debug)]
pub struct CsvFile<R> {
    path: PathBuf,
    writer: csv::Writer<File>,
    rows: PhantomData<fn(R)>,
}

impl<R: Serialize + Default> CsvFile<R> {
    /// Creates the file, which must not be there, and writes the header.
    ///
    /// # Errors
    /// [`ReportError`] when the file cannot be created, or when the row type has fields that CSV cannot hold.
    pub fn create(path: &Path) -> Result<Self, ReportError> {
        let file = durable::create_new(path)
            .map_err(|cause| ReportError::from_io("create", path, cause))?;
        let mut created = Self {
            path: path.to_path_buf(),
            writer: csv::WriterBuilder::new()
                .has_headers(false)
                .buffer_capacity(1 << 16)
                .from_writer(file),
            rows: PhantomData,
        };
        let header =
            header_of::<R>().map_err(|cause| created.failed("write the header of", cause))?;
        created
            .writer
            .write_record(&header)
            .map_err(|cause| created.failed("write the header of", cause))?;
        Ok(created)
    }

    /// Appends one row.
    ///
    /// # Errors
    /// [`ReportError`] when the buffer was full and could not be written.
    pub fn append(&mut self, row: &R) -> Result<(), ReportError> {
        self.writer
            .serialize(row)
            .map_err(|cause| self.failed("write a row to", cause))
    }

    /// Writes what is buffered and returns when the file and its name are durable.
    ///
    /// # Errors
    /// [`ReportError`] when the file could not be written whole.
    pub fn finish(mut self) -> Result<(), ReportError> {
        let flushed = self
            .writer
            .flush()
            .and_then(|()| self.writer.get_ref().sync_all());
        flushed.map_err(|cause| ReportError::from_io("write", &self.path, cause))?;
        sync_folder(folder_of(&self.path))
    }

    fn failed(&self, operation: &'static str, cause: csv::Error) -> ReportError {
        ReportError::from_csv(operation, &self.path, cause)
    }
}

/// The field names of a row type, as the csv crate derives them from a row.
fn header_of<R: Serialize + Default>() -> Result<csv::StringRecord, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(R::default())?;
    let text = writer
        .into_inner()
        .map_err(|cause| csv::Error::from(cause.into_error()))?;
    csv::Reader::from_reader(text.as_slice()).headers().cloned()
}

/// The summary of a sweep: a CSV file whose rows are durable one by one.
///
/// The first record gives the header. A row that could not be written whole is cut off again, so that the rows before
/// it stay readable.
#[derive(Debug)]
pub struct SummaryFile {
    path: PathBuf,
    file: File,
    length: u64,
    columns: Option<Vec<String>>,
}

impl SummaryFile {
    /// Creates the file, which must not be there.
    ///
    /// # Errors
    /// [`ReportError`] when the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, ReportError> {
        let file = durable::create_new(path)
            .map_err(|cause| ReportError::from_io("create", path, cause))?;
        sync_folder(folder_of(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            length: 0,
            columns: None,
        })
    }

    /// Appends one row and returns when it is durable.
    ///
    /// # Errors
    /// [`ReportError::Unfit`] when the record's columns differ from those of the first one or repeat themselves; others
    /// when the row could not be written.
    pub fn append(&mut self, record: &Record) -> Result<(), ReportError> {
        let columns: Vec<String> = record.columns().map(str::to_owned).collect();
        let mut lines = csv::Writer::from_writer(Vec::new());
        let written = match &self.columns {
            Some(first) if *first != columns => return Err(self.unfit(difference(first, &columns))),
            Some(_) => Ok(()),
            None => {
                if let Some(twice) = repeated(&columns) {
                    return Err(self.unfit(format!("the column {twice} occurs twice")));
                }
                lines.write_record(&columns)
            }
        };
        written
            .and_then(|()| lines.write_record(record.cells().map(Cell::text)))
            .map_err(|cause| ReportError::from_csv("write a row to", &self.path, cause))?;
        let bytes = lines.into_inner().map_err(|cause| {
            ReportError::from_io("write a row to", &self.path, cause.into_error())
        })?;
        if let Err(cause) = self.write_durably(&bytes) {
            // The row's failure is what is reported; cutting it off is an attempt.
            let _ = self.cut_back();
            return Err(ReportError::from_io("write a row to", &self.path, cause));
        }
        self.length += bytes.len() as u64;
        self.columns.get_or_insert(columns);
        Ok(())
    }

    fn write_durably(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    fn cut_back(&mut self) -> io::Result<()> {
        use std::io::Seek;
        self.file.set_len(self.length)?;
        self.file.seek(io::SeekFrom::Start(self.length)).map(|_| ())
    }

    fn unfit(&self, reason: String) -> ReportError {
        ReportError::unfit("write a row to", &self.path, reason)
    }
}

fn difference(first: &[String], columns: &[String]) -> String {
    let place = first.iter().zip(columns).position(|(a, b)| a != b);
    let place = place.unwrap_or(first.len().min(columns.len()));
    let name = |row: &[String]| {
        row.get(place)
            .map_or("nothing".to_owned(), |name| format!("{name:?}"))
    };
    format!(
        "its column {} is {}, that of the rows before it is {}",
        place + 1,
        name(columns),
        name(first)
    )
}

fn repeated(columns: &[String]) -> Option<&String> {
    let mut seen = std::collections::HashSet::new();
    columns.iter().find(|column| !seen.insert(column.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[derive(Debug, Default, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Row {
        seq: u32,
        t_recv_ns: Option<u64>,
        latency_ns: Option<i64>,
        note: String,
    }

    fn write(path: &Path, rows: &[Row]) {
        let mut file = CsvFile::create(path).unwrap();
        rows.iter().for_each(|row| file.append(row).unwrap());
        file.finish().unwrap();
    }

    #[test]
    fn header_integers_and_empty_cells() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.csv");
        let rows = [
            Row {
                seq: 0,
                t_recv_ns: Some(u64::MAX),
                latency_ns: Some(-7),
                note: "a, b".into(),
            },
            Row {
                seq: 1,
                ..Row::default()
            },
        ];
        write(&path, &rows);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "seq,t_recv_ns,latency_ns,note\n0,18446744073709551615,-7,\"a, b\"\n1,,,\n"
        );
    }

    #[test]
    fn a_file_without_rows_has_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.csv");
        write(&path, &[]);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "seq,t_recv_ns,latency_ns,note\n"
        );
    }

    #[test]
    fn microseconds_have_three_decimals() {
        #[derive(Default, serde::Serialize)]
        struct Row {
            a_us: Micros3,
            b_us: Option<Micros3>,
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.csv");
        let mut file = CsvFile::create(&path).unwrap();
        for (a, b) in [
            (12_345.0, None),
            (-0.2, Some(10_000.0)),
            (-1500.26, Some(0.5)),
        ] {
            file.append(&Row {
                a_us: Micros3(a),
                b_us: b.map(Micros3),
            })
            .unwrap();
        }
        file.finish().unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "a_us,b_us\n12.345,\n0.000,10.000\n-1.500,0.001\n"
        );
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own_and_dropping_the_file_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
        durable::tests::fill_the_disk_for(&one);
        durable::tests::fill_the_disk_for(&other);
        let mut file = CsvFile::create(&one).unwrap();
        file.append(&Row::default()).unwrap();
        let error = file.finish().unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");

        let mut file = CsvFile::create(&other).unwrap();
        let row = Row {
            note: "x".repeat(1000),
            ..Row::default()
        };
        let error = (0..1000)
            .find_map(|_| file.append(&row).err())
            .expect("the buffer is smaller than this");
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
        drop(file);
    }

    #[test]
    fn a_row_type_that_csv_cannot_hold_is_refused_at_creation() {
        #[derive(Debug, Default, serde::Serialize)]
        struct Nested {
            inner: Row,
        }
        let folder = tempfile::tempdir().unwrap();
        let error = CsvFile::<Nested>::create(&folder.path().join("n.csv")).unwrap_err();
        assert!(matches!(error, ReportError::Unfit { .. }), "{error}");
    }

    fn record(service: &str, p50: Option<f64>) -> Record {
        let mut record = Record::new();
        record
            .text("service", service)
            .micros("latency_p50_us", p50);
        record
    }

    #[test]
    fn summary_rows_are_there_when_append_returns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.csv");
        let mut file = SummaryFile::create(&path).unwrap();
        file.append(&record("rc", Some(21_500.0))).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "service,latency_p50_us\nrc,21.500\n"
        );
        file.append(&record("ud", None)).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "service,latency_p50_us\nrc,21.500\nud,\n"
        );
    }

    #[test]
    fn summary_rows_must_have_the_same_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.csv");
        let mut file = SummaryFile::create(&path).unwrap();
        file.append(&record("rc", None)).unwrap();
        let mut other = Record::new();
        other.text("service", "rc").micros("latency_p90_us", None);
        let error = file.append(&other).unwrap_err().to_string();
        assert!(error.contains("column 2 is \"latency_p90_us\""), "{error}");
        let mut longer = record("rc", None);
        longer.text("more", "");
        let error = file.append(&longer).unwrap_err().to_string();
        assert!(
            error.contains("column 3 is \"more\", that of the rows before it is nothing"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_summary_on_a_full_disk_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.csv");
        durable::tests::fill_the_disk_for(&path);
        let error = SummaryFile::create(&path)
            .unwrap()
            .append(&record("rc", None))
            .unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
    }

    #[test]
    fn a_torn_row_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.csv");
        let mut file = SummaryFile::create(&path).unwrap();
        file.append(&record("rc", None)).unwrap();
        file.file.write_all(b"ud,21.").unwrap();
        file.cut_back().unwrap();
        file.append(&record("uc", None)).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "service,latency_p50_us\nrc,\nuc,\n"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            rows in prop::collection::vec((any::<u32>(), any::<Option<u64>>(), any::<Option<i64>>(), ".*"), 0..20),
        ) {
            let rows: Vec<Row> = rows
                .into_iter()
                .map(|(seq, t_recv_ns, latency_ns, note)| Row { seq, t_recv_ns, latency_ns, note })
                .collect();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("messages.csv");
            write(&path, &rows);
            let read: Vec<Row> = csv::Reader::from_path(&path).unwrap().deserialize().map(Result::unwrap).collect();
            prop_assert_eq!(read, rows);
        }
    }
}
