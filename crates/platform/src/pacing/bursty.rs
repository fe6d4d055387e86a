//! Operations in groups.

use super::{ConstantRate, Interval, MissPolicy, Pacing};
use crate::time::{Clock, Ticks};

/// Groups of operations without a wait between them; the waits of a group are put off and made together behind it.
///
/// Like [`ConstantRate`] it counts the time from start to start: a group begins as many intervals behind the one before
/// as that has operations, whatever these took. Eight operations at an interval of 250 ns make a group every 2 us; if
/// they are over after 300 ns, the remaining 1.7 us are waited. A group that is not over by then makes the next one
/// late, which is one miss.
#[derive(Debug, Clone, Copy)]
pub struct Bursty {
    schedule: ConstantRate,
    group: u32,
    left: u32,
}

impl Bursty {
    /// Groups of `group` operations, at least one, which have `interval` each on average.
    pub fn new(interval: Interval, group: u32, after_miss: MissPolicy) -> Self {
        let group = group.max(1);
        Bursty {
            schedule: ConstantRate::new(interval, after_miss),
            group,
            left: group,
        }
    }
}

impl Pacing for Bursty {
    #[inline(always)]
    fn start_at(&mut self, now: Ticks) {
        self.schedule.start_at(now);
        self.left = self.group;
    }

    #[inline(always)]
    fn next_due<C: Clock>(&mut self, clock: &C) -> Option<Ticks> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = self.group;
        for _ in 0..self.group {
            self.schedule.advance();
        }
        self.schedule.due(clock)
    }

    fn missed(&self) -> u64 {
        self.schedule.missed()
    }

    /// All operations of a group are meant to start with the group.
    fn intended_starts(&self, start: Ticks, before: usize, count: usize) -> Option<Vec<Ticks>> {
        let group = self.group as usize;
        // Those of a group are drawn behind it.
        let drawn = before / group * group;
        self.schedule.moments(start, drawn, count, group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::{Jitter, scripted};
    use crate::time::Nanos;

    /// When each of `count` operations of 20 ns starts; a look around between two of them takes 1 ns.
    fn starts(pacing: &mut Bursty, clock: &scripted::Scripted, count: usize) -> Vec<u64> {
        pacing.start_at(Ticks(scripted::time()));
        (0..count)
            .map(|_| {
                let start = scripted::time();
                scripted::operation(clock, pacing, 20);
                start
            })
            .collect()
    }

    #[test]
    fn the_waits_of_a_group_come_together_behind_it() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(100));
        let mut pacing = Bursty::new(interval, 3, MissPolicy::CatchUp);
        let expected = [0, 21, 42, 300, 321, 342, 600];
        assert_eq!(starts(&mut pacing, &clock, 7), expected);
        assert_eq!(pacing.missed(), 0);
        let intended = pacing.intended_starts(Ticks(0), 0, 7).unwrap();
        assert_eq!(intended, [0, 0, 0, 300, 300, 300, 600].map(Ticks));
    }

    #[test]
    fn a_group_that_takes_too_long_is_one_miss_and_is_made_up_for() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(15));
        let mut pacing = Bursty::new(interval, 2, MissPolicy::CatchUp);
        // A group of 41 every 30; each look costs 1.
        assert_eq!(starts(&mut pacing, &clock, 6), [0, 21, 42, 63, 84, 105]);
        assert_eq!(pacing.missed(), 3);
    }

    #[test]
    fn jitter_moves_the_groups_and_keeps_their_mean() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(100)).with_jitter(Jitter::new(0.1, 9));
        let pacing = Bursty::new(interval, 20, MissPolicy::CatchUp);
        let intended = pacing.intended_starts(Ticks(0), 0, 20_001).unwrap();
        let groups: Vec<u64> = (intended.chunks(20).map(|group| group[0].0)).collect();
        let lengths: Vec<u64> = groups.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(lengths.iter().all(|length| (1800..=2200).contains(length)));
        assert!(lengths.iter().any(|length| *length != 2000));
        let mean = groups[1000] as f64 / 1000.0;
        assert!((mean - 2000.0).abs() < 2.0, "{mean}");
    }

    #[test]
    fn a_start_within_a_group_begins_one_and_draws_on() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(100)).with_jitter(Jitter::new(0.9, 3));
        let fresh = Bursty::new(interval, 3, MissPolicy::CatchUp);
        let mut pacing = fresh;
        starts(&mut pacing, &clock, 8);
        let begun = Ticks(scripted::time());
        let kept = starts(&mut pacing, &clock, 10);
        let intended = fresh.intended_starts(begun, 8, 10).unwrap();
        let groups = |all: &[u64]| all.chunks(3).map(|group| group[0]).collect::<Vec<_>>();
        let intended: Vec<u64> = intended.iter().map(|at| at.0).collect();
        assert_eq!(groups(&kept), groups(&intended));
    }

    #[test]
    fn a_group_of_one_is_a_constant_rate() {
        let clock = scripted::set(0, 0);
        let interval = Interval::new(&clock, Nanos(50));
        let mut pacing = Bursty::new(interval, 1, MissPolicy::CatchUp);
        assert_eq!(starts(&mut pacing, &clock, 4), [0, 50, 100, 150]);
    }
}
