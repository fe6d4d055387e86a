//! What is made of pairs, as rows of `nodes.csv`, `summary.csv` and `pairs.csv`.

use super::culprits::NodeJudgement;
use super::matrix::Matrix;
use super::scores::{Fit, median};
use super::tiers::Tiers;
use super::verdict::PairVerdict;
use crate::results::Record;
use crate::results::schema::fabric::{self, node, tier};

/// The row of a node: its name, what is said of it, and a figure by which its pairs are counted; `partners`: with how many
/// others it was to be measured.
pub fn of_node(
    (name, rank): (&str, usize),
    partners: u32,
    judged: &NodeJudgement,
    figure: &Matrix,
    tiers: &Tiers,
) -> Record {
    let measured = figure.measured_with(rank);
    let direction = judged.verdict.direction();
    let mut row = Record::new();
    row.set(&node::NAME, name)
        .set(&node::RANK, rank)
        .set(&node::GROUP, tiers.group(rank))
        .set(&node::PAIRS, measured)
        .set(
            &node::MISSING,
            (2 * partners as usize).saturating_sub(measured),
        )
        .set(&node::SCORE, judged.score)
        .set(&node::VERDICT, judged.verdict.name())
        .set(&node::DIRECTION, direction.map(|it| it.name()))
        .set(&node::FIGURE, judged.figure)
        .set(&node::EGRESS, judged.effects_ns[0])
        .set(&node::INGRESS, judged.effects_ns[1])
        .set(&node::EGRESS_SCORE, judged.scores[0])
        .set(&node::INGRESS_SCORE, judged.scores[1]);
    row.arranged(&fabric::nodes())
}

/// Sets what a pair is judged to be: the fit must be of the median half of a round trip.
pub fn judge_pair(
    row: &mut Record,
    fit: &Fit,
    tiers: &Tiers,
    pair: (usize, usize),
    is: PairVerdict,
) {
    let (from, to) = pair;
    row.replace(&fabric::EXPECTED, fit.expected(tiers, from, to))
        .replace(&fabric::REST, fit.rest.get(from, to))
        .replace(&fabric::SCORE, fit.score_of(from, to))
        .replace(&fabric::VERDICT, is.name());
}

/// Figures of all pairs, of which `summary.csv` tells.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// The median half of a round trip, in ns.
    pub half_p50: &'a Matrix,
    /// The 99th percentile of the excess, in ns.
    pub excess_p99: &'a Matrix,
    /// Messages that were lost.
    pub lost: &'a Matrix,
}

/// The rows of the tiers, the nearest first, and one for all. `is_slow_way`: whether third hosts prove it.
pub fn of_tiers(
    figures: Figures<'_>,
    tiers: &Tiers,
    verdict: impl Fn(usize, usize) -> PairVerdict,
    is_slow_way: impl Fn(usize, usize) -> bool,
) -> Vec<Record> {
    let all_pairs: u64 = tiers.pairs().iter().map(|(_, pairs)| pairs).sum();
    let groups = tiers.pairs().into_iter().enumerate();
    let groups = groups.map(|(tier, (name, pairs))| (name, Some(tier), pairs));
    let groups = groups.chain(std::iter::once(("all", None, all_pairs)));
    let row = |(name, tier, all): (&str, Option<usize>, u64)| {
        let pairs = || {
            let all = figures.half_p50.pairs().each();
            all.filter(move |(from, to)| tier.is_none_or(|tier| tiers.of(*from, *to) == tier))
        };
        let values = |of: &Matrix| -> Vec<f64> {
            pairs().filter_map(|(from, to)| of.get(from, to)).collect()
        };
        let greatest = |of: &[f64]| of.iter().copied().max_by(f64::total_cmp);
        let least = |of: &[f64]| of.iter().copied().min_by(f64::total_cmp);
        let (halves, excesses, lost) = (
            values(figures.half_p50),
            values(figures.excess_p99),
            values(figures.lost),
        );
        let verdicts: Vec<PairVerdict> = pairs().map(|(from, to)| verdict(from, to)).collect();
        let count = |wanted: PairVerdict| verdicts.iter().filter(|it| **it == wanted).count();
        let mut row = Record::new();
        row.set(&tier::NAME, name)
            .set(&tier::PAIRS, 2 * all)
            .set(&tier::MEASURED, halves.len())
            .set(&tier::HALF_LEAST, least(&halves))
            .set(&tier::HALF_GREATEST, greatest(&halves))
            .set(&tier::HALF_P50, median(halves))
            .set(&tier::EXCESS_GREATEST, greatest(&excesses))
            .set(&tier::EXCESS_P99, median(excesses))
            .set(
                &tier::LOST,
                (!lost.is_empty()).then(|| lost.iter().sum::<f64>()),
            )
            .set(&tier::SLOW, count(PairVerdict::Slow))
            .set(&tier::CONGESTED, count(PairVerdict::Congested))
            .set(&tier::SUSPECT, count(PairVerdict::Suspect))
            .set(
                &tier::SLOW_WAYS,
                pairs().filter(|it| is_slow_way(it.0, it.1)).count(),
            );
        row.arranged(&fabric::summary())
    };
    groups.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::made_up::{Noise, healthy, in_groups, with_slow_sender};
    use crate::bench::fabric::scores::polish;
    use crate::bench::fabric::verdict::PairJudge;

    #[test]
    fn rows_tell_what_was_judged() {
        let tiers = in_groups(8, 4);
        let mut figure = healthy(&tiers, &mut Noise::new(9), false);
        figure.set(1, 2, 20_000.0);
        figure.set(3, 4, f64::NAN);
        let judged = with_slow_sender(&mut figure, (6, 4000.0), &tiers);
        let row = of_node(("n6", 6), 7, &judged[6], &figure, &tiers);
        for (column, text) in [
            ("node", "n6"),
            ("group", "core.leaf1"),
            ("pairs", "14"),
            ("pairs_missing", "0"),
            ("verdict", "slow"),
            ("direction", "egress"),
            ("figure", "excess_p99_ns"),
        ] {
            assert_eq!(row.get(column).unwrap().text(), text, "{column}");
        }
        let row = of_node(("n3", 3), 7, &judged[3], &figure, &tiers);
        assert_eq!(row.text(&node::MISSING), "1");
        assert_eq!(row.text(&node::DIRECTION), "");

        let fit = polish(&figure, &tiers);
        let verdicts = PairJudge::new(&fit, &tiers, None, 0.0);
        let nothing = Matrix::missing(8);
        let figures = Figures {
            half_p50: &figure,
            excess_p99: &nothing,
            lost: &nothing,
        };
        let is_slow_way = |from, to| (from, to) == (6, 1);
        let rows = of_tiers(
            figures,
            &tiers,
            |from, to| verdicts.of(from, to),
            is_slow_way,
        );
        let texts = |column| rows.iter().map(|row| row.text(column)).collect::<Vec<_>>();
        assert_eq!(texts(&tier::NAME), ["leaf", "up-1", "all"]);
        assert_eq!(texts(&tier::PAIRS), ["24", "32", "56"]);
        assert_eq!(texts(&tier::MEASURED), ["24", "31", "55"]);
        assert_eq!(texts(&tier::SUSPECT), ["1", "0", "1"]);
        assert_eq!(texts(&tier::SLOW_WAYS), ["0", "1", "1"]);
        assert_eq!(texts(&tier::HALF_GREATEST)[2], "20000.0");
        assert_eq!(texts(&tier::LOST), ["", "", ""]);

        let mut row = Record::new();
        judge_pair(&mut row, &fit, &tiers, (1, 2), verdicts.of(1, 2));
        assert_eq!(row.text(&fabric::VERDICT), "suspect");
        assert!(row.number("rest_ns").unwrap() > 17_000.0);
    }
}
