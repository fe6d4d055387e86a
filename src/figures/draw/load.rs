//! `load`: latency over what was delivered in the background.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::median::middle;
use super::names::named;
use super::{
    Checked, Figure, Made, Source, Sources, UsageError, capital, intervals, one_metric_label,
    without_median,
};
use crate::bench::hca::settings::background::Traffic;
use crate::figures::config::MEDIAN;
use crate::plot::both;
use crate::plot::load::{LoadLine, Loads, Step};
use crate::results::schema::hca;
use crate::sorting::{distinct, sort_by};

/// The settings that are on the axis.
const OF_AXIS: [&str; 3] = [
    hca::BACKGROUND.name,
    hca::BACKGROUND_TRAFFIC.name,
    hca::BACKGROUND_THREAD.name,
];

/// What is drawn where nothing is asked for.
const USUAL: [f64; 2] = [MEDIAN, 99.0];

pub(in crate::figures) fn load(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let mut settings = settings.clone();
    if settings.given.texts("percentile").is_empty() {
        settings.percentiles = USUAL.to_vec();
    }
    let settings = &settings;
    let sources = Sources::open(from, settings, |_| &[])?;
    must_be_swept(&sources)?;
    sources.must_have_samples(Figure::Load, settings)?;
    let labels = sources.labels(&OF_AXIS);
    let mut colours = sources.colours(&labels);
    let (mut lines, mut empty) = (Vec::<LoadLine>::new(), BTreeSet::new());
    let mut without_place = false;
    for &percent in &settings.percentiles {
        let of_percent = |label: &String| match (settings.percentiles.len(), label.as_str()) {
            (1, label) => label.to_owned(),
            (_, "") => format!("p{percent}"),
            (_, label) => format!("{label}, p{percent}"),
        };
        let names: Vec<String> = labels.iter().map(of_percent).collect();
        colours.of.extend(sources.colours(&names).of);
        for (place, source) in sources.all.iter().enumerate() {
            let is_unsent = !is_sent(source);
            let beside = match is_unsent {
                false => Some(source),
                true => beside(&sources, &labels, place),
            };
            let Some(beside) = beside else {
                without_place = true;
                continue;
            };
            let both = ((beside.point).number(&hca::BACKGROUND_DELIVERED))
                .zip(beside.point.number(&hca::BACKGROUND_OFFERED));
            let found = middle(source, 0.0, percent)?.zip(both);
            let Some((middle, (delivered, offered))) = found else {
                empty.insert(source.point.name.clone());
                continue;
            };
            let step = Step {
                delivered,
                offered,
                value: middle.value,
                interval: middle.interval,
                incomplete: middle.incomplete,
            };
            let label = &names[place];
            let known = lines.iter().position(|line| line.label == *label);
            let line = known.unwrap_or_else(|| {
                lines.push(LoadLine {
                    label: label.clone(),
                    steps: Vec::new(),
                    unsent: Vec::new(),
                });
                lines.len() - 1
            });
            match is_unsent {
                true => lines[line].unsent.push(step),
                false => lines[line].steps.push(step),
            }
        }
    }
    for line in &mut lines {
        sort_by(&mut line.steps, |one, other| {
            one.delivered.total_cmp(&other.delivered)
        });
    }
    let (lines, looks, mut told) = named(lines, |line| &mut line.label, colours, settings)?;
    let value = one_metric_label(&sources);
    let steps = lines.iter().flat_map(|line| &line.steps);
    let intervals = intervals(steps.map(|it| it.interval));
    let note = both("thin lines lead to what was offered", intervals);
    let hints = [
        without_median(&Vec::from_iter(empty)),
        without_place.then(|| {
            "points without traffic are not drawn where the point with it is not chosen".to_owned()
        }),
    ];
    let mut words = sources.words(&format!("{} under load", capital(value)), &note, settings);
    for hint in hints.into_iter().flatten() {
        words = words.warned(&hint);
        told.hints.push(hint);
    }
    let figure = Loads {
        chart: settings.chart(
            words,
            "delivered in the background",
            settings.percentile_of(value),
            looks,
        ),
        lines,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing, told))
}

/// Whether what is measured has the traffic that it is measured under, or none at all.
fn is_sent(source: &Source) -> bool {
    source.point.setting(hca::BACKGROUND_TRAFFIC.name) != Some(Traffic::None.name())
}

/// The point with the traffic that this one does without.
fn beside<'a>(sources: &'a Sources, labels: &[String], place: usize) -> Option<&'a Source> {
    let own = &sources.all[place];
    let background = |source: &'a Source| source.point.setting(hca::BACKGROUND.name);
    let mut others = sources.all.iter().zip(labels);
    let found = others.find(|(other, label)| {
        let is_same = **label == labels[place] && other.run == own.run;
        is_same && is_sent(other) && background(other) == background(own)
    });
    found.map(|(other, _)| other)
}

/// Refuses results without a curve.
fn must_be_swept(sources: &Sources) -> Result<(), UsageError> {
    let texts = distinct(sources.texts(hca::BACKGROUND.name));
    let of = sources.presentation;
    let has_background = of.schema.figures.contains(&hca::BACKGROUND_DELIVERED);
    if has_background && texts.len() > 1 {
        return Ok(());
    }
    let what = match (has_background, texts.first()) {
        (true, Some(only)) => format!("all points have the background {only}"),
        (true, None) => "no point has a background".to_owned(),
        (false, _) => format!("these are results of {}", of.name),
    };
    Err(UsageError(format!(
        "load draws latency by what is sent in the background, and {what}: measure a sweep of it, such as hcabench \
         --background 0,200@4KiB,4k@4KiB"
    )))
}
