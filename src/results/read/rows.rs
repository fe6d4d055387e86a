//! Files of many rows, read as a stream.
//!
//! A file of 10 million messages has about 700 MB: nothing but what is asked for is kept of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::ReadError;
use crate::results::durable::open_regular;

/// A CSV file, to be read row by row.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    reader: csv::Reader<Lines>,
    columns: Vec<String>,
    bytes: u64,
    ends: bool,
    may_be_cut: bool,
    told: Option<u64>,
}

impl RowFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`ReadError::MissingFile`]; [`ReadError::Truncated`] when not even the header is whole; [`ReadError::Foreign`]
    /// when it is no text; [`ReadError::Io`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let why = "the samples are in it; copy it from where it was measured, or measure again";
        let mut file = open_regular(path).map_err(|cause| ReadError::opening(path, cause, why))?;
        let (bytes, ends) = end_of(&mut file).map_err(|cause| ReadError::io(path, cause))?;
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .buffer_capacity(1 << 18)
            .from_reader(Lines::of(file));
        let header = match reader.byte_headers() {
            Ok(header) => header.clone(),
            Err(cause) => return Err(from_csv(path, 1, cause)),
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
            told: None,
        })
    }

    /// Takes a file of which it is known that its writer was interrupted: a last row that is not whole is left out.
    pub fn may_be_cut(mut self, may: bool) -> Self {
        self.may_be_cut = may;
        self
    }

    /// Takes a file that must have so many rows, where that is known.
    pub(super) fn told(mut self, rows: Option<u64>) -> Self {
        self.told = rows;
        self
    }

    /// Calls `take` with the cells of the named columns of each row, in the order of `columns`. Returns whether the
    /// file ended in the middle of a row, which it only does after [`may_be_cut`](Self::may_be_cut).
    ///
    /// # Errors
    /// [`ReadError::Foreign`] when a column is not there, a row has another number of cells, or there are more rows
    /// than the point's summary tells of; [`ReadError::Truncated`], also when there are fewer; [`ReadError::Io`];
    /// whatever
    /// `take` returns.
    pub fn each(
        mut self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> Result<bool, ReadError> {
        let places = columns
            .iter()
            .map(|column| self.place(column))
            .collect::<Result<Vec<_>, _>>()?;
        let mut rows = 0;
        let mut record = csv::ByteRecord::new();
        let (path, width) = (self.path.as_path(), self.columns.len());
        loop {
            let read = self.reader.read_byte_record(&mut record);
            if !read.map_err(|cause| from_csv(path, self.reader.position().line(), cause))? {
                break;
            }
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
            rows += 1;
            take(Cells {
                path,
                line,
                record: &record,
                places: &places,
                columns,
            })?;
        }
        if let Some(told) = self.told.filter(|&told| told != rows) {
            let reason = format!("{rows} rows, where the summary tells of {told}");
            return Err(if rows < told {
                ReadError::truncated(path, 0, reason)
            } else {
                ReadError::foreign(path, 0, reason)
            });
        }
        Ok(false)
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
fn end_of(file: &mut File) -> io::Result<(u64, bool)> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let mut last = [0];
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    file.rewind()?;
    Ok((bytes, last == *b"\n"))
}

fn from_csv(path: &Path, line: u64, cause: csv::Error) -> ReadError {
    let (place, reason) = (cause.position().map(csv::Position::line), cause.to_string());
    match cause.into_kind() {
        csv::ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::InvalidData => {
            ReadError::foreign(path, line, cause.to_string())
        }
        csv::ErrorKind::Io(cause) => ReadError::io(path, cause),
        _ => ReadError::foreign(path, place.unwrap_or(line), reason),
    }
}

/// The longest line of a file of rows; those of hcabench have some hundred bytes.
const LONGEST_LINE: usize = 1 << 16;

/// A file that must consist of lines as hcabench writes them: none is longer than [`LONGEST_LINE`], and none ends
/// within quotes. Others would have the whole file taken for one cell, and kept in memory.
#[derive(Debug)]
struct Lines {
    file: File,
    /// Bytes since the last end of a line, and whether quotes are open there.
    length: usize,
    quoted: bool,
    wrong: Option<&'static str>,
}

impl Lines {
    fn of(file: File) -> Self {
        Lines {
            file,
            length: 0,
            quoted: false,
            wrong: None,
        }
    }

    /// Goes on over some bytes; returns how many of them are in order, up to the beginning of a line.
    fn follow(&mut self, bytes: &[u8]) -> usize {
        const PART: usize = 4096;
        let mut done = 0;
        for part in bytes.chunks(PART) {
            if !self.quoted && !part.contains(&b'"') && part.contains(&b'\n') {
                // The usual case, for which no byte needs to be looked at by itself.
                self.length = part
                    .iter()
                    .rev()
                    .position(|&byte| byte == b'\n')
                    .unwrap_or(0);
            } else {
                for (place, &byte) in part.iter().enumerate() {
                    if byte == b'\n' {
                        if self.quoted {
                            self.wrong = Some("a quote in it is not closed");
                            return (done + place).saturating_sub(self.length);
                        }
                        self.length = 0;
                        continue;
                    }
                    self.quoted ^= byte == b'"';
                    self.length += 1;
                    if self.length > LONGEST_LINE {
                        self.wrong = Some("it is longer than 64 KiB");
                        return (done + place + 1).saturating_sub(self.length);
                    }
                }
            }
            done += part.len();
        }
        done
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.wrong.is_none() {
            let read = self.file.read(buffer)?;
            let good = self.follow(&buffer[..read]);
            // What is in order comes first, so that the line of the error is the right one.
            if good > 0 || self.wrong.is_none() {
                return Ok(good);
            }
        }
        let reason = self.wrong.unwrap_or_default();
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
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
