//! Exchanged probes: their stamps, and their rows.

use serde::Serialize;

use crate::time::between::{Phase, Probe};

/// A probe with its number and its phase.
#[derive(Debug, Clone, Copy)]
pub struct NumberedProbe {
    /// Its number, on its connection.
    pub number: u32,
    /// When it was exchanged.
    pub phase: Phase,
    /// Which phase of its point, from 0.
    pub place: u32,
    /// Its stamps.
    pub stamps: Probe,
}

/// Half of the round trip of each probe, without the first of each phase, which find caches and queues cold.
pub fn halves(probes: &[NumberedProbe]) -> Vec<i64> {
    const COLD: usize = 8;
    let mut at = None;
    let mut seen = 0;
    let warm = probes.iter().filter(|probe| {
        if at != Some(probe.place) {
            (at, seen) = (Some(probe.place), 0);
        }
        seen += 1;
        seen > COLD
    });
    let halves: Vec<i64> = warm.map(|probe| probe.stamps.round_trip_ns() / 2).collect();
    match halves.is_empty() {
        true => probes
            .iter()
            .map(|probe| probe.stamps.round_trip_ns() / 2)
            .collect(),
        false => halves,
    }
}

/// A row of `probes.csv`.
#[derive(Debug, Serialize)]
pub struct ProbeRow {
    round: u32,
    phase: &'static str,
    probe: u32,
    a_sent_ns: u64,
    b_received_ns: u64,
    b_sent_ns: u64,
    a_received_ns: u64,
}

/// The rows of `probes.csv`.
pub fn probe_rows(round: u32, probes: &[NumberedProbe]) -> impl Iterator<Item = ProbeRow> + '_ {
    probes.iter().map(move |probe| ProbeRow {
        round,
        phase: probe.phase.name(),
        probe: probe.number,
        a_sent_ns: probe.stamps.a_sent.0,
        b_received_ns: probe.stamps.b_received.0,
        b_sent_ns: probe.stamps.b_sent.0,
        a_received_ns: probe.stamps.a_received.0,
    })
}
