//! The course of a sweep: each point of each round is measured, and its data is on disk before the next one begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Report;
use super::worker::Round;
use crate::cli::ending::Ending;
use crate::cli::output::warning;
use crate::cli::progress::{LastPoint, Progress};
use crate::host::interrupt;
use crate::host::readiness::{Readiness, Verdict};
use crate::results::document::{self, Document, Program};
use crate::results::folder::{LEFT_OUT, PACKAGE, RUNS, SETTINGS, SUMMARY};
use crate::results::runs::{self, RunsFile};
use crate::results::schema::{self, Schema};
use crate::results::{
    PointFolder, Record, ReportError, ResultsFolder, SampleWriter, datapackage, hgrm,
    json as json_file,
};
use crate::rig::benchmark::{Benchmark, Failure, Outcome, Place, Plan, RowOutcome};
use crate::rig::sweep::{Budget, Rounds};
use crate::stats::LatencyHistogram;

/// The distributions of a point while rounds of it are missing.
const HISTOGRAMS: &str = "histograms.json";
/// A point that takes longer than this beyond all expectation hangs.
const BEYOND_EXPECTATION: Duration = Duration::from_secs(3600);
/// Check of the machine that only matters where messages are sent; there the devices speak for themselves.
const OF_DEVICES: &str = "rdma_devices";

/// What is the same for all points of a run.
pub struct Settings {
    /// What the results have.
    pub schema: &'static Schema,
    /// The rounds.
    pub rounds: Rounds,
    /// The command line, the program first.
    pub command_line: Vec<String>,
    /// When it was begun.
    pub started_at: SystemTime,
    /// The settings of the run that are no point's.
    pub run: Value,
    /// What was obtained for all points.
    pub obtained: Value,
    /// What of the instrument is the same for all points.
    pub instrument: Value,
    /// The machine.
    pub machine: Value,
    /// Its checks that are not good.
    pub readiness: Value,
    /// Whether nothing is shown but errors and warnings.
    pub quiet: bool,
}

/// How far a sweep may go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The time for it.
    pub budget: Option<Duration>,
    /// Stop when so many rounds are there.
    pub until_round: Option<u32>,
}

/// How it ended, if not early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All that was to be measured was.
    Complete,
    /// As many rounds are there as were to be.
    UntilRound,
}

/// An earlier run that is to go on.
pub struct Earlier {
    path: PathBuf,
    document: Document,
    rows: Vec<Record>,
    /// Its rounds.
    pub rounds: Rounds,
}

impl Earlier {
    /// Reads what is there of a run that was broken off.
    ///
    /// # Errors
    /// In words, why it cannot go on.
    pub fn read(folder: &Path, schema: &'static Schema) -> Result<Self, String> {
        let document = Document::read(&folder.join(SETTINGS)).map_err(|error| error.to_string())?;
        if document.benchmark != schema.benchmark {
            return Err(format!(
                "it holds results of the benchmark {}, and {} was asked for: give no options, and those recorded in it are taken",
                document.benchmark, schema.benchmark
            ));
        }
        if !super::is_incomplete(folder) {
            return Err("it is complete: nothing is missing".to_owned());
        }
        let path = folder.join(RUNS);
        let rows = match path.symlink_metadata() {
            Err(_) => Vec::new(),
            Ok(_) => {
                RunsFile::open(&path, schema)
                    .map_err(|error| error.to_string())?
                    .1
            }
        };
        let told = document.rounds;
        Ok(Earlier {
            path: folder.to_path_buf(),
            rounds: Rounds {
                count: told.planned,
                seed: told.seed.unwrap_or(0),
            },
            document,
            rows,
        })
    }

    /// What differs from the run that is to go on in it, in words.
    fn differs(&self, settings: &Settings, plan: &Plan) -> Option<String> {
        let names: Vec<&str> = names_of(plan).collect();
        let theirs: Vec<&str> = self.document.details["points"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if names != theirs {
            let other = names.iter().find(|name| !theirs.contains(*name));
            let missing = theirs.iter().find(|name| !names.contains(*name));
            return Some(match (other, missing) {
                (Some(name), _) => format!("the point {name} is not in it"),
                (None, Some(name)) => format!("its point {name} would not be measured now"),
                (None, None) => "its points stand in another order".to_owned(),
            });
        }
        let of = |what: &str, ours: &Value, theirs: &Value| {
            let ours = ours.as_object().into_iter().flatten();
            let mut other = ours.filter(|(key, value)| theirs[key.as_str()] != **value);
            other.next().map(|(key, value)| {
                format!(
                    "{what} differ in {key}: {} there, {value} now",
                    theirs[key.as_str()]
                )
            })
        };
        let planned = planned(plan);
        let theirs = &self.document.details["planned"];
        let point = names.iter().enumerate().find_map(|(place, name)| {
            let what = format!("the settings of {name}");
            of(&what, &planned[place], &theirs[place])
        });
        let run = || of("the settings", &settings.run, &self.document.run);
        point.or_else(run).or_else(|| {
            // What stays the same of a machine from one boot to the next.
            let parts = ["cpu", "kernel", "hostname"];
            let part = |key: &str, machine: &Value| (key.to_owned(), machine[key].clone());
            let ours = Value::Object(
                parts
                    .iter()
                    .map(|key| part(key, &settings.machine))
                    .collect(),
            );
            of("the machines", &ours, &self.document.machine)
        })
    }
}

/// The settings of all rows as they are before anything is measured, as JSON reads them back.
fn planned(plan: &Plan) -> Value {
    let rows = plan.points.iter().flat_map(|point| &point.rows);
    let settings: Vec<&Record> = rows.map(|row| &row.settings).collect();
    let text = json!(settings).to_string();
    serde_json::from_str(&text).unwrap_or_default()
}

fn names_of(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.points
        .iter()
        .flat_map(|point| &point.rows)
        .map(|row| row.name.as_str())
}

fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// The distributions of a point so far.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Distributions {
    /// The rounds that are in them.
    rounds: BTreeSet<u32>,
    /// By the name of the file.
    files: BTreeMap<String, LatencyHistogram>,
}

/// What of it tells which rounds of a point are whole on disk.
#[derive(Debug, Default, Deserialize)]
struct Counted {
    rounds: BTreeSet<u32>,
}

/// The rounds that are whole on disk of a point that has its mark; none without a mark: then all are. A program that is killed
/// may leave a row in `runs.csv` without its distribution.
fn rounds_beside_mark(point: &Path) -> Option<BTreeSet<u32>> {
    if point.is_dir() && !super::is_incomplete(point) {
        return None;
    }
    let counted: Result<Counted, ReportError> = json_file::read(&point.join(HISTOGRAMS));
    Some(counted.unwrap_or_default().rounds)
}

/// A sweep in progress.
pub struct Course {
    folder: ResultsFolder,
    plan: Plan,
    settings: Settings,
    file: RunsFile,
    rows: Vec<Record>,
    /// The rounds of each row of the summary that are complete.
    done: HashMap<String, BTreeSet<u32>>,
    open: HashMap<String, PointFolder>,
    /// Distributions by point, until the point is complete.
    histograms: HashMap<String, Distributions>,
    /// The row of the summary of each point that has one.
    summary: HashMap<String, Record>,
    /// What the last round of a point told: the parts of its `settings.json`.
    told: HashMap<String, RowOutcome>,
    /// Points with a fault: they are not measured again, and the others are.
    broken: BTreeMap<String, String>,
    seen: BTreeSet<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
    text: Option<String>,
    broken_limits: Vec<String>,
    progress: Progress,
    /// The seed of the orders, of several rounds.
    seed: Option<u64>,
    resumed: bool,
}

impl Course {
    /// Makes the files of a new run.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn begin(
        folder: ResultsFolder,
        plan: Plan,
        settings: Settings,
    ) -> Result<Self, ReportError> {
        let file = RunsFile::create(&folder.file(RUNS)?, settings.schema)?;
        let course = Self::with(folder, plan, settings, file, false);
        course.write_left_out()?;
        course.write_run_settings(schema::INCOMPLETE, None)?;
        Ok(course)
    }

    /// Takes up an earlier run.
    ///
    /// # Errors
    /// In words, why not: another machine, other settings, or files that cannot be used.
    pub fn resume(earlier: Earlier, plan: Plan, mut settings: Settings) -> Result<Self, String> {
        if let Some(differs) = earlier.differs(&settings, &plan) {
            return Err(format!("{differs}: measure again, with another --out"));
        }
        let failed = |error: ReportError| error.to_string();
        let folder = ResultsFolder::resume(&earlier.path, 0).map_err(failed)?;
        let whole: HashMap<&str, BTreeSet<u32>> = names_of(&plan)
            .filter_map(|name| Some((name, rounds_beside_mark(&earlier.path.join(name))?)))
            .collect();
        let is_whole = |row: &Record| {
            let (Some(name), Some(round)) = (name_in(row), round_of(row)) else {
                return false;
            };
            let counted = |rounds: &BTreeSet<u32>| rounds.contains(&round);
            is_complete(row) && whole.get(name.as_str()).is_none_or(counted)
        };
        let kept: Vec<Record> = earlier.rows.into_iter().filter(is_whole).collect();
        let path = folder.file(RUNS).map_err(failed)?;
        // Rows of points that were broken off, or not written to their end, give way to those that are measured now.
        runs::write_runs(&path, settings.schema, &kept).map_err(failed)?;
        let (file, rows) = RunsFile::open(&path, settings.schema).map_err(failed)?;
        settings.command_line = earlier.document.command_line;
        if let Ok(time) = humantime::parse_rfc3339(&earlier.document.started_at) {
            settings.started_at = time;
        }
        let mut course = Self::with(folder, plan, settings, file, true);
        for row in rows {
            course.take(row);
        }
        let names: Vec<String> = names_of(&course.plan).map(str::to_owned).collect();
        names.iter().for_each(|name| course.sum_up(name));
        course.write_left_out().map_err(failed)?;
        Ok(course)
    }

    fn with(
        folder: ResultsFolder,
        plan: Plan,
        settings: Settings,
        file: RunsFile,
        resumed: bool,
    ) -> Self {
        let steps = plan.points.len() * settings.rounds.count.min(1_000) as usize;
        Course {
            progress: Progress::new(steps),
            seed: (settings.rounds.count > 1).then_some(settings.rounds.seed),
            folder,
            plan,
            settings,
            file,
            rows: Vec::new(),
            done: HashMap::new(),
            open: HashMap::new(),
            histograms: HashMap::new(),
            summary: HashMap::new(),
            told: HashMap::new(),
            broken: BTreeMap::new(),
            seen: BTreeSet::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            text: None,
            broken_limits: Vec::new(),
            resumed,
        }
    }

    /// Shows warnings, each once.
    pub fn warn(&mut self, texts: &[String]) {
        for text in texts {
            if self.is_new(text) {
                self.progress.warn(&warning(text));
                self.warnings.push(text.clone());
            }
        }
    }

    /// Over several rounds, a text that differs in its numbers only says nothing new.
    fn is_new(&mut self, text: &str) -> bool {
        let digits = |letter: &char| self.settings.rounds.count == 1 || !letter.is_ascii_digit();
        self.seen.insert(text.chars().filter(digits).collect())
    }

    fn note(&mut self, text: String) {
        if self.is_new(&text) {
            self.notes.push(text);
        }
    }

    /// Tells what of the machine spoils figures, and that there is advice.
    pub fn judge_machine(&mut self, readiness: &Readiness) {
        let of = |verdict| {
            let checks = readiness.checks.iter();
            checks.filter(move |check| check.verdict == verdict && check.id != OF_DEVICES)
        };
        let spoils: Vec<String> = of(Verdict::Spoils)
            .map(|check| {
                let advice = check.advice.as_deref().unwrap_or("see hcabench host");
                format!(
                    "this machine is not ready to measure: {}: {}: {advice}",
                    check.title, check.found
                )
            })
            .collect();
        self.warn(&spoils);
        let advice: Vec<&str> = of(Verdict::Advice).map(|check| check.title).collect();
        if !advice.is_empty() {
            self.note(format!(
                "of this machine could be better: {} (hcabench host says how)",
                advice.join(", ")
            ));
        }
    }

    /// Measures what is missing. `arguments` start this program again for a round of its own.
    ///
    /// # Errors
    /// What ended it early.
    pub fn measure(
        &mut self,
        benchmark: Box<dyn Benchmark>,
        arguments: &[OsString],
        limits: &Limits,
    ) -> Result<End, Ending> {
        let rounds = self.settings.rounds;
        // One round needs no other process: there is nothing that it would have in common with another.
        let mut own = (rounds.count == 1).then_some(benchmark);
        let begun = Instant::now();
        let mut limit = limits.budget;
        if self.resumed && rounds.count == super::AS_MANY_AS_FIT {
            // Its budget is spent: only the round that was begun is completed, if no other one is given.
            limit = limit.or(Some(Duration::ZERO));
        }
        let mut budget = Budget::new(limit);
        let mut end = End::Complete;
        for round in 0..rounds.count {
            let order: Vec<(usize, usize)> = rounds
                .order(round, self.plan.points.len())
                .into_iter()
                .enumerate()
                .collect();
            let missing: Vec<(usize, usize)> = order
                .into_iter()
                .filter(|(_, point)| self.is_missing(*point, round))
                .collect();
            if missing.is_empty() {
                continue;
            }
            if limits.until_round.is_some_and(|until| round >= until) {
                end = End::UntilRound;
                break;
            }
            if !budget.allows_another(begun.elapsed()) {
                self.tell_shortfall(round, limits);
                break;
            }
            let started = Instant::now();
            let mut child = match &own {
                Some(_) => None,
                None => Some(
                    Round::start(arguments).map_err(|failure| self.ended(&failure.to_string()))?,
                ),
            };
            for (order, point) in missing {
                if let Some(signal) = interrupt::requested() {
                    return Err(self.ended(&format!("interrupted by {signal}")));
                }
                self.measure_point(point, round, order, &mut own, &mut child)?;
            }
            budget.spent(started.elapsed());
        }
        if end == End::Complete {
            self.complete_points()?;
        }
        match self.broken.iter().collect::<Vec<_>>().as_slice() {
            [] => Ok(end),
            [(name, failure)] => Err(Ending::Failed(format!("{name}: {failure}"))),
            [(name, failure), others @ ..] => Err(Ending::Failed(format!(
                "{name}: {failure} (and {} more points)",
                others.len()
            ))),
        }
    }

    fn tell_shortfall(&mut self, round: u32, limits: &Limits) {
        let asked = self.settings.rounds.count;
        if asked == super::AS_MANY_AS_FIT {
            // Now it is known how many there are.
            self.settings.rounds.count = round;
        } else {
            let budget = limits
                .budget
                .map_or_else(String::new, |it| humantime::format_duration(it).to_string());
            let text = format!(
                "{round} of {asked} rounds were measured: another one would not have fitted into --budget {budget}"
            );
            self.warn(&[text]);
        }
    }

    fn rows_of(&self, point: usize) -> Vec<String> {
        self.plan.points[point]
            .rows
            .iter()
            .map(|row| row.name.clone())
            .collect()
    }

    /// Whether a point has no complete row of a round, and is not broken.
    fn is_missing(&self, point: usize, round: u32) -> bool {
        let names = self.rows_of(point);
        let has = |name: &String| self.is_done(name, round);
        !names.iter().any(|name| self.broken.contains_key(name)) && !names.iter().all(has)
    }

    fn measure_point(
        &mut self,
        point: usize,
        round: u32,
        order: usize,
        own: &mut Option<Box<dyn Benchmark>>,
        child: &mut Option<Round>,
    ) -> Result<(), Ending> {
        let names = self.rows_of(point);
        let rounds = self.settings.rounds.count;
        let shown = match rounds {
            1 => names[0].clone(),
            super::AS_MANY_AS_FIT => format!("{} (round {})", names[0], round + 1),
            _ => format!("{} (round {} of {rounds})", names[0], round + 1),
        };
        self.progress.start_point(&shown);
        let folders = names
            .iter()
            .map(|name| self.open_point(name))
            .collect::<Result<Vec<_>, _>>()?;
        let place = Place { round, folders };
        let started_at = SystemTime::now();
        let limit = self.plan.points[point].time * 20 + BEYOND_EXPECTATION;
        let index = self.plan.points[point].index;
        let progress = &self.progress;
        let mut report = |so_far: crate::rig::benchmark::Progress| match so_far.text {
            Some(text) => progress.start_point(&format!("{shown} ({text})")),
            None => progress.messages(&shown, so_far.done, so_far.of),
        };
        let measured = match (own, child) {
            (Some(benchmark), _) => benchmark.measure(index, &place, &mut report),
            (None, Some(child)) => child.measure(&names, &place, limit, &mut report),
            (None, None) => Err(Failure::Run("there is nothing to measure with".to_owned())),
        };
        let outcome = match measured {
            Ok(outcome) => outcome,
            Err(Failure::Usage(reason)) => {
                self.ended(&reason);
                return Err(Ending::Refused(reason));
            }
            Err(failure) => return Err(self.ended(&format!("{}: {failure}", names[0]))),
        };
        self.keep(point, round, order, started_at, outcome)
    }

    /// The folder of a row, made when the first round of it begins.
    fn open_point(&mut self, name: &str) -> Result<PathBuf, ReportError> {
        if let Some(place) = self.open.get(name) {
            return Ok(place.path().to_path_buf());
        }
        let place = self.folder.point(name)?;
        for file in self.settings.schema.samples {
            let path = place.file(file.name)?;
            if self.resumed {
                SampleWriter::keep_rounds(&path, file, |round| self.is_done(name, round))?;
            }
        }
        let kept = place.file(HISTOGRAMS)?;
        if self.resumed && kept.exists() && self.rows_complete(name) > 0 {
            self.histograms
                .insert(name.to_owned(), json_file::read(&kept)?);
        }
        let path = place.path().to_path_buf();
        self.open.insert(name.to_owned(), place);
        self.write_point_settings(name, schema::INCOMPLETE, None)?;
        Ok(path)
    }

    /// Writes all that came of a point in a round.
    fn keep(
        &mut self,
        point: usize,
        round: u32,
        order: usize,
        started_at: SystemTime,
        outcome: Outcome,
    ) -> Result<(), Ending> {
        let planned = self.plan.points[point].rows.clone();
        let mut last = LastPoint::default();
        let mut ends = None;
        for (row, found) in planned.iter().zip(outcome.rows) {
            let mut record = self.row(&row.settings, &found);
            record
                .set(&schema::POINT, row.name.as_str())
                .set(&schema::ROUND, round)
                .set(&schema::ORDER, order)
                .set(&schema::STARTED_AT, moment(started_at));
            let record = record.arranged(&self.settings.schema.runs());
            let [messages, p50, p99] = self
                .settings
                .schema
                .headline
                .map(|column| record.number(column.name));
            last = LastPoint {
                messages: messages.unwrap_or(0.0) as u64,
                p50_ns: p50,
                p99_ns: p99,
            };
            self.file.append(&record)?;
            self.take(record);
            self.sum_up(&row.name);
            // A round that failed is measured again by --resume, and would count twice.
            if found.failure.is_none() || self.settings.rounds.count == 1 {
                let all = self.histograms.entry(row.name.clone()).or_default();
                all.rounds.insert(round);
                for (file, histogram) in &found.histograms {
                    all.files.entry(file.clone()).or_default().merge(histogram);
                }
            }
            if let Some(failure) = &found.failure {
                self.broken.insert(row.name.clone(), failure.clone());
                if found.ends_sweep {
                    ends = Some(format!("{}: {failure}", row.name));
                }
            }
            self.told.insert(row.name.clone(), found);
            self.put_away(&row.name)?;
        }
        self.write_summary()?;
        self.warn(&outcome.warnings);
        for note in outcome.notes {
            self.note(note);
        }
        if self.settings.rounds.count == 1 && outcome.text.is_some() {
            self.text = outcome.text;
        }
        for line in outcome.broken_limits {
            if !self.broken_limits.contains(&line) {
                self.broken_limits.push(line);
            }
        }
        self.progress.finish_point(last);
        match ends {
            Some(reason) => Err(self.ended(&reason)),
            None => Ok(()),
        }
    }

    /// Settings and figures of a row; what the benchmark knows only now goes before what was planned.
    fn row(&self, planned: &Record, found: &RowOutcome) -> Record {
        let mut record = Record::new();
        for column in self.settings.schema.point {
            let known = found
                .figures
                .get(column.name)
                .or_else(|| planned.get(column.name));
            record.push(
                column.name,
                known.cloned().unwrap_or(crate::results::Cell::Empty),
            );
        }
        for column in self.settings.schema.figures {
            record.set_from(column, &found.figures);
        }
        let status = match found.failure {
            None => schema::COMPLETE,
            Some(_) => schema::INCOMPLETE,
        };
        record.set(&schema::STATUS, status);
        record.set(&schema::FAILURE, found.failure.clone());
        record
    }

    /// Writes what a point has so far; the only round of a point completes it, as a failure ends it.
    fn put_away(&mut self, name: &str) -> Result<(), ReportError> {
        let failure = self.broken.get(name).cloned();
        if self.settings.rounds.count == 1 || failure.is_some() {
            return self.close_point(name, failure.as_deref());
        }
        if let (Some(place), Some(all)) = (self.open.get(name), self.histograms.get(name)) {
            json_file::write(&place.file(HISTOGRAMS)?, all)?;
        }
        self.write_point_settings(name, schema::INCOMPLETE, None)
    }

    /// Writes the last files of a point and takes its mark away, or writes the reason into it.
    fn close_point(&mut self, name: &str, failure: Option<&str>) -> Result<(), ReportError> {
        let status = match failure {
            None => schema::COMPLETE,
            Some(_) => schema::INCOMPLETE,
        };
        self.write_point_settings(name, status, failure)?;
        let Some(place) = self.open.remove(name) else {
            return Ok(());
        };
        for (file, histogram) in self.histograms.get(name).iter().flat_map(|it| &it.files) {
            hgrm::write(&place.file(file)?, histogram)?;
        }
        match failure {
            None => {
                // It may not be there: a single round has no use for it.
                let _ = std::fs::remove_file(place.path().join(HISTOGRAMS));
                self.histograms.remove(name);
                place.complete()
            }
            Some(reason) => place.fail(reason),
        }
    }

    fn complete_points(&mut self) -> Result<(), ReportError> {
        let names: Vec<String> = names_of(&self.plan).map(str::to_owned).collect();
        for name in names {
            let marked = super::is_incomplete(&self.folder.path().join(&name));
            if marked && !self.open.contains_key(&name) && !self.broken.contains_key(&name) {
                // Of an earlier run, and whole but for its mark.
                self.open_point(&name)?;
            }
            if self.open.contains_key(&name) {
                self.close_point(&name, None)?;
            }
        }
        self.write_summary()
    }

    /// The sweep ends early: the points that are not whole say why.
    fn ended(&mut self, reason: &str) -> Ending {
        let names: Vec<String> = self.open.keys().cloned().collect();
        for name in names {
            if let Err(error) = self
                .keep_histograms(&name)
                .and_then(|()| self.close_point(&name, Some(reason)))
            {
                return Ending::NotWritten(error);
            }
        }
        Ending::Failed(reason.to_owned())
    }

    /// For a run that may be taken up again.
    fn keep_histograms(&self, name: &str) -> Result<(), ReportError> {
        match (self.open.get(name), self.histograms.get(name)) {
            (Some(place), Some(all)) => json_file::write(&place.file(HISTOGRAMS)?, all),
            _ => Ok(()),
        }
    }

    fn rounds_done(&self) -> u32 {
        let counts = names_of(&self.plan).map(|name| self.rows_complete(name));
        counts.min().unwrap_or(0)
    }

    fn rows_complete(&self, name: &str) -> u32 {
        self.done.get(name).map_or(0, BTreeSet::len) as u32
    }

    fn is_done(&self, name: &str, round: u32) -> bool {
        (self.done.get(name)).is_some_and(|rounds| rounds.contains(&round))
    }

    /// Takes a row of `runs.csv` into account.
    fn take(&mut self, row: Record) {
        if let (true, Some(name), Some(round)) = (is_complete(&row), name_in(&row), round_of(&row))
        {
            self.done.entry(name).or_default().insert(round);
        }
        self.rows.push(row);
    }

    /// Makes the row of the summary of a point anew.
    fn sum_up(&mut self, name: &str) {
        let rows = self.rows.iter().filter(|row| is_of(row, name));
        let rows: Vec<Record> = rows.cloned().collect();
        if !rows.is_empty() {
            let row = runs::over_rounds(self.settings.schema, &rows);
            self.summary.insert(name.to_owned(), row);
        }
    }

    /// The rows of all points that have one, in the sweep's order.
    fn summary(&self) -> Vec<Record> {
        let of = |name| self.summary.get(name).cloned();
        names_of(&self.plan).filter_map(of).collect()
    }

    fn write_summary(&self) -> Result<(), ReportError> {
        runs::write_summary(
            &self.folder.file(SUMMARY)?,
            self.settings.schema,
            &self.summary(),
        )
    }

    fn write_left_out(&self) -> Result<(), ReportError> {
        if self.plan.left_out.is_empty() {
            return Ok(());
        }
        runs::write_left_out(
            &self.folder.file(LEFT_OUT)?,
            self.settings.schema,
            &self.plan.left_out,
        )
    }

    fn document(&self, status: &str, failure: Option<&str>, done: u32) -> Document {
        let settings = &self.settings;
        Document {
            hcabench: Program::this(),
            benchmark: settings.schema.benchmark.to_owned(),
            command_line: settings.command_line.clone(),
            started_at: moment(settings.started_at),
            status: status.to_owned(),
            failure: failure.map(str::to_owned),
            point: None,
            run: settings.run.clone(),
            obtained: settings.obtained.clone(),
            instrument: settings.instrument.clone(),
            machine: settings.machine.clone(),
            readiness: settings.readiness.clone(),
            rounds: document::Rounds {
                planned: settings.rounds.count,
                done,
                seed: self.seed,
            },
            details: Value::Null,
        }
    }

    fn write_run_settings(&self, status: &str, failure: Option<&str>) -> Result<(), ReportError> {
        let names: Vec<&str> = names_of(&self.plan).collect();
        let document = Document {
            details: json!({ "points": names, "planned": planned(&self.plan), "warnings": self.warnings, "notes": self.notes }),
            ..self.document(status, failure, self.rounds_done())
        };
        document.write(&self.folder.file(SETTINGS)?)
    }

    fn write_point_settings(
        &self,
        name: &str,
        status: &str,
        failure: Option<&str>,
    ) -> Result<(), ReportError> {
        let Some(place) = self.open.get(name) else {
            return Ok(());
        };
        let rows = self.plan.points.iter().flat_map(|point| &point.rows);
        let planned = rows.into_iter().find(|row| row.name == name);
        let told = self.told.get(name);
        // As the summary has them: over rounds, what only a round knows differs.
        let found = self.summary.get(name);
        let columns: Vec<schema::Named> = self
            .settings
            .schema
            .point
            .iter()
            .map(|column| (column.name.into(), *column))
            .collect();
        let mut point = Record::new();
        for column in self.settings.schema.point {
            let known = found.and_then(|it| it.get(column.name));
            let known = known.or_else(|| planned.and_then(|row| row.settings.get(column.name)));
            point.push(
                column.name,
                known.cloned().unwrap_or(crate::results::Cell::Empty),
            );
        }
        let mut document = Document {
            point: Some(point.arranged(&columns)),
            ..self.document(status, failure, self.rows_complete(name))
        };
        if let Some(told) = told {
            document.obtained = merged(&document.obtained, &told.obtained);
            document.instrument = merged(&document.instrument, &told.instrument);
            document.details = told.details.clone();
        }
        document.write(&place.file(SETTINGS)?)
    }

    /// Writes the last files of the run; gives back its folder, which is still marked, and what is to be shown.
    pub fn finish(self) -> (ResultsFolder, Report) {
        let summary = self.summary();
        let broken = self.broken.values().next();
        let is_whole = names_of(&self.plan).count() == summary.len()
            && broken.is_none()
            && self.open.is_empty()
            && interrupt::requested().is_none();
        let status = if is_whole {
            schema::COMPLETE
        } else {
            schema::INCOMPLETE
        };
        let names: Vec<&str> = names_of(&self.plan).collect();
        // The mark of the folder stays where this fails, and says so.
        let _ = self.write_run_settings(status, broken.map(String::as_str));
        let _ = self.folder.file(PACKAGE).and_then(|_| {
            datapackage::write(
                self.folder.path(),
                self.settings.schema,
                &moment(self.settings.started_at),
                &names,
            )
        });
        let details = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.told.get(*name)?.details.clone())))
            .collect();
        let report = Report {
            rounds: json!({
                "planned": self.settings.rounds.count,
                "done": self.rounds_done(),
                "seed": self.seed,
            }),
            summary,
            details,
            runs: self.rows,
            left_out: self.plan.left_out,
            notes: self.notes,
            warnings: self.warnings,
            readiness: self.settings.readiness,
            obtained: self.settings.obtained,
            text: self.text,
            broken_limits: self.broken_limits,
        };
        self.progress.finish();
        (self.folder, report)
    }
}

fn is_of(row: &Record, name: &str) -> bool {
    row.get(schema::POINT.name)
        .is_some_and(|cell| cell.text() == name)
}

fn name_in(row: &Record) -> Option<String> {
    row.get(schema::POINT.name).map(|cell| cell.text())
}

fn round_of(row: &Record) -> Option<u32> {
    row.number(schema::ROUND.name).map(|round| round as u32)
}

fn is_complete(row: &Record) -> bool {
    row.get(schema::STATUS.name)
        .is_some_and(|cell| cell.text() == schema::COMPLETE)
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

#[cfg(test)]
mod tests;
