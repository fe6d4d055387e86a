//! Points of one sweep that differ in one setting only, level by level against the first.
//!
//! The points of a round share whatever drifts. What is compared is therefore their difference in each round, from
//! which the drift has gone, by Wilcoxon's signed ranks: the honest reading of "each round's median taken off first".
//! (With the median of the round's points taken off, what is left of the two is no pair of samples: of two points it
//! is the same number with two signs, and Mann and Whitney's test then errs three times as often as it says.)
//!
//! Signed ranks can show something only from about twice the rounds on. With fewer, the rounds of both points are
//! compared as two samples, with the drift in them: that is careful, for the drift widens both alike. Which of the
//! two it is depends on the number of rounds and of figures alone, never on what was measured.

use super::matching::Pair;
use super::{By, CompareError};
use crate::results::read::{Point, Run};
use crate::sorting::distinct;
use crate::stats::rank::{Test, rounds_needed};

/// So many rounds beyond the least are as good as two samples where nothing drifts, and better where something does.
const ROUNDS_BEYOND: usize = 2;

#[derive(Debug)]
pub struct Levels<'a> {
    pub by: By,
    /// The point of the first level, and that of another.
    pub pairs: Vec<Pair<'a>>,
    /// Points that have none to be compared with.
    pub alone: Vec<&'a Point>,
}

impl Levels<'_> {
    /// The first level, and the others.
    pub fn names(&self) -> [String; 2] {
        let levels = self.pairs.iter().map(|pair| pair.new);
        let levels = levels.filter_map(|point| point.setting(self.by.setting));
        let others: Vec<&str> = distinct(levels).into_iter().collect();
        [self.by.first.clone(), others.join(", ")]
    }
}

pub fn levels<'a>(run: &'a Run, asked: &str) -> Result<Levels<'a>, CompareError> {
    let text = |point: &'a Point, name: &str| point.setting(name).unwrap_or_default();
    let texts = |name: &str| {
        let chosen = run.points.iter().filter(|point| !point.is_measured(name));
        distinct(chosen.map(|point| text(point, name)))
    };
    let varying = || {
        let names = run.schema.point.iter().map(|column| column.name);
        names.filter(|name| texts(name).len() > 1)
    };
    let refused = |reason: String| CompareError::Setting {
        asked: asked.to_owned(),
        reason,
        varying: varying().collect::<Vec<_>>().join(", "),
    };
    let name = run.schema.setting(asked);
    let name = name.ok_or_else(|| refused("is not a setting of a point".to_owned()))?;
    if texts(name).len() < 2 {
        return Err(refused("has one value in this run".to_owned()));
    }
    // A setting goes along if the level decides it.
    let is_decided = |other: &&str| {
        let points = run.points.iter();
        let both = points.map(|point| (text(point, name), text(point, other)));
        distinct(both).len() == texts(name).len()
    };
    let others = varying().filter(|other| *other != name);
    let along: Vec<&str> = others.filter(is_decided).collect();
    let key = |point: &'a Point| -> Vec<&'a str> {
        let others = run.schema.point.iter().map(|column| column.name);
        let others = others
            .filter(|other| *other != name && !along.contains(other) && !point.is_measured(other));
        others.map(|other| text(point, other)).collect()
    };
    let first = run.points.first().map_or("", |point| text(point, name));
    let points = run.points.iter();
    let (bases, others): (Vec<_>, Vec<_>) = points.partition(|point| text(point, name) == first);
    let mut found = Levels {
        by: By {
            setting: name,
            first: first.to_owned(),
            along: along.clone(),
        },
        pairs: Vec::new(),
        alone: Vec::new(),
    };
    for new in others {
        match bases.iter().find(|base| key(base) == key(new)) {
            Some(base) => found.pairs.push(Pair { base, new }),
            None => found.alone.push(new),
        }
    }
    for base in bases {
        if found.pairs.iter().all(|pair| pair.base.name != base.name) {
            found.alone.push(base);
        }
    }
    if found.pairs.is_empty() {
        return Err(refused(
            "varies only together with others, in part".to_owned(),
        ));
    }
    Ok(found)
}

/// Which test so many rounds allow with that error.
pub fn test(rounds: usize, error: f64) -> Test {
    if rounds >= rounds_needed(Test::SignedRank, error) + ROUNDS_BEYOND {
        Test::SignedRank
    } else {
        Test::MannWhitney
    }
}
