//! `hcabench compare` on real runs. How often equal runs are told apart, `ci/measure compare-equals` measures.

use crate::testing::Has as _;
use std::time::Duration;

use crate::machine::Machine;
use crate::program::hcabench;

/// A burst takes 5 ms.
const OPTIONS: &str = "--burst 50 --pause 100us";
/// 100 times the pause of the sender: the median of 50 messages is about 250 ms. Load may delay one round by that, not
/// most of eight.
const AWAY: &str = "--receiver-pause 10ms";
/// Rounds of several points, each in a process of its own, on a loaded machine.
const COMPARED: Duration = Duration::from_secs(400);

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

#[test]
fn a_receiver_that_is_away_is_told_from_one_that_is_not() {
    let machine = Machine::take();
    let both = machine.out("both");
    let found = hcabench("compare --rounds 8 --json --quiet")
        .word("--run")
        .word(OPTIONS)
        .word("--run")
        .word(&format!("{OPTIONS} {AWAY}"))
        .out(&both)
        .start()
        .wait(COMPARED)
        .expect(0);
    let verdicts_of_turns = verdicts(&found.stdout);
    assert!(
        verdicts_of_turns.contains(&("latency.p50".to_owned(), "worse".to_owned())),
        "{verdicts_of_turns:?}"
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
