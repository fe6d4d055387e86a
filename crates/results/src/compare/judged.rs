//! The figures of pairs of points, judged together by their rounds.

use std::collections::BTreeMap;

use super::figures::{ALL, FAULTS, Figure, Kind, Limit};
use super::matching::Pair;
use super::{Comparison, ERROR, FigureComparison, LimitOutcome, PointComparison, Verdict};
use crate::results::read::{Point, Run};
use crate::results::schema::{Better, Column};
use crate::stats::median_of;
use crate::stats::rank::{Shift, Test, rounds_needed};

/// The values of one figure by round, of both points.
type Values = [BTreeMap<u64, f64>; 2];

/// The figures that are judged together.
pub(super) struct Judged<'a> {
    /// By pair.
    pub(super) figures: Vec<Vec<(Figure, Values)>>,
    pub(super) limits: &'a [Limit],
}

impl<'a> Judged<'a> {
    /// Figures that both points have; losses only where there are any, or a limit is on them. A limit on any p50 is on
    /// those that are measured somewhere.
    pub(super) fn of(pairs: &[Pair<'_>], figures: &[Figure], limits: &'a [Limit]) -> Self {
        let is_measured = |figure: &Figure| {
            let mut points = pairs.iter().flat_map(|pair| [pair.base, pair.new]);
            points.any(|point| !figure.values(point).is_empty())
        };
        let is_named = |figure: &Figure| {
            let mut limits = limits.iter();
            limits.any(|limit| limit.of.scope.is_some() && figure.is(&limit.of))
        };
        let figures: Vec<&Figure> = figures
            .iter()
            .filter(|figure| is_named(figure) || is_measured(figure))
            .collect();
        let of_pair = |pair: &Pair<'_>| {
            let values = |figure: &Figure| [pair.base, pair.new].map(|point| figure.values(point));
            let is_told = |(figure, values): &(Figure, Values)| {
                let mut all = values.iter().flat_map(BTreeMap::values);
                let counts = |value: &f64| figure.kind != Kind::Lost || *value > 0.0;
                limits.iter().any(|limit| figure.is(&limit.of)) || all.any(counts)
            };
            let figures = figures
                .iter()
                .map(|&figure| (figure.clone(), values(figure)));
            figures.filter(is_told).collect::<Vec<_>>()
        };
        let figures = pairs.iter().map(of_pair).collect();
        Judged { figures, limits }
    }

    fn comparisons(&self) -> usize {
        self.figures.iter().map(Vec::len).sum()
    }

    pub(super) fn error(&self) -> f64 {
        ERROR / self.comparisons().max(1) as f64
    }

    /// The least number of rounds that both points of a pair have.
    pub(super) fn least_rounds(&self) -> usize {
        let is_told = |(_, values): &&(Figure, Values)| values.iter().all(|side| !side.is_empty());
        let common = |(_, [base, new]): &(Figure, Values)| {
            base.keys().filter(|round| new.contains_key(round)).count()
        };
        let told = self.figures.iter().flatten().filter(is_told);
        told.map(common).min().unwrap_or(0)
    }

    /// The comparison of the pairs of two runs, or of one with itself, by a test.
    pub(super) fn comparison(&self, runs: [&Run; 2], pairs: &[Pair<'_>], test: Test) -> Comparison {
        Comparison {
            benchmark: runs[0].schema.benchmark,
            names: Default::default(),
            incomplete: runs.map(|run| run.incomplete.clone()),
            by: None,
            differs: Vec::new(),
            warnings: Vec::new(),
            comparisons: self.comparisons(),
            test,
            rounds_needed: rounds_needed(Test::MannWhitney, self.error()),
            points: self.points(pairs, test),
            only_in_base: Vec::new(),
            only_in_new: Vec::new(),
        }
    }

    fn points(&self, pairs: &[Pair<'_>], test: Test) -> Vec<PointComparison> {
        let of_pair = |(pair, figures): (&Pair<'_>, &Vec<(Figure, Values)>)| {
            let faults = more_faults(pair);
            let judge = |(figure, values): &(Figure, Values)| {
                let mut found = self.judge(figure, values, test);
                found.point.clone_from(&pair.base.name);
                if let (Verdict::Better, Some(faults)) = (found.verdict, &faults) {
                    found.verdict = Verdict::BetterButMoreFaults;
                    found.reason = Some(faults.clone());
                }
                let of_figure = self.limits.iter().filter(|limit| figure.is(&limit.of));
                // Where the strictest is kept, the others are.
                let limit = of_figure.min_by(|one, other| one.percent.total_cmp(&other.percent));
                found.limit = limit.map(|limit| LimitOutcome {
                    limit: limit.clone(),
                    broken: found.verdict == Verdict::Worse && found.worse_by() > limit.percent,
                    worst: found.worst(),
                });
                found
            };
            let settings = pair.base.chosen();
            PointComparison {
                names: [pair.base, pair.new].map(|point| point.name.clone()),
                settings: settings
                    .map(|(name, text)| (name, text.to_owned()))
                    .collect(),
                level: None,
                incomplete: [pair.base, pair.new].map(|point| point.incomplete.clone()),
                figures: figures.iter().map(judge).collect(),
            }
        };
        pairs.iter().zip(&self.figures).map(of_pair).collect()
    }

    fn judge(&self, figure: &Figure, values: &Values, test: Test) -> FigureComparison {
        let all = |side: &BTreeMap<u64, f64>| side.values().copied().collect::<Vec<f64>>();
        let [all_base, all_new] = values.each_ref().map(all);
        // What has no zero is compared as a ratio: nothing falls by more than 100 %.
        let positive = |side: &Vec<f64>| side.iter().all(|value| *value > 0.0);
        let as_ratio = figure.unit != "%" && [&all_base, &all_new].into_iter().all(positive);
        let scaled = |value: &f64| if as_ratio { value.ln() } else { *value };
        let shift = match (test, values) {
            (Test::MannWhitney, _) => {
                let [base, new] = [&all_base, &all_new].map(|side| side.iter().map(scaled));
                Shift::of_samples(
                    &base.collect::<Vec<_>>(),
                    &new.collect::<Vec<_>>(),
                    self.error(),
                )
            }
            (Test::SignedRank, [base, new]) => {
                let pairs = base
                    .iter()
                    .filter_map(|(round, base)| Some(scaled(new.get(round)?) - scaled(base)));
                Shift::of_pairs(&pairs.collect::<Vec<f64>>(), self.error())
            }
        };
        let rounds = [all_base.len(), all_new.len()];
        let [base, new] = [all_base, all_new].map(|values| median_of(&values));
        let mut found = FigureComparison {
            point: String::new(),
            figure: figure.clone(),
            unit: figure.unit,
            rounds,
            base,
            new,
            shift: None,
            interval: None,
            p: shift.map(|shift| shift.p_value),
            verdict: Verdict::NotJudged,
            reason: None,
            limit: None,
        };
        let Some(shift) = shift else {
            found.reason = Some("it was not measured in both".to_owned());
            return found;
        };
        let in_percent = |value: f64| match (figure.unit, base) {
            ("%", _) => Some(value),
            _ if as_ratio => Some(value.exp_m1() * 100.0),
            (_, Some(base)) if base != 0.0 => Some(value / base.abs() * 100.0),
            _ => None,
        };
        found.shift = in_percent(shift.value);
        if !shift.can_be_shown {
            let ([base, new], needed) = (rounds, rounds_needed(test, self.error()));
            found.reason = Some(format!(
                "{base} and {new} rounds are too few to judge {} figures together: record {needed} of either \
                 (--rounds {needed})",
                self.comparisons()
            ));
            return found;
        }
        let (low, high) = shift.interval;
        found.interval = in_percent(low).zip(in_percent(high)).map(<[f64; 2]>::from);
        let is_higher = low > 0.0;
        found.verdict = match shift.is_shown() {
            false => Verdict::NoDifferenceShown,
            true if is_higher == (figure.better == Better::Higher) => Verdict::Better,
            true => Verdict::Worse,
        };
        found
    }
}

impl FigureComparison {
    /// By how much NEW may be worse by the bounds of the shift, in the unit of a [`Limit`].
    fn worst(&self) -> Option<f64> {
        let [low, high] = self.interval?;
        Some(if self.figure.better == Better::Higher {
            -low
        } else {
            high
        })
    }

    /// By how much NEW is worse, in the unit of a [`Limit`]; negative where it is better. Any part of nothing is more
    /// than any limit.
    fn worse_by(&self) -> f64 {
        let shift = self.shift.unwrap_or(f64::INFINITY);
        if self.figure.better == Better::Higher {
            -shift
        } else {
            shift
        }
    }
}

/// If a larger share of NEW's messages or elements is lost or wrong: what to say of it beside a better figure.
fn more_faults(pair: &Pair<'_>) -> Option<String> {
    let sum = |point: &Point, column: &Column| {
        let counts = point
            .rounds
            .iter()
            .filter_map(|round| round.number(column.name));
        counts.sum::<f64>()
    };
    // Not as many need be sent or read in both.
    let share = |point: &Point, fault: &Column| {
        let all: f64 = ALL.iter().map(|column| sum(point, column)).sum();
        sum(point, fault) / all.max(1.0)
    };
    FAULTS.iter().find_map(|fault| {
        let (base, new) = (share(pair.base, fault), share(pair.new, fault));
        let counts = [pair.base, pair.new].map(|point| sum(point, fault));
        (new > base).then(|| format!("{} rose from {} to {}", fault.name, counts[0], counts[1]))
    })
}
