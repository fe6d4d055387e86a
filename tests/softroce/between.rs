//! Two processes as two hosts: what the one sends, the other receives. Both have the same clock here, so that the truth
//! is known: the clocks are apart by nothing, and each message's latency is the difference of its stamps.

use crate::testing::Has as _;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::loss::wait_for_traffic;
use crate::machine::{Away, Machine, wait_until};
use crate::program::{Ended, LIMIT, Program, Running, hcabench};
use crate::results::{Results, Row, Table};
use crate::scratch;

const ADDRESS: &str = "127.0.0.1:18599";

/// The other host.
struct Serving(Running);

impl Serving {
    fn start(starter: &[&str], options: &str) -> Self {
        let words = format!("serve --bind 127.0.0.1 --receiver rxe1 {options}");
        let serving = Program::under(starter, crate::program::path(), &words).start();
        serving.wait_for_line(&format!("serving at {ADDRESS}"));
        Serving(serving)
    }

    fn wait(self) {
        self.0.wait(LIMIT).expect(0);
    }

    fn end(self, signal: Signal) -> Ended {
        self.0.signal(signal);
        self.0.wait(LIMIT).expect(0)
    }
}

fn serve() -> Serving {
    Serving::start(&[], "")
}

const ONCE: &str = "--once --quiet";

/// The same with a clock that is ahead by so many nanoseconds, or `random`, which then stand in a file.
fn serve_ahead(offset: &str, told: &Path) -> Serving {
    let shift = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/guest-clock");
    let told = told.to_str().unwrap();
    Serving::start(&[shift, "--offset", offset, "--tell", told, "--"], ONCE)
}

/// What sends to it: each process has one of the two CPUs.
fn options(more: &str) -> String {
    format!(
        "--peer 127.0.0.1 --sender rxe0 --sender-cpu 0 --completion-cpu 0 --receiver-cpu 1 --hugepages off --probes 100 {more}"
    )
}

fn sending(more: &str, out: &Path) -> Program {
    hcabench(&options(more)).out(out)
}

#[track_caller]
fn send(more: &str, out: &Path) {
    sending(more, out).ends(0);
}

fn measuring(more: &str, out: &Path) -> Running {
    let running = sending(more, out).start();
    wait_until("it measures", LIMIT, || out.join("runs.csv").exists());
    running
}

/// Waits until the host measures with another one.
fn is_free(out: &Path) {
    wait_until("it is free", LIMIT / 4, || {
        let _ = std::fs::remove_dir_all(out);
        sending("--burst 10", out).run().is_success()
    });
}

fn runs(out: &Path) -> Vec<Row> {
    Table::read(&out.join("runs.csv")).rows
}

/// How many messages of a point arrived, all within their bounds.
fn within(out: &Path, point: &str, ahead: i64) -> usize {
    let messages = Table::read(&out.join(point).join("messages.csv")).rows;
    let within = messages.iter().filter(|message| is_within(message, ahead));
    within.count()
}

/// Each point's folder has messages whose latency is within its bounds, all of them, and the clocks are apart by nothing.
fn holds_the_truth(out: &Path) -> usize {
    let mut points = BTreeSet::new();
    for row in runs(out) {
        assert_eq!(row.text("status"), "complete", "{row:?}");
        let theta = row.whole("theta_low_ns")..=row.whole("theta_high_ns");
        assert!(theta.contains(&0), "{row:?}");
        let rate = row.decimal("clock_rate_low_ppm")..=row.decimal("clock_rate_high_ppm");
        assert!(rate.contains(&0.0), "{row:?}");
        points.insert(row.text("point").to_owned());
    }
    points.iter().map(|point| within(out, point, 0)).sum()
}

/// Whether a message arrived; if it did, within its bounds, the receiver's clock so many nanoseconds ahead.
pub(crate) fn is_within(message: &Row, ahead: i64) -> bool {
    let stamp = |column| message.optional(column);
    let from = stamp("t_send_ns").or(stamp("t_subm_ns")).unwrap();
    let stamps = ["t_recv_ns", "latency_low_ns", "latency_high_ns"].map(stamp);
    let [Some(to), Some(low), Some(high)] = stamps else {
        return false;
    };
    assert!((low..=high).contains(&(to - ahead - from)), "{message:?}");
    true
}

pub(crate) fn bounds_are_computed_again(out: &Path) {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/check-bounds");
    let checked = Program::under(&["python3", check], out, "").ends(0);
    checked.stdout.has(&[", 0 failed"]);
}

#[test]
fn every_message_is_within_its_bounds_whatever_it_is_sent_by() {
    let machine = Machine::take();
    let serving = serve();
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
            "shared-requests",
            "--service rc,ud --srq --queue-pairs 3 --burst 100",
            2 * 100,
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
        send(more, &out);
        // UC and UD may lose some, and none did here. Of stamps that are rewritten nobody knows how many were in time.
        let found = holds_the_truth(&out);
        assert!(found == arrived || arrived == 0, "{name}: {found}");
        bounds_are_computed_again(&out);
    }
    serving.end(Signal::SIGTERM);
}

/// Reads and atomics have completions, on one clock, and what they brought is checked; the probes bound the clocks.
#[test]
fn reads_and_atomics_are_answered_by_the_far_adapter() {
    let machine = Machine::take();
    let serving = Serving::start(&[], ONCE);
    let out = machine.out("run");
    let words = "--operation read,compare-swap,fetch-add --burst 100 --repeat 2";
    send(words, &out);
    let runs = runs(&out);
    assert_eq!(runs.len(), 3);
    for row in &runs {
        assert_eq!(row.count("completions"), 200, "{row:?}");
        assert_eq!(row.count("messages_corrupted"), 0, "{row:?}");
        let empty = ["messages_received", "one_way_p50_high_ns"];
        assert_eq!(empty.map(|column| row.text(column)), [""; 2]);
        assert!(row.decimal("completion_latency_p50_ns") > 0.0, "{row:?}");
    }
    assert_eq!(holds_the_truth(&out), 0);
    bounds_are_computed_again(&out);
    serving.wait();
}

#[test]
fn a_device_that_is_removed_in_the_middle_ends_the_run() {
    let _machine = Machine::take();
    for device in ["rxe0", "rxe1"] {
        let mut removed = None;
        let (_, why) = interrupted_by("", |_| removed = Some(Away::take(device)), LIMIT / 2);
        why.has(&[&format!("the device {device} was removed")]);
        if let Some(removed) = removed {
            removed.bring_back();
        }
    }
}

#[test]
fn the_width_at_one_rate_is_at_most_the_shortest_round_trip() {
    let machine = Machine::take();
    let serving = Serving::start(&[], ONCE);
    let out = machine.out("run");
    send("--clock-drift 0 --burst 20 --rounds 3", &out);
    for row in runs(&out) {
        let width = row.decimal("theta_high_ns") - row.decimal("theta_low_ns");
        let shortest = row.decimal("round_trip_min_ns");
        assert!(width > 0.0 && width <= shortest, "{row:?}");
    }
    // All three rounds were one run.
    serving.wait();
}

/// `ci/measure hidden-offsets` shifts 200.
#[test]
fn a_hidden_offset_of_the_clocks_is_within_its_bounds() {
    let machine = Machine::take();
    let hidden = machine.out("hidden");
    for number in 0..crate::count_or(3) {
        let serving = serve_ahead("random", &hidden);
        let out = machine.out(number.to_string());
        let drift = ["", "--clock-drift 0"][number % 2];
        send(&format!("--burst 50 {drift}"), &out);
        serving.wait();
        let ahead = std::fs::read_to_string(&hidden).unwrap();
        let ahead: i64 = ahead.trim().parse().unwrap();
        let row = runs(&out).remove(0);
        let (low, high) = (row.whole("theta_low_ns"), row.whole("theta_high_ns"));
        assert!((low..=high).contains(&ahead), "{ahead}: {row:?}");
        if !drift.is_empty() {
            let shortest = row.decimal("round_trip_min_ns");
            assert!((high - low) as f64 <= shortest, "{row:?}");
        }
        assert_eq!(within(&out, row.text("point"), ahead), 50);
        bounds_are_computed_again(&out);
        println!("{number}: {ahead} ns is from {low} to {high}");
    }
}

/// One host has one time of day: what is declared of it holds, though the clocks of the stamps are apart.
#[test]
fn what_is_declared_of_the_times_of_day_narrows_the_bounds() {
    let machine = Machine::take();
    let ahead = 1_500_000_000;
    let serving = serve_ahead(&ahead.to_string(), &machine.out("told"));
    let out = machine.out("run");
    send("--clock-uncertainty 2us --clock-drift 0 --burst 50", &out);
    serving.wait();
    let row = runs(&out).remove(0);
    assert_eq!(row.text("clocks"), "declared");
    // What is proved is still told.
    let (low, high) = (row.whole("theta_low_ns"), row.whole("theta_high_ns"));
    assert!((low..=high).contains(&ahead), "{row:?}");
    assert_eq!(within(&out, row.text("point"), ahead), 50);
    let proved = (high - low) as f64;
    let width = row.decimal("one_way_p50_high_ns") - row.decimal("one_way_p50_low_ns");
    assert!(width < proved, "{width} and {proved}");
    bounds_are_computed_again(&out);
}

#[test]
fn what_is_no_run_is_turned_away_and_the_run_goes_on() {
    let machine = Machine::take();
    let serving = serve();
    let out = machine.out("run");
    let running = measuring("--burst 2000 --pause 2ms --timeout 20s", &out);
    // A scan, a browser, a line without end, and another run.
    drop(TcpStream::connect(ADDRESS).unwrap());
    let mut browser = TcpStream::connect(ADDRESS).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut endless = TcpStream::connect(ADDRESS).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let _ = (0..20).all(|_| endless.write_all(&chunk).is_ok());
    let mut silent = TcpStream::connect(ADDRESS).unwrap();
    let _others = [(); 20].map(|()| TcpStream::connect(ADDRESS).unwrap());
    let other = sending("--burst 10", &machine.out("other")).ends(1);
    other.stderr.has(&["busy: it serves a run of"]);
    running.wait(LIMIT).expect(0);
    assert_eq!(holds_the_truth(&out), 2000);
    // Who says nothing is let go.
    silent.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0);
    let said = serving.end(Signal::SIGTERM).stderr;
    assert!(said.matches("refused 127.0.0.1").count() >= 4, "{said}");
}

#[test]
fn what_a_greeted_run_must_not_say_ends_it_and_not_the_host() {
    let machine = Machine::take();
    let serving = serve();
    let program = {
        // As the program itself says it.
        let out = machine.out("first");
        send("--burst 10", &out);
        let settings = std::fs::read_to_string(out.join("settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&settings).unwrap();
        settings["hcabench"].clone()
    };
    let hello = |program: &Value| {
        let greeting = json!({
            "program": program, "run": "made-up", "host": "nobody", "benchmark": "hca", "port": null
        });
        json!({ "hello": greeting }).to_string()
    };
    let said = |lines: &[&str]| {
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
    said(&[&hello(&other)]).has(&[
        "it is hcabench ",
        ", and asked by hcabench ",
        "of commit 0000000: install the same on both hosts",
    ]);
    for line in [
        r#"{"probe":{"first":4294967295,"count":4294967295}}"#,
        r#"{"point":{}}"#,
        r#""point_over""#,
        "not json",
    ] {
        said(&[&hello(&program), line, line]).has(&["welcome"]);
    }
    is_free(&machine.out("next"));
    serving.end(Signal::SIGTERM);
}

#[test]
fn with_a_secret_all_rounds_are_measured_and_with_another_one_none() {
    const SECRET: &str = "known to both of these hosts";
    let machine = Machine::take();
    let words = "serve --bind 127.0.0.1 --receiver rxe1";
    let serving = hcabench(words).env("HCABENCH_SECRET", SECRET).start();
    serving.wait_for_line(&format!("serving at {ADDRESS}"));
    let serving = Serving(serving);
    let out = machine.out("run");
    let other =
        sending("--burst 50 --rounds 2", &out).env("HCABENCH_SECRET", "known to this host alone");
    other.ends(1).stderr.has(&["the secrets differ"]);
    assert!(!out.join("summary.csv").exists());
    let out = machine.out("with");
    let right = sending("--burst 50 --rounds 2", &out).env("HCABENCH_SECRET", SECRET);
    right.ends(0);
    assert_eq!(runs(&out).len(), 2);
    assert_eq!(holds_the_truth(&out), 100);
    serving
        .end(Signal::SIGTERM)
        .stderr
        .has(&["has another secret"]);
}

/// How a run ends whose other host does something in the middle, and what its mark says.
fn interrupted_by(more: &str, what: impl FnOnce(&Running), limit: Duration) -> (Ended, String) {
    let folder = scratch();
    let serving = Serving::start(&[], ONCE);
    let out = folder.path().join("run");
    let more = format!("--burst 4000 --pause 2ms --timeout 2s {more}");
    let running = measuring(&more, &out);
    wait_for_traffic();
    let begun = Instant::now();
    what(&serving.0);
    let ended = running.wait(LIMIT).expect(1);
    assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    assert_eq!(runs(&out)[0].text("status"), "incomplete");
    (ended, Results::at(&out).mark())
}

#[test]
fn a_host_that_is_killed_is_named_at_once() {
    let _machine = Machine::take();
    let kill = |serving: &Running| serving.signal(Signal::SIGKILL);
    for operation in ["send", "read"] {
        let (_, why) = interrupted_by(&format!("--operation {operation}"), kill, LIMIT / 4);
        why.has(&["127.0.0.1:18599 has closed the connection"]);
    }
}

#[test]
fn a_host_that_hangs_is_named_within_the_time_limits() {
    let _machine = Machine::take();
    let stop = |serving: &Running| serving.signal(Signal::SIGSTOP);
    let (ended, _) = interrupted_by("", stop, LIMIT / 2);
    let said = ["did not answer", "did not arrive"];
    assert!(said.iter().any(|it| ended.stderr.contains(it)), "{ended:?}");
}

#[test]
fn a_host_that_hangs_while_probes_are_exchanged_is_named_as_well() {
    let machine = Machine::take();
    let serving = Serving::start(&[], ONCE);
    let out = machine.out("run");
    let more = "--burst 10 --repeat 2000 --pause 30ms --probes 2000 --timeout 2s";
    let running = measuring(more, &out);
    std::thread::sleep(Duration::from_secs(3));
    serving.0.signal(Signal::SIGSTOP);
    let begun = Instant::now();
    running.wait(LIMIT).expect(1);
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
    assert!(out.join("INCOMPLETE").exists());
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_the_host_free_for_the_next() {
    let machine = Machine::take();
    let serving = serve();
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let out = machine.out(signal.as_str());
        let running = measuring("--burst 4000 --pause 2ms", &out);
        running.signal(signal);
        let _ = running.wait(LIMIT);
        let next = machine.out(format!("after-{signal}"));
        is_free(&next);
        assert_eq!(holds_the_truth(&next), 10);
    }
    serving.end(Signal::SIGINT);
}

#[test]
fn what_two_hosts_cannot_measure_is_told_before_anything_is() {
    let machine = Machine::take();
    let serving = serve();
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
        sending(more, &out).ends(2).stderr.has(&[said]);
        assert!(!out.exists());
    }
    serving.end(Signal::SIGTERM);
    sending("--burst 10", &out).ends(1).stderr.has(&[ADDRESS]);
}
