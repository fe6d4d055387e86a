//! The names in the legend: other words for them, and which come first.

use super::{Asked, Checked, Colours, Setting, Told, UsageError};
use crate::plot::INCOMPLETE;
use crate::plot::palette::StyleNumber;
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
        settings: &Checked,
    ) -> Result<(), UsageError> {
        if of_file {
            self.asked.extend(names.iter().map(|&name| Asked {
                key: Setting::of(id).key,
                name: name.clone(),
                found: there.contains(name),
            }));
        }
        let strange = names.iter().filter(|name| !there.contains(name));
        let strange: Vec<String> = strange.map(|name| format!("{name:?}")).collect();
        let said = settings.called(id, of_file);
        if strange.is_empty() {
            return Ok(());
        }
        if of_file && (settings.wider || strange.len() < names.len()) {
            let strange = strange.join(", ");
            let hint = format!("{said}: no line of this figure is called {strange}");
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
        Err(UsageError(format!("{said} {}: {refusal}", strange[0])))
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
    settings: &Checked,
) -> Result<(Vec<T>, Vec<StyleNumber>, Told), UsageError> {
    let mut told = Told::default();
    let names = |lines: &mut Vec<T>| -> Vec<String> {
        let name = |line| parts(label(line)).0.to_owned();
        lines.iter_mut().map(name).collect()
    };
    let there = names(&mut lines);
    let looks = colours.looks(&there);
    let labels = settings.given.names("label");
    let is_of_file = |old: &&String| settings.given.is_of_file("label", old);
    let (of_file, of_options): (Vec<&String>, Vec<&String>) = labels.keys().partition(is_of_file);
    told.check("label", &of_options, &there, false, settings)?;
    told.check("label", &of_file, &there, true, settings)?;
    for line in &mut lines {
        let label = label(line);
        let (name, mark) = parts(label);
        if let Some(new) = labels.get(name) {
            *label = format!("{}{mark}", new.concat());
        }
    }

    let shown = names(&mut lines);
    let order = order_of(settings.given.texts("order"), &shown);
    let of_file = settings.given.is_of_file("order", "");
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
