//! `median`: medians or other percentiles over a setting.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::causes::by_cause;
use super::names::named;
use super::places::{Places, choose, mark};
use super::{
    Figure, MEDIAN, Made, Settings, Source, Sources, UsageError, axis, bars, capital, figure_of,
    intervals, one_metric_label, without_median, without_place,
};
use crate::plot::both;
use crate::plot::median::{FoundPlace, MedianLine, MedianMark, Medians};
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

/// Of a run and a point, by their names, the first line that it is in, and its place there.
type LineOfPoint<'a> = BTreeMap<(&'a str, &'a str), (usize, f64)>;

/// What searches found, where the rate is on the axis; of several searches each in the colour of its line.
fn found_places(sources: &Sources, x: &str, line_of: &LineOfPoint<'_>) -> Vec<FoundPlace> {
    let searched = sources.presentation.schema.searched;
    if searched.is_none_or(|it| it.rate.name != x) {
        return Vec::new();
    }
    let places = sources.searched.iter().filter_map(|end| {
        let (line, x) = line_of.get(&(end.run.as_str(), end.point.as_str()))?;
        Some(FoundPlace {
            x: *x,
            label: end.label.clone(),
            holds: end.holds,
            line: Some(*line),
        })
    });
    let mut places: Vec<FoundPlace> = places.collect();
    if places.iter().filter(|place| place.holds).count() < 2 {
        places.iter_mut().for_each(|place| place.line = None);
    }
    places
}

pub(in crate::figures) fn median(from: &[PathBuf], settings: &Settings) -> anyhow::Result<Made> {
    // Which metrics are usual depends on what varies: over the queues, what an operation costs.
    let mut sources = Sources::open(from, settings, |_| &[])?;
    sources.must_have_samples(Figure::Median)?;
    if sources.presentation.causes.is_some() {
        return by_cause(&sources, settings);
    }
    let (varying, preferred) = (sources.varying(), sources.presentation.x);
    let mut names = preferred.iter().map(|column| column.name);
    let usual = names.find(|name| varying.iter().any(|it| it == name));
    let alone = preferred.last().map(|column| column.name.to_owned());
    let x = choose(&sources, "x", settings.x.as_deref(), usual)?;
    let x = x.or(alone).unwrap_or_default();
    if !sources.presentation.usual_medians.is_empty()
        && x != queue::PERCENT_OF_SATURATION.name
        && settings.metric.is_empty()
    {
        sources = Sources::open(from, settings, |it| it.usual_medians)?;
    }
    let places = Places::of(&x, &sources);
    let labels = sources.labels(&[&x]);
    let mut colours = sources.colours(&labels);
    let mut lines: Vec<MedianLine> = Vec::new();
    let (mut empty, mut placeless) = (BTreeSet::new(), BTreeSet::new());
    let mut line_of = LineOfPoint::new();
    for &percent in &settings.percentile {
        let named = |label: &String| match settings.percentile.len() {
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
            let known = lines.iter().position(|line| line.label == *label);
            let line = known.unwrap_or(lines.len());
            if known.is_none() {
                lines.push(MedianLine {
                    label: label.clone(),
                    middles: Vec::new(),
                });
            }
            lines[line].middles.push(middle);
            let point = (source.run.as_str(), source.point.name.as_str());
            line_of.entry(point).or_insert((line, middle.x));
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
    let numbered = lines.into_iter().enumerate().collect();
    let (lines, looks, mut told) =
        named::<(usize, _)>(numbered, |(_, line)| &mut line.label, colours, settings)?;
    let (numbers, lines): (Vec<usize>, Vec<MedianLine>) = lines.into_iter().unzip();
    let mut found = found_places(&sources, &x, &line_of);
    for place in &mut found {
        place.line = (place.line).and_then(|line| numbers.iter().position(|it| *it == line));
    }
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
        found,
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}
