//! `listings/oneway`, the method in plain C: compiled here and run on the two devices.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::machine::{Away, Disturbance, Machine};
use crate::program::Program;
use crate::program::said::Said;
use crate::results::Table;
use crate::scratch;
use crate::testing::Has as _;

const LISTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/listings");

/// It is compiled, which takes some seconds in an emulated machine, the first time that it is asked for.
fn oneway(words: &str) -> Program {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let folder = scratch().keep();
        let program = folder.join("oneway");
        let make = ["make", "--silent", "-C", LISTINGS];
        let out = format!("OUT={}", folder.display());
        Program::under(&make, out, program.to_str().unwrap()).ends(0);
        program
    });
    let words = format!("--from 10.77.0.1 --to 10.77.0.2 {words}");
    Program::under(&[], program, &words)
}

/// What it prints before a good end.
#[track_caller]
fn said(words: &str) -> Said {
    Said::by(&oneway(words).ends(0))
}

#[test]
fn every_message_of_every_kind_arrives_and_the_figures_are_of_the_size_of_hcabenchs() {
    let machine = Machine::take();
    const BURST: u64 = 400;
    for service in ["rc", "uc", "ud"] {
        for operation in ["send", "write"] {
            if (service, operation) == ("ud", "write") {
                continue;
            }
            let run = format!("--service {service} --operation {operation} --burst {BURST}");
            let words = format!("{run} --pause 50us --inline off,on");
            let measured = machine.measured_as(format!("{service}-{operation}"), &words);
            let summary = measured.summary();
            for (inline, setting) in [("", "off"), ("--inline", "on")] {
                let csv = machine.out("messages.csv");
                let words = format!("{run} --pause 50000 {inline} --csv {}", csv.display());
                let ended = oneway(&words).ends(0);
                assert_eq!(ended.stderr, "");
                (ended.stdout).begins("connected=1\nsender=rxe0\nreceiver=rxe1\n");
                let said = Said::by(&ended);
                check_pages(&said);
                for (name, expected) in [
                    ("sent", BURST),
                    ("received", BURST),
                    ("completed", BURST),
                    ("lost", 0),
                    ("corrupted", 0),
                    ("duplicated", 0),
                    ("late", 0),
                ] {
                    assert_eq!(said.count(name), expected, "{run} {inline}: {name}");
                }
                check_against_csv(&said, &Table::read(&csv));
                // The smallest depends the least on other work. A wrong unit shows; `ci/measure compare-listings` says more.
                let row = summary.matching(&[("inline", setting)])[0];
                let ratio = row.decimal("latency_min_ns") / said.number("latency_min_ns");
                assert!(
                    (0.05..20.0).contains(&ratio),
                    "{run} {inline}: hcabench's minimum is {ratio} times that of C"
                );
            }
        }
    }
}

/// What pages there were is told of stamps and messages, in the words of hcabench.
fn check_pages(said: &Said) {
    let kinds: Vec<&str> = said.text("pages").split(',').collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    let known = [
        "small",
        "partly-transparent-huge",
        "transparent-huge",
        "huge",
    ];
    assert!(kinds.iter().all(|kind| known.contains(kind)), "{kinds:?}");
}

fn check_against_csv(said: &Said, messages: &Table) {
    let sent: Vec<u64> = messages.rows.iter().map(|row| row.count("seq")).collect();
    assert!(sent.iter().copied().eq(0..sent.len() as u64));
    let mut latencies: Vec<u64> = messages
        .rows
        .iter()
        .filter(|row| !row.text("latency_ns").is_empty())
        .map(|row| row.count("latency_ns"))
        .collect();
    latencies.sort_unstable();
    let count = latencies.len();
    assert_eq!(count as u64, said.count("received"));
    let median = (latencies[(count - 1) / 2] + latencies[count / 2]) as f64 / 2.0;
    assert!((said.number("latency_p50_ns") - median).abs() < 0.1);
    assert_eq!(said.number("latency_min_ns"), latencies[0] as f64);
    let most = said.number("latency_max_ns");
    assert_eq!(most, latencies[count - 1] as f64);
    assert!(said.number("latency_p99_ns") <= most);
}

#[test]
fn sizes_bursts_and_threads_of_all_kinds() {
    let _machine = Machine::take();
    for arguments in [
        "--service rc --size 32768 --burst 50",
        "--service uc --operation write --size 4096 --burst 50",
        "--service ud --size 1024 --burst 1 --warmup 0",
        "--service rc --burst 50 --warmup 300",
        "--service uc --burst 100 --pause 200000 --completion-cpu 1",
        "--service rc --size 64 --burst 50 --pause 200000 --timestamp send --stamp-cpu 0",
        "--service rc --burst 20 --sender-cpu 0 --receiver-cpu 1",
        "--service rc --burst 200 --no-immediate --inline",
    ] {
        let said = said(arguments);
        let [sent, received, completed] =
            ["sent", "received", "completed"].map(|name| said.count(name));
        assert!(sent > 0, "{arguments}");
        assert_eq!((received, completed), (sent, sent), "{arguments}");
    }
}

#[test]
fn what_is_lost_is_counted_and_ends_in_time() {
    let _machine = Machine::take();
    for service in ["uc", "ud"] {
        let loss = Disturbance::of_messages("veth0", "loss 10%");
        let words = format!("--service {service} --burst 1000 --warmup 0 --timeout 1000");
        let said = said(&words);
        let [sent, received, lost, corrupted] =
            ["sent", "received", "lost", "corrupted"].map(|name| said.count(name));
        assert_eq!((sent, lost), (1000, loss.dropped()), "{service}");
        assert!(lost > 0 && corrupted == 0);
        assert_eq!(received + lost, 1000);
    }
    let loss = Disturbance::of_messages("veth0", "loss 1%");
    let said = said("--service rc --burst 1000");
    assert!(loss.dropped() > 0);
    assert_eq!(said.count("received"), 1000);
}

#[test]
fn a_device_that_goes_away_ends_it() {
    let _machine = Machine::take();
    let running = oneway("--service rc --burst 8000 --pause 2000000").start();
    running.wait_for_line("connected=1");
    let removal = Instant::now();
    let away = Away::take("rxe1");
    let ended = running.wait(Duration::from_secs(20)).expect(1);
    assert!(removal.elapsed() < Duration::from_secs(20));
    ended.warns("RDMA_CM_EVENT_DEVICE_REMOVAL");
    away.bring_back();
}

#[test]
fn what_is_impossible_is_refused() {
    let _machine = Machine::take();
    for (arguments, code, said) in [
        (
            "--service ud --size 2048",
            1,
            "a message is at most the MTU, 1024 bytes",
        ),
        (
            "--service ud --operation write",
            2,
            "must be send with --service ud",
        ),
        (
            "--service uc --no-immediate",
            2,
            "--no-immediate needs --service rc --operation send",
        ),
        (
            "--timestamp send --inline",
            2,
            "must be submit with --inline",
        ),
        (
            "--size 12",
            2,
            "--size: '12' is not allowed, must be a multiple of 8",
        ),
        ("--burst 9000", 2, "must be a whole number from 1 to 8192"),
        ("--to 10.77.0.9", 1, "rdma_bind_addr for 10.77.0.9 failed"),
        (
            "--sender-cpu 900",
            2,
            "--sender-cpu: '900' is not allowed, must be one of the CPUs 0 1",
        ),
    ] {
        oneway(arguments).ends(code).stderr.has(&[said]);
    }
}
