//! A figure for another command, as the user would have had it drawn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches};

use super::PlotArguments;
use super::config::settings;
pub(crate) use super::made::Asked;
use super::made::TooMuch;
use super::options::Values;
pub(crate) use super::sources::is_chosen;
use crate::plot::svg;

/// The command line without a program around it.
pub(super) fn command() -> Command {
    PlotArguments::augment_args(Command::new("hcabench"))
}

/// The words of a command line, such as `histogram --range auto`, with what is drawn.
pub(super) fn line(words: &[String], from: &[PathBuf]) -> Result<PlotArguments, clap::Error> {
    let words = words.iter().map(OsString::from);
    let out = ["--out", "figure.svg", "--"].map(OsString::from);
    let from = from.iter().map(OsString::from);
    let line = [OsString::from("plot")].into_iter();
    let line = line.chain(words).chain(out).chain(from);
    PlotArguments::from_arg_matches(&command().try_get_matches_from(line)?)
}

#[derive(Debug)]
pub(crate) struct NotDrawn {
    pub reason: String,
    /// Where there is more in it than can be told apart, and in parts it can: the settings to part it by, or none for
    /// any.
    pub by: Option<Vec<String>>,
}

/// What `plot.json` leaves of the points in a folder, for a figure: settings with the values that it chooses. A file
/// with a mistake chooses nothing: drawing the figure tells of it.
pub(crate) fn chosen(words: &[String], from: &Path) -> Values {
    let line = line(words, &[from.to_owned()]).ok();
    let settings = line.and_then(|line| settings(&line, true).ok());
    settings.map_or_else(Values::new, |settings| settings.given.names("only"))
}

/// An SVG of the results in a folder, whose `plot.json` counts, too, and the names that this file has for lines.
pub(crate) fn figure(words: &[String], from: &Path) -> Result<(String, Vec<Asked>), NotDrawn> {
    let drawn = || {
        let made = line(words, &[from.to_owned()])?.made(true)?;
        Ok((svg(&made.drawing)?, made.told.asked))
    };
    drawn().map_err(|error: anyhow::Error| NotDrawn {
        reason: format!("{error:#}"),
        by: error.downcast::<TooMuch>().ok().map(|much| much.by),
    })
}
