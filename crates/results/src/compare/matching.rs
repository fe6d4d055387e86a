//! Which point of one run belongs to which of the other: the one with the same settings.

use std::collections::{BTreeMap, BTreeSet};

use super::Permitted;
use crate::results::read::{Point, Run};
use crate::results::schema::Column;
use crate::sorting::distinct;

#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    pub base: &'a Point,
    pub new: &'a Point,
}

#[derive(Debug, Default)]
pub struct Matched<'a> {
    /// Those in both, in the order of BASE.
    pub pairs: Vec<Pair<'a>>,
    pub only_in_base: Vec<&'a Point>,
    pub only_in_new: Vec<&'a Point>,
    /// Settings that are the same for all points of either run, but not the same in both.
    pub differing: Vec<Column>,
}

/// Matches points by their settings, those left out that do not vary in either run and may differ.
pub fn pairs<'a>(base: &'a Run, new: &'a Run, permitted: &Permitted) -> Matched<'a> {
    let differing = differing(base, new);
    let key = |point: &'a Point| -> BTreeMap<&'a str, &'a str> {
        let is_differing = |name: &str| differing.iter().any(|column| column.name == name);
        (point.chosen())
            .filter(|(name, _)| !(permitted.has(name) && is_differing(name)))
            .collect()
    };
    let mut free: Vec<&Point> = new.points.iter().collect();
    let mut matched = Matched::default();
    for point in &base.points {
        let wanted = key(point);
        match free.iter().position(|other| key(other) == wanted) {
            Some(place) => matched.pairs.push(Pair {
                base: point,
                new: free.remove(place),
            }),
            None => matched.only_in_base.push(point),
        }
    }
    matched.only_in_new = free;
    matched.differing = differing;
    matched
}

fn differing(base: &Run, new: &Run) -> Vec<Column> {
    let is_differing = |column: &&Column| {
        let (base, new) = (texts(base, column), texts(new, column));
        base.len() == 1 && new.len() == 1 && base != new
    };
    let columns = base.schema.point.iter();
    columns.filter(is_differing).copied().collect()
}

/// The values of a setting in a run, those left out that were measured.
fn texts<'a>(run: &'a Run, column: &Column) -> BTreeSet<&'a str> {
    let chosen = run
        .points
        .iter()
        .filter(|point| !point.is_measured(column.name));
    distinct(chosen.map(|point| point.setting_or_unset(column)))
}
