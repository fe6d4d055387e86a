//! The loop of a generator.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::accesses::{Accesses, GROUP, LINE, Store};
use crate::buffer::Region;

/// The longest pause behind a group, in nops: half a millisecond or so, and next to no bandwidth.
pub const LONGEST_PAUSE: u64 = 1 << 22;

/// Groups between two looks at the orders without pauses: some microseconds. A fence for stores past the caches is issued
/// as often; more of them would take bandwidth.
const GROUPS_PER_LOOK: u64 = 64;
/// Nops that take about as long as a group.
const NOPS_PER_GROUP: u64 = 512;

/// What a generator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Load {
    /// To which lines.
    pub accesses: Accesses,
    /// Nops behind each group, at most [`LONGEST_PAUSE`].
    pub pause: u64,
}

impl Load {
    /// Two stretches of equal work may differ by this many groups of a generator: a count is late by a look.
    pub fn late_groups(&self) -> u64 {
        2 * self.groups_per_look()
    }

    /// Groups between two looks, after which they are counted: time counts, not groups.
    fn groups_per_look(&self) -> u64 {
        GROUPS_PER_LOOK.div_ceil(1 + self.pause / NOPS_PER_GROUP)
    }
}

/// Lines that were accessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Read.
    pub read: u64,
    /// Stored to.
    pub stored: u64,
}

impl LineCounts {
    /// Those of this many groups.
    pub fn of_groups(groups: u64, accesses: &Accesses) -> Self {
        LineCounts {
            read: groups * accesses.reads as u64,
            stored: groups * accesses.stores() as u64,
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.read + self.stored
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.all() * LINE as u64
    }
}

/// How many groups a generator has done since it was made: it counts, others look.
#[derive(Debug, Default)]
pub struct Groups(CachePadded<AtomicU64>);

impl Groups {
    /// Those that are done. What they read has been read, and what they stored is in the caches or on its way to memory.
    pub fn done(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn add(&self, groups: u64) {
        let so_far = self.0.load(Ordering::Relaxed);
        self.0.store(so_far + groups, Ordering::Release);
    }
}

/// The memory of a generator, and where it is in it.
#[derive(Debug)]
pub(super) struct Generator {
    read: Stream,
    stored: Stream,
}

/// A buffer that is gone through again and again.
#[derive(Debug)]
struct Stream {
    region: Region,
    /// Where the next group begins, in bytes.
    at: usize,
}

impl Stream {
    /// Where `lines` begin that fit, and moves on behind them.
    fn next(&mut self, lines: usize) -> *mut u8 {
        let bytes = lines * LINE;
        if self.at + bytes > self.region.length().0 as usize {
            self.at = 0;
        }
        let next = self.region.as_ptr().wrapping_add(self.at);
        self.at += bytes;
        next
    }
}

impl Generator {
    /// With a buffer that is read and one that is stored to, each of [`GROUP`] lines at least.
    pub(super) fn new(read: Region, stored: Region) -> Self {
        for region in [&read, &stored] {
            assert!(region.length().0 as usize >= GROUP * LINE);
        }
        let stream = |region| Stream { region, at: 0 };
        Generator {
            read: stream(read),
            stored: stream(stored),
        }
    }

    /// Does a load and counts its groups until another order has come.
    pub(super) fn run(&mut self, load: &Load, groups: &Groups, goes_on: impl Fn() -> bool) {
        let Accesses { reads, store, .. } = load.accesses;
        let stores = load.accesses.stores();
        let Some(access) = load.accesses.function() else {
            return;
        };
        let per_look = load.groups_per_look();
        while goes_on() {
            for _ in 0..per_look {
                let (read, stored) = (self.read.next(reads), self.stored.next(stores));
                // SAFETY: as many lines of both buffers follow, which begin at a page. No other thread accesses them.
                // The function is there for processors that have its instructions only.
                unsafe { access(read, stored) };
                nops(load.pause);
            }
            if store == Store::NonTemporal {
                fence();
            }
            groups.add(per_look);
        }
    }
}

/// Stores that went past the caches come before all that follow: on x86-64 they are done, on Arm they are in order.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it needs SSE, which all of these processors have.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
    // SAFETY: it accesses nothing.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("dmb ishst", options(nostack, preserves_flags))
    };
}

/// This many nops.
#[inline(always)]
fn nops(count: u64) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        /// Nops that are done at once, as a separate loop takes time.
        const AT_ONCE: u64 = 64;
        for _ in 0..count / AT_ONCE {
            // SAFETY: it does nothing.
            unsafe {
                std::arch::asm!(
                    ".rept 64",
                    "nop",
                    ".endr",
                    options(nomem, nostack, preserves_flags)
                )
            };
        }
        for _ in 0..count % AT_ONCE {
            // SAFETY: as above.
            unsafe { std::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..count {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::buffer::{Bytes, PageSize};
    use crate::generators::InstructionSet;
    use crate::rig::named::Named;

    const LINES: usize = 4096 / LINE;

    fn run(generator: &mut Generator, load: &Load, looks: u64) -> u64 {
        let groups = Groups::default();
        let left = Cell::new(looks);
        generator.run(load, &groups, || {
            left.replace(left.get().saturating_sub(1)) > 0
        });
        groups.done()
    }

    fn region() -> Region {
        Region::new(Bytes(4096), PageSize::Small, None).unwrap()
    }

    #[test]
    fn all_kinds_of_accesses_read_and_store_the_lines_they_say() {
        assert!(InstructionSet::BASE.is_there());
        read_and_store_what_they_say();
    }

    /// Vectors of 16, 32, 64 and 128 bytes, as far as this processor has them. QEMU's has all.
    #[cfg(target_arch = "aarch64")]
    #[test]
    fn sve_does_so_with_vectors_of_each_length() {
        // `PR_SVE_SET_VL` and `PR_SVE_VL_LEN_MASK` of the kernel's `linux/prctl.h`; of this thread.
        const SET_LENGTH: i32 = 50;
        const LENGTH: i32 = 0xffff;
        for bytes in [16, 32, 64, 128] {
            // SAFETY: nothing of a vector beyond the first 16 bytes is kept across a call.
            let set = unsafe { libc::prctl(SET_LENGTH, bytes) };
            if set < 0 {
                assert!(!std::arch::is_aarch64_feature_detected!("sve"));
                return;
            }
            println!("{bytes} bytes: {} of {bytes}", set & LENGTH);
            read_and_store_what_they_say();
        }
    }

    /// By each instruction set that is there.
    fn read_and_store_what_they_say() {
        for &instruction_set in InstructionSet::ALL {
            if !instruction_set.is_there() {
                continue;
            }
            for &store in Store::ALL {
                for percent in (0..=100).step_by(2) {
                    let accesses = Accesses::with_share(instruction_set, store, percent);
                    let (read, stored) = (region(), region());
                    let start = stored.as_ptr();
                    for byte in 0..4096 {
                        // SAFETY: within the region, which nobody else knows.
                        unsafe { start.add(byte).write(0x5A) };
                    }
                    let stores = accesses.stores();
                    let mut generator = Generator::new(read, stored);
                    let load = Load {
                        accesses,
                        pause: LONGEST_PAUSE,
                    };
                    // A look is one group here.
                    assert_eq!(run(&mut generator, &load, 1), 1);
                    assert_eq!(generator.read.at, accesses.reads * LINE);
                    assert_eq!(generator.stored.at, stores * LINE);
                    for line in 0..LINES {
                        // SAFETY: within the region, which nobody writes any more.
                        let bytes =
                            unsafe { std::slice::from_raw_parts(start.add(line * LINE), LINE) };
                        // In each part of 16 bytes.
                        let stored = bytes.chunks(16).all(|part| part != [0x5A; 16]);
                        let untouched = bytes.iter().all(|byte| *byte == 0x5A);
                        let expected = (line < stores, line >= stores);
                        assert_eq!((stored, untouched), expected, "{accesses:?} {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_stream_never_leaves_its_buffer_and_leaves_out_less_than_a_group() {
        let mut stream = Stream {
            region: region(),
            at: 0,
        };
        let start = stream.region.as_ptr().addr();
        for lines in [30, 20, 14, 50, 1] {
            stream.at = 0;
            for _ in 0..200 {
                let at = stream.next(lines).addr() - start;
                assert!(at + lines * LINE <= 4096, "{at}");
                assert!(at.is_multiple_of(lines * LINE), "{at}");
            }
        }
    }

    #[test]
    fn looks_come_as_often_with_long_pauses() {
        let accesses = Accesses::with_share(InstructionSet::BASE, Store::Regular, 50);
        for (pause, groups) in [(0, 64), (511, 64), (512, 32), (4096, 8), (LONGEST_PAUSE, 1)] {
            assert_eq!(
                Load { accesses, pause }.groups_per_look(),
                groups,
                "{pause}"
            );
        }
    }
}
