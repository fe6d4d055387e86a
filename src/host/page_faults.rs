//! Page faults of a thread: in a hot loop there must be none.

use super::error::HostError;
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

/// Page faults of one thread, since it began or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PageFaults {
    /// Those served without reading from a disk: some 0.1 to 1 us each, and more for a huge page.
    pub minor: u64,
    /// Those that waited for a disk.
    pub major: u64,
}

impl PageFaults {
    /// The page faults of the calling thread since it began (`getrusage(RUSAGE_THREAD)`, one system call).
    ///
    /// # Errors
    /// [`HostError::System`] if the kernel refuses.
    pub fn of_current_thread() -> Result<Self, HostError> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).map_err(|errno| HostError::System {
            operation: "getrusage(RUSAGE_THREAD)",
            object: "the calling thread".to_owned(),
            errno,
            advice: "page faults cannot be counted on this kernel".to_owned(),
        })?;
        let count = |faults: i64| u64::try_from(faults).unwrap_or(0);
        Ok(Self {
            minor: count(usage.minor_page_faults()),
            major: count(usage.major_page_faults()),
        })
    }

    /// The page faults after `earlier`, a reading of the same thread.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            minor: self.minor.saturating_sub(earlier.minor),
            major: self.major.saturating_sub(earlier.major),
        }
    }

    /// Both kinds together.
    pub fn total(&self) -> u64 {
        self.minor + self.major
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    /// Writes one byte to each 4 KiB page, so that none can be left out by the compiler.
    fn touch(map: &mut MmapMut, value: u8) {
        for byte in map.iter_mut().step_by(4096) {
            *std::hint::black_box(byte) = value;
        }
    }

    #[test]
    fn the_first_touch_counts_and_the_second_does_not() {
        const PAGES: usize = 64;
        let mut map = MmapMut::map_anon(PAGES * 4096).unwrap();
        map.advise(memmap2::Advice::NoHugePage).unwrap();
        let start = PageFaults::of_current_thread().unwrap();
        touch(&mut map, 1);
        let first = PageFaults::of_current_thread().unwrap();
        touch(&mut map, 2);
        let second = PageFaults::of_current_thread().unwrap();
        // Large folios of newer kernels may serve several pages by one fault.
        let fresh = first.since(&start).total();
        assert!(
            (1..=PAGES as u64 + 8).contains(&fresh),
            "{fresh} page faults for {PAGES} fresh pages"
        );
        assert_eq!(second.since(&first).total(), 0);
    }

    #[test]
    fn faults_of_another_thread_are_not_ours() {
        let start = PageFaults::of_current_thread().unwrap();
        let theirs = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let before = PageFaults::of_current_thread().unwrap();
                    let mut map = MmapMut::map_anon(16 << 20).unwrap();
                    map.advise(memmap2::Advice::NoHugePage).unwrap();
                    touch(&mut map, 1);
                    PageFaults::of_current_thread()
                        .unwrap()
                        .since(&before)
                        .total()
                })
                .join()
                .unwrap()
        });
        let ours = PageFaults::of_current_thread()
            .unwrap()
            .since(&start)
            .total();
        assert!(theirs > 4 * ours.max(8), "theirs {theirs}, ours {ours}");
    }
}
