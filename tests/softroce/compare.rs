//! `hcabench compare` on real runs: a receiver with other work is told from one without.
//!
//! How often equal runs are told apart is a matter of the simulated runs in `src/stats/bootstrap/tests.rs`: on a machine that
//! others use, two equal runs really differ. Here it is printed.

use std::path::Path;

use crate::machine::Machine;
use crate::program::{Ended, hcabench};
use crate::scratch;

/// A round may be disturbed by more than is to be found. It is found when so many rounds say so, for each that says the
/// contrary. Were the receivers alike, and all rounds disturbed so that they said one or the other, one test of 16 would
/// get there.
const WORSE: usize = 6;
/// A test that has not got there after so many rounds fails: on a loaded machine most of them show nothing.
const ROUNDS: usize = 24;

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

/// What is said of the median latency, by words that break the limit if it is worse.
fn verdict(folder: &Path, runs: &str) -> String {
    let ended = compare(
        folder,
        &format!("{runs} --anyway --json --max-regression 5%@p50"),
    );
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let figure = &document["comparison"]["points"][0]["figures"][0];
    assert_eq!(
        (&figure["of"], &figure["kind"]),
        (&"latency".into(), &"p50".into())
    );
    assert_eq!(figure["drawn"][0]["unit"], "repetition");
    let word = figure["verdict"].as_str().expect("a word");
    let change = figure["change_percent"].as_f64().expect("a number");
    assert_eq!(
        figure["limit"]["broken"],
        word == "worse" && change > 5.0,
        "{figure}"
    );
    // The limit is of completions as well, which the receiver has no part in.
    let broken = document["verdict"]["broken"].as_bool().expect("told");
    let code = if broken { 3 } else { 0 };
    ended.expect(code);
    println!("{runs}: {change:+.1} %, {word}");
    word.to_owned()
}

#[test]
fn a_receiver_that_is_away_for_20_us_is_told_from_one_that_is_not() {
    let _machine = Machine::take();
    let folder = scratch();
    let folder = folder.path();
    // The first run in a fresh machine is slower than those that follow.
    measure(folder, "first", "");
    let (mut worse, mut better, mut contrary, mut equal) = (0, 0, 0, 0);
    for round in 0..ROUNDS {
        let (base, away) = (format!("base{round}"), format!("away{round}"));
        measure(folder, &base, "");
        measure(folder, &away, "--receiver-pause 20us");
        if round == 0 {
            // Another setting: refused, and named.
            let refused = compare(folder, &format!("{base} {away}")).expect(2);
            assert!(
                refused
                    .stderr
                    .contains("run.receiver_pause_ns: 0 and 20000")
                    && refused.stderr.contains("--anyway"),
                "{}",
                refused.stderr
            );
        } else {
            let before = format!("base{}", round - 1);
            let said = verdict(folder, &format!("{before} {base}"));
            equal += usize::from(said == "no-difference-shown");
        }
        let said = verdict(folder, &format!("{base} {away}"));
        // And the other way round.
        let back = verdict(folder, &format!("{away} {base}"));
        worse += usize::from(said == "worse");
        better += usize::from(back == "better");
        contrary += usize::from(said.starts_with("better") || back == "worse");
        println!(
            "round {}: away worse in {worse}, without it better in {better}, the contrary in {contrary}; equal runs without \
             a difference {equal} of {round}",
            round + 1
        );
        if worse.min(better) >= WORSE * contrary.max(1) {
            return;
        }
    }
    panic!(
        "of {ROUNDS} rounds, {worse} found it worse, {better} better without, {contrary} the contrary"
    );
}
