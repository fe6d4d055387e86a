//! Words that one thread stores and others may look at meanwhile.

use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::AtomicU64;

use super::{
    BufferError, Bytes, HugeBuffer, HugePagePolicy, MappedArena, MappedValue, PageKind,
    SharedMemory,
};

/// A fixed number of atomic words in mapped memory, zero at the start. A clone is the same words.
#[derive(Debug, Clone)]
pub struct AtomicWords(MappedValue<[AtomicU64]>);

impl AtomicWords {
    /// What the memory for `count` words takes, and locks.
    pub fn length_for(count: usize, policy: HugePagePolicy) -> Bytes {
        HugeBuffer::length_for(Self::bytes(count), policy)
    }

    fn bytes(count: usize) -> Bytes {
        Bytes((count as u64).saturating_mul(size_of::<AtomicU64>() as u64))
    }

    /// Memory for `count` words.
    ///
    /// # Errors
    /// Those of [`HugeBuffer::new`].
    pub fn new(count: usize, policy: HugePagePolicy) -> Result<Self, BufferError> {
        Ok(Self::over(
            HugeBuffer::new(Self::bytes(count), policy)?,
            count,
        ))
    }

    fn over(memory: HugeBuffer, count: usize) -> Self {
        AtomicWords(MappedArena::over(memory).several(count))
    }

    /// Shared memory for `count` words.
    ///
    /// # Errors
    /// Those of [`SharedMemory::new`].
    pub fn shared(count: usize, policy: HugePagePolicy) -> Result<SharedMemory, BufferError> {
        SharedMemory::new(Self::bytes(count), policy)
    }

    /// The first `count` words of shared memory.
    ///
    /// # Errors
    /// When it cannot be mapped.
    ///
    /// # Panics
    /// When it holds fewer.
    pub fn in_shared(memory: &SharedMemory, count: usize) -> Result<Self, BufferError> {
        Ok(Self::over(memory.map()?, count))
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.0.page_kind()
    }

    /// Writes some of them to a file, in this host's byte order, by one `write` unless that falls short. To be called
    /// by the thread that stores them.
    ///
    /// # Errors
    /// When it cannot be written.
    ///
    /// # Panics
    /// When there are no such words.
    pub fn write_to(&self, file: BorrowedFd<'_>, words: Range<usize>) -> io::Result<()> {
        let mut left = &self[words];
        let mut skip = 0;
        while !left.is_empty() {
            let start = left.as_ptr().cast::<u8>().wrapping_add(skip);
            let bytes = size_of_val(left) - skip;
            // SAFETY: this many bytes from there on are words of this memory. The kernel reads them by address; other
            // threads access them atomically.
            let written = unsafe { libc::write(file.as_raw_fd(), start.cast(), bytes) };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    left = &left[(skip + written) / size_of::<u64>()..];
                    skip = (skip + written) % size_of::<u64>();
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Deref for AtomicWords {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::os::fd::AsFd as _;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn words_start_at_zero_and_those_that_are_asked_for_are_written() {
        let words = AtomicWords::new(1000, HugePagePolicy::Off).unwrap();
        assert!(words.len() == 1000 && words.iter().all(|word| word.load(Relaxed) == 0));
        (0..1000).for_each(|at| words[at].store(at as u64, Relaxed));
        let mut file = tempfile::tempfile().unwrap();
        words.write_to(file.as_fd(), 10..990).unwrap();
        file.rewind().unwrap();
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        let expected: Vec<u8> = (10_u64..990).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(found, expected);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let error = words.write_to(full.unwrap().as_fd(), 0..1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
