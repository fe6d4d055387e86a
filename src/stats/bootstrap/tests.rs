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

/// Fewer than a comparison takes, so that many pairs can be compared; ten of a hundred lie outside of the interval.
const QUICK: Resampling = Resampling {
    replicates: 1_000,
    seed: SEED,
};

/// What is found of pairs of runs whose p50 and p99 are compared.
#[derive(Debug, Default)]
struct Found {
    /// Pairs that either percentile tells apart.
    apart: usize,
    /// Pairs of which each percentile was judged.
    judged: [usize; 2],
}

impl Found {
    fn of(pairs: usize, mut pair: impl FnMut() -> (Series, Series)) -> Self {
        let mut found = Found::default();
        for _ in 0..pairs {
            let (base, new) = pair();
            let mut apart = false;
            for (place, percent) in PERCENTILES.into_iter().enumerate() {
                if let Some(difference) = difference(&base, &new, percent, PERCENTILES.len(), QUICK)
                {
                    found.judged[place] += 1;
                    apart |= difference.shown;
                }
            }
            found.apart += usize::from(apart);
        }
        found
    }
}

fn difference(
    base: &Series,
    new: &Series,
    percent: f64,
    comparisons: usize,
    resampling: Resampling,
) -> Option<Difference> {
    let base = base.percentile(percent, resampling).ok()?;
    let new = new.percentile(percent, resampling.of_the_other()).ok()?;
    Some(Difference::of(&base, &new, comparisons, 1.0))
}

#[test]
fn two_equal_runs_are_told_apart_in_no_more_than_5_of_100() {
    let pairs = 300;
    let mut machine = Machine(SplitMix64::new(6));
    let mut run = || series(machine.run(8_000, 0.0));
    let found = Found::of(pairs, || (run(), run()));
    assert!(found.apart * 100 <= 5 * pairs, "{found:?}");
    // Not because nothing is ever judged.
    assert_eq!(found.judged[0], pairs);
    assert!(found.judged[1] * 4 >= 3 * pairs, "{found:?}");
}

#[test]
fn so_are_short_runs_whose_tail_is_a_few_events() {
    let pairs = 300;
    let mut machine = Machine(SplitMix64::new(5));
    let mut run = || series(machine.run(2_000, 0.0));
    let found = Found::of(pairs, || (run(), run()));
    assert!(found.apart * 100 <= 5 * pairs, "{found:?}");
    assert!(found.judged[1] * 2 < pairs, "{found:?}");
}

#[test]
fn so_are_runs_of_a_few_repetitions_that_differ_by_themselves() {
    let pairs = 300;
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
    let found = Found::of(pairs, || (run(), run()));
    assert!(found.apart * 100 <= 5 * pairs, "{found:?}");
}

/// What this is all for: drawing single samples tells equal runs apart far too often.
#[test]
fn drawing_single_samples_would_tell_equal_runs_apart() {
    let mut machine = Machine(SplitMix64::new(8));
    let mut run = || {
        let mut samples = machine.run(4_000, 0.0);
        // Shuffled, neighbours are independent: blocks of them say what single samples would.
        let mut draws = Draws::new(1);
        for place in (1..samples.len()).rev() {
            samples.swap(place, draws.below(place + 1));
        }
        series(samples)
    };
    let found = Found::of(60, || (run(), run()));
    assert!(found.apart > 20, "{found:?}");
}

#[test]
fn a_true_shift_of_20_us_in_100_us_is_found() {
    let mut machine = Machine(SplitMix64::new(9));
    let (mut found, mut covered) = (0, 0);
    for round in 0..40 {
        let base = series(machine.run(8_000, 0.0));
        let new = series(machine.run(8_000, 20_000.0));
        let up = difference(&base, &new, 50.0, 2, QUICK).unwrap();
        let down = difference(&new, &base, 50.0, 2, QUICK).unwrap();
        assert!(
            up.together.1 > 0.0 && down.together.0 < 0.0,
            "round {round} finds the contrary: {up:?}, {down:?}"
        );
        found += usize::from(up.shown && down.shown);
        covered += usize::from(up.together.0 < 20_000.0 && 20_000.0 < up.together.1);
    }
    // Blocks that go with each other by chance make an interval far wider now and then.
    assert!(found >= 38, "found in {found} of 40");
    // 39 of 40 are expected.
    assert!(
        covered >= 36,
        "{covered} of 40 intervals hold the true shift"
    );
}

/// The intervals of all points and percentiles of a sweep hold together in 95 of 100 runs.
#[test]
fn a_whole_sweep_of_equal_points_stays_within_5_of_100() {
    let (sweeps, points) = (40, 8);
    let comparisons = points * PERCENTILES.len();
    let mut machine = Machine(SplitMix64::new(10));
    let wrong = (0..sweeps)
        .filter(|_| {
            let found = (0..points)
                .filter(|_| {
                    let (base, new) = (
                        series(machine.run(4_000, 0.0)),
                        series(machine.run(4_000, 0.0)),
                    );
                    PERCENTILES.iter().any(|&percent| {
                        let more = Resampling {
                            replicates: 2_000,
                            ..QUICK
                        };
                        difference(&base, &new, percent, comparisons, more)
                            .is_some_and(|difference| difference.shown)
                    })
                })
                .count();
            found > 0
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
    let thousand = series(
        (0..1000)
            .map(|place| f64::from(place * 379 % 1000))
            .collect(),
    );
    assert!(thousand.percentile(99.0, resampling).is_ok());
    assert_eq!(
        thousand.percentile(99.9, resampling).unwrap_err(),
        TooFew::Beyond {
            found: 1,
            needed: LEAST_BEYOND
        }
    );
    // All of the largest ones in a row are one event.
    let in_a_row = series((0..1000).map(f64::from).collect());
    assert!(matches!(
        in_a_row.percentile(99.0, resampling),
        Err(TooFew::Events { found: 1, .. })
    ));
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
        let Ok(estimate) = series(samples).percentile(percent, resampling) else {
            return Err(TestCaseError::reject("chance made neighbours alike"));
        };
        prop_assert!(estimate.replicates.iter().all(|&value| low <= value && value <= high));
    }
}

/// With about 1 % lost, the p99 of some replicates is that of a lost message.
#[test]
fn losses_about_the_share_of_a_percentile_do_not_hide_that_it_is_worse() {
    let mut machine = Machine(SplitMix64::new(13));
    for lost in [70, 80, 90, 95, 99, 100, 101, 105, 110, 120, 130] {
        let base: Vec<f64> = (0..10_000).map(|_| 1_000.0 + machine.unit()).collect();
        let mut new: Vec<f64> = base.iter().map(|sample| sample + 5_000.0).collect();
        for place in 0..lost {
            new[place * 10_000 / lost] = f64::INFINITY;
        }
        let found = difference(&series(base), &series(new), 99.0, 2, QUICK).unwrap();
        assert!(
            found.shown && found.together.0 >= 4_999.0,
            "{lost} lost: {found:?}"
        );
        assert_eq!(found.value == f64::INFINITY, lost >= 100, "{lost} lost");
    }
}

/// Bursts of a process follow each other within a millisecond: what moves one moves the next.
fn bursts_that_go_together(draws: &mut Machine, bursts: usize, together: f64) -> Series {
    let mut level = draws.normal();
    let mut samples = Vec::new();
    for _ in 0..bursts {
        level = together * level + (1.0 - together * together).sqrt() * draws.normal();
        samples.extend((0..20).map(|_| 100_000.0 + 10_000.0 * level + 1_000.0 * draws.normal()));
    }
    Series::new(samples, vec![20; bursts])
}

/// What is found of pairs of such runs, in percent: told apart though equal, judged, and told apart where one is 20 us
/// slower.
fn bursts_compared(
    draws: &mut Machine,
    pairs: usize,
    bursts: usize,
    together: f64,
    percent: f64,
) -> [f64; 3] {
    let mut counts = [0_usize; 3];
    for _ in 0..pairs {
        let mut run = || bursts_that_go_together(draws, bursts, together);
        let (base, new) = (run(), run());
        let Some(found) = difference(&base, &new, percent, 1, QUICK) else {
            continue;
        };
        counts[0] += usize::from(found.shown);
        counts[1] += 1;
        // The interval of a run that is slower throughout is that of this one, farther up.
        counts[2] += usize::from(found.alone.0 + 20_000.0 > 1.0);
    }
    counts.map(|count| count as f64 * 100.0 / pairs as f64)
}

#[test]
fn bursts_that_go_together_are_not_taken_for_independent() {
    let mut draws = Machine(SplitMix64::new(14));
    // Bursts, how far they go together, and of how many of 100 pairs at least a difference of 20 us must be found: of a
    // few that hardly change from one to the next, nothing can.
    for (bursts, together, least_found) in [
        (20, 0.0, 75.0),
        (20, 0.5, 20.0),
        (20, 0.9, 0.0),
        (40, 0.3, 70.0),
        (40, 0.8, 0.0),
        (64, 0.5, 60.0),
        (400, 0.8, 75.0),
        (400, 0.9, 20.0),
    ] {
        let pairs = 100;
        let [apart, judged, found] = bursts_compared(&mut draws, pairs, bursts, together, 50.0);
        println!(
            "{bursts} bursts, {together}: {apart} % apart, {judged} % judged, {found} % found"
        );
        assert!(apart <= 5.0, "{bursts} bursts, {together}: {apart} % apart");
        assert!(
            found >= least_found,
            "{bursts} bursts, {together}: {found} % found"
        );
    }
}

#[test]
fn a_few_bursts_that_hardly_change_are_not_judged() {
    let mut draws = Machine(SplitMix64::new(15));
    let mut judged = |together| {
        let is_judged = |_: &usize| {
            bursts_that_go_together(&mut draws, 20, together)
                .percentile(50.0, QUICK)
                .is_ok()
        };
        (0..200).filter(is_judged).count()
    };
    let (independent, dependent) = (judged(0.0), judged(0.9));
    assert!(
        independent >= 190 && dependent <= 100,
        "{independent}, {dependent}"
    );
    // Runs that begin anew each are judged in any case.
    let rising = (0..20).map(f64::from).collect();
    assert!(Series::of_runs(rising).percentile(50.0, QUICK).is_ok());
}

/// Events that come by chance, a few or many, each alone or in a heap: what is counted of losses.
fn events(draws: &mut Machine, samples: usize, rate: f64, heap: usize) -> Series {
    let mut missing = vec![1_000.0; samples];
    let mut place = 0.0;
    loop {
        place += -draws.unit().ln() * heap as f64 / rate;
        if place >= samples as f64 {
            return series(missing);
        }
        let begin = place as usize;
        let end = (begin + heap).min(samples);
        missing[begin..end].fill(f64::INFINITY);
    }
}

#[test]
fn equal_shares_of_losses_are_told_apart_in_no_more_than_5_of_100() {
    let mut draws = Machine(SplitMix64::new(17));
    let pairs = 200;
    let mut share = |rate: [f64; 2], heap: usize| {
        let shown = |_: &usize| {
            let [base, new] = rate.map(|rate| events(&mut draws, 6_400, rate, heap));
            let base = base.share_missing(QUICK).unwrap();
            let new = new.share_missing(QUICK.of_the_other()).unwrap();
            Difference::of(&base, &new, 1, 0.0).shown
        };
        (0..pairs).filter(shown).count() * 100 / pairs
    };
    for rate in [0.0, 0.0003, 0.001, 0.003, 0.03] {
        for heap in [1, 20] {
            let apart = share([rate; 2], heap);
            assert!(apart <= 5, "{rate} in heaps of {heap}: {apart} %");
        }
    }
    // Three of a thousand instead of none.
    let found = share([0.0, 0.003], 1);
    assert!(found >= 95, "{found} %");
}

/// Draws the length of a jump.
type Length = fn(&mut Machine) -> f64;

/// Slices of the time of a watch, with the sum of the lengths of the jumps in each: so many on average, by chance.
fn jumps(draws: &mut Machine, rate: f64, length: Length) -> Series {
    let mut slices = vec![0.0; 640];
    let mut place = 0.0;
    loop {
        place += -draws.unit().ln() / rate;
        match slices.get_mut(place as usize) {
            Some(slice) => *slice += length(draws),
            None => return series(slices),
        }
    }
}

#[test]
fn equal_rates_and_sums_of_jumps_are_told_apart_no_more_often_than_5_of_100_and_chance() {
    let mut draws = Machine(SplitMix64::new(18));
    let pairs = 250;
    // Each alike, as they are counted; lengths about one; and lengths of which a few make up much of the sum.
    let lengths: [(&str, Length); 3] = [
        ("alike", |_| 1.0),
        ("exponential", |draws| -draws.unit().ln()),
        ("log-normal", |draws| draws.normal().exp()),
    ];
    for rate in [0.01, 0.1, 3.0] {
        for (name, length) in lengths {
            let shown = |_: &usize| {
                let base = jumps(&mut draws, rate, length).mean(QUICK);
                let new = jumps(&mut draws, rate, length).mean(QUICK.of_the_other());
                matches!((base, new), (Ok(base), Ok(new)) if Difference::of(&base, &new, 1, 0.0).shown)
            };
            let apart = (0..pairs).filter(shown).count() as f64 * 100.0 / pairs as f64;
            println!("{rate} in a slice, {name}: {apart} %");
            // Of 1000 pairs 4.0 at the most; of these few, chance may make it more.
            assert!(apart <= 7.5, "{rate} in a slice, {name}: {apart} %");
        }
    }
}

/// Bursts of one message are bursts, and no runs.
#[test]
fn a_percentile_of_bursts_of_one_message_needs_samples_beyond_it() {
    let samples: Vec<f64> = (0..200).map(|place| f64::from(place * 79 % 200)).collect();
    let bursts = Series::new(samples, vec![1; 200]);
    let resampling = Resampling::for_comparisons(1);
    assert!(matches!(
        bursts.percentile(99.0, resampling),
        Err(TooFew::Beyond { found: 2, .. })
    ));
    assert!(bursts.percentile(50.0, resampling).is_ok());
}
