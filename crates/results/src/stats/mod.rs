//! The statistics of a set of samples: percentiles, summaries, confidence, differences, histograms.
//!
//! A sample is an `i64` number of nanoseconds. A latency comes out negative when the two clocks it was taken from
//! disagree, and such a sample is kept, ordered and counted like any other, because clamping it to zero would hide the
//! fault. All figures are over all samples: nothing is removed, trimmed or rounded here. [`outliers`] decides which
//! windows, which are means of many samples, count.
//!
//! Left out: nothing here knows what was measured, and no unit other than the nanosecond appears.

pub(crate) mod confidence;
pub mod fairness;
pub mod histogram;
pub mod intervals;
pub mod modes;
mod moments;
pub mod outliers;
pub mod percentile;
pub mod rank;
pub mod ranking;
pub mod rate_search;
pub mod sequential;
pub mod shared_spread;
pub mod smoothing;
pub mod student;
pub mod summary;

pub use fairness::{fairness, least_percent};
pub use histogram::LatencyHistogram;
pub use intervals::{TimedSamples, interval_of};
pub use modes::{TwoModes, median_of};
pub use outliers::{Outliers, kept, mean_and_deviation};
pub use percentile::{percentile_of_sorted, resolvable};
pub use smoothing::Smoothing;
pub use summary::Summary;
