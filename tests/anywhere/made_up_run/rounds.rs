//! Runs of several rounds, made without a device: what `hcabench compare` reads, for the library and the command.

use std::fs;
use std::path::{Path, PathBuf};

use hcabench::pacing::SplitMix64;
use hcabench::results::folder::SETTINGS;
use hcabench::results::schema::{self, Column, FORMAT, Schema, hca};
use hcabench::results::{Cell, Record};
use serde_json::{Value, json};

use super::{MadeRow, run_of};

/// A point: its settings, and the figures of each round.
pub(crate) struct Made {
    pub settings: Vec<(Column, &'static str)>,
    pub rounds: Vec<Vec<(Column, f64)>>,
}

/// Rounds with median latencies about `level`, in nanoseconds, that a seed decides.
pub(crate) fn hca_point(
    settings: &[(Column, &'static str)],
    seed: u64,
    rounds: usize,
    level: f64,
) -> Made {
    let mut draws = SplitMix64::new(seed);
    let mut about = |level: f64| level + (draws.draw() % 2_000) as f64;
    let round = |_| {
        vec![
            (hca::latency::P50, about(level)),
            (hca::latency::P99, about(2.0 * level)),
            (hca::completion::P50, about(20_000.0)),
            (hca::completion::P99, about(40_000.0)),
            (hca::SENT, 1000.0),
            (hca::LOST, 0.0),
            (hca::RECEIVED, 1000.0),
            (hca::FLOOR_P50, 200.0),
        ]
    };
    Made {
        settings: settings.to_vec(),
        rounds: (0..rounds).map(round).collect(),
    }
}

pub(crate) fn document(schema: &Schema) -> Value {
    json!({
        "hcabench": { "version": "0.1.0", "commit": "0123abc", "format": FORMAT },
        "benchmark": schema.benchmark,
        "started_at": "2026-01-02T03:04:05Z",
        "status": schema::COMPLETE,
        "failure": null,
        "run": { "timeout_ns": 1000000000, "hugepages": "none" },
        "obtained": { "devices": ["rxe0", "rxe1"] },
        "machine": { "hostname": "made-up" },
        "command_line": ["hcabench"],
        "point": null,
        "instrument": null,
        "readiness": null,
        "rounds": { "planned": 8, "done": 8, "seed": null },
        "details": null,
    })
}

/// Writes a run whose rounds begin a minute apart, the first so many seconds after noon.
pub(crate) fn run(
    path: &Path,
    schema: &'static Schema,
    document: &Value,
    points: &[Made],
    second: usize,
) -> PathBuf {
    let row = |(place, point): (usize, &Made)| {
        let texts: Vec<&str> = point.settings.iter().map(|(_, text)| *text).collect();
        let record = |(round, figures): (usize, &Vec<(Column, f64)>)| {
            let seconds = 60 * round + second + place;
            let (minute, second) = (seconds / 60, seconds % 60);
            let mut record = Record::new();
            for (column, text) in &point.settings {
                record.set(column, Cell::parse(column, text));
            }
            for (column, figure) in figures {
                record.set(column, *figure);
            }
            let started = format!("2026-01-02T12:{minute:02}:{second:02}.000Z");
            record.set(&schema::STARTED_AT, started);
            record
        };
        MadeRow {
            name: texts.join("-"),
            rounds: point.rounds.iter().enumerate().map(record).collect(),
            files: Box::new(|_, _| ()),
        }
    };
    let rows: Vec<MadeRow<'_>> = points.iter().enumerate().map(row).collect();
    run_of(path, schema, &rows, false);
    let folders = rows.iter().map(|row| row.name.as_str());
    for folder in folders.chain([""]) {
        let file = path.join(folder).join(SETTINGS);
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let mut own = document.clone();
        own["point"] = written["point"].clone();
        fs::write(file, own.to_string()).unwrap();
    }
    path.to_path_buf()
}
