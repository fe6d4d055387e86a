//! A figure for another command, as the user would have had it drawn.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::{Kind, PlotArguments, config, draw};
use crate::report::plot::{PlotError, svg};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    plot: PlotArguments,
}

/// Why a figure is not there.
#[derive(Debug)]
pub(in crate::cli) enum NotDrawn {
    /// There is more in it than can be told apart.
    TooMuch(String),
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
    let kind = &line.plot.kind;
    let options = kind.settings().map_err(|error| other(&error))?;
    let common = kind.common();
    let drawn = config::read(None, &common.from, kind.name())
        .and_then(|file| options.over(file).checked())
        .map_err(anyhow::Error::from)
        .and_then(|settings| match kind {
            Kind::Histogram(_) => draw::histogram(&common.from, &settings),
            Kind::Median(_) => draw::median(&common.from, &settings),
            Kind::Surface(_) => draw::surface(&common.from, &settings),
            Kind::Ecdf(_) => draw::ecdf(&common.from, &settings),
            Kind::Percentiles(_) => draw::percentiles(&common.from, &settings),
            Kind::Time(_) => draw::time(&common.from, &settings),
        });
    let made = drawn.map_err(|error| match error.downcast_ref::<PlotError>() {
        Some(PlotError::TooMuch { .. }) => NotDrawn::TooMuch(error.to_string()),
        _ => NotDrawn::Other(format!("{error:#}")),
    })?;
    svg(&made.drawing).map_err(|error| other(&error))
}
