//! A figure for another command, as the user would have had it drawn.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::PlotArguments;
pub(in crate::cli) use super::made::Asked;
use super::made::TooMuch;
use super::options::Values;
use super::sources::same;
use crate::plot::svg;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    plot: PlotArguments,
}

/// Why a figure is not there.
#[derive(Debug)]
pub(in crate::cli) enum NotDrawn {
    /// There is more in it than can be told apart, and in parts it can; by these settings, or by any if there are none.
    TooMuch(String, Vec<String>),
    /// Anything else.
    Other(String),
}

/// A figure, and the names that `plot.json` has for its lines.
#[derive(Debug)]
pub(in crate::cli) struct Drawn {
    pub svg: String,
    pub asked: Vec<Asked>,
}

/// What `plot.json` leaves of the points: settings with the values that it chooses.
#[derive(Debug, Default)]
pub(in crate::cli) struct Chosen(Values);

impl Chosen {
    /// By a folder's file, for a figure. A file with a mistake chooses nothing: drawing the figure tells of it.
    pub fn of(words: &[String], from: &Path) -> Self {
        let line = line(words, from).ok();
        let settings = line.and_then(|line| line.plot.kind.settings(true).ok());
        Chosen(settings.map_or_else(Values::new, |settings| settings.only))
    }

    /// Whether a point is among them, by what it has of a setting.
    pub fn holds<'a>(&self, setting: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(name, values)| {
            setting(name).is_some_and(|text| values.iter().any(|value| same(value, text)))
        })
    }
}

/// An SVG of the results in a folder, by the words of a command line such as `histogram --range auto`; the folder's
/// `plot.json` counts, too.
pub(in crate::cli) fn figure(words: &[String], from: &Path) -> Result<Drawn, NotDrawn> {
    let other = |error: &dyn std::fmt::Display| NotDrawn::Other(error.to_string());
    let line = line(words, from).map_err(|error| other(&error))?;
    let made = (line.plot.kind.made(true)).map_err(|error| match error.downcast::<TooMuch>() {
        Ok(much) => NotDrawn::TooMuch(much.to_string(), much.by),
        Err(error) => NotDrawn::Other(format!("{error:#}")),
    })?;
    Ok(Drawn {
        svg: svg(&made.drawing).map_err(|error| other(&error))?,
        asked: made.asked,
    })
}

fn line(words: &[String], from: &Path) -> Result<Line, clap::Error> {
    let line = [OsString::from("plot")]
        .into_iter()
        .chain(words.iter().map(OsString::from))
        .chain([
            OsString::from("--out"),
            OsString::from("figure.svg"),
            OsString::from("--"),
            from.as_os_str().to_owned(),
        ]);
    Line::try_parse_from(line)
}
