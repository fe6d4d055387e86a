//! Rank 0's files: what comes is on disk before the next pairs are measured. Nothing of a row stays in memory but what
//! [`RowFigures`] has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::FabricArguments;
use super::earlier::{EarlierFabric, FabricDocument};
use super::folders::{Folders, PairFolders, SAMPLES};
use super::judgement::{self, FabricJudgement};
use super::kept::{BoundsNarrowing, Ends, RowFigures, place_of};
use super::names::BETWEEN;
use super::overview::{FabricFacts, FabricMeasurements, Overview};
use super::{distances, dry_run};
use crate::driver::ending::Ending;
use crate::launch::conductor::Sink;
use crate::launch::error::LaunchError;
use crate::launch::identity::Identity;
use crate::launch::message::{DirectionReport, PairReport};
use crate::launch::schedule::{Pair, Schedule};
use crate::results::datapackage::DataPackage;
use crate::results::folder::{LEFT_OUT, PACKAGE, RUNS, SUMMARY};
use crate::results::runs::{self, RoundAggregator, RunsFile};
use crate::results::schema::between::{CONTRADICTION, DECLARED};
use crate::results::schema::fabric::{self as columns, FABRIC, NODES, PAIRS, RULES, SCHEMA};
use crate::results::schema::{COMPLETE, INCOMPLETE, ORDER};
use crate::results::{Cell, ReportError, ResultsFolder, json as json_files};
use crate::rig::benchmark::Failure;
use crate::terminal::progress::Progress;
use crate::time::between::HostPairs;

/// With more folders of pairs the package has none of them: each takes 7 KB of it.
const MOST_DESCRIBED: usize = 256;

/// What rank 0 has so far.
pub(super) struct FabricRun {
    folder: ResultsFolder,
    /// The samples of pairs.
    folders: Folders,
    runs: RunsFile,
    left_out: RunsFile,
    /// What is in fabric.json: the nodes by rank, and what their clocks contradict each other in, once third hosts are
    /// asked.
    document: FabricDocument,
    known: FabricFacts,
    concurrency: String,
    order: u64,
    kept: RowFigures,
    /// What came of pairs that were measured again alone.
    again: Option<RowFigures>,
    /// The verdicts by all pairs together, if suspects are measured again: since then `kept` takes no more rows.
    overview: Option<Overview>,
    /// Ordered pairs.
    left_out_count: usize,
    failed: usize,
    /// Ordered pairs that could not be measured again.
    again_failed: usize,
    /// Directions whose messages are more than a rank sends.
    without_samples: usize,
    /// Pairs of the batch that are over.
    over: u64,
    progress: Option<Progress>,
}

impl FabricRun {
    /// Makes the files of a new run, or goes on with those of an earlier one.
    pub(super) fn begin(
        folder: ResultsFolder,
        identity: &Identity,
        arguments: &FabricArguments,
        mut document: FabricDocument,
        (known, earlier): (FabricFacts, Option<&EarlierFabric>),
    ) -> anyhow::Result<Self> {
        document.tiers = distances::recorded(arguments, &known.tiers, &document.nodes);
        let of_pairs = dry_run::sampled(arguments.schedule(identity.ranks));
        let of_tiers = distances::finding(&known.tiers, &document.nodes);
        for found in of_tiers.into_iter().chain(of_pairs) {
            document.findings.add(found, None, None);
        }
        let mut kept = RowFigures::new(
            pairs_of(arguments.schedule(identity.ranks)),
            &judgement::limited(arguments)?,
        );
        let resumed_at = earlier.iter().flat_map(|it| &it.document.resumed_at);
        resumed_at.for_each(|order| kept.resumed_at(*order));
        let path = folder.file(RUNS)?;
        let (runs, mut kept, order) = match (path.symlink_metadata(), earlier) {
            (Ok(_), Some(earlier)) => go_on(&path, kept, &earlier.document.contradicted_rounds)?,
            _ => (RunsFile::create(&path, &SCHEMA)?, kept, 0),
        };
        if earlier.is_some() {
            // Rounds of which no row is left are measured again.
            document.findings.keep_rounds(|round| kept.has(round));
            kept.resumed_at(order);
            document.resumed_at.push(order);
        }
        json_files::write(&folder.file(FABRIC)?, &document)?;
        // A file of the user that has its name is found before anything is measured.
        folder.file(PACKAGE)?;
        if earlier.is_some() {
            // Made again at the end: until then no verdict stands beside pairs that are measured anew.
            for table in [PAIRS, NODES, SUMMARY, RULES, PACKAGE] {
                let _ = std::fs::remove_file(folder.path().join(table));
            }
        }
        // What was left out before is measured now.
        let left_out = RunsFile::written(&folder.file(LEFT_OUT)?, SCHEMA.left_out(), &[])?;
        let which = PairFolders::of(arguments, identity.ranks);
        Ok(FabricRun {
            folder,
            folders: Folders::new(which, earlier.is_some()),
            runs,
            left_out,
            document,
            known,
            concurrency: arguments.concurrency.to_string(),
            order,
            kept,
            again: None,
            overview: None,
            left_out_count: 0,
            failed: 0,
            again_failed: 0,
            without_samples: 0,
            over: 0,
            progress: None,
        })
    }

    /// The name of a rank's node.
    pub(super) fn node(&self, rank: u32) -> &str {
        self.document
            .nodes
            .get(rank as usize)
            .map_or("?", String::as_str)
    }

    /// The batches of a round that are still to be measured. Of a round of which nothing is there yet, none is stored.
    pub(super) fn batches(
        &self,
        schedule: Schedule,
        round: u32,
    ) -> Box<dyn Iterator<Item = Vec<Pair>>> {
        if !self.kept.has(round) {
            return Box::new(schedule.batches());
        }
        let missing = self.missing(schedule, round);
        Box::new(schedule.batches_of(missing).into_iter())
    }

    /// How many pairs of a round are still to be measured.
    pub(super) fn pairs_to_measure(&self, schedule: Schedule, round: u32) -> u64 {
        match self.kept.has(round) {
            true => self.missing(schedule, round).count() as u64,
            false => schedule.pairs(),
        }
    }

    fn missing(&self, schedule: Schedule, round: u32) -> impl Iterator<Item = Pair> {
        let all = schedule.batches().flatten();
        all.filter(move |pair| !self.kept.is_whole(*pair, round))
    }

    /// Shows the progress over this many pairs from here on.
    pub(super) fn show_progress(&mut self, pairs: u64) {
        self.progress = Some(Progress::counting(pairs, "pairs"));
    }

    /// Shows what is being measured.
    pub(super) fn show(&self, what: &str) {
        if let Some(progress) = &self.progress {
            progress.show(what);
        }
    }

    /// Takes the progress off the screen.
    pub(super) fn end_progress(&mut self) {
        self.progress = None;
    }

    /// From here on pairs are measured again, alone.
    pub(super) fn measuring_again(&mut self) {
        self.again = Some(self.kept.empty());
    }

    /// The pairs to be measured again, once the others are measured.
    pub(super) fn suspects(&mut self, most: usize) -> Vec<Ends> {
        let overview = self.look(most);
        let suspects = overview.suspects();
        self.overview = Some(overview);
        suspects
    }

    /// The verdicts by all pairs together, with bounds as tight as third hosts leave them.
    fn look(&mut self, most: usize) -> Overview {
        // Bounds of clocks that drift hold at a moment each, and these are of several.
        // And of a sample few third hosts know of both, for what takes the cube of the ranks.
        let narrow = !self.known.drift && self.document.schedule["partners"] == "all";
        let contradictions = self.kept.ask_third_hosts(&self.document.nodes, narrow);
        self.document.contradictions = contradictions.told;
        self.document.contradicted_rounds = contradictions.rounds;
        Overview::of(&self.kept, &self.known, most)
    }

    /// The messages beside the tables.
    pub(super) fn remarks(&self) -> Vec<String> {
        let found = self.document.findings.all().into_iter();
        let mut remarks: Vec<String> = found.map(|found| found.line(0)).collect();
        remarks.extend(self.document.contradictions.iter().cloned());
        if self.again_failed > 0 {
            remarks.push(format!(
                "{} ordered pairs could not be measured again, alone",
                self.again_failed
            ));
        }
        if self.without_samples > 0 {
            remarks.push(format!(
                "{} times a pair has no messages.csv or probes.csv: they are above 3 MiB in a round (--pair-folders none)",
                self.without_samples
            ));
        }
        remarks
    }

    /// Judges what there is, once, and writes the tables. `is_over`: whether the measuring came to its end.
    pub(super) fn judge(
        &mut self,
        arguments: &FabricArguments,
        dropped: &BTreeMap<u32, String>,
        is_over: bool,
    ) -> anyhow::Result<FabricJudgement> {
        let overview = match self.overview.take() {
            Some(known) => known,
            None => self.look(arguments.again as usize),
        };
        let small = distances::of_small_tiers(&self.known.tiers, &overview.fit.small_tiers);
        if let Some(found) = small {
            self.document.findings.add(found, None, None);
        }
        let partners = arguments.schedule(self.document.ranks).partners();
        let measured = FabricMeasurements {
            nodes: &self.document.nodes,
            kept: &self.kept,
            again: self.again.as_ref(),
            dropped,
            partners: &partners,
            // Third hosts have been asked by now.
            is_whole: is_over && dropped.is_empty() && self.outcome().is_ok(),
        };
        let found = judgement::judge(&measured, &overview, &self.known, arguments, |judged| {
            self.write_pairs(judged)
        })?;
        let whole = |(from, to): &Ends| {
            let pair = Pair::of(*from as u32, *to as u32);
            (0..arguments.rounds()).all(|round| self.kept.is_whole(pair, round))
        };
        let whole = self.kept.pairs().filter(whole);
        let names = whole.map(|(from, to)| self.folder_of((from as u32, to as u32)));
        let names: Vec<String> = names.collect();
        self.folders.close(&self.folder, names.into_iter())?;
        self.document.slow_ways.clone_from(&found.slow_ways);
        json_files::write(&self.folder.file(FABRIC)?, &self.document)?;
        for (name, columns, rows) in [
            (columns::NODES, columns::nodes(), &found.nodes),
            (SUMMARY, columns::summary(), &found.tiers),
        ] {
            runs::write(&self.folder.file(name)?, &columns, rows)?;
        }
        Ok(found)
    }

    /// Describes the tables to other programs. Nothing is to be written to the folder after it.
    pub(super) fn describe(&self) -> Result<(), ReportError> {
        let mut package = DataPackage::of(self.folder.path());
        for (name, meaning, columns) in columns::tables() {
            package.add(name, meaning, &columns);
        }
        let folders = self.folder.points();
        if folders.len() <= MOST_DESCRIBED {
            for folder in &folders {
                let samples = SAMPLES.iter();
                samples.for_each(|file| package.add_samples(folder, file));
            }
        }
        package.write(&SCHEMA, &self.document.started_at)
    }

    /// Writes the row of each pair, from its rows in `runs.csv` and what is judged of it.
    fn write_pairs(&self, judged: &dyn Fn(Ends) -> Vec<Cell>) -> Result<(), ReportError> {
        let over = RoundAggregator::new(&SCHEMA);
        let narrow = BoundsNarrowing::new();
        let mut names = columns::pairs().into_iter();
        let status = names.position(|(name, _)| name == columns::ONE_WAY_STATUS.name);
        let status = status.expect("it is a column of pairs.csv");
        let mut reader = self.runs.reader()?;
        let path = self.folder.file(columns::PAIRS)?;
        runs::write_each(&path, &columns::pairs(), |write| {
            let mut rows = Vec::new();
            for ends in self.kept.pairs() {
                rows.clear();
                for (place, third) in self.kept.rows(ends) {
                    let mut cells = reader.at(place)?;
                    narrow.row(&mut cells, third);
                    rows.push(cells);
                }
                let mut row = over.fold(&rows);
                // The least sure one of several rounds counts.
                let least = [CONTRADICTION, DECLARED].map(Cell::from).into_iter();
                let mut least =
                    least.filter(|it| rows.iter().any(|cells| cells[narrow.status] == *it));
                if let Some(least) = least.next() {
                    row[status] = least;
                }
                // A node of which another rank came later has its place behind it since.
                row[1] = self.document.nodes[ends.0].as_str().into();
                row[2] = self.document.nodes[ends.1].as_str().into();
                row.extend(judged(ends));
                write(&row)?;
            }
            Ok(())
        })
    }

    /// Whether all is there.
    pub(super) fn outcome(&self) -> Result<(), Ending> {
        match (self.left_out_count, self.failed) {
            (0, 0) if self.document.contradictions.is_empty() => Ok(()),
            (0, 0) => Err(Ending::Failed(
                "clocks contradict each other over third hosts: fabric.json has which".to_owned(),
            )),
            (left_out, failed) => Err(Ending::Failed(format!(
                "{left_out} ordered pairs were left out and {failed} failed; left_out.csv and runs.csv have the reasons"
            ))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn into_folder(self) -> ResultsFolder {
        self.folder
    }

    fn folder_of(&self, (from, to): (u32, u32)) -> String {
        format!("{}{BETWEEN}{}", self.node(from), self.node(to))
    }

    /// The cells of [`columns::PAIR`].
    fn pair(&self, (from, to): (u32, u32)) -> [Cell; columns::PAIR.len()] {
        [
            self.node(from).into(),
            self.node(to).into(),
            from.into(),
            to.into(),
            self.known.tier((from as usize, to as usize)).into(),
            self.concurrency.as_str().into(),
        ]
    }

    fn keep(
        &mut self,
        ends: (u32, u32),
        round: u32,
        report: &PairReport,
        direction: &DirectionReport,
    ) -> Result<(), ReportError> {
        let (from, to) = ends;
        let is_cut = self.folders.has(self.again.is_some()) && direction.samples.len() < 2;
        self.without_samples += usize::from(is_cut && direction.failure.is_none());
        for found in &direction.findings {
            self.document.findings.add(found.clone(), None, Some(round));
        }
        let status = match direction.failure.is_some() {
            true => INCOMPLETE,
            false => COMPLETE,
        };
        let begun = UNIX_EPOCH + Duration::from_nanos(report.begun_unix_ns);
        let name = self.folder_of(ends);
        self.folders.keep(&self.folder, &name, round, direction)?;
        let mut cells = vec![
            name.into(),
            round.into(),
            self.order.into(),
            humantime::format_rfc3339_nanos(begun).to_string().into(),
        ];
        cells.extend(self.pair(ends));
        // A row is a line.
        let failure = direction.failure.as_deref();
        let failure = failure.map(|text| text.replace(['\n', '\r'], " "));
        cells.extend([status.into(), failure.into()]);
        cells.extend(columns::FIGURES.iter().map(|column| {
            let cell = direction.figures.get(column.name).cloned();
            cell.unwrap_or(Cell::Empty).with_decimals_of(column)
        }));
        self.order += 1;
        let place = (from as usize, to as usize);
        if let Some(again) = &mut self.again {
            self.again_failed += usize::from(direction.failure.is_some());
            again.take(place, 0, &cells);
            return Ok(());
        }
        self.failed += usize::from(direction.failure.is_some());
        let row = self.runs.append_cells(&cells)?;
        self.kept.take(place, row, &cells);
        Ok(())
    }

    fn leave(&mut self, ends: (u32, u32), reason: &str) -> Result<(), ReportError> {
        let mut cells = self.pair(ends).to_vec();
        cells.push(reason.replace(['\n', '\r'], " ").into());
        self.left_out_count += 1;
        self.left_out.append_cells(&cells).map(drop)
    }

    fn sync(&mut self) -> Result<(), ReportError> {
        self.runs.sync()?;
        self.left_out.sync()
    }
}

/// Goes on with the rows of an earlier run. Of pairs that are not whole in a round nothing stays, nor of a round whose
/// clocks contradict each other: they are measured again. Returns what is kept of the rest, and the order of the next
/// row.
fn go_on(
    path: &Path,
    kept: RowFigures,
    contradicted: &[u32],
) -> Result<(RunsFile, RowFigures, u64), ReportError> {
    let read = |mut kept: RowFigures| {
        let [from, to, order] =
            [columns::FROM_RANK, columns::TO_RANK, ORDER].map(|column| place_of(&column));
        let mut next = 0;
        let file = RunsFile::open_each(path, SCHEMA.runs(), |row, cells| {
            let number = |place: usize| cells[place].number().map(|number| number as usize);
            let order = number(order).map_or(0, |order| order as u64);
            if let (Some(from), Some(to)) = (number(from), number(to)) {
                kept.check((from, to), path)?;
                kept.take((from, to), row, &cells);
            }
            next = next.max(order.saturating_add(1));
            Ok(())
        })?;
        Ok((file, kept, next))
    };
    let (file, kept, next) = read(kept)?;
    let (whole, others) = kept.whole_rows(contradicted);
    if others == 0 {
        return Ok((file, kept, next));
    }
    let mut reader = file.reader()?;
    runs::write_each(path, &SCHEMA.runs(), |write| {
        whole.iter().try_for_each(|row| write(&reader.at(*row)?))
    })?;
    let (file, kept, _) = read(kept.empty())?;
    Ok((file, kept, next))
}

/// The pairs of a schedule.
fn pairs_of(schedule: Schedule) -> HostPairs {
    let ranks = schedule.ranks() as usize;
    let places = |pair: Pair| {
        let [low, high] = pair.ranks().map(|rank| rank as usize);
        (low, high)
    };
    match schedule.sampled() {
        None => HostPairs::all(ranks),
        Some(_) => HostPairs::some(ranks, schedule.batches().flatten().map(places)),
    }
}

fn failed(error: ReportError) -> LaunchError {
    Failure::Run(error.to_string()).into()
}

impl Sink for FabricRun {
    fn report(&mut self, pair: Pair, round: u32, report: PairReport) -> Result<(), LaunchError> {
        let (low, high) = (pair.lower(), pair.higher());
        self.over += 1;
        let [there, back] = &report.directions;
        self.keep((low, high), round, &report, there)
            .and_then(|()| self.keep((high, low), round, &report, back))
            .map_err(failed)
    }

    fn keeps_samples(&self) -> bool {
        self.folders.has(self.again.is_some())
    }

    fn left_out(&mut self, pair: Pair, _round: u32, reason: &str) -> Result<(), LaunchError> {
        self.over += 1;
        if self.again.is_some() {
            self.again_failed += 2;
            return Ok(());
        }
        let (low, high) = (pair.lower(), pair.higher());
        self.leave((low, high), reason)
            .and_then(|()| self.leave((high, low), reason))
            .map_err(failed)
    }

    fn batch_over(&mut self) -> Result<(), LaunchError> {
        let over = std::mem::take(&mut self.over);
        if let Some(progress) = &self.progress {
            progress.advance(over);
        }
        self.sync().map_err(failed)
    }
}
