//! The table of a comparison, and what it says in words.

use crate::arguments::UsageError;
use crate::compare::figures::Limit;
use crate::compare::{Comparison, ERROR, FigureComparison, LimitOutcome, PointComparison, Verdict};
use crate::results::text::printable;
use crate::results::units::fixed;
use crate::stats::rank::Test;
use crate::terminal::output::{heading_of, labelled};
use crate::terminal::table::{Column, Table};
use crate::terminal::table_options::{Key, Order, TableOptions};

/// The table, and below it what it says in words.
pub(crate) fn text(
    comparison: &Comparison,
    order: Option<Order>,
    brief: bool,
    width: Option<usize>,
) -> String {
    let mut text = table(comparison, order).brief(brief).render(width);
    text.push('\n');
    for line in words(comparison) {
        text += &line;
        text.push('\n');
    }
    text
}

/// A column of a figure, and what rows are sorted by in it.
type OfFigure = (&'static str, fn(&FigureComparison) -> Key);

/// The columns of a figure, behind the settings.
const OF_A_FIGURE: [OfFigure; 8] = [
    ("figure", |found| Key::Text(found.figure.to_string())),
    ("unit", |found| Key::Text(found.unit.to_owned())),
    ("BASE", |found| found.base.into()),
    ("NEW", |found| found.new.into()),
    ("shift", |found| found.shift.into()),
    ("from", |found| found.interval.map(|[low, _]| low).into()),
    ("to", |found| found.interval.map(|[_, high]| high).into()),
    ("verdict", |found| {
        Key::Text(found.verdict.words().to_owned())
    }),
];

/// What the rows are to be sorted by: a setting of the points, or a column of a figure.
pub(crate) fn order<'a>(
    options: &TableOptions,
    settings: impl Iterator<Item = &'a str>,
) -> Result<Option<Order>, UsageError> {
    let columns = settings.chain(OF_A_FIGURE.map(|(name, _)| name));
    let columns = columns.map(|name| (heading_of(name).0, name));
    options.order(&columns.collect::<Vec<_>>())
}

/// The names of the settings of all points.
pub(crate) fn settings(comparison: &Comparison) -> Vec<&str> {
    let first = comparison.points.first();
    let settings = first.map_or(&[][..], |point| &point.settings);
    settings.iter().map(|(name, _)| name.as_str()).collect()
}

/// Settings whose text is not the same at all points.
fn varying(comparison: &Comparison) -> Vec<&str> {
    let varies = |name: &&str| {
        let mut texts = comparison.points.iter().map(|point| setting(point, name));
        let first = texts.next();
        texts.any(|text| Some(text) != first)
    };
    settings(comparison).into_iter().filter(varies).collect()
}

fn setting<'a>(point: &'a PointComparison, name: &str) -> &'a str {
    let found = point.settings.iter().find(|(column, _)| column == name);
    found.map_or("", |(_, text)| text)
}

fn table(comparison: &Comparison, order: Option<Order>) -> Table {
    let varying = varying(comparison);
    let column_of = |name: &str, of: &dyn Fn(&PointComparison) -> String| {
        let (title, unit) = heading_of(name);
        let mut points = comparison.points.iter();
        let column = match points.all(|point| of(point).parse::<f64>().is_ok()) {
            true => Column::number(title, unit),
            false => Column::text(title),
        };
        column.setting()
    };
    let level = |point: &PointComparison| point.level.clone().unwrap_or_default();
    let mut columns: Vec<Column> = varying
        .iter()
        .map(|name| column_of(name, &|point| setting(point, name).to_owned()))
        .collect();
    columns.extend(comparison.by.iter().map(|by| column_of(by.setting, &level)));
    columns.extend([
        Column::text("figure").setting(),
        Column::text("unit").setting(),
        Column::number("BASE", ""),
        Column::number("NEW", ""),
        Column::number("shift", "%").first(),
        Column::number("from", "%"),
        Column::number("to", "%"),
        Column::text("verdict").first(),
    ]);
    let mut table = Table::new(columns);
    let in_groups = order.is_none()
        && comparison
            .points
            .iter()
            .any(|point| point.figures.len() > 1);
    let rows = comparison.points.iter();
    let rows = rows.flat_map(|point| point.figures.iter().map(move |figure| (point, figure)));
    let mut rows: Vec<_> = rows.collect();
    if let Some(order) = order {
        let names = settings(comparison);
        order.sort(&mut rows, |(point, figure)| {
            let Some(name) = names.get(order.column) else {
                return OF_A_FIGURE[order.column - names.len()].1(figure);
            };
            let is_by = comparison.by.as_ref().is_some_and(|by| by.setting == *name);
            let text = if is_by {
                level(point)
            } else {
                setting(point, name).to_owned()
            };
            text.parse().map_or(Key::Text(text), Key::Number)
        });
    }
    let mut before: Option<&PointComparison> = None;
    for (point, figure) in rows {
        if in_groups && before.is_some_and(|before| before.names != point.names) {
            table.separator();
        }
        before = Some(point);
        let settings = varying.iter().map(|name| setting(point, name).to_owned());
        let levels = comparison.by.iter().map(|_| level(point));
        table.row(settings.chain(levels).chain(cells(figure)));
    }
    table
}

/// How a figure is shown: its unit, what a unit of it is, and the decimals.
fn shown_in(figure: &FigureComparison) -> (&'static str, f64, usize) {
    let values = [figure.base, figure.new].into_iter().flatten();
    let size = values.fold(0.0, |size: f64, value| size.max(value.abs()));
    match figure.unit {
        "ns" if size >= 1e4 => ("us", 1e3, 3),
        "1/s" if size >= 1e6 => ("M/s", 1e6, 3),
        "%" => ("%", 1.0, 3),
        unit => (unit, 1.0, 1),
    }
}

fn cells(found: &FigureComparison) -> [String; 8] {
    let (unit, scale, decimals) = shown_in(found);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let value = |value: Option<f64>| or_none(value.map(|value| fixed(value / scale, decimals)));
    let signed = |percent: f64| match fixed(percent, 1) {
        text if percent > 0.0 && text != "0.0" => format!("+{text}"),
        text => text,
    };
    let percent = |percent: Option<f64>| or_none(percent.map(signed));
    let mut verdict = found.verdict.words().to_owned();
    if found.limit.as_ref().is_some_and(|limit| limit.broken) {
        verdict += ", BROKEN";
    }
    [
        found.figure.to_string(),
        unit.to_owned(),
        value(found.base),
        value(found.new),
        percent(found.shift),
        percent(found.interval.map(|[low, _]| low)),
        percent(found.interval.map(|[_, high]| high)),
        verdict,
    ]
}

/// What the verdicts mean, and what became of the limits.
fn words(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(by) = &comparison.by {
        let along = match by.along.as_slice() {
            [] => String::new(),
            names => format!("; {} goes along with it", names.join(", ")),
        };
        let text = format!("BASE is {} {}{along}", by.setting, by.first);
        lines.push(labelled("by", &printable(&text)));
    }
    let count = |verdict| {
        let verdicts = comparison.figures().map(|figure| figure.verdict);
        verdicts.filter(|found| *found == verdict).count()
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
    let test = match comparison.test {
        Test::MannWhitney => "Mann and Whitney's test",
        Test::SignedRank => "Wilcoxon's signed ranks of the rounds' differences",
    };
    lines.push(labelled(
        "shift",
        &format!(
            "of the median round, by Hodges and Lehmann, in percent of BASE; from, to: bounds by {test}, that hold for \
             all {} figures together in {:.0} of 100 comparisons",
            comparison.comparisons,
            (1.0 - ERROR) * 100.0
        ),
    ));
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    let told = comparison.figures();
    for reason in told.filter_map(|figure| figure.reason.as_deref()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    lines.extend(reasons.into_iter().map(|(reason, count)| {
        let figures = if count == 1 { "figure" } else { "figures" };
        labelled("note", &format!("{reason} ({count} {figures})"))
    }));
    lines.extend(limit_lines(comparison));
    lines
}

fn limit_lines(comparison: &Comparison) -> Vec<String> {
    let limited: Vec<(&FigureComparison, &LimitOutcome)> = comparison
        .figures()
        .filter_map(|figure| Some((figure, figure.limit.as_ref()?)))
        .collect();
    let mut limits: Vec<&Limit> = Vec::new();
    for (_, outcome) in &limited {
        if !limits.contains(&&outcome.limit) {
            limits.push(&outcome.limit);
        }
    }
    let line = |limit: &Limit| {
        let of = limited
            .iter()
            .filter(|(_, outcome)| outcome.limit == *limit);
        let of: Vec<_> = of.collect();
        let broken = of.iter().filter(|(_, outcome)| outcome.broken).count();
        let without = of.iter().filter(|(figure, _)| figure.leaves_limit_open());
        let unjudged = without.count();
        let open = of.iter().filter(|(_, outcome)| outcome.is_open());
        let worst = open.clone().filter_map(|(_, outcome)| outcome.worst);
        let (open, worst) = (open.count(), worst.fold(0.0, f64::max));
        let kept = of.len() - broken - open - unjudged;
        let mut outcome = match broken {
            0 => format!("kept by {kept} of {} figures", of.len()),
            count => format!("BROKEN by {count} of {} figures", of.len()),
        };
        if open > 0 {
            outcome += &format!(
                ", left open by {open}: NEW may be worse by up to {worst:.1} %, and more rounds would tell"
            );
        }
        if unjudged > 0 {
            outcome += &format!(", {unjudged} could not be judged");
        }
        labelled(&format!("limit {}%@{}", limit.percent, limit.of), &outcome)
    };
    limits.into_iter().map(line).collect()
}
