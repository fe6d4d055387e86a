//! The command line: raw arguments, turned into validated configurations, and what is shown of the results.
//!
//! Exit codes: 0 done; 1 a run failed or was interrupted, or the machine is not ready; 2 bad input; 3 a limit of
//! `hcabench clock --fail-above`, `hcabench fabric --fail-above`, `--max-outliers` or `--baseline`, or `hcabench compare
//! --max-regression` is broken. Of `hcabench health` it is a rule, of `hcabench history --fail-on-change` a change.

mod baseline;
mod below;
mod clock;
mod compare;
mod cores;
mod examples;
mod fabric;
mod hca;
mod health;
mod history;
mod host;
mod intervals;
mod list;
mod memory;
mod node;
mod queue;
mod secret;
mod serve;
mod show;
mod stored_fabric;

#[cfg(test)]
mod assignments;
mod ranking;
#[cfg(test)]
mod refused;
mod schedule;
#[cfg(test)]
mod units;
#[doc(hidden)]
pub use self::fabric::rank_zero;

#[cfg(feature = "rdma")]
mod devices;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{ArgAction, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::arguments::UsageError;
use crate::bench::node::process as node_end;
use crate::results::read::ReadError;
use crate::rig::child;
use crate::terminal::{output, table_options};
use crate::{driver, figures, report};

/// One-way latency between two host channel adapters of one host, on one clock
///
/// Without a command: sends bursts of messages from one RDMA port to another and writes when each was submitted,
/// received and completed. A list or a range makes a sweep; the sweep is the product of all lists.
#[derive(Debug, Parser)]
#[command(
    name = "hcabench",
    version,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    max_term_width = 100,
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = examples::HCA
)]
pub struct CommandLine {
    #[command(flatten)]
    hca: hca::HcaArguments,
    #[command(flatten)]
    general: GeneralArguments,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The options at the end of each help.
#[derive(Debug, clap::Args)]
struct GeneralArguments {
    /// Print help and errors without colours, as with the variable NO_COLOR; no other output has colours
    #[arg(long, global = true, help_heading = "General")]
    no_color: bool,

    /// Print this help
    #[arg(short, long, global = true, help_heading = "General", action = ArgAction::Help)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, help_heading = "General", action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
#[command(args_override_self = true)]
enum Command {
    /// Take several healthy runs of hcabench fabric together, as a file that later runs are judged against
    #[command(after_help = examples::BASELINE)]
    Baseline(baseline::BaselineArguments),
    /// Measure how often, how long and why this machine stops a thread, as jumps of a clock; check whether its TSC can
    /// be trusted
    #[command(after_help = examples::CLOCK)]
    Clock(Box<clock::ClockArguments>),
    /// Compare two runs point by point: size and certainty of each difference; exit code 3 on a regression beyond
    /// --max-regression
    #[command(after_help = examples::COMPARE)]
    Compare(compare::CompareArguments),
    /// Measure the time of a cache line between the CPUs of each pair, one way and there and back, and the throughput of
    /// many
    #[command(after_help = examples::CORES)]
    Cores(Box<cores::CoresArguments>),
    /// List the RDMA devices, their ports and limits, and the pair that a run would choose
    #[command(after_help = examples::DEVICES)]
    Devices(DevicesArguments),
    /// Measure between all pairs of ranks that a launcher started, and name the slow node
    #[command(after_help = examples::FABRIC)]
    Fabric(Box<fabric::FabricArguments>),
    /// Judge the nodes of a fabric over many runs: which failed in how many of the last ones, since when, on what; exit
    /// code 3 if one is failing
    #[command(after_help = examples::HEALTH)]
    Health(health::HealthArguments),
    /// Show figures of runs in the order of time: at which run each changed, by how much, how certain it is, and what
    /// changed in settings.json then; exit code 3 with --fail-on-change
    #[command(after_help = examples::HISTORY)]
    History(history::HistoryArguments),
    /// List the runs in and below a folder: date, benchmark, points, what varied, and whether they are usable
    #[command(after_help = examples::LIST)]
    List(list::ListArguments),
    /// Measure the latency of a load from memory while others draw bandwidth, as curves by the share of reads
    #[command(after_help = examples::MEMORY)]
    Memory(Box<memory::MemoryArguments>),
    /// Measure the latency of samples through a node-type, from publishers to subscribers, at a fixed rate
    #[command(after_help = examples::NODE)]
    Node(Box<node::NodeArguments>),
    /// Draw results as PDF, SVG or PNG: histograms, medians, surfaces, distribution functions, percentiles, and over time
    #[command(after_help = examples::PLOT)]
    Plot(Box<figures::PlotArguments>),
    /// Measure the cost of an enqueue and a dequeue, and the time of an element in a queue between two threads
    #[command(after_help = examples::QUEUE)]
    Queue(Box<queue::QueueArguments>),
    /// Write a run to one HTML file that can be sent: verdict, figures, findings, machine, and how to read them
    #[command(after_help = examples::REPORT)]
    Report(report::ReportArguments),
    /// Measure the results folder DIR again by the command line recorded in it; options that follow override those
    /// recorded
    #[command(after_help = examples::RERUN)]
    Rerun(RerunArguments),
    /// Receive messages of hosts that run hcabench --peer, and answer their probes
    #[command(after_help = examples::SERVE)]
    Serve(serve::ServeArguments),
    /// Print again the output of a run from its folder: tables, verdict and findings
    #[command(after_help = examples::SHOW)]
    Show(show::ShowArguments),
    /// Check whether this machine is ready to measure, and list what to change; exit code 1 if something would spoil a
    /// measurement
    #[command(after_help = examples::HOST)]
    Host(host::HostArguments),
}

/// Arguments of `hcabench rerun`, which `driver::command_line::expand` replaces by those of the earlier run.
#[derive(Debug, Clone, clap::Args)]
pub struct RerunArguments {
    /// Read the command line from this results folder
    #[arg(value_name = "DIR")]
    pub folder: std::path::PathBuf,

    /// Override options of the earlier run, as in --out DIR
    #[arg(
        value_name = "OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub options: Vec<String>,
}

/// The exit codes of all commands, and what they mean.
pub const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done"),
    (
        1,
        "a run failed or was interrupted, and what was measured so far is on disk, marked INCOMPLETE; files of results \
         are damaged, each of which is named; or the output could not be written",
    ),
    (2, "bad input"),
    (
        3,
        "a limit of hcabench clock --fail-above, hcabench fabric --fail-above, --max-outliers or --baseline, hcabench \
         compare --max-regression, or a rule of hcabench health is broken; a figure changed, with hcabench history \
         --fail-on-change",
    ),
];

/// Arguments of `hcabench devices`.
#[derive(Debug, Clone, clap::Args)]
pub struct DevicesArguments {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,

    /// Write what a maintainer needs to know of an adapter to this new folder, without names and addresses; print the
    /// files [default: hcabench-devices]
    #[arg(long, value_name = "DIR", conflicts_with = "brief")]
    pub report: Option<Option<std::path::PathBuf>>,

    /// How much is shown.
    #[command(flatten)]
    pub brief: table_options::BriefOption,
}

/// Parses the command line, runs what it names, and returns the exit code.
pub fn main() -> ExitCode {
    // Rounds are started by a name that describes nothing. Only those who list processes look at it.
    let _ = std::fs::write("/proc/self/comm", "hcabench");
    // Without it such an end has no text of ours.
    let _ = crate::host::gave_up::name_limits(child::is_any());
    if let Some(commit) = option_env!("HCABENCH_COMMIT") {
        crate::results::document::set_commit(commit);
    }
    if driver::worker::is_worker() {
        let served = driver::worker::serve();
        return ended(served.context("the sweep that this round belongs to has exited"));
    }
    if node_end::is_asked_for() {
        let served = node_end::serve();
        return ended(served.context("the run that this end belongs to has exited"));
    }
    ended(parse().and_then(|parsed| match parsed {
        Ok(line) => run(&line),
        Err(answer) => output::print_answer(&answer),
    }))
}

/// The command line with options of files, or what clap answers to it: an error, or the text of --help or --version.
fn parse() -> anyhow::Result<Result<CommandLine, clap::Error>> {
    let command = CommandLine::command();
    let typed: Vec<OsString> = std::env::args_os().collect();
    let expanded = driver::command_line::expand(typed, &command)?;
    // clap prints its errors before anybody can ask for the option.
    let colors = match expanded.iter().any(|word| word == "--no-color") {
        true => ColorChoice::Never,
        false => ColorChoice::Auto,
    };
    let colored = command.clone().color(colors);
    let matches = match colored.try_get_matches_from(&expanded) {
        Ok(matches) => matches,
        Err(answer) => return Ok(Err(answer)),
    };
    let line = match CommandLine::from_arg_matches(&matches) {
        Ok(line) => line,
        Err(answer) => return Ok(Err(answer)),
    };
    if let Some(file) = line.sweep().and_then(|sweep| sweep.save_config.as_ref()) {
        let text = driver::command_line::to_file(&matches, &command);
        crate::results::durable::create_new(file)
            .and_then(|mut created| std::io::Write::write_all(&mut created, text.as_bytes()))
            .map_err(|error| UsageError(format!("--save-config {}: {error}", file.display())))?;
    }
    crate::arguments::keep(expanded);
    Ok(Ok(line))
}

impl CommandLine {
    /// The options of the sweep, of a command that has one.
    fn sweep(&self) -> Option<&driver::arguments::SweepArguments> {
        match &self.command {
            None => Some(&self.hca.sweep),
            Some(Command::Clock(arguments)) => Some(&arguments.sweep),
            Some(Command::Cores(arguments)) => Some(&arguments.sweep),
            Some(Command::Memory(arguments)) => Some(&arguments.sweep),
            Some(Command::Node(arguments)) => Some(&arguments.sweep),
            Some(Command::Queue(arguments)) => Some(&arguments.sweep),
            Some(_) => None,
        }
    }
}

fn run(line: &CommandLine) -> anyhow::Result<u8> {
    match &line.command {
        None => hca::run(&line.hca),
        Some(Command::Baseline(arguments)) => baseline::run(arguments),
        Some(Command::Clock(arguments)) => clock::run(arguments),
        Some(Command::Compare(arguments)) => compare::run(arguments),
        Some(Command::Cores(arguments)) => cores::run(arguments),
        Some(Command::Devices(arguments)) => run_devices(arguments),
        Some(Command::Fabric(arguments)) => fabric::run(arguments),
        Some(Command::Health(arguments)) => health::run(arguments),
        Some(Command::History(arguments)) => history::run(arguments),
        Some(Command::Memory(arguments)) => memory::run(arguments),
        Some(Command::Node(arguments)) => node::run(arguments),
        Some(Command::Plot(arguments)) => figures::run(arguments),
        Some(Command::Queue(arguments)) => queue::run(arguments),
        Some(Command::Report(arguments)) => report::run(arguments),
        Some(Command::Rerun(_)) => {
            Err(UsageError("rerun: name the results folder first".to_owned()).into())
        }
        Some(Command::Serve(arguments)) => serve::run(arguments),
        Some(Command::Show(arguments)) => show::run(arguments),
        Some(Command::List(arguments)) => list::run(arguments),
        Some(Command::Host(arguments)) => host::run(arguments),
    }
}

/// The exit code; of an error, which is printed, 2 where other input would avoid it.
fn ended(done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::print_error(&in_words(&error));
            let other = error.downcast_ref::<ReadError>();
            let is_misuse = error.is::<UsageError>() || other.is_some_and(ReadError::is_misuse);
            ExitCode::from(if is_misuse { 2 } else { 1 })
        }
    }
}

/// An error and what caused it; where the one has the text of the other already, it is not repeated.
fn in_words(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text.is_empty() {
            true => cause,
            false if text.contains(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
}

#[cfg(feature = "rdma")]
fn run_devices(arguments: &DevicesArguments) -> anyhow::Result<u8> {
    devices::run(arguments)
}

#[cfg(not(feature = "rdma"))]
fn run_devices(_arguments: &DevicesArguments) -> anyhow::Result<u8> {
    Err(UsageError(WITHOUT_RDMA.to_owned()).into())
}

/// The error where verbs are needed and were left out of the build.
#[cfg(not(feature = "rdma"))]
const WITHOUT_RDMA: &str = "RDMA devices are not available: this hcabench is built without the feature rdma\n  fix: install a \
     package (.deb, .rpm or .whl), or build with libibverbs and librdmacm: cargo build --release";
