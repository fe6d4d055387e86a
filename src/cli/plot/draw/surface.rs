//! `surface`: medians or another percentile over two settings.

use std::collections::HashMap;
use std::path::PathBuf;

use super::median::middle;
use super::places::{Places, are_numbers, choose};
use super::{
    Checked, Made, Source, Sources, Told, TooMuch, UsageError, axis, capital, figure_of,
    one_metric_label, samples_usual, without_median, without_place,
};
use crate::plot::both;
use crate::plot::scale::so_many;
use crate::plot::surface::{Height, Surface};
use crate::results::read::Benchmark;
use crate::results::schema::{Column, hca, memory, node, queue};
use crate::sorting::sort_by_key;

pub(in crate::cli::plot) fn surface(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    for id in ["metric", "percentile"] {
        if settings.given.texts(id).len() > 1 {
            let why = "a surface is of one of them, name that only";
            return Err(settings.refused_all(id, why).into());
        }
    }
    let sources = Sources::open(from, settings, samples_usual)?;
    if sources.benchmark == Benchmark::Clock {
        return Err(UsageError("surface: a clock has no settings to vary".to_owned()).into());
    }
    let (x, y) = axes(&sources, settings)?;
    let others: Vec<String> = (sources.varying().into_iter())
        .filter(|name| *name != x && *name != y && !follows(name, [&x, &y], &sources))
        .collect();
    if let Some(other) = others.first() {
        let texts = (sources.all.iter()).filter_map(|source| source.point.setting(other));
        let first = texts.min().unwrap_or_default();
        return Err(TooMuch {
            reason: UsageError(format!(
                "a surface is of {x} and {y}, but {} vary, too: choose one value of each, such as --only {other}={first}",
                others.join(", ")
            )),
            by: others,
        }
        .into());
    }
    let (across, along) = (Places::of(&x, &sources), Places::of(&y, &sources));
    let has = |column: &Column, source: &Source| {
        let row = source.point.row.as_ref();
        row.is_some_and(|row| row.number(column.name).is_some())
    };
    // One meaning of the colour for all points.
    let mut all = sources.all.iter();
    let (bad, share) = match sources.benchmark {
        Benchmark::Hca if all.all(|it| has(&hca::MISSED_STEPS, it)) => {
            (hca::MISSED_STEPS, "missed steps")
        }
        // Of reads and atomics no message is lost.
        Benchmark::Hca if !sources.all.iter().any(|it| has(&hca::LOST, it)) => {
            (hca::CORRUPTED, "wrong answers")
        }
        Benchmark::Hca | Benchmark::Between => (hca::LOST, "lost messages"),
        Benchmark::Node => (node::STEPS_MISSED, "missed steps"),
        Benchmark::Memory => (memory::STALLED, "stalled windows"),
        _ => (queue::MISSED_ENQUEUES, "started late"),
    };
    let mut heights: Vec<Vec<Option<Height>>> =
        vec![vec![None; along.texts.len()]; across.texts.len()];
    let (mut empty, mut without, mut placeless) = (Vec::new(), 0, 0);
    for source in &sources.all {
        let point = &source.point;
        let place = across.of_point(&x, point).zip(along.of_point(&y, point));
        let Some((column, row)) = place else {
            if x == memory::PAUSE.name || y == memory::PAUSE.name {
                placeless += 1;
                continue;
            }
            empty.push(source.point.name.clone());
            continue;
        };
        let value = middle(source, 0.0, settings.percentiles[0])?.map(|middle| middle.value);
        without += usize::from(value.is_none());
        if heights[column][row].is_some() {
            return Err(UsageError(format!(
                "two points have {x} {} and {y} {}: name one run only",
                across.texts[column], along.texts[row]
            ))
            .into());
        }
        heights[column][row] = Some(Height {
            value,
            share: bad_share(source, &bad),
            incomplete: source.point.incomplete.is_some(),
        });
    }
    let value = one_metric_label(&sources);
    let value = figure_of(value, &sources, settings);
    let words = sources.words(&capital(&value), "", settings);
    let note = both(
        &without_median(&empty).unwrap_or_default(),
        &without_place(placeless),
    );
    let crossed = "no samples: crossed on the ground";
    let on_the_ground = so_many(
        without,
        "point",
        &format!("has {crossed}"),
        &format!("have {crossed}"),
    );
    let words = words.warned(&on_the_ground).warned(&note);
    let of = sources.benchmark;
    let texts = |places: Places| places.values.into_iter().map(|(_, text)| text).collect();
    let figure = Surface {
        chart: settings.chart(words, axis(of, &x), axis(of, &y), Vec::new()),
        texts: [across, along].map(texts),
        value,
        share: share.to_owned(),
        heights,
    };
    let drawing = figure.draw(settings.size)?;
    let mut told = Told::default();
    let hints = [on_the_ground, note].into_iter();
    told.hints.extend(hints.filter(|hint| !hint.is_empty()));
    Ok(Made::new(figure, drawing, told))
}

/// Whether a setting is the same wherever both others are: inline follows from the size of a message.
fn follows(name: &str, others: [&str; 2], sources: &Sources) -> bool {
    let mut found: HashMap<_, Option<&str>> = HashMap::new();
    sources.all.iter().all(|source| {
        let place = others.map(|other| source.point.setting(other));
        let here = source.point.setting(name);
        *found.entry(place).or_insert(here) == here
    })
}

/// The settings on the ground: those that were asked for, else of those that vary and are numbers the two with the most
/// values, in the order of the summary.
fn axes(sources: &Sources, settings: &Checked) -> Result<(String, String), UsageError> {
    let asked = |id| match settings.text(id) {
        Some(_) => choose(sources, id, settings, None),
        None => Ok(None),
    };
    let (x, y) = (asked("x")?, asked("y")?);
    if x.is_some() && x == y {
        return Err(UsageError(format!(
            "{} and {} are both {}: a surface needs two settings",
            settings.named("x"),
            settings.named("y"),
            x.unwrap_or_default()
        )));
    }
    let mut free = sources.varying();
    free.retain(|name| {
        Some(name) != x.as_ref() && Some(name) != y.as_ref() && are_numbers(sources, name)
    });
    let most = |name: &String| std::cmp::Reverse(Places::of(name, sources).texts.len());
    let mut by_values = free.clone();
    sort_by_key(&mut by_values, most);
    by_values.truncate([&x, &y].into_iter().filter(|axis| axis.is_none()).count());
    free.retain(|name| by_values.contains(name));
    let mut free = free.into_iter();
    match (x.or_else(|| free.next()), y.or_else(|| free.next())) {
        (Some(x), Some(y)) => Ok((x, y)),
        _ => Err(UsageError(
            "a surface needs two settings that vary, with numbers: measure a sweep of two, or name them by --x and --y"
                .to_owned(),
        )),
    }
}

/// The share of messages, of steps or of enqueues, that a column counts as bad.
fn bad_share(source: &Source, bad: &Column) -> f64 {
    let Some(row) = &source.point.row else {
        return 0.0;
    };
    let number = |column: &Column| row.number(column.name);
    let of = match source.metric.benchmark {
        Benchmark::Hca | Benchmark::Between => number(&hca::SENT),
        Benchmark::Node => {
            let both = number(&node::STEPS_MADE).zip(number(&node::STEPS_MISSED));
            both.map(|(made, missed)| made + missed)
        }
        Benchmark::Memory => number(&memory::MEASURED_WINDOWS),
        _ => number(&queue::COUNT),
    };
    number(bad).unwrap_or(0.0) / of.unwrap_or(1.0).max(1.0)
}
