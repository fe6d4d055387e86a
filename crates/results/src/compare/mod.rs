//! Two runs, point by point, or the points of one: what differs by more than chance, and in which direction.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`rounds`] | a run with its whole rounds |
//! | [`figures`] | which of them are judged |
//! | `judged` | what comes out for each of them |
//! | [`circumstances`] | whether machine and settings are the same, and what differs |
//! | [`matching`] | which point of one run belongs to which of the other |
//! | [`names`] | what the two sides are called |
//! | [`within`] | which points of one sweep differ in one setting only |
//!
//! The sample is the round: what differs from one connection, one process or one minute to the next is in it, which
//! samples within a run do not tell. A verdict is [better](Verdict::Better) or [worse](Verdict::Worse) where the
//! interval of the [shift](crate::stats::rank::Shift) leaves zero outside. The errors of all figures judged together
//! are at most [`ERROR`]: each has its share (Bonferroni). "No difference shown" is no proof that there is none.
//!
//! Left out: extremes. The largest of many samples says next to nothing of the largest of another run.

pub mod circumstances;
pub mod figures;
mod judged;
pub mod matching;
pub mod names;
pub mod rounds;
pub mod within;

use serde::{Serialize, Serializer};

use self::circumstances::Differs;
use self::figures::{Figure, Limit};
use self::judged::Judged;
use crate::results::read::{Point, ReadError, Run};
use crate::results::schema::split_unit;
use crate::results::units::digits;
use crate::stats::rank::Test;

/// The probability that any figure of two equal runs is said to differ.
pub const ERROR: f64 = 0.05;

/// Which differences of settings are permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permitted {
    /// Those of these names.
    Named(Vec<String>),
    /// All settings, but not another machine.
    Settings,
    All,
}

impl Permitted {
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

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Percentiles to compare, above 0 and below 100.
    pub percentiles: Vec<f64>,
    pub limits: Vec<Limit>,
    pub permitted: Permitted,
    /// What the two runs are called.
    pub names: [String; 2],
}

#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{} holds results of the benchmark {}, {} of {}: they have nothing in common",
            .names[0], .titles[0], .names[1], .titles[1])]
    Benchmarks {
        names: [String; 2],
        titles: [&'static str; 2],
    },
    #[error("{} were not measured alike; --allow SETTING permits a setting, --anyway all of it. \
             They differ in:{}", .names.join(" and "), list(.differs))]
    Differ {
        names: [String; 2],
        differs: Vec<Differs>,
    },
    /// No point of one run is in the other.
    #[error("{} have no point in common{}", .names.join(" and "), hint(.settings))]
    NothingInCommon {
        names: [String; 2],
        settings: Vec<String>,
    },
    /// A figure that these results do not have.
    #[error(
        "{option}: results of the benchmark {benchmark} have no {asked} to compare, but {have}"
    )]
    NoSuchFigure {
        option: &'static str,
        benchmark: &'static str,
        asked: String,
        have: String,
    },
    #[error("--by {asked}: it {reason}; what varies in this run: {}", or_nothing(.varying))]
    Setting {
        asked: String,
        reason: String,
        varying: String,
    },
}

fn list(differs: &[Differs]) -> String {
    let lines = differs.iter().map(|differs| format!("\n  {differs}"));
    lines.collect()
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
    Better,
    /// NEW is better, but more of its messages or elements are lost or wrong.
    BetterButMoreFaults,
    Worse,
    /// Chance could make a difference like this.
    NoDifferenceShown,
    /// There are too few rounds to show any.
    NotJudged,
}

impl Verdict {
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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureComparison {
    pub point: String,
    #[serde(serialize_with = "as_text")]
    pub figure: Figure,
    pub unit: &'static str,
    /// Rounds of BASE and of NEW that have it.
    pub rounds: [usize; 2],
    /// The median of BASE's rounds, in the unit.
    pub base: Option<f64>,
    pub new: Option<f64>,
    /// How far NEW lies above BASE: in percent of BASE's median; of figures that are percentages, in percentage points.
    pub shift: Option<f64>,
    /// Bounds of it that hold with all others together.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference as large between equals, of this figure alone.
    pub p: Option<f64>,
    pub verdict: Verdict,
    /// Why it is not judged, or what else is to be known.
    pub reason: Option<String>,
    pub limit: Option<LimitOutcome>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitOutcome {
    #[serde(flatten)]
    pub limit: Limit,
    /// Whether it is broken: the figure is worse, by more than the limit.
    pub broken: bool,
    /// By how much the figure may be worse, by the bounds of its shift; `None` where it is not judged.
    pub worst: Option<f64>,
}

impl LimitOutcome {
    /// Whether the rounds leave it open: it is not broken, and a figure as bad as the bounds allow would break it.
    pub fn is_open(&self) -> bool {
        !self.broken && self.worst.is_some_and(|worst| worst > self.limit.percent)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointComparison {
    pub names: [String; 2],
    /// The settings of the point of BASE by which it was matched.
    #[serde(serialize_with = "as_map")]
    pub settings: Vec<(&'static str, String)>,
    /// The level of NEW, where points of one sweep are compared.
    pub level: Option<String>,
    /// Why rounds of them are not whole, if any are not.
    pub incomplete: [Option<String>; 2],
    pub figures: Vec<FigureComparison>,
}

/// By which setting points of one sweep are compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct By {
    pub setting: &'static str,
    /// Its first level, that of BASE.
    pub first: String,
    /// Settings that vary only together with it.
    pub along: Vec<&'static str>,
}

/// Two runs, or the points of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub benchmark: &'static str,
    /// What the runs are called; of points of one run, the first value and the others.
    pub names: [String; 2],
    /// Why they are not whole, if they are not.
    pub incomplete: [Option<String>; 2],
    /// By which setting, if the points of one run are compared.
    pub by: Option<By>,
    pub differs: Vec<Differs>,
    /// What to know before a verdict is believed.
    pub warnings: Vec<String>,
    /// How many figures are judged together.
    pub comparisons: usize,
    #[serde(serialize_with = "test_name")]
    pub test: Test,
    /// Rounds of either side that it takes to show anything of so many figures.
    pub rounds_needed: usize,
    pub points: Vec<PointComparison>,
    /// Names of points of BASE that are not in NEW.
    pub only_in_base: Vec<String>,
    /// And the other way round.
    pub only_in_new: Vec<String>,
}

impl Comparison {
    pub fn figures(&self) -> impl Iterator<Item = &FigureComparison> {
        self.points.iter().flat_map(|point| &point.figures)
    }

    pub fn has_broken_limit(&self) -> bool {
        let mut limits = self.figures().filter_map(|figure| figure.limit.as_ref());
        limits.any(|limit| limit.broken)
    }

    /// What may break its limit by the bounds of its shift, in words.
    pub fn open_limits(&self) -> Vec<String> {
        let of = |found: &FigureComparison| {
            let outcome = found.limit.as_ref().filter(|outcome| outcome.is_open())?;
            let (figure, point, worst) = (&found.figure, &found.point, outcome.worst?);
            let percent = outcome.limit.percent;
            let worst = digits(worst);
            Some(format!(
                "{figure} at {point} may be worse by {worst} %, and its limit is {percent} %"
            ))
        };
        self.figures().filter_map(of).collect()
    }

    /// What keeps `limits` from being judged at all points of BASE: figures without a verdict, and points that are
    /// not in NEW.
    pub fn gaps(&self, limits: &[Limit]) -> Vec<String> {
        let mut gaps = Vec::new();
        if limits.is_empty() {
            return gaps;
        }
        let [base, new] = &self.names;
        if let Some(reason) = &self.incomplete[1] {
            let which = if self.by.is_some() { "the run" } else { new };
            gaps.push(format!("{which} is incomplete ({reason})"));
        }
        for name in &self.only_in_base {
            gaps.push(match &self.by {
                None => format!("{name} of {base} is not in {new}"),
                Some(by) => format!("{name} differs from no other point in {} alone", by.setting),
            });
        }
        for found in self.figures().filter(|found| found.leaves_limit_open()) {
            let reason = found.reason.as_deref().unwrap_or("for an unknown reason");
            let (figure, point) = (&found.figure, &found.point);
            gaps.push(format!("{figure} at {point} is not judged ({reason})"));
        }
        for limit in limits {
            if !self.figures().any(|found| found.figure.is(&limit.of)) {
                gaps.push(format!("{} is at no point of either", limit.of));
            }
        }
        gaps
    }
}

pub fn compare(base: &Run, new: &Run, request: &Request) -> Result<Comparison, CompareError> {
    if base.schema.benchmark != new.schema.benchmark {
        let titles = [base, new].map(|run| run.schema.title);
        let names = request.names.clone();
        return Err(CompareError::Benchmarks { names, titles });
    }
    let figures = figures::of_schema(base.schema, request)?;
    let matched = matching::pairs(base, new, &request.permitted);
    if matched.pairs.is_empty() {
        return Err(CompareError::NothingInCommon {
            names: request.names.clone(),
            settings: (matched.differing.iter())
                .map(|column| column.name.to_owned())
                .collect(),
        });
    }
    let differs = circumstances::differences(base, new, &matched);
    if !differs
        .iter()
        .all(|differs| differs.is_permitted(&request.permitted))
    {
        let names = request.names.clone();
        return Err(CompareError::Differ { names, differs });
    }
    let judged = Judged::of(&matched.pairs, &figures, &request.limits);
    let mut found = judged.comparison([base, new], &matched.pairs, Test::MannWhitney);
    found.warnings = circumstances::warnings([base, new], &request.names, &matched.pairs);
    found.names.clone_from(&request.names);
    found.differs = differs;
    found.only_in_base = names_of(&matched.only_in_base);
    found.only_in_new = names_of(&matched.only_in_new);
    Ok(found)
}

/// Compares points of one run that differ in one setting only.
pub fn compare_within(run: &Run, by: &str, request: &Request) -> Result<Comparison, CompareError> {
    let figures = figures::of_schema(run.schema, request)?;
    let levels = within::levels(run, by)?;
    let judged = Judged::of(&levels.pairs, &figures, &request.limits);
    let test = within::test(judged.least_rounds(), judged.error());
    let mut found = judged.comparison([run, run], &levels.pairs, test);
    for (point, pair) in found.points.iter_mut().zip(&levels.pairs) {
        point.level = pair.new.setting(levels.by.setting).map(str::to_owned);
    }
    let is_first =
        |point: &&Point| point.setting(levels.by.setting) == Some(levels.by.first.as_str());
    let (first, others): (Vec<&Point>, Vec<&Point>) =
        levels.alone.iter().copied().partition(is_first);
    found.only_in_base = names_of(&first);
    found.only_in_new = names_of(&others);
    found.names = levels.names();
    found.by = Some(levels.by);
    Ok(found)
}

fn names_of(points: &[&Point]) -> Vec<String> {
    points.iter().map(|point| point.name.clone()).collect()
}

impl FigureComparison {
    /// Whether there is a limit on it that could not be judged.
    pub fn leaves_limit_open(&self) -> bool {
        self.limit.is_some() && self.verdict == Verdict::NotJudged
    }
}

fn as_text<S: Serializer>(figure: &Figure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(figure)
}

fn as_map<S: Serializer>(pairs: &[(&str, String)], serializer: S) -> Result<S::Ok, S::Error> {
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
