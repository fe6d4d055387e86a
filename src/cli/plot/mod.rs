//! `hcabench plot`: figures of results.

mod config;
mod draw;
pub(in crate::cli) mod embedded;
mod made;
mod metric;
mod options;
mod settings;
mod sources;
#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

use self::config::Checked;
use self::made::{Made, TooMuch};
use self::options::{Common, Figure, Of, Setting};
pub(super) use self::settings::{in_words, is_told};
use super::UsageError;
use super::output::warning;
use crate::plot::{Format, PlotError, write};
use crate::results::text::{printable, printable_path};

/// Arguments of `hcabench plot`.
#[derive(Debug, Clone, Args)]
pub struct PlotArguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Clone, Subcommand)]
enum Kind {
    /// Distributions over each other: share of samples by latency, a line at each median, and what lies above the range
    Histogram(Of<{ Figure::Histogram as usize }>),
    /// The median over a setting, with bars for the middle 80 %; of a clock, by the cause of jumps
    Median(Of<{ Figure::Median as usize }>),
    /// The median over two settings as a surface in space; colour is the share that was lost, or started late
    Surface(Of<{ Figure::Surface as usize }>),
    /// The share of samples up to each latency
    Ecdf(Of<{ Figure::Ecdf as usize }>),
    /// Latencies up to the highest percentiles, on a scale that spreads the tail
    Percentiles(Of<{ Figure::Percentiles as usize }>),
    /// Samples over time; of a clock, its jumps by their cause
    Time(Of<{ Figure::Time as usize }>),
}

impl Kind {
    /// The figure, the options that all have, and the words of its settings.
    fn parts(&self) -> (Figure, &Common, &[(&'static Setting, Vec<String>)]) {
        match self {
            Kind::Histogram(of) => (Figure::Histogram, &of.common, &of.words),
            Kind::Median(of) => (Figure::Median, &of.common, &of.words),
            Kind::Surface(of) => (Figure::Surface, &of.common, &of.words),
            Kind::Ecdf(of) => (Figure::Ecdf, &of.common, &of.words),
            Kind::Percentiles(of) => (Figure::Percentiles, &of.common, &of.words),
            Kind::Time(of) => (Figure::Time, &of.common, &of.words),
        }
    }

    /// Its settings; `chosen_here` where the program chose what is in it.
    fn settings(&self, chosen_here: bool) -> Result<Checked, UsageError> {
        let (figure, common, words) = self.parts();
        config::settings(common, words, figure, chosen_here)
    }

    /// The figure, by its options and a file. Where the program chose what is in it, not each name that the file has
    /// other words for can be there.
    fn made(&self, chosen_here: bool) -> anyhow::Result<Made> {
        let (figure, common, _) = self.parts();
        let settings = &self.settings(chosen_here)?;
        let from = &common.from[..];
        let made = match figure {
            Figure::Histogram => draw::histogram(from, settings),
            Figure::Median => draw::median(from, settings),
            Figure::Surface => draw::surface(from, settings),
            Figure::Ecdf => draw::ecdf(from, settings),
            Figure::Percentiles => draw::percentiles(from, settings),
            Figure::Time => draw::time(from, settings),
        };
        made.map_err(|error| sorted(error, settings))
    }
}

/// Draws a figure; the exit code is 0.
///
/// # Errors
/// [`UsageError`] for options and settings that are wrong; others when results cannot be read or the file cannot be written.
pub fn run(arguments: &PlotArguments) -> anyhow::Result<u8> {
    let (_, options, _) = arguments.kind.parts();
    let format = Format::of(&options.out).ok_or_else(|| {
        UsageError(format!(
            "--out {}: its ending must be .svg or .png",
            printable_path(&options.out)
        ))
    })?;
    let made = (arguments.kind.made(false)).map_err(|error| match error.downcast::<TooMuch>() {
        Ok(much) => much.reason.into(),
        Err(error) => error,
    })?;
    write(&options.out, format, &made.drawing)?;
    if options.json {
        (made.print)()?;
    }
    if !options.quiet {
        for hint in &made.hints {
            eprintln!("{}", warning(&printable(hint)));
        }
        eprintln!("figure:  {}", printable_path(&options.out));
    }
    Ok(0)
}

/// What the options can mend is a usage error.
fn sorted(error: anyhow::Error, settings: &Checked) -> anyhow::Error {
    let reason = UsageError(error.to_string());
    match error.downcast_ref::<PlotError>() {
        Some(PlotError::TooMuch { .. }) => TooMuch {
            reason,
            by: Vec::new(),
        }
        .into(),
        Some(PlotError::Outside { on_any_range, .. }) => {
            // A logarithmic axis has no place for zero and what is below.
            let id = if settings.range.given().is_some() && !on_any_range {
                "range"
            } else {
                "scale"
            };
            UsageError(format!("{}: {reason}", settings.named(id))).into()
        }
        _ => error,
    }
}
