//! Files of many rows, read as a stream.
//!
//! A file of 10 million messages has about 700 MB: nothing but a line is kept of it. A file without lines as hcabench
//! writes them is recognised by its beginning, and never kept as one large cell.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;

use crate::results::content::{self, BYTE_ORDER_MARK};
use crate::results::durable::open_regular;
use crate::results::read_error::{ReadError, ReadErrorKind};

/// The longest line of a file of rows; those of hcabench have some hundred bytes.
const LONGEST_LINE: usize = 1 << 16;

/// A CSV file, to be read row by row.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    lines: Lines,
    columns: Vec<String>,
    /// Whether it is known that its writer was interrupted: a last row that is not whole is then left out.
    pub(super) may_be_cut: bool,
    /// How many rows it must have, where that is known.
    pub(super) told: Option<u64>,
}

impl RowFile {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let why = "the samples are in it; copy it from where it was measured, or measure again";
        let file = open_regular(path).map_err(|cause| ReadError::opening(path, cause, why))?;
        let mut lines = Lines {
            file: BufReader::with_capacity(1 << 18, file),
            parser: csv_core::Reader::new(),
            number: 0,
            text: Vec::new(),
            before: Vec::new(),
            cells: vec![0; LONGEST_LINE],
            ends: vec![0; LONGEST_LINE],
        };
        lines.begin(path)?;
        if lines.next(path)? != LineStatus::Line {
            let reason = match lines.text.is_empty() {
                true => "it is empty, so that the header is not whole",
                false => "the header is not whole",
            };
            return Err(ReadError::truncated(path, 1, reason));
        }
        let header = lines.cells(path)?;
        let columns = (0..header.ends.len())
            .map(|place| String::from_utf8(header.cell(place).to_vec()))
            .collect::<Result<Vec<String>, _>>()
            .map_err(|_| ReadError::foreign(path, 1, "it is not text"))?;
        if let [only] = &columns[..]
            && let Some(reason) = content::wrong_separator(only)
        {
            return Err(ReadError::foreign(path, 1, reason));
        }
        Ok(RowFile {
            path: path.to_path_buf(),
            lines,
            columns,
            may_be_cut: false,
            told: None,
        })
    }

    /// Calls `take` with the cells of the named columns of each row, in the order of `columns`. Returns whether the
    /// file ended in the middle of a row, which is permitted only where its writer was interrupted.
    pub fn each(
        mut self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> Result<bool, ReadError> {
        let places = columns.iter().map(|column| self.place(column));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let (path, width) = (self.path.as_path(), self.columns.len());
        let (mut rows, mut repeated) = (0, None);
        loop {
            let line = self.lines.number + 1;
            match self.lines.next(path)? {
                LineStatus::Line => {}
                LineStatus::End => break,
                // Only the row at the end of the file can be cut off.
                LineStatus::Torn if self.may_be_cut => return Ok(true),
                LineStatus::Torn => {
                    let reason = "the last row is not whole";
                    return Err(ReadError::truncated(path, line, reason));
                }
            }
            if self.lines.is_repeated() {
                repeated.get_or_insert(line);
            }
            let row = self.lines.cells(path)?;
            if row.ends.len() != width {
                let reason = format!("{} cells under {width} columns", row.ends.len());
                return Err(ReadError::foreign(path, line, reason));
            }
            rows += 1;
            take(Cells {
                path,
                line,
                row,
                places: &places,
                columns,
            })?;
        }
        if let Some(told) = self.told.filter(|&told| told != rows) {
            let reason = format!("{rows} rows instead of the {told} in the summary");
            return Err(match repeated {
                _ if rows < told => ReadError::truncated(path, 0, reason),
                Some(line) => {
                    let reason = format!("{reason}; it is the same as the line before it");
                    ReadError::foreign(path, line, reason)
                }
                None => ReadError::foreign(path, 0, reason),
            });
        }
        Ok(false)
    }

    /// Whether it has these columns.
    pub(super) fn check(&self, columns: &[&str]) -> Result<(), ReadError> {
        columns
            .iter()
            .try_for_each(|column| self.place(column).map(drop))
    }

    fn place(&self, column: &str) -> Result<usize, ReadError> {
        let place = self.columns.iter().position(|name| name == column);
        place.ok_or_else(|| {
            let there = self.columns.join(", ");
            let there: String = there.chars().take(300).collect();
            let reason = format!("there is no column {column:?}, only {there}");
            ReadError::foreign(&self.path, 1, reason)
        })
    }
}

/// A file line by line, with room for one line and its cells.
#[derive(Debug)]
struct Lines {
    file: BufReader<File>,
    parser: csv_core::Reader,
    /// That of the line that was read last, from 1.
    number: u64,
    text: Vec<u8>,
    /// The line before it.
    before: Vec<u8>,
    cells: Vec<u8>,
    ends: Vec<usize>,
}

#[derive(Debug, PartialEq, Eq)]
enum LineStatus {
    Line,
    /// A line without its end, which is the last.
    Torn,
    End,
}

impl Lines {
    /// Recognises a file that is not text, and passes over a byte order mark.
    fn begin(&mut self, path: &Path) -> Result<(), ReadError> {
        let beginning = self.file.fill_buf();
        let beginning = beginning.map_err(|cause| ReadError::io(path, cause))?;
        if let Some(wrong) = ReadErrorKind::of_beginning(beginning) {
            return Err(wrong.at(path));
        }
        if beginning.starts_with(BYTE_ORDER_MARK) {
            self.file.consume(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Reads the next line. One that is too long is an error.
    fn next(&mut self, path: &Path) -> Result<LineStatus, ReadError> {
        self.number += 1;
        std::mem::swap(&mut self.text, &mut self.before);
        self.text.clear();
        let mut part = self.file.by_ref().take(LONGEST_LINE as u64);
        let read = part.read_until(b'\n', &mut self.text);
        match read.map_err(|cause| ReadError::io(path, cause))? {
            0 => Ok(LineStatus::End),
            _ if self.text.ends_with(b"\n") => Ok(LineStatus::Line),
            LONGEST_LINE => {
                let reason = "it is longer than 64 KiB";
                Err(ReadError::foreign(path, self.number, reason))
            }
            _ => Ok(LineStatus::Torn),
        }
    }

    /// Whether the line that was read is the same as the one before it.
    fn is_repeated(&self) -> bool {
        self.text == self.before
    }

    /// The cells of the line that was read. Quotes end where it does.
    fn cells(&mut self, path: &Path) -> Result<Line<'_>, ReadError> {
        self.parser.reset();
        let (text, cells, ends) = (&self.text, &mut self.cells, &mut self.ends);
        let (ReadRecordResult::Record, _, _, number) = self.parser.read_record(text, cells, ends)
        else {
            let reason = "it is empty, or a quote in it is not closed";
            return Err(ReadError::foreign(path, self.number, reason));
        };
        Ok(Line {
            text: &self.cells,
            ends: &self.ends[..number],
        })
    }
}

/// The cells of a line, one behind the other.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Line<'a> {
    fn cell(&self, place: usize) -> &'a [u8] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[place]]
    }
}

/// The asked cells of a row.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    path: &'a Path,
    line: u64,
    row: Line<'a>,
    places: &'a [usize],
    columns: &'a [&'a str],
}

impl Cells<'_> {
    pub fn bytes(&self, index: usize) -> &[u8] {
        self.row.cell(self.places[index])
    }

    /// The error of which the row is not as it should be.
    pub fn foreign(&self, reason: impl Into<String>) -> ReadError {
        ReadError::foreign(self.path, self.line, reason)
    }

    /// A cell as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, index: usize) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(index))
    }

    /// A cell as a finite number; `None` when it is empty.
    pub fn number(&self, index: usize) -> Result<Option<f64>, ReadError> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| {
            let reason = format!("{} is {text:?}, no number", self.columns[index]);
            ReadError::foreign(self.path, self.line, reason)
        })
    }

    /// A cell with decimals, rounded to a whole number; `None` when it is empty.
    pub fn rounded(&self, index: usize) -> Result<Option<i64>, ReadError> {
        let number = self.number(index)?;
        Ok(number.map(|number| number.round() as i64))
    }

    /// A cell as a whole number, `None` when it is empty.
    pub fn integer(&self, index: usize) -> Result<Option<i64>, ReadError> {
        let bytes = self.bytes(index);
        if bytes.is_empty() {
            return Ok(None);
        }
        let number = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| {
            let (column, text) = (self.columns[index], self.text(index));
            let reason =
                format!("{column} is {text:?}, which is not a whole number of nanoseconds");
            ReadError::foreign(self.path, self.line, reason)
        })
    }
}
