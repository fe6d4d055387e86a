//! The answer of a run in a few sentences: what was measured, what was found at its best point, and whether it can be
//! believed.

use super::{in_all_words, name_of, settings_of, varying};
use crate::bench::presentation::{Best, Opening};
use crate::bench::presentation_of;
use crate::figures::{capital, goes_without_saying};
use crate::page::Verdict;
use crate::plot::scale::duration;
use crate::results::finding::Findings;
use crate::results::finding::kinds::{FLOOR_NEAR_LATENCY, FLOOR_TOO_HIGH};
use crate::results::read::{Point, Run};
use crate::results::schema::{Better, Column, ROUNDS, hca, queue};
use crate::results::units;
use crate::terminal::output::heading_of;

/// What was measured, and what was found at the best point, if any point has a figure.
pub(crate) fn opening(run: &Run) -> String {
    let (what, found) = match presentation_of(run.schema).opening {
        Opening::Best(figures) => best_of(run, figures),
        Opening::Whole(what, found) => (what, found(run)),
    };
    let found = searched(run).or(found);
    let found = found.map_or_else(String::new, |found| format!(" {found}."));
    measured(run, what) + &found
}

/// What searches for the highest rate found, if any was made.
fn searched(run: &Run) -> Option<String> {
    let searches = run.document()["details"]["find_rate"].as_array()?;
    let texts = searches
        .iter()
        .filter_map(|it| it["text"].as_str()?.lines().next());
    let texts: Vec<String> = texts.map(capital).collect();
    (!texts.is_empty()).then(|| texts.join(". "))
}

/// What was measured, at how many points of which settings, how often, and where.
fn measured(run: &Run, what: &str) -> String {
    let names = varying(run).into_iter().map(|(name, _)| heading_of(name).0);
    let names = Vec::from_iter(names).join(", ");
    let rounds = run.document()["rounds"]["done"].as_u64().unwrap_or(1);
    let so_many = |count: u64, noun| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let points = so_many(run.points.len() as u64, "point");
    let over = match names.as_str() {
        "" => String::new(),
        names => format!(", which differ in {names}"),
    };
    let host = run.machine()["hostname"].as_str();
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    let rounds = so_many(rounds, "round");
    format!("{what} was measured{host} in {rounds} at {points}{over}.")
}

/// The settings that all points share.
pub(super) fn same(run: &Run) -> String {
    let same = settings_of(run).into_iter().filter_map(|(name, texts)| {
        let &[text] = &texts[..] else { return None };
        (!goes_without_saying(name, text)).then_some((name, text))
    });
    match in_all_words(same) {
        same if same.is_empty() => same,
        same if run.points.len() == 1 => format!("Settings: {same}."),
        same => format!("In all points: {same}."),
    }
}

/// Whether the figures can be used, and what of it no finding states; and what speaks for them.
pub(super) fn verdict(run: &Run, found: &Findings) -> (Verdict, String) {
    let mut against = Vec::new();
    let (all, points) = (run.points.iter(), run.points.len());
    match all.filter(|point| point.incomplete.is_some()).count() {
        0 if run.incomplete.is_none() => {}
        0 => against.push("the run did not end".to_owned()),
        count => against.push(format!("{count} of {points} points incomplete")),
    }
    let mut sound = Vec::new();
    let checks = [floor(run, found), lost(run), machine(run)];
    for (text, is_sound) in checks.into_iter().flatten() {
        match is_sound {
            true => sound.push(text),
            false => against.push(text),
        }
    }
    let mut text = capital(&found.verdict_over(points)) + ".";
    if !against.is_empty() {
        text += &format!(" {}.", capital(&against.join("; ")));
    }
    let also = match found.is_invalid() {
        true => found.reservations(points).join(", "),
        false => String::new(),
    };
    let verdict = Verdict {
        text,
        also,
        severity: found.all().first().map(|worst| worst.severity),
    };
    let sound = sound.join("; ");
    match sound.as_str() {
        "" => (verdict, String::new()),
        sound => (verdict, format!("In favour of the figures: {sound}.")),
    }
}

/// Whether a queue carried less than was offered: its figures are those of another load.
pub(super) fn misses_load(point: &Point) -> bool {
    let row = point.row.as_ref();
    row.is_some_and(|row| queue::row_misses_load(|name| row.number(name)))
}

/// What was measured, and the first of some figures that any point has, where it is best.
fn best_of(run: &Run, figures: &[Best]) -> (&'static str, Option<String>) {
    let none = "No queue kept the load that was asked for, so none is the best";
    let is_missed = run.points.iter().any(misses_load);
    let mut measured = "";
    for figure in figures {
        measured = figure.0;
        if let Some(found) = best(run, figure).or(is_missed.then(|| none.to_owned())) {
            return (measured, Some(found));
        }
    }
    (measured, None)
}

/// A figure at the point where it is best, of those that kept the load.
fn best(run: &Run, (_, column, what): &Best) -> Option<String> {
    let in_words = match column.unit() {
        "ns" => duration,
        _ => units::rate,
    };
    let whole = run.points.iter().filter(|point| point.incomplete.is_none());
    let found = whole.filter(|point| !misses_load(point));
    let found = found.filter_map(|point| Some((point, point.number(column)?)));
    let (point, best) = found.min_by(|(_, one), (_, other)| match column.better {
        Better::Higher => other.total_cmp(one),
        _ => one.total_cmp(other),
    })?;
    let (interval, place) = (interval(point, column, in_words), place(run, point));
    Some(format!("{what} {}{interval}{place}", in_words(best)))
}

/// The interval of a figure over rounds, or why there is none.
fn interval(point: &Point, column: &Column, in_words: fn(f64) -> String) -> String {
    let rounds = point.number(&ROUNDS).unwrap_or(1.0);
    match point.interval(column) {
        Some((low, high)) => format!(
            " (95 % interval {} to {} over {rounds} rounds)",
            in_words(low),
            in_words(high)
        ),
        None if rounds == 1.0 => " (one round, so no interval)".to_owned(),
        None => format!(" ({rounds} rounds, too few for an interval)"),
    }
}

/// Which of the points it is.
fn place(run: &Run, point: &Point) -> String {
    let words = name_of(&varying(run), point);
    match run.points.len() {
        1 if words.is_empty() => String::new(),
        1 => format!(" ({words})"),
        points => format!(" at the best of {points} points ({words})"),
    }
}

/// That nothing was lost; what was lost is a finding.
fn lost(run: &Run) -> Option<(String, bool)> {
    let (what, lost, of) = presentation_of(run.schema).lost?;
    let (lost, of) = (run.sum(&lost)?, run.sum(&of)?);
    (lost == 0).then(|| (format!("none of {of} {what} lost"), true))
}

/// Whether the machine was ready, by its own checks; what it was not is a finding.
fn machine(run: &Run) -> Option<(String, bool)> {
    match run.document()["readiness"]["ready"].as_bool() {
        Some(true) => Some(("the machine was ready".to_owned(), true)),
        Some(false) => None,
        None => Some(("whether the machine was ready is unknown".to_owned(), false)),
    }
}

/// Whether the floor can be believed, unless a finding states that.
fn floor(run: &Run, found: &Findings) -> Option<(String, bool)> {
    let is_known = |id: &str| found.all().iter().any(|it| it.kind == id);
    if is_known(FLOOR_TOO_HIGH.id) || is_known(FLOOR_NEAR_LATENCY.id) {
        return None;
    }
    let both = |point: &Point| {
        let floor = point.number(&hca::FLOOR_P50)?;
        Some((floor, point.number(&hca::latency::P50)))
    };
    let floors: Vec<(f64, Option<f64>)> = run.points.iter().filter_map(both).collect();
    let highest = floors
        .iter()
        .map(|(floor, _)| *floor)
        .max_by(f64::total_cmp)?;
    let is_one =
        |(floor, median): &(f64, Option<f64>)| hca::doubt_of_floor(*floor, *median).is_none();
    let floor = duration(highest);
    let is_credible = floors.iter().all(is_one);
    let is = if is_credible { "is" } else { "is NOT" };
    Some((
        format!("the floor of {floor} (p50) {is} credible"),
        is_credible,
    ))
}
