//! What a time stamp costs, and how fine the clock is.

use serde::Serialize;

use super::{Clock, Monotonic, Nanos, Ticks};

/// The price of one reading of a clock, and its resolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StampCost {
    /// Nanoseconds from one reading to the next in a loop of nothing else: the median of many batches.
    pub cost_ns: f64,
    /// The smallest step between two readings that differ, in nanoseconds.
    pub resolution_ns: f64,
}

const BATCHES: usize = 200;
const READINGS_PER_BATCH: usize = 100;

/// Measures what a reading costs on the CPU that runs this; takes a few milliseconds.
pub fn measure_stamp_cost<C: Clock>(clock: &C) -> StampCost {
    let judge = Monotonic::default();
    let mut batches = [0.0_f64; BATCHES];
    let mut smallest = u64::MAX;
    for batch in &mut batches {
        let mut readings = [Ticks(0); READINGS_PER_BATCH];
        let before = judge.now();
        for reading in &mut readings {
            *reading = std::hint::black_box(clock.now());
        }
        let after = judge.now();
        *batch = (after.0 - before.0) as f64 / READINGS_PER_BATCH as f64;
        for pair in readings.windows(2) {
            if pair[1] > pair[0] {
                smallest = smallest.min(pair[1].0 - pair[0].0);
            }
        }
    }
    batches.sort_by(f64::total_cmp);
    let ticks_per_second = clock.ticks_in(Nanos(1_000_000_000)).0 as f64;
    StampCost {
        cost_ns: batches[BATCHES / 2],
        resolution_ns: smallest as f64 * 1e9 / ticks_per_second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_costs_something_and_its_step_is_no_larger_than_the_cost_allows() {
        let cost = measure_stamp_cost(&Monotonic::default());
        assert!(cost.cost_ns > 0.0 && cost.cost_ns < 1e6, "{cost:?}");
        assert!(
            cost.resolution_ns >= 1.0 && cost.resolution_ns < 1e9,
            "{cost:?}"
        );
    }
}
