//! Memory for measuring: mapped in 2 MiB pages where there are any, touched and locked before use, so that no page
//! fault falls into a hot loop.

mod mapping;
mod payload;
mod placed;
mod polled;
mod region;
mod stamps;
mod words;

pub use mapping::{
    BufferError, HUGE_PAGE, HugeBuffer, HugePagePolicy, InheritedMemory, PageKind, SharedMemory,
    inherited_file,
};
pub use payload::{Payload, PayloadBuffer, Slot, StampCursor};
pub use placed::all_atomic;
pub use placed::{Atomic, MappedArena, MappedValue};
pub use polled::PolledSlots;
pub use region::{NodeError, PageSize, Region, RegionError, RegionWords};
pub use stamps::{Arrival, Plain, StampBuffer};
pub use words::AtomicWords;

use mapping::SMALL_PAGE;
use serde::{Deserialize, Serialize};

/// Memory that an HCA may be given access to.
///
/// # Safety
/// The memory of [`region`](Self::region) must stay where it is and belong to the value as long as that lives, and be
/// accessed through raw pointers only, as another party writes it.
pub unsafe trait StableMemory: Send + Sync + std::fmt::Debug {
    /// Start and length in bytes.
    fn region(&self) -> (*mut u8, usize);
}

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct Bytes(pub u64);

impl std::fmt::Display for Bytes {
    /// In the largest binary unit that leaves no fraction: `8 B`, `32 KiB`, `17 MiB`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut number, mut unit) = (self.0, "B");
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if number == 0 || number % 1024 != 0 {
                break;
            }
            (number, unit) = (number / 1024, larger);
        }
        write!(formatter, "{number} {unit}")
    }
}
