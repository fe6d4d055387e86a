use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use super::*;
use crate::results::schema::hca;
use crate::rig::benchmark::{PlannedPoint, PlannedRow, Ready};

type Calls = Rc<RefCell<Vec<(usize, u32)>>>;
type Scripted = Result<Outcome, Failure>;

/// Measures what a script says, and writes down what it was asked for.
struct Script {
    calls: Calls,
    answer: Box<dyn Fn(usize, u32) -> Scripted>,
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
        place: &Place,
        progress: &mut dyn FnMut(crate::rig::benchmark::Progress),
    ) -> Scripted {
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
            obtained: json!({ "pages": "huge" }),
            histograms: vec![(
                "latency.hgrm".to_owned(),
                LatencyHistogram::of(&[p50 as i64]),
            )],
            ..RowOutcome::default()
        }],
        warnings: vec!["a warning".to_owned()],
        notes: vec!["a note".to_owned()],
        text: None,
        broken_limits: Vec::new(),
    }
}

fn settings(count: u32) -> Settings {
    Settings {
        schema: &hca::SCHEMA,
        rounds: Rounds { count, seed: 5 },
        command_line: vec!["hcabench".to_owned()],
        started_at: SystemTime::UNIX_EPOCH,
        run: json!({ "timeout_ms": 5 }),
        obtained: json!({ "devices": "none" }),
        instrument: json!({ "clock": "monotonic" }),
        machine: json!({ "cpu": "a", "kernel": "b", "hostname": "c" }),
        readiness: Value::Null,
        quiet: true,
    }
}

fn begun(out: &Path, settings: Settings, points: usize) -> Course {
    let folder = ResultsFolder::create(out, false, 0).unwrap();
    Course::begin(folder, plan(points), settings).unwrap()
}

fn script(answer: impl Fn(usize, u32) -> Scripted + 'static) -> (Calls, Box<Script>) {
    let calls = Calls::default();
    let benchmark = Script {
        calls: Rc::clone(&calls),
        answer: Box::new(answer),
    };
    (calls, Box::new(benchmark))
}

fn measured(course: &mut Course, benchmark: Box<Script>) -> Result<End, String> {
    let ended = course.measure(benchmark, &[], &Limits::default());
    ended.map_err(|ending| match ending {
        Ending::Failed(reason) | Ending::Refused(reason) => reason,
        Ending::NotWritten(error) => error.to_string(),
    })
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
fn each_point_leaves_its_files_and_its_rows() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut course = begun(&out, settings(1), 3);
    let (calls, benchmark) = script(|point, _| Ok(outcome(100.0 + point as f64)));
    assert_eq!(measured(&mut course, benchmark), Ok(End::Complete));
    assert_eq!(*calls.borrow(), [(0, 0), (1, 0), (2, 0)]);
    let (folder, report) = course.finish();
    folder.complete().unwrap();
    assert_eq!((report.warnings.len(), report.notes.len()), (1, 1));
    assert_eq!(rows(&out.join("runs.csv")).len(), 3);
    let summary = out.join("summary.csv");
    assert_eq!(cell(&summary, 1, "point"), "rc-1");
    assert_eq!(cell(&summary, 1, "latency_p50_ns"), "101.0");
    assert_eq!(cell(&summary, 1, "burst"), "1");
    assert_eq!(
        cell(&out.join("left_out.csv"), 0, "reason"),
        "no such thing"
    );
    for point in 0..3 {
        let folder = out.join(name(point));
        assert!(folder.join("latency.hgrm").exists() && !folder.join("INCOMPLETE").exists());
        assert!(!folder.join(HISTOGRAMS).exists());
        let document = Document::read(&folder.join("settings.json")).unwrap();
        assert_eq!(document.status, schema::COMPLETE);
        assert_eq!(
            document.obtained,
            json!({ "devices": "none", "pages": "huge" })
        );
        assert_eq!((document.rounds.planned, document.rounds.done), (1, 1));
    }
    assert!(out.join("datapackage.json").exists());
    assert_eq!(Document::of_run(&out).unwrap().status, schema::COMPLETE);
}

#[test]
fn a_failure_ends_the_sweep_and_what_was_measured_stays() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut course = begun(&out, settings(1), 3);
    let (calls, benchmark) = script(|point, _| match point {
        0 => Ok(outcome(1.0)),
        _ => Err(Failure::Run("the link is down".to_owned())),
    });
    let reason = measured(&mut course, benchmark).unwrap_err();
    assert_eq!(reason, "rc-1: the link is down");
    assert_eq!(calls.borrow().len(), 2);
    let (folder, report) = course.finish();
    folder.fail(&reason).unwrap();
    assert_eq!(report.summary.len(), 1);
    let mark = fs::read_to_string(out.join("rc-1/INCOMPLETE")).unwrap();
    assert!(mark.contains("the link is down"), "{mark}");
    assert!(!out.join("rc-0/INCOMPLETE").exists() && out.join("INCOMPLETE").exists());
    assert_eq!(Document::of_run(&out).unwrap().status, schema::INCOMPLETE);
}

#[test]
fn a_point_that_fails_alone_does_not_keep_others_from_being_measured() {
    for ends_sweep in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        let mut course = begun(&out, settings(1), 3);
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
fn what_is_missing_or_incomplete_is_measured_by_a_resumed_run() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut course = begun(&out, settings(1), 3);
    let (_, benchmark) = script(|point, _| {
        let mut found = outcome(1.0);
        if point == 1 {
            found.rows[0].failure = Some("interrupted by SIGTERM".to_owned());
            found.rows[0].ends_sweep = true;
        }
        Ok(found)
    });
    let reason = measured(&mut course, benchmark).unwrap_err();
    course.finish().0.fail(&reason).unwrap();

    let earlier = Earlier::read(&out, &hca::SCHEMA).unwrap();
    let mut course = Course::resume(earlier, plan(3), settings(1)).unwrap();
    let (calls, benchmark) = script(|_, _| Ok(outcome(2.0)));
    assert_eq!(measured(&mut course, benchmark), Ok(End::Complete));
    assert_eq!(*calls.borrow(), [(1, 0), (2, 0)]);
    course.finish().0.complete().unwrap();
    let summary = out.join("summary.csv");
    let medians: Vec<String> = (0..3)
        .map(|row| cell(&summary, row, "latency_p50_ns"))
        .collect();
    assert_eq!(medians, ["1.0", "2.0", "2.0"]);
    assert_eq!(rows(&out.join("runs.csv")).len(), 3);
    assert!(!out.join("rc-1/INCOMPLETE").exists() && !out.join("INCOMPLETE").exists());
    let text = fs::read_to_string(out.join("rc-1/latency.hgrm")).unwrap();
    assert!(text.contains("Total count    =            1"), "{text}");
    let again = Earlier::read(&out, &hca::SCHEMA).err().unwrap();
    assert!(again.contains("nothing is missing"), "{again}");
}

#[test]
fn a_run_is_not_resumed_on_another_machine_or_with_other_settings() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let course = begun(&out, settings(1), 2);
    course.finish().0.fail("as a test wants it").unwrap();
    let refused = |settings: Settings, points: usize| {
        let earlier = Earlier::read(&out, &hca::SCHEMA).unwrap();
        Course::resume(earlier, plan(points), settings)
            .err()
            .unwrap()
    };
    let other = Settings {
        run: json!({ "timeout_ms": 6 }),
        ..settings(1)
    };
    assert!(refused(other, 2).contains("the settings differ in timeout_ms: 5 there, 6 now"));
    let other = Settings {
        machine: json!({ "cpu": "z", "kernel": "b", "hostname": "c" }),
        ..settings(1)
    };
    assert!(refused(other, 2).contains("the machines differ in cpu"));
    assert!(refused(settings(1), 3).contains("the point rc-2 is not in it"));
    assert!(refused(settings(1), 1).contains("its point rc-1 would not be measured now"));
}

#[test]
fn a_round_whose_distribution_a_kill_kept_from_the_disk_is_measured_again() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let resumed = || {
        let earlier = Earlier::read(&out, &hca::SCHEMA).unwrap();
        Course::resume(earlier, plan(2), settings(3)).unwrap()
    };
    let mut course = begun(&out, settings(3), 2);
    for (round, point) in [(0, 0), (0, 1), (1, 0)] {
        course.open_point(&name(point)).unwrap();
        let now = SystemTime::UNIX_EPOCH;
        assert!(course.keep(point, round, 0, now, outcome(1.0)).is_ok());
    }
    drop(course);
    let path = out.join(name(0)).join(HISTOGRAMS);
    let mut kept: Distributions = json_file::read(&path).unwrap();
    assert_eq!(kept.rounds, [0, 1].into());
    assert_eq!(kept.files["latency.hgrm"].count(), 2);
    let course = resumed();
    let missing = |course: &Course| -> Vec<(usize, u32)> {
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
