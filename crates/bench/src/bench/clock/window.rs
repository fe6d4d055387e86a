//! Jumps summed over windows that slide: does time get lost in clusters?
//!
//! What counts of a jump is what it has above the baseline. A jump belongs to a window when it begins in it. A window
//! is as long as asked for and slides: for each jump, the sum of all jumps that began less than a window's length
//! before it, itself included. So the highest sum of all windows is among these, no cluster is cut in two, and the
//! first and the last jump count as any other.

use std::collections::VecDeque;

/// How many of the largest are kept.
pub(super) const PLACES: usize = 10;

/// A window, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowSum {
    pub begin: u64,
    pub last: u64,
    pub jumps: u64,
    /// Their length above the baseline.
    pub extra: u64,
}

/// The highest sums of windows that have no jump in common.
///
/// The list is kept as the run goes: a window takes the place of those that it overlaps when its sum is higher than
/// theirs. So the first is the highest of all windows, exactly. The others are windows beside it that were found on the
/// way, and no more: a window that gave way to one that later gave way itself is not found again.
#[derive(Debug)]
pub(super) struct SlidingWindows {
    length: u64,
    /// The jumps in the window: when each began, and its length above the baseline.
    inside: VecDeque<(u64, u64)>,
    room: usize,
    /// Whether a window had more jumps than there was room for: the sums are then lower bounds.
    pub are_cut: bool,
    extra: u64,
    /// The highest first, of windows that have no jump in common.
    pub highest: Vec<WindowSum>,
}

/// Jumps that a window has room for, 4 MiB of them; that many do not fit unless it is long.
const MOST_ROOM: usize = 1 << 18;

impl SlidingWindows {
    /// Windows of so many ticks, for jumps each longer than `baseline`. The memory is touched.
    pub(super) fn new(length: u64, baseline: u64) -> Self {
        let fit = usize::try_from(length / baseline.max(1)).unwrap_or(MOST_ROOM);
        Self::with_room(length, fit.saturating_add(2).min(MOST_ROOM))
    }

    fn with_room(length: u64, room: usize) -> Self {
        let mut inside: VecDeque<_> = std::iter::repeat_n((1, 1), room).collect();
        inside.clear();
        SlidingWindows {
            length,
            inside,
            room,
            are_cut: false,
            extra: 0,
            highest: Vec::with_capacity(PLACES + 1),
        }
    }

    /// Takes the next jump: when it began, not before the one before it, and its length above the baseline. Where
    /// there is no room for it the first jump leaves too early: sums can be too low, never too high.
    pub(super) fn push(&mut self, begin: u64, extra: u64) {
        while let Some(&(first, its_extra)) = self.inside.front() {
            let full = self.inside.len() == self.room;
            let is_inside = begin - first < self.length;
            if is_inside && !full {
                break;
            }
            self.are_cut |= is_inside;
            self.inside.pop_front();
            self.extra -= its_extra;
        }
        self.inside.push_back((begin, extra));
        self.extra += extra;
        self.offer(WindowSum {
            begin: self.inside[0].0,
            last: begin,
            jumps: self.inside.len() as u64,
            extra: self.extra,
        });
    }

    fn offer(&mut self, sum: WindowSum) {
        // Windows come in the order of time, so those that overlap are those that end in or behind its beginning.
        let overlaps = |other: &WindowSum| other.last >= sum.begin;
        let outdoes = |other: &WindowSum| overlaps(other) && other.extra >= sum.extra;
        if self.highest.iter().any(outdoes) {
            return;
        }
        self.highest.retain(|other| !overlaps(other));
        let place = self
            .highest
            .partition_point(|other| other.extra >= sum.extra);
        if place < PLACES {
            self.highest.insert(place, sum);
            self.highest.truncate(PLACES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(length: u64, jumps: &[(u64, u64)]) -> Vec<WindowSum> {
        let mut windows = SlidingWindows::new(length, 1);
        jumps
            .iter()
            .for_each(|&(begin, extra)| windows.push(begin, extra));
        windows.highest
    }

    #[test]
    fn only_the_first_is_exact() {
        // The highest beside the first would be the jump at 0; it gave way to a window that gave way to the first.
        let found = of(1000, &[(0, 10), (900, 1), (1800, 100)]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].begin, found[0].last), (900, 1800));
        assert_eq!((found[0].jumps, found[0].extra), (2, 101));
    }

    #[test]
    fn memory_does_not_grow_and_sums_are_then_lower_bounds() {
        let mut windows = SlidingWindows::with_room(1000, 8);
        let memory = windows.inside.capacity();
        (0..8).for_each(|at| windows.push(at * 10, 3));
        assert!(!windows.are_cut);
        (8..2000).for_each(|at| windows.push(at * 10, 3));
        assert_eq!(windows.inside.capacity(), memory);
        let highest = windows.highest[0];
        assert!(windows.are_cut && highest.extra == 24, "{highest:?}");
    }

    proptest! {
        #[test]
        fn the_first_is_the_highest_of_all_windows_and_none_overlap(
            steps in prop::collection::vec((0_u64..300, 1_u64..100), 0..80), length in 1_u64..1000,
        ) {
            let mut now = 0;
            let jumps: Vec<(u64, u64)> = steps.iter().map(|&(step, extra)| { now += step; (now, extra) }).collect();
            let highest = jumps.iter().map(|&(end, _)| {
                jumps.iter().filter(|&&(begin, _)| begin <= end && end - begin < length).map(|&(_, extra)| extra).sum::<u64>()
            }).max();
            let found = of(length, &jumps);
            // Jumps that begin at the same tick make one window; the sum over all of them is the last of theirs.
            prop_assert_eq!(found.first().map(|sum| sum.extra), highest);
            prop_assert!(found.len() <= PLACES);
            for (index, one) in found.iter().enumerate() {
                prop_assert!(one.last - one.begin < length);
                let parts = jumps.iter().filter(|(begin, _)| (one.begin..=one.last).contains(begin));
                // At the last tick there may be more that begin.
                prop_assert!((1..=parts.count() as u64).contains(&one.jumps));
                for other in &found[index + 1..] {
                    prop_assert!(other.extra <= one.extra);
                    prop_assert!(other.last < one.begin || one.last < other.begin);
                }
            }
        }
    }
}
