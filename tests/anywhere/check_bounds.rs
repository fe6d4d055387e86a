//! `ci/check-bounds` comes to the same bounds as `time::between`, by a way of its own, and finds what is wrong.

use crate::testing::{Has as _, Noise, temporary};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::program::Program;
use hcabench::time::Nanos;
use hcabench::time::between::{Bounds, Direction, Message, Probe, RateLimit, Span};

/// Clock B at a time of clock A.
#[derive(Clone, Copy)]
struct Peer {
    theta: i64,
    ppm: i64,
}

const START: i64 = 1_700_000_000_000_000_000;

impl Peer {
    fn reads(self, a: i64) -> Nanos {
        let gained = (a - START) * self.ppm / 1_000_000;
        Nanos((a + self.theta + gained) as u64)
    }
}

fn a(at: i64) -> Nanos {
    Nanos(at as u64)
}

fn probes(peer: Peer, random: &mut Noise) -> Vec<Probe> {
    let probe = |number: i64| {
        let sent = START + number * 10_000_000;
        let received = sent + 700 + random.below(3_000) as i64;
        let answered = received + 400;
        let returned = answered + 900 + random.below(3_000) as i64;
        Probe {
            a_sent: a(sent),
            b_received: peer.reads(received),
            b_sent: peer.reads(answered),
            a_received: a(returned),
        }
    };
    (0..60).map(probe).collect()
}

fn bursts(peer: Peer, direction: Direction, random: &mut Noise) -> Vec<Message> {
    let message = |number: i64| {
        let posted = START + 100_000_000 + number * 3_000;
        let received = posted + 800 + random.below(20_000) as i64;
        match direction {
            Direction::Forward => Message::forward(a(posted), peer.reads(received)),
            Direction::Backward => Message::backward(peer.reads(posted), a(received)),
        }
    };
    (0..300).map(message).collect()
}

struct Round {
    direction: Direction,
    limit: u32,
    probes: Vec<Probe>,
    messages: Vec<Message>,
    /// Messages that the program takes no bounds from, as their stamps were never rewritten.
    without_bounds: Vec<Message>,
}

const HEADER: &str = "point,round,status,direction,clock_rate_limit_ppm,theta_at_ns,theta_low_ns,theta_high_ns,\
                      clock_rate_low_ppm,clock_rate_high_ppm";

impl Round {
    fn prove(&self) -> Option<Bounds> {
        let probes = self.probes.iter().flat_map(Probe::messages);
        let all = probes.chain(self.messages.iter().copied());
        Bounds::prove(all, RateLimit::new(self.limit).unwrap()).ok()
    }

    fn write(&self, folder: &Path, change: impl Fn(Span) -> Span) {
        let bounds = self.prove();
        let (name, limit) = (self.direction.name(), self.limit);
        let mut row = format!("{HEADER}\np,0,complete,{name},{limit}");
        match &bounds {
            None => row.push_str(",,,,,"),
            Some(bounds) => {
                let Span { low_ns, high_ns } = change(bounds.at(bounds.middle()));
                let [least, most] = bounds.rate_ppm();
                let middle = bounds.middle().0;
                write!(row, ",{middle},{low_ns},{high_ns},{least:.4},{most:.4}").unwrap();
            }
        }
        fs::create_dir_all(folder.join("p")).unwrap();
        fs::write(folder.join("runs.csv"), row + "\n").unwrap();

        let mut text =
            "round,phase,probe,a_sent_ns,b_received_ns,b_sent_ns,a_received_ns\n".to_owned();
        for (number, probe) in self.probes.iter().enumerate() {
            let stamps = [
                probe.a_sent,
                probe.b_received,
                probe.b_sent,
                probe.a_received,
            ];
            let stamps = stamps.map(|stamp| stamp.0.to_string()).join(",");
            writeln!(text, "0,before,{number},{stamps}").unwrap();
        }
        fs::write(folder.join("p/probes.csv"), text).unwrap();

        let mut text =
            "round,t_subm_ns,t_recv_ns,latency_low_ns,latency_high_ns\n0,5,,,\n".to_owned();
        for message in &self.messages {
            write!(text, "0,{},{},", message.posted.0, message.received.0).unwrap();
            let latency = bounds
                .as_ref()
                .map(|bounds| bounds.latency(message).unwrap());
            let latency = latency.map(|it| format!("{},{}", it.low_ns, it.high_ns));
            writeln!(text, "{}", latency.unwrap_or(",".to_owned())).unwrap();
        }
        for message in &self.without_bounds {
            writeln!(text, "0,{},{},,", message.posted.0, message.received.0).unwrap();
        }
        fs::write(folder.join("p/messages.csv"), text).unwrap();
    }
}

#[track_caller]
fn check(folder: &Path, code: i32, parts: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/check-bounds");
    let ended = Program::under(&[script], folder, "").run().expect(code);
    let text = ended.stdout + &ended.stderr;
    text.has(parts);
    text
}

#[test]
fn it_comes_to_the_same_bounds_and_finds_those_that_differ() {
    let mut random = Noise::new(16);
    let folder = &*temporary("");
    for (theta, ppm, limit) in [
        (-1_600_000_000_000_000_000, 0, 0),
        (4_321, 0, 1_000_000),
        (1_000_000_000_000_000_000, 200, 1_000),
        (-77_777, -30, 31),
    ] {
        for direction in [Direction::Forward, Direction::Backward] {
            let peer = Peer { theta, ppm };
            let round = Round {
                direction,
                limit,
                probes: probes(peer, &mut random),
                messages: bursts(peer, direction, &mut random),
                without_bounds: Vec::new(),
            };
            round.write(folder, |span| span);
            check(folder, 0, &["ok   p round 0: 420 messages prove"]);
            type Change = fn(Span) -> Span;
            let higher: Change = |span| Span::new(span.low_ns + 1, span.high_ns);
            let lower: Change = |span| Span::new(span.low_ns, span.high_ns - 1);
            let wider: Change = |span| span.widened(1);
            for (change, found) in [
                (higher, "theta_low_ns is"),
                (lower, "theta_high_ns is"),
                (wider, "theta_low_ns is"),
            ] {
                round.write(folder, change);
                check(folder, 1, &[found, "FAIL"]);
            }
        }
    }
}

#[test]
fn messages_without_bounds_prove_nothing() {
    let mut random = Noise::new(23);
    let folder = &*temporary("");
    let direction = Direction::Forward;
    let peer = Peer { theta: 77, ppm: 0 };
    for bounded in [0, 5] {
        let mut messages = bursts(peer, direction, &mut random);
        let without_bounds = messages.split_off(bounded);
        let round = Round {
            direction,
            limit: 100,
            probes: probes(peer, &mut random),
            messages,
            without_bounds,
        };
        round.write(folder, |span| span);
        let counted = format!("{} messages prove", 120 + bounded);
        check(folder, 0, &[&counted]);
    }
}

#[test]
fn it_finds_contradictions_and_what_is_missing() {
    let mut random = Noise::new(7);
    let folder = &*temporary("");
    let drifting = Peer { theta: 9, ppm: 200 };
    let mut round = Round {
        direction: Direction::Forward,
        limit: 0,
        probes: probes(drifting, &mut random),
        messages: Vec::new(),
        without_bounds: Vec::new(),
    };
    assert!(round.prove().is_none());
    round.write(folder, |span| span);
    check(folder, 0, &["a contradiction, and no bounds"]);
    let runs = folder.join("runs.csv");
    for (row, said) in [
        // Bounds all the same.
        ("0,5,1,2,0,0", "a contradiction, but bounds"),
        // With drift allowed there are bounds, and the row has none.
        ("300,,,,,", "the row has no bounds"),
    ] {
        let row = format!("{HEADER}\np,0,complete,forward,{row}\n");
        fs::write(&runs, row).unwrap();
        check(folder, 1, &[said]);
    }

    round.probes.clear();
    round.write(folder, |span| span);
    check(folder, 1, &["no messages in both directions"]);
    fs::write(&runs, format!("{HEADER}\n")).unwrap();
    assert_eq!(check(folder, 1, &[]), "0 rounds, 0 failed\n");
    fs::remove_file(&runs).unwrap();
    check(folder, 1, &[]).begins("FAIL these are no results");
}
