//! The largest differences: the largest of all, the ten largest, and the windows with the highest sums.

use super::window::{PLACES, SlidingWindows, WindowSum};

/// A difference and when it began, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peak {
    pub length: u64,
    /// The reading before it, since the start of the run.
    pub begin: u64,
}

/// The largest differences so far.
#[derive(Debug)]
pub(super) struct Ranking {
    baseline: u64,
    /// The largest difference, or stop while the clock was not watched.
    pub largest: u64,
    /// The ten largest, largest first; of equal ones the earlier.
    pub highest: Vec<Peak>,
    highest_wanted: bool,
    windows: Option<SlidingWindows>,
}

impl Ranking {
    /// `highest`: whether the ten largest are wanted; `window`: the length of windows, if sums are.
    pub(super) fn new(baseline: u64, highest: bool, window: Option<u64>) -> Self {
        Ranking {
            baseline,
            largest: 0,
            highest: Vec::with_capacity(PLACES + 1),
            highest_wanted: highest,
            windows: window.map(|length| SlidingWindows::new(length, baseline)),
        }
    }

    /// Differences above this must be offered.
    pub(super) fn limit(&self) -> u64 {
        if !self.highest_wanted {
            u64::MAX
        } else {
            self.highest.get(PLACES - 1).map_or(0, |least| least.length)
        }
    }

    pub(super) fn offer(&mut self, begin: u64, length: u64) {
        self.largest = self.largest.max(length);
        if self.highest_wanted {
            let place = self.highest.partition_point(|other| other.length >= length);
            self.highest.insert(place, Peak { length, begin });
            self.highest.truncate(PLACES);
        }
        if let Some(windows) = &mut self.windows
            && length > self.baseline
        {
            windows.push(begin, length - self.baseline);
        }
    }

    /// The highest sums over windows, highest first.
    pub(super) fn windows(&self) -> &[WindowSum] {
        self.windows.as_ref().map_or(&[], |it| &it.highest)
    }

    /// Whether the sums are lower bounds, because windows had more jumps than there is room for.
    pub(super) fn windows_are_cut(&self) -> bool {
        self.windows.as_ref().is_some_and(|it| it.are_cut)
    }
}
