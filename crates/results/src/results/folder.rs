//! The folder of a run's results, and one folder in it for each point of the sweep.
//!
//! Each of them holds a file named `INCOMPLETE` from its creation until it is called complete. A run that was killed,
//! or a machine that lost power, therefore leaves results that are marked.
//!
//! Each file and folder is put on a list (`.hcabench-files`) before it comes into being. Replacing an earlier run
//! removes what is on that list and nothing else: whatever the user keeps in the same folder stays.
//!
//! The list is locked while a run writes. The folder is locked by a process that measures a round of it ([`hold`]), and
//! for a moment by each run that looks whether it may write there. So two runs do not write to the same folder, and the
//! second is refused before it measures. A file system without locks does not keep them apart.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use self::earlier::{EarlierContent, is_point, is_true_folder};
use super::durable::{self, folder_of, sync_folder};
use super::error::ReportError;
pub use super::schema::{LEFT_OUT, RUNS, SUMMARY};

mod earlier;
#[cfg(test)]
mod tests;

/// The file that marks a folder as incomplete.
pub const MARK: &str = "INCOMPLETE";
/// What describes the files to programs, a Frictionless Tabular Data Package.
pub const PACKAGE: &str = "datapackage.json";
/// The list of what was written, one path a line relative to the results folder, folders with a slash at the end.
pub const LIST: &str = ".hcabench-files";
/// A point's settings and the machine.
pub const SETTINGS: &str = "settings.json";
/// A point's latencies as a distribution.
pub const HISTOGRAM: &str = "latency.hgrm";

/// How long the processes of a run that was killed may go on, or another run may look at a folder; and how often is
/// looked.
const ENDING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

const PROBE: &str = ".hcabench-probe";
pub(crate) const MARK_BEGINS: &str = "These results are incomplete.";
/// Why a run or a point is incomplete before it ends.
pub const NOT_ENDED: &str =
    "The run has not ended yet, or it was killed, or the machine lost power.";

/// The folder of one run, marked as incomplete until [`complete`](Self::complete).
#[derive(Debug)]
pub struct ResultsFolder {
    shared: Arc<FolderState>,
}

/// The folder of an earlier run that is to go on: no process writes to it while this is open.
#[derive(Debug)]
pub struct EarlierFolder {
    path: PathBuf,
    list: File,
}

/// The folder of one point, marked as incomplete until [`complete`](Self::complete). Dropped before, it stays marked.
#[derive(Debug)]
pub struct PointFolder {
    name: String,
    path: PathBuf,
    shared: Arc<FolderState>,
}

#[derive(Debug)]
struct FolderState {
    path: PathBuf,
    list: File,
    /// What this run has on the list.
    given: Mutex<BTreeSet<String>>,
    /// The points that this process began.
    begun: Mutex<BTreeSet<String>>,
    unfinished: AtomicUsize,
}

impl ResultsFolder {
    /// Makes the folder, with its parents, and proves that it can be written to, before anything is measured.
    ///
    /// An earlier run in it is an error, or with `force` is removed: its own files and no others. `needed_bytes` is an
    /// upper estimate of what the results will take; on a file system that does not report its size it is not checked.
    ///
    /// # Errors
    /// [`ReportError::InUse`] while another run writes to it; [`ReportError::ExistingResults`] without `force`;
    /// [`ReportError::ForeignResults`] with it, when what looks like results is not on the list of an earlier run;
    /// [`ReportError::TooLittleSpace`]; others when the folder cannot be made or written to. After an error nothing was
    /// removed, unless removing itself failed, and no new folder stays.
    pub fn create(path: &Path, force: bool, needed_bytes: u64) -> Result<Self, ReportError> {
        let made = make_folders(path)?;
        Self::open(path, force, needed_bytes).inspect_err(|error| unmake_folders(&made, error))
    }

    /// As [`create`](Self::create), in a folder that no other run gets: `path`, or where something has that name the
    /// same with a number behind it.
    pub fn create_numbered(path: &Path, needed_bytes: u64) -> Result<Self, ReportError> {
        let (path, made) = make_numbered_folder(path)?;
        Self::open(&path, false, needed_bytes).inspect_err(|error| unmake_folders(&made, error))
    }

    /// Finds out whether [`create`](Self::create) would succeed, and leaves everything as it is: so that a bad path is
    /// known before hardware is touched, and an earlier run is not removed for one that cannot start.
    pub fn check(path: &Path, force: bool, needed_bytes: u64) -> Result<(), ReportError> {
        check_links(path)?;
        // A folder that does not exist yet holds nothing, and no run uses it.
        let _locked = path.exists().then(|| lock_unused(path)).transpose()?;
        examine(path, force, needed_bytes)?;
        probe(nearest_existing(path))
    }

    /// As [`check`](Self::check), for [`create_numbered`](Self::create_numbered).
    pub fn check_numbered(path: &Path, needed_bytes: u64) -> Result<(), ReportError> {
        let within = folder_of(path);
        check_links(within)?;
        require_space(within, 0, needed_bytes)?;
        probe(nearest_existing(within))
    }

    /// Takes a folder that exists.
    fn open(path: &Path, force: bool, needed_bytes: u64) -> Result<Self, ReportError> {
        // Until its list is locked.
        let _locked = lock_unused(path)?;
        let earlier = examine(path, force, needed_bytes)?;
        probe(path)?;
        let mark = path.join(MARK);
        let fresh = earlier.evidence.is_none();
        if fresh {
            // Of two runs that begin at the same moment where there are no locks, one gets the folder.
            let claimed = durable::create_new(&mark);
            claimed.map_err(|cause| match cause.kind() {
                io::ErrorKind::AlreadyExists => ReportError::InUse(path.to_path_buf()),
                _ => ReportError::from_io("create", &mark, cause),
            })?;
        }
        let begun = Self::begin(path, &mark, &earlier);
        if fresh && begun.is_err() {
            // Nothing was there before, and nothing of ours stays; the error is what is reported.
            let _ = fs::remove_file(&mark);
        }
        Ok(Self::with(path, begun?, BTreeSet::new()))
    }

    fn with(path: &Path, list: File, given: BTreeSet<String>) -> Self {
        let shared = FolderState {
            path: path.to_path_buf(),
            list,
            given: Mutex::new(given),
            begun: Mutex::default(),
            unfinished: AtomicUsize::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Marks the folder, removes the earlier run, and returns the new list.
    fn begin(path: &Path, mark: &Path, earlier: &EarlierContent) -> Result<File, ReportError> {
        let list_path = path.join(LIST);
        // Locked until the new one is.
        let replaced = durable::open_to_go_on(&list_path).ok();
        if let Some(list) = &replaced {
            lock_list(list, path)?;
        }
        write_mark(mark, NOT_ENDED)?;
        if earlier.evidence.is_some() {
            earlier.remove(path)?;
        }
        let list =
            durable::create_new(&list_path).map_err(ReportError::on("create", &list_path))?;
        lock_list(&list, path)?;
        let synced = sync_folder(path).and_then(|()| sync_folder(folder_of(path)));
        if synced.is_err() {
            // The error is what is reported.
            let _ = fs::remove_file(&list_path);
        }
        synced.map(|()| list)
    }

    /// The folder's path, as given.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// # Errors
    /// [`ReportError::TooLittleSpace`].
    pub fn require_space(&self, needed_bytes: u64) -> Result<(), ReportError> {
        require_space(self.path(), 0, needed_bytes)
    }

    /// The path of a file at the top, such as [`SUMMARY`], which the caller then writes. It is on the list from here
    /// on.
    pub fn file(&self, name: &str) -> Result<PathBuf, ReportError> {
        check_name(self.path(), name)?;
        self.shared.give(name, |there| !there)
    }

    /// Makes the folder of a point, with its mark. If the folder is there and holds no results (because replacing an
    /// earlier run left the user's own files in it), it is used as it is.
    pub fn point(&self, name: &str) -> Result<PointFolder, ReportError> {
        check_name(self.path(), name)?;
        let folder = format!("{name}/");
        let begun = self.shared.begun.lock();
        let mut begun = begun.unwrap_or_else(PoisonError::into_inner);
        if !begun.insert(name.to_owned()) {
            return Err(self.shared.taken(name));
        }
        let path = self.path().join(name);
        if path.symlink_metadata().is_ok() && !is_true_folder(&path) {
            return Err(self.shared.taken(name));
        }
        self.shared.give(&folder, |there| {
            !there || (is_true_folder(&path) && !is_point(&path))
        })?;
        if !path.exists() {
            fs::create_dir(&path).map_err(ReportError::on("create the folder", &path))?;
        }
        let mark = format!("{folder}{MARK}");
        write_mark(&self.shared.give(&mark, |there| !there)?, NOT_ENDED)?;
        sync_folder(self.path())?;
        self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        Ok(PointFolder {
            name: name.to_owned(),
            path,
            shared: Arc::clone(&self.shared),
        })
    }

    /// The names of the points that have a folder, in order, those of an earlier run that is resumed as well.
    pub fn points(&self) -> Vec<String> {
        let given = self.shared.given.lock();
        let given = given.unwrap_or_else(PoisonError::into_inner);
        let folders = given.iter().filter_map(|path| path.strip_suffix('/'));
        folders.map(str::to_owned).collect()
    }

    /// Takes the mark away: all that was planned is there.
    pub fn complete(self) -> Result<(), ReportError> {
        let unfinished = self.shared.unfinished.load(Ordering::Relaxed);
        if unfinished > 0 {
            let path = self.path().to_path_buf();
            return Err(ReportError::UnfinishedPoints(path, unfinished));
        }
        remove_mark(self.path())
    }

    /// Leaves the mark and writes into it why the run ended early.
    pub fn fail(self, reason: &str) -> Result<(), ReportError> {
        write_reason(&self.path().join(MARK), reason)
    }
}

impl EarlierFolder {
    /// Locks the folder of an earlier run, before anything of it is read.
    pub fn lock(path: &Path) -> Result<Self, ReportError> {
        let list_path = path.join(LIST);
        let list = durable::open_to_go_on(&list_path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ReportError::NothingToResume(path.to_path_buf())
            }
            _ => ReportError::from_io("open", &list_path, cause),
        })?;
        let _locked = lock_folder(path, || false)?;
        lock_list(&list, path)?;
        let path = path.to_path_buf();
        Ok(EarlierFolder { path, list })
    }

    /// Its path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something is missing; the error: that nothing is.
    pub fn check_incomplete(&self) -> Result<(), String> {
        match is_incomplete(&self.path) {
            true => Ok(()),
            false => Err("it is complete: nothing is missing".to_owned()),
        }
    }

    /// Takes it up, to measure what is missing in it. It is marked as incomplete again; its files and the folders of its
    /// points are given out again.
    pub fn resume(&self) -> Result<ResultsFolder, ReportError> {
        let path = &self.path;
        let list = self.list.try_clone();
        let mut list = list.map_err(ReportError::on("open", path))?;
        let earlier = EarlierContent::find(path)?;
        durable::cut_torn_line(&mut list).map_err(ReportError::on("read", &path.join(LIST)))?;
        write_mark(&path.join(MARK), NOT_ENDED)?;
        Ok(ResultsFolder::with(path, list, earlier.listed))
    }
}

impl PointFolder {
    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file of this point is one that hcabench has written.
    pub fn has(&self, name: &str) -> bool {
        let given = self.shared.given.lock();
        let given = given.unwrap_or_else(PoisonError::into_inner);
        given.contains(&format!("{}/{name}", self.name))
    }

    /// The path of a file of this point, such as [`SETTINGS`]; as [`ResultsFolder::file`].
    pub fn file(&self, name: &str) -> Result<PathBuf, ReportError> {
        check_name(&self.path, name)?;
        self.shared
            .give(&format!("{}/{name}", self.name), |there| !there)
    }

    /// Takes the mark away: all files of this point are whole.
    pub fn complete(self) -> Result<(), ReportError> {
        remove_mark(&self.path)?;
        self.shared.unfinished.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves the mark and writes into it why the point failed.
    pub fn fail(self, reason: &str) -> Result<(), ReportError> {
        write_reason(&self.path.join(MARK), reason)
    }
}

impl FolderState {
    /// Puts a file or folder of this run on the list, once, and returns its path; `free` decides whether a name may be
    /// taken, from whether it exists already.
    fn give(&self, relative: &str, free: impl Fn(bool) -> bool) -> Result<PathBuf, ReportError> {
        let path = self.path.join(relative);
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if given.contains(relative) {
            return Ok(path);
        }
        let place = self.path.join(relative.trim_end_matches('/'));
        if !free(place.symlink_metadata().is_ok()) {
            return Err(self.taken(relative));
        }
        (&self.list)
            .write_all(format!("{relative}\n").as_bytes())
            .and_then(|()| self.list.sync_data())
            .map_err(ReportError::on("write", &self.path.join(LIST)))?;
        given.insert(relative.to_owned());
        Ok(path)
    }

    fn taken(&self, name: &str) -> ReportError {
        let reason = "something of that name is already there, and is not replaced";
        ReportError::BadName(self.path.clone(), name.to_owned(), reason)
    }
}

fn check_name(path: &Path, name: &str) -> Result<(), ReportError> {
    let reason = if name.is_empty() || name.starts_with('.') {
        "it is empty or hidden"
    } else if name.contains(['/', '\\', '\n', '\r', '\0']) {
        "it holds a separator, a line break or a zero"
    } else if name == MARK {
        "it is the mark's"
    } else {
        return Ok(());
    };
    let (path, name) = (path.to_path_buf(), name.to_owned());
    Err(ReportError::BadName(path, name, reason))
}

/// The folder itself, or the nearest one above it that exists.
fn nearest_existing(path: &Path) -> &Path {
    let mut above = path.ancestors();
    let found = above.find(|it| !it.as_os_str().is_empty() && it.exists());
    found.unwrap_or(Path::new("."))
}

/// Bytes free to this user on the file system of `path`; `None` when it does not report its size.
fn free_bytes(path: &Path) -> Option<u64> {
    let told = nix::sys::statvfs::statvfs(path).ok()?;
    (told.blocks() > 0)
        .then(|| (told.blocks_available() as u64).saturating_mul(told.fragment_size() as u64))
}

/// Makes the folder and its parents; returns those that it made, outermost first.
pub fn make_folders(path: &Path) -> Result<Vec<PathBuf>, ReportError> {
    check_links(path)?;
    let failed = ReportError::on("create the folder", path);
    let ancestors = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
    let missing: Vec<PathBuf> = ancestors.map(Path::to_path_buf).collect();
    let mut made = Vec::new();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(&folder) {
            Ok(()) => made.push(folder),
            // Another run made it meanwhile, and may use it.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => {
                let error = failed(cause);
                unmake_folders(&made, &error);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// Makes a folder that was not there, with its parents: `path`, or where something has that name the same with `-2`,
/// `-3` and so on behind it. Returns it, and all that it made, outermost first.
pub fn make_numbered_folder(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let mut made = make_folders(folder_of(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let others = (2..).map(|number: u64| path.with_file_name(format!("{name}-{number}")));
    for candidate in std::iter::once(path.to_path_buf()).chain(others) {
        match fs::create_dir(&candidate) {
            Ok(()) => {
                made.push(candidate.clone());
                return Ok((candidate, made));
            }
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => {
                let error = ReportError::from_io("create the folder", &candidate, cause);
                unmake_folders(&made, &error);
                return Err(error);
            }
        }
    }
    unreachable!("the numbers do not end")
}

/// A link in a path that leads nowhere is an error: no folder is made through it.
fn check_links(path: &Path) -> Result<(), ReportError> {
    match durable::dangling_link(path) {
        Some((link, target)) => Err(ReportError::DanglingLink(link.to_path_buf(), target)),
        None => Ok(()),
    }
}

/// Writes, syncs and removes a small file of a name that nothing has yet.
fn probe(path: &Path) -> Result<(), ReportError> {
    let failed = |cause| ReportError::from_io("write into", path, cause);
    let (name, mut file) = durable::create_numbered(&path.join(PROBE)).map_err(failed)?;
    let written = file.write_all(&[0; 4096]).and_then(|()| file.sync_all());
    written.and(fs::remove_file(&name)).map_err(failed)
}

/// Locks a folder for as long as what is returned is open, against other runs that look whether they may write there,
/// and against rounds of a run that are still measured. `refuses`: what need not be waited for.
fn lock_folder(path: &Path, refuses: impl Fn() -> bool) -> Result<File, ReportError> {
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer.
    let folder = options.read(true).custom_flags(libc::O_DIRECTORY);
    let folder = folder.open(path).map_err(ReportError::on("open", path))?;
    wait_for(path, || folder.try_lock(), refuses)?;
    Ok(folder)
}

/// The same, unless a run writes to the folder.
fn lock_unused(path: &Path) -> Result<File, ReportError> {
    lock_folder(path, || is_written(path))
}

/// Whether a run writes to a folder.
fn is_written(path: &Path) -> bool {
    let list = durable::open_to_go_on(&path.join(LIST));
    list.is_ok_and(|list| is_locked(&list.try_lock_shared()))
}

/// Locks the list of a run for as long as it is open.
fn lock_list(list: &File, path: &Path) -> Result<(), ReportError> {
    wait_for(path, || list.try_lock(), || false)
}

fn is_locked(lock: &Result<(), TryLockError>) -> bool {
    matches!(lock, Err(TryLockError::WouldBlock))
}

/// A round of a run that was killed takes a moment to end.
fn wait_for(
    path: &Path,
    lock: impl Fn() -> Result<(), TryLockError>,
    refuses: impl Fn() -> bool,
) -> Result<(), ReportError> {
    let begun = Instant::now();
    wait_while(path, lock, || {
        let waits = begun.elapsed() <= ENDING && !refuses();
        if waits {
            sleep(LOOK);
        }
        waits
    })
}

/// Locks a folder; `pause` waits for a moment, or returns that it is in use.
fn wait_while(
    path: &Path,
    lock: impl Fn() -> Result<(), TryLockError>,
    mut pause: impl FnMut() -> bool,
) -> Result<(), ReportError> {
    while is_locked(&lock()) {
        if !pause() {
            return Err(ReportError::InUse(path.to_path_buf()));
        }
    }
    Ok(())
}

/// Whether a folder, of a run or of a point, has the mark of one that is not whole.
pub fn is_incomplete(folder: &Path) -> bool {
    folder.join(MARK).symlink_metadata().is_ok()
}

/// Keeps other runs from a folder while what is returned is open. For a process that measures a round, and may live a
/// little longer than the one that gave it the folder.
pub fn hold(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    // Another run may look at it for a moment. A file system without locks separates no processes.
    let _ = wait_for(path, || folder.try_lock_shared(), || false);
    Ok(folder)
}

fn write_mark(mark: &Path, reason: &str) -> Result<(), ReportError> {
    durable::replace(mark, |out| out.write_all(text_of_mark(reason).as_bytes()))
}

/// Writes why a run or a point ended early into its mark, in place where a full disk has no room for a new file.
fn write_reason(mark: &Path, reason: &str) -> Result<(), ReportError> {
    let in_place = |_: &ReportError| durable::overwrite(mark, &text_of_mark(reason)).is_ok();
    match write_mark(mark, reason) {
        Err(error) if !in_place(&error) => Err(error),
        _ => Ok(()),
    }
}

fn text_of_mark(reason: &str) -> String {
    format!(
        "{MARK_BEGINS} {reason}\nThis file is removed when the results in this folder are complete.\n"
    )
}

/// What is in the way of a new run at `path`: one that writes to it, an earlier one without `force`, or too little space.
/// Returns the earlier run. The folder is locked, so that no other run takes it meanwhile.
fn examine(path: &Path, force: bool, needed_bytes: u64) -> Result<EarlierContent, ReportError> {
    let earlier = EarlierContent::find(path)?;
    if let Some(found) = &earlier.evidence {
        let in_use = is_written(path);
        let path = path.to_path_buf();
        if in_use {
            return Err(ReportError::InUse(path));
        }
        match &earlier.unlisted {
            _ if !force => return Err(ReportError::ExistingResults(path, found.clone())),
            Some(found) => return Err(ReportError::ForeignResults(path, found.clone())),
            None => {}
        }
    }
    require_space(path, earlier.bytes(path), needed_bytes)?;
    Ok(earlier)
}

/// Too few free bytes, with those that would be replaced, are an error.
fn require_space(path: &Path, replaced_bytes: u64, needed_bytes: u64) -> Result<(), ReportError> {
    let free_bytes =
        free_bytes(nearest_existing(path)).map(|free| free.saturating_add(replaced_bytes));
    if let Some(free_bytes) = free_bytes.filter(|&free| free < needed_bytes) {
        let path = path.to_path_buf();
        return Err(ReportError::TooLittleSpace(path, free_bytes, needed_bytes));
    }
    Ok(())
}

/// Removes folders that were just made, after an error, the deepest first; those that are not empty stay, and those of
/// another run.
fn unmake_folders(made: &[PathBuf], error: &ReportError) {
    if matches!(error, ReportError::InUse(_)) {
        return;
    }
    for folder in made.iter().rev() {
        // Only empty folders go; what is left behind is not an error.
        let _ = fs::remove_dir(folder);
    }
}

fn remove_mark(folder: &Path) -> Result<(), ReportError> {
    sync_folder(folder)?;
    let mark = folder.join(MARK);
    fs::remove_file(&mark).map_err(ReportError::on("remove", &mark))?;
    sync_folder(folder)
}
