//! Files that name the switches or groups above each node.

use std::collections::HashMap;

use super::TierError;
use crate::launch::node_list::expand;

/// By node: what is above it, the highest first.
type Paths = HashMap<String, Vec<String>>;

/// Lines without comments, with their numbers; empty ones are left out.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bare = |line: &'_ str| line.split('#').next().unwrap_or_default().len();
    let all = (1..)
        .zip(text.lines())
        .map(move |(number, line)| (number, line[..bare(line)].trim()));
    all.filter(|(_, line)| !line.is_empty())
}

fn wrong(line: usize, reason: impl Into<String>) -> TierError {
    let reason = reason.into();
    TierError::Line { line, reason }
}

/// The nodes of a list in that line.
fn listed(line: usize, list: &str) -> Result<Vec<String>, TierError> {
    let nodes = expand(list);
    nodes.map_err(|reason| wrong(line, format!("{list:?} is not a list of nodes: {reason}")))
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

/// Slurm's `topology.conf`: a line for each switch, with the nodes or the switches below it.
pub(super) fn topology(text: &str) -> Result<Paths, TierError> {
    // What is above a switch, and above a node.
    let (mut above, mut leaves) = (HashMap::new(), HashMap::new());
    for (number, line) in lines(text) {
        let (mut name, mut below) = (None, Vec::new());
        for word in line.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return Err(wrong(number, format!("{word:?} has no =")));
            };
            match key.to_ascii_lowercase().as_str() {
                "switchname" => name = Some(value.to_owned()),
                "nodes" => below.extend(listed(number, value)?.into_iter().map(|it| (it, true))),
                "switches" => {
                    below.extend(listed(number, value)?.into_iter().map(|it| (it, false)))
                }
                // Speeds and the like.
                _ => {}
            }
        }
        let name = name.ok_or_else(|| wrong(number, "no SwitchName"))?;
        if below.is_empty() {
            return Err(wrong(number, "neither Nodes nor Switches"));
        }
        for (it, is_node) in below {
            let of = if is_node { &mut leaves } else { &mut above };
            of.insert(it, (name.clone(), number));
        }
    }
    if leaves.is_empty() {
        return Err(TierError::Nothing("switch"));
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
