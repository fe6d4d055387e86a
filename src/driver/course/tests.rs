use crate::testing::{Has as _, Refused as _, temporary};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use super::*;
use crate::driver::row::{Distributions, HISTOGRAMS};
use crate::results::document::{self, Program};
use crate::results::finding::kinds::{CACHE_UNKNOWN, MESSAGES_LOST, SMT_SIBLINGS};
use crate::results::json as json_file;
use crate::results::schema::hca;
use crate::rig::benchmark::{PlannedPoint, PlannedRow, Ready, RowOutcome};
use crate::stats::LatencyHistogram;

type Calls = Rc<RefCell<Vec<(usize, u32)>>>;
type ScriptedOutcome = Result<Outcome, Failure>;

struct Script {
    calls: Calls,
    answer: Box<dyn Fn(usize, u32) -> ScriptedOutcome>,
}

impl Benchmark for Script {
    fn schema(&self) -> &'static Schema {
        &hca::SCHEMA
    }
    fn plan(&mut self) -> Result<Plan, Failure> {
        Ok(plan(3))
    }
    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        Ok(Ready {
            plan,
            ..Ready::default()
        })
    }
    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(crate::rig::benchmark::Progress),
    ) -> ScriptedOutcome {
        progress(crate::rig::benchmark::Progress {
            done: 1,
            of: 2,
            text: None,
        });
        self.calls.borrow_mut().push((point, place.round));
        for folder in &place.folders {
            let text = format!("point {point}\n");
            fs::write(folder.join("latency.txt"), text).unwrap();
        }
        (self.answer)(point, place.round)
    }
}

fn name(point: usize) -> String {
    format!("rc-{point}")
}

fn plan(points: usize) -> Plan {
    let point = |index| {
        let mut settings = Record::new();
        settings.set(&hca::SERVICE, "rc").set(&hca::BURST, index);
        PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: name(index),
                settings,
            }],
            time: Duration::from_millis(1),
            bytes: 1,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        }
    };
    let mut left_out = Record::new();
    left_out
        .set(&hca::SERVICE, "ud")
        .set(&schema::REASON, "no such thing");
    Plan {
        points: (0..points).map(point).collect(),
        left_out: vec![left_out],
    }
}

fn outcome(p50: f64) -> Outcome {
    let mut figures = Record::new();
    figures
        .set(&hca::RECEIVED, 10_u64)
        .set(&hca::latency::P50, p50);
    Outcome {
        rows: vec![RowOutcome {
            figures,
            findings: vec![Finding::of(&CACHE_UNKNOWN)],
            obtained: json!({ "pages": "huge" }),
            histograms: vec![(
                "latency.hgrm".to_owned(),
                LatencyHistogram::of(&[p50 as i64]),
            )],
            ..RowOutcome::default()
        }],
        notes: vec!["a note".to_owned(), "a note".to_owned()],
        text: None,
        broken_limits: Vec::new(),
    }
}

const SEED: u64 = 5;

fn settings(count: u32) -> Document {
    Document {
        hcabench: Program::this(),
        benchmark: hca::SCHEMA.benchmark.to_owned(),
        command_line: vec!["hcabench".to_owned()],
        started_at: moment(SystemTime::UNIX_EPOCH),
        label: None,
        status: schema::INCOMPLETE.to_owned(),
        failure: None,
        point: None,
        run: json!({ "timeout_ms": 5 }),
        obtained: json!({ "devices": "none" }),
        instrument: json!({ "clock": "monotonic" }),
        machine: json!({ "cpu": "a", "kernel": "b", "hostname": "c" }),
        readiness: Value::Null,
        rounds: document::Rounds {
            planned: count,
            done: 0,
            seed: Some(SEED),
        },
        details: Value::Null,
    }
}

fn begun(out: &Path, rounds: u32, points: usize) -> SweepRun {
    begun_with(out, rounds, plan(points))
}

fn begun_with(out: &Path, rounds: u32, plan: Plan) -> SweepRun {
    let folder = ResultsFolder::create(out, false, 0).unwrap();
    let order = Rounds {
        count: rounds,
        seed: SEED,
    };
    SweepRun::begin(folder, &hca::SCHEMA, order, plan, settings(rounds)).unwrap()
}

fn resumed(out: &Path, points: usize, settings: Document) -> Result<SweepRun, String> {
    resumed_with(out, plan(points), settings)
}

fn resumed_with(out: &Path, plan: Plan, settings: Document) -> Result<SweepRun, String> {
    let earlier = EarlierRun::read(out, &hca::SCHEMA).unwrap();
    SweepRun::resume(earlier, &hca::SCHEMA, plan, settings)
}

fn script(answer: impl Fn(usize, u32) -> ScriptedOutcome + 'static) -> (Calls, Box<Script>) {
    let calls = Calls::default();
    let benchmark = Script {
        calls: Rc::clone(&calls),
        answer: Box::new(answer),
    };
    (calls, Box::new(benchmark))
}

fn measured(course: &mut SweepRun, benchmark: Box<Script>) -> Result<(), String> {
    let ended = course.measure(benchmark, &|| unreachable!(), &SweepArguments::default());
    ended.map_err(|ending| match ending {
        Ending::Failed(reason) | Ending::Refused(reason) => reason,
        Ending::NotWritten(error) => error.to_string(),
        Ending::UntilRound => "until round".to_owned(),
    })
}

fn keep(course: &mut SweepRun, point: usize, round: u32, outcome: Outcome) {
    for row in &mut course.rows[point] {
        row.open(&course.run).unwrap();
    }
    let now = SystemTime::UNIX_EPOCH;
    assert!(course.keep(point, round, 0, now, outcome, false).is_ok());
}

fn failed(reason: &str) -> Result<(), Ending> {
    Err(Ending::Failed(reason.to_owned()))
}

fn rows(path: &Path) -> Vec<csv::StringRecord> {
    csv::Reader::from_path(path)
        .unwrap()
        .records()
        .map(Result::unwrap)
        .collect()
}

fn cell(path: &Path, row: usize, column: &str) -> String {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let place = reader
        .headers()
        .unwrap()
        .iter()
        .position(|it| it == column)
        .unwrap();
    reader.records().nth(row).unwrap().unwrap()[place].to_owned()
}

#[test]
fn a_failure_ends_the_sweep_and_what_was_measured_stays() {
    let out = temporary("run");
    let mut course = begun(&out, 1, 3);
    let (calls, benchmark) = script(|point, _| match point {
        0 => Ok(outcome(1.0)),
        _ => Err(Failure::Run("the link is down".to_owned())),
    });
    let reason = measured(&mut course, benchmark).unwrap_err();
    assert_eq!(reason, "rc-1: the link is down");
    assert_eq!(calls.borrow().len(), 2);
    let (folder, report, _) = course.finish(failed(&reason));
    folder.fail(&reason).unwrap();
    assert_eq!(report.summary.len(), 1);
    assert_eq!(report.told.notes, ["a note"]);
    let findings = report.findings.unwrap();
    let found = findings.all().into_iter();
    let unknown = found.into_iter().find(|it| it.kind == CACHE_UNKNOWN.id);
    assert_eq!(unknown.unwrap().points, ["rc-0"]);
    let reason = cell(&out.join("left_out.csv"), 0, "reason");
    assert_eq!(reason, "no such thing");
    let document = Document::of_run(&out.join("rc-0")).unwrap();
    let obtained = json!({ "devices": "none", "pages": "huge" });
    assert_eq!(document.obtained, obtained);
    let mark = fs::read_to_string(out.join("rc-1/INCOMPLETE")).unwrap();
    assert!(mark.contains("the link is down"), "{mark}");
    assert!(!out.join("rc-0/INCOMPLETE").exists() && out.join("INCOMPLETE").exists());
    let document = Document::of_run(&out).unwrap();
    assert_eq!(document.status, schema::INCOMPLETE);
    assert_eq!(document.failure.as_deref(), Some("rc-1: the link is down"));
}

#[test]
fn a_point_that_fails_alone_does_not_keep_others_from_being_measured() {
    for ends_sweep in [false, true] {
        let out = temporary("run");
        let mut course = begun(&out, 1, 3);
        let (calls, benchmark) = script(move |point, _| {
            let mut found = outcome(1.0);
            if point == 1 {
                found.rows[0].failure = Some("elements were lost".to_owned());
                found.rows[0].ends_sweep = ends_sweep;
            }
            Ok(found)
        });
        let reason = measured(&mut course, benchmark).unwrap_err();
        assert_eq!(reason, "rc-1: elements were lost");
        assert_eq!(calls.borrow().len(), if ends_sweep { 2 } else { 3 });
        let summary = out.join("summary.csv");
        assert_eq!(cell(&summary, 1, "status"), schema::INCOMPLETE);
        assert_eq!(cell(&summary, 1, "failure"), "elements were lost");
        assert!(out.join("rc-1/INCOMPLETE").exists());
    }
}

#[test]
fn what_a_limit_or_an_abort_keeps_from_being_measured_fails_alone() {
    for failure in [Failure::Shortage as fn(String) -> Failure, Failure::Aborted] {
        let out = temporary("run");
        let mut course = begun(&out, 1, 3);
        let (calls, benchmark) = script(move |point, _| match point {
            1 => Err(failure("no file is left".to_owned())),
            _ => Ok(outcome(1.0)),
        });
        let reason = measured(&mut course, benchmark).unwrap_err();
        assert_eq!(reason, "rc-1: no file is left");
        assert_eq!(calls.borrow().len(), 3);
        let mark = fs::read_to_string(out.join("rc-1/INCOMPLETE")).unwrap();
        mark.has(&["no file is left"]);
    }
}

#[test]
fn one_round_is_a_separate_process_where_a_library_may_abort() {
    let out = temporary("run");
    let mut sweep = plan(3);
    sweep.points[1].may_abort = true;
    let mut course = begun_with(&out, 1, sweep);
    let (calls, benchmark) = script(|_, _| Ok(outcome(1.0)));
    let start = || Err(Failure::Run("a process was asked for".to_owned()));
    let ended = course.measure(benchmark, &start, &SweepArguments::default());
    let ended = ended.map_err(|ending| ending.to_string());
    assert_eq!(ended, Err("a process was asked for".to_owned()));
    assert!(calls.borrow().is_empty());
}

#[test]
fn the_summary_gets_a_row_a_point_and_in_the_end_those_of_all_rounds() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut course = begun(&out, 2, 3);
    let summary = out.join("summary.csv");
    let inode = || fs::metadata(&summary).unwrap().ino();
    let points = || -> Vec<String> {
        let rows = rows(&summary).len();
        (0..rows).map(|row| cell(&summary, row, "point")).collect()
    };
    keep(&mut course, 2, 0, outcome(1.0));
    let begun = inode();
    for point in [0, 1] {
        keep(&mut course, point, 0, outcome(1.0));
    }
    keep(&mut course, 1, 1, outcome(3.0));
    assert_eq!(
        (inode(), points().join(" ")),
        (begun, "rc-2 rc-0 rc-1".to_owned())
    );
    course.finish(failed("a test")).0.fail("a test").unwrap();
    assert_eq!(points().join(" "), "rc-0 rc-1 rc-2");
    let of_second = ["rounds", "latency_p50_ns"].map(|column| cell(&summary, 1, column));
    assert_eq!(of_second, ["2", "2.0"]);
    let course = resumed(&out, 3, settings(2)).unwrap();
    assert_eq!(points().join(" "), "rc-0 rc-1 rc-2");
    drop(course);
}

#[test]
fn what_is_missing_or_incomplete_is_measured_by_a_resumed_run() {
    let out = temporary("run");
    let mut course = begun(&out, 1, 3);
    let (_, benchmark) = script(|point, _| {
        let mut found = outcome(1.0);
        if point == 1 {
            found.rows[0].failure = Some("interrupted by SIGTERM".to_owned());
            found.rows[0].ends_sweep = true;
        }
        Ok(found)
    });
    let reason = measured(&mut course, benchmark).unwrap_err();
    course.finish(failed(&reason)).0.fail(&reason).unwrap();

    let mut course = resumed(&out, 3, settings(1)).unwrap();
    let (calls, benchmark) = script(|_, _| Ok(outcome(2.0)));
    assert_eq!(measured(&mut course, benchmark), Ok(()));
    assert_eq!(*calls.borrow(), [(1, 0), (2, 0)]);
    course.finish(Ok(())).0.complete().unwrap();
    let summary = out.join("summary.csv");
    let medians: Vec<String> = (0..3)
        .map(|row| cell(&summary, row, "latency_p50_ns"))
        .collect();
    assert_eq!(medians, ["1.0", "2.0", "2.0"]);
    assert_eq!(rows(&out.join("runs.csv")).len(), 3);
    assert!(!out.join("rc-1/INCOMPLETE").exists() && !out.join("INCOMPLETE").exists());
    let text = fs::read_to_string(out.join("rc-1/latency.hgrm")).unwrap();
    assert!(text.contains("Total count    =            1"), "{text}");
    EarlierRun::read(&out, &hca::SCHEMA).refused(&["nothing is missing"]);
}

#[test]
fn a_run_is_not_resumed_on_another_machine_or_with_other_settings() {
    let out = temporary("run");
    let course = begun(&out, 1, 2);
    let reason = "as a test wants it";
    course.finish(failed(reason)).0.fail(reason).unwrap();
    let other = Document {
        run: json!({ "timeout_ms": 6 }),
        ..settings(1)
    };
    resumed(&out, 2, other).refused(&["the settings differ in timeout_ms: 5 there, 6 now"]);
    let other = Document {
        machine: json!({ "cpu": "z", "kernel": "b", "hostname": "c" }),
        ..settings(1)
    };
    resumed(&out, 2, other).refused(&["machine.cpu differs: a there, z now"]);
    let other = Document {
        obtained: json!({ "devices": "rxe1" }),
        ..settings(1)
    };
    resumed(&out, 2, other).refused(&["obtained.devices differs: none there, rxe1 now"]);
    let other = Document {
        hcabench: Program {
            commit: Some("0123".to_owned()),
            ..Program::this()
        },
        ..settings(1)
    };
    resumed(&out, 2, other).refused(&["of commit 0123"]);
    resumed(&out, 3, settings(1)).refused(&["the point rc-2 is not in it"]);
    resumed(&out, 1, settings(1)).refused(&["its point rc-1 would not be measured now"]);
}

#[test]
fn a_round_whose_distribution_a_kill_kept_from_the_disk_is_measured_again() {
    let out = temporary("run");
    let resumed = || resumed(&out, 2, settings(3)).unwrap();
    let mut course = begun(&out, 3, 2);
    for (round, point) in [(0, 0), (0, 1), (1, 0)] {
        keep(&mut course, point, round, outcome(1.0));
    }
    drop(course);
    let path = out.join(name(0)).join(HISTOGRAMS);
    let mut kept: Distributions = json_file::read(&path).unwrap();
    assert_eq!(kept.rounds, [0, 1].into());
    assert_eq!(kept.files["latency.hgrm"].count(), 2);
    let course = resumed();
    let missing = |course: &SweepRun| -> Vec<(usize, u32)> {
        let all = (0..2).flat_map(|point| (0..3).map(move |round| (point, round)));
        all.filter(|(point, round)| course.is_missing(*point, *round))
            .collect()
    };
    assert_eq!(missing(&course), [(0, 2), (1, 1), (1, 2)]);
    drop(course);
    // As if it had been killed right behind the row of the second round.
    kept.rounds.remove(&1);
    json_file::write(&path, &kept).unwrap();
    let course = resumed();
    assert_eq!(missing(&course), [(0, 1), (0, 2), (1, 1), (1, 2)]);
    assert_eq!(rows(&out.join("runs.csv")).len(), 2);
}

#[test]
fn a_damaged_file_from_which_a_run_would_go_on_is_named_and_stays() {
    let out = temporary("run");
    let mut course = begun(&out, 3, 2);
    for (round, point) in [(0, 0), (0, 1), (1, 0)] {
        keep(&mut course, point, round, outcome(1.0));
    }
    drop(course);
    let resumed = || {
        let earlier = EarlierRun::read(&out, &hca::SCHEMA)?;
        SweepRun::resume(earlier, &hca::SCHEMA, plan(2), settings(3))
    };
    for (file, to_do) in [
        (FINDINGS, "nothing was changed"),
        (RUNS, "nothing was changed"),
        ("rc-0/settings.json", "nothing was changed"),
        ("rc-0/histograms.json", "remove that file"),
    ] {
        let path = out.join(file);
        let good = fs::read(&path).unwrap();
        for damaged in [b"".as_slice(), b"\x1f\x8b\x08", &good[1..]] {
            fs::write(&path, damaged).unwrap();
            resumed().map(drop).refused(&[file, to_do]);
            assert_eq!(fs::read(&path).unwrap(), damaged, "{file}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("gone", &path).unwrap();
        resumed().map(drop).refused(&[file]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, good).unwrap();
    }
    // This one is written again from the rounds.
    fs::write(out.join(SUMMARY), "x").unwrap();
    let course = resumed().unwrap();
    let found = course.found.all();
    let unknown = found.iter().find(|it| it.kind == CACHE_UNKNOWN.id).unwrap();
    assert_eq!(
        (&unknown.points[..], &unknown.rounds[..]),
        (&[name(0), name(1)][..], &[0, 1][..])
    );
}

fn of_two_rows() -> Plan {
    let mut plan = plan(2);
    let second = plan.points.pop().unwrap();
    plan.points[0].rows.extend(second.rows);
    plan
}

fn outcome_of_two(failure: Option<&str>) -> Outcome {
    let [mut first, mut second] = [outcome(1.0), outcome(2.0)];
    second.rows[0].failure = failure.map(str::to_owned);
    first.rows.append(&mut second.rows);
    first
}

#[test]
fn a_round_of_a_point_that_lacks_a_row_is_measured_again_for_all_of_its_rows() {
    for rounds in [1, 3] {
        let out = temporary("run");
        let mut course = begun_with(&out, rounds, of_two_rows());
        let keep_two = |course: &mut SweepRun, round, failure| {
            keep(course, 0, round, outcome_of_two(failure));
        };
        let last = rounds - 1;
        (0..last).for_each(|round| keep_two(&mut course, round, None));
        keep_two(&mut course, last, Some("it was moved"));
        assert!(course.complete_points().is_ok());
        let reason = "rc-1: it was moved";
        course.finish(failed(reason)).0.fail(reason).unwrap();
        // Of several rounds the other row is not whole either.
        assert_eq!(out.join("rc-0/INCOMPLETE").exists(), rounds > 1);

        let mut course = resumed_with(&out, of_two_rows(), settings(rounds)).unwrap();
        let missing = |course: &SweepRun| -> Vec<u32> {
            (0..rounds)
                .filter(|round| course.is_missing(0, *round))
                .collect()
        };
        assert_eq!(missing(&course), [last]);
        keep_two(&mut course, last, None);
        assert!(missing(&course).is_empty() && course.complete_points().is_ok());
        course.finish(Ok(())).0.complete().unwrap();
        assert_eq!(rows(&out.join("runs.csv")).len(), 2 * rounds as usize);
        for row in 0..2 {
            let text = fs::read_to_string(out.join(name(row)).join("latency.hgrm")).unwrap();
            text.has(&[&format!("Total count    =            {rounds}")]);
        }
    }
}

#[test]
fn a_point_that_needs_no_more_measuring_keeps_what_it_told() {
    let out = temporary("run");
    let mut course = begun(&out, 2, 2);
    for (round, point) in [(0, 0), (0, 1), (1, 0)] {
        keep(&mut course, point, round, outcome(1.0));
    }
    drop(course);
    let mut course = resumed(&out, 2, settings(2)).unwrap();
    keep(&mut course, 1, 1, outcome(1.0));
    assert!(course.complete_points().is_ok());
    course.finish(Ok(())).0.complete().unwrap();
    for point in 0..2 {
        let document = Document::read(&out.join(name(point)).join("settings.json")).unwrap();
        assert_eq!(document.obtained["pages"], "huge");
        assert_eq!(document.status.as_str(), "complete");
        assert_eq!(document.rounds.done, 2);
    }
}

#[test]
fn findings_of_points_are_shown_of_each_once_for_all_rounds_and_count_in_each() {
    let root = tempfile::tempdir().unwrap();
    let mut course = begun(&root.path().join("run"), 3, 2);
    let lost = Finding::of(&MESSAGES_LOST).count("of", 9);
    for round in 0..3 {
        for point in ["rc-0", "rc-1"] {
            let count = u64::from(round);
            course.find(
                Some(point),
                Some(round),
                [lost.clone().count("count", count)],
            );
        }
    }
    assert_eq!(course.warned.len(), 2);
    let shared = |cpu: &str| Finding::of(&SMT_SIBLINGS).listed("threads", cpu);
    course.find(
        None,
        None,
        [shared("CPU 0 and CPU 4"), shared("CPU 1 and CPU 5")],
    );
    assert_eq!(course.warned.len(), 3);
    let [lost, shared] = course.found.all()[..] else {
        panic!("{:?}", course.found);
    };
    assert_eq!(lost.short(2), "all 2 points: 6 of 54 messages were lost");
    assert_eq!(lost.rounds, [0, 1, 2]);
    shared.problem.has(&["CPU 0 and CPU 4, CPU 1 and CPU 5"]);
}

/// A plan whose points are the rates of a search, and the search.
fn rates() -> (Plan, Searches) {
    let rates = crate::stats::rate_search::candidates(2500.0, 3500.0);
    let mut plan = plan(rates.len());
    for (point, rate) in plan.points.iter_mut().zip(rates) {
        let mut settings = Record::new();
        settings.set(&hca::BURST, 10_u64);
        settings.set(&hca::RATE, rate as u64);
        point.rows[0].settings = settings;
    }
    let asked = crate::arguments::conditions::conditions("p99<1ms").unwrap();
    let searches = Searches::new(&asked, &hca::SCHEMA, None, &plan).unwrap();
    (plan, searches)
}

/// Measures rounds from the first that has something to measure on; which point each had. The planted highest rate is
/// 3000.
fn searched(course: &mut SweepRun, rounds: std::ops::Range<u32>) -> Vec<(u32, usize)> {
    let mut measured = Vec::new();
    for round in rounds {
        for (_, point) in course.missing(round) {
            let settings = &course.plan.points[point].rows[0].settings;
            let rate = settings.number(hca::RATE.name).unwrap();
            let mut found = outcome(1.0);
            let noise = f64::from(round % 3) * 2.0;
            found.rows[0]
                .figures
                .set(&hca::SENT, 10_u64)
                .set(&hca::POST_RATE, rate)
                .set(&hca::intended::P99, rate / 3000.0 * 1e6 + noise);
            keep(course, point, round, found);
            measured.push((round, point));
        }
    }
    measured
}

#[test]
fn a_search_that_was_interrupted_is_completed_by_resume_as_if_it_had_not_been() {
    let ended = |course: SweepRun| {
        let (folder, report, outcome) = course.finish(Ok(()));
        assert!(outcome.is_ok());
        folder.complete().unwrap();
        let points: Vec<String> = (report.summary.iter())
            .map(|row| row.text(&schema::POINT))
            .collect();
        (report.found_rates, points)
    };
    let begun = |out: &Path| {
        let (plan, searches) = rates();
        let mut course = begun_with(out, searches.rounds(), plan);
        course.search(searches);
        course
    };
    let whole = temporary("whole");
    let mut course = begun(&whole);
    let all = searched(&mut course, 0..200);
    course.complete_points().unwrap_or_else(|_| panic!());
    let (found, points) = ended(course);
    assert_eq!(found[0]["found"], true);
    let rate = found[0]["rate_per_s"].as_f64().unwrap();
    assert!((2900.0..3000.0).contains(&rate), "{rate}");
    // Each rate that was tried is a row, and no other.
    let tried: BTreeSet<usize> = all.iter().map(|(_, point)| *point).collect();
    assert_eq!(points, Vec::from_iter(tried.into_iter().map(name)));

    for end in [1, 20] {
        let out = temporary("run");
        let mut course = begun(&out);
        let first = searched(&mut course, 0..end);
        let reason = "interrupted by SIGTERM";
        course.finish(failed(reason)).0.fail(reason).unwrap();
        let (plan, searches) = rates();
        let mut course = resumed_with(&out, plan, settings(searches.rounds())).unwrap();
        course.search(searches);
        let then = searched(&mut course, 0..200);
        course.complete_points().unwrap_or_else(|_| panic!());
        assert_eq!([first, then].concat(), all, "ended at {end}");
        assert_eq!(
            ended(course),
            (found.clone(), points.clone()),
            "ended at {end}"
        );
        let rounds = |folder: &Path| rows(&folder.join("runs.csv")).len();
        assert_eq!(rounds(&out), rounds(&whole));
        assert!(!out.join(&points[0]).join(HISTOGRAMS).exists());
    }
}

#[test]
fn a_search_ends_before_a_round_for_which_the_disk_has_no_room() {
    let out = temporary("run");
    let (mut plan, searches) = rates();
    for point in &mut plan.points {
        point.bytes = 1 << 60;
    }
    let mut course = begun_with(&out, searches.rounds(), plan);
    course.search(searches);
    let (calls, benchmark) = script(|_, _| Ok(outcome(1.0)));
    measured(&mut course, benchmark).refused(&["free", "may take 1.0 EiB"]);
    assert!(calls.borrow().is_empty());
}
