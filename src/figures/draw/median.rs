//! `median`: medians or other percentiles over a setting.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::causes::by_cause;
use super::names::named;
use super::places::{Places, choose, mark};
use super::{
    Checked, Figure, MEDIAN, Made, Source, Sources, UsageError, axis, bars, capital, figure_of,
    intervals, one_metric_label, without_median, without_place,
};
use crate::plot::both;
use crate::plot::median::{MedianLine, MedianMark, Medians};
use crate::plot::scale::ScaleKind;
use crate::results::read::Hgrm;
use crate::results::schema::{memory, queue};
use crate::sorting::sort_by;
use crate::stats::percentile_of_sorted;

/// The mark of a source at a percentile by what is known of it; `None` without samples.
pub(super) fn middle(source: &Source, x: f64, percent: f64) -> anyhow::Result<Option<MedianMark>> {
    let of = |percentiles, interval| Ok(mark(source, x, percent, percentiles, interval));
    let all = [percent, 10.0, 90.0];
    let row = source.point.row.as_ref().filter(|_| source.of_all_rounds());
    let column = |percent: f64| {
        let figures = source.point.schema.figures.iter();
        let mut of_metric = figures.filter_map(|it| Some((it, it.percentile()?)));
        let found = of_metric.find(|(_, of)| *of == (source.metric.stem, percent));
        let is_mean = percent == MEDIAN && !source.point.schema.has_percentiles();
        let mean = is_mean.then_some(&source.point.schema.headline[1]);
        found.map(|(column, _)| column).or(mean)
    };
    if let (Some(row), Some(asked)) = (row, column(percent))
        && row.text(asked.name).is_some()
    {
        let number = |percent| row.number(column(percent)?.name);
        let [low, high] = asked.bounds().map(|bound| row.number(&bound));
        return of(all.map(number), low.zip(high));
    }
    if source.has_samples() {
        let values = source.sorted()?.values;
        return of(
            all.map(|percent| percentile_of_sorted(&values, percent)),
            None,
        );
    }
    if let Some(found) = source.distribution()? {
        return of(all.map(|percent| value_at(&found, percent / 100.0)), None);
    }
    match source.point.incomplete {
        Some(_) => Ok(None),
        None => Err(source.nothing_there()),
    }
}

fn value_at(distribution: &Hgrm, share: f64) -> Option<f64> {
    let mut lines = distribution.lines.iter();
    let line = lines.find(|line| line.quantile >= share - 1e-9)?;
    Some(line.value)
}

pub(in crate::figures) fn median(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    // Which metrics are usual depends on what varies: over the queues, what an operation costs.
    let mut sources = Sources::open(from, settings, |_| &[])?;
    sources.must_have_samples(Figure::Median, settings)?;
    if sources.presentation.causes.is_some() {
        return by_cause(&sources, settings);
    }
    let (varying, preferred) = (sources.varying(), sources.presentation.x);
    let mut names = preferred.iter().map(|column| column.name);
    let usual = names.find(|name| varying.iter().any(|it| it == name));
    let alone = preferred.last().map(|column| column.name.to_owned());
    let x = choose(&sources, "x", settings, usual)?;
    let x = x.or(alone).unwrap_or_default();
    if !sources.presentation.usual_medians.is_empty()
        && x != queue::PERCENT_OF_SATURATION.name
        && settings.given.texts("metric").is_empty()
    {
        sources = Sources::open(from, settings, |it| it.usual_medians)?;
    }
    let places = Places::of(&x, &sources);
    let labels = sources.labels(&[&x]);
    let mut colours = sources.colours(&labels);
    let mut lines: Vec<MedianLine> = Vec::new();
    let (mut empty, mut placeless) = (BTreeSet::new(), BTreeSet::new());
    for &percent in &settings.percentiles {
        let named = |label: &String| match settings.percentiles.len() {
            1 => label.clone(),
            _ if label.is_empty() => format!("p{percent}"),
            _ => format!("{label}, p{percent}"),
        };
        let labels: Vec<String> = labels.iter().map(named).collect();
        colours.of.extend(sources.colours(&labels).of);
        for (source, label) in sources.all.iter().zip(&labels) {
            let middle = match places.of_point(&x, &source.point) {
                Some(place) => middle(source, places.values[place].0, percent)?,
                None if x == memory::PAUSE.name => {
                    placeless.insert(&source.point.name);
                    continue;
                }
                None => None,
            };
            let Some(middle) = middle else {
                empty.insert(source.point.name.clone());
                continue;
            };
            match lines.iter_mut().find(|line| line.label == *label) {
                Some(line) => line.middles.push(middle),
                None => lines.push(MedianLine {
                    label: label.clone(),
                    middles: vec![middle],
                }),
            }
        }
    }
    let empty = Vec::from_iter(empty);
    for line in &mut lines {
        sort_by(&mut line.middles, |a, b| a.x.total_cmp(&b.x));
        if let Some(twice) = line.middles.windows(2).find(|pair| pair[0].x == pair[1].x) {
            return Err(UsageError(format!(
                "two points have the same place in the line {:?} ({x} {}): name one of the runs only, or choose by --only",
                line.label, twice[0].x
            ))
            .into());
        }
    }
    let (lines, looks, mut told) = named(lines, |line| &mut line.label, colours, settings)?;
    let value = one_metric_label(&sources);
    let middles = lines.iter().flat_map(|line| &line.middles);
    let has_bars = middles.clone().any(|it| it.most.is_some());
    let intervals = intervals(middles.map(|it| it.interval));
    let bars = both(if has_bars { bars(settings) } else { "" }, intervals);
    let title = format!("{} by {}", capital(value), axis(sources.presentation, &x));
    let note = both(
        &without_median(&empty).unwrap_or_default(),
        &without_place(placeless.len()),
    );
    let note = Some(note).filter(|note| !note.is_empty());
    let words = sources
        .words(&title, &bars, settings)
        .warned(note.as_deref().unwrap_or(""));
    told.hints.splice(0..0, note);
    let figure = Medians {
        chart: settings.chart(
            words,
            axis(sources.presentation, &x),
            figure_of(value, &sources, settings),
            looks,
        ),
        ticks: places.values,
        named: places.named,
        setting_scale: (x == queue::PERCENT_OF_SATURATION.name).then_some(ScaleKind::Linear),
        lines,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing, told))
}
