//! The table of a comparison, and what it says in words.

use crate::cli::output::{heading_of, labelled};
use crate::cli::table::{Column, Table};
use crate::compare::figures::{Kind, Unit};
use crate::compare::{Comparison, FigureComparison, PointComparison, Verdict};
use crate::results::units::fixed;
use crate::stats::bootstrap;

/// All of it.
pub fn text(comparison: &Comparison, width: Option<usize>) -> String {
    let mut text = table(comparison).render(width);
    text.push('\n');
    for line in words(comparison) {
        text += &line;
        text.push('\n');
    }
    text
}

/// Settings whose text is not the same at all points.
fn varying(comparison: &Comparison) -> Vec<&str> {
    let Some(first) = comparison.points.first() else {
        return Vec::new();
    };
    let names = first.settings.iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| {
            let texts = |point: &PointComparison| setting(point, name).to_owned();
            let first = texts(first);
            comparison.points.iter().any(|point| texts(point) != first)
        })
        .collect()
}

fn setting<'a>(point: &'a PointComparison, name: &str) -> &'a str {
    let found = point.settings.iter().find(|(column, _)| column == name);
    found.map_or("", |(_, text)| text)
}

fn table(comparison: &Comparison) -> Table {
    let varying = varying(comparison);
    let marked = comparison
        .points
        .iter()
        .any(|point| point.incomplete.iter().any(Option::is_some));
    let mut columns: Vec<Column> = varying
        .iter()
        .map(|name| {
            let (title, unit) = heading_of(name);
            let is_number = comparison
                .points
                .iter()
                .all(|point| setting(point, name).parse::<f64>().is_ok());
            if is_number {
                Column::number(title, unit).setting()
            } else {
                Column::text(title).setting()
            }
        })
        .collect();
    columns.extend([
        Column::text("figure").setting(),
        Column::text("unit").setting(),
        Column::number("BASE", ""),
        Column::number("NEW", ""),
        Column::number("change", "%"),
        Column::number("from", ""),
        Column::number("to", ""),
        Column::text("verdict"),
    ]);
    if marked {
        columns.push(Column::text("mark"));
    }
    let mut table = Table::new(columns);
    let first_of = comparison.points.first();
    let in_groups = first_of.is_some_and(|point| point.figures.len() > 1);
    for point in &comparison.points {
        for figure in &point.figures {
            let mut row: Vec<String> = varying
                .iter()
                .map(|name| setting(point, name).to_owned())
                .collect();
            row.extend(cells(figure));
            if marked {
                row.push(mark(point).to_owned());
            }
            table.row(row);
        }
        if in_groups {
            table.separator();
        }
    }
    table
}

fn mark(point: &PointComparison) -> &'static str {
    match point.incomplete {
        [None, None] => "",
        [Some(_), None] => "BASE incomplete",
        [None, Some(_)] => "NEW incomplete",
        [Some(_), Some(_)] => "both incomplete",
    }
}

/// How a figure is shown: its unit, what a unit of it is, and the decimals.
fn shown_in(figure: &FigureComparison) -> (&'static str, f64, usize) {
    let size = [figure.base, figure.new]
        .into_iter()
        .flatten()
        .filter(|value| value.is_finite())
        .fold(0.0, |size: f64, value| size.max(value.abs()));
    match figure.figure.unit {
        Unit::Nanoseconds if size >= 1e4 => ("us", 1e3, 3),
        Unit::Nanoseconds => ("ns", 1.0, 1),
        Unit::PerSecond if size >= 1e6 => ("M/s", 1e6, 3),
        Unit::PerSecond => ("1/s", 1.0, 1),
        Unit::Percent => ("%", 1.0, 3),
    }
}

fn cells(found: &FigureComparison) -> [String; 8] {
    let (unit, scale, decimals) = shown_in(found);
    let number = |value: f64| match value {
        value if value == f64::INFINITY => "lost".to_owned(),
        value if value == f64::NEG_INFINITY => "-lost".to_owned(),
        value => fixed(value / scale, decimals),
    };
    let signed = |value: f64, text: String| {
        let plus = value > 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        if plus { format!("+{text}") } else { text }
    };
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let difference = |of: fn(&crate::stats::Difference) -> f64| {
        found.difference.as_ref().map_or_else(
            || "-".to_owned(),
            |difference| signed(of(difference), number(of(difference))),
        )
    };
    let change = found.change_percent.map_or_else(
        || "-".to_owned(),
        |percent| signed(percent, fixed(percent, 1)),
    );
    let mut verdict = found.verdict.words().to_owned();
    if found.limit.is_some_and(|limit| limit.broken) {
        verdict += ", BROKEN";
    }
    [
        found.figure.to_string(),
        unit.to_owned(),
        value(found.base),
        value(found.new),
        change,
        difference(|difference| difference.together.0),
        difference(|difference| difference.together.1),
        verdict,
    ]
}

/// What the verdicts mean, and what became of the limits.
fn words(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    let count = |verdict| {
        comparison
            .figures()
            .filter(|figure| figure.verdict == verdict)
            .count()
    };
    lines.push(labelled(
        "verdicts",
        &format!(
            "{} better, {} worse, {} without a difference shown, {} not judged",
            count(Verdict::Better) + count(Verdict::BetterButMoreFaults),
            count(Verdict::Worse),
            count(Verdict::NoDifferenceShown),
            count(Verdict::NotJudged)
        ),
    ));
    let together = match comparison.comparisons {
        1 => "in 95 of 100 such comparisons".to_owned(),
        count => format!("with all {count} together, in 95 of 100 such comparisons"),
    };
    lines.push(labelled(
        "from, to",
        &format!(
            "bounds of the difference that hold {together}, by a bootstrap over {}; what varies beyond that from run to run, \
             they cannot tell",
            drawn(comparison)
        ),
    ));
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for figure in comparison.figures() {
        if let Some(reason) = &figure.reason {
            let text = format!(
                "{} of {}: {reason}",
                figure.verdict.words(),
                figure.figure.kind
            );
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => reasons.push((text, 1)),
            }
        }
    }
    for (reason, count) in reasons {
        let times = if count > 1 {
            format!(" ({count} times)")
        } else {
            String::new()
        };
        lines.push(labelled("note", &format!("{reason}{times}")));
    }
    if comparison
        .figures()
        .any(|figure| figure.figure.kind == Kind::Lost)
    {
        lines.push(labelled(
            "note",
            "percentiles of latency are of all messages sent, a lost one slower than any other: they differ from those of \
             summary.csv, which are of the received ones",
        ));
    }
    lines.extend(limit_lines(comparison));
    lines
}

/// What was drawn, by kind.
fn drawn(comparison: &Comparison) -> String {
    let all = || {
        comparison
            .figures()
            .flat_map(|figure| figure.drawn)
            .flatten()
    };
    let counts = |unit| {
        let mut counts: Vec<usize> = all()
            .filter(|drawn| drawn.unit == unit)
            .map(|drawn| drawn.units)
            .collect();
        counts.sort_unstable();
        Some((*counts.first()?, *counts.last()?))
    };
    let parts: Vec<String> = [
        (bootstrap::Unit::Repetition, "repetitions"),
        (bootstrap::Unit::Block, "blocks of neighbours"),
    ]
    .into_iter()
    .filter_map(|(unit, name)| {
        Some(match counts(unit)? {
            (low, high) if low == high => format!("{low} {name}"),
            (low, high) => format!("{low} to {high} {name}"),
        })
    })
    .collect();
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(" or ")
    }
}

fn limit_lines(comparison: &Comparison) -> Vec<String> {
    let mut limits: Vec<(Kind, f64)> = Vec::new();
    for figure in comparison.figures() {
        if let Some(limit) = figure.limit
            && !limits.iter().any(|(kind, _)| *kind == figure.figure.kind)
        {
            limits.push((figure.figure.kind, limit.percent));
        }
    }
    limits
        .into_iter()
        .map(|(kind, percent)| {
            let of = || {
                comparison
                    .figures()
                    .filter(|figure| figure.limit.is_some() && figure.figure.kind == kind)
            };
            let broken = of()
                .filter(|figure| figure.limit.is_some_and(|limit| limit.broken))
                .count();
            let unjudged = of().filter(|figure| figure.leaves_limit_open()).count();
            let all = of().count();
            let mut outcome = match broken {
                0 => format!("kept by {} of {all} figures", all - unjudged),
                count => format!("BROKEN by {count} of {all} figures"),
            };
            if unjudged > 0 {
                outcome += &format!(", {unjudged} could not be judged");
            }
            labelled(&format!("limit {percent}%@{kind}"), &outcome)
        })
        .collect()
}
