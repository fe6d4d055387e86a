//! The options of a sweep, which every benchmark has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nix::unistd::{AccessFlags, access};

use super::line_stream::{LineStream, STANDARD_OUTPUT};
use crate::arguments::UsageError;
use crate::arguments::conditions::{Conditions, conditions};
use crate::arguments::values::{count, duration, seed};
use crate::stats::rate_search::candidates;

/// How often, how long and from where a sweep is run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SweepArguments {
    /// Measure the whole sweep this many times, each in a separate process and from two on in another order of its
    /// points; figures are medians over rounds, with bounds from six on
    #[arg(long, value_name = "N", value_parser = |text: &str| count::<u32>(text, 1..=10_000))]
    pub rounds: Option<u32>,

    /// Set the seed of the order of the points in each round [default: random, and recorded]
    #[arg(long, value_name = "NUMBER", value_parser = seed, help_heading = "Sweep")]
    pub order_seed: Option<u64>,

    /// Measure only whole rounds that fit into this time, with unit, and at least one; without --rounds as many as fit
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Sweep")]
    pub budget: Option<Duration>,

    /// Print the points with the time and disk space that they would take, and measure nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Measure the missing or incomplete points of the results folder DIR by its settings; refused where the machine or
    /// given settings differ
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "force", "dry_run"], help_heading = "Sweep")]
    pub resume: Option<PathBuf>,

    /// Read options from FILE, in TOML by their names, as in service = "rc,uc" or inline = true; the command line
    /// overrides them
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub config: Option<PathBuf>,

    /// Write the options of this command line to FILE for --config before measuring; refused if it exists
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub save_config: Option<PathBuf>,

    /// Record this label of the run in settings.json, as a commit, for hcabench history [default: the variable
    /// HCABENCH_LABEL]
    #[arg(long, value_name = "TEXT", value_parser = label, help_heading = "Sweep")]
    pub label: Option<String>,

    /// What is written for other programs.
    #[command(flatten)]
    pub exports: ExportArguments,

    /// Stop after this many rounds, as if interrupted, with exit code 0
    #[arg(long, value_name = "N", value_parser = |text: &str| count::<u32>(text, 0..=u64::from(u32::MAX)), hide = true)]
    pub until_round: Option<u32>,
}

/// What a sweep writes for other programs beside its folder.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExportArguments {
    /// Write the run to FILE as it happens, an object of JSON a line: a new file, a pipe, or - for standard output in
    /// place of the tables
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json_lines: Option<PathBuf>,

    /// Write the figures to FILE at the end, as OpenMetrics, for the textfile collector of Prometheus' node exporter and
    /// other programs
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub prometheus: Option<PathBuf>,
}

impl ExportArguments {
    /// Whether the lines take the place of the tables.
    pub(crate) fn has_standard_output(&self) -> bool {
        let standard_output = Path::new(STANDARD_OUTPUT);
        (self.json_lines.as_deref()).is_some_and(|path| path == standard_output)
    }

    /// Opens what is written as the run goes on, and refuses what could not be written at its end.
    ///
    /// # Errors
    /// When a file exists that is not replaced, or its folder is missing.
    pub(crate) fn open(&self, has_json: bool) -> Result<Option<LineStream>, UsageError> {
        if self.has_standard_output() && has_json {
            return Err(UsageError(
                "--json-lines -: --json writes to standard output as well; leave one of them out"
                    .to_owned(),
            ));
        }
        if let Some(path) = &self.prometheus {
            let shown = path.display();
            let refused = |reason: &str| UsageError(format!("--prometheus {shown}: {reason}"));
            // Of a name without a folder it is empty.
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            if folder.is_some_and(|it| !it.is_dir()) {
                return Err(refused("its folder does not exist; make it first"));
            }
            if path.is_dir() || path == Path::new(STANDARD_OUTPUT) {
                return Err(refused("name a file, which is replaced in one step"));
            }
            let folder = folder.unwrap_or(Path::new("."));
            access(folder, AccessFlags::W_OK | AccessFlags::X_OK)
                .map_err(|error| refused(&format!("its folder cannot be written to: {error}")))?;
        }
        let open = |path: &PathBuf| {
            let refused = |reason| UsageError(format!("--json-lines {}: {reason}", path.display()));
            LineStream::open(path).map_err(refused)
        };
        self.json_lines.as_ref().map(open).transpose()
    }
}

/// The environment variable of a label.
const LABEL: &str = "HCABENCH_LABEL";
/// The longest label: it is a cell of tables.
const LONGEST_LABEL: usize = 200;

/// A line that is not empty.
fn label(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    if text.trim().is_empty() || length > LONGEST_LABEL || text.chars().any(char::is_control) {
        return Err(format!(
            "{text:?} is not a label: give a line of 1 to {LONGEST_LABEL} characters"
        ));
    }
    Ok(text.to_owned())
}

impl SweepArguments {
    /// The label of the run; none if neither the option nor the variable is set. A run that is resumed keeps the one that
    /// it began with, whatever the variable is now.
    ///
    /// # Errors
    /// When the variable has none that is allowed.
    pub(crate) fn label(&self) -> Result<Option<String>, UsageError> {
        let set = || {
            let text = std::env::var_os(LABEL).filter(|text| !text.is_empty());
            text.filter(|_| self.resume.is_none())
        };
        match (&self.label, set()) {
            (Some(given), _) => Ok(Some(given.clone())),
            (None, None) => Ok(None),
            (None, Some(set)) => label(&set.to_string_lossy())
                .map(Some)
                .map_err(|reason| UsageError(format!("{LABEL}: {reason}"))),
        }
    }
}

/// The least rate of a search: the rate that was sent has one decimal, and is to be known to less than 1 %.
const LEAST_RATE: f64 = 20.0;
/// How much a round has at the least rate of a search: fewer have no 99th percentile, and one has no rate.
const LEAST_IN_ROUND: f64 = 100.0;
/// How many of a round may be lost at the least: with fewer the share of a round has steps as wide as its limit.
const LEAST_LOST: f64 = 10.0;

/// How much a round of a search has.
pub(crate) struct RoundSize<'a> {
    /// At a rate.
    pub at: &'a dyn Fn(f64) -> f64,
    /// What that is, in words.
    pub what: &'a str,
    /// The options that give more.
    pub longer: &'a str,
}

/// Whether the highest rate is searched.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FindRateArguments {
    /// Find the highest rate at which these conditions hold, between the least and the greatest of --rate: a percentile
    /// of the latency from the intended time, or the share lost, as in p99<50us or p99.9<1ms,loss<0.1%; each rate that
    /// is tried takes 6 to --rounds rounds, and is a point [default of --rounds: 40]
    #[arg(long, value_name = "CONDITIONS", value_parser = conditions)]
    pub find_rate: Option<Conditions>,
}

impl FindRateArguments {
    /// The rates that may be measured, of those that were given.
    ///
    /// # Errors
    /// When a search has nothing to choose from, or a round has too little to judge a rate by.
    pub(crate) fn rates(
        &self,
        given: &[f64],
        round: &RoundSize<'_>,
    ) -> Result<Vec<f64>, UsageError> {
        let Some(conditions) = &self.find_rate else {
            return Ok(given.to_vec());
        };
        let least = given.iter().copied().fold(f64::INFINITY, f64::min);
        let most = given.iter().copied().fold(0.0, f64::max);
        if least >= most {
            return Err(UsageError(format!(
                "--rate {least}: --find-rate {conditions} needs the least and the greatest rate of the search: give two \
                 rates, as in --rate 100,1M"
            )));
        }
        if least < LEAST_RATE {
            return Err(UsageError(format!(
                "--rate {least}: --find-rate {conditions} searches from {LEAST_RATE} a second on: below, the rate that \
                 was sent is not known to 1 %"
            )));
        }
        let in_round = (round.at)(least);
        let RoundSize { what, longer, .. } = round;
        if in_round < LEAST_IN_ROUND {
            return Err(UsageError(format!(
                "--find-rate {conditions}: a round at --rate {least} has {in_round} {what}, and a rate is judged by \
                 {LEAST_IN_ROUND} at the least: raise {longer}, or the least --rate"
            )));
        }
        if let Some(share) = conditions
            .loss()
            .filter(|share| in_round * share < LEAST_LOST)
        {
            return Err(UsageError(format!(
                "--find-rate {conditions}: a round at --rate {least} has {in_round} {what}, too few for that loss: it \
                 takes {} at the least: raise {longer}, or the least --rate",
                (LEAST_LOST / share).ceil()
            )));
        }
        Ok(candidates(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn a_label_is_a_line() {
        for text in ["v1", "0123abc, new firmware", &"x".repeat(200)] {
            assert_eq!(label(text).unwrap(), text);
        }
        for text in ["", "  ", "two\nlines", &"x".repeat(201)] {
            label(text).refused(&["is not a label", "1 to 200"]);
        }
    }

    #[test]
    fn rounds_that_are_too_small_to_judge_a_rate_by_are_refused() {
        let rates = |text: &str, given: &[f64], seconds: f64| {
            let of = FindRateArguments {
                find_rate: Some(conditions(text).unwrap()),
            };
            let round = RoundSize {
                at: &|rate| rate * seconds,
                what: "steps",
                longer: "--duration",
            };
            of.rates(given, &round)
        };
        rates("p99<1ms", &[100.0, 1e3], 1.0).unwrap();
        rates("loss<1%", &[1e3, 1e4], 1.0).unwrap();
        rates("p99<1ms", &[19.9, 1e3], 100.0).refused(&["--rate 19.9", "from 20 a second"]);
        rates("p99<1ms", &[99.0, 1e3], 1.0).refused(&[
            "99 steps",
            "100 at the least",
            "--duration",
        ]);
        rates("loss<1%", &[999.0, 1e4], 1.0).refused(&["999 steps", "it takes 1000", "--duration"]);
    }
}
