//! `--find-rate`: which point of a plan is measured next, and what the search found.
//!
//! A plan has a point for each rate that may be measured. Points that differ in the rate alone are a search; a round
//! measures one point of each search that goes on. What comes next follows from the rows of `runs.csv` alone
//! ([`RateSearch`]), so that a run that is resumed goes on as if it had not been interrupted.

use std::collections::BTreeSet;

use super::row::{Row, is_complete, round_of};
use crate::arguments::UsageError;
use crate::arguments::conditions::{Conditions, SearchedFigure};
use crate::results::Record;
use crate::results::schema::{Schema, SearchedRate};
use crate::results::units;
use crate::rig::benchmark::{Plan, PlannedPoint};
use crate::stats::percentile::between_known;
use crate::stats::rate_search::{self, Limit, RateSearch, Step};
use crate::stats::sequential::{LEAST_ROUNDS, SequentialTest};

mod found;
#[cfg(test)]
mod tests;

pub(crate) use found::{FoundRate, figure_of, text_of};

/// Rounds at a rate at the most, where none are asked for.
pub(crate) const DEFAULT_MOST_ROUNDS: u32 = 40;
/// How far below the offered rate the sent one may be, of 1.
const RATE_KEPT_WITHIN: f64 = 0.01;

/// All searches of a run.
#[derive(Debug, Clone)]
pub(crate) struct Searches {
    conditions: Conditions,
    by: SearchedRate,
    /// Those of the conditions, and last that the rate is kept.
    limits: Vec<Limit>,
    test: SequentialTest,
    families: Vec<Family>,
}

/// Points that differ in the rate alone.
#[derive(Debug, Clone)]
struct Family {
    /// The settings in which it differs from others, in words.
    name: String,
    /// Places in the plan, and rates, ascending.
    points: Vec<usize>,
    rates: Vec<f64>,
}

impl Searches {
    /// # Errors
    /// When a condition has no figure in this benchmark, or there are too few rounds.
    pub(crate) fn new(
        conditions: &Conditions,
        schema: &Schema,
        rounds: Option<u32>,
        plan: &Plan,
    ) -> Result<Self, UsageError> {
        let by = schema.searched.expect("a command with the option has it");
        let is_loss = |it: &SearchedFigure| *it == SearchedFigure::Loss;
        if conditions.loss().is_some() && by.delivered.is_none() {
            return Err(UsageError(format!(
                "--find-rate {conditions}: loss has no meaning with hcabench {}, which loses nothing: give percentiles, \
                 as in p99<50us",
                schema.title
            )));
        }
        let most_rounds = rounds.unwrap_or(DEFAULT_MOST_ROUNDS);
        if most_rounds < LEAST_ROUNDS {
            return Err(UsageError(format!(
                "--rounds {most_rounds}: --find-rate judges a rate by {LEAST_ROUNDS} rounds at the least: give {LEAST_ROUNDS} or more, or leave it out for {DEFAULT_MOST_ROUNDS}"
            )));
        }
        let limits = conditions.0.iter().map(|condition| Limit {
            below: condition.below,
            is_of_capacity: is_loss(&condition.figure),
            is_share: is_loss(&condition.figure),
        });
        let kept = Limit {
            below: RATE_KEPT_WITHIN,
            is_of_capacity: true,
            is_share: false,
        };
        Ok(Searches {
            conditions: conditions.clone(),
            by,
            limits: limits.chain([kept]).collect(),
            test: SequentialTest::new(most_rounds),
            families: families(schema, &by, plan),
        })
    }

    /// How many searches there are.
    pub(crate) fn count(&self) -> usize {
        self.families.len()
    }

    /// The rounds at a rate at the most.
    pub(crate) fn most_rounds(&self) -> u32 {
        self.test.most_rounds()
    }

    /// The rates of a search at the most.
    pub(crate) fn most_rates(&self) -> u32 {
        let rates = self.families.iter().map(Family::most_rates).max();
        rates.unwrap_or(0)
    }

    /// The rounds of the run at the most.
    pub(crate) fn rounds(&self) -> u32 {
        self.most_rates().saturating_mul(self.most_rounds())
    }

    /// What a round takes at the most: of each search, the longest time and the most bytes of any rate.
    pub(crate) fn costliest_round(&self, plan: &Plan) -> Plan {
        let of_family = |family: &Family| {
            let points = || family.points.iter().map(|point| &plan.points[*point]);
            let mut costliest = points().max_by_key(|it| it.time)?.clone();
            costliest.bytes = points().map(|it| it.bytes).max()?;
            Some(costliest)
        };
        Plan {
            points: self.families.iter().filter_map(of_family).collect(),
            left_out: plan.left_out.clone(),
        }
    }

    /// Bytes that the run leaves on disk at the most: of each search all rungs and the dearest way to close in, each
    /// rate in all rounds.
    pub(crate) fn bytes(&self, plan: &Plan) -> u64 {
        self.bytes_with(plan, |point| point.bytes)
    }

    /// Bytes that must be free before the first round: those of [`Searches::bytes`] if nothing were lost, and a round
    /// that loses all. A rate at which much is lost fails within a few rounds, and [`SweepRun::measure`] asks for the
    /// bytes of each round before it.
    ///
    /// [`SweepRun::measure`]: super::course::SweepRun::measure
    pub(crate) fn bytes_to_begin(&self, plan: &Plan) -> u64 {
        let without_losses =
            |point: &PlannedPoint| point.bytes.saturating_sub(point.bytes_of_losses);
        let round = self.costliest_round(plan).bytes();
        self.bytes_with(plan, without_losses).saturating_add(round)
    }

    fn bytes_with(&self, plan: &Plan, bytes: impl Fn(&PlannedPoint) -> u64) -> u64 {
        let of_rate = |point: &usize| {
            let point = &plan.points[*point];
            let again = bytes(point).saturating_sub(point.bytes_once);
            again
                .saturating_mul(self.most_rounds().into())
                .saturating_add(point.bytes_once)
        };
        let of_families = self.families.iter().map(|family| {
            let costs: Vec<u64> = family.points.iter().map(of_rate).collect();
            rate_search::most_cost(&family.rates, &costs)
        });
        of_families.fold(0, u64::saturating_add)
    }

    /// What is searched, in words.
    pub(crate) fn in_words(&self) -> String {
        let searches = match self.families.len() {
            1 => String::new(),
            several => format!(", {several} searches"),
        };
        let Some(family) = self.families.iter().max_by_key(|it| it.most_rates()) else {
            return String::new();
        };
        format!(
            "the highest rate with {}, from {} to {}{searches}: at most {} of {} rates, each in {LEAST_ROUNDS} to {} \
             rounds",
            self.conditions,
            units::rate(family.rates[0]),
            units::rate(family.rates[family.rates.len() - 1]),
            family.most_rates(),
            family.rates.len(),
            self.most_rounds()
        )
    }

    /// The points to measure in a round, in this order of the searches, each with the place of its search in it. A
    /// search that has a point of the round, has ended or has a point that failed has none.
    pub(crate) fn missing(
        &self,
        order: &[usize],
        round: u32,
        rows: &[Vec<Row>],
    ) -> Vec<(usize, usize)> {
        let of_place = |(place, family): (usize, &usize)| {
            let family = &self.families[*family];
            let rows_of = || family.points.iter().flat_map(|point| &rows[*point]);
            let is_of_round = |run: &Record| round_of(run) == Some(round);
            if rows_of().any(|row| row.failure.is_some() || row.runs.iter().any(is_of_round)) {
                return None;
            }
            match self.observed(family, rows).next() {
                Step::Measure(rate) => Some((place, family.points[rate])),
                Step::End(_) => None,
            }
        };
        order.iter().enumerate().filter_map(of_place).collect()
    }

    fn observed<'a>(&'a self, family: &'a Family, rows: &[Vec<Row>]) -> RateSearch<'a> {
        let mut search = RateSearch::new(&family.rates, &self.limits, &self.test);
        for (place, point) in family.points.iter().enumerate() {
            for run in rows[*point].iter().flat_map(|row| &row.runs) {
                search.observe(
                    place,
                    match is_complete(run) {
                        true => self.figures(family.rates[place], run),
                        // It took more than there was: below no limit.
                        false => vec![f64::INFINITY; self.limits.len()],
                    },
                );
            }
        }
        search
    }

    /// Whether another round of the search of a point was whole: one that fails then is due to its rate.
    pub(crate) fn has_measured_beside(&self, point: usize, rows: &[Vec<Row>]) -> bool {
        let mut families = self.families.iter();
        let family = families.find(|family| family.points.contains(&point));
        let points = family.into_iter().flat_map(|it| &it.points);
        let mut rows = points.flat_map(|point| &rows[*point]);
        rows.any(|row| !row.done.is_empty())
    }

    /// What a round shows, a figure for each limit. A percentile is one of all that was due, of which what was lost has
    /// no end: it is further up among what arrived ([`between_known`]).
    fn figures(&self, rate: f64, run: &Record) -> Vec<f64> {
        let lost = self.by.delivered.map_or(0.0, |(arrived, due)| {
            let both = run.number(arrived.name).zip(run.number(due.name));
            both.map_or(f64::INFINITY, |(arrived, due)| 1.0 - arrived / due.max(1.0))
        });
        let latency = |percent: f64| {
            let lost = lost.max(0.0);
            if 100.0 * lost >= 100.0 - percent {
                return f64::INFINITY;
            }
            let columns = self.by.latency.iter();
            let known = columns.filter_map(|it| Some((it.percentile()?.1, run.number(it.name)?)));
            let mut columns = self.by.latency.iter();
            let max = columns.find(|it| it.name.ends_with("_max_ns"));
            let max = max.and_then(|it| run.number(it.name));
            between_known(percent / (1.0 - lost), known, max.unwrap_or(f64::INFINITY))
        };
        let of_conditions = self.conditions.0.iter().map(|it| match it.figure {
            SearchedFigure::Loss => lost,
            SearchedFigure::Percentile(percent) => latency(percent),
        });
        let (sent, senders) = self.by.sent;
        let senders = senders.and_then(|column| run.number(column.name));
        let offered = rate * senders.unwrap_or(1.0);
        let sent = run.number(sent.name).unwrap_or(0.0);
        of_conditions.chain([1.0 - sent / offered]).collect()
    }

    /// The names of the rows whose rate is judged to fail.
    pub(crate) fn failing(&self, rows: &[Vec<Row>]) -> BTreeSet<String> {
        let of_family = |family: &Family| {
            let search = self.observed(family, rows);
            let places = family.points.iter().enumerate();
            let failing = places.filter(|(place, _)| search.fails(*place));
            let rows = failing.flat_map(|(_, point)| &rows[*point]);
            rows.map(|row| row.planned.name.clone()).collect::<Vec<_>>()
        };
        self.families.iter().flat_map(of_family).collect()
    }

    /// What was found by now.
    pub(crate) fn found(&self, rows: &[Vec<Row>]) -> Vec<FoundRate> {
        let of_family = |family: &Family| self.found_of(family, rows);
        self.families.iter().map(of_family).collect()
    }
}

impl Family {
    fn most_rates(&self) -> u32 {
        rate_search::most_rates(&self.rates)
    }
}

/// A rate, and the place of its point in the plan.
type RateOfPoint = (f64, usize);

/// The searches of a plan: its points by all settings but the rate and what follows from it.
fn families(schema: &Schema, by: &SearchedRate, plan: &Plan) -> Vec<Family> {
    let follows = |name: &str| by.rate.name == name || by.follow.iter().any(|it| it.name == name);
    let columns = schema.point.iter().filter(|column| !follows(column.name));
    let columns: Vec<_> = columns.collect();
    let mut found = Vec::<(Vec<String>, Vec<RateOfPoint>)>::new();
    for (place, point) in plan.points.iter().enumerate() {
        let settings = &point.rows[0].settings;
        let Some(rate) = settings.number(by.rate.name) else {
            continue;
        };
        let texts: Vec<String> = columns.iter().map(|it| settings.text(it)).collect();
        match found.iter_mut().find(|(known, _)| *known == texts) {
            Some((_, points)) => points.push((rate, place)),
            None => found.push((texts, vec![(rate, place)])),
        }
    }
    let first = found
        .first()
        .map(|(texts, _)| texts.clone())
        .unwrap_or_default();
    let differs = |column: &usize| {
        found
            .iter()
            .any(|(texts, _)| texts[*column] != first[*column])
    };
    let differing: Vec<usize> = (0..columns.len()).filter(differs).collect();
    let family = |(texts, mut points): (Vec<String>, Vec<RateOfPoint>)| {
        crate::sorting::sort_by(&mut points, |one, other| one.0.total_cmp(&other.0));
        let names = differing.iter().filter(|it| !texts[**it].is_empty());
        let names = names.map(|it| format!("{} {}", columns[*it].title, texts[*it]));
        Family {
            name: names.collect::<Vec<_>>().join(", "),
            rates: points.iter().map(|(rate, _)| *rate).collect(),
            points: points.into_iter().map(|(_, point)| point).collect(),
        }
    };
    found.into_iter().map(family).collect()
}
