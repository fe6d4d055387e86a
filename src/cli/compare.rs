//! `hcabench compare`: whether a run is better or worse than another, or a point than another of the same sweep.

mod answer;
mod fabric;
mod present;
mod turns;
mod values;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::arguments::UsageError;
use crate::arguments::values::{List, count};
use crate::compare::figures::{Kind, Limit, USUAL};
use crate::compare::{CompareError, Comparison, Permitted, Request};
use crate::compare::{compare, compare_within, names, rounds};
use crate::findings::{self, print_damaged};
use crate::results::finding::Findings;
use crate::results::finding::kinds::{FILES_DAMAGED, INCOMPLETE, POINT_FAILED};
use crate::results::read::{Fabric, Run};
use crate::results::schema::Schema;
use crate::results::text::printable;
use crate::terminal::output::{print_json, print_text, say, terminal_width, warning};
use crate::terminal::table_options::TableOptions;

use self::present::Shown;

/// The exit code of a broken limit.
const BROKEN: u8 = 3;
/// So many names, or reasons why limits could not be judged, are told.
const MOST_TOLD: usize = 10;

/// Arguments of `hcabench compare`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompareArguments {
    /// Compare with this results folder, or with that of one of its points
    #[arg(value_name = "BASE", required_unless_present = "run")]
    pub base: Option<PathBuf>,

    /// Compare this results folder, which may be better or worse
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,

    /// Fail with exit code 3 if a figure is worse and its shift is more than a share of BASE, such as
    /// 5%@p50,10%@p99,5%@throughput, of a memory or of CPUs 5%@latency,5%@bandwidth, of the latter 5%@one-way as well, of
    /// the tiers and nodes of a fabric 5%@p50 or 5%@rtt/2.p50; of lost and jump-time, which are shares themselves,
    /// percentage points: 0.1%@lost. 5%@p50 is of all that have a p50, 5%@latency.p50 of latency alone (also
    /// completion, enqueue, dequeue)
    #[arg(long, value_name = "LIST", value_parser = values::limits)]
    pub max_regression: Option<List<Limit>>,

    /// Exit with code 1 where the rounds do not show that a limit is kept: the bounds of the shift allow more
    #[arg(long, requires = "max_regression")]
    pub strict: bool,

    /// Compare points of one run that differ in this setting only, its first value with each other one, as in poll_recv
    #[arg(long, value_name = "SETTING", conflicts_with_all = ["new", "allow", "anyway", "run"])]
    pub by: Option<String>,

    /// Measure two command lines in turn, round by round, and compare them: --run 'ARGS A' --run 'ARGS B'
    #[arg(long, value_name = "ARGS", conflicts_with = "base", requires = "rounds", value_parser = values::command_line,
        allow_hyphen_values = true)]
    pub run: Vec<values::Words>,

    /// Measure this many rounds of each --run [default: 1]
    #[arg(long, value_name = "N", requires = "run", value_parser = |text: &str| count::<u32>(text, 1..=1000))]
    pub rounds: Option<u32>,

    /// Write A and B, the results of --run, to this folder; refused if it holds anything [default: results/DATE-TIME]
    #[arg(long, value_name = "DIR", requires = "run")]
    pub out: Option<PathBuf>,

    /// Compare these percentiles beside those of --max-regression, as in p50,p99.9 [default: p50,p99]
    #[arg(long, value_name = "LIST", value_parser = values::percentiles)]
    pub percentiles: Option<List<f64>>,

    /// Compare runs that differ in these settings, as in hugepages,receiver-pause; the machine must be the same
    #[arg(long, value_name = "SETTING,...", value_parser = values::settings)]
    pub allow: Option<List<String>>,

    /// Compare runs of different machines or settings as well, and print the differences
    #[arg(long)]
    pub anyway: bool,

    /// Print no table, and report by the exit code
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,

    /// Print the comparison as JSON instead of the table
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// How much of the table is shown, and in which order.
    #[command(flatten)]
    pub table: TableOptions,
}

impl CompareArguments {
    fn request(&self) -> Request {
        let limits = self
            .max_regression
            .clone()
            .map_or_else(Vec::new, |list| list.0);
        // Without any others, those with limits stand beside the usual ones.
        let asked = self.percentiles.clone();
        let mut percentiles = asked.map_or_else(|| USUAL.to_vec(), |list| list.0);
        percentiles.extend(limits.iter().filter_map(|limit| {
            match (limit.of.kind, &limit.of.scope) {
                (Kind::Percentile(percent), None) => Some(percent),
                _ => None,
            }
        }));
        percentiles.sort_by(f64::total_cmp);
        percentiles.dedup();
        let named = self.allow.clone().map_or_else(Vec::new, |list| list.0);
        let permitted = match (self.anyway, self.run.is_empty()) {
            (true, _) => Permitted::All,
            // Two command lines are meant to differ.
            (false, false) => Permitted::Settings,
            (false, true) => Permitted::Named(named),
        };
        Request {
            percentiles,
            limits,
            permitted,
            names: ["A", "B"].map(str::to_owned),
        }
    }
}

/// What is compared.
enum Sides<'a> {
    /// Points of the run in a folder.
    Points(&'a Path),
    /// The runs in two folders.
    Folders([&'a Path; 2]),
    /// Two command lines, which were measured into two folders.
    CommandLines([&'a Path; 2]),
}

impl Sides<'_> {
    fn folders(&self) -> serde_json::Value {
        match self {
            Sides::Points(run) => json!({ "run": run }),
            Sides::Folders([base, new]) | Sides::CommandLines([base, new]) => {
                json!({ "base": base, "new": new })
            }
        }
    }

    /// How so many rounds are recorded.
    fn record(&self, rounds: usize) -> String {
        let again = |folder: &Path| {
            let shown = folder.display().to_string();
            let quoted = |text: &str| match shlex::try_quote(text) {
                Ok(quoted) => quoted.into_owned(),
                Err(_) => text.to_owned(),
            };
            let out = folder
                .file_name()
                .map_or("run".into(), |name| name.to_string_lossy());
            let out = quoted(&format!("{out}-{rounds}-rounds"));
            format!(
                "`hcabench rerun {} --rounds {rounds} --out {out}`",
                quoted(&shown)
            )
        };
        match self {
            Sides::Points(run) => format!("To record them: {}", again(run)),
            Sides::Folders([base, new]) => {
                format!("To record them: {} and {}", again(base), again(new))
            }
            Sides::CommandLines(_) => format!("Use --rounds {rounds}."),
        }
    }

    /// What names stand for that the folders do not have.
    fn legend(&self, arguments: &CompareArguments, names: &[String; 2]) -> Vec<String> {
        let folders = match self {
            Sides::Points(_) => return Vec::new(),
            Sides::Folders(folders) | Sides::CommandLines(folders) => folders,
        };
        let line = |side: usize| match arguments.run.get(side) {
            Some(words) => Some(format!("{}: {}", names[side], words.text())),
            None if folders[side].ends_with(&names[side]) => None,
            None => Some(format!("{}: {}", names[side], folders[side].display())),
        };
        (0..2).filter_map(line).collect()
    }
}

/// Compares two runs, or the points of one, or has two measured before. Returns the exit code.
pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let request = arguments.request();
    match (
        arguments.run.as_slice(),
        &arguments.base,
        &arguments.new,
        &arguments.by,
    ) {
        ([one, other], ..) if one.command() != other.command() => {
            let names = [one, other].map(|words| words.command().unwrap_or("hca"));
            let reason = format!(
                "--run: {} and {}: give two of one benchmark",
                names[0], names[1]
            );
            Err(UsageError(reason).into())
        }
        ([one, other], ..) => {
            let schema = Schema::of(one.command().unwrap_or("hca"));
            let settings = schema.map_or(&[][..], |schema| schema.point);
            let settings = settings.iter().map(|column| column.name);
            present::order(&arguments.table, settings, ["A", "B"])?;
            let folder = turns::make_folder(arguments.out.as_deref())?;
            let number = arguments.rounds.unwrap_or(1);
            let [base, new] = turns::take([&one.0, &other.0], number, &folder, arguments.quiet)?;
            let sides = Sides::CommandLines([&base, &new]);
            compare_folders(arguments, request, [&base, &new], &sides)
        }
        ([], Some(base), Some(new), None) => {
            let folders = [base.as_path(), new.as_path()];
            let request = Request {
                names: names::of_folders(folders),
                ..request
            };
            compare_folders(arguments, request, folders, &Sides::Folders(folders))
        }
        ([], Some(base), None, Some(by)) if Fabric::is_one(base) => {
            let base = printable(&base.display().to_string()).into_owned();
            let reason = format!(
                "--by {by}: {base} holds a fabric, which has no points: give a second folder of one"
            );
            Err(UsageError(reason).into())
        }
        ([], Some(base), None, Some(by)) => {
            let run = rounds::open(base)?;
            let comparison = compare_within(&run, by, &request).map_err(sort)?;
            show(
                arguments,
                &request,
                &comparison,
                &[&run],
                &Sides::Points(base),
            )
        }
        ([], Some(base), ..) => {
            let base = printable(&base.display().to_string()).into_owned();
            Err(UsageError(format!(
                "{base} is the only results folder: give a second one, or compare points within it by --by SETTING"
            ))
            .into())
        }
        (runs, ..) => {
            Err(UsageError(format!("--run: give two of them, not {}", runs.len())).into())
        }
    }
}

fn compare_folders(
    arguments: &CompareArguments,
    mut request: Request,
    [base, new]: [&Path; 2],
    sides: &Sides<'_>,
) -> anyhow::Result<u8> {
    for name in &mut request.names {
        *name = printable(name).into_owned();
    }
    if Fabric::is_one(base) || Fabric::is_one(new) {
        return fabric::run(arguments, &request, [base, new], sides);
    }
    let base = rounds::open(base).context("BASE")?;
    let new = rounds::open(new).context("NEW")?;
    check_allowed(arguments, |name| {
        base.schema.setting(name).is_some()
            || [&base, &new].iter().any(|run| {
                let document = run.document();
                has(&document["run"], name) || has(&document["obtained"], name)
            })
    })?;
    let comparison = compare(&base, &new, &request).map_err(sort)?;
    show(arguments, &request, &comparison, &[&base, &new], sides)
}

/// A name that is no setting at all would permit nothing, without a word.
fn check_allowed(
    arguments: &CompareArguments,
    is_setting: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let mut names = arguments.allow.iter().flat_map(|list| &list.0);
    match names.find(|name| !is_setting(name)) {
        None => Ok(()),
        Some(name) => {
            Err(UsageError(format!("--allow: {name:?} is not a setting of either run")).into())
        }
    }
}

/// Whether a part of a document has a setting of this name, parts of which have dots between them.
fn has(part: &serde_json::Value, name: &str) -> bool {
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    let Some(members) = part.as_object() else {
        return false;
    };
    let mut below = members.values();
    let is_here = members
        .get(first)
        .is_some_and(|found| rest.is_empty() || has(found, rest));
    is_here || below.any(|found| has(found, name))
}

fn show(
    arguments: &CompareArguments,
    request: &Request,
    comparison: &Comparison,
    runs: &[&Run],
    sides: &Sides<'_>,
) -> anyhow::Result<u8> {
    for text in &comparison.warnings {
        say(warning(&printable(text)));
    }
    let names = &comparison.names;
    for differs in &comparison.differs {
        let text = format!("{} differ in {differs}", names.join(" and "));
        say(warning(&printable(&text)));
    }
    let only = [&comparison.only_in_base, &comparison.only_in_new];
    for (side, points) in only.into_iter().enumerate() {
        if !points.is_empty() {
            let points = match points.as_slice() {
                [one] => one.clone(),
                [first, ..] => format!("{} points, such as {first}", points.len()),
                [] => String::new(),
            };
            let text = match &comparison.by {
                None => format!("only in {}: {points}", names[side]),
                Some(by) => format!(
                    "not compared, as no other differs in {} alone: {points}",
                    by.setting
                ),
            };
            say(warning(&printable(&text)));
        }
    }
    let shown = Shown::of(comparison);
    // Also where no table is shown: a column that --sort does not know is refused.
    let settings = present::settings(comparison).into_iter();
    let order = present::order(&arguments.table, settings, shown.names())?;
    let damaged = runs.iter().flat_map(|run| &run.damaged);
    let damaged = print_damaged(damaged.map(AsRef::as_ref));
    let found: Vec<Findings> = runs.iter().map(|run| findings::of(run)).collect();
    let mut answer = sides.legend(arguments, names);
    answer.extend(shown.answer(&|rounds| sides.record(rounds)));
    if arguments.json {
        let named = |(place, found): (usize, &Findings)| {
            let name = (runs.len() == 2).then(|| names[place].as_str());
            json!({ "name": name, "verdict": found.verdict(), "findings": found })
        };
        print_json(&json!({
            "folders": sides.folders(),
            "answer": answer,
            "verdict": { "limits": request.limits, "broken": comparison.has_broken_limit() },
            "findings": found.iter().enumerate().map(named).collect::<Vec<_>>(),
            "comparison": comparison,
        }))?;
    } else if !arguments.quiet {
        let brief = arguments.table.brief.brief;
        let verdicts = verdicts(&found, runs, names);
        let text = shown.text(&answer, &verdicts, order, brief, terminal_width());
        print_text(&text)?;
    }
    let judged = judge(comparison, &request.limits, arguments.strict)?;
    Ok(judged.max(damaged))
}

/// The verdict on each run, as the run itself printed it, and why rounds are left out.
fn verdicts(found: &[Findings], runs: &[&Run], names: &[String; 2]) -> Vec<String> {
    let mut lines: Vec<String> = match found {
        [one, other] if one.verdict() != other.verdict() => {
            let lines = names.iter().zip(found);
            let lines = lines.map(|(name, it)| format!("verdict on {name}: {}", it.verdict()));
            lines.collect()
        }
        [one, ..] => vec![format!("verdict: {}", one.verdict())],
        [] => Vec::new(),
    };
    for (place, (found, run)) in found.iter().zip(runs).enumerate() {
        let of = match runs.len() {
            1 => String::new(),
            _ => format!("{}: ", names[place]),
        };
        let all = found.all().into_iter();
        let is_left_out =
            |kind: &str| [FILES_DAMAGED.id, INCOMPLETE.id, POINT_FAILED.id].contains(&kind);
        let left_out = all.filter(|it| is_left_out(&it.kind));
        lines.extend(left_out.map(|it| format!("- {of}{}", it.line(run.points.len()))));
    }
    lines
}

fn first_of(texts: &[String], between: &str) -> String {
    let told = &texts[..texts.len().min(MOST_TOLD)];
    let more = match texts.len() - told.len() {
        0 => String::new(),
        more => format!("{between}and {more} more"),
    };
    told.join(between) + &more
}

/// The exit code, or why there can be none that means something.
fn judge(comparison: &Comparison, limits: &[Limit], strict: bool) -> anyhow::Result<u8> {
    if comparison.has_broken_limit() {
        return Ok(BROKEN);
    }
    let open = || comparison.open_limits();
    none_left(&comparison.gaps(limits), open, strict)
}

/// That limits are kept where none is broken: all of them were judged, and if that is asked for, none is left open.
fn none_left(
    gaps: &[String],
    open: impl FnOnce() -> Vec<String>,
    strict: bool,
) -> anyhow::Result<u8> {
    let told = |texts: &[String]| {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| printable(text).into_owned())
            .collect();
        first_of(&texts, "\n  ")
    };
    if !gaps.is_empty() {
        anyhow::bail!(
            "--max-regression: no limit is broken, but they could not be judged everywhere:\n  {}",
            told(gaps)
        );
    }
    let open = if strict { open() } else { Vec::new() };
    if !open.is_empty() {
        anyhow::bail!(
            "--strict: the rounds leave open whether a limit is kept; measure more of them (--rounds):\n  {}",
            told(&open)
        );
    }
    Ok(0)
}

/// What other options or folders would avoid is the user's.
fn sort(error: CompareError) -> anyhow::Error {
    match error {
        CompareError::Read(_) => error.into(),
        error => {
            let text = error.to_string();
            let lines = text.lines().map(|line| printable(line).into_owned());
            UsageError(lines.collect::<Vec<_>>().join("\n")).into()
        }
    }
}

#[cfg(test)]
mod tests;
