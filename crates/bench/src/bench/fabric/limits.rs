//! What makes a run fail: limits on round trips, such as `5us@p99`, and how many outliers there may be.

use thiserror::Error;

use super::culprits::NodeJudgement;
use super::matrix::Matrix;
use super::verdict::PairVerdict;
use crate::results::schema::Column;
use crate::results::schema::fabric::{HALF_MAX, HALF_P50, HALF_P90, HALF_P99};
use crate::rig::limit::Limit;
use crate::sorting::sort_by;

/// The figures that a limit may be on: their percentile, none for the greatest.
const FIGURES: [(Option<f64>, Column); 4] = [
    (Some(50.0), HALF_P50),
    (Some(90.0), HALF_P90),
    (Some(99.0), HALF_P99),
    (None, HALF_MAX),
];

/// A limit on what a fabric is not measured for.
#[derive(Debug, Error, PartialEq)]
#[error(
    "{0}: only p50, p90, p99 and, without a percentile, the longest round trip of a pair can have a limit"
)]
pub struct NoSuchFigure(String);

/// The figure that a limit is on: half a round trip, of each pair.
///
/// # Errors
/// For a percentile that is not among those that are measured.
pub fn figure_of(limit: &Limit) -> Result<Column, NoSuchFigure> {
    let found = FIGURES
        .iter()
        .find(|(percent, _)| *percent == limit.percent);
    found
        .map(|(_, column)| *column)
        .ok_or_else(|| NoSuchFigure(limit.describe()))
}

/// What became of a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitResult {
    /// As it was given.
    pub limit: String,
    /// Pairs above it, the worst first, with what they have in ns.
    pub above: Vec<(usize, usize, f64)>,
    /// Pairs that have the figure.
    pub measured: usize,
}

impl LimitResult {
    /// Whether it fails: also if nothing is known.
    pub fn is_broken(&self) -> bool {
        !self.above.is_empty() || self.measured == 0
    }
}

/// Judges a limit by the figure that it is on, in ns.
pub fn judge(limit: &Limit, figure: &Matrix) -> LimitResult {
    let mut above: Vec<_> = figure
        .each()
        .filter(|(.., found)| *found > limit.length.0 as f64)
        .collect();
    sort_by(&mut above, |one, other| other.2.total_cmp(&one.2));
    LimitResult {
        limit: limit.describe(),
        above,
        measured: figure.measured(),
    }
}

/// How many outliers there are: nodes that are named, and pairs that stand out beyond what their nodes explain, or whose way
/// is proved to be slower than it has to be.
pub fn outliers(
    nodes: &[NodeJudgement],
    pairs: impl IntoIterator<Item = (PairVerdict, bool)>,
) -> usize {
    let nodes = nodes
        .iter()
        .filter(|node| node.verdict.direction().is_some());
    let is_one = |(verdict, is_slow_way): &(PairVerdict, bool)| {
        use PairVerdict::{Missing, NotJudged, Ok};
        *is_slow_way || !matches!(verdict, Ok | NotJudged | Missing)
    };
    nodes.count() + pairs.into_iter().filter(is_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;
    use crate::time::Nanos;

    #[test]
    fn a_limit_is_broken_by_one_pair_and_by_nothing_measured() {
        let limit = |length: u64, percent| Limit {
            length: Nanos(length),
            percent,
        };
        assert_eq!(figure_of(&limit(1, Some(99.0))), Ok(HALF_P99));
        assert_eq!(figure_of(&limit(1, None)), Ok(HALF_MAX));
        let error = figure_of(&limit(5000, Some(99.9))).unwrap_err().to_string();
        error.begins("5us@p99.9: only p50, p90, p99");

        let figure = Matrix::of(3, |from, to| {
            (from != 1).then_some(1000.0 * (from + to) as f64)
        });
        let found = judge(&limit(1500, None), &figure);
        let expected = (&[(2, 1, 3000.0), (0, 2, 2000.0), (2, 0, 2000.0)][..], 4);
        assert_eq!((found.above.as_slice(), found.measured), expected);
        assert!(found.is_broken() && !judge(&limit(3000, None), &figure).is_broken());
        assert!(judge(&limit(3000, None), &Matrix::missing(3)).is_broken());
    }

    #[test]
    fn outliers_are_named_nodes_and_pairs_that_stand_out() {
        use PairVerdict::{Congested, Missing, NotJudged, Ok, Slow, Suspect};
        let pairs = [Ok, Slow, Congested, Suspect, Missing, NotJudged, Ok];
        assert_eq!(outliers(&[], pairs.map(|verdict| (verdict, false))), 3);
        // A slow way that stands out as well is one.
        assert_eq!(
            outliers(
                &[],
                pairs.map(|verdict| (verdict, matches!(verdict, Ok | Slow)))
            ),
            5
        );
    }
}
