//! Where results cannot be written, and CPUs that are not there.

use crate::machine::{Machine, SmallDisk};
use crate::program::{LIMIT, hcabench};
use crate::results::Results;
use crate::testing::Has as _;

#[test]
fn results_are_not_overwritten_but_by_force() {
    let machine = Machine::take();
    let out = machine.out("results");
    machine.ends("--service rc,uc --burst 20", 0);
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    let before = std::fs::read(out.join("summary.csv")).unwrap();

    machine
        .ends("--burst 30", 2)
        .says(&["--out", "already holds results", "--force"]);
    assert_eq!(std::fs::read(out.join("summary.csv")).unwrap(), before);

    // A run that cannot start does not cost the earlier one.
    machine.ends("--force --sender nosuch0", 2);
    machine.results().check(2);

    let results = machine.measured_as(&out, "--force --burst 30");
    results.check(1);
    assert_eq!(results.summary().rows[0].count("burst"), 30);
    let kept = std::fs::read_to_string(out.join("notes.txt")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn a_disk_that_fills_in_mid_run_leaves_the_earlier_points_whole() {
    let _machine = Machine::take();
    let disk = SmallDisk::mount(8);
    let out = disk.path().join("results");
    let running = hcabench("--burst 50,1000 --pause 2ms").out(&out).start();
    Results::wait_for_point(&out, 2);
    disk.fill();
    let ended = running
        .wait(LIMIT)
        .expect(1)
        .says(&["No space left on device", "free some space"]);
    ended.stderr.has(&["(incomplete; go on by"]);
    std::fs::remove_file(disk.path().join("filling")).unwrap();
    let results = Results::at(&out);
    assert!(results.is_marked());
    let points = results.points();
    let [broken, whole] = &points[..] else {
        panic!("{points:?}");
    };
    assert!(broken.is_marked());
    results.check_point(whole);
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_is_measured() {
    let _machine = Machine::take();
    let disk = SmallDisk::mount(1);
    let out = disk.path().join("results");
    hcabench("--burst 8192 --repeat 10")
        .out(&out)
        .ends(2)
        .says(&["1.0 MiB free", "the results may take"]);
    assert!(!out.exists());
}

/// Whoever may write to the folder could have any file of the user's destroyed.
#[test]
fn a_link_that_was_planted_is_not_followed() {
    let machine = Machine::take();
    let victim = machine.out("victim");
    std::fs::write(&victim, "dear").unwrap();
    for (number, link) in [".hcabench-probe", ".INCOMPLETE.partial"]
        .into_iter()
        .enumerate()
    {
        let out = machine.out(number.to_string());
        std::fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink("../victim", out.join(link)).unwrap();
        hcabench("--burst 20 --sender nosuch0").out(&out).ends(2);
        assert_eq!(
            std::fs::read_to_string(&victim).unwrap(),
            "dear",
            "{link}, refused"
        );
        hcabench("--burst 20").out(&out).ends(0);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "dear", "{link}");
        Results::at(&out).check(1);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let _machine = Machine::take();
    hcabench("--burst 10")
        .out("/proc/x")
        .ends(2)
        .says(&["--out /proc/x", "cannot write into /proc"]);
}

#[test]
fn cpus_that_cannot_be_had_are_refused() {
    let machine = Machine::take();
    let out = machine.out("results");
    machine.ends("--sender-cpu 1 --receiver-cpu 1", 2).says(&[
        "--sender-cpu 1",
        "--receiver-cpu 1",
        "same CPU",
    ]);
    machine
        .ends("--receiver-cpu 999", 2)
        .says(&["--receiver-cpu 999", "choose one of 0-1"]);
    assert!(!out.exists());
}

/// Sender and receiver spin under SCHED_FIFO on both CPUs, and all the rest has to live on what they leave.
#[test]
fn a_priority_is_set_or_refused() {
    let machine = Machine::take();
    let results = machine.measured_as("busy", "--priority 10 --burst 200 --pause 100us");
    results.check(1);
    assert_eq!(results.points()[0].settings["obtained"]["priority"], 10);

    // With events a completion thread shares one of the two CPUs.
    let out = machine.out("event");
    hcabench("--priority 10 --burst 200 --poll event")
        .out(&out)
        .ends(2)
        .says(&["--priority 10", "share a CPU", "--completion-cpu"]);
    assert!(!out.exists());
}
