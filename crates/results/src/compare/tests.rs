use crate::testing::{Has as _, Noise, Refused as _, temporary};
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::figures::Which;
use super::*;
use crate::pacing::SplitMix64;
use crate::results::schema::{Column, hca, memory, queue};

use crate::made_up_run::rounds::{Made, document, hca_point, run};

const RC: [(Column, &str); 2] = [(hca::SERVICE, "rc"), (hca::SIZE, "8")];

fn request() -> Request {
    Request {
        percentiles: vec![50.0, 99.0],
        limits: Vec::new(),
        permitted: Permitted::Named(Vec::new()),
        names: ["base", "new"].map(str::to_owned),
    }
}

fn limited(percent: f64, of: &str) -> Request {
    let of = of.parse().unwrap();
    Request {
        limits: vec![Limit { percent, of }],
        ..request()
    }
}

fn permitting(permitted: Permitted) -> Request {
    Request {
        permitted,
        ..request()
    }
}

fn named(name: &str) -> Request {
    permitting(Permitted::Named(vec![name.to_owned()]))
}

fn recorded(points: &[Made], second: usize) -> Run {
    with_document(&document(&hca::SCHEMA), points, second)
}

fn with_document(document: &Value, points: &[Made], second: usize) -> Run {
    let path = temporary("run");
    rounds::open(&run(&path, &hca::SCHEMA, document, points, second)).unwrap()
}

/// One point with median latencies about a level, in nanoseconds.
fn about(level: f64, seed: u64, rounds: usize) -> Run {
    recorded(&[hca_point(&RC, seed, rounds, level)], seed as usize % 30)
}

fn of<'a>(comparison: &'a Comparison, figure: &str) -> &'a FigureComparison {
    let mut figures = comparison.figures();
    figures
        .find(|found| found.figure.to_string() == figure)
        .unwrap()
}

fn is_told(comparison: &Comparison, latency: Verdict) -> bool {
    comparison
        .figures()
        .all(|found| match found.figure.scope.as_str() {
            "latency" => found.verdict == latency,
            _ => found.verdict == Verdict::NoDifferenceShown,
        })
}

#[test]
fn slower_is_worse_faster_is_better_and_equal_is_neither() {
    let (quick, slow) = (about(30_000.0, 1, 8), about(60_000.0, 2, 8));
    let found = compare(&quick, &slow, &request()).unwrap();
    assert!(is_told(&found, Verdict::Worse), "{found:?}");
    let figures = found.figures().map(|found| found.figure.to_string());
    let all = "latency.p50 latency.p99 completion.p50 completion.p99";
    assert!(figures.eq(all.split(' ')));
    assert_eq!((found.comparisons, found.rounds_needed), (4, 5));
    let p50 = of(&found, "latency.p50");
    assert_eq!((p50.unit, p50.rounds), ("ns", [8, 8]));
    let ([low, high], shift) = (p50.interval.unwrap(), p50.shift.unwrap());
    assert!((92.0..102.0).contains(&shift), "{p50:?}");
    assert!(low < shift && shift < high, "{p50:?}");
    assert!(p50.p.unwrap() <= ERROR / 4.0);

    let back = compare(&slow, &quick, &request()).unwrap();
    assert!(is_told(&back, Verdict::Better), "{back:?}");
    let same = compare(&quick, &about(30_000.0, 3, 8), &request()).unwrap();
    assert!(is_told(&same, Verdict::NoDifferenceShown), "{same:?}");
}

#[test]
fn a_limit_is_broken_by_what_is_worse_and_beyond_it() {
    let (quick, slow) = (about(30_000.0, 1, 8), about(60_000.0, 2, 8));
    let broken = |base: &Run, new: &Run, percent, of| {
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
    let limits = found.figures().filter(|found| found.limit.is_some());
    assert_eq!(limits.count(), 1);
}

#[test]
fn a_limit_is_kept_only_if_the_worse_bound_is_within_it() {
    let (base, new) = (about(30_000.0, 1, 8), about(30_000.0, 4, 8));
    let found = compare(&base, &new, &limited(0.1, "latency.p50")).unwrap();
    let p50 = of(&found, "latency.p50");
    let (outcome, [_, high]) = (p50.limit.as_ref().unwrap(), p50.interval.unwrap());
    assert_eq!(p50.verdict, Verdict::NoDifferenceShown);
    assert_eq!(outcome.worst, Some(high));
    assert!(!outcome.broken && outcome.is_open(), "{p50:?}");
    assert!(found.open_limits()[0].contains("latency.p50"), "{p50:?}");
    let found = compare(&base, &new, &limited(high + 0.1, "latency.p50")).unwrap();
    assert_eq!(found.open_limits(), Vec::<String>::new());
}

#[test]
fn nothing_falls_by_more_than_all_of_it() {
    let (base, new) = (about(60_000.0, 1, 8), about(600.0, 2, 8));
    let found = compare(&base, &new, &request()).unwrap();
    let p50 = of(&found, "latency.p50");
    let [low, high] = p50.interval.unwrap();
    assert!(-100.0 < low && low < p50.shift.unwrap(), "{p50:?}");
    assert!(p50.shift.unwrap() < high && high < -90.0, "{p50:?}");
}

#[test]
fn a_figure_that_there_is_not_is_named_with_those_that_are() {
    let run = about(30_000.0, 1, 8);
    let regression = limited(5.0, "throughput");
    let told = ["--max-regression", "no throughput", "latency.p50"];
    compare(&run, &run, &regression).refused(&told);
    let regression = limited(5.0, "enqueue.p50");
    let told = ["--max-regression", "no enqueue.p50", "completion.p99.9"];
    compare(&run, &run, &regression).refused(&told);
    // The floor is the instrument's.
    let figures = figures::of_schema(&hca::SCHEMA, &request()).unwrap();
    let is_floor = |figure: &Figure| figure.to_string().contains("floor");
    assert!(!figures.iter().any(is_floor));
}

#[test]
fn losses_are_judged_by_round_and_mark_what_looks_better() {
    let lossy = |level, lost: [f64; 8]| {
        let mut point = hca_point(&RC, 5, 8, level);
        for (figures, lost) in point.rounds.iter_mut().zip(lost) {
            figures.retain(|(column, _)| ![hca::LOST, hca::RECEIVED].contains(column));
            figures.extend([(hca::LOST, lost), (hca::RECEIVED, 1000.0 - lost)]);
        }
        recorded(&[point], 3)
    };
    let base = about(60_000.0, 1, 8);
    let new = lossy(30_000.0, [10.0, 12.0, 9.0, 11.0, 10.0, 13.0, 8.0, 10.0]);
    let found = compare(&base, &new, &limited(0.5, "lost")).unwrap();
    let p50 = of(&found, "latency.p50");
    assert_eq!(p50.verdict, Verdict::BetterButMoreFaults);
    let reason = p50.reason.as_ref().unwrap();
    assert_eq!(reason, "messages_lost rose from 0 to 83");
    let lost = of(&found, "lost");
    assert_eq!((lost.verdict, lost.unit), (Verdict::Worse, "%"));
    // Percentage points.
    assert!((lost.shift.unwrap() - 1.0).abs() < 0.05, "{lost:?}");
    assert!(found.has_broken_limit());
    let found = compare(&base, &new, &limited(2.0, "lost")).unwrap();
    assert!(!found.has_broken_limit());
    // One loss in one round is nothing.
    let once = lossy(60_000.0, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let found = compare(&base, &once, &request()).unwrap();
    assert_eq!(of(&found, "lost").verdict, Verdict::NoDifferenceShown);
}

#[test]
fn runs_one_after_the_other_are_told() {
    let later = |second| recorded(&[hca_point(&RC, 1, 8, 30_000.0)], second);
    let warned = |base: &Run, new: &Run| {
        let warnings = compare(base, new, &request()).unwrap().warnings;
        warnings
            .join("\n")
            .contains("a drift between them looks like a difference")
    };
    let first = later(0);
    assert!(warned(&first, &later(600)) && warned(&later(600), &first));
    // In turn, and one that began when the other had not ended.
    assert!(!warned(&first, &later(30)) && !warned(&first, &later(300)));
}

#[test]
fn other_settings_are_refused_but_those_that_may_differ() {
    let [one, other] = [("rc", "busy"), ("rc", "event")].map(|(service, poll)| {
        let settings = [(hca::SERVICE, service), (hca::POLL_RECV, poll)];
        recorded(&[hca_point(&settings, 1, 8, 30_000.0)], 0)
    });
    let told = ["no point in common", "--allow poll_recv"];
    compare(&one, &other, &request()).refused(&told);
    let found = compare(&one, &other, &named("poll_recv")).unwrap();
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
    let told = ["run.hugepages: none and 2M", "--allow"];
    compare(&plain, &pages, &request()).refused(&told);
    assert!(compare(&plain, &pages, &named("hugepages")).is_ok());
    let told = ["machine.hostname: made-up and hugepages"];
    for name in ["hostname", "machine", "hugepages"] {
        compare(&plain, &machine, &named(name)).refused(&told);
    }
    let settings = permitting(Permitted::Settings);
    compare(&plain, &machine, &settings).refused(&told);
    assert!(compare(&plain, &machine, &permitting(Permitted::All)).is_ok());
}

#[test]
fn what_a_run_does_not_have_is_what_it_measured_with() {
    for (column, unset, other) in [
        (hca::SRQ, "off", "on"),
        (hca::RELAXED_ORDERING, "off", "on"),
        (hca::ODP, "off", "on"),
        (hca::THREAD_DOMAIN, "off", "on"),
        (hca::QUEUE_PAIRS, "1", "4"),
        (hca::BACKGROUND, "0", "1000@8"),
        (hca::MEMORY_LOAD, "0", "50"),
    ] {
        let run = |texts: &[&'static str]| {
            let point = |text: &&'static str| {
                let settings = [RC[0], RC[1], (column, *text)];
                hca_point(&settings, 1, 8, 30_000.0)
            };
            recorded(&texts.iter().map(point).collect::<Vec<_>>(), 0)
        };
        let (without, both) = (run(&[""]), run(&[unset, other]));
        let found = compare(&without, &both, &request()).unwrap();
        assert_eq!((found.points.len(), found.only_in_base.len()), (1, 0));
        let settings = ["rc", "8", other].join("-");
        assert_eq!(found.only_in_new, [settings], "{}", column.name);
        let matched_by = &found.points[0].settings;
        let expected = [(RC[0].0, "rc"), (RC[1].0, "8"), (column, unset)];
        for (column, text) in expected {
            assert!(
                matched_by.contains(&(column.name, text.to_owned())),
                "{matched_by:?}"
            );
        }
        assert!(
            matched_by.iter().all(|(_, text)| !text.is_empty()),
            "{matched_by:?}"
        );
        let found = compare(&run(&[unset]), &without, &request()).unwrap();
        assert_eq!((found.points.len(), found.differs.len()), (1, 0));
        let only_other = run(&[other]);
        let told = ["no point in common", column.name];
        compare(&without, &only_other, &request()).refused(&told);
        let found = compare(&without, &only_other, &named(column.name)).unwrap();
        let differs = format!("{}: {unset} and {other}", column.name);
        assert_eq!(found.differs[0].to_string(), differs);
    }
}

/// Runs of one point that differ in what their documents hold at a place.
fn with_values<const N: usize>(place: &str, values: [Option<Value>; N]) -> [Run; N] {
    let (parent, name) = place.rsplit_once('/').unwrap();
    values.map(|value| {
        let device = json!({
            "name": "mlx5_0",
            "limits": {"completion_vectors": 2, "hardware_clock": null},
            "ports": [{"number": 1, "mtu": 1024}],
        });
        let mut document = document(&hca::SCHEMA);
        document["machine"] = json!({
            "hostname": "made-up",
            "boot": {"isolcpus": null, "intel_idle.max_cstate": null},
            "memory": {},
        });
        document["obtained"] = json!({
            "devices": {"sender": {"port": 1, "device": device}},
            "environment": {},
            "path": {"sender": {"gid": null}},
        });
        let parent = document
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap();
        match value {
            Some(value) => parent.insert(name.to_owned(), value),
            None => parent.remove(name),
        };
        with_document(&document, &[hca_point(&RC, 1, 8, 30_000.0)], 0)
    })
}

#[test]
fn a_queue_that_is_one_of_several_has_to_be_the_same() {
    let is = ["baton-batching", "baton-demoting"].map(|name| Some(json!(name)));
    let [batching, demoting] = is;
    let place = "/obtained/queue_is";
    let [older, batching, demoting] = with_values(place, [None, batching, demoting]);
    // Runs that are older than the choice have the one that fills batches.
    for base in [&older, &batching] {
        assert!(compare(base, &batching, &request()).is_ok());
        let told = [
            "obtained.queue_is: baton-batching and baton-demoting",
            "--allow",
        ];
        compare(base, &demoting, &request()).refused(&told);
        assert!(compare(base, &demoting, &named("queue_is")).is_ok());
    }
    // What it was chosen by, and what it is in words, may differ.
    for place in ["/obtained/queue_is_by", "/obtained/queue"] {
        let values = ["one", "other"].map(|text| Some(json!({"differs": text, "source": text})));
        let [base, new] = with_values(place, values);
        assert!(compare(&base, &new, &request()).is_ok());
    }
}

#[test]
fn the_static_program_is_another_version() {
    let values = [None, Some(json!("glibc")), Some(json!("musl"))];
    let [old, usual, is_static] = with_values("/hcabench/c_library", values);
    let version = super::rounds::version;
    assert_eq!(version(&old), version(&usual));
    assert!(
        version(&is_static).ends_with(", musl)"),
        "{}",
        version(&is_static)
    );
}

#[test]
fn how_often_logs_were_begun_is_no_difference() {
    let values = [
        None,
        Some(json!(1_000_000_000_u64)),
        Some(json!(100_000_000)),
    ];
    let [never, usual, often] = with_values("/run/hlog_interval_ns", values);
    for (base, new) in [(&never, &usual), (&usual, &often)] {
        assert!(compare(base, new, &request()).is_ok());
    }
}

#[test]
fn what_an_older_run_did_not_record_of_machine_devices_and_path_is_no_difference() {
    const DEVICE: &str = "/obtained/devices/sender/device";
    let limits = format!("{DEVICE}/limits");
    let max_srq = format!("{limits}/max_shared_receive_queues");
    let clock = format!("{limits}/hardware_clock");
    let paging = format!("{limits}/on_demand_paging");
    let atomics = json!({"rc": ["atomic"], "uc": [], "ud": []});
    for (place, value, other) in [
        (&*max_srq, json!(1024), json!(512)),
        (&clock, json!({"mask": 255, "khz": 156_250}), json!(null)),
        (
            &paging,
            atomics.clone(),
            json!({"rc": [], "uc": [], "ud": []}),
        ),
        (&paging, atomics.clone(), json!(null)),
        (
            &format!("{DEVICE}/physical_function"),
            json!("0000:3b:00.0"),
            json!(null),
        ),
        ("/machine/boot/intel_pstate", json!("disable"), json!(null)),
        (
            "/machine/clock",
            json!({"source": "tsc"}),
            json!({"source": "hpet"}),
        ),
        (
            "/machine/memory/memory_lock",
            json!({"soft": 64}),
            json!("unlimited"),
        ),
        (
            "/obtained/path/sender/writes_in_order",
            json!(true),
            json!(false),
        ),
    ] {
        let [older, one, other] = with_values(place, [None, Some(value), Some(other)]);
        for (base, new) in [(&older, &one), (&one, &older), (&older, &other)] {
            let found = compare(base, new, &request()).unwrap();
            assert_eq!(found.differs, [], "{place}");
        }
        // What both know is one, also that there is none.
        let name = place[1..].replace('/', ".");
        compare(&one, &other, &request()).refused(&[&*name, "not measured alike"]);
        compare(&other, &one, &request()).refused(&[&*name]);
    }
    // Bits, as they were written at first.
    let bits = json!({"rc": 0, "uc": 0, "ud": 0});
    for names in [json!({"rc": [], "uc": [], "ud": []}), atomics] {
        let [base, new] = with_values(&paging, [Some(bits.clone()), Some(names)]);
        assert_eq!(compare(&base, &new, &request()).unwrap().differs, []);
    }
    // Where a run has a key only if it was measured so, one that it does not have says how it was.
    for place in ["/obtained/environment/MLX5_SHUT_UP_BF", "/obtained/hosts"] {
        let [without, with] = with_values(place, [None, Some(json!("1"))]);
        let told = format!("{}: unknown and 1", place[1..].replace('/', "."));
        compare(&without, &with, &request()).refused(&[&told]);
    }
}

#[test]
fn a_setting_of_the_run_that_an_older_one_does_not_have_is_what_it_measured_with() {
    let place = "/run/hw_timestamps";
    let values = [
        None,
        Some(json!(null)),
        Some(json!(false)),
        Some(json!(true)),
    ];
    let [without, null, off, on] = with_values(place, values);
    for (base, new) in [(&without, &off), (&off, &without), (&null, &off)] {
        let found = compare(base, new, &request()).unwrap();
        assert_eq!(found.differs, []);
    }
    for base in [&without, &null, &off] {
        compare(base, &on, &request()).refused(&["run.hw_timestamps: false and true"]);
        compare(&on, base, &request()).refused(&["run.hw_timestamps: true and false"]);
        assert!(compare(base, &on, &named("hw_timestamps")).is_ok());
    }
    // Of others it is unknown.
    let [without, with] = with_values("/run/priority", [None, Some(json!(50))]);
    compare(&without, &with, &request()).refused(&["run.priority: unknown and 50"]);
}

#[test]
fn limits_of_containers_are_circumstances() {
    let with = |limits: Value| {
        let mut document = document(&hca::SCHEMA);
        document["machine"]["limits"] = limits;
        with_document(&document, &[hca_point(&RC, 1, 8, 30_000.0)], 0)
    };
    let limits = |quota: Value, cpus: &str, memory: Value| {
        json!({
            "cpus_by_quota": quota, "cpu_quotas": [{"file": cpus}], "memory": memory,
            "cpuset": {"cpus": cpus, "file": "/sys/fs/cgroup/a/cpuset.cpus"},
            "ulimits": {"open_files": {"soft": 64, "hard": 64}},
        })
    };
    let none = with(limits(json!("none"), "0-7", json!("none")));
    for (quota, cpus, told) in [
        (
            json!(0.3),
            "0-7",
            "machine.limits.cpus_by_quota: none and 0.3",
        ),
        (
            json!("none"),
            "0-3",
            "machine.limits.cpuset.cpus: 0-7 and 0-3",
        ),
    ] {
        let other = with(limits(quota, cpus, json!("none")));
        compare(&none, &other, &request()).refused(&[told]);
    }
    // Others change no figure, and are warned of.
    let memory = json!({"limit_bytes": 1 << 30, "file": "/x"});
    let limited = with(limits(json!("none"), "0-7", memory));
    let warned =
        |base: &Run, new: &Run| compare(base, new, &request()).unwrap().warnings.join("\n");
    warned(&none, &limited)
        .has(&["measured under different limits: memory limit limit bytes: none and 1073741824"]);
    assert!(!warned(&none, &limited).contains("ulimits"));
    // So are those of CPUs that could not be read in one of them.
    let mut cpus = limits(json!("none"), "0-7", json!("none"));
    cpus["cpuset"] = json!("unknown");
    let quota = with(limits(json!("unknown"), "0-7", json!("none")));
    for (unread, limit, known) in [
        (with(cpus), "cpuset cpus", "0-7"),
        (quota, "CPU quota", "none"),
    ] {
        let text = |values: [&str; 2]| format!("{limit}: {}", values.join(" and "));
        warned(&none, &unread).has(&[&text([known, "unknown"])]);
        warned(&unread, &none).has(&[&text(["unknown", known])]);
        assert!(!warned(&unread, &unread).contains("limits"));
    }
    // Those of an older run are not known.
    let older = with(Value::Null);
    assert!(!warned(&older, &none).contains("limits"));
}

#[test]
fn memory_modules_differ_only_where_both_are_known() {
    let with = |modules: Value| {
        let mut document = document(&hca::SCHEMA);
        document["machine"]["memory"] = json!({ "modules": modules });
        with_document(&document, &[hca_point(&RC, 1, 8, 30_000.0)], 0)
    };
    let modules = |kind: &str| json!({"installed": [{"count": 2, "kind": kind}], "empty": 0});
    let known = with(modules("DDR5"));
    let other = compare(&known, &with(modules("DDR4")), &request());
    other.refused(&["machine.memory.modules.installed.kind: DDR5 and DDR4"]);
    // An ordinary user may not read them, and older runs have none.
    for unknown in [json!({"unknown": "root only"}), Value::Null] {
        let unknown = with(unknown);
        assert!(compare(&known, &unknown, &request()).is_ok());
        assert!(compare(&unknown, &known, &request()).is_ok());
    }
}

#[test]
fn what_one_side_lacks_is_named() {
    let sizes = |sizes: &[&'static str]| {
        let settings = |size| [(hca::SERVICE, "rc"), (hca::SIZE, size)];
        let point = |size: &&'static str| hca_point(&settings(size), 1, 8, 30_000.0);
        recorded(&sizes.iter().map(point).collect::<Vec<_>>(), 0)
    };
    let limit = limited(5.0, "latency.p50");
    let (base, new) = (sizes(&["8", "16", "32"]), sizes(&["32", "8", "64"]));
    let found = compare(&base, &new, &limit).unwrap();
    let names = found.points.iter().map(|point| point.names[0].as_str());
    assert!(names.eq(["rc-8", "rc-32"]));
    assert_eq!(found.only_in_base, ["rc-16"]);
    assert_eq!(found.only_in_new, ["rc-64"]);
    assert_eq!(found.gaps(&limit.limits), ["rc-16 of base is not in new"]);
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
    let services = ["rc", "uc"].into_iter();
    let settings = services.flat_map(|service| [(service, "busy"), (service, "event")]);
    settings.map(point).collect()
}

#[test]
fn a_setting_is_compared_within_a_sweep() {
    let run = recorded(&sweep(8, 45_000.0), 0);
    let found = compare_within(&run, "poll-recv", &request()).unwrap();
    let by = found.by.as_ref().unwrap();
    assert_eq!((by.setting, by.first.as_str()), ("poll_recv", "busy"));
    assert_eq!(by.along, ["poll_comp"]);
    assert_eq!(found.names, ["busy", "event"]);
    let names = found.points.iter().map(|point| point.names.join(" and "));
    let expected = ["rc", "uc"].map(|it| format!("{it}-busy-busy and {it}-event-event"));
    assert!(names.eq(expected));
    let mut levels = found.points.iter().map(|point| point.level.as_deref());
    assert!(levels.all(|level| level == Some("event")));
    // Eight rounds are too few for signed ranks of eight figures.
    assert_eq!((found.comparisons, found.test), (8, Test::MannWhitney));
    assert!(is_told(&found, Verdict::Worse), "{found:?}");
    // The services differ in nothing but chance.
    let found = compare_within(&run, "service", &request()).unwrap();
    assert!(found.by.as_ref().unwrap().along.is_empty());
    assert!(is_told(&found, Verdict::NoDifferenceShown), "{found:?}");
}

#[test]
fn a_drift_of_the_rounds_goes_where_there_are_enough_of_them() {
    let mut points = sweep(12, 31_500.0);
    for point in &mut points {
        for (round, figures) in point.rounds.iter_mut().enumerate() {
            let drift = 4_000.0 * (round as f64 - 6.0).abs();
            figures.iter_mut().for_each(|(_, figure)| *figure += drift);
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
        let mut run = run.clone();
        run.points
            .retain(|point| point.setting("poll_recv") == Some(poll));
        run
    };
    let allowed = Request {
        permitted: Permitted::Settings,
        ..one
    };
    let found = compare(&level("busy"), &level("event"), &allowed).unwrap();
    assert!(is_told(&found, Verdict::NoDifferenceShown), "{found:?}");
}

#[test]
fn what_cannot_be_compared_within_a_sweep_is_told_with_what_varies() {
    let run = recorded(&sweep(8, 30_000.0), 0);
    for (by, reason) in [
        ("colour", "is not a setting"),
        ("size", "has one value"),
        ("burst", "has one value"),
    ] {
        let found = compare_within(&run, by, &request());
        found.refused(&[reason, "service, poll_recv, poll_comp"]);
    }
    // Each size has a service of its own, and one has two.
    let settings = |service, size| [(hca::SERVICE, service), (hca::SIZE, size)];
    let point = |(service, size)| hca_point(&settings(service, size), 1, 8, 30_000.0);
    let run = recorded(&[("rc", "8"), ("uc", "16"), ("ud", "16")].map(point), 0);
    let found = compare_within(&run, "size", &request());
    found.refused(&["only together with others"]);
}

/// Equal points of a sweep whose rounds drift, two of them and five: any difference is an error.
#[test]
fn equal_points_of_a_sweep_differ_in_at_most_the_nominal_share() {
    const SWEEPS: u64 = 300;
    let sizes = ["8", "16", "32", "64", "128"];
    for (points, rounds) in [(2, 8), (2, 12), (5, 8), (5, 14)] {
        let mut noise = Noise::new(points as u64 + rounds as u64);
        let mut uniform = || noise.share();
        let point = |size: &&'static str| hca_point(&[(hca::SIZE, size)], 1, rounds, 1.0);
        let template = recorded(&sizes[..points].iter().map(point).collect::<Vec<_>>(), 0);
        let one = Request {
            percentiles: vec![50.0],
            ..request()
        };
        let figures = figures::of_schema(&hca::SCHEMA, &one).unwrap();
        let levels = within::levels(&template, "size").unwrap();
        let apart = (0..SWEEPS).filter(|_| {
            let mut drift = 0.0;
            let drifts: Vec<f64> = (0..rounds)
                .map(|_| {
                    drift = 0.8 * drift + uniform() - 0.5;
                    drift
                })
                .collect();
            let mut side = || -> [BTreeMap<u64, f64>; 2] {
                [(); 2].map(|()| {
                    let figures = drifts.iter().map(|drift| 10.0 + drift + uniform());
                    (0..).zip(figures).collect()
                })
            };
            let sides: Vec<_> = (0..points).map(|_| side()).collect();
            let of_pair = |other: &[BTreeMap<u64, f64>; 2]| {
                let of_kind = |kind: usize| {
                    let values = [sides[0][kind].clone(), other[kind].clone()];
                    (figures[kind].clone(), values)
                };
                vec![of_kind(0), of_kind(1)]
            };
            let judged = Judged {
                figures: sides[1..].iter().map(of_pair).collect(),
                limits: &[],
            };
            let test = within::test(judged.least_rounds(), judged.error());
            let found = judged.comparison([&template; 2], &levels.pairs, test);
            !is_told(&found, Verdict::NoDifferenceShown)
        });
        // Four standard deviations above 5 %.
        let apart = apart.count();
        assert!(apart <= 30, "{apart} of {points} points, {rounds} rounds");
    }
}

#[test]
fn names_of_figures_are_read_back() {
    let good = "p50 p99.9 latency.p50 completion.p99.99 lost jump-time";
    for text in good.split(' ') {
        assert_eq!(text.parse::<Which>().unwrap().to_string(), text);
    }
    for text in "p p0 p100 latency. latency.max latency.p ".split(' ') {
        assert!(text.parse::<Which>().is_err(), "{text}");
    }
}

#[test]
fn a_figure_that_is_no_number_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let made = [hca_point(&RC, 1, 2, 30_000.0)];
    let (path, document) = (folder.path().join("run"), document(&hca::SCHEMA));
    let path = run(&path, &hca::SCHEMA, &document, &made, 0);
    let file = path.join("runs.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(",200.0,"));
    std::fs::write(&file, text.replace(",200.0,", ",abc,")).unwrap();
    let run = rounds::open(&path).unwrap();
    let [damaged] = &run.damaged[..] else {
        panic!("{:?}", run.damaged)
    };
    damaged
        .to_string()
        .has(&["runs.csv", "in line 2", "floor_p50_ns is \"abc\""]);
}

fn memory_about(latency: f64, bandwidth: f64, seed: u64) -> Run {
    let mut draws = SplitMix64::new(seed);
    let mut about = |level: f64| level * (1.0 + (draws.draw() % 1000) as f64 / 1e5);
    let round = |_| {
        vec![
            (memory::LATENCY, about(latency)),
            (memory::ISSUED, about(bandwidth)),
            (memory::MEASURED_WINDOWS, 8.0),
            (memory::STALLED, 0.0),
        ]
    };
    let point = Made {
        settings: vec![(memory::READ_SHARE, "50"), (memory::PAUSE, "8")],
        rounds: (0..8).map(round).collect(),
    };
    let folder = tempfile::tempdir().unwrap();
    let (path, schema) = (folder.path().join("run"), &memory::SCHEMA);
    rounds::open(&run(
        &path,
        schema,
        &document(schema),
        &[point],
        seed as usize,
    ))
    .unwrap()
}

#[test]
fn a_memory_is_compared_by_its_latency_and_its_bandwidth() {
    let base = memory_about(100.0, 9_000.0, 1);
    let verdicts = |new: &Run| -> Vec<(String, Verdict)> {
        let found = compare(&base, new, &request()).unwrap();
        (found.figures())
            .map(|found| (found.figure.to_string(), found.verdict))
            .collect()
    };
    let both = |latency, bandwidth| {
        vec![
            ("latency".to_owned(), latency),
            ("bandwidth".to_owned(), bandwidth),
        ]
    };
    let same = Verdict::NoDifferenceShown;
    assert_eq!(verdicts(&memory_about(100.0, 9_000.0, 2)), both(same, same));
    let slower = memory_about(120.0, 7_000.0, 3);
    assert_eq!(verdicts(&slower), both(Verdict::Worse, Verdict::Worse));
    let quicker = memory_about(80.0, 9_000.0, 4);
    assert_eq!(verdicts(&quicker), both(Verdict::Better, same));

    let limit = limited(5.0, "latency");
    assert!(compare(&base, &slower, &limit).unwrap().has_broken_limit());
    assert!(!compare(&base, &quicker, &limit).unwrap().has_broken_limit());
    // There are no percentiles, so that one that is asked for is none of them.
    let asked = Request {
        percentiles: vec![90.0],
        ..request()
    };
    compare(&base, &slower, &asked).refused(&["p90", "latency, bandwidth"]);
}

/// Two queues, measured for a time: how many elements went through differs from point to point and from run to run.
fn queues_of_a_duration(counts: [&'static str; 2], seed: u64) -> Run {
    let point = |(name, count): (&'static str, &'static str)| Made {
        settings: vec![
            (queue::QUEUE, name),
            (queue::COUNT, count),
            (queue::DURATION, "3000000"),
        ],
        rounds: (0..8)
            .map(|round| {
                vec![(
                    queue::latency::P50,
                    100.0 + (seed * 8 + round) as f64 / 100.0,
                )]
            })
            .collect(),
    };
    let points = [("lamport", counts[0]), ("baton", counts[1])].map(point);
    let (path, schema) = (temporary("run"), &queue::SCHEMA);
    rounds::open(&run(
        &path,
        schema,
        &document(schema),
        &points,
        seed as usize,
    ))
    .unwrap()
}

#[test]
fn what_is_measured_of_a_setting_distinguishes_no_points() {
    let base = queues_of_a_duration(["24565", "31646"], 1);
    let new = queues_of_a_duration(["23001", "30700"], 2);
    let found = compare(&base, &new, &request()).unwrap();
    assert_eq!(found.points.len(), 2);
    for point in &found.points {
        assert!(point.settings.iter().all(|(name, _)| *name != "count"));
    }
    assert!(base.points[0].is_measured("count"));
    let found = compare_within(&base, "queue", &request()).unwrap();
    assert!(found.by.unwrap().along.is_empty());
}
