//! One driver for all benchmarks: from a benchmark's plan to its results folder, the tables, and the exit code.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`arguments`] | the options of a sweep |
//! | [`command_line`] | options from a file, and the command line of an earlier run |
//! | [`worker`] | a round in a separate process |
//! | [`course`] | measures what is to be measured, and writes all files |
//! | [`search`] | which rate is measured next, and what was found |
//! | [`row`] | a row of the summary, and the files in its folder |
//! | [`earlier`] | what an earlier run left for `--resume` |
//! | [`shown`] | what is shown at the end |
//! | [`line_stream`] | the run as it happens, for other programs |
//! | [`metrics`] | the summary, for monitors |
//! | [`dry_run`] | prints what would be measured |

pub(crate) mod arguments;
pub(crate) mod command_line;
pub(crate) mod course;
pub(crate) mod dry_run;
pub(crate) mod earlier;
pub(crate) mod ending;
pub(crate) mod line_stream;
mod metrics;
pub(crate) mod row;
pub(crate) mod search;
pub(crate) mod shown;
pub(crate) mod worker;

pub(crate) use shown::{Shown, View};

use std::io::{self, Write as _};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use serde_json::{Value, json};

use self::arguments::SweepArguments;
use self::course::SweepRun;
use self::earlier::{EarlierRun, measure_again};
use self::search::Searches;
use self::worker::RoundProcess;
use crate::arguments::UsageError;
use crate::arguments::conditions::Conditions;
use crate::bench::Assignment;
use crate::driver::ending::close;
use crate::findings;
use crate::host::readiness::{Needs, Readiness, Verdict};
use crate::host::{interrupt, resources};
use crate::results::Record;
use crate::results::document::{self, Document, Program};
use crate::results::finding::Findings;
use crate::results::schema::{FIND_RATE, INCOMPLETE};
use crate::rig::benchmark::{Failure, Plan};
use crate::rig::sweep::Rounds;
use crate::terminal::output::{
    OutputArguments, cannot_resume, labelled, print_as, say, terminal_width, warning,
};

/// Rounds of a sweep that has a budget and no number of rounds.
const AS_MANY_AS_FIT: u32 = u32::MAX;

/// What is to be measured, and how it is shown.
pub(crate) struct Request<'a> {
    pub sweep: &'a SweepArguments,
    /// Where results go, and how they are shown.
    pub output: &'a OutputArguments,
    pub assignment: Assignment,
    /// The conditions of the highest rate, where that is searched.
    pub find_rate: Option<&'a Conditions>,
    /// Rounds where none are asked for.
    pub default_rounds: u32,
    /// The settings of the run that are no point's (an object).
    pub run: Record,
    pub needs: Needs,
    pub view: View,
}

/// Runs a benchmark as asked for. Returns the exit code.
pub(crate) fn run(request: Request<'_>) -> anyhow::Result<u8> {
    interrupt::install()?;
    let mut benchmark = request.assignment.clone().benchmark();
    let (sweep, output) = (request.sweep, request.output);
    let order = request.view.order(&output.table)?;
    let plan = benchmark.plan().map_err(sort)?;
    let schema = benchmark.schema();
    let searches_of = |plan: &Plan| {
        let conditions = request.find_rate;
        conditions
            .map(|it| Searches::new(it, schema, sweep.rounds, plan))
            .transpose()
    };
    let searches = searches_of(&plan)?;
    let rounds = rounds_of(&request, searches.as_ref());
    // What a round takes, of a search at the most.
    let round = match &searches {
        Some(searches) => searches.costliest_round(&plan),
        None => plan.clone(),
    };
    let most_bytes = match &searches {
        Some(searches) => searches.bytes(&plan),
        None => u64::MAX,
    };
    check_budget(sweep, &round)?;
    let label = sweep.label()?;
    if sweep.dry_run {
        let mut document = dry_run::document(&round, &rounds, sweep.budget, most_bytes);
        let search = searches.as_ref().map(Searches::in_words);
        if let Some(search) = &search {
            document["find_rate"] = json!(search);
        }
        let (width, has_devices) = (terminal_width(), request.needs.devices);
        let of_search = search.map_or(String::new(), |search| {
            format!("{search}\nthe rates that take longest, and the most that all rounds take:\n\n")
        });
        let text = || {
            of_search.clone()
                + &dry_run::text(
                    &round,
                    &rounds,
                    sweep.budget,
                    most_bytes,
                    width,
                    has_devices,
                )
        };
        return print_as(output.json, &document, text).map(|()| 0);
    }
    resources::require_memory(resources::LEAST_TO_MEASURE)?;
    let started_at = SystemTime::now();
    let needed = match &searches {
        Some(searches) => searches.bytes_to_begin(&plan),
        None => u64::MAX,
    };
    let needed = bytes_needed(&round, &rounds, sweep.budget).min(needed);
    let earlier = match &sweep.resume {
        Some(folder) => {
            let mut earlier = EarlierRun::read(folder, schema)
                .map_err(|reason| cannot_resume(folder, &reason))?;
            match &searches {
                Some(searches) => {
                    // Another --rate has another number of rounds as well.
                    if let Some(differs) = earlier.lacks_point(&plan) {
                        return Err(cannot_resume(folder, &measure_again(&differs)));
                    }
                    check_most_rounds(sweep, searches, &rounds, &earlier.rounds)?;
                }
                None => check_rounds(sweep, &earlier.rounds)?,
            }
            if earlier.rounds.count == AS_MANY_AS_FIT && sweep.budget.is_none() {
                // Its budget is spent: only rounds that were begun are completed.
                earlier.rounds.count = earlier.rounds_begun();
            }
            Some(earlier)
        }
        None => {
            output.check_folder(needed)?;
            None
        }
    };
    let lines = sweep.exports.open(output.json)?;
    // Before any thread is pinned.
    let busy = benchmark.busy_cpus();
    let needs = busy.map_or(request.needs, |busy| request.needs.with_busy(busy));
    let readiness = Readiness::assess(needs)?;
    if !output.quiet {
        benchmark.show_waits(|text| {
            let _ = writeln!(io::stderr(), "{text}");
        });
    }
    let ready = benchmark.prepare(plan).map_err(sort)?;
    if let Some(signal) = interrupt::requested() {
        return Err(anyhow::anyhow!("interrupted by {signal}"));
    }
    let rounds = earlier.as_ref().map_or(rounds, |earlier| earlier.rounds);
    let searches = searches_of(&ready.plan)?;
    let mut run = request.run;
    if let Some(conditions) = request.find_rate {
        run.set(&FIND_RATE, conditions.to_string());
    }
    let document = Document {
        hcabench: Program::this(),
        benchmark: schema.benchmark.to_owned(),
        command_line: recorded_command_line(),
        started_at: moment(started_at),
        label,
        status: INCOMPLETE.to_owned(),
        failure: None,
        point: None,
        run: json!(run),
        obtained: ready.obtained,
        instrument: ready.instrument,
        machine: serde_json::to_value(&readiness.machine)?,
        readiness: readiness_document(&readiness),
        rounds: document::Rounds {
            planned: rounds.count,
            done: 0,
            seed: (rounds.count > 1).then_some(rounds.seed),
        },
        details: Value::Null,
    };
    if !output.quiet {
        let machine = readiness.machine.in_words();
        let lines = std::iter::once(format!("machine:  {machine}"))
            .chain(ready.announcements)
            .chain(match &searches {
                Some(searches) => Some(search_in_words(searches, &ready.plan)),
                None => sweep_in_words(&ready.plan, &rounds),
            });
        for line in lines {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
    let of_machine = findings::of_machine(&json!(document), &document.machine);
    let mut known = Findings::default();
    for found in &of_machine {
        known.add(found.clone(), None, None);
    }
    if !output.quiet && known.is_invalid() {
        let _ = writeln!(io::stderr(), "{}", labelled("warning", &known.verdict()));
    }
    let mut course = match earlier {
        None => {
            let folder = output.create_folder(started_at, needed)?;
            SweepRun::begin(folder, schema, rounds, ready.plan, document)?
        }
        Some(earlier) => {
            let folder = earlier.folder.path().to_path_buf();
            SweepRun::resume(earlier, schema, ready.plan, document)
                .map_err(|reason| cannot_resume(&folder, &reason))?
        }
    };
    if let Some(searches) = searches {
        course.search(searches);
    }
    course.verbose = output.verbose && !output.quiet;
    if let Some(lines) = lines {
        course.stream(lines);
    }
    course.find(None, None, ready.findings.into_iter().chain(of_machine));
    course.write_found()?;
    let assignment = request.assignment.of_round(&*benchmark);
    let start = || RoundProcess::start(&assignment);
    let outcome = course.measure(benchmark, &start, sweep);
    let (folder, report, outcome) = course.finish(outcome);
    let broken_limits = report.told.broken_limits.clone();
    let exports = &sweep.exports;
    close(folder, outcome, output.quiet, None, &broken_limits, || {
        if let Some(missing) = &report.lines_missing {
            say(warning(missing));
        }
        let are_missing = report.lines_missing.is_some();
        let exported = exports.prometheus.as_ref().map_or(Ok(()), |path| {
            metrics::write(path, schema, &report)
                .with_context(|| format!("--prometheus {}", path.display()))
        });
        if !exports.has_standard_output() {
            report.print(&request.view, output, order)?;
        }
        exported?;
        anyhow::ensure!(!are_missing, "the lines of --json-lines are not all there");
        Ok(())
    })
}

/// How many rounds, and the seed of their orders.
fn rounds_of(request: &Request<'_>, searches: Option<&Searches>) -> Rounds {
    let sweep = request.sweep;
    let count = match (searches, sweep.rounds, sweep.budget) {
        (Some(searches), ..) => searches.rounds(),
        (None, Some(rounds), _) => rounds,
        (None, None, Some(_)) => AS_MANY_AS_FIT,
        (None, None, None) => request.default_rounds,
    };
    let seed = sweep.order_seed.unwrap_or_else(drawn);
    Rounds { count, seed }
}

/// A seed that no other run has: from the time and the process, short enough to be typed.
fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos() as u64);
    crate::pacing::SplitMix64::new(nanos ^ u64::from(std::process::id())).draw() % 1_000_000_000
}

/// A search that is taken up again goes on with as many rounds at a rate.
fn check_most_rounds(
    sweep: &SweepArguments,
    searches: &Searches,
    rounds: &Rounds,
    earlier: &Rounds,
) -> Result<(), UsageError> {
    if rounds.count == earlier.count {
        return check_rounds(
            &SweepArguments {
                rounds: None,
                ..sweep.clone()
            },
            earlier,
        );
    }
    let there = earlier.count / searches.most_rates().max(1);
    Err(UsageError(format!(
        "--rounds {}: the run in --resume has {there} rounds at a rate: give that, or measure again",
        searches.most_rounds()
    )))
}

/// A run that is taken up again has its rounds and their orders already.
fn check_rounds(sweep: &SweepArguments, earlier: &Rounds) -> Result<(), UsageError> {
    let rounds = sweep.rounds.map(u64::from);
    let seed = sweep.order_seed.filter(|_| earlier.count > 1);
    for (option, asked, there) in [
        ("--rounds", rounds, earlier.count.into()),
        ("--order-seed", seed, earlier.seed),
    ] {
        if let Some(asked) = asked.filter(|asked| *asked != there) {
            return Err(UsageError(format!(
                "{option} {asked}: the run in --resume has {there}: leave it out, or measure again"
            )));
        }
    }
    Ok(())
}

fn check_budget(sweep: &SweepArguments, plan: &Plan) -> Result<(), UsageError> {
    let round = plan.time();
    match sweep.budget {
        Some(budget) if budget < round => Err(UsageError(format!(
            "--budget {}: one round of this sweep takes about {}; allow at least that",
            humantime::format_duration(budget),
            dry_run::time_in_words(round)
        ))),
        _ => Ok(()),
    }
}

/// Bytes on disk, of as many rounds as the budget can hold.
fn bytes_needed(plan: &Plan, rounds: &Rounds, budget: Option<Duration>) -> u64 {
    // One more than fits may be begun.
    let count = dry_run::rounds_that_fit(plan, rounds, budget).saturating_add(1);
    plan.bytes().saturating_mul(count.min(rounds.count).into())
}

fn search_in_words(searches: &Searches, plan: &Plan) -> String {
    let line = format!("search:   {}", searches.in_words());
    match plan.left_out.len() {
        0 => line,
        left_out => line + &format!(", {left_out} points impossible (see left_out.csv)"),
    }
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

/// The command line as it is recorded: options of files are in it.
pub(crate) fn recorded_command_line() -> Vec<String> {
    let words = crate::arguments::expanded_arguments().iter();
    std::iter::once("hcabench".to_owned())
        .chain(words.map(|word| word.to_string_lossy().into_owned()))
        .collect()
}

fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Bad input ends with exit code 2, whatever found it.
fn sort(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Usage(text) => UsageError(text).into(),
        other => anyhow::anyhow!(other.to_string()),
    }
}
