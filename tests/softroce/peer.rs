//! The same figure by another library: `tests/peer`, over the crate `ibverbs`, which `ci/test` builds.

use std::path::PathBuf;

use crate::listings::figures;
use crate::machine::Machine;
use crate::program::{Program, hcabench};
use crate::results::Results;
use crate::scratch;

/// Its path comes in this variable.
const VARIABLE: &str = "HCABENCH_PEER";
/// Runs of each. Other work on the machine only ever adds to a latency, so the smallest median of each is taken: with
/// seven, six may have been disturbed.
const ROUNDS: usize = 7;
const BURST: u32 = 2000;

fn peer() -> PathBuf {
    let path = PathBuf::from(std::env::var_os(VARIABLE).unwrap_or_else(|| {
        panic!("{VARIABLE} is not set: cargo build --release --manifest-path tests/peer/Cargo.toml, or run ci/test")
    }));
    assert!(path.is_file(), "{VARIABLE}: no {}", path.display());
    path
}

/// The two run in turn, and all rounds are run whatever they give.
#[test]
fn the_median_agrees_within_a_tenth() {
    let _machine = Machine::take();
    let folder = scratch();
    let peer = peer();
    let by_peer = || {
        let arguments = format!("rxe0 rxe1 8 {BURST} 50000 1 0");
        let ended = Program::under(&[], &peer, &arguments).run().expect(0);
        let figure = figures(&ended);
        assert_eq!(figure["received"], f64::from(BURST));
        figure["latency_p50_ns"] / 1000.0
    };
    let by_hcabench = |round: usize| {
        let out = folder.path().join(format!("{round}"));
        hcabench(&format!(
            "--service rc --operation send --size 8 --burst {BURST} --pause 50us --sender-cpu 1 --receiver-cpu 0"
        ))
        .out(&out)
        .run()
        .expect(0);
        Results::at(&out).summary().rows[0].decimal("latency_p50_us")
    };
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        // Whoever comes second finds the machine as the first left it.
        rounds.push(if round % 2 == 0 {
            let ours = by_hcabench(round);
            (ours, by_peer())
        } else {
            let theirs = by_peer();
            (by_hcabench(round), theirs)
        });
    }
    let smallest = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).fold(f64::INFINITY, f64::min);
    let ratio = smallest(|round| round.0) / smallest(|round| round.1);
    println!("hcabench and the peer, p50 in us: {rounds:.2?}; ratio {ratio:.3}");
    assert!(
        (1.0 / 1.1..=1.1).contains(&ratio),
        "hcabench's median is {ratio:.3} times the peer's, in each round: {rounds:.2?}"
    );
}

#[test]
fn it_fails_without_a_device() {
    let _machine = Machine::take();
    Program::under(&[], &peer(), "rxe0 rxe9 8 100 0 1 0")
        .run()
        .expect(1)
        .says(&["there is no device rxe9"]);
}
