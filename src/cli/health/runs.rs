//! The runs below a folder, judged, in order of time.

use std::path::Path;
use std::sync::Arc;

use super::standard::Standard;
use crate::arguments::UsageError;
use crate::bench::fabric::history::JudgedRun;
use crate::cli::stored_fabric::{StoredFabric, differs, folders_below};
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
    /// What cannot be read, with the reason.
    pub(super) unreadable: Vec<String>,
    /// What is damaged.
    pub(super) damaged: Vec<Arc<ReadError>>,
}

impl JudgedRuns {
    /// Judges all of them but the one that was just measured, whose settings and nodes theirs must be like.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn below(
        folder: &Path,
        standard: &Standard,
        option: &str,
        measured: Option<&StoredFabric>,
    ) -> anyhow::Result<Self> {
        let (folders, failed) = folders_below(folder).map_err(|error| {
            UsageError(format!(
                "{option}{}: it cannot be read: {error}; fix: name the folder that holds the runs",
                printable_path(folder)
            ))
        })?;
        let same = |path: &Path| path.canonicalize().ok();
        let but_for = measured.and_then(|run| same(&run.fabric.path));
        let mut found = JudgedRuns {
            unreadable: failed,
            ..JudgedRuns::default()
        };
        let mut stored = Vec::new();
        for path in folders {
            if but_for.is_some() && same(&path) == but_for {
                continue;
            }
            let name = path.display().to_string();
            let run = match StoredFabric::read(&path) {
                Ok(run) => run,
                Err(error) => {
                    // Bad input is of a run that ended early; all else is not there to be read.
                    if !error.is::<UsageError>() {
                        found
                            .unreadable
                            .push(format!("{}: {error}", printable_path(&path)));
                    } else {
                        found.left_out.push((name, error.to_string()));
                    }
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
            stored.push(run);
        }
        stored.sort_by(|one, other| {
            (one.began, &one.fabric.path).cmp(&(other.began, &other.fabric.path))
        });
        found.leave_out_copies(&mut stored);
        found.take(stored, standard, measured);
        Ok(found)
    }

    /// A run that was copied counts once.
    fn leave_out_copies(&mut self, stored: &mut Vec<StoredFabric>) {
        let mut kept: Vec<StoredFabric> = Vec::new();
        for run in std::mem::take(stored) {
            match kept.iter().find(|it| it.is_same_as(&run)) {
                Some(same) => {
                    let reason = format!("it is a copy of {}", printable_path(&same.fabric.path));
                    self.left_out.push((run.folder(), reason));
                }
                None => kept.push(run),
            }
        }
        *stored = kept;
    }

    /// Judges runs that belong together: without a baseline, those with the settings of the newest one and with nodes
    /// of later ones.
    fn take(
        &mut self,
        stored: Vec<StoredFabric>,
        standard: &Standard,
        measured: Option<&StoredFabric>,
    ) {
        let newest = measured.or(stored.last());
        let newest = newest.map(|run| run.fabric.document().clone());
        let mut known = std::collections::BTreeSet::new();
        known.extend(measured.into_iter().flat_map(StoredFabric::names));
        let mut judged = Vec::new();
        for run in stored.into_iter().rev() {
            let name = run.folder();
            let names: Vec<String> = run.names().collect();
            let reason = match (&standard.baseline, &newest) {
                (None, Some(newest)) => {
                    let differs = differs([newest, run.fabric.document()]);
                    let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
                    let is_of_another =
                        !known.is_empty() && names.iter().all(|it| !known.contains(it));
                    match (differs.is_empty(), is_of_another) {
                        (false, _) => Some(format!(
                            "its settings differ from those of the newest run in {}",
                            differs.join("; ")
                        )),
                        (_, true) => Some(
                            "none of its nodes is in a later run: it is of another cluster"
                                .to_owned(),
                        ),
                        _ => None,
                    }
                }
                _ => None,
            };
            let found = reason.map_or_else(|| standard.judge(&run), Err);
            match found {
                Ok(one) => {
                    known.extend(names);
                    self.incomplete
                        .extend(run.fabric.incomplete.is_some().then_some(name));
                    judged.push(one);
                }
                Err(reason) => self.left_out.push((name, reason)),
            }
        }
        judged.reverse();
        self.left_out.sort();
        self.incomplete.sort();
        self.runs = judged;
    }

    /// What must be known of the runs, a line each.
    pub(super) fn remarks(&self) -> Vec<String> {
        let unreadable = self.unreadable.iter();
        let unreadable = unreadable.map(|reason| format!("not read: {}", printable(reason)));
        let left_out = self.reasons().into_iter();
        let left_out = left_out.map(|reason| format!("left out: {reason}"));
        let incomplete = self.incomplete.iter();
        let incomplete = incomplete
            .map(|folder| format!("{} is incomplete; what it has counts", printable(folder)));
        unreadable.chain(left_out).chain(incomplete).collect()
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
