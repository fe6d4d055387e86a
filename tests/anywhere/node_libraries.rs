//! `hcabench node` with node-types by libraries that are cargo features: nothing is lost, and nothing is left behind.

use crate::LIMIT;

use crate::common::node::{ends, node};
use crate::common::{number, rows, until};
use crate::testing::temporary;

/// The types of this build.
const TYPES: &[&str] = &[
    #[cfg(feature = "iceoryx2")]
    "iceoryx2",
    #[cfg(feature = "grpc")]
    "grpc",
];

#[test]
fn samples_come_to_all_of_many_ends_and_none_is_lost() {
    const STEPS: u64 = 100;
    let folder = &*temporary("");
    let words = format!(
        "--type {} --scenario fan-in,fan-out,round-robin --publishers 5 --subscribers 3 --values 1,300 --rate 200 \
         --count {STEPS} --warmup 20ms",
        TYPES.join(",")
    );
    ends(folder, &words, 0);
    let summary = rows(&folder.join("run/summary.csv"));
    assert_eq!(summary.len(), TYPES.len() * 3 * 2);
    for row in &summary {
        let copies = 5 * STEPS * if row["scenario"] == "fan-out" { 3 } else { 1 };
        for (column, expected) in [
            ("messages_sent", 5 * STEPS),
            ("messages_received", copies),
            ("messages_lost", 0),
            ("messages_refused", 0),
            ("messages_duplicated", 0),
            ("messages_never_sent", 0),
            ("messages_reordered", 0),
        ] {
            assert_eq!(number(row, column), expected, "{column}: {row:?}");
        }
    }
}

#[cfg(feature = "iceoryx2")]
mod files {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use crate::program::{Running, send, threads};
    use crate::testing::Has as _;
    use nix::sys::signal::Signal;

    /// Files, and shared memory, of the runs that have their folders in this one.
    fn files(temporary: &Path) -> (BTreeSet<String>, usize) {
        let names = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
            names.collect::<BTreeSet<String>>()
        };
        let runs = names(temporary);
        let is_of_run = |name: &&String| {
            let run = |it: &String| it.strip_suffix(".iceoryx2").map(|run| format!("{run}_"));
            runs.iter()
                .filter_map(run)
                .any(|prefix| name.starts_with(&prefix))
        };
        let shared = names(Path::new("/dev/shm"))
            .iter()
            .filter(is_of_run)
            .count();
        (runs, shared)
    }

    /// A run of an hour whose samples are sent.
    fn start(folder: &Path, temporary: &Path, words: &str) -> Running {
        let words =
            format!("--type iceoryx2 --timer timerfd --rate 100 --duration 1h --warmup 0 {words}");
        let run = node(folder, &words).env("TMPDIR", temporary).start();
        until("its shared memory", || {
            // The data of the publisher, the queue, the service.
            (files(temporary).1 >= 3).then_some(())
        });
        run
    }

    fn nothing_is_left(temporary: &Path, before: &str) {
        let empty = (BTreeSet::new(), 0);
        assert_eq!(files(temporary), empty, "{before}");
        // Shared memory that is not found by its folder.
        let name = before.strip_suffix(".iceoryx2").unwrap();
        let shared = fs::read_dir("/dev/shm").unwrap().flatten();
        let mut shared = shared.map(|it| it.file_name().into_string().unwrap());
        assert_eq!(shared.find(|it| it.starts_with(name)), None);
    }

    fn name_of_run(temporary: &Path) -> String {
        let (runs, _) = files(temporary);
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().unwrap()
    }

    #[test]
    fn a_run_of_iceoryx2_that_ends_or_is_interrupted_leaves_no_file() {
        for ends in ["threads", "processes"] {
            let (folder, place) = (&*temporary(""), &*temporary(""));
            let words = format!("--type iceoryx2 --ends {ends} --rate 1k --count 20 --warmup 0");
            node(folder, &words).env("TMPDIR", place).ends(0);
            assert_eq!(files(place), (BTreeSet::new(), 0));
            for signal in [Signal::SIGINT, Signal::SIGTERM] {
                let folder = &*temporary("");
                let run = start(folder, place, &format!("--ends {ends}"));
                let name = name_of_run(place);
                run.signal(signal);
                let told = format!("interrupted by {signal}");
                run.wait(LIMIT).expect(1).stderr.has(&[&told]);
                nothing_is_left(place, &name);
            }
        }
    }

    #[test]
    fn what_a_run_of_iceoryx2_that_was_killed_left_is_removed_by_the_next_one() {
        let (folder, place) = (&*temporary(""), &*temporary(""));
        let run = start(folder, place, "");
        let name = name_of_run(place);
        // The process that measures: the one that has started it goes on, and its files stay.
        let measures = until("the publisher", || publisher_below(run.id()));
        send(Signal::SIGKILL, measures);
        run.wait(LIMIT).expect(1).stderr.has(&["iceoryx2"]);
        assert!(files(place).1 > 0);
        let next = &*temporary("");
        let words = "--type iceoryx2 --rate 1k --count 20 --warmup 0";
        node(next, words).env("TMPDIR", place).ends(0);
        nothing_is_left(place, &name);
    }

    #[test]
    fn an_end_of_iceoryx2_that_dies_ends_the_run_and_leaves_no_file() {
        let (folder, place) = (&*temporary(""), &*temporary(""));
        let run = start(folder, place, "--ends processes");
        let name = name_of_run(place);
        let publisher = until("the publisher", || publisher_below(run.id()));
        send(Signal::SIGKILL, publisher);
        let ended = run.wait(LIMIT).expect(1);
        ended
            .stderr
            .has(&["the process of publisher 0 ended early: signal: 9"]);
        nothing_is_left(place, &name);
    }

    /// The process with the thread of the publisher, below another one.
    fn publisher_below(process: u32) -> Option<u32> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let lists = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let lists: Vec<String> = lists.collect();
        let children = lists.iter().flat_map(|list| list.split_whitespace());
        let mut children = children.map(|id| id.parse::<u32>().unwrap());
        children.find_map(|child| match threads(child, "hcabench-pub").is_empty() {
            true => publisher_below(child),
            false => Some(child),
        })
    }
}
