//! Four ranks in one machine with four devices (`ci/vm --ports 4`). All have the same clock, so that the truth is known.

use crate::testing::Has as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hcabench::stats::median_of;
use nix::sys::signal::Signal;

use crate::between::{bounds_are_computed_again, is_within};
use crate::machine::{Away, Disturbance, Machine, wait_until};
use crate::program::exports::promtool_reads;
use crate::program::{Ended, LIMIT, Running, hcabench};
use crate::results::{Row, Table};

const RANKS: u32 = 4;
/// What is measured again would only take time here.
const SHORT: &str =
    "--service rc --inline --burst 50 --probes 100 --hugepages off --again 0 --allow-idle-states";

struct Job {
    ranks: Vec<Running>,
    out: PathBuf,
}

impl Job {
    fn start(ranks: u32, more: &str, out: &Path) -> Self {
        Self::to(out, ranks, &format!("{more} --out {}", out.display()))
    }

    fn to(out: &Path, ranks: u32, more: &str) -> Self {
        let rank = |rank| {
            let own = format!("--rank {rank} --ranks {ranks} --rendezvous 127.0.0.1:18600");
            let rank = hcabench(&format!("fabric {SHORT} {own} {more}"));
            rank.env("HCABENCH_SECRET", "known to all ranks of this job")
                .start()
        };
        let out = out.to_owned();
        Job {
            ranks: (0..ranks).map(rank).collect(),
            out,
        }
    }

    fn has_rows(&self, wanted: usize) {
        wait_until("pairs were measured", LIMIT, || {
            let text = std::fs::read_to_string(self.out.join("runs.csv"));
            text.is_ok_and(|text| text.lines().count() > wanted)
        });
    }

    fn wait(self) -> Vec<Ended> {
        let ranks = self.ranks.into_iter();
        ranks.map(|rank| rank.wait(LIMIT)).collect()
    }

    fn ends(self, code: i32) -> Vec<Ended> {
        let ended = self.wait().into_iter();
        ended.map(|rank| rank.expect(code)).collect()
    }
}

fn run(ranks: u32, more: &str, out: &Path) -> Vec<Ended> {
    Job::start(ranks, more, out).ends(0)
}

fn runs(out: &Path) -> Table {
    Table::read(&out.join("runs.csv"))
}

fn ends_of(row: &Row) -> (u64, u64) {
    (row.count("from_rank"), row.count("to_rank"))
}

fn complete(out: &Path, more: &[(&str, &str)]) -> BTreeSet<(u64, u64)> {
    let cells = [&[("status", "complete")], more].concat();
    let table = runs(out);
    table.matching(&cells).into_iter().map(ends_of).collect()
}

fn messages(out: &Path, row: &Row) -> Vec<Row> {
    Table::read(&out.join(row.text("point")).join("messages.csv")).rows
}

fn pairs_of(ranks: &[u64]) -> BTreeSet<(u64, u64)> {
    let from = |from| ranks.iter().map(move |to| (from, *to));
    let all = ranks.iter().flat_map(|rank| from(*rank));
    all.filter(|(from, to)| from != to).collect()
}

/// When the messages and probes of each pair went, from the samples in its two folders.
fn windows(out: &Path) -> Vec<(u64, u64)> {
    let mut windows: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for row in &runs(out).rows {
        let (one, other) = ends_of(row);
        let folder = out.join(row.text("point"));
        let mut stamps = Vec::new();
        for (file, columns) in [
            ("messages.csv", ["t_subm_ns", "t_recv_ns"]),
            ("probes.csv", ["a_sent_ns", "a_received_ns"]),
        ] {
            for sample in &Table::read(&folder.join(file)).rows {
                stamps.extend(columns.map(|column| sample.count(column)));
            }
        }
        let (first, last) = (*stamps.iter().min().unwrap(), *stamps.iter().max().unwrap());
        let pair = (one.min(other), one.max(other));
        let window = windows.entry(pair).or_insert((first, last));
        *window = (window.0.min(first), window.1.max(last));
    }
    let mut windows: Vec<_> = windows.into_values().collect();
    windows.sort_unstable();
    windows
}

fn overlap(windows: &[(u64, u64)]) -> bool {
    windows.windows(2).any(|two| two[1].0 < two[0].1)
}

#[test]
fn all_pairs_are_measured_both_ways_alone_or_together_and_the_truth_is_within_the_bounds() {
    let machine = Machine::take();
    for (concurrency, is_overlapping) in [("alone", false), ("together", true)] {
        let out = machine.out(concurrency);
        let more = format!("--concurrency {concurrency} --clock-drift 0");
        let ended = run(RANKS, &more, &out);
        assert!(!out.join("INCOMPLETE").exists());
        assert_eq!(complete(&out, &[]), pairs_of(&[0, 1, 2, 3]));
        bounds_are_computed_again(&out);
        for row in &runs(&out).rows {
            let offset = row.whole("offset_low_ns")..=row.whole("offset_high_ns");
            assert!(offset.contains(&0), "{row:?}");
            let messages = messages(&out, row);
            let within = messages.iter().filter(|message| is_within(message, 0));
            assert_eq!((within.count(), messages.len()), (50, 50));
        }
        let windows = windows(&out);
        assert_eq!(overlap(&windows), is_overlapping, "{windows:?}");
        let pairs = Table::read(&out.join("pairs.csv"));
        assert_eq!(pairs.rows.len(), 12);
        // Also as third hosts have narrowed them, the bounds hold the truth.
        for row in &pairs.rows {
            let latency = |message: &Row| message.count("t_recv_ns") - message.count("t_subm_ns");
            let least = messages(&out, row).iter().map(latency).min().unwrap() as f64;
            let bounds = ["one_way_min_low_ns", "one_way_min_high_ns"].map(|it| row.decimal(it));
            assert!(bounds[0] <= least && least <= bounds[1], "{least}: {row:?}");
        }
        let nodes = Table::read(&out.join("nodes.csv"));
        assert_eq!(nodes.rows.len(), 4);
        ended[0].stdout.has(&["the worst pairs"]);
        assert!(ended[1..].iter().all(|rank| rank.stdout.is_empty()));
    }
}

fn is_named(ended: &Ended, rank: u64, out: &Path) {
    let others = (0..u64::from(RANKS)).filter(|other| *other != rank);
    let others = pairs_of(&Vec::from_iter(others));
    for round in ["0", "1"] {
        let found = complete(out, &[("round", round)]);
        assert!(found.is_superset(&others), "{round}: {found:?}\n{ended:?}");
    }
    let left_out = Table::read(&out.join("left_out.csv"));
    assert!(!left_out.rows.is_empty());
    for row in &left_out.rows {
        assert!(<[u64; 2]>::from(ends_of(row)).contains(&rank), "{row:?}");
    }
    ended.stderr.has(&[&format!("rank {rank} ")]);
}

/// One of four ranks comes to harm when the first pairs are there. What `harm` returns is kept until the end.
fn is_named_after<T>(harm: impl FnOnce(&Job) -> T, rank: u64) {
    let machine = Machine::take();
    let out = machine.out("run");
    let more = "--concurrency alone --rounds 2 --pair-timeout 20s";
    let job = Job::start(RANKS, more, &out);
    job.has_rows(2);
    let harm = harm(&job);
    let begun = Instant::now();
    let Job { mut ranks, .. } = job;
    let first = ranks.remove(0).wait(LIMIT).expect(1);
    assert!(begun.elapsed() < LIMIT - Duration::from_secs(5));
    for rank in ranks {
        rank.signal(Signal::SIGCONT);
        rank.wait(LIMIT);
    }
    assert!(out.join("INCOMPLETE").exists());
    drop(harm);
    is_named(&first, rank, &out);
}

#[test]
fn a_rank_that_is_killed_is_named_and_all_other_pairs_are_there() {
    is_named_after(|job| job.ranks[2].signal(Signal::SIGKILL), 2);
}

#[test]
fn a_rank_that_hangs_is_named_and_all_other_pairs_are_there() {
    is_named_after(|job| job.ranks[3].signal(Signal::SIGSTOP), 3);
}

#[test]
fn a_rank_whose_device_is_removed_is_named_and_all_other_pairs_are_there() {
    is_named_after(|_| Away::take("rxe1"), 1);
}

#[test]
fn what_rank_0_had_when_it_was_killed_is_whole_and_marked_and_the_run_can_go_on() {
    let machine = Machine::take();
    let out = machine.out("run");
    let job = Job::start(RANKS, "--concurrency alone", &out);
    job.has_rows(4);
    job.ranks[0].signal(Signal::SIGKILL);
    let begun = Instant::now();
    for ended in job.wait().into_iter().skip(1) {
        ended.expect(1).stderr.has(&["rank 0"]);
    }
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
    assert!(out.join("INCOMPLETE").exists());
    // A table whose last row is not whole is no table.
    let before = runs(&out).rows.len();
    assert!((4..12).contains(&before), "{before}");
    let resume = format!("--concurrency alone --resume {}", out.display());
    Job::to(&out, RANKS, &resume).ends(0);
    assert!(!out.join("INCOMPLETE").exists());
    assert_eq!(runs(&out).rows.len(), 12);
    assert_eq!(complete(&out, &[]), pairs_of(&[0, 1, 2, 3]));
    for row in &runs(&out).rows {
        assert_eq!(messages(&out, row).len(), 50, "{row:?}");
        let mark = out.join(row.text("point")).join("INCOMPLETE");
        assert!(!mark.exists(), "{row:?}");
    }
}

#[test]
fn a_signal_to_any_rank_ends_it_at_once_and_marks_what_is_there() {
    let machine = Machine::take();
    for (name, rank, signal) in [("first", 0, Signal::SIGINT), ("other", 1, Signal::SIGTERM)] {
        let out = machine.out(name);
        let mut job = Job::start(RANKS, "--concurrency alone --rounds 3", &out);
        job.has_rows(2);
        let interrupted = job.ranks.remove(rank);
        interrupted.signal(signal);
        let begun = Instant::now();
        interrupted.wait(LIMIT).expect(1);
        assert!(begun.elapsed() < LIMIT / 10, "{:?}", begun.elapsed());
        let mut others = job.wait();
        assert!(out.join("INCOMPLETE").exists());
        if rank > 0 {
            others.remove(0).expect(1).stderr.has(&["rank 1 "]);
        }
    }
}

/// It could be the clock. That a delay which varies tells it is in `ci/fabric`: beside other load all delays vary.
#[test]
fn the_node_behind_a_slow_port_is_named_and_nobody_else() {
    let machine = Machine::take();
    for (name, ranks, expected) in [("four", RANKS, Some(["slow", "unknown"])), ("two", 2, None)] {
        let out = machine.out(name);
        let delay = Disturbance::of_messages("veth1", "delay 20ms");
        let more = "--service uc --poll event --concurrency alone --pause 4ms";
        run(ranks, more, &out);
        drop(delay);
        for node in &Table::read(&out.join("nodes.csv")).rows {
            let said = [node.text("verdict"), node.text("direction")];
            match expected.filter(|_| node.count("rank") == 1) {
                Some(expected) => assert_eq!(said, expected, "{name}: {node:?}"),
                // What one message in fifty took may name another one: noise does, in one of a hundred fabrics.
                None if node.text("figure") != "half_round_trip_p50_ns" => {}
                None => assert!(said[0] != "slow" && said[1].is_empty(), "{name}: {node:?}"),
            }
        }
    }
}

#[test]
fn limits_that_are_broken_have_an_exit_code_of_their_own_and_monitoring_learns_of_it() {
    let machine = Machine::take();
    let out = machine.out("run");
    let textfile = machine.out("hcabench.prom");
    let more = format!("--fail-above 1ns --prometheus {}", textfile.display());
    let first = Job::start(3, &more, &out).wait().remove(0).expect(3);
    (first.stderr).has(&["--fail-above 1ns", "6 of 6 pairs are above it"]);
    assert!(!out.join("INCOMPLETE").exists());
    promtool_reads(&textfile);
    let text = std::fs::read_to_string(textfile).unwrap();
    assert_eq!(text.matches("percentile=\"50\"").count(), 6, "{text}");
}

/// The least latency that any message from a rank to another had: all have one clock.
fn least_of_way(out: &Path, (from, to): (u64, u64)) -> i64 {
    let read = |(from, to): (u64, u64), file: &str| {
        let rows = runs(out).rows;
        let row = rows.iter().find(|row| ends_of(row) == (from, to));
        Table::read(&out.join(row.unwrap().text("point")).join(file)).rows
    };
    let took = |row: &Row, sent: &str, received: &str| row.whole(received) - row.whole(sent);
    let messages = read((from, to), "messages.csv").into_iter().map(|row| {
        let sent = row.optional("t_send_ns").unwrap_or(row.whole("t_subm_ns"));
        row.whole("t_recv_ns") - sent
    });
    let there = read((from, to), "probes.csv").into_iter();
    let there = there.map(|row| took(&row, "a_sent_ns", "b_received_ns"));
    let back = read((to, from), "probes.csv").into_iter();
    let back = back.map(|row| took(&row, "b_sent_ns", "a_received_ns"));
    messages.chain(there).chain(back).min().unwrap()
}

/// Of what leaves a port for one address. How slow it is follows from the stamps.
#[test]
fn a_slow_way_is_named_if_there_is_a_third_rank() {
    let machine = Machine::take();
    for (name, ranks, delay_ms, more) in [
        ("two", 2, 3, "--clock-drift 0"),
        ("exact", 3, 3, "--clock-drift 0"),
        // Clocks that may drift prove less: the ranks are measured at different times.
        ("drift", 3, 100, "--probes 10"),
    ] {
        let out = machine.out(name);
        let netem = format!("delay {delay_ms}ms");
        let delay = Disturbance::of_messages_to("veth1", "10.77.0.1", &netem);
        let more = format!("--service uc --poll event --concurrency alone --pause 4ms {more}");
        let ended = run(ranks, &more, &out);
        drop(delay);
        let pairs = Table::read(&out.join("pairs.csv")).rows;
        let halves = pairs
            .iter()
            .map(|row| row.decimal("half_round_trip_p50_ns"));
        let mut halves: Vec<f64> = halves.collect();
        halves.sort_by(f64::total_cmp);
        let mut named = Vec::new();
        for row in &pairs {
            let (from, to) = ends_of(row);
            let by = row.optional("slower_by_at_least_ns");
            let third = (0..ranks.into()).find(|third| ![from, to].contains(third));
            let truth = third.map(|third| {
                let over = [(from, third), (third, to)].map(|way| least_of_way(&out, way));
                least_of_way(&out, (from, to)) - over[0] - over[1]
            });
            match (by, truth) {
                (None, None) => {}
                (Some(by), Some(truth)) if name == "exact" => assert_eq!(by, truth, "{row:?}"),
                (Some(by), Some(truth)) => assert!(by <= truth, "{truth}: {row:?}"),
                // Less than a twentieth of the usual is of no consequence.
                (None, Some(truth)) if name == "exact" => {
                    assert!(truth as f64 <= 0.051 * halves[3], "{truth}: {row:?}");
                }
                (None, Some(_)) => {}
                (Some(_), None) => panic!("{row:?}"),
            }
            named.extend(by.map(|by| ((from, to), by)));
        }
        if name != "two" {
            let least = least_of_way(&out, (1, 0));
            assert!(least >= delay_ms * 1_000_000, "{least}");
        }
        if name == "drift" {
            assert!(matches!(named[..], [((1, 0), _)]), "{named:?}");
        }
        let told = ended[0].stdout.matches("slow way: ").count();
        let text = std::fs::read_to_string(out.join("fabric.json")).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let count = |name: &str| document[name].as_array().unwrap().len();
        // Less than a twentieth of the usual stands in the table alone.
        let least = 0.05 * median_of(&halves).unwrap();
        let of_consequence = named.iter().filter(|(_, by)| *by as f64 > least).count();
        let found = [told, count("slow_ways"), count("contradictions")];
        let expected = [of_consequence, of_consequence, 0];
        assert_eq!(found, expected, "{named:?}: {}", ended[0].stdout);
        for node in Table::read(&out.join("nodes.csv")).rows {
            assert_eq!(node.text("verdict"), "not-judged");
        }
        println!("{name}: {named:?}");
    }
}
