//! A fabric's results, as commands that compare several of them read them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::below::below;
use crate::arguments::UsageError;
use crate::bench::fabric::matrix::Matrix;
use crate::bench::fabric::metrics::{RunFigures, RunNode};
use crate::bench::fabric::tiers::Tiers;
use crate::compare::circumstances::{Differs, differences_of};
use crate::results::folder::LEFT_OUT;
use crate::results::read::{Fabric, ReadError};
use crate::results::schema::STARTED_AT;
use crate::results::schema::fabric::{FROM, HALF_P50, PAIRS, TO};
use crate::results::text::printable_path;
use crate::time::between::HostPairs;

/// The parts of `fabric.json` that must be the same.
pub(super) const PARTS: [&str; 2] = ["schedule", "settings"];

/// A run whose pairs were judged.
#[derive(Debug)]
pub(super) struct StoredFabric {
    pub(super) fabric: Fabric,
    /// When it began, in RFC 3339.
    pub(super) started_at: String,
    pub(super) began: SystemTime,
    pub(super) figures: RunFigures,
}

impl StoredFabric {
    /// Reads a folder.
    ///
    /// # Errors
    /// What cannot be read or used of it.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let fabric = Fabric::salvage(path)?;
        let unusable = |reason: &str| UsageError(format!("{}: {reason}", printable_path(path)));
        if !fabric.is_judged() {
            let reason =
                "the run was killed before its pairs were judged; fix: complete it with --resume";
            return Err(unusable(reason).into());
        }
        let started_at = started_at(&fabric)?;
        let Ok(began) = humantime::parse_rfc3339(&started_at) else {
            let reason = "it has no row with a date; fix: leave it out";
            return Err(unusable(reason).into());
        };
        Ok(StoredFabric {
            figures: figures(&fabric)?,
            fabric,
            started_at,
            began,
        })
    }

    /// Whether it is the same run, in another folder.
    pub(super) fn is_same_as(&self, other: &StoredFabric) -> bool {
        let document = |run: &StoredFabric| {
            let document = run.fabric.document();
            [
                &document["job"],
                &document["nodes"],
                &document["resumed_at"],
            ]
            .map(Clone::clone)
        };
        self.began == other.began
            && document(self) == document(other)
            && self.names().eq(other.names())
    }

    /// The names of its nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.figures.nodes.iter().map(|node| node.name.clone())
    }

    /// The path of its folder.
    pub(super) fn folder(&self) -> String {
        self.fabric.path.display().to_string()
    }
}

/// The folders of fabrics in and below a folder, and folders that cannot be read.
pub(super) fn folders_below(folder: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<String>)> {
    fs::read_dir(folder)?;
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let mut visit = |folder: &Path| {
        let is_one = Fabric::is_one(folder);
        found.extend(is_one.then(|| folder.to_path_buf()));
        !is_one
    };
    let mut refused = |folder: &Path, error: std::io::Error| {
        failed.push(format!("{}: {error}", printable_path(folder)));
    };
    below(folder, &mut visit, &mut refused);
    found.sort();
    Ok((found, failed))
}

/// What may differ: the number of rounds, and what follows from the number of ranks.
const MAY_DIFFER: [&str; 5] = [
    "schedule.rounds",
    "settings.rounds",
    "schedule.pairs",
    "schedule.partners",
    "schedule.seed",
];

/// The settings that are not the same.
pub(super) fn differs([base, new]: [&Value; 2]) -> Vec<Differs> {
    let differs = PARTS.map(|part| differences_of(part, &base[part], &new[part]));
    let differs = differs.into_iter().flatten();
    differs
        .filter(|it| !MAY_DIFFER.contains(&&*it.what))
        .collect()
}

/// When a run began; of one that does not record it, its first row.
fn started_at(fabric: &Fabric) -> Result<String, ReadError> {
    // That of a run of an earlier version that went on is empty.
    let recorded = fabric.document()["started_at"].as_str();
    if let Some(recorded) = recorded.filter(|moment| !moment.is_empty()) {
        return Ok(recorded.to_owned());
    }
    let mut first = String::new();
    fabric.texts_of_runs(&STARTED_AT, |text| {
        if first.is_empty() || !text.is_empty() && text < first.as_str() {
            first = text.to_owned();
        }
    })?;
    Ok(first)
}

fn figures(fabric: &Fabric) -> Result<RunFigures, ReadError> {
    let count = fabric.nodes.len();
    let mut rows: Vec<((usize, usize), [f64; 7])> = Vec::new();
    fabric.pairs(&RunFigures::COLUMNS, |[from, to], cells| {
        let mut figures = [f64::NAN; 7];
        for (place, figure) in figures.iter_mut().enumerate() {
            *figure = cells.number(place)?.unwrap_or(f64::NAN);
        }
        rows.push(((from, to), figures));
        Ok(())
    })?;
    // A run that ended early has no row of the pairs that it did not come to, in either file.
    let mut tried: Vec<(usize, usize)> = rows.iter().map(|(pair, _)| *pair).collect();
    let names = fabric.nodes.iter().enumerate();
    let places: HashMap<&str, usize> = names.map(|(place, it)| (&*it.name, place)).collect();
    for row in &fabric.table(LEFT_OUT).rows {
        let ends = [&FROM, &TO].map(|column| row.text(column.name));
        let ends = ends.map(|name| places.get(name?).copied());
        if let [Some(from), Some(to)] = ends
            && from != to
        {
            tried.push((from, to));
        }
    }
    let pairs = HostPairs::most_or_some(count, &tried);
    let mut columns: [Matrix; 7] = std::array::from_fn(|_| Matrix::missing_of(&pairs));
    for ((from, to), figures) in rows {
        for (column, figure) in columns.iter_mut().zip(figures) {
            column.set(from, to, figure);
        }
    }
    let mut is_tried = Matrix::missing_of(&pairs);
    for (from, to) in tried {
        is_tried.set(from, to, 1.0);
    }
    Ok(RunFigures::new(
        nodes(fabric),
        tiers(fabric)?,
        columns,
        is_tried,
    ))
}

/// The nodes, with what `fabric.json` records of their ranks.
fn nodes(fabric: &Fabric) -> Vec<RunNode> {
    let document = fabric.document();
    let mut of_name: BTreeMap<&str, &Value> = BTreeMap::new();
    for member in document["there"].as_array().into_iter().flatten() {
        let rank = member["rank"]
            .as_u64()
            .and_then(|rank| usize::try_from(rank).ok());
        if let Some(name) = rank.and_then(|rank| document["nodes"][rank].as_str()) {
            of_name.insert(name, member);
        }
    }
    // Without one, hosts have the names that they have themselves.
    let engine = document["engine"].as_str().unwrap_or_default();
    let has_engine = !matches!(engine, "" | "options");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let node = |node: &crate::results::read::FabricNode| {
        let member = of_name.get(node.name.as_str()).copied();
        RunNode {
            name: node.name.clone(),
            host: member
                .filter(|_| has_engine)
                .map_or(String::new(), |it| text(&it["node"])),
            pod_host: member.map_or(String::new(), |it| text(&it["port"]["node_name"])),
            group: node.groups.join("."),
            is_named: match node.verdict.as_str() {
                "slow" => Some(true),
                "ok" => Some(false),
                _ => None,
            },
            facts: member.map_or(Vec::new(), facts),
        }
    };
    fabric.nodes.iter().map(node).collect()
}

/// What a rank ran on. The address of a port is no fact of its kind.
fn facts(member: &Value) -> Vec<(&'static str, String)> {
    let port = &member["port"];
    let kind = port["description"]
        .as_str()
        .and_then(|text| text.split_once(", "));
    let known = [
        ("firmware", port["details"]["device"]["firmware"].as_str()),
        ("kernel", port["kernel"].as_str()),
        ("port", kind.map(|(_, kind)| kind)),
    ];
    let known = known.into_iter();
    let known = known.filter_map(|(name, text)| Some((name, text.filter(|it| !it.is_empty())?)));
    known.map(|(name, text)| (name, text.to_owned())).collect()
}

/// The tiers as `pairs.csv` names them.
pub(super) fn tiers(fabric: &Fabric) -> Result<Tiers, ReadError> {
    const UNKNOWN: &str = "unknown";
    let count = fabric.nodes.len();
    let mut names: Vec<String> = Vec::new();
    let mut rows: Vec<((usize, usize), u16)> = Vec::new();
    fabric.each(&HALF_P50, |[from, to], tier, _| {
        let place = names.iter().position(|name| name == tier);
        let place = place.unwrap_or_else(|| {
            names.push(tier.to_owned());
            names.len() - 1
        });
        rows.push(((from, to), place as u16));
    })?;
    // What a damaged file does not state is no tier that others are in.
    let unknown = match fabric.is_damaged(PAIRS) && !names.is_empty() {
        true => names.len() as u16,
        false => 0,
    };
    if unknown > 0 || names.is_empty() {
        let name = if unknown > 0 { UNKNOWN } else { "fabric" };
        names.push(name.to_owned());
    }
    let measured: Vec<(usize, usize)> = rows.iter().map(|(pair, _)| *pair).collect();
    let pairs = HostPairs::most_or_some(count, &measured);
    let mut of = vec![unknown; pairs.places()];
    for ((from, to), tier) in rows {
        if let Some(place) = pairs.place(from, to) {
            of[place] = tier;
        }
    }
    let groups = fabric.nodes.iter().map(|node| node.groups.join("."));
    Ok(Tiers::of_names(
        groups.collect(),
        &names,
        (pairs, &of),
        unknown,
    ))
}
