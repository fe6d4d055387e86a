//! `hcabench node` by brokers and by libzmq: what comes where, by the word of others as well, and what breaks.

use crate::LIMIT;
use crate::common;
use crate::program::{send, until};
use crate::testing::{Has as _, temporary};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::node::{ends, node, start};
use common::{Row, number, rows};
#[cfg(feature = "nats")]
use hcabench::node::broker::NATS_SERVER;
#[cfg(feature = "redis")]
use hcabench::node::broker::REDIS_SERVER;
use hcabench::node::broker::{Broker, BrokerProgram, MOSQUITTO};
use nix::sys::signal::Signal;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The number of greetings, which a sample never has.
pub(crate) const GREETING: u64 = (1 << 48) - 1;

/// Options of `--type`, and the brokers that they take.
const SERVED: &[(&str, &BrokerProgram)] = &[
    ("mqtt", &MOSQUITTO),
    #[cfg(feature = "nats")]
    ("nats", &NATS_SERVER),
    #[cfg(feature = "redis")]
    ("redis", &REDIS_SERVER),
    #[cfg(feature = "redis")]
    ("redis --redis-kind streams", &REDIS_SERVER),
];

pub(crate) fn summary(folder: &Path) -> Vec<Row> {
    rows(&folder.join("run/summary.csv"))
}

pub(crate) fn samples(folder: &Path, row: &Row) -> Vec<Row> {
    rows(&folder.join("run").join(&row["point"]).join("out.csv"))
}

pub(crate) fn within_patience<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until(what, PATIENCE, look)
}

struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// mosquitto_sub, which writes a line in hexadecimal for each message of that topic.
fn listener(broker: &Broker, topic: &str, more: &[&str]) -> (Ours, BufReader<ChildStdout>) {
    let address = broker.address();
    let mut child = Command::new("mosquitto_sub")
        .args(["-h", &address.host, "-p", &address.port.to_string()])
        .args(["-t", topic, "-V", "5"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (Ours(child), lines)
}

/// One that writes the samples of all runs, and listens when this returns.
fn listener_of_all(broker: &Broker) -> (Ours, BufReader<ChildStdout>) {
    let (child, mut lines) = listener(broker, "#", &["-F", "%x"]);
    let address = broker.address();
    let mut greeted = String::new();
    let begun = Instant::now();
    while greeted.is_empty() {
        let mut command = Command::new("mosquitto_pub");
        command.args(["-h", &address.host, "-p", &address.port.to_string()]);
        command.args(["-t", "first", "-r", "-m", "x"]);
        let published = command.output().unwrap();
        if !published.status.success() {
            assert!(begun.elapsed() < PATIENCE, "{published:?}");
            continue;
        }
        // Retained: it comes however late the listener is.
        lines.read_line(&mut greeted).unwrap();
    }
    (child, lines)
}

/// Stamp and header of a sample from its hexadecimal digits.
fn sample(line: &str) -> Option<(u64, u64)> {
    let word = |at: usize| {
        let digits = line.trim().get(16 * at..16 * (at + 1))?;
        Some(u64::from_str_radix(digits, 16).ok()?.swap_bytes())
    };
    Some((word(0)?, word(1)?))
}

/// That a subscriber of ours got what somebody else saw, by stamp, publisher and number, and nothing else.
pub(crate) fn assert_same_samples(ours: &[Row], subscriber: &str, seen: &BTreeMap<u64, u64>) {
    let ours: Vec<&Row> = (ours.iter().filter(|it| it["subscriber"] == subscriber)).collect();
    assert!(!ours.is_empty());
    // The number of the first sample that counts.
    let mut first = BTreeMap::new();
    for row in &ours {
        let header = seen.get(&number(row, "t_sent_ns"));
        let header = *header.unwrap_or_else(|| panic!("{row:?} was not seen"));
        let publisher = number(row, "publisher");
        assert_eq!(header >> 48, publisher);
        let begins = (header & GREETING) - number(row, "seq");
        assert_eq!(*first.entry(publisher).or_insert(begins), begins, "{row:?}");
    }
    let counts = |header: &u64| {
        let (number, first) = (header & GREETING, first.get(&(header >> 48)));
        number != GREETING && first.is_some_and(|&first| number >= first)
    };
    let stamps = |row: &&Row| number(row, "t_sent_ns");
    let others: BTreeSet<u64> = (seen.iter().filter(|(_, header)| counts(header)))
        .map(|(&stamp, _)| stamp)
        .collect();
    assert_eq!(ours.iter().map(stamps).collect::<BTreeSet<u64>>(), others);
}

/// By each node-type each subscriber gets what `expected` says; without that, something.
fn assert_counts(scenarios: &str, subscribers: u64, expected: impl Fn(&str, u64) -> Option<u64>) {
    let folder = &*temporary("");
    let served = SERVED
        .iter()
        .filter_map(|(words, _)| words.split(' ').next());
    let types: BTreeSet<&str> = served.chain(["zeromq"]).collect();
    let count = types.len();
    let types = Vec::from_iter(types).join(",");
    let words = format!(
        "--type {types} --scenario {scenarios} --publishers 4 --subscribers {subscribers} --rate 200 --count 60 \
         --warmup 50ms --qos 1 --redis-kind streams --poll event --samples"
    );
    ends(folder, &words, 0);
    let summary = summary(folder);
    assert_eq!(summary.len(), count * scenarios.split(',').count());
    for row in &summary {
        let scenario = row["scenario"].as_str();
        let arrived = samples(folder, row);
        let at = |subscriber: u64| {
            let its = arrived
                .iter()
                .filter(|it| number(it, "subscriber") == subscriber);
            its.count() as u64
        };
        for subscriber in 0..subscribers {
            match expected(scenario, subscriber) {
                Some(count) => assert_eq!(at(subscriber), count, "{row:?}"),
                None => assert!(at(subscriber) > 0, "{row:?}"),
            }
        }
        let copies = match scenario {
            "fan-out" => subscribers,
            _ => 1,
        };
        assert_eq!(number(row, "messages_sent"), 4 * 60);
        assert_eq!(number(row, "messages_received"), 4 * 60 * copies);
        assert_eq!(number(row, "messages_expected"), 4 * 60 * copies);
        let expected = match row["type"].as_str() {
            "mqtt" | "redis" => ["240", "broker"],
            "nats" => ["", "broker"],
            _ => ["", "library"],
        };
        assert_eq!([&row["messages_acked"], &row["distributed_by"]], expected);
    }
}

#[test]
fn straight_run_gives_each_subscriber_what_its_publisher_sent() {
    assert_counts("straight-run", 4, |_, _| Some(60));
}

#[test]
fn fan_in_fan_out_and_round_robin_give_subscribers_their_shares() {
    let expected = |scenario: &str, _| match scenario {
        "fan-in" => Some(2 * 60),
        "fan-out" => Some(4 * 60),
        _ => None,
    };
    assert_counts("fan-in,fan-out,round-robin", 2, expected);
}

#[test]
fn the_broker_and_mosquitto_sub_count_the_same() {
    let folder = &*temporary("");
    let broker = Broker::spawn(&MOSQUITTO, || true).unwrap();
    let (mut child, mut lines) = listener_of_all(&broker);
    let words = format!(
        "--type mqtt --broker {} --scenario fan-out --publishers 2 --subscribers 2 --rate 200 --count 100 --warmup \
         100ms --samples",
        broker.address()
    );
    ends(folder, &words, 0);
    // What the broker says that it has been sent; retained ones it does not count.
    let published = || {
        let topic = "$SYS/broker/publish/messages/received";
        let (_child, mut lines) = listener(&broker, topic, &["-C", "1", "-W", "5"]);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    send(Signal::SIGTERM, child.0.id());
    child.0.wait().unwrap();
    let mut seen = BTreeMap::new();
    let mut all = String::new();
    lines.read_to_string(&mut all).unwrap();
    let count = all.lines().count() as u64;
    seen.extend(all.lines().filter_map(sample));
    let summary = summary(folder);
    let ours = samples(folder, &summary[0]);
    assert_eq!(ours.len(), 2 * 2 * 100);
    for subscriber in ["0", "1"] {
        assert_same_samples(&ours, subscriber, &seen);
    }
    // It counts once a second.
    within_patience("the broker's count", || {
        (published() == count).then_some(())
    });
}

/// Reads from a publisher's port until its standard input ends; then writes stamp, header and its own time.
const SUBSCRIBER: &str = r#"
import select, struct, sys, time, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.RECONNECT_IVL, 10)
socket.setsockopt(zmq.RCVHWM, 0)
socket.setsockopt(zmq.SUBSCRIBE, b"")
socket.connect(sys.argv[1])
print("ready", flush=True)
rows = []
while True:
    if socket.poll(100):
        sample = socket.recv()
        rows.append((*struct.unpack("<QQ", sample[:16]), time.time_ns()))
    elif select.select([sys.stdin], [], [], 0)[0]:
        break
for row in rows:
    print(*row)
"#;

#[test]
fn a_subscriber_in_python_sees_the_same_samples() {
    let folder = &*temporary("");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    // The one that Debian's python3-zmq is for.
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", SUBSCRIBER, &format!("tcp://127.0.0.1:{port}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(python.stdout.take().unwrap());
    let input = python.stdin.take();
    let _python = Ours(python);
    let mut told = String::new();
    lines.read_line(&mut told).unwrap();
    assert_eq!(told, "ready\n");
    let words = format!(
        "--type zeromq --zeromq-port {port} --scenario fan-out --subscribers 2 --rate 200 --count 200 --warmup 2s \
         --samples"
    );
    ends(folder, &words, 0);
    drop(input);
    told.clear();
    lines.read_to_string(&mut told).unwrap();
    let (mut seen, mut latencies) = (BTreeMap::new(), Vec::new());
    for line in told.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
        seen.insert(numbers[0], numbers[1]);
        latencies.push(numbers[2].cast_signed() - numbers[0].cast_signed());
    }
    let ours = samples(folder, &summary(folder)[0]);
    assert_eq!(ours.len(), 2 * 200);
    assert_same_samples(&ours, "0", &seen);
    assert_same_samples(&ours, "1", &seen);
    // Both count from the Unix epoch; how long it takes is not asserted.
    latencies.sort_unstable();
    let median = Duration::from_nanos(latencies[latencies.len() / 2].unsigned_abs());
    assert!(median < PATIENCE, "{median:?}");
}

/// Reads until samples that count are being sent: those of that number and later.
fn await_number(lines: &mut BufReader<ChildStdout>, wanted: u64) {
    let mut line = String::new();
    loop {
        line.clear();
        let length = lines.read_line(&mut line).unwrap();
        assert_ne!(length, 0, "the listener has ended");
        let number = sample(&line).map(|(_, header)| header & GREETING);
        if number.is_some_and(|number| number >= wanted && number != GREETING) {
            return;
        }
    }
}

#[test]
fn a_broker_that_stands_still_shows_in_the_latency() {
    let folder = &*temporary("");
    let broker = Broker::spawn(&MOSQUITTO, || true).unwrap();
    let (_child, mut lines) = listener_of_all(&broker);
    let words = format!(
        "--type mqtt --broker {} --scenario straight-run --rate 100 --count 350 --warmup 100ms --drain 10s",
        broker.address()
    );
    let running = start(folder, &words);
    await_number(&mut lines, 20);
    send(Signal::SIGSTOP, broker.id());
    // Longer than 2 s by more than the samples are apart.
    std::thread::sleep(Duration::from_millis(2100));
    send(Signal::SIGCONT, broker.id());
    running.wait(LIMIT).expect(0);
    let summary = summary(folder);
    let ns = |column: &str| summary[0][column].parse::<f64>().unwrap();
    assert!(ns("latency_max_ns") >= 2e9, "{summary:?}");
    assert!(ns("intended_latency_p99_ns") >= ns("latency_p99_ns"));
    assert_eq!(number(&summary[0], "messages_received"), 350);
}

#[test]
fn a_broker_that_runs_is_measured_by_its_process() {
    for (node_type, program) in SERVED {
        let folder = &*temporary("");
        let broker = Broker::spawn(program, || true).unwrap();
        let (address, process) = (broker.address(), broker.id());
        let run = format!("--type {node_type} --rate 200 --count 400 --warmup 300ms");
        let words = format!("{run} --broker {address} --broker-process {process}");
        ends(folder, &words, 0);
        let row = &summary(folder)[0];
        let [baseline, most, peak] =
            ["_baseline", "", "_peak"].map(|part| number(row, &format!("broker_rss{part}_bytes")));
        assert!(
            0 < baseline && 0 < most && baseline <= peak && most <= peak,
            "{row:?}"
        );
        assert!(
            row["broker_cpu_percent"].parse::<f64>().unwrap() > 0.0,
            "{row:?}"
        );
    }
}

#[test]
fn without_its_process_nothing_is_known_of_a_broker_that_runs() {
    let folder = &*temporary("");
    let broker = Broker::spawn(&MOSQUITTO, || true).unwrap();
    let address = broker.address();
    let run = "--type mqtt --rate 200 --count 400 --warmup 300ms";
    ends(folder, &format!("{run} --broker {address}"), 0);
    assert!(summary(folder)[0]["broker_rss_bytes"].is_empty());

    // The largest number of a process is 4194304.
    for (words, said) in [
        (
            format!("--broker {address} --broker-process 2147483647"),
            "no process",
        ),
        ("--broker-process 1".to_owned(), "--broker HOST:PORT"),
        ("--broker-process 0".to_owned(), "from 1 to"),
    ] {
        ends(&temporary(""), &format!("{run} {words}"), 2)
            .stderr
            .has(&["--broker-process", said]);
    }
}

fn brokers_of(process: u32, program: &BrokerProgram) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let ids = children
        .split_ascii_whitespace()
        .map(|id| id.parse().unwrap());
    let is_broker = |id: &u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm"));
        name.is_ok_and(|name| name.trim() == program.name)
    };
    ids.filter(is_broker).collect()
}

fn sockets_of(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    let targets = files
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| fs::read_link(file.path()));
    let is_socket = |target: &std::path::PathBuf| target.to_string_lossy().starts_with("socket:");
    targets.flatten().filter(is_socket).count()
}

#[test]
fn a_broker_that_is_killed_ends_the_run_and_what_there_is_stays_whole() {
    for (node_type, program) in SERVED {
        let folder = &*temporary("");
        let words = format!("--type {node_type} --rate 100,200 --duration 2s --warmup 50ms");
        let running = start(folder, &words);
        let first = within_patience("a broker", || {
            brokers_of(running.id(), program).first().copied()
        });
        let second = within_patience("another broker", || {
            brokers_of(running.id(), program)
                .into_iter()
                .find(|&id| id != first)
        });
        // It listens, and both clients are there.
        within_patience("clients of the broker", || {
            (sockets_of(second) >= 3).then_some(())
        });
        std::thread::sleep(Duration::from_millis(500));
        send(Signal::SIGKILL, second);
        let ended = running.wait(LIMIT).expect(1);
        ended.stderr.has(&["broker", "127.0.0.1"]);
        let results = folder.join("run");
        assert!(results.join("INCOMPLETE").exists());
        let runs = rows(&results.join("runs.csv"));
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!(number(&runs[0], "messages_lost"), 0);
        assert!(
            number(&runs[0], "broker_rss_bytes") > 0 && !runs[0]["broker_cpu_percent"].is_empty()
        );
    }
}

/// Lets so many clients through to a broker, and is soon gone for those that come later. Returns its port.
fn gone_after(clients: usize, broker: &Broker) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = broker.address().port;
    std::thread::spawn(move || {
        for client in listener.incoming().take(clients) {
            let ends = [
                client.unwrap(),
                TcpStream::connect(("127.0.0.1", behind)).unwrap(),
            ];
            for (from, to) in [(0, 1), (1, 0)] {
                let [mut from, mut to] =
                    [from, to].map(|end: usize| ends[end].try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
        // The next one connects already. Those before have done so by then.
        std::thread::sleep(Duration::from_secs(2));
    });
    port
}

#[test]
fn a_broker_that_was_there_at_first_is_not_the_users_fault() {
    for (node_type, program) in SERVED {
        let broker = Broker::spawn(program, || true).unwrap();
        for clients in [1, 2] {
            let folder = &*temporary("");
            let port = gone_after(clients, &broker);
            let words = format!(
                "--type {node_type} --broker 127.0.0.1:{port} --rate 100,200 --count 20 --warmup 0 --timeout 10s"
            );
            ends(folder, &words, 1).stderr.has(&["cannot connect"]);
            // A run takes two clients.
            let runs = folder.join("run/runs.csv");
            let whole = if runs.exists() { rows(&runs).len() } else { 0 };
            assert_eq!(whole, clients - 1);
        }
    }
}

#[test]
fn the_broker_ends_with_a_run_that_is_killed() {
    for (node_type, program) in SERVED {
        let folder = &*temporary("");
        let words = format!("--type {node_type} --rate 100 --duration 1m");
        let running = start(folder, &words);
        let broker = within_patience("a broker", || {
            brokers_of(running.id(), program).first().copied()
        });
        running.signal(Signal::SIGKILL);
        running.wait(LIMIT);
        // Where no process collects it, its entry stays, without a command line.
        within_patience("the end of the broker", || {
            let line = fs::read(format!("/proc/{broker}/cmdline")).unwrap_or_default();
            line.is_empty().then_some(())
        });
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let taken = silent.port();
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let unanswered = format!("--type mqtt --broker {silent} --timeout 500ms");
    for (words, said) in [
        ("--type mqtt --qos 3", &["--qos", "3", "0, 1, 2"][..]),
        ("--type mqtt --broker localhost", &["--broker", "HOST:PORT"]),
        (
            "--type mqtt --broker nobody.invalid:1883",
            &["--broker nobody.invalid:1883", "cannot connect"],
        ),
        (
            &format!("--type mqtt --broker {nobody}"),
            &["--broker", "refused"],
        ),
        (&unanswered, &["--broker", "--timeout"]),
        (
            &format!("--type zeromq --zeromq-port {taken}"),
            &["--zeromq-port", "in use"],
        ),
    ] {
        let folder = &*temporary("");
        let begun = Instant::now();
        let words = format!("{words} --count 10");
        ends(folder, &words, 2).stderr.has(said);
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn without_libzmq_its_points_are_left_out() {
    let run = |types: &str, code| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("libzmq.so.5"), "").unwrap();
        let words = format!("--type {types} --count 10 --warmup 0");
        let node = node(folder.path(), &words).env("LD_LIBRARY_PATH", folder.path());
        let ended = node.ends(code);
        (folder, ended)
    };
    let (folder, _) = run("udp,zeromq", 0);
    let left_out = rows(&folder.path().join("run/left_out.csv"));
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0]["type"], "zeromq");
    assert!(left_out[0]["reason"].contains("libzmq5"), "{left_out:?}");
    assert_eq!(summary(folder.path()).len(), 1);
    run("zeromq", 2).1.stderr.has(&["libzmq5"]);
}
