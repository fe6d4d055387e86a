//! `hcabench plot`: figures of results.

mod config;
mod draw;
pub(in crate::cli) mod embedded;
mod metric;
mod settings;
mod sources;

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use self::config::Settings;
use super::UsageError;
use super::output::{print_json, warning};
use crate::report::plot::{Drawing, Format, PlotError, write};

/// Arguments of `hcabench plot`.
#[derive(Debug, Clone, Args)]
pub struct PlotArguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Clone, Subcommand)]
enum Kind {
    /// Distributions over each other: share of samples by latency, a line at each median, and what lies above the range
    Histogram(HistogramArguments),
    /// The median over a setting, with bars for the middle 80 %; of a clock, by the cause of jumps
    Median(MedianArguments),
    /// The median over two settings as a surface in space; colour is the share that was lost, or started late
    Surface(SurfaceArguments),
    /// The share of samples up to each latency
    Ecdf(CurveArguments),
    /// Latencies up to the highest percentiles, on a scale that spreads the tail
    Percentiles(CurveArguments),
    /// Samples over time; of a clock, its jumps by their cause
    Time(TimeArguments),
}

/// What all figures share.
#[derive(Debug, Clone, Args)]
struct Common {
    /// Folder of a run, or of one of its points; several are drawn into one figure
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

#[derive(Debug, Clone, Args)]
struct HistogramArguments {
    #[command(flatten)]
    common: Common,

    /// Bins of the range, 1 to 2000 [default: 100]
    #[arg(long, value_name = "N")]
    bins: Option<u32>,
}

#[derive(Debug, Clone, Args)]
struct MedianArguments {
    #[command(flatten)]
    common: Common,

    /// Setting on the horizontal axis, as it is called in summary.csv [default: the first that varies]
    #[arg(long, value_name = "SETTING")]
    x: Option<String>,

    /// Scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,
}

#[derive(Debug, Clone, Args)]
struct SurfaceArguments {
    #[command(flatten)]
    common: Common,

    /// First setting, as it is called in summary.csv [default: the first that varies and is a number]
    #[arg(long, value_name = "SETTING")]
    x: Option<String>,

    /// Second setting [default: the next that varies and is a number]
    #[arg(long, value_name = "SETTING")]
    y: Option<String>,

    /// Scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,
}

#[derive(Debug, Clone, Args)]
struct CurveArguments {
    #[command(flatten)]
    common: Common,

    /// Scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,

    /// Unit of .hgrm files that are named instead of a folder: ns, us, ms, s [default: us]
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
}

#[derive(Debug, Clone, Args)]
struct TimeArguments {
    #[command(flatten)]
    common: Common,

    /// Scale of the values: linear, log [default: the one that fits]
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,
}

impl Kind {
    fn common(&self) -> &Common {
        match self {
            Kind::Histogram(arguments) => &arguments.common,
            Kind::Median(arguments) => &arguments.common,
            Kind::Surface(arguments) => &arguments.common,
            Kind::Ecdf(arguments) | Kind::Percentiles(arguments) => &arguments.common,
            Kind::Time(arguments) => &arguments.common,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Kind::Histogram(_) => "histogram",
            Kind::Median(_) => "median",
            Kind::Surface(_) => "surface",
            Kind::Ecdf(_) => "ecdf",
            Kind::Percentiles(_) => "percentiles",
            Kind::Time(_) => "time",
        }
    }

    /// The options as settings, to be laid over those of a file.
    fn settings(&self) -> Result<Settings, UsageError> {
        let mut settings = Settings::of(self.common())?;
        match self {
            Kind::Histogram(arguments) => settings.bins = arguments.bins,
            Kind::Median(arguments) => {
                settings.x.clone_from(&arguments.x);
                settings.scale.clone_from(&arguments.scale);
            }
            Kind::Surface(arguments) => {
                settings.x.clone_from(&arguments.x);
                settings.y.clone_from(&arguments.y);
                settings.scale.clone_from(&arguments.scale);
            }
            Kind::Ecdf(arguments) | Kind::Percentiles(arguments) => {
                settings.scale.clone_from(&arguments.scale);
                settings.unit.clone_from(&arguments.unit);
            }
            Kind::Time(arguments) => settings.scale.clone_from(&arguments.scale),
        }
        Ok(settings)
    }
}

/// A figure, drawn, and what must be said about it.
struct Made {
    drawing: Drawing,
    /// Prints its data.
    print: Box<dyn FnOnce() -> io::Result<()>>,
    hints: Vec<String>,
}

impl Made {
    fn new(figure: impl Serialize + 'static, drawing: Drawing) -> Self {
        Made {
            drawing,
            // Only when it is asked for: of ten million samples it is long.
            print: Box::new(move || print_json(&figure)),
            hints: Vec::new(),
        }
    }
}

/// Draws a figure; the exit code is 0.
///
/// # Errors
/// [`UsageError`] for options and settings that are wrong; others when results cannot be read or the file cannot be written.
pub fn run(arguments: &PlotArguments) -> anyhow::Result<u8> {
    let kind = &arguments.kind;
    let common = kind.common();
    let format = Format::of(&common.out).ok_or_else(|| {
        UsageError(format!(
            "--out {}: its ending must be .svg or .png",
            common.out.display()
        ))
    })?;
    let options = kind.settings()?;
    let file = config::read(common.config.as_deref(), &common.from, kind.name())?;
    let settings = options.over(file).checked()?;
    let made = match kind {
        Kind::Histogram(_) => draw::histogram(&common.from, &settings),
        Kind::Median(_) => draw::median(&common.from, &settings),
        Kind::Surface(_) => draw::surface(&common.from, &settings),
        Kind::Ecdf(_) => draw::ecdf(&common.from, &settings),
        Kind::Percentiles(_) => draw::percentiles(&common.from, &settings),
        Kind::Time(_) => draw::time(&common.from, &settings),
    }
    .map_err(sort)?;
    write(&common.out, format, &made.drawing)?;
    if common.json {
        (made.print)()?;
    }
    if !common.quiet {
        for hint in &made.hints {
            eprintln!("{}", warning(hint));
        }
        eprintln!("figure:  {}", common.out.display());
    }
    Ok(0)
}

/// More than can be told apart is for the options to mend.
fn sort(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<PlotError>() {
        Some(PlotError::TooMuch { .. }) => UsageError(error.to_string()).into(),
        _ => error,
    }
}
