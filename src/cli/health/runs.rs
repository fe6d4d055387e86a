//! The runs below a folder, judged, in order of time.

use std::path::Path;
use std::sync::Arc;

use super::standard::Standard;
use crate::arguments::UsageError;
use crate::bench::fabric::history::JudgedRun;
use crate::cli::stored_fabric::{StoredFabric, folders_below};
use crate::results::read::ReadError;
use crate::results::text::{printable, printable_path};

/// What is in and below a folder.
#[derive(Debug, Default)]
pub(super) struct JudgedRuns {
    /// In order of time.
    pub(super) runs: Vec<JudgedRun>,
    /// Folders whose runs do not count, with the reason.
    pub(super) left_out: Vec<(String, String)>,
    /// Runs that are marked as incomplete, and count.
    pub(super) incomplete: Vec<String>,
    /// What is damaged.
    pub(super) damaged: Vec<Arc<ReadError>>,
}

impl JudgedRuns {
    /// Judges all of them but one.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn below(
        folder: &Path,
        standard: &Standard,
        option: &str,
        but_for: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let folders = folders_below(folder).map_err(|error| {
            UsageError(format!(
                "{option}{}: it cannot be read: {error}; fix: name the folder that holds the runs",
                printable_path(folder)
            ))
        })?;
        let same = |path: &Path| path.canonicalize().ok();
        let but_for = but_for.and_then(same);
        let mut found = JudgedRuns::default();
        let mut judged = Vec::new();
        for path in folders {
            if but_for.is_some() && same(&path) == but_for {
                continue;
            }
            let name = path.display().to_string();
            let run = match StoredFabric::read(&path) {
                Ok(run) => run,
                Err(error) => {
                    found.left_out.push((name, error.to_string()));
                    continue;
                }
            };
            let damaged = run.fabric.damaged();
            if !damaged.is_empty() {
                // Rows that are lost would look like nodes that are.
                found.left_out.push((name, "files are damaged".to_owned()));
                found.damaged.extend(damaged);
                continue;
            }
            match standard.judge(&run) {
                Ok(one) => {
                    found
                        .incomplete
                        .extend(run.fabric.incomplete.is_some().then_some(name));
                    judged.push((run.began, path, one));
                }
                Err(reason) => found.left_out.push((name, reason)),
            }
        }
        judged.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        found.runs = judged.into_iter().map(|(.., run)| run).collect();
        Ok(found)
    }

    /// Folders that do not count, and why, a line each.
    pub(super) fn reasons(&self) -> Vec<String> {
        let reason = |(folder, reason): &(String, String)| {
            let has_name = reason.starts_with(folder.as_str());
            let text = if has_name {
                reason.clone()
            } else {
                format!("{folder}: {reason}")
            };
            printable(&text).into_owned()
        };
        self.left_out.iter().map(reason).collect()
    }
}
