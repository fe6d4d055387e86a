//! What `ci/measure check-ranks` says of the outputs of two runs.

use std::fs;
use std::process::Command;

/// What a run prints of its ranks: queues with the places that are not told apart from each.
fn output(queues: &[(&str, &str)]) -> String {
    let mut text = "queue  through\nbaton  1\n\nranks by throughput\n".to_owned();
    text += "place  queue    median  rounds to tell  not told apart from places\n";
    text += "                   M/s    from place 1\n-----  -----  ------  ---  ---\n";
    for (place, (queue, alike)) in queues.iter().enumerate() {
        let rounds = ["-", "159", ">1000"][place % 3];
        let (place, median) = (place + 1, "12.34");
        text += &format!("{place:>5}  {queue:<16}  {median:>6}  {rounds:>14}  {alike}\n");
    }
    text + "rank: what there is to say.\n"
}

/// Whether the two are accepted, and what is said.
fn judged(one: &[(&str, &str)], other: &[(&str, &str)]) -> (bool, String) {
    judged_with(one, other, &[])
}

/// The same, with what has to be told apart and to be there.
fn judged_with(one: &[(&str, &str)], other: &[(&str, &str)], required: &[&str]) -> (bool, String) {
    judged_texts([output(one), output(other)], required)
}

/// The same of what two runs printed.
fn judged_texts(texts: [String; 2], required: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one", "other"].map(|name| folder.path().join(name));
    for (path, text) in paths.iter().zip(texts) {
        fs::write(path, text).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/python/ranks.py");
    let done = Command::new(script)
        .args(&paths)
        .args(required)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    (done.status.success(), said)
}

const CLEAR: [(&str, &str); 5] = [("a", "-"), ("b", "-"), ("c", "-"), ("d", "5"), ("e", "4")];

#[test]
fn two_runs_alike_and_two_that_contradict_each_other() {
    let (accepted, said) = judged(&CLEAR, &CLEAR);
    assert!(
        accepted && said.contains("alike: throughput: a, b, c"),
        "{said}"
    );
    assert!(said.contains("a is told apart from the fifth, e"), "{said}");
    let mut changed = CLEAR;
    changed.swap(1, 2);
    let (accepted, said) = judged(&CLEAR, &changed);
    assert!(
        !accepted && said.contains("b and c change places"),
        "{said}"
    );
    // Behind the first three it does not matter.
    let mut changed = [("a", "-"), ("b", "-"), ("c", "-"), ("e", "-"), ("d", "-")];
    let (accepted, said) = judged(&changed, &CLEAR);
    assert!(accepted, "{said}");
    // One that comes from behind, and is told apart from the first three.
    changed.rotate_right(1);
    let (accepted, said) = judged(&CLEAR, &changed);
    assert!(
        !accepted && said.contains("a and d change places"),
        "{said}"
    );
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
    let (accepted, said) = judged(&CLEAR, &unsure);
    assert!(
        accepted
            && said
                .contains("not told apart: throughput: a, b, c in one run, c, a, b in the other"),
        "{said}"
    );
    assert!(
        said.contains("c is not told apart from the fifth, d"),
        "{said}"
    );
    // Of the places it says that it cannot tell, not of others.
    let half = [
        ("c", "3"),
        ("a", "3"),
        ("b", "1, 2"),
        ("d", "-"),
        ("e", "-"),
    ];
    let (accepted, said) = judged(&CLEAR, &half);
    assert!(
        !accepted && said.contains("a and c change places"),
        "{said}"
    );
    // A queue that missed the load is not ranked, and its run says so.
    let (accepted, said) = judged(&CLEAR, &CLEAR[1..]);
    assert!(
        accepted && said.contains("ranked in one run only: a"),
        "{said}"
    );
}

#[test]
fn what_was_not_ranked_was_not_compared() {
    for (one, other, where_not) in [
        (&[][..], &[][..], "either run"),
        (&CLEAR, &[], "one run"),
        (&[], &CLEAR, "one run"),
    ] {
        let (accepted, said) = judged(one, other);
        let expected = format!("NOT RANKED: throughput: no queue in {where_not}");
        assert!(!accepted && said.contains(&expected), "{said}");
    }
}

#[test]
fn that_queues_missed_the_load_has_to_be_said() {
    const LATENCY: &str = "\nranks by median latency\n";
    let said_of = |rows: &str| {
        format!("{LATENCY}rank: {rows} of these 5 rows kept the load that was asked for\n")
    };
    let none = output(&CLEAR) + &said_of("none");
    let accepted_as = |texts: [&String; 2], fifth: &str, what: &str| {
        let (accepted, said) = judged_texts(texts.map(String::clone), &[fifth]);
        assert!(said.contains(what), "{said}");
        accepted
    };
    let both = "cannot be told: median latency: no two queues kept the load, as both runs said";
    assert!(accepted_as([&none, &none], "0", both));
    let only_one = output(&CLEAR) + &said_of("only one");
    assert!(accepted_as([&none, &only_one], "0", both));
    let ranked = output(&CLEAR) + &output(&CLEAR).replace("throughput", "median latency");
    assert!(accepted_as([&ranked, &none], "0", "as one run said"));
    // Nothing is compared where there is nothing else.
    let alone = said_of("none");
    assert!(!accepted_as(
        [&alone, &alone],
        "0",
        "NOT COMPARED: no ranking has queues in both"
    ));
    // On an idle machine they have to keep it.
    let not_ranked = "NOT RANKED: median latency: no queue in either run";
    assert!(!accepted_as([&none, &none], "1", not_ranked));
    // One that ranks nothing without saying why is no such run.
    let silent = output(&CLEAR) + &said_of("all");
    assert!(!accepted_as([&none, &silent], "0", not_ranked));
}

#[test]
fn a_ranking_that_is_in_neither_run_is_missed() {
    let (accepted, said) = judged_with(&CLEAR, &CLEAR, &["0", "throughput"]);
    assert!(accepted, "{said}");
    let (accepted, said) = judged_with(&CLEAR, &CLEAR, &["0", "throughput", "median latency"]);
    assert!(
        !accepted && said.contains("NOT COMPARED") && said.contains("median latency"),
        "{said}"
    );
}

#[test]
fn where_the_first_has_to_be_told_apart_from_the_fifth_there_is_a_fifth() {
    let (accepted, said) = judged_with(&CLEAR, &CLEAR, &["1"]);
    assert!(accepted, "{said}");
    let few = &CLEAR[..4];
    let (accepted, said) = judged(few, few);
    assert!(
        accepted && said.contains("no fifth, as 4 are ranked"),
        "{said}"
    );
    assert!(!judged_with(few, few, &["1"]).0);
    let mut alike = CLEAR;
    alike[0].1 = "5";
    alike[4].1 = "1, 4";
    assert!(judged(&alike, &alike).0);
    let (accepted, said) = judged_with(&alike, &CLEAR, &["1"]);
    assert!(
        !accepted && said.contains("a is not told apart from the fifth, e"),
        "{said}"
    );
}
