//! What can be wrong with results that are read back, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::results::text::{printable, printable_path as shown};

/// Results that cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is nothing of that name.
    #[error(
        "{} does not exist; give the folder that --out named, or that of one of its points",
        shown(path)
    )]
    NoSuchFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// It is a file.
    #[error(
        "{} is no folder; give the folder of a run, or that of one of its points",
        shown(path)
    )]
    NotAFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// There is nothing in the folder.
    #[error("{} is empty; give the folder that --out named", shown(path))]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
    /// What is in the folder are no results.
    #[error(
        "{} holds no results of hcabench: {}; give the folder that --out named, or that of one of its points",
        shown(path),
        printable(reason)
    )]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// What is missing, or what is there.
        reason: String,
    },
    /// An older version wrote it.
    #[error(
        "{} was written by an older hcabench (results format 1); this version reads format 2; measure again, or use hcabench 0.1",
        shown(path)
    )]
    OlderFormat {
        /// The folder or file.
        path: PathBuf,
    },
    /// A newer version wrote it.
    #[error(
        "{} was written by a newer hcabench (results format {format}); this version reads format 2",
        shown(path)
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// The run ended before its first point was measured.
    #[error(
        "{} holds a run that ended before anything was measured: {}",
        shown(path),
        printable(reason)
    )]
    NothingMeasured {
        /// The folder.
        path: PathBuf,
        /// What its mark says.
        reason: String,
    },
    /// A file that belongs to the results is not there.
    #[error("{} is missing: {}", shown(path), printable(why))]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// Why it should be there, and what to do.
        why: String,
    },
    /// A file ends in the middle of a row or document.
    #[error("{} is cut off {}: {}; copy it again, or measure again", shown(path), place(*line), printable(reason))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 where that is not known.
        line: u64,
        /// How it shows.
        reason: String,
    },
    /// A file is not what its name says.
    #[error("{} is not as hcabench writes it, {}: {}; it was changed, or is another program's", shown(path), place(*line), printable(reason))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 where that is not known.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A file that is read in one piece is too large for that.
    #[error(
        "{} has {bytes} bytes, where {most} are the most that is read in one piece; it is no result of hcabench",
        shown(path)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// Any other failure of the system.
    #[error("cannot read {}: {cause}", shown(path))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}

fn place(line: u64) -> String {
    if line == 0 {
        "at its end".to_owned()
    } else {
        format!("in line {line}")
    }
}

impl ReadError {
    pub(crate) fn older(path: &Path) -> Self {
        ReadError::OlderFormat {
            path: path.to_path_buf(),
        }
    }

    pub(super) fn io(path: &Path, cause: io::Error) -> Self {
        ReadError::Io {
            path: path.to_path_buf(),
            cause,
        }
    }

    /// A failure to open a file, of which `why` says what it would be there for.
    pub(super) fn opening(path: &Path, cause: io::Error, why: &str) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound => ReadError::MissingFile {
                path: path.to_path_buf(),
                why: why.to_owned(),
            },
            _ => ReadError::io(path, cause),
        }
    }

    pub(crate) fn foreign(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        ReadError::Foreign {
            path: path.to_path_buf(),
            line,
            reason: reason.into(),
        }
    }

    pub(crate) fn truncated(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        ReadError::Truncated {
            path: path.to_path_buf(),
            line,
            reason: reason.into(),
        }
    }
}
