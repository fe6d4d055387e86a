//! The tables of a fabric's page.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text;
use crate::page::Sheet;
use crate::report::content::{digits, without_unit};
use crate::results::read::{Fabric, ReadError, Row, Table};
use crate::results::schema::between::CONTRADICTION;
use crate::results::schema::fabric::{
    ALONE_P50, EXCESS_P99, EXPECTED, FROM, HALF_P50, LOST, ONE_WAY_STATUS, REST, SCORE, SLOWER_BY,
    SLOWER_WAY, TIER, TO, VERDICT, node, tier,
};
use crate::results::schema::{Column, REASON};
use crate::results::units::fixed;
use crate::sorting::{sort_by, sort_by_key};
use crate::terminal::output::heading_of;

/// So many pairs and nodes are in the tables at the top.
const SHOWN: usize = 12;
/// From so many ns on a column is in us.
const IN_US: f64 = 1e4;

/// A pair that was measured.
pub(super) struct Pair {
    ends: [usize; 2],
    tier: String,
    /// Half a round trip, what was to be expected, the excess, half a round trip alone; in ns.
    times: [Option<f64>; 4],
    rest: Option<f64>,
    score: Option<f64>,
    pub(super) lost: f64,
    pub(super) verdict: String,
    slower_way: String,
    pub(super) contradicts: bool,
    /// By how many ns it is slower than it has to be, at least.
    slower_by: Option<f64>,
}

/// All pairs, those that lie furthest above what is expected of them first.
pub(super) fn pairs(fabric: &Fabric) -> Result<Vec<Pair>, ReadError> {
    let columns = [
        TIER,
        HALF_P50,
        EXPECTED,
        EXCESS_P99,
        ALONE_P50,
        REST,
        SCORE,
        LOST,
        VERDICT,
        SLOWER_WAY,
        ONE_WAY_STATUS,
        SLOWER_BY,
    ];
    let mut pairs = Vec::new();
    fabric.pairs(&columns, |ends, cells| {
        pairs.push(Pair {
            ends,
            tier: cells.text(0).into_owned(),
            times: [
                cells.number(1)?,
                cells.number(2)?,
                cells.number(3)?,
                cells.number(4)?,
            ],
            rest: cells.number(5)?,
            score: cells.number(6)?,
            lost: cells.number(7)?.unwrap_or(0.0),
            verdict: cells.text(8).into_owned(),
            slower_way: cells.text(9).into_owned(),
            contradicts: cells.text(10) == CONTRADICTION,
            slower_by: cells.number(11)?,
        });
        Ok(())
    })?;
    let rank = |pair: &Pair| pair.rest.unwrap_or(f64::NEG_INFINITY);
    sort_by(&mut pairs, |one, other| rank(other).total_cmp(&rank(one)));
    Ok(pairs)
}

/// The pairs that lie furthest above what is expected of them.
pub(super) fn worst(fabric: &Fabric, pairs: &[Pair]) -> Sheet {
    // What is faster than expected is none of them.
    let stands_out = |pair: &&Pair| pair.rest.is_some_and(|rest| rest > 0.0);
    let shown = pairs.iter().filter(stands_out);
    let shown: Vec<&Pair> = shown.take(SHOWN).collect();
    let us = |ns: Option<f64>| ns.map_or(String::new(), |ns| digits(ns / 1e3));
    let row = |pair: &&Pair| {
        let name = |end: usize| fabric.nodes[pair.ends[end]].name.clone();
        let [half, expected, excess, alone] = pair.times.map(us);
        let score = pair.score.map_or(String::new(), |score| fixed(score, 1));
        let (tier, verdict) = (pair.tier.clone(), pair.verdict.clone());
        let slower = match pair.slower_way.as_str() {
            "yes" => "slower",
            "no" => "faster",
            _ => "",
        };
        vec![
            name(0),
            name(1),
            tier,
            half,
            expected,
            score,
            excess,
            alone,
            fixed(pair.lost, 0),
            verdict,
            slower.to_owned(),
        ]
    };
    let titled = |column: &Column| heading(column).0;
    let columns = vec![
        without_unit(&titled(&FROM)),
        without_unit(&titled(&TO)),
        without_unit(&titled(&TIER)),
        (titled(&HALF_P50), "us"),
        (titled(&EXPECTED), "us"),
        without_unit(&titled(&SCORE)),
        (titled(&EXCESS_P99), "us"),
        (titled(&ALONE_P50), "us"),
        without_unit(&titled(&LOST)),
        without_unit(&titled(&VERDICT)),
        without_unit("than the way back"),
    ];
    told(Sheet {
        columns,
        rows: shown.iter().map(row).collect(),
    })
}

/// The ways that are proved to be slower than they have to be, the slowest first: from, to, and by how many ns.
pub(super) fn slow_ways<'a>(fabric: &'a Fabric, pairs: &[Pair]) -> Vec<(&'a str, &'a str, f64)> {
    let name = |end: usize| fabric.nodes[end].name.as_str();
    let ways = pairs.iter().filter_map(|pair| {
        let [from, to] = pair.ends;
        Some((name(from), name(to), pair.slower_by?))
    });
    let mut ways: Vec<_> = ways.collect();
    sort_by(&mut ways, |one, other| other.2.total_cmp(&one.2));
    ways
}

/// The same as a table.
pub(super) fn ways(fabric: &Fabric, pairs: &[Pair]) -> Sheet {
    let shown = slow_ways(fabric, pairs).into_iter().take(SHOWN);
    let row =
        |(from, to, ns): (&str, &str, f64)| vec![from.to_owned(), to.to_owned(), digits(ns / 1e3)];
    Sheet {
        columns: vec![
            without_unit(&heading(&FROM).0),
            without_unit(&heading(&TO).0),
            (heading(&SLOWER_BY).0, "us"),
        ],
        rows: shown.map(row).collect(),
    }
}

/// The nodes that are named, are missing, or stand out most.
pub(super) fn nodes(table: &Table) -> Sheet {
    let is_named = |row: &&Row| !matches!(text(row, &node::VERDICT).as_str(), "ok" | "not-judged");
    let (mut named, mut others): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(is_named);
    let score = |row: &&Row| row.number(node::SCORE.name).unwrap_or(f64::NEG_INFINITY);
    for rows in [&mut named, &mut others] {
        sort_by(rows, |one, other| score(other).total_cmp(&score(one)));
    }
    named.extend(others);
    sheet(table, &node::NODE, named.into_iter().take(SHOWN))
}

/// The tiers, and all of them together.
pub(super) fn tiers(table: &Table) -> Sheet {
    sheet(table, &tier::TIER, table.rows.iter())
}

/// What was left out, by reasons.
pub(super) fn left_out(table: &Table) -> Sheet {
    let mut reasons = BTreeMap::<String, Vec<&Row>>::new();
    for row in &table.rows {
        reasons.entry(text(row, &REASON)).or_default().push(row);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    sort_by_key(&mut reasons, |(_, rows)| std::cmp::Reverse(rows.len()));
    let row = |(reason, rows): (String, Vec<&Row>)| {
        let pair = |row: &Row| format!("{} to {}", text(row, &FROM), text(row, &TO));
        vec![rows.len().to_string(), pair(rows[0]), reason]
    };
    Sheet {
        columns: ["ordered pairs", "the first", "why"]
            .map(without_unit)
            .into(),
        rows: reasons.into_iter().take(SHOWN).map(row).collect(),
    }
}

/// The ranks that were there, with their ports.
pub(super) fn ranks(fabric: &Fabric) -> Sheet {
    let ranks = fabric.document()["there"].as_array().into_iter().flatten();
    let told = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |rank: &Value| {
        vec![
            rank["rank"].to_string(),
            told(&rank["node"]),
            told(&rank["boot_id"]),
            told(&rank["port"]["description"]),
        ]
    };
    Sheet {
        columns: ["rank", "node", "boot", "port"].map(without_unit).into(),
        rows: ranks.map(row).collect(),
    }
}

/// What a column is called, and its unit.
fn heading(column: &Column) -> (String, &'static str) {
    let (words, unit) = heading_of(column.name);
    match column.title == column.name {
        true => (words, unit),
        false => (column.title.to_owned(), unit),
    }
}

/// Columns of a table as a sheet: long times in us, and what is empty in all rows left out.
pub(super) fn sheet<'a>(
    table: &Table,
    columns: &[Column],
    rows: impl Iterator<Item = &'a Row>,
) -> Sheet {
    let rows: Vec<&Row> = rows.collect();
    let mut sheet = Sheet {
        columns: Vec::new(),
        rows: vec![Vec::new(); rows.len()],
    };
    for column in columns.iter().filter(|column| table.has(column.name)) {
        let (title, unit) = heading(column);
        let numbers = || rows.iter().filter_map(|row| row.number(column.name));
        let in_us = unit == "ns" && numbers().any(|ns| ns.abs() >= IN_US);
        sheet.columns.push((title, if in_us { "us" } else { unit }));
        for (cells, row) in sheet.rows.iter_mut().zip(&rows) {
            let us = row.number(column.name).filter(|_| in_us);
            cells.push(us.map_or_else(|| text(row, column), |ns| digits(ns / 1e3)));
        }
    }
    told(sheet)
}

/// Without the columns that are empty in all rows.
fn told(sheet: Sheet) -> Sheet {
    let is_told = |place: &usize| sheet.rows.iter().any(|row| !row[*place].is_empty());
    let kept: Vec<usize> = (0..sheet.columns.len()).filter(is_told).collect();
    Sheet {
        columns: kept.iter().map(|it| sheet.columns[*it].clone()).collect(),
        rows: (sheet.rows.iter())
            .map(|row| kept.iter().map(|it| row[*it].clone()).collect())
            .collect(),
    }
}
