//! The settings of figures, and which of them goes with which figure: the one table that the help, the options and
//! `plot.json` follow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;

pub(super) use super::figure::Figure;
use super::figure::Figure::{Curves, Ecdf, Histogram, Load, Matrix, Median, Percentiles, Surface};
use crate::arguments::UsageError;

/// What a setting is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A text or a number.
    One,
    /// Several, with commas between them.
    List,
    /// Several, each as it is: a label may hold commas.
    Several,
    /// Names with several values each: NAME=LIST.
    Choices,
    /// Names with a text each: NAME=TEXT.
    Texts,
}

#[derive(Debug)]
pub(super) struct Setting {
    /// The option without dashes in front.
    pub id: &'static str,
    /// In `plot.json`.
    pub key: &'static str,
    /// The figures in which it has an effect, but for those of `not_in`.
    only_in: &'static [Figure],
    not_in: &'static [Figure],
    form: Form,
    /// What stands for the value in the help.
    value: &'static str,
    help: &'static str,
    /// Whether it changes looks only.
    looks: bool,
}

const fn setting(id: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting {
        id,
        key: id,
        only_in: &Figure::ALL,
        not_in: &[],
        form: Form::One,
        value,
        help,
        looks: false,
    }
}

impl Setting {
    const fn only_in(mut self, figures: &'static [Figure]) -> Self {
        self.only_in = figures;
        self
    }

    const fn not_in(mut self, figures: &'static [Figure]) -> Self {
        self.not_in = figures;
        self
    }

    const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    const fn looks(mut self) -> Self {
        self.looks = true;
        self
    }

    const fn key(mut self, key: &'static str) -> Self {
        self.key = key;
        self
    }
}

/// A surface and a matrix have a scale of colours.
const WITHOUT_LEGEND: [Figure; 2] = [Surface, Matrix];

pub(super) static SETTINGS: [Setting; 17] = [
    setting(
        "metric",
        "LIST",
        "Draw these figures: latency (t_lat), completion (t_comp), enqueue, dequeue, intended, jump, difference, \
         loaded; in matrix half-round-trip, excess, one-way or lost",
    )
    .form(Form::List),
    setting(
        "percentile",
        "LIST",
        "Draw this percentile of each point, as in p99 or p99.9; in median and load also several [default: p50; load: \
         p50,p99]",
    )
    .only_in(&[Median, Surface, Load])
    .form(Form::List),
    setting(
        "only",
        "SETTING=LIST",
        "Draw only points with these values of a setting, by its name in summary.csv, as in service=rc,uc; round=2 draws \
         the samples of that round; may be repeated",
    )
    // A fabric has pairs, and no points.
    .not_in(&[Matrix])
    .form(Form::Choices),
    setting(
        "range",
        "RANGE",
        "Set the range of the values: LO..HI, in ns or with unit, as in 0..50us; auto: from the data",
    ),
    setting("bins", "N", "Divide the range into this many bins, 1 to 2000 [default: 100]")
        .only_in(&[Histogram]),
    setting(
        "x",
        "SETTING",
        "Put this setting, by its name in summary.csv, on the first axis [default: median: the first that varies; \
         surface: the two numeric settings with the most values]",
    )
    .only_in(&[Median, Surface]),
    setting("y", "SETTING", "Put this setting on the second axis")
        .only_in(&[Surface]),
    setting(
        "scale",
        "SCALE",
        "Set the scale of the values: linear, log [default: the one that fits]",
    )
    // The bins of a histogram are equally wide, and shares are compared by height.
    .not_in(&[Histogram]),
    setting(
        "unit",
        "UNIT",
        "Set the unit of .hgrm files that are named instead of a folder: ns, us, ms, s [default: ns]",
    )
    .only_in(&[Ecdf, Percentiles]),
    setting(
        "with",
        "CSV",
        "Draw published curves as well, from memory_curves.csv of Mess or a table of read_share_percent, \
         bandwidth_mb_s and latency_ns",
    )
    .only_in(&[Curves]),
    setting(
        "size",
        "SIZE",
        "Set the size: WxH in 1/96 inch, 300 to 4000 each; one-column (3.5 inches wide) or two-columns (7.16 inches) of a paper \
         [default: 900x560]",
    )
    .looks(),
    setting("title", "TEXT", "Set the title")
        .looks(),
    setting(
        "subtitle",
        "TEXT",
        "Set the subtitle, \"\" for none [default: the settings that all points share]",
    )
    .looks(),
    setting("x-label", "TEXT", "Set the label of the horizontal axis")
        .key("x_label")
        .looks(),
    setting("y-label", "TEXT", "Set the label of the vertical axis")
        .key("y_label")
        .looks(),
    setting(
        "label",
        "OLD=NEW",
        "Rename a line of the legend; may be repeated",
    )
    .not_in(&WITHOUT_LEGEND)
    .form(Form::Texts)
    .key("labels")
    .looks(),
    setting(
        "order",
        "LIST",
        "Order the legend by names as they are shown, including commas; other lines follow; may be repeated",
    )
    .not_in(&WITHOUT_LEGEND)
    .form(Form::Several)
    .looks(),
];

/// Values by the names that they are set for.
pub(super) type Values = BTreeMap<String, Vec<String>>;

impl Setting {
    pub(crate) fn of(id: &str) -> &'static Setting {
        let mut all = SETTINGS.iter();
        all.find(|setting| setting.id == id)
            .expect("a setting of the table")
    }

    /// As it is written on the command line.
    pub(crate) fn option(&self) -> String {
        format!("--{}", self.id)
    }

    /// As it is written in a file.
    pub(crate) fn quoted(&self) -> String {
        format!("{:?}", self.key)
    }

    pub(crate) fn goes_with(&self, figure: Figure) -> bool {
        self.only_in.contains(&figure) && !self.not_in.contains(&figure)
    }

    /// The figures in which it has an effect.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> + '_ {
        let all = Figure::ALL.into_iter();
        all.filter(|figure| self.goes_with(*figure))
    }

    fn argument(&self) -> Arg {
        let argument = Arg::new(self.id)
            .long(self.id)
            .value_name(self.value)
            .help(self.help)
            .action(match self.form {
                Form::One | Form::List => ArgAction::Set,
                _ => ArgAction::Append,
            });
        match self.looks {
            true => argument.help_heading("Looks"),
            false => argument,
        }
    }

    /// From the words on a command line: values by name, where it has names, else under an empty one.
    pub(crate) fn of_words(&self, words: &[String]) -> Result<Values, UsageError> {
        let listed = |text: &str| -> Vec<String> {
            text.split(',').map(|part| part.trim().to_owned()).collect()
        };
        let mut values = Values::new();
        for word in words {
            let (name, texts) = match (self.form, word.split_once('=')) {
                (Form::One | Form::Several, _) => ("", vec![word.clone()]),
                (Form::List, _) => ("", listed(word)),
                (Form::Choices, Some((name, text))) if !name.is_empty() => (name, listed(text)),
                (Form::Texts, Some((name, text))) if !name.is_empty() => {
                    values.remove(name);
                    (name, vec![text.to_owned()])
                }
                _ => {
                    let needed = "a name and a value with = between them are needed";
                    let option = self.option();
                    return Err(UsageError(format!("{option} {word:?}: {needed}")));
                }
            };
            values.entry(name.to_owned()).or_default().extend(texts);
        }
        Ok(values)
    }

    /// The same from a file; what is wrong with it, otherwise.
    pub(crate) fn of_json(&self, value: &Value) -> Result<Values, String> {
        let wrong = |value: &Value| format!("{:?}: invalid value: {value}", self.key);
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(wrong(other)),
        };
        let texts = |value: &Value| match value {
            Value::Array(values) if !matches!(self.form, Form::One | Form::Texts) => {
                values.iter().map(text).collect()
            }
            one => text(one).map(|text| vec![text]),
        };
        match (self.form, value) {
            (Form::Choices | Form::Texts, Value::Object(names)) => names
                .iter()
                .map(|(name, value)| Ok((name.clone(), texts(value)?)))
                .collect(),
            (Form::Choices | Form::Texts, other) => Err(wrong(other)),
            (_, value) => Ok([(String::new(), texts(value)?)].into()),
        }
    }
}

/// What is set, by setting and name, to what, and whether a file says so.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Given(BTreeMap<(&'static str, String), (Vec<String>, bool)>);

impl Given {
    pub(crate) fn add(&mut self, setting: &'static Setting, values: Values, of_file: bool) {
        let values = values.into_iter();
        let values = values.map(|(name, texts)| ((setting.id, name), (texts, of_file)));
        self.0.extend(values);
    }

    /// The values of a setting without names.
    pub(crate) fn texts(&self, id: &'static str) -> &[String] {
        let found = self.0.get(&(id, String::new()));
        found.map_or(&[], |(texts, _)| texts)
    }

    pub(crate) fn text(&self, id: &'static str) -> Option<&str> {
        self.texts(id).last().map(String::as_str)
    }

    /// The values of a setting with names.
    pub(crate) fn names(&self, id: &str) -> Values {
        let all = self.0.iter().filter(|((its, _), _)| *its == id);
        all.map(|((_, name), (texts, _))| (name.clone(), texts.clone()))
            .collect()
    }

    /// Whether a file says what a setting is, for a name, or without one.
    pub(crate) fn is_of_file(&self, id: &'static str, name: &str) -> bool {
        let found = self.0.get(&(id, name.to_owned()));
        found.is_some_and(|(_, of_file)| *of_file)
    }

    /// Refuses a setting that has no effect in a figure, with those that have one, by the names that `of` makes.
    pub(crate) fn must_fit(
        &self,
        figure: Figure,
        of: impl Fn(&Setting) -> String,
    ) -> Result<(), (&'static Setting, String)> {
        let mut given = self.0.keys().map(|(id, _)| Setting::of(id));
        let Some(setting) = given.find(|setting| !setting.goes_with(figure)) else {
            return Ok(());
        };
        let values = self.names(setting.id).into_iter();
        let values = values.map(|(name, texts)| match (name.as_str(), texts.join(",")) {
            ("", texts) => texts,
            (name, texts) => format!("{name}={texts}"),
        });
        let value = values.collect::<Vec<_>>().join(" ");
        let figures: Vec<&str> = setting.figures().map(Figure::name).collect();
        let here = SETTINGS.iter().filter(|other| other.goes_with(figure));
        let here: Vec<String> = here.map(&of).collect();
        let (option, name) = (of(setting), figure.name());
        let (figures, here) = (figures.join(", "), here.join(", "));
        let refusal = format!(
            "{option} {value:?}: it has no effect in {name}, only in {figures}; {name} has {here}"
        );
        Err((setting, refusal))
    }

    /// These, and the others where these say nothing.
    pub(crate) fn over(self, mut below: Given) -> Given {
        below.0.extend(self.0);
        below
    }
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

    /// Settings of the figure in JSON, instead of plot.json in the first folder
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

/// Arguments of `hcabench plot`: a subcommand for each figure. All know all options, so that one that has no effect is
/// refused with what would have; the help of each shows its own.
#[derive(Debug, Clone)]
pub(crate) struct PlotArguments {
    pub(super) figure: Figure,
    pub(super) common: Common,
    /// The words of each setting.
    pub(super) words: Vec<(&'static Setting, Vec<String>)>,
}

impl Args for PlotArguments {
    fn augment_args(command: Command) -> Command {
        let figures = Figure::ALL.map(|figure| {
            let settings = SETTINGS
                .iter()
                .map(|setting| setting.argument().hide(!setting.goes_with(figure)));
            Common::augment_args(Command::new(figure.name()))
                .about(figure.described().1)
                .args(settings)
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
        let mut figures = Figure::ALL.into_iter();
        let figure = figures.find(|figure| figure.name() == name);
        let given = |setting: &'static Setting| {
            let words = matches.get_many::<String>(setting.id)?;
            Some((setting, words.cloned().collect()))
        };
        Ok(PlotArguments {
            figure: figure.expect("a subcommand for each figure, and no other"),
            common: Common::from_arg_matches(matches)?,
            words: SETTINGS.iter().filter_map(given).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
