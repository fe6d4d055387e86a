//! `hcabench node` by nats-server and redis-server: what others see on the wire, and what breaks.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hcabench::node::broker::{Broker, BrokerProgram, NATS_SERVER, REDIS_SERVER};
use nix::sys::signal::Signal;

use crate::LIMIT;
use crate::common::node::{ends, start};
use crate::common::{number, rows};
use crate::node_broker::{GREETING, PATIENCE, assert_same_samples, samples, summary};
use crate::program::send;
use crate::testing::{Has as _, temporary};

fn connect(broker: &Broker) -> BufReader<TcpStream> {
    let address = broker.address();
    let stream = TcpStream::connect((&*address.host, address.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

/// A line without its end; none once the server has ended.
fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let length = stream.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim_end().to_owned())
}

/// That many bytes, and the end of their line.
fn payload(stream: &mut BufReader<TcpStream>, length: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
    stream.read_exact(&mut bytes).ok()?;
    bytes.truncate(bytes.len() - 2);
    Some(bytes)
}

/// The next message of NATS in its text protocol.
fn message_of_nats(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    loop {
        let line = line(stream)?;
        if line.starts_with("MSG ") {
            return payload(stream, line.rsplit(' ').next().unwrap());
        }
    }
}

/// The next message of a pattern of Redis in its text protocol.
fn message_of_redis(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    while line(stream)? != "pmessage" {}
    let mut last = None;
    for _ in ["pattern", "channel", "message"] {
        let length = line(stream)?;
        last = Some(payload(stream, length.trim_start_matches('$'))?);
    }
    last
}

/// Stamp and header of each sample that anybody sends, in a way that is none of the client's. It listens when this
/// returns, and ends with the broker.
fn all_samples(broker: &Broker, program: &BrokerProgram) -> Receiver<(u64, u64)> {
    let mut stream = connect(broker);
    let is_nats = *program == NATS_SERVER;
    let (asks, answer): (&[u8], &str) = match is_nats {
        true => (
            b"CONNECT {\"verbose\":false}\r\nSUB > 1\r\nPING\r\n",
            "PONG",
        ),
        false => (b"PSUBSCRIBE *\r\n", ":1"),
    };
    stream.get_mut().write_all(asks).unwrap();
    while line(&mut stream).unwrap() != answer {}
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let next = match is_nats {
            true => message_of_nats,
            false => message_of_redis,
        };
        while let Some(sample) = next(&mut stream) {
            let word = |at: usize| u64::from_le_bytes(sample[8 * at..][..8].try_into().unwrap());
            if sender.send((word(0), word(1))).is_err() {
                return;
            }
        }
    });
    receiver
}

/// An answer of Redis in one line.
fn answer_of_redis(broker: &Broker, command: &str) -> String {
    let mut stream = connect(broker);
    write!(stream.get_mut(), "{command}\r\n").unwrap();
    line(&mut stream).unwrap()
}

/// Waits until samples are being sent: of Redis, commands.
fn await_samples(broker: &Broker, program: &BrokerProgram) {
    const MANY: usize = 200;
    if *program == NATS_SERVER {
        let seen = all_samples(broker, program);
        assert_eq!(seen.iter().take(MANY).count(), MANY);
        return;
    }
    let mut stream = connect(broker);
    stream.get_mut().write_all(b"MONITOR\r\n").unwrap();
    for _ in 0..MANY {
        line(&mut stream).unwrap();
    }
}

#[test]
fn others_see_the_same_samples() {
    for (node_type, program) in [("nats", &NATS_SERVER), ("redis", &REDIS_SERVER)] {
        let folder = &*temporary("");
        let broker = Broker::spawn(program, || true).unwrap();
        let seen = all_samples(&broker, program);
        let words = format!(
            "--type {node_type} --broker {} --scenario fan-out --publishers 2 --subscribers 2 --rate 200 --count 100 \
             --warmup 100ms --samples",
            broker.address()
        );
        ends(folder, &words, 0);
        drop(broker);
        let seen: BTreeMap<u64, u64> = seen.iter().collect();
        let ours = samples(folder, &summary(folder)[0]);
        assert_eq!(ours.len(), 2 * 2 * 100);
        for subscriber in ["0", "1"] {
            assert_same_samples(&ours, subscriber, &seen);
        }
    }
}

#[test]
fn a_server_that_stands_still_shows_in_the_latency() {
    for (node_type, program) in [("nats", &NATS_SERVER), ("redis", &REDIS_SERVER)] {
        let folder = &*temporary("");
        let broker = Broker::spawn(program, || true).unwrap();
        let seen = all_samples(&broker, program);
        let words = format!(
            "--type {node_type} --broker {} --rate 100 --count 350 --warmup 100ms --drain 10s",
            broker.address()
        );
        let running = start(folder, &words);
        // Samples that count are being sent.
        let counts = |(_, header): &(u64, u64)| (20..GREETING).contains(&(header & GREETING));
        assert!(seen.iter().any(|sample| counts(&sample)));
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
}

/// A server that stands still takes nothing: queues fill up.
#[test]
fn what_there_is_no_room_for_is_refused() {
    for (node_type, program) in [
        ("nats", &NATS_SERVER),
        ("redis", &REDIS_SERVER),
        ("redis --redis-kind streams", &REDIS_SERVER),
    ] {
        let folder = &*temporary("");
        let broker = Broker::spawn(program, || true).unwrap();
        let words = format!(
            "--type {node_type} --broker {} --rate 1k --values 4096 --count 4000 --warmup 100ms --drain 10s \
             --send-queue 8 --after-miss catch-up",
            broker.address()
        );
        let running = start(folder, &words);
        await_samples(&broker, program);
        send(Signal::SIGSTOP, broker.id());
        std::thread::sleep(Duration::from_secs(2));
        send(Signal::SIGCONT, broker.id());
        running.wait(LIMIT).expect(0);
        let row = &summary(folder)[0];
        let count = |column: &str| number(row, column);
        assert!(count("messages_refused") > 0, "{row:?}");
        assert_eq!(
            count("messages_sent") + count("messages_refused"),
            4000,
            "{row:?}"
        );
        assert_eq!(
            count("messages_received") + count("messages_lost"),
            count("messages_sent"),
            "{row:?}"
        );
    }
}

/// No call looks for replies between two samples.
#[test]
fn a_reply_that_has_come_makes_room_for_a_sample() {
    for kind in ["pubsub", "streams"] {
        let folder = &*temporary("");
        let words = format!(
            "--type redis --redis-kind {kind} --send-queue 1 --rate 20 --count 20 --warmup 100ms"
        );
        ends(folder, &words, 0);
        let row = &summary(folder)[0];
        assert_eq!(number(row, "messages_refused"), 0, "{row:?}");
        // A loaded machine misses steps.
        let made = number(row, "messages_received") + number(row, "steps_missed");
        assert_eq!(made, 20, "{row:?}");
    }
}

#[test]
fn a_server_of_somebody_else_keeps_no_stream_of_a_run_that_is_interrupted() {
    for (wiring, ends) in [
        ("--scenario fan-in --publishers 2", "threads"),
        ("--scenario round-robin --subscribers 2", "processes"),
    ] {
        let broker = Broker::spawn(&REDIS_SERVER, || true).unwrap();
        let folder = &*temporary("");
        let words = format!(
            "--type redis --redis-kind streams --broker {} {wiring} --ends {ends} --rate 1k --count 100k --warmup 0",
            broker.address()
        );
        let running = start(folder, &words);
        await_samples(&broker, &REDIS_SERVER);
        assert_ne!(answer_of_redis(&broker, "DBSIZE"), ":0");
        running.signal(Signal::SIGTERM);
        let told = "interrupted by SIGTERM";
        running.wait(LIMIT).expect(1).stderr.has(&[told]);
        assert_eq!(answer_of_redis(&broker, "DBSIZE"), ":0", "{words}");
    }
}

#[test]
fn a_server_of_somebody_else_keeps_no_stream() {
    let broker = Broker::spawn(&REDIS_SERVER, || true).unwrap();
    let folder = &*temporary("");
    let words = format!(
        "--type redis --redis-kind streams --broker {} --scenario fan-in,fan-out,round-robin --publishers 3 \
         --subscribers 2 --rate 200 --count 40 --warmup 0",
        broker.address()
    );
    ends(folder, &words, 0);
    assert_eq!(answer_of_redis(&broker, "DBSIZE"), ":0");
    for row in summary(folder) {
        assert_eq!([&*row["redis_kind"], &row["qos"]], ["streams", ""]);
        assert_eq!(number(&row, "messages_lost"), 0, "{row:?}");
    }
}

#[test]
fn a_server_that_wants_a_password_is_refused() {
    for kind in ["pubsub", "streams"] {
        let broker = Broker::spawn(&REDIS_SERVER, || true).unwrap();
        assert_eq!(
            answer_of_redis(&broker, "CONFIG SET requirepass secret"),
            "+OK"
        );
        let words = format!(
            "--type redis --redis-kind {kind} --broker {}",
            broker.address()
        );
        ends(&temporary(""), &format!("{words} --count 10"), 2)
            .stderr
            .has(&["no password and no TLS", "--broker spawn"]);
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (words, said) in [
        (
            "--redis-kind lists".to_owned(),
            ["--redis-kind", "pubsub, streams"],
        ),
        (
            "--type redis --scenario round-robin".to_owned(),
            ["--redis-kind pubsub", "use --redis-kind streams"],
        ),
        (
            format!("--type nats,redis --broker {nobody}"),
            ["--type nats,redis", "--broker spawn"],
        ),
        (
            format!("--type all --broker {nobody}"),
            [
                "--type all has several types with a broker: name one",
                "--broker spawn",
            ],
        ),
        (
            format!("--type nats --broker {nobody}"),
            ["--broker", "refused"],
        ),
        (
            format!("--type redis --broker {nobody}"),
            ["--broker", "refused"],
        ),
        (
            "--type nats --broker nobody.invalid:4222 --timeout 2s".to_owned(),
            ["--broker nobody.invalid:4222", "cannot connect"],
        ),
        (
            "--type redis --broker nobody.invalid:6379 --timeout 2s".to_owned(),
            ["--broker nobody.invalid:6379", "cannot connect"],
        ),
        (
            format!("--type nats --broker {silent} --timeout 500ms"),
            ["--broker", "--timeout"],
        ),
        (
            format!("--type redis --broker {silent} --timeout 500ms"),
            ["--broker", "--timeout"],
        ),
    ] {
        let folder = &*temporary("");
        let begun = Instant::now();
        ends(folder, &format!("{words} --count 10"), 2)
            .stderr
            .has(&said);
        assert!(begun.elapsed() < PATIENCE, "{words}");
    }
}

#[test]
fn a_scenario_that_a_kind_does_not_have_is_left_out() {
    let folder = &*temporary("");
    let words = "--type nats,redis --scenario fan-out,round-robin --subscribers 2 --rate 200 --count 20 --warmup 0";
    ends(folder, words, 0);
    assert_eq!(summary(folder).len(), 3);
    let left_out = rows(&folder.join("run/left_out.csv"));
    assert_eq!(left_out.len(), 1);
    assert_eq!(
        [&*left_out[0]["type"], &left_out[0]["scenario"]],
        ["redis", "round-robin"]
    );
    left_out[0]["reason"].has(&["--redis-kind streams"]);
}
