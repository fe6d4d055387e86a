use serde_json::{Value, json};

use super::figures::Which;
use super::*;
use crate::pacing::SplitMix64;
use crate::results::schema::{Column, hca};

#[path = "../../tests/made_up_rounds/mod.rs"]
mod made_up_rounds;

use made_up_rounds::{Made, document, hca_point, run};

const RC: [(Column, &str); 2] = [(hca::SERVICE, "rc"), (hca::SIZE, "8")];

fn request() -> Request {
    Request {
        percentiles: vec![50.0, 99.0],
        limits: Vec::new(),
        permitted: Permitted::Named(Vec::new()),
    }
}

fn limited(percent: f64, of: &str) -> Request {
    Request {
        limits: vec![Limit {
            percent,
            of: of.parse().unwrap(),
        }],
        ..request()
    }
}

/// A run in a folder that goes away.
fn recorded(points: &[Made], second: usize) -> Recording {
    with_document(&document(&hca::SCHEMA), points, second)
}

fn with_document(document: &Value, points: &[Made], second: usize) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    Recording::open(&run(
        &folder.path().join("run"),
        &hca::SCHEMA,
        document,
        points,
        second,
    ))
    .unwrap()
}

/// One point with median latencies about a level, in nanoseconds.
fn about(level: f64, seed: u64, rounds: usize) -> Recording {
    recorded(&[hca_point(&RC, seed, rounds, level)], seed as usize % 30)
}

fn verdicts(comparison: &Comparison) -> Vec<(String, Verdict)> {
    comparison
        .figures()
        .map(|found| (found.figure.to_string(), found.verdict))
        .collect()
}

fn of<'a>(comparison: &'a Comparison, figure: &str) -> &'a FigureComparison {
    comparison
        .figures()
        .find(|found| found.figure.to_string() == figure)
        .unwrap()
}

#[test]
fn slower_is_worse_faster_is_better_and_equal_is_neither() {
    let (quick, slow) = (about(30_000.0, 1, 8), about(60_000.0, 2, 8));
    let found = compare(&quick, &slow, &request()).unwrap();
    let expect = |latency| {
        [
            ("latency.p50".to_owned(), latency),
            ("latency.p99".to_owned(), latency),
            ("completion.p50".to_owned(), Verdict::NoDifferenceShown),
            ("completion.p99".to_owned(), Verdict::NoDifferenceShown),
        ]
    };
    assert_eq!(verdicts(&found), expect(Verdict::Worse));
    assert_eq!((found.comparisons, found.rounds_needed), (4, 5));
    let p50 = of(&found, "latency.p50");
    assert_eq!((p50.unit, p50.rounds), ("ns", [8, 8]));
    let ([low, high], shift) = (p50.interval.unwrap(), p50.shift.unwrap());
    assert!(
        (shift - 97.0).abs() < 5.0 && low < shift && shift < high,
        "{p50:?}"
    );
    assert!(p50.p.unwrap() <= ERROR / 4.0);

    let back = compare(&slow, &quick, &request()).unwrap();
    assert_eq!(verdicts(&back), expect(Verdict::Better));
    let same = compare(&quick, &about(30_000.0, 3, 8), &request()).unwrap();
    assert_eq!(verdicts(&same), expect(Verdict::NoDifferenceShown));
}

#[test]
fn with_too_few_rounds_it_says_how_many_it_takes() {
    let limit = limited(5.0, "latency.p50");
    let found = compare(&about(30_000.0, 1, 4), &about(60_000.0, 2, 4), &limit).unwrap();
    assert!(
        found
            .figures()
            .all(|found| found.verdict == Verdict::NotJudged && found.interval.is_none())
    );
    let reason = of(&found, "latency.p50").reason.clone().unwrap();
    assert!(
        reason.contains("4 and 4 rounds") && reason.contains("takes 5 of either"),
        "{reason}"
    );
    let gaps = found.gaps(&limit.limits);
    assert!(
        gaps.len() == 1 && gaps[0].contains("latency.p50") && gaps[0].contains("takes 5"),
        "{gaps:?}"
    );
    assert!(!found.has_broken_limit());
}

#[test]
fn a_limit_is_broken_by_what_is_worse_and_beyond_it() {
    let (quick, slow) = (about(30_000.0, 1, 8), about(60_000.0, 2, 8));
    let broken = |base: &Recording, new: &Recording, percent, of| {
        let request = limited(percent, of);
        let found = compare(base, new, &request).unwrap();
        assert_eq!(found.gaps(&request.limits), Vec::<String>::new());
        found.has_broken_limit()
    };
    assert!(broken(&quick, &slow, 5.0, "p50"));
    // Worse, but within the limit: 97 % are allowed.
    assert!(!broken(&quick, &slow, 120.0, "p50"));
    assert!(!broken(&slow, &quick, 0.0, "p50"));
    // Beyond the limit, but not shown.
    assert!(!broken(&quick, &about(30_000.0, 4, 8), 0.0, "p50"));
    // Completion latency is the same, whatever latency is.
    assert!(broken(&quick, &slow, 5.0, "latency.p50"));
    assert!(!broken(&quick, &slow, 5.0, "completion.p50"));
    let found = compare(&quick, &slow, &limited(5.0, "completion.p50")).unwrap();
    assert_eq!(
        found
            .figures()
            .filter(|found| found.limit.is_some())
            .count(),
        1
    );
}

#[test]
fn a_figure_that_there_is_not_is_named_with_those_that_are() {
    let run = about(30_000.0, 1, 8);
    for (request, parts) in [
        (
            limited(5.0, "throughput"),
            ["--max-regression", "no throughput", "latency.p50"],
        ),
        (
            limited(5.0, "enqueue.p50"),
            ["--max-regression", "no enqueue.p50", "completion.p99.9"],
        ),
        (
            Request {
                percentiles: vec![42.0],
                ..request()
            },
            ["--percentiles", "no p42", "latency.p99.99"],
        ),
    ] {
        let error = compare(&run, &run, &request).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    // The floor is the instrument's.
    let figures = figures::of_schema(&hca::SCHEMA, &request()).unwrap();
    assert!(
        !figures
            .iter()
            .any(|figure| figure.to_string().contains("floor"))
    );
}

#[test]
fn losses_are_judged_by_round_and_mark_what_looks_better() {
    let lossy = |level, lost: [f64; 8]| {
        let mut point = hca_point(&RC, 5, 8, level);
        for (figures, lost) in point.rounds.iter_mut().zip(lost) {
            figures.retain(|(column, _)| {
                ![hca::LOST.name, hca::DELIVERY_RATE.name].contains(&column.name)
            });
            figures.extend([(hca::LOST, lost), (hca::DELIVERY_RATE, 1.0 - lost / 1000.0)]);
        }
        recorded(&[point], 3)
    };
    let base = about(60_000.0, 1, 8);
    let new = lossy(30_000.0, [10.0, 12.0, 9.0, 11.0, 10.0, 13.0, 8.0, 10.0]);
    let found = compare(&base, &new, &limited(0.5, "lost")).unwrap();
    let p50 = of(&found, "latency.p50");
    assert_eq!(p50.verdict, Verdict::BetterButMoreFaults);
    assert!(
        p50.reason
            .as_ref()
            .unwrap()
            .contains("messages_lost rose from 0.0 to 10.4"),
        "{p50:?}"
    );
    let lost = of(&found, "lost");
    assert_eq!((lost.verdict, lost.unit), (Verdict::Worse, "%"));
    // Percentage points.
    assert!(
        (lost.shift.unwrap() - 1.0).abs() < 0.05 && found.has_broken_limit(),
        "{lost:?}"
    );
    assert!(
        !compare(&base, &new, &limited(2.0, "lost"))
            .unwrap()
            .has_broken_limit()
    );
    // One loss in one round is nothing.
    let once = lossy(60_000.0, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let found = compare(&base, &once, &request()).unwrap();
    assert_eq!(of(&found, "lost").verdict, Verdict::NoDifferenceShown);
}

#[test]
fn runs_one_after_the_other_are_told() {
    let later = |second| recorded(&[hca_point(&RC, 1, 8, 30_000.0)], second);
    let warned = |base: &Recording, new: &Recording| {
        let warnings = compare(base, new, &request()).unwrap().warnings;
        warnings
            .iter()
            .any(|text| text.contains("a drift between them cannot be told"))
    };
    let first = later(0);
    assert!(warned(&first, &later(600)) && warned(&later(600), &first));
    // In turn, and one that began when the other had not ended.
    assert!(!warned(&first, &later(30)) && !warned(&first, &later(300)));
}

#[test]
fn other_settings_are_refused_but_those_that_may_differ() {
    let [one, other] = [("rc", "busy"), ("rc", "event")].map(|(service, poll)| {
        let settings = [
            (hca::SERVICE, service),
            (hca::SIZE, "8"),
            (hca::POLL_RECV, poll),
        ];
        recorded(&[hca_point(&settings, 1, 8, 30_000.0)], 0)
    });
    let error = compare(&one, &other, &request()).unwrap_err().to_string();
    assert!(
        error.contains("no point in common") && error.contains("--allow poll_recv"),
        "{error}"
    );
    let allowed = Request {
        permitted: Permitted::Named(vec!["poll_recv".to_owned()]),
        ..request()
    };
    let found = compare(&one, &other, &allowed).unwrap();
    assert_eq!(found.differs.len(), 1);
    assert_eq!(found.differs[0].to_string(), "poll_recv: busy and event");

    // Of the run, and of the machine.
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = document(&hca::SCHEMA);
        change(&mut document);
        with_document(&document, &[hca_point(&RC, 1, 8, 30_000.0)], 0)
    };
    let plain = with(&|_| ());
    let pages = with(&|document| document["run"]["hugepages"] = json!("2M"));
    let machine = with(&|document| document["machine"]["hostname"] = json!("hugepages"));
    let error = compare(&plain, &pages, &request()).unwrap_err().to_string();
    assert!(
        error.contains("run.hugepages: none and 2M") && error.contains("--allow"),
        "{error}"
    );
    let named = |name: &str| Request {
        permitted: Permitted::Named(vec![name.to_owned()]),
        ..request()
    };
    assert!(compare(&plain, &pages, &named("hugepages")).is_ok());
    for name in ["hostname", "machine", "hugepages"] {
        assert!(matches!(
            compare(&plain, &machine, &named(name)),
            Err(CompareError::Differ(_))
        ));
    }
    let anyway = |permitted| {
        compare(
            &plain,
            &machine,
            &Request {
                permitted,
                ..request()
            },
        )
    };
    assert!(anyway(Permitted::All).is_ok() && anyway(Permitted::Settings).is_err());
}

#[test]
fn what_one_side_lacks_is_named() {
    let sizes = |sizes: &[&'static str]| {
        let point = |size: &&'static str| {
            hca_point(&[(hca::SERVICE, "rc"), (hca::SIZE, size)], 1, 8, 30_000.0)
        };
        recorded(&sizes.iter().map(point).collect::<Vec<_>>(), 0)
    };
    let limit = limited(5.0, "latency.p50");
    let found = compare(
        &sizes(&["8", "16", "32"]),
        &sizes(&["32", "8", "64"]),
        &limit,
    )
    .unwrap();
    let names: Vec<&str> = found
        .points
        .iter()
        .map(|point| point.names[0].as_str())
        .collect();
    assert_eq!(names, ["rc-8", "rc-32"]);
    assert_eq!(
        (found.only_in_base.as_slice(), found.only_in_new.as_slice()),
        (&["rc-16".to_owned()][..], &["rc-64".to_owned()][..])
    );
    assert_eq!(found.gaps(&limit.limits), ["rc-16 of BASE is not in NEW"]);
}

/// Points of one sweep: services, each with both ways to wait; poll_comp goes along.
fn sweep(rounds: usize, event: f64) -> Vec<Made> {
    let point = |(service, poll): (&'static str, &'static str)| {
        let settings = [
            (hca::SERVICE, service),
            (hca::POLL_RECV, poll),
            (hca::POLL_COMP, poll),
        ];
        let level = if poll == "event" { event } else { 30_000.0 };
        hca_point(&settings, 7 + service.len() as u64, rounds, level)
    };
    [
        ("rc", "busy"),
        ("rc", "event"),
        ("uc", "busy"),
        ("uc", "event"),
    ]
    .map(point)
    .into()
}

#[test]
fn a_setting_is_compared_within_a_sweep() {
    let run = recorded(&sweep(8, 45_000.0), 0);
    let found = compare_within(&run, "poll-recv", &request()).unwrap();
    let by = found.by.as_ref().unwrap();
    assert_eq!((by.setting, by.first.as_str()), ("poll_recv", "busy"));
    assert_eq!(by.along, ["poll_comp"]);
    let names: Vec<[&str; 2]> = found
        .points
        .iter()
        .map(|point| point.names.each_ref().map(String::as_str))
        .collect();
    assert_eq!(
        names,
        [
            ["rc-busy-busy", "rc-event-event"],
            ["uc-busy-busy", "uc-event-event"]
        ]
    );
    assert!(
        found
            .points
            .iter()
            .all(|point| point.level.as_deref() == Some("event"))
    );
    // Eight rounds are too few for signed ranks of eight figures.
    assert_eq!((found.comparisons, found.test), (8, Test::MannWhitney));
    let expect = |figure: &FigureComparison| match figure.figure.scope.as_str() {
        "latency" => Verdict::Worse,
        _ => Verdict::NoDifferenceShown,
    };
    assert!(
        found
            .figures()
            .all(|figure| figure.verdict == expect(figure)),
        "{found:?}"
    );
    // The services differ in nothing but chance.
    let found = compare_within(&run, "service", &request()).unwrap();
    assert!(found.by.as_ref().unwrap().along.is_empty());
    assert!(
        found
            .figures()
            .all(|figure| figure.verdict == Verdict::NoDifferenceShown)
    );
}

#[test]
fn a_drift_of_the_rounds_goes_where_there_are_enough_of_them() {
    let mut points = sweep(12, 31_500.0);
    for point in &mut points {
        for (round, figures) in point.rounds.iter_mut().enumerate() {
            figures
                .iter_mut()
                .for_each(|(_, figure)| *figure += 4_000.0 * (round as f64 - 6.0).abs());
        }
    }
    let run = recorded(&points, 0);
    let one = Request {
        percentiles: vec![50.0],
        ..request()
    };
    let found = compare_within(&run, "poll_recv", &one).unwrap();
    assert_eq!(found.test, Test::SignedRank);
    assert_eq!(of(&found, "latency.p50").verdict, Verdict::Worse);
    // As two samples, the same rounds show nothing.
    let level = |poll| {
        let of_level = |point: &RecordedPoint| point.setting("poll_recv") == Some(poll);
        let points = run
            .points
            .iter()
            .filter(|point| of_level(point))
            .cloned()
            .collect();
        Recording {
            points,
            ..run.clone()
        }
    };
    let allowed = Request {
        permitted: Permitted::Settings,
        ..one
    };
    let found = compare(&level("busy"), &level("event"), &allowed).unwrap();
    assert_eq!(
        of(&found, "latency.p50").verdict,
        Verdict::NoDifferenceShown
    );
}

#[test]
fn what_cannot_be_compared_within_a_sweep_is_told_with_what_varies() {
    let run = recorded(&sweep(8, 30_000.0), 0);
    for (by, reason) in [
        ("colour", "is no setting"),
        ("size", "has one value"),
        ("burst", "has one value"),
    ] {
        let error = compare_within(&run, by, &request())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(reason) && error.contains("service, poll_recv, poll_comp"),
            "{error}"
        );
    }
    // Each size has a service of its own, and one has two.
    let point = |(service, size)| {
        hca_point(
            &[(hca::SERVICE, service), (hca::SIZE, size)],
            1,
            8,
            30_000.0,
        )
    };
    let run = recorded(&[("rc", "8"), ("uc", "16"), ("ud", "16")].map(point), 0);
    let error = compare_within(&run, "size", &request())
        .unwrap_err()
        .to_string();
    assert!(error.contains("only together with others"), "{error}");
}

/// Equal points of a sweep whose rounds drift, two of them and five: any difference is an error.
#[test]
fn equal_points_of_a_sweep_differ_in_at_most_the_nominal_share() {
    const SWEEPS: u64 = 300;
    let sizes = ["8", "16", "32", "64", "128"];
    for (points, rounds) in [(2, 8), (2, 12), (5, 8), (5, 14)] {
        let mut draws = SplitMix64::new(points as u64 + rounds as u64);
        let mut uniform = || (draws.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let template = recorded(
            &sizes[..points]
                .iter()
                .map(|size| hca_point(&[(hca::SIZE, size)], 1, rounds, 1.0))
                .collect::<Vec<_>>(),
            0,
        );
        let figures = figures::of_schema(
            &hca::SCHEMA,
            &Request {
                percentiles: vec![50.0],
                ..request()
            },
        )
        .unwrap();
        let levels = within::levels(&template, "size").unwrap();
        let apart = (0..SWEEPS).filter(|_| {
            let mut drift = 0.0;
            let drifts: Vec<f64> = (0..rounds)
                .map(|_| {
                    drift = 0.8 * drift + uniform() - 0.5;
                    drift
                })
                .collect();
            let sides: Vec<Vec<BTreeMap<u64, f64>>> = (0..points)
                .map(|_| {
                    (0..2)
                        .map(|_| {
                            (0..rounds)
                                .map(|round| (round as u64, 10.0 + drifts[round] + uniform()))
                                .collect()
                        })
                        .collect()
                })
                .collect();
            let of_pair = |other: usize| {
                (0..2)
                    .map(|kind| {
                        (
                            figures[kind].clone(),
                            [sides[0][kind].clone(), sides[other][kind].clone()],
                        )
                    })
                    .collect::<Vec<_>>()
            };
            let figures: Vec<Vec<_>> = (1..points).map(of_pair).collect();
            let comparisons = figures.iter().map(Vec::len).sum();
            let judged = Judged {
                figures,
                comparisons,
            };
            let test = within::test(judged.least_rounds(), judged.error());
            let found = judged.points(&template, &levels.pairs, test, &[]);
            found
                .iter()
                .flat_map(|point| &point.figures)
                .any(|figure| figure.verdict != Verdict::NoDifferenceShown)
        });
        // Four standard deviations above 5 %.
        let apart = apart.count();
        assert!(
            apart <= 30,
            "{apart} of {SWEEPS}, {points} points, {rounds} rounds"
        );
    }
}

#[test]
fn names_of_figures_are_read_back() {
    for text in [
        "p50",
        "p99.9",
        "latency.p50",
        "completion.p99.99",
        "lost",
        "jump-time",
    ] {
        assert_eq!(text.parse::<Which>().unwrap().to_string(), text);
    }
    for text in [
        "p",
        "p0",
        "p100",
        "latency.",
        "latency.max",
        "",
        "latency.p",
    ] {
        assert!(text.parse::<Which>().is_err(), "{text}");
    }
}

#[test]
fn a_figure_that_is_no_number_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let made = [hca_point(&RC, 1, 2, 30_000.0)];
    let path = run(
        &folder.path().join("run"),
        &hca::SCHEMA,
        &document(&hca::SCHEMA),
        &made,
        0,
    );
    let file = path.join("runs.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(",200,"));
    std::fs::write(&file, text.replace(",200,", ",abc,")).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("runs.csv") && error.contains("floor_p50_ns") && error.contains("\"abc\""),
        "{error}"
    );
}
