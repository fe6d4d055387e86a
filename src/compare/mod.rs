//! Two runs, point by point, or the points of one: what differs by more than chance, and in which direction.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`rounds`] | the figures of each round of a run |
//! | [`figures`] | which of them are judged |
//! | [`circumstances`] | whether machine and settings are the same, and what differs |
//! | [`matching`] | which point of one run belongs to which of the other |
//! | [`within`] | which points of one sweep differ in one setting only |
//!
//! The sample is the round: what differs from one connection, one process or one minute to the next is in it, which
//! samples within a run do not tell. A verdict is [better](Verdict::Better) or [worse](Verdict::Worse) where the
//! interval of the [`Shift`] leaves zero outside. The errors of all figures judged together are at most [`ERROR`]:
//! each has its share (Bonferroni). "No difference shown" is no proof that there is none.
//!
//! Left out: extremes. The largest of many samples says next to nothing of the largest of another run.

pub mod circumstances;
pub mod figures;
pub mod matching;
pub mod rounds;
pub mod within;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use self::circumstances::Differs;
use self::figures::{Figure, Kind, Limit};
use self::matching::Pair;
use self::rounds::{RecordedPoint, Recording};
use crate::results::read::ReadError;
use crate::results::schema::{self, Better, split_unit};
use crate::stats::median_of;
use crate::stats::rank::{Shift, Test, rounds_needed};

/// The probability that any figure of two equal runs is said to differ.
pub const ERROR: f64 = 0.05;

/// Which differences of settings are permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permitted {
    /// Those of these names.
    Named(Vec<String>),
    /// All settings, but not another machine.
    Settings,
    /// Everything, the machine included.
    All,
}

impl Permitted {
    /// Whether this setting may differ.
    pub fn has(&self, setting: &str) -> bool {
        match self {
            Permitted::Named(names) => {
                let is = |name: &String| *name == setting || *name == split_unit(setting).0;
                names.iter().any(is)
            }
            Permitted::Settings | Permitted::All => true,
        }
    }
}

/// The name of a setting as the files have it: options have dashes.
pub fn normalized(setting: &str) -> String {
    setting.trim_start_matches('-').replace('-', "_")
}

/// What is asked of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Percentiles to compare, above 0 and below 100.
    pub percentiles: Vec<f64>,
    /// What must not be exceeded.
    pub limits: Vec<Limit>,
    /// What may differ.
    pub permitted: Permitted,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Results that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The two are of different benchmarks.
    #[error(
        "BASE holds results of the benchmark {base}, NEW of {new}: they have nothing in common"
    )]
    Benchmarks {
        /// That of BASE.
        base: &'static str,
        /// That of NEW.
        new: &'static str,
    },
    /// Machine or settings are not the same.
    #[error("BASE and NEW were not measured alike; --allow SETTING permits a setting, --anyway all of it. \
             They differ in (BASE and NEW):{}", list(.0))]
    Differ(Vec<Differs>),
    /// No point of one run is in the other.
    #[error("BASE and NEW have no point in common{}", hint(.0))]
    NothingInCommon(Vec<String>),
    /// A figure that these results do not have.
    #[error(
        "{option}: results of the benchmark {benchmark} have no {asked} to compare, but {have}"
    )]
    NoSuchFigure {
        /// The option that asks for it.
        option: &'static str,
        /// The benchmark.
        benchmark: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        have: String,
    },
    /// Points cannot be compared by it.
    #[error("--by {asked}: it {reason}; what varies in this run: {}", or_nothing(.varying))]
    Setting {
        /// What was asked for.
        asked: String,
        /// Why not.
        reason: String,
        /// Settings that vary.
        varying: String,
    },
}

fn list(differs: &[Differs]) -> String {
    differs
        .iter()
        .map(|differs| format!("\n  {differs}"))
        .collect()
}

fn or_nothing(names: &str) -> &str {
    if names.is_empty() { "nothing" } else { names }
}

fn hint(settings: &[String]) -> String {
    if settings.is_empty() {
        return String::new();
    }
    let settings = settings.join(",");
    format!(
        ": all points of either differ in {settings}; --allow {settings} or --anyway compares them all the same"
    )
}

/// What came out for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// NEW is better.
    Better,
    /// NEW is better, but more of its messages or elements are lost or wrong.
    BetterButMoreFaults,
    /// NEW is worse.
    Worse,
    /// Chance could make a difference like this.
    NoDifferenceShown,
    /// There are too few rounds to show any.
    NotJudged,
}

impl Verdict {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::BetterButMoreFaults => "better, but more faults",
            Verdict::Worse => "worse",
            Verdict::NoDifferenceShown => "no difference shown",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// A figure of two points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureComparison {
    /// The point of BASE.
    pub point: String,
    /// Which figure.
    #[serde(serialize_with = "as_text")]
    pub figure: Figure,
    /// Its unit.
    pub unit: &'static str,
    /// Rounds of BASE and of NEW that have it.
    pub rounds: [usize; 2],
    /// The median of BASE's rounds, in the unit.
    pub base: Option<f64>,
    /// That of NEW's.
    pub new: Option<f64>,
    /// How far NEW lies above BASE: in percent of BASE's median; of figures that are percentages, in percentage points.
    pub shift: Option<f64>,
    /// Bounds of it that hold with all others together.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference as large between equals, of this figure alone.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not judged, or what else is to be known.
    pub reason: Option<String>,
    /// The limit on it.
    pub limit: Option<LimitOutcome>,
}

/// What became of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitOutcome {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Whether it is broken: the figure is worse, by more than the limit.
    pub broken: bool,
}

/// Two points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointComparison {
    /// The points' names.
    pub names: [String; 2],
    /// The settings of the point of BASE.
    #[serde(serialize_with = "as_map")]
    pub settings: Vec<(String, String)>,
    /// The level of NEW, where points of one sweep are compared.
    pub level: Option<String>,
    /// Why rounds of them are not whole, if any are not.
    pub incomplete: [Option<String>; 2],
    /// Their figures.
    pub figures: Vec<FigureComparison>,
}

/// By which setting points of one sweep are compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct By {
    /// The setting.
    pub setting: &'static str,
    /// Its first level, that of BASE.
    pub first: String,
    /// Settings that vary only together with it.
    pub along: Vec<&'static str>,
}

/// Two runs, or the points of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Their benchmark.
    pub benchmark: &'static str,
    /// Why they are not whole, if they are not.
    pub incomplete: [Option<String>; 2],
    /// By which setting, if the points of one run are compared.
    pub by: Option<By>,
    /// What differs in machine and settings.
    pub differs: Vec<Differs>,
    /// What to know before a verdict is believed.
    pub warnings: Vec<String>,
    /// How many figures are judged together.
    pub comparisons: usize,
    /// By which test.
    #[serde(serialize_with = "test_name")]
    pub test: Test,
    /// Rounds of either side that it takes to show anything of so many figures.
    pub rounds_needed: usize,
    /// The points that are compared.
    pub points: Vec<PointComparison>,
    /// Names of points of BASE that are not in NEW.
    pub only_in_base: Vec<String>,
    /// And the other way round.
    pub only_in_new: Vec<String>,
}

impl Comparison {
    /// All figures of all points.
    pub fn figures(&self) -> impl Iterator<Item = &FigureComparison> {
        self.points.iter().flat_map(|point| &point.figures)
    }

    /// Whether a limit is broken.
    pub fn has_broken_limit(&self) -> bool {
        let mut limits = self.figures().filter_map(|figure| figure.limit.as_ref());
        limits.any(|limit| limit.broken)
    }

    /// What keeps `limits` from being judged at all points of BASE: figures without a verdict, and points that are
    /// not in NEW.
    pub fn gaps(&self, limits: &[Limit]) -> Vec<String> {
        let mut gaps = Vec::new();
        if limits.is_empty() {
            return gaps;
        }
        if let Some(reason) = &self.incomplete[1] {
            gaps.push(format!("NEW is incomplete ({reason})"));
        }
        for name in &self.only_in_base {
            gaps.push(format!("{name} of BASE is not in NEW"));
        }
        for found in self.figures().filter(|found| found.leaves_limit_open()) {
            let reason = found.reason.as_deref().unwrap_or("no reason told");
            gaps.push(format!(
                "{} at {} is not judged ({reason})",
                found.figure, found.point
            ));
        }
        for limit in limits {
            if !self.figures().any(|found| found.figure.is(&limit.of)) {
                gaps.push(format!("{} is at no point of either", limit.of));
            }
        }
        gaps
    }
}

/// Compares two runs of the same benchmark.
///
/// # Errors
/// [`CompareError`].
pub fn compare(
    base: &Recording,
    new: &Recording,
    request: &Request,
) -> Result<Comparison, CompareError> {
    if base.schema.benchmark != new.schema.benchmark {
        return Err(CompareError::Benchmarks {
            base: base.schema.title,
            new: new.schema.title,
        });
    }
    let figures = figures::of_schema(base.schema, request)?;
    let matched = matching::pairs(base, new, &request.permitted);
    if matched.pairs.is_empty() {
        return Err(CompareError::NothingInCommon(matched.differing));
    }
    let differs = circumstances::differences(base, new, &matched);
    if !differs
        .iter()
        .all(|differs| differs.is_permitted(&request.permitted))
    {
        return Err(CompareError::Differ(differs));
    }
    let judged = Judged::of(&matched.pairs, &figures, &request.limits);
    let mut warnings = circumstances::warnings(base, new, &matched.pairs);
    warn_of_points(&matched.pairs, &mut warnings);
    let names = |points: &[&RecordedPoint]| points.iter().map(|point| point.name.clone()).collect();
    Ok(Comparison {
        benchmark: base.schema.benchmark,
        incomplete: [base, new].map(|run| run.incomplete.clone()),
        by: None,
        differs,
        warnings,
        comparisons: judged.comparisons,
        test: Test::MannWhitney,
        rounds_needed: rounds_needed(Test::MannWhitney, judged.error()),
        points: judged.points(base, &matched.pairs, Test::MannWhitney, &request.limits),
        only_in_base: names(&matched.only_in_base),
        only_in_new: names(&matched.only_in_new),
    })
}

/// Compares points of one run that differ in one setting only.
///
/// # Errors
/// [`CompareError`].
pub fn compare_within(
    run: &Recording,
    by: &str,
    request: &Request,
) -> Result<Comparison, CompareError> {
    let figures = figures::of_schema(run.schema, request)?;
    let levels = within::levels(run, by)?;
    let judged = Judged::of(&levels.pairs, &figures, &request.limits);
    let test = within::test(judged.least_rounds(), judged.error());
    let mut warnings: Vec<String> = Vec::new();
    warnings.extend(
        run.incomplete
            .iter()
            .map(|reason| format!("the run is incomplete: {reason}")),
    );
    warn_of_points(&levels.pairs, &mut warnings);
    let mut points = judged.points(run, &levels.pairs, test, &request.limits);
    for (point, pair) in points.iter_mut().zip(&levels.pairs) {
        point.level = pair.new.setting(levels.setting).map(str::to_owned);
    }
    let (only_in_base, only_in_new): (Vec<&RecordedPoint>, Vec<&RecordedPoint>) =
        (levels.alone.iter())
            .partition(|point| point.setting(levels.setting) == Some(levels.first));
    let names = |points: &[&RecordedPoint]| points.iter().map(|point| point.name.clone()).collect();
    Ok(Comparison {
        benchmark: run.schema.benchmark,
        incomplete: [run.incomplete.clone(), run.incomplete.clone()],
        by: Some(By {
            setting: levels.setting,
            first: levels.first.to_owned(),
            along: levels.along,
        }),
        differs: Vec::new(),
        warnings,
        comparisons: judged.comparisons,
        test,
        rounds_needed: rounds_needed(Test::MannWhitney, judged.error()),
        points,
        only_in_base: names(&only_in_base),
        only_in_new: names(&only_in_new),
    })
}

/// The values of one figure by round, of both points.
type Values = [BTreeMap<u64, f64>; 2];

/// What is judged together.
struct Judged {
    /// By pair.
    figures: Vec<Vec<(Figure, Values)>>,
    comparisons: usize,
}

impl Judged {
    /// Figures that both points have; losses only where there are any, or a limit is on them.
    fn of(pairs: &[Pair<'_>], figures: &[Figure], limits: &[Limit]) -> Self {
        let of_pair = |pair: &Pair<'_>| {
            let values = |figure: &Figure| {
                [pair.base, pair.new].map(|point| figure.values(point).into_iter().collect())
            };
            let is_told = |(figure, values): &(Figure, Values)| {
                let mut all = values.iter().flat_map(BTreeMap::values);
                let is_limited = limits.iter().any(|limit| figure.is(&limit.of));
                is_limited
                    || if figure.kind == Kind::Lost {
                        all.any(|lost| *lost > 0.0)
                    } else {
                        all.next().is_some()
                    }
            };
            let figures = figures
                .iter()
                .map(|figure| (figure.clone(), values(figure)));
            figures.filter(is_told).collect::<Vec<_>>()
        };
        let figures: Vec<Vec<_>> = pairs.iter().map(of_pair).collect();
        let comparisons = figures.iter().map(Vec::len).sum();
        Judged {
            figures,
            comparisons,
        }
    }

    /// The error that each figure may have.
    fn error(&self) -> f64 {
        ERROR / self.comparisons.max(1) as f64
    }

    /// The least number of rounds that both points of a pair have.
    fn least_rounds(&self) -> usize {
        let values = self.figures.iter().flatten();
        let common = values
            .map(|(_, [base, new])| base.keys().filter(|round| new.contains_key(round)).count());
        common.min().unwrap_or(0)
    }

    fn points(
        &self,
        run: &Recording,
        pairs: &[Pair<'_>],
        test: Test,
        limits: &[Limit],
    ) -> Vec<PointComparison> {
        let of_pair = |(pair, figures): (&Pair<'_>, &Vec<(Figure, Values)>)| {
            let faults = more_faults(run, pair);
            let judge = |(figure, values): &(Figure, Values)| {
                let mut found = self.judge(figure, values, test);
                found.point.clone_from(&pair.base.name);
                if let (Verdict::Better, Some(faults)) = (found.verdict, &faults) {
                    found.verdict = Verdict::BetterButMoreFaults;
                    found.reason = Some(faults.clone());
                }
                let limit = limits.iter().find(|limit| figure.is(&limit.of));
                found.limit = limit.map(|limit| LimitOutcome {
                    limit: limit.clone(),
                    broken: found.verdict == Verdict::Worse && found.worse_by() > limit.percent,
                });
                found
            };
            PointComparison {
                names: [pair.base, pair.new].map(|point| point.name.clone()),
                settings: pair.base.settings.clone(),
                level: None,
                incomplete: [pair.base, pair.new].map(|point| point.incomplete.clone()),
                figures: figures.iter().map(judge).collect(),
            }
        };
        pairs.iter().zip(&self.figures).map(of_pair).collect()
    }

    fn judge(&self, figure: &Figure, values: &Values, test: Test) -> FigureComparison {
        let [base, new] = values
            .each_ref()
            .map(|side| side.values().copied().collect::<Vec<f64>>());
        let shift = match test {
            Test::MannWhitney => Shift::of_samples(&base, &new, self.error()),
            Test::SignedRank => {
                let [base, new] = values;
                let differences = base
                    .iter()
                    .filter_map(|(round, base)| Some(new.get(round)? - base));
                Shift::of_pairs(&differences.collect::<Vec<f64>>(), self.error())
            }
        };
        let rounds = [base.len(), new.len()];
        let [base, new] = [base, new].map(|values| median_of(&values));
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
        let in_percent = |value: f64| match figure.unit {
            "%" => Some(value),
            _ => base
                .filter(|base| *base != 0.0)
                .map(|base| value / base.abs() * 100.0),
        };
        found.shift = in_percent(shift.value);
        if !shift.can_be_shown {
            found.reason = Some(format!(
                "{} and {} rounds can show nothing of {} figures together: it takes {} of either (--rounds)",
                rounds[0],
                rounds[1],
                self.comparisons,
                rounds_needed(test, self.error())
            ));
            return found;
        }
        found.interval = Option::zip(in_percent(shift.interval.0), in_percent(shift.interval.1))
            .map(|(low, high)| [low, high]);
        let is_higher = shift.interval.0 > 0.0;
        found.verdict = match shift.is_shown() {
            false => Verdict::NoDifferenceShown,
            true if is_higher == (figure.better == Better::Higher) => Verdict::Better,
            true => Verdict::Worse,
        };
        found
    }
}

impl FigureComparison {
    /// Whether there is a limit on it that could not be judged.
    pub fn leaves_limit_open(&self) -> bool {
        self.limit.is_some() && self.verdict == Verdict::NotJudged
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

/// If a round of NEW has more messages or elements lost or wrong than one of BASE: what to say of it beside a better
/// figure.
fn more_faults(run: &Recording, pair: &Pair<'_>) -> Option<String> {
    let counts = run.schema.figures.iter();
    let mut faults = counts
        .filter(|column| column.kind == schema::Kind::Count && column.better == Better::Lower);
    faults.find_map(|column| {
        let mean = |point: &RecordedPoint| {
            let counts: Vec<f64> = (point.rounds.iter())
                .filter_map(|round| round.row.number(column.name))
                .collect();
            counts.iter().sum::<f64>() / counts.len().max(1) as f64
        };
        let (base, new) = (mean(pair.base), mean(pair.new));
        (new > base).then(|| format!("{} rose from {base:.1} to {new:.1} a round", column.name))
    })
}

fn warn_of_points(pairs: &[Pair<'_>], warnings: &mut Vec<String>) {
    for pair in pairs {
        for (side, point) in [("BASE", pair.base), ("NEW", pair.new)] {
            if let Some(reason) = &point.incomplete {
                warnings.push(format!(
                    "{side}: rounds of {} are not whole, and not judged: {reason}",
                    point.name
                ));
            }
        }
    }
}

fn as_text<S: Serializer>(figure: &Figure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(figure)
}

fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, text)| (name, text)))
}

fn test_name<S: Serializer>(test: &Test, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match test {
        Test::MannWhitney => "mann-whitney",
        Test::SignedRank => "signed-rank",
    })
}

#[cfg(test)]
mod tests;
