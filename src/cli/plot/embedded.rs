//! A figure for another command, as the user would have had it drawn.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::{PlotArguments, TooMuch};
use crate::report::plot::svg;

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

/// An SVG of the results in a folder, by the words of a command line such as `histogram --range auto`; the folder's
/// `plot.json` counts, too.
pub(in crate::cli) fn figure(words: &[String], from: &Path) -> Result<String, NotDrawn> {
    let line = [OsString::from("plot")]
        .into_iter()
        .chain(words.iter().map(OsString::from))
        .chain([
            OsString::from("--out"),
            OsString::from("figure.svg"),
            OsString::from("--"),
            from.as_os_str().to_owned(),
        ]);
    let other = |error: &dyn std::fmt::Display| NotDrawn::Other(error.to_string());
    let line = Line::try_parse_from(line).map_err(|error| other(&error))?;
    let made = (line.plot.kind.made(true)).map_err(|error| match error.downcast::<TooMuch>() {
        Ok(much) => NotDrawn::TooMuch(much.to_string(), much.by),
        Err(error) => NotDrawn::Other(format!("{error:#}")),
    })?;
    svg(&made.drawing).map_err(|error| other(&error))
}
