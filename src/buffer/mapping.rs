//! Anonymous memory in huge pages.

use std::io;

use memmap2::{MmapOptions, MmapRaw};
use serde::{Deserialize, Serialize};

use super::Bytes;

/// The size of the huge pages asked for, in bytes.
pub const HUGE_PAGE: usize = 2 << 20;
const HUGE_PAGE_BITS: u8 = 21;
/// The smallest page on the machines this runs on; touching at this distance touches every page of any size.
const SMALL_PAGE: usize = 4096;

/// What to do about huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HugePagePolicy {
    /// Huge pages or an error.
    Required,
    /// Reserved huge pages if there are any, else transparent ones, else small ones; what was got is recorded.
    Try,
    /// Small pages.
    Off,
}

impl HugePagePolicy {
    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            HugePagePolicy::Required => "required",
            HugePagePolicy::Try => "try",
            HugePagePolicy::Off => "off",
        }
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
}

impl PageKind {
    /// The page size in words for a table.
    pub const fn describe(self) -> &'static str {
        match self {
            PageKind::Small => "4 KiB pages",
            PageKind::PartlyTransparentHuge => "4 KiB and transparent 2 MiB pages",
            PageKind::TransparentHuge => "transparent 2 MiB pages",
            PageKind::Huge => "2 MiB huge pages",
        }
    }
}

/// A buffer could not be had as asked for.
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
    #[error(
        "mmap of {size} failed ({source}): ask for less to be measured at a time, or use a machine with more memory"
    )]
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

/// Zeroed memory that is mapped, touched and locked; shared with other threads and with the HCA by pointer only.
#[derive(Debug)]
pub struct HugeBuffer {
    map: MmapRaw,
    /// Where the usable part starts: on a 2 MiB boundary unless small pages were asked for.
    offset: usize,
    length: usize,
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
        let rounded = Self::length_for(length, policy).0 as usize;
        if policy == HugePagePolicy::Off {
            let map = map_small(rounded)?;
            let _ = map.advise(memmap2::Advice::NoHugePage);
            return Self::touch_and_lock(map.into(), 0, rounded, None);
        }
        let mut options = MmapOptions::new();
        let reserved = options.len(rounded).huge(Some(HUGE_PAGE_BITS)).populate();
        match reserved.map_anon() {
            Ok(map) => return Self::touch_and_lock(map.into(), 0, rounded, Some(PageKind::Huge)),
            Err(source) if policy == HugePagePolicy::Required => {
                return Err(BufferError::NoHugePages {
                    size: Bytes(rounded as u64),
                    pages: (rounded / HUGE_PAGE) as u64,
                    source,
                });
            }
            Err(_) => {}
        }
        // Transparent huge pages need a 2 MiB boundary, which mmap does not promise.
        let map = map_small(rounded + HUGE_PAGE)?;
        let offset = map.as_ptr().align_offset(HUGE_PAGE);
        // Without transparent huge pages in the kernel this fails; what was obtained is read back below.
        let _ = map.advise(memmap2::Advice::HugePage);
        Self::touch_and_lock(map.into(), offset, rounded, None)
    }

    fn touch_and_lock(
        map: MmapRaw,
        offset: usize,
        length: usize,
        kind: Option<PageKind>,
    ) -> Result<Self, BufferError> {
        let mut buffer = HugeBuffer {
            map,
            offset,
            length,
            kind: PageKind::Small,
        };
        for at in (0..length).step_by(SMALL_PAGE) {
            // SAFETY: `at` is below the length of the mapping, which is writable and not yet known to anybody else.
            unsafe { buffer.as_ptr().add(at).write_volatile(0) };
        }
        let memory = buffer.as_ptr().cast_const().cast();
        // SAFETY: the range lies within the mapping that `buffer` owns.
        if unsafe { libc::mlock(memory, length) } != 0 {
            return Err(BufferError::Lock {
                size: Bytes(length as u64),
                source: io::Error::last_os_error(),
            });
        }
        buffer.kind = kind.unwrap_or_else(|| transparent_share(buffer.as_ptr() as usize, length));
        Ok(buffer)
    }

    /// The start of the memory. It stays valid as long as the buffer; what others write there is read through it,
    /// volatile or atomic.
    pub fn as_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(self.offset)
    }

    /// Usable bytes: what was asked for, rounded up to whole pages.
    pub fn length(&self) -> Bytes {
        Bytes(self.length as u64)
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.kind
    }
}

fn map_small(length: usize) -> Result<memmap2::MmapMut, BufferError> {
    MmapOptions::new()
        .len(length)
        .map_anon()
        .map_err(|source| BufferError::Map {
            size: Bytes(length as u64),
            source,
        })
}

/// Asks the kernel (proc_pid_smaps(5)) how much of a range is in transparent huge pages.
fn transparent_share(start: usize, length: usize) -> PageKind {
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
    // The kernel tells it of a whole mapping, which can hold more than this buffer: its ends, which no huge page fits,
    // and neighbours that were joined to it. In doubt it is less.
    match huge_kib * 1024 {
        0 => PageKind::Small,
        bytes if bytes >= length && bytes + 2 * HUGE_PAGE >= all_kib * 1024 => {
            PageKind::TransparentHuge
        }
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
        let buffer = HugeBuffer::new(Bytes(2 << 20), HugePagePolicy::Try).unwrap();
        let before = ThreadUsage::now();
        for at in (0..buffer.length().0 as usize).step_by(SMALL_PAGE) {
            // SAFETY: within the buffer, which nobody else knows.
            unsafe { buffer.as_ptr().add(at).write_volatile(1) };
        }
        assert_eq!(ThreadUsage::now().since(before).faults(), 0);
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
