//! The files of the library: a folder with descriptions of nodes and services, and shared memory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::geteuid;

use super::SHARED_MEMORY;
use crate::node::NodeError;

/// How the names of folders end.
const SUFFIX: &str = ".iceoryx2";
/// How they end until they are locked.
const HIDDEN: &str = ".new";
/// How long a run takes at most to lock its folder.
const LONGEST_HIDDEN: Duration = Duration::from_secs(60);
const NO_ROOM: &str = "make room in /dev/shm or use a smaller --receive-queue";
const ADVICE: &str = "check that it can be written and has room (df); TMPDIR names another place";

/// The folder of a run.
pub(super) fn folder(name: &str) -> PathBuf {
    folder_in(&std::env::temp_dir(), name)
}

fn folder_in(place: &Path, name: &str) -> PathBuf {
    place.join(format!("{name}{SUFFIX}"))
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
    folder: PathBuf,
    /// Locked as long as the run goes on.
    _lock: File,
}

impl RunFiles {
    /// Makes the folder of a run.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn new(name: &str) -> Result<Self, NodeError> {
        Self::new_in(&std::env::temp_dir(), name)
    }

    fn new_in(place: &Path, name: &str) -> Result<Self, NodeError> {
        remove_abandoned(place);
        let folder = folder_in(place, name);
        // No other run takes it for an abandoned one before it is locked.
        let hidden = place.join(format!("{name}{HIDDEN}"));
        let failed = || NodeError::io("make the folder", folder.display(), ADVICE);
        DirBuilder::new()
            .mode(0o700)
            .create(&hidden)
            .map_err(failed())?;
        let locked = File::open(&hidden).and_then(|lock| {
            lock.lock()?;
            fs::rename(&hidden, &folder)?;
            Ok(lock)
        });
        let locked = locked.map_err(|error| {
            let _ = fs::remove_dir(&hidden);
            failed()(error)
        })?;
        Ok(RunFiles {
            name: name.to_owned(),
            folder,
            _lock: locked,
        })
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        remove(&self.name, &self.folder);
    }
}

/// The shared memory of a run.
pub(super) fn shared_memory(name: &str) -> impl Iterator<Item = PathBuf> {
    let prefix = prefix(name);
    let entries = fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    entries
        .filter(move |it| {
            let name = it.file_name();
            name.as_encoded_bytes().starts_with(prefix.as_bytes())
        })
        .map(|it| it.path())
}

/// Makes sure that there is room for the shared memory of a run: without it, the first write to it would be the end of
/// the process (SIGBUS).
///
/// # Errors
/// When there is none.
pub(super) fn reserve(name: &str, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
    for file in shared_memory(name) {
        // The library may not have made it readable yet.
        let opened = OpenOptions::new().write(true).open(&file);
        let sized = opened.and_then(|it| Ok((it.metadata()?.len(), it)));
        let (length, opened) = match sized {
            // An end that has left took it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            sized => sized.map_err(NodeError::io("open", file.display(), ADVICE))?,
        };
        if length > 0 {
            reserve_file(&file, &opened, length, go_on)?;
        }
    }
    Ok(())
}

fn reserve_file(
    file: &Path,
    opened: &File,
    length: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), NodeError> {
    loop {
        match fallocate(opened, FallocateFlags::empty(), 0, length as libc::off_t) {
            Err(Errno::EINTR) if go_on() => {}
            Err(Errno::EINTR) => return Err(NodeError::GivenUp),
            // A file system without it has no such limit as that of memory.
            Ok(()) | Err(Errno::EOPNOTSUPP) => return Ok(()),
            Err(error) => return Err(not_reserved(file, error)),
        }
    }
}

fn not_reserved(file: &Path, error: Errno) -> NodeError {
    NodeError::io("reserve", file.display(), NO_ROOM)(error.into())
}

/// What cannot be removed stays.
fn remove(name: &str, folder: &Path) {
    for file in shared_memory(name) {
        let _ = fs::remove_file(file);
    }
    let _ = fs::remove_dir_all(folder);
}

/// Removes what runs of this user left that have ended: their folders are not locked.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let Some((name, is_hidden)) = (file_name.to_str()).and_then(|it| {
            let locked = it.strip_suffix(SUFFIX).map(|it| (it, false));
            locked.or_else(|| it.strip_suffix(HIDDEN).map(|it| (it, true)))
        }) else {
            continue;
        };
        if is_run(name)
            && entry.metadata().is_ok_and(|it| {
                let is_ours = it.is_dir() && it.uid() == geteuid().as_raw();
                let age = it.modified().ok().and_then(|it| it.elapsed().ok());
                is_ours && (!is_hidden || age.is_some_and(|age| age >= LONGEST_HIDDEN))
            })
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
    use crate::testing::Has as _;

    fn memory(name: &str) -> PathBuf {
        Path::new(SHARED_MEMORY).join(format!("{}1.data", prefix(name)))
    }

    #[test]
    fn the_files_of_a_run_go_with_it_and_those_of_one_that_was_killed_with_the_next() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let name = |part: u32| format!("hcabench-{:x}-f11e5{part}", std::process::id());
        let [running, killed, next] = [0, 1, 2].map(name);
        let folder = |name: &str| folder_in(place, name);
        let first = RunFiles::new_in(place, &running).unwrap();
        for name in [&running, &killed] {
            fs::create_dir_all(folder(name).join("nodes")).unwrap();
            fs::write(memory(name), "").unwrap();
        }
        let last = RunFiles::new_in(place, &next).unwrap();
        assert!(folder(&running).exists() && memory(&running).exists());
        assert!(!folder(&killed).exists() && !memory(&killed).exists());
        drop(first);
        assert!(!folder(&running).exists() && !memory(&running).exists());
        drop(last);
        assert!(!folder(&next).exists());
    }

    #[test]
    fn a_folder_that_a_killed_run_has_not_locked_is_removed_once_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let hidden = place.path().join(format!("hcabench-1-f11e{HIDDEN}"));
        fs::create_dir(&hidden).unwrap();
        remove_abandoned(place.path());
        assert!(hidden.exists());
        let folder = File::open(&hidden).unwrap();
        folder
            .set_modified(std::time::SystemTime::now() - LONGEST_HIDDEN)
            .unwrap();
        drop(folder);
        remove_abandoned(place.path());
        assert!(!hidden.exists());
    }

    #[test]
    fn memory_without_room_is_an_error_that_names_what_helps() {
        let error = not_reserved(&memory("hcabench-1-2"), Errno::ENOSPC).to_string();
        error.has(&[
            "/dev/shm/hcabench-1-2",
            "make room in /dev/shm",
            "--receive-queue",
        ]);
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
