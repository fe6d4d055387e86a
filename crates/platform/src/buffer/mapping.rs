//! Memory in huge pages, of one process or shared by several.

mod shared;

pub use shared::{InheritedMemory, SharedMemory, inherited_file};

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::host::MemoryLock;
use crate::host::remedies::{memory_remedy, remedy};
use crate::named::names;

/// The size of the huge pages asked for, in bytes.
pub const HUGE_PAGE: usize = 2 << 20;
/// The smallest page on the machines this runs on; touching at this distance touches every page of any size.
pub(super) const SMALL_PAGE: usize = 4096;

names! {
    /// What to do about huge pages.
    HugePagePolicy {
        /// Huge pages or an error.
        Required = "required",
        /// Reserved huge pages if there are any, else transparent ones, else small ones; what was got is recorded.
        Try = "try",
        /// Small pages.
        Off = "off",
    }
}

/// The pages a buffer got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// Small pages.
    Small,
    /// Small pages, some of them joined by the kernel to transparent huge ones.
    PartlyTransparentHuge,
    /// Transparent huge pages throughout.
    TransparentHuge,
    /// Pages of 2 MiB from the reserved pool.
    Huge,
    /// Pages of 1 GiB from the reserved pool.
    Giant,
}

impl PageKind {
    /// The page size in words for a table.
    pub const fn describe(self) -> &'static str {
        match self {
            PageKind::Small => "4 KiB pages",
            PageKind::PartlyTransparentHuge => "4 KiB and transparent 2 MiB pages",
            PageKind::TransparentHuge => "transparent 2 MiB pages",
            PageKind::Huge => "2 MiB huge pages",
            PageKind::Giant => "1 GiB huge pages",
        }
    }
}

/// A buffer could not be allocated as requested.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    /// Reserved huge pages were required and are not there.
    #[error(
        "{size} in 2 MiB huge pages cannot be mapped ({source}): reserve {pages} of them \
         (sysctl vm.nr_hugepages={pages}, or more if others use them), or use --hugepages try"
    )]
    NoHugePages {
        /// What was asked for, rounded up to whole pages.
        size: Bytes,
        /// The number of 2 MiB pages that takes.
        pages: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// Memory could not be mapped at all.
    #[error("mmap of {size} failed ({source}): {}", advice(*size, source))]
    Map {
        /// What was asked for.
        size: Bytes,
        /// The system's reason.
        source: io::Error,
    },
    /// Memory could not be locked.
    #[error(
        "mlock of {size} failed ({source}): raise the memlock limit with ulimit -l (or in limits.conf)"
    )]
    Lock {
        /// What was to be locked.
        size: Bytes,
        /// The system's reason.
        source: io::Error,
    },
}

impl BufferError {
    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        match self {
            BufferError::NoHugePages { .. } => false,
            BufferError::Map { source, .. } | BufferError::Lock { source, .. } => {
                is_of_memory(source)
            }
        }
    }
}

/// What mmap and mlock report where a limit on memory, or on locked memory, is reached.
pub(super) fn is_of_memory(error: &io::Error) -> bool {
    let errno = error.raw_os_error().unwrap_or(0);
    [libc::ENOMEM, libc::EAGAIN, libc::EPERM].contains(&errno)
}

/// What to do where memory of that size cannot be mapped.
pub(super) fn advice(size: Bytes, error: &io::Error) -> String {
    let smaller = || "measure less at a time".to_owned();
    match error.raw_os_error() {
        // To begin at a multiple of a page, a page more is mapped.
        Some(libc::ENOMEM) => memory_remedy(Some(size.0.saturating_add(HUGE_PAGE as u64))),
        // mmap reports nothing else by it.
        Some(libc::EAGAIN) => MemoryLock::missing(u64::MAX).unwrap_or_else(smaller),
        _ => remedy(error).unwrap_or_else(smaller),
    }
}

/// Mapped memory, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: NonNull<c_void>,
    pub(super) length: usize,
}

// SAFETY: the memory is not bound to a thread, and reached through raw pointers only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes, which are not zero.
    pub(super) fn new(length: usize, access: ProtFlags, kind: MapFlags) -> Result<Self, Errno> {
        let bytes = NonZeroUsize::new(length).ok_or(Errno::EINVAL)?;
        // SAFETY: the kernel chooses a place where nothing is mapped.
        let start = unsafe { mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE | kind)? };
        Ok(Mapping { start, length })
    }

    /// Reserved huge pages, populated.
    fn reserved(length: usize) -> Result<Self, Errno> {
        let huge = MapFlags::MAP_HUGETLB | MapFlags::MAP_HUGE_2MB | MapFlags::MAP_POPULATE;
        Self::new(length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, huge)
    }

    /// Pages as the kernel is advised, beginning at a multiple of `page`. mlockall(MCL_FUTURE) populates what may be
    /// accessed at once, in small pages: so no thread may access it until the kernel is advised.
    pub(super) fn advised(length: usize, page: usize, advice: MmapAdvise) -> Result<Self, Errno> {
        let whole = Self::new(length + page, ProtFlags::PROT_NONE, MapFlags::empty())?;
        let mapping = whole.aligned_part(length, page);
        // SAFETY: the range is this mapping, which no other thread has. A kernel without transparent huge pages refuses
        // the advice; what was obtained is read back.
        let _ = unsafe { madvise(mapping.start, length, advice) };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: as above.
        unsafe { mprotect(mapping.start, length, access)? };
        Ok(mapping)
    }

    /// Touches every page of a mapping that is writable and not yet known to anybody else.
    pub(super) fn touch(&self) {
        for at in (0..self.length).step_by(SMALL_PAGE) {
            // SAFETY: `at` is below the length of the mapping, and the memory as the caller states.
            unsafe { self.start.cast::<u8>().add(at).write_volatile(0) };
        }
    }

    /// The first `length` bytes from a multiple of `page` on, of a mapping that is a page longer; the rest is unmapped.
    fn aligned_part(self, length: usize, page: usize) -> Self {
        let before = self.start.cast::<u8>().align_offset(page);
        let behind = self.length - before - length;
        let part = |from: usize, length: usize| Mapping {
            start: self.start.map_addr(|start| start.saturating_add(from)),
            length,
        };
        let [first, wanted, last] = [
            part(0, before),
            part(before, length),
            part(before + length, behind),
        ];
        // The parts own it now.
        std::mem::forget(self);
        drop((first, last));
        wanted
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the range belongs to this mapping alone. It fails for an invalid range only.
            let _ = unsafe { munmap(self.start, self.length) };
        }
    }
}

/// Zeroed memory that is mapped, touched and locked; shared with other threads and with the HCA by pointer only.
#[derive(Debug)]
pub struct HugeBuffer {
    /// On a 2 MiB boundary unless small pages were asked for.
    map: Mapping,
    kind: PageKind,
}

impl HugeBuffer {
    /// What a buffer for `length` bytes takes, and locks: whole pages.
    pub fn length_for(length: Bytes, policy: HugePagePolicy) -> Bytes {
        let wanted = length.0.clamp(1, u64::MAX / 2);
        let page = match policy {
            HugePagePolicy::Off => SMALL_PAGE,
            HugePagePolicy::Required | HugePagePolicy::Try => HUGE_PAGE,
        };
        Bytes(wanted.next_multiple_of(page as u64))
    }

    /// Maps at least `length` bytes, touches and locks them.
    pub fn new(length: Bytes, policy: HugePagePolicy) -> Result<Self, BufferError> {
        let size = Self::length_for(length, policy);
        let rounded = size.0 as usize;
        let advised = |page, advice| {
            Mapping::advised(rounded, page, advice).map_err(|errno| BufferError::Map {
                size,
                source: errno.into(),
            })
        };
        if policy == HugePagePolicy::Off {
            let map = advised(SMALL_PAGE, MmapAdvise::MADV_NOHUGEPAGE)?;
            return Self::touch_and_lock(map, None);
        }
        match Mapping::reserved(rounded) {
            Ok(map) => return Self::touch_and_lock(map, Some(PageKind::Huge)),
            Err(errno) if policy == HugePagePolicy::Required => {
                return Err(BufferError::NoHugePages {
                    size,
                    pages: (rounded / HUGE_PAGE) as u64,
                    source: errno.into(),
                });
            }
            Err(_) => {}
        }
        Self::touch_and_lock(advised(HUGE_PAGE, MmapAdvise::MADV_HUGEPAGE)?, None)
    }

    fn touch_and_lock(map: Mapping, kind: Option<PageKind>) -> Result<Self, BufferError> {
        map.touch();
        Self::locked(map, kind)
    }

    /// Locking populates what was not touched.
    fn locked(map: Mapping, kind: Option<PageKind>) -> Result<Self, BufferError> {
        let (start, length) = (map.start.cast::<u8>(), map.length);
        // SAFETY: the range is the mapping.
        if unsafe { libc::mlock(start.as_ptr().cast(), length) } != 0 {
            return Err(BufferError::Lock {
                size: Bytes(length as u64),
                source: io::Error::last_os_error(),
            });
        }
        let kind = kind.unwrap_or_else(|| transparent_share(start.addr().get(), length));
        Ok(HugeBuffer { map, kind })
    }

    /// The start of the memory. It stays valid as long as the buffer; what others write there is read through it,
    /// volatile or atomic.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start().as_ptr()
    }

    /// The same, as what is never null.
    pub fn start(&self) -> NonNull<u8> {
        self.map.start.cast()
    }

    /// Usable bytes: what was asked for, rounded up to whole pages.
    pub fn length(&self) -> Bytes {
        Bytes(self.map.length as u64)
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.kind
    }
}

/// Asks the kernel (proc_pid_smaps(5)) how much of a range is in transparent huge pages.
pub(super) fn transparent_share(start: usize, length: usize) -> PageKind {
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else {
        return PageKind::Small;
    };
    let mut inside = false;
    let (mut huge_kib, mut all_kib) = (0, 0);
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let range = first.split_once('-');
        let range = range.and_then(|(from, to)| Some((hexadecimal(from)?, hexadecimal(to)?)));
        if let Some((from, to)) = range {
            inside = from < start + length && start < to;
        }
        let mut kib = || words.next().and_then(|word| word.parse::<usize>().ok());
        match first {
            "Size:" if inside => all_kib += kib().unwrap_or(0),
            "AnonHugePages:" if inside => huge_kib += kib().unwrap_or(0),
            _ => {}
        }
    }
    // The kernel reports it for a whole mapping, to which neighbours may have been joined. In doubt it is less.
    match huge_kib {
        0 => PageKind::Small,
        _ if huge_kib == all_kib => PageKind::TransparentHuge,
        _ => PageKind::PartlyTransparentHuge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::counters::ThreadUsage;

    #[test]
    fn memory_is_zeroed_writable_and_as_large_as_asked() {
        for policy in [HugePagePolicy::Try, HugePagePolicy::Off] {
            let buffer = HugeBuffer::new(Bytes(3_000_000), policy).unwrap();
            assert!(buffer.length().0 >= 3_000_000);
            let last = buffer.length().0 as usize - 1;
            // SAFETY: both offsets lie within the buffer, which nobody else knows.
            unsafe {
                assert_eq!(buffer.as_ptr().read(), 0);
                buffer.as_ptr().add(last).write(7);
                assert_eq!(buffer.as_ptr().add(last).read(), 7);
            }
        }
    }

    #[test]
    fn aligned_for_huge_pages_unless_off() {
        let buffer = HugeBuffer::new(Bytes(1), HugePagePolicy::Try).unwrap();
        assert_eq!(buffer.as_ptr() as usize % HUGE_PAGE, 0);
        let buffer = HugeBuffer::new(Bytes(1), HugePagePolicy::Off).unwrap();
        assert_eq!(buffer.page_kind(), PageKind::Small);
        assert_eq!(buffer.length(), Bytes(4096));
    }

    #[test]
    fn requiring_more_huge_pages_than_any_machine_has_is_an_error_that_says_how_many() {
        let error = HugeBuffer::new(Bytes(1 << 46), HugePagePolicy::Required).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("vm.nr_hugepages=33554432"), "{text}");
    }

    #[test]
    fn touching_a_buffer_causes_no_page_fault() {
        let touch = |buffer: &HugeBuffer| {
            let before = ThreadUsage::now();
            for at in (0..buffer.length().0 as usize).step_by(SMALL_PAGE) {
                // SAFETY: within the buffer, which nobody else knows.
                unsafe { buffer.as_ptr().add(at).write_volatile(1) };
            }
            ThreadUsage::now().since(before).faults()
        };
        let [first, second] =
            [(); 2].map(|()| HugeBuffer::new(Bytes(2 << 20), HugePagePolicy::Try));
        // The code itself is paged in the first time.
        touch(&first.unwrap());
        assert_eq!(touch(&second.unwrap()), 0);
    }

    #[test]
    fn bytes_print_in_whole_units() {
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(
            [text(0), text(8), text(1536), text(32768), text(17 << 20)],
            ["0 B", "8 B", "1536 B", "32 KiB", "17 MiB"]
        );
    }
}
