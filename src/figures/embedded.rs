//! A figure for another command, as the user would have had it drawn.

use std::path::Path;

use super::config::settings;
pub(crate) use super::made::Asked;
use super::made::TooMuch;
use super::options::{Common, Figure, PlotArguments, Settings, Values};
pub(crate) use super::sources::is_chosen;
use crate::bench::presentation::ReportFigure;
use crate::plot::svg;

/// A figure that is asked for, with its settings.
#[derive(Debug, Clone)]
pub(crate) struct Embedded {
    figure: Figure,
    options: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct NotDrawn {
    pub reason: String,
    /// Where there is more in it than can be told apart, and in parts it can: the settings to part it by, or none for
    /// any.
    pub by: Option<Vec<String>>,
}

impl From<&ReportFigure> for Embedded {
    fn from(of: &ReportFigure) -> Self {
        let mut figures = Figure::ALL.iter().copied();
        let figure = figures.find(|figure| figure.name() == of.figure);
        let options = of.setting.iter();
        Embedded {
            figure: figure.expect("a report has figures that there are"),
            options: options
                .map(|(option, value)| format!("--{option}={value}"))
                .collect(),
        }
    }
}

impl Embedded {
    /// The same of the points alone that have this value of a setting.
    pub(crate) fn only(mut self, name: &str, value: &str) -> Self {
        self.options.push(format!("--only={name}={value}"));
        self
    }

    /// What a file leaves of the points in a folder: settings with the values that it chooses. A file with a
    /// mistake chooses nothing: drawing the figure tells of it.
    pub(crate) fn chosen(&self, from: &Path) -> Values {
        let settings = settings(&self.arguments(from), true).ok();
        settings.map_or_else(Values::new, |settings| settings.only())
    }

    /// An SVG of the results in a folder, whose file of settings counts, too, and the names that it has for lines.
    pub(crate) fn draw(&self, from: &Path) -> Result<(String, Vec<Asked>), NotDrawn> {
        let drawn = || {
            let made = self.arguments(from).made(true)?;
            Ok((svg(&made.drawing)?, made.told.asked))
        };
        drawn().map_err(|error: anyhow::Error| NotDrawn {
            reason: format!("{error:#}"),
            by: error.downcast::<TooMuch>().ok().map(|much| much.by),
        })
    }

    fn arguments(&self, from: &Path) -> PlotArguments {
        PlotArguments {
            figure: self.figure,
            common: Common {
                from: vec![from.to_owned()],
                ..Common::default()
            },
            given: Settings::command(self.figure).get_matches_from(&self.options),
        }
    }
}
