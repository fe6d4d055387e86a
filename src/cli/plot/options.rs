//! Which setting goes with which figure: the one table that the help, the options and `plot.json` follow.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::Options;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Histogram,
    Median,
    Surface,
    Ecdf,
    Percentiles,
    Time,
}

use Figure::{Ecdf, Histogram, Median, Percentiles, Surface, Time};

impl Figure {
    /// In the order of their numbers.
    pub const ALL: [Figure; 6] = [Histogram, Median, Surface, Ecdf, Percentiles, Time];

    /// On the command line and in `plot.json`.
    pub fn name(self) -> &'static str {
        match self {
            Histogram => "histogram",
            Median => "median",
            Surface => "surface",
            Ecdf => "ecdf",
            Percentiles => "percentiles",
            Time => "time",
        }
    }
}

/// A setting of figures.
#[derive(Debug)]
pub(super) struct Setting {
    /// The option without dashes in front, `_` for the others.
    pub id: &'static str,
    /// In `plot.json`.
    pub key: &'static str,
    /// The figures in which it has an effect.
    pub figures: &'static [Figure],
}

const fn setting(id: &'static str, figures: &'static [Figure]) -> Setting {
    Setting {
        id,
        key: id,
        figures,
    }
}

/// A surface has no legend.
const WITH_LEGEND: [Figure; 5] = [Histogram, Median, Ecdf, Percentiles, Time];
/// The bins of a histogram are equally wide, and shares are compared by height.
const WITH_SCALE: [Figure; 5] = [Median, Surface, Ecdf, Percentiles, Time];

/// All settings.
pub(super) const SETTINGS: [Setting; 14] = [
    setting("metric", &Figure::ALL),
    setting("only", &Figure::ALL),
    setting("range", &Figure::ALL),
    setting("bins", &[Histogram]),
    setting("x", &[Median, Surface]),
    setting("y", &[Surface]),
    setting("scale", &WITH_SCALE),
    setting("unit", &[Ecdf, Percentiles]),
    setting("size", &Figure::ALL),
    setting("title", &Figure::ALL),
    setting("x_label", &Figure::ALL),
    setting("y_label", &Figure::ALL),
    Setting {
        id: "label",
        key: "labels",
        figures: &WITH_LEGEND,
    },
    setting("order", &WITH_LEGEND),
];

impl Setting {
    /// The one of this id.
    pub fn of(id: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.id == id)
    }

    /// As it is written on the command line.
    pub fn option(&self) -> String {
        format!("--{}", self.id.replace('_', "-"))
    }

    /// Whether it changes this figure.
    pub fn goes_with(&self, figure: Figure) -> bool {
        self.figures.contains(&figure)
    }

    /// Why it is refused in a figure that it does not go with, and what is allowed there, by the names that `of` makes.
    pub fn refusal(&self, figure: Figure, of: impl Fn(&Setting) -> String) -> String {
        let figures: Vec<&str> = self.figures.iter().map(|figure| figure.name()).collect();
        let here = SETTINGS.iter().filter(|other| other.goes_with(figure));
        let here: Vec<String> = here.map(of).collect();
        let name = figure.name();
        format!(
            "it has no effect in {name}, only in {}; {name} has {}",
            figures.join(", "),
            here.join(", ")
        )
    }
}

/// The options of the figure of this number. All figures know all options, so that one that has no effect is refused with
/// what would have; the help of each shows its own.
#[derive(Debug, Clone)]
pub(super) struct Of<const FIGURE: usize>(pub Options);

impl<const FIGURE: usize> Args for Of<FIGURE> {
    fn augment_args(command: Command) -> Command {
        Options::augment_args(command).mut_args(|argument| {
            let foreign = Setting::of(argument.get_id().as_str())
                .is_some_and(|setting| !setting.goes_with(Figure::ALL[FIGURE]));
            argument.hide(foreign)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const FIGURE: usize> FromArgMatches for Of<FIGURE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Options::from_arg_matches(matches).map(Of)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
