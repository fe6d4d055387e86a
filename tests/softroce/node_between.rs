//! Samples between two processes of this machine, of which one has a clock that is shifted: the truth is known.

use std::path::Path;

use crate::between::bounds_are_computed_again;
use crate::machine::{LongerMtu, Machine};
use crate::program::{LIMIT, Program, Running, hcabench, path};
use crate::results::Table;
use crate::testing::Has as _;

/// `hcabench serve` with a clock that is ahead by nanoseconds that this file has then; and its address.
fn serve_ahead(told: &Path) -> (Running, String) {
    let shift = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/guest-clock");
    let told = told.to_str().unwrap();
    let starter = [shift, "--offset", "random", "--tell", told, "--"];
    let serving =
        Program::under(&starter, path(), "serve --bind 127.0.0.1:0 --once --quiet").start();
    let address = serving.line_with("serving at ");
    (serving, address)
}

#[test]
fn each_sample_is_within_its_bounds_whatever_the_clocks_are_apart() {
    let machine = Machine::take();
    let hidden = machine.out("hidden");
    for number in 0..crate::count_or(3) {
        let (serving, address) = serve_ahead(&hidden);
        let out = machine.out(number.to_string());
        let drift = ["", "--clock-drift 0"][number % 2];
        let words = format!(
            "node --peer {address} --type udp,tcp,infiniband --service rc,uc,ud --sender rxe0 --receiver rxe1 --scenario \
             straight-run,fan-out --publishers 2 --subscribers 2 --rate 500 --count 200 --warmup 200ms --timer timerfd \
             --poll event --hugepages off --probes 100 --samples {drift}"
        );
        hcabench(&words).out(&out).ends(0);
        serving.wait(LIMIT).expect(0);
        let settings = std::fs::read(out.join("settings.json")).unwrap();
        let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap();
        let devices = &settings["obtained"]["devices"];
        assert_eq!(devices["sender"]["device"]["name"], "rxe0");
        assert_eq!(devices["receiver"]["device"]["name"], "rxe1");
        assert_eq!(Table::read(&out.join("runs.csv")).rows.len(), 2 * 5);
        let ahead = std::fs::read_to_string(&hidden).unwrap();
        let ahead: i64 = ahead.trim().parse().unwrap();
        for row in Table::read(&out.join("runs.csv")).rows {
            let (low, high) = (row.whole("theta_low_ns"), row.whole("theta_high_ns"));
            assert!((low..=high).contains(&ahead), "{ahead}: {row:?}");
            let samples = Table::read(&out.join(row.text("point")).join("out.csv")).rows;
            assert_eq!(
                samples.len() as u64,
                row.count("messages_received"),
                "{row:?}"
            );
            for sample in samples {
                let apparent = sample.whole("t_received_ns") - sample.whole("t_sent_ns");
                let bounds = sample.whole("latency_low_ns")..=sample.whole("latency_high_ns");
                assert!(bounds.contains(&(apparent - ahead)), "{ahead}: {sample:?}");
            }
        }
        bounds_are_computed_again(&out);
    }
}

#[test]
fn what_the_port_of_the_other_host_cannot_carry_is_left_out() {
    let machine = Machine::take();
    let serve = || {
        let serving = hcabench("serve --bind 127.0.0.1:0 --once --quiet").start();
        let address = serving.line_with("serving at ");
        (serving, address)
    };
    // Here a datagram has 4096 bytes, there 1024. With such ports nothing is to be sent: it can end the kernel (6.1).
    let long = LongerMtu::of("rxe0");
    let (serving, address) = serve();
    let types = "--type infiniband --service ud --values 200 --rate 100 --count 20 --warmup 0";
    let words = format!("node --peer {address} {types} --sender rxe0 --receiver rxe1 --poll event");
    let refused = hcabench(&words).out(machine.out("long")).ends(2);
    (refused.stderr).has(&["on ", ": --service ud", "MTU, 1024"]);
    serving.wait(LIMIT).expect(0);
    drop(long);

    let (serving, address) = serve();
    let words = format!("node --peer {address} --type infiniband --receiver rxe7 --sender rxe0");
    let refused = hcabench(&words).out(machine.out("none")).ends(2);
    refused.stderr.has(&["--receiver rxe7", "rxe1"]);
    drop(serving);
    let words = "node --peer 127.0.0.1:1 --type infiniband --fallback listen";
    let refused = hcabench(words).out(machine.out("none")).ends(2);
    (refused.stderr).has(&["--fallback listen is impossible with --peer"]);
}
