//! What can be wrong with results that are read back, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::content::{self, NotText};
use super::durable::dangling_link;
use super::text::{printable, printable_path};

#[derive(Debug, Error)]
pub struct ReadError {
    pub path: PathBuf,
    pub wrong: ReadErrorKind,
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable_path(&self.path);
        match &self.wrong {
            ReadErrorKind::Io(cause) => write!(formatter, "cannot read {path}: {cause}"),
            wrong => write!(formatter, "{path} {wrong}"),
        }
    }
}

/// What is wrong with a folder or file. Lines count from 1; 0 where the line is not known.
#[derive(Debug, Error)]
pub enum ReadErrorKind {
    #[error("does not exist; give the folder that --out named, or that of one of its points")]
    NoSuchFolder,
    /// What the symbolic link leads to.
    #[error("is a symbolic link to {}, which does not exist", printable_path(.0))]
    DanglingLink(PathBuf),
    #[error("is not a folder; give the folder of a run, or that of one of its points")]
    NotAFolder,
    #[error("is empty; give the folder that --out named")]
    EmptyFolder,
    /// What is in the folder are no results: what is missing, or what is there.
    #[error(
        "holds no results of hcabench: {}; give the folder that --out named, or that of one of its points",
        printable(.0)
    )]
    NoResults(String),
    /// They are of a fabric, where those of a benchmark with points were asked for.
    #[error(
        "holds a fabric, which hcabench fabric wrote: only hcabench report, hcabench compare and hcabench plot matrix \
         read it"
    )]
    OfAFabric,
    /// They are of no fabric, where those of one were asked for.
    #[error("holds no fabric: {0} is not in it, and only the folder of hcabench fabric has it")]
    OfNoFabric(&'static str),
    #[error(
        "was written by an older hcabench (results format 1); this version reads format 2; measure again"
    )]
    OlderFormat,
    /// A newer version wrote it, in this format.
    #[error("was written by a newer hcabench (results format {0}); this version reads format 2")]
    NewerFormat(u64),
    /// The run ended before its first point was measured: the reason in its mark.
    #[error("holds a run that ended before anything was measured: {}", printable(.0))]
    NothingMeasured(String),
    /// A file that belongs to the results is not there: why it should be, and what to do.
    #[error("is missing: {}", printable(.0))]
    MissingFile(String),
    /// A file ends in the middle of a row or document: the line, and how it shows.
    #[error("is cut off {}: {}; copy it again, or measure again", place(*.0), printable(.1))]
    Truncated(u64, String),
    /// A file does not have the content of its name: the line, and what is wrong.
    #[error(
        "is not as hcabench writes it, {}: {}; it was changed, or is another program's",
        place(*.0), printable(.1)
    )]
    Foreign(u64, String),
    /// A file was compressed by this program, and this one reverses it.
    #[error(
        "is compressed with {0}, and only plain files are read; unpack it with {1}, and give it its name again"
    )]
    Compressed(&'static str, &'static str),
    /// A file that is read in one piece is too large for that: its bytes, and the limit.
    #[error("has {0} bytes, and at most {1} are read in one piece; it is not a result of hcabench")]
    TooLarge(u64, u64),
    /// Any other failure of the system.
    #[error("{0}")]
    Io(io::Error),
}

fn place(line: u64) -> String {
    match line {
        0 => "at its end".to_owned(),
        _ => format!("in line {line}"),
    }
}

impl ReadErrorKind {
    /// What is wrong with a file that begins like this; `None` where it may be text.
    pub(super) fn of_beginning(beginning: &[u8]) -> Option<Self> {
        Some(match content::recognised(beginning)? {
            NotText::Compressed(by, unpack) => ReadErrorKind::Compressed(by, unpack),
            NotText::Utf16 => {
                let reason = "it is not text in UTF-8 but in UTF-16: save it as UTF-8";
                ReadErrorKind::Foreign(1, reason.to_owned())
            }
        })
    }

    /// The error of a folder or file of which this is wrong. Where a link leads nowhere, that is what is wrong.
    pub fn at(self, path: &Path) -> ReadError {
        let is_missing = matches!(self, Self::NoSuchFolder | Self::MissingFile(_));
        let link = is_missing.then(|| dangling_link(path)).flatten();
        let (path, wrong) = match link {
            Some((link, target)) => (link, Self::DanglingLink(target)),
            None => (path, self),
        };
        ReadError {
            path: path.to_path_buf(),
            wrong,
        }
    }
}

impl ReadError {
    /// Whether another command, or another folder, would have been right: nothing is wrong with the results.
    pub fn is_misuse(&self) -> bool {
        matches!(
            self.wrong,
            ReadErrorKind::OfAFabric | ReadErrorKind::OfNoFabric(_)
        )
    }

    /// Whether it is that a file is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self.wrong, ReadErrorKind::MissingFile(_))
    }

    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        ReadErrorKind::Io(cause).at(path)
    }

    /// A failure to open a file, with its purpose in `why`.
    pub(super) fn opening(path: &Path, cause: io::Error, why: &str) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound => {
                let packed = content::packed_beside(path);
                let why = packed.unwrap_or_else(|| why.to_owned());
                ReadErrorKind::MissingFile(why).at(path)
            }
            _ => ReadError::io(path, cause),
        }
    }

    /// Whether a file is damaged: not what another version, another command or a run without points would explain.
    pub fn is_damage(&self) -> bool {
        matches!(
            self.wrong,
            ReadErrorKind::MissingFile(_)
                | ReadErrorKind::DanglingLink(_)
                | ReadErrorKind::Truncated(..)
                | ReadErrorKind::Foreign(..)
                | ReadErrorKind::Compressed(..)
                | ReadErrorKind::TooLarge(..)
                | ReadErrorKind::Io(_)
        )
    }

    /// A document that is not JSON, or not all of it.
    pub(super) fn json(path: &Path, cause: &serde_json::Error) -> Self {
        let (line, reason) = (cause.line() as u64, cause.to_string());
        match cause.is_eof() {
            true => ReadError::truncated(path, line, reason),
            false => ReadError::foreign(path, line, reason),
        }
    }

    pub fn foreign(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        ReadErrorKind::Foreign(line, reason.into()).at(path)
    }

    pub(crate) fn truncated(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        ReadErrorKind::Truncated(line, reason.into()).at(path)
    }
}
