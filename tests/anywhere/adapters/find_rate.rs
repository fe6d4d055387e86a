//! `--find-rate` of the HCA benchmark. No latency is below a nanosecond, so that no rate holds, however long it takes.

use super::Host;
use crate::common::{figure, json};

#[test]
fn the_highest_rate_is_searched_by_the_latency_from_the_intended_time() {
    let words = "--service rc,ud --find-rate p99<1ns,loss<50% --rate 5k,20k --burst 100 --warmup 0 --rounds 6";
    let measured = Host::with("connectx-roce").measured(words);
    let rows = measured.rows();
    assert!(rows.len() >= 2, "{rows:?}");
    for row in &rows {
        assert_eq!((&*row["rounds"], &*row["status"]), ("6", "complete"));
        assert!(figure(row, "intended_latency_p99_ns") > 1.0, "{row:?}");
        assert!((5e3..=2e4).contains(&figure(row, "rate_per_s")), "{row:?}");
    }
    let settings = json(&measured.folder.join("settings.json"));
    assert_eq!(settings["run"]["find_rate"], "p99<1ns,loss<50%");
    let found = settings["details"]["find_rate"].as_array().unwrap().iter();
    let of: Vec<&str> = found.map(|it| it["of"].as_str().unwrap()).collect();
    assert_eq!(of, ["service rc", "service ud"]);
    let findings = measured.findings();
    assert!(findings.contains_key("rate-not-found"), "{findings:?}");
}
