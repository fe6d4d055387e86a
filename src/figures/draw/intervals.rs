//! `time`: percentiles by interval, of the logs that runs leave from a minute on.

use std::collections::BTreeSet;

use super::names::named;
use super::{Made, Settings, Sources, capital, marked, one_metric_label};
use crate::plot::both;
use crate::plot::intervals::{ByInterval, IntervalLine};
use crate::plot::scale::duration;
use crate::results::read::{LoggedInterval, each_interval};
use crate::stats::resolvable;

/// What is drawn of intervals beside percentiles.
const MAX: &str = "max";

/// Lines of a point in a round, and what must be known of them.
struct PointLines {
    /// By percentile, and last the largest.
    lines: Vec<IntervalLine>,
    round: u32,
    length_ms: u64,
    end_ms: u64,
    left_out: u64,
}

pub(super) fn by_interval(sources: &Sources, settings: &Settings) -> anyhow::Result<Made> {
    let labels = sources.labels(&[]);
    let mut colours = sources.colours(&labels);
    let (mut lines, mut hints, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lengths, mut drawn) = (BTreeSet::new(), BTreeSet::new());
    let (mut end_ms, mut left_out) = (0, 0);
    for (source, label) in sources.all.iter().zip(&labels) {
        let Some(log) = source.interval_log() else {
            without.push(source.point.name.clone());
            continue;
        };
        let mut found: Vec<PointLines> = Vec::new();
        each_interval(&log, source.point.incomplete.is_some(), |interval| {
            let is_drawn =
                source.rounds.is_empty() || source.rounds.contains(&i64::from(interval.round));
            if is_drawn {
                add(&mut found, interval, settings);
            }
        })?;
        let has_several = found.len() > 1;
        for round in found {
            let mut names = vec![label.clone()];
            names.retain(|name| !name.is_empty());
            names.extend(has_several.then(|| format!("round {}", round.round)));
            let name = names.join(", ");
            for mut line in round.lines {
                if line.values.iter().all(|(_, value)| value.is_none()) {
                    continue;
                }
                let percentile = std::mem::take(&mut line.label);
                drawn.insert(percentile.clone());
                line.label = match name.as_str() {
                    "" => percentile,
                    name => format!("{name}, {percentile}"),
                };
                if let Some(colour) = colours.of.get(label).copied() {
                    colours.of.insert(line.label.clone(), colour);
                }
                line.label = marked(&line.label, source);
                lines.push(line);
            }
            lengths.insert(round.length_ms);
            end_ms = round.end_ms.max(end_ms);
            left_out += round.left_out;
        }
    }
    if !without.is_empty() {
        hints.push(format!(
            "points without an interval log are not drawn: {}",
            without.join(", ")
        ));
    }
    for percent in &settings.percentile {
        let name = format!("p{percent}");
        if !drawn.contains(&name) {
            hints.push(format!(
                "{name} is not drawn: no interval has enough samples to distinguish it from the maximum"
            ));
        }
    }
    let whole = sources.all.iter().filter(|source| source.of_all_rounds());
    let lost: u64 = whole.map(|source| source.lost_told()).sum();
    if lost > 0 {
        hints.push(format!("{lost} were lost and are in no interval"));
    }
    if left_out > 0 {
        hints.push(format!(
            "{left_out} samples are in no interval: they were below zero, or not kept"
        ));
    }
    let lengths = lengths.iter().map(|millis| duration(*millis as f64 * 1e6));
    let lengths: Vec<String> = lengths.collect();
    let value = one_metric_label(sources);
    let note = format!("intervals of {}", lengths.join(" and "));
    let title = format!("{} by interval", capital(value));
    let mut words = sources.words(&title, &note, settings);
    for hint in &hints {
        words.warning = both(hint, &words.warning);
    }
    let (lines, looks, mut told) = named(lines, |line| &mut line.label, colours, settings)?;
    told.hints.extend(hints);
    let time = "time since the round began";
    let figure = ByInterval {
        chart: settings.chart(words, time, value, looks),
        lines,
        end_ns: end_ms as f64 * 1e6,
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}

/// Adds an interval to the lines of its round.
fn add(found: &mut Vec<PointLines>, interval: &LoggedInterval, settings: &Settings) {
    let place = found.iter().position(|it| it.round == interval.round);
    let place = place.unwrap_or_else(|| {
        let names = settings
            .percentile
            .iter()
            .map(|percent| format!("p{percent}"));
        let line = |label| IntervalLine {
            label,
            values: Vec::new(),
        };
        found.push(PointLines {
            lines: names.chain([MAX.to_owned()]).map(line).collect(),
            round: interval.round,
            length_ms: interval.length_ms,
            end_ms: 0,
            left_out: interval.left_out,
        });
        found.len() - 1
    });
    let round = &mut found[place];
    round.end_ms = interval.begin_ms + interval.length_ms;
    let middle = (interval.begin_ms as f64 + interval.length_ms as f64 / 2.0) * 1e6;
    let percentiles = settings.percentile.iter().map(|&percent| {
        let is_there = resolvable(percent, interval.count());
        interval.percentile_ns(percent).filter(|_| is_there)
    });
    let values = percentiles.chain([interval.max_ns()]);
    for (line, value) in round.lines.iter_mut().zip(values) {
        line.values.push((middle, value.map(|value| value as f64)));
    }
}
