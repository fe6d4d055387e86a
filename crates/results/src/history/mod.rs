//! Whether a figure changed from one run on, in a series of runs in the order of time: where, and how certain it is.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`scan`] | compares the runs before and after each place, within windows of many lengths, by ranks |
//! | [`null`] | how large the largest of these differences is without a change |
//! | [`place`] | at which run the change is, and between which runs it may be |
//! | [`changes`] | all changes of a series |
//!
//! The sample is the run, by the median of its rounds: rounds of a run share the boot, the day and the neighbours, and
//! differ less than runs do. The test is that of Mann and Whitney, the largest of it over all places (Pettitt, "A
//! non-parametric approach to the change-point problem", Applied Statistics 28, 1979), within the windows of seeded
//! binary segmentation (Kovács, Bühlmann, Li and Munk, "Seeded binary segmentation: a general methodology for fast and
//! optimal changepoint detection", Biometrika 110, 2023): a change that is undone later is found as well. The largest
//! value of all windows and places is judged against its distribution over permutations, which does not depend on the
//! shape of the figures. So the probability that a series without a change has any is at most [`ERROR`], over all
//! series and figures that are judged together: each has its share (Bonferroni).
//!
//! Left out: drifts (they are found as one step or as several); a change of the spread alone; changes so near an end that
//! no order of that few runs is unlikely enough.

pub mod changes;
mod draws;
pub mod null;
pub mod place;
pub mod scan;
#[cfg(test)]
mod trial;

pub use changes::{Change, Detector};

/// The probability that any of the series without a change that are judged together has one.
pub const ERROR: f64 = 0.05;
/// A level has at least this many runs.
pub const LEAST_RUNS: usize = 3;
