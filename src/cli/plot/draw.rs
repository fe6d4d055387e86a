//! From results to the data of figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Made;
use super::config::{Checked, Range};
use super::metric::{Column, JUMPS};
use super::settings::{apart, axis, tick};
use super::sources::{Source, Sources};
use crate::cli::UsageError;
use crate::report::plot::ecdf::{Curve, Ecdf};
use crate::report::plot::histogram::{Distribution, Histogram, MOST};
use crate::report::plot::median::{Line, Medians, Middle};
use crate::report::plot::percentiles::{Percentiles, Tail};
use crate::report::plot::scale::{Kind, Unit, duration};
use crate::report::plot::surface::{Height, Surface};
use crate::report::plot::time::{Cloud, OverTime, Thinned};
use crate::report::plot::{INCOMPLETE, PlotError, Words};
use crate::report::read::{Benchmark, Hgrm, Point};
use crate::stats::percentile_of_sorted;

/// What all histograms reach to, so that they can be compared at a glance.
const USUAL_RANGE: (f64, f64) = (0.0, 10_000.0);
/// Samples that may be kept in memory to be looked at a second time; of more, the file is read again.
const KEPT: usize = 30_000_000;

/// A label, and whether it is of a part only.
fn marked(label: &str, source: &Source) -> String {
    let mark = if source.point.incomplete.is_some() {
        INCOMPLETE
    } else {
        ""
    };
    format!("{label}{mark}")
}

/// A point that was not begun has no samples, and that is known already.
fn nothing_measured(source: &Source) -> bool {
    source.point.incomplete.is_some() && !source.has_samples()
}

fn one_metric_label(sources: &Sources) -> &'static str {
    let first = sources.all[0].metric;
    match (
        sources
            .all
            .iter()
            .all(|source| source.metric.name == first.name),
        sources.benchmark,
    ) {
        (true, _) => first.label,
        (false, Benchmark::Queue) => "time",
        (false, _) => "latency",
    }
}

/// What there are shares of; where some were lost, it must be said that these are not among them.
fn samples_in_words(sources: &Sources, lost: bool) -> String {
    let first = sources.all[0].metric;
    if sources
        .all
        .iter()
        .any(|source| source.metric.name != first.name)
    {
        return "samples".to_owned();
    }
    let received = if lost { "received " } else { "" };
    format!("{received}{}", first.samples)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Names first that were asked to be, in that order; the others as they are. A name may hold commas, as those of several
/// settings do: of the names that are there, the longest that fits is meant.
fn ordered<T>(
    mut items: Vec<T>,
    label: impl Fn(&T) -> &str,
    settings: &Checked,
) -> Result<Vec<T>, UsageError> {
    let plain = |item: &T| label(item).trim_end_matches(INCOMPLETE).to_owned();
    let names: Vec<String> = items.iter().map(plain).collect();
    let mut order: Vec<&String> = Vec::new();
    for list in &settings.order {
        let mut rest = list.trim();
        while !rest.is_empty() {
            let fits = |name: &&String| {
                let behind = rest.strip_prefix(name.as_str()).map(str::trim_start);
                !name.is_empty() && behind.is_some_and(|it| it.is_empty() || it.starts_with(','))
            };
            let Some(name) = names.iter().filter(fits).max_by_key(|name| name.len()) else {
                let there: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                return Err(UsageError(format!(
                    "--order {rest:?}: there is no such name, only {}",
                    there.join(", ")
                )));
            };
            order.push(name);
            rest = rest[name.len()..]
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
    }
    let place = |item: &T| {
        let name = plain(item);
        order
            .iter()
            .position(|it| **it == name)
            .unwrap_or(usize::MAX)
    };
    items.sort_by_cached_key(place);
    Ok(items)
}

fn samples_usual(benchmark: Benchmark) -> &'static [&'static str] {
    match benchmark {
        Benchmark::Hca | Benchmark::Queue => &["latency"],
        Benchmark::Clock => &["jump"],
    }
}

pub(super) fn histogram(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let sources = Sources::open(from, settings, samples_usual)?;
    let labels = sources.labels(&[], settings);
    let wanted: Vec<(&Source, String)> = sources
        .all
        .iter()
        .zip(&labels)
        .filter(|(source, _)| !nothing_measured(source))
        .map(|(source, label)| (source, marked(label, source)))
        .collect();
    if wanted.len() > MOST {
        return Err(PlotError::TooMuch {
            found: wanted.len(),
            most: MOST,
            what: "histograms over each other",
        }
        .into());
    }
    if let Some((source, _)) = wanted.iter().find(|(source, _)| !source.has_samples()) {
        return Err(source.nothing_there());
    }
    let mut kept: Vec<Option<(Vec<i64>, u64)>> = Vec::new();
    let range = match settings.range {
        Range::Given(low, high) => (low, high),
        Range::Usual if sources.benchmark != Benchmark::Clock => USUAL_RANGE,
        Range::Usual | Range::Auto => {
            let (mut low, mut high, mut room) = (f64::INFINITY, f64::NEG_INFINITY, KEPT);
            for (source, _) in &wanted {
                let found = source.sorted()?;
                let at = |percent| percentile_of_sorted(&found.values, percent);
                if let (Some(first), Some(p90), Some(p99)) = (at(0.0), at(90.0), at(99.0)) {
                    low = low.min(first);
                    // A long tail would leave no room for the rest.
                    high = high.max(p99.min(first + 2.5 * (p90 - first).max(0.1 * first.abs())));
                }
                let fits = found.values.len() <= room;
                room -= if fits { found.values.len() } else { 0 };
                kept.push(fits.then_some((found.values, found.lost)));
            }
            auto_range(low, high)
        }
    };
    kept.resize_with(wanted.len(), || None);
    let mut series = Vec::new();
    for ((source, label), kept) in wanted.iter().zip(kept) {
        let (values, lost) = match kept {
            Some(found) => found,
            None => {
                let found = source.sorted()?;
                (found.values, found.lost)
            }
        };
        series.push(Distribution::of_sorted(
            label,
            &values,
            lost,
            range,
            settings.bins,
        ));
    }
    let series = ordered(series, |series| &series.label, settings)?;
    let value = one_metric_label(&sources);
    let mut hints = Vec::new();
    let inside: u64 = series.iter().flat_map(|series| &series.counts).sum();
    let all: u64 = series.iter().map(|series| series.total).sum();
    if inside * 2 < all && settings.range != Range::Auto {
        hints.push(format!(
            "{inside} of {all} samples are within {} to {}: --range auto shows them",
            duration(range.0),
            duration(range.1)
        ));
    }
    let lost = series.iter().any(|series| series.lost > 0);
    let figure = Histogram {
        words: sources.words(&capital(value), settings),
        value: settings.x_label.clone().unwrap_or_else(|| value.to_owned()),
        share: (settings.y_label.clone())
            .unwrap_or_else(|| format!("share of {}", samples_in_words(&sources, lost))),
        range,
        series,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made {
        hints,
        ..Made::new(figure, drawing)
    })
}

/// A range in which nearly all samples are, with round ends.
fn auto_range(low: f64, high: f64) -> (f64, f64) {
    if low > high {
        return USUAL_RANGE;
    }
    let width = (high - low).max(high.abs() * 0.02).max(10.0);
    let step = 10_f64.powf((width / 2.0).log10().floor());
    // From zero, unless that would waste most of the figure.
    let from = if low >= 0.0 && low < 2.0 * width {
        0.0
    } else {
        ((low - 0.1 * width) / step).floor() * step
    };
    (from, ((high + 0.1 * width) / step).ceil() * step)
}

/// The setting on an axis: the one that was asked for, or the first of those that vary and are wished for.
fn choose(
    sources: &Sources,
    asked: Option<&str>,
    wished: impl Fn(&str, bool) -> bool,
) -> Result<Option<String>, UsageError> {
    let rows = || {
        sources
            .all
            .iter()
            .map(|source| &source.point)
            .filter(|point| point.row.is_some())
    };
    if let Some(name) = asked {
        if rows().any(|point| point.setting(name).is_some()) {
            return Ok(Some(name.to_owned()));
        }
        let names: Vec<&str> = rows().next().map_or(Vec::new(), |point| {
            point
                .settings
                .iter()
                .map(|(name, _)| name.as_str())
                .collect()
        });
        return Err(UsageError(format!(
            "{name:?} is no setting of these points, only {}",
            names.join(", ")
        )));
    }
    let numeric = |name: &str| {
        rows().all(|point| {
            point
                .setting(name)
                .is_some_and(|text| text.parse::<f64>().is_ok())
        })
    };
    Ok(sources
        .varying()
        .into_iter()
        .find(|name| wished(name, numeric(name))))
}

/// The values that a setting has, ascending, with their texts; words stand at 0, 1, 2 and so on.
struct Places {
    named: bool,
    values: Vec<(f64, String)>,
    texts: Vec<String>,
}

impl Places {
    fn of(name: &str, sources: &Sources) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for text in sources
            .all
            .iter()
            .filter_map(|source| source.point.setting(name))
        {
            if !texts.iter().any(|other| other == text) {
                texts.push(text.to_owned());
            }
        }
        let numbers: Option<Vec<f64>> = texts
            .iter()
            .map(|text| text.parse().ok().filter(|it: &f64| it.is_finite()))
            .collect();
        if let Some(numbers) = numbers {
            let mut both: Vec<(f64, String)> = numbers.into_iter().zip(texts).collect();
            both.sort_by(|a, b| a.0.total_cmp(&b.0));
            let values = both
                .iter()
                .map(|(number, text)| {
                    let others = both.iter().map(|(_, text)| text.as_str());
                    let words = apart(tick, name, text, others);
                    (*number, words.unwrap_or_else(|| text.clone()))
                })
                .collect();
            return Places {
                named: false,
                values,
                texts: both.into_iter().map(|(_, text)| text).collect(),
            };
        }
        let values = texts
            .iter()
            .enumerate()
            .map(|(place, text)| (place as f64, tick(name, text)))
            .collect();
        Places {
            named: true,
            values,
            texts,
        }
    }

    fn place(&self, text: &str) -> Option<usize> {
        self.texts.iter().position(|other| other == text)
    }
}

/// A median, and the 10th and 90th percentile where they are known.
type MedianAndMost = (f64, Option<(f64, f64)>);

/// Median, 10th and 90th percentile of a source in nanoseconds; `None` without samples.
fn middle(source: &Source) -> anyhow::Result<Option<MedianAndMost>> {
    if let (Some(prefix), Some(row)) = (source.metric.summary, &source.point.row) {
        let figure = |name: &str| {
            row.number(&format!("{prefix}_{name}_us"))
                .map(|us| us * 1000.0)
        };
        // All lost: the cells are empty.
        return Ok(figure("p50").map(|median| (median, figure("p10").zip(figure("p90")))));
    }
    if let Some(found) = source.distribution()? {
        let at = |share| value_at(&found, share).map(|value| value * 1000.0);
        return Ok(at(0.5).map(|median| (median, at(0.1).zip(at(0.9)))));
    }
    if source.has_samples() {
        let values = source.sorted()?.values;
        let at = |percent| percentile_of_sorted(&values, percent);
        return Ok(at(50.0).map(|median| (median, at(10.0).zip(at(90.0)))));
    }
    if source.point.incomplete.is_some() {
        Ok(None)
    } else {
        Err(source.nothing_there())
    }
}

fn value_at(distribution: &Hgrm, share: f64) -> Option<f64> {
    distribution
        .lines
        .iter()
        .find(|line| line.quantile >= share - 1e-9)
        .map(|line| line.value)
}

/// What is said in the figure and on standard error about points that have no place in it.
fn without_median(names: &[String]) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("1 point has no samples and is not drawn: {one}")),
        [first, others @ ..] => Some(format!(
            "{} points have no samples and are not drawn: {first} and {} more",
            names.len(),
            others.len()
        )),
    }
}

fn warned(words: &mut Words, note: Option<&String>) {
    if let Some(note) = note {
        words.warning = if words.warning.is_empty() {
            note.clone()
        } else {
            format!("{note}; {}", words.warning)
        };
    }
}

pub(super) fn median(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    // Which metrics are usual depends on what varies: over the queues, what an operation costs.
    let mut sources = Sources::open(from, settings, samples_usual)?;
    if sources.benchmark == Benchmark::Clock {
        return by_cause(&sources, settings);
    }
    let preferred = ["percent_of_saturation", "rate_per_s", "queue", "size_bytes"];
    let varying = sources.varying();
    let usual = preferred
        .iter()
        .find(|name| varying.iter().any(|it| it == *name))
        .copied();
    let x = match choose(&sources, settings.x.as_deref().or(usual), |_, _| true)? {
        Some(name) => name,
        None if sources.benchmark == Benchmark::Hca => "size_bytes".to_owned(),
        None => "queue".to_owned(),
    };
    if sources.benchmark == Benchmark::Queue
        && x != "percent_of_saturation"
        && settings.metric.is_empty()
    {
        sources = Sources::open(from, settings, |_| &["enqueue", "dequeue"])?;
    }
    let places = Places::of(&x, &sources);
    let labels = sources.labels(&[&x], settings);
    let mut lines: Vec<Line> = Vec::new();
    let mut empty = Vec::new();
    for (source, label) in sources.all.iter().zip(&labels) {
        let Some(place) = source.point.setting(&x).and_then(|text| places.place(text)) else {
            empty.push(source.point.name.clone());
            continue;
        };
        let Some((median, most)) = middle(source)? else {
            empty.push(source.point.name.clone());
            continue;
        };
        let middle = Middle {
            x: places.values[place].0,
            median,
            most,
        };
        match lines.iter_mut().find(|line| line.label == *label) {
            Some(line) => line.middles.push(middle),
            None => lines.push(Line {
                label: label.clone(),
                middles: vec![middle],
            }),
        }
    }
    for line in &mut lines {
        line.middles.sort_by(|a, b| a.x.total_cmp(&b.x));
        if let Some(twice) = line.middles.windows(2).find(|pair| pair[0].x == pair[1].x) {
            return Err(UsageError(format!(
                "two points have the same place in the line {:?} ({x} {}): name one of the runs only, or choose by --only",
                line.label, twice[0].x
            ))
            .into());
        }
    }
    let value = one_metric_label(&sources);
    let mut words = sources.words(&format!("{} by {}", capital(value), axis(&x)), settings);
    words.subtitle = with_note(&words.subtitle, "bars hold the middle 80 %");
    let note = without_median(&empty);
    warned(&mut words, note.as_ref());
    let figure = Medians {
        words,
        setting: settings.x_label.clone().unwrap_or_else(|| axis(&x)),
        ticks: places.values.clone(),
        named: places.named,
        setting_scale: (x == "percent_of_saturation").then_some(Kind::Linear),
        value: settings
            .y_label
            .clone()
            .unwrap_or_else(|| format!("median {value}")),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        lines: ordered(lines, |line| &line.label, settings)?,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made {
        hints: note.into_iter().collect(),
        ..Made::new(figure, drawing)
    })
}

fn with_note(text: &str, note: &str) -> String {
    if text.is_empty() {
        note.to_owned()
    } else {
        format!("{text}; {note}")
    }
}

/// Jumps by their cause: time and length of each.
type Causes = BTreeMap<String, Vec<(i64, i64)>>;

/// The jumps of each CPU by cause; causes beyond so many go together, those with the least time.
fn causes_of(sources: &Sources, most: usize) -> anyhow::Result<Vec<Causes>> {
    let mut found = Vec::new();
    let mut totals: BTreeMap<String, i128> = BTreeMap::new();
    let mut rest = &sources.all[..];
    while let [first, ..] = rest {
        if !first.has_samples() {
            return Err(first.nothing_there());
        }
        // The CPUs of a run stand behind one another, and share a file: it is read once.
        let file = first.point.file(JUMPS);
        let of_it = rest
            .iter()
            .take_while(|source| source.point.file(JUMPS) == file);
        let points: Vec<&Point> = of_it.map(|source| &source.point).collect();
        let mut causes = vec![Causes::new(); points.len()];
        let wanted = ["t_ns", "jump_ns", "cause"];
        Point::rows_of(&points, JUMPS)?.each(&wanted, |cells| {
            if let (Some(time), Some(length)) = (cells.integer(0)?, cells.integer(1)?) {
                let (cause, own) = (cells.text(2), &mut causes[cells.owner()]);
                match own.get_mut(cause.as_ref()) {
                    Some(jumps) => jumps.push((time, length)),
                    None => {
                        own.insert(cause.into_owned(), vec![(time, length)]);
                    }
                }
            }
            Ok(())
        })?;
        for (cause, jumps) in causes.iter().flatten() {
            *totals.entry(cause.clone()).or_default() += total(jumps);
        }
        rest = &rest[points.len()..];
        found.extend(causes);
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
const CAUSES_IN_COLOUR: usize = 7;

fn by_cause(sources: &Sources, settings: &Checked) -> anyhow::Result<Made> {
    if settings.x.as_deref().is_some_and(|x| x != "cause") {
        return Err(
            UsageError("--x: of a clock, medians are drawn over the cause".to_owned()).into(),
        );
    }
    let labels = sources.labels(&[], settings);
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
            })
        });
        lines.push(Line {
            label: marked(label, source),
            middles: middles.collect(),
        });
    }
    let mut words = sources.words("Length of jumps by cause", settings);
    words.subtitle = with_note(
        &words.subtitle,
        "bars hold the middle 80 %; the cause with the most time first",
    );
    let figure = Medians {
        words,
        setting: settings
            .x_label
            .clone()
            .unwrap_or_else(|| "cause".to_owned()),
        ticks,
        named: true,
        setting_scale: None,
        value: settings
            .y_label
            .clone()
            .unwrap_or_else(|| "median length of a jump".to_owned()),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        lines: ordered(lines, |line| &line.label, settings)?,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing))
}

pub(super) fn surface(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    if settings.metric.len() > 1 {
        let named = settings.metric.join(",");
        return Err(UsageError(format!(
            "--metric {named:?}: a surface is of one of them, name that only"
        ))
        .into());
    }
    let sources = Sources::open(from, settings, samples_usual)?;
    if sources.benchmark == Benchmark::Clock {
        return Err(UsageError("surface: a clock has no settings to vary".to_owned()).into());
    }
    let two = "a surface needs two settings that vary, with numbers: measure a sweep of two, or name them by --x and --y";
    let first = choose(&sources, settings.x.as_deref(), |name, number| {
        number && settings.y.as_deref() != Some(name)
    })?;
    let x = first.ok_or_else(|| UsageError(two.to_owned()))?;
    let second = choose(&sources, settings.y.as_deref(), |name, number| {
        number && name != x
    })?;
    let y = second.ok_or_else(|| UsageError(two.to_owned()))?;
    if x == y {
        return Err(UsageError(format!(
            "--x and --y are both {x}: a surface needs two settings"
        ))
        .into());
    }
    let others: Vec<String> = sources
        .varying()
        .into_iter()
        .filter(|name| *name != x && *name != y)
        .collect();
    if let Some(other) = others.first() {
        let texts: std::collections::BTreeSet<&str> = sources
            .all
            .iter()
            .filter_map(|source| source.point.setting(other))
            .collect();
        let texts: Vec<&str> = texts.into_iter().collect();
        return Err(UsageError(format!(
            "a surface is of {x} and {y}, but {} vary, too: choose one value of each, such as --only {other}={}",
            others.join(", "),
            texts.first().copied().unwrap_or_default()
        ))
        .into());
    }
    let (across, along) = (Places::of(&x, &sources), Places::of(&y, &sources));
    let mut heights: Vec<Vec<Option<Height>>> =
        vec![vec![None; along.texts.len()]; across.texts.len()];
    let (mut empty, mut without) = (Vec::new(), 0);
    for source in &sources.all {
        let place = |name: &str, places: &Places| {
            source
                .point
                .setting(name)
                .and_then(|text| places.place(text))
        };
        let (Some(column), Some(row)) = (place(&x, &across), place(&y, &along)) else {
            empty.push(source.point.name.clone());
            continue;
        };
        let value = middle(source)?.map(|(value, _)| value);
        without += u64::from(value.is_none());
        if heights[column][row].is_some() {
            return Err(UsageError(format!(
                "two points have {x} {} and {y} {}: name one run only",
                across.texts[column], along.texts[row]
            ))
            .into());
        }
        heights[column][row] = Some(Height {
            value,
            share: bad_share(source),
        });
    }
    let value = one_metric_label(&sources);
    let mut words = sources.words(&format!("Median of {value}"), settings);
    let note = without_median(&empty);
    let on_the_ground = match without {
        0 => None,
        1 => Some("1 point has no samples: crossed on the ground".to_owned()),
        more => Some(format!(
            "{more} points have no samples: crossed on the ground"
        )),
    };
    warned(&mut words, on_the_ground.as_ref());
    warned(&mut words, note.as_ref());
    let figure = Surface {
        words,
        x: (
            settings.x_label.clone().unwrap_or_else(|| axis(&x)),
            texts_of(&across),
        ),
        y: (
            settings.y_label.clone().unwrap_or_else(|| axis(&y)),
            texts_of(&along),
        ),
        value: format!("median {value}"),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        share: if sources.benchmark == Benchmark::Hca {
            "lost messages"
        } else {
            "started late"
        }
        .to_owned(),
        heights,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made {
        hints: on_the_ground.into_iter().chain(note).collect(),
        ..Made::new(figure, drawing)
    })
}

fn texts_of(places: &Places) -> Vec<String> {
    places.values.iter().map(|(_, text)| text.clone()).collect()
}

/// The share of messages that were lost, or of enqueues that started late.
fn bad_share(source: &Source) -> f64 {
    let Some(row) = &source.point.row else {
        return 0.0;
    };
    let (bad, of) = match source.metric.benchmark {
        Benchmark::Hca => (row.count("messages_lost"), row.count("messages_sent")),
        _ => {
            let each = row
                .count("count")
                .zip(row.count("warmup"))
                .map(|(count, warmup)| count + warmup);
            (
                row.count("missed_enqueues"),
                each.zip(row.count("runs")).map(|(each, runs)| each * runs),
            )
        }
    };
    bad.unwrap_or(0) as f64 / of.unwrap_or(1).max(1) as f64
}

/// Either samples or a distribution, of each source; and of each file that was named instead of a folder.
enum Known {
    Samples(Vec<i64>),
    /// With the nanoseconds in its unit.
    Distribution(Hgrm, f64),
}

struct Drawn {
    words: Words,
    value: String,
    samples: String,
}

/// What curves are drawn of, one at a time, so that no more than one is in memory; `make` turns it into a curve.
fn curves<T>(
    from: &[PathBuf],
    settings: &Checked,
    usual: fn(Benchmark) -> &'static [&'static str],
    mut make: impl FnMut(&str, &Known, u64) -> T,
) -> anyhow::Result<(Drawn, Vec<T>)> {
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        from.iter().cloned().partition(|path| is_distribution(path));
    let mut made = Vec::new();
    let mut drawn = Drawn {
        words: Words {
            title: "Distribution".to_owned(),
            ..Words::default()
        },
        value: "value".to_owned(),
        samples: "samples".to_owned(),
    };
    let mut any_lost = false;
    if !folders.is_empty() {
        let sources = Sources::open(&folders, settings, usual)?;
        let labels = sources.labels(&[], settings);
        for (source, label) in sources.all.iter().zip(&labels) {
            if nothing_measured(source) && source.distribution()?.is_none() {
                continue;
            }
            let (known, lost) = if source.has_samples() {
                let found = source.sorted()?;
                (Known::Samples(found.values), found.lost)
            } else {
                let found = source
                    .distribution()?
                    .ok_or_else(|| source.nothing_there())?;
                (Known::Distribution(found, 1000.0), source.lost_told())
            };
            any_lost |= lost > 0;
            made.push(make(&marked(label, source), &known, lost));
        }
        let value = one_metric_label(&sources);
        drawn.words = sources.words(&capital(value), settings);
        drawn.value = value.to_owned();
        drawn.samples = samples_in_words(&sources, any_lost);
    } else if let Some(title) = &settings.title {
        drawn.words.title.clone_from(title);
    }
    for path in files {
        let found = Hgrm::read(&path)?;
        let name = if path.ends_with("latency.hgrm") {
            path.parent().unwrap_or(&path)
        } else {
            &path
        };
        let label = name
            .file_name()
            .unwrap_or(name.as_os_str())
            .to_string_lossy()
            .into_owned();
        let label = settings.labels.get(&label).cloned().unwrap_or(label);
        made.push(make(
            &label,
            &Known::Distribution(found, settings.nanoseconds_per_unit),
            0,
        ));
    }
    Ok((drawn, made))
}

fn is_distribution(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "hgrm")
}

fn shares_of(distribution: &Hgrm, nanoseconds_per_unit: f64) -> Vec<(f64, f64)> {
    let mut shares: Vec<(f64, f64)> = Vec::new();
    for line in &distribution.lines {
        let value = line.value * nanoseconds_per_unit;
        let share = line.count as f64 / distribution.total.max(1) as f64;
        match shares.last_mut() {
            Some(last) if last.0 == value => last.1 = share,
            _ => shares.push((value, share)),
        }
    }
    shares
}

pub(super) fn ecdf(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let (drawn, made) = curves(from, settings, samples_usual, |label, known, lost| {
        let curve = match known {
            Known::Samples(sorted) => Curve::of_sorted(label, sorted),
            Known::Distribution(found, unit) => Curve {
                label: label.to_owned(),
                lost,
                points: shares_of(found, *unit),
            },
        };
        Curve { lost, ..curve }
    })?;
    let figure = Ecdf {
        words: drawn.words,
        value: settings.x_label.clone().unwrap_or(drawn.value),
        share: (settings.y_label.clone())
            .unwrap_or_else(|| format!("share of {} up to it", drawn.samples)),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        curves: ordered(made, |curve| &curve.label, settings)?,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing))
}

fn tails_usual(benchmark: Benchmark) -> &'static [&'static str] {
    match benchmark {
        Benchmark::Clock => &["difference"],
        other => samples_usual(other),
    }
}

pub(super) fn percentiles(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let (drawn, made) = curves(from, settings, tails_usual, |label, known, lost| {
        let tail = match known {
            Known::Samples(sorted) => Tail::of_sorted(label, sorted),
            Known::Distribution(found, unit) => Tail {
                label: label.to_owned(),
                lost,
                points: tail_of(found, *unit),
            },
        };
        Tail { lost, ..tail }
    })?;
    let figure = Percentiles {
        words: drawn.words,
        value: settings.y_label.clone().unwrap_or(drawn.value),
        unit: Unit::Nanoseconds,
        range: settings.range.given(),
        scale: settings.scale,
        curves: ordered(made, |curve| &curve.label, settings)?,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing))
}

/// Shares below 1, ascending, and the value at each. A line's value is that at its percentile, and up to its count; the
/// maximum is the value of all shares behind the last line's, up to the last sample but none.
fn tail_of(distribution: &Hgrm, nanoseconds_per_unit: f64) -> Vec<(f64, f64)> {
    let total = distribution.total.max(1) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut add = |share: f64, value: f64| {
        if share < 1.0 && points.last().is_none_or(|last| last.0 < share) {
            points.push((share, value * nanoseconds_per_unit));
        }
    };
    for line in &distribution.lines {
        add(line.quantile, line.value);
        add(line.count as f64 / total, line.value);
    }
    if let Some(last) = distribution.lines.last() {
        add(1.0 - 1.0 / total, last.value);
    }
    points
}

pub(super) fn time(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let sources = Sources::open(from, settings, samples_usual)?;
    let labels = sources.labels(&[], settings);
    let mut clouds: Vec<Cloud> = Vec::new();
    if sources.benchmark == Benchmark::Clock {
        for (cause, points) in causes_of(&sources, CAUSES_IN_COLOUR)?.into_iter().flatten() {
            match clouds.iter_mut().find(|cloud| cloud.label == cause) {
                Some(cloud) => cloud.points.extend(points),
                None => clouds.push(Cloud {
                    label: cause,
                    lost: 0,
                    points,
                }),
            }
        }
        // What is rare stands on top.
        clouds.sort_by_key(|cloud| cloud.points.len());
    }
    let one_by_one = sources.benchmark != Benchmark::Clock;
    for (source, label) in sources.all.iter().zip(&labels).filter(|_| one_by_one) {
        if nothing_measured(source) {
            continue;
        }
        if !source.has_samples() {
            return Err(source.nothing_there());
        }
        let (mut points, lost) = over_time(source, settings)?;
        // Points were measured one after another: each begins at zero.
        let begin = points.iter().map(|point| point.0).min().unwrap_or(0);
        for point in &mut points {
            point.0 -= begin;
        }
        clouds.push(Cloud {
            label: marked(label, source),
            lost,
            points,
        });
    }
    let value = one_metric_label(&sources);
    let (title, time) = match sources.benchmark {
        Benchmark::Clock => (
            "Jumps over time, by cause".to_owned(),
            "time since the start",
        ),
        _ => (
            format!("{} over time", capital(value)),
            "time since the first of a point",
        ),
    };
    let mut words = sources.words(&title, settings);
    if sources.benchmark == Benchmark::Clock && sources.all.len() > 1 {
        words.subtitle = with_note(
            &words.subtitle,
            &format!("{} CPUs together", sources.all.len()),
        );
    }
    let figure = OverTime {
        words,
        time: settings.x_label.clone().unwrap_or_else(|| time.to_owned()),
        value: settings.y_label.clone().unwrap_or_else(|| value.to_owned()),
        range: settings.range.given(),
        scale: settings.scale,
        clouds: ordered(clouds, |cloud| &cloud.label, settings)?,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(Made::new(figure, drawing))
}

/// Time and value of each sample, but for those that nobody could see beside the others; and how many were lost.
fn over_time(source: &Source, settings: &Checked) -> anyhow::Result<(Vec<(i64, i64)>, u64)> {
    let (file, columns) = match source.metric.column {
        Column::One(file, column) => (file, vec![source.metric.time, column]),
        Column::Between(file, from, to) => (file, vec![source.metric.time, from, to]),
        Column::None => return Err(source.nothing_there()),
    };
    let (mut points, mut lost) = (Thinned::new(settings.size, settings.range.given()), 0);
    source.point.rows(file)?.each(&columns, |cells| {
        let value = match columns.len() {
            2 => cells.integer(1)?,
            _ => cells
                .integer(1)?
                .zip(cells.integer(2)?)
                .map(|(from, to)| to.saturating_sub(from)),
        };
        match (cells.integer(0)?, value) {
            (Some(time), Some(value)) => points.push((time, value)),
            (_, None) if source.metric.may_be_lost => lost += 1,
            _ => {}
        }
        Ok(())
    })?;
    Ok((points.into_points(), lost))
}
