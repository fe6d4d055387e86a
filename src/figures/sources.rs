//! The results that were named, as what can be drawn: a point and a metric each, with a label that tells them apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::made::NothingLeft;
use super::metric;
use super::options::{Figure, Settings, Values, refused};
use super::settings::{apart, goes_without_saying, in_words, is_told, same};
use super::source::{Source, most_rounds};
use crate::arguments::UsageError;
use crate::bench::presentation::{Metric, Presentation};
use crate::bench::presentation_of;
use crate::plot::palette::{COLOURS, StyleNumber};
use crate::plot::{FigureTexts, INCOMPLETE, both};
use crate::results::read::{Point, ReadError, Run};
use crate::results::schema::{ROUND, memory};
use crate::results::text::printable_path;
use crate::results::units;
use crate::sorting::distinct;

pub(super) struct Sources {
    pub all: Vec<Source>,
    pub presentation: &'static Presentation,
    /// What is incomplete, and why.
    pub incomplete: Vec<String>,
    /// Which files are damaged, in words; may be empty.
    damaged: String,
    /// Which points lack the metric, in words; may be empty.
    lacking: String,
    /// What searches for the highest rate found.
    pub searched: Vec<SearchedPoint>,
    /// All texts in the run of the setting by which lines have their colours, if there are several.
    keys: Vec<String>,
}

/// A point at which a search for the highest rate has an end.
pub(super) struct SearchedPoint {
    /// The name of the run, as its sources have it, and of the point.
    pub run: String,
    pub point: String,
    pub holds: bool,
    /// What is found there, in words.
    pub label: String,
}

/// Which colour lines have, by their labels.
#[derive(Default)]
pub(super) struct Colours {
    pub of: BTreeMap<String, usize>,
    /// The first of those for other lines.
    others: usize,
}

impl Colours {
    /// The looks of these lines: of one colour, in different shades.
    pub(crate) fn looks(&self, lines: &[String]) -> Vec<StyleNumber> {
        let (mut next, mut taken) = (self.others.., BTreeSet::new());
        let lines = lines.iter().map(|line| {
            let colour = self.of.get(line).copied().or_else(|| next.next());
            let colour = colour.unwrap_or_default();
            // Beyond the last of the colours they come again in other shades.
            let is_free =
                |shade: &usize| taken.insert((colour % COLOURS, shade + colour / COLOURS));
            (colour, (0..).find(is_free).unwrap_or_default())
        });
        lines.collect()
    }
}

/// The ends of the searches that a run has recorded.
fn searched_in(run: &Run, name: &str) -> Vec<SearchedPoint> {
    let searches = run.document()["details"]["find_rate"].as_array();
    let of_search = |search: &Value| {
        let conditions = search["conditions"].as_str()?;
        let conditions = conditions.replace('<', " < ").replace(',', " and ");
        let what = match search["of"].as_str().unwrap_or_default() {
            "" => conditions,
            of => format!("{of}: {conditions}"),
        };
        let up_to = match search["found"] == true {
            true => "up to",
            false => "at",
        };
        let probes = search["probes"].as_array()?.iter().filter_map(|probe| {
            let holds = probe["is"] == "holds";
            let rate = units::rate(probe["rate_per_s"].as_f64()?);
            Some(SearchedPoint {
                run: name.to_owned(),
                point: probe["point"].as_str()?.to_owned(),
                holds,
                label: match holds {
                    true => format!("{what} holds {up_to} {rate}"),
                    false => format!("{what} fails at {rate}"),
                },
            })
        });
        Some(probes.collect::<Vec<_>>())
    };
    let searches = searches.into_iter().flatten();
    searches.filter_map(of_search).flatten().collect()
}

impl Sources {
    /// Opens the folders, and takes what --only and --metric choose; `usual` are the metrics without the latter.
    pub(crate) fn open(
        from: &[PathBuf],
        settings: &Settings,
        usual: impl Fn(&Presentation) -> &'static [&'static str],
    ) -> anyhow::Result<Self> {
        let runs = from.iter().map(|path| Run::salvage(path));
        let runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
        let presentation = presentation_of(runs[0].schema);
        let is_other = |run: &&Run| run.schema.benchmark != presentation.schema.benchmark;
        if let Some(other) = runs.iter().find(is_other) {
            return Err(UsageError(format!(
                "{} holds results of {}, {} those of {}: they do not fit into one figure",
                printable_path(&runs[0].path),
                presentation.name,
                printable_path(&other.path),
                presentation_of(other.schema).name
            ))
            .into());
        }
        let points: Vec<&Point> = runs.iter().flat_map(|run| &run.points).collect();
        let key = presentation.colour.name;
        let coloured = presentation.coloured.iter();
        let mut keys: Vec<String> = coloured.map(|&text| text.to_owned()).collect();
        for text in points.iter().filter_map(|point| point.setting(key)) {
            if !keys.iter().any(|it| it == text) {
                keys.push(text.to_owned());
            }
        }
        if keys.len() == 1 {
            keys.clear();
        }
        let known = |name: String| {
            let mut schemas = points.iter().map(|point| point.schema);
            let known = schemas.find_map(|schema| schema.setting(&name));
            known.map_or(name, str::to_owned)
        };
        let only = settings.only().into_iter();
        let mut only: Values = only.map(|(name, values)| (known(name), values)).collect();
        let rounds = match only.remove(ROUND.name) {
            Some(asked) => rounds_of(&points, &asked)?,
            None => Vec::new(),
        };
        for (name, values) in &only {
            check_choice(&points, name, values)?;
        }
        let chosen = points.iter().filter(|point| is_chosen(&only, point));
        let chosen = chosen.copied();
        let metrics = metric::of_points(presentation, settings, usual(presentation), chosen)?;
        let (mut all, mut incomplete, mut lacking) = (Vec::new(), Vec::new(), Vec::new());
        let mut searched = Vec::new();
        for (run, name) in runs.iter().zip(run_names(&runs)) {
            for point in run.points.iter().filter(|point| is_chosen(&only, point)) {
                if let Some(reason) = &point.incomplete {
                    incomplete.push(format!("{}: {reason}", point.name));
                }
                let metrics = metrics.iter().filter(|metric| {
                    let has_it = presentation.has(metric, point);
                    if !has_it {
                        lacking.push((**metric, point.name.as_str()));
                    }
                    has_it
                });
                all.extend(metrics.map(|&metric| Source {
                    run: name.clone(),
                    point: point.clone(),
                    presentation,
                    metric,
                    rounds: rounds.clone(),
                    are_others_there: false,
                }));
            }
            searched.extend(searched_in(run, &name));
            if let Some(reason) = &run.incomplete
                && !run.points.iter().any(|point| point.incomplete.is_some())
            {
                incomplete.push(format!("{name}: {reason}"));
            }
        }
        let lacking = metric::lacking(presentation, &lacking);
        if let (Some(why), true) = (&lacking, all.is_empty()) {
            return Err(refused("metric", &settings.metric.join(","), why).into());
        }
        if all.is_empty() {
            let only = settings.only();
            let only = only.iter();
            let only = only.map(|(name, values)| format!("{name}={}", values.join(",")));
            let only = only.collect::<Vec<_>>().join(" ");
            return Err(refused("only", &only, "no point has all of that").into());
        }
        let whole: Vec<Source> = all
            .iter()
            .filter(|it| it.is_whole(&settings.without))
            .cloned()
            .collect();
        NothingLeft::check(whole.is_empty(), &settings.without)?;
        all = whole;
        let are_others_there = all.iter().any(Source::has_samples);
        all.iter_mut()
            .for_each(|it| it.are_others_there = are_others_there);
        let damaged = runs.iter().flat_map(|run| &run.damaged);
        let damaged = damaged.chain(&settings.without);
        Ok(Sources {
            damaged: left_out(damaged),
            all,
            presentation,
            incomplete,
            lacking: lacking.unwrap_or_default(),
            searched,
            keys,
        })
    }

    /// Refuses metrics of which there is only a distribution, for a figure that needs samples.
    pub(crate) fn must_have_samples(&self, figure: Figure) -> Result<(), UsageError> {
        let mut metrics = self.all.iter().map(|source| source.metric);
        let Some(metric) = metrics.find(|metric| metric.samples.is_empty()) else {
            return Ok(());
        };
        let figure = figure.name();
        let why = match metric.is_of_curves() {
            true => {
                format!("it is a figure of whole curves, which {figure} does not draw; curves does")
            }
            false => format!(
                "of it there is only a distribution, and {figure} needs samples; ecdf and percentiles draw it"
            ),
        };
        Err(refused("metric", metric.name, &why))
    }

    /// The metric, if all have the same.
    pub(crate) fn metric(&self) -> Option<&'static Metric> {
        let first = self.all[0].metric;
        let mut metrics = self.all.iter().map(|source| source.metric);
        metrics.all(|metric| metric == first).then_some(first)
    }

    /// Points with a row in the summary: only those have all settings under the same names.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Point> {
        let points = self.all.iter().map(|source| &source.point);
        points.filter(|point| point.row.is_some())
    }

    /// Settings that differ between the points, in the order of the summary.
    pub(crate) fn varying(&self) -> Vec<String> {
        let varies = |name: &str| {
            let mut texts = self.rows().map(|point| point.setting(name));
            let first = texts.next();
            texts.any(|text| Some(text) != first) && is_told(name, "?") && !self.follows(name)
        };
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.all.iter().flat_map(|source| &source.point.settings) {
            if !names.contains(name) && varies(name) {
                names.push(name.clone());
            }
        }
        names
    }

    pub(crate) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let sources = self.all.iter();
        sources.filter_map(move |source| source.point.setting(name))
    }

    /// Whether a setting follows from others: it is measured, as the rate on a load curve; or, of a memory, the
    /// generators, where all that differs is that some points have none, as their pause says.
    fn follows(&self, name: &str) -> bool {
        let is_told = |text: &&str| !text.is_empty();
        if name == memory::GENERATORS.name {
            return distinct(self.texts(name).filter(is_told)).len() == 1;
        }
        let mut sources = self.all.iter();
        sources.any(|source| source.point.is_measured(name))
    }

    /// A label for each source: what varies but for `but`, the metric if there are several, and the run if that is not
    /// enough.
    pub(crate) fn labels(&self, but: &[&str]) -> Vec<String> {
        let mut varying = self.varying();
        varying.retain(|name| !but.contains(&name.as_str()));
        let several_metrics = self.metric().is_none();
        let plain = |source: &Source| -> Vec<String> {
            let mut parts = Vec::new();
            for name in &varying {
                let text = source.point.setting(name);
                if let Some(text) = text.filter(|text| is_told(name, text)) {
                    let words = apart(in_words, name, text, self.texts(name));
                    parts.push(words.unwrap_or_else(|| format!("{name} {text}")));
                }
            }
            if several_metrics {
                parts.push(source.metric.label.to_owned());
            }
            parts
        };
        let identity = |source: &Source| {
            let others = but.iter().map(|name| source.point.setting(name));
            let others: Vec<String> = others.map(|text| text.unwrap_or_default().into()).collect();
            (plain(source), others)
        };
        let runs = distinct(self.all.iter().map(|source| source.run.as_str()));
        let are_alike = distinct(self.all.iter().map(identity)).len() < self.all.len();
        let with_run = runs.len() > 1 && are_alike;
        let label = |source: &Source| {
            let mut parts = plain(source);
            if with_run {
                parts.insert(0, source.run.clone());
            }
            if parts.is_empty() && but.is_empty() && self.all.len() > 1 {
                parts.push(source.point.name.clone());
            }
            parts.join(", ")
        };
        self.all.iter().map(label).collect()
    }

    /// The colours of lines by the label of each source: by the place of its service, queue or CPU among those of the
    /// run, whatever of it is drawn. A line of several of these has none.
    pub(crate) fn colours(&self, labels: &[String]) -> Colours {
        let mut all: BTreeMap<&String, Option<usize>> = BTreeMap::new();
        for (source, label) in self.all.iter().zip(labels) {
            let key = source.point.setting(self.presentation.colour.name);
            let place = self.keys.iter().position(|it| Some(it.as_str()) == key);
            let known = all.entry(label).or_insert(place);
            *known = known.filter(|it| Some(*it) == place);
        }
        let of = all.into_iter();
        let of = of.filter_map(|(label, place)| Some((label.clone(), place?)));
        let of: BTreeMap<String, usize> = of.collect();
        let are_free = of.is_empty() && self.presentation.coloured.is_empty();
        let others = if are_free { 0 } else { self.keys.len() };
        Colours { of, others }
    }

    pub(crate) fn rounds(&self) -> u64 {
        most_rounds(self.all.iter().map(|source| &source.point))
    }

    /// Title, what does not vary, a note, which may be empty, and what is incomplete.
    pub(crate) fn words(&self, title: &str, note: &str, settings: &Settings) -> FigureTexts {
        let usual = || both(&self.common().join(", "), note);
        let (mark, warning) = match &self.incomplete[..] {
            [] => ("", String::new()),
            [one] => (INCOMPLETE, format!("incomplete: {one}")),
            [first, others @ ..] => {
                let more = others.len();
                (INCOMPLETE, format!("incomplete: {first} (and {more} more)"))
            }
        };
        FigureTexts {
            title: format!("{}{mark}", settings.title.as_deref().unwrap_or(title)),
            subtitle: settings.subtitle.clone().unwrap_or_else(usual),
            warning: both(&self.damaged, &both(&self.lacking, &warning)),
        }
    }

    fn common(&self) -> Vec<String> {
        let varying = self.varying();
        let mut parts = Vec::new();
        let first = self.rows().next();
        for (name, text) in &first.unwrap_or(&self.all[0].point).settings {
            let is_known = goes_without_saying(name, text) || varying.contains(name);
            if is_told(name, text) && !is_known && !self.follows(name) {
                parts.push(in_words(name, text));
            }
        }
        match &self.all[0].rounds[..] {
            [] if self.rounds() > 1 => parts.push(format!("{} rounds", self.rounds())),
            [] => {}
            rounds => {
                let rounds: Vec<String> = rounds.iter().map(i64::to_string).collect();
                parts.push(format!("round {}", rounds.join(", ")));
            }
        }
        parts
    }
}

/// `POINT/messages.csv`.
fn in_its_folder(file: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name)
            .unwrap_or_default()
            .to_owned()
    };
    printable_path(&Path::new(&name(file.parent())).join(name(Some(file))))
}

/// What is stated of files that are damaged.
pub(super) fn left_out<'a>(damaged: impl Iterator<Item = &'a Arc<ReadError>>) -> String {
    let files: Vec<String> = damaged.map(|error| in_its_folder(&error.path)).collect();
    match &files[..] {
        [] => String::new(),
        [one] => format!("left out, as it is damaged: {one}"),
        [first, others @ ..] => {
            let more = others.len();
            format!("left out, as they are damaged: {first} (and {more} more)")
        }
    }
}

/// The names of runs' folders; with the way to them where that is needed to tell them apart.
fn run_names(runs: &[Run]) -> Vec<String> {
    let name = |run: &Run| {
        let full = run.path.canonicalize().unwrap_or_else(|_| run.path.clone());
        let name = full.file_name().unwrap_or(full.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let names: Vec<String> = runs.iter().map(name).collect();
    let paths = distinct(runs.iter().map(|run| run.path.as_path()));
    if distinct(&names).len() < paths.len() {
        return runs.iter().map(|run| printable_path(&run.path)).collect();
    }
    names
}

fn rounds_of(points: &[&Point], asked: &[String]) -> Result<Vec<i64>, UsageError> {
    let last = most_rounds(points.iter().copied()) as i64 - 1;
    let round = |text: &String| {
        let round = text.parse().ok().filter(|round| (0..=last).contains(round));
        round.ok_or_else(|| {
            let why = format!("there is no such round, only 0 to {last}");
            refused("only", &format!("{}={text}", ROUND.name), &why)
        })
    };
    asked.iter().map(round).collect()
}

/// Whether a point has one of the values that were chosen of each setting.
pub(crate) fn is_chosen(only: &Values, point: &Point) -> bool {
    only.iter().all(|(name, values)| {
        let text = point.setting(name);
        text.is_some_and(|text| values.iter().any(|value| same(value, text)))
    })
}

fn check_choice(points: &[&Point], name: &str, values: &[String]) -> Result<(), UsageError> {
    let texts = points.iter().filter_map(|point| point.setting(name));
    let texts = Vec::from_iter(distinct(texts));
    if texts.is_empty() {
        let first = points.first().map_or(&[][..], |point| &point.settings);
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        let why = format!("there is no such setting, only {names}");
        return Err(refused("only", name, &why));
    }
    let is_there = |value: &&String| texts.iter().any(|text| same(value, text));
    match values.iter().find(|value| !is_there(value)) {
        None => Ok(()),
        Some(value) => {
            let why = format!("no point has that, only {}", texts.join(", "));
            Err(refused("only", &format!("{name}={value}"), &why))
        }
    }
}
