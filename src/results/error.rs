//! What can go wrong while results are written, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use thiserror::Error;

use super::text::{printable, printable_path as shown};

/// A result that could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The file system has no space left, or the user's quota is used up.
    #[error(
        "cannot {operation} {}: {cause}; free some space there, or write the results elsewhere",
        shown(path)
    )]
    DiskFull {
        /// What was being done.
        operation: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The file system holds less than the results will take; nothing was measured yet.
    #[error(
        "{} has {} free, and the results may take {}; free some space there, or write the results elsewhere",
        shown(path), ByteSize(*free_bytes).display().iec(), ByteSize(*needed_bytes).display().iec()
    )]
    TooLittleSpace {
        /// The results folder.
        path: PathBuf,
        /// Bytes free to this user, with what would be replaced.
        free_bytes: u64,
        /// Bytes asked for.
        needed_bytes: u64,
    },
    /// The place may not be written to.
    #[error(
        "cannot {operation} {}: {cause}; make it writable for this user, or write the results elsewhere",
        shown(path)
    )]
    NotWritable {
        /// What was being done.
        operation: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The folder holds results of an earlier run.
    #[error(
        "{} already holds results ({}); choose another folder, or replace them with --force",
        shown(path),
        printable(found)
    )]
    ExistingResults {
        /// The results folder.
        path: PathBuf,
        /// The file or folder that shows it.
        found: String,
    },
    /// There is no run to go on with.
    #[error(
        "{} holds no run that could be resumed; give the folder that --out named",
        shown(path)
    )]
    NothingToResume {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds what looks like results, but is not on the list of files that hcabench wrote there.
    #[error(
        "{} holds {}, which is not on its list of files that hcabench wrote; \
         nothing was removed: move it away, or choose another folder",
        shown(path),
        printable(found)
    )]
    ForeignResults {
        /// The results folder.
        path: PathBuf,
        /// The file or folder in question.
        found: String,
    },
    /// A name that cannot be one of a file or folder among the results.
    #[error(
        "{name:?} cannot be a name among the results in {}: {reason}",
        shown(path)
    )]
    BadName {
        /// The folder.
        path: PathBuf,
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The whole was to be called complete while parts of it were not.
    #[error(
        "{} cannot be marked as complete: {unfinished} of its points are not",
        shown(path)
    )]
    UnfinishedPoints {
        /// The results folder.
        path: PathBuf,
        /// Points begun and not completed.
        unfinished: usize,
    },
    /// A row or document that the format cannot hold, or that does not fit the rows before it.
    #[error("cannot {operation} {}: {}", shown(path), printable(reason))]
    Unfit {
        /// What was being done.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// Any other failure of the system.
    #[error("cannot {operation} {}: {cause}", shown(path))]
    Io {
        /// What was being done.
        operation: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}

impl ReportError {
    /// A failure of the CSV writer or reader.
    pub(super) fn from_csv(operation: &'static str, path: &Path, cause: csv::Error) -> Self {
        let reason = cause.to_string();
        match cause.into_kind() {
            csv::ErrorKind::Io(cause) => Self::from_io(operation, path, cause),
            _ => Self::unfit(operation, path, reason),
        }
    }

    /// A row or document that does not fit.
    pub(super) fn unfit(operation: &'static str, path: &Path, reason: impl Into<String>) -> Self {
        Self::Unfit {
            operation,
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    /// Sorts the system's answer to `operation` ("write to", "create") on `path` into the case that it is.
    pub fn from_io(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        let path = path.to_path_buf();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                operation,
                path,
                cause,
            },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable {
                    operation,
                    path,
                    cause,
                }
            }
            _ => Self::Io {
                operation,
                path,
                cause,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(errno: i32) -> ReportError {
        ReportError::from_io(
            "write to",
            Path::new("a/b.csv"),
            io::Error::from_raw_os_error(errno),
        )
    }

    #[test]
    fn answers_are_told_apart() {
        for errno in [libc::ENOSPC, libc::EDQUOT] {
            assert!(
                matches!(sorted(errno), ReportError::DiskFull { .. }),
                "{errno}"
            );
        }
        for errno in [libc::EACCES, libc::EPERM, libc::EROFS] {
            assert!(
                matches!(sorted(errno), ReportError::NotWritable { .. }),
                "{errno}"
            );
        }
        assert!(matches!(sorted(libc::EIO), ReportError::Io { .. }));
    }

    #[test]
    fn says_operation_path_cause_and_remedy() {
        let text = sorted(libc::ENOSPC).to_string();
        assert!(
            text.starts_with("cannot write to a/b.csv: No space left on device"),
            "{text}"
        );
        assert!(text.contains("free some space"), "{text}");
        let text = ReportError::TooLittleSpace {
            path: "results".into(),
            free_bytes: 1 << 20,
            needed_bytes: 3 << 30,
        }
        .to_string();
        assert!(
            text.starts_with("results has 1.0 MiB free, and the results may take 3.0 GiB;"),
            "{text}"
        );
    }
}
