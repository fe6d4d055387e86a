//! Whether two runs were measured on the same machine under the same settings, and what differs if not.
//!
//! What must agree are `machine`, `run` and `obtained` of their `settings.json`, and `obtained` of each point. Another
//! version, or an instrument that is far from the other's, is a warning. A setting that an older run does not have is
//! what it measured with ([`Column::unset`]); a fact of the machine, the devices or the path that one of them does not
//! have is unknown, and no difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::Permitted;
use super::figures::is_instrument;
use super::matching::{Matched, Pair};
use super::rounds::{time_range, version};
use crate::results::read::{Point, Run};
use crate::results::schema::Column;
use crate::results::units::quantity;
use crate::sorting::distinct;
use crate::stats::median_of;

/// Something that is not the same in both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differs {
    /// Where it stands in `settings.json`, or the name of the setting of a point.
    pub what: String,
    /// In BASE; empty where it is not told.
    pub base: String,
    pub new: String,
}

impl fmt::Display for Differs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [base, new] = self.told();
        write!(formatter, "{}: {base} and {new}", self.what)
    }
}

impl Differs {
    /// What either side has of it, in words.
    pub fn told(&self) -> [&str; 2] {
        [&self.base, &self.new].map(|text| if text.is_empty() { "unknown" } else { text })
    }

    /// Whether it may be. The machine is no setting.
    pub fn is_permitted(&self, permitted: &Permitted) -> bool {
        match permitted {
            Permitted::All => true,
            _ if self.what.starts_with(MACHINE) => false,
            _ => self.what.split(['.', ' ']).any(|part| permitted.has(part)),
        }
    }
}

const MACHINE: &str = "machine";
const RUN: &str = "run";
const OBTAINED: &str = "obtained";
/// In these every fact has its key, null where the system does not report it: one without a key is of a version that
/// did not record it. Elsewhere a key may be left out because of how a run was measured.
const WITH_ALL_KEYS: [&str; 3] = [MACHINE, "obtained.devices", "obtained.path"];
const LIMITS: &str = "machine.limits.";
const MODULES: &str = "machine.memory.modules.";
/// Limits that keep a run from starting, or end it, and change no figure of one that ran.
const HARMLESS_LIMITS: [(&str, &str); 3] = [
    ("memory", "memory limit"),
    ("pids", "pids limit"),
    ("ulimits", "ulimits"),
];
/// Limits that must agree where both are known, and are warned of where one is not.
const LIMITS_OF_CPUS: [(&str, &str); 2] = [("cpus_by_quota", "CPU quota"), ("cpuset", "cpuset")];

/// What need not agree, although its part of `settings.json` must: it changes by itself, says how much is written, or
/// is measured.
const NEED_NOT: [&str; 29] = [
    // Holds names of folders that a virtual machine was started with; what matters is in machine.boot.
    "machine.kernel_command_line",
    // What they come to is in machine.limits.cpus_by_quota.
    "machine.limits.cpu_quotas",
    "machine.limits.cpuset.file",
    "machine.limits.unknown",
    // Those that may differ are warned of.
    "machine.limits.memory",
    "machine.limits.pids",
    "machine.limits.ulimits",
    "machine.memory.total_bytes",
    "machine.memory.huge_pages.free",
    "machine.memory.huge_pages.reserved",
    "machine.virtual_machines",
    "run.keep_jumps",
    "run.elements",
    "run.hlog_interval_ns",
    "run.limits",
    "run.budget",
    "obtained.libraries.libibverbs.path",
    "obtained.libraries.librdmacm.path",
    "obtained.loop_faults",
    "obtained.path.sender.queue_pair.connection",
    "obtained.path.receiver.queue_pair.connection",
    "obtained.placement.warnings",
    // Of runs before it stood in instrument.
    "obtained.time_of_day_ahead_ns",
    "obtained.placement_warnings",
    // The crate that a queue comes from, and its version; in words, what is made otherwise.
    "obtained.queue.source",
    "obtained.queue.differs",
    // What the choice came to is in obtained.queue_is.
    "obtained.queue_is_by",
    "obtained.stamp_refresh_ns",
    "obtained.warmup_messages",
];

/// Facts of points, and what they were in runs that did not record them: `baton` was always the same queue.
const BEFORE_RECORDED: [(&str, &str); 1] = [("obtained.queue_is", "baton-batching")];

/// A difference of the instrument's own figures is told from so many percent on.
const INSTRUMENT_PERCENT: f64 = 20.0;

/// What differs between two runs and their common points.
pub fn differences(base: &Run, new: &Run, matched: &Matched<'_>) -> Vec<Differs> {
    let mut found = Vec::new();
    for part in [MACHINE, RUN, OBTAINED] {
        let settings = base.schema.run;
        let (base, new) = (&base.document()[part], &new.document()[part]);
        let differs = differences_of(part, base, new).into_iter();
        let differs = differs.filter_map(|differs| with_unset(differs, settings));
        // Of an older run they are not known.
        let limits = [&base["limits"], &new["limits"]];
        let has_limits = limits.iter().all(|limits| limits.is_object());
        let is_known = |limit: &str| {
            let name = limit.split('.').next().unwrap_or(limit);
            has_limits && limits.iter().all(|limits| !is_unknown(&limits[name]))
        };
        let differs = differs.filter(|it| it.what.strip_prefix(LIMITS).is_none_or(is_known));
        // Only root may read them, and older runs have none.
        let modules =
            [&base["memory"], &new["memory"]].map(|memory| &memory["modules"]["installed"]);
        let has_modules = modules.iter().all(|modules| modules.is_array());
        found.extend(differs.filter(|it| has_modules || !it.what.starts_with(MODULES)));
    }
    for column in &matched.differing {
        let text = |run: &Run| {
            let of_point = run
                .points
                .first()
                .map(|point| point.setting_or_unset(column));
            of_point.unwrap_or_default().to_owned()
        };
        found.push(Differs {
            what: column.name.to_owned(),
            base: text(base),
            new: text(new),
        });
    }
    let mut by_points: Vec<(Differs, usize, &str)> = Vec::new();
    for Pair { base, new } in &matched.pairs {
        let [obtained, other] = [base, new].map(|point| &point.document[OBTAINED]);
        // A point that ended before it told of it does not differ in it.
        if obtained.is_null() || other.is_null() {
            continue;
        }
        for differs in differences_of(OBTAINED, obtained, other) {
            match by_points.iter_mut().find(|(known, ..)| *known == differs) {
                Some((_, count, _)) => *count += 1,
                None => by_points.push((differs, 1, &base.name)),
            }
        }
    }
    for (mut differs, count, name) in by_points {
        if count < matched.pairs.len() {
            differs.what += &format!(" of {name}");
            if count > 1 {
                differs.what += &format!(" and {} more", count - 1);
            }
        }
        found.push(differs);
    }
    found
}

/// A difference with what a setting of the run is where a run does not have it; none if that is the same.
fn with_unset(mut differs: Differs, settings: &[Column]) -> Option<Differs> {
    let name = differs.what.strip_prefix(RUN);
    let name = name.and_then(|name| name.strip_prefix('.'));
    let column = name.and_then(|name| settings.iter().find(|column| column.name == name));
    if let Some(column) = column {
        for text in [&mut differs.base, &mut differs.new] {
            if text.is_empty() {
                column.unset.clone_into(text);
            }
        }
    }
    (differs.base != differs.new).then_some(differs)
}

/// A difference with what a fact was where a run does not have it; none if that is the same.
fn with_former(mut differs: Differs) -> Option<Differs> {
    let known = BEFORE_RECORDED
        .iter()
        .find(|(what, _)| *what == differs.what);
    if let Some((_, former)) = known {
        for text in [&mut differs.base, &mut differs.new] {
            if text.is_empty() {
                (*former).clone_into(text);
            }
        }
    }
    (differs.base != differs.new).then_some(differs)
}

/// What makes the figures of two runs, which have names, harder to compare. What is to be known of one of them, its
/// findings state.
pub fn warnings(runs: [&Run; 2], names: &[String; 2], pairs: &[Pair<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    let versions = runs.map(version);
    if versions[0] != versions[1] {
        let versions = versions.join(" and ");
        warnings.push(format!(
            "measured by different versions of hcabench: {versions}"
        ));
    }
    warnings.extend(differing_limits(
        runs.map(|run| &run.document()[MACHINE]["limits"]),
    ));
    for (side, other) in [(0, 1), (1, 0)] {
        let places = unrecorded(runs[side], runs[other]);
        if let Some(first) = places.first() {
            warnings.push(format!(
                "{} does not record {} facts that {} has, such as {first}: whether they agree is not known",
                names[side],
                places.len(),
                names[other],
            ));
        }
    }
    let figures = runs[0].schema.figures.iter();
    for column in figures.filter(|column| is_instrument(column)) {
        let median = |point: &Point| {
            let rounds = point.rounds.iter();
            let values = rounds.filter_map(|round| round.number(column.name));
            median_of(&values.collect::<Vec<f64>>())
        };
        let pairs_of = pairs.iter();
        let both = pairs_of.filter_map(|pair| Some((median(pair.base)?, median(pair.new)?)));
        let is_far =
            |(base, new): &(f64, f64)| (new - base).abs() * 100.0 > INSTRUMENT_PERCENT * base.abs();
        let far: Vec<(f64, f64)> = both.filter(is_far).collect();
        if let Some((base, new)) = far.first() {
            let [base, new] = [base, new].map(|value| quantity(*value, column.unit()));
            warnings.push(format!(
                "{} ({}) differs by more than {INSTRUMENT_PERCENT} % at {} of {} points, such as {base} and {new}: \
                 something else ran, or the machine is set up otherwise",
                column.name,
                column.meaning,
                far.len(),
                pairs.len(),
            ));
        }
    }
    let order = match runs.map(time_range) {
        [Some(base), Some(new)] if base.1 < new.0 => Some([0, 1]),
        [Some(base), Some(new)] if new.1 < base.0 => Some([1, 0]),
        _ => None,
    };
    warnings.extend(order.map(|order| {
        let [first, second] = order.map(|side| &names[side]);
        format!(
            "{first} was recorded before {second}, not in turn: a drift between them looks like a difference; \
             compare --run measures both in turn"
        )
    }));
    warnings
}

/// Places of facts that one run did not record, and another did. Those of limits are compared by themselves.
fn unrecorded(run: &Run, other: &Run) -> Vec<String> {
    let mut places = Vec::new();
    for part in [MACHINE, OBTAINED] {
        let [leaves, others] = [run, other].map(|run| leaves_of(part, &run.document()[part]));
        let all = others.into_iter().filter(|(_, texts)| !texts.is_empty());
        let all = all.map(|(place, _)| place);
        places.extend(all.filter(|place| {
            is_below(place, &WITH_ALL_KEYS)
                && !place.starts_with(LIMITS)
                && !is_known(&leaves, place)
        }));
    }
    places
}

/// Whether a limit could not be read.
fn is_unknown(limit: &Value) -> bool {
    limit == "unknown"
}

/// Limits of both processes that differ, and need not agree.
fn differing_limits([base, new]: [&Value; 2]) -> Vec<String> {
    let differs = |(name, title): (&str, &str)| {
        let (base, new) = (base.get(name)?, new.get(name)?);
        // Where a limit is set says nothing about what it is.
        let of = |value: &Value| {
            let mut leaves = Leaves::new();
            collect("", value, &mut leaves);
            leaves.retain(|place, _| !place.ends_with(".file"));
            leaves
        };
        let (base, new) = (of(base), of(new));
        let places = distinct(base.keys().chain(new.keys()));
        let texts = places.into_iter().filter_map(|place: &String| {
            // One that is not there is a word in place of its parts: none, or unknown.
            let text = |leaves: &Leaves| {
                let found = leaves.get(place).or_else(|| leaves.get(""));
                let found = found.into_iter().flatten();
                found.map(String::as_str).collect::<Vec<_>>().join(", ")
            };
            let (base, new) = (text(&base), text(&new));
            let differs = base != new && !base.is_empty() && !new.is_empty();
            let name = place.replace(['.', '_'], " ");
            differs.then(|| format!("{title}{name}: {base} and {new}"))
        });
        Some(texts.collect::<Vec<_>>())
    };
    let unknown = LIMITS_OF_CPUS.into_iter();
    let unknown = unknown.filter(|(name, _)| is_unknown(&base[name]) || is_unknown(&new[name]));
    let all = HARMLESS_LIMITS.into_iter().chain(unknown);
    let all = all.filter_map(differs).flatten();
    all.map(|text| format!("measured under different limits: {text}"))
        .collect()
}

/// What must agree in a part of `settings.json` (`machine`, `run`, `obtained`), and does not: what either knows of the
/// machine, the devices and the path, and all of the rest.
pub fn differences_of(part: &str, base: &Value, new: &Value) -> Vec<Differs> {
    let (base, new) = (leaves_of(part, base), leaves_of(part, new));
    let places = distinct(base.keys().chain(new.keys()));
    let differs = |place: &String| {
        let told = |leaves: &Leaves| {
            let texts = leaves.get(place).into_iter().flatten();
            texts.map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let are_known = !is_below(place, &WITH_ALL_KEYS)
            || [&base, &new].iter().all(|leaves| is_known(leaves, place));
        let (base, new) = (told(&base), told(&new));
        (are_known && base != new).then(|| Differs {
            what: place.clone(),
            base,
            new,
        })
    };
    let all = places.into_iter().filter_map(differs);
    all.filter_map(with_former).collect()
}

/// Whether a place is one of these or in one.
fn is_below(place: &str, all: &[&str]) -> bool {
    let mut rests = all.iter().filter_map(|above| place.strip_prefix(above));
    rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether there is a value or null, at a place or instead of what it is in.
fn is_known(leaves: &Leaves, place: &str) -> bool {
    let mut places = std::iter::successors(Some(place), |place| Some(place.rsplit_once('.')?.0));
    places.any(|place| leaves.contains_key(place))
}

/// Texts and numbers by their place, none where it is null or empty. Which element of an array has which does not
/// matter.
type Leaves = BTreeMap<String, BTreeSet<String>>;

fn leaves_of(part: &str, value: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    collect(part, value, &mut leaves);
    leaves
}

fn collect(place: &str, value: &Value, leaves: &mut Leaves) {
    if NEED_NOT.contains(&place) {
        return;
    }
    let mut leaf = |text: Option<String>| {
        leaves.entry(place.to_owned()).or_default().extend(text);
    };
    match value {
        Value::Object(members) => {
            // A software device has another one in each boot.
            let software = members.get("software") == Some(&Value::Bool(true));
            for (name, value) in members {
                if !(software && ["node_guid", "adapter_guid"].contains(&name.as_str())) {
                    collect(&format!("{place}.{name}"), value, leaves);
                }
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                collect(place, element, leaves);
            }
        }
        // Bits, before they had names.
        Value::Number(_) if place.contains(".limits.on_demand_paging.") => {}
        Value::Null | Value::Array(_) => leaf(None),
        Value::String(text) => leaf(Some(text.clone())),
        other => leaf(Some(other.to_string())),
    }
}
