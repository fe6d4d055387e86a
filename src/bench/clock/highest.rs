//! The largest differences of a run, with their times.

/// How many are kept.
pub const PLACES: usize = 10;

/// A difference and when it began, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// Its length.
    pub length: u64,
    /// The reading before it, since the start of the run.
    pub begin: u64,
}

/// The ten largest so far, largest first; of equal ones the earlier.
#[derive(Debug, Clone, Default)]
pub struct Highest {
    peaks: [Peak; PLACES],
    used: usize,
}

impl Highest {
    /// Differences up to this one need not be offered.
    pub fn limit(&self) -> Option<u64> {
        (self.used == PLACES).then(|| self.peaks[PLACES - 1].length)
    }

    /// Takes a difference in if it is among the largest.
    pub fn offer(&mut self, peak: Peak) {
        let place = self.peaks[..self.used].partition_point(|other| other.length >= peak.length);
        if place == PLACES {
            return;
        }
        self.used = (self.used + 1).min(PLACES);
        self.peaks[place..self.used].rotate_right(1);
        self.peaks[place] = peak;
    }

    /// Those kept, largest first.
    pub fn peaks(&self) -> &[Peak] {
        &self.peaks[..self.used]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn are_those_of_sorting_all(lengths in prop::collection::vec(0_u64..50, 0..60)) {
            let mut highest = Highest::default();
            let all: Vec<Peak> = lengths.iter().zip(0..).map(|(&length, begin)| Peak { length, begin }).collect();
            for &peak in &all {
                if highest.limit().is_none_or(|limit| peak.length > limit) {
                    highest.offer(peak);
                }
            }
            let mut sorted = all;
            sorted.sort_by_key(|peak| (std::cmp::Reverse(peak.length), peak.begin));
            sorted.truncate(PLACES);
            prop_assert_eq!(highest.peaks(), &sorted[..]);
        }
    }
}
