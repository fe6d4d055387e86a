//! Files that name the switches or groups above each node.

use std::borrow::Cow;
use std::collections::HashMap;

use super::TierError;
use crate::launch::node_list::expand;

/// By node: what is above it, the highest first.
pub(super) type Paths = HashMap<String, Vec<String>>;

/// The parts of a line of `topology.conf`.
const ALLOWED: &str = "SwitchName=NAME with Nodes=LIST or Switches=LIST, and LinkSpeed=N";

/// Lines without comments, with their numbers, those that end in a backslash with the next one; empty ones are left out.
fn lines(text: &str) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let bare = |line: &'_ str| line.split('#').next().unwrap_or_default().len();
    let mut all = (1..)
        .zip(text.lines())
        .map(move |(number, line)| (number, line[..bare(line)].trim()));
    let joined = std::iter::from_fn(move || {
        let (number, first) = all.next()?;
        let mut line = Cow::Borrowed(first);
        while let Some(begun) = line.strip_suffix('\\') {
            let (_, next) = all.next().unwrap_or((number, ""));
            line = Cow::Owned(format!("{} {next}", begun.trim_end()));
        }
        Some((number, line))
    });
    joined.filter(|(_, line)| !line.trim().is_empty())
}

pub(super) fn wrong(line: usize, reason: impl Into<String>) -> TierError {
    let reason = reason.into();
    TierError::Line { line, reason }
}

/// The nodes of a list in that line.
fn listed(line: usize, list: &str) -> Result<Vec<String>, TierError> {
    let nodes = expand(list);
    nodes.map_err(|reason| {
        let allowed = "allowed is a list such as n[01-16,20]";
        wrong(
            line,
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
        for node in listed(number, nodes)? {
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
pub(super) fn topology(text: &str) -> Result<Paths, TierError> {
    // By switch, what is above it; by node, the switch that it is at: with the line.
    let mut above: HashMap<String, (String, usize)> = HashMap::new();
    let mut leaves: HashMap<String, (String, usize)> = HashMap::new();
    let mut switches: HashMap<String, usize> = HashMap::new();
    for (number, line) in lines(text) {
        let (mut name, mut nodes, mut below) = (None, Vec::new(), Vec::new());
        let line = without_blanks(&line);
        for word in line.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return Err(wrong(
                    number,
                    format!("{word:?} has no =: allowed are {ALLOWED}"),
                ));
            };
            let value = unquoted(value).ok_or_else(|| {
                wrong(
                    number,
                    format!("{value:?} has a quote too much: allowed are {ALLOWED}"),
                )
            })?;
            match key.to_ascii_lowercase().as_str() {
                "switchname" => name = Some(value.to_owned()),
                "nodes" => nodes.extend(listed(number, value)?),
                "switches" => below.extend(listed(number, value)?),
                "linkspeed" => {}
                _ => {
                    return Err(wrong(
                        number,
                        format!("{key:?} is not allowed: allowed are {ALLOWED}"),
                    ));
                }
            }
        }
        let name =
            name.ok_or_else(|| wrong(number, format!("no SwitchName: allowed are {ALLOWED}")))?;
        if nodes.is_empty() && below.is_empty() {
            let reason = format!("neither Nodes nor Switches: allowed are {ALLOWED}");
            return Err(wrong(number, reason));
        }
        if let Some(first) = switches.insert(name.clone(), number) {
            return Err(wrong(
                number,
                format!("switch {name} is in line {first} already"),
            ));
        }
        for node in nodes {
            let before = leaves.insert(node.clone(), (name.clone(), number));
            if let Some((other, first)) = before {
                let reason = format!("node {node} is at {other} already, by line {first}");
                return Err(wrong(number, reason));
            }
        }
        above.extend(below.into_iter().map(|it| (it, (name.clone(), number))));
    }
    let missing = above
        .iter()
        .filter(|(switch, _)| !switches.contains_key(*switch));
    if let Some((switch, (_, line))) = missing.min_by_key(|(switch, (_, line))| (*line, *switch)) {
        let reason = format!("switch {switch} has no line with SwitchName={switch}");
        return Err(wrong(*line, reason));
    }
    if leaves.is_empty() {
        return Err(TierError::Nothing("node"));
    }
    let path = |(node, (leaf, _)): (String, (String, usize))| {
        let mut path = vec![leaf];
        while let Some((higher, line)) = above.get(&path[path.len() - 1]) {
            if path.contains(higher) {
                return Err(wrong(*line, format!("{higher} is above itself")));
            }
            path.push(higher.clone());
        }
        path.reverse();
        Ok((node, path))
    };
    leaves.into_iter().map(path).collect()
}
