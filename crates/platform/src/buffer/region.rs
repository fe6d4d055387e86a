//! Memory of one size of pages, on a NUMA node of choice, touched, and verified to be both. It is not locked: it may be
//! larger than what a user may lock, and who uses it all the time keeps it.

mod node;
mod words;

pub use node::NodeError;
pub use words::RegionWords;

use std::io;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags};

use super::mapping::{Mapping, advice, is_of_memory, transparent_share};
use super::{Bytes, HUGE_PAGE, PageKind, SMALL_PAGE};
use crate::named::names;

names! {
    /// A size of pages.
    PageSize {
        /// 4 KiB, which the kernel is advised not to join.
        Small = "4k",
        /// 2 MiB: of the reserved pool, else transparent ones.
        Huge = "2m",
        /// 1 GiB, of the reserved pool.
        Giant = "1g",
    }
}

impl PageSize {
    /// Its bytes.
    pub const fn bytes(self) -> usize {
        match self {
            PageSize::Small => SMALL_PAGE,
            PageSize::Huge => HUGE_PAGE,
            PageSize::Giant => 1 << 30,
        }
    }

    /// What memory of a length takes in such pages.
    pub fn length_for(self, length: Bytes) -> Bytes {
        Bytes(length.0.max(1).next_multiple_of(self.bytes() as u64))
    }
}

/// Memory could not be allocated as requested.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// It could not be mapped.
    #[error("mmap of {size} failed ({source}): {}", advice(*size, source))]
    Map {
        /// What was asked for.
        size: Bytes,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no room for it: on the node, or in the machine.
    #[error(
        "no {size} of memory ({source}): the machine, or the node, has less of it free: use smaller buffers, or memory \
         of another node"
    )]
    Populate {
        /// What was asked for.
        size: Bytes,
        /// The system's reason.
        source: io::Error,
    },
    /// The pool has too few pages.
    #[error(
        "{size} in pages of {page} cannot be mapped ({source}): reserve {count} more of them in \
         /sys/kernel/mm/hugepages, or use smaller pages"
    )]
    NoPages {
        /// What was asked for.
        size: Bytes,
        /// The size of a page.
        page: Bytes,
        /// How many pages that takes.
        count: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The pool has too few pages, and the kernel did not join small ones.
    #[error(
        "no {size} in pages of 2 MiB: none are reserved, and the kernel joined {got}: reserve {count} of them (sysctl \
         vm.nr_hugepages), allow transparent ones (/sys/kernel/mm/transparent_hugepage/enabled), or use smaller pages"
    )]
    NotJoined {
        /// What was asked for.
        size: Bytes,
        /// What it did, in words.
        got: &'static str,
        /// How many pages that takes.
        count: u64,
    },
    /// It is not where it was to be.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl RegionError {
    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        match self {
            RegionError::Map { source, .. } | RegionError::Populate { source, .. } => {
                is_of_memory(source)
            }
            _ => false,
        }
    }
}

/// Zeroed memory, reached by pointer only.
#[derive(Debug)]
pub struct Region {
    map: Mapping,
    length: Bytes,
    page: PageSize,
    kind: PageKind,
}

impl Region {
    /// This many bytes in pages of that size, on that node; without one, where the calling thread's memory goes.
    ///
    /// # Errors
    /// When there are no such pages, or not as many, or not on that node.
    pub fn new(length: Bytes, page: PageSize, node: Option<u32>) -> Result<Self, RegionError> {
        let whole = Self::whole(page.length_for(length), page, node)?;
        Ok(Region { length, ..whole })
    }

    /// This many bytes, which are whole pages.
    fn whole(size: Bytes, page: PageSize, node: Option<u32>) -> Result<Self, RegionError> {
        match page {
            PageSize::Small => Self::advised(size, page, MmapAdvise::MADV_NOHUGEPAGE, node),
            PageSize::Giant => Self::reserved(size, page, node),
            PageSize::Huge => match Self::reserved(size, page, node) {
                Err(RegionError::NoPages { .. }) => {
                    let region = Self::advised(size, page, MmapAdvise::MADV_HUGEPAGE, node)?;
                    let got = match region.kind {
                        PageKind::TransparentHuge => return Ok(region),
                        PageKind::PartlyTransparentHuge => "a part of it only",
                        _ => "nothing of it",
                    };
                    let count = size.0 / page.bytes() as u64;
                    Err(RegionError::NotJoined { size, got, count })
                }
                reserved => reserved,
            },
        }
    }

    /// The same in the largest available pages.
    ///
    /// # Errors
    /// When it cannot be allocated in small pages either.
    pub fn in_largest(length: Bytes, node: Option<u32>) -> Result<Self, RegionError> {
        // Memory in pages of 1 GiB that would stay empty for the greater part is somebody else's.
        let giant = (length.0 >= PageSize::Giant.bytes() as u64).then_some(PageSize::Giant);
        for page in giant.into_iter().chain([PageSize::Huge]) {
            match Self::new(length, page, node) {
                Err(RegionError::NoPages { .. } | RegionError::NotJoined { .. }) => {}
                other => return other,
            }
        }
        Self::new(length, PageSize::Small, node)
    }

    fn reserved(size: Bytes, page: PageSize, node: Option<u32>) -> Result<Self, RegionError> {
        let no_pages = |source: io::Error| RegionError::NoPages {
            size,
            page: Bytes(page.bytes() as u64),
            count: size.0 / page.bytes() as u64,
            source,
        };
        let (pages, kind) = match page {
            PageSize::Giant => (MapFlags::MAP_HUGE_1GB, PageKind::Giant),
            _ => (MapFlags::MAP_HUGE_2MB, PageKind::Huge),
        };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let map = Mapping::new(size.0 as usize, access, MapFlags::MAP_HUGETLB | pages)
            .map_err(|errno| no_pages(errno.into()))?;
        // A page that is not there would be a SIGBUS when it is touched.
        Self::filled(map, page, Some(kind), node).map_err(|error| match error {
            RegionError::Populate { source, .. } => no_pages(source),
            other => other,
        })
    }

    fn advised(
        size: Bytes,
        page: PageSize,
        advice: MmapAdvise,
        node: Option<u32>,
    ) -> Result<Self, RegionError> {
        let map = Mapping::advised(size.0 as usize, page.bytes(), advice).map_err(|errno| {
            RegionError::Map {
                size,
                source: errno.into(),
            }
        })?;
        Self::filled(map, page, None, node)
    }

    fn filled(
        map: Mapping,
        page: PageSize,
        kind: Option<PageKind>,
        node: Option<u32>,
    ) -> Result<Self, RegionError> {
        let (start, length) = (map.start.cast::<u8>(), map.length);
        if let Some(node) = node {
            node::bind(start, length, node)?;
        }
        populate(&map).map_err(|source| RegionError::Populate {
            size: Bytes(length as u64),
            source,
        })?;
        let kind = kind.unwrap_or_else(|| transparent_share(start.addr().get(), length));
        if let Some(node) = node {
            node::verify(start, length, page.bytes(), node)?;
        }
        Ok(Region {
            length: Bytes(length as u64),
            map,
            page,
            kind,
        })
    }

    /// Its start, which stays where it is as long as the region.
    pub fn as_ptr(&self) -> *mut u8 {
        self.map.start.cast().as_ptr()
    }

    /// What was asked for. The last page may have more.
    pub fn length(&self) -> Bytes {
        self.length
    }

    /// The size of its pages; of [`PageKind::PartlyTransparentHuge`], that of the smallest.
    pub fn page_size(&self) -> PageSize {
        self.page
    }

    /// The pages it got.
    pub fn page_kind(&self) -> PageKind {
        self.kind
    }
}

/// Has the kernel give all pages, writable. It reports where it cannot, other than by a signal.
fn populate(map: &Mapping) -> io::Result<()> {
    // SAFETY: the mapping is writable, and no other thread has it; zeros stay zeros.
    let told = unsafe { libc::madvise(map.start.as_ptr(), map.length, libc::MADV_POPULATE_WRITE) };
    if told == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Before Linux 5.14.
        error if error.raw_os_error() == Some(libc::EINVAL) => {
            map.touch();
            Ok(())
        }
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Refused as _;
    use std::ptr::NonNull;

    use super::*;

    #[test]
    fn it_is_zeroed_writable_and_of_the_pages_that_were_asked_for() {
        let region = Region::new(Bytes(5000), PageSize::Small, None).unwrap();
        assert_eq!(region.length(), Bytes(5000));
        assert_eq!(region.page_size(), PageSize::Small);
        assert_eq!(region.page_kind(), PageKind::Small);
        // SAFETY: within the region, which nobody else knows.
        unsafe {
            assert_eq!(region.as_ptr().add(4999).read(), 0);
            region.as_ptr().add(4999).write(7);
            assert_eq!(region.as_ptr().add(4999).read(), 7);
        }
    }

    #[test]
    fn the_largest_pages_that_there_are_are_taken_and_told() {
        let region = Region::in_largest(Bytes(3 << 20), None).unwrap();
        let expected: &[PageKind] = match region.page_size() {
            PageSize::Small => &[PageKind::Small],
            PageSize::Huge => &[PageKind::Huge, PageKind::TransparentHuge],
            PageSize::Giant => panic!("for 3 MiB"),
        };
        assert!(expected.contains(&region.page_kind()), "{region:?}");
    }

    #[test]
    fn what_is_not_there_is_told() {
        let told = ["64 TiB", "pages of 1 GiB"];
        Region::new(Bytes(1 << 46), PageSize::Giant, None).refused(&told);
        Region::new(Bytes(1 << 50), PageSize::Small, None).refused(&["mmap"]);
        Region::new(Bytes(4096), PageSize::Small, Some(1000)).refused(&["1000"]);
    }

    #[test]
    fn memory_of_a_node_is_there() {
        // Node 0 has memory on all machines with one or two nodes.
        let region = Region::new(Bytes(4 << 20), PageSize::Small, Some(0)).unwrap();
        let found =
            node::of_pages(NonNull::new(region.as_ptr()).unwrap(), 4 << 20, SMALL_PAGE).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(0, 1024)]);
    }
}
