//! What an earlier run left for `--resume`, and whether it can go on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::row;
use crate::compare::circumstances;
use crate::findings;
use crate::results::document::Document;
use crate::results::finding::Findings;
use crate::results::folder::{EarlierFolder, LEFT_OUT, MARK, RUNS, SUMMARY};
use crate::results::read::Run;
use crate::results::runs::RunsFile;
use crate::results::schema::Schema;
use crate::results::{Record, ReportError, ResultsFolder};
use crate::rig::benchmark::{Plan, PlannedPoint};
use crate::rig::sweep::Rounds;

/// An earlier run that is to go on.
pub(crate) struct EarlierRun {
    pub folder: EarlierFolder,
    pub document: Document,
    rows: Vec<Record>,
    pub rounds: Rounds,
    /// What is known of what was measured.
    pub found: Findings,
}

/// What a damaged file means for a run that would go on.
const LOST: &str = "nothing was changed, since to go on would lose what it has";

impl EarlierRun {
    /// Reads what is there of a run that was broken off.
    pub(crate) fn read(folder: &Path, schema: &'static Schema) -> Result<Self, String> {
        let document = Document::of_run(folder).map_err(|error| error.to_string())?;
        if document.benchmark != schema.benchmark {
            return Err(format!(
                "it holds results of the benchmark {}, and the command is {}: give no options, and those recorded in \
                 it are taken",
                document.benchmark, schema.benchmark
            ));
        }
        let folder = EarlierFolder::lock(folder).map_err(|error| error.to_string())?;
        folder.check_incomplete()?;
        let found = found_in(folder.path())?;
        let path = folder.path().join(RUNS);
        let rows = match path.symlink_metadata() {
            Err(_) => Vec::new(),
            Ok(_) => {
                RunsFile::open(&path, schema)
                    .map_err(|error| error.to_string())?
                    .1
            }
        };
        Ok(EarlierRun {
            folder,
            rounds: Rounds {
                count: document.rounds.planned,
                seed: document.rounds.seed.unwrap_or(0),
            },
            document,
            rows,
            found,
        })
    }

    /// How many rounds of it were begun.
    pub(crate) fn rounds_begun(&self) -> u32 {
        let last = self.rows.iter().filter_map(row::round_of).max();
        last.map_or(1, |last| last + 1)
    }

    /// The point of a search there that is none now, in words: of a run with other rates. Before it was prepared, a plan
    /// may have points that are left out there.
    pub(crate) fn lacks_point(&self, plan: &Plan) -> Option<String> {
        let names: BTreeSet<&str> = plan.names().collect();
        let theirs = self.document.details["points"].as_array();
        let theirs = theirs.into_iter().flatten().filter_map(Value::as_str);
        let mut missing = theirs.filter(|name| !names.contains(name));
        missing.next().map(not_measured_now)
    }

    /// What differs from the run that is to go on in it, in words.
    pub(crate) fn differs(&self, document: &Document, plan: &Plan) -> Option<String> {
        let names: Vec<&str> = plan.names().collect();
        let theirs: Vec<&str> = self.document.details["points"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if names != theirs {
            let other = names.iter().find(|name| !theirs.contains(*name));
            let missing = theirs.iter().find(|name| !names.contains(*name));
            return Some(match (other, missing) {
                (Some(name), _) => format!("the point {name} is not in it"),
                (None, Some(name)) => not_measured_now(name),
                (None, None) => "its points are in another order".to_owned(),
            });
        }
        let planned = planned(plan);
        let theirs = &self.document.details["planned"];
        let point = names.iter().enumerate().find_map(|(place, name)| {
            let what = format!("the settings of {name}");
            difference(&what, &planned[place], &theirs[place])
        });
        // As `compare` asks of two runs.
        let parts = [
            ("machine", &self.document.machine, &document.machine),
            ("obtained", &self.document.obtained, &document.obtained),
        ];
        let mut of_parts = (parts.iter())
            .flat_map(|(part, there, now)| circumstances::differences_of(part, there, now));
        let of_parts = of_parts.next().map(|differs| {
            let [there, now] = differs.told();
            format!("{} differs: {there} there, {now} now", differs.what)
        });
        point
            .or_else(|| difference("the settings", &document.run, &self.document.run))
            .or(of_parts)
            .or_else(|| self.document.hcabench.differs(&document.hcabench))
    }

    /// Opens its folder again, and `runs.csv` with the rounds that are whole on disk.
    pub(crate) fn open(
        &self,
        schema: &'static Schema,
        plan: &Plan,
    ) -> Result<(ResultsFolder, RunsFile, Vec<Record>), ReportError> {
        let mut complete: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for record in self.rows.iter().filter(|row| row::is_complete(row)) {
            if let (Some(name), Some(round)) = (row::name_in(record), row::round_of(record)) {
                complete.entry(name).or_default().insert(round);
            }
        }
        let mut whole = BTreeSet::new();
        for point in &plan.points {
            for round in self.whole_rounds(point, &complete)? {
                whole.extend(point.rows.iter().map(|row| (row.name.as_str(), round)));
            }
        }
        let is_kept = |record: &&Record| {
            let place = row::name_in(record).zip(row::round_of(record));
            row::is_complete(record)
                && place.is_some_and(|(name, round)| whole.contains(&(name.as_str(), round)))
        };
        let kept: Vec<Record> = self.rows.iter().filter(is_kept).cloned().collect();
        let folder = self.folder.resume()?;
        let file = RunsFile::written(&folder.file(RUNS)?, schema.runs(), &kept)?;
        Ok((folder, file, kept))
    }

    /// The rounds of a point that are whole on disk. A point is measured as one, so a round that one of its rows lacks
    /// is none; and where a distribution has such a round, of which it cannot be relieved, there is none at all.
    /// `complete`: the rounds of rows in `runs.csv`, by their names.
    fn whole_rounds(
        &self,
        point: &PlannedPoint,
        complete: &BTreeMap<String, BTreeSet<u32>>,
    ) -> Result<BTreeSet<u32>, ReportError> {
        let of_row = |name| complete.get(name).cloned().unwrap_or_default();
        let beside_mark = |name| row::rounds_beside_mark(&self.folder.path().join(name));
        let counted = point
            .names()
            .filter_map(|name| beside_mark(name).transpose());
        let counted = counted.collect::<Result<Vec<BTreeSet<u32>>, _>>()?;
        let all = point.names().map(of_row).chain(counted.iter().cloned());
        let whole = all.reduce(|one, other| &one & &other).unwrap_or_default();
        Ok(
            match counted.iter().all(|rounds| rounds.is_subset(&whole)) {
                true => whole,
                false => BTreeSet::new(),
            },
        )
    }
}

/// What is known of what an earlier run measured; the error: which file is damaged that is not written again.
fn found_in(folder: &Path) -> Result<Findings, String> {
    let read = Run::salvage(folder);
    let damaged = match &read {
        Ok(run) => run.damaged.iter().map(AsRef::as_ref).collect(),
        Err(error) => Vec::from_iter(Some(error).filter(|error| error.is_damage())),
    };
    let again = [SUMMARY, LEFT_OUT, MARK].map(|name| folder.join(name));
    if let Some(error) = (damaged.iter()).find(|error| !again.contains(&error.path)) {
        return Err(format!("{error}: {LOST}"));
    }
    // One that was killed before its first row cannot be opened, and has stated nothing of a point.
    let Ok(mut run) = read else {
        return Ok(Findings::default());
    };
    run.damaged.clear();
    let mut found = findings::of(&run);
    found.go_on();
    Ok(found)
}

/// That a run cannot be taken up as something differs.
pub(crate) fn measure_again(differs: &str) -> String {
    format!("{differs}: measure again, with another --out")
}

fn not_measured_now(point: &str) -> String {
    format!("its point {point} would not be measured now")
}

/// The settings of all rows as they are before anything is measured, as JSON reads them back.
pub(crate) fn planned(plan: &Plan) -> Value {
    let rows = plan.points.iter().flat_map(|point| &point.rows);
    let settings: Vec<&Record> = rows.map(|row| &row.settings).collect();
    let text = json!(settings).to_string();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The first of our keys that has another value there, in words.
fn difference(what: &str, ours: &Value, theirs: &Value) -> Option<String> {
    let mut keys = ours.as_object().into_iter().flatten();
    let (key, value) = keys.find(|(key, value)| theirs[key.as_str()] != **value)?;
    let there = &theirs[key.as_str()];
    Some(format!(
        "{what} differ in {key}: {there} there, {value} now"
    ))
}
