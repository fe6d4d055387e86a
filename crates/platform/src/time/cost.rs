//! What a time stamp costs, and how fine the clock is.

use serde::Serialize;

use super::{Clock, Nanos, Posix, Ticks};

/// The price of one reading of a clock, and its resolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StampCost {
    /// Nanoseconds from one reading to the next in a loop of nothing else: the median of many batches. `None` if that
    /// is less than what the clock can show.
    pub cost_ns: Option<f64>,
    /// The step the clock moves in, in nanoseconds: the greatest that divides all differences between readings; `None`
    /// if it never moved.
    pub resolution_ns: Option<f64>,
}

const BATCHES: usize = 200;
const READINGS_PER_BATCH: usize = 100;

/// Measures what a reading costs on the CPU that runs this; takes a few milliseconds.
pub fn measure_stamp_cost<C: Clock>(clock: &C) -> StampCost {
    let judge = Posix::MONOTONIC;
    let mut batches = [0.0_f64; BATCHES];
    let mut step = 0;
    for batch in &mut batches {
        let mut readings = [Ticks(0); READINGS_PER_BATCH];
        let before = judge.now();
        for reading in &mut readings {
            *reading = std::hint::black_box(clock.now());
        }
        let after = judge.now();
        *batch = (after.0 - before.0) as f64 / READINGS_PER_BATCH as f64;
        for pair in readings.windows(2) {
            step = greatest_common_divisor(step, pair[1].0.saturating_sub(pair[0].0));
        }
    }
    batches.sort_by(f64::total_cmp);
    let ticks_per_second = clock.ticks_in(Nanos(1_000_000_000)).0 as f64;
    StampCost {
        cost_ns: Some(batches[BATCHES / 2]).filter(|cost| *cost > 0.0),
        resolution_ns: (step > 0).then(|| step as f64 * 1e9 / ticks_per_second),
    }
}

fn greatest_common_divisor(mut first: u64, mut second: u64) -> u64 {
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that moves by `step` at every reading, and by 3000 more at every tenth.
    #[derive(Clone, Copy)]
    struct Coarse {
        step: u64,
    }

    thread_local! {
        static READINGS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    impl Clock for Coarse {
        fn now(&self) -> Ticks {
            READINGS.set(READINGS.get() + 1);
            let tenths = READINGS.get() / 10 * u64::from(self.step > 0);
            Ticks(READINGS.get() * self.step + tenths * 3000)
        }
    }

    #[test]
    fn the_resolution_is_the_step_of_the_clock_not_the_time_a_reading_takes() {
        let resolution = |step| {
            let cost = measure_stamp_cost(&Coarse { step });
            let cost_ns = cost.cost_ns.unwrap();
            assert!(cost_ns > 0.0 && cost_ns < 1e6, "{cost:?}");
            cost.resolution_ns
        };
        assert_eq!(resolution(750), Some(750.0));
        assert_eq!(resolution(70), Some(10.0));
        assert_eq!(resolution(0), None);
    }
}
