//! A figure for another command, as the user would have had it drawn.

use std::path::Path;

use super::config::settings;
pub(crate) use super::made::Asked;
use super::made::TooMuch;
use super::options::{Common, Figure, PlotArguments, Setting, Values};
pub(crate) use super::sources::is_chosen;
use crate::arguments::UsageError;
use crate::bench::presentation::ReportFigure;
use crate::plot::svg;

/// Two of these are beside each other on a page.
const SIZE: &str = "620x420";
/// The same on the screen of a telephone.
const NARROW: &str = "360x420";

/// A figure that is asked for, with its settings.
#[derive(Debug, Clone)]
pub(crate) struct Embedded {
    figure: Figure,
    settings: Vec<(&'static Setting, Vec<String>)>,
}

#[derive(Debug)]
pub(crate) struct NotDrawn {
    pub reason: String,
    /// Where there is more in it than can be told apart, and in parts it can: the settings to part it by, or none for
    /// any.
    pub by: Option<Vec<String>>,
}

impl TryFrom<&ReportFigure> for Embedded {
    type Error = UsageError;

    fn try_from(of: &ReportFigure) -> Result<Self, UsageError> {
        let mut figures = Figure::ALL.into_iter();
        let Some(figure) = figures.find(|figure| figure.name() == of.figure) else {
            let names = Figure::ALL.map(Figure::name).join(", ");
            let name = of.figure;
            return Err(UsageError(format!("no figure {name:?}; there are {names}")));
        };
        let setting = |&(option, value): &(&str, &str)| match Setting::named(option) {
            Some(setting) => Ok((setting, vec![value.to_owned()])),
            None => Err(UsageError(format!(
                "figure {:?}: no option --{option}",
                of.figure
            ))),
        };
        Ok(Embedded {
            figure,
            settings: of.setting.iter().map(setting).collect::<Result<_, _>>()?,
        })
    }
}

impl Embedded {
    /// The same of the points alone that have this value of a setting.
    pub(crate) fn only(mut self, name: &str, value: &str) -> Self {
        let choice = format!("{name}={value}");
        match self.settings.iter_mut().find(|(it, _)| it.id == "only") {
            Some((_, choices)) => choices.push(choice),
            None => self.settings.push((Setting::of("only"), vec![choice])),
        }
        self
    }

    /// As it is on a page: of this size, and with this subtitle, if any; unless `plot.json` has others.
    fn on_a_page(&self, from: &Path, size: &str, subtitle: Option<&str>) -> Self {
        let mut embedded = self.clone();
        for (id, text) in [("size", Some(size)), ("subtitle", subtitle)] {
            let text = text.filter(|_| !self.is_given(from, id));
            let setting = text.map(|text| (Setting::of(id), vec![text.to_owned()]));
            embedded.settings.extend(setting);
        }
        embedded
    }

    /// Whether `plot.json` has a setting.
    fn is_given(&self, from: &Path, id: &'static str) -> bool {
        let settings = settings(&self.arguments(from), true);
        settings.is_ok_and(|settings| settings.given.text(id).is_some())
    }

    /// What `plot.json` leaves of the points in a folder: settings with the values that it chooses. A file with a
    /// mistake chooses nothing: drawing the figure tells of it.
    pub(crate) fn chosen(&self, from: &Path) -> Values {
        let settings = settings(&self.arguments(from), true).ok();
        settings.map_or_else(Values::new, |settings| settings.given.names("only"))
    }

    /// An SVG of the results in a folder, whose `plot.json` counts, too, and the names that this file has for lines.
    pub(crate) fn draw(
        &self,
        from: &Path,
        subtitle: Option<&str>,
    ) -> Result<(String, Vec<Asked>), NotDrawn> {
        let drawn = self.drawn(from, SIZE, subtitle);
        drawn.map_err(|error| NotDrawn {
            reason: format!("{error:#}"),
            by: error.downcast::<TooMuch>().ok().map(|much| much.by),
        })
    }

    /// The same for a narrow screen; none where it cannot be drawn so, or `plot.json` has a size.
    pub(crate) fn narrow(&self, from: &Path, subtitle: Option<&str>) -> Option<String> {
        if self.is_given(from, "size") {
            return None;
        }
        let drawn = self.drawn(from, NARROW, subtitle).ok();
        drawn.map(|(svg, _)| svg)
    }

    fn drawn(
        &self,
        from: &Path,
        size: &str,
        subtitle: Option<&str>,
    ) -> anyhow::Result<(String, Vec<Asked>)> {
        let page = self.on_a_page(from, size, subtitle);
        let made = page.arguments(from).made(true)?;
        Ok((svg(&made.drawing)?, made.told.asked))
    }

    fn arguments(&self, from: &Path) -> PlotArguments {
        PlotArguments {
            figure: self.figure,
            common: Common {
                from: vec![from.to_owned()],
                ..Common::default()
            },
            words: self.settings.clone(),
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
