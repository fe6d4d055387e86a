//! The names in the legend: other words for them, and which come first.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::cli::plot::made::{Asked, Made};
use crate::cli::plot::sources::Sources;
use crate::plot::{Drawing, INCOMPLETE, Looks};
use crate::results::text::printable_path;

/// What is to be told of the names of lines.
pub(super) struct Told {
    /// Names in a file that fit no line, where that is no mistake; and whatever else the user should know.
    pub hints: Vec<String>,
    /// All names in a file.
    asked: Vec<Asked>,
}

impl Told {
    /// The figure, drawn.
    pub fn made(self, figure: impl Serialize + 'static, drawing: Drawing) -> Made {
        Made {
            hints: self.hints,
            asked: self.asked,
            ..Made::new(figure, drawing)
        }
    }
}

/// A label, and the mark behind it.
fn parts(label: &str) -> (&str, &str) {
    match label.strip_suffix(INCOMPLETE) {
        Some(name) => (name, INCOMPLETE),
        None => (label, ""),
    }
}

/// Gives lines their other names, and puts those first that were asked to be, in that order; the others stay as they are.
///
/// A name that no line has is refused. A file may name more lines than this figure has, as a dictionary for several
/// figures: then those are told, but it must name one of them at least, unless it speaks of more than this figure.
pub(super) fn named<T>(
    mut lines: Vec<T>,
    label: impl Fn(&mut T) -> &mut String,
    sources: Option<&Sources>,
    settings: &Checked,
) -> Result<(Vec<T>, Looks, Told), UsageError> {
    let mut hints = Vec::new();
    let names = |lines: &mut Vec<T>| -> Vec<String> {
        let name = |line| parts(label(line)).0.to_owned();
        lines.iter_mut().map(name).collect()
    };
    let there = names(&mut lines);
    let known = sources.map_or_else(BTreeMap::new, |sources| sources.looks(&there));
    let looks: Option<Vec<usize>> = there.iter().map(|name| known.get(name).copied()).collect();
    let origin = &settings.origin;
    let strange = |old: &&String| !there.contains(old);
    let is_of_options = |old: &&String| origin.options.has_name("label", old);
    if let Some(old) = settings.labels.keys().filter(is_of_options).find(strange) {
        let refusal = no_such_line(&there);
        return Err(UsageError(format!("--label {old:?}: {refusal}")));
    }
    let of_file = settings.labels.keys().filter(|old| !is_of_options(old));
    let missing: Vec<&String> = of_file.clone().filter(strange).collect();
    let all = of_file.clone().count();
    unknown("label", &missing, all, &there, settings, &mut hints)?;
    let mut asked: Vec<Asked> = (of_file.clone())
        .map(|name| Asked {
            key: "labels",
            name: name.clone(),
            found: there.contains(name),
        })
        .collect();
    for line in &mut lines {
        let label = label(line);
        let (name, mark) = parts(label);
        if let Some(new) = settings.labels.get(name) {
            *label = format!("{}{mark}", new.concat());
        }
    }

    let there = names(&mut lines);
    let (order, missing) = order_of(&settings.order, &there);
    let all = order.len() + missing.len();
    unknown(
        "order",
        &missing.iter().collect::<Vec<_>>(),
        all,
        &there,
        settings,
        &mut hints,
    )?;
    if settings.is_of_file("order") {
        for (names, found) in [(&order, true), (&missing, false)] {
            asked.extend(names.iter().map(|name| Asked {
                key: "order",
                name: name.clone(),
                found,
            }));
        }
    }
    let place = |line: &mut T| {
        let name = parts(label(line)).0;
        let found = order.iter().position(|it| it == name);
        found.unwrap_or(usize::MAX)
    };
    let mut placed: Vec<(usize, usize, T)> = (lines.into_iter().enumerate())
        .map(|(number, mut line)| (place(&mut line), number, line))
        .collect();
    placed.sort_by_key(|(place, ..)| *place);
    let looks = looks.map_or_else(Vec::new, |looks| {
        placed.iter().map(|(_, number, _)| looks[*number]).collect()
    });
    let lines = placed.into_iter().map(|(.., line)| line).collect();
    Ok((lines, Looks(looks), Told { hints, asked }))
}

fn no_such_line(there: &[String]) -> String {
    let distinct: BTreeSet<&String> = there.iter().filter(|name| !name.is_empty()).collect();
    if distinct.is_empty() {
        return "no line of this figure has a name".to_owned();
    }
    let names: Vec<String> = distinct.iter().map(|name| format!("{name:?}")).collect();
    format!(
        "no line of this figure is called so, only {}",
        names.join(", ")
    )
}

/// Refuses names that no line has, or tells them where a file has them among `all`.
fn unknown(
    id: &str,
    missing: &[&String],
    all: usize,
    there: &[String],
    settings: &Checked,
    hints: &mut Vec<String>,
) -> Result<(), UsageError> {
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let origin = &settings.origin;
    // Of labels, those of options are not among these.
    let of_file = id == "label" || settings.is_of_file(id);
    let name = match &origin.file {
        Some(path) if id == "label" => format!("{}: \"labels\"", printable_path(path)),
        _ => settings.named(id),
    };
    if of_file && (origin.wider || missing.len() < all) {
        let missing: Vec<String> = missing.iter().map(|name| format!("{name:?}")).collect();
        hints.push(format!(
            "{name}: no line of this figure is called {}",
            missing.join(", ")
        ));
        return Ok(());
    }
    Err(UsageError(format!(
        "{name} {first:?}: {}",
        no_such_line(there)
    )))
}

/// The names of lists, and what stands in them but names nothing. A name may hold commas, as those of several settings do:
/// of the names that are there, the longest that fits is meant.
fn order_of(lists: &[String], there: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut order, mut missing) = (Vec::new(), Vec::new());
    for list in lists {
        let mut rest = list.trim();
        while !rest.is_empty() {
            let fits = |name: &&String| {
                let behind = rest.strip_prefix(name.as_str()).map(str::trim_start);
                !name.is_empty() && behind.is_some_and(|it| it.is_empty() || it.starts_with(','))
            };
            let found = there.iter().filter(fits).max_by_key(|name| name.len());
            let length = match found {
                Some(name) => {
                    order.push(name.clone());
                    name.len()
                }
                None => {
                    let length = rest.find(',').unwrap_or(rest.len());
                    missing.push(rest[..length].trim_end().to_owned());
                    length
                }
            };
            rest = rest[length..]
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
    }
    (order, missing)
}
