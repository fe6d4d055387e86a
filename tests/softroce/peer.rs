//! The same figure by another library: `tests/peer`, over the crate `ibverbs`, which `ci/test` builds.

use std::path::PathBuf;

use crate::listings::figures;
use crate::machine::Machine;
use crate::program::{Program, hcabench};
use crate::results::Results;
use crate::scratch;

/// Its path comes in this variable.
const VARIABLE: &str = "HCABENCH_PEER";
/// Rounds at the least and at the most. What is compared is the median over the rounds of each program's median. In a
/// calm machine six rounds settle it. Where others use the CPUs, a whole run may be slowed, so it takes more until as
/// many of both programs are; rounds are added as long as the two do not agree.
const ROUNDS: std::ops::RangeInclusive<usize> = 6..=24;
/// By how much they may differ, as a ratio.
const ALLOWED: f64 = 1.1;
const BURST: u32 = 2000;

fn peer() -> PathBuf {
    let path = PathBuf::from(std::env::var_os(VARIABLE).unwrap_or_else(|| {
        panic!("{VARIABLE} is not set: cargo build --release --manifest-path tests/peer/Cargo.toml, or run ci/test")
    }));
    assert!(path.is_file(), "{VARIABLE}: no {}", path.display());
    path
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    (values[(count - 1) / 2] + values[count / 2]) / 2.0
}

/// Of hcabench's median over the rounds to that of the peer.
fn ratio_of(rounds: &[(f64, f64)]) -> f64 {
    let over_rounds = |of: fn(&(f64, f64)) -> f64| median(rounds.iter().map(of).collect());
    over_rounds(|round| round.0) / over_rounds(|round| round.1)
}

/// The two run in turn.
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
        Results::at(&out).summary().rows[0].decimal("latency_p50_ns") / 1000.0
    };
    let agree = |ratio: f64| (1.0 / ALLOWED..=ALLOWED).contains(&ratio);
    let mut rounds = Vec::new();
    // Whoever comes second finds the machine as the first left it: each is first equally often.
    while rounds.len() < *ROUNDS.start()
        || (rounds.len() < *ROUNDS.end() && !agree(ratio_of(&rounds)))
    {
        let ours = by_hcabench(rounds.len());
        rounds.push((ours, by_peer()));
        let theirs = by_peer();
        rounds.push((by_hcabench(rounds.len()), theirs));
    }
    let ratio = ratio_of(&rounds);
    println!("hcabench and the peer, p50 in us: {rounds:.2?}; ratio {ratio:.3}");
    assert!(
        agree(ratio),
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
