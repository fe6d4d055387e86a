//! The answer of a run in three sentences: what was measured, what was found at its best point, and what to distrust.

use super::content::curves_of;
use super::warnings::{is_emulated, is_software};
use super::{counts, settings_of};
use crate::cli::output::heading_of;
use crate::cli::plot::{in_words, is_told};
use crate::plot::scale::{duration, plain};
use crate::results::read::{Benchmark, Point, Run};
use crate::results::schema::{Better, Column, ROUNDS, between, clock, hca, memory, node, queue};
use crate::results::units;

/// Three sentences: what was measured, what was found at the best point, and what to distrust; the second is empty where
/// no point has a figure. `warnings` stand below.
pub fn of(run: &Run, warnings: usize) -> [String; 3] {
    let (what, found) = match run.benchmark {
        Benchmark::Hca => {
            let what = "Median one-way latency";
            match best(run, &hca::latency::P50, what, duration) {
                // Of reads and atomics nothing arrives.
                None => (
                    "The time until a request between two HCAs is complete",
                    best(
                        run,
                        &hca::completion::P50,
                        "Median completion latency",
                        duration,
                    ),
                ),
                found => ("One-way latency between two HCAs", found),
            }
        }
        Benchmark::Between => {
            let what = "Median of half a round trip";
            let found = best(run, &between::half::P50, what, duration);
            ("Bounds of one-way latency between two hosts", found)
        }
        Benchmark::Queue => {
            let what = "Median latency in the queue";
            let latency = best(run, &queue::latency::P50, what, duration);
            let none = "No queue kept the load that was asked for, so none is the best".to_owned();
            let latency = latency.or_else(|| run.points.iter().any(misses_load).then_some(none));
            let found =
                latency.or_else(|| best(run, &queue::THROUGHPUT, "Throughput", units::rate));
            ("What queues between two threads cost", found)
        }
        Benchmark::Node => {
            let what = "Median latency of a sample";
            let found = best(run, &node::latency::P50, what, duration);
            ("The latency of samples through node-types", found)
        }
        Benchmark::Memory => (
            "The latency of a load that waits for the one before it (a pointer chase), by the bandwidth that generators \
             draw from the memory",
            of_curves(run),
        ),
        Benchmark::Clock => ("How a loop that reads the clock is stopped", of_jumps(run)),
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
        (against, _) if against.is_empty() => format!(
            "Nothing in the run speaks against it: {}.",
            sound.join("; ")
        ),
        (against, sound) if sound.is_empty() => format!("What to distrust: {against}."),
        (against, sound) => format!("What to distrust: {against} (but {sound})."),
    }
}

fn number(point: &Point, column: &Column) -> Option<f64> {
    point.row.as_ref()?.number(column.name)
}

fn sum(run: &Run, column: &Column) -> Option<u64> {
    counts(run, column).reduce(|sum, count| sum + count)
}

/// Whether a queue carried less than was offered: its figures are those of another load.
fn misses_load(point: &Point) -> bool {
    let row = point.row.as_ref();
    row.is_some_and(|row| queue::row_misses_load(|name| row.number(name)))
}

/// A figure at the point where it is best, of those that kept the load.
fn best(run: &Run, column: &Column, what: &str, in_words: fn(f64) -> String) -> Option<String> {
    let found = run.points.iter().filter(|point| !misses_load(point));
    let found = found.filter_map(|point| Some((point, number(point, column)?)));
    let (point, best) = found.min_by(|(_, one), (_, other)| match column.better {
        Better::Higher => other.total_cmp(one),
        _ => one.total_cmp(other),
    })?;
    let (interval, place) = (interval(point, column, in_words), place(run, point));
    Some(format!("{what} {}{interval}{place}", in_words(best)))
}

/// The latency without load, and the curve with the largest bandwidth.
fn of_curves(run: &Run) -> Option<String> {
    let curves = curves_of(run);
    let unloaded = curves.iter().map(|curve| curve.unloaded());
    let unloaded = unloaded.min_by(|one, other| one.latency_ns.total_cmp(&other.latency_ns))?;
    let load = match unloaded.pause {
        None => "without load",
        Some(_) => "at the least load",
    };
    let text = format!("Latency {} {load}", duration(unloaded.latency_ns));
    let peaks = curves
        .iter()
        .filter_map(|curve| Some((curve, curve.peak()?)));
    let most = peaks.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0));
    let Some((curve, (bandwidth, latency))) = most else {
        return Some(text);
    };
    let last = &run.points[curve.loads.last()?.row];
    let reads = last.setting(memory::READ_SHARE.name).unwrap_or_default();
    let source = last
        .row
        .as_ref()
        .and_then(|row| row.text(memory::SOURCE.name));
    Some(format!(
        "{text}; the largest bandwidth is {:.1} GB/s ({}), at {reads} % reads, with a latency of {}",
        bandwidth / 1e3,
        source.unwrap_or_default(),
        duration(latency)
    ))
}

fn of_jumps(run: &Run) -> Option<String> {
    let jumps = sum(run, &clock::JUMPS)?;
    let most = |column: &Column| {
        let all = run.points.iter().filter_map(|point| number(point, column));
        all.max_by(f64::total_cmp)
    };
    let mut text = match jumps {
        1 => "1 jump of the clock".to_owned(),
        jumps => format!("{jumps} jumps of the clock"),
    };
    if let Some(threshold) = most(&clock::THRESHOLD) {
        text += &format!(" above {}", duration(threshold));
    }
    match run.points.len() {
        1 => text += &format!(" on {}", run.points[0].name),
        cpus => text += &format!(" on {cpus} CPUs"),
    }
    if let Some(share) = most(&clock::JUMP_TIME) {
        text += &format!(", which took up to {} % of the time", plain(share));
    }
    if let Some(longest) = most(&clock::MAX) {
        text += &format!(", the longest stop {}", duration(longest));
    }
    Some(text)
}

/// The interval of a figure over rounds, or why there is none.
fn interval(point: &Point, column: &Column, in_words: fn(f64) -> String) -> String {
    let rounds = number(point, &ROUNDS).unwrap_or(1.0);
    let bound = |name: String| point.row.as_ref()?.number(&name);
    let [low, high] = column.bounds().map(bound);
    match low.zip(high) {
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
    let (what, lost, of) = match run.benchmark {
        Benchmark::Hca | Benchmark::Between => {
            ("messages", sum(run, &hca::LOST)?, sum(run, &hca::SENT)?)
        }
        Benchmark::Queue => {
            let lost = sum(run, &queue::LOST)?;
            ("elements", lost, sum(run, &queue::ELEMENTS_MEASURED)?)
        }
        Benchmark::Node => ("copies", sum(run, &node::LOST)?, sum(run, &node::COPIES)?),
        Benchmark::Clock | Benchmark::Memory => return None,
    };
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
        None => (
            "nothing tells whether the machine was ready".to_owned(),
            false,
        ),
    }
}

/// Whether the floor can be believed.
fn floor(run: &Run) -> Option<(String, bool)> {
    if run.benchmark != Benchmark::Hca {
        return None;
    }
    let both = |point: &Point| {
        let floor = number(point, &hca::FLOOR_P50)?;
        Some((floor, number(point, &hca::latency::P50)))
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
