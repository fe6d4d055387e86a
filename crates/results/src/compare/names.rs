//! What the two sides of a comparison are called: by their folders.

use std::path::{Component, Path};

/// Longer names are none for the heading of a column.
const LONGEST: usize = 20;

/// The last part of either folder, or as many parts as tell them apart; `A` and `B` where that is too long.
pub fn of_folders(folders: [&Path; 2]) -> [String; 2] {
    let parts = folders.map(|folder| {
        let parts = folder.components().filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        });
        parts.collect::<Vec<_>>()
    });
    let most = parts.each_ref().map(Vec::len).into_iter().min();
    (1..=most.unwrap_or(0))
        .map(|count| {
            parts
                .each_ref()
                .map(|parts| parts[parts.len() - count..].join("/"))
        })
        .find(|[one, other]| one != other)
        .filter(|names| names.iter().all(|name| name.chars().count() <= LONGEST))
        .unwrap_or_else(|| ["A", "B"].map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_what_tells_them_apart() {
        for (folders, names) in [
            (["before", "after"], ["before", "after"]),
            (
                ["results/20261128-131321", "other/"],
                ["20261128-131321", "other"],
            ),
            (
                ["before/queue", "after/queue"],
                ["before/queue", "after/queue"],
            ),
            (
                ["x/y/before/queue", "x/y/after/queue"],
                ["before/queue", "after/queue"],
            ),
            (["run", "run"], ["A", "B"]),
            (["run", "older/run"], ["A", "B"]),
            ([".", "run"], ["A", "B"]),
            (["a-name-that-fills-half-a-table", "run"], ["A", "B"]),
        ] {
            assert_eq!(of_folders(folders.map(Path::new)), names);
        }
    }
}
