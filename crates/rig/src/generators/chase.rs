//! The pointer chase: each line of a buffer holds the address of another one, and all of them are one random cycle. A
//! step is a load of an address from the address that the step before it has loaded: nothing can be read ahead.

use std::time::{Duration, Instant};

use super::accesses::LINE;
use crate::buffer::{Bytes, Region};
use crate::pacing::SplitMix64;

/// Steps between two looks at the clock: a multiple of those that are done at once.
const LEAST_STEPS: u64 = 1024;
const STEPS_AT_ONCE: u64 = 16;
/// How often it looks at the clock, about.
const LOOK: Duration = Duration::from_micros(200);

/// A buffer with its cycle.
#[derive(Debug)]
pub struct Chase {
    region: Region,
    /// Of what it goes through.
    length: Bytes,
    /// The line that is next: an address in the region.
    at: *const u8,
    steps_per_look: u64,
}

// SAFETY: the addresses lead to its own region, which is bound to no thread.
unsafe impl Send for Chase {}

/// Steps, and how long they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChaseTiming {
    /// Steps along the cycle.
    pub steps: u64,
    /// From the first to behind the last.
    pub time: Duration,
}

impl ChaseTiming {
    /// Time of a step, in nanoseconds.
    pub fn latency_ns(&self) -> f64 {
        self.time.as_nanos() as f64 / self.steps.max(1) as f64
    }
}

impl Chase {
    /// Makes one cycle of all lines in the first `length` bytes of a region, or in all of it if that is smaller, which
    /// follows from a seed. `goes_on` is asked now and then; `None` once it returns false. It takes four more bytes a
    /// line meanwhile.
    pub fn new(
        region: Region,
        length: Bytes,
        seed: u64,
        goes_on: impl Fn() -> bool,
    ) -> Option<Self> {
        let length = length.0.min(region.length().0);
        let lines = u32::try_from(length as usize / LINE).ok()?;
        let next = cycle(lines, seed, &goes_on)?;
        let start = region.as_ptr();
        for (line, next) in next.iter().enumerate() {
            let next = start.wrapping_add(*next as usize * LINE);
            // SAFETY: both lines are in the region, which no other thread has, on the boundaries of lines.
            unsafe { start.add(line * LINE).cast::<*const u8>().write(next) };
        }
        Some(Chase {
            at: start,
            region,
            length: Bytes(length),
            steps_per_look: LEAST_STEPS,
        })
    }

    /// The memory that it goes through.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The memory, for another chase.
    pub fn into_region(self) -> Region {
        self.region
    }

    /// Goes along the whole cycle once, or through `most` bytes of lines if it has more, and for about `time` at most: what
    /// fits into the caches lies in them then.
    pub fn warm_up(&mut self, most: Bytes, time: Duration) {
        let steps = self.length.0.min(most.0) / LINE as u64;
        let begun = Instant::now();
        let mut done = 0;
        while done < steps && begun.elapsed() < time {
            self.steps(LEAST_STEPS);
            done += LEAST_STEPS;
        }
    }

    /// Makes steps for about that long, at least.
    pub fn run(&mut self, time: Duration) -> ChaseTiming {
        let begun = Instant::now();
        let mut stretch = ChaseTiming {
            steps: 0,
            time: Duration::ZERO,
        };
        while stretch.time < time {
            self.steps(self.steps_per_look);
            stretch.steps += self.steps_per_look;
            stretch.time = begun.elapsed();
        }
        let in_a_look = LOOK.as_nanos() as f64 / stretch.latency_ns().max(0.1);
        self.steps_per_look = (in_a_look as u64)
            .max(LEAST_STEPS)
            .next_multiple_of(STEPS_AT_ONCE);
        stretch
    }

    /// Makes this many steps, a multiple of those that are done at once.
    #[inline(never)]
    fn steps(&mut self, count: u64) {
        let mut at = self.at;
        for _ in 0..count / STEPS_AT_ONCE {
            // SAFETY: each line of the region holds the address of another one, and only this value knows it.
            at = unsafe { steps_at_once(at) };
        }
        self.at = at;
    }
}

/// Makes [`STEPS_AT_ONCE`] steps. In assembler, so that a build without optimisation measures the same.
///
/// # Safety
/// At the address there must be an address of which the same holds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn steps_at_once(mut at: *const u8) -> *const u8 {
    // SAFETY: loads alone, from where the caller allows them.
    unsafe {
        std::arch::asm!(
            ".rept 16",
            "mov {at}, qword ptr [{at}]",
            ".endr",
            at = inout(reg) at,
            options(nostack, preserves_flags, readonly)
        )
    };
    at
}

/// The same.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn steps_at_once(mut at: *const u8) -> *const u8 {
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            ".rept 16",
            "ldr {at}, [{at}]",
            ".endr",
            at = inout(reg) at,
            options(nostack, preserves_flags, readonly)
        )
    };
    at
}

/// The same.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
unsafe fn steps_at_once(mut at: *const u8) -> *const u8 {
    for _ in 0..STEPS_AT_ONCE {
        // SAFETY: as the caller states.
        at = unsafe { at.cast::<*const u8>().read_volatile() };
    }
    at
}

/// The successor of each line on a random cycle through all of them (Sattolo 1986): no two cycles, no line left out.
fn cycle(lines: u32, seed: u64, goes_on: impl Fn() -> bool) -> Option<Vec<u32>> {
    const LINES_PER_LOOK: u32 = 1 << 20;
    let mut next: Vec<u32> = (0..lines).collect();
    let mut random = SplitMix64::new(seed);
    for line in (1..lines).rev() {
        if line % LINES_PER_LOOK == 0 && !goes_on() {
            return None;
        }
        let other = random.draw() % u64::from(line);
        next.swap(line as usize, other as usize);
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::PageSize;

    #[test]
    fn a_cycle_visits_each_line_once() {
        for (lines, seed) in [(1, 1), (2, 1), (3, 7), (64, 1), (1000, 2), (100_003, 3)] {
            let next = cycle(lines, seed, || true).unwrap();
            let mut seen = vec![false; lines as usize];
            let mut at = 0;
            for _ in 0..lines {
                let is_new = !std::mem::replace(&mut seen[at as usize], true);
                assert!(is_new, "line {at}");
                at = next[at as usize];
            }
            assert_eq!(at, 0);
        }
        assert_ne!(cycle(1000, 1, || true), cycle(1000, 2, || true));
        assert_eq!(cycle(3 << 20, 1, || false), None);
    }

    #[test]
    fn the_chase_goes_along_the_whole_cycle_in_its_own_memory() {
        let mut region = Region::new(Bytes(1 << 20), PageSize::Small, None).unwrap();
        // All of it, a part of it, and all of it again.
        for length in [1 << 20, 64 << 10, 1 << 30] {
            let mut chase = Chase::new(region, Bytes(length), 5, || true).unwrap();
            let length = length.min(1 << 20);
            let lines = length / LINE as u64;
            let first = chase.at;
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..lines / STEPS_AT_ONCE {
                assert!(seen.insert(chase.at.addr() - first.addr()));
                chase.steps(STEPS_AT_ONCE);
            }
            // Back at the start after as many steps as there are lines, and no sooner.
            assert_eq!(chase.at, first);
            assert_eq!(seen.len() as u64, lines / STEPS_AT_ONCE);
            assert!(*seen.last().unwrap() < length as usize);
            region = chase.into_region();
        }
    }

    #[test]
    fn a_warm_up_goes_along_the_cycle_once_within_bounds() {
        let region = Region::new(Bytes(1 << 20), PageSize::Small, None).unwrap();
        let mut chase = Chase::new(region, Bytes(1 << 20), 5, || true).unwrap();
        let ahead = |chase: &mut Chase, steps: u64| {
            let (from, mut done) = (chase.at, 0);
            while done < steps {
                chase.steps(STEPS_AT_ONCE);
                done += STEPS_AT_ONCE;
            }
            let to = chase.at;
            chase.at = from;
            to
        };
        let lines = (1 << 20) / LINE as u64;
        let first = chase.at;
        chase.warm_up(Bytes(1 << 30), Duration::MAX);
        assert_eq!(chase.at, first);
        let half = ahead(&mut chase, lines / 2);
        chase.warm_up(Bytes(1 << 19), Duration::MAX);
        assert_eq!(chase.at, half);
        chase.warm_up(Bytes(1 << 30), Duration::ZERO);
        assert_eq!(chase.at, half);
    }

    #[test]
    fn a_stretch_lasts_as_long_as_asked_and_counts_its_steps() {
        let region = Region::new(Bytes(4096), PageSize::Small, None).unwrap();
        let mut chase = Chase::new(region, Bytes(4096), 5, || true).unwrap();
        let stretch = chase.run(Duration::from_millis(2));
        assert!(stretch.time >= Duration::from_millis(2));
        assert!(stretch.steps >= LEAST_STEPS && stretch.latency_ns() > 0.0);
        assert_eq!(chase.steps_per_look % STEPS_AT_ONCE, 0);
    }
}
