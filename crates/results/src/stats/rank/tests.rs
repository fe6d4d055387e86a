use super::*;
use crate::testing::Noise;

fn normals(noise: &mut Noise, count: usize, level: f64) -> Vec<f64> {
    (0..count).map(|_| level + noise.normal()).collect()
}

const BOTH: [Test; 2] = [Test::MannWhitney, Test::SignedRank];

fn shift(test: Test, base: &[f64], new: &[f64], error: f64) -> Shift {
    let pairs = base.iter().zip(new).map(|(base, new)| new - base);
    let shift = match test {
        Test::MannWhitney => Shift::of_samples(base, new, error),
        Test::SignedRank => Shift::of_pairs(&pairs.collect::<Vec<f64>>(), error),
    };
    shift.unwrap()
}

fn share(tries: u64, mut is_so: impl FnMut(&mut Noise) -> bool) -> f64 {
    let mut draws = Noise::new(20_261_122);
    let found = (0..tries).filter(|_| is_so(&mut draws)).count();
    found as f64 / tries as f64
}

/// The most that a share of so many tries may be if its true value is `error`: four standard deviations above.
fn allowed(error: f64, tries: u64) -> f64 {
    error + 4.0 * (error * (1.0 - error) / tries as f64).sqrt()
}

#[test]
fn critical_values_are_those_of_the_tables() {
    // Two-sided, of 5 % and of 1 %.
    for (one, other, of_5, of_1) in [
        (4, 4, Some(0), None),
        (5, 5, Some(2), Some(0)),
        (3, 8, Some(2), None),
        (8, 8, Some(13), Some(7)),
        (10, 10, Some(23), Some(16)),
        (20, 20, Some(127), Some(105)),
    ] {
        let null = NullDistribution::mann_whitney(one, other);
        assert_eq!(null.critical(0.025), of_5, "{one} and {other}");
        assert_eq!(null.critical(0.005), of_1, "{one} and {other}");
    }
    for (pairs, of_5, of_1) in [
        (5, None, None),
        (6, Some(0), None),
        (8, Some(3), Some(0)),
        (10, Some(8), Some(3)),
        (20, Some(52), Some(37)),
    ] {
        let null = NullDistribution::signed_rank(pairs);
        assert_eq!(null.critical(0.025), of_5, "{pairs} pairs");
        assert_eq!(null.critical(0.005), of_1, "{pairs} pairs");
    }
}

#[test]
fn the_exact_distribution_is_that_of_all_orders() {
    // Which of seven ranks are those of NEW: all 35 choices of three.
    let mut counts = [0_u32; 13];
    for choice in (0_u32..128).filter(|choice| choice.count_ones() == 3) {
        let above = |rank: u32| (choice & ((1 << rank) - 1)).count_ones();
        let others = (0..7).filter(|rank| choice >> rank & 1 == 0);
        counts[others.map(above).sum::<u32>() as usize] += 1;
    }
    let null = NullDistribution::mann_whitney(4, 3);
    let mut sum = 0;
    for (effects, count) in counts.into_iter().enumerate() {
        sum += count;
        assert!((null.at_most(effects) - f64::from(sum) / 35.0).abs() < 1e-12);
    }
}

#[test]
fn the_normal_distribution_takes_over_where_the_exact_one_ends() {
    for (exact, mean, variance) in [
        (
            NullDistribution::mann_whitney(64, 64),
            2048.0,
            4096.0 * 129.0 / 12.0,
        ),
        (
            NullDistribution::signed_rank(120),
            3630.0,
            7260.0 * 241.0 / 12.0,
        ),
    ] {
        let deviation = f64::sqrt(variance);
        let approximate = NullDistribution::Normal { mean, deviation };
        for error in [0.025, 0.001] {
            // What it takes for critical has nearly that probability, and rather less.
            let held = exact.at_most(approximate.critical(error).unwrap());
            let is_within = (0.9 * error..=1.01 * error).contains(&held);
            assert!(is_within, "{held} of {error}");
        }
    }
    for (z, share) in [
        (0.0, 0.5),
        (-1.0, 0.158_655_253_931_457),
        (1.959_963_984_540_054, 0.975),
        (-3.090_232_306_167_813, 0.001),
        (-6.0, 9.865_876_450_377e-10),
    ] {
        assert!((normal(z) / share - 1.0).abs() < 1e-9, "{z}: {}", normal(z));
    }
}

#[test]
fn verdict_and_interval_agree_by_construction() {
    let mut draws = Noise::new(1);
    for round in 0..2000 {
        let rounds = 4 + round % 9;
        // Coarse figures, so that many are equal.
        let mut coarse = |level: f64| -> Vec<f64> {
            let figures = normals(&mut draws, rounds, level);
            figures.iter().map(|figure| figure.round()).collect()
        };
        let (base, new) = (coarse(0.0), coarse(1.0));
        for (test, error) in BOTH
            .into_iter()
            .flat_map(|test| [(test, 0.05), (test, 0.01)])
        {
            let found = shift(test, &base, &new, error);
            assert_eq!(found.is_shown(), found.p_value <= error, "{found:?}");
            assert!(found.interval.0 <= found.value && found.value <= found.interval.1);
        }
    }
}

#[test]
fn what_is_the_same_in_all_rounds_shows_nothing() {
    for test in BOTH {
        let found = shift(test, &[7.0; 10], &[7.0; 10], 0.05);
        assert_eq!((found.value, found.interval), (0.0, (0.0, 0.0)));
        assert!(!found.is_shown() && found.can_be_shown && found.p_value == 1.0);
        // Without any spread but apart, it is a difference.
        assert!(shift(test, &[7.0; 10], &[8.0; 10], 0.05).is_shown());
    }
    assert_eq!(Shift::of_samples(&[], &[1.0], 0.05), None);
    assert_eq!(Shift::of_pairs(&[], 0.05), None);
}

#[test]
fn as_many_rounds_are_asked_for_as_can_show_something() {
    for (test, comparisons, rounds) in [
        (Test::MannWhitney, 1, 4),
        (Test::MannWhitney, 6, 5),
        (Test::MannWhitney, 7, 6),
        (Test::MannWhitney, 321, 8),
        (Test::MannWhitney, 322, 9),
        (Test::SignedRank, 1, 6),
        (Test::SignedRank, 6, 8),
        (Test::SignedRank, 7, 9),
    ] {
        let error = 0.05 / f64::from(comparisons);
        assert_eq!(rounds_needed(test, error), rounds, "{test:?} {comparisons}");
        let found = |rounds: usize| shift(test, &vec![0.0; rounds], &vec![1.0; rounds], error);
        assert!(found(rounds).is_shown());
        let fewer = found(rounds - 1);
        assert!(!fewer.is_shown() && !fewer.can_be_shown);
    }
}

#[test]
fn so_many_rounds_as_are_estimated_show_a_difference_of_that_size() {
    for (level, error, unit) in [
        (0.7, 0.05, 0.0),
        (1.0, 0.05 / 136.0, 0.0),
        (1.5, 0.05 / 136.0, 0.0),
        // Many figures are equal, as those of whole nanoseconds are.
        (1.0, 0.05, 0.5),
    ] {
        let figures = |draws: &mut Noise, count, level| {
            let exact = normals(draws, count, level).into_iter();
            let rounded = exact.map(|it| {
                if unit > 0.0 {
                    (it / unit).round() * unit
                } else {
                    it
                }
            });
            rounded.collect::<Vec<f64>>()
        };
        // As many as leave no doubt of how much two differ.
        let mut draws = Noise::new(20_261_126);
        let (base, new) = (
            figures(&mut draws, 600, 0.0),
            figures(&mut draws, 600, level),
        );
        let rounds = rounds_to_show(&base, &new, error).unwrap();
        let found = |rounds: usize| {
            share(200, |draws| {
                let (base, new) = (figures(draws, rounds, 0.0), figures(draws, rounds, level));
                shift(Test::MannWhitney, &base, &new, error).is_shown()
            })
        };
        let (enough, half) = (found(rounds), found(rounds / 2));
        // Noether's formula asks for a few too many where two hardly overlap.
        let is_within = (0.75..0.97).contains(&enough);
        assert!(is_within, "{level}, {rounds}: {enough}");
        assert!(half < 0.6, "{level}, {rounds}: {half}");
        // Nothing says that the other way round there is a difference, or among equals.
        assert_eq!(rounds_to_show(&new, &base, error), None);
        assert_eq!(rounds_to_show(&base, &base, error), None);
    }
    // Where nothing overlaps, as many as can show anything; where half is equal, no number.
    assert_eq!(rounds_to_show(&[1.0; 3], &[2.0; 3], 0.05), Some(4));
    assert_eq!(rounds_to_show(&[7.0; 4], &[7.0, 8.0, 7.0, 8.0], 0.05), None);
    assert_eq!(rounds_to_show(&[], &[1.0], 0.05), None);
    // The table of the normal distribution.
    for (probability, deviations) in [
        (0.5, 0.0),
        (0.8, 0.841_62),
        (0.975, 1.959_96),
        (0.9995, 3.290_53),
    ] {
        let found = normal_quantile(probability);
        assert!((found - deviations).abs() < 1e-3, "{probability}: {found}");
    }
}

#[test]
fn of_equals_at_most_the_nominal_share_differ() {
    const TRIES: u64 = 2000;
    for (rounds, error) in [(8, 0.05), (10, 0.01), (25, 0.05)] {
        for test in BOTH {
            let apart = share(TRIES, |draws| {
                let (base, new) = (normals(draws, rounds, 0.0), normals(draws, rounds, 0.0));
                shift(test, &base, &new, error).is_shown()
            });
            let is_allowed = apart <= allowed(error, TRIES);
            assert!(is_allowed, "{test:?}, {rounds}: {apart}");
            assert!(apart > error / 3.0, "{test:?} sees nothing: {apart}");
        }
    }
}

/// Rounds in turn under a drift that hits both: each is 0.9 of the one before, and something new.
fn drifting(draws: &mut Noise, rounds: usize) -> (Vec<f64>, Vec<f64>) {
    let mut drift = 2.0 * draws.normal();
    let figures: Vec<f64> = (0..2 * rounds)
        .map(|_| {
            drift = 0.9 * drift + 0.9 * draws.normal();
            drift + draws.normal()
        })
        .collect();
    let every_second = |first| figures.iter().skip(first).step_by(2).copied().collect();
    (every_second(0), every_second(1))
}

#[test]
fn a_drift_common_to_both_in_turn_shows_no_difference() {
    const TRIES: u64 = 2000;
    for (test, rounds) in BOTH.into_iter().flat_map(|test| [(test, 8), (test, 20)]) {
        let apart = share(TRIES, |draws| {
            let (base, new) = drifting(draws, rounds);
            shift(test, &base, &new, 0.05).is_shown()
        });
        assert!(apart <= allowed(0.05, TRIES), "{test:?}, {rounds}: {apart}");
    }
}

#[test]
fn a_shift_of_two_deviations_is_found_with_ten_rounds() {
    // Corrected for five figures.
    for test in BOTH {
        let found = share(1000, |draws| {
            let (base, new) = (normals(draws, 10, 0.0), normals(draws, 10, 2.0));
            shift(test, &base, &new, 0.01).is_shown()
        });
        assert!(found >= 0.8, "{test:?}: {found}");
    }
}

#[test]
fn intervals_hold_the_shift_as_often_as_they_say() {
    const TRIES: u64 = 2000;
    let within = |shift: Shift| shift.interval.0 <= 3.0 && 3.0 <= shift.interval.1;
    // Of a lopsided distribution, too.
    let lopsided = |draws: &mut Noise, level: f64| -> Vec<f64> {
        (0..10).map(|_| level - draws.share().ln()).collect()
    };
    for error in [0.05, 0.01] {
        let missed = share(TRIES, |draws| {
            let (base, new) = (lopsided(draws, 0.0), lopsided(draws, 3.0));
            !within(Shift::of_samples(&base, &new, error).unwrap())
        });
        assert!(missed <= allowed(error, TRIES), "{missed} of {error}");
        let missed = share(TRIES, |draws| {
            let differences = normals(draws, 10, 3.0);
            !within(Shift::of_pairs(&differences, error).unwrap())
        });
        let most = allowed(error, TRIES);
        assert!(missed <= most, "{missed} of {error}, pairs");
    }
}

/// Of two points the round's median is their mean: what is left mirrors each other, and would count as evidence twice.
#[test]
fn two_points_less_their_mean_are_no_two_samples() {
    const TRIES: u64 = 2000;
    let apart = |paired: bool| {
        share(TRIES, |draws| {
            let (base, new) = (normals(draws, 10, 0.0), normals(draws, 10, 0.0));
            let halves = base.iter().zip(&new).map(|(base, new)| (new - base) / 2.0);
            let (up, down): (Vec<f64>, Vec<f64>) = halves.map(|half| (half, -half)).unzip();
            let found = if paired {
                Shift::of_pairs(&up, 0.05)
            } else {
                Shift::of_samples(&down, &up, 0.05)
            };
            found.unwrap().is_shown()
        })
    };
    assert!(apart(false) > 0.12, "{}", apart(false));
    assert!(apart(true) <= allowed(0.05, TRIES), "{}", apart(true));
}
