//! `matrix` of a run of `hcabench memory --node-pairs`: a figure of the CPUs of each NUMA node with the memory of each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Made, Settings, Told, UsageError, left_out, matrix, refused};
use crate::bench::cores::all_pairs::AllPairs;
use crate::buffer::Bytes;
use crate::plot::matrix::{CellKind, Matrix, Node};
use crate::results::curves::Curve;
use crate::results::read::{Point, Run};
use crate::results::schema::cores;
use crate::results::schema::memory::{CPU_NODE, MEMORY_NODE, SCHEMA};

/// What there is to draw: its name, what it is in words, what cells hold, and which of two figures of a pair counts.
type Drawn = (&'static str, &'static str, CellKind, fn(f64, f64) -> f64);

const FIGURES: [Drawn; 2] = [
    ("latency", "latency of a load", CellKind::Time, f64::min),
    ("bandwidth", "largest bandwidth", CellKind::Rate, f64::max),
];

/// A matrix of any results.
pub(in crate::figures) fn matrix_of_any(
    from: &[PathBuf],
    settings: &Settings,
) -> anyhow::Result<Made> {
    let [folder] = from else {
        let text = format!(
            "matrix draws one run, and {} folders are named: name one",
            from.len()
        );
        return Err(UsageError(text).into());
    };
    match Run::salvage(folder) {
        Ok(run) if run.schema.benchmark == SCHEMA.benchmark => node_pairs(&run, settings),
        Ok(run) if run.schema.benchmark == cores::SCHEMA.benchmark => {
            matrix::cores(AllPairs::of(run, folder)?, settings)
        }
        _ => matrix::of_fabric(folder, settings),
    }
}

/// The node of the CPUs and that of the memory.
fn nodes_of(point: &Point) -> Option<[u32; 2]> {
    let cpus = point.text(CPU_NODE.name)?.parse().ok()?;
    Some([cpus, point.setting(MEMORY_NODE.name)?.parse().ok()?])
}

fn node_pairs(run: &Run, settings: &Settings) -> anyhow::Result<Made> {
    let chosen = matrix::chosen(&FIGURES.map(|drawn| drawn.0), settings)?;
    let (asked, value, kind, better) = &FIGURES[chosen];
    let figure_of = |curve: &Curve| match kind {
        CellKind::Rate => curve.peak().map(|(bandwidth, _)| bandwidth / 1e3),
        _ => Some(curve.unloaded().latency_ns),
    };
    let mut all: BTreeSet<u32> = run.points.iter().filter_map(nodes_of).flatten().collect();
    if all.is_empty() {
        let why =
            "matrix draws pairs of NUMA nodes, and this run has none: measure with --node-pairs";
        return Err(refused("metric", asked, why).into());
    }
    // Pairs with these are hatched.
    let without = run.left_out.rows.iter();
    all.extend(without.filter_map(|row| row.text(MEMORY_NODE.name)?.parse::<u32>().ok()));
    let place = |node: u32| all.iter().position(|known| *known == node);
    let mut cells = vec![vec![None; all.len()]; all.len()];
    let (curves, largest) = run.curves_of_largest();
    let is_idle = curves.iter().all(|curve| curve.unloaded().pause.is_none());
    let value = match (kind, is_idle) {
        (CellKind::Rate, _) => (*value).to_owned(),
        (_, true) => format!("{value}, idle"),
        (_, false) => format!("{value}, at the least load"),
    };
    for curve in curves {
        let nodes = nodes_of(&run.points[curve.loads[0].row]);
        let Some([Some(from), Some(to)]) = nodes.map(|nodes| nodes.map(place)) else {
            continue;
        };
        let cell: &mut Option<f64> = &mut cells[from][to];
        *cell = match (*cell, figure_of(&curve)) {
            (Some(one), Some(other)) => Some(better(one, other)),
            (one, other) => one.or(other),
        };
    }
    let damaged = left_out(run.damaged.iter());
    let subtitle = format!(
        "{} nodes; a row has the CPUs, a column the memory; buffers of {}",
        all.len(),
        Bytes(largest.unwrap_or_default())
    );
    let texts = matrix::words(
        &format!("NUMA nodes: {value}"),
        &subtitle,
        &damaged,
        run.incomplete.as_deref(),
        settings,
    );
    let node = |node: &u32| Node {
        name: format!("node {node}"),
        groups: Vec::new(),
        slow: false,
    };
    let figure = Matrix {
        chart: settings.chart(texts, "memory of", "CPUs of", Vec::new()),
        value,
        kind: *kind,
        nodes: all.iter().map(node).collect(),
        cells,
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made {
        without: run.damaged.clone(),
        ..Made::new(figure, drawing, Told::default())
    })
}
