//! The names in the legend: other words for them, and which come first.

use std::path::Path;

use super::{Asked, Colours, Settings, Told, UsageError};
use crate::plot::INCOMPLETE;
use crate::plot::palette::StyleNumber;
use crate::results::text::printable_path;
use crate::sorting::{distinct, sort_by_key};

impl Told {
    /// Refuses names that no line has. A file may name more lines than this figure has, as a dictionary for several
    /// figures: then those are told, but it must name one of them at least, unless it speaks of more than this figure.
    fn check(
        &mut self,
        id: &str,
        names: &[&String],
        there: &[String],
        of_file: bool,
        settings: &Settings,
    ) -> Result<(), UsageError> {
        let file = settings.file.path.as_deref().filter(|_| of_file);
        if let Some(file) = file.and_then(Path::file_name) {
            let key = format!("{}: {id}", printable_path(file.as_ref()));
            self.asked.extend(names.iter().map(|&name| Asked {
                key: key.clone(),
                name: name.clone(),
                found: there.contains(name),
            }));
        }
        let strange = names.iter().filter(|name| !there.contains(name));
        let strange: Vec<String> = strange.map(|name| format!("{name:?}")).collect();
        if strange.is_empty() {
            return Ok(());
        }
        if let Some(file) = file.filter(|_| settings.file.wider || strange.len() < names.len()) {
            let (file, strange) = (printable_path(file), strange.join(", "));
            let hint = format!("{file}: {id}: no line of this figure is called {strange}");
            self.hints.push(hint);
            return Ok(());
        }
        let there = distinct(there.iter().filter(|name| !name.is_empty()));
        let there: Vec<String> = there.iter().map(|name| format!("{name:?}")).collect();
        let refusal = match &there[..] {
            [] => "no line of this figure has a name".to_owned(),
            names => format!(
                "no line of this figure is called so, only {}",
                names.join(", ")
            ),
        };
        Err(UsageError(format!("--{id} {}: {refusal}", strange[0])))
    }
}

fn parts(label: &str) -> (&str, &str) {
    match label.strip_suffix(INCOMPLETE) {
        Some(name) => (name, INCOMPLETE),
        None => (label, ""),
    }
}

/// Gives lines their other names, and puts those first that were asked to be, in that order; the others stay as they
/// are.
pub(super) fn named<T>(
    mut lines: Vec<T>,
    label: impl Fn(&mut T) -> &mut String,
    colours: Colours,
    settings: &Settings,
) -> Result<(Vec<T>, Vec<StyleNumber>, Told), UsageError> {
    let mut told = Told::default();
    let names = |lines: &mut Vec<T>| -> Vec<String> {
        let name = |line| parts(label(line)).0.to_owned();
        lines.iter_mut().map(name).collect()
    };
    let there = names(&mut lines);
    let looks = colours.looks(&there);
    let labels = settings.label.iter().map(|label| {
        let is_of_file = settings.file.label.contains(&label.0);
        (is_of_file, renaming(label, &there))
    });
    let labels: Vec<(bool, (String, String))> = labels.collect();
    for is_of_file in [false, true] {
        let own = labels.iter().filter(|(it, _)| *it == is_of_file);
        let own: Vec<&String> = own.map(|(_, (old, _))| old).collect();
        told.check("label", &own, &there, is_of_file, settings)?;
    }
    for line in &mut lines {
        let label = label(line);
        let (name, mark) = parts(label);
        let renamed = labels.iter().rev().find(|(_, (old, _))| old == name);
        if let Some((_, (_, new))) = renamed {
            *label = format!("{new}{mark}");
        }
    }

    let shown = names(&mut lines);
    let order = order_of(&settings.order, &shown);
    let of_file = settings.file.order;
    told.check("order", &Vec::from_iter(&order), &shown, of_file, settings)?;
    let place = |name: &String| order.iter().position(|it| it == name);
    let mut placed: Vec<(usize, T)> = lines.into_iter().enumerate().collect();
    sort_by_key(&mut placed, |(number, _)| {
        place(&shown[*number]).unwrap_or(usize::MAX)
    });
    let looks = placed.iter().map(|(number, _)| looks[*number]).collect();
    let lines = placed.into_iter().map(|(_, line)| line).collect();
    Ok((lines, looks, told))
}

/// A name and the one in place of it. Both may hold `=`, as a queue with a parameter does: of the names that are there,
/// the longest that fits is meant.
fn renaming((old, new): &(String, String), there: &[String]) -> (String, String) {
    let text = format!("{old}={new}");
    let fits = |name: &&String| {
        let behind = text.strip_prefix(name.as_str());
        !name.is_empty() && behind.is_some_and(|it| it.starts_with('='))
    };
    let found = there.iter().filter(fits).max_by_key(|name| name.len());
    let old = found.unwrap_or(old);
    (old.clone(), text[old.len() + 1..].to_owned())
}

/// The names of lists, in their order. A name may hold commas, as those of several settings do: of the names that are
/// there, the longest that fits is meant.
fn order_of(lists: &[String], there: &[String]) -> Vec<String> {
    let mut order = Vec::new();
    for list in lists {
        let mut rest = list.trim();
        while !rest.is_empty() {
            let fits = |name: &&str| {
                let behind = rest.strip_prefix(name).map(str::trim_start);
                !name.is_empty() && behind.is_some_and(|it| it.is_empty() || it.starts_with(','))
            };
            let found = there.iter().map(String::as_str).filter(fits);
            let to_comma = &rest[..rest.find(',').unwrap_or(rest.len())];
            let name = found.max_by_key(|name| name.len()).unwrap_or(to_comma);
            order.push(name.trim_end().to_owned());
            rest = rest[name.len()..].trim_start();
            rest = rest.trim_start_matches(',').trim_start();
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_parts_it_from_the_other() {
        let there = ["b-queue", "b-queue:batch=64"].map(str::to_owned);
        for (old, new, expected) in [
            ("b-queue:batch", "64=mine", ["b-queue:batch=64", "mine"]),
            ("b-queue", "batch=1", ["b-queue", "batch=1"]),
            ("strange", "a=b", ["strange", "a=b"]),
        ] {
            let found = renaming(&(old.to_owned(), new.to_owned()), &there);
            assert_eq!([found.0, found.1], expected);
        }
    }
}
