//! The answer of a run in three sentences: what was measured, what was found at its best point, and what to distrust.

use super::settings_of;
use super::warnings::{is_emulated, is_software};
use crate::bench::presentation::{Best, Opening};
use crate::bench::presentation_of;
use crate::figures::{in_words, is_told};
use crate::plot::scale::duration;
use crate::results::read::{Point, Run};
use crate::results::schema::{Better, Column, ROUNDS, hca, queue};
use crate::results::units;
use crate::terminal::output::heading_of;

/// Three sentences: what was measured, what was found at the best point, and what to distrust; the second is empty where
/// no point has a figure. `warnings` stand below.
pub(crate) fn of(run: &Run, warnings: usize) -> [String; 3] {
    let (what, found) = match presentation_of(run.schema).opening {
        Opening::Best(figures) => best_of(run, figures),
        Opening::Whole(what, found) => (what, found(run)),
    };
    let found = found.map_or_else(String::new, |found| found + ".");
    [measured(run, what), found, doubts(run, warnings)]
}

/// What was measured, at how many points of which settings, how often, and where.
fn measured(run: &Run, what: &str) -> String {
    let varying = settings_of(run)
        .into_iter()
        .filter(|(name, texts)| texts.len() > 1 && is_told(name, texts[0]));
    let varying = Vec::from_iter(varying.map(|(name, _)| heading_of(name).0)).join(", ");
    let rounds = run.document()["rounds"]["done"].as_u64().unwrap_or(1);
    let so_many = |count: u64, noun| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let points = so_many(run.points.len() as u64, "point");
    let over = match varying.as_str() {
        "" => String::new(),
        varying => format!(", which differ in {varying}"),
    };
    let host = run.machine()["hostname"].as_str();
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    let rounds = so_many(rounds, "round");
    format!("{what} was measured{host} in {rounds} at {points}{over}.")
}

/// What speaks against the figures, and then what speaks for them.
fn doubts(run: &Run, warnings: usize) -> String {
    let mut against = Vec::new();
    let (all, parts) = (run.points.iter(), run.points.len());
    match all.filter(|point| point.incomplete.is_some()).count() {
        0 if run.incomplete.is_none() => {}
        0 => against.push("the run did not end".to_owned()),
        count => against.push(format!("{count} of {parts} points incomplete")),
    }
    if is_software(run) {
        against.push("the devices are software".to_owned());
    }
    if is_emulated(run) {
        against.push("the processor is emulated".to_owned());
    }
    let mut sound = Vec::new();
    for (text, is_sound) in [floor(run), lost(run), Some(machine(run))]
        .into_iter()
        .flatten()
    {
        match is_sound {
            true => sound.push(text),
            false => against.push(text),
        }
    }
    match warnings {
        0 => {}
        1 => against.push("the warning below".to_owned()),
        more => against.push(format!("the {more} warnings below")),
    }
    match (against.join("; "), sound.join("; ")) {
        (against, _) if against.is_empty() => format!("No reservations: {}.", sound.join("; ")),
        (against, sound) if sound.is_empty() => format!("Reservations: {against}."),
        (against, sound) => format!("Reservations: {against} (but {sound})."),
    }
}

/// Whether a queue carried less than was offered: its figures are those of another load.
fn misses_load(point: &Point) -> bool {
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
    let found = run.points.iter().filter(|point| !misses_load(point));
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

/// Which of the points it is, by what tells it from the others.
fn place(run: &Run, point: &Point) -> String {
    let told = |name: &str| {
        let mut texts = run.points.iter().map(|other| other.setting(name));
        let always = name == hca::SERVICE.name || name == hca::SIZE.name;
        always || texts.any(|text| text != point.setting(name))
    };
    let settings = point.settings.iter();
    let words: Vec<String> = settings
        .filter(|(name, text)| told(name) && is_told(name, text))
        .map(|(name, text)| in_words(name, text))
        .collect();
    let words = words.join(", ");
    match run.points.len() {
        1 if words.is_empty() => String::new(),
        1 => format!(" ({words})"),
        points => format!(" at the best of {points} points ({words})"),
    }
}

/// What was lost, and whether it is nothing.
fn lost(run: &Run) -> Option<(String, bool)> {
    let (what, lost, of) = presentation_of(run.schema).lost?;
    let (lost, of) = (run.sum(&lost)?, run.sum(&of)?);
    Some(match lost {
        0 => (format!("none of {of} {what} lost"), true),
        lost => (format!("{lost} of {of} {what} lost"), false),
    })
}

/// Whether the machine was ready, by its own checks.
fn machine(run: &Run) -> (String, bool) {
    let readiness = &run.document()["readiness"];
    match readiness["ready"].as_bool() {
        Some(true) => ("the machine was ready".to_owned(), true),
        Some(false) => {
            let checks = readiness["checks"].as_array().into_iter().flatten();
            let spoils = checks.filter(|check| check["verdict"] == "spoils");
            let titles: Vec<&str> = spoils.filter_map(|it| it["title"].as_str()).collect();
            let titles = titles.join(", ");
            (format!("the machine was NOT ready ({titles})"), false)
        }
        None => ("whether the machine was ready is unknown".to_owned(), false),
    }
}

/// Whether the floor can be believed.
fn floor(run: &Run) -> Option<(String, bool)> {
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
