//! The page of a fabric: who stands out, the worst pairs, the tiers, and the matrix.

mod tables;

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use self::tables::{Pair, left_out, nodes, pairs, ranks, sheet, slow_ways, tiers, ways, worst};
use super::content::in_words;
use super::figures::is_not_here;
use super::{ReportArguments, reading};
use crate::bench::presentation::ReportFigure;
use crate::figures::capital;
use crate::figures::embedded::Embedded;
use crate::findings::add_damaged;
use crate::page::{Answer, Figure, Notice, Page, Sheet, Verdict};
use crate::plot::scale::duration;
use crate::results::finding::{Finding, Findings, Severity, kinds};
use crate::results::folder::{LEFT_OUT, RUNS, SUMMARY};
use crate::results::read::{Fabric, ReadError, Row, Table};
use crate::results::schema::fabric::{NODES, PAIRS, node, tier};
use crate::results::schema::{Column, STARTED_AT};
use crate::sorting::sort_by_key;

/// So many nodes are named in a sentence.
const MOST_NAMED: usize = 4;

pub(crate) const FIGURES: [ReportFigure; 4] = [
    ReportFigure::new(
        "matrix",
        "Half a round trip",
        "The median of each pair. A dark row or column: a slow node. A dark square: a slow way. Hatched: not \
         measured.",
    ),
    ReportFigure::new(
        "matrix",
        "Excess over the least",
        "The 99th percentile of what a message took beyond the least of its direction. A dark row: a node that sends \
         slowly; a dark column: one that receives slowly.",
    )
    .with("metric", "excess"),
    ReportFigure::new(
        "matrix",
        "One way at most",
        "The upper bound of the median one-way latency, as it is proved from the exchanges.",
    )
    .with("metric", "one-way"),
    ReportFigure::new(
        "matrix",
        "Lost messages",
        "How many messages of each pair did not arrive.",
    )
    .with("metric", "lost"),
];

/// What the tables have.
struct Read {
    nodes: Table,
    tiers: Table,
    left_out: Table,
    pairs: Vec<Pair>,
}

/// The page of a fabric.
///
/// # Errors
/// When its files cannot be read.
pub(super) fn page(fabric: &Fabric, arguments: &ReportArguments) -> Result<Page, ReadError> {
    let read = Read {
        nodes: fabric.table(NODES),
        tiers: fabric.table(SUMMARY),
        left_out: fabric.table(LEFT_OUT),
        pairs: pairs(fabric)?,
    };
    let started = started(fabric)?;
    let (figures, notes) = figures(arguments, &read);
    let findings = findings(fabric, &read);
    let (what, verdict, taken) = opening(fabric, &read);
    let title = || match &started {
        Some(started) => format!(
            "Fabric of {} nodes, {}",
            fabric.nodes.len(),
            in_words(started)
        ),
        None => format!("Fabric of {} nodes", fabric.nodes.len()),
    };
    Ok(Page {
        title: arguments.title.clone().unwrap_or_else(title),
        verdict: Verdict {
            text: verdict,
            also: String::new(),
            severity: findings.first().map(|worst| worst.severity),
        },
        opening: format!("{what} {taken}").trim_end().to_owned(),
        same: String::new(),
        answer: Answer {
            title: "Tiers".to_owned(),
            sheet: tiers(&read.tiers),
            note: String::new(),
        },
        tables: vec![
            ("Nodes that stand out most".to_owned(), nodes(&read.nodes)),
            ("The worst pairs".to_owned(), worst(fabric, &read.pairs)),
            (
                "Ways that are slower than over a third host".to_owned(),
                ways(fabric, &read.pairs),
            ),
            ("Left out".to_owned(), left_out(&read.left_out)),
        ],
        figures,
        notes,
        points: Default::default(),
        findings,
        sound: String::new(),
        facts: facts(fabric, started.as_deref()),
        instrument: Sheet::default(),
        reading: reading::of_fabric(),
        more: vec![
            (
                format!("All nodes ({})", read.nodes.rows.len()),
                sheet(&read.nodes, &node::NODE, read.nodes.rows.iter()),
            ),
            ("Ranks and their ports".to_owned(), ranks(fabric)),
        ],
    })
}

fn text(row: &Row, column: &Column) -> String {
    row.text(column.name).unwrap_or_default().to_owned()
}

/// When the first pair was measured; what a cell of `runs.csv` tells.
fn started(fabric: &Fabric) -> Result<Option<String>, ReadError> {
    if !fabric.path.join(RUNS).exists() {
        return Ok(None);
    }
    let mut first: Option<String> = None;
    fabric.texts_of_runs(&STARTED_AT, |text| {
        if first.as_deref().is_none_or(|first| text < first) {
            first = Some(text.to_owned());
        }
    })?;
    Ok(first)
}

/// What was measured, who stands out, and what it takes.
fn opening(fabric: &Fabric, read: &Read) -> (String, String, String) {
    let rows = || read.nodes.rows.iter();
    let named: Vec<String> = rows()
        .filter(|row| row.text(node::VERDICT.name) == Some("slow"))
        .map(|row| {
            let direction = match text(row, &node::DIRECTION).as_str() {
                "egress" => ", in what it sends",
                "ingress" => ", in what it receives",
                "both" => ", both ways",
                _ => "",
            };
            format!("{}{direction}", text(row, &node::NAME))
        })
        .collect();
    let is_judged = rows().any(|row| row.text(node::VERDICT.name) == Some("ok"));
    let who = match &named[..] {
        [] if is_judged => "No node stands out.".to_owned(),
        [] => "Whether a node stands out was not judged.".to_owned(),
        [one] => format!("One node is slow: {one}."),
        several => {
            let shown = several[..several.len().min(MOST_NAMED)].join("; ");
            match several.len().saturating_sub(MOST_NAMED) {
                0 => format!("{} nodes are slow: {shown}.", several.len()),
                more => format!(
                    "{} nodes are slow: {shown}; and {more} more.",
                    several.len()
                ),
            }
        }
    };
    let slow = slow_ways(fabric, &read.pairs);
    let way = |(from, to, ns): &(&str, &str, f64)| {
        format!("{from} to {to}, by at least {}", duration(*ns))
    };
    let who = match &slow[..] {
        [] => who,
        [one] => format!("{who} One way is slower than it has to be: {}.", way(one)),
        [worst, ..] => format!(
            "{who} {} ways are slower than they have to be, the worst: {}.",
            slow.len(),
            way(worst)
        ),
    };
    let what = format!(
        "Half a round trip and bounds of one way, between all pairs of {} nodes.",
        fabric.nodes.len()
    );
    (what, who, taken(read))
}

/// What half a round trip takes, over all pairs.
fn taken(read: &Read) -> String {
    let all = read.tiers.rows.iter();
    let Some(all) = all.last() else {
        return String::new();
    };
    let number = |column: &Column| all.number(column.name);
    let count = |column: &Column| all.count(column.name).unwrap_or(0);
    let (Some(median), Some(least), Some(greatest)) = (
        number(&tier::HALF_P50),
        number(&tier::HALF_LEAST),
        number(&tier::HALF_GREATEST),
    ) else {
        return "No pair has figures.".to_owned();
    };
    let lost = match count(&tier::LOST) {
        0 => "nothing was lost".to_owned(),
        1 => "one message was lost".to_owned(),
        lost => format!("{lost} messages were lost"),
    };
    format!(
        "Half a round trip takes {} (median of {} of {} ordered pairs; from {} to {}), and {lost}.",
        duration(median),
        count(&tier::MEASURED),
        count(&tier::PAIRS),
        duration(least),
        duration(greatest)
    )
}

fn facts(fabric: &Fabric, started: Option<&str>) -> Vec<(String, String)> {
    let document = fabric.document();
    let mut facts = Vec::new();
    let mut add = |label: &str, text: String| {
        if !text.is_empty() {
            facts.push((label.to_owned(), text));
        }
    };
    let told = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let mut engine = told(&document["engine"]);
    for part in ["job", "step"] {
        let text = told(&document["job"][part]);
        if !text.is_empty() {
            engine += &format!(", {part} {text}");
        }
    }
    add("Started by", engine);
    let names = fabric.nodes.iter().map(|node| node.name.as_str());
    let names: Vec<&str> = names.collect();
    add(
        "Nodes",
        match names[..] {
            [first, .., last] if names.len() > 16 => {
                format!("{}, from {first} to {last}", names.len())
            }
            _ => names.join(", "),
        },
    );
    let ports = document["there"].as_array().into_iter().flatten();
    let mut kinds = BTreeMap::<String, usize>::new();
    for rank in ports {
        // What is behind the address is the same of equal ports.
        let description = told(&rank["port"]["description"]);
        if let Some((_, kind)) = description.split_once(", ") {
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
    let kinds = kinds
        .iter()
        .map(|(kind, count)| format!("{count} x {kind}"));
    add("Ports", kinds.collect::<Vec<_>>().join("; "));
    let schedule = &document["schedule"];
    add("Pairs at a time", told(&schedule["concurrency"]));
    add(
        "Rounds",
        schedule["rounds"]
            .as_u64()
            .map_or(String::new(), |it| it.to_string()),
    );
    if let Some(settings) = document["settings"].as_object() {
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let all = settings.iter().filter(|(_, value)| !value.is_null());
        let all = all.map(|(name, value)| format!("{} {}", name.replace('_', " "), text(value)));
        add("Settings", all.collect::<Vec<_>>().join(", "));
    }
    add("Measured", started.map(in_words).unwrap_or_default());
    let version = told(&document["hcabench"]["version"]);
    if !version.is_empty() {
        add("By", format!("hcabench {version}"));
    }
    let folder = fabric.path.canonicalize();
    let folder = folder.unwrap_or_else(|_| fabric.path.clone());
    let name = folder.file_name().map(|name| name.to_string_lossy());
    add("Folder", name.map(String::from).unwrap_or_default());
    facts
}

/// A line each, in the layout of the findings of a run.
fn findings(fabric: &Fabric, read: &Read) -> Vec<Notice> {
    let notice = |severity, line: String| Notice {
        severity,
        line: line + ".",
        more: Vec::new(),
    };
    let of_ranks = Findings::deserialize(&fabric.document()["findings"]).unwrap_or_default();
    let of_ranks = of_ranks.all().into_iter();
    let of_ranks = of_ranks.map(|found| notice(found.severity, capital(&found.line(0))));
    let lines = incomplete(fabric).into_iter().chain(warnings(fabric, read));
    let lines = lines.map(|line| notice(Severity::Reservation, line));
    let mut all: Vec<Notice> = of_ranks.chain(lines).collect();
    sort_by_key(&mut all, |notice| std::cmp::Reverse(notice.severity));
    all
}

fn incomplete(fabric: &Fabric) -> Vec<String> {
    let reason = fabric.incomplete.iter();
    let mut texts: Vec<String> = reason
        .map(|reason| format!("The fabric was not measured to its end: {reason}"))
        .collect();
    if fabric.is_damaged(PAIRS) && !fabric.is_judged() {
        texts.push(format!(
            "The matrix shows medians over the rounds in {RUNS}, without {PAIRS}"
        ));
    } else if !fabric.is_judged() {
        texts.push(
            "It ended before its pairs were judged: the matrix shows medians over the rounds that there are".to_owned(),
        );
    }
    texts
}

/// What to know before the figures are believed, a sentence each.
fn warnings(fabric: &Fabric, read: &Read) -> Vec<String> {
    let mut all = Findings::default();
    let mut add = |found| {
        all.add(found, None, None);
    };
    let contradictions = fabric.document()["contradictions"].as_array();
    for text in contradictions
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        add(Finding::of(&kinds::CLOCKS_CONTRADICT).name("text", text));
    }
    for node in fabric.nodes.iter().filter(|node| node.verdict == "missing") {
        add(Finding::of(&kinds::NODES_MISSING).listed("nodes", &*node.name));
    }
    let count = |verdict: &str| read.pairs.iter().filter(|it| it.verdict == verdict).count();
    let contradict = read.pairs.iter().filter(|it| it.contradicts).count();
    for (count, kind) in [
        (read.left_out.rows.len(), kinds::PAIRS_LEFT_OUT),
        (contradict, kinds::PAIRS_CONTRADICT),
        (count("slow"), kinds::PAIRS_SLOW),
        (count("congested"), kinds::PAIRS_CONGESTED),
        (count("suspect"), kinds::PAIRS_SUSPECT),
    ] {
        if let Some(found) = Finding::counted(&kind, count as u64, None) {
            add(found);
        }
    }
    if fabric.is_judged() && fabric.nodes.iter().any(|node| node.verdict == "not-judged") {
        add(Finding::of(&kinds::NODES_NOT_JUDGED));
    }
    let damaged = fabric.damaged();
    add_damaged(&mut all, &fabric.path, damaged.iter().map(AsRef::as_ref));
    let all = all.all().into_iter();
    all.map(|found| capital(&found.line(0))).collect()
}

/// Those that can be drawn, and why others are not here.
fn figures(arguments: &ReportArguments, read: &Read) -> (Vec<Figure>, Vec<String>) {
    let (mut figures, mut notes) = (Vec::new(), Vec::new());
    for of in &FIGURES {
        let is_of_lost = of.setting == Some(("metric", "lost"));
        if is_of_lost && read.pairs.iter().all(|pair| pair.lost == 0.0) {
            continue;
        }
        let ReportFigure { title, caption, .. } = of;
        let drawn = Embedded::try_from(of).map_err(|unknown| unknown.to_string());
        let drawn = drawn.and_then(|figure| match figure.draw(&arguments.folder, None) {
            Ok(drawn) => Ok((drawn.svg, figure.narrow(&arguments.folder, None))),
            Err(failed) => Err(failed.reason),
        });
        match drawn {
            Ok((svg, narrow)) => figures.push(Figure {
                title: (*title).to_owned(),
                svg,
                narrow: narrow.unwrap_or_default(),
                caption: format!("{title}. {caption}"),
                is_more: false,
            }),
            Err(reason) => notes.push(is_not_here(title, &reason)),
        }
    }
    (figures, notes)
}
