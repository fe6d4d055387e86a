//! `hcabench node --peer`: two processes as two hosts, which have one clock here, so that the truth is known.

use crate::LIMIT;
use crate::common;
use crate::program::{Program, Running};
use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::node::{ends, node};
use common::{Row, figure, hcabench, number, rows, until};
use nix::sys::signal::Signal;

/// The node-types between two hosts that need no broker.
const WITHOUT_BROKER: &[&str] = &[
    "udp",
    "tcp",
    #[cfg(feature = "grpc")]
    "grpc",
    #[cfg(feature = "zeromq")]
    "zeromq",
];
/// No end spins: this machine may have one processor.
const EASY: &str = "--poll event --timer timerfd --probes 20 --hugepages off";

struct Serving {
    running: Running,
    address: String,
}

impl Serving {
    fn start(folder: &Path, more: &str) -> Self {
        let running = hcabench(folder, &format!("serve --bind 127.0.0.1:0 {more}")).start();
        let address = running.line_with("serving at ");
        Serving { running, address }
    }

    fn options(&self, more: &str) -> String {
        format!("--peer {} {EASY} {more}", self.address)
    }

    fn start_run(&self, folder: &Path, more: &str) -> Running {
        node(folder, &self.options(more)).start()
    }
}

/// A run that would go on for an hour, once samples come.
fn long(serving: &Serving, folder: &Path) -> Running {
    let run = serving.start_run(folder, "--rate 100 --duration 1h --warmup 0");
    until("its folder", || {
        folder.join("run/INCOMPLETE").exists().then_some(())
    });
    // Probes and greetings are over then; where they are not, it ends all the same.
    std::thread::sleep(Duration::from_secs(2));
    run
}

/// Whether it is ready for the next run, and measures it.
fn is_free(serving: &Serving) {
    let folder = &*temporary("");
    ends(
        folder,
        &serving.options("--rate 200 --count 20 --warmup 0 --after-miss catch-up"),
        0,
    );
    let row = rows(&folder.join("run/summary.csv")).remove(0);
    assert_eq!(number(&row, "messages_received"), 20, "{row:?}");
}

#[track_caller]
fn is_within(sample: &Row) {
    let apart = figure(sample, "t_received_ns") - figure(sample, "t_sent_ns");
    // Stamps of 61 bits are to be subtracted whole.
    assert!(apart < 1e12, "{sample:?}");
    let stamp = |column: &str| sample[column].parse::<i64>().unwrap();
    let latency = stamp("t_received_ns") - stamp("t_sent_ns");
    let bounds = stamp("latency_low_ns")..=stamp("latency_high_ns");
    assert!(bounds.contains(&latency), "{sample:?}");
    assert!(stamp("excess_ns") >= 0, "{sample:?}");
}

#[test]
fn each_sample_is_within_its_bounds_in_all_scenarios() {
    const STEPS: u64 = 40;
    let _alone = common::alone();
    let folder = &*temporary("");
    let serving = Serving::start(folder, "--once --quiet");
    let more = format!(
        "--type {} --scenario straight-run,fan-in,fan-out,round-robin --publishers 2 --subscribers 2 --rate 200 \
         --count {STEPS} --warmup 100ms --samples --rounds 2",
        WITHOUT_BROKER.join(",")
    );
    ends(folder, &serving.options(&more), 0);
    serving.running.wait(LIMIT).expect(0);
    let runs = rows(&folder.join("run/runs.csv"));
    assert_eq!(runs.len(), WITHOUT_BROKER.len() * 2 * 4);
    for row in &runs {
        let copies = 2 * STEPS * if row["scenario"] == "fan-out" { 2 } else { 1 };
        assert_eq!(row["status"], "complete", "{row:?}");
        for (column, expected) in [
            ("messages_expected", copies),
            ("messages_received", copies),
            ("messages_lost", 0),
            ("messages_never_sent", 0),
            ("messages_damaged", 0),
        ] {
            assert_eq!(number(row, column), expected, "{column}: {row:?}");
        }
        let theta = ["low", "high"].map(|end| row[&format!("theta_{end}_ns")].parse::<i64>());
        let [Ok(low), Ok(high)] = theta else {
            panic!("no bounds of theta: {row:?}");
        };
        assert!((low..=high).contains(&0), "{row:?}");
        assert!(figure(row, "half_round_trip_p50_ns") > 0.0, "{row:?}");
        assert!(number(row, "probes") > 0, "{row:?}");
        let samples = rows(&folder.join("run").join(&row["point"]).join("out.csv"));
        let of_round = samples
            .iter()
            .filter(|sample| sample["round"] == row["round"]);
        assert_eq!(
            of_round.inspect(|sample| is_within(sample)).count() as u64,
            copies
        );
    }
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/check-bounds");
    let checked = Program::under(&["python3", check], folder.join("run"), "").ends(0);
    let rounds = format!("{} rounds, 0 failed", runs.len());
    checked.stdout.has(&[&rounds]);
    hcabench(folder, "show run").ends(0).stdout.has(&[
        "half rt p50",
        "half rt p50 is",
        "p50 at most",
        "udp",
        "rank: not decided: 2 rounds are too few",
        "figure: hcabench plot median run --metric half-round-trip --out layers.svg",
    ]);
    let plot = hcabench(
        folder,
        "plot percentiles run --metric half-round-trip --only scenario=fan-in --out half.svg",
    );
    plot.ends(0);
    hcabench(folder, "report run --out run.html").ends(0);
    let page = fs::read_to_string(folder.join("run.html")).unwrap();
    page.has(&["Bounds of the latency of samples between two hosts"]);
}

#[test]
fn what_two_hosts_cannot_measure_is_refused_before_the_other_one_is_reached() {
    let folder = &*temporary("");
    // No process listens there.
    let peer = "--peer 127.0.0.1:1";
    for (words, said) in [
        ("--type shmem", ["--type shmem", "memory of one host"]),
        ("--type unix", ["--type unix", "--peer"]),
        #[cfg(feature = "mqtt")]
        ("--type mqtt", ["--broker HOST:PORT", "--peer"]),
        ("--type multicast", ["--type multicast", "--peer"]),
        ("--ends processes", ["--ends processes", "--peer"]),
        ("--find-rate p99<50us", ["--find-rate", "--peer"]),
        ("--log file", ["--log file", "no results folder"]),
        (
            "--samples --format villas",
            ["--format villas", "two clocks"],
        ),
        (
            "--scenario straight-run --publishers 2",
            ["--publishers 2", "must be equal"],
        ),
        ("--probes 1", ["--probes", "10"]),
        ("--clock-drift 2000000", ["--clock-drift", "1000000"]),
    ] {
        let ended = ends(folder, &format!("{peer} {words}"), 2);
        ended.told().has(&said);
        assert!(!folder.join("run").exists(), "{words}");
    }
    let counter = hcabench(
        folder,
        &format!("node {peer} --timer counter --clock-uncertainty 1us"),
    );
    counter
        .ends(2)
        .told()
        .has(&["--clock-uncertainty", "--timer timerfd"]);
    for alone in ["--probes 20", "--clock-drift 0", "--clock-uncertainty 1us"] {
        ends(folder, alone, 2).told().has(&["there is one host"]);
    }
    ends(folder, peer, 1)
        .told()
        .has(&["connecting to 127.0.0.1:1"]);
}

#[test]
fn node_types_that_cannot_cross_hosts_are_left_out_with_the_reason() {
    let folder = &*temporary("");
    let serving = Serving::start(folder, "--once");
    ends(
        folder,
        &serving.options("--type all --rounds 1 --rate 200 --count 20 --warmup 0"),
        0,
    );
    let summary = rows(&folder.join("run/summary.csv"));
    let measured: Vec<&str> = summary.iter().map(|row| row["type"].as_str()).collect();
    assert_eq!(measured, WITHOUT_BROKER);
    let left_out = rows(&folder.join("run/left_out.csv"));
    for name in ["shmem", "loopback", "unix", "multicast"] {
        let row = left_out.iter().find(|row| row["type"] == name);
        row.unwrap_or_else(|| panic!("{name} is not there"))["reason"].has(&["--peer"]);
    }
    #[cfg(feature = "mqtt")]
    {
        let row = left_out.iter().find(|row| row["type"] == "mqtt").unwrap();
        row["reason"].has(&["--peer", "--broker HOST:PORT"]);
    }
    serving.running.wait(LIMIT).expect(0);
}

#[cfg(feature = "zeromq")]
#[test]
fn subscribers_of_zeromq_listen_at_the_port_that_is_named() {
    let folder = &*temporary("");
    let serving = Serving::start(folder, "--once");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let more = format!(
        "--type zeromq --zeromq-port {port} --rate 200 --count 20 --warmup 0 --after-miss catch-up"
    );
    ends(folder, &serving.options(&more), 0);
    let row = rows(&folder.join("run/summary.csv")).remove(0);
    assert_eq!(number(&row, "messages_received"), 20, "{row:?}");
    serving.running.wait(LIMIT).expect(0);
}

#[cfg(feature = "zeromq")]
#[test]
fn what_the_other_host_does_not_have_is_left_out() {
    let served = &*temporary("");
    fs::write(served.join("libzmq.so.5"), "").unwrap();
    let serve = hcabench(served, "serve --bind 127.0.0.1:0 --once");
    let running = serve.env("LD_LIBRARY_PATH", served).start();
    let address = running.line_with("serving at ");
    let serving = Serving { running, address };
    let folder = &*temporary("");
    let more = "--type udp,zeromq --rate 200 --count 20 --warmup 0";
    ends(folder, &serving.options(more), 0);
    assert_eq!(rows(&folder.join("run/summary.csv")).len(), 1);
    let left_out = rows(&folder.join("run/left_out.csv"));
    assert_eq!(left_out[0]["type"], "zeromq");
    left_out[0]["reason"].has(&["--type zeromq", "--peer", "install"]);
    serving.running.wait(LIMIT).expect(0);
}

#[cfg(all(feature = "mqtt", feature = "nats", feature = "redis"))]
#[test]
fn each_sample_by_way_of_a_broker_that_both_hosts_reach_is_within_its_bounds() {
    use hcabench::node::broker::{Broker, MOSQUITTO, NATS_SERVER, REDIS_SERVER};
    const STEPS: u64 = 200;
    let _alone = common::alone();
    let served = &*temporary("");
    let serving = Serving::start(served, "");
    for (node_type, program) in [
        ("mqtt", &MOSQUITTO),
        ("nats", &NATS_SERVER),
        ("redis", &REDIS_SERVER),
        ("redis --redis-kind streams", &REDIS_SERVER),
    ] {
        let folder = &*temporary("");
        let broker = Broker::spawn(program, || true).unwrap();
        let more = format!(
            "--type {node_type} --broker {} --broker-process {} --publishers 2 --subscribers 2 --rate 200 --count \
             {STEPS} --warmup 100ms --samples --after-miss catch-up",
            broker.address(),
            broker.id()
        );
        ends(folder, &serving.options(&more), 0);
        let row = rows(&folder.join("run/summary.csv")).remove(0);
        assert_eq!(number(&row, "messages_received"), 2 * STEPS, "{row:?}");
        assert!(number(&row, "broker_rss_bytes") > 0, "{row:?}");
        let samples = rows(&folder.join("run").join(&row["point"]).join("out.csv"));
        assert_eq!(
            samples.iter().inspect(|it| is_within(it)).count() as u64,
            2 * STEPS
        );
    }
}

#[test]
fn a_host_that_is_killed_ends_the_run_which_is_marked() {
    let _alone = common::alone();
    for kind in ["udp", "tcp"] {
        let folder = &*temporary("");
        let serving = Serving::start(folder, "");
        let run = long(&serving, folder);
        let (begun, limit) = (Instant::now(), common::end_after_signal());
        serving.running.signal(Signal::SIGKILL);
        let ended = run.wait(LIMIT).expect(1);
        assert!(begun.elapsed() < limit, "{kind}: {:?}", begun.elapsed());
        ended
            .told()
            .has(&[&serving.address, "has closed the connection"]);
        assert!(folder.join("run/INCOMPLETE").exists());
    }
}

#[test]
fn a_host_that_hangs_is_named_within_the_time_limits() {
    let _alone = common::alone();
    let folder = &*temporary("");
    let serving = Serving::start(folder, "");
    let run = long(&serving, folder);
    serving.running.signal(Signal::SIGSTOP);
    run.wait(LIMIT)
        .expect(1)
        .told()
        .has(&["did not answer within 10 s"]);
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_the_host_free() {
    let _alone = common::alone();
    let served = &*temporary("");
    let serving = Serving::start(served, "");
    for (signal, code) in [(Signal::SIGINT, Some(1)), (Signal::SIGKILL, None)] {
        let folder = &*temporary("");
        let run = long(&serving, folder);
        let begun = Instant::now();
        run.signal(signal);
        let ended = run.wait(LIMIT);
        if let Some(code) = code {
            ended.expect(code);
            assert!(begun.elapsed() < common::end_after_signal());
        }
        assert!(folder.join("run/INCOMPLETE").exists());
        is_free(&serving);
    }
    serving.running.signal(Signal::SIGTERM);
    serving.running.wait(LIMIT).expect(0);
}

#[test]
fn a_signal_to_the_host_that_serves_ends_both() {
    let _alone = common::alone();
    let folder = &*temporary("");
    let serving = Serving::start(folder, "");
    let run = long(&serving, folder);
    let begun = Instant::now();
    serving.running.signal(Signal::SIGTERM);
    serving.running.wait(LIMIT);
    run.wait(LIMIT).expect(1);
    assert!(
        begun.elapsed() < common::end_after_signal(),
        "{:?}",
        begun.elapsed()
    );
}
