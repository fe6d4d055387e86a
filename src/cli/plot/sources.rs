//! The results that were named, as what can be drawn: a point and a metric each, with a label that tells them apart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::config::Checked;
use super::metric::{Column, Metric};
use super::options::Figure;
use super::settings::{apart, in_words, is_told};
use crate::cli::UsageError;
use crate::plot::{INCOMPLETE, Words};
use crate::results::read::{Benchmark, Hgrm, Point, ReadError, Run};

/// A metric of a point.
pub(super) struct Source {
    /// The run's name.
    pub run: String,
    pub point: Point,
    pub metric: &'static Metric,
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
        let mut runs = from
            .iter()
            .map(|path| Run::open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let benchmark = runs[0].benchmark;
        if let Some(other) = runs.iter().find(|run| run.benchmark != benchmark) {
            return Err(UsageError(format!(
                "{} holds results of {}, {} those of {}: they do not fit into one figure",
                runs[0].path.display(),
                benchmark.name(),
                other.path.display(),
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
        for run in &mut runs {
            align(run);
        }
        let points = || runs.iter().flat_map(|run| &run.points);
        for (name, values) in &settings.only {
            check_choice(points(), name, &values.0, settings)?;
        }
        for (run, name) in runs.iter().zip(&names) {
            for point in &run.points {
                let chosen = settings.only.iter().all(|(setting, values)| {
                    point
                        .setting(setting)
                        .is_some_and(|text| values.0.iter().any(|value| same(value, text)))
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
                .map(|(name, values)| format!("{name}={}", values.0.join(",")))
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
        let Some(metric) = metrics.find(|metric| metric.column == Column::None) else {
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
            .filter(|name| is_told(name, "?") && !(curve && *name == "rate_per_s"))
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
            let text = source.point.setting("percent_of_saturation");
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

    /// Title, what does not vary, and what is incomplete.
    pub fn words(&self, title: &str, settings: &Checked) -> Words {
        let (varying, curve) = (self.varying(), self.is_curve());
        let mut parts = Vec::new();
        if let Some(first) = self
            .all
            .iter()
            .find(|source| source.point.row.is_some())
            .or(self.all.first())
        {
            for (name, text) in &first.point.settings {
                if is_told(name, text)
                    && !varying.contains(name)
                    && !(curve && name == "rate_per_s")
                {
                    parts.push(in_words(name, text));
                }
            }
        }
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
            subtitle: parts.join(", "),
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
        runs.iter()
            .map(|run| run.path.display().to_string())
            .collect()
    } else {
        names
    }
}

/// Gives the settings of points without a row the names of the summary's columns, which have their units in them.
fn align(run: &mut Run) {
    let with_row = run.points.iter().find(|point| point.row.is_some());
    let columns: Vec<String> = with_row.map_or(Vec::new(), |point| {
        let names = point.settings.iter().map(|(name, _)| name.clone());
        names.collect()
    });
    for point in run.points.iter_mut().filter(|point| point.row.is_none()) {
        for (name, _) in &mut point.settings {
            let with_unit = |column: &&String| {
                (column.strip_prefix(name.as_str())).is_some_and(|unit| unit == "_bytes")
            };
            if let Some(column) = columns.iter().find(with_unit) {
                name.clone_from(column);
            }
        }
    }
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
    /// Its samples, in ascending order.
    pub fn sorted(&self) -> Result<Sorted, ReadError> {
        let (mut values, missing) = match self.metric.column {
            Column::One(file, column) => {
                let found = self.point.samples(file, column)?;
                (found.values, found.missing)
            }
            Column::Between(file, from, to) => {
                let mut values = Vec::new();
                self.point.rows(file)?.each(&[from, to], |cells| {
                    if let (Some(from), Some(to)) = (cells.integer(0)?, cells.integer(1)?) {
                        values.push(to.saturating_sub(from));
                    }
                    Ok(())
                })?;
                (values, 0)
            }
            Column::None => (Vec::new(), 0),
        };
        values.sort_unstable();
        Ok(Sorted {
            values,
            lost: if self.metric.may_be_lost { missing } else { 0 },
        })
    }

    /// How many messages were lost, by the summary or the settings.
    pub fn lost_told(&self) -> u64 {
        if !self.metric.may_be_lost {
            return 0;
        }
        match &self.point.row {
            Some(row) => row.count("messages_lost").unwrap_or(0),
            None => self.point.document["counts"]["lost"].as_u64().unwrap_or(0),
        }
    }

    /// Whether its samples are there, one by one.
    pub fn has_samples(&self) -> bool {
        match self.metric.column {
            Column::One(file, _) | Column::Between(file, ..) => self.point.file(file).exists(),
            Column::None => false,
        }
    }

    /// Its distribution, if it has one.
    pub fn distribution(&self) -> Result<Option<Hgrm>, ReadError> {
        if self.metric.distribution.is_empty() {
            return Ok(None);
        }
        let path = self
            .point
            .file(&self.metric.distribution.replace("{}", &self.point.name));
        if path.exists() {
            Hgrm::read(&path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The error of a source that has neither samples nor what could stand for them.
    pub fn nothing_there(&self) -> anyhow::Error {
        let (name, metric) = (self.point.folder.display(), self.metric.name);
        match self.metric.benchmark {
            Benchmark::Queue => {
                anyhow::anyhow!("{name} has no samples of {metric}: measure with --elements")
            }
            Benchmark::Clock => {
                anyhow::anyhow!("{name} has no samples of {metric}: measure with --report all")
            }
            Benchmark::Hca => anyhow::anyhow!(
                "{name} has no samples of {metric}: copy the folder whole, or measure again"
            ),
        }
    }
}
