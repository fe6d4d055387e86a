//! A measuring thread that somebody moves off its CPU in the middle of a run.

use crate::loss::wait_for_traffic;
use crate::machine::{Machine, sh};
use crate::program::LIMIT;

fn thread(process: u32, name: &str) -> String {
    let folder = format!("/proc/{process}/task");
    let threads = std::fs::read_dir(&folder).unwrap();
    let mut paths = threads.map(|entry| entry.unwrap().path());
    let found = paths.find(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|text| text.trim() == name)
    });
    let found = found.unwrap_or_else(|| panic!("no thread {name} in {folder}"));
    found.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Runs in the first burst of two, moves threads, and checks that `role` is named.
fn moved(move_them: impl Fn(u32), role: &str) {
    let machine = Machine::take();
    let words = "--burst 1000 --pause 2ms --repeat 2 --warmup 0 --sender-cpu 0 --receiver-cpu 1";
    let running = machine.start(words);
    wait_for_traffic();
    move_them(running.id());
    let ended =
        running
            .wait(LIMIT)
            .expect(1)
            .says(&["rc-send-8B", role, "was moved away from CPU"]);
    let results = machine.results();
    assert!(results.is_marked(), "{}", ended.stderr);
    assert!(results.mark().contains(role), "{}", ended.stderr);
    let points = results.points();
    assert!(points[0].is_marked());
    let row = results.row_of(&points[0]);
    assert_eq!(row.text("status"), "incomplete");
    assert!(row.text("failure").contains("was moved away"), "{row:?}");
    // The second burst was not begun.
    assert_eq!(row.count("messages_sent"), 1000);
}

#[test]
fn a_receiver_that_may_run_on_another_cpu_is_named() {
    let move_receiver = |process| {
        let thread = thread(process, "hcabench-recv");
        sh(&format!("taskset -p -c 0-1 {thread}"));
    };
    moved(move_receiver, "receiver");
}

/// As a whole, which is what `taskset -a` is there for: the sender stays where it was.
#[test]
fn of_a_process_that_is_moved_the_thread_that_left_its_cpu_is_named() {
    moved(
        |process| drop(sh(&format!("taskset -a -p -c 0 {process}"))),
        "receiver",
    );
}
