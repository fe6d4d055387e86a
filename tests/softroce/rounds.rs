//! A sweep of several rounds, each in a process of its own: what it leaves, and how it is taken up again.

use crate::testing::Has as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::machine::{Machine, wait_until};
use crate::program::{LIMIT, exports, hcabench};
use crate::results::{Results, Row, Table};

const ROUNDS: u64 = 3;
const BURST: u64 = 100;
const POINTS: usize = 4;

fn measured(runs: &Table) -> Vec<(String, u64)> {
    let of = |row: &Row| (row.text("point").to_owned(), row.count("round"));
    runs.rows.iter().map(of).collect()
}

/// Lines of runs.csv as they stand there, while it is written.
fn lines(out: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(out.join("runs.csv")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().skip(1).map(str::to_owned).collect()
}

fn check(out: &Path) {
    let results = Results::at(out);
    assert!(!results.is_marked(), "{}", results.mark());
    let runs = Table::read(&out.join("runs.csv"));
    let mut found = measured(&runs);
    found.sort();
    let points = results.points();
    let names = points.iter().map(|point| point.name());
    let expected: Vec<_> = names
        .flat_map(|name| (0..ROUNDS).map(move |round| (name.clone(), round)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), POINTS * ROUNDS as usize);
    for row in &runs.rows {
        assert_eq!(row.text("status"), "complete", "{row:?}");
        assert_eq!(row.count("messages_received"), BURST, "{row:?}");
    }
    for point in &points {
        let row = results.row_of(point);
        assert_eq!(row.text("status"), "complete");
        assert_eq!(row.count("rounds"), ROUNDS);
        assert_eq!(row.count("messages_sent"), ROUNDS * BURST);
        assert_eq!(point.settings["rounds"]["planned"], ROUNDS);
        assert_eq!(point.settings["rounds"]["done"], ROUNDS);
        let messages = point.messages();
        let mut numbers: Vec<_> = messages.iter().map(|one| (one.round, one.seq)).collect();
        numbers.sort_unstable();
        let all = (0..ROUNDS).flat_map(|round| (0..BURST).map(move |seq| (round, seq)));
        assert!(numbers.into_iter().eq(all), "{}", point.name());
        assert_eq!(point.histogram_count(), ROUNDS * BURST);
    }
}

/// In the middle of a round, by a signal that leaves no time for anything, and by one that does.
#[test]
fn a_sweep_that_was_ended_in_the_middle_is_completed_by_resume() {
    let machine = Machine::take();
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let out = machine.out(signal.as_str());
        let words = "--service rc,uc --poll busy,event --burst 100 --pause 200us --rounds 3";
        let running = machine.start_as(&out, words);
        wait_until("a round and a half", Duration::from_secs(100), || {
            lines(&out).len() > POINTS
        });
        running.signal(signal);
        let ended = running.wait(LIMIT);
        assert!(!ended.status.success(), "{signal}");
        let results = Results::at(&out);
        assert!(results.is_marked());
        let before: Vec<_> = lines(&out)
            .into_iter()
            .filter(|line| line.contains(",complete,"))
            .collect();
        let is_part = (POINTS + 1..POINTS * ROUNDS as usize).contains(&before.len());
        assert!(is_part, "{before:?}");

        let ended = hcabench("--resume").word(out.to_str().unwrap()).ends(0);
        ended.stdout.has(&["p50"]);
        check(&out);
        let after = lines(&out);
        // A kill may come between the last row and its distribution: that round is measured again.
        let kept = before.len() - usize::from(signal == Signal::SIGKILL);
        for line in &before[..kept] {
            assert!(after.contains(line), "measured again: {line}");
        }
        // Nothing is missing any more, which is said, and nothing is measured.
        let ended = hcabench("--resume").word(out.to_str().unwrap()).ends(2);
        ended.stderr.has(&["nothing is missing"]);
        assert_eq!(lines(&out), after);
    }
}

#[test]
fn what_it_writes_for_other_programs_is_read_by_them() {
    let machine = Machine::take();
    let out = machine.out("results");
    let [stream, gauges] = ["run.jsonl", "run.prom"].map(|name| out.with_file_name(name));
    let exports = format!(
        "--json-lines {} --prometheus {}",
        stream.display(),
        gauges.display()
    );
    machine.ends(
        &format!("--service rc,ud --burst 50 --rounds 2 {exports}"),
        0,
    );
    let (_, types) = exports::lines(&stream);
    let count = |kind: &str| types.iter().filter(|it| *it == kind).count();
    assert_eq!((count("round"), count("point")), (4, 2));
    assert_eq!(types.last().unwrap(), "end");
    exports::promtool_reads(&gauges);
}
