//! Files of samples: many rows, a round behind another, in the folder of a point.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::durable::{self, cut_torn_line, folder_of, sync_folder};
use super::error::ReportError;
use super::schema::{Column, SampleFile};

/// Appends the samples of one round, buffered.
///
/// The header stands in the file even if no row follows. Until [`finish`](Self::finish) returns, nothing is promised to
/// be on disk; a file dropped before keeps what was written so far.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    columns: &'static [Column],
    round: u32,
    writer: csv::Writer<File>,
    checked: bool,
}

impl SampleWriter {
    /// Makes the file with its header, or opens it to go on; a last row that is not whole is cut off.
    ///
    /// # Errors
    /// [`ReportError::Unfit`] when a file with other columns is there; others when it cannot be made or opened.
    pub fn open(folder: &Path, file: &SampleFile, round: u32) -> Result<Self, ReportError> {
        let path = folder.join(file.name);
        let opened = match durable::create_new(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                open_whole(&path, file.columns)?
            }
            Err(cause) => return Err(ReportError::from_io("create", &path, cause)),
            Ok(file) => (file, 0),
        };
        let (opened, length) = opened;
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .buffer_capacity(1 << 16)
            .from_writer(opened);
        if length == 0 {
            let written = writer.write_record(file.columns.iter().map(|column| column.name));
            written.map_err(|cause| ReportError::from_csv("write the header of", &path, cause))?;
        }
        Ok(Self {
            path,
            columns: file.columns,
            round,
            writer,
            checked: false,
        })
    }

    /// Appends a row: a struct whose fields are the columns, the round first.
    ///
    /// # Errors
    /// [`ReportError::Unfit`] when the first row has other fields than the file, or another round; others when the
    /// buffer was full and could not be written.
    pub fn append(&mut self, row: &impl Serialize) -> Result<(), ReportError> {
        if !self.checked {
            self.check(row)?;
            self.checked = true;
        }
        let written = self.writer.serialize(row);
        written.map_err(|cause| ReportError::from_csv("write a row to", &self.path, cause))
    }

    fn check(&self, row: &impl Serialize) -> Result<(), ReportError> {
        let failed = |cause| ReportError::from_csv("write a row to", &self.path, cause);
        let mut lines = csv::Writer::from_writer(Vec::new());
        lines.serialize(row).map_err(failed)?;
        let text = lines
            .into_inner()
            .map_err(|cause| failed(cause.into_error().into()))?;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let fields = reader.headers().map_err(failed)?;
        if !fields
            .iter()
            .eq(self.columns.iter().map(|column| column.name))
        {
            let reason = format!("its fields are {fields:?}");
            return Err(ReportError::unfit("write a row to", &self.path, reason));
        }
        let first = reader.records().next().transpose().map_err(failed)?;
        let round = first.and_then(|row| row[0].parse().ok());
        if round != Some(self.round) {
            let reason = format!("its round is {round:?}, not {}", self.round);
            return Err(ReportError::unfit("write a row to", &self.path, reason));
        }
        Ok(())
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

    /// Rewrites a file without the rows of rounds of which `keep` says no, and without a last row that is not whole, in
    /// one step. A file that is not there is left so.
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
        let (mut opened, _) = open_whole(path, file.columns)?;
        opened
            .rewind()
            .map_err(|cause| ReportError::from_io("read", path, cause))?;
        let mut reader = csv::ReaderBuilder::new()
            .buffer_capacity(1 << 18)
            .from_reader(opened);
        durable::replace(path, |out| {
            let failed = |cause| ReportError::from_csv("rewrite", path, cause);
            let mut writer = csv::Writer::from_writer(out);
            let names = file.columns.iter().map(|column| column.name);
            writer.write_record(names).map_err(failed)?;
            let mut row = csv::ByteRecord::new();
            while reader.read_byte_record(&mut row).map_err(failed)? {
                let round = std::str::from_utf8(&row[0])
                    .ok()
                    .and_then(|text| text.parse().ok());
                let round = round
                    .ok_or_else(|| ReportError::unfit("rewrite", path, "a row has no round"))?;
                if keep(round) {
                    writer.write_byte_record(&row).map_err(failed)?;
                }
            }
            writer
                .flush()
                .map_err(|cause| ReportError::from_io("rewrite", path, cause))
        })
    }
}

/// Opens a file that is there, cuts a torn row off and stands at its end; returns its length, 0 without a header.
fn open_whole(path: &Path, columns: &[Column]) -> Result<(File, u64), ReportError> {
    let failed = |cause| ReportError::from_io("open", path, cause);
    let mut file = durable::open_to_go_on(path).map_err(failed)?;
    let length = cut_torn_line(&mut file).map_err(failed)?;
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let header = format!("{}\n", names.join(","));
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
    use std::fs;

    use super::*;
    use crate::results::schema::{ROUND, STATUS};

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
            file.append(&Row {
                round,
                latency_ns,
                note: "a, b",
            })
            .unwrap();
        }
        file.finish().unwrap();
    }

    #[test]
    fn rounds_stand_behind_one_another_under_one_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE.name);
        write(folder.path(), 0, &[]);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "round,latency_ns,note\n"
        );
        write(folder.path(), 1, &[Some(-7), None]);
        // A killed process tore the last row.
        let text = fs::read_to_string(&path).unwrap() + "1,12";
        fs::write(&path, text).unwrap();
        write(folder.path(), 2, &[Some(i64::MAX)]);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "round,latency_ns,note\n1,-7,\"a, b\"\n1,,\"a, b\"\n2,9223372036854775807,\"a, b\"\n"
        );
        // Not even the header was whole.
        fs::write(&path, "round,lat").unwrap();
        write(folder.path(), 0, &[Some(1)]);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "round,latency_ns,note\n0,1,\"a, b\"\n"
        );
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
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "round,latency_ns,note\n0,0,\"a, b\"\n0,0,\"a, b\"\n2,2,\"a, b\"\n"
        );
        fs::write(&path, "round,latency_ns,note\n0,1\n").unwrap();
        let error = SampleWriter::keep_rounds(&path, &FILE, |_| true).unwrap_err();
        assert!(matches!(error, ReportError::Unfit { .. }), "{error}");
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
        let other = Other {
            round: 1,
            latency_us: 0,
        };
        for error in [
            file.append(&other).unwrap_err(),
            file.append(&Row::default()).unwrap_err(),
        ] {
            assert!(matches!(error, ReportError::Unfit { .. }), "{error}");
        }
        fs::write(folder.path().join(FILE.name), "repeat,seq\n0,1\n").unwrap();
        let error = SampleWriter::open(folder.path(), &FILE, 1).unwrap_err();
        assert!(error.to_string().contains("other columns"), "{error}");
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "round,latency_ns,note\n").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(FILE.name)).unwrap();
        let error = SampleWriter::open(folder.path(), &FILE, 0)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("it is a symbolic link, not a file"),
            "{error}"
        );
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own_and_dropping_the_file_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        durable::tests::fill_the_disk_for(&folder.path().join(FILE.name));
        let mut file = SampleWriter::open(folder.path(), &FILE, 0).unwrap();
        file.append(&Row::default()).unwrap();
        let error = file.finish().unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");

        fs::remove_file(folder.path().join(FILE.name)).unwrap();
        let mut file = SampleWriter::open(folder.path(), &FILE, 0).unwrap();
        let error = (0..100_000)
            .find_map(|_| file.append(&Row::default()).err())
            .expect("the buffer is smaller than this");
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
        drop(file);
    }
}
