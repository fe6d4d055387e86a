//! How many huge pages of 2 MiB there are, and whether the kernel makes some by itself.
//!
//! Mapping them is [`crate::buffer`]'s; huge pages of other sizes are left out.

use super::system_files::SystemFiles;
use serde::Serialize;

/// The pool of huge pages of 2 MiB, over all NUMA nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Pages in the pool.
    pub total: u64,
    /// Those that are not touched yet.
    pub free: u64,
    /// Those among the free ones that are promised to a mapping.
    pub reserved: u64,
    /// Pages the kernel may add to the pool when it is empty (`nr_overcommit_hugepages`), if memory permits.
    pub overcommit: u64,
}

impl HugePages {
    /// The pool of this machine; none if the kernel has no such pages.
    pub fn read() -> Option<Self> {
        Self::from_files(&SystemFiles::of_this_machine())
    }

    pub(crate) fn from_files(files: &SystemFiles) -> Option<Self> {
        let pool = "sys/kernel/mm/hugepages/hugepages-2048kB";
        let number = |name: &str| files.number(&format!("{pool}/{name}"));
        Some(Self {
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?,
            reserved: number("resv_hugepages")?,
            overcommit: number("nr_overcommit_hugepages").unwrap_or(0),
        })
    }

    /// Pages a new mapping is sure to get.
    pub fn available(&self) -> u64 {
        self.free.saturating_sub(self.reserved)
    }
}

/// When the kernel makes huge pages out of small ones by itself (transparent huge pages), in its word: `always`,
/// `madvise` or `never`; none if it does not report it.
pub(crate) fn transparent_huge_pages(files: &SystemFiles) -> Option<String> {
    let modes = files.optional("sys/kernel/mm/transparent_hugepage/enabled")?;
    // The one in force is in brackets.
    let mode = modes.split_once('[')?.1.split_once(']')?.0;
    matches!(mode, "always" | "madvise" | "never").then(|| mode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    #[test]
    fn promised_pages_are_not_available() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(HugePages::from_files(&files), None);
        machine.huge_pages(64, 40, 8);
        let pages = HugePages::from_files(&files).unwrap();
        assert_eq!((pages.total, pages.free, pages.overcommit), (64, 40, 0));
        assert_eq!(pages.available(), 32);
    }

    #[test]
    fn the_mode_in_brackets_is_in_force() {
        let machine = Machine::new(1, 1, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(transparent_huge_pages(&files), None);
        for (text, mode) in [
            ("[always] madvise never", Some("always")),
            ("always [madvise] never", Some("madvise")),
            ("always madvise [never]", Some("never")),
            ("[sometimes]", None),
        ] {
            machine.file("sys/kernel/mm/transparent_hugepage/enabled", text);
            assert_eq!(transparent_huge_pages(&files).as_deref(), mode);
        }
    }
}
