//! What plots and reports show of a benchmark. Each has a [`Presentation`] in its own folder, nearly all of it data.

use std::path::PathBuf;

use crate::results::hlog;
use crate::results::read::{Point, Run};
use crate::results::schema::{Column, SampleFile, Schema};

pub struct Presentation {
    pub schema: &'static Schema,
    /// Results of it are results of ...
    pub name: &'static str,
    /// Of a report.
    pub title: &'static str,
    pub opening: Opening,

    /// What samples are of, where a metric does not say otherwise.
    pub plural: &'static str,
    /// The first is drawn where none is asked for.
    pub metrics: &'static [Metric],
    /// In place of the first, if any: in percentiles, and as medians over a setting that is no load.
    pub usual_percentiles: &'static [&'static str],
    pub usual_medians: &'static [&'static str],
    /// On an axis of several metrics.
    pub together: &'static str,
    /// The file of samples, what to do without it, and when each was taken.
    pub file: SampleFile,
    pub without_file: &'static str,
    pub time: Column,
    /// Where samples are told apart by their causes: when they began, their length, and the cause.
    pub causes: Option<[Column; 3]>,
    /// Whether histograms reach from zero to the same value, so that they can be compared at a glance.
    pub has_usual_range: bool,

    /// The setting that colours go by, and texts of it that have the same in all results.
    pub colour: Column,
    pub coloured: &'static [&'static str],
    /// The setting on an axis: the first that varies; the last where nothing does.
    pub x: &'static [Column],
    /// Titles of axes that are not those of all benchmarks.
    pub axes: &'static [(&'static str, &'static str)],
    /// What colours on a surface tell: the first share if all points have it, or the next that any has, or the last.
    pub shares: &'static [Share],
    pub only: Option<Only>,

    /// Columns of the summary that the table of a report has behind the settings, by what they are of.
    pub columns: &'static [&'static [Column]],
    /// Checks of the machine (`hcabench host`) that are about what it measures, and make no figure useless.
    pub subject: &'static [&'static str],
    /// What may be lost: its name, how many were, and of how many.
    pub lost: Option<(&'static str, Column, Column)>,
    /// What a report has of them.
    pub figures: &'static [ReportFigure],
    /// What a reader needs to know who was not there when it was measured: what is meant, a colon, its explanation.
    pub reading: &'static [&'static str],
}

impl Presentation {
    /// What a benchmark need not say where it is true.
    pub const fn of(schema: &'static Schema) -> Self {
        Presentation {
            schema,
            name: schema.title,
            title: "",
            opening: Opening::Best(&[]),
            plural: "",
            metrics: &[],
            usual_percentiles: &[],
            usual_medians: &[],
            together: "latency",
            file: schema.samples[0],
            without_file: "copy the folder whole, or measure again",
            time: schema.samples[0].columns[0],
            causes: None,
            has_usual_range: true,
            colour: schema.point[0],
            coloured: &[],
            x: schema.point.split_at(1).0,
            axes: &[],
            shares: &[],
            only: None,
            columns: &[],
            subject: &[],
            lost: None,
            figures: &[],
            reading: &[],
        }
    }

    /// Whether a point has a metric.
    pub fn has(&self, metric: &Metric, point: &Point) -> bool {
        let lacks = |(only, _, is_one): Only| metric.name != only && is_one(point);
        !self.only.is_some_and(lacks)
    }
}

/// A figure of `hcabench plot` in a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportFigure {
    /// Its name on the command line.
    pub figure: &'static str,
    /// An option of it, without dashes, and its value.
    pub setting: Option<(&'static str, &'static str)>,
    pub title: &'static str,
    /// How to read it.
    pub caption: &'static str,
}

impl ReportFigure {
    pub const fn new(figure: &'static str, title: &'static str, caption: &'static str) -> Self {
        ReportFigure {
            figure,
            setting: None,
            title,
            caption,
        }
    }

    pub const fn with(mut self, option: &'static str, value: &'static str) -> Self {
        self.setting = Some((option, value));
        self
    }

    /// Percentiles by interval, of runs that have them.
    pub const fn by_interval(title: &'static str, caption: &'static str) -> Self {
        Self::new("time", title, caption).with("show", "intervals")
    }

    /// Whether it is drawn of distributions by interval.
    pub fn is_by_interval(&self) -> bool {
        self.setting == Some(("show", "intervals"))
    }

    /// What draws it, behind `hcabench plot`.
    pub fn command(&self) -> String {
        let setting = self.setting.iter();
        let setting = setting.map(|(option, value)| format!(" --{option} {value}"));
        self.figure.to_owned() + &setting.collect::<String>()
    }
}

pub enum Opening {
    /// With the best point, by the first of these that any point has.
    Best(&'static [Best]),
    /// With what was measured, and what was found in all points together.
    Whole(&'static str, fn(&Run) -> Option<String>),
}

/// What was measured, a figure of it, and the name of that.
pub type Best = (&'static str, Column, &'static str);

/// What it is called, the count of what is bad, and those whose sum is all.
pub type Share = (&'static str, Column, &'static [Column]);

/// The only metric of some points, what these are of, and whether one is of them.
pub type Only = (&'static str, &'static str, fn(&Point) -> bool);

#[derive(PartialEq, Eq)]
pub struct Metric {
    /// By --metric.
    pub name: &'static str,
    pub alias: &'static str,
    pub label: &'static str,
    /// How its percentiles begin in the summary, where there are any: `STEM_p50_ns`. Empty if it is of whole curves.
    pub stem: &'static str,
    /// What it is of, where that is not what samples are of.
    pub plural: Option<&'static str>,
    /// The column of its samples, or two of which the first is taken from the second. None: it has a distribution only.
    pub samples: &'static [Column],
    /// The file of its distribution, if that has not the name of the stem.
    pub distribution: Option<&'static str>,
    /// How many were lost on the way to a sample.
    pub lost: Option<Column>,
    /// Why others were never sent, and how many.
    pub absent: &'static [(&'static str, Column)],
    /// What is empty in the row of a lost message: one that arrived may have no latency. None where it has no row.
    pub arrival: Option<Column>,
}

impl Metric {
    pub const fn new(name: &'static str, label: &'static str, samples: &'static [Column]) -> Self {
        Metric {
            name,
            alias: "",
            label,
            stem: name,
            plural: None,
            samples,
            distribution: None,
            lost: None,
            absent: &[],
            arrival: None,
        }
    }

    pub const fn intended(samples: &'static [Column]) -> Self {
        Metric {
            stem: "intended_latency",
            ..Self::new("intended", "latency from the intended time", samples)
        }
    }

    /// Whether it is of whole curves, and has no samples.
    pub fn is_of_curves(&self) -> bool {
        self.stem.is_empty()
    }

    pub fn distribution(&self) -> String {
        let named = self.distribution.map(str::to_owned);
        named.unwrap_or_else(|| format!("{}.hgrm", self.stem))
    }

    /// The file of its distributions by interval.
    pub fn interval_log(&self) -> String {
        hlog::beside(&self.distribution())
    }

    /// The same of a point, if it is there.
    pub fn interval_log_of(&self, point: &Point) -> Option<PathBuf> {
        let path = point.file(&self.interval_log());
        path.exists().then_some(path)
    }

    /// The columns of its samples and, where a row may be of a lost message, last that of the arrival.
    pub fn columns(&self) -> Vec<&'static str> {
        let columns = self.samples.iter().chain(&self.arrival);
        columns.map(|column| column.name).collect()
    }
}
