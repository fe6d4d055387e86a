//! `hcabench compare`: whether a run is better or worse than another.

mod present;
mod values;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::UsageError;
use super::output::{print_json, print_text, terminal_width, warning};
use crate::compare::{CompareError, Comparison, Limit, Request, compare, figures::Kind};
use crate::results::read::Run;

/// The exit code of a broken limit.
const BROKEN: u8 = 3;
/// So many reasons why limits could not be judged are told.
const MOST_GAPS: usize = 10;

/// Arguments of `hcabench compare`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Exit codes: 0 compared; 1 results cannot be read, or a limit could not be judged at all points of BASE; 2 bad input, \
or machine or settings differ; 3 a limit is broken."
)]
pub struct CompareArguments {
    /// The results folder to compare with, or that of one of its points
    #[arg(value_name = "BASE")]
    pub base: PathBuf,

    /// The results folder that may be better or worse
    #[arg(value_name = "NEW")]
    pub new: PathBuf,

    /// Fail with exit code 3 if a figure is worse and by more than a share of BASE, such as 5%@p50,10%@p99,5%@throughput;
    /// of lost and jump-time, which are shares themselves, percentage points: 0.1%@lost
    #[arg(long, value_name = "LIST", value_parser = values::limits)]
    pub max_regression: Option<values::List<Limit>>,

    /// Percentiles to compare beside those of --max-regression, such as p50,p99.9 [default: p50,p99]; of a clock those of the lengths of its jumps
    #[arg(long, value_name = "LIST", value_parser = values::percentiles)]
    pub percentiles: Option<values::List<f64>>,

    /// Compare runs of different machines or settings, too; what differs is told
    #[arg(long)]
    pub anyway: bool,

    /// Print no table; the exit code tells
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,

    /// Print all of it as JSON instead of the table
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl CompareArguments {
    fn request(&self) -> Request {
        let limits = self
            .max_regression
            .as_ref()
            .map_or_else(Vec::new, |limits| limits.0.clone());
        let mut percentiles = self
            .percentiles
            .as_ref()
            .map_or_else(|| vec![50.0, 99.0], |percentiles| percentiles.0.clone());
        percentiles.extend(limits.iter().filter_map(|limit| match limit.of {
            Kind::Percentile(percent) => Some(percent),
            _ => None,
        }));
        percentiles.sort_by(f64::total_cmp);
        percentiles.dedup();
        Request {
            percentiles,
            limits,
            anyway: self.anyway,
        }
    }
}

/// Compares two runs. Returns the exit code.
///
/// # Errors
/// [`UsageError`] where other options or folders would do, others when results cannot be read.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let request = arguments.request();
    let base = Run::open(&arguments.base).context("BASE")?;
    let new = Run::open(&arguments.new).context("NEW")?;
    let comparison = compare(&base, &new, &request).map_err(sort)?;
    for text in &comparison.warnings {
        eprintln!("{}", warning(text));
    }
    for (side, other, names) in [
        ("BASE", "NEW", &comparison.only_in_base),
        ("NEW", "BASE", &comparison.only_in_new),
    ] {
        for name in names {
            eprintln!(
                "{}",
                warning(&format!("{name} of {side} is not in {other}"))
            );
        }
    }
    for differs in &comparison.differs {
        eprintln!("{}", warning(&format!("BASE and NEW differ in {differs}")));
    }
    if arguments.json {
        let folders = json!({ "base": arguments.base, "new": arguments.new });
        let verdict = json!({ "limits": request.limits, "broken": comparison.has_broken_limit() });
        print_json(&json!({ "folders": folders, "verdict": verdict, "comparison": comparison }))
            .context("cannot write to standard output")?;
    } else if !arguments.quiet {
        print_text(&present::text(&comparison, terminal_width()))
            .context("cannot write to standard output")?;
    }
    judge(&comparison, &request.limits)
}

/// The exit code, or why there can be none that means something.
fn judge(comparison: &Comparison, limits: &[Limit]) -> anyhow::Result<u8> {
    if comparison.has_broken_limit() {
        return Ok(BROKEN);
    }
    let gaps = comparison.gaps(limits);
    if !gaps.is_empty() {
        let told = gaps.iter().take(MOST_GAPS);
        let mut lines: Vec<String> = told.map(|gap| format!("\n  {gap}")).collect();
        if gaps.len() > MOST_GAPS {
            lines.push(format!("\n  and {} more", gaps.len() - MOST_GAPS));
        }
        anyhow::bail!(
            "--max-regression: no limit is broken, but they could not be judged at all points:{}",
            lines.concat()
        );
    }
    Ok(0)
}

/// What other options or folders would avoid is the user's.
fn sort(error: CompareError) -> anyhow::Error {
    match error {
        CompareError::Read(_) | CompareError::Rows { .. } => error.into(),
        CompareError::Differ(differs) => {
            let lines: Vec<String> = differs
                .iter()
                .map(|differs| format!("\n  {differs}"))
                .collect();
            UsageError(format!(
                "BASE and NEW were not measured alike; --anyway compares them all the same. They differ in (BASE and \
                 NEW):{}",
                lines.concat()
            ))
            .into()
        }
        error => UsageError(error.to_string()).into(),
    }
}

#[cfg(test)]
mod tests;
