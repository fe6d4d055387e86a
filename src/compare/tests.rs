use std::fs;
use std::path::Path;

use super::*;
use crate::pacing::SplitMix64;
use crate::results::folder::SETTINGS;
use crate::results::read::tests::made_up_run::{Made, hca_run};

/// Latencies about `level`, in nanoseconds, that a seed decides.
fn latencies(seed: u64, level: i64) -> Vec<Made> {
    let mut draws = SplitMix64::new(seed);
    (0..2_000)
        .map(|_| Some(level + (draws.draw() % 4_000) as i64))
        .collect()
}

fn request() -> Request {
    Request {
        percentiles: vec![50.0, 99.0],
        limits: Vec::new(),
        anyway: false,
    }
}

fn run(path: &Path, points: &[(&str, u32, &[Made])]) -> Run {
    let points: Vec<_> = points
        .iter()
        .map(|&(service, size, latencies)| (service, size, 64, latencies))
        .collect();
    Run::open(&hca_run(path, &points, false)).unwrap()
}

/// Two runs of one point.
fn of(base: &[Made], new: &[Made], request: &Request) -> Comparison {
    let folder = tempfile::tempdir().unwrap();
    let base = run(&folder.path().join("base"), &[("rc", 8, base)]);
    let new = run(&folder.path().join("new"), &[("rc", 8, new)]);
    compare(&base, &new, request).unwrap()
}

fn verdicts(comparison: &Comparison) -> Vec<(String, Verdict)> {
    comparison
        .figures()
        .map(|figure| (figure.figure.kind.to_string(), figure.verdict))
        .collect()
}

fn limit(percent: f64, of: Kind) -> Request {
    Request {
        limits: vec![Limit { percent, of }],
        ..request()
    }
}

/// Another text in a point's document.
fn edit(run: &Path, from: &str, to: &str) {
    for entry in fs::read_dir(run).unwrap() {
        let file = entry.unwrap().path().join(SETTINGS);
        if let Ok(text) = fs::read_to_string(&file) {
            assert!(text.contains(from), "{from} is not in {}", file.display());
            fs::write(&file, text.replace(from, to)).unwrap();
        }
    }
}

#[test]
fn slower_is_worse_faster_is_better_and_equal_is_neither() {
    let (quick, slow) = (latencies(1, 30_000), latencies(2, 50_000));
    let found = of(&quick, &slow, &request());
    let expect = |verdict| vec![("p50".to_owned(), verdict), ("p99".to_owned(), verdict)];
    assert_eq!(verdicts(&found), expect(Verdict::Worse));
    let p50 = &found.points[0].figures[0];
    let difference = p50.difference.unwrap();
    assert!(
        (difference.value - 20_000.0).abs() < 300.0,
        "{difference:?}"
    );
    assert!(difference.together.0 < 20_000.0 && 20_000.0 < difference.together.1);
    assert!((p50.change_percent.unwrap() - 62.5).abs() < 2.0);
    assert_eq!(found.comparisons, 2);

    assert_eq!(
        verdicts(&of(&slow, &quick, &request())),
        expect(Verdict::Better)
    );
    assert_eq!(
        verdicts(&of(&quick, &latencies(3, 30_000), &request())),
        expect(Verdict::NoDifferenceShown)
    );
}

#[test]
fn a_limit_is_broken_by_what_is_worse_and_beyond_it() {
    let (quick, slow) = (latencies(1, 30_000), latencies(2, 50_000));
    let p50 = Kind::Percentile(50.0);
    assert!(of(&quick, &slow, &limit(5.0, p50)).has_broken_limit());
    // Worse, but within the limit: 62 % are allowed.
    assert!(!of(&quick, &slow, &limit(70.0, p50)).has_broken_limit());
    assert!(!of(&slow, &quick, &limit(0.0, p50)).has_broken_limit());
    // Beyond the limit, but not shown.
    let other = of(&quick, &latencies(4, 30_000), &limit(0.0, p50));
    assert!(!other.has_broken_limit());
    assert!(other.gaps(&limit(0.0, p50).limits).is_empty());
}

#[test]
fn a_limit_that_nothing_can_be_told_of_is_named() {
    let request = Request {
        percentiles: vec![50.0, 99.9],
        ..limit(5.0, Kind::Percentile(99.9))
    };
    let found = of(&latencies(1, 30_000), &latencies(2, 50_000), &request);
    let p999 = &found.points[0].figures[1];
    assert_eq!(p999.verdict, Verdict::NotJudged);
    assert!(p999.base.is_some() && p999.difference.is_none());
    assert!(
        p999.reason.as_ref().unwrap().contains("2 samples"),
        "{p999:?}"
    );
    let gaps = found.gaps(&request.limits);
    assert!(
        gaps.len() == 1 && gaps[0].contains("latency p99.9") && gaps[0].contains("2 samples"),
        "{gaps:?}"
    );
}

#[test]
fn a_run_that_loses_messages_does_not_look_better() {
    // What arrives, arrives sooner; every third does not.
    let base = latencies(1, 50_000);
    let mut new = latencies(2, 30_000);
    new.iter_mut()
        .step_by(3)
        .for_each(|message| *message = None);
    let found = of(&base, &new, &limit(1.0, Kind::Lost));
    assert_eq!(
        verdicts(&found),
        [
            ("p50".to_owned(), Verdict::BetterButMoreFaults),
            ("p99".to_owned(), Verdict::Worse),
            ("lost".to_owned(), Verdict::Worse),
        ]
    );
    let [p50, p99, lost] = &found.points[0].figures[..] else {
        panic!("{found:?}")
    };
    assert!(
        p50.reason
            .as_ref()
            .unwrap()
            .contains("messages_lost rose from 0 to 667")
    );
    assert_eq!(p99.new, Some(f64::INFINITY));
    assert!((lost.new.unwrap() - 33.35).abs() < 1e-9);
    assert!(found.has_broken_limit());
    let document = serde_json::to_value(&found).unwrap();
    assert_eq!(document["points"][0]["figures"][1]["new"], "lost");
    assert_eq!(
        document["points"][0]["figures"][0]["verdict"],
        "better-but-more-faults"
    );
    // JSON has no infinity, and null would say that nothing is known.
    let p99 = &document["points"][0]["figures"][1]["difference"];
    assert_eq!(p99["value"], "lost");
    assert_eq!(p99["together"][0], "lost");
    assert_eq!(document["resampling"]["seed"], bootstrap::SEED);
}

#[test]
fn other_machines_and_settings_are_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let (base, new) = (folder.path().join("base"), folder.path().join("new"));
    let first = run(&base, &[("rc", 8, &samples)]);
    run(&new, &[("rc", 8, &samples)]);
    edit(&new, "made-up", "another");
    let error = compare(&first, &Run::open(&new).unwrap(), &request()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("machine.hostname: made-up and another") && text.contains("--anyway"),
        "{text}"
    );
    let anyway = Request {
        anyway: true,
        ..request()
    };
    let found = compare(&first, &Run::open(&new).unwrap(), &anyway).unwrap();
    assert_eq!(found.differs.len(), 1);
    assert_eq!(found.points.len(), 1);
    // When it was measured is no setting; by which version is a warning.
    edit(&new, "another", "made-up");
    edit(&new, "2026-01-02T03:04:05Z", "2027-01-02T03:04:05Z");
    edit(&new, "0.1.0", "0.2.0");
    let found = compare(&first, &Run::open(&new).unwrap(), &request()).unwrap();
    assert!(found.differs.is_empty());
    assert!(found.warnings[0].contains("0.1.0 and 0.2.0"), "{found:?}");
}

#[test]
fn points_are_matched_by_their_settings() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let base = run(
        &folder.path().join("base"),
        &[
            ("rc", 8, &samples),
            ("rc", 16, &samples),
            ("uc", 8, &samples),
        ],
    );
    let new = run(
        &folder.path().join("new"),
        &[
            ("rc", 32, &samples),
            ("rc", 16, &samples),
            ("rc", 8, &samples),
        ],
    );
    let found = compare(&base, &new, &request()).unwrap();
    let sizes: Vec<&str> = found
        .points
        .iter()
        .map(|point| point.settings[2].1.as_str())
        .collect();
    assert_eq!(sizes, ["8", "16"]);
    assert_eq!(found.only_in_base, ["uc-send-8B-burst64"]);
    assert_eq!(found.only_in_new, ["rc-send-32B-burst64"]);

    // A setting that is another one throughout: only if asked for.
    let other = run(
        &folder.path().join("other"),
        &[("ud", 8, &samples), ("ud", 16, &samples)],
    );
    let one_service = run(
        &folder.path().join("one"),
        &[("rc", 8, &samples), ("rc", 16, &samples)],
    );
    let error = compare(&one_service, &other, &request()).unwrap_err();
    assert!(
        matches!(&error, CompareError::NothingInCommon(settings) if settings == &["service"]),
        "{error}"
    );
    let anyway = Request {
        anyway: true,
        ..request()
    };
    let found = compare(&one_service, &other, &anyway).unwrap();
    assert_eq!(found.points.len(), 2);
    assert_eq!(found.differs[0].to_string(), "service: rc and ud");
}

#[test]
fn an_incomplete_run_is_compared_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let points = [("rc", 8, 64, &samples[..]), ("rc", 16, 64, &samples[..])];
    let base = Run::open(&hca_run(&folder.path().join("base"), &points, false)).unwrap();
    let new = Run::open(&hca_run(&folder.path().join("new"), &points, true)).unwrap();
    let found = compare(&base, &new, &request()).unwrap();
    assert!(
        found
            .warnings
            .iter()
            .any(|text| text.contains("NEW is incomplete"))
    );
    assert_eq!(found.points[0].incomplete, [None, None]);
    // The last point of NEW has no row in the summary, so its settings are not those of the columns.
    assert_eq!(found.points.len() + found.only_in_new.len(), 2);
}

#[test]
fn a_file_that_lost_rows_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let path = folder.path().join("base");
    let base = run(&path, &[("rc", 8, &samples)]);
    let file = base.points[0].file("messages.csv");
    let text = fs::read_to_string(&file).unwrap();
    let cut = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&file, &text[..cut]).unwrap();
    let error = compare(&base, &base, &request()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("messages.csv") && error.contains("1999 rows") && error.contains("of 2000"),
        "{error}"
    );
}

#[test]
fn figures_that_a_benchmark_has_not_are_refused() {
    let samples = latencies(1, 30_000);
    let folder = tempfile::tempdir().unwrap();
    let base = run(&folder.path().join("base"), &[("rc", 8, &samples)]);
    let error = compare(&base, &base, &limit(5.0, Kind::Throughput)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("--max-regression")
            && text.contains("no throughput")
            && text.contains("percentiles and lost"),
        "{text}"
    );
}

#[test]
fn a_limit_on_losses_is_kept_where_nothing_is_lost() {
    let request = limit(0.1, Kind::Lost);
    let found = of(&latencies(1, 30_000), &latencies(2, 30_000), &request);
    let lost = found.figures().last().unwrap();
    assert_eq!(
        (lost.figure.kind, lost.verdict),
        (Kind::Lost, Verdict::NoDifferenceShown)
    );
    assert_eq!((lost.base, lost.new), (Some(0.0), Some(0.0)));
    assert!(found.gaps(&request.limits).is_empty());
    // Nobody asked for it.
    let found = of(
        &latencies(1, 30_000),
        &latencies(2, 30_000),
        &self::request(),
    );
    assert!(found.figures().all(|found| found.figure.kind != Kind::Lost));
}

/// Six that were lost in as many places against none: of three comparisons, chance could have brought them.
#[test]
fn losses_too_few_to_be_told_apart_do_not_keep_a_limit_that_they_exceed() {
    let whole = latencies(1, 30_000);
    let mut losing = latencies(2, 30_000);
    for place in [20, 411, 777, 1_090, 1_500, 1_901] {
        losing[place] = None;
    }
    let with = |base: &[Made], new: &[Made], percent| {
        let request = limit(percent, Kind::Lost);
        let found = of(base, new, &request);
        let lost = found.figures().last().unwrap().clone();
        assert_eq!(
            (lost.figure.kind, found.comparisons),
            (Kind::Lost, 3),
            "{found:?}"
        );
        (lost, found.gaps(&request.limits))
    };
    let (lost, gaps) = with(&whole, &losing, 0.0);
    assert_eq!(lost.verdict, Verdict::NotJudged, "{lost:?}");
    assert!(lost.difference.unwrap().together.0 > 0.0, "{lost:?}");
    let reason = "too few losses for 3 comparisons together";
    assert!(gaps.len() == 1 && gaps[0].contains(reason), "{gaps:?}");
    // 0.3 percentage points are more than there is, and fewer are no worse.
    for (base, new, percent) in [(&whole, &losing, 0.5), (&losing, &whole, 0.0)] {
        let (lost, gaps) = with(base, new, percent);
        assert_eq!(lost.verdict, Verdict::NotJudged, "{lost:?}");
        assert!(gaps.is_empty(), "{gaps:?}");
    }
}

#[test]
fn the_same_share_of_losses_in_more_messages_does_not_spoil_what_is_better() {
    let losing = |seed, level, messages: usize| {
        let mut samples: Vec<Made> = (0..messages / 2_000)
            .flat_map(|part| latencies(seed + part as u64, level))
            .collect();
        samples
            .iter_mut()
            .step_by(200)
            .for_each(|message| *message = None);
        samples
    };
    let found = of(
        &losing(1, 50_000, 2_000),
        &losing(2, 30_000, 8_000),
        &request(),
    );
    assert_eq!(verdicts(&found)[0].1, Verdict::Better);
}

#[test]
fn limits_are_not_kept_by_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let points = [("rc", 8, 64, &samples[..]), ("rc", 16, 64, &samples[..])];
    let request = limit(5.0, Kind::Percentile(50.0));
    let base = Run::open(&hca_run(&folder.path().join("base"), &points, false)).unwrap();
    let less = Run::open(&hca_run(&folder.path().join("less"), &points[..1], false)).unwrap();
    let gaps = compare(&base, &less, &request)
        .unwrap()
        .gaps(&request.limits);
    assert!(
        gaps.len() == 1 && gaps[0].contains("16B") && gaps[0].contains("not in NEW"),
        "{gaps:?}"
    );
    // A point more is no gap.
    let found = compare(&less, &base, &request).unwrap();
    assert!(found.gaps(&request.limits).is_empty());
    let cut = Run::open(&hca_run(&folder.path().join("cut"), &points, true)).unwrap();
    let found = compare(&base, &cut, &request).unwrap();
    let gaps = found.gaps(&request.limits);
    assert!(gaps[0].contains("NEW is incomplete"), "{gaps:?}");
    assert!(found.gaps(&[]).is_empty());
}

#[test]
fn an_incomplete_point_does_not_keep_other_settings_from_being_compared() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let of = |service| {
        [
            (service, 8, 64, &samples[..]),
            (service, 16, 64, &samples[..]),
        ]
    };
    let base = Run::open(&hca_run(&folder.path().join("base"), &of("rc"), false)).unwrap();
    let new = Run::open(&hca_run(&folder.path().join("new"), &of("uc"), true)).unwrap();
    let anyway = Request {
        anyway: true,
        ..request()
    };
    let found = compare(&base, &new, &anyway).unwrap();
    assert_eq!(found.points.len(), 1, "{found:?}");
    assert!(
        found
            .differs
            .iter()
            .any(|differs| differs.to_string() == "service: rc and uc"),
        "{:?}",
        found.differs
    );
}

#[test]
fn too_many_comparisons_for_the_samples_are_not_taken_for_no_difference() {
    let judge = Judge {
        comparisons: 24,
        resolution: 0.0,
        more_faults: None,
        limits: &[],
    };
    let figures = figures::of_benchmark(crate::results::read::Benchmark::Hca, &request()).unwrap();
    let side = |level: f64, resampling| Side {
        value: Some(level),
        estimate: crate::stats::Series::of_runs(vec![level; 6])
            .percentile(50.0, resampling)
            .map_err(Into::into),
    };
    let resampling = Resampling::for_comparisons(24);
    let sides = || {
        (
            side(1.0, resampling),
            side(100.0, resampling.of_the_other()),
        )
    };
    let (base, new) = sides();
    let found = judge.compare(&figures[0], base, new);
    assert_eq!(found.verdict, Verdict::NotJudged);
    assert!(
        found
            .reason
            .as_ref()
            .unwrap()
            .contains("for 24 comparisons"),
        "{found:?}"
    );
    let (base, new) = sides();
    let fewer = Judge {
        comparisons: 23,
        ..judge
    };
    assert_eq!(
        fewer.compare(&figures[0], base, new).verdict,
        Verdict::Worse
    );
}

#[test]
fn an_option_that_is_not_used_is_no_difference_to_a_version_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let (base, new) = (folder.path().join("base"), folder.path().join("new"));
    let first = run(&base, &[("rc", 8, &samples)]);
    run(&new, &[("rc", 8, &samples)]);
    let set = |value: u64| {
        for entry in fs::read_dir(&new).unwrap() {
            let file = entry.unwrap().path().join(SETTINGS);
            if let Ok(text) = fs::read_to_string(&file) {
                let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
                document["run"]["receiver_pause_ns"] = value.into();
                fs::write(&file, document.to_string()).unwrap();
            }
        }
        Run::open(&new).unwrap()
    };
    assert!(
        compare(&first, &set(0), &request())
            .unwrap()
            .differs
            .is_empty()
    );
    let error = compare(&first, &set(20_000), &request()).unwrap_err();
    assert!(
        error.to_string().contains("run.receiver_pause_ns"),
        "{error}"
    );
}

#[test]
fn single_points_without_their_runs_say_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let samples = latencies(1, 30_000);
    let alone = |service: &str| {
        let run = folder.path().join(service);
        self::run(&run, &[(service, 8, &samples)]);
        let alone = folder.path().join(format!("{service}-alone"));
        fs::rename(run.join(format!("{service}-send-8B-burst64")), &alone).unwrap();
        Run::open(&alone).unwrap()
    };
    let (rc, uc) = (alone("rc"), alone("uc"));
    let error = compare(&rc, &uc, &request()).unwrap_err().to_string();
    assert!(error.contains("differ in service; --anyway"), "{error}");
    let anyway = Request {
        anyway: true,
        ..request()
    };
    assert_eq!(compare(&rc, &uc, &anyway).unwrap().points.len(), 1);
}

/// A run of the clock over 10 s on two CPUs: each cause with its jumps in a second and their length, by chance.
fn clock_run(path: &Path, seed: u64, pages: &str, causes: &[(&str, f64, f64)]) -> Run {
    const ELAPSED_NS: f64 = 1e10;
    fs::create_dir_all(path).unwrap();
    let mut draws = SplitMix64::new(seed);
    let mut unit = || ((draws.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let mut rows = "cpu,t_ns,jump_ns,cause\n".to_owned();
    let mut summary =
        "clock,cpu,status,iterations,elapsed_ns,nanos_per_tick,baseline_ns,threshold_ns,\
                       jumps_in_file,steps_backwards,blind_share\n"
            .to_owned();
    let mut cpus = Vec::new();
    for cpu in 0..2 {
        let (mut all, mut told) = (0, Vec::new());
        for &(cause, per_second, length_ns) in causes {
            let (mut count, mut total, mut begin) = (0_u64, 0, 0.0);
            loop {
                begin += -unit().ln() * 1e9 / per_second;
                if begin >= ELAPSED_NS {
                    break;
                }
                let length = length_ns * (1.0 + unit());
                rows += &format!("{cpu},{begin:.0},{length:.0},{cause}\n");
                count += 1;
                total += length as u64;
            }
            all += count;
            told.push(serde_json::json!({ "cause": cause, "count": count, "total_ns": total }));
        }
        summary += &format!("tsc,{cpu},complete,1000000,{ELAPSED_NS},0.4,50,1000,{all},0,0.01\n");
        cpus.push(serde_json::json!({
            "summary": { "cpu": cpu }, "causes": told, "differences_kept_in": { "pages": pages },
        }));
    }
    fs::write(path.join("jumps.csv"), rows).unwrap();
    fs::write(path.join("summary.csv"), summary).unwrap();
    let document = serde_json::json!({
        "command": "clock", "version": "0.1.0", "settings": { "clock": "tsc" }, "result": { "cpus": cpus },
    });
    fs::write(path.join(SETTINGS), document.to_string()).unwrap();
    Run::open(path).unwrap()
}

#[test]
fn clocks_are_compared_by_rate_share_length_and_cause_of_their_jumps() {
    let folder = tempfile::tempdir().unwrap();
    let of =
        |name: &str, seed, causes: &[_]| clock_run(&folder.path().join(name), seed, "huge", causes);
    let timer = ("interrupt LOC", 250.0, 2_000.0);
    let (others, rare) = (
        ("unexplained", 40.0, 8_000.0),
        ("softirq RCU", 0.5, 5_000.0),
    );
    let base = of("base", 1, &[timer, others, rare]);
    let new = of("new", 2, &[others, rare]);
    let request = limit(5.0, Kind::Jumps);
    let found = compare(&base, &new, &request).unwrap();
    assert_eq!(found.points.len(), 2);
    for point in &found.points {
        let said: Vec<(String, Verdict, bool)> = point
            .figures
            .iter()
            .map(|found| {
                let name = found.figure.to_string();
                (name, found.verdict, found.limit.is_some())
            })
            .collect();
        let expect = |name: &str, verdict, limited| (name.to_owned(), verdict, limited);
        use Verdict::{Better, NoDifferenceShown, NotJudged, Worse};
        // The short jumps have gone, so that those left are longer. What has fewer than ten jumps is no figure.
        let expected = [
            expect("jump-time", Better, false),
            expect("jumps", Better, true),
            expect("jump length p50", Worse, false),
            expect("jump length p99", NotJudged, false),
            expect("jump-time: interrupt LOC", Better, false),
            expect("jumps: interrupt LOC", Better, false),
            expect("jump-time: unexplained", NoDifferenceShown, false),
            expect("jumps: unexplained", NoDifferenceShown, false),
        ];
        assert!(
            said.len() == expected.len() && expected.iter().all(|one| said.contains(one)),
            "{said:?}"
        );
        let jumps = &point.figures[1];
        assert!(
            (250.0..330.0).contains(&jumps.base.unwrap())
                && (30.0..50.0).contains(&jumps.new.unwrap())
        );
    }
    // Equal ones keep limits on both.
    let both = Request {
        limits: [Kind::Jumps, Kind::JumpTime]
            .map(|of| Limit { percent: 5.0, of })
            .to_vec(),
        ..self::request()
    };
    let equal = compare(&base, &of("equal", 3, &[timer, others, rare]), &both).unwrap();
    assert!(!equal.has_broken_limit());
    assert_eq!(equal.gaps(&both.limits), Vec::<String>::new());

    let document = serde_json::to_value(&found).unwrap();
    // The cause with the most time comes first.
    assert_eq!(document["points"][0]["figures"][4]["cause"], "unexplained");

    // The other way round it is worse, and the limit is broken; nothing is where nothing changed.
    assert!(compare(&new, &base, &request).unwrap().has_broken_limit());
    let same = compare(&base, &of("same", 3, &[timer, others, rare]), &request).unwrap();
    assert!(
        same.figures()
            .all(|found| { !matches!(found.verdict, Verdict::Better | Verdict::Worse) }),
        "{same:?}"
    );
}

#[test]
fn a_longer_threshold_of_one_of_two_clocks_holds_for_both() {
    let folder = tempfile::tempdir().unwrap();
    let causes = [("short", 100.0, 1_500.0), ("long", 30.0, 8_000.0)];
    let base = clock_run(&folder.path().join("base"), 1, "huge", &causes);
    let path = folder.path().join("new");
    clock_run(&path, 2, "huge", &causes);
    let text = fs::read_to_string(path.join("summary.csv")).unwrap();
    fs::write(
        path.join("summary.csv"),
        text.replace(",50,1000,", ",50,5000,"),
    )
    .unwrap();
    let found = compare(&base, &Run::open(&path).unwrap(), &request()).unwrap();
    let jumps = &found.points[0].figures[1];
    assert!(jumps.base.unwrap() < 40.0, "{jumps:?}");
    assert_eq!(jumps.verdict, Verdict::NoDifferenceShown);
}

/// One rule for all benchmarks; which of several CPUs or runs had which pages does not matter.
#[test]
fn other_pages_than_those_of_base_are_another_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let causes = [("unexplained", 40.0, 8_000.0)];
    let huge = clock_run(&path("huge"), 1, "huge", &causes);
    let small = clock_run(&path("small"), 2, "small", &causes);
    let told = compare(&huge, &small, &request()).unwrap_err().to_string();
    assert!(
        told.contains("the pages obtained: huge and small"),
        "{told}"
    );

    let samples = latencies(1, 30_000);
    let hca = |name: &str, part: &str, value: serde_json::Value| {
        run(&path(name), &[("rc", 8, &samples)]);
        for entry in fs::read_dir(path(name)).unwrap() {
            let file = entry.unwrap().path().join(SETTINGS);
            if let Ok(text) = fs::read_to_string(&file) {
                let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
                document[part] = value.clone();
                fs::write(&file, document.to_string()).unwrap();
            }
        }
        Run::open(&path(name)).unwrap()
    };
    use serde_json::json;
    let base = hca("hca-huge", "obtained", json!({ "pages": ["huge", "huge"] }));
    let new = hca(
        "hca-small",
        "obtained",
        json!({ "pages": ["huge", "small"] }),
    );
    let told = compare(&base, &new, &request()).unwrap_err().to_string();
    assert!(
        told.contains("the pages obtained: 0: huge, 1: huge and 0: huge, 1: small"),
        "{told}"
    );
    let one = json!([{ "pages": { "sender": "huge" } }, { "pages": { "sender": "small" } }]);
    let two = json!([{ "pages": { "sender": "small" } }, { "pages": { "sender": "huge" } }]);
    let (one, two) = (hca("one", "runs", one), hca("two", "runs", two));
    assert!(compare(&one, &two, &request()).unwrap().differs.is_empty());
    let none = hca("none", "runs", json!([]));
    assert!(compare(&one, &none, &request()).is_err());

    // A point that ended before it told of what it obtained is not of other settings.
    let ended = hca("ended", "obtained", json!(null));
    assert!(compare(&base, &ended, &request()).is_err());
    let mark = ended.points[0].file(crate::results::folder::MARK);
    fs::write(mark, "interrupted by SIGINT\n").unwrap();
    let ended = Run::open(&path("ended")).unwrap();
    let found = compare(&base, &ended, &request()).unwrap();
    assert!(found.differs.is_empty() && found.points[0].incomplete[1].is_some());
}
