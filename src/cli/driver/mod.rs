//! One driver for all benchmarks: from a benchmark's plan to its results folder, the tables, and the exit code.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`arguments`] | the options of a sweep |
//! | [`command_line`] | options from a file, and the command line of an earlier run |
//! | [`worker`] | a round in a process of its own |
//! | [`course`] | measures what is to be measured, and writes all files |
//! | [`dry_run`] | says what would be measured |

pub mod arguments;
pub mod command_line;
pub mod course;
pub mod dry_run;
pub mod worker;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use serde_json::{Value, json};

use self::arguments::SweepArguments;
use self::course::{Course, Settings};
use super::UsageError;
use super::ending::{Ending, close};
use super::output::{
    OutputArguments, bad_folder, labelled, print_json, print_text, terminal_width,
};
use crate::host::interrupt;
use crate::host::readiness::{Needs, Readiness, Verdict};
use crate::results::{Record, ResultsFolder};
use crate::rig::benchmark::{Benchmark, Failure, Plan};
use crate::rig::sweep::Rounds;

/// Rounds of a sweep that has a budget and no number of rounds.
const AS_MANY_AS_FIT: u32 = 10_000;
/// A limit of the benchmark is broken.
const LIMIT_BROKEN: u8 = 3;

/// A benchmark with what was asked for.
pub struct Request<'a> {
    /// The options of the sweep.
    pub sweep: &'a SweepArguments,
    /// Where results go, and how they are shown.
    pub output: &'a OutputArguments,
    /// The benchmark.
    pub benchmark: Box<dyn Benchmark>,
    /// Rounds where none are asked for.
    pub default_rounds: u32,
    /// The settings of the run that are no point's (an object).
    pub run: Value,
    /// What it needs of the machine.
    pub needs: Needs,
    /// How its results are shown.
    pub view: View,
}

/// How the results of a benchmark are shown to people, and what `--json` has beside the common parts.
#[derive(Clone, Copy)]
pub struct View {
    /// The tables.
    pub tables: fn(&Shown<'_>) -> String,
    /// More for `--json`: an object, whose keys stand beside the common ones.
    pub json: fn(&Shown<'_>) -> Value,
}

/// What there is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The rows of `summary.csv`, in the sweep's order.
    pub summary: &'a [Record],
    /// The rows of `runs.csv`.
    pub runs: &'a [Record],
    /// Of each row of the summary that has them, the details of the last round, as `settings.json` has them.
    pub details: &'a [(String, Value)],
    /// Columns of the terminal, if there is one.
    pub width: Option<usize>,
}

/// Runs a benchmark as asked for. Returns the exit code.
///
/// # Errors
/// [`UsageError`] for bad input, others when the run cannot start or go on.
pub fn run(mut request: Request<'_>) -> anyhow::Result<u8> {
    if worker::is_worker() {
        let code = worker::serve(request.benchmark.as_mut());
        return code.context("the sweep that this round belongs to has gone");
    }
    interrupt::install()?;
    let rounds = rounds_of(&request)?;
    let plan = request.benchmark.plan().map_err(sort)?;
    check_budget(request.sweep, &plan)?;
    if request.sweep.dry_run {
        let text = if request.output.json {
            return print_json(&dry_run::document(&plan, &rounds))
                .map(|()| 0)
                .context("cannot write to standard output");
        } else {
            dry_run::text(&plan, &rounds, request.sweep.budget, terminal_width())
        };
        return print_text(&text)
            .map(|()| 0)
            .context("cannot write to standard output");
    }
    let started_at = SystemTime::now();
    let out = match &request.sweep.resume {
        Some(folder) => folder.clone(),
        None => request.output.folder(started_at),
    };
    let needed = bytes_needed(&plan, &rounds, request.sweep.budget);
    let earlier = match &request.sweep.resume {
        Some(folder) => Some(
            course::Earlier::read(folder, request.benchmark.schema())
                .map_err(|reason| UsageError(format!("--resume {}: {reason}", folder.display())))?,
        ),
        None => {
            let checked = ResultsFolder::check(&out, request.output.force, needed);
            checked.map_err(|error| bad_folder(&out, &error))?;
            None
        }
    };
    if let Some(earlier) = &earlier {
        check_rounds(request.sweep, &earlier.rounds)?;
    }
    // Before any thread is pinned.
    let readiness = Readiness::assess(request.needs)?;
    let ready = request.benchmark.prepare(plan).map_err(sort)?;
    if let Some(signal) = interrupt::requested() {
        return Err(anyhow::anyhow!("interrupted by {signal}"));
    }
    let settings = Settings {
        schema: request.benchmark.schema(),
        rounds: earlier.as_ref().map_or(rounds, |earlier| earlier.rounds),
        command_line: command_line(),
        started_at,
        run: request.run,
        obtained: ready.obtained,
        instrument: ready.instrument,
        machine: serde_json::to_value(&readiness.machine)?,
        readiness: readiness_document(&readiness),
        quiet: request.output.quiet,
    };
    let announce = |text: &str| {
        if !request.output.quiet {
            eprintln!("{text}");
        }
    };
    let machine = crate::cli::host::machine_in_words(&readiness.machine);
    announce(&format!("machine:  {machine}"));
    ready.announcements.iter().for_each(|line| announce(line));
    if let Some(line) = sweep_in_words(&ready.plan, &settings.rounds) {
        announce(&line);
    }
    let mut course = match earlier {
        None => {
            let folder = ResultsFolder::create(&out, request.output.force, needed)
                .map_err(|error| bad_folder(&out, &error))?;
            Course::begin(folder, ready.plan, settings)?
        }
        Some(earlier) => Course::resume(earlier, ready.plan, settings)
            .map_err(|reason| UsageError(format!("--resume {}: {reason}", out.display())))?,
    };
    course.warn(&ready.warnings);
    course.judge_machine(&readiness);
    let limits = course::Limits {
        budget: request.sweep.budget,
        until_round: request.sweep.until_round,
    };
    let outcome = course.measure(request.benchmark, &own_arguments(), &limits);
    let stopped = matches!(outcome, Ok(course::End::UntilRound));
    let outcome = match outcome {
        Ok(_) => Ok(()),
        Err(ending) => Err(ending),
    };
    let (folder, report) = course.finish();
    if stopped {
        // As after an interrupt: the folder keeps its mark, and --resume goes on.
        folder.fail("stopped by --until-round")?;
        return Ok(0);
    }
    let outcome: Result<(), Ending> = outcome;
    let view = request.view;
    let code = close(folder, outcome, request.output.quiet, || {
        report.print(&view, request.output)
    })?;
    for line in &report.broken_limits {
        eprintln!("hcabench: {line}");
    }
    Ok(if report.broken_limits.is_empty() {
        code
    } else {
        LIMIT_BROKEN
    })
}

/// How many rounds, and the seed of their orders.
fn rounds_of(request: &Request<'_>) -> anyhow::Result<Rounds> {
    let sweep = request.sweep;
    let count = match (sweep.rounds, sweep.budget) {
        (Some(rounds), _) => rounds,
        (None, Some(_)) => AS_MANY_AS_FIT,
        (None, None) => request.default_rounds,
    };
    let seed = match sweep.order_seed {
        Some(seed) => seed,
        None => drawn(),
    };
    Ok(Rounds { count, seed })
}

/// A seed that no other run has: from the time and the process, short enough to be typed.
fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos() as u64);
    crate::pacing::SplitMix64::new(nanos ^ u64::from(std::process::id())).draw() % 1_000_000_000
}

/// A run that is taken up again has its rounds and their orders already.
fn check_rounds(sweep: &SweepArguments, earlier: &Rounds) -> Result<(), UsageError> {
    let other = |option: &str, asked: u64, there: u64| {
        UsageError(format!(
            "{option} {asked}: the run in --resume has {there}: leave it out, or measure again"
        ))
    };
    match (sweep.rounds, sweep.order_seed) {
        (Some(rounds), _) if rounds != earlier.count => {
            Err(other("--rounds", rounds.into(), earlier.count.into()))
        }
        (_, Some(seed)) if earlier.count > 1 && seed != earlier.seed => {
            Err(other("--order-seed", seed, earlier.seed))
        }
        _ => Ok(()),
    }
}

fn check_budget(sweep: &SweepArguments, plan: &Plan) -> Result<(), UsageError> {
    let round = dry_run::time_of_round(plan);
    match sweep.budget {
        Some(budget) if budget < round => Err(UsageError(format!(
            "--budget {}: one round of this sweep takes about {}: allowed is that or more",
            humantime::format_duration(budget),
            dry_run::time_in_words(round)
        ))),
        _ => Ok(()),
    }
}

/// Bytes on disk, of as many rounds as the budget can hold.
fn bytes_needed(plan: &Plan, rounds: &Rounds, budget: Option<Duration>) -> u64 {
    let round = dry_run::time_of_round(plan).max(Duration::from_millis(1));
    let fit = budget.map_or(f64::INFINITY, |budget| {
        budget.as_secs_f64() / round.as_secs_f64() + 1.0
    });
    let count = f64::from(rounds.count).min(fit);
    let of_round: u64 = plan.points.iter().map(|point| point.bytes).sum();
    (of_round as f64 * count) as u64
}

fn sweep_in_words(plan: &Plan, rounds: &Rounds) -> Option<String> {
    let (points, left_out) = (plan.points.len(), plan.left_out.len());
    if points + left_out <= 1 && rounds.count == 1 {
        return None;
    }
    let mut line = format!(
        "sweep:    {points} point{} to measure",
        if points == 1 { "" } else { "s" }
    );
    if rounds.count == AS_MANY_AS_FIT {
        line += ", in as many rounds as fit";
    } else if rounds.count > 1 {
        line += &format!(", in {} rounds", rounds.count);
    }
    if left_out > 0 {
        line += &format!(", {left_out} impossible (see left_out.csv)");
    }
    Some(line)
}

fn readiness_document(readiness: &Readiness) -> Value {
    let checks = readiness
        .checks
        .iter()
        .filter(|check| check.verdict > Verdict::Good);
    json!({ "ready": readiness.ready, "checks": checks.collect::<Vec<_>>() })
}

/// The command line as it is recorded, and repeated by children: options of files are in it.
fn own_arguments() -> Vec<OsString> {
    super::expanded_arguments().to_vec()
}

fn command_line() -> Vec<String> {
    let words = own_arguments()
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned());
    std::iter::once("hcabench".to_owned())
        .chain(words)
        .collect()
}

/// Bad input ends with exit code 2, whatever found it.
fn sort(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Usage(text) => UsageError(text).into(),
        other => anyhow::anyhow!(other.to_string()),
    }
}

/// What is left to be printed when the folder is closed.
pub struct Report {
    summary: Vec<Record>,
    runs: Vec<Record>,
    left_out: Vec<Record>,
    details: Vec<(String, Value)>,
    notes: Vec<String>,
    warnings: Vec<String>,
    readiness: Value,
    rounds: Value,
    obtained: Value,
    text: Option<String>,
    broken_limits: Vec<String>,
}

impl Report {
    fn print(&self, view: &View, output: &OutputArguments) -> std::io::Result<()> {
        let shown = Shown {
            summary: &self.summary,
            runs: &self.runs,
            details: &self.details,
            width: terminal_width(),
        };
        if output.json {
            let mut document = json!({
                "points": self.summary,
                "left_out": self.left_out,
                "rounds": self.rounds,
                "obtained": self.obtained,
                "readiness": self.readiness,
                "warnings": self.warnings,
                "notes": self.notes,
            });
            if let (Value::Object(all), Value::Object(more)) = (&mut document, (view.json)(&shown))
            {
                all.extend(more);
            }
            return print_json(&document);
        }
        if output.quiet || self.summary.is_empty() {
            return Ok(());
        }
        let mut text = match &self.text {
            Some(text) => text.clone(),
            None => (view.tables)(&shown),
        };
        if !self.notes.is_empty() {
            text += "\n";
        }
        for note in &self.notes {
            text += &labelled("note", note);
            text += "\n";
        }
        print_text(&text)
    }
}

/// Whether a path is that of a results folder that a run may go on in.
pub(crate) fn is_incomplete(folder: &Path) -> bool {
    folder
        .join(crate::results::folder::MARK)
        .symlink_metadata()
        .is_ok()
}
