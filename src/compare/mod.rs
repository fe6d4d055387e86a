//! Two runs, point by point: what differs by more than chance, and in which direction.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`circumstances`] | whether machine and settings are the same, and what differs |
//! | [`matching`] | which point of one run belongs to which of the other |
//! | [`figures`] | what a benchmark's results have that can be compared, and where its samples are |
//! | [`jumps`] | the same of a clock |
//!
//! A verdict is [better](Verdict::Better) or [worse](Verdict::Worse) where the interval of the difference leaves zero
//! outside, and the intervals of all comparisons hold together in 95 of 100 comparisons of equal runs
//! ([`Difference`]). "No difference shown" is no proof that there is none.
//!
//! Left out: extremes. The largest of many samples says next to nothing of the largest of another run.

pub mod circumstances;
pub mod figures;
pub mod jumps;
pub mod matching;

use serde::{Serialize, Serializer};

use self::circumstances::{Circumstances, Differs};
use self::figures::{Figure, Kind, Samples, Side, Unit};
use crate::results::read::{Point, ReadError, Run};
use crate::stats::difference::ERROR;
use crate::stats::{Difference, Resampling, TooFew, bootstrap};

/// What is asked of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Percentiles to compare, above 0 and below 100.
    pub percentiles: Vec<f64>,
    /// What must not be exceeded.
    pub limits: Vec<Limit>,
    /// Compare other machines and other settings, too.
    pub anyway: bool,
}

/// By how much a figure may get worse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// Percent of BASE; of figures that are percentages themselves, percentage points.
    pub percent: f64,
    /// Of which figures.
    pub of: Kind,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Results that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file has another number of rows than its run counted.
    #[error(
        "{file} has {found} rows, where the summary tells of {told}; copy it again, or measure again"
    )]
    Rows {
        /// The file.
        file: String,
        /// Its rows.
        found: u64,
        /// Those of the summary.
        told: u64,
    },
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
    #[error("BASE and NEW differ in {}; --anyway compares them all the same", list(.0))]
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
}

fn list(differs: &[Differs]) -> String {
    let all: Vec<String> = differs.iter().map(ToString::to_string).collect();
    all.join("; ")
}

fn hint(settings: &[String]) -> String {
    if settings.is_empty() {
        String::new()
    } else {
        format!(
            ": all points of either differ in {}; --anyway compares them all the same",
            settings.join(", ")
        )
    }
}

/// What came out for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// NEW is better.
    Better,
    /// NEW is better, but a larger share of its messages or elements is lost or wrong.
    BetterButMoreFaults,
    /// NEW is worse.
    Worse,
    /// Chance could make a difference like this.
    NoDifferenceShown,
    /// There is no interval to judge by.
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
    /// Which.
    #[serde(flatten)]
    pub figure: Figure,
    /// That of BASE, in the figure's unit.
    #[serde(serialize_with = "figure_or_lost")]
    pub base: Option<f64>,
    /// That of NEW.
    #[serde(serialize_with = "figure_or_lost")]
    pub new: Option<f64>,
    /// NEW less BASE, with its intervals.
    #[serde(serialize_with = "difference_or_lost")]
    pub difference: Option<Difference>,
    /// The difference in percent of BASE, where that is not zero.
    pub change_percent: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not judged, or what else is to be known.
    pub reason: Option<String>,
    /// What was drawn for the intervals of BASE and NEW.
    pub drawn: [Option<Drawn>; 2],
    /// The limit on it.
    pub limit: Option<LimitOutcome>,
}

/// What was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// Of what kind.
    pub unit: bootstrap::Unit,
    /// How many.
    pub units: usize,
    /// Whether they go with their neighbours, however long they are: the run drifts.
    pub drifts: bool,
}

/// What became of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LimitOutcome {
    /// The limit.
    pub percent: f64,
    /// Whether it is broken: the figure is worse, by more than the limit.
    pub broken: bool,
}

/// Two points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointComparison {
    /// The settings of the point of BASE.
    #[serde(serialize_with = "as_map")]
    pub settings: Vec<(String, String)>,
    /// The points' names.
    pub names: [String; 2],
    /// Why they are not whole, if they are not.
    pub incomplete: [Option<String>; 2],
    /// Their figures.
    pub figures: Vec<FigureComparison>,
}

/// Two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Their benchmark.
    pub benchmark: &'static str,
    /// Why they are not whole, if they are not.
    pub incomplete: [Option<String>; 2],
    /// When they were measured.
    pub started_at: [Option<String>; 2],
    /// What differs in machine and settings.
    pub differs: Vec<Differs>,
    /// What to know before a verdict is believed.
    pub warnings: Vec<String>,
    /// How many comparisons hold together.
    pub comparisons: usize,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// How replicates were made.
    pub resampling: Resampling,
    /// The points that are in both.
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
        let mut limits = self.figures().filter_map(|figure| figure.limit);
        limits.any(|limit| limit.broken)
    }

    /// What keeps `limits` from being judged at all points of BASE: figures without a verdict, and points or parts that are
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
        for point in &self.points {
            if let (Some(reason), None) = (&point.incomplete[1], &self.incomplete[1]) {
                gaps.push(format!(
                    "{} of NEW is incomplete ({reason})",
                    point.names[1]
                ));
            }
            let unjudged = (point.figures.iter()).filter(|found| found.leaves_limit_open());
            for found in unjudged {
                let reason = found.reason.as_deref().unwrap_or("no reason told");
                gaps.push(format!(
                    "{} at {} is not judged ({reason})",
                    found.figure, point.names[0]
                ));
            }
        }
        for limit in limits {
            if !self.figures().any(|found| found.figure.is_of(limit)) {
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
pub fn compare(base: &Run, new: &Run, request: &Request) -> Result<Comparison, CompareError> {
    if base.benchmark != new.benchmark {
        return Err(CompareError::Benchmarks {
            base: base.benchmark.name(),
            new: new.benchmark.name(),
        });
    }
    let figures = figures::of_benchmark(base.benchmark, request)?;
    let matched = matching::pairs(base, new, request.anyway);
    if matched.pairs.is_empty() {
        return Err(CompareError::NothingInCommon(matched.differing));
    }
    let Circumstances {
        differs,
        mut warnings,
    } = circumstances::of(base, new, &matched);
    if !differs.is_empty() && !request.anyway {
        return Err(CompareError::Differ(differs));
    }
    let wanted: Vec<Vec<Figure>> = matched
        .pairs
        .iter()
        .map(|pair| figures::present(&figures, base.benchmark, pair, &request.limits))
        .collect();
    let comparisons: usize = wanted.iter().map(Vec::len).sum();
    let resampling = Resampling::for_comparisons(comparisons);
    let base_points: Vec<&Point> = matched.pairs.iter().map(|pair| pair.base).collect();
    let new_points: Vec<&Point> = matched.pairs.iter().map(|pair| pair.new).collect();
    let base_samples = Samples::of(base.benchmark, &base_points)?;
    let new_samples = Samples::of(base.benchmark, &new_points)?;
    let mut points = Vec::new();
    for (pair, wanted) in matched.pairs.iter().zip(&wanted) {
        let context = figures::Context::of(pair);
        let base_sides = base_samples.sides(pair.base, &context, wanted, resampling)?;
        let new_sides = new_samples.sides(pair.new, &context, wanted, resampling.of_the_other())?;
        let more_faults = figures::more_faults(pair);
        let compared = wanted
            .iter()
            .zip(base_sides.into_iter().zip(new_sides))
            .map(|(figure, (base, new))| {
                let judge = Judge {
                    comparisons,
                    resolution: context.resolution(figure),
                    more_faults: more_faults.as_deref(),
                    limits: &request.limits,
                };
                judge.compare(figure, base, new)
            })
            .collect();
        points.push(PointComparison {
            settings: pair.base.settings.clone(),
            names: [pair.base.name.clone(), pair.new.name.clone()],
            incomplete: [pair.base.incomplete.clone(), pair.new.incomplete.clone()],
            figures: compared,
        });
    }
    warn_of_points(&points, &mut warnings);
    let names = |points: &[&Point]| -> Vec<String> {
        points.iter().map(|point| point.name.clone()).collect()
    };
    Ok(Comparison {
        benchmark: base.benchmark.name(),
        incomplete: [base, new].map(|run| run.incomplete.clone()),
        started_at: [base, new].map(|run| run.started_at().map(str::to_owned)),
        differs,
        warnings,
        comparisons,
        confidence: 1.0 - ERROR,
        resampling,
        points,
        only_in_base: names(&matched.only_in_base),
        only_in_new: names(&matched.only_in_new),
    })
}

/// What decides a figure.
struct Judge<'a> {
    comparisons: usize,
    resolution: f64,
    more_faults: Option<&'a str>,
    limits: &'a [Limit],
}

impl Judge<'_> {
    fn compare(&self, figure: &Figure, base: Side, new: Side) -> FigureComparison {
        let drawn = [&base, &new].map(|side| {
            let estimate = side.estimate.as_ref().ok()?;
            Some(Drawn {
                unit: estimate.units.unit(),
                units: estimate.units.len(),
                drifts: estimate.units.alike(),
            })
        });
        let mut found = FigureComparison {
            figure: figure.clone(),
            base: base.value,
            new: new.value,
            difference: None,
            change_percent: None,
            verdict: Verdict::NotJudged,
            reason: None,
            drawn,
            limit: None,
        };
        if let (Some(base), Some(new)) = (base.value, new.value) {
            let change = (new - base) / base.abs() * 100.0;
            found.change_percent = change.is_finite().then_some(change);
        }
        match (&base.estimate, &new.estimate) {
            (Ok(base), Ok(new)) => {
                let difference = Difference::of(base, new, self.comparisons, self.resolution);
                found.verdict = match (difference.shown, difference.together.0 > 0.0) {
                    _ if !difference.enough() => Verdict::NotJudged,
                    (false, _) => Verdict::NoDifferenceShown,
                    (true, up) if up == figure.kind.higher_is_better() => Verdict::Better,
                    (true, _) => Verdict::Worse,
                };
                if !difference.can_be_shown {
                    found.reason = Some(format!(
                        "too few repetitions or blocks for {} comparisons together: nothing could be shown, however large; \
                         compare fewer figures or points, or measure with a larger --repeat",
                        self.comparisons
                    ));
                } else if !difference.enough_events {
                    found.reason = Some(format!(
                        "too few {} for {} comparisons together: chance alone could have brought all of them to one of two equal \
                         runs; compare fewer figures or points, or measure longer",
                        figure.kind.events(),
                        self.comparisons
                    ));
                }
                found.difference = Some(difference);
            }
            (Err(reason), Ok(_)) => found.reason = Some(format!("BASE: {reason}")),
            (Ok(_), Err(reason)) => found.reason = Some(format!("NEW: {reason}")),
            (Err(base), Err(new)) if base == new => found.reason = Some(base.to_string()),
            (Err(base), Err(new)) => found.reason = Some(format!("BASE: {base}; NEW: {new}")),
        }
        if let (Verdict::Better, Some(faults)) = (found.verdict, self.more_faults) {
            found.verdict = Verdict::BetterButMoreFaults;
            found.reason = Some(faults.to_owned());
        }
        let limit = self.limits.iter().find(|limit| figure.is_of(limit));
        found.limit = limit.map(|limit| LimitOutcome {
            percent: limit.percent,
            broken: found.verdict == Verdict::Worse && found.worse_by() > limit.percent,
        });
        found
    }
}

impl FigureComparison {
    /// Whether there is a limit on it that could not be judged. What is no worse than its limit keeps it, also where its
    /// events are too few to tell whether it differs.
    pub fn leaves_limit_open(&self) -> bool {
        let Some(limit) = self.limit.filter(|_| self.verdict == Verdict::NotJudged) else {
            return false;
        };
        let few_events = (self.difference.as_ref())
            .is_some_and(|difference| difference.can_be_shown && !difference.enough_events);
        !few_events || self.worse_by() > limit.percent
    }

    /// By how much NEW is worse, in the unit of a [`Limit`]; negative where it is better.
    fn worse_by(&self) -> f64 {
        let Some(difference) = self.difference else {
            return 0.0;
        };
        let value = if self.figure.kind.higher_is_better() {
            -difference.value
        } else {
            difference.value
        };
        match (self.figure.unit, self.base) {
            (Unit::Percent, _) | (_, None) => value,
            (_, Some(base)) => value / base.abs() * 100.0,
        }
    }
}

/// Of points that are not whole, or drift.
fn warn_of_points(points: &[PointComparison], warnings: &mut Vec<String>) {
    for point in points {
        for (side, (name, reason)) in ["BASE", "NEW"]
            .into_iter()
            .zip(point.names.iter().zip(&point.incomplete))
        {
            if let Some(reason) = reason {
                warnings.push(format!("{side}: {name} is incomplete: {reason}"));
            }
        }
    }
    let drifting: Vec<&str> = points
        .iter()
        .filter(|point| {
            let drawn = point.figures.iter().flat_map(|figure| figure.drawn);
            drawn.flatten().any(|drawn| drawn.drifts)
        })
        .map(|point| point.names[0].as_str())
        .collect();
    if let [first, rest @ ..] = drifting.as_slice() {
        let more = match rest.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        warnings.push(format!(
            "{first}{more}: the figures drift over the run, so their intervals may be too narrow: measure longer, or \
             with more repetitions (--repeat), and several runs of either in turn"
        ));
    }
}

/// JSON has no infinity.
fn figure_or_lost<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => NumberOrLost(*value).serialize(serializer),
        None => serializer.serialize_none(),
    }
}

/// A number, or that of a lost message, and less it.
struct NumberOrLost(f64);

impl Serialize for NumberOrLost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            f64::INFINITY => serializer.serialize_str("lost"),
            f64::NEG_INFINITY => serializer.serialize_str("-lost"),
            value => serializer.serialize_f64(value),
        }
    }
}

fn difference_or_lost<S: Serializer>(
    difference: &Option<Difference>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written {
        value: NumberOrLost,
        alone: [NumberOrLost; 2],
        together: [NumberOrLost; 2],
        p_value: f64,
        shown: bool,
        can_be_shown: bool,
        enough_events: bool,
    }
    let pair = |(low, high)| [NumberOrLost(low), NumberOrLost(high)];
    difference
        .map(|found| Written {
            value: NumberOrLost(found.value),
            alone: pair(found.alone),
            together: pair(found.together),
            p_value: found.p_value,
            shown: found.shown,
            can_be_shown: found.can_be_shown,
            enough_events: found.enough_events,
        })
        .serialize(serializer)
}

fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, text)| (name, text)))
}

/// The reason for want of samples, as a text.
impl From<TooFew> for figures::Missing {
    fn from(reason: TooFew) -> Self {
        figures::Missing(reason.to_string())
    }
}

#[cfg(test)]
mod tests;
