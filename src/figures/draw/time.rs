//! `time`: samples over time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::causes::{CAUSES_IN_COLOUR, causes_of};
use super::names::named;
use super::{Checked, Figure, Made, Source, Sources, capital, one_metric_label, with_samples};
use crate::plot::palette::MOST_SERIES;
use crate::plot::time::{Cloud, OverTime, ThinnedCloud, WHAT};
use crate::sorting::sort_by_key;

pub(in crate::figures) fn time(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let mut sources = Sources::open(from, settings, |_| &[])?;
    if sources.rounds() > 1 {
        // The times of each round begin anew.
        sources.all = sources.all.iter().map(Source::of_a_round).collect();
    }
    sources.must_have_samples(Figure::Time, settings)?;
    let mut clouds: Vec<Cloud> = Vec::new();
    let thinned = |label| ThinnedCloud::new(label, settings.size, settings.range.given());
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
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing, told))
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
