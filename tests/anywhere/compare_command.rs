//! `hcabench compare` as its user has it: exit codes, tables, JSON, and what it refuses.

use std::fs;
use std::path::Path;

use crate::common;
use crate::testing::{Has as _, temporary};

use hcabench::host::fingerprint::Fingerprint;
use hcabench::results::read::{Point, Run};
use hcabench::results::schema::{Column, hca};
use serde_json::{Value, json};

use crate::made_up_run::rounds::{Made, document, hca_point, run};
use common::expect;

fn poll(service: &'static str, poll: &'static str) -> [(Column, &'static str); 3] {
    [
        (hca::SERVICE, service),
        (hca::POLL_RECV, poll),
        (hca::POLL_COMP, poll),
    ]
}

/// Runs of eight rounds in turn: two that are alike, and one that is slower.
fn runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let document = document(&hca::SCHEMA);
    for (second, (name, level)) in [("base", 30_000.0), ("same", 30_000.0), ("slow", 60_000.0)]
        .into_iter()
        .enumerate()
    {
        let point = |service| hca_point(&poll(service, "busy"), second as u64, 8, level);
        let path = folder.path().join(name);
        let points = ["rc", "uc"].map(point);
        run(&path, &hca::SCHEMA, &document, &points, 10 * second);
    }
    folder
}

#[test]
fn two_runs_are_compared_round_by_round() {
    let folder = runs();
    let folder = folder.path();
    let limits = "--max-regression 10%@latency.p50,10%@completion.p50";
    let (table, warnings) = expect(folder, &format!("compare base same {limits}"), 0);
    table.has(&[
        "latency.p50",
        "completion.p99",
        "No difference is shown in median latency, p99 latency, median completion latency",
        "All 8 intervals hold together in 95 of 100 comparisons",
        "verdict: ",
        "0 worse, 8 without a difference shown",
        " not shown",
        "limit 10%@latency.p50: kept by 2 of 2",
    ]);
    let fits = table.lines().all(|line| line.chars().count() <= 100);
    assert!(fits, "{table}");
    assert_eq!(warnings, "");

    let (table, _) = expect(folder, &format!("compare base slow {limits}"), 3);
    table.has(&[
        "median latency: slow is higher than base at all 2 points, most by ",
        "worse, BROKEN",
        "limit 10%@completion.p50: kept by 2 of 2",
    ]);
    table.lacks(&["BASE", "NEW", "shift"]);
    let heading = table.lines().find(|line| line.starts_with("service"));
    let heading: Vec<&str> = heading.unwrap().split_whitespace().collect();
    let expected = "service figure base slow difference interval verdict";
    assert_eq!(heading.join(" "), expected);
    // By the names of the columns, and by those of earlier versions.
    for (sort, figure) in [
        ("-slow", " latency.p99 "),
        ("-NEW", " latency.p99 "),
        ("-difference", " latency."),
        ("-shift", " latency."),
        ("base", " completion.p50 "),
    ] {
        let (table, _) = expect(folder, &format!("compare base slow --sort={sort}"), 0);
        let mut lines = table.lines().skip_while(|line| !line.starts_with("---"));
        lines.nth(1).unwrap().has(&[figure]);
    }
    let (text, _) = expect(folder, &format!("compare base slow {limits} --json"), 3);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["verdict"]["broken"], true);
    assert_eq!(document["comparison"]["names"], json!(["base", "slow"]));
    assert_eq!(document["findings"][1]["verdict"], "usable");
    let answer = document["answer"][0].as_str().unwrap();
    answer.has(&["median latency: slow is higher than base"]);
    let points = document["comparison"]["points"].as_array().unwrap();
    let figures: Vec<_> = points
        .iter()
        .flat_map(|point| point["figures"].as_array().unwrap())
        .collect();
    assert_eq!(figures.len(), 8);
    for figure in figures {
        let is_latency = figure["figure"].as_str().unwrap().starts_with("latency.");
        let verdict = if is_latency {
            "worse"
        } else {
            "no-difference-shown"
        };
        assert_eq!(figure["verdict"], verdict, "{figure}");
        let interval = figure["interval"].as_array().unwrap();
        let number = |value: &Value| value.as_f64().unwrap();
        assert!(number(&interval[0]) <= number(&figure["shift"]), "{figure}");
        let are_numbers = ["base", "new", "p"].iter().all(|key| figure[*key].is_f64());
        assert!(are_numbers, "{figure}");
        figure["point"].as_str().unwrap().ends("-busy-busy");
    }
    let (nothing, _) = expect(folder, "compare base slow --quiet", 0);
    assert_eq!(nothing, "");
}

#[test]
fn the_points_of_a_sweep_are_compared_by_a_setting() {
    let folder = &*temporary("");
    let point = |(service, word)| {
        let level = if word == "event" { 45_000.0 } else { 30_000.0 };
        hca_point(&poll(service, word), 5, 8, level)
    };
    let points: [Made; 4] = [
        ("rc", "busy"),
        ("rc", "event"),
        ("uc", "busy"),
        ("uc", "event"),
    ]
    .map(point);
    let document = document(&hca::SCHEMA);
    run(&folder.join("sweep"), &hca::SCHEMA, &document, &points, 0);
    let (table, _) = expect(folder, "compare sweep --by poll-recv", 0);
    table.has(&[
        "median latency: event is higher than busy at all 2 points",
        "settings: poll_comp follows from poll_recv",
        "4 worse",
    ]);
    let (_, error) = expect(folder, "compare sweep --by size", 2);
    error.has(&["has one value", "service, poll_recv, poll_comp"]);
    // Limits are of the levels, then.
    let limit = "compare sweep --by poll_recv --max-regression 10%@latency.p50";
    expect(folder, limit, 3);
}

/// The sample was measured before there were `srq` and others, `queue_pairs` and `background`.
#[test]
fn an_older_run_has_the_points_of_a_new_one_in_which_what_it_lacks_is_off() {
    let folder = &*temporary("");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/hca");
    let older = Run::open(&sample).unwrap();
    let lacks = |column: &Column| {
        older
            .points
            .iter()
            .all(|it| it.setting(column.name).is_none())
    };
    let added: Vec<Column> = hca::POINT.into_iter().filter(lacks).collect();
    assert!(
        added.contains(&hca::SRQ) && added.contains(&hca::QUEUE_PAIRS),
        "{added:?}"
    );
    let point = |older: &Point, srq: &'static str| {
        let setting = |column: Column| match column {
            hca::SRQ => (column, srq),
            _ => (column, &*older.setting_or_unset(&column).to_owned().leak()),
        };
        hca_point(&hca::POINT.map(setting), 1, 1, 30_000.0)
    };
    let points: Vec<Made> = (older.points.iter())
        .flat_map(|older| ["off", "on"].map(|srq| point(older, srq)))
        .collect();
    run(
        &folder.join("new"),
        &hca::SCHEMA,
        &document(&hca::SCHEMA),
        &points,
        0,
    );
    let words = format!("compare {} new --anyway --json", sample.display());
    let (text, _) = expect(folder, &words, 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    let names = |key: &str| found["comparison"][key].as_array().unwrap().len();
    let all = older.points.len();
    let expected = [("points", all), ("only_in_base", 0), ("only_in_new", all)];
    for (key, expected) in expected {
        assert_eq!(names(key), expected, "{key}");
    }
}

/// Leaves of objects only the keys that `older` has.
fn keep_keys_of(older: &Value, value: &mut Value) {
    match (older, value) {
        (Value::Object(older), Value::Object(members)) => {
            members.retain(|name, _| older.contains_key(name));
            for (name, member) in members {
                keep_keys_of(&older[name], member);
            }
        }
        (Value::Array(older), Value::Array(elements)) => {
            for (older, element) in older.iter().zip(elements) {
                keep_keys_of(older, element);
            }
        }
        _ => (),
    }
}

fn change_json(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    change(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

/// A run as the version that measured the sample would have written it: without what came later.
fn age(run: &Path, sample: &Value, added: &[Column]) {
    let is_old = |name: &str| added.iter().all(|column| column.name != name);
    for file in ["summary.csv", "runs.csv"] {
        let text = fs::read_to_string(run.join(file)).unwrap();
        let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let lines = text.lines().map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), names.len(), "{line}");
            let cells = cells.into_iter().zip(&names);
            let old: Vec<&str> = (cells.filter(|(_, name)| is_old(name)))
                .map(|(cell, _)| cell)
                .collect();
            old.join(",") + "\n"
        });
        fs::write(run.join(file), lines.collect::<String>()).unwrap();
    }
    change_json(&run.join("datapackage.json"), |package| {
        for resource in package["resources"].as_array_mut().unwrap() {
            if let Some(fields) = resource["schema"]["fields"].as_array_mut() {
                fields.retain(|field| is_old(field["name"].as_str().unwrap()));
            }
        }
    });
    let points = fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let settings = points.map(|path| path.join("settings.json"));
    let settings = settings.filter(|path| path.exists());
    for file in settings.chain([run.join("settings.json")]) {
        change_json(&file, |document| {
            for part in ["machine", "run", "obtained"] {
                keep_keys_of(&sample[part], &mut document[part]);
            }
            if let Some(point) = document["point"].as_object_mut() {
                point.retain(|name, _| is_old(name));
            }
        });
    }
}

#[test]
fn an_older_run_is_compared_with_one_that_records_more() {
    let folder = &*temporary("");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/sample/hca");
    let older = Run::open(&sample).unwrap();
    let lacks = |column: &Column| older.points[0].setting(column.name).is_none();
    let added: Vec<Column> = hca::POINT.into_iter().filter(lacks).collect();
    let sample = older.document();
    let mut new = document(&hca::SCHEMA);
    new["machine"] = json!(Fingerprint::collect());
    new["run"] = sample["run"].clone();
    new["run"]["hw_timestamps"] = json!(false);
    new["obtained"] = sample["obtained"].clone();
    for end in ["sender", "receiver"] {
        let device = &mut new["obtained"]["devices"][end]["device"];
        device["limits"]["max_shared_receive_queues"] = json!(1024);
        device["limits"]["hardware_clock"] =
            json!({ "mask": 255, "khz": 156_250, "readable": true });
        device["limits"]["on_demand_paging"] = json!({ "rc": ["send"], "uc": [], "ud": [] });
        device["ports"][0]["physical"] = json!({ "identifier": "0c42a1000001" });
    }
    let point = |older: &Point| {
        let setting =
            |column: Column| (column, &*older.setting_or_unset(&column).to_owned().leak());
        hca_point(&hca::POINT.map(setting), 1, 8, 30_000.0)
    };
    let points: Vec<Made> = older.points.iter().take(2).map(point).collect();
    for name in ["base", "new", "other"] {
        run(&folder.join(name), &hca::SCHEMA, &new, &points, 0);
    }
    age(&folder.join("base"), sample, &added);
    for words in ["base new", "new base"] {
        let (text, _) = expect(folder, &format!("compare {words} --json"), 0);
        let found: Value = serde_json::from_str(&text).unwrap();
        let comparison = &found["comparison"];
        assert_eq!(comparison["differs"], json!([]), "{words}");
        assert_eq!(comparison["points"].as_array().unwrap().len(), 2);
        let unrecorded = ["base does not record ", " facts that new has, such as "];
        comparison["warnings"].to_string().has(&unrecorded);
        let settings = comparison["points"][0]["settings"].as_object().unwrap();
        assert_eq!(
            (&settings["srq"], &settings["queue_pairs"]),
            (&json!("off"), &json!("1"))
        );
        assert!(settings.values().all(|text| text != ""), "{settings:?}");
    }
    // What both know still keeps them apart, as does what a later option adds.
    for (what, value, told) in [
        (
            "/machine/kernel_release",
            json!("5.0.0"),
            "machine.kernel_release: ",
        ),
        (
            "/obtained/devices/sender/device/firmware",
            json!("9"),
            "device.firmware: ",
        ),
        (
            "/run/hw_timestamps",
            json!(true),
            "run.hw_timestamps: false and true",
        ),
    ] {
        change_json(&folder.join("other/settings.json"), |document| {
            *document.pointer_mut(what).unwrap() = value;
        });
        let (_, error) = expect(folder, "compare base other", 2);
        error.has(&["not measured alike", told]);
        let back = new.pointer(what).unwrap().clone();
        change_json(&folder.join("other/settings.json"), |document| {
            *document.pointer_mut(what).unwrap() = back;
        });
    }
}

#[test]
fn what_cannot_be_compared_is_told_by_the_exit_code() {
    let folder = runs();
    let folder = folder.path();
    for (words, code, parts) in [
        (
            "nowhere nothing",
            1,
            &["BASE", "nowhere does not exist"][..],
        ),
        ("base same --max-regression 5", 2, &["5%@p50"]),
        (
            "base same --percentiles p42",
            2,
            &["no p42", "latency.p99.99"],
        ),
        ("base same --allow colour", 2, &["--allow", "colour"]),
    ] {
        let (_, error) = expect(folder, &format!("compare {words}"), code);
        error.has(parts);
    }

    // Another machine, whose name would colour the terminal, two settings, and too few rounds.
    let mut other = document(&hca::SCHEMA);
    other["machine"]["hostname"] = json!("\u{1b}[31mred");
    other["run"]["hugepages"] = json!("2M");
    let few = hca_point(&poll("rc", "event"), 1, 2, 30_000.0);
    run(&folder.join("other"), &hca::SCHEMA, &other, &[few], 0);
    let (_, error) = expect(folder, "compare base/rc-busy-busy other", 2);
    error.has(&["no point in common", "--allow poll_recv,poll_comp"]);
    let other = "compare base/rc-busy-busy other";
    let allowed = format!("{other} --allow poll_recv,poll-comp");
    let (_, error) = expect(folder, &allowed, 2);
    error.has(&[
        "run.hugepages: none and 2M",
        "machine.hostname: made-up and",
        "--anyway",
    ]);
    assert!(!error.contains('\u{1b}'), "{error}");
    let (table, warnings) = expect(folder, "compare base/rc-busy-busy other --anyway", 0);
    table.has(&[
        "With 2 to 8 rounds no difference between rc-busy-busy and other can be judged",
        "it takes 5 rounds",
        "hcabench rerun other --rounds 5 --out other-5-rounds",
    ]);
    table.lacks(&["interval", "not judged"]);
    assert!(
        warnings.contains("differ in poll_recv: busy and event") && !warnings.contains('\u{1b}'),
        "{warnings}"
    );
    let judged = format!("{other} --anyway --max-regression 5%@p50");
    let (_, error) = expect(folder, &judged, 1);
    error.has(&["could not be judged", "latency.p50 at rc-busy-busy"]);
}

#[test]
fn command_lines_are_measured_in_turn() {
    let folder = &*temporary("");
    std::fs::create_dir_all(folder.join("full/A")).unwrap();
    // Refused before anything is measured, and by the first round.
    for (words, parts) in [
        ("--run 'queue --count 10'", &["give two of them"][..]),
        (
            "--run 'queue --queue nosuch' --run queue --out both",
            &["nosuch", "A was refused in round 1"],
        ),
        (
            "--run queue --run queue --out full",
            &["holds something already"],
        ),
    ] {
        let (_, error) = expect(folder, &format!("compare {words} --rounds 2"), 2);
        error.has(parts);
    }
}
