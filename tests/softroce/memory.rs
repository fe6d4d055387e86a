//! Locked memory and huge pages.

use crate::machine::{HugePages, Machine};
use crate::program::{Program, hcabench};
use crate::results::Results;

#[test]
fn a_memlock_limit_that_is_too_small_is_told_with_what_is_needed() {
    let machine = Machine::take();
    let out = machine.out("results");
    let program = &crate::program::path();
    // Root without the capability that puts it above the limit.
    let starter = [
        "setpriv",
        "--bounding-set",
        "-ipc_lock",
        "prlimit",
        "--memlock=8388608:8388608",
    ];
    let ended = Program::under(&starter, program, "--burst 8192 --size 32768")
        .out(&out)
        .ends(1)
        .says(&["memlock limit is 8", "are needed", "ulimit -l"]);
    // Two buffers of 256 MiB are the least; mlockall alone would have asked for less.
    let needed = ended.stderr.split(" are needed").next().unwrap();
    let needed: f64 = needed
        .rsplit(", ")
        .next()
        .unwrap()
        .trim_end_matches(" MiB")
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    assert!(needed > 512.0, "{needed} MiB");
    assert!(!out.exists());
}

#[test]
fn huge_pages_that_are_required_and_not_there_are_told_by_their_number() {
    let machine = Machine::take();
    let out = machine.out("results");
    let arguments = "--hugepages required --service uc,ud --burst 100,2000 --size 1024";
    let refused = |free: u32| {
        let ended = machine.ends(arguments, 1);
        assert!(!out.exists());
        let free = format!("{free} are free");
        let ended = ended.says(&["--hugepages required", "ud-send-1024B-burst2000", &free]);
        let (_, advised) = ended.stderr.split_once("vm.nr_hugepages=").unwrap();
        let digits = |letter: char| !letter.is_ascii_digit();
        advised
            .split(digits)
            .next()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    let advised = refused(0);
    // What is advised is enough, and no page too many.
    let pages = HugePages::reserve(advised - 1);
    assert_eq!(refused(advised - 1), advised);
    drop(pages);
    let _pages = HugePages::reserve(advised);
    machine.ends(arguments, 0);
    machine.results().check(4);
}

#[test]
fn huge_pages_that_are_there_are_used() {
    let machine = Machine::take();
    let pages = HugePages::reserve(64);
    for policy in ["required", "try", "off"] {
        let out = machine.out(policy);
        let ended = hcabench(&format!("--hugepages {policy} --service rc,ud --burst 100"))
            .out(&out)
            .ends(0);
        let results = Results::at(&out);
        results.check(2);
        let expected = if policy == "off" { "small" } else { "huge" };
        for point in results.points() {
            let kinds = &point.settings["obtained"]["pages"];
            assert_eq!(*kinds, serde_json::json!([expected, expected, expected]));
        }
        assert!(!ended.stdout.contains("buffers are in"), "{}", ended.stdout);
    }
    drop(pages);
    // What was not had is warned of.
    let out = machine.out("none");
    let ended = hcabench("--burst 100").out(&out).ends(0);
    let kinds = &Results::at(&out).points()[0].settings["obtained"]["pages"];
    assert!(kinds.as_array().unwrap().iter().all(|kind| kind != "huge"));
    ended.warns(" are in ");
}
