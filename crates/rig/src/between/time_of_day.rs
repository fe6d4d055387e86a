//! How far the time of day is ahead of a clock of this host: what PTP and NTP keep is the time of day.

use serde::{Deserialize, Serialize};

use crate::time::{Clock, PosixReading, Reading as _};

/// Readings of which the closest is taken.
const READINGS: u32 = 32;

/// The time of day less the clock, in nanoseconds: from, to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeOfDayOffset(pub i64, pub i64);

impl TimeOfDayOffset {
    /// Reads both clocks, the time of day between two readings of the other.
    pub fn of<C: Clock>(clock: &C) -> Self {
        let nanos = |ticks| clock.to_nanos(ticks).0 as i64;
        let once = |_| {
            let before = clock.now();
            let (day, ()) = PosixReading::REALTIME.read_beside(|| ());
            let after = clock.now();
            let day = day.0 as i64;
            TimeOfDayOffset(
                day.wrapping_sub(nanos(after)),
                day.wrapping_sub(nanos(before)),
            )
        };
        let closest = (0..READINGS).map(once).min_by_key(|it| it.1 - it.0);
        closest.expect("there are readings")
    }

    /// By how much the stamps of `other` are to be moved so that both clocks are apart as their times of day are, and how
    /// far that may be wrong.
    pub fn shift_of(self, other: TimeOfDayOffset) -> (i64, u64) {
        let middle = |it: TimeOfDayOffset| it.0 + (it.1 - it.0) / 2;
        let half = |it: TimeOfDayOffset| (it.1 - it.0).unsigned_abs().div_ceil(2);
        (middle(other) - middle(self), half(other) + half(self) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Posix;

    #[test]
    fn two_clocks_of_one_host_are_apart_by_what_their_times_of_day_are_not() {
        let (one, other) = (Posix::MONOTONIC, Posix::MONOTONIC_RAW);
        let (shift, error) = TimeOfDayOffset::of(&one).shift_of(TimeOfDayOffset::of(&other));
        // By so much is the first ahead, read right after.
        let (first, second) = (one.now().0 as i64, other.now().0 as i64);
        let apart = first - second;
        // Both readings take a moment, on a busy machine a long one.
        let is_close = (shift - apart).unsigned_abs() < error + 1_000_000_000;
        assert!(is_close, "{shift} {apart}");
        assert_eq!(
            TimeOfDayOffset(10, 20).shift_of(TimeOfDayOffset(110, 130)),
            (105, 16)
        );
    }
}
