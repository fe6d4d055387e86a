//! The settings of figures, which are options and keys of a file, and which of them goes with which figure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

pub(super) use super::figure::Figure;
use super::figure::Figure::{
    Curves, Ecdf, Histogram, Load, Matrix, Median, Percentiles, Surface, Time,
};
use crate::arguments::UsageError;
use crate::arguments::values::{count, one};
use crate::compare::figures::Kind;
use crate::plot::palette::StyleNumber;
use crate::plot::scale::ScaleKind;
use crate::plot::{Chart, DEFAULT_SIZE, FigureTexts, ONE_COLUMN, SIDES, TWO_COLUMNS};
use crate::results::read::ReadError;
use crate::rig::named::named;

/// The percentile that is drawn where none is asked for.
pub(super) const MEDIAN: f64 = 50.0;

named! {
    /// What `time` draws.
    Shown {
        Samples = "samples",
        Intervals = "intervals",
    }
}

/// Values by the names that they are set for.
pub(super) type Values = BTreeMap<String, Vec<String>>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Range {
    /// From the data.
    Auto,
    /// These, in nanoseconds.
    Given(f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub sides: (u32, u32),
    /// Whether only the width was asked for.
    pub may_grow: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct Settings {
    /// Draw these figures: latency (t_lat), completion (t_comp), enqueue, dequeue, intended, enqueue-batch,
    /// dequeue-batch, jump, difference, loaded; in matrix half-round-trip, one-way, of a fabric excess or lost, of CPUs
    /// stream, of NUMA nodes latency or bandwidth
    #[arg(long, value_name = "LIST", action = ArgAction::Set, value_delimiter = ',', value_parser = trimmed)]
    pub metric: Vec<String>,

    /// Draw this percentile of each point, as in p99 or p99.9; in median, load and time also several [default: p50; load:
    /// p50,p99; time: p50,p99,p99.9]
    #[arg(long, value_name = "LIST", action = ArgAction::Set, value_delimiter = ',', value_parser = percentile)]
    pub percentile: Vec<f64>,

    /// Draw only points with these values of a setting, by its name in summary.csv, as in service=rc,uc; a comma in a
    /// value is \,; round=2 draws the samples of that round; may be repeated
    #[arg(long, value_name = "SETTING=LIST", value_parser = choice)]
    pub only: Vec<(String, Vec<String>)>,

    /// Draw samples, or percentiles by intervals of .hlog files [default: intervals where there are some; of jumps
    /// samples]
    #[arg(long, value_name = "WHAT", value_parser = one::<Shown>)]
    pub show: Option<Shown>,

    /// Set the range of the values: LO..HI, in ns or with unit, as in 0..50us; auto: from the data
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub range: Option<Range>,

    /// Divide the range into this many bins, 1 to 2000 [default: 100]
    #[arg(long, value_name = "N", value_parser = |text: &str| count::<usize>(text, 1..=2000))]
    pub bins: Option<usize>,

    /// Put this setting, by its name in summary.csv, on the first axis [default: median: the first that varies; surface:
    /// the two numeric settings with the most values]
    #[arg(long, value_name = "SETTING")]
    pub x: Option<String>,

    /// Put this setting on the second axis
    #[arg(long, value_name = "SETTING")]
    pub y: Option<String>,

    /// Set the scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE", value_parser = ["linear", "log"], hide_possible_values = true)]
    pub scale: Option<String>,

    /// Set the unit of .hgrm files that are named instead of a folder: ns, us, ms, s [default: ns]
    #[arg(long, value_name = "UNIT", value_parser = ["ns", "us", "µs", "ms", "s"], hide_possible_values = true)]
    pub unit: Option<String>,

    /// Draw published curves as well, from memory_curves.csv of Mess or a table of read_share_percent, bandwidth_mb_s
    /// and latency_ns
    #[arg(long, value_name = "CSV")]
    pub with: Option<PathBuf>,

    /// Set the size: WxH in 1/96 inch, 300 to 4000 each; one-column (3.5 inches wide) or two-columns (7.16 inches) of a
    /// paper [default: 900x560]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Looks")]
    pub size: Option<Size>,

    /// Set the title
    #[arg(long, value_name = "TEXT", help_heading = "Looks")]
    pub title: Option<String>,

    /// Set the subtitle, "" for none [default: the settings that all points share]
    #[arg(long, value_name = "TEXT", help_heading = "Looks")]
    pub subtitle: Option<String>,

    /// Set the label of the horizontal axis
    #[arg(long, alias = "x_label", value_name = "TEXT", help_heading = "Looks")]
    pub x_label: Option<String>,

    /// Set the label of the vertical axis
    #[arg(long, alias = "y_label", value_name = "TEXT", help_heading = "Looks")]
    pub y_label: Option<String>,

    /// Rename a line of the legend; may be repeated
    #[arg(long, alias = "labels", value_name = "OLD=NEW", value_parser = pair, help_heading = "Looks")]
    pub label: Vec<(String, String)>,

    /// Order the legend by names as they are shown, including commas; other lines follow; may be repeated
    #[arg(long, value_name = "LIST", help_heading = "Looks")]
    pub order: Vec<String>,

    /// Where they are from, beside the command line.
    #[arg(skip)]
    pub file: SettingsFile,

    /// What is left out, as these files cannot be read.
    #[arg(skip)]
    pub without: Vec<Arc<ReadError>>,
}

/// The file with settings of a figure.
#[derive(Debug, Clone, Default)]
pub(super) struct SettingsFile {
    pub path: Option<PathBuf>,
    /// The lines that it has other names for.
    pub label: Vec<String>,
    /// Whether it has the order of the lines.
    pub order: bool,
    /// Whether it speaks of more than this figure: it lies in the run of which a point is drawn, or the program chose
    /// what is in the figure.
    pub wider: bool,
}

impl Settings {
    /// Those of a figure as a command line alone.
    pub(crate) fn command(figure: Figure) -> Command {
        Settings::arguments(figure, Command::new(figure.name()).no_binary_name(true))
    }

    /// All of them: one that has no effect in the figure is refused with what would have, and the help hides it.
    fn arguments(figure: Figure, command: Command) -> Command {
        Settings::augment_args(command.args_override_self(true))
            .mut_args(|it| it.clone().hide(it.is_hide_set() || !goes_with(&it, figure)))
    }

    /// Refuses a setting that was given and has no effect in a figure, with those that have one.
    pub(crate) fn must_fit(given: &ArgMatches, figure: Figure) -> Result<(), String> {
        let command = Settings::command(figure);
        let is_strange = |it: &&Arg| {
            let by = given.value_source(it.get_id().as_str());
            by == Some(ValueSource::CommandLine) && !goes_with(it, figure)
        };
        let Some(strange) = command.get_arguments().find(is_strange) else {
            return Ok(());
        };
        let values = given.get_raw(strange.get_id().as_str());
        let values = values.into_iter().flatten().map(|it| it.to_string_lossy());
        let value = values.collect::<Vec<_>>().join(",");
        let figures = Figure::ALL.iter().copied();
        let figures = figures.filter(|figure| goes_with(strange, *figure));
        let figures: Vec<&str> = figures.map(Figure::name).collect();
        let here = command.get_arguments().filter(|it| goes_with(it, figure));
        let here: Vec<String> = here.map(option).collect();
        let (option, name) = (option(strange), figure.name());
        let (figures, here) = (figures.join(", "), here.join(", "));
        Err(format!(
            "{option} {value:?}: it has no effect in {name}, only in {figures}; {name} has {here}"
        ))
    }

    /// The values of each setting that are drawn.
    pub(crate) fn only(&self) -> Values {
        let mut only = Values::new();
        for (name, values) in &self.only {
            let all = only.entry(name.clone()).or_default();
            all.extend(values.iter().cloned());
        }
        only
    }

    pub(crate) fn range_given(&self) -> Option<(f64, f64)> {
        match self.range {
            Some(Range::Given(low, high)) => Some((low, high)),
            _ => None,
        }
    }

    /// As they are asked for.
    pub(crate) fn percentiles(&self) -> String {
        let all = self.percentile.iter();
        all.map(|percent| format!("p{percent}"))
            .collect::<Vec<_>>()
            .join(",")
    }

    pub(crate) fn sides(&self) -> (u32, u32) {
        self.size.map_or(DEFAULT_SIZE, |size| size.sides)
    }

    pub(crate) fn bins(&self) -> usize {
        self.bins.unwrap_or(100)
    }

    pub(crate) fn nanoseconds_per_unit(&self) -> f64 {
        let unit = self.unit.as_deref().and_then(unit_of);
        unit.unwrap_or(1.0)
    }

    /// What is drawn of each point, in words; of several, what they are of.
    pub(crate) fn percentile_of(&self, value: &str) -> String {
        match self.percentile[..] {
            [MEDIAN] => format!("median {value}"),
            [percent] => format!("p{percent} of {value}"),
            _ => value.to_owned(),
        }
    }

    /// The words around a figure, its axes by their usual labels.
    pub(crate) fn chart(
        &self,
        words: FigureTexts,
        x: impl Into<String>,
        y: impl Into<String>,
        looks: Vec<StyleNumber>,
    ) -> Chart {
        Chart {
            words,
            x: self.x_label.clone().unwrap_or_else(|| x.into()),
            y: self.y_label.clone().unwrap_or_else(|| y.into()),
            range: self.range_given(),
            scale: self.scale.as_deref().map(|scale| match scale {
                "log" => ScaleKind::Log,
                _ => ScaleKind::Linear,
            }),
            looks,
        }
    }
}

/// Whether a setting has an effect in a figure.
pub(super) fn goes_with(setting: &Arg, figure: Figure) -> bool {
    match setting.get_id().as_str() {
        "percentile" => matches!(figure, Median | Surface | Load | Time),
        "show" => figure == Time,
        // It draws all pairs.
        "only" => figure != Matrix,
        "bins" => figure == Histogram,
        "x" => matches!(figure, Median | Surface),
        "y" => figure == Surface,
        // The bins of a histogram are equally wide, and shares are compared by height.
        "scale" => figure != Histogram,
        "unit" => matches!(figure, Ecdf | Percentiles),
        "with" => figure == Curves,
        // A surface and a matrix have a scale of colours.
        "label" | "order" => !matches!(figure, Surface | Matrix),
        _ => true,
    }
}

/// As it is written on the command line.
pub(super) fn option(setting: &Arg) -> String {
    format!("--{}", setting.get_long().unwrap_or_default())
}

/// Why the value of an option is refused.
pub(super) fn refused(option: &str, value: &str, why: &str) -> UsageError {
    UsageError(format!("--{option} {value:?}: {why}"))
}

fn trimmed(text: &str) -> Result<String, String> {
    Ok(text.trim().to_owned())
}

fn percentile(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(Kind::Percentile(percent)) => Ok(percent),
        _ => Err("one above p0 and below p100 is needed, such as p99.9".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a name and a value with = between them are needed")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn choice(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = pair(text)?;
    let mut parts = vec![String::new()];
    let mut letters = values.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("there is a first");
        match letter {
            '\\' if letters.peek() == Some(&',') => part.extend(letters.next()),
            ',' => parts.push(String::new()),
            other => part.push(other),
        }
    }
    let values = parts.iter().map(|part| part.trim().to_owned());
    Ok((name, values.collect()))
}

fn size(text: &str) -> Result<Size, String> {
    let presets = [("one-column", ONE_COLUMN), ("two-columns", TWO_COLUMNS)];
    if let Some((_, sides)) = presets.iter().find(|(name, _)| *name == text) {
        return Ok(Size {
            sides: *sides,
            may_grow: true,
        });
    }
    let side = |text: &str| text.trim().parse().ok().filter(|side| SIDES.contains(side));
    let sides = text.split_once('x');
    let sides = sides.and_then(|(width, height)| Some((side(width)?, side(height)?)));
    let sides = sides.ok_or_else(|| {
        let (least, most) = (SIDES.start(), SIDES.end());
        format!("one-column, two-columns or WxH is needed, {least} to {most} each, such as 900x560")
    })?;
    Ok(Size {
        sides,
        may_grow: false,
    })
}

fn unit_of(text: &str) -> Option<f64> {
    Some(match text {
        "" | "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    })
}

fn nanoseconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text
        .find(|c: char| c.is_alphabetic() || c == 'µ')
        .unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let value = number * unit_of(&text[end..])?;
    value.is_finite().then_some(value)
}

fn range(text: &str) -> Result<Range, String> {
    let given = || {
        let (low, high) = text.split_once("..")?;
        let (low, high) = (nanoseconds(low)?, nanoseconds(high)?);
        (low < high).then_some(Range::Given(low, high))
    };
    let range = if text == "auto" {
        Some(Range::Auto)
    } else {
        given()
    };
    range.ok_or_else(|| {
        "auto or LO..HI is needed, in ns or with unit, the second above the first, such as 0..50us"
            .to_owned()
    })
}

/// The options that all figures have.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Common {
    /// Draw this folder of a run, or of one of its points; several are drawn into one figure. ecdf and percentiles also
    /// take .hgrm files
    #[arg(value_name = "DIR", required = true)]
    pub from: Vec<PathBuf>,

    /// Write the figure to this file in the format of its ending: .svg, .pdf or .png (192 pixels to the inch)
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Take settings from FILE, in TOML with the options' names, instead of plot.toml in the first folder. The command
    /// line overrides them
    #[arg(long, value_name = "FILE", help_heading = "Looks", display_order = 900)]
    pub config: Option<PathBuf>,

    /// Leave out the line below the title: the settings that all points share, and what bars and rounds are
    #[arg(long, help_heading = "Looks", conflicts_with = "subtitle")]
    pub no_subtitle: bool,

    /// Print what is drawn as JSON
    #[arg(long, display_order = 901)]
    pub json: bool,

    /// Do not print the path of the figure
    #[arg(long, display_order = 902)]
    pub quiet: bool,
}

/// Arguments of `hcabench plot`: a subcommand for each figure.
#[derive(Debug, Clone)]
pub(crate) struct PlotArguments {
    pub(super) figure: Figure,
    pub(super) common: Common,
    /// The settings among them.
    pub(super) given: ArgMatches,
}

impl Args for PlotArguments {
    fn augment_args(command: Command) -> Command {
        let figures = Figure::ALL.iter().map(|&figure| {
            let command = Common::augment_args(Command::new(figure.name()));
            Settings::arguments(figure, command).about(figure.about())
        });
        command
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(figures)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PlotArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().expect("clap asks for one");
        let mut figures = Figure::ALL.iter().copied();
        let figure = figures.find(|figure| figure.name() == name);
        Ok(PlotArguments {
            figure: figure.expect("a subcommand for each figure, and no other"),
            common: Common::from_arg_matches(matches)?,
            given: matches.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
