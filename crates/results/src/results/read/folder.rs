//! What the folders of runs, points and fabrics have in common.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use super::table::Table;
use crate::results::content::BEGINNING;
use crate::results::durable::open_regular;
use crate::results::folder::{MARK, MARK_BEGINS, PACKAGE, RUNS, SETTINGS, SUMMARY};
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::results::schema::fabric::{FABRIC, FROM, PAIRS, TIER, TO};
use crate::results::schema::{Column, POINT, ROUND, STATUS};
use crate::results::whole::whole;

/// Whether a folder holds results of a fabric.
pub(super) fn is_of_a_fabric(path: &Path) -> bool {
    path.join(PAIRS).exists() || path.join(FABRIC).exists()
}

/// Whether a folder has a file that only hcabench writes, damaged or not. Other programs have a `settings.json` and a
/// `summary.csv`, too.
pub fn is_of_hcabench(folder: &Path) -> bool {
    const MOST: u64 = 1 << 16;
    let begins = |name: &str| {
        let mut text = Vec::new();
        let file = open_regular(&folder.join(name)).ok()?;
        file.take(MOST).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    let has = |name: &str, words: &[&str]| {
        begins(name).is_some_and(|text| words.iter().all(|word| text.contains(word)))
    };
    let has_columns = |name: &str, columns: &[Column]| {
        let text = begins(name).unwrap_or_default();
        let header = text.lines().next().unwrap_or_default();
        let cells = || {
            header
                .split([',', ';', '\t'])
                .map(|cell| cell.trim_matches(['\u{feff}', '"']))
        };
        columns
            .iter()
            .all(|column| cells().any(|cell| cell == column.name))
    };
    has(SETTINGS, &["\"hcabench\":", "\"benchmark\":"])
        || has(FABRIC, &["\"hcabench\":", "\"engine\":"])
        || has(PACKAGE, &["\"hcabench:kind\":", "\"name\":"])
        || has(MARK, &[MARK_BEGINS])
        || has_columns(SUMMARY, &[POINT, STATUS])
        || has_columns(RUNS, &[POINT, ROUND, STATUS])
        || has_columns(PAIRS, &[FROM, TO, TIER])
}

pub(super) fn names_in(path: &Path) -> Result<BTreeSet<String>, ReadError> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => ReadErrorKind::NoSuchFolder.at(path),
        io::ErrorKind::NotADirectory => no_folder(path).at(path),
        _ => ReadError::io(path, cause),
    };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        names.insert(entry.file_name().to_string_lossy().into_owned());
    }
    if names.is_empty() {
        return Err(ReadErrorKind::EmptyFolder.at(path));
    }
    Ok(names)
}

/// What a file is that was named in place of a folder.
fn no_folder(path: &Path) -> ReadErrorKind {
    let mut beginning = Vec::new();
    let read =
        open_regular(path).and_then(|file| file.take(BEGINNING as u64).read_to_end(&mut beginning));
    let packed = ReadErrorKind::of_beginning(&beginning)
        .filter(|it| matches!(it, ReadErrorKind::Compressed(..)));
    packed
        .filter(|_| read.is_ok())
        .unwrap_or(ReadErrorKind::NotAFolder)
}

/// Why a folder is incomplete, by its mark.
pub(super) fn mark_of(folder: &Path) -> Result<Option<String>, ReadError> {
    let path = folder.join(MARK);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = whole(&path, "it was there a moment ago")?;
    let line = text.lines().next().unwrap_or_default();
    let reason = line.strip_prefix(MARK_BEGINS).unwrap_or(line).trim();
    Ok(Some(if reason.is_empty() {
        "the run has not ended yet, or was killed".to_owned()
    } else {
        reason.to_owned()
    }))
}

/// One of the tables of a run: the rows before the first that is damaged, and what is wrong with that. One that was
/// killed has rows as far as it came.
pub(super) fn salvage_table(
    path: &Path,
    name: &str,
    incomplete: bool,
) -> (Table, Option<ReadError>) {
    let file = path.join(name);
    let why = "it has the figures of all points; copy the folder whole";
    match whole(&file, why) {
        Err(error) if incomplete && error.is_missing() => (Table::default(), None),
        Ok(text) if incomplete => match text.rfind('\n') {
            Some(end) => Table::salvage(&file, &text[..=end]),
            None => (Table::default(), None),
        },
        Ok(text) => Table::salvage(&file, &text),
        Err(error) => (Table::default(), Some(error)),
    }
}
