//! Which point of one run belongs to which of the other: the one with the same settings.

use std::collections::{BTreeMap, BTreeSet};

use super::Permitted;
use crate::results::read::{Point, Run};
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
    pub differing: Vec<String>,
}

/// Matches points by their settings, those left out that do not vary in either run and may differ.
pub fn pairs<'a>(base: &'a Run, new: &'a Run, permitted: &Permitted) -> Matched<'a> {
    let differing = differing(base, new);
    let key = |point: &'a Point| -> BTreeMap<&'a str, &'a str> {
        let settings = point.chosen();
        let settings = settings.map(|(name, text)| (name.as_str(), text.as_str()));
        settings
            .filter(|(_, text)| !text.is_empty())
            .filter(|(name, _)| !(permitted.has(name) && differing.iter().any(|one| one == name)))
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

fn differing(base: &Run, new: &Run) -> Vec<String> {
    let texts = |run: &Run, name: &str| -> BTreeSet<String> {
        let chosen = run.points.iter().filter(|point| !point.is_measured(name));
        let text = |point: &Point| point.setting(name).unwrap_or_default().to_owned();
        distinct(chosen.map(text))
    };
    let is_differing = |name: &&str| {
        let (base, new) = (texts(base, name), texts(new, name));
        base.len() == 1 && new.len() == 1 && base != new
    };
    let names = base.schema.point.iter().map(|column| column.name);
    names.filter(is_differing).map(str::to_owned).collect()
}
