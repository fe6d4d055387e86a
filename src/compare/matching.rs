//! Which point of one run belongs to which of the other: the one with the same settings.

use std::collections::{BTreeMap, BTreeSet};

use super::Permitted;
use super::rounds::{RecordedPoint, Recording};
use crate::results::schema::queue;

/// A setting that follows from another, and is measured: the rate of a point on a load curve is a share of what the
/// queue took in that run.
const OF_SATURATION: (&str, &str) = (queue::PERCENT_OF_SATURATION.name, queue::RATE.name);

/// Two points that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// That of BASE.
    pub base: &'a RecordedPoint,
    /// That of NEW.
    pub new: &'a RecordedPoint,
}

/// The points of two runs.
#[derive(Debug, Default)]
pub struct Matched<'a> {
    /// Those in both, in the order of BASE.
    pub pairs: Vec<Pair<'a>>,
    /// Those of BASE alone.
    pub only_in_base: Vec<&'a RecordedPoint>,
    /// Those of NEW alone.
    pub only_in_new: Vec<&'a RecordedPoint>,
    /// Settings that are the same for all points of either run, but not the same in both.
    pub differing: Vec<String>,
}

/// Matches points by their settings, those left out that do not vary in either run and may differ.
pub fn pairs<'a>(base: &'a Recording, new: &'a Recording, permitted: &Permitted) -> Matched<'a> {
    let differing = differing(base, new);
    let key = |point: &'a RecordedPoint| -> BTreeMap<&'a str, &'a str> {
        let of_saturation = point
            .setting(OF_SATURATION.0)
            .is_some_and(|text| !text.is_empty());
        let settings = point
            .settings
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        settings
            .filter(|(_, text)| !text.is_empty())
            .filter(|(name, _)| !of_saturation || *name != OF_SATURATION.1)
            .filter(|(name, _)| !(permitted.has(name) && differing.iter().any(|one| one == name)))
            .collect()
    };
    let mut free: Vec<&RecordedPoint> = new.points.iter().collect();
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

fn differing(base: &Recording, new: &Recording) -> Vec<String> {
    let texts = |run: &Recording, name: &str| -> BTreeSet<String> {
        let text = |point: &RecordedPoint| point.setting(name).unwrap_or_default().to_owned();
        run.points.iter().map(text).collect()
    };
    let is_differing = |name: &&str| {
        let (base, new) = (texts(base, name), texts(new, name));
        base.len() == 1 && new.len() == 1 && base != new
    };
    let names = base.schema.point.iter().map(|column| column.name);
    names.filter(is_differing).map(str::to_owned).collect()
}
