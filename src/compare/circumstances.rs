//! Whether two runs were measured on the same machine under the same settings, and what differs if not.
//!
//! What must agree are the machine's fingerprint, what was asked for, and what was obtained of it (CPUs, pages, devices).
//! When and where results were written, and what was measured, are no settings; another floor or another cost of a time
//! stamp is a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::matching::{Matched, Pair};
use crate::results::read::{Benchmark, Point, Row, Run};

/// Something that is not the same in both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differs {
    /// Where it stands in `settings.json` or among the settings in `summary.csv`.
    pub what: String,
    /// In BASE; empty where it is not told.
    pub base: String,
    /// In NEW.
    pub new: String,
}

impl fmt::Display for Differs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |text: &str| {
            if text.is_empty() {
                "not told".to_owned()
            } else {
                text.to_owned()
            }
        };
        write!(
            formatter,
            "{}: {} and {}",
            self.what,
            told(&self.base),
            told(&self.new)
        )
    }
}

/// What there is to say about them.
#[derive(Debug, Default)]
pub struct Circumstances {
    /// What must agree and does not.
    pub differs: Vec<Differs>,
    /// What makes figures harder to compare.
    pub warnings: Vec<String>,
}

/// The parts of `settings.json` that must agree: those of the run, and those of each point.
const OF_RUN: [&str; 6] = [
    "machine",
    "devices",
    "libraries",
    "run",
    "settings",
    "timeout_ms",
];
const OF_POINT: [&str; 4] = ["obtained", "queue", "after_a_miss", "latency_is_from"];

/// Where a point's document tells what was obtained, each run, end or CPU by itself. The pages of all of them must agree,
/// whatever the benchmark.
const WITH_PAGES: [&str; 3] = ["obtained", "runs", "result"];
/// What pages are called there, and what they are called here.
const PAGES: &str = "pages";

/// What lies below those and need not agree: it changes by itself, says how much is written, or is measured.
const NEED_NOT: [&str; 15] = [
    // Holds names of folders that a virtual machine was started with; what matters is in machine.boot.
    "machine.kernel_command_line",
    "machine.memory.total_bytes",
    "machine.memory.huge_pages.free",
    "machine.memory.huge_pages.reserved",
    "machine.virtual_machines",
    "libraries.libibverbs.path",
    "libraries.librdmacm.path",
    "run.keep_elements",
    "settings.limits",
    "settings.keep",
    "obtained.loop_faults",
    // Compared by themselves.
    "obtained.pages",
    "obtained.stamp_refresh_ns",
    "obtained.placement.warnings",
    "queue.source",
];

/// A difference of the instrument's own figures is told from so many percent on.
const INSTRUMENT_PERCENT: f64 = 20.0;
/// Another share of the time in which a clock was not watched is told from so much on.
const BLIND_SHARE: f64 = 0.02;
/// Columns of the summary with the instrument's own figures.
const INSTRUMENT: [(&str, &str); 5] = [
    (
        "baseline_ns",
        "the usual difference between two readings of the clock (ns)",
    ),
    ("floor_p50_us", "the floor (p50, us)"),
    ("stamp_cost_ns", "the cost of a time stamp (ns)"),
    (
        "sender_stamp_ns",
        "the cost of the sender's time stamp (ns)",
    ),
    (
        "receiver_stamp_ns",
        "the cost of the receiver's time stamp (ns)",
    ),
];

/// Looks at all that is told of two runs and their common points.
pub fn of(base: &Run, new: &Run, matched: &Matched<'_>) -> Circumstances {
    let mut found = Circumstances::default();
    let parts: &[&str] = &OF_RUN;
    compare_parts(
        parts,
        base.document(),
        new.document(),
        "",
        &mut found.differs,
    );
    for name in &matched.differing {
        let text = |run: &Run| {
            let of_point = run.points.first().and_then(|point| point.setting(name));
            of_point.unwrap_or_default().to_owned()
        };
        found.differs.push(Differs {
            what: name.clone(),
            base: text(base),
            new: text(new),
        });
    }
    let mut by_points: Vec<(Differs, usize, String)> = Vec::new();
    for pair in &matched.pairs {
        let mut differs = Vec::new();
        // A point that ended before it told of a part does not differ in it; it is marked as incomplete.
        let ended_before = |point: &Point, part: &str| {
            point.incomplete.is_some() && point.document.get(part).is_none_or(Value::is_null)
        };
        let told: Vec<&str> = OF_POINT
            .into_iter()
            .filter(|part| !ended_before(pair.base, part) && !ended_before(pair.new, part))
            .collect();
        compare_parts(
            &told,
            &pair.base.document,
            &pair.new.document,
            "",
            &mut differs,
        );
        differs.extend(pages_differ(pair));
        for differs in differs {
            match by_points.iter_mut().find(|(known, ..)| *known == differs) {
                Some((_, count, _)) => *count += 1,
                None => by_points.push((differs, 1, pair.base.name.clone())),
            }
        }
    }
    for (mut differs, count, name) in by_points {
        if base.benchmark != Benchmark::Clock && count < matched.pairs.len() {
            let more = if count > 1 {
                format!(" and {} more", count - 1)
            } else {
                String::new()
            };
            differs.what = format!("{} of {name}{more}", differs.what);
        }
        found.differs.push(differs);
    }
    warn(base, new, matched, &mut found.warnings);
    found
}

/// If the two did not get the same pages. What ended before it told of its pages has none.
fn pages_differ(pair: &Pair<'_>) -> Option<Differs> {
    let of = |point: &Point| {
        let mut pages = BTreeSet::new();
        for part in WITH_PAGES {
            collect_pages(&point.document[part], &mut pages);
        }
        let pages: Vec<String> = pages.into_iter().collect();
        pages.join(", ")
    };
    let (base, new) = (of(pair.base), of(pair.new));
    let ended_before = |point: &Point, pages: &str| pages.is_empty() && point.incomplete.is_some();
    let differ = base != new && !ended_before(pair.base, &base) && !ended_before(pair.new, &new);
    differ.then(|| Differs {
        what: "the pages obtained".to_owned(),
        base,
        new,
    })
}

/// All words below `pages`, at any depth: which of several runs or CPUs had which does not matter, but what the pages are
/// for does.
fn collect_pages(value: &Value, pages: &mut BTreeSet<String>) {
    let members: Vec<(&str, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        Value::Array(elements) => elements.iter().map(|value| ("", value)).collect(),
        _ => return,
    };
    for (name, value) in members {
        if name == PAGES {
            match value {
                Value::String(word) => {
                    pages.insert(word.clone());
                }
                Value::Array(words) => {
                    let told = words.iter().enumerate();
                    let told = told
                        .filter_map(|(place, word)| Some(format!("{place}: {}", word.as_str()?)));
                    pages.extend(told);
                }
                Value::Object(words) => {
                    let told = words.iter();
                    let told =
                        told.filter_map(|(name, word)| Some(format!("{name}: {}", word.as_str()?)));
                    pages.extend(told);
                }
                _ => {}
            }
        } else {
            collect_pages(value, pages);
        }
    }
}

fn warn(base: &Run, new: &Run, matched: &Matched<'_>, warnings: &mut Vec<String>) {
    let version = |run: &Run| run.version().unwrap_or("not told").to_owned();
    if version(base) != version(new) {
        warnings.push(format!(
            "measured by different versions of hcabench: {} and {}",
            version(base),
            version(new)
        ));
    }
    for (side, run) in [("BASE", base), ("NEW", new)] {
        if let Some(reason) = &run.incomplete {
            warnings.push(format!("{side} is incomplete: {reason}"));
        }
    }
    for (column, words) in INSTRUMENT {
        let far: Vec<(f64, f64)> = matched
            .pairs
            .iter()
            .filter_map(|pair| numbers(pair, column))
            .filter(|(base, new)| (new - base).abs() * 100.0 > INSTRUMENT_PERCENT * base.abs())
            .collect();
        if let Some((first_base, first_new)) = far.first() {
            warnings.push(format!(
                "{words} differs by more than {INSTRUMENT_PERCENT} % at {} of {} points, such as {first_base} and \
                 {first_new}: something else ran, or the machine is set up otherwise",
                far.len(),
                matched.pairs.len()
            ));
        }
    }
    let blind: Vec<(f64, f64)> = matched
        .pairs
        .iter()
        .filter_map(|pair| numbers(pair, "blind_share"))
        .filter(|(base, new)| (new - base).abs() > BLIND_SHARE)
        .collect();
    if let Some((base, new)) = blind.first() {
        warnings.push(format!(
            "the clock was not watched for {:.1} % and {:.1} % of the time (at {} of {} CPUs it differs by more than \
             {} points): what jumps there were in it is not known",
            base * 100.0,
            new * 100.0,
            blind.len(),
            matched.pairs.len(),
            BLIND_SHARE * 100.0
        ));
    }
    let rates: Vec<(f64, f64)> = matched
        .pairs
        .iter()
        .filter(|pair| {
            let share = pair.base.setting("percent_of_saturation");
            share.is_some_and(|text| !text.is_empty())
        })
        .filter_map(|pair| numbers(pair, "saturation_per_s"))
        .filter(|(base, new)| (new - base).abs() * 100.0 > 5.0 * base)
        .collect();
    if let Some((first_base, first_new)) = rates.first() {
        warnings.push(format!(
            "the load curves have different saturations, such as {first_base} and {first_new} /s: the same share of it \
             is another rate, and latencies at other rates are compared"
        ));
    }
}

/// A column of both rows.
fn numbers(pair: &Pair<'_>, column: &str) -> Option<(f64, f64)> {
    let of = |row: &Option<Row>| row.as_ref()?.number(column);
    Some((of(&pair.base.row)?, of(&pair.new.row)?))
}

fn compare_parts(
    parts: &[&str],
    base: &Value,
    new: &Value,
    prefix: &str,
    differs: &mut Vec<Differs>,
) {
    for part in parts {
        let pointer = format!("/{}", part.replace('.', "/"));
        let at = |document: &Value| {
            let mut leaves = BTreeMap::new();
            if let Some(value) = document.pointer(&pointer) {
                collect(&format!("{prefix}{part}"), value, &mut leaves);
            }
            leaves
        };
        let (base, mut new) = (at(base), at(new));
        for (what, base) in base {
            let new = new.remove(&what).unwrap_or_default();
            if base != new && !is_default(&what, &base, &new) {
                differs.push(Differs { what, base, new });
            }
        }
        for (what, new) in new {
            if !new.is_empty() && !is_default(&what, "", &new) {
                let base = String::new();
                differs.push(Differs { what, base, new });
            }
        }
    }
}

/// Options that older versions do not have, with the value that says the same as their absence.
const DEFAULTS: [(&str, &str); 1] = [("run.receiver_pause_ns", "0")];

fn is_default(what: &str, base: &str, new: &str) -> bool {
    DEFAULTS.iter().any(|&(name, default)| {
        name == what
            && [base, new]
                .iter()
                .all(|text| text.is_empty() || *text == default)
    })
}

/// All texts and numbers below a value, by their place; null is an empty text.
fn collect(place: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    if NEED_NOT.contains(&place) {
        return;
    }
    match value {
        Value::Object(members) => {
            // A software device has another one in each boot.
            let software = members.get("software") == Some(&Value::Bool(true));
            for (name, value) in members {
                if !(software && name == "node_guid") {
                    collect(&format!("{place}.{name}"), value, leaves);
                }
            }
        }
        Value::Array(elements) => {
            for (number, value) in elements.iter().enumerate() {
                collect(&format!("{place}.{number}"), value, leaves);
            }
        }
        Value::Null => {
            leaves.insert(place.to_owned(), String::new());
        }
        Value::String(text) => {
            leaves.insert(place.to_owned(), text.clone());
        }
        other => {
            leaves.insert(place.to_owned(), other.to_string());
        }
    }
}
