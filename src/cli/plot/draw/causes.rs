//! The jumps of a clock by their causes.

use std::collections::BTreeMap;

use super::names::named;
use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::cli::plot::made::Made;
use crate::cli::plot::metric::JUMP;
use crate::cli::plot::sources::Sources;
use crate::plot::median::{Line, Medians, Middle};
use crate::plot::scale::Unit;
use crate::stats::percentile_of_sorted;

/// Jumps by their cause: time and length of each.
pub(super) type Causes = BTreeMap<String, Vec<(i64, i64)>>;

/// The jumps of each CPU by cause; causes beyond so many go together, those with the least time.
pub(super) fn causes_of(sources: &Sources, most: usize) -> anyhow::Result<Vec<Causes>> {
    let mut found = Vec::new();
    let mut totals: BTreeMap<String, i128> = BTreeMap::new();
    for source in &sources.all {
        if !source.has_samples() {
            return Err(source.nothing_there());
        }
        let mut causes = Causes::new();
        source.each(&JUMP, |cells| {
            if let (Some(time), Some(length)) = (cells.integer(0)?, cells.integer(1)?) {
                let cause = cells.text(2);
                match causes.get_mut(cause.as_ref()) {
                    Some(jumps) => jumps.push((time, length)),
                    None => {
                        causes.insert(cause.into_owned(), vec![(time, length)]);
                    }
                }
            }
            Ok(())
        })?;
        for (cause, jumps) in &causes {
            *totals.entry(cause.clone()).or_default() += total(jumps);
        }
        found.push(causes);
    }
    if totals.len() > most {
        let mut names: Vec<(String, i128)> = totals.into_iter().collect();
        names.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
        for (name, _) in names.split_off(most - 1) {
            for causes in &mut found {
                if let Some(jumps) = causes.remove(&name) {
                    let others = causes.entry(OTHERS.to_owned()).or_default();
                    others.extend(jumps);
                }
            }
        }
    }
    Ok(found)
}

fn total(jumps: &[(i64, i64)]) -> i128 {
    jumps.iter().map(|jump| i128::from(jump.1)).sum()
}

const OTHERS: &str = "other causes";
/// As many causes as have room side by side, and as have a colour of their own.
const CAUSES_ABREAST: usize = 10;
pub(super) const CAUSES_IN_COLOUR: usize = 7;

pub(super) fn by_cause(sources: &Sources, settings: &Checked) -> anyhow::Result<Made> {
    if let Some(x) = settings.x.as_deref().filter(|x| *x != "cause") {
        return Err(UsageError(format!(
            "{} {x:?}: of a clock, medians are drawn over cause only",
            settings.named("x")
        ))
        .into());
    }
    let labels = sources.labels(&[]);
    let found = causes_of(sources, CAUSES_ABREAST)?;
    let mut names: Vec<(String, i128)> = Vec::new();
    for (cause, jumps) in found.iter().flatten() {
        match names.iter_mut().find(|(name, _)| name == cause) {
            Some((_, sum)) => *sum += total(jumps),
            None => names.push((cause.clone(), total(jumps))),
        }
    }
    names.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    let ticks: Vec<(f64, String)> = names
        .iter()
        .enumerate()
        .map(|(place, (name, _))| (place as f64, name.clone()))
        .collect();
    let mut lines = Vec::new();
    for (causes, (label, source)) in found.iter().zip(labels.iter().zip(&sources.all)) {
        let middles = names.iter().enumerate().filter_map(|(place, (name, _))| {
            let mut lengths: Vec<i64> = causes.get(name)?.iter().map(|jump| jump.1).collect();
            lengths.sort_unstable();
            let at = |percent| percentile_of_sorted(&lengths, percent);
            Some(Middle {
                x: place as f64,
                median: at(50.0)?,
                most: at(10.0).zip(at(90.0)),
                interval: None,
                incomplete: source.point.incomplete.is_some(),
            })
        });
        lines.push(Line {
            label: label.clone(),
            middles: middles.collect(),
        });
    }
    let (lines, looks, told) = named(lines, |line| &mut line.label, Some(sources), settings)?;
    let note = "bars hold the middle 80 %; the cause with the most time first";
    let words = sources.words("Length of jumps by cause", &[note], settings);
    let figure = Medians {
        words,
        setting: settings.x_label("cause"),
        ticks,
        named: true,
        setting_scale: None,
        value: settings.y_label("median length of a jump"),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        lines,
        looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(told.made(figure, drawing))
}
