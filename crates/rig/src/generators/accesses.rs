//! What a generator does to memory: groups of 50 lines, read or stored to in an even pattern.
//!
//! There is one function for each instruction set, kind of store and number of reads in a group, made when the crate is
//! compiled: 306 for x86-64. On aarch64 SVE has three widths, as its vectors are of 16, 32 or more bytes: 408.
//! Each accesses no other memory, and order and number of its accesses are fixed. Lines that
//! are read and lines that are stored to are two streams, each contiguous.

use crate::rig::named::named;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Lines of a group.
pub const GROUP: usize = 50;

named! {
    /// The instructions that a line is accessed with.
    InstructionSet {
        /// Four accesses of 16 bytes a line.
        Sse2 = "sse2",
        /// Two of 32 bytes.
        Avx2 = "avx2",
        /// One of 64 bytes.
        Avx512 = "avx512",
        /// Two pairs of 16 bytes (`ldp`, `stp`, `stnp`) a line; of aarch64, as the next one.
        Neon = "neon",
        /// Vectors of the processor's length, as many as a line has, or the first 64 bytes of a longer one.
        Sve = "sve",
    }
}

named! {
    /// How lines are stored.
    Store {
        /// Through the caches: most processors read a line before they store to it.
        Regular = "regular",
        /// Past the caches, whole lines at a time.
        NonTemporal = "non-temporal",
    }
}

impl InstructionSet {
    /// Whether this processor has it.
    pub fn is_there(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            InstructionSet::Sse2 => true,
            InstructionSet::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            InstructionSet::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            InstructionSet::Neon | InstructionSet::Sve => false,
        };
        #[cfg(target_arch = "aarch64")]
        return match self {
            InstructionSet::Neon => true,
            InstructionSet::Sve => {
                std::arch::is_aarch64_feature_detected!("sve") && functions::has_functions_for_sve()
            }
            InstructionSet::Sse2 | InstructionSet::Avx2 | InstructionSet::Avx512 => false,
        };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return false;
    }

    /// The one that each processor of this architecture has.
    #[cfg(any(test, feature = "testing"))]
    pub const BASE: Self = if cfg!(target_arch = "aarch64") {
        Self::Neon
    } else {
        Self::Sse2
    };

    /// The one with the widest accesses that this processor has.
    pub fn widest() -> Option<Self> {
        [Self::Avx512, Self::Avx2, Self::Sse2, Self::Sve, Self::Neon]
            .into_iter()
            .find(|set| set.is_there())
    }
}

/// Which lines of a group are read, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Accesses {
    /// Must be there.
    pub instruction_set: InstructionSet,
    /// How lines are stored.
    pub store: Store,
    /// Lines of a group that are read, at most [`GROUP`]. The others are stored to.
    pub reads: usize,
}

/// Reads and stores the lines of a group. The first address is where the lines that are read begin, the second that of
/// the lines that are stored to.
pub(super) type AccessFunction = unsafe extern "C" fn(*const u8, *mut u8);

impl Accesses {
    /// Those with that share of reads, in percent: an even number up to 100.
    pub fn with_share(instruction_set: InstructionSet, store: Store, percent: u32) -> Self {
        Accesses {
            instruction_set,
            store,
            reads: percent as usize / 2,
        }
    }

    /// Lines of a group that are stored to.
    pub fn stores(&self) -> usize {
        GROUP - self.reads
    }

    /// The function that does it; `None` on a processor that lacks the instruction set.
    pub(super) fn function(&self) -> Option<AccessFunction> {
        if !self.instruction_set.is_there() {
            return None;
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        return Some(functions::of(self)[self.reads]);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return None;
    }
}

/// A bit for each line of a group, the first one lowest: 1 where it is read, which spreads reads and stores evenly.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code)
)]
const fn pattern(reads: usize) -> u64 {
    let (mut pattern, mut line) = (0, 0);
    while line < GROUP {
        if (line + 1) * reads / GROUP > line * reads / GROUP {
            pattern |= 1 << line;
        }
        line += 1;
    }
    pattern
}

#[macro_use]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shares;

#[cfg(target_arch = "x86_64")]
mod functions;
#[cfg(target_arch = "aarch64")]
#[path = "accesses/functions_aarch64.rs"]
mod functions;
