//! Whether a counter ever goes backwards from one reading to the next.

use serde::Serialize;

/// How many backward steps are kept one by one.
pub const KEPT_STEPS: usize = 10;

/// A reading that was earlier than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BackwardStep {
    /// By how many counts.
    pub ticks: u64,
    /// The CPU of the reading before, where it is known.
    pub from_cpu: Option<u32>,
    /// The CPU of the reading that was earlier.
    pub to_cpu: Option<u32>,
}

/// What a row of readings showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Monotony {
    /// Readings.
    pub reads: u64,
    /// Pairs of neighbours that were read on two CPUs.
    pub crossings: u64,
    /// Readings that were the same as the one before.
    pub repeated: u64,
    /// Readings that were earlier than the one before.
    pub backward_steps: u64,
    /// The largest of those, the largest first; at most [`KEPT_STEPS`].
    pub largest_steps: Vec<BackwardStep>,
}

impl Monotony {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self {
            largest_steps: Vec::with_capacity(KEPT_STEPS + 1),
            ..Self::default()
        }
    }

    /// Takes the first reading, which has none before it.
    pub fn start(&mut self) {
        self.reads += 1;
    }

    /// Takes a reading and the one before it, each with its CPU where that is known.
    #[inline]
    pub fn compare(&mut self, before: (u64, Option<u32>), now: (u64, Option<u32>)) {
        self.reads += 1;
        if before.1 != now.1 {
            self.crossings += 1;
        }
        if now.0 == before.0 {
            self.repeated += 1;
        }
        if now.0 < before.0 {
            self.backward_steps += 1;
            self.keep(BackwardStep {
                ticks: before.0 - now.0,
                from_cpu: before.1,
                to_cpu: now.1,
            });
        }
    }

    /// The largest step back, in counts; 0 if there was none.
    pub fn largest(&self) -> u64 {
        self.largest_steps.first().map_or(0, |step| step.ticks)
    }

    /// Whether no reading differed from the one before.
    pub fn stood_still(&self) -> bool {
        self.reads > 1 && self.repeated + 1 >= self.reads
    }

    /// Adds what another row of readings showed.
    pub fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.crossings += other.crossings;
        self.repeated += other.repeated;
        self.backward_steps += other.backward_steps;
        for step in &other.largest_steps {
            self.keep(*step);
        }
    }

    #[cold]
    fn keep(&mut self, step: BackwardStep) {
        self.largest_steps.push(step);
        self.largest_steps.sort_by(|a, b| b.cmp(a));
        self.largest_steps.truncate(KEPT_STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(readings: &[(u64, u32)]) -> Monotony {
        let mut found = Monotony::new();
        for pair in readings.windows(2) {
            found.compare((pair[0].0, Some(pair[0].1)), (pair[1].0, Some(pair[1].1)));
        }
        found
    }

    #[test]
    fn steps_are_counted_with_their_size_and_their_cpus() {
        let found = of(&[
            (10, 0),
            (20, 0),
            (15, 1),
            (15, 1),
            (30, 0),
            (29, 0),
            (40, 2),
        ]);
        assert_eq!(
            (
                found.reads,
                found.crossings,
                found.repeated,
                found.backward_steps
            ),
            (6, 3, 1, 2)
        );
        assert_eq!(
            found.largest_steps,
            [
                BackwardStep {
                    ticks: 5,
                    from_cpu: Some(0),
                    to_cpu: Some(1)
                },
                BackwardStep {
                    ticks: 1,
                    from_cpu: Some(0),
                    to_cpu: Some(0)
                },
            ]
        );
        assert_eq!(found.largest(), 5);
    }

    #[test]
    fn a_rising_counter_shows_none_and_one_that_stands_is_told() {
        let rising = of(&(0..1000).map(|at| (at, 0)).collect::<Vec<_>>());
        assert_eq!((rising.backward_steps, rising.largest()), (0, 0));
        assert!(!rising.stood_still());
        assert!(of(&[(7, 0); 50]).stood_still());
        let mut one = Monotony::new();
        one.start();
        assert!(!one.stood_still());
        assert!(!Monotony::new().stood_still());
    }

    #[test]
    fn only_the_largest_are_kept_and_all_are_counted() {
        let steps: Vec<_> = (1..=50u64)
            .flat_map(|size| [(1000, 0), (1000 - size, 0)])
            .collect();
        let found = of(&steps);
        assert_eq!(found.backward_steps, 50);
        let sizes: Vec<_> = found.largest_steps.iter().map(|step| step.ticks).collect();
        assert_eq!(sizes, (41..=50).rev().collect::<Vec<_>>());
        let mut both = of(&[(5, 0), (1, 0)]);
        both.merge(&found);
        assert_eq!(
            (both.reads, both.backward_steps, both.largest()),
            (100, 51, 50)
        );
        assert_eq!(both.largest_steps.len(), KEPT_STEPS);
    }
}
