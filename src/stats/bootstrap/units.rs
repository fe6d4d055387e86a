//! What is drawn: repetitions, or blocks of neighbours.

use serde::Serialize;

use super::TooFew;

/// So many units are enough; more repetitions than that are drawn in groups.
pub const MOST_UNITS: usize = 64;
/// With fewer there is no interval. It is also the least number of runs whose median has bounds.
pub const LEAST_UNITS: usize = 6;
/// What lies beyond a percentile must come from so many of the blocks.
pub const LEAST_EVENTS: usize = 4;
/// Units that go with their neighbours must be worth as many independent ones.
pub const LEAST_WORTH: usize = 4;
/// Units are made longer, but never fewer than this: of fewer, nobody can tell how far they go together.
const LEAST_MERGED: usize = 16;
/// Units that go with their neighbours by more than this (lag-1 autocorrelation), and by more than it may be wrong, are
/// too short.
const TOO_SHORT: f64 = 0.2;
/// The least that is taken for more than chance.
const NEIGHBOURS_ALIKE: f64 = 0.1;
/// What chance makes of the lag-1 autocorrelation of independent units is larger than this in one of 20, in multiples of
/// `1 / sqrt(units)` above its mean of `-1 / units`.
const ONE_OF_20: f64 = 1.645;
/// Neighbours that are said to go together by more than this are taken for so much.
const MOST_TOGETHER: f64 = 0.95;

/// What one unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A repetition, or several neighbouring ones.
    Repetition,
    /// Neighbouring samples.
    Block,
}

/// The units of a series: for each the sum of what is counted, and the samples it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Units {
    unit: Unit,
    units: Vec<(f64, f64)>,
    /// The lag-1 autocorrelation that the units show.
    together: f64,
    /// Whether each began anew.
    begin_anew: bool,
    /// Of the units before neighbours were put together, where most is known of it: how many there were, and how far they
    /// went together.
    at_first: (usize, f64),
}

impl Units {
    /// Parts samples into units and adds up what `count` makes of each sample.
    ///
    /// From [`LEAST_UNITS`] repetitions on, these are the units, else [`MOST_UNITS`] blocks of equal length. Repetitions that
    /// follow each other within a millisecond are no more independent than blocks: of either, two neighbours are put
    /// together as long as they go with each other (lag-1 autocorrelation) and 16 would be left. By how much less than
    /// independent ones these know is up to [`Together`]. What lasts longer than that cannot be told from a true
    /// difference: such units are said to be [`alike`](Self::alike).
    pub(super) fn of(
        samples: &[f64],
        repetitions: &[usize],
        count: impl Fn(f64) -> f64,
    ) -> Result<Self, TooFew> {
        let sum = |part: &[f64]| {
            (
                part.iter().map(|&sample| count(sample)).sum(),
                part.len() as f64,
            )
        };
        let (unit, units) = if repetitions.len() >= LEAST_UNITS {
            let groups = repetitions.len().min(MOST_UNITS);
            let mut begin = 0;
            let units = (0..groups)
                .map(|group| {
                    let place = |group: usize| group * repetitions.len() / groups;
                    let length: usize = repetitions[place(group)..place(group + 1)].iter().sum();
                    begin += length;
                    sum(&samples[begin - length..begin])
                })
                .collect();
            (Unit::Repetition, units)
        } else if samples.len() < MOST_UNITS {
            return Err(TooFew::Units {
                found: samples.len(),
                needed: MOST_UNITS,
            });
        } else {
            let place = |block: usize| block * samples.len() / MOST_UNITS;
            let units = (0..MOST_UNITS)
                .map(|block| sum(&samples[place(block)..place(block + 1)]))
                .collect();
            (Unit::Block, units)
        };
        Ok(Self::merged(unit, units))
    }

    /// Puts neighbours together until they no longer go with each other.
    fn merged(unit: Unit, mut units: Vec<(f64, f64)>) -> Self {
        let mut together = neighbours_together(&units);
        let at_first = (units.len(), together);
        let too_short = |together: f64, count: usize| {
            let chance = 1.0 / (count as f64).sqrt();
            Together::of(together, count).estimate > TOO_SHORT.max(chance)
        };
        while too_short(together, units.len()) && units.len() / 2 >= LEAST_MERGED {
            units = units
                .chunks(2)
                .map(|pair| {
                    pair.iter()
                        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1))
                })
                .collect();
            together = neighbours_together(&units);
        }
        Units {
            unit,
            units,
            together,
            begin_anew: false,
            at_first,
        }
    }

    /// Units of which each began anew: that they go with their neighbours is believed only as far as they show it.
    pub(super) fn begin_anew(self) -> Self {
        Units {
            begin_anew: true,
            ..self
        }
    }

    /// What a unit is.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are none, which cannot be.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether even the longest units go with their neighbours, by more than chance makes of independent ones: the run
    /// drifts, and an interval from it may be too narrow.
    pub fn alike(&self) -> bool {
        more_than_chance(self.together, self.len())
    }

    /// How far neighbours go together, as an estimate with its error.
    pub(super) fn together(&self) -> Together {
        let together = Together::of(self.together, self.len());
        if self.begin_anew {
            Together {
                error: 0.0,
                ..together
            }
        } else {
            together
        }
    }

    /// Fails if the units go with each other so far that an interval from them would mean nothing.
    pub(super) fn check_worth(&self) -> Result<(), TooFew> {
        let (found, together) = self.at_first;
        let worth = found as f64 / Together::of(together, found).variance(0.0);
        if self.begin_anew || !more_than_chance(together, found) || worth >= LEAST_WORTH as f64 {
            return Ok(());
        }
        Err(TooFew::Alike {
            found,
            worth: worth as usize,
            needed: LEAST_WORTH,
        })
    }

    /// What is counted, for one sample.
    pub(super) fn mean(&self) -> f64 {
        let (sum, samples) = self
            .units
            .iter()
            .fold((0.0, 0.0), |all, unit| (all.0 + unit.0, all.1 + unit.1));
        sum / samples
    }

    /// Fails if the samples that are counted (or those that are not) come from a few units only.
    pub(super) fn check_events(&self, not_counted: bool) -> Result<(), TooFew> {
        let found = self.events(not_counted);
        if found < LEAST_EVENTS as f64 {
            return Err(TooFew::Events {
                found: found as usize,
                needed: LEAST_EVENTS,
            });
        }
        Ok(())
    }

    /// Of how many units what is counted (or what is not) comes. A unit that holds more of it than others counts less than
    /// one: `(sum of x)^2 / sum of x^2` (Kish's effective number).
    pub(super) fn events(&self, not_counted: bool) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for &(counted, samples) in &self.units {
            let number = if not_counted {
                samples - counted
            } else {
                counted
            };
            sum += number;
            squares += number * number;
        }
        if squares > 0.0 {
            sum * sum / squares
        } else {
            0.0
        }
    }

    /// A unit: the sum of what is counted, and its samples.
    #[inline]
    pub(super) fn at(&self, place: usize) -> (f64, f64) {
        self.units[place]
    }
}

/// How far neighbours go together: their lag-1 autocorrelation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Together {
    estimate: f64,
    error: f64,
}

impl Together {
    /// What the autocorrelation that so many units show says of the one behind it.
    fn of(shown: f64, units: usize) -> Self {
        let count = units as f64;
        // Because their own mean is taken from them, it comes out as `r - (1 + 4 r) / n` on average (Kendall, "Note on Bias
        // in the Estimation of Autocorrelation", Biometrika 41, 1954), with a variance of `(1 - r^2) / n` (Bartlett, 1946).
        let stretch = count / (count - 4.0);
        let estimate = (shown + 1.0 / count) * stretch;
        let certain = estimate.clamp(0.0, MOST_TOGETHER);
        Together {
            estimate,
            error: ((1.0 - certain * certain) / count).sqrt() * stretch,
        }
    }

    /// By what the variance of the mean of such units is larger than that of independent ones, if the autocorrelation is so
    /// many errors above its estimate, and each unit goes with the next ones accordingly less (autoregressive).
    pub(super) fn variance(self, errors: f64) -> f64 {
        let together = (self.estimate + self.error * errors).clamp(0.0, MOST_TOGETHER);
        (1.0 + together) / (1.0 - together)
    }
}

/// Whether units go with their neighbours by more than chance makes of independent ones.
fn more_than_chance(together: f64, units: usize) -> bool {
    let count = units as f64;
    together > NEIGHBOURS_ALIKE.max(ONE_OF_20 / count.sqrt() - 1.0 / count)
}

/// How far the counts of neighbouring units rise and fall together: their lag-1 autocorrelation.
fn neighbours_together(units: &[(f64, f64)]) -> f64 {
    let shares: Vec<f64> = units.iter().map(|(sum, samples)| sum / samples).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    let together: f64 = shares
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    if variance > 0.0 {
        together / variance
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(samples: &[f64], repetitions: &[usize]) -> Units {
        Units::of(samples, repetitions, |sample| sample).unwrap()
    }

    #[test]
    fn repetitions_are_units_where_there_are_six() {
        let samples: Vec<f64> = (0..12).map(f64::from).collect();
        let units = mean_of(&samples, &[2; 6]);
        assert_eq!((units.unit(), units.len()), (Unit::Repetition, 6));
        assert_eq!(units.at(1), (2.0 + 3.0, 2.0));
        assert_eq!(units.mean(), 5.5);
        // 65 of them: the last unit takes what is over.
        let units = mean_of(&[1.0; 130], &[2; 65]);
        assert_eq!(units.len(), MOST_UNITS);
        assert_eq!(
            units.units.iter().map(|unit| unit.1).sum::<f64>(),
            130.0,
            "no sample is left out"
        );
    }

    #[test]
    fn five_repetitions_are_parted_into_blocks() {
        // High and low in turn: neighbours are anything but alike.
        let samples: Vec<f64> = (0..MOST_UNITS).map(|place| (place % 2) as f64).collect();
        let units = mean_of(&samples, &[60, 1, 1, 1, 1]);
        assert_eq!((units.unit(), units.len()), (Unit::Block, MOST_UNITS));
        assert!(!units.alike());
    }

    #[test]
    fn a_slow_change_makes_long_blocks_and_a_drift_is_told() {
        // Four neighbours of 64 are alike, and the sixteenths in turn high and low.
        let samples: Vec<f64> = (0..640).map(|place| f64::from(place / 40 % 2)).collect();
        let units = mean_of(&samples, &[640]);
        assert_eq!((units.len(), units.alike()), (32, false));
        let ramp: Vec<f64> = (0..640).map(f64::from).collect();
        let units = mean_of(&ramp, &[640]);
        assert_eq!((units.len(), units.alike()), (LEAST_MERGED, true));
        assert!(matches!(
            units.check_worth(),
            Err(TooFew::Alike {
                found: MOST_UNITS,
                worth: 0..LEAST_WORTH,
                needed: LEAST_WORTH
            })
        ));
    }

    /// The variance of the mean of an autoregressive series, as far as it can be known from the series.
    #[test]
    fn what_is_known_of_the_autocorrelation_is_its_estimate_and_error() {
        let (few, many) = (Together::of(0.4, 20), Together::of(0.4, 10_000));
        assert!(
            (many.estimate - 0.4).abs() < 1e-3 && (many.variance(0.0) - 1.4 / 0.6).abs() < 0.01
        );
        assert!((few.estimate - 9.0 / 16.0).abs() < 1e-12);
        assert!(few.error > 0.2 && many.error < 0.01);
        // What goes against its neighbours is taken for independent, and nothing for wholly alike.
        assert_eq!(Together::of(-0.5, 64).variance(-1.0), 1.0);
        assert!((Together::of(0.9, 9).variance(3.0) - 1.95 / 0.05).abs() < 1e-9);
    }

    #[test]
    fn too_few_samples_are_refused() {
        assert_eq!(
            Units::of(&[1.0; 63], &[63], |sample| sample),
            Err(TooFew::Units {
                found: 63,
                needed: 64
            })
        );
        assert!(Units::of(&[1.0; 5], &[1; 5], |sample| sample).is_err());
    }
}
