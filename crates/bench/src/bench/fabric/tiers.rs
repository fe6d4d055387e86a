//! How far apart the nodes of a pair are. Only pairs of one tier are compared with each other.
//!
//! Who knows it: the engine (`SLURM_TOPOLOGY_ADDR` of each node), Slurm's `topology.conf`, what `ibnetdiscover`
//! printed, or a file of the user with a node, or a list such as `n[01-16]`, and its group in each line. Where nobody
//! does, all pairs of different hosts are of one tier.

mod files;
mod subnet;

use std::collections::HashMap;

use thiserror::Error;

use crate::sorting::{distinct, sort_by_key};
use files::{groups, topology};
use subnet::Subnet;

/// Why tiers cannot be told.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TierError {
    /// A line that is not as it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Nodes that are not in the file.
    #[error("{} of the nodes {}: {}", nodes.len(), if nodes.len() == 1 { "is not in it" } else { "are not in it" },
        nodes.iter().take(5).cloned().collect::<Vec<_>>().join(", "))]
    Unknown {
        /// Their names.
        nodes: Vec<String>,
    },
    /// What says nothing at all.
    #[error("no {0} is in it")]
    Nothing(&'static str),
}

/// Who knows how far apart nodes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TierSource {
    /// Nobody.
    Nothing,
    /// The engine: `SLURM_TOPOLOGY_ADDR` by node, such as `s0.s4.n7`.
    Addresses(Vec<Option<String>>),
    /// The text of Slurm's `topology.conf`.
    Topology(String),
    /// What `ibnetdiscover` printed.
    Subnet(String),
    /// The text of a file with a node, or a list of them, and its group in each line; `row.rack` for groups in groups.
    Groups(String),
}

/// The tier of each pair of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    nodes: usize,
    /// By rows: a place in `names`.
    of: Vec<u16>,
    names: Vec<String>,
    groups: Vec<String>,
    source: &'static str,
}

impl Tiers {
    /// The tiers of these hosts, by rank: several ranks may have one host.
    ///
    /// # Errors
    /// [`TierError`] for a text that is not as it should be, and for hosts that it does not tell of.
    pub fn of_hosts(hosts: &[String], known: &TierSource) -> Result<Self, TierError> {
        let paths = match known {
            TierSource::Nothing => return Ok(Self::of_paths_of(hosts, None, "nobody")),
            TierSource::Addresses(all) if all.iter().all(Option::is_none) => {
                return Ok(Self::of_paths_of(hosts, None, "nobody"));
            }
            TierSource::Addresses(all) => {
                let of = hosts.iter().zip(all);
                let of = of.filter_map(|(host, address)| {
                    Some((host.clone(), of_address(address.as_ref()?)))
                });
                (of.collect(), "SLURM_TOPOLOGY_ADDR")
            }
            TierSource::Topology(text) => (topology(text)?, "topology.conf"),
            TierSource::Groups(text) => (groups(text)?, "--group"),
            TierSource::Subnet(text) => return Subnet::read(text)?.tiers(hosts),
        };
        let (paths, source): (HashMap<String, Vec<String>>, _) = paths;
        let found: Vec<Option<&Vec<String>>> =
            hosts.iter().map(|host| lookup(&paths, host)).collect();
        all_known(hosts, &found)?;
        let paths: Vec<Vec<String>> = found.into_iter().flatten().cloned().collect();
        Ok(Self::of_paths_of(hosts, Some(&paths), source))
    }

    /// The tiers of nodes by the switches above them, the highest first.
    pub fn of_paths(paths: &[Vec<String>], source: &'static str) -> Self {
        let hosts: Vec<String> = (0..paths.len()).map(|node| node.to_string()).collect();
        Self::of_paths_of(&hosts, Some(paths), source)
    }

    fn of_paths_of(hosts: &[String], paths: Option<&[Vec<String>]>, source: &'static str) -> Self {
        let groups = |node: usize| paths.map_or(String::new(), |paths| paths[node].join("."));
        let distance = |one: usize, other: usize| match paths {
            _ if hosts[one] == hosts[other] => 0,
            None => APART,
            Some(paths) => {
                let (one, other) = (&paths[one], &paths[other]);
                let common = one
                    .iter()
                    .zip(other)
                    .take_while(|(one, other)| one == other);
                match (common.count(), one.len().max(other.len())) {
                    (0, _) => APART,
                    (common, all) => 1 + (all - common) as u32,
                }
            }
        };
        let apart = if paths.is_some() { "apart" } else { "fabric" };
        let name = |distance: u32| match distance {
            0 => "same-host".to_owned(),
            1 => "leaf".to_owned(),
            APART => apart.to_owned(),
            more => format!("up-{}", more - 1),
        };
        Self::by(
            (0..hosts.len()).map(groups).collect(),
            distance,
            name,
            source,
        )
    }

    /// The tiers of nodes in groups, by any distance; those that occur, the nearest first.
    fn by(
        groups: Vec<String>,
        distance: impl Fn(usize, usize) -> u32,
        name: impl Fn(u32) -> String,
        source: &'static str,
    ) -> Self {
        let nodes = groups.len();
        let all = (0..nodes * nodes).map(|place| (place / nodes, place % nodes));
        let distances: Vec<u32> = all.map(|(one, other)| distance(one, other)).collect();
        let off_diagonal = |(place, distance): (usize, &u32)| {
            (place / nodes != place % nodes).then_some(*distance)
        };
        let found = distinct(distances.iter().enumerate().filter_map(off_diagonal));
        let found: Vec<u32> = found.into_iter().collect();
        let place = |distance: &u32| found.binary_search(distance).unwrap_or(0) as u16;
        Tiers {
            nodes,
            of: distances.iter().map(place).collect(),
            names: found.into_iter().map(name).collect(),
            groups,
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
            source: "results",
        }
    }

    /// All pairs in one tier.
    pub fn one(nodes: usize) -> Self {
        Self::by(
            vec![String::new(); nodes],
            |_, _| APART,
            |_| "fabric".to_owned(),
            "nobody",
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

    /// Its name: `same-host`, `leaf` (one switch or group), `up-1` and so on (so many levels above), `hops-2` (switches
    /// between), `apart`, or `fabric` where nobody knows.
    pub fn name(&self, tier: usize) -> &str {
        &self.names[tier]
    }

    /// The group of a node, the highest first: `s0.s4`; empty where nobody knows.
    pub fn group(&self, node: usize) -> &str {
        &self.groups[node]
    }

    /// Who knows it.
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
            source: self.source,
        }
    }
}

/// Nothing is above both.
const APART: u32 = u32::MAX;

/// The distance that the name of a tier tells of.
fn nearness(name: &str) -> u32 {
    let levels = || name.split_once('-')?.1.parse::<u32>().ok();
    match name {
        "same-host" => 0,
        "leaf" => 1,
        _ => levels().map_or(APART, |levels| levels.saturating_add(1)),
    }
}

/// The switches in an address of Slurm, whose last part is the node.
fn of_address(address: &str) -> Vec<String> {
    let mut parts: Vec<String> = address.split('.').map(str::to_owned).collect();
    parts.pop();
    parts
}

/// What is known of a host: by its whole name, else by what stands before the first point in it.
fn lookup<'a, T>(of: &'a HashMap<String, T>, host: &str) -> Option<&'a T> {
    let short = host.split('.').next().unwrap_or(host);
    of.get(host).or_else(|| of.get(short))
}

fn all_known<T>(hosts: &[String], found: &[Option<T>]) -> Result<(), TierError> {
    let missing = hosts.iter().zip(found).filter(|(_, found)| found.is_none());
    let nodes: Vec<String> = missing.map(|(host, _)| host.clone()).collect();
    match nodes.is_empty() {
        true => Ok(()),
        false => Err(TierError::Unknown { nodes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    fn of_first(tiers: &Tiers) -> Vec<&str> {
        (1..tiers.nodes())
            .map(|to| tiers.name(tiers.of(0, to)))
            .collect()
    }

    #[test]
    fn the_engine_s_addresses_tell_who_shares_a_switch() {
        let all = ["s0.s4.n0", "s0.s4.n1", "s0.s5.n2", "s1.s6.n3", "s0.s4.n0"];
        let all = all.map(|it| Some(it.to_owned())).to_vec();
        let tiers = Tiers::of_hosts(
            &hosts("n0 n1 n2 n3 n0"),
            &TierSource::Addresses(all.clone()),
        )
        .unwrap();
        assert_eq!(of_first(&tiers), ["leaf", "up-1", "apart", "same-host"]);
        assert_eq!((tiers.group(2), tiers.count()), ("s0.s5", 4));
        assert_eq!(tiers.of(3, 0), tiers.of(0, 3));
        let some = tiers.of_nodes(&[3, 0]);
        assert_eq!(of_first(&some), ["apart"]);
        // Without a plugin for it, Slurm names no switch; and one that it does not name is an error.
        let without = TierSource::Addresses(vec![None; 5]);
        let without = Tiers::of_hosts(&hosts("n0 n1 n2 n3 n0"), &without).unwrap();
        let expected = ["fabric", "fabric", "fabric", "same-host"];
        assert_eq!(of_first(&without), expected);
        let some = TierSource::Addresses([&all[..4], &[None]].concat());
        let error = Tiers::of_hosts(&hosts("n0 n1 n2 n3 n9"), &some).unwrap_err();
        assert_eq!(error.to_string(), "1 of the nodes is not in it: n9");
    }

    #[test]
    fn tiers_that_were_told_before_are_the_nearest_first_again() {
        let names = hosts("apart up-10 leaf up-2 same-host");
        let of = [4, 0, 2, 0, 4, 1, 2, 3, 4];
        let tiers = Tiers::of_names(vec!["g".to_owned(); 3], &names, &of);
        assert_eq!(of_first(&tiers), ["apart", "leaf"]);
        let names: Vec<&str> = (0..5).map(|tier| tiers.name(tier)).collect();
        assert_eq!(names, ["same-host", "leaf", "up-2", "up-10", "apart"]);
        assert_eq!(tiers.name(tiers.of(2, 1)), "up-2");
        assert_eq!(tiers.name(tiers.of(1, 2)), "up-10");
    }

    #[test]
    fn files_tell_the_same() {
        let topology = "# made up\nSwitchName=s4 Nodes=n[0-1] LinkSpeed=9\nswitchname=s5 nodes=n2\n\n\
                        SwitchName=s6 Nodes=n3\nSwitchName=s0 Switches=s[4-5] # above\nSwitchName=s1 Switches=s6\n";
        let groups = "n[0-1] s0.s4\nn2 s0.s5 # a comment\n\nn3 s1.s6\n";
        let subnet = include_str!("tiers/subnet.txt");
        let names = hosts("n0 n1 n2.example.org n3");
        for (known, told) in [
            (
                TierSource::Topology(topology.to_owned()),
                ["leaf", "up-1", "apart"],
            ),
            (
                TierSource::Groups(groups.to_owned()),
                ["leaf", "up-1", "apart"],
            ),
            (
                TierSource::Subnet(subnet.to_owned()),
                ["leaf", "hops-2", "hops-4"],
            ),
        ] {
            let tiers = Tiers::of_hosts(&names, &known).unwrap();
            assert_eq!(of_first(&tiers), told, "{known:?}");
            assert!(tiers.group(0) == tiers.group(1) && tiers.group(0) != tiers.group(2));
            let unknown = Tiers::of_hosts(&hosts("n0 n7"), &known).unwrap_err();
            assert_eq!(
                unknown,
                TierError::Unknown {
                    nodes: vec!["n7".to_owned()]
                }
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_line() {
        for (known, told) in [
            (
                TierSource::Topology("Nodes=a\n".into()),
                "line 1: no SwitchName",
            ),
            (
                TierSource::Topology("SwitchName=a\n".into()),
                "line 1: neither Nodes nor Switches",
            ),
            (
                TierSource::Topology("SwitchName=a Nodes=b\n x\n".into()),
                "line 2: \"x\" has no =",
            ),
            (
                TierSource::Topology(
                    "SwitchName=s Switches=t\nSwitchName=t Switches=s\nSwitchName=t Nodes=a".into(),
                ),
                "above itself",
            ),
            (
                TierSource::Topology("SwitchName=a Nodes=n[3-1]".into()),
                "line 1: \"n[3-1]\"",
            ),
            (TierSource::Topology(String::new()), "no switch is in it"),
            (
                TierSource::Groups("a b c\n".into()),
                "line 1: a node, or a list of them, and its group",
            ),
            (
                TierSource::Groups("a b\na c\n".into()),
                "line 2: a is in another group already",
            ),
            (TierSource::Groups("# a b\n".into()), "no node is in it"),
            (
                TierSource::Subnet("vendid=0x2c9\n".into()),
                "no node is in it",
            ),
        ] {
            let error = Tiers::of_hosts(&hosts("a b"), &known)
                .unwrap_err()
                .to_string();
            assert!(error.contains(told), "{told}: {error}");
        }
    }
}
