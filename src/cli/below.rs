//! Folders in and below a folder.

use std::fs;
use std::io;
use std::path::Path;

/// Folders in folders are searched to this depth.
pub(super) const DEPTH: usize = 6;

/// Visits a folder and those below it, unless `visit` returns that it contains no further ones. `refused` gets those that
/// cannot be read. Links could lead in a circle and are not followed.
pub(super) fn below(
    folder: &Path,
    visit: &mut dyn FnMut(&Path) -> bool,
    refused: &mut dyn FnMut(&Path, io::Error),
) {
    search(folder, DEPTH, visit, refused);
}

fn search(
    folder: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Path) -> bool,
    refused: &mut dyn FnMut(&Path, io::Error),
) {
    if !visit(folder) {
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return refused(folder, error),
    };
    for entry in entries {
        match entry {
            Ok(entry) => {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    search(&entry.path(), depth, visit, refused);
                }
            }
            Err(error) => refused(folder, error),
        }
    }
}
