//! The names of the legend: which come first.

use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::report::plot::INCOMPLETE;

/// Names first that were asked to be, in that order; the others as they are. A name may hold commas, as those of several
/// settings do: of the names that are there, the longest that fits is meant.
pub(super) fn ordered<T>(
    mut items: Vec<T>,
    label: impl Fn(&T) -> &str,
    settings: &Checked,
) -> Result<Vec<T>, UsageError> {
    let plain = |item: &T| label(item).trim_end_matches(INCOMPLETE).to_owned();
    let names: Vec<String> = items.iter().map(plain).collect();
    let mut order: Vec<&String> = Vec::new();
    for list in &settings.order {
        let mut rest = list.trim();
        while !rest.is_empty() {
            let fits = |name: &&String| {
                let behind = rest.strip_prefix(name.as_str()).map(str::trim_start);
                !name.is_empty() && behind.is_some_and(|it| it.is_empty() || it.starts_with(','))
            };
            let Some(name) = names.iter().filter(fits).max_by_key(|name| name.len()) else {
                let there: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                return Err(UsageError(format!(
                    "--order {rest:?}: there is no such name, only {}",
                    there.join(", ")
                )));
            };
            order.push(name);
            rest = rest[name.len()..]
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
    }
    let place = |item: &T| {
        let name = plain(item);
        order
            .iter()
            .position(|it| **it == name)
            .unwrap_or(usize::MAX)
    };
    items.sort_by_cached_key(place);
    Ok(items)
}
