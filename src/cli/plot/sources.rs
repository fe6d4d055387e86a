//! The results that were named, as what can be drawn: a point and a metric each, with a label that tells them apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::config::Checked;
use super::metric::{Metric, Samples};
use super::options::Figure;
use super::settings::{apart, goes_without_saying, in_words, is_told};
use crate::cli::UsageError;
use crate::plot::{INCOMPLETE, Words};
use crate::results::read::{Benchmark, Cells, Hgrm, Point, ReadError, Run};
use crate::results::schema::{ROUND, ROUNDS, hca, queue};
use crate::results::text::printable_path;

/// A metric of a point.
#[derive(Clone)]
pub(super) struct Source {
    /// The run's name.
    pub run: String,
    pub point: Point,
    pub metric: &'static Metric,
    /// The rounds whose samples are drawn; all of them, if none are named.
    rounds: Vec<i64>,
}

/// All that goes into a figure.
pub(super) struct Sources {
    pub all: Vec<Source>,
    pub benchmark: Benchmark,
    /// What is incomplete, and why.
    pub incomplete: Vec<String>,
}

/// Samples in ascending order, and how many messages were lost.
pub(super) struct Sorted {
    pub values: Vec<i64>,
    pub lost: u64,
}

impl Sources {
    /// Opens the folders, and takes what --only and --metric choose; `usual` are the metrics without the latter.
    pub fn open(
        from: &[PathBuf],
        settings: &Checked,
        usual: impl Fn(Benchmark) -> &'static [&'static str],
    ) -> anyhow::Result<Self> {
        let runs = from
            .iter()
            .map(|path| Run::open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let benchmark = runs[0].benchmark;
        if let Some(other) = runs.iter().find(|run| run.benchmark != benchmark) {
            return Err(UsageError(format!(
                "{} holds results of {}, {} those of {}: they do not fit into one figure",
                printable_path(&runs[0].path),
                benchmark.name(),
                printable_path(&other.path),
                other.benchmark.name()
            ))
            .into());
        }
        let metrics = Metric::of(benchmark, settings, usual(benchmark))?;
        let names = run_names(&runs);
        let mut sources = Sources {
            all: Vec::new(),
            benchmark,
            incomplete: Vec::new(),
        };
        let points = || runs.iter().flat_map(|run| &run.points);
        let rounds = rounds_of(points(), settings)?;
        let only = || settings.only.iter().filter(|(name, _)| *name != ROUND.name);
        for (name, values) in only() {
            check_choice(points(), name, values, settings)?;
        }
        for (run, name) in runs.iter().zip(&names) {
            for point in &run.points {
                let chosen = only().all(|(setting, values)| {
                    point
                        .setting(setting)
                        .is_some_and(|text| values.iter().any(|value| same(value, text)))
                });
                if !chosen {
                    continue;
                }
                if let Some(reason) = &point.incomplete {
                    sources.incomplete.push(format!("{}: {reason}", point.name));
                }
                for &metric in &metrics {
                    sources.all.push(Source {
                        run: name.clone(),
                        point: point.clone(),
                        metric,
                        rounds: rounds.clone(),
                    });
                }
            }
            if let Some(reason) = &run.incomplete
                && !run.points.iter().any(|point| point.incomplete.is_some())
            {
                sources.incomplete.push(format!("{name}: {reason}"));
            }
        }
        if sources.all.is_empty() {
            let only: Vec<String> = (settings.only.iter())
                .map(|(name, values)| format!("{name}={}", values.join(",")))
                .collect();
            let by: BTreeSet<String> = (settings.only.keys())
                .map(|name| settings.named_only(name))
                .collect();
            return Err(UsageError(format!(
                "{} {:?}: no point has all of that",
                Vec::from_iter(by).join(" and "),
                only.join(" ")
            ))
            .into());
        }
        Ok(sources)
    }

    /// Refuses metrics of which there is only a distribution, for a figure that needs samples.
    pub fn must_have_samples(&self, figure: Figure, settings: &Checked) -> Result<(), UsageError> {
        let mut metrics = self.all.iter().map(|source| source.metric);
        let Some(metric) = metrics.find(|metric| metric.samples == Samples::None) else {
            return Ok(());
        };
        Err(UsageError(format!(
            "{} {:?}: of it there is only a distribution, and {} needs samples; ecdf and percentiles draw it",
            settings.named("metric"),
            metric.name,
            figure.name()
        )))
    }

    /// Settings that differ between the points, in the order of the summary.
    pub fn varying(&self) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.all.iter().flat_map(|source| &source.point.settings) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let curve = self.is_curve();
        names
            .into_iter()
            .filter(|name| is_told(name, "?") && !(curve && *name == queue::RATE.name))
            .filter(|name| {
                // Points without a row have other names for their settings, and would make all of them differ.
                let rows = self.all.iter().filter(|source| source.point.row.is_some());
                let texts: BTreeSet<Option<&str>> =
                    rows.map(|source| source.point.setting(name)).collect();
                texts.len() > 1
            })
            .map(str::to_owned)
            .collect()
    }

    /// The texts that a setting has.
    fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.all
            .iter()
            .filter_map(|source| source.point.setting(name))
    }

    /// Whether the points are those of a load curve, of which the rate follows from the share of saturation.
    fn is_curve(&self) -> bool {
        let share = |source: &Source| {
            let text = source.point.setting(queue::PERCENT_OF_SATURATION.name);
            text.is_some_and(|text| !text.is_empty())
        };
        self.all.iter().any(share)
    }

    /// A label for each source: what varies but for `but`, the metric if there are several, and the run if that is not
    /// enough.
    pub fn labels(&self, but: &[&str]) -> Vec<String> {
        let varying: Vec<String> = self
            .varying()
            .into_iter()
            .filter(|name| !but.contains(&name.as_str()))
            .collect();
        let metrics: BTreeSet<&str> = self.all.iter().map(|source| source.metric.name).collect();
        let runs: BTreeSet<&str> = self.all.iter().map(|source| source.run.as_str()).collect();
        let plain = |source: &Source, with_run: bool| {
            let mut parts: Vec<String> = Vec::new();
            if with_run {
                parts.push(source.run.clone());
            }
            for name in &varying {
                if let Some(text) = source
                    .point
                    .setting(name)
                    .filter(|text| is_told(name, text))
                {
                    let words = apart(in_words, name, text, self.texts(name));
                    parts.push(words.unwrap_or_else(|| format!("{name} {text}")));
                }
            }
            if metrics.len() > 1 {
                parts.push(source.metric.label.to_owned());
            }
            parts.join(", ")
        };
        let identity = |source: &Source| {
            let others = but
                .iter()
                .map(|name| source.point.setting(name).unwrap_or_default().to_owned());
            (plain(source, false), others.collect::<Vec<_>>())
        };
        let distinct: BTreeSet<_> = self.all.iter().map(identity).collect();
        let with_run = runs.len() > 1 && distinct.len() < self.all.len();
        let label = |source: &Source| {
            let text = plain(source, with_run);
            if text.is_empty() && but.is_empty() && self.all.len() > 1 {
                source.point.name.clone()
            } else {
                text
            }
        };
        self.all.iter().map(label).collect()
    }

    /// The looks of lines by their labels, where each line is of one service and each service has one line: they are the
    /// same in all figures.
    pub fn looks(&self, labels: &[String]) -> BTreeMap<String, usize> {
        const SERVICES: [&str; 3] = ["rc", "uc", "ud"];
        let mut looks = BTreeMap::new();
        for (source, label) in self.all.iter().zip(labels) {
            let service = source.point.setting(hca::SERVICE.name);
            let place = SERVICES.iter().position(|it| Some(*it) == service);
            let taken = |looks: &BTreeMap<String, usize>, place: usize| {
                looks
                    .iter()
                    .any(|(other, it)| *it == place && other != label)
            };
            match place.filter(|place| !taken(&looks, *place)) {
                Some(place) if *looks.entry(label.clone()).or_insert(place) == place => {}
                _ => return BTreeMap::new(),
            }
        }
        looks
    }

    /// The largest number of rounds that a point has.
    pub fn rounds(&self) -> u64 {
        let of = |source: &Source| rounds_told(&source.point);
        self.all.iter().map(of).max().unwrap_or(1)
    }

    /// Title, what does not vary, these notes, and what is incomplete.
    pub fn words(&self, title: &str, notes: &[&str], settings: &Checked) -> Words {
        let (varying, curve) = (self.varying(), self.is_curve());
        let mut parts = Vec::new();
        if let Some(first) = self
            .all
            .iter()
            .find(|source| source.point.row.is_some())
            .or(self.all.first())
        {
            for (name, text) in &first.point.settings {
                let is_of_curve = curve && name == queue::RATE.name;
                let is_known = goes_without_saying(name, text) || varying.contains(name);
                if is_told(name, text) && !is_known && !is_of_curve {
                    parts.push(in_words(name, text));
                }
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
        let usual = || {
            let parts = [parts.join(", ")].into_iter();
            let all = parts.chain(notes.iter().map(|note| (*note).to_owned()));
            let told = all.filter(|part| !part.is_empty());
            told.collect::<Vec<_>>().join("; ")
        };
        let warning = match &self.incomplete[..] {
            [] => String::new(),
            [one] => format!("incomplete: {one}"),
            [first, others @ ..] => format!("incomplete: {first} (and {} more)", others.len()),
        };
        let title = settings.title.clone().unwrap_or_else(|| title.to_owned());
        let mark = if self.incomplete.is_empty() {
            ""
        } else {
            INCOMPLETE
        };
        Words {
            title: format!("{title}{mark}"),
            subtitle: settings.subtitle.clone().unwrap_or_else(usual),
            warning,
        }
    }
}

/// The names of runs' folders; with the way to them where that is needed to tell them apart.
fn run_names(runs: &[Run]) -> Vec<String> {
    let name = |run: &Run| {
        let full = run.path.canonicalize().unwrap_or_else(|_| run.path.clone());
        full.file_name()
            .unwrap_or(full.as_os_str())
            .to_string_lossy()
            .into_owned()
    };
    let names: Vec<String> = runs.iter().map(name).collect();
    let paths: BTreeSet<&Path> = runs.iter().map(|run| run.path.as_path()).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < paths.len() {
        runs.iter().map(|run| printable_path(&run.path)).collect()
    } else {
        names
    }
}

/// How many rounds a point has.
fn rounds_told(point: &Point) -> u64 {
    let told = point.row.as_ref().and_then(|row| row.count(ROUNDS.name));
    told.unwrap_or(1)
}

/// The rounds that were asked for; none for all.
fn rounds_of<'a>(
    points: impl Iterator<Item = &'a Point>,
    settings: &Checked,
) -> Result<Vec<i64>, UsageError> {
    let Some(asked) = settings.only.get(ROUND.name) else {
        return Ok(Vec::new());
    };
    let most = points.map(rounds_told).max().unwrap_or(1);
    let round = |text: &String| {
        let found = text
            .parse()
            .ok()
            .filter(|round| (0..most as i64).contains(round));
        found.ok_or_else(|| {
            UsageError(format!(
                "{} \"{}={text}\": there is no such round, only 0 to {}",
                settings.named_only(ROUND.name),
                ROUND.name,
                most - 1
            ))
        })
    };
    asked.iter().map(round).collect()
}

/// Whether a value that was asked for is that of a setting: as a text or as a number.
pub(super) fn same(value: &str, text: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    value.eq_ignore_ascii_case(text)
        || number(value).is_some_and(|value| number(text) == Some(value))
}

fn check_choice<'a>(
    points: impl Iterator<Item = &'a Point> + Clone,
    name: &str,
    values: &[String],
    settings: &Checked,
) -> Result<(), UsageError> {
    let texts: BTreeSet<&str> = points
        .clone()
        .filter_map(|point| point.setting(name))
        .collect();
    if texts.is_empty() {
        let names: Vec<&str> = points.clone().next().map_or(Vec::new(), |point| {
            point
                .settings
                .iter()
                .map(|(name, _)| name.as_str())
                .collect()
        });
        return Err(UsageError(format!(
            "{} {name:?}: there is no such setting, only {}",
            settings.named_only(name),
            names.join(", ")
        )));
    }
    match values
        .iter()
        .find(|value| !texts.iter().any(|text| same(value, text)))
    {
        None => Ok(()),
        Some(value) => {
            let there: Vec<&str> = texts.into_iter().collect();
            Err(UsageError(format!(
                "{} \"{name}={value}\": no point has that, only {}",
                settings.named_only(name),
                there.join(", ")
            )))
        }
    }
}

impl Source {
    /// Reads columns of its samples, those of the rounds that are drawn.
    pub fn each(
        &self,
        columns: &[&str],
        mut take: impl FnMut(Cells<'_>) -> Result<(), ReadError>,
    ) -> anyhow::Result<()> {
        let file = self.metric.file().ok_or_else(|| self.nothing_there())?;
        let mut columns = columns.to_vec();
        if !self.rounds.is_empty() {
            columns.push(ROUND.name);
        }
        let last = columns.len() - 1;
        self.point.rows(file)?.each(&columns, |cells| {
            let is_drawn = |round: i64| self.rounds.contains(&round);
            match self.rounds.is_empty() || cells.integer(last)?.is_some_and(is_drawn) {
                true => take(cells),
                false => Ok(()),
            }
        })?;
        Ok(())
    }

    /// The columns of its value.
    pub fn columns(&self) -> Vec<&'static str> {
        match self.metric.samples {
            Samples::One(column) => vec![column],
            Samples::Between(from, to) => vec![from, to],
            Samples::None => Vec::new(),
        }
    }

    /// Its value in a row of [`columns`](Self::columns), which stand at `at`.
    pub fn value(&self, cells: Cells<'_>, at: usize) -> Result<Option<i64>, ReadError> {
        let first = cells.integer(at)?;
        Ok(match self.metric.samples {
            Samples::Between(..) => {
                let both = first.zip(cells.integer(at + 1)?);
                both.map(|(from, to)| to.saturating_sub(from))
            }
            _ => first,
        })
    }

    /// Its samples, in ascending order.
    pub fn sorted(&self) -> anyhow::Result<Sorted> {
        let (mut values, mut lost) = (Vec::new(), 0);
        self.each(&self.columns(), |cells| {
            match self.value(cells, 0)? {
                Some(value) => values.push(value),
                None => lost += u64::from(self.metric.may_be_lost),
            }
            Ok(())
        })?;
        values.sort_unstable();
        Ok(Sorted { values, lost })
    }

    /// The same of its first round only, unless rounds were asked for.
    pub fn of_a_round(&self) -> Source {
        let mut source = self.clone();
        if self.rounds.is_empty() && rounds_told(&self.point) > 1 {
            source.rounds = vec![0];
        }
        source
    }

    /// Whether all rounds are drawn, of which summary and distributions tell.
    pub fn of_all_rounds(&self) -> bool {
        self.rounds.is_empty()
    }

    /// How many messages were lost, by the summary or the settings.
    pub fn lost_told(&self) -> u64 {
        if !self.metric.may_be_lost {
            return 0;
        }
        let row = self.point.row.as_ref();
        row.and_then(|row| row.count(hca::LOST.name)).unwrap_or(0)
    }

    /// Whether its samples are there, one by one.
    pub fn has_samples(&self) -> bool {
        let file = self.metric.file();
        file.is_some_and(|file| self.point.file(file).exists())
    }

    /// Its distribution, if it has one; it is of all rounds.
    pub fn distribution(&self) -> Result<Option<Hgrm>, ReadError> {
        let path = self.point.file(self.metric.distribution);
        if self.metric.distribution.is_empty() || !self.of_all_rounds() || !path.exists() {
            return Ok(None);
        }
        Hgrm::read(&path).map(Some)
    }

    /// The error of a source that has neither samples nor what could stand for them.
    pub fn nothing_there(&self) -> anyhow::Error {
        let advice = match self.metric.benchmark {
            _ if !self.of_all_rounds() => "a single round's samples are in its files only",
            Benchmark::Queue => "measure with --elements",
            Benchmark::Clock => "measure with --report all",
            Benchmark::Hca => "copy the folder whole, or measure again",
        };
        let folder = printable_path(&self.point.folder);
        anyhow::anyhow!("{folder} has no samples of {}: {advice}", self.metric.name)
    }
}
