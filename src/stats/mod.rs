//! What a set of samples says: percentiles, summaries, confidence, differences, histograms.
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
//! | [`histogram`] | the distribution in bounded memory, to three significant digits |
//! | [`rank`] | whether the figures of two sets of rounds differ by more than chance, and by how much |
//!
//! Left out: nothing here knows what was measured, and no unit other than the nanosecond appears.

pub mod confidence;
pub mod histogram;
pub mod modes;
pub mod moments;
pub mod percentile;
pub mod rank;
pub mod summary;

pub use confidence::MedianInterval;
pub use histogram::{LatencyHistogram, PercentilePoint};
pub use modes::{TwoModes, median_of};
pub use moments::Moments;
pub use percentile::{percentile_of_sorted, resolvable};
pub use rank::{Shift, Test};
pub use summary::Summary;
