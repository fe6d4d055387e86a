//! The report of the CPUs of a machine.

use super::*;
use crate::made_up_run::cores::cores_run;

#[test]
fn kinds_of_pairs_have_their_figures_and_two_matrices() {
    let folder = tempfile::tempdir().unwrap();
    let page = page_of_run(&cores_run(&folder.path().join("run"), 6, false));
    page.opening.has(&[
        "The time of a cache line between two CPUs was measured",
        "6 rounds at 3 points, which differ in cores",
        "at the best of 3 points",
        "smt-siblings",
    ]);
    assert_eq!(page.answer.sheet.rows.len(), 3);
    let titles: Vec<&str> = page
        .figures
        .iter()
        .map(|figure| figure.title.as_str())
        .collect();
    let expected = [
        "Half of a round trip of each pair",
        "One-way latency of each direction",
    ];
    assert_eq!(titles, expected);
    untold(&page.notes, "is not here");
}
