//! Runs of several rounds, made without a device: what `hcabench compare` reads, for the library and the command.

use std::fs;
use std::path::{Path, PathBuf};

use hcabench::pacing::SplitMix64;
use hcabench::results::schema::{self, Column, FORMAT, Schema, hca};
use serde_json::{Value, json};

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
    schema: &Schema,
    document: &Value,
    points: &[Made],
    second: usize,
) -> PathBuf {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("settings.json"), document.to_string()).unwrap();
    let columns = schema.runs();
    let header: Vec<&str> = columns.iter().map(|(name, _)| name.as_ref()).collect();
    let mut runs = csv::Writer::from_path(path.join("runs.csv")).unwrap();
    runs.write_record(&header).unwrap();
    let names = points.iter().map(|point| {
        let texts: Vec<&str> = point.settings.iter().map(|(_, text)| *text).collect();
        texts.join("-")
    });
    let names: Vec<String> = names.collect();
    let most = points
        .iter()
        .map(|point| point.rounds.len())
        .max()
        .unwrap_or(0);
    for round in 0..most {
        // Points are measured in another order than that of the sweep.
        for (order, (name, point)) in names.iter().zip(points).rev().enumerate() {
            let Some(figures) = point.rounds.get(round) else {
                continue;
            };
            let seconds = 60 * round + second + order;
            let (minute, second) = (seconds / 60, seconds % 60);
            let cell = |column: &str| {
                let setting = point
                    .settings
                    .iter()
                    .find(|(setting, _)| setting.name == column);
                let figure = figures.iter().find(|(figure, _)| figure.name == column);
                match (column, setting, figure) {
                    ("point", ..) => name.clone(),
                    ("round", ..) => round.to_string(),
                    ("order", ..) => order.to_string(),
                    ("started_at", ..) => format!("2026-01-02T12:{minute:02}:{second:02}.000Z"),
                    ("status", ..) => "complete".to_owned(),
                    (_, Some((_, text)), _) => (*text).to_owned(),
                    (_, _, Some((_, figure))) => figure.to_string(),
                    _ => String::new(),
                }
            };
            runs.write_record(header.iter().map(|column| cell(column)))
                .unwrap();
        }
    }
    runs.flush().unwrap();
    let settings: Vec<&str> = schema.point.iter().map(|column| column.name).collect();
    let mut summary = format!("point,{},status\n", settings.join(","));
    for (name, point) in names.iter().zip(points) {
        let text = |setting: &&str| {
            let found = point
                .settings
                .iter()
                .find(|(column, _)| column.name == *setting);
            found.map_or("", |(_, text)| text)
        };
        let texts: Vec<&str> = settings.iter().map(text).collect();
        summary += &format!("{name},{},complete\n", texts.join(","));
        let mut own = document.clone();
        own["point"] = settings.iter().copied().zip(texts).collect();
        fs::create_dir_all(path.join(name)).unwrap();
        fs::write(path.join(name).join("settings.json"), own.to_string()).unwrap();
    }
    fs::write(path.join("summary.csv"), summary).unwrap();
    path.to_path_buf()
}
