//! Whether a percentile differs between two runs by more than chance: bootstrap intervals for dependent samples.
//!
//! The samples of a run are not independent: what disturbs one message disturbs its neighbours, and a bootstrap that draws
//! single samples gives intervals that are several times too narrow. Here whole [units](Units) are drawn: the repetitions
//! where there are enough of them, else blocks of neighbours that are as long as the data need.
//!
//! What a unit brings to a percentile is one number: how many of its samples lie at or below the percentile of all. A
//! replicate draws as many units as there are, with replacement, and gets the share of samples below from these counts; the
//! percentile that belongs to the share is read from the sorted samples (Woodruff, "Confidence Intervals for Medians and
//! Other Position Measures", JASA 47, 1952). To first order this is the percentile of the drawn samples, but a replicate
//! takes one step a unit, however many samples there are: the work is one sort, one pass, and at most [`MOST_UNITS`] steps
//! a replicate, the memory that of the samples and their sorted copy.
//!
//! A few units know little of their own spread, so an interval made from them alone is too narrow as well. The deviation of
//! each replicate is therefore multiplied by the square root of `df / chi-squared(df)`, as Student's t does to a normal
//! deviation, with one degree of freedom fewer than there are units. With that, long blocks cost next to nothing: 32 of them
//! widen an interval by 4 %.
//!
//! Units that go with their neighbours know less than as many independent ones. How far they do is estimated from the
//! units, and of a few units only roughly: each replicate therefore takes one of the values that it could have, and is
//! widened by what that means ([`Units`]).
//!
//! All is decided by a seed: the same samples give the same interval.
//!
//! Left out: what varies from run to run, which no single run can tell. Only repetitions that begin anew show it.

mod random;
mod units;

use serde::Serialize;

use self::random::Draws;
pub use self::units::{LEAST_UNITS, MOST_UNITS, Unit, Units};

/// The seed of all replicates, unless another is given.
pub const SEED: u64 = 0x6863_6162_656e_6368;

/// How replicates are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Resampling {
    /// How many there are.
    pub replicates: usize,
    /// What decides them.
    pub seed: u64,
}

impl Resampling {
    /// The fewest replicates, and the most.
    pub const REPLICATES: (usize, usize) = (4_000, 40_000);

    /// Enough of them for the 95 % interval of each of `comparisons`, made wider so that all of them hold together: ten lie
    /// beyond either end, as far as the upper limit of [`REPLICATES`](Self::REPLICATES) allows.
    pub fn for_comparisons(comparisons: usize) -> Self {
        let (fewest, most) = Self::REPLICATES;
        let wanted = (10.0 * 2.0 * comparisons as f64 / super::difference::ERROR).ceil() as usize;
        Resampling {
            replicates: wanted.clamp(fewest, most),
            seed: SEED,
        }
    }

    /// The same with other random numbers, for the other one of two runs: drawn alike, their replicates would differ by
    /// less than the runs.
    pub fn of_the_other(self) -> Self {
        Resampling {
            seed: !self.seed,
            ..self
        }
    }
}

/// Samples in the order in which they were taken, and in ascending order.
///
/// A sample is any number that can be ordered; positive infinity stands for what never came, such as a lost message.
#[derive(Debug, Clone)]
pub struct Series {
    in_time: Vec<f64>,
    /// How many samples each repetition has.
    repetitions: Vec<usize>,
    /// Whether each sample is the figure of a run of its own.
    of_runs: bool,
    sorted: Vec<f64>,
}

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooFew {
    /// There are no samples.
    #[error("no samples")]
    None,
    /// Not enough of them to make units of.
    #[error("only {found} repetitions or samples, at least {needed} are needed")]
    Units {
        /// How many there are.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// The percentile is hardly told from the extreme.
    #[error("only {found} samples lie beyond it, at least {needed} are needed")]
    Beyond {
        /// How many there are.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// What lies beyond the percentile are a few events, each with many samples: they say nothing of how many events
    /// another run would have.
    #[error(
        "the samples beyond it are those of about {found} events, at least {needed} are needed"
    )]
    Events {
        /// How many there are, as far as the units tell.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// The units go with their neighbours: the run drifts, and another one would have drifted elsewhere.
    #[error(
        "its {found} repetitions or blocks go with their neighbours so far that they tell no more than {worth} independent ones, \
         at least {needed} are needed: measure longer, or with more repetitions"
    )]
    Alike {
        /// How many units there are.
        found: usize,
        /// How many independent ones would know as much.
        worth: usize,
        /// How many of those there must be.
        needed: usize,
    },
}

/// The least number of samples beyond a percentile, on its thinner side.
pub const LEAST_BEYOND: usize = 10;

/// A figure of one run, with what it could have been.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The figure itself, over all samples.
    pub value: f64,
    /// The same of each replicate.
    pub replicates: Vec<f64>,
    /// What was drawn.
    pub units: Units,
    /// Of a mean: how many events it is made of, as far as the units tell (Kish's effective number, `(sum of x)^2 / sum of
    /// x^2` over units). Of a share or a rate that is their number where each has a unit of its own, and less where some
    /// share one. Of a sum of lengths it is no number of events: long ones weigh more than short ones, and a few that make up
    /// most of it count as few, however many others there are.
    pub events: Option<f64>,
}

impl Series {
    /// Samples in the order in which they were taken; `repetitions` tells how many of them, one after the other, belong to
    /// each repetition. Repetitions without samples do not count.
    ///
    /// # Panics
    /// When the repetitions do not add up to the samples, or a sample is not a number.
    pub fn new(in_time: Vec<f64>, repetitions: Vec<usize>) -> Self {
        assert_eq!(
            repetitions.iter().sum::<usize>(),
            in_time.len(),
            "repetitions are all of the samples"
        );
        assert!(
            !in_time.iter().any(|sample| sample.is_nan()),
            "a sample is a number"
        );
        let mut sorted = in_time.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Series {
            in_time,
            repetitions: repetitions.into_iter().filter(|&count| count > 0).collect(),
            of_runs: false,
            sorted,
        }
    }

    /// Figures of independent runs, one each.
    pub fn of_runs(figures: Vec<f64>) -> Self {
        let repetitions = vec![1; figures.len()];
        Series {
            of_runs: true,
            ..Self::new(figures, repetitions)
        }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.in_time.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.in_time.is_empty()
    }

    /// The value at `percent` (0 to 100), as [`percentile_of_sorted`](super::percentile_of_sorted) defines it.
    pub fn value_at(&self, percent: f64) -> Option<f64> {
        (!self.is_empty()).then(|| self.quantile(percent / 100.0))
    }

    /// A percentile with its replicates.
    ///
    /// # Errors
    /// [`TooFew`] when there is nothing to tell its spread by.
    ///
    /// # Panics
    /// When `percent` is not above 0 and below 100.
    pub fn percentile(&self, percent: f64, resampling: Resampling) -> Result<Estimate, TooFew> {
        assert!(
            percent > 0.0 && percent < 100.0,
            "a percentile to compare lies between 0 and 100, not at {percent}"
        );
        let value = self.value_at(percent).ok_or(TooFew::None)?;
        let share = percent / 100.0;
        let beyond = (self.len() as f64 * share.min(1.0 - share) + 1e-9).floor() as usize;
        // Figures of runs are few by nature; for them the number of runs decides.
        if !self.of_runs && beyond < LEAST_BEYOND {
            return Err(TooFew::Beyond {
                found: beyond,
                needed: LEAST_BEYOND,
            });
        }
        let below = self.at_or_below(value, share);
        let units = self.units(|sample| {
            if sample < value {
                1.0
            } else if sample == value {
                below
            } else {
                0.0
            }
        })?;
        if !self.of_runs {
            units.check_events(share > 0.5)?;
        }
        let replicates = units.deviations(resampling);
        Ok(Estimate {
            value,
            replicates: replicates
                .map(|deviation| self.quantile(share - deviation))
                .collect(),
            units,
            events: None,
        })
    }

    /// The share of samples that never came, with its replicates.
    ///
    /// # Errors
    /// [`TooFew`] when there is nothing to tell its spread by.
    pub fn share_missing(&self, resampling: Resampling) -> Result<Estimate, TooFew> {
        self.mean_of(resampling, |sample| {
            f64::from(u8::from(sample == f64::INFINITY))
        })
    }

    /// The mean of all samples, with its replicates: for samples that are sums over slices of time.
    ///
    /// # Errors
    /// [`TooFew`] when there is nothing to tell its spread by.
    pub fn mean(&self, resampling: Resampling) -> Result<Estimate, TooFew> {
        self.mean_of(resampling, |sample| sample)
    }

    fn mean_of(
        &self,
        resampling: Resampling,
        count: impl Fn(f64) -> f64,
    ) -> Result<Estimate, TooFew> {
        if self.is_empty() {
            return Err(TooFew::None);
        }
        let units = self.units(count)?;
        let value = units.mean();
        let replicates = units.deviations(resampling);
        Ok(Estimate {
            value,
            replicates: replicates.map(|deviation| value + deviation).collect(),
            events: Some(units.events(false)),
            units,
        })
    }

    /// What is drawn, if it can be.
    fn units(&self, count: impl Fn(f64) -> f64) -> Result<Units, TooFew> {
        let units = Units::of(&self.in_time, &self.repetitions, count)?;
        let units = if self.of_runs {
            units.begin_anew()
        } else {
            units
        };
        units.check_worth()?;
        Ok(units)
    }

    /// Which part of the samples that equal `value` counts as below it, so that all that count are `share` of all.
    fn at_or_below(&self, value: f64, share: f64) -> f64 {
        let less = self.sorted.partition_point(|&sample| sample < value);
        let not_above = self.sorted.partition_point(|&sample| sample <= value);
        if less == not_above {
            return 0.0;
        }
        ((share * self.len() as f64 - less as f64) / (not_above - less) as f64).clamp(0.0, 1.0)
    }

    /// The value at a share of the sorted samples, of which there is at least one; shares outside of 0 to 1 are the ends.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.sorted.len() - 1;
        let rank = last as f64 * share.clamp(0.0, 1.0);
        let below = (rank.floor() as usize).min(last);
        let fraction = rank - below as f64;
        let (low, high) = (self.sorted[below], self.sorted[(below + 1).min(last)]);
        // Also keeps infinity times zero, and infinity less infinity out.
        if fraction == 0.0 || low == high {
            low
        } else if high == f64::INFINITY {
            high
        } else if fraction < 0.5 {
            low + (high - low) * fraction
        } else {
            high - (high - low) * (1.0 - fraction)
        }
    }
}

impl Units {
    /// By how much the mean of drawn units differs from that of all, once for each replicate.
    fn deviations(&self, resampling: Resampling) -> impl Iterator<Item = f64> + '_ {
        let mean = self.mean();
        let count = self.len();
        let freedom = (count - 1) as f64;
        let together = self.together();
        let mut draws = Draws::new(resampling.seed);
        (0..resampling.replicates).map(move |_| {
            let (mut sum, mut samples) = (0.0, 0.0);
            for _ in 0..count {
                let (unit_sum, unit_samples) = self.at(draws.below(count));
                sum += unit_sum;
                samples += unit_samples;
            }
            // A drawn sample of units spreads by (count - 1) / count less than the units of other runs would, and less
            // again where units go with their neighbours.
            let variance = count as f64 / freedom * together.variance(draws.normal());
            let student = freedom / draws.chi_squared(freedom);
            (sum / samples - mean) * (variance * student).sqrt()
        })
    }
}

#[cfg(test)]
mod tests;
