//! Pairs of CPUs, in a machine whose topology is set: `ci/vm --cpus 8,sockets=2,cores=2,threads=2`.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;

use crate::LIMIT;
use crate::machine::{Machine, OccupiedCpu};
use crate::program::{END, hcabench, until};
use crate::results::Table;
use crate::testing::Has as _;

/// A file of sysfs about a CPU.
fn topology(cpu: usize, file: &str) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// What a pair must be, by other code than the program's; none where that depends on more than these files.
fn expected(one: usize, other: usize) -> Option<&'static str> {
    let same = |file: &str| {
        let [of_one, of_other] = [one, other].map(|cpu| topology(cpu, file));
        !of_one.is_empty() && of_one == of_other
    };
    if same("topology/core_cpus_list") {
        Some("smt-siblings")
    } else if same("topology/physical_package_id") {
        match topology(one, "cache/index0/level").is_empty() {
            true => Some("other-core"),
            false => same("cache/index3/shared_cpu_list").then_some("same-cache"),
        }
    } else {
        Some("other-socket")
    }
}

#[test]
fn kinds_of_pairs_are_those_that_the_kernel_reports() {
    let machine = Machine::take();
    let out = machine.out("cores");
    // A kind whose pairs all lack figures fails.
    let ended = hcabench("cores --rounds 1 --duration 5ms --clock monotonic")
        .out(&out)
        .run();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let last = online.trim().rsplit(['-', ',']).next().unwrap();
    let cpus: usize = last.parse::<usize>().unwrap() + 1;
    let runs = Table::read(&out.join("runs.csv"));
    let (mut measured, mut kinds, mut missing) = (BTreeSet::new(), BTreeSet::new(), 0);
    for row in &runs.rows {
        let kind = row.text("cores");
        missing += 2 * row.count("pairs_unmeasured");
        for pair in &Table::read(&out.join(kind).join("pairs.csv")).rows {
            let [sender, receiver] =
                ["sender_cpu", "receiver_cpu"].map(|end| pair.count(end) as usize);
            measured.insert((sender, receiver));
            kinds.insert(kind.to_owned());
            if let Some(expected) = expected(sender, receiver) {
                assert_eq!(kind, expected, "{sender} {receiver}");
            }
            assert!(pair.decimal("half_round_trip_ns") > 0.0, "{pair:?}");
        }
    }
    // Processors of a guest that share one of its host do not run at the same time.
    let all = (cpus * (cpus - 1)) as u64;
    assert_eq!(measured.len() as u64 + missing, all, "{}", ended.stdout);
    assert!(measured.len() as u64 >= all / 2, "{}", ended.stdout);
    println!("{cpus} CPUs: {kinds:?}\n{}", ended.stdout);
    if topology(0, "topology/core_cpus_list") != "0" {
        assert!(kinds.contains("smt-siblings"), "{kinds:?}");
    }
}

#[test]
fn a_cpu_that_never_runs_a_thread_ends_a_pair_and_a_signal_ends_it_at_once() {
    let machine = Machine::take();
    let _occupied = OccupiedCpu::take(1);
    let out = machine.out("occupied");
    let ended = hcabench("cores --cpus 0,1 --rounds 1 --clock monotonic")
        .out(&out)
        .run();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    // From 6.12 on such a CPU is left to other threads now and then.
    if version[..] >= [6, 12][..] && ended.is_success() {
        let kinds = Table::read(&out.join("runs.csv"));
        let pairs = Table::read(&out.join(kinds.rows[0].text("cores")).join("pairs.csv"));
        let [row, ..] = &pairs.rows[..] else {
            panic!("no pair: {}", ended.stdout);
        };
        assert!(row.decimal("half_round_trip_ns") > 0.0, "{row:?}");
    } else {
        ended.expect(1).told().has(&["no pair was measured"]);
    }
    let out = machine.out("signal");
    let words = "cores --cpus 0,1 --rounds 1 --clock monotonic --duration 10s";
    let running = hcabench(words).out(&out).start();
    until("its folder", LIMIT, || out.exists().then_some(()));
    running.signal(Signal::SIGTERM);
    running.wait(END).expect(1).told().has(&["SIGTERM"]);
}
