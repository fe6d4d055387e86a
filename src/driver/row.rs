//! A row of the summary to be: what was measured of it in each round, and the files in its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::results::document::{self, Document};
use crate::results::folder::{SETTINGS, is_incomplete};
use crate::results::schema::{self, Schema};
use crate::results::{
    PointFolder, Record, ReportError, ResultsFolder, SampleWriter, hgrm, hlog, json as json_file,
    runs,
};
use crate::rig::benchmark::{PlannedRow, RowOutcome};
use crate::stats::LatencyHistogram;

/// The distributions of a row while rounds of it are missing.
pub(crate) const HISTOGRAMS: &str = "histograms.json";

/// What is the same for all rows of a run.
pub(crate) struct Run {
    /// Where its results go.
    pub folder: ResultsFolder,
    pub schema: &'static Schema,
    pub document: Document,
    /// Whether it goes on with an earlier one.
    pub resumed: bool,
    /// Whether a search decides how many rounds a row has.
    pub is_search: bool,
}

impl Run {
    /// Whether all is measured once, and not in rounds.
    pub(crate) fn has_one_round(&self) -> bool {
        self.document.rounds.planned == 1
    }

    /// The common parts of `settings.json`, of a run or row with this many complete rounds.
    pub(crate) fn document(&self, failure: Option<&str>, status: &str, done: usize) -> Document {
        let common = self.document.clone();
        let planned = match self.is_search && status == schema::COMPLETE {
            true => done as u32,
            false => common.rounds.planned,
        };
        Document {
            status: status.to_owned(),
            failure: failure.map(str::to_owned),
            rounds: document::Rounds {
                planned,
                done: done as u32,
                ..common.rounds
            },
            ..common
        }
    }
}

/// The distributions of a row so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Distributions {
    pub rounds: BTreeSet<u32>,
    pub files: BTreeMap<String, LatencyHistogram>,
}

/// The rounds that are whole on disk of a row whose folder has its mark; none without a mark: then all are. A program
/// that is killed may leave a row in `runs.csv` without its distribution.
///
/// # Errors
/// When the file with its distributions is there and cannot be read.
pub(crate) fn rounds_beside_mark(folder: &Path) -> Result<Option<BTreeSet<u32>>, ReportError> {
    let file = folder.join(HISTOGRAMS);
    if folder.is_dir() && !is_incomplete(folder) {
        return Ok(None);
    }
    if file.symlink_metadata().is_err() {
        return Ok(Some(BTreeSet::new()));
    }
    let counted = json_file::read(&file).map(|counted: Distributions| Some(counted.rounds));
    counted.map_err(|error| {
        let reason = format!("{error}; remove that file, and its rounds are measured again");
        ReportError::unfit("go on with", folder, reason)
    })
}

/// A row of the summary to be.
pub(crate) struct Row {
    /// What was planned: its name, which is that of its folder, and its settings.
    pub planned: PlannedRow,
    /// Its rows of `runs.csv`.
    pub runs: Vec<Record>,
    /// What they come to.
    pub summary: Option<Record>,
    /// The rounds that are complete.
    pub done: BTreeSet<u32>,
    /// Its folder, from its first round here until it is complete.
    pub folder: Option<PointFolder>,
    distributions: Distributions,
    /// The facts of its last round: the parts of its `settings.json`.
    pub told: Option<RowOutcome>,
    /// Why it is not measured again.
    pub failure: Option<String>,
}

impl Row {
    pub(crate) fn new(planned: PlannedRow) -> Self {
        Row {
            planned,
            runs: Vec::new(),
            summary: None,
            done: BTreeSet::new(),
            folder: None,
            distributions: Distributions::default(),
            told: None,
            failure: None,
        }
    }

    /// Takes rows of `runs.csv` into account.
    pub(crate) fn take(&mut self, schema: &Schema, records: impl IntoIterator<Item = Record>) {
        for record in records {
            if let (true, Some(round)) = (is_complete(&record), round_of(&record)) {
                self.done.insert(round);
            }
            self.runs.push(record);
        }
        if !self.runs.is_empty() {
            self.summary = Some(runs::over_rounds(schema, &self.runs));
        }
    }

    /// Reads the facts of the last round of an earlier run, if they are there: a row that is complete does not repeat
    /// them.
    pub(crate) fn recall(&mut self, run: &Run) {
        let path = run.folder.path().join(&self.planned.name).join(SETTINGS);
        let document = Document::read(&path).ok();
        self.told = document
            .filter(|_| !self.done.is_empty())
            .map(|document| RowOutcome {
                obtained: document.obtained,
                instrument: document.instrument,
                details: document.details,
                ..RowOutcome::default()
            });
    }

    /// Its folder, made when its first round begins.
    pub(crate) fn open(&mut self, run: &Run) -> Result<PathBuf, ReportError> {
        if let Some(folder) = &self.folder {
            return Ok(folder.path().to_path_buf());
        }
        let folder = run.folder.point(&self.planned.name)?;
        for file in run.schema.samples {
            let path = folder.file(file.name)?;
            if run.resumed {
                SampleWriter::keep_rounds(&path, file, |round| self.done.contains(&round))?;
            }
        }
        if run.resumed {
            for log in interval_logs(&folder)? {
                hlog::keep_rounds(&folder.file(&log)?, |round| self.done.contains(&round))?;
            }
        }
        let kept = folder.file(HISTOGRAMS)?;
        if run.resumed && self.done.is_empty() {
            // It may not be there. What is in it would count for rounds that are measured again.
            let _ = std::fs::remove_file(&kept);
        } else if run.resumed && kept.exists() {
            self.distributions = json_file::read(&kept)?;
        }
        let path = folder.path().to_path_buf();
        self.folder = Some(folder);
        self.write_settings(run, schema::INCOMPLETE, None)?;
        Ok(path)
    }

    /// The row of `runs.csv` of a round; what the benchmark knows of settings only now goes before what was planned.
    pub(crate) fn record(&self, schema: &Schema, found: &RowOutcome) -> Record {
        let mut record = found.figures.clone();
        for column in schema.point {
            if record.get(column.name).is_none() {
                record.set_from(column, &self.planned.settings);
            }
        }
        record
            .set(&schema::POINT, self.planned.name.as_str())
            .set(&schema::STATUS, status_of(found.failure.as_deref()))
            .set(&schema::FAILURE, found.failure.clone());
        record
    }

    /// Keeps what came of a round, whose row of `runs.csv` is on disk, and writes what there is so far. The only round
    /// of a row completes it, as a failure ends it. `is_whole`: no row of its point failed in that round. `goes_on`: a
    /// failure is a round like others.
    pub(crate) fn keep(
        &mut self,
        run: &Run,
        round: u32,
        record: Record,
        mut found: RowOutcome,
        is_whole: bool,
        goes_on: bool,
    ) -> Result<(), ReportError> {
        self.take(run.schema, [record]);
        // They are large, and of no use once they are on disk.
        let histograms = std::mem::take(&mut found.histograms);
        let logs = std::mem::take(&mut found.interval_logs);
        // A round that failed is measured again by --resume, and would count twice.
        if is_whole || run.has_one_round() {
            self.distributions.rounds.insert(round);
            for (file, histogram) in &histograms {
                let all = self.distributions.files.entry(file.clone()).or_default();
                all.merge(histogram);
            }
            for log in &logs {
                let folder = self.folder.as_ref().expect("its round began");
                hlog::append(&folder.file(&log.file)?, &log.text)?;
            }
        }
        let has_failed = found.failure.is_some();
        if !(has_failed && goes_on) {
            self.failure.clone_from(&found.failure);
            self.told = Some(found);
        }
        if run.has_one_round() || self.failure.is_some() {
            return self.close(run, self.failure.clone().as_deref());
        }
        self.write_distributions(run)?;
        self.write_settings(run, schema::INCOMPLETE, None)
    }

    /// Writes its last files and takes its mark away, or writes the reason into it.
    pub(crate) fn close(&mut self, run: &Run, failure: Option<&str>) -> Result<(), ReportError> {
        self.write_settings(run, status_of(failure), failure)?;
        if failure.is_some() {
            // For a run that may be taken up again.
            self.write_distributions(run)?;
        }
        let Some(folder) = self.folder.take() else {
            return Ok(());
        };
        for (file, histogram) in &self.distributions.files {
            hgrm::write(&folder.file(file)?, histogram)?;
        }
        match failure {
            None => {
                let kept = folder.path().join(HISTOGRAMS);
                self.distributions = Distributions::default();
                folder.complete()?;
                if run.is_search || self.done.len() as u32 == run.document.rounds.planned {
                    // It may not be there: a single round has no use for it. Without it, but with the mark, no round
                    // would count as whole.
                    let _ = std::fs::remove_file(kept);
                }
                Ok(())
            }
            Some(reason) => folder.fail(reason),
        }
    }

    /// Leaves it as it is where rounds are missing, with the reason: all that was measured is on disk. If there is
    /// time, the distributions so far are written for readers, too.
    pub(crate) fn leave(
        &mut self,
        run: &Run,
        reason: &str,
        has_time: bool,
    ) -> Result<(), ReportError> {
        if run.has_one_round() {
            return self.close(run, Some(reason));
        }
        let Some(folder) = self.folder.take() else {
            return Ok(());
        };
        for (file, histogram) in self.distributions.files.iter().filter(|_| has_time) {
            hgrm::write(&folder.file(file)?, histogram)?;
        }
        folder.fail(reason)
    }

    fn write_distributions(&self, run: &Run) -> Result<(), ReportError> {
        match &self.folder {
            Some(folder) if !run.has_one_round() && !self.distributions.rounds.is_empty() => {
                json_file::write(&folder.file(HISTOGRAMS)?, &self.distributions)
            }
            _ => Ok(()),
        }
    }

    fn write_settings(
        &self,
        run: &Run,
        status: &str,
        failure: Option<&str>,
    ) -> Result<(), ReportError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let mut document = run.document(failure, status, self.done.len());
        // As the summary has them: over rounds, what only a round knows differs.
        let known = self.summary.as_ref().unwrap_or(&self.planned.settings);
        let mut point = Record::new();
        for column in run.schema.point {
            point.set_from(column, known);
        }
        document.point = Some(point);
        if let Some(told) = &self.told {
            document.obtained = merged(&document.obtained, &told.obtained);
            document.instrument = merged(&document.instrument, &told.instrument);
            document.details = told.details.clone();
        }
        document.write(&folder.file(SETTINGS)?)
    }
}

/// The names of the interval logs in the folder of a row, without those that are no file of hcabench.
fn interval_logs(folder: &PointFolder) -> Result<Vec<String>, ReportError> {
    let failed = |cause| ReportError::from_io("read", folder.path(), cause);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.path()).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_log = Path::new(&name)
            .extension()
            .is_some_and(|it| it == hlog::ENDING);
        let name = name.into_string().ok().filter(|_| is_log);
        names.extend(name.filter(|name| folder.has(name)));
    }
    Ok(names)
}

/// The status of what failed, or did not.
pub(crate) fn status_of(failure: Option<&str>) -> &'static str {
    match failure {
        None => schema::COMPLETE,
        Some(_) => schema::INCOMPLETE,
    }
}

/// The name of the row of the summary that a row of `runs.csv` belongs to.
pub(crate) fn name_in(record: &Record) -> Option<String> {
    record.get(schema::POINT.name).map(|cell| cell.text())
}

/// The round of a row of `runs.csv`.
pub(crate) fn round_of(record: &Record) -> Option<u32> {
    let round = record.number(schema::ROUND.name);
    round.map(|round| round as u32)
}

/// Whether a row of `runs.csv` is that of a round that was measured to its end.
pub(crate) fn is_complete(record: &Record) -> bool {
    record.text(&schema::STATUS) == schema::COMPLETE
}

/// The keys of both objects; where both have one, the second's.
fn merged(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            let mut all = first.clone();
            all.extend(second.clone());
            Value::Object(all)
        }
        (first, Value::Null) => first.clone(),
        (_, second) => second.clone(),
    }
}
