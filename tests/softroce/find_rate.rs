//! `--find-rate` of the main job: whatever rate is found, it follows from the rows, and each rate that was tried has one.

use crate::machine::Machine;
use crate::results::Table;
use crate::testing::Has as _;
use serde_json::Value;

/// The limit in nanoseconds: far above what an emulated processor takes, and far below a backlog.
const LIMIT_NS: f64 = 20e6;

#[test]
fn the_highest_rate_of_the_main_job_is_the_one_that_its_rows_show() {
    let machine = Machine::take();
    let out = machine.out("results");
    let words = "--service rc --find-rate p50<20ms,loss<5% --rate 2k,2200 --burst 200 --warmup 0 --rounds 8";
    let ended = machine.ends(words, 0);
    ended.stdout.has(&[
        "highest rate with p50<20ms,loss<5%: ",
        "figure: hcabench plot median",
        "--x rate_per_s --metric intended --percentile p50",
    ]);
    let results = machine.results();
    let runs = Table::read(&out.join("runs.csv"));
    for point in &results.points() {
        let row = results.row_of(point);
        assert_eq!(row.text("status"), "complete");
        let rounds = runs.matching(&[("point", &point.name())]);
        assert_eq!(row.count("rounds"), rounds.len() as u64);
        assert!((1..=8).contains(&rounds.len()), "{row:?}");
        assert!(row.decimal("intended_latency_p50_ns") > 0.0, "{row:?}");
    }
    let settings: Value =
        serde_json::from_slice(&std::fs::read(out.join("settings.json")).unwrap()).unwrap();
    assert_eq!(settings["run"]["find_rate"], "p50<20ms,loss<5%");
    let [search] = &settings["details"]["find_rate"].as_array().unwrap()[..] else {
        panic!("a search: {settings}");
    };
    for probe in search["probes"].as_array().unwrap() {
        let name = probe["point"].as_str().unwrap();
        let rows = runs.matching(&[("point", name)]);
        assert!(rows.len() >= 6, "{probe}");
        let below = |row: &&&crate::results::Row| row.decimal("intended_latency_p50_ns") < LIMIT_NS;
        if probe["is"] == "holds" {
            assert!(
                rows.iter().filter(below).count() > rows.len() / 2,
                "{probe}"
            );
        }
    }
}
