//! The output of `ibnetdiscover`: switches and channel adapters, each with its ports and what is at their other ends.
//!
//! A block begins with `Switch PORTS "GUID"` or `Ca PORTS "GUID"`, with the node description behind a `#`. A line of it is
//! `[PORT] "GUID"[PORT] # ...`, of an adapter `[PORT](PORT GUID) "GUID"[PORT] # ...`.
//!
//! A rank's port is looked for by its port GUID; else by host and device, which are the two words of the description of
//! an adapter whose host has set it (`n1 mlx5_0`); else by the host alone, which may be at several switches: then the
//! nearest of them counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::hosts::NamedHosts;
use super::lines::wrong;
use super::names::APART;
use super::{Endpoint, TierError};
use crate::sorting::distinct;

/// Lines that say nothing of links begin so.
const PASSED_OVER: [&str; 5] = ["Chassis ", "Non-Chassis ", "DR path ", "ibwarn:", "src/"];
const ALLOWED: &str = "allowed are blocks of ibnetdiscover (Switch PORTS \"GUID\", Ca PORTS \"GUID\", [PORT] \"GUID\"[PORT]) \
                       or lines of Slurm's topology.conf (SwitchName=NAME Nodes=LIST)";

/// Switches by number, with their neighbours, and the switches that each host is at.
#[derive(Debug, Clone, Default)]
pub(super) struct Subnet {
    switches: HashMap<String, usize>,
    names: Vec<String>,
    beside: Vec<BTreeSet<usize>>,
    hosts: HashMap<String, BTreeSet<usize>>,
    /// By host, device and port.
    devices: HashMap<String, BTreeMap<(String, u32), usize>>,
    /// By port GUID.
    ports: HashMap<u64, usize>,
}

/// Whose ports the lines are.
enum Block {
    Switch(usize),
    /// An adapter, with its host and device where the description names them.
    Adapter(Option<(String, String)>),
    /// A router.
    Other,
}

/// Whether a text is the output of `ibnetdiscover`, whole or not.
pub(super) fn is_one(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| {
        let word = line
            .split(|letter: char| letter.is_whitespace() || letter == '=')
            .next();
        ["Switch", "Ca", "Rt", "vendid", "switchguid", "caguid"].contains(&word.unwrap_or_default())
    })
}

impl Subnet {
    /// Reads the text.
    pub(super) fn read(text: &str) -> Result<Self, TierError> {
        let mut subnet = Subnet::default();
        let mut block = None;
        for (number, line) in (1..).zip(text.lines()) {
            let (facts, comment) = line.split_once('#').unwrap_or((line, ""));
            let facts = facts.trim();
            let malformed = || wrong(number, format!("{:?} is malformed: {ALLOWED}", line.trim()));
            let guid = || quoted(facts).ok_or_else(malformed);
            let has_ports = || {
                let ports = facts.split_whitespace().nth(1);
                ports.is_some_and(|ports| ports.parse::<u32>().is_ok())
            };
            match facts.split_whitespace().next() {
                None => {}
                Some("Switch" | "Ca") if !has_ports() => return Err(malformed()),
                Some("Switch") => {
                    let switch = subnet.switch(guid()?);
                    if let Some(name) = quoted(comment) {
                        subnet.names[switch] = name.to_owned();
                    }
                    block = Some(Block::Switch(switch));
                }
                Some("Ca") => {
                    guid()?;
                    block = Some(Block::Adapter(host_and_device(quoted(comment))));
                }
                Some("Rt") => block = Some(Block::Other),
                Some(port) if port.starts_with('[') => {
                    let (port, own) = own_port(port).ok_or_else(malformed)?;
                    let far = guid()?;
                    let block = block.as_ref().ok_or_else(|| {
                        wrong(number, format!("a port before any Switch or Ca: {ALLOWED}"))
                    })?;
                    if far.starts_with("S-") {
                        let far = subnet.switch(far);
                        subnet.add(block, (port, own), far);
                    }
                }
                Some(word) if word.contains('=') => {}
                _ if PASSED_OVER.iter().any(|begin| facts.starts_with(begin)) => {}
                _ => return Err(malformed()),
            }
        }
        subnet.tell_names_apart();
        match subnet.hosts.is_empty() && subnet.ports.is_empty() {
            true => Err(TierError::Nothing("node at a switch")),
            false => Ok(subnet),
        }
    }

    /// Adds the GUID to the description of switches that have the same.
    fn tell_names_apart(&mut self) {
        let mut counts: HashMap<&String, usize> = HashMap::new();
        for name in &self.names {
            *counts.entry(name).or_default() += 1;
        }
        let is_double: Vec<bool> = self.names.iter().map(|name| counts[name] > 1).collect();
        for (guid, switch) in &self.switches {
            if is_double[*switch] {
                self.names[*switch] += &format!(" {guid}");
            }
        }
    }

    /// A port with a switch at its other end.
    fn add(&mut self, block: &Block, (port, guid): (u32, Option<u64>), far: usize) {
        match block {
            Block::Switch(own) => {
                self.beside[*own].insert(far);
                self.beside[far].insert(*own);
            }
            Block::Adapter(host) => {
                if let Some(guid) = guid {
                    self.ports.insert(guid, far);
                }
                let Some((host, device)) = host else {
                    return;
                };
                self.hosts.entry(host.clone()).or_default().insert(far);
                let devices = self.devices.entry(host.clone()).or_default();
                devices.insert((device.clone(), port), far);
            }
            Block::Other => {}
        }
    }

    fn switch(&mut self, guid: &str) -> usize {
        let next = self.switches.len();
        let number = *self.switches.entry(guid.to_owned()).or_insert(next);
        if number == next {
            self.names.push(guid.to_owned());
            self.beside.push(BTreeSet::new());
        }
        number
    }

    /// The hosts that descriptions name.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &String> {
        self.hosts.keys()
    }

    /// The switches at which a rank is; `None` if it is not in the subnet.
    pub(super) fn switches_of(
        &self,
        rank: &Endpoint,
        named: &NamedHosts<'_, BTreeSet<usize>>,
    ) -> Option<Vec<usize>> {
        if let Some(switch) = rank.guid.and_then(|guid| self.ports.get(&guid)) {
            return Some(vec![*switch]);
        }
        let host = named.name(&rank.host)?;
        let by_device = || self.devices.get(host)?.get(rank.device.as_ref()?);
        if let Some(switch) = by_device() {
            return Some(vec![*switch]);
        }
        let all = self.hosts.get(host)?;
        Some(all.iter().copied().collect())
    }

    /// The switches at which each host is.
    pub(super) fn by_host(&self) -> &HashMap<String, BTreeSet<usize>> {
        &self.hosts
    }

    /// The names of switches.
    pub(super) fn name_of(&self, switches: &[usize]) -> String {
        let names = switches.iter().map(|switch| self.names[*switch].as_str());
        names.collect::<Vec<_>>().join("+")
    }

    /// How far these switches are from all.
    pub(super) fn distances_between<'a>(
        &self,
        at: impl Iterator<Item = &'a Vec<usize>>,
    ) -> LinkDistances {
        let from = distinct(at.flatten().copied()).into_iter();
        LinkDistances(
            from.map(|switch| (switch, self.distances(switch)))
                .collect(),
        )
    }

    /// The least number of links from a switch to each.
    fn distances(&self, from: usize) -> Vec<u32> {
        let mut away = vec![APART; self.names.len()];
        away[from] = 0;
        let mut next = VecDeque::from([from]);
        while let Some(switch) = next.pop_front() {
            for &beside in &self.beside[switch] {
                if away[beside] == APART {
                    away[beside] = away[switch] + 1;
                    next.push_back(beside);
                }
            }
        }
        away
    }
}

/// The links from some switches to all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinkDistances(HashMap<usize, Vec<u32>>);

impl LinkDistances {
    /// One more than the links between the nearest switches of both.
    pub(super) fn of(&self, one: &[usize], other: &[usize]) -> u32 {
        let links = one
            .iter()
            .flat_map(|from| other.iter().map(|to| self.0[from][*to]));
        match links.min() {
            Some(links) if links < APART => links + 1,
            _ => APART,
        }
    }
}

/// The host and the device in a description that the host has set; what adapters are called by themselves has other words.
fn host_and_device(description: Option<&str>) -> Option<(String, String)> {
    let words: Vec<&str> = description?.split_whitespace().collect();
    match words[..] {
        [host, device] if host != "localhost" => Some((host.to_owned(), device.to_owned())),
        _ => None,
    }
}

/// `[PORT]` or `[PORT](GUID)`, with whatever is behind it.
fn own_port(word: &str) -> Option<(u32, Option<u64>)> {
    let (number, rest) = word.strip_prefix('[')?.split_once(']')?;
    let guid = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let guid = guid.and_then(|(guid, _)| u64::from_str_radix(guid, 16).ok());
    Some((number.parse().ok()?, guid))
}

/// What is between the first two quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('"')?;
    rest.split_once('"').map(|(inner, _)| inner)
}
