//! `hcabench health`: nodes of a fabric over many runs.

mod drain;
mod live;
mod monitor;
mod present;
mod runs;
mod standard;

pub(super) use live::{OverTime, OverTimeArguments};

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use self::drain::{Scheduler, commands};
use self::runs::JudgedRuns;
use self::standard::StandardArguments;
use crate::arguments::UsageError;
use crate::arguments::values::{count, one};
use crate::bench::fabric::history::{Course, Health, Subject, courses};
use crate::bench::fabric::rules::DEFAULT;
use crate::findings::print_damaged;
use crate::results::text::printable_path;
use crate::terminal::output::{print_json, print_text, say, terminal_width, warning};

/// The exit code where a node, pair or tier breaks a rule.
const FAILING: u8 = 1;

/// Arguments of `hcabench health`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HealthArguments {
    /// Judge the runs of hcabench fabric in and below this folder
    #[arg(value_name = "DIR", required_unless_present = "print_rules")]
    pub folder: Option<PathBuf>,

    /// The baseline and the rules.
    #[command(flatten)]
    pub standard: StandardArguments,

    /// Print the rules that apply without --rules, as a file for it, and end
    #[arg(long, help_heading = "Baseline and rules", conflicts_with_all = ["folder", "rules", "baseline"])]
    pub print_rules: bool,

    /// Count in how many of this many last runs a node was out
    #[arg(long, value_name = "N", default_value_t = live::SHOWN,
          value_parser = |text: &str| count::<usize>(text, 1..=1000), help_heading = "Output")]
    pub last: usize,

    /// Show all nodes, also those that are healthy
    #[arg(long, help_heading = "Output")]
    pub all: bool,

    /// Print as JSON
    #[arg(long, help_heading = "Output", conflicts_with = "drain_command")]
    pub json: bool,

    /// Write the results to this file for the textfile collector of Prometheus' node exporter
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub prometheus: Option<PathBuf>,

    /// Print the commands that drain failing nodes of the last run, and nothing else: slurm, kubernetes, pbs, flux or
    /// lsf; they are never run
    #[arg(long, value_name = "SCHEDULER", value_parser = one::<Scheduler>, help_heading = "Output")]
    pub drain_command: Option<Scheduler>,
}

/// Judges all runs. Returns the exit code.
///
/// # Errors
/// When there is none that can be judged.
pub(crate) fn run(arguments: &HealthArguments) -> anyhow::Result<u8> {
    let Some(folder) = arguments.folder.as_ref().filter(|_| !arguments.print_rules) else {
        print_text(DEFAULT)?;
        return Ok(0);
    };
    let standard = arguments.standard.read()?;
    let found = JudgedRuns::below(folder, &standard, "", None)?;
    let damaged = print_damaged(found.damaged.iter().map(AsRef::as_ref));
    if found.runs.is_empty() && damaged == 0 {
        let folder = printable_path(folder);
        let reasons = match found.reasons() {
            none if none.is_empty() => "it holds no fabric".to_owned(),
            reasons => format!("no run in it can be judged:\n  {}", reasons.join("\n  ")),
        };
        let fix = "fix: name a folder with results of hcabench fabric";
        return Err(UsageError(format!("{folder}: {reasons}\n{fix}")).into());
    }
    for reason in found.reasons() {
        say(warning(&format!("left out: {reason}")));
    }
    for folder in &found.incomplete {
        say(warning(&format!(
            "{folder} is incomplete; what it has counts"
        )));
    }
    let rules = &standard.rules;
    let all = courses(&found.runs, rules, arguments.last);
    if let Some(path) = &arguments.prometheus {
        monitor::write(path, &found.runs, &all)
            .with_context(|| format!("--prometheus {}", path.display()))?;
    }
    if let Some(scheduler) = arguments.drain_command {
        print_text(&drained(scheduler, &all, &standard.rules.rules))?;
    } else if arguments.json {
        print_json(&present::json_of(&found, &all, &standard))?;
    } else {
        let answer = present::answer(&found, &all, &standard).join("\n");
        let table = present::table(&all, &rules.rules, arguments.all);
        let table = table.render(terminal_width());
        let gap = if table.is_empty() { "" } else { "\n" };
        print_text(&format!("{answer}\n{gap}{table}"))?;
    }
    let is_failing = all.iter().any(|it| it.health == Health::Failing);
    Ok(if is_failing { FAILING } else { damaged })
}

/// The commands for all nodes that fail and were in the last run; of several nodes on one host, once.
fn drained(
    scheduler: Scheduler,
    all: &[Course],
    rules: &[crate::bench::fabric::rules::Rule],
) -> String {
    let mut text = String::new();
    let mut known = std::collections::BTreeSet::new();
    for course in all.iter().filter(|it| it.health == Health::Failing) {
        let Subject::Node(name) = &course.subject else {
            continue;
        };
        let host = if course.host.is_empty() {
            name
        } else {
            &course.host
        };
        if !course.is_in_last {
            say(warning(&format!(
                "{name} is failing, and not in the last run: it is not drained"
            )));
            continue;
        }
        if !known.insert(host) {
            continue;
        }
        match commands(scheduler, host, &present::reason(course, rules)) {
            Ok(lines) => lines.iter().for_each(|line| text += &format!("{line}\n")),
            Err(reason) => say(warning(&reason)),
        }
    }
    text
}
