//! Runs of RDMA reads and atomics, of which nothing arrives, as a user draws, reports and compares them.

use crate::made_up_run;
use std::path::Path;
use std::process::{Command, Output};

use hcabench::results::schema::hca::SCHEMA;
use made_up_run::{hca_row, request_row, run_of};

fn hcabench(words: &str) -> Output {
    let mut command = Command::new(crate::common::program());
    command
        .args(words.split_ascii_whitespace())
        .output()
        .unwrap()
}

/// What it says; it must end with `code`.
fn said(words: &str, code: i32) -> String {
    let output = hcabench(words);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words}: {text}");
    text
}

/// The text of a figure that is drawn of `run`.
fn drawn(figure: &str, run: &str, folder: &Path) -> String {
    let out = folder.join("figure.svg");
    said(&format!("plot {figure} {run} --out {}", out.display()), 0);
    std::fs::read_to_string(out).unwrap()
}

/// Completion latencies of six rounds of a hundred requests.
fn rounds(around: i64) -> Vec<Vec<i64>> {
    let of_round = |round: i64| (0..100).map(|one| around + 7 * round + one % 10).collect();
    (0..6).map(of_round).collect()
}

const FIGURES: [&str; 5] = ["median", "histogram", "percentiles", "ecdf", "time"];

#[test]
fn a_run_of_reads_only_is_drawn_by_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        request_row("read", 8, rounds(2000)),
        request_row("read", 64, rounds(2500)),
    ];
    let run = run_of(&folder.path().join("reads"), &SCHEMA, &rows, false);
    let run = run.display().to_string();
    for figure in FIGURES {
        let text = drawn(figure, &run, folder.path());
        assert!(
            text.to_lowercase().contains("completion latency"),
            "{figure}"
        );
        assert!(!text.contains("lost"), "{figure}: nothing was to arrive");
    }
    let out = folder.path().join("figure.svg");
    let asked = said(
        &format!("plot median {run} --metric latency --out {}", out.display()),
        2,
    );
    for part in ["latency", "reads and atomics", "--metric completion"] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[test]
fn a_surface_of_reads_has_wrong_answers_as_its_colour() {
    let folder = tempfile::tempdir().unwrap();
    let short = |rounds: Vec<Vec<i64>>| rounds.into_iter().map(|one| one[..50].to_vec());
    let rows = [8, 64, 512].into_iter().flat_map(|size| {
        let (long, around) = (rounds(2000 + i64::from(size)), 3000 + i64::from(size));
        let mut shorter = request_row("read", size, short(rounds(around)).collect());
        shorter.name += "-burst50";
        [request_row("read", size, long), shorter]
    });
    let rows: Vec<_> = rows.collect();
    let run = run_of(&folder.path().join("reads"), &SCHEMA, &rows, false);
    let text = drawn("surface", &run.display().to_string(), folder.path());
    assert!(text.contains("ompletion latency"), "{text}");
    assert!(text.contains("wrong answers"), "{text}");
}

#[test]
fn of_a_run_of_both_the_messages_are_drawn_and_the_others_named() {
    let folder = tempfile::tempdir().unwrap();
    let latencies: Vec<Option<i64>> = (0..100).map(|one| Some(1500 + one)).collect();
    let messages = ("rc", 8, 100, vec![&latencies[..]; 6]);
    let rows = [
        hca_row(&messages),
        request_row("fetch-add", 8, rounds(2000)),
    ];
    let run = run_of(&folder.path().join("both"), &SCHEMA, &rows, false);
    let run = run.display().to_string();
    for figure in FIGURES {
        let text = drawn(figure, &run, folder.path()).to_lowercase();
        assert!(text.contains("one-way latency"), "{figure}");
        assert!(
            text.contains("rc-fetch-add-8b"),
            "{figure} names what is not in it"
        );
        let text = drawn(
            &format!("{figure} --metric completion"),
            &run,
            folder.path(),
        );
        assert!(
            !text.contains("not drawn") && text.contains("fetch-add"),
            "{figure}"
        );
    }
}

#[test]
fn a_run_of_reads_is_reported_and_compared_by_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, around: i64| {
        let rows = [request_row("read", 8, rounds(around))];
        let path = run_of(&folder.path().join(name), &SCHEMA, &rows, false);
        path.display().to_string()
    };
    let (base, slower) = (run("base", 2000), run("slower", 3000));
    let page = folder.path().join("page.html");
    said(&format!("report {base} --out {}", page.display()), 0);
    let page = std::fs::read_to_string(page).unwrap();
    let opening = "Median completion latency 2.02 µs";
    assert!(page.contains(opening), "{opening} is not on the page");
    assert!(!page.contains("is not here"), "each figure is there");
    let text = said(&format!("compare {base} {slower}"), 0);
    assert!(text.contains("completion.p50"), "{text}");
    assert!(!text.contains("lost"), "{text}");
    // A limit holds for what there is.
    let text = said(
        &format!("compare {base} {slower} --max-regression 5%@completion.p50"),
        3,
    );
    assert!(text.contains("completion.p50"), "{text}");
}
