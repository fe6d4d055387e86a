//! What a set of samples says: percentiles, summaries, confidence, outliers, histograms.
//!
//! A sample is an `i64` number of nanoseconds. A latency comes out negative when the two clocks it was taken from
//! disagree, and such a sample is kept, ordered and counted like any other, because clamping it to zero would hide the
//! fault. All figures are over all samples: nothing is removed, trimmed or rounded here.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`percentile`] | which value a given share of the samples does not exceed |
//! | [`moments`] | mean and standard deviation, in one pass and mergeable |
//! | [`summary`] | the figures of one row of a results file |
//! | [`confidence`] | between which bounds the true median lies |
//! | [`modes`] | whether the figures of several runs fall into two groups |
//! | [`outliers`] | how many samples lie far from the median, by a robust measure |
//! | [`histogram`] | the distribution in bounded memory, to three significant digits |
//! | [`bootstrap`] | what a percentile could have been, for samples that depend on their neighbours |
//! | [`difference`] | whether two runs differ by more than chance |
//!
//! Left out: nothing here knows what was measured, and no unit other than the nanosecond appears.

pub mod bootstrap;
pub mod confidence;
pub mod difference;
pub mod histogram;
pub mod modes;
pub mod moments;
pub mod outliers;
pub mod percentile;
pub mod summary;

pub use bootstrap::{Estimate, Resampling, Series, TooFew};
pub use confidence::MedianInterval;
pub use difference::Difference;
pub use histogram::{LatencyHistogram, PercentilePoint};
pub use modes::{TwoModes, median_of};
pub use moments::Moments;
pub use outliers::Outliers;
pub use percentile::{percentile_of_sorted, resolvable};
pub use summary::Summary;
