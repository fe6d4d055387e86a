//! `hcabench history`: figures of runs in the order of time, and at which run they changed.

mod causes;
mod found;
mod page;
mod present;
mod runs;
mod series;

use std::path::PathBuf;

use clap::Args;

use self::found::History;
use self::runs::{Asked, StoredRuns};
use crate::arguments::UsageError;
use crate::arguments::values::{List, count, list};
use crate::compare::figures::Which;
use crate::findings::print_damaged;
use crate::page as html;
use crate::report::html_file;
use crate::results::text::{printable, printable_path};
use crate::terminal::output::{print_json, print_text, say, terminal_width, warning};

/// The exit code of `--fail-on-change` where a figure changed.
const CHANGED: u8 = 3;
/// The last runs of a point that are judged, unless another number is given.
const LAST: usize = 200;

/// Arguments of `hcabench history`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HistoryArguments {
    /// Take the runs in and below these folders, in the order in which they began
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,

    /// Judge these figures, as in p50,latency.p99.9,throughput [default: p50 and p99 of the latency, and throughput,
    /// bandwidth or jumps where a benchmark has them]
    #[arg(long, value_name = "LIST", value_parser = figures)]
    pub figures: Option<List<Which>>,

    /// Take only runs that began at this time or later, as in 2026-11-20 or 2026-11-20T12:30:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<String>,

    /// Judge the last runs of each point, at most this many
    #[arg(long, value_name = "N", default_value_t = LAST, value_parser = |text: &str| count::<usize>(text, 1..=1000))]
    pub last: usize,

    /// Leave out changes that are smaller than this share of the figure, as in 3%; of percentages, than these points
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub least: Option<f64>,

    /// Put runs of all hosts with the same processor together, as hosts of a pool have other names each time
    #[arg(long)]
    pub any_host: bool,

    /// Exit with code 3 if a figure changed, for better or worse
    #[arg(long)]
    pub fail_on_change: bool,

    /// Write the plots and tables to this file as well; its name ends in .html or .htm
    #[arg(long, value_name = "FILE.html", value_parser = html_file, help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Print as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

fn figures(text: &str) -> Result<List<Which>, String> {
    list(text, str::parse)
}

/// `3%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    let number = number.filter(|number| (0.0..=1000.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a share from 0% to 1000%, such as 3%"))
}

/// A time as results have it: RFC 3339 in UTC.
fn moment(text: &str) -> Result<String, String> {
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        _ => text.to_owned(),
    };
    let parsed = humantime::parse_rfc3339(&whole);
    let told = || format!("{text:?} is not a time such as 2026-11-20 or 2026-11-20T12:30:00Z");
    let parsed = parsed.map_err(|_| told())?;
    Ok(humantime::format_rfc3339_millis(parsed).to_string())
}

/// Prints the history. Returns the exit code.
///
/// # Errors
/// When there are no runs, or a figure is asked for that they do not have.
pub(crate) fn run(arguments: &HistoryArguments) -> anyhow::Result<u8> {
    if let Some(out) = arguments.out.as_ref().filter(|out| out.is_dir()) {
        let out = printable_path(out);
        return Err(UsageError(format!("--out {out}: is a folder; name a file in it")).into());
    }
    let asked = Asked {
        figures: arguments.figures.as_ref().map(|list| list.0.as_slice()),
        since: arguments.since.as_deref(),
        any_host: arguments.any_host,
    };
    let stored = StoredRuns::below(&arguments.folders, &asked)?;
    let mut code = print_damaged(stored.damaged.iter().map(AsRef::as_ref));
    for reason in &stored.unreadable {
        say(warning(&format!("not read: {}", printable(reason))));
        code = 1;
    }
    for reason in &stored.left_out {
        say(warning(&format!("left out: {}", printable(reason))));
    }
    if stored.runs.is_empty() {
        anyhow::ensure!(code == 0, "no run could be read");
        let folders: Vec<String> = arguments
            .folders
            .iter()
            .map(|it| printable_path(it))
            .collect();
        return Err(UsageError(format!(
            "{}: no runs{}; fix: name folders with results of hcabench",
            folders.join(", "),
            match &arguments.since {
                Some(since) => format!(" from {since} on (--since)"),
                None => String::new(),
            }
        ))
        .into());
    }
    let history = History::of(stored, arguments.last, arguments.least.unwrap_or(0.0));
    if let Some(out) = &arguments.out {
        html::write(out, &page::of(&history))?;
    }
    match arguments.json {
        true => print_json(&present::json_of(&history))?,
        false => print_text(&present::text(&history, terminal_width()))?,
    }
    if let Some(out) = &arguments.out {
        say(format_args!("page: {}", printable_path(out)));
    }
    let has_changed = history.changes().next().is_some();
    Ok(match arguments.fail_on_change && has_changed {
        true => CHANGED,
        false => code,
    })
}

#[cfg(test)]
mod tests;
