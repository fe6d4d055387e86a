//! What several tests of the program read of it.

pub(crate) mod figures;
#[cfg(target_arch = "x86_64")]
pub(crate) mod listings;
pub(crate) mod node;
pub(crate) mod sealed;

use crate::LIMIT;
use crate::program::{self, Ended, Program};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// That it is a second is checked by `ci/measure check-signals`, where nothing else runs.
pub(crate) fn end_after_signal() -> Duration {
    match std::env::var_os("HCABENCH_WITHIN_A_SECOND") {
        Some(_) => Duration::from_secs(1),
        None => Duration::from_secs(60),
    }
}

/// Held by each test that measures: none beside another.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn hcabench(folder: &Path, words: &str) -> Program {
    program::hcabench(words).in_folder(folder)
}

#[track_caller]
pub(crate) fn ends(folder: &Path, words: &str, code: i32) -> Ended {
    hcabench(folder, words).ends(code)
}

/// The same on a terminal of 100 columns. Returns what it wrote, errors however their lines are broken.
#[track_caller]
pub(crate) fn expect(folder: &Path, words: &str, code: i32) -> (String, String) {
    let ended = hcabench(folder, words).env("COLUMNS", "100").ends(code);
    let told = ended.told();
    (ended.stdout, told)
}

pub(crate) type Row = HashMap<String, String>;

pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

pub(crate) fn figure(row: &Row, column: &str) -> f64 {
    let cell = &row[column];
    cell.parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

pub(crate) fn number(row: &Row, column: &str) -> u64 {
    let cell = &row[column];
    cell.parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

pub(crate) fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    program::until(what, LIMIT, look)
}
