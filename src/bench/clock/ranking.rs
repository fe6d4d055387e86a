//! The largest differences: the largest of all, the ten largest, and the windows with the highest sums.

use super::highest::{Highest, Peak};
use super::window::{SlidingWindows, Sum};

#[derive(Debug)]
pub(super) struct Ranking {
    baseline: u64,
    largest: u64,
    top: Option<Highest>,
    windows: Option<SlidingWindows>,
}

impl Ranking {
    /// `highest`: whether the ten largest are wanted; `window`: the length of windows, if sums are.
    pub(super) fn new(baseline: u64, highest: bool, window: Option<u64>) -> Self {
        Ranking {
            baseline,
            largest: 0,
            top: highest.then(Highest::default),
            windows: window.map(|length| SlidingWindows::new(length, baseline)),
        }
    }

    /// Differences above this must be offered.
    pub(super) fn limit(&self) -> u64 {
        let top = self.top.as_ref();
        top.map_or(u64::MAX, |top| top.limit().unwrap_or(0))
    }

    pub(super) fn offer(&mut self, begin: u64, length: u64) {
        self.largest = self.largest.max(length);
        if let Some(top) = &mut self.top {
            top.offer(Peak { length, begin });
        }
        if let Some(windows) = &mut self.windows
            && length > self.baseline
        {
            windows.push(begin, length - self.baseline);
        }
    }

    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    pub(super) fn peaks(&self) -> Vec<Peak> {
        let top = self.top.as_ref();
        top.map_or_else(Vec::new, |top| top.peaks().to_vec())
    }

    /// The highest sums, and whether they are lower bounds.
    pub(super) fn windows(&self) -> (Vec<Sum>, bool) {
        let windows = self.windows.as_ref();
        windows.map_or((Vec::new(), false), |it| {
            (it.highest().to_vec(), it.merged())
        })
    }
}
