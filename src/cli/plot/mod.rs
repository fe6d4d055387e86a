//! `hcabench plot`: figures of results.

mod config;
mod draw;
pub(in crate::cli) mod embedded;
mod metric;
mod options;
mod settings;
mod sources;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use self::config::Checked;
use self::options::{Figure, Of};
use super::UsageError;
use super::output::{print_json, warning};
use crate::plot::{Drawing, Format, PlotError, write};

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

/// The options of all figures; which of them a figure has is in [`options::SETTINGS`].
#[derive(Debug, Clone, Args)]
struct Options {
    /// Folder of a run, or of one of its points; several are drawn into one figure. ecdf and percentiles take .hgrm files, too
    #[arg(value_name = "DIR", required = true)]
    from: Vec<PathBuf>,

    /// Where the figure goes; its ending chooses the format: .svg or .png (192 pixels to the inch)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// What is drawn: latency (t_lat), completion (t_comp), enqueue, dequeue, intended, jump, difference, or several with
    /// commas between them
    #[arg(long, value_name = "LIST")]
    metric: Option<String>,

    /// Draw only points with these values of a setting, as it is called in summary.csv: service=rc,uc; may be repeated
    #[arg(long, value_name = "SETTING=LIST")]
    only: Vec<String>,

    /// Range of the values: LO..HI, in ns, or with unit (0..50us); auto: from the data
    #[arg(long, value_name = "RANGE")]
    range: Option<String>,

    /// Bins of the range, 1 to 2000 [default: 100]
    #[arg(long, value_name = "N")]
    bins: Option<u32>,

    /// Setting on the first axis, as it is called in summary.csv [default: median: the first that varies; surface: of
    /// those that vary and are numbers, the two with the most values]
    #[arg(long, value_name = "SETTING")]
    x: Option<String>,

    /// Setting on the second axis
    #[arg(long, value_name = "SETTING")]
    y: Option<String>,

    /// Scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    /// Unit of .hgrm files that are named instead of a folder: ns, us, ms, s [default: us]
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,

    /// Width and height in 1/96 inch, 300 to 4000 each [default: 900x560]
    #[arg(long, value_name = "WxH", help_heading = "Looks")]
    size: Option<String>,

    /// Title instead of the usual one
    #[arg(long, value_name = "TEXT", help_heading = "Looks")]
    title: Option<String>,

    /// Label of the horizontal axis
    #[arg(long, value_name = "TEXT", help_heading = "Looks")]
    x_label: Option<String>,

    /// Label of the vertical axis
    #[arg(long, value_name = "TEXT", help_heading = "Looks")]
    y_label: Option<String>,

    /// Another name for a line of the legend; may be repeated
    #[arg(long, value_name = "OLD=NEW", help_heading = "Looks")]
    label: Vec<String>,

    /// Order of the legend, by names as they are shown, commas in them too; those not named follow; may be repeated
    #[arg(long, value_name = "LIST", help_heading = "Looks")]
    order: Vec<String>,

    /// Settings of the figure in JSON, instead of plot.json in the first folder
    #[arg(long, value_name = "FILE", help_heading = "Looks")]
    config: Option<PathBuf>,

    /// Print what is drawn as JSON
    #[arg(long)]
    json: bool,

    /// Do not tell where the figure went
    #[arg(long)]
    quiet: bool,
}

impl Kind {
    /// The figure, and its options.
    fn parts(&self) -> (Figure, &Options) {
        match self {
            Kind::Histogram(Of(options)) => (Figure::Histogram, options),
            Kind::Median(Of(options)) => (Figure::Median, options),
            Kind::Surface(Of(options)) => (Figure::Surface, options),
            Kind::Ecdf(Of(options)) => (Figure::Ecdf, options),
            Kind::Percentiles(Of(options)) => (Figure::Percentiles, options),
            Kind::Time(Of(options)) => (Figure::Time, options),
        }
    }

    /// The figure, by its options and a file. Where the program chose what is in it, not each name that the file has
    /// other words for can be there.
    fn made(&self, chosen_here: bool) -> anyhow::Result<Made> {
        let (figure, options) = self.parts();
        let settings = config::settings(options, figure, chosen_here)?;
        let (from, settings) = (&options.from[..], &settings);
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

/// A figure, drawn, and what must be said about it.
struct Made {
    drawing: Drawing,
    /// Prints its data.
    print: Box<dyn FnOnce() -> io::Result<()>>,
    hints: Vec<String>,
    /// The names that a file has for its lines.
    asked: Vec<Asked>,
}

/// A name of a line that a file has other words or a place for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Asked {
    /// The key in the file.
    pub key: &'static str,
    pub name: String,
    /// Whether a line has it.
    pub found: bool,
}

impl Made {
    fn new(figure: impl Serialize + 'static, drawing: Drawing) -> Self {
        Made {
            drawing,
            // Only when it is asked for: of ten million samples it is long.
            print: Box::new(move || print_json(&figure)),
            hints: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// Draws a figure; the exit code is 0.
///
/// # Errors
/// [`UsageError`] for options and settings that are wrong; others when results cannot be read or the file cannot be written.
pub fn run(arguments: &PlotArguments) -> anyhow::Result<u8> {
    let (_, options) = arguments.kind.parts();
    let format = Format::of(&options.out).ok_or_else(|| {
        UsageError(format!(
            "--out {}: its ending must be .svg or .png",
            options.out.display()
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
            eprintln!("{}", warning(hint));
        }
        eprintln!("figure:  {}", options.out.display());
    }
    Ok(0)
}

/// There is more in a figure than can be shown in one; parts of it can.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct TooMuch {
    /// What is too much, and what to do.
    reason: UsageError,
    /// Settings of which one value each must be chosen; none where any may.
    by: Vec<String>,
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
