use super::*;
use crate::pacing::SplitMix64;
use crate::stats::{Difference, percentile_of_sorted};
use proptest::prelude::*;

/// Latencies as a machine gives them, in nanoseconds, median about 100 us: a level that wanders from message to message
/// (autoregressive, over some 20 messages), log-normal; and disturbances that hit about 15 messages in a row, some 3 % of
/// all, with a Pareto tail whose variance is infinite.
struct Machine(SplitMix64);

impl Machine {
    fn unit(&mut self) -> f64 {
        ((self.0.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn run(&mut self, messages: usize, shift_ns: f64) -> Vec<f64> {
        const STAYS: f64 = 0.95;
        let mut level = self.normal();
        let mut disturbed = false;
        (0..messages)
            .map(|_| {
                level = STAYS * level + (1.0 - STAYS * STAYS).sqrt() * self.normal();
                disturbed = if disturbed {
                    self.unit() > 1.0 / 15.0
                } else {
                    self.unit() < 0.002
                };
                let tail = if disturbed {
                    30_000.0 * self.unit().powf(-1.0 / 1.8)
                } else {
                    0.0
                };
                (100_000.0 * (0.15 * level).exp() + tail + shift_ns).round()
            })
            .collect()
    }
}

fn series(samples: Vec<f64>) -> Series {
    let all = samples.len();
    Series::new(samples, vec![all])
}

const PERCENTILES: [f64; 2] = [50.0, 99.0];

/// Whether p50 and p99 of two runs are told apart, as one comparison of the two.
fn told_apart(base: &Series, new: &Series) -> [bool; 2] {
    let resampling = Resampling::for_comparisons(PERCENTILES.len());
    PERCENTILES.map(|percent| {
        let base = base.percentile(percent, resampling).unwrap();
        let new = new.percentile(percent, resampling.of_the_other()).unwrap();
        Difference::of(&base, &new, PERCENTILES.len(), 1.0).shown
    })
}

/// Of so many pairs of runs, how many are told apart by either percentile.
fn pairs_told_apart(pairs: usize, mut pair: impl FnMut() -> (Series, Series)) -> usize {
    (0..pairs)
        .filter(|_| {
            let (base, new) = pair();
            told_apart(&base, &new) != [false, false]
        })
        .count()
}

#[test]
fn two_equal_runs_are_told_apart_in_no_more_than_5_of_100() {
    let pairs = 200;
    let mut machine = Machine(SplitMix64::new(6));
    let mut run = || series(machine.run(4_000, 0.0));
    let apart = pairs_told_apart(pairs, || (run(), run()));
    assert!(apart * 100 <= 5 * pairs, "{apart} of {pairs}");
}

#[test]
fn so_are_two_equal_runs_of_a_few_repetitions_that_differ_by_themselves() {
    let pairs = 200;
    let mut machine = Machine(SplitMix64::new(7));
    // Each repetition has a level of its own: what single samples or blocks of them cannot tell.
    let mut run = || {
        let bursts: Vec<f64> = (0..9)
            .flat_map(|_| {
                let level = 10_000.0 * machine.normal();
                machine.run(500, level)
            })
            .collect();
        Series::new(bursts, vec![500; 9])
    };
    let apart = pairs_told_apart(pairs, || (run(), run()));
    assert!(apart * 100 <= 5 * pairs, "{apart} of {pairs}");
}

/// What this is all for: the same with single samples drawn tells equal runs apart far too often.
#[test]
fn drawing_single_samples_would_tell_equal_runs_apart() {
    let mut machine = Machine(SplitMix64::new(8));
    let mut run = || {
        let samples = machine.run(4_000, 0.0);
        let all = samples.len();
        // Shuffled, neighbours are independent: blocks of them then say what single samples do.
        let mut shuffled = samples;
        let mut draws = Draws::new(all as u64);
        for place in (1..all).rev() {
            shuffled.swap(place, draws.below(place + 1));
        }
        series(shuffled)
    };
    let apart = pairs_told_apart(50, || (run(), run()));
    assert!(apart > 15, "{apart} of 50");
}

#[test]
fn a_true_shift_of_20_us_in_100_us_is_found() {
    let mut machine = Machine(SplitMix64::new(9));
    for round in 0..20 {
        let base = series(machine.run(4_000, 0.0));
        let new = series(machine.run(4_000, 20_000.0));
        assert!(told_apart(&base, &new)[0], "round {round}");
        assert!(told_apart(&new, &base)[0], "round {round}, other way");
    }
}

/// The intervals of 20 points with two percentiles each hold together in 95 of 100 runs.
#[test]
fn a_whole_sweep_of_equal_points_stays_within_5_of_100() {
    let (sweeps, points) = (40, 20);
    let comparisons = points * PERCENTILES.len();
    let resampling = Resampling {
        replicates: 8_000,
        ..Resampling::for_comparisons(comparisons)
    };
    let mut machine = Machine(SplitMix64::new(10));
    let wrong = (0..sweeps)
        .filter(|_| {
            (0..points).any(|_| {
                let (base, new) = (
                    series(machine.run(2_000, 0.0)),
                    series(machine.run(2_000, 0.0)),
                );
                PERCENTILES.iter().any(|&percent| {
                    let base = base.percentile(percent, resampling).unwrap();
                    let new = new.percentile(percent, resampling.of_the_other()).unwrap();
                    Difference::of(&base, &new, comparisons, 1.0).shown
                })
            })
        })
        .count();
    assert!(wrong * 100 <= 5 * sweeps, "{wrong} of {sweeps}");
}

#[test]
fn the_same_samples_give_the_same_interval() {
    let samples = Machine(SplitMix64::new(11)).run(3_000, 0.0);
    let estimate = || {
        series(samples.clone())
            .percentile(50.0, Resampling::for_comparisons(1))
            .unwrap()
    };
    assert_eq!(estimate(), estimate());
}

#[test]
fn a_lost_message_is_slower_than_any_other() {
    let mut samples = Machine(SplitMix64::new(12)).run(2_000, 0.0);
    for place in (0..2_000).step_by(40) {
        samples[place] = f64::INFINITY;
    }
    let with_losses = series(samples);
    let resampling = Resampling::for_comparisons(1);
    let p99 = with_losses.percentile(99.0, resampling).unwrap();
    assert_eq!(p99.value, f64::INFINITY);
    let lost = with_losses.share_missing(resampling).unwrap();
    assert_eq!(lost.value, 0.025);
    let mean = lost.replicates.iter().sum::<f64>() / lost.replicates.len() as f64;
    assert!((mean - 0.025).abs() < 0.001, "{mean}");
}

#[test]
fn percentiles_without_samples_beyond_are_refused() {
    let resampling = Resampling::for_comparisons(1);
    let thousand = series((0..1000).map(f64::from).collect());
    assert!(thousand.percentile(99.0, resampling).is_ok());
    assert_eq!(
        thousand.percentile(99.9, resampling).unwrap_err(),
        TooFew::Beyond {
            found: 1,
            needed: LEAST_BEYOND
        }
    );
    assert_eq!(
        Series::of_runs(Vec::new()).percentile(50.0, resampling),
        Err(TooFew::None)
    );
    assert!(
        Series::of_runs(vec![1.0; 5])
            .percentile(50.0, resampling)
            .is_err()
    );
    assert!(
        Series::of_runs(vec![1.0; 6])
            .percentile(50.0, resampling)
            .is_ok()
    );
}

#[test]
fn equal_samples_leave_nothing_to_chance() {
    let estimate = series(vec![7.0; 640])
        .percentile(50.0, Resampling::for_comparisons(1))
        .unwrap();
    assert_eq!(estimate.value, 7.0);
    assert!(estimate.replicates.iter().all(|&value| value == 7.0));
}

proptest! {
    #[test]
    fn values_are_those_of_the_project_s_percentile(
        samples in prop::collection::vec(-1_000_000_i64..1_000_000, 1..300),
        percent in 0.0..=100.0_f64,
    ) {
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        let found = series(samples.iter().map(|&sample| sample as f64).collect()).value_at(percent);
        prop_assert_eq!(found, percentile_of_sorted(&sorted, percent));
    }

    #[test]
    fn replicates_are_within_the_samples(
        samples in prop::collection::vec(0_u32..50, 64..300),
        percent in 20.0..80.0_f64,
    ) {
        let samples: Vec<f64> = samples.into_iter().map(f64::from).collect();
        let (low, high) = samples.iter().fold((f64::MAX, 0.0_f64), |(low, high), &sample| (low.min(sample), high.max(sample)));
        let resampling = Resampling { replicates: 50, seed: 1 };
        let estimate = series(samples).percentile(percent, resampling).unwrap();
        prop_assert!(estimate.replicates.iter().all(|&value| low <= value && value <= high));
    }
}
