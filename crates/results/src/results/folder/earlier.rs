//! What an earlier run left in a results folder: recognised by its marks, removed by its list.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use super::{LIST, MARK, MARK_BEGINS, SETTINGS, SUMMARY};
use crate::results::durable::{open_regular, partial_path};
use crate::results::error::ReportError;
use crate::results::schema::Schema;

/// What an earlier run left in a folder.
#[derive(Debug, Default)]
pub(super) struct EarlierContent {
    /// What shows that there are results.
    pub(super) evidence: Option<String>,
    /// What looks like results and is not on the list.
    pub(super) unlisted: Option<String>,
    /// The entries of the list that may be followed.
    pub(super) listed: BTreeSet<String>,
}

impl EarlierContent {
    /// Looks into `path`, which need not exist.
    pub(super) fn find(path: &Path) -> Result<Self, ReportError> {
        let failed = |cause| ReportError::from_io("look into", path, cause);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(cause) => return Err(failed(cause)),
        };
        let mut earlier = Self::default();
        match open_regular(&path.join(LIST)).and_then(io::read_to_string) {
            Ok(list) => {
                earlier.evidence = Some(LIST.to_owned());
                earlier.listed = list
                    .lines()
                    .filter(|line| stays_inside(line))
                    .map(str::to_owned)
                    .collect();
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(ReportError::from_io("read", &path.join(LIST), cause)),
        }
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let (shows_results, on_list) = match is_folder {
                true => (is_point(&entry.path()), format!("{name}/")),
                false => (name == SUMMARY || name == MARK, name.clone()),
            };
            if shows_results {
                let ours = !is_folder && name == MARK && is_our_mark(&entry.path());
                if !ours && !earlier.listed.contains(&on_list) {
                    earlier.unlisted.get_or_insert_with(|| name.clone());
                }
                earlier.evidence = Some(name);
            }
        }
        Ok(earlier)
    }

    /// Bytes that removing the earlier run would free.
    pub(super) fn bytes(&self, path: &Path) -> u64 {
        let found = |entry: &String| path.join(entry).symlink_metadata().ok();
        let found = self.listed.iter().filter_map(found);
        let files = found.filter(fs::Metadata::is_file);
        files.map(|metadata| metadata.len()).sum()
    }

    /// Removes what is on the list, the files first, then the folders that are empty; the list itself goes last.
    pub(super) fn remove(&self, path: &Path) -> Result<(), ReportError> {
        let (folders, files): (Vec<_>, Vec<_>) =
            self.listed.iter().partition(|entry| entry.ends_with('/'));
        for entry in files {
            // A folder replaced by a symbolic link would lead elsewhere.
            let file = path.join(entry);
            let is_whole = |(folder, _): (&str, &str)| is_true_folder(&path.join(folder));
            if entry.split_once('/').is_none_or(is_whole) {
                remove(&file, |file| fs::remove_file(file))?;
                remove_partial(&file)?;
            }
        }
        for entry in folders {
            let folder = path.join(entry.trim_end_matches('/'));
            if is_true_folder(&folder) {
                remove_partial(&folder.join(MARK))?;
                remove(&folder, |folder| match fs::remove_dir(folder) {
                    Err(cause) if cause.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                    other => other,
                })?;
            }
        }
        remove_partial(&path.join(MARK))?;
        remove(&path.join(LIST), |file| fs::remove_file(file))
    }
}

/// Removes what a killed process left of a file that it was writing; other objects than files are not ours.
fn remove_partial(file: &Path) -> Result<(), ReportError> {
    let partial = partial_path(file);
    let found = partial.symlink_metadata();
    if found.is_ok_and(|found| found.is_file()) {
        remove(&partial, |file| fs::remove_file(file))?;
    }
    Ok(())
}

fn remove(path: &Path, remover: impl Fn(&Path) -> io::Result<()>) -> Result<(), ReportError> {
    match remover(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(ReportError::from_io("remove the earlier", path, cause))
        }
        _ => Ok(()),
    }
}

pub(super) fn is_true_folder(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir())
}

fn is_our_mark(path: &Path) -> bool {
    let mut text = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(MARK_BEGINS.len() as u64).read_to_end(&mut text))
        .is_ok_and(|_| text.is_empty() || text == MARK_BEGINS.as_bytes())
}

pub(super) fn is_point(folder: &Path) -> bool {
    let mut samples = Schema::ALL.into_iter().flat_map(|schema| schema.samples);
    is_our_mark(&folder.join(MARK))
        || (folder.join(SETTINGS).exists() && samples.any(|file| folder.join(file.name).exists()))
}

/// Whether a line of the list names a file or folder at the top or in a folder at the top, as we write them.
pub(super) fn stays_inside(line: &str) -> bool {
    let mut depth = 0;
    let plain = Path::new(line).components().all(|component| {
        depth += 1;
        matches!(component, Component::Normal(_))
    });
    plain && (1..=2).contains(&depth)
}
