//! The course of a sweep: each point of each round is measured, and its data is on disk before the next one begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::arguments::SweepArguments;
use super::earlier::{EarlierRun, measure_again, planned};
use super::ending::Ending;
use super::line_stream::LineStream;
use super::row::{Row, Run, name_in, status_of};
use super::search::Searches;
use super::shown::Report;
use super::worker::RoundProcess;
use super::{AS_MANY_AS_FIT, moment};
use crate::findings;
use crate::host::{interrupt, memory_lock};
use crate::results::document::Document;
use crate::results::finding::kinds::ROUNDS_MISSING;
use crate::results::finding::{FINDINGS, Finding, Findings, Severity};
use crate::results::folder::{LEFT_OUT, PACKAGE, RUNS, SETTINGS, SUMMARY, is_incomplete};
use crate::results::runs::{self, RunsFile};
use crate::results::schema::{self, Schema};
use crate::results::{Record, ReportError, ResultsFolder, curves, datapackage};
use crate::rig::benchmark::{
    self, Benchmark, Failure, Outcome, Plan, PlannedRow, RowOutcome, SampleFolders,
};
use crate::rig::sweep::{Budget, Rounds};
use crate::terminal::output::warning;
use crate::terminal::progress::Progress;

/// A point that takes longer than this beyond all expectation hangs.
const BEYOND_EXPECTATION: Duration = Duration::from_secs(3600);
/// How long a sweep that ends early writes more than it must: a signal is to end it within a second.
const ENDING: Duration = Duration::from_millis(300);
/// What measures the points of a round.
enum PointMeasurer {
    Benchmark(Box<dyn Benchmark>),
    Child(RoundProcess),
}

pub(crate) struct SweepRun {
    run: Run,
    plan: Plan,
    rounds: Rounds,
    /// What decides which points a round has, in place of all of them.
    searches: Option<Searches>,
    /// What they found, as it is recorded; null before.
    found_rates: Value,
    file: RunsFile,
    /// `summary.csv`, once there is a row for it: another is appended when its point has its first, and all are written
    /// again after a round of several.
    summary: Option<RunsFile>,
    /// Of each point, its rows of the summary to be.
    rows: Vec<Vec<Row>>,
    /// What all rounds reported, without their rows.
    told: Outcome,
    /// What was shown as it was found: points and kinds.
    warned: BTreeSet<(Option<String>, String)>,
    found: Findings,
    /// Whether some of them are not in their file yet.
    has_new: bool,
    progress: Progress,
    /// Whether findings are shown as they come.
    pub verbose: bool,
    /// Where the run goes as it happens, for another program.
    lines: Option<LineStream>,
    /// The points whose rows of the summary were written there.
    streamed: BTreeSet<String>,
}

impl SweepRun {
    /// Makes the files of a new run; each `settings.json` contains `document`.
    pub(crate) fn begin(
        folder: ResultsFolder,
        schema: &'static Schema,
        rounds: Rounds,
        plan: Plan,
        document: Document,
    ) -> Result<Self, ReportError> {
        let file = RunsFile::create(&folder.file(RUNS)?, schema)?;
        let run = Run {
            folder,
            schema,
            document,
            resumed: false,
            is_search: false,
        };
        let course = Self::with(run, rounds, plan, file, Vec::new());
        // A file of the user with one of these names is found before anything is measured.
        for name in [FINDINGS, PACKAGE] {
            course.run.folder.file(name)?;
        }
        course.write_left_out()?;
        course.write_settings(schema::INCOMPLETE, None)?;
        Ok(course)
    }

    /// Takes up an earlier run.
    pub(crate) fn resume(
        earlier: EarlierRun,
        schema: &'static Schema,
        plan: Plan,
        document: Document,
    ) -> Result<Self, String> {
        if let Some(differs) = earlier.differs(&document, &plan) {
            return Err(measure_again(&differs));
        }
        let failed = |error: ReportError| error.to_string();
        let (folder, file, records) = earlier.open(schema, &plan).map_err(failed)?;
        let run = Run {
            folder,
            schema,
            document: Document {
                command_line: earlier.document.command_line,
                started_at: earlier.document.started_at,
                label: earlier.document.label.or_else(|| document.label.clone()),
                ..document
            },
            resumed: true,
            is_search: false,
        };
        let mut course = Self::with(run, earlier.rounds, plan, file, records);
        course.found = earlier.found;
        for row in course.rows.iter_mut().flatten() {
            row.recall(&course.run);
        }
        let told = |what: &str| {
            let texts = earlier.document.details[what]
                .as_array()
                .into_iter()
                .flatten();
            texts
                .filter_map(|text| Some(text.as_str()?.to_owned()))
                .collect()
        };
        course.told.notes = told("notes");
        course.told.broken_limits = told("broken_limits");
        course.write_left_out().map_err(failed)?;
        Ok(course)
    }

    /// With the rows of `runs.csv` that are there.
    fn with(run: Run, rounds: Rounds, plan: Plan, file: RunsFile, records: Vec<Record>) -> Self {
        let steps = plan.points.len() * rounds.count.min(1_000) as usize;
        let mut rows: Vec<Vec<Row>> = (plan.points.iter())
            .map(|point| point.rows.iter().cloned().map(Row::new).collect())
            .collect();
        let mut of_rows: BTreeMap<Option<String>, Vec<Record>> = BTreeMap::new();
        for record in records {
            of_rows.entry(name_in(&record)).or_default().push(record);
        }
        for row in rows.iter_mut().flatten() {
            let records = of_rows.remove(&Some(row.planned.name.clone()));
            row.take(run.schema, records.unwrap_or_default());
        }
        SweepRun {
            run,
            plan,
            rounds,
            searches: None,
            found_rates: Value::Null,
            file,
            summary: None,
            rows,
            told: Outcome::default(),
            warned: BTreeSet::new(),
            found: Findings::default(),
            has_new: false,
            progress: Progress::new(steps),
            verbose: false,
            lines: None,
            streamed: BTreeSet::new(),
        }
    }

    /// Measures only the points that the searches ask for.
    pub(crate) fn search(&mut self, searches: Searches) {
        self.run.is_search = true;
        self.progress = Progress::without_end();
        self.searches = Some(searches);
    }

    /// The points to measure in a round, in their order, each with its place in it.
    fn missing(&self, round: u32) -> Vec<(usize, usize)> {
        if let Some(searches) = &self.searches {
            let order = self.rounds.order(round, searches.count());
            return searches.missing(&order, round, &self.rows);
        }
        let order = self.rounds.order(round, self.plan.points.len());
        (order.into_iter().enumerate())
            .filter(|(_, point)| self.is_missing(*point, round))
            .collect()
    }

    /// Takes what is known of a point, or of all, and shows it if that is asked for: what a point had in an earlier round
    /// is not shown again.
    pub(crate) fn find(
        &mut self,
        point: Option<&str>,
        round: Option<u32>,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        let mut kinds = Vec::new();
        for found in findings {
            let key = (point.map(str::to_owned), found.kind.clone());
            if !self.warned.contains(&key) {
                let mut one = Findings::default();
                one.add(found.clone(), point, round);
                if let Some(lines) = &mut self.lines {
                    lines.write("finding", json!({ "finding": one.all()[0] }));
                }
                if self.verbose && found.severity != Severity::Advice {
                    let points = self.plan.names().count();
                    let lines = one.all().into_iter().map(|found| found.line(points));
                    lines.for_each(|line| self.progress.warn(&warning(&line)));
                }
            }
            kinds.push(key);
            self.found.add(found, point, round);
            self.has_new = true;
        }
        self.warned.extend(kinds);
    }

    /// Records lines about the instrument, each once; of several rounds those that differ in more than numbers.
    fn note(&mut self, notes: Vec<String>) {
        let has_one_round = self.run.has_one_round();
        for text in notes {
            let is_known = |note: &String| {
                *note == text || !has_one_round && without_numbers(note) == without_numbers(&text)
            };
            if !self.told.notes.iter().any(is_known) {
                self.told.notes.push(text);
            }
        }
    }

    /// Measures what is missing. `start` starts a process for a round.
    pub(crate) fn measure(
        &mut self,
        benchmark: Box<dyn Benchmark>,
        start: &dyn Fn() -> Result<RoundProcess, Failure>,
        sweep: &SweepArguments,
    ) -> Result<(), Ending> {
        // One round needs no other process: there is nothing that it would have in common with another. But where a
        // library may end the process of a point, the rest of the sweep goes on.
        let may_abort = self.plan.points.iter().any(|point| point.may_abort);
        let mut own = (self.rounds.count == 1 && !may_abort).then_some(benchmark);
        if own.is_none() {
            // It was locked so that this process could be asked whether it can measure.
            memory_lock::unlock_all();
        }
        let begun = Instant::now();
        let mut budget = Budget::new(sweep.budget);
        for round in 0..self.rounds.count {
            let missing = self.missing(round);
            if missing.is_empty() {
                continue;
            }
            if sweep.until_round.is_some_and(|until| round >= until) {
                return self.broken().map_or(Err(Ending::UntilRound), Err);
            }
            if !budget.allows_another(begun.elapsed()) {
                if self.searches.is_none() {
                    self.report_shortfall(round, sweep);
                }
                break;
            }
            if self.searches.is_some() {
                let bytes = missing
                    .iter()
                    .map(|(_, point)| self.plan.points[*point].bytes);
                self.run.folder.require_space(bytes.sum())?;
            }
            let started = Instant::now();
            let mut by = match own.take() {
                Some(benchmark) => PointMeasurer::Benchmark(benchmark),
                None => PointMeasurer::Child(
                    start().map_err(|failure| self.ended(&failure.to_string()))?,
                ),
            };
            for (order, point) in missing {
                if let Some(signal) = interrupt::requested() {
                    return Err(self.ended(&format!("interrupted by {signal}")));
                }
                if matches!(&by, PointMeasurer::Child(child) if child.has_ended()) {
                    // With a point for which memory, threads or files did not suffice, or it was killed.
                    let again = start().map_err(|failure| self.ended(&failure.to_string()))?;
                    by = PointMeasurer::Child(again);
                }
                self.measure_point(point, round, order, &mut by)?;
            }
            budget.spent(started.elapsed());
            if !self.run.has_one_round() {
                self.summary = written(&self.run, &self.rows)?;
            }
        }
        self.complete_points()?;
        self.broken().map_or(Ok(()), Err)
    }

    /// How it ends when points have a fault.
    fn broken(&self) -> Option<Ending> {
        let mut failed: Vec<(&str, &str)> = (self.rows.iter().flatten())
            .filter_map(|row| Some((row.planned.name.as_str(), row.failure.as_deref()?)))
            .collect();
        failed.sort_unstable();
        let (name, failure) = failed.first()?;
        let others = match failed.len() {
            1 => String::new(),
            several => format!(" (and {} more points)", several - 1),
        };
        Some(Ending::Failed(format!("{name}: {failure}{others}")))
    }

    fn report_shortfall(&mut self, round: u32, sweep: &SweepArguments) {
        let asked = self.rounds.count;
        if asked == AS_MANY_AS_FIT {
            // Now it is known how many there are.
            self.run.document.rounds.planned = round;
        } else {
            let budget = sweep.budget.unwrap_or_default();
            let budget = humantime::format_duration(budget);
            let found = Finding::of(&ROUNDS_MISSING)
                .measure("done", round.into())
                .measure("asked", asked.into())
                .listed("budget", budget.to_string());
            self.find(None, None, [found]);
        }
    }

    /// Whether a point has no complete row of a round, and is not broken.
    fn is_missing(&self, point: usize, round: u32) -> bool {
        let rows = &self.rows[point];
        rows.iter().all(|row| row.failure.is_none())
            && !rows.iter().all(|row| row.done.contains(&round))
    }

    fn measure_point(
        &mut self,
        point: usize,
        round: u32,
        order: usize,
        by: &mut PointMeasurer,
    ) -> Result<(), Ending> {
        let planned = &self.plan.points[point];
        let name = planned.rows[0].name.clone();
        let shown = match self.rounds.count {
            1 => name.clone(),
            AS_MANY_AS_FIT => format!("{name} (round {})", round + 1),
            _ if self.searches.is_some() => {
                let rates = self.rows.iter().enumerate();
                let rates = rates.filter(|(at, rows)| *at == point || !rows[0].runs.is_empty());
                format!(
                    "{name} (rate {}, round {})",
                    rates.count(),
                    self.rows[point][0].runs.len() + 1
                )
            }
            rounds => format!("{name} (round {} of {rounds})", round + 1),
        };
        let progress = &self.progress;
        progress.show(&shown);
        let folders = (self.rows[point].iter_mut())
            .map(|row| row.open(&self.run))
            .collect::<Result<Vec<_>, _>>()?;
        let place = SampleFolders { round, folders };
        let started_at = SystemTime::now();
        let mut report = |so_far: benchmark::Progress| {
            let numbers = || format!("{} of {} messages", so_far.done, so_far.of);
            let text = so_far.text.clone().unwrap_or_else(numbers);
            progress.show(&format!("{shown} ({text})"));
        };
        let measured = match by {
            PointMeasurer::Benchmark(benchmark) => {
                benchmark.measure(planned.index, &place, &mut report)
            }
            PointMeasurer::Child(child) => {
                let limit = planned.time * 20 + BEYOND_EXPECTATION;
                child.measure(planned, &place, limit, &mut report)
            }
        };
        match measured {
            Ok(outcome) => self.keep(point, round, order, started_at, outcome, false),
            Err(failure) if failure.fails_its_point() => {
                let reason = failure.to_string();
                let failed = |_: &PlannedRow| RowOutcome {
                    failure: Some(reason.clone()),
                    ..RowOutcome::default()
                };
                let outcome = Outcome {
                    rows: planned.rows.iter().map(failed).collect(),
                    ..Outcome::default()
                };
                self.keep(point, round, order, started_at, outcome, true)
            }
            Err(Failure::Usage(reason)) => {
                self.ended(&reason);
                Err(Ending::Refused(reason))
            }
            Err(failure) => Err(self.ended(&format!("{name}: {failure}"))),
        }
    }

    /// Writes all that came of a point in a round. `lacked`: it took more than there was, which a search goes on with.
    fn keep(
        &mut self,
        point: usize,
        round: u32,
        order: usize,
        started_at: SystemTime,
        outcome: Outcome,
        lacked: bool,
    ) -> Result<(), Ending> {
        let schema = self.run.schema;
        let mut headline = [None; 3];
        let mut ends = None;
        let mut first: Vec<Record> = Vec::new();
        let is_whole = outcome.rows.iter().all(|found| found.failure.is_none());
        let searches = self.searches.as_ref().filter(|_| lacked);
        let goes_on = searches.is_some_and(|it| it.has_measured_beside(point, &self.rows));
        let mut stated = Vec::new();
        for (row, mut found) in self.rows[point].iter_mut().zip(outcome.rows) {
            stated.push((
                row.planned.name.clone(),
                std::mem::take(&mut found.findings),
            ));
            let mut record = row.record(schema, &found);
            record
                .set(&schema::ROUND, round)
                .set(&schema::ORDER, order)
                .set(&schema::STARTED_AT, moment(started_at));
            let record = record.arranged(&schema.runs());
            headline = schema.headline.map(|column| record.number(column.name));
            self.file.append(&record)?;
            if let Some(lines) = &mut self.lines {
                lines.write("round", json!({ "row": record }));
            }
            if let (Some(failure), true) = (&found.failure, found.ends_sweep) {
                ends = Some(format!("{}: {failure}", row.planned.name));
            }
            row.keep(&self.run, round, record, found, is_whole, goes_on)?;
            if row.runs.len() == 1 {
                first.extend(row.summary.clone());
            }
        }
        self.stream_completed(point);
        match &mut self.summary {
            // What follows from all rows is in none that is appended.
            _ if schema.across.is_some() => {
                written(&self.run, &self.rows)?;
            }
            Some(file) => first.iter().try_for_each(|row| file.append(row))?,
            None => self.summary = written(&self.run, &self.rows)?,
        }
        // A round that is not whole is measured again when the run is resumed, and would count twice.
        for (name, found) in stated.into_iter().filter(|_| is_whole) {
            self.find(Some(&name), Some(round), found);
        }
        self.write_found()?;
        self.note(outcome.notes);
        if self.run.has_one_round() && outcome.text.is_some() {
            self.told.text = outcome.text;
        }
        for line in outcome.broken_limits {
            if !self.told.broken_limits.contains(&line) {
                self.told.broken_limits.push(line);
            }
        }
        self.progress.finish_point(headline);
        match ends {
            Some(reason) => Err(self.ended(&reason)),
            None => Ok(()),
        }
    }

    fn complete_points(&mut self) -> Result<(), Ending> {
        for point in 0..self.rows.len() {
            if let Some(signal) = interrupt::requested() {
                return Err(self.ended(&format!("interrupted by {signal}")));
            }
            let rows = &mut self.rows[point];
            // A row that failed ended its point for the others as well.
            let failure = rows.iter().find_map(|row| row.failure.clone());
            for row in rows.iter_mut().filter(|row| row.failure.is_none()) {
                if is_incomplete(&self.run.folder.path().join(&row.planned.name)) {
                    // It may be of an earlier run, and whole but for its mark.
                    row.open(&self.run)?;
                }
                if row.folder.is_some() {
                    row.close(&self.run, failure.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// The sweep ends early: the points that are not whole get the reason.
    fn ended(&mut self, reason: &str) -> Ending {
        let begun = Instant::now();
        for row in self.rows.iter_mut().flatten() {
            if let Err(error) = row.leave(&self.run, reason, begun.elapsed() < ENDING) {
                return Ending::NotWritten(error);
            }
        }
        Ending::Failed(reason.to_owned())
    }

    fn rounds_done(&self) -> usize {
        if self.searches.is_some() {
            let rounds: BTreeSet<u32> = self
                .rows
                .iter()
                .flatten()
                .flat_map(|row| row.done.clone())
                .collect();
            return rounds.len();
        }
        let counts = self.rows.iter().flatten().map(|row| row.done.len());
        counts.min().unwrap_or(0)
    }

    fn write_left_out(&self) -> Result<(), ReportError> {
        if self.plan.left_out.is_empty() {
            return Ok(());
        }
        let path = self.run.folder.file(LEFT_OUT)?;
        runs::write(&path, &self.run.schema.left_out(), &self.plan.left_out)
    }

    fn write_settings(&self, status: &str, failure: Option<&str>) -> Result<(), ReportError> {
        let document = Document {
            details: json!({
                "points": self.plan.names().collect::<Vec<_>>(),
                "planned": planned(&self.plan),
                "left_out": self.plan.left_out.len(),
                "notes": self.told.notes,
                "broken_limits": self.told.broken_limits,
                "text": self.told.text,
                "find_rate": self.found_rates,
            }),
            ..self.run.document(failure, status, self.rounds_done())
        };
        document.write(&self.run.folder.file(SETTINGS)?)
    }

    /// Records what the searches found, with a finding where there is no answer, and leaves out the points that no search
    /// asked for, if all searches are at their end.
    fn conclude_searches(&mut self, is_whole: bool) {
        let Some(searches) = &self.searches else {
            return;
        };
        let failing = searches.failing(&self.rows);
        let found = searches.found(&self.rows);
        self.found_rates = found.iter().map(|it| it.document.clone()).collect();
        let found = found.into_iter().filter(|_| is_whole);
        for found in found {
            self.find(found.at.as_deref(), None, found.finding());
        }
        if is_whole {
            // A rate that fails is part of the answer, and no reservation about it.
            self.found.leave_out_overload(&failing);
            let points = std::mem::take(&mut self.plan.points).into_iter();
            let both = points.zip(std::mem::take(&mut self.rows));
            let measured = both.filter(|(_, rows)| rows.iter().any(|row| !row.runs.is_empty()));
            (self.plan.points, self.rows) = measured.unzip();
        }
    }

    /// Writes what is known so far: a run that is killed keeps it.
    pub(crate) fn write_found(&mut self) -> Result<(), ReportError> {
        if std::mem::take(&mut self.has_new) {
            findings::write(&self.found, &self.run.folder)?;
        }
        Ok(())
    }

    /// Writes the last files of the run; gives back its folder, which is still marked, what is to be shown, and how it
    /// ended.
    pub(crate) fn finish(
        mut self,
        outcome: Result<(), Ending>,
    ) -> (ResultsFolder, Report, Result<(), Ending>) {
        self.conclude_searches(outcome.is_ok());
        let mut found = self.found.clone();
        let failure = outcome.as_ref().err().map(Ending::to_string);
        let status = status_of(failure.as_deref());
        let names: Vec<&str> = self.plan.names().collect();
        let Run {
            folder,
            schema,
            document,
            ..
        } = &self.run;
        let failed = self.rows.iter().flatten().filter_map(|row| {
            let reason = row.failure.as_deref()?;
            Some((row.planned.name.as_str(), reason))
        });
        let written = written(&self.run, &self.rows)
            .and_then(|_| {
                let has_rows = self.rows.iter().flatten().any(|row| row.summary.is_some());
                findings::finish(&mut found, folder, failure.as_deref(), failed, has_rows)
            })
            .and_then(|()| folder.file(PACKAGE).map(drop))
            .and_then(|()| datapackage::write(folder.path(), schema, &document.started_at, &names))
            // Last: the points that it leaves out of a search's plan are those that --resume would miss.
            .and_then(|()| self.write_settings(status, failure.as_deref()));
        // The first failure is reported, and not that it could not be written either.
        let outcome = outcome.and(written.map_err(Ending::NotWritten));
        let rows = || self.rows.iter().flatten();
        let details = rows().filter_map(|row| {
            let told = row.told.as_ref()?;
            Some((row.planned.name.clone(), told.details.clone()))
        });
        let points = names.len();
        let summary = summary(schema, &self.rows);
        let document = self
            .run
            .document(failure.as_deref(), status, self.rounds_done());
        let lines_missing = (self.lines.take()).and_then(|lines| {
            streamed::end(
                lines,
                &summary,
                &self.streamed,
                &document,
                &found,
                &self.found_rates,
            )
        });
        let report = Report {
            folder: self.run.folder.path().to_path_buf(),
            summary,
            details: details.collect(),
            document,
            lines_missing,
            runs: rows().flat_map(|row| row.runs.clone()).collect(),
            left_out: self.plan.left_out,
            told: self.told,
            found_rates: self.found_rates,
            findings: Some(found),
            points,
        };
        (self.run.folder, report, outcome)
    }
}

/// The rows of all points that have one, in the sweep's order, with what follows from all of them.
fn summary(schema: &Schema, rows: &[Vec<Row>]) -> Vec<Record> {
    let rows = rows.iter().flatten();
    let mut summary: Vec<Record> = rows.filter_map(|row| row.summary.clone()).collect();
    curves::complete(schema, &mut summary);
    summary
}

/// Writes `summary.csv`, if there are rows for it.
fn written(run: &Run, rows: &[Vec<Row>]) -> Result<Option<RunsFile>, ReportError> {
    let rows = summary(run.schema, rows);
    let path = run.folder.file(SUMMARY)?;
    if rows.is_empty() {
        // Those that an earlier part of the run left.
        let _ = std::fs::remove_file(&path);
        return Ok(None);
    }
    RunsFile::written(&path, run.schema.summary(), &rows).map(Some)
}

fn without_numbers(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

mod streamed;
#[cfg(test)]
mod tests;
