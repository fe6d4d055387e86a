//! `hcabench compare` on real runs. How often equal runs are told apart, `ci/measure compare-equals` measures.

use crate::testing::Has as _;
use std::path::Path;
use std::time::Duration;

use crate::machine::Machine;
use crate::program::hcabench;
use crate::results::Results;

/// Messages of a burst, and those that were sent before one that is in its middle.
const BURST: u32 = 50;
const MIDDLE: f64 = 25.0;
/// Rounds of several points, each in a process of its own, on a loaded machine.
const COMPARED: Duration = Duration::from_secs(400);
/// Between the messages.
const PAUSE_US: f64 = 100.0;

fn verdicts(text: &str) -> Vec<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let points = document["comparison"]["points"]
        .as_array()
        .expect("points")
        .clone();
    let figures = points
        .iter()
        .flat_map(|point| point["figures"].as_array().expect("figures"));
    let text = |value: &serde_json::Value| value.as_str().expect("a word").to_owned();
    figures
        .map(|figure| (text(&figure["figure"]), text(&figure["verdict"])))
        .collect()
}

/// What nine of ten messages take here, in microseconds.
fn usual_p90_us(folder: &Path, options: &str) -> f64 {
    let out = folder.join("usual");
    hcabench(&format!("{options} --quiet")).out(&out).ends(0);
    Results::at(out).summary().rows[0].decimal("latency_p90_ns") / 1e3
}

#[test]
fn a_receiver_that_is_away_is_told_from_one_that_is_not() {
    let machine = Machine::take();
    let folder = machine.path();
    let options = format!("--burst {BURST} --pause {PAUSE_US}us");
    // Away for longer than the sender pauses: those in the middle of a burst are late by ten times what others are.
    let p90 = usual_p90_us(folder, &options);
    let away_us = (PAUSE_US + 10.0 * p90 / MIDDLE).ceil();
    let both = folder.join("both");
    let found = hcabench("compare --rounds 8 --json --quiet")
        .word("--run")
        .word(&options)
        .word("--run")
        .word(&format!("{options} --receiver-pause {away_us}us"))
        .out(&both)
        .start()
        .wait(COMPARED)
        .expect(0);
    let verdicts_of_turns = verdicts(&found.stdout);
    assert!(
        verdicts_of_turns.contains(&("latency.p50".to_owned(), "worse".to_owned())),
        "away for {away_us} us: {verdicts_of_turns:?}"
    );
    // The same two folders, without leave to differ.
    let refused = hcabench("compare A B").in_folder(&both).ends(2);
    refused.stderr.has(&["receiver_pause", "--allow"]);
    let back = hcabench("compare B A --allow receiver-pause --json")
        .in_folder(&both)
        .ends(0);
    assert!(verdicts(&back.stdout).contains(&("latency.p50".to_owned(), "better".to_owned())));
}

#[test]
fn a_sweep_is_compared_by_how_the_receiver_waits() {
    let machine = Machine::take();
    let out = machine.out("sweep");
    hcabench("--service rc,uc --poll busy,event --burst 100 --pause 200us --rounds 8 --quiet")
        .out(&out)
        .start()
        .wait(COMPARED)
        .expect(0);
    let found = hcabench("compare sweep --by poll_recv --json")
        .in_folder(machine.path())
        .ends(0);
    let verdicts = verdicts(&found.stdout);
    assert!(
        verdicts.len() >= 8 && verdicts.iter().all(|(_, verdict)| verdict != "not-judged"),
        "{verdicts:?}"
    );
}
