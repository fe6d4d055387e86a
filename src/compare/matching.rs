//! Which point of one run belongs to which of the other: the one with the same settings.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::read::{Point, Run};

/// A setting that follows from another, and is measured: the rate of a point on a load curve is a share of what the queue
/// took in that run.
const OF_SATURATION: (&str, &str) = ("percent_of_saturation", "rate_per_s");

/// Two points with the same settings.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// That of BASE.
    pub base: &'a Point,
    /// That of NEW.
    pub new: &'a Point,
}

/// The points of two runs.
#[derive(Debug)]
pub struct Matched<'a> {
    /// Those in both, in the order of BASE.
    pub pairs: Vec<Pair<'a>>,
    /// Those of BASE alone.
    pub only_in_base: Vec<&'a Point>,
    /// Those of NEW alone.
    pub only_in_new: Vec<&'a Point>,
    /// Settings that are the same for all points of either run, but not the same in both.
    pub differing: Vec<String>,
}

/// Matches points by their settings; `anyway` leaves out those settings that do not vary in either run.
pub fn pairs<'a>(base: &'a Run, new: &'a Run, anyway: bool) -> Matched<'a> {
    let differing = differing(base, new);
    let key = |point: &'a Point| -> BTreeMap<&'a str, &'a str> {
        let of_saturation = point
            .setting(OF_SATURATION.0)
            .is_some_and(|text| !text.is_empty());
        point
            .settings
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .filter(|(_, text)| !text.is_empty())
            .filter(|(name, _)| !of_saturation || *name != OF_SATURATION.1)
            .filter(|(name, _)| !anyway || !differing.iter().any(|differing| differing == name))
            .collect()
    };
    let mut free: Vec<&Point> = new.points.iter().collect();
    let mut matched = Matched {
        pairs: Vec::new(),
        only_in_base: Vec::new(),
        only_in_new: Vec::new(),
        differing: Vec::new(),
    };
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

/// Settings that have one text in all points of BASE, and another one in all points of NEW. Points without a row in the
/// summary do not count, if there are others: their settings are in other words.
fn differing(base: &Run, new: &Run) -> Vec<String> {
    let has_rows = |run: &Run| run.points.iter().any(|point| point.row.is_some());
    let by_rows = has_rows(base) || has_rows(new);
    let [base, new] = [base, new].map(|run| {
        let points = run.points.iter();
        let measured = points.filter(|point| point.row.is_some() || !by_rows);
        measured.collect::<Vec<&Point>>()
    });
    let texts = |points: &[&Point], name: &str| -> BTreeSet<String> {
        let text = |point: &&Point| point.setting(name).unwrap_or_default().to_owned();
        points.iter().map(text).collect()
    };
    let mut names: Vec<&str> = Vec::new();
    for point in base.iter().chain(&new) {
        for (name, _) in &point.settings {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names
        .into_iter()
        .filter(|name| {
            let (base, new) = (texts(&base, name), texts(&new, name));
            base.len() == 1 && new.len() == 1 && base != new
        })
        .map(str::to_owned)
        .collect()
}
