//! `hcabench list`: the runs below a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::below::{DEPTH, below};
use crate::figures::in_words;
use crate::findings::{self, print_damaged};
use crate::report::settings_of;
use crate::results::folder::{LIST, SETTINGS, SUMMARY};
use crate::results::read::{Fabric, ReadError, ReadErrorKind, Run, is_of_hcabench};
use crate::results::schema::fabric::HALF_P50;
use crate::results::text::printable_path;
use crate::terminal::output::{print_json, print_text, terminal_width};
use crate::terminal::table::{Column, Table};

/// Settings that are named, where more vary.
const MOST_SETTINGS: usize = 4;

/// Arguments of `hcabench list`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArguments {
    /// Look for runs in and below this folder [default: results]
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What is shown of a run.
#[derive(Default)]
struct RunListing {
    date: String,
    benchmark: String,
    points: usize,
    verdict: String,
    varied: String,
    folder: PathBuf,
    /// What could not be read.
    damaged: Vec<Arc<ReadError>>,
}

/// Prints a row for each run. Returns the exit code.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn run(arguments: &ListArguments) -> anyhow::Result<u8> {
    let folder = arguments.folder.clone();
    let folder = folder.unwrap_or_else(|| PathBuf::from("results"));
    let mut runs = Vec::new();
    if let Err(cause) = fs::read_dir(&folder) {
        if folder.is_symlink() && !folder.exists() {
            return Err(ReadErrorKind::NoSuchFolder.at(&folder).into());
        }
        let folder = printable_path(&folder);
        anyhow::bail!("{folder} cannot be read: {cause}; name the folder with the results");
    }
    let mut visit = |folder: &Path| {
        if !is_one(folder) {
            return true;
        }
        let listed = listed(folder);
        let is_read = listed.points > 0;
        runs.push(listed);
        !is_read && !has(folder, LIST)
    };
    below(&folder, &mut visit, &mut |_, _| ());
    runs.sort_by(|one, other| (&one.date, &one.folder).cmp(&(&other.date, &other.folder)));
    if arguments.json {
        print_json(&json!(runs.iter().map(object).collect::<Vec<_>>()))?;
    } else if runs.is_empty() {
        let folder = printable_path(&folder);
        print_text(&format!(
            "no results in {folder} or up to {DEPTH} folders below\n"
        ))?;
    } else {
        print_text(&table(&runs).render(terminal_width()))?;
    }
    let damaged = runs.iter().flat_map(|run| &run.damaged);
    Ok(print_damaged(damaged.map(AsRef::as_ref)))
}

/// Whether a folder has a run, damaged or not. Other programs have a settings.json or a summary.csv, too.
pub(super) fn is_one(folder: &Path) -> bool {
    let is_readable = || match Run::salvage(folder) {
        Ok(_) => true,
        Err(error) => matches!(
            error.wrong,
            ReadErrorKind::OlderFormat | ReadErrorKind::NewerFormat(_)
        ),
    };
    has(folder, LIST)
        || is_of_hcabench(folder)
        || (has(folder, SUMMARY) || has(folder, SETTINGS)) && is_readable()
}

fn has(folder: &Path, name: &str) -> bool {
    folder.join(name).symlink_metadata().is_ok()
}

fn listed(folder: &Path) -> RunListing {
    let unreadable = |error: ReadError| RunListing {
        verdict: match error.path.strip_prefix(folder) {
            Ok(file) if file != Path::new("") => {
                format!("cannot be read: {} {}", printable_path(file), error.wrong)
            }
            _ => format!("cannot be read: {}", error.wrong),
        },
        folder: folder.to_path_buf(),
        damaged: Vec::from_iter(Some(Arc::new(error)).filter(|error| error.is_damage())),
        ..RunListing::default()
    };
    if Fabric::is_one(folder) {
        return match Fabric::salvage(folder) {
            Err(error) => RunListing {
                benchmark: "fabric".to_owned(),
                ..unreadable(error)
            },
            Ok(fabric) => of_fabric(&fabric),
        };
    }
    let run = match Run::salvage(folder) {
        Ok(run) => run,
        Err(error) => return unreadable(error),
    };
    let varying = settings_of(&run).into_iter();
    let varying = varying.filter(|(_, texts)| texts.len() > 1);
    let varying: Vec<String> = varying
        .map(|(name, texts)| match &texts[..] {
            [one, other] => both(&in_words(name, one), &in_words(name, other)),
            _ => format!("{name} ({} values)", texts.len()),
        })
        .collect();
    let more = match varying.len().saturating_sub(MOST_SETTINGS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let varying = &varying[..varying.len().min(MOST_SETTINGS)];
    RunListing {
        date: date_of(&run.document()["started_at"]),
        benchmark: run.schema.benchmark.to_owned(),
        points: run.points.len(),
        verdict: findings::of(&run).verdict(),
        varied: varying.join("; ") + &more,
        folder: folder.to_path_buf(),
        damaged: run.damaged,
    }
}

fn of_fabric(fabric: &Fabric) -> RunListing {
    // Also its rows are read: what is wrong with them is named.
    let read = fabric.each(&HALF_P50, |_, _, _| ());
    let damaged = fabric.damaged();
    let verdict = match (read, damaged.is_empty()) {
        (Err(error), _) => format!("cannot be read: {}", error.wrong),
        (Ok(()), true) => "see hcabench report".to_owned(),
        (Ok(()), false) => "files are damaged; see hcabench report".to_owned(),
    };
    RunListing {
        date: date_of(&fabric.document()["started_at"]),
        benchmark: "fabric".to_owned(),
        points: fabric.nodes.len() * fabric.nodes.len().saturating_sub(1),
        verdict,
        folder: fabric.path.clone(),
        damaged,
        ..RunListing::default()
    }
}

/// `burst 32, 192` of `burst 32` and `burst 192`.
fn both(one: &str, other: &str) -> String {
    let name = one.split_once(' ').map(|(name, _)| name);
    let value = name.and_then(|name| other.strip_prefix(name)?.strip_prefix(' '));
    format!("{one}, {}", value.unwrap_or(other))
}

fn date_of(moment: &Value) -> String {
    date(moment.as_str().unwrap_or_default())
}

/// `2026-11-20 12:20` of a moment in RFC 3339.
pub(super) fn date(moment: &str) -> String {
    moment.get(..16).unwrap_or_default().replace('T', " ")
}

fn object(listed: &RunListing) -> Value {
    json!({
        "date": listed.date,
        "benchmark": listed.benchmark,
        "points": listed.points,
        "verdict": listed.verdict,
        "varied": listed.varied,
        "folder": listed.folder.display().to_string(),
    })
}

fn table(runs: &[RunListing]) -> Table {
    let mut table = Table::new(vec![
        Column::text("folder").first(),
        Column::text("date").first(),
        Column::text("benchmark").first(),
        Column::number("points", "").first(),
        Column::text("varied").first(),
        Column::text("verdict").first(),
    ]);
    for run in runs {
        table.row([
            printable_path(&run.folder),
            run.date.clone(),
            run.benchmark.clone(),
            run.points.to_string(),
            run.varied.clone(),
            run.verdict.clone(),
        ]);
    }
    table
}
