//! Results folders made without a device, by the program's own writers, for tests of the library and the command.

#![allow(dead_code)] // Each test uses a part of it.

pub(crate) mod cores;
pub(crate) mod fabric;
pub(crate) mod memory;
pub(crate) mod rounds;

use std::path::{Path, PathBuf};

use hcabench::results::document::{Program, Rounds};
use hcabench::results::folder::{HISTOGRAM, PACKAGE, PointFolder, RUNS, SETTINGS, SUMMARY};
use hcabench::results::schema::{self, ColumnKind, Data, Schema, hca};
use hcabench::results::{
    Document, Record, ResultsFolder, RunsFile, SampleWriter, curves, datapackage, hgrm, runs,
};
use hcabench::stats::{LatencyHistogram, Summary};
use serde::Serialize;
use serde_json::json;

pub(crate) const STARTED_AT: &str = "2026-01-02T03:04:05.000Z";
pub(crate) const INTERRUPTED: &str = "interrupted by SIGINT";

pub(crate) type FilesOfARound<'a> = Box<dyn Fn(&PointFolder, u32) + 'a>;

/// A point of a made-up run: its settings and figures, a record for each round.
pub(crate) struct MadeRow<'a> {
    pub name: String,
    /// What is set in each round; settings that are not get some value, counts 0, and measured figures stay empty.
    pub rounds: Vec<Record>,
    pub files: FilesOfARound<'a>,
}

/// Of any benchmark, round by round. The last round of an `unfinished` one is incomplete in its last point.
pub(crate) fn run_of(
    path: &Path,
    schema: &'static Schema,
    rows: &[MadeRow<'_>],
    unfinished: bool,
) -> PathBuf {
    let folder = ResultsFolder::create(path, false, 0).unwrap();
    let mut runs_file = RunsFile::create(&folder.file(RUNS).unwrap(), schema).unwrap();
    let rounds = rows.iter().map(|row| row.rounds.len()).max().unwrap_or(0);
    let places: Vec<PointFolder> = rows
        .iter()
        .map(|row| folder.point(&row.name).unwrap())
        .collect();
    let mut measured: Vec<Vec<Record>> = vec![Vec::new(); rows.len()];
    let document = |status: &str, point: Option<Record>, done: usize| Document {
        hcabench: Program::this(),
        benchmark: schema.benchmark.to_owned(),
        command_line: vec!["hcabench".to_owned(), schema.benchmark.to_owned()],
        started_at: STARTED_AT.to_owned(),
        label: None,
        status: status.to_owned(),
        failure: (status == schema::INCOMPLETE).then(|| INTERRUPTED.to_owned()),
        point,
        run: json!({}),
        obtained: json!({}),
        instrument: json!({}),
        machine: json!({ "hostname": "made-up" }),
        readiness: json!([]),
        rounds: Rounds {
            planned: rounds as u32,
            done: done as u32,
            seed: None,
        },
        details: json!(null),
    };
    for round in 0..rounds {
        // All but the last round measure in another order than that of the sweep.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if round + 1 < rounds {
            order.reverse();
        }
        for (order, number) in order.into_iter().enumerate() {
            let row = &rows[number];
            let Some(set) = row.rounds.get(round) else {
                continue;
            };
            let last = unfinished && round + 1 == rounds && order + 1 == rows.len();
            (row.files)(&places[number], round as u32);
            let mut record = set.clone();
            fill(&mut record, schema);
            if record.get(schema::STARTED_AT.name).is_none() {
                record.set(&schema::STARTED_AT, STARTED_AT);
            }
            record
                .set(&schema::POINT, row.name.as_str())
                .set(&schema::ROUND, round)
                .set(&schema::ORDER, order)
                .set(&schema::STATUS, status(last))
                .set(&schema::FAILURE, last.then_some(INTERRUPTED));
            runs_file.append(&record).unwrap();
            measured[number].push(record);
        }
    }
    let mut summary = Vec::new();
    for (place, rounds) in places.into_iter().zip(&measured) {
        let row = runs::over_rounds(schema, rounds);
        let mut point = Record::new();
        for column in schema.point {
            point.set_from(column, &row);
        }
        let status = row.get(schema::STATUS.name).unwrap().text();
        let settings = document(&status, Some(point), rounds.len());
        settings.write(&place.file(SETTINGS).unwrap()).unwrap();
        if status == schema::COMPLETE {
            place.complete().unwrap();
        } else {
            place.fail(INTERRUPTED).unwrap();
        }
        summary.push(row);
    }
    curves::complete(schema, &mut summary);
    runs::write(&folder.file(SUMMARY).unwrap(), &schema.summary(), &summary).unwrap();
    let settings = document(status(unfinished), None, rounds);
    settings.write(&folder.file(SETTINGS).unwrap()).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    folder.file(PACKAGE).unwrap();
    datapackage::write(path, schema, STARTED_AT, &names).unwrap();
    if unfinished {
        folder.fail(INTERRUPTED).unwrap();
    } else {
        folder.complete().unwrap();
    }
    path.to_path_buf()
}

fn status(is_incomplete: bool) -> &'static str {
    if is_incomplete {
        schema::INCOMPLETE
    } else {
        schema::COMPLETE
    }
}

fn fill(record: &mut Record, schema: &Schema) {
    for column in schema.point.iter().chain(schema.figures) {
        if record.get(column.name).is_some() {
            continue;
        }
        match (column.kind, column.data) {
            (ColumnKind::Setting, Data::Text) => record.set(column, "any"),
            (ColumnKind::Setting, Data::Flag) => record.set(column, false),
            (ColumnKind::Setting, _) => record.set(column, 1_u32),
            (ColumnKind::Count, _) => record.set(column, 0_u32),
            (ColumnKind::Measured | ColumnKind::Label, _) => record.set(column, None::<f64>),
        };
    }
}

#[derive(Debug, Default, Serialize)]
struct MessageRow {
    round: u32,
    repeat: u32,
    seq: u32,
    t_intended_ns: Option<u64>,
    t_subm_ns: u64,
    t_send_ns: Option<u64>,
    t_recv_ns: Option<u64>,
    t_comp_ns: Option<u64>,
    in_flight: u32,
    latency_ns: Option<i64>,
    completion_latency_ns: Option<i64>,
    t_recv_hw_ns: Option<u64>,
    t_comp_hw_ns: Option<u64>,
}

/// The samples of a message; `None` for a lost one.
pub(crate) type Made = Option<i64>;

/// A point for [`hca_run`]: service, size, burst, and its latencies.
pub(crate) type MadePoint<'a> = (&'a str, u32, u32, &'a [Made]);

pub(crate) fn hca_run(path: &Path, points: &[MadePoint<'_>], unfinished: bool) -> PathBuf {
    let points: Vec<_> = points
        .iter()
        .map(|&(service, size, burst, latencies)| (service, size, burst, vec![latencies]))
        .collect();
    hca_rounds(path, &points, unfinished)
}

pub(crate) fn hca_rounds(
    path: &Path,
    points: &[(&str, u32, u32, Vec<&[Made]>)],
    unfinished: bool,
) -> PathBuf {
    let rows = points.iter().map(hca_row);
    let rows: Vec<MadeRow<'_>> = rows.collect();
    run_of(path, &hca::SCHEMA, &rows, unfinished)
}

/// A point of RDMA reads or atomics, by the completion latencies of its rounds: nothing arrives.
pub(crate) fn request_row(operation: &str, size: u32, rounds: Vec<Vec<i64>>) -> MadeRow<'static> {
    let figures = |completions: &Vec<i64>| {
        let mut record = Record::new();
        record
            .set(&hca::SERVICE, "rc")
            .set(&hca::OPERATION, operation)
            .set(&hca::SIZE, size)
            .set(&hca::BURST, completions.len())
            .set(&hca::PAUSE, 50_000_u32)
            .set(&hca::SENT, completions.len())
            .set(&hca::COMPLETIONS, completions.len())
            .distribution(&hca::completion::ALL, Summary::of(completions).as_ref());
        for column in hca::latency::ALL.iter().chain(&[
            hca::RECEIVED,
            hca::LOST,
            hca::DUPLICATED,
            hca::LATE,
            hca::FOREIGN,
            hca::NOT_RESTAMPED,
            hca::MISSED_STEPS,
            hca::RATE,
            hca::ARRIVALS,
        ]) {
            record.set(column, None::<u32>);
        }
        record
    };
    MadeRow {
        name: format!("rc-{operation}-{size}B"),
        rounds: rounds.iter().map(figures).collect(),
        files: Box::new(move |place, round| {
            write_messages(
                place,
                round,
                &rounds[round as usize],
                |submitted, latency| MessageRow {
                    t_comp_ns: Some(submitted.wrapping_add_signed(*latency)),
                    completion_latency_ns: Some(*latency),
                    ..MessageRow::default()
                },
            );
            let none = LatencyHistogram::of(&[]);
            hgrm::write(&place.file(HISTOGRAM).unwrap(), &none).unwrap();
        }),
    }
}

fn write_messages<T>(
    place: &PointFolder,
    round: u32,
    samples: &[T],
    of: impl Fn(u64, &T) -> MessageRow,
) {
    place.file(hca::MESSAGES.name).unwrap();
    let mut messages = SampleWriter::open(place.path(), &hca::MESSAGES, round).unwrap();
    for (seq, sample) in samples.iter().enumerate() {
        let submitted = 1_000_000 + 50_000 * seq as u64;
        let row = MessageRow {
            round,
            seq: seq as u32,
            t_subm_ns: submitted,
            ..of(submitted, sample)
        };
        messages.append(&row).unwrap();
    }
    messages.finish().unwrap();
}

pub(crate) fn hca_row<'a>(point: &'a (&str, u32, u32, Vec<&[Made]>)) -> MadeRow<'a> {
    hca_row_beside(point, ("0", None, [0.0, 0.0]))
}

fn hca_row_beside<'a>(
    (service, size, burst, rounds): &'a (&str, u32, u32, Vec<&[Made]>),
    (background, traffic, [offered, delivered]): MadeLoad,
) -> MadeRow<'a> {
    let figures = move |latencies: &&[Made]| {
        let received: Vec<i64> = latencies.iter().flatten().copied().collect();
        let (sent, arrived) = (latencies.len(), received.len());
        let mut record = Record::new();
        record
            .set(&hca::SERVICE, *service)
            .set(&hca::OPERATION, "send")
            .set(&hca::SIZE, *size)
            .set(&hca::BURST, *burst)
            .set(&hca::PAUSE, 50_000_u32)
            .set(&hca::RECEIVER_PAUSE, 0_u32)
            .set(&hca::QUEUE_PAIRS, 1_u32)
            .set(&hca::BACKGROUND, background)
            .set(&hca::BACKGROUND_TRAFFIC, traffic)
            .set(&hca::BACKGROUND_THREAD, traffic.map(|_| "cpu-shared"))
            .set(&hca::BACKGROUND_OFFERED, offered)
            .set(&hca::BACKGROUND_DELIVERED, delivered)
            .set(&hca::SENT, sent)
            .set(&hca::RECEIVED, arrived)
            .set(&hca::LOST, sent - arrived)
            .distribution(&hca::latency::ALL, Summary::of(&received).as_ref())
            .distribution(&hca::completion::ALL, Summary::of(&[700]).as_ref());
        // What was not asked for.
        for column in [
            &hca::RATE,
            &hca::ARRIVALS,
            &hca::GID_INDEX,
            &hca::SERVICE_LEVEL,
            &hca::TRAFFIC_CLASS,
            &hca::PATH_MTU,
            &hca::PKEY_INDEX,
            &hca::FLOW_LABEL,
            &hca::RETRY_COUNT,
            &hca::RNR_RETRY,
            &hca::QP_TIMEOUT,
            &hca::DEPTH,
            &hca::MISSED_STEPS,
        ] {
            record.set(column, None::<u32>);
        }
        record
    };
    let files = |place: &PointFolder, round: u32| {
        write_messages(
            place,
            round,
            rounds[round as usize],
            |submitted, latency| MessageRow {
                t_recv_ns: latency.map(|ns| submitted.wrapping_add_signed(ns)),
                t_comp_ns: Some(submitted + 700),
                latency_ns: *latency,
                completion_latency_ns: Some(700),
                ..MessageRow::default()
            },
        );
        let until_now = rounds[..=round as usize]
            .iter()
            .flat_map(|round| round.iter());
        let received: Vec<i64> = until_now.flatten().copied().collect();
        let histogram = LatencyHistogram::of(&received);
        hgrm::write(&place.file(HISTOGRAM).unwrap(), &histogram).unwrap();
    };
    MadeRow {
        name: format!("{service}-send-{size}B-burst{burst}"),
        rounds: rounds.iter().map(figures).collect(),
        files: Box::new(files),
    }
}

/// What is in the background: the setting, whether it is sent, and bytes a second, offered and delivered.
pub(crate) type MadeLoad = (&'static str, Option<&'static str>, [f64; 2]);

pub(crate) fn hca_loads(path: &Path, points: &[(&str, MadeLoad, &[Made])]) -> PathBuf {
    let plain: Vec<_> = (points.iter())
        .map(|&(service, _, latencies)| (service, 8, 100, vec![latencies]))
        .collect();
    let row = |(plain, (_, load, _)): (_, &(_, MadeLoad, _))| {
        let mut row = hca_row_beside(plain, *load);
        row.name += &format!("-background{}-{}", load.0, load.1.unwrap_or("0"));
        row
    };
    let rows: Vec<MadeRow<'_>> = plain.iter().zip(points).map(row).collect();
    run_of(path, &hca::SCHEMA, &rows, false)
}
