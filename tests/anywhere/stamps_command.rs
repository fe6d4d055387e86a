//! A run with the adapters' stamps of completions, as a user shows and reports it.

use std::fs;
use std::path::Path;

use crate::common::{ends, hcabench};
use crate::made_up_run::{MadeRow, hca_row, run_of};
use crate::testing::Has as _;
use hcabench::results::schema::hca::{SCHEMA, comp_lag, recv_lag};

/// In one round each: times from the adapter to t_recv around these, and to t_comp of the first only.
fn run(around: &[f64]) -> tempfile::TempDir {
    let latencies: Vec<Option<i64>> = (0..100).map(|one| Some(1500 + one)).collect();
    let points: Vec<_> = (0..around.len())
        .map(|place| ("rc", 8 << place, 100, vec![&latencies[..]]))
        .collect();
    let mut rows: Vec<MadeRow<'_>> = points.iter().map(hca_row).collect();
    for (place, (row, around)) in rows.iter_mut().zip(around).enumerate() {
        let lags = [&recv_lag::ALL, &comp_lag::ALL];
        for columns in &lags[..if place == 0 { 2 } else { 1 }] {
            for (column, times) in columns.iter().zip([-0.1, 1.0, 2.0, 3.0, 4.0, 50.0, 0.3]) {
                row.rounds[0].set(column, around * times);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    run_of(&folder.path().join("run"), &SCHEMA, &rows, false);
    folder
}

/// On a wide terminal, with single spaces.
fn shown(folder: &Path, words: &str) -> String {
    let ended = hcabench(folder, words).env("COLUMNS", "300").ends(0);
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn the_times_from_the_adapter_to_us_are_shown_and_reported_in_words() {
    let one = run(&[100.0]);
    let words =
        "p50 100 ns, p99 300 ns, p99.9 400 ns, at most 5.00 us, by stamps that may be off by 30 ns";
    let text = shown(one.path(), "show run");
    text.has(&["Adapter to t_recv", "Adapter to t_comp", words]);
    text.has(&["hw to t_recv p50", "hw to t_comp p99", "0.100", "0.300"]);
    ends(one.path(), "report run --out page.html", 0);
    let page = fs::read_to_string(one.path().join("page.html")).unwrap();
    page.has(&[
        "Adapter to t_recv",
        "p50 100 ns, p99 300 ns",
        "hw to t_recv p50",
    ]);
    let two = run(&[100.0, 200.0]);
    let text = shown(two.path(), "show run");
    text.has(&["p50 100 ns to 200 ns, p99 300 ns to 600 ns", "in 2 points"]);
}

#[test]
fn a_run_without_such_stamps_shows_nothing_of_them() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/notebooks/sample");
    let text = shown(sample.as_ref(), "show hca --all");
    text.lacks(&["Adapter to", "hw to"]);
}
