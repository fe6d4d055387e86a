//! A run as comparisons see it: with the rounds that are whole.

use std::path::Path;

use crate::results::document::unusual_c_library;
use crate::results::read::{ReadError, Row, Run};
use crate::results::schema::{COMPLETE, FAILURE, STARTED_AT, STATUS};

/// Reads what can be read of the folder of a run, or of one of its points. Of rounds that are not whole only the reason
/// is kept.
pub fn open(path: &Path) -> Result<Run, ReadError> {
    let mut run = Run::salvage(path)?;
    let is_whole = |round: &Row| round.text(STATUS.name) == Some(COMPLETE);
    for point in &mut run.points {
        if let Some(broken) = point.rounds.iter().find(|round| !is_whole(round)) {
            let reason = broken.text(FAILURE.name).unwrap_or_default();
            point.incomplete.get_or_insert_with(|| reason.to_owned());
        }
        point.rounds.retain(is_whole);
    }
    Ok(run)
}

/// The version and commit of hcabench that measured it, and the C library where it is not the usual one.
pub fn version(run: &Run) -> String {
    let program = &run.document()["hcabench"];
    let commit = program["commit"].as_str().unwrap_or("commit unknown");
    let version = run.version().unwrap_or("unknown");
    match program["c_library"].as_str().and_then(unusual_c_library) {
        None => format!("{version} ({commit})"),
        Some(library) => format!("{version} ({commit}, {library})"),
    }
}

/// When its first round was begun, and its last: as RFC 3339 in UTC, of which the order of the texts is that of the
/// moments.
pub fn time_range(run: &Run) -> Option<(&str, &str)> {
    let rounds = run.points.iter().flat_map(|point| &point.rounds);
    let times = rounds.filter_map(|round| round.text(STARTED_AT.name));
    Some((times.clone().min()?, times.max()?))
}
