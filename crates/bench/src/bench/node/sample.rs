//! What a sample carries, in words of 8 bytes, little-endian.
//!
//! | word | what it holds |
//! | --- | --- |
//! | 0 | when it was stamped, in nanoseconds since the Unix epoch |
//! | 1 | its publisher in the upper 16 bits, its number among those of the publisher in the others |
//! | 2.. | its values, which follow from the seed and word 1 |

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::node::{Pool, Slot};
use crate::pacing::SplitMix64;
use crate::time::{Clock, Nanos, Ticks};

/// Words before the values.
pub(super) const HEADER_WORDS: usize = 2;
const NUMBER_BITS: u32 = 48;
/// Readings of which the best gives the epoch.
const ATTEMPTS: u32 = 20;
/// The number of a sample that only tells a subscriber that its publisher can reach it.
const GREETING: u64 = (1 << NUMBER_BITS) - 1;

/// Who sent a sample, and which of its samples it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Header(pub u64);

impl Header {
    pub(super) fn new(publisher: u32, number: u64) -> Self {
        Header((u64::from(publisher) << NUMBER_BITS) | number)
    }

    pub(super) fn greeting(publisher: u32) -> Self {
        Self::new(publisher, GREETING)
    }

    #[inline(always)]
    pub(super) fn publisher(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32
    }

    #[inline(always)]
    pub(super) fn number(self) -> u64 {
        self.0 & GREETING
    }

    #[inline(always)]
    pub(super) fn is_greeting(self) -> bool {
        self.number() == GREETING
    }
}

/// Writes header and values; the stamp comes last.
#[inline(always)]
pub(super) fn fill(pool: &mut Pool, slot: &Slot, header: Header, seed: u64) {
    pool.set_word(slot, 1, header.0);
    let mut values = SplitMix64::new(seed ^ header.0);
    for at in HEADER_WORDS..words(pool) {
        pool.set_word(slot, at, values.draw());
    }
}

/// Whether the values are those that belong to the header.
#[inline(always)]
pub(super) fn is_intact(pool: &Pool, slot: &Slot, header: Header, seed: u64) -> bool {
    let mut values = SplitMix64::new(seed ^ header.0);
    // All of them are compared: it takes as long whatever has come.
    (HEADER_WORDS..words(pool)).fold(true, |intact, at| {
        intact & (pool.word(slot, at) == values.draw())
    })
}

/// The values of a sample with that header, as whole numbers with a sign: other programs have no larger ones.
pub(super) fn values(header: Header, seed: u64, count: u32) -> impl Iterator<Item = i64> {
    let mut values = SplitMix64::new(seed ^ header.0);
    (0..count).map(move |_| values.draw().cast_signed())
}

#[inline(always)]
fn words(pool: &Pool) -> usize {
    pool.sample_bytes() / crate::node::pool::WORD
}

/// How far the Unix epoch lies before the zero of a clock. Taken once a run, so that steps of the system's time do not
/// show in stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Epoch {
    offset_ns: u64,
}

impl Epoch {
    pub(super) fn of(clock: &impl Clock) -> Self {
        let now = || clock.to_nanos(clock.now()).0;
        // The thread may be interrupted between two readings: the one that took the least time counts.
        let attempts = (0..ATTEMPTS).map(|_| {
            let before = now();
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let width = now().wrapping_sub(before);
            let since = since.map_or(0, |since| since.as_nanos() as u64);
            (width, since.wrapping_sub(before.wrapping_add(width / 2)))
        });
        let (_, offset_ns) = attempts.min().expect("there is more than one attempt");
        Epoch { offset_ns }
    }

    /// A reading, in nanoseconds since the Unix epoch.
    #[inline(always)]
    pub(super) fn at(&self, clock: &impl Clock, reading: Ticks) -> u64 {
        self.of_nanos(clock.to_nanos(reading))
    }

    /// The same of a reading in nanoseconds, of this clock, or of another one that is moved as far.
    #[inline(always)]
    pub(super) fn of_nanos(&self, reading: Nanos) -> u64 {
        reading.0.wrapping_add(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::HugePagePolicy;
    use crate::time::Posix;

    #[test]
    fn values_follow_from_seed_publisher_and_number() {
        let mut pool = Pool::new(2, HEADER_WORDS + 3, HugePagePolicy::Off).unwrap();
        let slot = pool.take().unwrap();
        let header = Header::new(7, 12);
        assert_eq!((header.publisher(), header.number()), (7, 12));
        assert!(!header.is_greeting() && Header::greeting(7).is_greeting());
        fill(&mut pool, &slot, header, 5);
        assert!(is_intact(&pool, &slot, header, 5));
        let in_pool = [2, 3, 4].map(|at| pool.word(&slot, at).cast_signed());
        assert!(values(header, 5, 3).eq(in_pool));
        for other in [Header::new(7, 13), Header::new(6, 12)] {
            assert!(!is_intact(&pool, &slot, other, 5));
        }
        assert!(!is_intact(&pool, &slot, header, 6));
        let damaged = pool.word(&slot, 4) ^ 1;
        pool.set_word(&slot, 4, damaged);
        assert!(!is_intact(&pool, &slot, header, 5));
    }

    #[test]
    fn stamps_count_from_the_unix_epoch() {
        let clock = Posix::MONOTONIC;
        let epoch = Epoch::of(&clock);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let stamp = epoch.at(&clock, clock.now());
        let is_close = now.as_nanos().abs_diff(u128::from(stamp)) < 1_000_000_000;
        assert!(is_close, "{stamp}");
    }
}
