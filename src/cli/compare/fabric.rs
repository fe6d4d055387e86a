//! Two runs of a fabric: tiers and nodes, by round.

mod present;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::answer::{Amount, Direction, Outcome, Places, certainty, rounds_in_words, sentences};
use super::{BROKEN, CompareArguments, Sides, check_allowed, first_of, has, none_left};
use crate::arguments::UsageError;
use crate::bench::fabric::matrix::Matrix;
use crate::bench::fabric::over_time::{self, Change, Measured, What};
use crate::bench::fabric::scores::median;
use crate::bench::fabric::tiers::Tiers;
use crate::cli::stored_fabric::{PARTS, differs, tiers};
use crate::compare::circumstances::Differs;
use crate::compare::figures::{Kind, Limit};
use crate::compare::{ERROR, Permitted, Request, Verdict};
use crate::findings::print_damaged;
use crate::results::read::{Fabric, ReadError};
use crate::results::schema::Column;
use crate::results::schema::fabric::{
    EXCESS_P50, EXCESS_P90, EXCESS_P99, HALF_P50, HALF_P90, HALF_P99,
};
use crate::results::text::printable;
use crate::results::units::digits;
use crate::sorting::distinct;
use crate::stats::rank::Test;
use crate::terminal::output::{print_json, print_text, say, terminal_width, warning};
use crate::time::between::HostPairs;

/// What is compared: how a limit names it, its percentile and its column.
const FIGURES: [(&str, f64, Column); 6] = [
    ("rtt/2", 50.0, HALF_P50),
    ("rtt/2", 90.0, HALF_P90),
    ("rtt/2", 99.0, HALF_P99),
    ("excess", 50.0, EXCESS_P50),
    ("excess", 90.0, EXCESS_P90),
    ("excess", 99.0, EXCESS_P99),
];
const PLACES: Places = Places {
    at: "in",
    noun: "tiers and directions of nodes",
};

/// So many of the pairs that got slower are told.
const MOST_PAIRS: usize = 8;

/// A run.
struct Side {
    fabric: Fabric,
    nodes: Vec<String>,
    tiers: Tiers,
    /// Of each figure, the rounds.
    rounds: Vec<Vec<Matrix>>,
}

/// A figure of both runs.
struct Figure {
    scope: &'static str,
    percent: f64,
    /// The median of all pairs of BASE, in ns: what effects of nodes are a share of.
    usual_ns: f64,
    comparison: over_time::Comparison,
}

impl Figure {
    fn name(&self) -> String {
        format!("{}.p{}", self.scope, self.percent)
    }

    /// The same in a sentence.
    fn words(&self) -> String {
        match self.percent {
            50.0 => format!("median {}", self.scope),
            percent => format!("p{percent} {}", self.scope),
        }
    }
}

/// What is found of a tier or node.
struct Finding<'a> {
    figure: &'a Figure,
    change: &'a Change,
    limit: Option<&'a Limit>,
}

impl Finding<'_> {
    fn of(&self) -> String {
        match &self.change.of {
            What::Tier(name) => format!("tier {name}"),
            What::Egress(name) => format!("egress of {name}"),
            What::Ingress(name) => format!("ingress of {name}"),
        }
    }

    fn outcome(&self) -> Outcome {
        let amount = |[difference, low, high]: [f64; 3]| Amount {
            difference,
            interval: [low, high],
            unit: "%",
        };
        Outcome {
            figure: self.figure.words(),
            place: self.of(),
            direction: match self.verdict() {
                Verdict::NotJudged => Direction::NotJudged,
                Verdict::Worse => Direction::Higher,
                Verdict::Better | Verdict::BetterButMoreFaults => Direction::Lower,
                Verdict::NoDifferenceShown => Direction::NotShown,
            },
            amount: self.shift().map(amount),
        }
    }

    fn is_tier(&self) -> bool {
        matches!(self.change.of, What::Tier(_))
    }

    fn verdict(&self) -> Verdict {
        let can_be = self.change.shift.is_some_and(|shift| shift.can_be_shown);
        match self.change.is_worse() {
            _ if !can_be => Verdict::NotJudged,
            Some(true) => Verdict::Worse,
            Some(false) => Verdict::Better,
            None => Verdict::NoDifferenceShown,
        }
    }

    /// Nanoseconds as percent of the tier's median in BASE, of a node's effect of the usual one of all pairs.
    fn percent(&self, ns: f64) -> f64 {
        let usual = match self.is_tier() {
            true => self.change.medians_ns[0],
            false => self.figure.usual_ns,
        };
        100.0 * ns / usual
    }

    /// The shift and its bounds, in percent.
    fn shift(&self) -> Option<[f64; 3]> {
        let shift = self.change.shift?;
        let all = [shift.value, shift.interval.0, shift.interval.1];
        Some(all.map(|ns| self.percent(ns)))
    }

    fn is_broken(&self) -> bool {
        let beyond = self.limit.zip(self.shift());
        self.verdict() == Verdict::Worse
            && beyond.is_some_and(|(limit, [shift, ..])| shift > limit.percent)
    }

    /// By how much it may be worse, where its limit is neither broken nor shown to be kept.
    fn open(&self) -> Option<f64> {
        let (limit, [.., most]) = self.limit.zip(self.shift())?;
        (!self.is_broken() && self.verdict() != Verdict::NotJudged && most > limit.percent)
            .then_some(most)
    }
}

/// Compares two folders. Returns the exit code.
pub(super) fn run(
    arguments: &CompareArguments,
    request: &Request,
    paths: [&Path; 2],
    sides: &Sides<'_>,
) -> anyhow::Result<u8> {
    let asked = asked(request)?;
    let names = &request.names;
    let order = present::order(&arguments.table, names)?;
    let [base, new] = paths;
    let fabrics = [
        Fabric::salvage(base).context("BASE")?,
        Fabric::salvage(new).context("NEW")?,
    ];
    let differs = differs(fabrics.each_ref().map(Fabric::document));
    check_allowed(arguments, |name| {
        let mut documents = fabrics.iter().map(Fabric::document);
        documents.any(|it| PARTS.iter().any(|part| has(&it[*part], name)))
    })?;
    refuse(&fabrics, &differs, request)?;
    let mut warnings = warnings(&fabrics, names);
    let both = names.join(" and ");
    warnings.extend((differs.iter()).map(|it| format!("{both} differ in {it}")));
    for text in &warnings {
        say(warning(&printable(text)));
    }
    let columns: Vec<Column> = asked.iter().map(|(.., column)| *column).collect();
    let [base, new] = fabrics;
    let runs = [Side::of(base, &columns)?, Side::of(new, &columns)?];
    let figures = compare(&runs, &asked);
    let damaged = runs.each_ref().map(|side| side.fabric.damaged());
    let damaged = print_damaged(damaged.iter().flatten().map(AsRef::as_ref));
    let findings = findings(&figures, &request.limits);
    if findings.is_empty() {
        let reason = format!("{both} have no pair with figures in common");
        anyhow::ensure!(damaged == 0, reason);
        return Err(UsageError(reason).into());
    }
    let shown = present::Shown {
        names,
        findings: &findings,
        figures: &figures,
        rounds: runs.each_ref().map(Side::rounds),
    };
    let mut answer = sides.legend(arguments, names);
    answer.extend(sentences_of(&shown));
    if arguments.json {
        let verdict = json!({
            "limits": request.limits,
            "broken": findings.iter().any(Finding::is_broken),
        });
        print_json(&json!({
            "folders": sides.folders(),
            "answer": answer,
            "verdict": verdict,
            "warnings": warnings,
            "comparison": shown.json(),
        }))?;
    } else if !arguments.quiet {
        let text = shown.text(
            &answer,
            order,
            arguments.table.brief.brief,
            terminal_width(),
        );
        print_text(&text)?;
    }
    let is_incomplete = runs[1].fabric.incomplete.as_deref();
    let judged = judge(&findings, request, arguments.strict, is_incomplete)?;
    Ok(judged.max(damaged))
}

/// The answer, a sentence each.
fn sentences_of(shown: &present::Shown<'_>) -> Vec<String> {
    let names = shown.names.each_ref().map(String::as_str);
    let is_judged = |it: &&Finding<'_>| it.verdict() != Verdict::NotJudged;
    let judged = shown.findings.iter().filter(is_judged).count();
    let needed = shown.figures.iter().map(|it| it.comparison.rounds_needed);
    let needed = needed.max().unwrap_or(0);
    let rounds = rounds_in_words(shown.rounds.into_iter());
    if judged == 0 {
        return vec![format!(
            "With {rounds} no difference between {} can be judged, and those below may be chance: it takes {needed} \
             rounds of either (--rounds {needed}).",
            names.join(" and ")
        )];
    }
    let outcomes: Vec<Outcome> = shown.findings.iter().map(Finding::outcome).collect();
    let mut texts = sentences(names, &outcomes, PLACES);
    texts.push(certainty(judged, &rounds, Test::MannWhitney));
    if judged < shown.findings.len() {
        texts.push(format!(
            "A verdict on the rest takes {needed} rounds of either (--rounds {needed})."
        ));
    }
    texts
}

/// The figures that are asked for; a percentile or limit that a fabric does not have is refused.
fn asked(request: &Request) -> Result<Vec<(&'static str, f64, Column)>, UsageError> {
    const HAS: &str = "of a fabric p50, p90 and p99 are compared, of rtt/2 and excess";
    let has = |percent: f64| FIGURES.iter().any(|(_, it, _)| *it == percent);
    if let Some(percent) = request.percentiles.iter().find(|it| !has(**it)) {
        return Err(UsageError(format!("--percentiles p{percent}: {HAS}")));
    }
    let is_asked = |(scope, percent, _): &(&str, f64, Column)| {
        let limited = |limit: &Limit| {
            limit.of.kind == Kind::Percentile(*percent)
                && limit.of.scope.as_deref().is_none_or(|it| it == *scope)
        };
        request.percentiles.contains(percent) || request.limits.iter().any(limited)
    };
    for limit in &request.limits {
        let is_there = |(scope, percent, _): &(&str, f64, Column)| {
            limit.of.kind == Kind::Percentile(*percent)
                && limit.of.scope.as_deref().is_none_or(|it| it == *scope)
        };
        if !FIGURES.iter().any(is_there) {
            let (percent, of) = (limit.percent, &limit.of);
            return Err(UsageError(format!(
                "--max-regression {percent}%@{of}: {HAS}, such as 5%@p50 or 5%@rtt/2.p50"
            )));
        }
    }
    Ok(FIGURES.into_iter().filter(is_asked).collect())
}

/// Runs of other nodes, or of other settings than are permitted.
fn refuse(
    fabrics: &[Fabric; 2],
    differs: &[Differs],
    Request {
        permitted, names, ..
    }: &Request,
) -> Result<(), UsageError> {
    let mut reasons = Vec::new();
    if *permitted != Permitted::All {
        for (side, [one, other]) in names.iter().zip([[0, 1], [1, 0]]) {
            let nodes = only(&fabrics[one], &fabrics[other]);
            if !nodes.is_empty() {
                reasons.push(format!("nodes only in {side}: {}", first_of(&nodes, ", ")));
            }
        }
    }
    let refused = differs.iter().filter(|it| !it.is_permitted(permitted));
    reasons.extend(refused.map(Differs::to_string));
    if reasons.is_empty() {
        return Ok(());
    }
    let reasons: Vec<_> = reasons.iter().map(|text| printable(text)).collect();
    Err(UsageError(format!(
        "{} cannot be compared, as they differ:\n  {}\n\
         --allow SETTING,... compares runs of other settings, --anyway also those of other nodes",
        names.join(" and "),
        reasons.join("\n  ")
    )))
}

/// The nodes of one that another has not.
fn only(one: &Fabric, other: &Fabric) -> Vec<String> {
    let there = distinct(other.nodes.iter().map(|node| &node.name));
    let names = one.nodes.iter().map(|node| node.name.clone());
    names.filter(|name| !there.contains(name)).collect()
}

/// What to know before the figures are believed.
fn warnings(fabrics: &[Fabric; 2], names: &[String; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    let [first, second] = names;
    for (side, fabric, other) in [
        (first, &fabrics[0], &fabrics[1]),
        (second, &fabrics[1], &fabrics[0]),
    ] {
        if let Some(reason) = &fabric.incomplete {
            warnings.push(format!("{side} is incomplete: {reason}"));
        }
        if fabric.document().is_null() {
            warnings.push(format!(
                "{side} has no fabric.json: whether its settings are the same is unknown"
            ));
        }
        let nodes = only(fabric, other);
        if !nodes.is_empty() {
            warnings.push(format!("only in {side}: {}", first_of(&nodes, ", ")));
        }
    }
    let [base, new] = fabrics.each_ref().map(Fabric::document);
    for (what, place) in [
        ("the launcher", "/engine"),
        ("the commit of hcabench", "/hcabench/commit"),
    ] {
        let [base, new] = [base, new].map(|it| it.pointer(place).and_then(Value::as_str));
        if let (Some(base), Some(new)) = (base, new)
            && base != new
        {
            warnings.push(format!("{what} is {base} in {first} and {new} in {second}"));
        }
    }
    let [base, new] = [base, new].map(ports);
    let other: Vec<String> = base
        .iter()
        .filter(|(node, port)| new.get(*node).is_some_and(|it| it != *port))
        .map(|(node, port)| format!("{node} ({port}, now {})", new[node]))
        .collect();
    if !other.is_empty() {
        warnings.push(format!("other ports: {}", first_of(&other, ", ")));
    }
    warnings
}

/// The device and port of each node.
fn ports(document: &Value) -> BTreeMap<&str, String> {
    let ranks = document["there"].as_array().into_iter().flatten();
    let nodes = &document["nodes"];
    let port = |rank: &Value| -> Option<(&str, String)> {
        let place = usize::try_from(rank["rank"].as_u64()?).ok()?;
        let node = nodes[place].as_str();
        let (device, port) = (rank["port"]["device"].as_str()?, &rank["port"]["port"]);
        Some((node?, format!("{device} port {port}")))
    };
    ranks.filter_map(port).collect()
}

impl Side {
    fn of(fabric: Fabric, columns: &[Column]) -> Result<Self, ReadError> {
        /// The figures of all pairs of each round.
        type Rounds = BTreeMap<u32, Vec<(usize, usize, f64)>>;
        let mut rounds: Vec<Rounds> = vec![BTreeMap::new(); columns.len()];
        fabric.rounds(columns, |round, [from, to], figure, value| {
            let of_round = rounds[figure].entry(round).or_default();
            of_round.push((from, to, value));
        })?;
        let measured = rounds.iter().flat_map(|rounds| rounds.values().flatten());
        let measured = distinct(measured.map(|(from, to, _)| (*from, *to)));
        let measured: Vec<(usize, usize)> = measured.into_iter().collect();
        let pairs = HostPairs::most_or_some(fabric.nodes.len(), &measured);
        let matrix = |values: Vec<(usize, usize, f64)>| {
            let mut matrix = Matrix::missing_of(&pairs);
            for (from, to, value) in values {
                matrix.set(from, to, value);
            }
            matrix
        };
        Ok(Side {
            nodes: fabric.nodes.iter().map(|node| node.name.clone()).collect(),
            tiers: tiers(&fabric)?,
            rounds: (rounds.into_iter())
                .map(|rounds| rounds.into_values().map(matrix).collect())
                .collect(),
            fabric,
        })
    }

    fn measured(&self, figure: usize) -> Measured<'_> {
        Measured {
            nodes: &self.nodes,
            tiers: &self.tiers,
            rounds: &self.rounds[figure],
        }
    }

    /// How many rounds there are, of whichever figure.
    fn rounds(&self) -> usize {
        self.rounds.iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn compare(sides: &[Side; 2], asked: &[(&'static str, f64, Column)]) -> Vec<Figure> {
    let figure = |(place, (scope, percent, _)): (usize, &(&'static str, f64, Column))| {
        let [base, new] = sides.each_ref().map(|side| side.measured(place));
        let all = base.rounds.iter().flat_map(|round| round.each());
        Figure {
            scope,
            percent: *percent,
            usual_ns: median(all.map(|(.., value)| value).collect()).unwrap_or(f64::NAN),
            comparison: over_time::compare(base, new, ERROR / asked.len() as f64, MOST_PAIRS),
        }
    };
    let figures = asked.iter().enumerate().map(figure);
    // What neither was measured for is not compared.
    figures
        .filter(|figure| !figure.comparison.changes.is_empty())
        .collect()
}

fn findings<'a>(figures: &'a [Figure], limits: &'a [Limit]) -> Vec<Finding<'a>> {
    let of_figure = |figure: &'a Figure| {
        // A limit of this figure alone goes before one of all.
        let is_its = |limit: &&Limit| limit.of.kind == Kind::Percentile(figure.percent);
        let own = |limit: &&Limit| limit.of.scope.as_deref() == Some(figure.scope);
        let limit = limits.iter().filter(is_its).find(own);
        let limit = limit.or_else(|| {
            let mut of_all = limits.iter().filter(is_its);
            of_all.find(|limit| limit.of.scope.is_none())
        });
        let changes = figure.comparison.changes.iter();
        changes.map(move |change| Finding {
            figure,
            change,
            limit,
        })
    };
    figures.iter().flat_map(of_figure).collect()
}

/// The exit code, or why there can be none that means something.
fn judge(
    findings: &[Finding<'_>],
    request: &Request,
    strict: bool,
    incomplete: Option<&str>,
) -> anyhow::Result<u8> {
    if findings.iter().any(Finding::is_broken) {
        return Ok(BROKEN);
    }
    if request.limits.is_empty() {
        return Ok(0);
    }
    let mut gaps: Vec<String> = Vec::new();
    let new = &request.names[1];
    gaps.extend(incomplete.map(|reason| format!("{new} is incomplete ({reason})")));
    for limit in &request.limits {
        if !findings.iter().any(|it| it.limit == Some(limit)) {
            gaps.push(format!("{} is in no pair of both", limit.of));
        }
    }
    let unjudged = findings
        .iter()
        .filter(|it| it.limit.is_some() && it.verdict() == Verdict::NotJudged);
    gaps.extend(unjudged.map(|it| {
        let needed = it.figure.comparison.rounds_needed;
        format!(
            "{} of {} is not judged (that takes {needed} rounds of either run)",
            it.figure.name(),
            it.of()
        )
    }));
    let open = || {
        let open = findings.iter().filter_map(|it| Some((it, it.open()?)));
        open.map(|(it, worst)| {
            let (name, of, worst) = (it.figure.name(), it.of(), digits(worst));
            format!("{name} of {of} may be worse by {worst} %")
        })
        .collect()
    };
    none_left(&gaps, open, strict)
}
