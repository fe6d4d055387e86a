//! The figures of a run.

use std::path::Path;

use crate::report::page::Figure;
use crate::report::read::Run;

/// Those that can be drawn of it.
pub fn of(_run: &Run, _folder: &Path, _warnings: &mut Vec<String>) -> Vec<Figure> {
    Vec::new()
}
