//! `time`: samples over time; percentiles by interval, where a run was long enough for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::causes::{CAUSES_IN_COLOUR, causes_of};
use super::intervals::by_interval;
use super::names::named;
use super::{
    Figure, Made, Settings, Source, Sources, capital, one_metric_label, refused, with_samples,
};
use crate::arguments::UsageError;
use crate::figures::options::Shown;
use crate::plot::palette::MOST_SERIES;
use crate::plot::time::{Cloud, OverTime, ThinnedCloud, WHAT};
use crate::sorting::sort_by_key;

pub(in crate::figures) fn time(from: &[PathBuf], settings: &Settings) -> anyhow::Result<Made> {
    let mut sources = Sources::open(from, settings, |_| &[])?;
    if sources.rounds() > 1 {
        // The times of each round begin anew.
        sources.all = sources.all.iter().map(Source::of_a_round).collect();
    }
    if shows_intervals(&sources, settings)? {
        return by_interval(&sources, settings);
    }
    sources.must_have_samples(Figure::Time)?;
    let mut clouds: Vec<Cloud> = Vec::new();
    let thinned = |label| ThinnedCloud::new(label, settings.sides(), settings.range_given());
    let has_causes = sources.presentation.causes.is_some();
    if has_causes {
        let mut marks: BTreeMap<String, ThinnedCloud> = BTreeMap::new();
        for (cause, jumps) in causes_of(&sources, CAUSES_IN_COLOUR)?.into_iter().flatten() {
            let of_cause = marks.entry(cause.clone());
            let of_cause = of_cause.or_insert_with(|| thinned(cause));
            jumps.into_iter().for_each(|jump| of_cause.push(jump));
        }
        clouds.extend(marks.into_values().map(|marks| marks.cloud));
        // What is rare stands on top.
        sort_by_key(&mut clouds, |cloud| cloud.points.len());
    } else {
        for (source, label) in with_samples(&sources, MOST_SERIES, WHAT)? {
            clouds.push(over_time(source, thinned(label))?);
        }
    }
    let value = one_metric_label(&sources);
    let (title, time) = match has_causes {
        true => (
            "Jumps over time, by cause".to_owned(),
            "time since the start",
        ),
        false => (
            format!("{} over time", capital(value)),
            "time since the first of a point",
        ),
    };
    let note = match (has_causes, sources.all.len()) {
        (true, 2..) => format!("{} CPUs together", sources.all.len()),
        _ => String::new(),
    };
    let words = sources.words(&title, &note, settings);
    let colours = sources.colours(&sources.labels(&[]));
    let (clouds, looks, told) = named(clouds, |cloud| &mut cloud.label, colours, settings)?;
    let chart = settings.chart(words, time, value, looks);
    let figure = OverTime { chart, clouds };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}

/// Whether percentiles by interval are drawn, and not samples: where they are asked for, or there are some and what is
/// drawn has no causes.
fn shows_intervals(sources: &Sources, settings: &Settings) -> Result<bool, UsageError> {
    let are_there = sources
        .all
        .iter()
        .any(|source| source.interval_log().is_some());
    let has_samples = |source: &Source| !source.metric.samples.is_empty();
    let has_causes = sources.presentation.causes.is_some() && sources.all.iter().any(has_samples);
    match settings.show {
        Some(Shown::Samples) => Ok(false),
        Some(Shown::Intervals) if !are_there => {
            let why = "no point has a .hlog file of this metric: runs of 60s or more have it, and those with \
                       --hlog-interval, of node, queue and clock";
            Err(refused("show", Shown::Intervals.name(), why))
        }
        Some(Shown::Intervals) => Ok(true),
        None => Ok(are_there && !has_causes),
    }
}

/// The samples of a point, but for those that nobody could see beside the others. Points were measured one after
/// another: the time of each begins at zero.
fn over_time(source: &Source, mut marks: ThinnedCloud) -> anyhow::Result<Cloud> {
    let time = source.presentation.time.name;
    let columns = [vec![time], source.metric.columns()].concat();
    source.each(&columns, |cells| {
        let value = source.value(cells, 1)?;
        match (cells.integer(0)?, value) {
            (Some(time), Some(value)) => marks.push((time, value)),
            (_, None) if source.is_lost(cells, 1)? => marks.cloud.lost += 1,
            _ => {}
        }
        Ok(())
    })?;
    let mut cloud = marks.cloud;
    let times = cloud.points.iter().map(|point| point.0);
    let begin = times.min().unwrap_or(0);
    for point in &mut cloud.points {
        point.0 -= begin;
    }
    Ok(cloud)
}
