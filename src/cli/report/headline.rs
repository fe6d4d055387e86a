//! The answer of a run in one sentence: what was found at its best point, what was lost, and whether that can be
//! believed.

use super::counts;
use crate::cli::plot::{in_words, is_told};
use crate::plot::scale::{duration, plain};
use crate::results::read::{Benchmark, Point, Run};
use crate::results::schema::{Better, Column, ROUNDS, clock, hca, queue};
use crate::results::units;

/// The sentence; empty where no point has a figure.
pub fn of(run: &Run) -> String {
    let found = match run.benchmark {
        Benchmark::Hca => best(run, &hca::latency::P50, "Median one-way latency", duration),
        Benchmark::Queue => {
            let what = "Median latency in the queue";
            let latency = best(run, &queue::latency::P50, what, duration);
            latency.or_else(|| best(run, &queue::THROUGHPUT, "Throughput", units::rate))
        }
        Benchmark::Clock => of_jumps(run),
    };
    let Some(found) = found else {
        return String::new();
    };
    let parts = [Some(found), lost(run), Some(machine(run)), floor(run)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match &parts[..] {
        [others @ .., last] if !others.is_empty() => format!("{}, and {last}.", others.join(", ")),
        parts => format!("{}.", parts.concat()),
    }
}

fn number(point: &Point, column: &Column) -> Option<f64> {
    point.row.as_ref()?.number(column.name)
}

fn sum(run: &Run, column: &Column) -> Option<u64> {
    counts(run, column).reduce(|sum, count| sum + count)
}

/// A figure at the point where it is best.
fn best(run: &Run, column: &Column, what: &str, in_words: fn(f64) -> String) -> Option<String> {
    let found = run.points.iter();
    let found = found.filter_map(|point| Some((point, number(point, column)?)));
    let (point, best) = found.min_by(|(_, one), (_, other)| match column.better {
        Better::Higher => other.total_cmp(one),
        _ => one.total_cmp(other),
    })?;
    let (interval, place) = (interval(point, column, in_words), place(run, point));
    Some(format!("{what} {}{interval}{place}", in_words(best)))
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

fn lost(run: &Run) -> Option<String> {
    let (what, lost, of) = match run.benchmark {
        Benchmark::Hca => ("messages", sum(run, &hca::LOST)?, sum(run, &hca::SENT)?),
        Benchmark::Queue => {
            let lost = sum(run, &queue::LOST)?;
            ("elements", lost, sum(run, &queue::ELEMENTS_MEASURED)?)
        }
        Benchmark::Clock => return None,
    };
    Some(match lost {
        0 => format!("none of {of} {what} lost"),
        lost => format!("{lost} of {of} {what} lost"),
    })
}

/// Whether the machine was ready, by its own checks.
fn machine(run: &Run) -> String {
    let readiness = &run.document()["readiness"];
    match readiness["ready"].as_bool() {
        Some(true) => "the machine was ready".to_owned(),
        Some(false) => {
            let checks = readiness["checks"].as_array().into_iter().flatten();
            let spoils = checks.filter(|check| check["verdict"] == "spoils");
            let titles: Vec<&str> = spoils.filter_map(|it| it["title"].as_str()).collect();
            format!("the machine was NOT ready ({})", titles.join(", "))
        }
        None => "nothing tells whether the machine was ready".to_owned(),
    }
}

/// Whether the floor can be believed.
fn floor(run: &Run) -> Option<String> {
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
    Some(match floors.iter().all(is_one) {
        true => format!("the floor of {floor} (p50) is credible"),
        false => {
            format!("the floor of {floor} (p50) is NOT credible: do not believe these figures")
        }
    })
}
