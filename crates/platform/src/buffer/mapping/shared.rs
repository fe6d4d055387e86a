//! Memory of a file without a name, which several processes can map.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::unistd::ftruncate;
use serde::{Deserialize, Serialize};

use super::{BufferError, Bytes, HUGE_PAGE, HugeBuffer, HugePagePolicy, Mapping, PageKind};

/// Zeroed memory that is mapped as often as it is asked for: all mappings show the same bytes, each at its own address.
#[derive(Debug)]
pub struct SharedMemory {
    file: OwnedFd,
    size: Bytes,
    kind: PageKind,
}

/// Shared memory, as described to a child that has inherited its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedMemory {
    file: RawFd,
    size: u64,
    kind: PageKind,
}

/// A file that this process has inherited under that number, as one that it opened: with a separate place in it, and
/// not inherited by others.
///
/// # Errors
/// When it has not.
pub fn inherited_file(number: RawFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{number}");
    OpenOptions::new().read(true).write(true).open(path)
}

impl SharedMemory {
    /// At least `length` bytes. Small pages are never joined here.
    ///
    /// # Errors
    /// When the file cannot be made, or huge pages are required and not there.
    pub fn new(length: Bytes, policy: HugePagePolicy) -> Result<Self, BufferError> {
        let size = HugeBuffer::length_for(length, policy);
        if policy != HugePagePolicy::Off {
            match Self::reserved(size) {
                Ok(memory) => return Ok(memory),
                Err(errno) if policy == HugePagePolicy::Required => {
                    return Err(BufferError::NoHugePages {
                        size,
                        pages: size.0 / HUGE_PAGE as u64,
                        source: errno.into(),
                    });
                }
                Err(_) => {}
            }
        }
        Self::of_kind(size, PageKind::Small).map_err(|errno| BufferError::Map {
            size,
            source: errno.into(),
        })
    }

    /// In reserved huge pages. The kernel reports only when they are mapped whether there are enough.
    fn reserved(size: Bytes) -> Result<Self, Errno> {
        let memory = Self::of_kind(size, PageKind::Huge)?;
        memory.mapping()?;
        Ok(memory)
    }

    fn of_kind(size: Bytes, kind: PageKind) -> Result<Self, Errno> {
        let pages = match kind {
            PageKind::Huge => MFdFlags::MFD_HUGETLB | MFdFlags::MFD_HUGE_2MB,
            _ => MFdFlags::empty(),
        };
        let file = memfd_create(c"hcabench", MFdFlags::MFD_CLOEXEC | pages)?;
        let length = i64::try_from(size.0).map_err(|_| Errno::ENOMEM)?;
        ftruncate(&file, length)?;
        Ok(SharedMemory { file, size, kind })
    }

    /// The description for a child that inherits the file.
    pub fn inherited(&self) -> InheritedMemory {
        InheritedMemory {
            file: self.file.as_raw_fd(),
            size: self.size.0,
            kind: self.kind,
        }
    }

    /// The memory of a parent that has let this process inherit the file.
    ///
    /// # Errors
    /// When it has not.
    pub fn of_parent(told: InheritedMemory) -> Result<Self, BufferError> {
        let size = Bytes(told.size);
        let failed = |source| BufferError::Map { size, source };
        let file = inherited_file(told.file).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < told.size {
            // Beyond its end there is no memory.
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(SharedMemory {
            file: file.into(),
            size,
            kind: told.kind,
        })
    }

    fn mapping(&self) -> Result<Mapping, Errno> {
        let length = self.size.0 as usize;
        let bytes = NonZeroUsize::new(length).ok_or(Errno::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing is mapped. The file is ours and does not shrink.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, &self.file, 0)? };
        Ok(Mapping { start, length })
    }

    /// Another mapping, populated and locked. It holds what was written through others.
    ///
    /// # Errors
    /// When it cannot be mapped or locked.
    pub fn map(&self) -> Result<HugeBuffer, BufferError> {
        let map = self.mapping().map_err(|errno| BufferError::Map {
            size: self.size,
            source: io::Error::from(errno),
        })?;
        HugeBuffer::locked(map, Some(self.kind))
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_through_one_mapping_is_seen_through_another() {
        for policy in [HugePagePolicy::Try, HugePagePolicy::Off] {
            let memory = SharedMemory::new(Bytes(5000), policy).unwrap();
            let [one, other] = [(); 2].map(|()| memory.map().unwrap());
            drop(memory);
            assert_ne!(one.as_ptr(), other.as_ptr());
            assert!(other.length().0 >= 5000);
            // SAFETY: both offsets lie within the mappings, which nobody else knows.
            unsafe {
                assert_eq!(other.as_ptr().add(4999).read_volatile(), 0);
                one.as_ptr().add(4999).write_volatile(7);
                assert_eq!(other.as_ptr().add(4999).read_volatile(), 7);
            }
        }
        let memory = SharedMemory::new(Bytes(5000), HugePagePolicy::Off).unwrap();
        let mapped = memory.map().unwrap();
        let mut told = memory.inherited();
        let same = SharedMemory::of_parent(told).unwrap().map().unwrap();
        // SAFETY: as above.
        unsafe {
            mapped.as_ptr().write_volatile(9);
            assert_eq!(same.as_ptr().read_volatile(), 9);
        }
        told.size += 4096;
        SharedMemory::of_parent(told).unwrap_err();
        let error = SharedMemory::new(Bytes(1 << 46), HugePagePolicy::Required).unwrap_err();
        assert!(error.to_string().contains("vm.nr_hugepages="), "{error}");
    }
}
