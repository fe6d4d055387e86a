//! Made-up runs of `hcabench cores`: two sockets of two cores with two threads.

use std::fs;
use std::path::{Path, PathBuf};

use hcabench::results::folder::SETTINGS;
use hcabench::results::schema::cores;
use hcabench::results::{PointFolder, Record, SampleWriter};
use serde::Serialize;
use serde_json::{Value, json};

use super::{MadeRow, run_of};

pub(crate) const CPUS: usize = 8;
/// Kinds of pairs, and half of a round trip of the first pair in ns.
pub(crate) const KINDS: [(&str, f64); 3] = [
    ("smt-siblings", 20.0),
    ("same-cache", 48.0),
    ("other-socket", 130.0),
];

#[derive(Debug, Clone, Serialize)]
struct DirectionRow {
    round: u32,
    t_start_ns: u64,
    sender_cpu: usize,
    receiver_cpu: usize,
    memory_node: usize,
    half_round_trip_ns: f64,
    half_round_trip_least_ns: f64,
    round_trip_ns: f64,
    one_way_ns: f64,
    clock_offset_ns: f64,
    clock_offset_bound_ns: f64,
    stream_mb_s: f64,
    batches: usize,
    handovers: usize,
}

/// CPUs 0, 1, 4 and 5 are of the first socket; 4 is the second thread of 0's core.
fn socket(cpu: usize) -> usize {
    cpu % 4 / 2
}

pub(crate) fn kind_of(one: usize, other: usize) -> usize {
    match () {
        () if one % 4 == other % 4 => 0,
        () if socket(one) == socket(other) => 1,
        () => 2,
    }
}

/// Half of a round trip of a pair in the first round.
pub(crate) fn half_ns(one: usize, other: usize) -> f64 {
    KINDS[kind_of(one, other)].1 + (one + other) as f64 / 10.0
}

fn rows(kind: usize, round: u32) -> Vec<DirectionRow> {
    let all = (0..CPUS).flat_map(|one| (0..CPUS).map(move |other| (one, other)));
    let of_kind = all.filter(|(one, other)| one != other && kind_of(*one, *other) == kind);
    let row = |(at, (sender_cpu, receiver_cpu)): (usize, (usize, usize))| {
        let half = half_ns(sender_cpu, receiver_cpu) + f64::from(round);
        DirectionRow {
            round,
            t_start_ns: 1_000_000 * at as u64,
            sender_cpu,
            receiver_cpu,
            memory_node: socket(sender_cpu),
            half_round_trip_ns: half,
            half_round_trip_least_ns: half - 2.0,
            round_trip_ns: 2.0 * half,
            one_way_ns: half + 15.0,
            clock_offset_ns: 0.0,
            clock_offset_bound_ns: half + 14.0,
            stream_mb_s: 500_000.0 / half,
            batches: 20,
            handovers: 500,
        }
    };
    of_kind.enumerate().map(row).collect()
}

fn figures(kind: usize, rows: &[DirectionRow]) -> Record {
    let median = |of: fn(&DirectionRow) -> f64| {
        let all: Vec<f64> = rows.iter().map(of).collect();
        hcabench::stats::median_of(&all)
    };
    let halves = || rows.iter().map(|row| row.half_round_trip_ns);
    let mut record = Record::new();
    record
        .set(&cores::CORES, KINDS[kind].0)
        .set(&cores::HALF, median(|row| row.half_round_trip_ns))
        .set(&cores::HALF_MIN, halves().min_by(f64::total_cmp))
        .set(&cores::HALF_MAX, halves().max_by(f64::total_cmp))
        .set(&cores::ROUND_TRIP, median(|row| row.round_trip_ns))
        .set(&cores::ONE_WAY, median(|row| row.one_way_ns))
        .set(
            &cores::OFFSET_BOUND,
            median(|row| row.clock_offset_bound_ns),
        )
        .set(&cores::STREAM, median(|row| row.stream_mb_s))
        .set(&cores::DIRECTIONS, rows.len())
        .set(&cores::STAMP_COST, 12.0);
    record
}

/// What `settings.json` has of the CPUs.
fn cpus() -> Value {
    let cpu = |cpu: usize| {
        let (core, socket) = (cpu % 4, socket(cpu));
        let first = 2 * socket;
        json!({
            "cpu": cpu,
            "core": format!("{core},{}", core + 4),
            "cluster": null,
            "cache": format!("{first}-{},{}-{}", first + 1, first + 4, first + 5),
            "node": socket,
            "socket": socket,
        })
    };
    (0..CPUS).map(cpu).collect()
}

pub(crate) fn cores_run(path: &Path, rounds: u32, unfinished: bool) -> PathBuf {
    let row = |kind: usize| MadeRow {
        name: KINDS[kind].0.to_owned(),
        rounds: (0..rounds)
            .map(|round| figures(kind, &rows(kind, round)))
            .collect(),
        files: Box::new(move |place: &PointFolder, round: u32| {
            let file = &cores::PAIRS_FILE;
            place.file(file.name).unwrap();
            let mut writer = SampleWriter::open(place.path(), file, round).unwrap();
            rows(kind, round)
                .iter()
                .for_each(|row| writer.append(row).unwrap());
            writer.finish().unwrap();
        }),
    };
    let all: Vec<MadeRow<'_>> = (0..KINDS.len()).map(row).collect();
    let path = run_of(path, &cores::SCHEMA, &all, unfinished);
    let settings = path.join(SETTINGS);
    let mut document: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    document["obtained"]["cpus"] = cpus();
    fs::write(&settings, document.to_string()).unwrap();
    path
}
