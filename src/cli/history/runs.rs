//! The runs below folders, in the order of time, with what is judged of each of their points.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::arguments::UsageError;
use crate::cli::below::below;
use crate::cli::list;
use crate::compare::figures::{Figure, Kind, USUAL, Which, all_of_schema};
use crate::compare::rounds;
use crate::findings;
use crate::results::read::{Fabric, Point, ReadError, ReadErrorKind, Run};
use crate::results::schema::{Schema, between};
use crate::results::text::printable_path;
use crate::stats::median_of;

/// What is taken of which runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// None for the usual ones.
    pub(super) figures: Option<&'a [Which]>,
    /// In RFC 3339 with milliseconds, as the results have it.
    pub(super) since: Option<&'a str>,
    pub(super) any_host: bool,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct StoredRuns {
    /// In the order of time.
    pub(super) runs: Vec<StoredRun>,
    /// Folders that are not in it, with the reason.
    pub(super) left_out: Vec<String>,
    /// Folders that cannot be read.
    pub(super) unreadable: Vec<String>,
    /// Files that are damaged.
    pub(super) damaged: Vec<Arc<ReadError>>,
    /// Whether runs of all hosts are put together.
    pub(super) any_host: bool,
}

/// A run, without its documents: there may be many.
#[derive(Debug, Clone)]
pub(super) struct StoredRun {
    pub(super) folder: PathBuf,
    pub(super) started_at: String,
    pub(super) label: Option<String>,
    pub(super) schema: &'static Schema,
    /// By what runs of other machines, peers and ports are told apart.
    pub(super) machine: String,
    /// Whether it was measured to its end.
    pub(super) is_complete: bool,
    /// Whether it has findings by which its figures do not answer what was asked.
    pub(super) is_invalid: bool,
    pub(super) points: Vec<StoredPoint>,
}

/// A point of a run.
#[derive(Debug, Clone)]
pub(super) struct StoredPoint {
    pub(super) name: String,
    /// Names and texts of what was chosen.
    pub(super) settings: Settings,
    pub(super) values: Vec<(Figure, RunValue)>,
}

/// Of what percentiles are usual.
const LATENCY: &str = "latency";

/// Names and texts of settings.
pub(super) type Settings = Vec<(&'static str, String)>;

/// A figure of a run: over its whole rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunValue {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
    pub(super) rounds: usize,
}

impl StoredRuns {
    /// Reads all runs in and below folders.
    ///
    /// # Errors
    /// When a folder cannot be read, or no benchmark has a figure that is asked for.
    pub(super) fn below(folders: &[PathBuf], asked: &Asked<'_>) -> Result<Self, UsageError> {
        check_figures(asked)?;
        let mut found = StoredRuns {
            any_host: asked.any_host,
            ..StoredRuns::default()
        };
        let mut fabrics = 0;
        let mut paths: Vec<PathBuf> = Vec::new();
        for folder in folders {
            fs::read_dir(folder).map_err(|error| {
                let folder = printable_path(folder);
                UsageError(format!(
                    "{folder}: cannot be read: {error}; fix: name a folder that holds results"
                ))
            })?;
            let mut visit = |folder: &Path| {
                if Fabric::is_one(folder) {
                    fabrics += 1;
                    return false;
                }
                let is_one = list::is_one(folder);
                paths.extend(is_one.then(|| folder.to_path_buf()));
                !is_one
            };
            let mut refused = |folder: &Path, error: std::io::Error| {
                let folder = printable_path(folder);
                found.unreadable.push(format!("{folder}: {error}"));
            };
            below(folder, &mut visit, &mut refused);
        }
        let mut known: BTreeSet<PathBuf> = BTreeSet::new();
        for path in paths {
            // Folders may be given in each other.
            let full = path.canonicalize().unwrap_or_else(|_| path.clone());
            if known.insert(full) {
                found.add(&path, asked);
            }
        }
        if fabrics > 0 {
            let what = if fabrics == 1 {
                "1 fabric".to_owned()
            } else {
                format!("{fabrics} fabrics")
            };
            found.left_out.push(format!("{what}: use hcabench health"));
        }
        found.runs.sort_by(|one, other| {
            (&one.started_at, &one.folder).cmp(&(&other.started_at, &other.folder))
        });
        found.leave_out_copies();
        Ok(found)
    }

    fn add(&mut self, path: &Path, asked: &Asked<'_>) {
        let run = match rounds::open(path) {
            Ok(run) => run,
            Err(error) => {
                match &error.wrong {
                    ReadErrorKind::NothingMeasured(_) => {
                        self.left_out.push(error.to_string());
                    }
                    _ if error.is_damage() => self.damaged.push(Arc::new(error)),
                    _ => self.unreadable.push(error.to_string()),
                }
                return;
            }
        };
        self.damaged.extend(run.damaged.iter().cloned());
        let Some(started_at) = run.started_at().and_then(in_milliseconds) else {
            let folder = printable_path(path);
            self.left_out
                .push(format!("{folder}: it does not record when it began"));
            return;
        };
        if asked.since.is_some_and(|since| started_at.as_str() < since) {
            return;
        }
        let figures = all_of_schema(run.schema);
        let points = run
            .points
            .iter()
            .map(|point| stored(point, &figures, asked));
        let points: Vec<StoredPoint> = points.filter(|point| !point.values.is_empty()).collect();
        if points.is_empty() {
            let folder = printable_path(path);
            self.left_out.push(format!(
                "{folder}: none of its points has a whole round with these figures"
            ));
            return;
        }
        self.runs.push(StoredRun {
            folder: path.to_path_buf(),
            started_at,
            label: run.document()["label"].as_str().map(str::to_owned),
            schema: run.schema,
            machine: machine(&run, asked.any_host),
            is_complete: run.incomplete.is_none(),
            is_invalid: findings::of(&run).is_invalid(),
            points,
        });
    }

    /// A folder that was copied is no further run.
    fn leave_out_copies(&mut self) {
        let mut kept: Vec<StoredRun> = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            let is_same = |other: &&StoredRun| {
                let same =
                    other.machine == run.machine && other.schema.benchmark == run.schema.benchmark;
                let of = |run: &StoredRun| -> Vec<(String, RunValue)> {
                    let points = run.points.iter();
                    let values = points
                        .flat_map(|it| it.values.iter().map(|value| (it.name.clone(), value.1)));
                    values.collect()
                };
                same && of(other) == of(&run)
            };
            // They are in the order of time.
            let mut at_once = kept
                .iter()
                .rev()
                .take_while(|other| other.started_at == run.started_at);
            match at_once.find(is_same) {
                Some(other) => {
                    let [copy, first] = [&run, other].map(|run| printable_path(&run.folder));
                    self.left_out
                        .push(format!("{copy}: it is a copy of {first}"));
                }
                None => kept.push(run),
            }
        }
        self.runs = kept;
    }
}

/// A moment, so that the order of texts is that of moments.
fn in_milliseconds(moment: &str) -> Option<String> {
    let moment = humantime::parse_rfc3339(moment).ok()?;
    Some(humantime::format_rfc3339_millis(moment).to_string())
}

/// A figure that no benchmark has is a mistake.
fn check_figures(asked: &Asked<'_>) -> Result<(), UsageError> {
    let all: Vec<Figure> = Schema::ALL
        .iter()
        .flat_map(|schema| all_of_schema(schema))
        .collect();
    for which in asked.figures.into_iter().flatten() {
        if !all.iter().any(|figure| figure.is(which)) {
            let mut names: Vec<String> = all.iter().map(ToString::to_string).collect();
            names.sort();
            names.dedup();
            return Err(UsageError(format!(
                "--figures: no benchmark has {which}; allowed are {}",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

/// The host, or its kind, and the ports and the peer that it measured with, if any; empty of results that do not record
/// them.
fn machine(run: &Run, any_host: bool) -> String {
    let document = run.document();
    let port = |end: &str| {
        let end = &document["obtained"]["devices"][end];
        let device = end["device"]["name"].as_str()?;
        Some(format!("{device} port {}", end["port"]))
    };
    let mut with = vec![host(run, any_host)];
    // Where hosts change their names from run to run, so do peers, and pods get other functions of an adapter.
    if !any_host {
        let ports: Vec<_> = ["sender", "receiver"]
            .into_iter()
            .filter_map(port)
            .collect();
        with.push(ports.join(" to "));
        let peer = document["run"][between::PEER.name].as_str();
        with.extend(peer.map(|peer| format!("peer {peer}")));
    }
    with.retain(|part| !part.is_empty());
    with.join(", ")
}

fn host(run: &Run, any_host: bool) -> String {
    let machine = run.machine();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let host = text(&machine["hostname"]).filter(|_| !any_host);
    let processor = || {
        let processor = &machine["processor"];
        let name = text(&processor["name"])?;
        let cpus = processor["cpus"].as_u64();
        Some(cpus.map_or(name.clone(), |cpus| format!("{name}, {cpus} CPUs")))
    };
    host.or_else(processor).unwrap_or_default()
}

fn stored(point: &Point, figures: &[Figure], asked: &Asked<'_>) -> StoredPoint {
    let measured = figures.iter().filter_map(|figure| {
        let values: Vec<f64> = figure.values(point).into_values().collect();
        let value = RunValue {
            median: median_of(&values)?,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            rounds: values.len(),
        };
        Some((figure.clone(), value))
    });
    let measured: Vec<(Figure, RunValue)> = measured.collect();
    let settings = point.chosen();
    StoredPoint {
        name: point.name.clone(),
        settings: settings
            .map(|(name, text)| (name, text.to_owned()))
            .collect(),
        values: match asked.figures {
            Some(asked) => {
                let is_asked =
                    |(figure, _): &(Figure, RunValue)| asked.iter().any(|which| figure.is(which));
                measured.into_iter().filter(is_asked).collect()
            }
            None => usual(measured),
        },
    }
}

/// The usual percentiles of the latency, or of the first distribution that was measured in its place, and all that is no
/// percentile but losses.
fn usual(measured: Vec<(Figure, RunValue)>) -> Vec<(Figure, RunValue)> {
    let is_percentile = |figure: &Figure| matches!(figure.kind, Kind::Percentile(_));
    let is_latency =
        |(figure, _): &&(Figure, RunValue)| is_percentile(figure) && figure.scope == LATENCY;
    let latency = measured.iter().find(is_latency);
    let first = latency.or_else(|| measured.iter().find(|(figure, _)| is_percentile(figure)));
    let scope = first.map(|(figure, _)| figure.scope.clone());
    let is_usual = |(figure, _): &(Figure, RunValue)| match figure.kind {
        Kind::Percentile(percent) => {
            USUAL.contains(&percent) && Some(&figure.scope) == scope.as_ref()
        }
        Kind::Lost => false,
        _ => true,
    };
    measured.into_iter().filter(is_usual).collect()
}
