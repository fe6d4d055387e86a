//! What an earlier run left for `--resume`, and whether it can go on.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::driver::command_line::settings_of;
use crate::launch::identity::Identity;
use crate::results::document::Program;
use crate::results::finding::Findings;
use crate::results::folder::EarlierFolder;
use crate::results::schema::fabric::FABRIC;
use crate::results::{ReportError, json};

/// `fabric.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FabricDocument {
    pub(super) hcabench: Program,
    /// When it began, in RFC 3339; empty of an earlier version.
    #[serde(default)]
    pub(super) started_at: String,
    /// With the program's name.
    pub(super) command_line: Vec<String>,
    pub(super) engine: Value,
    pub(super) job: Value,
    pub(super) ranks: u32,
    /// The names in the tables, by rank.
    pub(super) nodes: Vec<String>,
    pub(super) there: Vec<Member>,
    pub(super) schedule: Value,
    /// What is measured between two ranks.
    pub(super) settings: Value,
    /// Where the tiers come from, the pairs of each, and the nodes that are in none.
    #[serde(default)]
    pub(super) tiers: Value,
    /// What clocks contradict each other in over third hosts: no rank is blamed for it.
    #[serde(default)]
    pub(super) contradictions: Vec<String>,
    /// The rounds in which they do. A run that goes on measures them again.
    #[serde(default)]
    pub(super) contradicted_rounds: Vec<u32>,
    /// The first row in runs.csv, by its order, of each time that the run went on. Clocks of before are others: a host may
    /// have been booted since, and each process measures the rate of a counter for itself.
    #[serde(default)]
    pub(super) resumed_at: Vec<u64>,
    /// Ways that are proved to be slower than they have to be, the slowest first.
    #[serde(default)]
    pub(super) slow_ways: Vec<SlowWay>,
    /// What must be known of ranks to believe the figures.
    #[serde(default)]
    pub(super) findings: Findings,
}

/// A way of which third hosts prove that it is slower than it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SlowWay {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) slower_by_at_least_ns: u64,
}

/// A rank that came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) rank: u32,
    /// As the launcher calls it.
    pub(super) node: String,
    pub(super) boot_id: String,
    pub(super) topology: Option<String>,
    pub(super) serves: String,
    /// What it measured with; null if it could not.
    pub(super) port: Value,
}

impl Member {
    /// Whether it could measure. Another node may come in its place where it could not.
    pub(super) fn took_part(&self) -> bool {
        !self.port.is_null()
    }
}

/// An earlier run that is to go on.
#[derive(Debug)]
pub(super) struct EarlierFabric {
    pub(super) folder: EarlierFolder,
    pub(super) document: FabricDocument,
}

impl EarlierFabric {
    /// Reads what is there of a run that was broken off; the error: why it cannot go on with this command line.
    pub(super) fn read(
        folder: &Path,
        identity: &Identity,
        command_line: &[String],
    ) -> Result<Self, String> {
        let failed = |error: ReportError| error.to_string();
        let folder = EarlierFolder::lock(folder).map_err(failed)?;
        let document: FabricDocument = json::read(&folder.path().join(FABRIC)).map_err(failed)?;
        folder.check_incomplete()?;
        let differs = document.differs(identity.ranks, command_line);
        differs.map_or(Ok(()), Err)?;
        Ok(EarlierFabric { folder, document })
    }

    /// The names that the launcher gave the ranks that took part, by rank.
    pub(super) fn names(&self) -> BTreeMap<u32, &str> {
        let there = self.document.there.iter();
        there
            .filter(|member| member.took_part())
            .map(|member| (member.rank, member.node.as_str()))
            .collect()
    }

    /// Why it cannot go on with these nodes, if it cannot.
    pub(super) fn other_nodes<'a>(
        &self,
        now: impl Iterator<Item = (u32, &'a str)>,
    ) -> Option<String> {
        let names = self.names();
        for (rank, now) in now {
            if let Some(there) = names.get(&rank).filter(|there| **there != now) {
                return Some(format!(
                    "the nodes differ: rank {rank} was {there} there, and is {now} now"
                ));
            }
        }
        None
    }
}

impl FabricDocument {
    /// What differs from the run that is to go on in it, in words.
    fn differs(&self, ranks: u32, command_line: &[String]) -> Option<String> {
        if self.ranks != ranks {
            let there = self.ranks;
            return Some(format!(
                "the number of ranks differs: {there} there, {ranks} now"
            ));
        }
        if let Some(differs) = self.hcabench.differs(&Program::this()) {
            return Some(differs);
        }
        let there = settings_of(self.command_line.iter().cloned());
        let now = settings_of(command_line.iter().cloned());
        let mut names = there.keys().chain(now.keys());
        let name = names.find(|name| there.get(*name) != now.get(*name))?;
        let told = |value: Option<&String>| match value {
            None => "not given".to_owned(),
            Some(value) if value.is_empty() => "given".to_owned(),
            Some(value) => value.clone(),
        };
        Some(format!(
            "the settings differ in --{name}: {} there, {} now",
            told(there.get(name)),
            told(now.get(name))
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_run_goes_on_with_its_ranks_and_settings_only() {
        let document = FabricDocument {
            hcabench: Program::this(),
            started_at: String::new(),
            command_line: words("hcabench fabric --burst 200 --inline --rank 0 --ranks 4 --out x"),
            engine: Value::Null,
            job: Value::Null,
            ranks: 4,
            nodes: Vec::new(),
            there: Vec::new(),
            schedule: Value::Null,
            settings: Value::Null,
            tiers: Value::Null,
            contradictions: Vec::new(),
            contradicted_rounds: Vec::new(),
            resumed_at: Vec::new(),
            slow_ways: Vec::new(),
            findings: Findings::default(),
        };
        let same =
            words("hcabench fabric --inline --resume x --burst=200 --fail-above 5us --quiet");
        assert_eq!(document.differs(4, &same), None);
        for (ranks, line, told) in [
            (5, "hcabench fabric --burst 200 --inline", "4 there, 5 now"),
            (
                4,
                "hcabench fabric --burst 300 --inline",
                "--burst: 200 there, 300 now",
            ),
            (
                4,
                "hcabench fabric --burst 200",
                "--inline: given there, not given now",
            ),
            (
                4,
                "hcabench fabric --burst 200 --inline --size 64",
                "--size: not given there, 64 now",
            ),
            (
                4,
                "hcabench fabric --burst 200 --inline --rounds 2",
                "--rounds: not given there",
            ),
        ] {
            let differs = document.differs(ranks, &words(line)).unwrap();
            assert!(differs.contains(told), "{differs}");
        }
        let mut older = document.clone();
        older.hcabench.version = "0.0.1".to_owned();
        let differs = older.differs(4, &same).unwrap();
        assert!(differs.contains("measured by hcabench 0.0.1"), "{differs}");
    }
}
