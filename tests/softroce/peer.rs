//! The same figure by another library: `tests/peer`, over the crate `ibverbs`, which `ci/test` builds.

use std::path::PathBuf;

use crate::machine::Machine;
use crate::program::Program;
use crate::program::said::Said;

const VARIABLE: &str = "HCABENCH_PEER";
const ROUNDS: usize = 3;
/// Medians of equal emulated runs have been apart by a factor of three; a wrong unit is a thousand.
/// `ci/measure compare-perftest --rounds 8 --pair peer` compares them closely.
const ALLOWED: f64 = 20.0;
const BURST: u32 = 2000;

fn peer() -> PathBuf {
    let path = PathBuf::from(std::env::var_os(VARIABLE).unwrap_or_else(|| {
        panic!("{VARIABLE} is not set: cargo build --release --manifest-path tests/peer/Cargo.toml, or run ci/test")
    }));
    assert!(path.is_file(), "{VARIABLE}: no {}", path.display());
    path
}

/// The two run in turn.
#[test]
fn the_median_is_of_the_order_of_the_peers() {
    let machine = Machine::take();
    let peer = peer();
    let mut ours = f64::INFINITY;
    let mut theirs = f64::INFINITY;
    for round in 0..ROUNDS {
        let arguments = format!("rxe0 rxe1 8 {BURST} 50000 1 0");
        let said = Said::by(&Program::under(&[], &peer, &arguments).ends(0));
        assert_eq!(said.count("received"), u64::from(BURST));
        theirs = theirs.min(said.number("latency_p50_ns"));
        let words = format!(
            "--service rc --operation send --size 8 --burst {BURST} --pause 50us --sender-cpu 1 --receiver-cpu 0"
        );
        let measured = machine.measured_as(round.to_string(), &words);
        ours = ours.min(measured.summary().rows[0].decimal("latency_p50_ns"));
    }
    assert!(
        (1.0 / ALLOWED..=ALLOWED).contains(&(ours / theirs)),
        "least p50 of {ROUNDS} rounds: hcabench {ours} ns, the peer {theirs} ns"
    );
}

#[test]
fn it_fails_without_a_device() {
    let _machine = Machine::take();
    Program::under(&[], peer(), "rxe0 rxe9 8 100 0 1 0")
        .ends(1)
        .says(&["there is no device rxe9"]);
}
