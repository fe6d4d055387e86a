//! Atomic words in memory of a NUMA node.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::{Region, RegionError, node};
use crate::buffer::{Bytes, PageSize};

/// A fixed number of atomic words, zero at the start, which threads share by reference.
#[derive(Debug)]
pub struct RegionWords {
    region: Region,
    count: usize,
}

impl RegionWords {
    /// This many words, at least one, in pages of that size, on that node; without one, where the calling thread's
    /// memory goes.
    ///
    /// # Errors
    /// Those of [`Region::new`].
    pub fn new(count: usize, page: PageSize, node: Option<u32>) -> Result<Self, RegionError> {
        let bytes = Bytes((count as u64).saturating_mul(size_of::<AtomicU64>() as u64));
        let region = Region::new(bytes, page, node)?;
        Ok(RegionWords { region, count })
    }

    /// The node that all of it lies on; `None` if that is several, or the kernel does not report it.
    pub fn node(&self) -> Option<usize> {
        let start = NonNull::new(self.region.as_ptr())?;
        let length = self.region.length().0 as usize;
        let found = node::of_pages(start, length, self.region.page_size().bytes()).ok()?;
        let mut nodes = found.into_keys();
        let first = usize::try_from(nodes.next()?).ok()?;
        nodes.next().is_none().then_some(first)
    }
}

impl Deref for RegionWords {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        let first = self.region.as_ptr().cast::<AtomicU64>();
        // SAFETY: the region has room for this many words, begins with a page, stays where it is as long as `self`, and
        // was all zeros, which are words. Only this function hands out its address, so that all accesses are atomic.
        unsafe { std::slice::from_raw_parts(first, self.count) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn words_are_zero_shared_and_on_one_node() {
        let words = RegionWords::new(1500, PageSize::Small, None).unwrap();
        assert!(words.len() == 1500 && words.iter().all(|word| word.load(Relaxed) == 0));
        std::thread::scope(|scope| {
            let store = || words[1499].store(7, Relaxed);
            crate::host::threads::start_scoped(scope, std::thread::Builder::new(), store).unwrap();
        });
        assert_eq!(words[1499].load(Relaxed), 7);
        let nodes = crate::host::memory_layout::nodes_with_memory().unwrap();
        // A container may not let it be asked for.
        assert!(
            words.node().is_none_or(|node| nodes.contains(node)),
            "{:?}",
            words.node()
        );
        RegionWords::new(1, PageSize::Small, Some(1000)).refused(&["1000"]);
    }
}
