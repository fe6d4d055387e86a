//! Files of many rows, read as a stream.
//!
//! A file of 10 million messages has about 700 MB: nothing but what is asked for is kept of it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::ReadError;

/// A column of whole numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// The numbers, in the file's order.
    pub values: Vec<i64>,
    /// Rows in which the cell is empty: not measured, such as the latency of a lost message.
    pub missing: u64,
    /// Whether the file ended in the middle of a row, which was left out. Only files of incomplete points may.
    pub cut: bool,
}

impl Samples {
    /// Rows that were read.
    pub fn rows(&self) -> u64 {
        self.values.len() as u64 + self.missing
    }
}

/// Reads one column of whole numbers, such as `latency_ns` of `messages.csv`.
///
/// # Errors
/// Those of [`RowFile`].
pub fn samples(path: &Path, column: &str) -> Result<Samples, ReadError> {
    RowFile::open(path)?.samples(column)
}

/// A CSV file, to be read row by row.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    reader: csv::Reader<File>,
    columns: Vec<String>,
    bytes: u64,
    ends: bool,
    may_be_cut: bool,
}

impl RowFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`ReadError::MissingFile`]; [`ReadError::Truncated`] when not even the header is whole; [`ReadError::Foreign`]
    /// when it is no text; [`ReadError::Io`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let why = "the samples are in it; copy it from where it was measured, or measure again";
        let mut file = File::open(path).map_err(|cause| ReadError::opening(path, cause, why))?;
        let (bytes, ends) = end_of(&mut file).map_err(|cause| ReadError::io(path, cause))?;
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .buffer_capacity(1 << 18)
            .from_reader(file);
        let header = match reader.byte_headers() {
            Ok(header) => header.clone(),
            Err(cause) => return Err(from_csv(path, cause)),
        };
        if bytes == 0 || !ends && reader.position().byte() >= bytes {
            return Err(ReadError::truncated(path, 1, "the header is not whole"));
        }
        let columns = header
            .iter()
            .map(|name| std::str::from_utf8(name).map(str::to_owned))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| ReadError::foreign(path, 1, "it is not text"))?;
        Ok(RowFile {
            path: path.to_path_buf(),
            reader,
            columns,
            bytes,
            ends,
            may_be_cut: false,
        })
    }

    /// Takes a file of which it is known that its writer was interrupted: a last row that is not whole is left out.
    pub fn may_be_cut(mut self, may: bool) -> Self {
        self.may_be_cut = may;
        self
    }

    /// The columns' names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The file's size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls `take` with the cells of the named columns of each row, in the order of `columns`. Returns whether the file
    /// ended in the middle of a row, which it only does after [`may_be_cut`](Self::may_be_cut).
    ///
    /// # Errors
    /// [`ReadError::Foreign`] when a column is not there or a row has another number of cells; [`ReadError::Truncated`];
    /// [`ReadError::Io`]; whatever `take` returns.
    pub fn each(
        mut self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> Result<bool, ReadError> {
        let places = columns
            .iter()
            .map(|column| self.place(column))
            .collect::<Result<Vec<_>, _>>()?;
        let mut record = csv::ByteRecord::new();
        let (path, width) = (self.path.as_path(), self.columns.len());
        while self
            .reader
            .read_byte_record(&mut record)
            .map_err(|cause| from_csv(path, cause))?
        {
            let line = record.position().map_or(0, csv::Position::line);
            // Only the row at the end of the file can be cut off.
            if !self.ends && self.reader.position().byte() >= self.bytes {
                if self.may_be_cut {
                    return Ok(true);
                }
                return Err(ReadError::truncated(
                    path,
                    line,
                    "the last row is not whole",
                ));
            }
            if record.len() != width {
                let reason = format!("{} cells under {width} columns", record.len());
                return Err(ReadError::foreign(path, line, reason));
            }
            take(Cells {
                path,
                line,
                record: &record,
                places: &places,
                columns,
            })?;
        }
        Ok(false)
    }

    /// Reads one column of whole numbers.
    ///
    /// # Errors
    /// As [`each`](Self::each), and [`ReadError::Foreign`] for a cell that is no whole number of 64 bits.
    pub fn samples(self, column: &str) -> Result<Samples, ReadError> {
        self.samples_where(column, None)
    }

    /// As [`samples`](Self::samples), of the rows in which another column has a text.
    pub(super) fn samples_where(
        self,
        column: &str,
        only: Option<(&str, &str)>,
    ) -> Result<Samples, ReadError> {
        let mut found = Samples::default();
        let mut wanted = vec![column];
        wanted.extend(only.map(|(name, _)| name));
        found.cut = self.each(&wanted, |cells| {
            if only.is_none_or(|(_, text)| cells.bytes(1) == text.as_bytes()) {
                match cells.integer(0)? {
                    Some(value) => found.values.push(value),
                    None => found.missing += 1,
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn place(&self, column: &str) -> Result<usize, ReadError> {
        self.columns
            .iter()
            .position(|name| name == column)
            .ok_or_else(|| {
                let there = self.columns.join(", ");
                let there: String = there.chars().take(300).collect();
                let reason = format!("there is no column {column:?}, only {there}");
                ReadError::foreign(&self.path, 1, reason)
            })
    }
}

/// The size, and whether the last byte ends a line.
fn end_of(file: &mut File) -> std::io::Result<(u64, bool)> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let mut last = [0];
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    file.rewind()?;
    Ok((bytes, last == *b"\n"))
}

fn from_csv(path: &Path, cause: csv::Error) -> ReadError {
    let line = cause.position().map_or(0, csv::Position::line);
    let reason = cause.to_string();
    match cause.into_kind() {
        csv::ErrorKind::Io(cause) => ReadError::io(path, cause),
        _ => ReadError::foreign(path, line, reason),
    }
}

/// The asked cells of a row.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    path: &'a Path,
    line: u64,
    record: &'a csv::ByteRecord,
    places: &'a [usize],
    columns: &'a [&'a str],
}

impl Cells<'_> {
    /// The bytes of a cell.
    pub fn bytes(&self, index: usize) -> &[u8] {
        &self.record[self.places[index]]
    }

    /// A cell as text; what is no UTF-8 is replaced.
    pub fn text(&self, index: usize) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(index))
    }

    /// A cell as a whole number, `None` when it is empty.
    ///
    /// # Errors
    /// [`ReadError::Foreign`] when it is no whole number of 64 bits.
    pub fn integer(&self, index: usize) -> Result<Option<i64>, ReadError> {
        let bytes = self.bytes(index);
        if bytes.is_empty() {
            return Ok(None);
        }
        match whole_number(bytes) {
            Some(number) => Ok(Some(number)),
            None => {
                let (column, text) = (self.columns[index], self.text(index));
                let reason = format!("{column} is {text:?}, no whole number of nanoseconds");
                Err(ReadError::foreign(self.path, self.line, reason))
            }
        }
    }

    /// The line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}

fn whole_number(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}
