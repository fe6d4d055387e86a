//! How far apart the nodes of a pair are. Only pairs of one tier are compared with each other.
//!
//! One scale of distances, with several sources: the launcher (`SLURM_TOPOLOGY_ADDR` of each node), Slurm's
//! `topology.conf`, the output of `ibnetdiscover`, or a file of groups. A node that its source does not name is in no
//! known place: its pairs are of the tier [`UNKNOWN`], which nothing is compared with. Without a source all pairs of
//! different hosts are of one tier.

mod files;
mod hosts;
mod lines;
mod names;
mod places;
mod subnet;

use std::path::Path;

use thiserror::Error;

use crate::sorting::sort_by_key;
use crate::time::between::HostPairs;
use files::{Paths, groups, topology};
use hosts::{NamedHosts, in_numbers};
pub use lines::LinePlace;
pub use names::meaning;
use names::{name_of, nearness};
#[cfg(test)]
pub(super) use places::looked_up;
use places::{Network, NodePlaces, numbered, pairs_of};
use subnet::Subnet;

/// The tier of pairs with a node that the source does not name.
pub const UNKNOWN: &str = "unknown";

/// Why a text cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TierError {
    /// A malformed line.
    #[error("{place}: {reason}")]
    Line {
        /// Where it is.
        place: LinePlace,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// A text without any.
    #[error("it names no {0}")]
    Nothing(&'static str),
}

/// A rank's place in the network, as far as it is known by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The host, as the launcher names it.
    pub host: String,
    /// The RDMA device and the number of its port.
    pub device: Option<(String, u32)>,
    /// The GUID of the port, where it is one of InfiniBand.
    pub guid: Option<u64>,
}

impl Endpoint {
    /// A host of which no port is known.
    pub fn of_host(host: impl Into<String>) -> Self {
        Endpoint {
            host: host.into(),
            ..Endpoint::default()
        }
    }
}

/// Where the distances come from.
#[derive(Debug, Clone)]
pub enum TierSource {
    /// Nowhere.
    Nothing,
    /// The launcher: `SLURM_TOPOLOGY_ADDR` by rank, such as `s0.s4.n7`.
    Addresses(Vec<Option<String>>),
    /// A file.
    File(TierFile),
}

/// A file of distances that was read.
#[derive(Debug, Clone)]
pub struct TierFile(Content);

#[derive(Debug, Clone)]
enum Content {
    /// By host, with the name of the source.
    Paths(Paths, &'static str),
    Subnet(Box<Subnet>),
}

impl TierFile {
    /// The text of Slurm's `topology.conf`, of which the files are read that it includes, or the output of
    /// `ibnetdiscover`, whichever it is by its content.
    ///
    /// # Errors
    /// [`TierError`] for a text that is neither, or is malformed.
    pub fn topology(text: &str, path: &Path) -> Result<Self, TierError> {
        if subnet::is_one(text) {
            return Ok(TierFile(Content::Subnet(Box::new(Subnet::read(text)?))));
        }
        let paths = topology(text, path)?;
        Ok(TierFile(Content::Paths(paths, "topology.conf")))
    }

    /// The text of a file with a node, or a list of them, and its group in each line; `row.rack` for groups in groups.
    ///
    /// # Errors
    /// [`TierError`] for a text that is malformed.
    pub fn groups(text: &str, _: &Path) -> Result<Self, TierError> {
        Ok(TierFile(Content::Paths(groups(text)?, "--group")))
    }

    /// The hosts that it names, in the order of names with their numbers.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = match &self.0 {
            Content::Paths(paths, _) => paths.keys().cloned().collect(),
            Content::Subnet(subnet) => subnet.hosts().cloned().collect(),
        };
        sort_by_key(&mut hosts, |host| in_numbers(host));
        hosts
    }

    /// What it is: `topology.conf`, `ibnetdiscover` or `--group`.
    pub fn source(&self) -> &'static str {
        match &self.0 {
            Content::Paths(_, source) => source,
            Content::Subnet(_) => "ibnetdiscover",
        }
    }
}

/// The tiers of the pairs of nodes. Those of pairs that are not measured are counted, not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    of_pairs: TierOfPairs,
    names: Vec<String>,
    /// By node.
    groups: Vec<String>,
    /// The ranks that the source does not name.
    unknown: Vec<usize>,
    source: &'static str,
}

/// How the tier of a pair is found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TierOfPairs {
    /// By where both nodes are; with the distances of the tiers.
    Placed(NodePlaces, Vec<u32>),
    /// As results have it: by place of the pair, and that of all others.
    Recorded(HostPairs, Vec<u16>, u16),
}

impl Tiers {
    /// The tiers of these ranks, of which several may be on one host; `None` for one that did not come.
    pub fn of_ranks(ranks: &[Option<Endpoint>], source: &TierSource) -> Self {
        match source {
            TierSource::Nothing => Self::on_one_level(ranks),
            TierSource::Addresses(all) if all.iter().all(Option::is_none) => {
                Self::on_one_level(ranks)
            }
            TierSource::Addresses(all) => {
                let paths = all.iter().map(|address| address.as_deref().map(of_address));
                Self::in_tree(ranks, paths.collect(), "SLURM_TOPOLOGY_ADDR")
            }
            TierSource::File(TierFile(Content::Paths(paths, source))) => {
                let named = NamedHosts::of(paths);
                let paths = ranks
                    .iter()
                    .map(|rank| named.get(&rank.as_ref()?.host).cloned());
                Self::in_tree(ranks, paths.collect(), source)
            }
            TierSource::File(TierFile(Content::Subnet(subnet))) => {
                let named = NamedHosts::of(subnet.by_host());
                let places = ranks
                    .iter()
                    .map(|rank| subnet.switches_of(rank.as_ref()?, &named));
                let places: Vec<Option<Vec<usize>>> = places.collect();
                let (at, places) = numbered(&places);
                let groups = places.iter().map(|switches| subnet.name_of(switches));
                let groups: Vec<String> = groups.collect();
                let distances = subnet.distances_between(places.iter().copied());
                let network = Network::Switches(places.into_iter().cloned().collect(), distances);
                Self::placed(ranks, (network, at), &groups, "ibnetdiscover")
            }
        }
    }

    /// The tiers of nodes by the switches above them, the highest first.
    pub fn of_paths(paths: &[Vec<String>], source: &'static str) -> Self {
        let ranks = (0..paths.len()).map(|node| Some(Endpoint::of_host(node.to_string())));
        let ranks: Vec<Option<Endpoint>> = ranks.collect();
        Self::in_tree(&ranks, paths.iter().cloned().map(Some).collect(), source)
    }

    /// Without any source.
    fn on_one_level(ranks: &[Option<Endpoint>]) -> Self {
        let at = vec![Some(0); ranks.len()];
        let groups = [String::new()];
        Self::placed(ranks, (Network::Unknown, at), &groups, "nothing")
    }

    /// By the switches or groups above each rank.
    fn in_tree(
        ranks: &[Option<Endpoint>],
        paths: Vec<Option<Vec<String>>>,
        source: &'static str,
    ) -> Self {
        let (at, paths) = numbered(&paths);
        let groups: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
        Self::placed(ranks, (Network::tree(&paths), at), &groups, source)
    }

    /// By the place of each rank in a network, of which each has a name.
    fn placed(
        ranks: &[Option<Endpoint>],
        (network, at): (Network, Vec<Option<usize>>),
        names: &[String],
        source: &'static str,
    ) -> Self {
        let unknown = (0..ranks.len()).filter(|rank| at[*rank].is_none() && ranks[*rank].is_some());
        let unknown = unknown.collect();
        let group = |at: &Option<usize>| at.map_or(String::new(), |at| names[at].clone());
        let groups = at.iter().map(group).collect();
        let hosts = ranks.iter().map(|rank| Some(rank.as_ref()?.host.as_str()));
        let places = NodePlaces::new(network, at, hosts);
        let distances: Vec<u32> = places.count().into_keys().collect();
        Tiers {
            names: distances
                .iter()
                .map(|distance| name_of(*distance))
                .collect(),
            of_pairs: TierOfPairs::Placed(places, distances),
            groups,
            unknown,
            source,
        }
    }

    /// Tiers that were told before, by name: a place in `names` of each pair that was measured, by its place, and of all
    /// others.
    ///
    /// # Panics
    /// When there are pairs of other nodes, not a place for each, or no name for a place.
    pub fn of_names(
        groups: Vec<String>,
        names: &[String],
        (pairs, of): (HostPairs, &[u16]),
        others: u16,
    ) -> Self {
        assert_eq!((pairs.hosts(), pairs.places()), (groups.len(), of.len()));
        let mut order: Vec<usize> = (0..names.len()).collect();
        sort_by_key(&mut order, |place| {
            (nearness(&names[*place]), &names[*place])
        });
        let mut places = vec![0; names.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new as u16;
        }
        let place = |old: u16| places[usize::from(old)];
        let of = of.iter().map(|old| place(*old)).collect();
        Tiers {
            of_pairs: TierOfPairs::Recorded(pairs, of, place(others)),
            names: order.iter().map(|old| names[*old].clone()).collect(),
            groups,
            unknown: Vec::new(),
            source: "results",
        }
    }

    /// All pairs in one tier.
    pub fn one(nodes: usize) -> Self {
        let hosts = (0..nodes).map(|node| Some(Endpoint::of_host(node.to_string())));
        Self::on_one_level(&hosts.collect::<Vec<_>>())
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.groups.len()
    }

    /// How many tiers there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The tier of a pair, from 0: the nearest first.
    pub fn of(&self, from: usize, to: usize) -> usize {
        match &self.of_pairs {
            TierOfPairs::Placed(places, distances) => {
                let distance = places.distance(from, to);
                distances.binary_search(&distance).unwrap_or(0)
            }
            TierOfPairs::Recorded(pairs, of, others) => {
                let place = pairs.place(from, to);
                usize::from(place.map_or(*others, |place| of[place]))
            }
        }
    }

    /// Its name: `same-host`, `leaf` (one switch or group), `up-1` (one level above, a pod), `up-2` and so on, `hops-3`
    /// (an odd number of links between switches), `apart` (nothing in common), [`UNKNOWN`], or `fabric` without a source.
    pub fn name(&self, tier: usize) -> &str {
        &self.names[tier]
    }

    /// Whether the distance of the pairs of a tier is not known, so that they are not compared.
    pub fn is_unknown(&self, tier: usize) -> bool {
        self.names[tier] == UNKNOWN
    }

    /// Whether there are such pairs.
    pub fn has_unknown(&self) -> bool {
        self.names.iter().any(|name| name == UNKNOWN)
    }

    /// The ranks that came and that the source does not name.
    pub fn unknown(&self) -> &[usize] {
        &self.unknown
    }

    /// The unordered pairs of each tier, the nearest first.
    pub fn pairs(&self) -> Vec<(&str, u64)> {
        let counts = match &self.of_pairs {
            TierOfPairs::Placed(places, distances) => {
                let counts = places.count();
                let count = |distance| counts.get(distance).copied().unwrap_or(0);
                distances.iter().map(count).collect()
            }
            TierOfPairs::Recorded(pairs, _, others) => {
                let mut counts = vec![0; self.names.len()];
                for (from, to) in pairs.each().filter(|(from, to)| from < to) {
                    counts[self.of(from, to)] += 1;
                }
                let recorded: u64 = counts.iter().sum();
                counts[usize::from(*others)] += pairs_of(self.nodes() as u64) - recorded;
                counts
            }
        };
        self.names.iter().map(String::as_str).zip(counts).collect()
    }

    /// The group of a node, the highest first: `s0.s4`; empty if unknown.
    pub fn group(&self, node: usize) -> &str {
        &self.groups[node]
    }

    /// Where the distances come from: `SLURM_TOPOLOGY_ADDR`, `topology.conf`, `ibnetdiscover`, `--group`, `results` or
    /// `nothing`.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The tiers of some of the nodes.
    pub fn of_nodes(&self, nodes: &[usize]) -> Tiers {
        let of_pairs = match &self.of_pairs {
            TierOfPairs::Placed(places, distances) => {
                TierOfPairs::Placed(places.of_nodes(nodes), distances.clone())
            }
            TierOfPairs::Recorded(pairs, of, others) => {
                let some = pairs.of_hosts(nodes);
                let mut tiers = vec![*others; some.places()];
                for (from, to) in some.each() {
                    let here = some
                        .place(from, to)
                        .zip(pairs.place(nodes[from], nodes[to]));
                    if let Some((here, there)) = here {
                        tiers[here] = of[there];
                    }
                }
                TierOfPairs::Recorded(some, tiers, *others)
            }
        };
        let is_unknown = |node: &usize| self.unknown.binary_search(&nodes[*node]).is_ok();
        Tiers {
            of_pairs,
            names: self.names.clone(),
            groups: nodes
                .iter()
                .map(|node| self.groups[*node].clone())
                .collect(),
            unknown: (0..nodes.len()).filter(is_unknown).collect(),
            source: self.source,
        }
    }
}

/// The switches in an address of Slurm, whose last part is the node.
fn of_address(address: &str) -> Vec<String> {
    let mut parts: Vec<String> = address.split('.').map(str::to_owned).collect();
    parts.pop();
    parts
}

#[cfg(test)]
mod tests;
