//! `hcabench compare` on real runs: a receiver with other work is told from one without, two equal runs are not.

use std::path::Path;

use crate::machine::Machine;
use crate::program::{Ended, hcabench};
use crate::scratch;

/// Emulated, on a machine that others use, a round may be disturbed by more than is to be found; the intervals are then
/// wide, or the runs were not equal.
const ROUNDS: usize = 6;

/// Each message alone, and many short bursts: what disturbs some of them leaves the others.
const RUN: &str = "--burst 100 --repeat 40 --pause 100us --quiet";

fn measure(folder: &Path, name: &str, options: &str) {
    hcabench(&format!("{RUN} {options}"))
        .out(folder.join(name))
        .run()
        .expect(0);
}

fn compare(folder: &Path, arguments: &str) -> Ended {
    hcabench(&format!("compare {arguments}"))
        .in_folder(folder)
        .run()
}

/// What is said of the median latency.
fn verdict(ended: &Ended) -> String {
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let figure = &document["comparison"]["points"][0]["figures"][0];
    assert_eq!(
        (&figure["of"], &figure["kind"]),
        (&"latency".into(), &"p50".into())
    );
    assert_eq!(figure["drawn"][0]["units"], 40);
    figure["verdict"].as_str().expect("a word").to_owned()
}

#[test]
fn a_receiver_that_is_away_for_20_us_is_told_from_one_that_is_not() {
    let _machine = Machine::take();
    let mut found = Vec::new();
    // The first run in a fresh machine is slower than those that follow.
    measure(scratch().path(), "first", "");
    for _ in 0..ROUNDS {
        let folder = scratch();
        let folder = folder.path();
        measure(folder, "base", "");
        measure(folder, "again", "");
        measure(folder, "away", "--receiver-pause 20us");

        // Another setting: refused, and named.
        let refused = compare(folder, "base away").expect(2);
        assert!(
            refused
                .stderr
                .contains("run.receiver_pause_ns: 0 and 20000")
                && refused.stderr.contains("--anyway"),
            "{}",
            refused.stderr
        );
        let away = compare(folder, "base away --anyway --json --max-regression 5%@p50");
        let again = compare(folder, "base again --json --max-regression 5%@p50");
        let verdicts = [verdict(&away), verdict(&again)];
        // The limit is of completions as well, which the receiver has no part in.
        if verdicts[0] == "worse"
            && away.status.code() == Some(3)
            && verdicts[1] == "no-difference-shown"
            && again.status.code() == Some(0)
        {
            // And the other way round it is better, and no regression.
            let better = compare(folder, "away base --anyway --json --max-regression 5%@p50");
            assert_eq!(verdict(&better), "better");
            return;
        }
        found.push(verdicts);
    }
    panic!("away and again, in {ROUNDS} rounds: {found:?}");
}
