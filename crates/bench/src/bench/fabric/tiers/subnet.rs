//! What `ibnetdiscover` prints: switches and channel adapters, each with its ports and what is at their other ends.
//!
//! A block begins with `Switch PORTS "GUID"` or `Ca PORTS "GUID"`, with the description behind a `#`; an adapter's
//! begins with the name of its host. A line of it is `[PORT] "GUID"[PORT] # ...`.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::{TierError, Tiers, all_known, lookup};
use crate::sorting::distinct;

/// Switches by number, with their neighbours, and the switches that each host is at.
#[derive(Debug, Default)]
pub(super) struct Subnet {
    switches: HashMap<String, usize>,
    names: Vec<String>,
    beside: Vec<BTreeSet<usize>>,
    hosts: HashMap<String, BTreeSet<usize>>,
}

/// Whose ports the lines tell of.
enum Block {
    Switch(usize),
    Host(String),
}

impl Subnet {
    /// Reads the text; lines that say nothing of links are passed over.
    pub(super) fn read(text: &str) -> Result<Self, TierError> {
        let mut subnet = Subnet::default();
        let mut block = None;
        for line in text.lines() {
            let (facts, comment) = line.split_once('#').unwrap_or((line, ""));
            let mut words = facts.split_whitespace();
            let told = quoted(facts);
            match (words.next(), told) {
                (Some("Switch"), Some(guid)) => {
                    let number = subnet.switch(guid);
                    if let Some(name) = quoted(comment) {
                        subnet.names[number] = name.to_owned();
                    }
                    block = Some(Block::Switch(number));
                }
                (Some("Ca"), Some(_)) => {
                    let host = quoted(comment).and_then(|it| it.split_whitespace().next());
                    block = host.map(|host| Block::Host(host.to_owned()));
                }
                (Some(port), Some(guid)) if port.starts_with('[') && guid.starts_with("S-") => {
                    let other = subnet.switch(guid);
                    match &block {
                        Some(Block::Switch(own)) => subnet.link(*own, other),
                        Some(Block::Host(host)) => {
                            subnet.hosts.entry(host.clone()).or_default().insert(other);
                        }
                        None => {}
                    }
                }
                (Some(port), _) if port.starts_with('[') => {}
                _ => block = None,
            }
        }
        match subnet.hosts.is_empty() {
            true => Err(TierError::Nothing("node")),
            false => Ok(subnet),
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

    fn link(&mut self, one: usize, other: usize) {
        self.beside[one].insert(other);
        self.beside[other].insert(one);
    }

    /// The tiers of hosts, by the least number of links between their switches.
    pub(super) fn tiers(&self, hosts: &[String]) -> Result<Tiers, TierError> {
        let found: Vec<Option<&BTreeSet<usize>>> =
            hosts.iter().map(|host| lookup(&self.hosts, host)).collect();
        all_known(hosts, &found)?;
        let at: Vec<&BTreeSet<usize>> = found.into_iter().flatten().collect();
        let leaves = distinct(at.iter().flat_map(|leaves| leaves.iter().copied()));
        let away: HashMap<usize, Vec<u32>> = leaves
            .into_iter()
            .map(|leaf| (leaf, self.distances(leaf)))
            .collect();
        let groups = at.iter().map(|leaves| {
            let names: Vec<&str> = leaves
                .iter()
                .map(|leaf| self.names[*leaf].as_str())
                .collect();
            names.join("+")
        });
        let distance = |one: usize, other: usize| {
            let pairs = at[one]
                .iter()
                .flat_map(|from| at[other].iter().map(|to| away[from][*to]));
            match hosts[one] == hosts[other] {
                true => 0,
                false => pairs.min().unwrap_or(u32::MAX).saturating_add(1),
            }
        };
        let name = |distance: u32| match distance {
            0 => "same-host".to_owned(),
            1 => "leaf".to_owned(),
            u32::MAX => "apart".to_owned(),
            more => format!("hops-{}", more - 1),
        };
        Ok(Tiers::by(groups.collect(), distance, name, "ibnetdiscover"))
    }

    /// The least number of links from a switch to each.
    fn distances(&self, from: usize) -> Vec<u32> {
        let mut away = vec![u32::MAX; self.names.len()];
        away[from] = 0;
        let mut next = VecDeque::from([from]);
        while let Some(switch) = next.pop_front() {
            for &beside in &self.beside[switch] {
                if away[beside] == u32::MAX {
                    away[beside] = away[switch] + 1;
                    next.push_back(beside);
                }
            }
        }
        away
    }
}

/// What stands between the first two quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('"')?;
    rest.split_once('"').map(|(inner, _)| inner)
}
