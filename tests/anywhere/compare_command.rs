//! `hcabench compare` as its user has it: exit codes, tables, JSON, and what it refuses.

use crate::common;
use crate::made_up_rounds;
use std::path::Path;

use hcabench::results::schema::{Column, hca};
use serde_json::json;

use common::expect;
use made_up_rounds::{Made, document, hca_point, run};

fn poll(service: &'static str, poll: &'static str) -> [(Column, &'static str); 3] {
    [
        (hca::SERVICE, service),
        (hca::POLL_RECV, poll),
        (hca::POLL_COMP, poll),
    ]
}

/// Runs of eight rounds in turn: two that are alike, and one that is slower.
fn runs(folder: &Path) {
    let document = document(&hca::SCHEMA);
    for (second, (name, level)) in [("base", 30_000.0), ("same", 30_000.0), ("slow", 60_000.0)]
        .into_iter()
        .enumerate()
    {
        let point = |service| hca_point(&poll(service, "busy"), second as u64, 8, level);
        run(
            &folder.join(name),
            &hca::SCHEMA,
            &document,
            &["rc", "uc"].map(point),
            10 * second,
        );
    }
}

#[test]
fn two_runs_are_compared_round_by_round() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    runs(folder);
    let limits = "--max-regression 10%@latency.p50,10%@completion.p50";
    let (table, warnings) = expect(folder, &format!("compare base same {limits}"), 0);
    for words in [
        "latency.p50",
        "completion.p99",
        "8 figures",
        "no difference shown",
        "limit 10%@latency.p50: kept by 2 of 2",
    ] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    assert!(
        table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    assert_eq!(warnings, "");

    let (table, _) = expect(folder, &format!("compare base slow {limits}"), 3);
    assert!(
        table.contains("worse, BROKEN")
            && table.contains("limit 10%@completion.p50: kept by 2 of 2"),
        "{table}"
    );
    let (text, _) = expect(folder, &format!("compare base slow {limits} --json"), 3);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["verdict"]["broken"], true);
    let points = document["comparison"]["points"].as_array().unwrap();
    let figures: Vec<_> = points
        .iter()
        .flat_map(|point| point["figures"].as_array().unwrap())
        .collect();
    assert_eq!(figures.len(), 8);
    for figure in figures {
        let is_latency = figure["figure"].as_str().unwrap().starts_with("latency.");
        assert_eq!(
            figure["verdict"],
            if is_latency {
                "worse"
            } else {
                "no-difference-shown"
            },
            "{figure}"
        );
        let interval = figure["interval"].as_array().unwrap();
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        assert!(number(&interval[0]) <= number(&figure["shift"]), "{figure}");
        assert!(
            ["base", "new", "p"].iter().all(|key| figure[*key].is_f64()),
            "{figure}"
        );
        assert!(
            figure["point"].as_str().unwrap().ends_with("-busy-busy"),
            "{figure}"
        );
    }
    let (nothing, _) = expect(folder, "compare base slow --quiet", 0);
    assert_eq!(nothing, "");
}

#[test]
fn the_points_of_a_sweep_are_compared_by_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let point = |(service, word)| {
        hca_point(
            &poll(service, word),
            5,
            8,
            if word == "event" { 45_000.0 } else { 30_000.0 },
        )
    };
    let points: [Made; 4] = [
        ("rc", "busy"),
        ("rc", "event"),
        ("uc", "busy"),
        ("uc", "event"),
    ]
    .map(point);
    run(
        &folder.join("sweep"),
        &hca::SCHEMA,
        &document(&hca::SCHEMA),
        &points,
        0,
    );
    let (table, _) = expect(folder, "compare sweep --by poll-recv", 0);
    for words in [
        "by: BASE is poll_recv busy; poll_comp goes along with it",
        "4 worse",
        "event",
    ] {
        assert!(table.contains(words), "{words} is not in\n{table}");
    }
    let (_, error) = expect(folder, "compare sweep --by size", 2);
    assert!(
        error.contains("has one value") && error.contains("service, poll_recv, poll_comp"),
        "{error}"
    );
    // Limits are of the levels, then.
    expect(
        folder,
        "compare sweep --by poll_recv --max-regression 10%@latency.p50",
        3,
    );
}

#[test]
fn what_cannot_be_compared_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    runs(folder);
    let (_, error) = expect(folder, "compare nowhere nothing", 1);
    assert!(
        error.contains("BASE") && error.contains("nowhere does not exist"),
        "{error}"
    );
    let (_, error) = expect(folder, "compare base same --max-regression 5", 2);
    assert!(error.contains("5%@p50"), "{error}");
    let (_, error) = expect(folder, "compare base same --percentiles p42", 2);
    assert!(
        error.contains("no p42") && error.contains("latency.p99.99"),
        "{error}"
    );
    let (_, error) = expect(folder, "compare base same --allow colour", 2);
    assert!(
        error.contains("--allow") && error.contains("colour"),
        "{error}"
    );

    // Another machine, whose name would colour the terminal, two settings, and too few rounds.
    let mut other = document(&hca::SCHEMA);
    other["machine"]["hostname"] = json!("\u{1b}[31mred");
    other["run"]["hugepages"] = json!("2M");
    let few = hca_point(&poll("rc", "event"), 1, 2, 30_000.0);
    run(&folder.join("other"), &hca::SCHEMA, &other, &[few], 0);
    let (_, error) = expect(folder, "compare base/rc-busy-busy other", 2);
    assert!(
        error.contains("no point in common") && error.contains("--allow poll_recv,poll_comp"),
        "{error}"
    );
    let (_, error) = expect(
        folder,
        "compare base/rc-busy-busy other --allow poll_recv,poll-comp",
        2,
    );
    for words in [
        "run.hugepages: none and 2M",
        "machine.hostname: made-up and",
        "--anyway",
    ] {
        assert!(error.contains(words), "{words} is not in {error}");
    }
    assert!(!error.contains('\u{1b}'), "{error}");
    let (table, warnings) = expect(folder, "compare base/rc-busy-busy other --anyway", 0);
    assert!(
        table.contains("not judged") && table.contains("it takes 5 of either"),
        "{table}"
    );
    assert!(
        warnings.contains("differ in poll_recv: busy and event") && !warnings.contains('\u{1b}'),
        "{warnings}"
    );
    let (_, error) = expect(
        folder,
        "compare base/rc-busy-busy other --anyway --max-regression 5%@p50",
        1,
    );
    assert!(
        error.contains("could not be judged") && error.contains("latency.p50 at rc-busy-busy"),
        "{error}"
    );
}

#[test]
fn command_lines_are_measured_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Refused before anything is measured, and by the first round.
    let (_, error) = expect(folder, "compare --run 'queue --count 10' --rounds 2", 2);
    assert!(error.contains("give two of them"), "{error}");
    let (_, error) = expect(
        folder,
        "compare --run 'queue --queue nosuch' --run queue --rounds 2 --out both",
        2,
    );
    assert!(
        error.contains("nosuch") && error.contains("A was refused in round 1"),
        "{error}"
    );
    std::fs::create_dir_all(folder.join("full/A")).unwrap();
    let (_, error) = expect(
        folder,
        "compare --run queue --run queue --rounds 2 --out full",
        2,
    );
    assert!(error.contains("holds something already"), "{error}");
}
