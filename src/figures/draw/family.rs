//! `curves`: the family of curves of a memory, beside curves of others; or the latency at shares of the peak.

use std::path::PathBuf;

use super::names::named;
use super::{
    Colours, Made, Settings, Source, Sources, Told, UsageError, apart, intervals, refused, tick,
    without_median,
};
use crate::figures::published::{nearest, read};
use crate::plot::both;
use crate::plot::family::{Dot, Family, FamilyCurve, Published};
use crate::plot::median::{MedianLine, MedianMark, Medians};
use crate::plot::scale::counted;
use crate::results::curves::{self, SHARES_OF_PEAK};
use crate::results::schema::{CrossRowFigure, memory};
use crate::results::text::printable_path;
use crate::sorting::{distinct, sort_by};
use crate::stats::Smoothing;

/// Of more curves of others, those are drawn that are nearest to ours.
const MOST_OF_OTHERS: usize = 8;

/// A curve, and the points that it is made of.
struct Found<'a> {
    label: String,
    /// The settings of the curve but for the share of reads.
    others: String,
    reads_percent: f64,
    curve: curves::Curve,
    sources: Vec<&'a Source>,
}

pub(in crate::figures) fn family(from: &[PathBuf], settings: &Settings) -> anyhow::Result<Made> {
    let sources = Sources::open(from, settings, |_| &["latency"])?;
    if sources.presentation.schema.across != Some(CrossRowFigure::Curves) {
        return Err(UsageError(format!(
            "curves draws latency over the bandwidth of a memory, and these are results of {}: measure with hcabench \
             memory",
            sources.presentation.name
        ))
        .into());
    }
    let Some(metric) = sources.metric() else {
        let why = "curves draws one of them, name that only";
        return Err(refused("metric", &settings.metric.join(","), why).into());
    };
    let mut found = found(&sources);
    let is_loaded = metric.is_of_curves();
    if let Some(with) = settings.with.as_ref().filter(|_| is_loaded) {
        let name = metric.name;
        let why = format!("it is drawn beside curves, and not with the metric {name}");
        return Err(refused("with", &printable_path(with), &why).into());
    }
    sort_by(&mut found, |one, other| {
        let by_kind = one.others.cmp(&other.others);
        by_kind.then(one.reads_percent.total_cmp(&other.reads_percent))
    });
    match is_loaded {
        true => loaded(&sources, &found, settings),
        false => drawn(&sources, &found, settings),
    }
}

/// The curves of each run.
fn found(sources: &Sources) -> Vec<Found<'_>> {
    let along = [memory::PAUSE.name, memory::READ_SHARE.name];
    let (labels, others) = (sources.labels(&along[..1]), sources.labels(&along));
    let runs = distinct(sources.all.iter().map(|source| source.run.as_str()));
    let mut found = Vec::new();
    for run in runs {
        let of_run = sources.all.iter().enumerate();
        let places: Vec<usize> = of_run
            .filter_map(|(place, source)| (source.run == run).then_some(place))
            .collect();
        let text = |place: &usize, column: &str| {
            let text = sources.all[*place].point.text(column);
            text.unwrap_or_default().to_owned()
        };
        for curve in curves::Curve::all(&places, text) {
            let of_loads = curve.loads.iter().map(|load| places[load.row]);
            let of_loads: Vec<usize> = of_loads.collect();
            // A point without generators may lack what the others of its curve have.
            let Some(&last) = of_loads.last() else {
                continue;
            };
            let reads = sources.all[last].point.setting(memory::READ_SHARE.name);
            found.push(Found {
                label: labels[last].clone(),
                others: others[last].clone(),
                reads_percent: reads.and_then(|text| text.parse().ok()).unwrap_or(100.0),
                curve,
                sources: of_loads.iter().map(|place| &sources.all[*place]).collect(),
            });
        }
    }
    found
}

/// Which bandwidth it is, in words. It is the same in all curves of a run.
fn bandwidth_of(found: &[Found<'_>]) -> &'static str {
    match found.iter().filter(|found| found.curve.is_measured).count() {
        0 => "estimated bandwidth",
        measured if measured == found.len() => "measured bandwidth",
        _ => "bandwidth, of some runs measured, of others estimated",
    }
}

fn drawn(sources: &Sources, found: &[Found<'_>], settings: &Settings) -> anyhow::Result<Made> {
    let kinds = Vec::from_iter(distinct(found.iter().map(|it| &it.others)));
    let curves = found.iter().map(|found| FamilyCurve {
        label: found.label.clone(),
        shade: found.reads_percent / 100.0,
        kind: kinds
            .iter()
            .position(|it| **it == found.others)
            .unwrap_or(0),
        dots: found.dots(),
        smoothed: found.smoothed(),
    });
    let mut curves: Vec<FamilyCurve> = curves.collect();
    curves.retain(|curve| !curve.dots.is_empty());
    let (curves, _, mut told) = named(
        curves,
        |curve| &mut curve.label,
        Colours::default(),
        settings,
    )?;
    let (published_as, published) = of_others(found, settings, &mut told)?;
    let dots = curves.iter().flat_map(|curve| &curve.dots);
    let intervals = intervals(dots.map(|it| it.interval));
    let note = both("lines join the points in the order of load", intervals);
    let mut words = sources.words("Latency by memory bandwidth", &note, settings);
    for why in [unsmoothed(found), without_latency(sources)]
        .into_iter()
        .flatten()
    {
        words = words.warned(&why);
        told.hints.push(why);
    }
    let figure = Family {
        chart: settings.chart(words, bandwidth_of(found), "latency of a load", Vec::new()),
        curves,
        published_as,
        published,
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}

impl Found<'_> {
    fn dots(&self) -> Vec<Dot> {
        let both = self.curve.loads.iter().zip(&self.sources);
        let dots = both.filter_map(|(load, source)| {
            Some(Dot {
                bandwidth_gb_s: load.bandwidth_mb_s? / 1e3,
                latency_ns: load.latency_ns,
                interval: source.point.interval(&memory::LATENCY),
                marks: load.marks.clone(),
            })
        });
        dots.collect()
    }

    fn smoothed(&self) -> Vec<(f64, f64)> {
        let loads = self.curve.loads.iter();
        let smoothed =
            loads.filter_map(|load| Some((load.bandwidth_mb_s? / 1e3, load.smoothed_ns?)));
        smoothed.collect()
    }

    /// Why it has no smoothed line; `None` if it has one.
    fn unsmoothed(&self) -> Option<String> {
        let setting = self.sources.last()?.point.setting(memory::SMOOTH.name);
        let smoothing: Smoothing = setting?.parse().ok()?;
        let why = smoothing.lacks(self.curve.loads.len());
        why.filter(|_| self.smoothed().is_empty())
    }
}

/// What is said of points all of whose windows were left out.
fn without_latency(sources: &Sources) -> Option<String> {
    let has_none = |source: &&Source| {
        source.point.row.is_some() && source.point.number(&memory::LATENCY).is_none()
    };
    let names = sources.all.iter().filter(has_none);
    let names: Vec<String> = names.map(|source| source.point.name.clone()).collect();
    without_median(&names)
}

/// That curves have no smoothed line, and why, if any has none.
fn unsmoothed(found: &[Found<'_>]) -> Option<String> {
    let reasons: Vec<String> = found.iter().filter_map(Found::unsmoothed).collect();
    let first = reasons.first()?;
    let is = "is not smoothed, a thin line joins its points";
    let are = "are not smoothed, thin lines join their points";
    Some(format!(
        "{} ({first})",
        counted(reasons.len(), "curve", is, are)
    ))
}

/// The curves of others with what they are called, and what there is to say of them.
fn of_others(
    found: &[Found<'_>],
    settings: &Settings,
    told: &mut Told,
) -> Result<(String, Vec<Published>), UsageError> {
    let Some(path) = &settings.with else {
        return Ok(Default::default());
    };
    let of_file = read(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = printable_path(name.as_ref());
    if of_file.left_out > 0 {
        let rows = counted(of_file.left_out, "row", "has", "have");
        told.hints.push(format!(
            "{rows} no bandwidth or no latency above zero in {name}, and no place in the figure"
        ));
    }
    let all = of_file.curves.len();
    let shares: Vec<f64> = found.iter().map(|found| found.reads_percent).collect();
    let kept = nearest(of_file.curves, &shares, MOST_OF_OTHERS);
    let mut called = format!("published: {name}");
    if kept.len() < all {
        let few = kept.len();
        called += &format!(" ({few} of {all} curves, the nearest in reads)");
    }
    let published = kept.into_iter().map(|curve| Published {
        label: format!("{} %", crate::plot::scale::plain(curve.reads_percent)),
        points: curve.points,
    });
    Ok((called, published.collect()))
}

/// The latency without load and at shares of the largest bandwidth, by the share of reads.
fn loaded(sources: &Sources, found: &[Found<'_>], settings: &Settings) -> anyhow::Result<Made> {
    let mut lines: Vec<MedianLine> = Vec::new();
    let mut lacking = 0;
    let mut add = |label: String, reads: f64, value: Option<f64>| {
        let Some(value) = value else {
            lacking += 1;
            return;
        };
        let middle = MedianMark {
            x: reads,
            value,
            most: None,
            interval: None,
            incomplete: false,
        };
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.middles.push(middle),
            None => lines.push(MedianLine {
                label,
                middles: vec![middle],
            }),
        }
    };
    for found in found {
        let label = |what: &str| match found.others.as_str() {
            "" => what.to_owned(),
            others => format!("{others}, {what}"),
        };
        let (curve, reads) = (&found.curve, found.reads_percent);
        add(label("unloaded"), reads, Some(curve.unloaded().latency_ns));
        for percent in SHARES_OF_PEAK {
            let latency = curve.latency_at(percent / 100.0);
            add(label(&format!("at {percent} %")), reads, latency);
        }
    }
    let (lines, looks, mut told) =
        named(lines, |line| &mut line.label, Colours::default(), settings)?;
    let hint = counted(
        lacking,
        "latency",
        "is not known: no point has less bandwidth",
        "are not known: no point has less bandwidth",
    );
    let note = "at shares of the largest bandwidth of each curve, on the side before it";
    let mut words = sources.words("Latency under load by share of reads", note, settings);
    if !hint.is_empty() {
        words = words.warned(&hint);
        told.hints.push(hint);
    }
    let name = memory::READ_SHARE.name;
    let texts: Vec<&str> = sources
        .texts(name)
        .filter(|text| !text.is_empty())
        .collect();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for text in &texts {
        let Ok(place) = text.parse::<f64>() else {
            continue;
        };
        if !ticks.iter().any(|(known, _)| *known == place) {
            let words = apart(tick, name, text, texts.iter().copied());
            ticks.push((place, words.unwrap_or_else(|| (*text).to_owned())));
        }
    }
    sort_by(&mut ticks, |one, other| one.0.total_cmp(&other.0));
    let x = super::axis(sources.presentation, name);
    let figure = Medians {
        chart: settings.chart(words, x, "latency of a load", looks),
        ticks,
        named: false,
        setting_scale: Some(crate::plot::scale::ScaleKind::Linear),
        lines,
        found: Vec::new(),
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made::new(figure, drawing, told))
}
