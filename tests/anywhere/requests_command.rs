//! Runs of RDMA reads and atomics, of which nothing arrives, as a user draws, reports and compares them.

use crate::made_up_run;
use crate::testing::Has as _;
use std::fs;
use std::path::Path;

use crate::common::ends;
use crate::common::figures::{OUT, drawn, not_drawn};
use hcabench::results::schema::hca::SCHEMA;
use made_up_run::{MadeRow, hca_row, request_row, run_of};

fn run(rows: &[MadeRow<'_>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run_of(&folder.path().join("run"), &SCHEMA, rows, false);
    folder
}

fn text_of(folder: &Path, words: &str) -> String {
    drawn(folder, words);
    fs::read_to_string(folder.join(OUT)).unwrap()
}

/// Completion latencies of six rounds of a hundred requests.
fn rounds(around: i64) -> Vec<Vec<i64>> {
    let of_round = |round: i64| (0..100).map(|one| around + 7 * round + one % 10).collect();
    (0..6).map(of_round).collect()
}

const FIGURES: [&str; 5] = ["median", "histogram", "percentiles", "ecdf", "time"];

#[test]
fn a_run_of_reads_only_is_drawn_by_its_completions() {
    let of = |size, around| request_row("read", size, rounds(around));
    let folder = run(&[of(8, 2000), of(64, 2500)]);
    for figure in FIGURES {
        let text = text_of(folder.path(), &format!("{figure} run"));
        text.to_lowercase().has(&["completion latency"]);
        // Nothing was to arrive.
        text.lacks(&["lost"]);
    }
    let parts = ["latency", "reads and atomics", "--metric completion"];
    not_drawn(folder.path(), "median run --metric latency", 2, &parts);
}

#[test]
fn a_surface_of_reads_has_wrong_answers_as_its_colour() {
    let short = |rounds: Vec<Vec<i64>>| rounds.into_iter().map(|one| one[..50].to_vec());
    let rows = [8, 64, 512].into_iter().flat_map(|size| {
        let (long, around) = (rounds(2000 + i64::from(size)), 3000 + i64::from(size));
        let mut shorter = request_row("read", size, short(rounds(around)).collect());
        shorter.name += "-burst50";
        [request_row("read", size, long), shorter]
    });
    let folder = run(&rows.collect::<Vec<_>>());
    text_of(folder.path(), "surface run").has(&["ompletion latency", "wrong answers"]);
}

#[test]
fn of_a_run_of_both_the_messages_are_drawn_and_the_others_named() {
    let latencies: Vec<Option<i64>> = (0..100).map(|one| Some(1500 + one)).collect();
    let messages = ("rc", 8, 100, vec![&latencies[..]; 6]);
    let requests = request_row("fetch-add", 8, rounds(2000));
    let folder = run(&[hca_row(&messages), requests]);
    for figure in FIGURES {
        let text = text_of(folder.path(), &format!("{figure} run")).to_lowercase();
        text.has(&["one-way latency", "rc-fetch-add-8b"]);
        let text = text_of(folder.path(), &format!("{figure} --metric completion run"));
        text.has(&["fetch-add"]);
        text.lacks(&["not drawn"]);
    }
}

#[test]
fn a_run_of_reads_is_reported_and_compared_by_its_completions() {
    let base = run(&[request_row("read", 8, rounds(2000))]);
    let slower = run(&[request_row("read", 8, rounds(3000))]);
    let folder = base.path();
    ends(folder, "report run --out page.html", 0);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    page.has(&["Median completion latency 2.02 µs"]);
    // Each figure is there.
    page.lacks(&["is not here"]);
    let compare = format!("compare run {}/run", slower.path().display());
    let compared = ends(folder, &compare, 0);
    compared.stdout.has(&["completion.p50"]);
    (compared.stdout + &compared.stderr).lacks(&["lost"]);
    // A limit holds for what there is.
    let limit = format!("{compare} --max-regression 5%@completion.p50");
    ends(folder, &limit, 3).stdout.has(&["completion.p50"]);
}
