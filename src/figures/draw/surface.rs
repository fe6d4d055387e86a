//! `surface`: medians or another percentile over two settings.

use std::collections::HashMap;
use std::path::PathBuf;

use super::median::middle;
use super::places::{Places, are_numbers, choose};
use super::{
    Checked, Made, Source, Sources, Told, TooMuch, UsageError, axis, capital, figure_of,
    one_metric_label, without_median, without_place,
};
use crate::bench::presentation::Share;
use crate::plot::both;
use crate::plot::scale::counted;
use crate::plot::surface::{Height, Surface};
use crate::results::schema::{Column, memory};
use crate::sorting::sort_by_key;

pub(in crate::figures) fn surface(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    for id in ["metric", "percentile"] {
        if settings.given.texts(id).len() > 1 {
            let why = "a surface is of one of them, name that only";
            return Err(settings.refused_all(id, why).into());
        }
    }
    let sources = Sources::open(from, settings, |_| &[])?;
    let Some((share, shares)) = sources.presentation.shares.split_first() else {
        let name = sources.presentation.name;
        return Err(UsageError(format!("surface: a {name} has no settings to vary")).into());
    };
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
    // One meaning of the colour for all points.
    let has = |(_, bad, _): &Share, source: &Source| source.point.number(bad).is_some();
    let is_of_any = |share: &&Share| sources.all.iter().any(|it| has(share, it));
    let share = match sources.all.iter().all(|it| has(share, it)) {
        true => share,
        false => (shares.iter().find(is_of_any).or(shares.last())).unwrap_or(share),
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
            share: bad_share(source, share),
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
    let on_the_ground = counted(
        without,
        "point",
        &format!("has {crossed}"),
        &format!("have {crossed}"),
    );
    let words = words.warned(&on_the_ground).warned(&note);
    let of = sources.presentation;
    let texts = |places: Places| places.values.into_iter().map(|(_, text)| text).collect();
    let figure = Surface {
        chart: settings.chart(words, axis(of, &x), axis(of, &y), Vec::new()),
        texts: [across, along].map(texts),
        value,
        share: share.0.to_owned(),
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

fn bad_share(source: &Source, (_, bad, of): &Share) -> f64 {
    let number = |column: &Column| source.point.number(column);
    let of: Option<f64> = of.iter().map(number).sum();
    number(bad).unwrap_or(0.0) / of.unwrap_or(1.0).max(1.0)
}
