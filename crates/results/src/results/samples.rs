//! Files of samples: many rows, a round behind another, in the folder of a point.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::durable::{self, cut_torn_line, folder_of, sync_folder};
use super::error::ReportError;
use super::schema::{Column, ROUND, SampleFile};

/// Appends the samples of one round, buffered.
///
/// The header is in the file even if no row follows. Until [`finish`](Self::finish) returns, nothing is promised to be
/// on disk; a file dropped before keeps what was written so far.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    file: SampleFile,
    round: u32,
    writer: csv::Writer<File>,
    checked: bool,
}

impl SampleWriter {
    /// Makes the file with its header, or opens it to go on; a last row that is not whole is cut off.
    pub fn open(folder: &Path, file: &SampleFile, round: u32) -> Result<Self, ReportError> {
        let path = folder.join(file.name);
        let (opened, length) = match durable::create_new(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => open_whole(&path, file)?,
            made => (made.map_err(ReportError::on("create", &path))?, 0),
        };
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .delimiter(file.delimiter())
            .quote_style(quoting(file))
            .buffer_capacity(1 << 16)
            .from_writer(opened);
        if length == 0 {
            let written = writer.write_record(names_of(file.columns));
            written.map_err(|cause| ReportError::from_csv("write the header of", &path, cause))?;
        }
        Ok(Self {
            path,
            file: *file,
            round,
            writer,
            checked: false,
        })
    }

    /// Appends a row: a struct whose fields are the columns.
    pub fn append(&mut self, row: &impl Serialize) -> Result<(), ReportError> {
        if !self.checked {
            self.check(row)?;
            self.checked = true;
        }
        let written = self.writer.serialize(row);
        written.map_err(|cause| ReportError::from_csv("write a row to", &self.path, cause))
    }

    /// Appends rows that [`rows_to_text`] made in another process.
    ///
    /// # Errors
    /// [`ReportError::Unfit`] when they are no rows of this file; others when they cannot be written.
    pub fn append_text(&mut self, rows: &str) -> Result<(), ReportError> {
        let failed = |cause| ReportError::from_csv("write a row to", &self.path, cause);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(rows.as_bytes());
        for row in reader.records() {
            let row = row.map_err(failed)?;
            let round = row.get(place_of_round(&self.file));
            let is_fit = row.len() == self.file.columns.len()
                && round.and_then(|round| round.parse().ok()) == Some(self.round);
            if !is_fit {
                let reason = format!("{row:?} is not a row of round {}", self.round);
                return Err(ReportError::unfit("write a row to", &self.path, reason));
            }
            self.writer.write_record(&row).map_err(failed)?;
        }
        Ok(())
    }

    fn check(&self, row: &impl Serialize) -> Result<(), ReportError> {
        let failed = |cause| ReportError::from_csv("write a row to", &self.path, cause);
        let mut lines = csv::Writer::from_writer(Vec::new());
        lines.serialize(row).map_err(failed)?;
        let text = lines.into_inner();
        let text = text.map_err(|cause| failed(cause.into_error().into()))?;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let fields = reader.headers().map_err(failed)?;
        if !fields.iter().eq(names_of(self.file.columns)) {
            let reason = format!("its fields are {fields:?}");
            return Err(ReportError::unfit("write a row to", &self.path, reason));
        }
        let first = reader.records().next().transpose().map_err(failed)?;
        let round = first.and_then(|row| row[place_of_round(&self.file)].parse().ok());
        if round != Some(self.round) {
            let reason = format!("its round is {round:?}, not {}", self.round);
            return Err(ReportError::unfit("write a row to", &self.path, reason));
        }
        Ok(())
    }

    /// Writes what is buffered and returns when the file and its name are durable.
    pub fn finish(mut self) -> Result<(), ReportError> {
        let flushed = self.writer.flush();
        let flushed = flushed.and_then(|()| self.writer.get_ref().sync_all());
        flushed.map_err(ReportError::on("write", &self.path))?;
        sync_folder(folder_of(&self.path))
    }

    /// Rewrites a file without the rows of rounds for which `keep` returns false, and without a last row that is not
    /// whole, in one step. A file that is not there is left so.
    ///
    /// # Errors
    /// [`ReportError::Unfit`] when the file has other columns, or a row has another number of cells or no round; others
    /// when it cannot be read or written. The file is then as it was, but for a last row that was not whole.
    pub fn keep_rounds(
        path: &Path,
        file: &SampleFile,
        mut keep: impl FnMut(u32) -> bool,
    ) -> Result<(), ReportError> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let (mut opened, _) = open_whole(path, file)?;
        opened.rewind().map_err(ReportError::on("read", path))?;
        let mut reader = csv::ReaderBuilder::new()
            .buffer_capacity(1 << 18)
            .delimiter(file.delimiter())
            .flexible(may_have_more(file))
            .from_reader(opened);
        durable::replace_with(path, |out| {
            let failed = |cause| ReportError::from_csv("rewrite", path, cause);
            let mut writer = csv::WriterBuilder::new()
                .delimiter(file.delimiter())
                .flexible(may_have_more(file))
                .from_writer(out);
            writer
                .write_record(names_of(file.columns))
                .map_err(failed)?;
            let mut row = csv::ByteRecord::new();
            while reader.read_byte_record(&mut row).map_err(failed)? {
                let round = str::from_utf8(&row[place_of_round(file)])
                    .ok()
                    .and_then(|text| text.parse().ok());
                let no_round = || ReportError::unfit("rewrite", path, "a row has no round");
                if keep(round.ok_or_else(no_round)?) {
                    writer.write_byte_record(&row).map_err(failed)?;
                }
            }
            writer.flush().map_err(ReportError::on("rewrite", path))
        })
    }
}

/// Rows as text without a header, for a process that has the file. Fields of the rows are the columns.
///
/// # Errors
/// When a row cannot be written.
pub fn rows_to_text<R: Serialize>(rows: impl Iterator<Item = R>) -> Result<String, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    String::from_utf8(bytes).map_err(|error| io::Error::other(error).into())
}

/// Whether the last column of a file stands for several cells: in files of VILLASnode each value is one.
fn may_have_more(file: &SampleFile) -> bool {
    file.delimiter() == b'\t'
}

/// Cells that stand for several have what is between these in them.
fn quoting(file: &SampleFile) -> csv::QuoteStyle {
    match may_have_more(file) {
        true => csv::QuoteStyle::Never,
        false => csv::QuoteStyle::Necessary,
    }
}

fn names_of(columns: &[Column]) -> impl Iterator<Item = &'static str> {
    columns.iter().map(|column| column.name)
}

fn place_of_round(file: &SampleFile) -> usize {
    let place = file.columns.iter().position(|column| *column == ROUND);
    place.expect("each file has the column")
}

/// Opens a file that is there, cuts a torn row off and seeks to its end; returns its length, 0 without a header.
fn open_whole(path: &Path, as_declared: &SampleFile) -> Result<(File, u64), ReportError> {
    let failed = |cause| ReportError::from_io("open", path, cause);
    let mut file = durable::open_to_go_on(path).map_err(failed)?;
    let length = cut_torn_line(&mut file).map_err(failed)?;
    let delimiter = char::from(as_declared.delimiter()).to_string();
    let names: Vec<_> = names_of(as_declared.columns).collect();
    let header = format!("{}\n", names.join(&delimiter));
    let mut found = Vec::new();
    file.rewind().map_err(failed)?;
    let read = (&file).take(header.len() as u64).read_to_end(&mut found);
    read.map_err(failed)?;
    if length > 0 && found != header.as_bytes() {
        let reason = "a file with other columns is there";
        return Err(ReportError::unfit("write to", path, reason));
    }
    file.seek(io::SeekFrom::End(0)).map_err(failed)?;
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use crate::testing::Refused as _;
    use std::fs;

    use super::*;
    use crate::results::schema::STATUS;

    const COLUMNS: [Column; 3] = [
        ROUND,
        Column::measured("latency_ns", 0, "latency").whole(),
        Column::label("note", "a note"),
    ];
    const FILE: SampleFile = SampleFile {
        name: "messages.csv",
        columns: &COLUMNS,
        counted_by: STATUS,
        meaning: "a row a message",
    };

    #[derive(Default, Serialize)]
    struct Row {
        round: u32,
        latency_ns: Option<i64>,
        note: &'static str,
    }

    fn write(folder: &Path, round: u32, latencies: &[Option<i64>]) {
        let mut file = SampleWriter::open(folder, &FILE, round).unwrap();
        for &latency_ns in latencies {
            let note = "a, b";
            let row = Row {
                round,
                latency_ns,
                note,
            };
            file.append(&row).unwrap();
        }
        file.finish().unwrap();
    }

    #[track_caller]
    fn holds(path: &Path, rows: &str) {
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text, format!("round,latency_ns,note\n{rows}"));
    }

    #[test]
    fn rounds_stand_behind_one_another_under_one_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE.name);
        write(folder.path(), 0, &[]);
        holds(&path, "");
        write(folder.path(), 1, &[Some(-7), None]);
        // A killed process tore the last row.
        let text = fs::read_to_string(&path).unwrap() + "1,12";
        fs::write(&path, text).unwrap();
        write(folder.path(), 2, &[Some(i64::MAX)]);
        let last = "2,9223372036854775807,\"a, b\"";
        holds(&path, &format!("1,-7,\"a, b\"\n1,,\"a, b\"\n{last}\n"));
        // Not even the header was whole.
        fs::write(&path, "round,lat").unwrap();
        write(folder.path(), 0, &[Some(1)]);
        holds(&path, "0,1,\"a, b\"\n");
    }

    #[test]
    fn rounds_that_are_not_whole_are_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE.name);
        SampleWriter::keep_rounds(&path, &FILE, |_| true).unwrap();
        assert!(!path.exists());
        for round in [0, 1, 0, 2] {
            write(folder.path(), round, &[Some(round.into())]);
        }
        let text = fs::read_to_string(&path).unwrap() + "2,1";
        fs::write(&path, text).unwrap();
        SampleWriter::keep_rounds(&path, &FILE, |round| round != 1).unwrap();
        holds(&path, "0,0,\"a, b\"\n0,0,\"a, b\"\n2,2,\"a, b\"\n");
        fs::write(&path, "round,latency_ns,note\n0,1\n").unwrap();
        let kept = SampleWriter::keep_rounds(&path, &FILE, |_| true);
        kept.refused(&["cannot rewrite", "2 fields"]);
    }

    #[test]
    fn other_columns_fields_and_rounds_are_refused() {
        #[derive(Serialize)]
        struct Other {
            round: u32,
            latency_us: u32,
        }
        let folder = tempfile::tempdir().unwrap();
        let mut file = SampleWriter::open(folder.path(), &FILE, 1).unwrap();
        let (round, latency_us) = (1, 0);
        let other = Other { round, latency_us };
        file.append(&other)
            .refused(&["its fields are", "latency_us"]);
        let told = ["its round is Some(0), not 1"];
        file.append(&Row::default()).refused(&told);
        fs::write(folder.path().join(FILE.name), "repeat,seq\n0,1\n").unwrap();
        let opened = SampleWriter::open(folder.path(), &FILE, 1);
        opened.refused(&["other columns"]);
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own_and_dropping_the_file_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        durable::tests::fill_the_disk_for(&folder.path().join(FILE.name));
        let mut file = SampleWriter::open(folder.path(), &FILE, 0).unwrap();
        file.append(&Row::default()).unwrap();
        let error = file.finish().unwrap_err();
        assert!(error.is_full(), "{error}");

        fs::remove_file(folder.path().join(FILE.name)).unwrap();
        let mut file = SampleWriter::open(folder.path(), &FILE, 0).unwrap();
        let error = (0..100_000).find_map(|_| file.append(&Row::default()).err());
        let error = error.expect("the buffer is smaller than this");
        assert!(error.is_full(), "{error}");
        drop(file);
    }
}
