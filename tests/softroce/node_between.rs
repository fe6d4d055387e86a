//! Samples between two processes of this machine, of which one has a clock that is shifted: the truth is known.

use std::path::Path;

use crate::between::bounds_are_computed_again;
use crate::machine::Machine;
use crate::program::{LIMIT, Program, Running, hcabench, path};
use crate::results::Table;

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
            "node --peer {address} --type udp,tcp --scenario straight-run,fan-out --publishers 2 --subscribers 2 \
             --rate 500 --count 200 --warmup 200ms --timer timerfd --poll event --hugepages off --probes 100 --samples \
             {drift}"
        );
        hcabench(&words).out(&out).ends(0);
        serving.wait(LIMIT).expect(0);
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
