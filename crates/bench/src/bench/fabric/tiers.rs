//! How far apart the nodes of a pair are. Only pairs of one tier are compared with each other.
//!
//! One scale of distances, with several sources: the engine (`SLURM_TOPOLOGY_ADDR` of each node), Slurm's
//! `topology.conf`, the output of `ibnetdiscover`, or a file of groups. A node that its source does not name is in no
//! known place: its pairs are of the tier [`UNKNOWN`], which nothing is compared with. Without a source all pairs of
//! different hosts are of one tier.

mod files;
mod subnet;

use std::collections::HashMap;

use thiserror::Error;

use crate::sorting::{distinct, sort_by_key};
use files::{Paths, groups, topology};
use subnet::Subnet;

/// The tier of pairs with a node that the source does not name.
pub const UNKNOWN: &str = "unknown";

/// Why a text cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TierError {
    /// A malformed line.
    #[error("line {line}: {reason}")]
    Line {
        /// From 1.
        line: usize,
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
    /// The host, as the engine names it.
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
    /// The engine: `SLURM_TOPOLOGY_ADDR` by rank, such as `s0.s4.n7`.
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
    /// The text of Slurm's `topology.conf` or the output of `ibnetdiscover`, whichever it is by its content.
    ///
    /// # Errors
    /// [`TierError`] for a text that is neither, or is malformed.
    pub fn topology(text: &str) -> Result<Self, TierError> {
        if subnet::is_one(text) {
            return Ok(TierFile(Content::Subnet(Box::new(Subnet::read(text)?))));
        }
        let paths = topology(text)?;
        Ok(TierFile(Content::Paths(paths, "topology.conf")))
    }

    /// The text of a file with a node, or a list of them, and its group in each line; `row.rack` for groups in groups.
    ///
    /// # Errors
    /// [`TierError`] for a text that is malformed.
    pub fn groups(text: &str) -> Result<Self, TierError> {
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

/// The tier of each pair of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    nodes: usize,
    /// By rows: a place in `names`.
    of: Vec<u16>,
    names: Vec<String>,
    groups: Vec<String>,
    /// The ranks that the source does not name.
    unknown: Vec<usize>,
    source: &'static str,
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
                let places = all.iter().map(|address| address.as_deref().map(of_address));
                Self::of_places(ranks, places, between, &joined, "SLURM_TOPOLOGY_ADDR")
            }
            TierSource::File(TierFile(Content::Paths(paths, source))) => {
                let named = NamedHosts::of(paths);
                let places = ranks
                    .iter()
                    .map(|rank| named.get(&rank.as_ref()?.host).cloned());
                Self::of_places(ranks, places, between, &joined, source)
            }
            TierSource::File(TierFile(Content::Subnet(subnet))) => {
                let named = NamedHosts::of(subnet.by_host());
                let places = ranks
                    .iter()
                    .map(|rank| subnet.switches_of(rank.as_ref()?, &named));
                let places: Vec<_> = places.collect();
                let distances = subnet.distances_between(places.iter().flatten());
                let distance = |one: &Vec<usize>, other: &Vec<usize>| distances.of(one, other);
                let group = |at: &Vec<usize>| subnet.name_of(at);
                Self::of_places(ranks, places.into_iter(), distance, &group, "ibnetdiscover")
            }
        }
    }

    /// The tiers of nodes by the switches above them, the highest first.
    pub fn of_paths(paths: &[Vec<String>], source: &'static str) -> Self {
        let ranks = (0..paths.len()).map(|node| Some(Endpoint::of_host(node.to_string())));
        let ranks: Vec<Option<Endpoint>> = ranks.collect();
        let places = paths.iter().cloned().map(Some);
        Self::of_places(&ranks, places, between, &joined, source)
    }

    /// Without any source.
    fn on_one_level(ranks: &[Option<Endpoint>]) -> Self {
        let places = ranks.iter().map(|_| Some(()));
        Self::of_places(ranks, places, |_, _| FABRIC, &|_| String::new(), "nothing")
    }

    /// By the place of each rank in the network, of which many share one, and the distance of two places.
    fn of_places<P: Ord>(
        ranks: &[Option<Endpoint>],
        places: impl Iterator<Item = Option<P>>,
        distance: impl Fn(&P, &P) -> u32,
        group: &dyn Fn(&P) -> String,
        source: &'static str,
    ) -> Self {
        let places: Vec<Option<P>> = places.collect();
        let distinct_places: Vec<&P> = distinct(places.iter().flatten()).into_iter().collect();
        let at = |place: &Option<P>| {
            let place = place.as_ref()?;
            distinct_places.binary_search(&place).ok()
        };
        let at: Vec<Option<usize>> = places.iter().map(at).collect();
        let count = distinct_places.len();
        let between = (0..count * count)
            .map(|pair| distance(distinct_places[pair / count], distinct_places[pair % count]));
        let between: Vec<u32> = between.collect();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let hosts = ranks.iter().map(|rank| {
            let next = numbers.len();
            let host = rank.as_ref()?.host.as_str();
            Some(*numbers.entry(host).or_insert(next))
        });
        let hosts: Vec<Option<usize>> = hosts.collect();
        let groups = at
            .iter()
            .map(|at| at.map_or(String::new(), |at| group(distinct_places[at])));
        let unknown = (0..ranks.len()).filter(|rank| at[*rank].is_none() && ranks[*rank].is_some());
        let distance = |one: usize, other: usize| match at[one].zip(at[other]) {
            Some(_) if hosts[one] == hosts[other] => 0,
            Some((one, other)) => between[one * count + other],
            None => NOWHERE,
        };
        Self::by(groups.collect(), unknown.collect(), distance, source)
    }

    /// The tiers of nodes in groups, by any distance; those that occur, the nearest first.
    fn by(
        groups: Vec<String>,
        unknown: Vec<usize>,
        distance: impl Fn(usize, usize) -> u32,
        source: &'static str,
    ) -> Self {
        let nodes = groups.len();
        let pairs = || (0..nodes).flat_map(|one| (0..nodes).map(move |other| (one, other)));
        // Few distances occur, of which most pairs have the one before theirs.
        let mut found: Vec<u32> = Vec::new();
        for (one, other) in pairs().filter(|(one, other)| one != other) {
            let distance = distance(one, other);
            if found.last() != Some(&distance) {
                match found.iter().position(|known| *known == distance) {
                    Some(at) => {
                        let last = found.len() - 1;
                        found.swap(at, last);
                    }
                    None => found.push(distance),
                }
            }
        }
        found.sort_unstable();
        let place = |distance: u32| found.binary_search(&distance).unwrap_or(0) as u16;
        Tiers {
            nodes,
            of: pairs()
                .map(|(one, other)| place(distance(one, other)))
                .collect(),
            names: found.iter().map(|distance| name_of(*distance)).collect(),
            groups,
            unknown,
            source,
        }
    }

    /// Tiers that were told before, by name: of each pair, by rows, a place in `names`.
    ///
    /// # Panics
    /// When there is not a place for each of both, or no name for a place.
    pub fn of_names(groups: Vec<String>, names: &[String], of: &[u16]) -> Self {
        assert_eq!(of.len(), groups.len() * groups.len());
        let mut order: Vec<usize> = (0..names.len()).collect();
        sort_by_key(&mut order, |place| {
            (nearness(&names[*place]), &names[*place])
        });
        let mut places = vec![0; names.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new as u16;
        }
        Tiers {
            nodes: groups.len(),
            of: of.iter().map(|old| places[usize::from(*old)]).collect(),
            names: order.iter().map(|old| names[*old].clone()).collect(),
            groups,
            unknown: Vec::new(),
            source: "results",
        }
    }

    /// All pairs in one tier.
    pub fn one(nodes: usize) -> Self {
        Self::by(
            vec![String::new(); nodes],
            Vec::new(),
            |_, _| FABRIC,
            "nothing",
        )
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many tiers there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The tier of a pair, from 0: the nearest first.
    pub fn of(&self, from: usize, to: usize) -> usize {
        usize::from(self.of[from * self.nodes + to])
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
        let mut counts = vec![0_u64; self.names.len()];
        for from in 0..self.nodes {
            for to in from + 1..self.nodes {
                counts[self.of(from, to)] += 1;
            }
        }
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
    pub fn of_nodes(&self, places: &[usize]) -> Tiers {
        let pairs = places
            .iter()
            .flat_map(|&from| places.iter().map(move |&to| (from, to)));
        Tiers {
            nodes: places.len(),
            of: pairs.map(|(from, to)| self.of(from, to) as u16).collect(),
            names: self.names.clone(),
            groups: places
                .iter()
                .map(|&node| self.groups[node].clone())
                .collect(),
            unknown: (0..places.len())
                .filter(|place| self.unknown.contains(&places[*place]))
                .collect(),
            source: self.source,
        }
    }
}

/// Nothing is above both.
const APART: u32 = u32::MAX - 2;
/// Without a source.
const FABRIC: u32 = u32::MAX - 1;
/// At least one has no place.
const NOWHERE: u32 = u32::MAX;

/// The name of a distance: 0 on one host, else one more than the links between the two switches, of which a level of a
/// tree is two.
fn name_of(distance: u32) -> String {
    match distance {
        0 => "same-host".to_owned(),
        1 => "leaf".to_owned(),
        APART => "apart".to_owned(),
        FABRIC => "fabric".to_owned(),
        NOWHERE => UNKNOWN.to_owned(),
        more if more % 2 == 1 => format!("up-{}", more / 2),
        more => format!("hops-{}", more - 1),
    }
}

/// What the name of a tier means.
pub fn meaning(name: &str) -> String {
    match nearness(name) {
        0 => "on one host".to_owned(),
        1 => "at one switch, or in one group".to_owned(),
        3 => "in one pod: one level above their switches".to_owned(),
        APART => "without a switch or group in common".to_owned(),
        FABRIC => "on different hosts".to_owned(),
        NOWHERE => "at least one is not named: not judged".to_owned(),
        more if more % 2 == 1 => format!("across pods: {} levels above their switches", more / 2),
        more => format!("{} links between their switches", more - 1),
    }
}

/// The distance that a name is of.
fn nearness(name: &str) -> u32 {
    let number = |unit: &str| name.strip_prefix(unit)?.parse::<u32>().ok();
    match name {
        "same-host" => 0,
        "leaf" => 1,
        "fabric" => FABRIC,
        UNKNOWN => NOWHERE,
        _ => {
            let up = number("up-").map(|levels| levels.saturating_mul(2));
            let links = up.or_else(|| number("hops-"));
            links.map_or(APART, |links| links.saturating_add(1).min(APART))
        }
    }
}

/// The distance of two paths from the highest switch down.
#[expect(clippy::ptr_arg, reason = "it is a function of places")]
fn between(one: &Vec<String>, other: &Vec<String>) -> u32 {
    let both = one.iter().zip(other);
    let common = both.take_while(|(one, other)| one == other).count();
    match common {
        0 => APART,
        common => 1 + (one.len() + other.len() - 2 * common) as u32,
    }
}

#[expect(clippy::ptr_arg, reason = "it is a function of places")]
fn joined(path: &Vec<String>) -> String {
    path.join(".")
}

/// The switches in an address of Slurm, whose last part is the node.
fn of_address(address: &str) -> Vec<String> {
    let mut parts: Vec<String> = address.split('.').map(str::to_owned).collect();
    parts.pop();
    parts
}

/// Hosts by name: by the whole one, else ignoring case, and where one of both has no domain, without that of the other.
struct NamedHosts<'a, T> {
    whole: &'a HashMap<String, T>,
    /// By the part before the first point, in lower case; more than one name is no name.
    short: HashMap<String, Vec<&'a String>>,
}

impl<'a, T> NamedHosts<'a, T> {
    fn of(whole: &'a HashMap<String, T>) -> Self {
        let mut short: HashMap<String, Vec<&String>> = HashMap::new();
        for name in whole.keys() {
            short.entry(start_of(name)).or_default().push(name);
        }
        NamedHosts { whole, short }
    }

    fn name(&self, host: &str) -> Option<&'a String> {
        if let Some((name, _)) = self.whole.get_key_value(host) {
            return Some(name);
        }
        let is_same = |name: &str| {
            let has_no_domain = !name.contains('.') || !host.contains('.');
            has_no_domain || name.eq_ignore_ascii_case(host)
        };
        let all = self.short.get(&start_of(host))?;
        match all.iter().filter(|name| is_same(name)).collect::<Vec<_>>()[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    fn get(&self, host: &str) -> Option<&'a T> {
        self.whole.get(self.name(host)?)
    }
}

/// The part before the first point, in lower case.
fn start_of(host: &str) -> String {
    let start = host.split('.').next().unwrap_or(host);
    start.to_ascii_lowercase()
}

/// A name in parts, so that `n10` is behind `n9`.
fn in_numbers(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digit = rest.find(|letter: char| letter.is_ascii_digit());
        let (text, behind) = rest.split_at(digit.unwrap_or(rest.len()));
        let end = behind.find(|letter: char| !letter.is_ascii_digit());
        let (number, behind) = behind.split_at(end.unwrap_or(behind.len()));
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests;
