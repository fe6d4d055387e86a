//! The folder of a fabric's results.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folder::{is_of_a_fabric, mark_of, names_in, read_table};
use super::rows::{Cells, RowFile};
use super::table::Table;
use crate::results::document::read_value;
use crate::results::folder::RUNS;
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::results::schema::fabric::{
    FABRIC, FROM, FROM_RANK, NODES, PAIRS, TIER, TO, TO_RANK, node,
};
use crate::results::schema::{COMPLETE, Column, ROUND, STATUS};
use crate::sorting::{distinct, sort_by_key};
use crate::stats::median_of;

/// A fabric: its nodes, and where its pairs are. These are read a column at a time: of a thousand nodes there are a
/// million.
#[derive(Debug, Clone)]
pub struct Fabric {
    pub path: PathBuf,
    /// By rank.
    pub nodes: Vec<FabricNode>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    document: Value,
    /// `pairs.csv`; of a run that was killed before it was judged, `runs.csv`.
    pairs: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricNode {
    pub name: String,
    /// The highest first; empty where unknown.
    pub groups: Vec<String>,
    /// The verdict of `nodes.csv`; empty without one.
    pub verdict: String,
}

impl Fabric {
    /// Whether a folder holds results of a fabric.
    pub fn is_one(path: &Path) -> bool {
        is_of_a_fabric(path)
    }

    /// Reads the nodes; for a run that was killed, those in pairs.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let names = names_in(path)?;
        if !Self::is_one(path) {
            return Err(ReadErrorKind::OfNoFabric(PAIRS).at(path));
        }
        let incomplete = mark_of(path)?;
        let document = match names.contains(FABRIC) {
            true => read_value(&path.join(FABRIC))?,
            false => Value::Null,
        };
        let pairs = match names.contains(PAIRS) || incomplete.is_none() {
            true => PAIRS,
            false => RUNS,
        };
        let mut fabric = Fabric {
            path: path.to_path_buf(),
            nodes: Vec::new(),
            incomplete,
            document,
            pairs,
        };
        fabric.nodes = nodes_of(path, &fabric.table(NODES)?)?;
        if fabric.nodes.is_empty() {
            fabric.nodes = fabric.nodes_of_pairs()?;
        }
        Ok(fabric)
    }

    /// The content of `fabric.json`; null without it.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// One of its small tables, such as `nodes.csv`; empty where it is not there.
    pub fn table(&self, name: &str) -> Result<Table, ReadError> {
        match self.path.join(name).exists() {
            true => read_table(&self.path, name, self.incomplete.is_some()),
            false => Ok(Table::default()),
        }
    }

    /// Whether all pairs were judged: not where a run was killed before.
    pub fn is_judged(&self) -> bool {
        self.pairs == PAIRS
    }

    /// A column of all pairs, with the numbers of both nodes and the tier; `None` where a cell is empty. Of a run that
    /// was killed, the median of the rounds that there are, without a tier.
    pub fn each(
        &self,
        column: &Column,
        mut take: impl FnMut([usize; 2], &str, Option<f64>),
    ) -> Result<(), ReadError> {
        if self.is_judged() {
            return self.pairs(&[TIER, *column], |pair, cells| {
                take(pair, &cells.text(0), cells.number(1)?);
                Ok(())
            });
        }
        let mut all = BTreeMap::<[usize; 2], Vec<f64>>::new();
        self.rounds(&[*column], |_, pair, _, value| {
            all.entry(pair).or_default().push(value);
        })?;
        for (pair, values) in all {
            take(pair, "", median_of(&values));
        }
        Ok(())
    }

    /// Columns of all pairs, with the numbers of both nodes; of a run that was killed, none.
    pub fn pairs(
        &self,
        columns: &[Column],
        take: impl FnMut([usize; 2], PairCells<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        match self.is_judged() {
            true => self.of_file(PAIRS, columns, take),
            false => Ok(()),
        }
    }

    /// Columns of all pairs in each round that is complete: the round's number, the numbers of both nodes, the place of
    /// the column, and the cell. What is empty is left out.
    pub fn rounds(
        &self,
        columns: &[Column],
        mut take: impl FnMut(u32, [usize; 2], usize, f64),
    ) -> Result<(), ReadError> {
        let columns = [&[ROUND, STATUS], columns].concat();
        self.of_file(RUNS, &columns, |pair, cells| {
            let round = cells.number(0)?.unwrap_or(0.0) as u32;
            if cells.text(1) != COMPLETE {
                return Ok(());
            }
            for place in 2..columns.len() {
                if let Some(value) = cells.number(place)? {
                    take(round, pair, place - 2, value);
                }
            }
            Ok(())
        })
    }

    /// The texts of a column in all rows of `runs.csv`.
    pub fn texts_of_runs(
        &self,
        column: &Column,
        mut take: impl FnMut(&str),
    ) -> Result<(), ReadError> {
        self.of_file(RUNS, &[*column], |_, cells| {
            take(&cells.text(0));
            Ok(())
        })
    }

    fn of_file(
        &self,
        name: &str,
        columns: &[Column],
        mut take: impl FnMut([usize; 2], PairCells<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let names = self.nodes.iter().enumerate();
        let places: HashMap<&str, usize> = names
            .map(|(place, node)| (node.name.as_str(), place))
            .collect();
        let ends = [FROM.name, TO.name].into_iter();
        let columns: Vec<&str> = ends.chain(columns.iter().map(|it| it.name)).collect();
        let file = self.path.join(name);
        let read = self.rows(name)?.each(&columns, |cells| {
            let place = |index: usize| places.get(cells.text(index).as_ref()).copied();
            let (from, to) = place(0)
                .zip(place(1))
                .filter(|(from, to)| from != to)
                .ok_or_else(|| {
                    let reason = format!(
                        "{:?} to {:?} is not a pair of {NODES}",
                        cells.text(0),
                        cells.text(1)
                    );
                    ReadError::foreign(&file, 0, reason)
                })?;
            take([from, to], PairCells(cells))
        });
        read.map(drop)
    }

    fn rows(&self, name: &str) -> Result<RowFile, ReadError> {
        let mut rows = RowFile::open(&self.path.join(name))?;
        rows.may_be_cut = self.incomplete.is_some();
        Ok(rows)
    }

    /// Those that `fabric.json` names by rank, else those of the pairs.
    fn nodes_of_pairs(&self) -> Result<Vec<FabricNode>, ReadError> {
        let node = |name| FabricNode {
            name,
            groups: Vec::new(),
            verdict: String::new(),
        };
        let told = self.document["nodes"].as_array().into_iter().flatten();
        let told: Vec<String> = told
            .filter_map(|it| Some(it.as_str()?.to_owned()))
            .collect();
        if !told.is_empty() && distinct(&told).len() == told.len() {
            return Ok(told.into_iter().map(node).collect());
        }
        let mut names = BTreeMap::new();
        let columns = [FROM.name, FROM_RANK.name, TO.name, TO_RANK.name];
        self.rows(self.pairs)?.each(&columns, |cells| {
            for (name, rank) in [(0, 1), (2, 3)] {
                if let Some(rank) = cells.integer(rank)? {
                    names
                        .entry(rank)
                        .or_insert_with(|| cells.text(name).into_owned());
                }
            }
            Ok(())
        })?;
        Ok(names.into_values().map(node).collect())
    }
}

/// The cells of a pair's row that were asked for.
#[derive(Debug, Clone, Copy)]
pub struct PairCells<'a>(Cells<'a>);

/// How many cells of a row name its nodes.
const ENDS: usize = 2;

impl PairCells<'_> {
    /// A cell as text.
    pub fn text(&self, index: usize) -> std::borrow::Cow<'_, str> {
        self.0.text(index + ENDS)
    }

    /// A cell as a finite number; `None` when it is empty.
    pub fn number(&self, index: usize) -> Result<Option<f64>, ReadError> {
        self.0.number(index + ENDS)
    }
}

fn nodes_of(path: &Path, table: &Table) -> Result<Vec<FabricNode>, ReadError> {
    let mut nodes: Vec<(u64, FabricNode)> = Vec::new();
    for (line, row) in (2..).zip(&table.rows) {
        let text = |column: &Column| row.text(column.name).unwrap_or_default().to_owned();
        let (name, rank) = (text(&node::NAME), row.count(node::RANK.name));
        let Some(rank) =
            rank.filter(|_| !name.is_empty() && nodes.iter().all(|it| it.1.name != name))
        else {
            let reason = format!("{name:?} has no rank, no name, or is there twice");
            return Err(ReadError::foreign(&path.join(NODES), line, reason));
        };
        let group = text(&node::GROUP);
        let groups = group.split('.').filter(|part| !part.is_empty());
        nodes.push((
            rank,
            FabricNode {
                name,
                groups: groups.map(str::to_owned).collect(),
                verdict: text(&node::VERDICT),
            },
        ));
    }
    sort_by_key(&mut nodes, |(rank, _)| *rank);
    Ok(nodes.into_iter().map(|(_, node)| node).collect())
}
