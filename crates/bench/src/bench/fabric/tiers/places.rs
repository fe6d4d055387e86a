//! Where nodes are in the network. Nothing is stored of pairs: the distance of two nodes follows from their places, and
//! the pairs of each distance are counted by how many nodes are at each place, so that neither time nor memory grows with
//! the square of the nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::names::{APART, FABRIC, NOWHERE};
use super::subnet::LinkDistances;
use crate::sorting::distinct;

#[cfg(test)]
thread_local! {
    /// How many distances of two places were looked up.
    static LOOKED_UP: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many distances this thread has looked up.
#[cfg(test)]
pub(in super::super) fn looked_up() -> u64 {
    LOOKED_UP.get()
}

/// By distance, how many unordered pairs have it.
pub(super) type PairCounts = BTreeMap<u32, u64>;

/// The places of a network, by number, and how far apart they are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// No distance is known.
    Unknown,
    /// By place the switches above it, the highest first, by number.
    Tree(Vec<Vec<u32>>),
    /// By place the switches that are there.
    Switches(Vec<Vec<usize>>, LinkDistances),
}

impl Network {
    /// By the names of the switches or groups above each place, the highest first.
    pub(super) fn tree(paths: &[&Vec<String>]) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut number = |name| {
            let next = numbers.len() as u32;
            *numbers.entry(name).or_insert(next)
        };
        let paths = paths.iter().map(|path| {
            let numbers = path.iter().map(|name| number(name.as_str()));
            numbers.collect()
        });
        Network::Tree(paths.collect())
    }

    fn distance(&self, one: usize, other: usize) -> u32 {
        #[cfg(test)]
        LOOKED_UP.set(LOOKED_UP.get() + 1);
        match self {
            Network::Unknown => FABRIC,
            Network::Tree(paths) => {
                let (one, other) = (&paths[one], &paths[other]);
                let both = one.iter().zip(other);
                let common = both.take_while(|(one, other)| one == other).count();
                distance_of_paths(common, [one.len(), other.len()])
            }
            Network::Switches(places, distances) => distances.of(&places[one], &places[other]),
        }
    }

    /// The pairs of nodes, of which there are so many at each of these places.
    fn count(&self, at: &BTreeMap<usize, u64>) -> PairCounts {
        match self {
            Network::Unknown => {
                let nodes = at.values().sum();
                PairCounts::from([(FABRIC, pairs_of(nodes))])
            }
            Network::Tree(paths) => {
                let paths = at.iter().map(|(place, nodes)| (&*paths[*place], *nodes));
                count_in_tree(paths.collect())
            }
            // As many places as switches with nodes, which are many times fewer than nodes.
            Network::Switches(..) => {
                let mut counts = PairCounts::new();
                for (place, nodes) in at {
                    *counts.entry(self.distance(*place, *place)).or_default() += pairs_of(*nodes);
                    for (other, others) in at.range(place + 1..) {
                        *counts.entry(self.distance(*place, *other)).or_default() += nodes * others;
                    }
                }
                counts
            }
        }
    }
}

/// The unordered pairs of so many nodes.
pub(super) fn pairs_of(nodes: u64) -> u64 {
    nodes * nodes.saturating_sub(1) / 2
}

/// The distance of two paths that have `common` switches in common, by how many each has.
fn distance_of_paths(common: usize, [one, other]: [usize; 2]) -> u32 {
    match common {
        0 => APART,
        common => 1 + (one + other - 2 * common) as u32,
    }
}

/// The pairs of nodes below these switches: pairs part at the last switch that both have.
fn count_in_tree(mut paths: Vec<(&[u32], u64)>) -> PairCounts {
    paths.sort_unstable();
    let deepest = paths.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
    let mut counts = PairCounts::new();
    for common in 0..=deepest {
        for below in groups(&paths, common) {
            let mut parting = pairs_by_depth(below);
            for together in groups(below, common + 1) {
                for (depths, pairs) in pairs_by_depth(together) {
                    *parting.entry(depths).or_default() -= pairs;
                }
            }
            for ((one, other), pairs) in parting {
                let distance = distance_of_paths(common, [one, other]);
                *counts.entry(distance).or_default() += pairs;
            }
        }
    }
    counts
}

/// The paths that begin with the same switches, so many of them; sorted ones, without those that have fewer.
fn groups<'a, 'b>(
    paths: &'b [(&'a [u32], u64)],
    switches: usize,
) -> impl Iterator<Item = &'b [(&'a [u32], u64)]> {
    let begin = move |path: &(&'a [u32], u64)| path.0.get(..switches);
    let groups = paths.chunk_by(move |one, other| begin(one) == begin(other));
    groups.filter(move |group| begin(&group[0]).is_some())
}

/// All pairs of these nodes, by how many switches are above both.
fn pairs_by_depth(paths: &[(&[u32], u64)]) -> BTreeMap<(usize, usize), u64> {
    let mut nodes: BTreeMap<usize, u64> = BTreeMap::new();
    for (path, count) in paths {
        *nodes.entry(path.len()).or_default() += count;
    }
    let mut pairs = BTreeMap::new();
    for (depth, count) in &nodes {
        pairs.insert((*depth, *depth), pairs_of(*count));
        for (deeper, others) in nodes.range(depth + 1..) {
            pairs.insert((*depth, *deeper), count * others);
        }
    }
    pairs
}

/// Where each node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodePlaces {
    network: Arc<Network>,
    /// By node; `None` if the source does not name it.
    at: Vec<Option<usize>>,
    /// By node the number of its host; `None` of one that did not come.
    hosts: Vec<Option<usize>>,
}

impl NodePlaces {
    /// By the place and the host of each node.
    pub(super) fn new<'a>(
        network: Network,
        at: Vec<Option<usize>>,
        hosts: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let number = |host: Option<&'a str>| {
            let next = numbers.len();
            Some(*numbers.entry(host?).or_insert(next))
        };
        NodePlaces {
            network: Arc::new(network),
            at,
            hosts: hosts.map(number).collect(),
        }
    }

    pub(super) fn distance(&self, one: usize, other: usize) -> u32 {
        #[cfg(test)]
        LOOKED_UP.set(LOOKED_UP.get() + 1);
        let Some((here, there)) = self.at[one].zip(self.at[other]) else {
            return NOWHERE;
        };
        match self.hosts[one].zip(self.hosts[other]) {
            Some((host, same)) if host == same => 0,
            _ => self.network.distance(here, there),
        }
    }

    /// All pairs.
    pub(super) fn count(&self) -> PairCounts {
        let known = || (0..self.at.len()).filter_map(|node| Some((node, self.at[node]?)));
        let mut all: BTreeMap<usize, u64> = BTreeMap::new();
        let mut by_host: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, place) in known() {
            *all.entry(place).or_default() += 1;
            if let Some(host) = self.hosts[node] {
                by_host.entry(host).or_default().push(place);
            }
        }
        let mut counts = self.network.count(&all);
        // Two nodes of one host are nearer than their places are.
        for places in by_host.values().filter(|places| places.len() > 1) {
            let mut of_host: BTreeMap<usize, u64> = BTreeMap::new();
            for place in places {
                *of_host.entry(*place).or_default() += 1;
            }
            for (distance, pairs) in self.network.count(&of_host) {
                *counts.entry(distance).or_default() -= pairs;
            }
            *counts.entry(0).or_default() += pairs_of(places.len() as u64);
        }
        let known = all.values().sum();
        let of_others = pairs_of(self.at.len() as u64) - pairs_of(known);
        *counts.entry(NOWHERE).or_default() += of_others;
        counts.retain(|_, pairs| *pairs > 0);
        counts
    }

    /// Some of the nodes.
    pub(super) fn of_nodes(&self, nodes: &[usize]) -> Self {
        NodePlaces {
            network: Arc::clone(&self.network),
            at: nodes.iter().map(|node| self.at[*node]).collect(),
            hosts: nodes.iter().map(|node| self.hosts[*node]).collect(),
        }
    }
}

/// Numbers places, of which many nodes share one: the number of each node's place, and the places by number.
pub(super) fn numbered<P: Ord>(places: &[Option<P>]) -> (Vec<Option<usize>>, Vec<&P>) {
    let all: Vec<&P> = distinct(places.iter().flatten()).into_iter().collect();
    let at = |place: &Option<P>| all.binary_search(&place.as_ref()?).ok();
    (places.iter().map(at).collect(), all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at_places(network: Network, at: &[Option<usize>], hosts: &[usize]) -> NodePlaces {
        let names: Vec<String> = hosts.iter().map(|host| format!("h{host}")).collect();
        let hosts = names.iter().map(|name| Some(name.as_str()));
        NodePlaces::new(network, at.to_vec(), hosts)
    }

    /// By looking at each pair.
    fn counted(places: &NodePlaces) -> PairCounts {
        let nodes = places.at.len();
        let mut counts = PairCounts::new();
        for one in 0..nodes {
            for other in one + 1..nodes {
                let distance = places.distance(one, other);
                assert_eq!(distance, places.distance(other, one));
                *counts.entry(distance).or_default() += 1;
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn pairs_are_counted_as_if_each_was_looked_at(
            paths in proptest::collection::vec(proptest::collection::vec(0_u32..3, 0..5), 1..12),
            nodes in proptest::collection::vec((proptest::option::weighted(0.9, 0_usize..12), 0_usize..20), 0..40),
        ) {
            let at: Vec<Option<usize>> = nodes.iter().map(|(place, _)| place.map(|it| it % paths.len())).collect();
            let hosts: Vec<usize> = nodes.iter().map(|(_, host)| *host).collect();
            let tree = Network::Tree(paths);
            let places = at_places(tree, &at, &hosts);
            prop_assert_eq!(places.count(), counted(&places));
            let some: Vec<usize> = (0..nodes.len()).step_by(3).collect();
            let some = places.of_nodes(&some);
            prop_assert_eq!(some.count(), counted(&some));
            let unknown = at_places(Network::Unknown, &at, &hosts);
            prop_assert_eq!(unknown.count(), counted(&unknown));
        }
    }
}
