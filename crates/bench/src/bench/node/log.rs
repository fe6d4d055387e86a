//! What an end notes while it measures: entries of so many words, in memory or in a file.
//!
//! In memory all entries have room that was mapped, touched and locked before, and nothing is asked of the kernel. In a
//! file a buffer is written whenever it is full: a run of any length takes little memory, and the write is a stall of
//! the end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::config::LogPlace;
use crate::buffer::{
    AtomicWords, BufferError, Bytes, HugePagePolicy, InheritedMemory, PageKind, SharedMemory,
    inherited_file,
};

const WORD: usize = size_of::<u64>();
/// Entries that are read at once.
const ENTRIES_AT_ONCE: usize = 2048;
/// Names that are tried where a file system knows none without.
const MOST_NAMES: u32 = 64;

/// A log cannot be had, written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log of --count or --duration: {0}: --log file takes less memory")]
    Buffer(#[from] BufferError),
    #[error("cannot {operation} the log in {}: {source}: is there room? --log memory takes none there", folder.display())]
    File {
        operation: &'static str,
        folder: PathBuf,
        source: io::Error,
    },
}

impl LogError {
    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub(super) fn is_shortage(&self) -> bool {
        match self {
            LogError::Buffer(error) => error.is_shortage(),
            LogError::File { source, .. } => {
                [libc::EMFILE, libc::ENFILE].contains(&source.raw_os_error().unwrap_or(0))
            }
        }
    }
}

/// Entries of N words, which others may read while they are noted.
#[derive(Debug)]
pub(super) struct Log<const N: usize> {
    /// All of them, or those that are not in the file yet.
    words: AtomicWords,
    file: LogFile,
}

/// Its file, if it has one, and the folder of that.
type LogFile = Option<Arc<(File, PathBuf)>>;

/// Words of memory for a log of so many entries.
fn words<const N: usize>(place: LogPlace, entries: usize) -> usize {
    let all = entries.saturating_mul(N);
    match place {
        LogPlace::Memory => all,
        // Rounded up to whole entries, so that there are no more writes than buffers.
        LogPlace::File { buffer } => all.min((buffer.0 as usize).div_ceil(N * WORD).max(1) * N),
    }
}

fn file(place: LogPlace, folder: &Path) -> Result<LogFile, LogError> {
    match place {
        LogPlace::Memory => Ok(None),
        LogPlace::File { .. } => {
            let file = file_without_name(folder).map_err(failed("make", folder))?;
            Ok(Some(Arc::new((file, folder.to_path_buf()))))
        }
    }
}

impl<const N: usize> Log<N> {
    /// Room for so many entries. A file has no name, and lies in that folder.
    ///
    /// # Errors
    /// When there is no memory for it, or no file can be made.
    pub(super) fn new(
        place: LogPlace,
        entries: usize,
        policy: HugePagePolicy,
        folder: &Path,
    ) -> Result<Self, LogError> {
        Ok(Log {
            file: file(place, folder)?,
            words: AtomicWords::new(words::<N>(place, entries), policy)?,
        })
    }

    /// Memory that a log of so many entries takes.
    pub(super) fn memory(place: LogPlace, entries: usize, policy: HugePagePolicy) -> Bytes {
        AtomicWords::length_for(words::<N>(place, entries), policy)
    }

    /// How many entries can be read by now, if so many were noted.
    pub(super) fn readable(&self, noted: usize) -> usize {
        let Some((file, _)) = self.file.as_deref() else {
            return noted;
        };
        let length = file.metadata().map_or(0, |facts| facts.len() as usize);
        noted.min(length / (N * WORD))
    }

    /// The entry there is at that place, and those behind it, as many as are read at once, up to `end`.
    pub(super) fn read(
        &self,
        at: usize,
        end: usize,
        into: &mut Vec<[u64; N]>,
    ) -> Result<(), LogError> {
        into.clear();
        let count = end.saturating_sub(at).min(ENTRIES_AT_ONCE);
        let Some((file, folder)) = self.file.as_deref() else {
            let word = |at: usize| self.words[at].load(Ordering::Relaxed);
            into.extend((at..at + count).map(|at| std::array::from_fn(|part| word(at * N + part))));
            return Ok(());
        };
        let mut bytes = vec![0; count * N * WORD];
        let read = file.read_exact_at(&mut bytes, (at * N * WORD) as u64);
        read.map_err(failed("read", folder))?;
        let (words, _) = bytes.as_chunks::<WORD>();
        let (entries, _) = words.as_chunks::<N>();
        into.extend(entries.iter().map(|entry| entry.map(u64::from_ne_bytes)));
        Ok(())
    }

    /// The pages of its memory.
    pub(super) fn page_kind(&self) -> PageKind {
        self.words.page_kind()
    }
}

fn failed(operation: &'static str, folder: &Path) -> impl FnOnce(io::Error) -> LogError {
    let folder = folder.to_path_buf();
    move |source| LogError::File {
        operation,
        folder,
        source,
    }
}

/// The end that notes.
#[derive(Debug)]
pub(super) struct LogWriter<const N: usize> {
    log: Arc<Log<N>>,
    /// Words of the memory that are taken.
    at: usize,
    /// Words of it that may be.
    end: usize,
    /// Entries that are in the file.
    written: usize,
    /// Entries that there may be.
    limit: usize,
}

impl<const N: usize> LogWriter<N> {
    /// The only one that writes an empty log, which is to have at most so many entries.
    pub(super) fn new(log: Arc<Log<N>>, limit: usize) -> Self {
        LogWriter {
            at: 0,
            end: log.words.len(),
            log,
            written: 0,
            limit,
        }
    }

    /// A log of so many entries in small pages, a file of which lies where temporary files do.
    #[cfg(test)]
    pub(crate) fn of_test(place: LogPlace, entries: usize) -> Self {
        let log = Log::new(place, entries, HugePagePolicy::Off, &std::env::temp_dir());
        Self::new(Arc::new(log.unwrap()), entries)
    }

    /// What others may look at.
    pub(super) fn log(&self) -> &Arc<Log<N>> {
        &self.log
    }

    /// Notes an entry, if there is room for it; returns whether there was.
    ///
    /// # Errors
    /// When the buffer is full and cannot be written.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: [u64; N]) -> Result<bool, LogError> {
        if self.at == self.end && !self.make_room()? {
            return Ok(false);
        }
        let places = &self.log.words[self.at..self.at + N];
        for (place, word) in places.iter().zip(entry) {
            place.store(word, Ordering::Relaxed);
        }
        self.at += N;
        Ok(true)
    }

    /// Entries that it has noted.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.written + self.at / N
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> Result<bool, LogError> {
        if self.count() >= self.limit {
            return Ok(false);
        }
        self.write()?;
        self.end = self.log.words.len().min((self.limit - self.written) * N);
        Ok(self.at < self.end)
    }

    fn write(&mut self) -> Result<(), LogError> {
        if let Some((file, folder)) = self.log.file.as_deref() {
            let written = self.log.words.write_to(file.as_fd(), 0..self.at);
            written.map_err(failed("write", folder))?;
            self.written += self.at / N;
            self.at = 0;
        }
        Ok(())
    }

    /// All that was noted.
    ///
    /// # Errors
    /// When what is left in the buffer cannot be written.
    pub(super) fn end(mut self) -> Result<Entries<N>, LogError> {
        let count = self.count();
        self.write()?;
        Ok(Entries {
            log: Some(self.log),
            count,
        })
    }
}

/// Room for a log that one process writes and another one reads.
#[derive(Debug)]
pub(super) struct SharedLog {
    memory: SharedMemory,
    words: usize,
    file: LogFile,
}

/// The same, as a process is told of it that inherits its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InheritedLog {
    memory: InheritedMemory,
    words: usize,
    file: Option<(RawFd, PathBuf)>,
}

impl SharedLog {
    /// For so many entries of N words. As [`Log::new`].
    ///
    /// # Errors
    /// When there is no memory for it, or no file can be made.
    pub(super) fn new<const N: usize>(
        place: LogPlace,
        entries: usize,
        policy: HugePagePolicy,
        folder: &Path,
    ) -> Result<Self, LogError> {
        let words = words::<N>(place, entries);
        Ok(SharedLog {
            memory: AtomicWords::shared(words, policy)?,
            words,
            file: file(place, folder)?,
        })
    }

    /// What the other process must inherit.
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let file = self.file.iter().map(|file| file.0.as_fd());
        file.chain([self.memory.as_fd()])
    }

    /// What it is told.
    pub(super) fn inherited(&self) -> InheritedLog {
        let file = self.file.as_deref();
        InheritedLog {
            memory: self.memory.inherited(),
            words: self.words,
            file: file.map(|(file, folder)| (file.as_raw_fd(), folder.clone())),
        }
    }

    /// That of the parent, which has let this process inherit it.
    ///
    /// # Errors
    /// When it has not.
    pub(super) fn of_parent(told: InheritedLog) -> Result<Self, LogError> {
        let file = told.file.map(|(file, folder)| {
            let file = inherited_file(file).map_err(failed("inherit", &folder));
            file.map(|file| Arc::new((file, folder)))
        });
        Ok(SharedLog {
            memory: SharedMemory::of_parent(told.memory)?,
            words: told.words,
            file: file.transpose()?,
        })
    }

    /// The log in it. The first to open it touches it, so that it lies near the CPU of that one.
    ///
    /// # Errors
    /// When its memory cannot be mapped.
    pub(super) fn open<const N: usize>(&self) -> Result<Log<N>, LogError> {
        Ok(Log {
            words: AtomicWords::in_shared(&self.memory, self.words)?,
            file: self.file.clone(),
        })
    }
}

/// A log that has ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entries<const N: usize> {
    /// None while the rest is on its way from another process.
    #[serde(skip)]
    log: Option<Arc<Log<N>>>,
    count: usize,
}

impl<const N: usize> Entries<N> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds the log, as this process has it, to what came from another one.
    pub(super) fn add(&mut self, log: Arc<Log<N>>) {
        self.log = Some(log);
    }

    fn log(&self) -> &Log<N> {
        self.log.as_ref().expect("it was added")
    }

    /// The pages of its memory.
    pub(super) fn page_kind(&self) -> PageKind {
        self.log().page_kind()
    }

    /// Entries from one on, as many as are read at once.
    pub(super) fn read(&self, from: usize) -> Result<Vec<[u64; N]>, LogError> {
        let mut entries = Vec::new();
        self.log().read(from, self.count, &mut entries)?;
        Ok(entries)
    }

    /// The entries, in the order in which they were noted; an error where they cannot be read.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<[u64; N], LogError>> + '_ {
        let (mut first, mut entries) = (0, Vec::new());
        (0..self.count).map(move |at| {
            if at - first >= entries.len() {
                self.log().read(at, self.count, &mut entries)?;
                first = at;
            }
            Ok(entries[at - first])
        })
    }
}

/// A file that is gone once nobody has it open any more, whatever ends us.
fn file_without_name(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        // The file system has no such thing: ENOTSUP, and of old kernels EISDIR.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTSUP | libc::EISDIR)) => {}
        made => return made,
    }
    for number in 0..MOST_NAMES {
        let path = folder.join(format!(".log-{}-{number}", std::process::id()));
        match options.create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.and_then(|file| std::fs::remove_file(&path).map(|()| file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> [LogPlace; 3] {
        let file = |bytes| LogPlace::File {
            buffer: Bytes(bytes),
        };
        [LogPlace::Memory, file(1), file(1000)]
    }

    #[test]
    fn what_is_noted_comes_back_in_order_from_memory_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let policy = HugePagePolicy::Off;
        for place in places() {
            for count in [0, 1, 41, 42, 43, 2 * ENTRIES_AT_ONCE + 5] {
                let log = Log::<3>::new(place, count, policy, folder.path()).unwrap();
                let mut log = LogWriter::new(Arc::new(log), count);
                for at in 0..count as u64 {
                    assert!(log.push([at, 2 * at, u64::MAX - at]).unwrap());
                    assert_eq!(log.count() as u64, at + 1);
                }
                let is_full = !log.push([7; 3]).unwrap();
                assert!(is_full, "{place:?}: there is room for more");
                // It has no name.
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
                let log = log.end().unwrap();
                let found: Vec<[u64; 3]> = log.iter().map(Result::unwrap).collect();
                let all = (0..count as u64).map(|at| [at, 2 * at, u64::MAX - at]);
                assert_eq!(found, all.collect::<Vec<_>>(), "{place:?}, {count}");
                assert_eq!(log.len(), count);
            }
        }
    }

    #[test]
    fn what_another_process_notes_comes_back_with_its_count() {
        let folder = tempfile::tempdir().unwrap();
        for place in places() {
            let room = SharedLog::new::<3>(place, 100, HugePagePolicy::Off, folder.path()).unwrap();
            let theirs = SharedLog::of_parent(room.inherited()).unwrap();
            let mut log = LogWriter::<3>::new(Arc::new(theirs.open().unwrap()), 100);
            (0..99).for_each(|at| assert!(log.push([at, at, at]).unwrap()));
            let told = serde_json::to_string(&log.end().unwrap()).unwrap();
            let mut entries: Entries<3> = serde_json::from_str(&told).unwrap();
            entries.add(Arc::new(room.open().unwrap()));
            let found: Vec<[u64; 3]> = entries.iter().map(Result::unwrap).collect();
            assert_eq!(found, (0..99).map(|at| [at; 3]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_file_takes_the_memory_of_its_buffer() {
        let memory = |place| Log::<4>::memory(place, 1_000_000, HugePagePolicy::Off).0;
        let [all, one, buffer] = places().map(memory);
        assert_eq!((all, one, buffer), (32_002_048, 4096, 4096));
        let short = Log::<4>::memory(places()[2], 3, HugePagePolicy::Off).0;
        assert_eq!(short, 4096);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let file = LogPlace::File { buffer: Bytes(1) };
        let folder = Path::new("/nowhere");
        let made = Log::<3>::new(file, 1, HugePagePolicy::Off, folder);
        let told = made.unwrap_err().to_string();
        assert!(told.contains("cannot make the log in /nowhere"), "{told}");
    }
}
