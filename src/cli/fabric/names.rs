//! What nodes are called in the tables and in the names of folders.

use std::collections::BTreeMap;

use crate::sorting::distinct;

/// The separator of two names in the name of a pair's folder.
pub(super) const BETWEEN: &str = "-to-";

/// A name in which nothing looks like the separator of two names: of no two pairs the folders are called the same.
fn apart_from_between(name: &str) -> String {
    let mut name = name.replace(BETWEEN, "_to_");
    if name.starts_with("to-") {
        name.replace_range(..3, "to_");
    }
    if name.ends_with("-to") {
        let end = name.len() - 3;
        name.replace_range(end.., "_to");
    }
    name
}

/// Names with their place among those of the same name behind them where several have it, or more than once, where one is
/// called so already: it is the same in each run, whatever other hosts take part. Who has a name alone keeps it, but for
/// what cannot be in the name of a folder. Folders have them, too.
pub(super) fn distinct_names(names: &[String]) -> Vec<String> {
    let no_path = |name: &String| {
        let separators = |letter: char| letter.is_control() || "/\\".contains(letter);
        let name = name.replace(separators, "_");
        apart_from_between(name.trim_start_matches('.'))
    };
    let mut names: Vec<String> = names.iter().map(no_path).collect();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for name in &names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    let mut taken = distinct(counts.keys().cloned());
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for name in &mut names {
        if counts[name.as_str()] == 1 {
            continue;
        }
        let next = places.entry(name.clone()).or_default();
        let place = format!(".{next}");
        *next += 1;
        *name += &place;
        while !taken.insert(name.clone()) {
            *name += &place;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_of_their_own_that_are_paths_of_one_folder() {
        for (names, expected) in [
            ("a b c", "a b c"),
            ("n n m", "n.0 n.1 m"),
            // Who is called so keeps the name, whichever rank it has.
            ("n n n.1", "n.0 n.1.1 n.1"),
            ("n.1 n n", "n.1 n.0 n.1.1"),
            ("m n n", "m n.0 n.1"),
            ("n n n.1 n.1 n.1.1", "n.0 n.1.1.1 n.1.0 n.1.1.1.1 n.1.1"),
            ("../a _a _a", "_a.0 _a.1 _a.2"),
            ("x x-to-y y-to-z z", "x x_to_y y_to_z z"),
            ("a a-to b to-b to", "a a_to b to_b to"),
            ("a-to-to-b a_to_to-b", "a_to_to-b.0 a_to_to-b.1"),
        ] {
            let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
            let found = distinct_names(&names);
            assert_eq!(found.join(" "), expected);
            let apart = distinct(&found);
            assert_eq!(apart.len(), names.len());
            let pairs = found
                .iter()
                .flat_map(|from| found.iter().map(move |to| (from, to)));
            let folders = distinct(pairs.map(|(from, to)| format!("{from}{BETWEEN}{to}")));
            assert_eq!(folders.len(), names.len() * names.len());
        }
    }
}
