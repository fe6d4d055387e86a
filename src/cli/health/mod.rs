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
use crate::bench::fabric::rules::{DEFAULT, Rule};
use crate::findings::print_damaged;
use crate::results::text::printable_path;
use crate::terminal::output::{print_json, print_text, say, terminal_width, warning};

/// The exit code where a node, pair or tier breaks a rule.
const FAILING: u8 = 3;

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

    /// Print no command if it would drain more hosts than this: then something else than a node is at fault [default: a
    /// tenth of the hosts, at least 1]
    #[arg(long, value_name = "N", value_parser = |text: &str| count::<usize>(text, 1..=u64::from(u32::MAX)),
          requires = "drain_command", help_heading = "Output")]
    pub drain_most: Option<usize>,
}

/// Without `--drain-most`, one of this many hosts may be drained.
const MOST_OF: usize = 10;

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
    let mut damaged = print_damaged(found.damaged.iter().map(AsRef::as_ref));
    if !found.unreadable.is_empty() {
        damaged = 1;
    }
    if found.runs.is_empty() && damaged == 0 {
        let folder = printable_path(folder);
        let reasons = match found.reasons() {
            none if none.is_empty() => "it holds no fabric".to_owned(),
            reasons => format!("no run in it can be judged:\n  {}", reasons.join("\n  ")),
        };
        let fix = "fix: name a folder with results of hcabench fabric";
        return Err(UsageError(format!("{folder}: {reasons}\n{fix}")).into());
    }
    for remark in found.remarks() {
        say(warning(&remark));
    }
    anyhow::ensure!(!found.runs.is_empty(), "no run could be read");
    let rules = &standard.rules;
    let all = courses(&found.runs, rules, arguments.last);
    if let Some(path) = &arguments.prometheus {
        monitor::write(path, &found.runs, &all)
            .with_context(|| format!("--prometheus {}", path.display()))?;
    }
    if let Some(scheduler) = arguments.drain_command {
        let most = arguments.drain_most.unwrap_or_else(|| {
            let hosts = found.runs.last().map_or(0, |run| run.hosts());
            (hosts / MOST_OF).max(1)
        });
        print_text(&drained((scheduler, most), &all, &standard.rules.rules)?)?;
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

/// The commands for all nodes that fail and were out when they were seen last; of several nodes on one host, once.
fn drained(
    (scheduler, most): (Scheduler, usize),
    all: &[Course],
    rules: &[Rule],
) -> anyhow::Result<String> {
    let failing = all.iter().filter(|it| it.health == Health::Failing);
    let mut hosts = std::collections::BTreeMap::new();
    for course in failing {
        let Subject::Node(name) = &course.subject else {
            continue;
        };
        if !course.is_out_now {
            say(warning(&format!(
                "{name} is failing by earlier runs, and was not out in the last one that shows it: it is not drained"
            )));
            continue;
        }
        let [host, pod_host] = &course.hosts;
        let (host, fix) = match scheduler {
            Scheduler::Kubernetes => (pod_host, "set HCABENCH_NODE in the pods to spec.nodeName"),
            _ => (
                host,
                "drain it by hand: the run was started without an engine",
            ),
        };
        if host.is_empty() {
            let scheduler = scheduler.name();
            say(warning(&format!(
                "{name} is failing, and the run does not record what {scheduler} calls its host; fix: {fix}"
            )));
            continue;
        }
        hosts
            .entry(host)
            .or_insert_with(|| present::reason(course, rules));
    }
    anyhow::ensure!(
        hosts.len() <= most,
        "{} hosts would be drained, more than {most}: something else than a node may be at fault; fix: look at \
         hcabench health without --drain-command, and set --drain-most",
        hosts.len()
    );
    let mut text = String::new();
    for (host, reason) in hosts {
        match commands(scheduler, host, &reason) {
            Ok(lines) => lines.iter().for_each(|line| text += &format!("{line}\n")),
            Err(reason) => say(warning(&reason)),
        }
    }
    Ok(text)
}
