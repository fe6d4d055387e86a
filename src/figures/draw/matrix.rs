//! `matrix`: a figure of each ordered pair of a fabric, or of CPUs.

use std::path::Path;

use super::{Made, Settings, Told, left_out, refused};
use crate::bench::cores::all_pairs::AllPairs;
use crate::plot::matrix::{CellKind, Matrix, Node};
use crate::plot::{FigureTexts, INCOMPLETE, both};
use crate::results::read::{Fabric, FabricNode};
use crate::results::schema::Column;
use crate::results::schema::cores::pair;
use crate::results::schema::fabric::{EXCESS_P99, HALF_P50, LOST, ONE_WAY_P50_HIGH};

/// What there is to draw: its name, its column, what it is in words, and what its cells hold.
type Drawn = (&'static str, Column, &'static str, CellKind);

const OF_A_FABRIC: [Drawn; 4] = [
    (
        "half-round-trip",
        HALF_P50,
        "median of half a round trip",
        CellKind::Time,
    ),
    (
        "excess",
        EXCESS_P99,
        "p99 of the excess over the direction's least",
        CellKind::Time,
    ),
    (
        "one-way",
        ONE_WAY_P50_HIGH,
        "upper bound of the median one-way latency",
        CellKind::Time,
    ),
    ("lost", LOST, "lost messages", CellKind::Count),
];

const OF_CORES: [Drawn; 3] = [
    (
        "half-round-trip",
        pair::HALF,
        "half of a round trip",
        CellKind::Time,
    ),
    ("one-way", pair::ONE_WAY, "one-way latency", CellKind::Time),
    ("stream", pair::STREAM, "stream", CellKind::Rate),
];

/// As `nodes.csv` says it of nodes that are named.
const SLOW: &str = "slow";

/// The place of the figure that is asked for among those there are.
pub(super) fn chosen(names: &[&str], settings: &Settings) -> anyhow::Result<usize> {
    let asked = match &settings.metric[..] {
        [] => return Ok(0),
        [one] => one,
        _ => {
            let why = "matrix draws one of them, name that only";
            return Err(refused("metric", &settings.metric.join(","), why).into());
        }
    };
    let found = names.iter().position(|name| name == asked);
    found.ok_or_else(|| {
        let why = format!("matrix draws one of {}", names.join(", "));
        refused("metric", asked, &why).into()
    })
}

pub(super) fn cores(mut pairs: AllPairs, settings: &Settings) -> anyhow::Result<Made> {
    let (_, column, value, kind) = &OF_CORES[chosen(&OF_CORES.map(|drawn| drawn.0), settings)?];
    // Those that have most in common stand side by side.
    pairs.cpus.sort_by_cached_key(|cpu| {
        let groups = cpu.groups.iter();
        let first = |group: &String| {
            group
                .split([' ', ',', '-'])
                .nth(1)
                .and_then(|it| it.parse().ok())
        };
        (groups.map(first).collect::<Vec<Option<usize>>>(), cpu.cpu)
    });
    let medians = pairs.medians(column);
    // In the unit of the axis.
    let size = if *kind == CellKind::Rate { 1e3 } else { 1.0 };
    let cell = |from: usize, to: usize| medians.get(&[from, to]).map(|median| median / size);
    let cpus: Vec<usize> = pairs.cpus.iter().map(|cpu| cpu.cpu).collect();
    let row = |from: &usize| cpus.iter().map(|to| cell(*from, *to)).collect();
    let subtitle = format!("{} CPUs; a row writes, a column reads", cpus.len());
    let damaged = left_out(pairs.damaged.iter());
    let texts = words(
        &format!("CPUs: {value}"),
        &subtitle,
        &damaged,
        pairs.incomplete.as_deref(),
        settings,
    );
    let figure = Matrix {
        chart: settings.chart(texts, "to CPU", "from CPU", Vec::new()),
        value: (*value).to_owned(),
        kind: *kind,
        cells: cpus.iter().map(row).collect(),
        nodes: (pairs.cpus.iter())
            .map(|cpu| Node {
                name: cpu.cpu.to_string(),
                groups: cpu.groups.clone(),
                slow: false,
            })
            .collect(),
    };
    let drawing = figure.draw(settings.sides())?;
    Ok(Made {
        without: pairs.damaged,
        ..Made::new(figure, drawing, Told::default())
    })
}

pub(super) fn of_fabric(folder: &Path, settings: &Settings) -> anyhow::Result<Made> {
    let chosen = chosen(&OF_A_FABRIC.map(|drawn| drawn.0), settings)?;
    let (_, column, value, kind) = &OF_A_FABRIC[chosen];
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
            words_of_fabric(&fabric, &nodes, value, settings),
            "to",
            "from",
            Vec::new(),
        ),
        value: (*value).to_owned(),
        kind: *kind,
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

fn words_of_fabric(
    fabric: &Fabric,
    nodes: &[Node],
    value: &str,
    settings: &Settings,
) -> FigureTexts {
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
    let subtitle = format!(
        "{} nodes; a row sends, a column receives{named}",
        nodes.len()
    );
    words(
        &format!("Fabric: {value}"),
        &subtitle,
        &left_out(fabric.damaged().iter()),
        fabric.incomplete.as_deref(),
        settings,
    )
}

pub(super) fn words(
    title: &str,
    subtitle: &str,
    damaged: &str,
    incomplete: Option<&str>,
    settings: &Settings,
) -> FigureTexts {
    let (mark, warning) = match incomplete {
        None => ("", damaged.to_owned()),
        Some(reason) => (INCOMPLETE, both(damaged, &format!("incomplete: {reason}"))),
    };
    let own = |text: &Option<String>, usual: &str| text.clone().unwrap_or_else(|| usual.to_owned());
    FigureTexts {
        title: own(&settings.title, title) + mark,
        subtitle: own(&settings.subtitle, subtitle),
        warning,
    }
}
