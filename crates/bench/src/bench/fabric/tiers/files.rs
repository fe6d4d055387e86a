//! Files that name the switches or groups above each node.

use std::collections::HashMap;
use std::path::Path;

use super::TierError;
use super::lines::{LinePlace, lines, with_included, wrong};
use crate::launch::node_list::expand;

/// By node: what is above it, the highest first.
pub(super) type Paths = HashMap<String, Vec<String>>;

/// The parts of a line of `topology.conf`.
const ALLOWED: &str =
    "SwitchName=NAME with Nodes=LIST or Switches=LIST, and LinkSpeed=N; Include FILE";

/// The nodes of a list in that line.
fn listed(place: &LinePlace, list: &str) -> Result<Vec<String>, TierError> {
    let nodes = expand(list);
    nodes.map_err(|reason| {
        let allowed = "allowed is a list such as n[01-16,20]";
        wrong(
            place.clone(),
            format!("{list:?} is not a list of nodes: {reason}: {allowed}"),
        )
    })
}

/// A file with a node, or a list of them, and its group in each line.
pub(super) fn groups(text: &str) -> Result<Paths, TierError> {
    let mut paths = Paths::new();
    for (number, line) in lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [nodes, group] = words[..] else {
            let needed =
                format!("a node, or a list of them, and its group are needed, not {line:?}");
            return Err(wrong(number, needed));
        };
        let group: Vec<String> = group.split('.').map(str::to_owned).collect();
        for node in listed(&number.into(), nodes)? {
            if paths
                .insert(node.clone(), group.clone())
                .is_some_and(|known| known != group)
            {
                return Err(wrong(number, format!("{node} is in another group already")));
            }
        }
    }
    match paths.is_empty() {
        true => Err(TierError::Nothing("node")),
        false => Ok(paths),
    }
}

/// Without the blanks around each `=`.
fn without_blanks(line: &str) -> String {
    let parts: Vec<&str> = line.split('=').map(str::trim).collect();
    parts.join("=")
}

/// A value without its quotes, which are on both sides or none.
fn unquoted(value: &str) -> Option<&str> {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(inner.unwrap_or(value)).filter(|value| !value.contains('"'))
}

/// Slurm's `topology.conf`: a line for each switch, with the nodes or the switches below it. Of several switches above
/// one the last counts, as in Slurm.
pub(super) fn topology(text: &str, path: &Path) -> Result<Paths, TierError> {
    // By switch, what is above it; by node, the switch that it is at: with the line.
    let mut above: HashMap<String, (String, LinePlace)> = HashMap::new();
    let mut leaves: HashMap<String, (String, LinePlace)> = HashMap::new();
    let mut switches: HashMap<String, LinePlace> = HashMap::new();
    for (place, line) in with_included(text, path)? {
        let (mut name, mut nodes, mut below) = (None, Vec::new(), Vec::new());
        let line = without_blanks(&line);
        for word in line.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return Err(wrong(
                    place.clone(),
                    format!("{word:?} has no =: allowed are {ALLOWED}"),
                ));
            };
            let value = unquoted(value).ok_or_else(|| {
                wrong(
                    place.clone(),
                    format!("{value:?} has a quote too much: allowed are {ALLOWED}"),
                )
            })?;
            match key.to_ascii_lowercase().as_str() {
                "switchname" => name = Some(value.to_owned()),
                "nodes" => nodes.extend(listed(&place, value)?),
                "switches" => below.extend(listed(&place, value)?),
                "linkspeed" => {}
                _ => {
                    return Err(wrong(
                        place.clone(),
                        format!("{key:?} is not allowed: allowed are {ALLOWED}"),
                    ));
                }
            }
        }
        let name = name.ok_or_else(|| {
            wrong(
                place.clone(),
                format!("no SwitchName: allowed are {ALLOWED}"),
            )
        })?;
        if nodes.is_empty() && below.is_empty() {
            let reason = format!("neither Nodes nor Switches: allowed are {ALLOWED}");
            return Err(wrong(place, reason));
        }
        if let Some(first) = switches.insert(name.clone(), place.clone()) {
            return Err(wrong(place, format!("switch {name} is in {first} already")));
        }
        for node in nodes {
            let before = leaves.insert(node.clone(), (name.clone(), place.clone()));
            if let Some((other, first)) = before {
                let reason = format!("node {node} is at {other} already, by {first}");
                return Err(wrong(place, reason));
            }
        }
        above.extend(
            below
                .into_iter()
                .map(|it| (it, (name.clone(), place.clone()))),
        );
    }
    let missing = above
        .iter()
        .filter(|(switch, _)| !switches.contains_key(*switch));
    if let Some((switch, (_, place))) =
        missing.min_by_key(|(switch, (_, place))| (place.line, *switch))
    {
        let reason = format!("switch {switch} has no line with SwitchName={switch}");
        return Err(wrong(place.clone(), reason));
    }
    if leaves.is_empty() {
        return Err(TierError::Nothing("node"));
    }
    let path = |(node, (leaf, _)): (String, (String, LinePlace))| {
        let mut path = vec![leaf];
        while let Some((higher, place)) = above.get(&path[path.len() - 1]) {
            if path.contains(higher) {
                return Err(wrong(place.clone(), format!("{higher} is above itself")));
            }
            path.push(higher.clone());
        }
        path.reverse();
        Ok((node, path))
    };
    leaves.into_iter().map(path).collect()
}
