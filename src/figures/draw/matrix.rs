//! `matrix`: a figure of each ordered pair of a fabric.

use std::path::PathBuf;

use super::{Made, Settings, Told, UsageError, left_out, refused};
use crate::plot::matrix::{CellKind, Matrix, Node};
use crate::plot::{FigureTexts, INCOMPLETE, both};
use crate::results::read::{Fabric, FabricNode};
use crate::results::schema::Column;
use crate::results::schema::fabric::{EXCESS_P99, HALF_P50, LOST, ONE_WAY_P50_HIGH};

/// What there is to draw: its name, its column, and what it is in words.
const FIGURES: [(&str, Column, &str); 4] = [
    ("half-round-trip", HALF_P50, "median of half a round trip"),
    (
        "excess",
        EXCESS_P99,
        "p99 of the excess over the direction's least",
    ),
    (
        "one-way",
        ONE_WAY_P50_HIGH,
        "upper bound of the median one-way latency",
    ),
    ("lost", LOST, "lost messages"),
];

/// As `nodes.csv` says it of nodes that are named.
const SLOW: &str = "slow";

pub(in crate::figures) fn matrix(from: &[PathBuf], settings: &Settings) -> anyhow::Result<Made> {
    let [folder] = from else {
        let text = format!(
            "matrix draws one fabric, and {} folders are named: name one",
            from.len()
        );
        return Err(UsageError(text).into());
    };
    let asked = match &settings.metric[..] {
        [] => FIGURES[0].0,
        [one] => one,
        _ => {
            let why = "matrix draws one of them, name that only";
            return Err(refused("metric", &settings.metric.join(","), why).into());
        }
    };
    let found = FIGURES.iter().find(|(name, ..)| *name == asked);
    let Some((_, column, value)) = found else {
        let names = FIGURES.map(|(name, ..)| name).join(", ");
        let why = format!("matrix draws one of {names}");
        return Err(refused("metric", asked, &why).into());
    };
    let fabric = Fabric::salvage(folder)?;
    let order = order(&fabric.nodes);
    let mut place = vec![0; order.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(new, old)| place[*old] = new);
    let mut cells = vec![vec![None; order.len()]; order.len()];
    fabric.each(column, |[from, to], _, value| {
        cells[place[from]][place[to]] = value
    })?;
    let node = |old: &usize| {
        let FabricNode {
            name,
            groups,
            verdict,
        } = fabric.nodes[*old].clone();
        Node {
            name,
            groups,
            slow: verdict == SLOW,
        }
    };
    let nodes: Vec<Node> = order.iter().map(node).collect();
    let figure = Matrix {
        chart: settings.chart(
            words(&fabric, &nodes, value, settings),
            "to",
            "from",
            Vec::new(),
        ),
        value: (*value).to_owned(),
        kind: if *column == LOST {
            CellKind::Count
        } else {
            CellKind::Time
        },
        nodes,
        cells,
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made {
        without: fabric.damaged(),
        ..Made::new(figure, drawing, Told::default())
    })
}

/// The nodes of a group side by side, in the order of ranks; groups in the order of their first ranks.
fn order(nodes: &[FabricNode]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let firsts = |node: &usize| -> Vec<usize> {
        let groups = &nodes[*node].groups;
        let first = |depth: usize| {
            nodes
                .iter()
                .position(|other| other.groups.starts_with(&groups[..=depth]))
        };
        (0..groups.len()).filter_map(first).collect()
    };
    order.sort_by_cached_key(|node| (firsts(node), *node));
    order
}

fn words(fabric: &Fabric, nodes: &[Node], value: &str, settings: &Settings) -> FigureTexts {
    let title = format!("Fabric: {value}");
    let slow: Vec<&str> = nodes
        .iter()
        .filter(|node| node.slow)
        .map(|node| node.name.as_str())
        .collect();
    let named = match slow[..] {
        [] => String::new(),
        [first] => format!("; named as slow: {first}"),
        [first, ref more @ ..] => format!("; named as slow: {first} and {} more", more.len()),
    };
    let subtitle = || {
        format!(
            "{} nodes; a row sends, a column receives{named}",
            nodes.len()
        )
    };
    let damaged = left_out(fabric.damaged().iter());
    let (mark, warning) = match &fabric.incomplete {
        None => ("", damaged),
        Some(reason) => (INCOMPLETE, both(&damaged, &format!("incomplete: {reason}"))),
    };
    FigureTexts {
        title: format!("{}{mark}", settings.title.as_ref().unwrap_or(&title)),
        subtitle: settings.subtitle.clone().unwrap_or_else(subtitle),
        warning,
    }
}
