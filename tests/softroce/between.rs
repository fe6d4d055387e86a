//! Two processes as two hosts: what the one sends, the other receives. Both have the same clock here, so that the truth
//! is known: the clocks are apart by nothing, and each message's latency is the difference of its stamps.

use crate::assertions::Has as _;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::loss::wait_for_traffic;
use crate::machine::{Away, Machine, wait_until};
use crate::program::{Ended, LIMIT, Program, Running, hcabench};
use crate::results::{Results, Row, Table};
use crate::scratch;

const ADDRESS: &str = "127.0.0.1:18599";

/// The other host.
fn serve(options: &str) -> Running {
    let serving = hcabench(&format!("serve --bind 127.0.0.1 --receiver rxe1 {options}")).start();
    serving.wait_for_line(&format!("serving at {ADDRESS}"));
    serving
}

/// The same with a clock that is ahead by so many nanoseconds, or `random`, which then stand in a file if one is named.
fn serve_ahead(offset: &str, told: Option<&Path>) -> Running {
    let shift = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/guest-clock");
    let mut starter = vec![shift, "--offset", offset];
    starter.extend(
        told.iter()
            .flat_map(|file| ["--tell", file.to_str().unwrap()]),
    );
    starter.push("--");
    let hcabench = &crate::program::path();
    let arguments = "serve --bind 127.0.0.1 --receiver rxe1 --once --quiet";
    let serving = Program::under(&starter, hcabench, arguments).start();
    serving.wait_for_line(&format!("serving at {ADDRESS}"));
    serving
}

/// What sends to it: each process has one of the two CPUs.
fn options(more: &str) -> String {
    format!(
        "--peer 127.0.0.1 --sender rxe0 --sender-cpu 0 --completion-cpu 0 --receiver-cpu 1 --hugepages off --probes 100 {more}"
    )
}

fn send(more: &str, out: &Path) -> Ended {
    hcabench(&options(more)).out(out).run()
}

/// Each point's folder has messages whose latency is within its bounds, all of them, and the clocks are apart by nothing.
fn holds_the_truth(out: &Path) -> usize {
    let runs = Table::read(&out.join("runs.csv"));
    let mut points = BTreeSet::new();
    for row in &runs.rows {
        assert_eq!(row.text("status"), "complete", "{row:?}");
        let bound = |column| row.text(column).parse::<i64>().unwrap();
        assert!(
            bound("theta_low_ns") <= 0 && 0 <= bound("theta_high_ns"),
            "{row:?}"
        );
        let rate = |column| row.text(column).parse::<f64>().unwrap();
        assert!(rate("clock_rate_low_ppm") <= 0.0 && 0.0 <= rate("clock_rate_high_ppm"));
        points.insert(row.text("point"));
    }
    let mut looked_at = 0;
    for point in points {
        let messages = Table::read(&out.join(point).join("messages.csv"));
        looked_at += messages
            .rows
            .iter()
            .filter(|message| is_within(message, 0))
            .count();
    }
    looked_at
}

/// Whether a message arrived; if it did, it must be within its bounds, where the receiver's clock is ahead by so many
/// nanoseconds.
pub(crate) fn is_within(message: &Row, ahead: i64) -> bool {
    let stamp = |column| message.text(column).parse::<i64>().ok();
    let from = stamp("t_send_ns").or(stamp("t_subm_ns")).unwrap();
    let (Some(to), Some(low), Some(high)) = (
        stamp("t_recv_ns"),
        stamp("latency_low_ns"),
        stamp("latency_high_ns"),
    ) else {
        return false;
    };
    assert!((low..=high).contains(&(to - ahead - from)), "{message:?}");
    true
}

pub(crate) fn bounds_are_computed_again(out: &Path) {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/check-bounds");
    let checked = Command::new("python3")
        .arg(check)
        .arg(out)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{text}");
    assert!(text.contains(", 0 failed"), "{text}");
}

#[test]
fn every_message_is_within_its_bounds_whatever_it_is_sent_by() {
    let machine = Machine::take();
    let serving = serve("");
    for (name, more, arrived) in [
        (
            "services",
            "--service rc,uc,ud --inline on,off --burst 100 --repeat 2",
            6 * 200,
        ),
        (
            "events",
            "--service rc,ud --poll event --burst 100 --depth 16 --queue-pairs 3",
            2 * 100,
        ),
        (
            "writes",
            "--connect direct --operation write,write-polled --size 8,4096 --burst 50",
            4 * 50,
        ),
        (
            "send-stamps",
            "--timestamp send --pause 200us --burst 50",
            0,
        ),
        (
            "same-rate",
            "--clock-drift 0 --unsignaled --burst 100 --rounds 2",
            2 * 100,
        ),
    ] {
        let out = machine.out(name);
        send(more, &out).expect(0);
        // UC and UD may lose some, and none did here. Of stamps that are rewritten nobody knows how many were in time.
        let found = holds_the_truth(&out);
        assert!(found == arrived || arrived == 0, "{name}: {found}");
        bounds_are_computed_again(&out);
    }
    serving.signal(Signal::SIGTERM);
    serving.wait(LIMIT).expect(0);
}

/// Reads and atomics have completions, on one clock, and what they brought is checked; the probes bound the clocks.
#[test]
fn reads_and_atomics_are_answered_by_the_far_adapter() {
    let machine = Machine::take();
    let serving = serve("--once --quiet");
    let out = machine.out("run");
    send(
        "--operation read,compare-swap,fetch-add --burst 100 --repeat 2",
        &out,
    )
    .expect(0);
    let runs = Table::read(&out.join("runs.csv"));
    assert_eq!(runs.rows.len(), 3);
    for row in &runs.rows {
        assert_eq!(
            (row.count("completions"), row.count("messages_corrupted")),
            (200, 0),
            "{row:?}"
        );
        assert_eq!(
            (
                row.text("messages_received"),
                row.text("one_way_p50_high_ns")
            ),
            ("", "")
        );
        assert!(
            row.text("completion_latency_p50_ns")
                .parse::<f64>()
                .unwrap()
                > 0.0
        );
    }
    assert_eq!(holds_the_truth(&out), 0);
    bounds_are_computed_again(&out);
    serving.wait(LIMIT).expect(0);
}

#[test]
fn a_device_that_is_removed_in_the_middle_ends_the_run() {
    let _machine = Machine::take();
    for device in ["rxe0", "rxe1"] {
        let mut removed = None;
        let (_, why) = interrupted_by("", |_| removed = Some(Away::take(device)), LIMIT / 2);
        let said = format!("the device {device} was removed");
        assert!(why.contains(&said), "{why}");
        if let Some(removed) = removed {
            removed.bring_back();
        }
    }
}

#[test]
fn the_width_at_one_rate_is_at_most_the_shortest_round_trip() {
    let machine = Machine::take();
    let serving = serve("--once --quiet");
    let out = machine.out("run");
    send("--clock-drift 0 --burst 20 --rounds 3", &out).expect(0);
    for row in &Table::read(&out.join("runs.csv")).rows {
        let cell = |column| row.text(column).parse::<f64>().unwrap();
        let width = cell("theta_high_ns") - cell("theta_low_ns");
        assert!(width > 0.0 && width <= cell("round_trip_min_ns"), "{row:?}");
    }
    // All three rounds were one run.
    serving.wait(LIMIT).expect(0);
}

/// How many clocks are shifted; ci/hidden-offsets shifts 200.
const OFFSETS: &str = "HCABENCH_HIDDEN_OFFSETS";

#[test]
fn a_hidden_offset_of_the_clocks_is_within_its_bounds() {
    let machine = Machine::take();
    let hidden = machine.out("hidden");
    let count = std::env::var(OFFSETS).map_or(3, |count| count.parse().expect(OFFSETS));
    for number in 0..count {
        let serving = serve_ahead("random", Some(&hidden));
        let out = machine.out(number.to_string());
        let drift = ["", "--clock-drift 0"][number % 2];
        send(&format!("--burst 50 {drift}"), &out).expect(0);
        serving.wait(LIMIT).expect(0);
        let ahead: i64 = std::fs::read_to_string(&hidden)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let row = Table::read(&out.join("runs.csv")).rows.remove(0);
        let bound = |column| row.text(column).parse::<i64>().unwrap();
        let (low, high) = (bound("theta_low_ns"), bound("theta_high_ns"));
        assert!((low..=high).contains(&ahead), "{ahead}: {row:?}");
        if !drift.is_empty() {
            let shortest = row.text("round_trip_min_ns").parse::<f64>().unwrap();
            assert!((high - low) as f64 <= shortest, "{row:?}");
        }
        let messages = Table::read(&out.join(row.text("point")).join("messages.csv")).rows;
        let within = messages.iter().filter(|message| is_within(message, ahead));
        assert_eq!(within.count(), 50);
        bounds_are_computed_again(&out);
        println!("{number}: {ahead} ns is from {low} to {high}");
    }
}

/// One host has one time of day: what is declared of it holds, though the clocks of the stamps are apart.
#[test]
fn what_is_declared_of_the_times_of_day_narrows_the_bounds() {
    let machine = Machine::take();
    let ahead = 1_500_000_000;
    let serving = serve_ahead(&ahead.to_string(), None);
    let out = machine.out("run");
    send("--clock-uncertainty 2us --clock-drift 0 --burst 50", &out).expect(0);
    serving.wait(LIMIT).expect(0);
    let row = Table::read(&out.join("runs.csv")).rows.remove(0);
    assert_eq!(row.text("clocks"), "declared");
    let cell = |column| row.text(column).parse::<f64>().unwrap();
    // What is proved is still told.
    assert!(cell("theta_low_ns") <= f64::from(ahead) && f64::from(ahead) <= cell("theta_high_ns"));
    let messages = Table::read(&out.join(row.text("point")).join("messages.csv")).rows;
    let within = messages
        .iter()
        .filter(|message| is_within(message, ahead.into()));
    assert_eq!(within.count(), 50);
    let proved = cell("theta_high_ns") - cell("theta_low_ns");
    let width = cell("one_way_p50_high_ns") - cell("one_way_p50_low_ns");
    assert!(width < proved, "{width} and {proved}");
    bounds_are_computed_again(&out);
}

#[test]
fn what_is_no_run_is_turned_away_and_the_run_goes_on() {
    let machine = Machine::take();
    let serving = serve("");
    let out = machine.out("run");
    let running = hcabench(&options("--burst 2000 --pause 2ms --timeout 20s"))
        .out(&out)
        .start();
    wait_until("it measures", LIMIT, || out.join("runs.csv").exists());
    // A scan, a browser, a line without end, and another run.
    drop(TcpStream::connect(ADDRESS).unwrap());
    let mut browser = TcpStream::connect(ADDRESS).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut endless = TcpStream::connect(ADDRESS).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let _ = (0..20).all(|_| endless.write_all(&chunk).is_ok());
    let mut silent = TcpStream::connect(ADDRESS).unwrap();
    let _others: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(ADDRESS).unwrap())
        .collect();
    let other = send("--burst 10", &machine.out("other")).expect(1);
    other.stderr.has(&["busy: it serves a run of"]);
    running.wait(LIMIT).expect(0);
    assert_eq!(holds_the_truth(&out), 2000);
    // Who says nothing is let go.
    silent.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0);
    serving.signal(Signal::SIGTERM);
    let said = serving.wait(LIMIT).expect(0).stderr;
    assert!(said.matches("refused 127.0.0.1").count() >= 4, "{said}");
}

#[test]
fn what_a_greeted_run_must_not_say_ends_it_and_not_the_host() {
    let machine = Machine::take();
    let serving = serve("");
    let program = {
        // As the program itself says it.
        let out = machine.out("first");
        send("--burst 10", &out).expect(0);
        let settings = std::fs::read_to_string(out.join("settings.json")).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
        settings["hcabench"].clone()
    };
    let hello = |program: &serde_json::Value| serde_json::json!({ "hello": { "program": program, "run": "made-up", "host": "nobody", "port": null } });
    let said = |lines: &[String]| {
        let mut stream = TcpStream::connect(ADDRESS).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        for line in lines {
            let _ = stream.write_all(format!("{line}\n").as_bytes());
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let mut other = program.clone();
    other["commit"] = "0000000".into();
    assert!(said(&[hello(&other).to_string()]).contains("install the same on both hosts"));
    for line in [
        r#"{"probe":{"first":4294967295,"count":4294967295}}"#,
        r#"{"point":{}}"#,
        r#""point_over""#,
        "not json",
    ] {
        let lines = [
            hello(&program).to_string(),
            line.to_owned(),
            line.to_owned(),
        ];
        let answer = said(&lines);
        assert!(answer.contains("welcome"), "{line}: {answer}");
    }
    wait_until("it is free", LIMIT / 4, || {
        let next = machine.out("next");
        let _ = std::fs::remove_dir_all(&next);
        hcabench(&options("--burst 10"))
            .out(&next)
            .run()
            .status
            .success()
    });
    serving.signal(Signal::SIGTERM);
    serving.wait(LIMIT).expect(0);
}

/// How a run of these options ends whose other host does something in the middle, and why its folder says that it is
/// incomplete.
fn interrupted_by(more: &str, what: impl FnOnce(&Running), limit: Duration) -> (Ended, String) {
    let folder = scratch();
    let serving = serve("--once --quiet");
    let out = folder.path().join("run");
    let running = hcabench(&options(&format!(
        "--burst 4000 --pause 2ms --timeout 2s {more}"
    )))
    .out(&out)
    .start();
    wait_until("it measures", LIMIT, || out.join("runs.csv").exists());
    wait_for_traffic();
    let begun = Instant::now();
    what(&serving);
    let ended = running.wait(LIMIT).expect(1);
    assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    let row = Table::read(&out.join("runs.csv")).rows.remove(0);
    assert_eq!(row.text("status"), "incomplete");
    (ended, Results::at(&out).mark())
}

#[test]
fn a_host_that_is_killed_is_named_at_once() {
    let _machine = Machine::take();
    let kill = |serving: &Running| serving.signal(Signal::SIGKILL);
    for operation in ["send", "read"] {
        let (_, why) = interrupted_by(&format!("--operation {operation}"), kill, LIMIT / 4);
        let said = "127.0.0.1:18599 has closed the connection";
        assert!(why.contains(said), "{operation}: {why}");
    }
}

#[test]
fn a_host_that_hangs_is_named_within_the_time_limits() {
    let _machine = Machine::take();
    let stop = |serving: &Running| serving.signal(Signal::SIGSTOP);
    let (ended, _) = interrupted_by("", stop, LIMIT / 2);
    let said = &ended.stderr;
    assert!(
        said.contains("did not answer") || said.contains("did not arrive"),
        "{said}"
    );
}

#[test]
fn a_host_that_hangs_while_probes_are_exchanged_is_named_as_well() {
    let machine = Machine::take();
    let serving = serve("--once --quiet");
    let out = machine.out("run");
    let more = "--burst 10 --repeat 2000 --pause 30ms --probes 2000 --timeout 2s";
    let running = hcabench(&options(more)).out(&out).start();
    wait_until("it measures", LIMIT, || out.join("runs.csv").exists());
    std::thread::sleep(Duration::from_secs(3));
    serving.signal(Signal::SIGSTOP);
    let begun = Instant::now();
    running.wait(LIMIT).expect(1);
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
    assert!(out.join("INCOMPLETE").exists());
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_the_host_free_for_the_next() {
    let machine = Machine::take();
    let serving = serve("");
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let out = machine.out(signal.as_str());
        let running = hcabench(&options("--burst 4000 --pause 2ms"))
            .out(&out)
            .start();
        wait_until("it measures", LIMIT, || out.join("runs.csv").exists());
        running.signal(signal);
        let _ = running.wait(LIMIT);
        let next = machine.out(format!("after-{signal}"));
        wait_until("it is free", LIMIT / 4, || {
            let _ = std::fs::remove_dir_all(&next);
            hcabench(&options("--burst 10"))
                .out(&next)
                .run()
                .status
                .success()
        });
        assert_eq!(holds_the_truth(&next), 10);
    }
    serving.signal(Signal::SIGINT);
    serving.wait(LIMIT).expect(0);
}

#[test]
fn what_two_hosts_cannot_measure_is_told_before_anything_is() {
    let machine = Machine::take();
    let serving = serve("");
    let out = machine.out("run");
    for (more, said) in [
        (
            "--memory-load 50%",
            "--memory-load is not measured between two hosts",
        ),
        (
            "--background 10@64",
            "--background 10@64 is not measured between two hosts",
        ),
        ("--receiver nothing", "nothing"),
    ] {
        let ended = send(more, &out).expect(2);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(!out.exists());
    }
    serving.signal(Signal::SIGTERM);
    serving.wait(LIMIT).expect(0);
    let ended = send("--burst 10", &out).expect(1);
    assert!(ended.stderr.contains(ADDRESS), "{}", ended.stderr);
}
