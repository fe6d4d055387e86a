//! The command line as typed: how values are read, and what was given.

pub(crate) mod conditions;
pub(crate) mod values;

use std::ffi::OsString;
use std::sync::OnceLock;

/// Bad input that was found after the command line was parsed; exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The command line without the program's name, with the options of files in it.
static EXPANDED: OnceLock<Vec<OsString>> = OnceLock::new();

/// The command line of this process, without the program's name: what a child of it is started with.
pub(crate) fn expanded_arguments() -> &'static [OsString] {
    EXPANDED.get().map_or(&[], Vec::as_slice)
}

/// Keeps the command line of this process, with the program's name and the options of files in it.
pub(crate) fn keep(expanded: Vec<OsString>) {
    let _ = EXPANDED.set(expanded.into_iter().skip(1).collect());
}
