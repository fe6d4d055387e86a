//! What `ci/measure check-ranks` says of the outputs of two runs.

use crate::program::Program;
use crate::testing::{Has as _, temporary};
use std::fs;

type Queues<'a> = &'a [(&'a str, &'a str)];

/// What a run prints of its ranks: queues with the places that are not told apart from each.
fn output(queues: Queues<'_>) -> String {
    let mut text = "queue  through\nbaton  1\n\nranks by throughput\n".to_owned();
    text += "place  queue    median  rounds needed  not distinguished from places\n";
    text += "                   M/s    from place 1\n-----  -----  ------  ---  ---\n";
    for (place, (queue, alike)) in queues.iter().enumerate() {
        let rounds = ["-", "159", ">1000"][place % 3];
        let (place, median) = (place + 1, "12.34");
        text += &format!("{place:>5}  {queue:<16}  {median:>6}  {rounds:>14}  {alike}\n");
    }
    text + "rank: what there is to say.\n"
}

#[track_caller]
fn judged(runs: [Queues<'_>; 2], required: &str, accepted: bool, said: &[&str]) {
    judged_texts(runs.map(output), required, accepted, said);
}

/// The same of what two runs printed.
#[track_caller]
fn judged_texts(texts: [String; 2], required: &str, accepted: bool, said: &[&str]) {
    let folder = &*temporary("");
    for (name, text) in ["one", "other"].iter().zip(texts) {
        fs::write(folder.join(name), text).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/python/ranks.py");
    let words = format!("one other {required}");
    let done = Program::under(&[], script, &words).in_folder(folder).run();
    assert_eq!(done.stderr, "");
    assert_eq!(done.is_success(), accepted, "{}", done.stdout);
    done.stdout.has(said);
}

const CLEAR: [(&str, &str); 5] = [("a", "-"), ("b", "-"), ("c", "-"), ("d", "5"), ("e", "4")];

#[test]
fn two_runs_alike_and_two_that_contradict_each_other() {
    let alike = [
        "alike: throughput: a, b, c",
        "a is told apart from the fifth, e",
    ];
    judged([&CLEAR, &CLEAR], "", true, &alike);
    let mut changed = CLEAR;
    changed.swap(1, 2);
    judged([&CLEAR, &changed], "", false, &["b and c change places"]);
    // Behind the first three it does not matter.
    let mut changed = [("a", "-"), ("b", "-"), ("c", "-"), ("e", "-"), ("d", "-")];
    judged([&changed, &CLEAR], "", true, &[]);
    // One that comes from behind, and is told apart from the first three.
    changed.rotate_right(1);
    judged([&CLEAR, &changed], "", false, &["a and d change places"]);
}

#[test]
fn who_says_that_it_cannot_tell_does_not_contradict() {
    let unsure = [
        ("c", "2..5"),
        ("a", "1, 3..5"),
        ("b", "1, 2, 4, 5"),
        ("e", "1..3, 5"),
        ("d", "1..4"),
    ];
    let said = [
        "not told apart: throughput: a, b, c in one run, c, a, b in the other",
        "c is not told apart from the fifth, d",
    ];
    judged([&CLEAR, &unsure], "", true, &said);
    // Of the places it says that it cannot tell, not of others.
    let half = [
        ("c", "3"),
        ("a", "3"),
        ("b", "1, 2"),
        ("d", "-"),
        ("e", "-"),
    ];
    judged([&CLEAR, &half], "", false, &["a and c change places"]);
    // A queue that missed the load is not ranked, and its run says so.
    judged(
        [&CLEAR, &CLEAR[1..]],
        "",
        true,
        &["ranked in one run only: a"],
    );
}

#[test]
fn what_was_not_ranked_was_not_compared() {
    for (runs, where_not) in [
        ([&[][..], &[]], "either run"),
        ([&CLEAR, &[]], "one run"),
        ([&[], &CLEAR], "one run"),
    ] {
        let expected = format!("NOT RANKED: throughput: no queue in {where_not}");
        judged(runs, "", false, &[&expected]);
    }
}

#[test]
fn that_queues_missed_the_load_has_to_be_said() {
    const LATENCY: &str = "\nranks by median latency\n";
    let said_of =
        |rows: &str| format!("{LATENCY}rank: {rows} of these 5 rows kept the requested load\n");
    let [none, only_one, silent] =
        ["none", "only one", "all"].map(|rows| output(&CLEAR) + &said_of(rows));
    let ranked = output(&CLEAR) + &output(&CLEAR).replace("throughput", "median latency");
    let alone = said_of("none");
    let both = "cannot be told: median latency: no two queues kept the load, as both runs said";
    let nothing = "NOT COMPARED: no ranking has queues in both";
    let not_ranked = "NOT RANKED: median latency: no queue in either run";
    for (texts, fifth, accepted, said) in [
        ([&none, &none], "0", true, both),
        ([&none, &only_one], "0", true, both),
        ([&ranked, &none], "0", true, "as one run said"),
        // Nothing is compared where there is nothing else.
        ([&alone, &alone], "0", false, nothing),
        // On an idle machine they have to keep it.
        ([&none, &none], "1", false, not_ranked),
        // One that ranks nothing without saying why is no such run.
        ([&none, &silent], "0", false, not_ranked),
    ] {
        judged_texts(texts.map(String::clone), fifth, accepted, &[said]);
    }
}

#[test]
fn a_ranking_that_is_in_neither_run_is_missed() {
    judged([&CLEAR, &CLEAR], "0 throughput", true, &[]);
    let both = "0 throughput 'median latency'";
    let said = ["NOT COMPARED", "median latency"];
    judged([&CLEAR, &CLEAR], both, false, &said);
}

#[test]
fn where_the_first_has_to_be_told_apart_from_the_fifth_there_is_a_fifth() {
    judged([&CLEAR, &CLEAR], "1", true, &[]);
    let few = &CLEAR[..4];
    judged([few, few], "", true, &["no fifth, as 4 are ranked"]);
    judged([few, few], "1", false, &[]);
    let mut alike = CLEAR;
    alike[0].1 = "5";
    alike[4].1 = "1, 4";
    judged([&alike, &alike], "", true, &[]);
    let said = ["a is not told apart from the fifth, e"];
    judged([&alike, &CLEAR], "1", false, &said);
}
