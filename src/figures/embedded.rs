//! A figure for another command, as the user would have had it drawn.

use std::path::Path;
use std::sync::Arc;

use super::config::settings;
pub(crate) use super::made::Asked;
use super::made::{NothingLeft, TooMuch};
use super::options::{Common, Figure, PlotArguments, Settings, Values};
pub(crate) use super::sources::is_chosen;
use crate::arguments::UsageError;
use crate::bench::presentation::ReportFigure;
use crate::plot::svg;
use crate::results::read::ReadError;

/// Two of these are beside each other on a page.
const SIZE: &str = "620x420";
/// The same on the screen of a telephone.
const NARROW: &str = "360x420";

/// A figure that is asked for, with its settings.
#[derive(Debug, Clone)]
pub(crate) struct Embedded {
    figure: Figure,
    options: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Embedding {
    pub svg: String,
    /// The names that a file of settings has for lines.
    pub asked: Vec<Asked>,
    /// Files that are left out, as they cannot be read.
    pub without: Vec<Arc<ReadError>>,
}

#[derive(Debug)]
pub(crate) struct NotDrawn {
    pub reason: String,
    /// Where there is more in it than can be told apart, and in parts it can: the settings to part it by, or none for
    /// any.
    pub by: Option<Vec<String>>,
    /// Files that cannot be read.
    pub without: Vec<Arc<ReadError>>,
}

impl TryFrom<&ReportFigure> for Embedded {
    type Error = UsageError;

    fn try_from(of: &ReportFigure) -> Result<Self, UsageError> {
        let mut figures = Figure::ALL.iter().copied();
        let Some(figure) = figures.find(|figure| figure.name() == of.figure) else {
            let names: Vec<&str> = Figure::ALL.iter().map(|it| it.name()).collect();
            let (name, names) = (of.figure, names.join(", "));
            return Err(UsageError(format!("no figure {name:?}; there are {names}")));
        };
        let options = of.setting.iter();
        let options = options.map(|(option, value)| format!("--{option}={value}"));
        let options: Vec<String> = options.collect();
        let command = Settings::command(figure);
        if command.try_get_matches_from(&options).is_err() {
            let (name, options) = (of.figure, options.join(" "));
            return Err(UsageError(format!("figure {name:?}: no option {options}")));
        }
        Ok(Embedded { figure, options })
    }
}

impl Embedded {
    /// The same of the points alone that have this value of a setting.
    pub(crate) fn only(mut self, name: &str, value: &str) -> Self {
        self.options.push(format!("--only={name}={value}"));
        self
    }

    /// As it is on a page: of this size, and with this subtitle, if any; unless a file of settings has others.
    fn on_a_page(&self, from: &Path, size: &str, subtitle: Option<&str>) -> Self {
        let mut embedded = self.clone();
        let of_file = self.of_file(from);
        let is_given = |has: fn(&Settings) -> bool| of_file.as_ref().is_some_and(has);
        if !is_given(|file| file.size.is_some()) {
            embedded.options.push(format!("--size={size}"));
        }
        let subtitle = subtitle.filter(|_| !is_given(|file| file.subtitle.is_some()));
        let subtitle = subtitle.map(|text| format!("--subtitle={text}"));
        embedded.options.extend(subtitle);
        embedded
    }

    /// What a file leaves of the points in a folder: settings with the values that it chooses. A file with a
    /// mistake chooses nothing: drawing the figure tells of it.
    pub(crate) fn chosen(&self, from: &Path) -> Values {
        let settings = self.of_file(from);
        settings.map_or_else(Values::new, |settings| settings.only())
    }

    /// A figure of the results in a folder, whose file of settings counts, too.
    pub(crate) fn draw(&self, from: &Path, subtitle: Option<&str>) -> Result<Embedding, NotDrawn> {
        let drawn = self.drawn(from, SIZE, subtitle);
        drawn.map_err(|error| NotDrawn {
            reason: format!("{error:#}"),
            without: match error.downcast_ref::<NothingLeft>() {
                Some(left) => left.0.clone(),
                None => Vec::new(),
            },
            by: error.downcast::<TooMuch>().ok().map(|much| much.by),
        })
    }

    /// The same for a narrow screen; none where it cannot be drawn so, or a file of settings has a size.
    pub(crate) fn narrow(&self, from: &Path, subtitle: Option<&str>) -> Option<String> {
        if self.of_file(from).is_some_and(|file| file.size.is_some()) {
            return None;
        }
        let drawn = self.drawn(from, NARROW, subtitle).ok();
        drawn.map(|drawn| drawn.svg)
    }

    fn drawn(&self, from: &Path, size: &str, subtitle: Option<&str>) -> anyhow::Result<Embedding> {
        let page = self.on_a_page(from, size, subtitle);
        let made = page.arguments(from).made(true)?;
        Ok(Embedding {
            svg: svg(&made.drawing)?,
            asked: made.told.asked,
            without: made.without,
        })
    }

    /// Its settings with those of a file; `None` where that has a mistake.
    fn of_file(&self, from: &Path) -> Option<Settings> {
        settings(&self.arguments(from), true).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::PRESENTATIONS;
    use crate::report::FABRIC_FIGURES;
    use crate::testing::Has as _;

    #[test]
    fn each_figure_of_a_report_is_one_with_settings_that_it_has() {
        let folder = tempfile::tempdir().unwrap();
        for presentation in PRESENTATIONS {
            assert!(!presentation.figures.is_empty(), "{}", presentation.name);
            for of in presentation.figures {
                let found = settings(
                    &Embedded::try_from(of).unwrap().arguments(folder.path()),
                    true,
                );
                assert!(found.is_ok(), "{}: {found:?}", of.command());
                let metrics = presentation.metrics.iter();
                let mut metrics = metrics.flat_map(|metric| [metric.name, metric.alias]);
                if let Some(("metric", name)) = of.setting {
                    assert!(metrics.any(|it| it == name), "{}", of.command());
                }
            }
        }
        for of in &FABRIC_FIGURES {
            let found = settings(
                &Embedded::try_from(of).unwrap().arguments(folder.path()),
                true,
            );
            assert!(found.is_ok(), "{}: {found:?}", of.command());
        }
    }

    #[test]
    fn a_figure_or_an_option_that_is_unknown_is_named() {
        let error = |of: ReportFigure| Embedded::try_from(&of).unwrap_err().to_string();
        let pie = ReportFigure::new("pie", "Shares", "");
        error(pie).has(&["no figure \"pie\"; there are ", "histogram", "matrix"]);
        let colour = ReportFigure::new("ecdf", "Latency", "").with("colour", "red");
        error(colour).has(&["figure \"ecdf\": no option --colour"]);
    }
}
