//! The headline figures of a run in a short table: median and 99th percentile of each point, or of each line over the
//! setting on the axis of the first figure.

use super::content::digits;
use super::headline::misses_load;
use super::{content, in_words_apart, name_of, varying};
use crate::bench::presentation::Opening;
use crate::bench::presentation_of;
use crate::figures::{axis, capital, tick};
use crate::page::{Answer, MARK, Sheet};
use crate::results::read::{Point, Run};
use crate::results::schema::{Better, Column};
use crate::results::units;
use crate::sorting::sort_by;
use crate::terminal::output::heading_of;

/// So many lines are shown: half of them the best, half the worst.
const MOST_LINES: usize = 12;
/// So many values of a setting are shown beside each other.
const MOST_BESIDE: usize = 12;

/// What is shown of each point: the name of the first, and all of them.
struct Asked {
    what: String,
    columns: Vec<Column>,
}

/// The headline figures.
pub(super) fn of(run: &Run) -> Answer {
    if let Some(mut sheet) = content::curves(run) {
        let note = cut(&mut sheet.rows, "curves");
        let title = "Latency of each curve".to_owned();
        return Answer { title, sheet, note };
    }
    let Some(asked) = asked(run) else {
        return Answer::default();
    };
    let is_of_lines = matches!(presentation_of(run.schema).opening, Opening::Best(_));
    match setting_across(run) {
        Some(across) if is_of_lines && run.points.len() > MOST_LINES => {
            by_lines(run, &asked, across)
        }
        _ => by_points(run, &asked),
    }
}

/// The first of the figures of the benchmark that any point has, with its 99th percentile.
fn asked(run: &Run) -> Option<Asked> {
    let presentation = presentation_of(run.schema);
    let has = |column: &Column| {
        run.points
            .iter()
            .any(|point| point.number(column).is_some())
    };
    match presentation.opening {
        Opening::Best(figures) => {
            let (_, median, what) = figures.iter().find(|(_, column, _)| has(column))?;
            let [_, usual, p99] = &run.schema.headline;
            let of_p99 = || {
                let (stem, _) = median.percentile()?;
                let mut figures = run.schema.figures.iter();
                figures.find(|column| column.percentile() == Some((stem, 99.0)))
            };
            let second = match usual.name == median.name {
                true => Some(p99),
                false => of_p99(),
            };
            let second = second.filter(|column| has(column));
            Some(Asked {
                what: (*what).to_owned(),
                columns: std::iter::once(median).chain(second).copied().collect(),
            })
        }
        Opening::Whole(..) => {
            let mut columns = presentation.columns.concat();
            let is_asked = |column: &Column| {
                let percent = column.percentile().map(|(_, percent)| percent);
                matches!(percent, Some(50.0 | 99.0)) || column.name.starts_with("max_")
            };
            columns.retain(|column| is_asked(column) && has(column));
            let usual = presentation.usual_percentiles.first();
            let mut metrics = presentation.metrics.iter();
            let metric = metrics.find(|metric| usual.is_none_or(|name| metric.name == *name))?;
            let what = capital(metric.label);
            (!columns.is_empty()).then_some(Asked { what, columns })
        }
    }
}

/// What columns are called beside each other.
fn word(column: &Column) -> String {
    match column.percentile() {
        Some((_, 50.0)) => "median".to_owned(),
        Some((_, percent)) => format!("p{percent}"),
        None => heading_of(column.name).0,
    }
}

/// The setting on the axis of the first figure.
fn setting_across(run: &Run) -> Option<&str> {
    let varying = varying(run);
    let preferred = presentation_of(run.schema).x.iter();
    let mut preferred = preferred.map(|column| column.name);
    let found = preferred.find(|name| varying.iter().any(|(it, _)| it == name));
    let (name, _) = varying
        .iter()
        .find(|(name, _)| Some(*name) == found)
        .or_else(|| varying.iter().max_by_key(|(_, texts)| texts.len()))?;
    Some(*name)
}

/// The unit that fits a figure of all points, and its size.
fn unit(run: &Run, column: &Column) -> (&'static str, f64) {
    let numbers = run.points.iter().filter_map(|point| point.number(column));
    units::fitting(column.unit(), &numbers.collect::<Vec<f64>>())
}

/// A row for each point.
fn by_points(run: &Run, asked: &Asked) -> Answer {
    let varying = varying(run);
    let mut columns = vec![(settings_in_words(run, None), "")];
    let mut rows: Vec<Vec<String>> = (run.points.iter())
        .map(|point| vec![name_of(&varying, point)])
        .collect();
    for column in &asked.columns {
        let (unit, size) = unit(run, column);
        columns.push((word(column), unit));
        for (row, point) in rows.iter_mut().zip(&run.points) {
            row.push(shown(point, &[*column], size));
        }
    }
    if let (Some(last), true) = (asked.columns.last(), rows.len() > MOST_LINES) {
        let best = best(last, run.points.iter());
        rows = best.into_iter().map(|place| rows[place].clone()).collect();
    }
    let note = cut(&mut rows, "points");
    let note = with_marks(&rows, note);
    Answer {
        title: asked.what.clone(),
        sheet: Sheet { columns, rows },
        note,
    }
}

/// The places of points from the best to the worst by a figure: last those with less than the load that was asked for,
/// and those without it.
fn best<'a>(column: &Column, points: impl Iterator<Item = &'a Point>) -> Vec<usize> {
    let rank = |point: &Point| match (point.number(column), column.better) {
        (Some(number), Better::Higher) => (misses_load(point), -number),
        (Some(number), _) => (misses_load(point), number),
        (None, _) => (true, f64::INFINITY),
    };
    let ranks: Vec<(bool, f64)> = points.map(rank).collect();
    let mut places: Vec<usize> = (0..ranks.len()).collect();
    sort_by(&mut places, |one, other| {
        let (one, other) = (ranks[*one], ranks[*other]);
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    places
}

/// A figure, or several with ` / ` between them, and whether it is of part of a point or of another load.
fn shown(point: &Point, columns: &[Column], size: f64) -> String {
    let numbers = columns.iter().filter_map(|column| point.number(column));
    let numbers: Vec<String> = numbers.map(|number| digits(number / size)).collect();
    let is_marked = point.incomplete.is_some() || misses_load(point);
    match numbers.join(" / ") {
        text if text.is_empty() => text,
        text if is_marked => text + MARK,
        text => text,
    }
}

fn with_marks(rows: &[Vec<String>], note: String) -> String {
    let is_marked = rows.iter().flatten().any(|cell| cell.ends_with(MARK));
    match (is_marked, note.as_str()) {
        (false, _) => note,
        (true, "") => MARKED.to_owned(),
        (true, note) => format!("{note} {MARKED}"),
    }
}

const MARKED: &str =
    "* Incomplete, or with less than the load that was asked for: see the findings.";

/// The names of the settings that tell rows apart.
fn settings_in_words(run: &Run, but: Option<&str>) -> String {
    let names = varying(run).into_iter().map(|(name, _)| name);
    let names = names.filter(|name| Some(*name) != but);
    let names: Vec<String> = names.map(|name| heading_of(name).0).collect();
    names.join(", ")
}

/// A line: what its points share, and the points in the order of the setting across.
type Line<'a> = (String, Vec<&'a Point>);

fn lines<'a>(run: &'a Run, across: &str) -> Vec<Line<'a>> {
    let varying = varying(run);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for point in &run.points {
        let settings = point.settings.iter();
        let settings = settings.map(|(name, text)| (name.as_str(), text.as_str()));
        let others = settings
            .filter(|(name, _)| *name != across && varying.iter().any(|(it, _)| it == name));
        let name = match in_words_apart(&varying, others) {
            name if name.is_empty() => "all points".to_owned(),
            name => name,
        };
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    lines
}

/// A row for each line: its points beside each other, or where there are too many the best and the worst of them.
fn by_lines(run: &Run, asked: &Asked, across: &str) -> Answer {
    let (unit, size) = unit(run, &asked.columns[0]);
    let median = &asked.columns[0];
    let cell = |point: &Point| shown(point, &asked.columns, size);
    let lines = ranked(lines(run, across), median);
    let texts = ascending(run, across);
    let (columns, mut rows) = match texts.len() <= MOST_BESIDE {
        true => {
            let columns = texts.iter().map(|text| (tick(across, text), unit));
            let row = |(_, points): &Line<'_>| -> Vec<String> {
                let of = |text: &&str| {
                    let mut points = points.iter();
                    points.find(|point| point.setting(across) == Some(*text))
                };
                let cells = texts.iter().map(|text| of(text).map(|point| cell(point)));
                cells.map(Option::unwrap_or_default).collect()
            };
            (columns.collect(), lines.iter().map(row).collect::<Vec<_>>())
        }
        false => {
            let at = |point: &Point| tick(across, point.setting(across).unwrap_or_default());
            let row = |(_, points): &Line<'_>| {
                let places = best(median, points.iter().copied());
                let ends = [places.first(), places.last()].into_iter().flatten();
                let ends = ends.map(|place| points[*place]);
                ends.flat_map(|point| [cell(point), at(point)]).collect()
            };
            let titles = [("best", unit), ("at", ""), ("worst", unit), ("at", "")];
            let columns = titles.map(|(title, unit)| (title.to_owned(), unit));
            (columns.to_vec(), lines.iter().map(row).collect())
        }
    };
    for (row, (name, _)) in rows.iter_mut().zip(lines) {
        row.insert(0, name);
    }
    let first = (settings_in_words(run, Some(across)), "");
    let note = cut(&mut rows, "lines");
    let others = asked.columns[1..].iter();
    let others: String = others
        .map(|column| format!(" / {}", word(column)))
        .collect();
    let axis = axis(presentation_of(run.schema), across);
    Answer {
        title: format!("{}{others}, by {axis}", asked.what),
        note: with_marks(&rows, note),
        sheet: Sheet {
            columns: std::iter::once(first).chain(columns).collect(),
            rows,
        },
    }
}

/// The texts of a setting, numbers in their order.
fn ascending<'a>(run: &'a Run, name: &str) -> Vec<&'a str> {
    let varying = varying(run).into_iter();
    let mut texts: Vec<&str> = varying
        .filter(|(it, _)| *it == name)
        .flat_map(|(_, texts)| texts)
        .collect();
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
    sort_by(&mut texts, |one, other| {
        number(one).total_cmp(&number(other))
    });
    texts
}

/// Lines as they were measured; those of too many by their best points.
fn ranked<'a>(lines: Vec<Line<'a>>, column: &Column) -> Vec<Line<'a>> {
    if lines.len() <= MOST_LINES {
        return lines;
    }
    let best_of = |(_, points): &Line<'a>| points[best(column, points.iter().copied())[0]];
    let firsts: Vec<&Point> = lines.iter().map(best_of).collect();
    let places = best(column, firsts.into_iter()).into_iter();
    places.map(|place| lines[place].clone()).collect()
}

/// Leaves the first and the last rows, and says so.
fn cut(rows: &mut Vec<Vec<String>>, what: &str) -> String {
    let all = rows.len();
    if all <= MOST_LINES {
        return String::new();
    }
    let half = MOST_LINES / 2;
    rows.drain(half..all - half);
    format!(
        "The {half} best and the {half} worst of {all} {what}; the rest is in the table of all points below."
    )
}
