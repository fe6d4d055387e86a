//! What several tests of the program read of it.

pub mod listings;
pub mod node;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All figures of `hcabench plot`.
pub const FIGURES: [&str; 9] = [
    "histogram",
    "median",
    "surface",
    "ecdf",
    "percentiles",
    "time",
    "load",
    "curves",
    "matrix",
];

/// How long a run may take to end after a signal. That it is a second is checked by `ci/measure check-signals`, where
/// nothing else runs; other work makes it longer.
pub fn end_after_signal() -> Duration {
    match std::env::var_os("HCABENCH_SIGNALS_WITHIN_A_SECOND") {
        Some(_) => Duration::from_secs(1),
        None => Duration::from_secs(60),
    }
}

/// Held by each test that measures: none beside another.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program: that of the environment variable HCABENCH_PROGRAM, which users run, or the one built beside this test.
pub fn program() -> PathBuf {
    match std::env::var_os("HCABENCH_PROGRAM") {
        Some(program) => fs::canonicalize(&program)
            .unwrap_or_else(|error| panic!("HCABENCH_PROGRAM is {program:?}: {error}")),
        None => PathBuf::from(env!("CARGO_BIN_EXE_hcabench")),
    }
}

/// The program with these words, quoted as in a shell.
pub fn hcabench(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(program());
    command
        .args(shlex::split(words).unwrap())
        .current_dir(folder);
    command
}

/// Runs it to its end, which must have this code. Returns what it wrote, errors however their lines are broken.
#[track_caller]
pub fn expect(folder: &Path, words: &str, code: i32) -> (String, String) {
    let output = hcabench(folder, words).env("COLUMNS", "100").output();
    let Output {
        status,
        stdout,
        stderr,
    } = output.unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(status.code(), Some(code), "{words}: {stdout}\n{stderr}");
    let stderr: Vec<&str> = stderr.split_whitespace().collect();
    (stdout, stderr.join(" "))
}

/// A row of a CSV file, by its columns.
pub type Row = HashMap<String, String>;

pub fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What it wrote to standard error.
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
