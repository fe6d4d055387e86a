//! The jumps of a clock by their causes.

use std::collections::BTreeMap;

use super::names::named;
use super::places::mark;
use super::{Made, Settings, Sources, bars, refused};
use crate::plot::both;
use crate::plot::median::{MedianLine, Medians};
use crate::sorting::sort_by_key;
use crate::stats::percentile_of_sorted;

/// Jumps by their cause: time and length of each.
pub(super) type Causes = BTreeMap<String, Vec<(i64, i64)>>;

/// The jumps of each CPU by cause; causes beyond so many go together, those with the least time.
pub(super) fn causes_of(sources: &Sources, most: usize) -> anyhow::Result<Vec<Causes>> {
    let columns = sources.presentation.causes.iter().flatten();
    let columns: Vec<&str> = columns.map(|column| column.name).collect();
    let mut found = Vec::new();
    for source in &sources.all {
        if !source.has_samples() {
            return Err(source.nothing_there());
        }
        let mut causes = Causes::new();
        source.each(&columns, |cells| {
            if let (Some(time), Some(length)) = (cells.integer(0)?, cells.integer(1)?) {
                let cause = cells.text(2);
                causes
                    .entry(cause.into_owned())
                    .or_default()
                    .push((time, length));
            }
            Ok(())
        })?;
        found.push(causes);
    }
    let mut names = by_time(&found);
    if names.len() > most {
        for name in names.split_off(most - 1) {
            for causes in &mut found {
                if let Some(jumps) = causes.remove(&name) {
                    causes.entry(OTHERS.to_owned()).or_default().extend(jumps);
                }
            }
        }
    }
    Ok(found)
}

/// Causes, the one with the most time first.
fn by_time(found: &[Causes]) -> Vec<String> {
    let mut totals: BTreeMap<&String, i128> = BTreeMap::new();
    for (cause, jumps) in found.iter().flatten() {
        let lengths = jumps.iter().map(|jump| i128::from(jump.1));
        *totals.entry(cause).or_default() += lengths.sum::<i128>();
    }
    let mut names: Vec<(&String, i128)> = totals.into_iter().collect();
    sort_by_key(&mut names, |(_, total)| std::cmp::Reverse(*total));
    names.into_iter().map(|(name, _)| name.clone()).collect()
}

const OTHERS: &str = "other causes";
/// As many causes as have room side by side, and as have a colour of their own.
const CAUSES_ABREAST: usize = 10;
pub(super) const CAUSES_IN_COLOUR: usize = 7;

pub(super) fn by_cause(sources: &Sources, settings: &Settings) -> anyhow::Result<Made> {
    if let Some(x) = settings.x.as_ref().filter(|x| *x != "cause") {
        let why = "of a clock, medians are drawn over cause only";
        return Err(refused("x", x, why).into());
    }
    let [percent] = settings.percentile[..] else {
        let why = "of a clock one of them is drawn";
        return Err(refused("percentile", &settings.percentiles(), why).into());
    };
    let labels = sources.labels(&[]);
    let found = causes_of(sources, CAUSES_ABREAST)?;
    let places = (0..).map(f64::from);
    let ticks: Vec<(f64, String)> = places.zip(by_time(&found)).collect();
    let mut lines = Vec::new();
    for (causes, (label, source)) in found.iter().zip(labels.iter().zip(&sources.all)) {
        let middles = ticks.iter().filter_map(|(place, name)| {
            let mut lengths: Vec<i64> = causes.get(name)?.iter().map(|jump| jump.1).collect();
            lengths.sort_unstable();
            let at = |percent| percentile_of_sorted(&lengths, percent);
            mark(source, *place, percent, [percent, 10.0, 90.0].map(at), None)
        });
        lines.push(MedianLine {
            label: label.clone(),
            middles: middles.collect(),
        });
    }
    let colours = sources.colours(&labels);
    let (lines, looks, told) = named(lines, |line| &mut line.label, colours, settings)?;
    let note = both(bars(settings), "the cause with the most time first");
    let words = sources.words("Length of jumps by cause", &note, settings);
    let figure = Medians {
        chart: settings.chart(
            words,
            "cause",
            settings.percentile_of("length of a jump"),
            looks,
        ),
        ticks,
        named: true,
        setting_scale: None,
        lines,
        found: Vec::new(),
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}
