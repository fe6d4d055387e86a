//! The files of the library: a folder with descriptions of nodes and services, and shared memory.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::SHARED_MEMORY;
use crate::node::NodeError;

/// How the names of folders end.
const SUFFIX: &str = ".iceoryx2";
const ADVICE: &str = "check that it can be written and has room (df); TMPDIR names another place";

/// The folder of a run.
pub(super) fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{name}{SUFFIX}"))
}

/// How the names of the shared memory of a run begin.
pub(super) fn prefix(name: &str) -> String {
    format!("{name}_")
}

/// The files of a run: they are removed when this is dropped, also those of processes that were killed. Those of a run
/// that was killed itself are removed by the next one.
#[derive(Debug)]
pub struct RunFiles {
    name: String,
    /// Locked as long as the run goes on.
    _folder: File,
}

impl RunFiles {
    /// Makes the folder of a run.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn new(name: &str) -> Result<Self, NodeError> {
        remove_abandoned(&std::env::temp_dir());
        let place = folder(name);
        // No other run finds it before it is locked.
        let hidden = place.with_extension("new");
        let failed = || NodeError::io("make the folder", place.display(), ADVICE);
        DirBuilder::new()
            .mode(0o700)
            .create(&hidden)
            .map_err(failed())?;
        let locked = File::open(&hidden).and_then(|folder| {
            folder.lock()?;
            fs::rename(&hidden, &place)?;
            Ok(folder)
        });
        let locked = locked.map_err(|error| {
            let _ = fs::remove_dir(&hidden);
            failed()(error)
        })?;
        Ok(RunFiles {
            name: name.to_owned(),
            _folder: locked,
        })
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        remove(&self.name, &folder(&self.name));
    }
}

/// What cannot be removed stays.
fn remove(name: &str, folder: &Path) {
    let prefix = prefix(name);
    for entry in fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir_all(folder);
}

/// Removes what runs of this user left that have ended: their folders are not locked.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if let Some(name) = entry
            .file_name()
            .to_str()
            .and_then(|it| it.strip_suffix(SUFFIX))
            && is_run(name)
            && entry
                .metadata()
                .is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw())
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            remove(name, &entry.path());
        }
    }
}

/// Whether a run may have this name: `hcabench-PROCESS-TIME`.
fn is_run(name: &str) -> bool {
    let mut parts = name.split('-');
    let is_number = |part: Option<&str>| {
        part.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    parts.next() == Some("hcabench")
        && is_number(parts.next())
        && is_number(parts.next())
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_memory(name: &str) -> PathBuf {
        Path::new(SHARED_MEMORY).join(format!("{}1.data", prefix(name)))
    }

    #[test]
    fn the_files_of_a_run_go_with_it_and_those_of_one_that_was_killed_with_the_next() {
        let name = |part: u32| format!("hcabench-{:x}-f11e5{part}", std::process::id());
        let [running, killed, next] = [0, 1, 2].map(name);
        let first = RunFiles::new(&running).unwrap();
        for name in [&running, &killed] {
            fs::create_dir_all(folder(name).join("nodes")).unwrap();
            fs::write(shared_memory(name), "").unwrap();
        }
        let last = RunFiles::new(&next).unwrap();
        assert!(folder(&running).exists() && shared_memory(&running).exists());
        assert!(!folder(&killed).exists() && !shared_memory(&killed).exists());
        drop(first);
        assert!(!folder(&running).exists() && !shared_memory(&running).exists());
        drop(last);
        assert!(!folder(&next).exists());
    }

    #[test]
    fn only_folders_of_runs_are_removed() {
        assert!(is_run("hcabench-4d2-18a2f"));
        for other in [
            "hcabench",
            "hcabench--18a2f",
            "hcabench-4d2-x",
            "hcabench-1-2-3",
            "other-1-2",
        ] {
            assert!(!is_run(other), "{other}");
        }
    }
}
