//! What can go wrong while results are written, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use thiserror::Error;

use super::text::{printable, printable_path as shown};

/// A result that could not be written. Variants begin with what was being done, and the file or folder that it was done
/// to; or with the folder alone.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The system's answer to an operation, with what to do about it.
    #[error("cannot {} {}: {}{}", .0, shown(.1), .2, remedy(.2))]
    Failed(&'static str, PathBuf, io::Error),
    /// A row or document that the format cannot hold, or that does not fit the rows before it; what does not fit.
    #[error("cannot {} {}: {}", .0, shown(.1), printable(.2))]
    Unfit(&'static str, PathBuf, String),
    /// The file system holds less than the results, or the next round, will take: bytes free to this user, with what
    /// would be replaced, and bytes asked for.
    #[error(
        "{} has {} free, and the results may take {}; free some space there, or write the results elsewhere",
        shown(.0), ByteSize(*.1).display().iec(), ByteSize(*.2).display().iec()
    )]
    TooLittleSpace(PathBuf, u64, u64),
    /// The folder holds results of an earlier run; the file or folder that shows it.
    #[error(
        "{} already holds results ({}); choose another folder, or replace them with --force",
        shown(.0), printable(.1)
    )]
    ExistingResults(PathBuf, String),
    /// A symbolic link in the path of the folder, and what it leads to, which does not exist.
    #[error(
        "{} is a symbolic link to {}, which does not exist; make that folder, or choose another path",
        shown(.0), shown(.1)
    )]
    DanglingLink(PathBuf, PathBuf),
    /// There is no run in the folder to go on with.
    #[error("{} holds no run that could be resumed; give the folder that --out named", shown(.0))]
    NothingToResume(PathBuf),
    /// Another process writes to the folder.
    #[error("{} is in use: a run writes to it, or what is left of one; wait until it has ended", shown(.0))]
    InUse(PathBuf),
    /// The folder holds a file or folder that looks like results, but is not on the list of those that hcabench wrote
    /// there.
    #[error(
        "{} holds {}, which is not on its list of files that hcabench wrote; \
         nothing was removed: move it away, or choose another folder",
        shown(.0), printable(.1)
    )]
    ForeignResults(PathBuf, String),
    /// A name that cannot be one of a file or folder among the results, and why not.
    #[error("{:?} cannot be a name among the results in {}: {}", .1, shown(.0), .2)]
    BadName(PathBuf, String, &'static str),
    /// The folder was to be marked complete while this many of its points were not.
    #[error("{} cannot be marked as complete: {} of its points are not", shown(.0), .1)]
    UnfinishedPoints(PathBuf, usize),
}

/// What to do so that it does not fail again, if that is known.
fn remedy(cause: &io::Error) -> &'static str {
    if cause.raw_os_error() == Some(libc::EMFILE) {
        return "; raise the limit on open files with ulimit -n";
    }
    match cause.kind() {
        io::ErrorKind::FileTooLarge => "; raise the limit on the size of a file with ulimit -f",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there, or write the results elsewhere"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; make it writable for this user, or write the results elsewhere"
        }
        _ => "",
    }
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
    pub fn unfit(operation: &'static str, path: &Path, reason: impl Into<String>) -> Self {
        Self::Unfit(operation, path.to_path_buf(), reason.into())
    }

    /// The system's answer to `operation` ("write to", "create") on `path`.
    pub fn from_io(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Failed(operation, path.to_path_buf(), cause)
    }

    /// Whether there is no space left.
    #[cfg(test)]
    pub(super) fn is_full(&self) -> bool {
        self.to_string().contains("free some space there")
    }

    /// As [`from_io`](Self::from_io), for `map_err`.
    pub(super) fn on<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl Fn(io::Error) -> Self + Copy + 'a {
        move |cause| Self::from_io(operation, path, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_operation_path_cause_and_remedy() {
        let full = "free some space there, or write the results elsewhere";
        let forbidden = "make it writable for this user, or write the results elsewhere";
        for (errno, told) in [
            (libc::ENOSPC, full),
            (libc::EDQUOT, full),
            (libc::EACCES, forbidden),
            (libc::EPERM, forbidden),
            (libc::EROFS, forbidden),
            (libc::EFBIG, "ulimit -f"),
            (libc::EMFILE, "ulimit -n"),
            (libc::EIO, "Input/output error (os error 5)"),
        ] {
            let cause = io::Error::from_raw_os_error(errno);
            let error = ReportError::from_io("write to", Path::new("a/b.csv"), cause);
            let error = error.to_string();
            assert!(error.starts_with("cannot write to a/b.csv: "), "{error}");
            assert!(error.ends_with(told), "{error}");
        }
        let error = ReportError::TooLittleSpace("results".into(), 1 << 20, 3 << 30);
        let told = "results has 1.0 MiB free, and the results may take 3.0 GiB;";
        assert!(error.to_string().starts_with(told), "{error}");
    }
}
