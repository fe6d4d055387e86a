//! The folder of a fabric's results.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::damage::{Damage, check_numbers, marked};
use super::folder::{is_of_a_fabric, names_in, salvage_table};
use super::rows::{Cells, RowFile};
use super::table::{Row, Table};
use crate::results::document::read_value;
use crate::results::folder::{LEFT_OUT, RUNS, SUMMARY};
use crate::results::read_error::{ReadError, ReadErrorKind};
use crate::results::schema::fabric::{
    self, FABRIC, FROM, FROM_RANK, HALF_P50, NODES, PAIRS, TIER, TO, TO_RANK, node, tier,
};
use crate::results::schema::{COMPLETE, Column, ROUND, ROUNDS, STATUS};
use crate::sorting::distinct;
use crate::stats::median_of;

/// A fabric: its nodes, and where its pairs are. These are read a column at a time: of a thousand nodes there are a
/// million.
#[derive(Debug)]
pub struct Fabric {
    pub path: PathBuf,
    /// By rank.
    pub nodes: Vec<FabricNode>,
    /// Why it is not whole, if it is not.
    pub incomplete: Option<String>,
    document: Value,
    /// `pairs.csv`; of a run that was killed before it was judged, or without that file, `runs.csv`.
    pairs: &'static str,
    /// How many pairs have figures, by the summary.
    measured: Option<u64>,
    /// What is wrong with the files that were read, the first of each.
    damage: RefCell<Vec<Arc<ReadError>>>,
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

    /// Reads the nodes; for a run that was killed, those in pairs. Files that are damaged are left out, or what of them
    /// cannot be read, here and by what reads more of it: see [`damaged`](Self::damaged).
    ///
    /// # Errors
    /// Where no node is in it.
    pub fn salvage(path: &Path) -> Result<Self, ReadError> {
        let names = names_in(path)?;
        if !Self::is_one(path) {
            return Err(ReadErrorKind::OfNoFabric(PAIRS).at(path));
        }
        let mut damage = Damage::default();
        let incomplete = marked(path, &mut damage);
        let document = match read_value(&path.join(FABRIC)) {
            Err(error) if error.is_missing() && incomplete.is_some() => Value::Null,
            Err(error) if !error.is_damage() => return Err(error),
            read => damage.keep(read).unwrap_or_default(),
        };
        let is_judged = names.contains(PAIRS) || incomplete.is_none();
        let mut fabric = Fabric {
            path: path.to_path_buf(),
            nodes: Vec::new(),
            incomplete,
            document,
            pairs: if is_judged { PAIRS } else { RUNS },
            measured: None,
            damage: RefCell::default(),
        };
        damage.0.into_iter().for_each(|error| fabric.note(error));
        if is_judged {
            let ends = [FROM.name, TO.name];
            let begun = fabric.rows(PAIRS).and_then(|rows| rows.check(&ends));
            if let Err(error) = begun {
                fabric.note(error);
                fabric.pairs = RUNS;
            }
            fabric.measured = fabric.measured_told();
        }
        fabric.nodes = fabric.all_nodes();
        if fabric.nodes.is_empty() {
            let damage = fabric.damage.into_inner();
            let first = damage.into_iter().find_map(Arc::into_inner);
            let none = || ReadErrorKind::NoResults("there is no node in it".to_owned()).at(path);
            return Err(first.unwrap_or_else(none));
        }
        Ok(fabric)
    }

    /// What is wrong with those of its files that were read so far, the first of each.
    pub fn damaged(&self) -> Vec<Arc<ReadError>> {
        self.damage.borrow().clone()
    }

    /// Whether something is wrong with a file, as far as it was read.
    pub fn is_damaged(&self, name: &str) -> bool {
        let file = self.path.join(name);
        self.damage.borrow().iter().any(|known| known.path == file)
    }

    fn note(&self, error: ReadError) {
        let mut damage = self.damage.borrow_mut();
        if damage.iter().all(|known| known.path != error.path) {
            damage.push(Arc::new(error));
        }
    }

    /// The content of `fabric.json`; null without it.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// One of its small tables, such as `nodes.csv`, as far as it can be read; empty where it is not there.
    pub fn table(&self, name: &str) -> Table {
        let file = self.path.join(name);
        let (is_incomplete, grows) = (self.incomplete.is_some(), name == LEFT_OUT);
        if file.symlink_metadata().is_err() && (is_incomplete || grows) {
            return Table::default();
        }
        let mut damage = Damage::default();
        // The others are written in one step.
        let table = damage.table(salvage_table(&self.path, name, is_incomplete && grows));
        let columns = match name {
            NODES => fabric::nodes(),
            SUMMARY => fabric::summary(),
            _ => Vec::new(),
        };
        check_numbers(&file, &table, &columns, &mut damage);
        damage.0.into_iter().for_each(|error| self.note(error));
        table
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
        mut take: impl FnMut([usize; 2], PairCells<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if !self.is_judged() {
            return Ok(());
        }
        let file = self.path.join(PAIRS);
        let (last, columns) = (columns.len(), [columns, &[HALF_P50]].concat());
        let mut known = vec![false; self.nodes.len() * self.nodes.len()];
        let mut measured = 0;
        self.of_file(PAIRS, &columns, |pair, cells| {
            if std::mem::replace(&mut known[self.place(pair)], true) {
                return Err(self.twice(cells, pair, ""));
            }
            measured += u64::from(cells.number(last)?.is_some());
            take(pair, cells)
        })?;
        // A run that goes on has the pairs of before it did.
        let told = self.measured.filter(|_| self.incomplete.is_none());
        if let Some(told) = told.filter(|told| *told != measured) {
            let reason =
                format!("{measured} pairs with figures instead of the {told} in {SUMMARY}");
            self.note(match measured < told {
                true => ReadError::truncated(&file, 0, reason),
                false => ReadError::foreign(&file, 0, reason),
            });
        }
        Ok(())
    }

    /// Columns of all pairs in each round that is complete: the round's number, the numbers of both nodes, the place of
    /// the column, and the cell. What is empty is left out.
    pub fn rounds(
        &self,
        columns: &[Column],
        mut take: impl FnMut(u32, [usize; 2], usize, f64),
    ) -> Result<(), ReadError> {
        self.each_round(columns, |round, pair, cells| {
            let Some(round) = round else {
                return Ok(());
            };
            for place in 0..columns.len() {
                if let Some(value) = cells.number(place)? {
                    take(round, pair, place, value);
                }
            }
            Ok(())
        })
    }

    /// The rows of `runs.csv`, each with its round if it is complete.
    fn each_round(
        &self,
        columns: &[Column],
        mut take: impl FnMut(Option<u32>, [usize; 2], PairCells<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut told = 0;
        self.pairs(&[ROUNDS], |_, cells| {
            told += cells.number(0)?.unwrap_or(0.0) as u64;
            Ok(())
        })?;
        let (at, columns) = (columns.len(), [columns, &[ROUND, STATUS]].concat());
        let mut known: HashMap<u32, Vec<bool>> = HashMap::new();
        let mut found = 0;
        self.of_file(RUNS, &columns, |pair, cells| {
            if cells.text(at + 1) != COMPLETE {
                return take(None, pair, cells);
            }
            let round = cells.number(at)?.unwrap_or(0.0) as u32;
            let nodes = self.nodes.len();
            let known = known.entry(round);
            let known = known.or_insert_with(|| vec![false; nodes * nodes]);
            if std::mem::replace(&mut known[self.place(pair)], true) {
                return Err(self.twice(cells, pair, &format!("round {round} of ")));
            }
            found += 1;
            take(Some(round), pair, cells)
        })?;
        let is_known = self.incomplete.is_none() && !self.is_damaged(PAIRS);
        if is_known && found < told {
            let reason =
                format!("{found} complete rounds of pairs instead of the {told} in {PAIRS}");
            self.note(ReadError::truncated(&self.path.join(RUNS), 0, reason));
        }
        Ok(())
    }

    fn place(&self, [from, to]: [usize; 2]) -> usize {
        from * self.nodes.len() + to
    }

    fn twice(&self, cells: PairCells<'_>, pair: [usize; 2], round: &str) -> ReadError {
        let [from, to] = pair.map(|end| &self.nodes[end].name);
        cells.0.foreign(format!(
            "{round}{from} to {to} is in it twice; only the first is read"
        ))
    }

    /// The texts of a column in all rows of `runs.csv`.
    pub fn texts_of_runs(
        &self,
        column: &Column,
        mut take: impl FnMut(&str),
    ) -> Result<(), ReadError> {
        self.each_round(&[*column], |_, _, cells| {
            take(&cells.text(0));
            Ok(())
        })
    }

    /// The rows of a file, without those that are damaged.
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
        let rows = self.rows(name).and_then(|rows| {
            rows.each(&columns, |cells| {
                let place = |index: usize| places.get(cells.text(index).as_ref()).copied();
                let taken = match place(0).zip(place(1)) {
                    Some((from, to)) if from != to => take([from, to], PairCells(cells)),
                    _ => {
                        let [from, to] = [0, 1].map(|end| cells.text(end));
                        Err(cells.foreign(format!("{from:?} to {to:?} is not a pair of {NODES}")))
                    }
                };
                taken.or_else(|error| self.keep(error))
            })
        });
        rows.map(drop).or_else(|error| self.keep(error))
    }

    /// What is not damage stays an error.
    fn keep(&self, error: ReadError) -> Result<(), ReadError> {
        match error.is_damage() {
            true => {
                self.note(error);
                Ok(())
            }
            false => Err(error),
        }
    }

    fn rows(&self, name: &str) -> Result<RowFile, ReadError> {
        let mut rows = RowFile::open(&self.path.join(name))?;
        rows.may_be_cut = self.incomplete.is_some();
        Ok(rows)
    }

    /// How many pairs have figures, by the row for all tiers.
    fn measured_told(&self) -> Option<u64> {
        const ALL: &str = "all";
        let table = self.table(SUMMARY);
        let is_all = |row: &&Row| row.text(tier::NAME.name) == Some(ALL);
        let (all, tiers): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(is_all);
        let pairs = tiers.iter().filter_map(|row| row.count(tier::PAIRS.name));
        let pairs: u64 = pairs.sum();
        let (all, twice) = (all.first(), all.len() > 1);
        let told = all.and_then(|row| row.count(tier::PAIRS.name));
        let wrong = match all {
            None => Some(format!("it has no row for {ALL}")),
            _ if twice => Some(format!("{ALL} is in it twice; only the first is read")),
            _ if !tiers.is_empty() && Some(pairs) != told => {
                let told = told.unwrap_or(0);
                Some(format!("its tiers have {pairs} pairs instead of {told}"))
            }
            _ => None,
        };
        if let Some(reason) = wrong.filter(|_| !table.columns.is_empty()) {
            self.note(ReadError::foreign(&self.path.join(SUMMARY), 0, reason));
        }
        all.and_then(|row| row.count(tier::MEASURED.name))
    }

    /// Those in `nodes.csv`, and those that it lacks.
    fn all_nodes(&self) -> Vec<FabricNode> {
        let table = self.table(NODES);
        let mut nodes = self.nodes_of(&table);
        let told = self.document["nodes"].as_array().into_iter().flatten();
        let told: Vec<&str> = told.filter_map(Value::as_str).collect();
        // Of a run that was killed there is no nodes.csv yet.
        if nodes.is_empty() && (told.is_empty() || distinct(&told).len() < told.len()) {
            return self.nodes_of_pairs();
        }
        let is_there = !table.columns.is_empty() && self.incomplete.is_none();
        for (rank, name) in (0..).zip(told) {
            if nodes.values().any(|node| node.name == name) {
                continue;
            }
            if is_there {
                let reason = format!("it has no row for {name}");
                self.note(ReadError::truncated(&self.path.join(NODES), 0, reason));
            }
            nodes.entry(rank).or_insert_with(|| FabricNode::named(name));
        }
        nodes.into_values().collect()
    }

    /// Those in the pairs.
    fn nodes_of_pairs(&self) -> Vec<FabricNode> {
        let mut names = BTreeMap::new();
        let columns = [FROM.name, FROM_RANK.name, TO.name, TO_RANK.name];
        let read = self.rows(self.pairs).and_then(|rows| {
            rows.each(&columns, |cells| {
                for (name, rank) in [(0, 1), (2, 3)] {
                    if let Some(rank) = cells.integer(rank)? {
                        names
                            .entry(rank)
                            .or_insert_with(|| FabricNode::named(&cells.text(name)));
                    }
                }
                Ok(())
            })
        });
        if let Err(error) = read {
            self.note(error);
        }
        names.into_values().collect()
    }

    /// Those of a table, by rank.
    fn nodes_of(&self, table: &Table) -> BTreeMap<u64, FabricNode> {
        let mut nodes = BTreeMap::<u64, FabricNode>::new();
        for (line, row) in (2..).zip(&table.rows) {
            let text = |column: &Column| row.text(column.name).unwrap_or_default().to_owned();
            let (name, rank) = (text(&node::NAME), row.count(node::RANK.name));
            let is_new = |rank: &u64| {
                let mut known = nodes.iter();
                !name.is_empty() && known.all(|(other, it)| other != rank && it.name != name)
            };
            let Some(rank) = rank.filter(is_new) else {
                let reason = format!("{name:?} has no rank, no name, or is there twice");
                self.note(ReadError::foreign(&self.path.join(NODES), line, reason));
                continue;
            };
            let group = text(&node::GROUP);
            let groups = group.split('.').filter(|part| !part.is_empty());
            let groups = groups.map(str::to_owned).collect();
            let verdict = text(&node::VERDICT);
            nodes.insert(
                rank,
                FabricNode {
                    name,
                    groups,
                    verdict,
                },
            );
        }
        nodes
    }
}

impl FabricNode {
    /// One of which nothing else is known.
    fn named(name: &str) -> Self {
        FabricNode {
            name: name.to_owned(),
            groups: Vec::new(),
            verdict: String::new(),
        }
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
