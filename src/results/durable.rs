//! Writing so that a power failure leaves either the old state or the new one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::ReportError;

/// Makes the creation, renaming and removal of files in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ReportError> {
    match File::open(folder).and_then(|opened| opened.sync_all()) {
        // File systems shared with a virtual machine may not know how to sync a folder; they order such changes themselves.
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => Ok(()),
        Err(cause) => Err(ReportError::from_io("sync the folder", folder, cause)),
        Ok(()) => Ok(()),
    }
}

/// The folder that `path` lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where [`replace`] prepares the new contents of `path`; a killed process may leave it behind.
pub(crate) fn partial_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// Writes `path` in one piece: whole under its name and durable on return, or untouched.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let partial = partial_path(path);
    let written = write_whole(&partial, path, write).and_then(|()| {
        fs::rename(&partial, path)
            .map_err(|cause| ReportError::from_io("put in place", path, cause))
    });
    if written.is_err() {
        // What failed is reported; a leftover that cannot be removed either changes nothing about it.
        let _ = fs::remove_file(&partial);
    }
    written?;
    sync_folder(folder_of(path))
}

fn write_whole(
    partial: &Path,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let failed = |operation, cause: io::Error| ReportError::from_io(operation, path, cause);
    let file = File::create(partial).map_err(|cause| failed("create", cause))?;
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    buffered.flush().map_err(|cause| failed("write", cause))?;
    buffered
        .get_ref()
        .sync_all()
        .map_err(|cause| failed("sync", cause))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes the next [`replace`] of `path` write to a device that is always full.
    pub(crate) fn fill_the_disk_for(path: &Path) {
        std::os::unix::fs::symlink("/dev/full", partial_path(path)).unwrap();
    }

    fn put(path: &Path, text: &str) -> Result<(), ReportError> {
        replace(path, |out| {
            out.write_all(text.as_bytes())
                .map_err(|cause| ReportError::from_io("write", path, cause))
        })
    }

    #[test]
    fn replaces_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        put(&path, "old").unwrap();
        put(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_leaves_the_old_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        put(&path, "old").unwrap();
        fill_the_disk_for(&path);
        let error = put(&path, "new").unwrap_err();
        assert!(matches!(error, ReportError::DiskFull { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
