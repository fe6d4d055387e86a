//! Where the tiers come from: the file that the user gave, the ports of ranks in it, and what is recorded of it.

use std::net::Ipv6Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::FabricArguments;
use super::earlier::FabricDocument;
use crate::arguments::UsageError;
use crate::bench::fabric::tiers::{Endpoint, TierError, TierFile, Tiers};
use crate::results::finding::Finding;
use crate::results::finding::kinds::{TIER_TOO_SMALL, TIER_UNKNOWN};

/// As many hosts are named in a finding.
const NAMED: usize = 8;

type Parse = fn(&str, &Path) -> Result<TierFile, TierError>;

/// The option that names the file, its path, and how it is read.
fn given(arguments: &FabricArguments) -> Option<(&'static str, &Path, Parse)> {
    match (&arguments.topology, &arguments.group) {
        (Some(path), _) => Some(("--topology", path, TierFile::topology)),
        (None, Some(path)) => Some(("--group", path, TierFile::groups)),
        (None, None) => None,
    }
}

/// Reads the file of `--topology` or `--group`, if there is one.
pub(super) fn read(arguments: &FabricArguments) -> anyhow::Result<Option<TierFile>> {
    let Some((option, path, parse)) = given(arguments) else {
        return Ok(None);
    };
    let refused = |reason: String| UsageError(format!("{option} {}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let file = parse(&text, path).map_err(|error| refused(error.to_string()))?;
    Ok(Some(file))
}

/// A rank's host, and its port by what it has prepared. The lower half of the GID of an InfiniBand port is its GUID.
pub(super) fn endpoint(host: &str, prepared: &Value) -> Endpoint {
    let device = prepared["device"].as_str();
    let port = prepared["port"].as_u64();
    let gid = prepared["gid"].as_str();
    let gid = gid.and_then(|gid| gid.parse::<Ipv6Addr>().ok());
    Endpoint {
        host: host.to_owned(),
        device: device
            .zip(port)
            .map(|(device, port)| (device.to_owned(), port as u32)),
        guid: gid.map(|gid| u128::from(gid) as u64),
    }
}

/// Refuses a file that names none of the hosts.
pub(super) fn is_of_the_ranks(
    arguments: &FabricArguments,
    file: &TierFile,
    ranks: &[Option<Endpoint>],
    tiers: &Tiers,
) -> anyhow::Result<()> {
    let mut there = ranks.iter().flatten();
    if tiers.unknown().len() < there.clone().count() {
        return Ok(());
    }
    let Some((option, path, _)) = given(arguments) else {
        return Ok(());
    };
    let example = |host: Option<String>| host.unwrap_or_default();
    Err(UsageError(format!(
        "{option} {}: it names none of the hosts of the ranks, which are called as {}: it has names such as {}: the names \
         must be the same, but for the domain",
        path.display(),
        example(there.next().map(|rank| rank.host.clone())),
        example(file.hosts().into_iter().next()),
    ))
    .into())
}

/// Why a run cannot go on with these tiers: those of its rows are others.
pub(super) fn moved(earlier: &FabricDocument, now: &Tiers) -> Option<String> {
    let groups = earlier.tiers["groups"].as_array()?;
    let there = earlier.there.iter().filter(|member| member.took_part());
    let ranks = there.map(|member| member.rank as usize);
    let other = |rank: &usize| {
        let was = groups.get(*rank).and_then(Value::as_str);
        *rank < now.nodes() && was.is_some_and(|was| was != now.group(*rank))
    };
    let rank = ranks.into_iter().find(other)?;
    let in_words = |group: &str| match group {
        "" => "unknown".to_owned(),
        group => group.to_owned(),
    };
    Some(format!(
        "the tiers differ: the place of {} in the network was {} there, and is {} now",
        earlier.nodes.get(rank).map_or("?", String::as_str),
        in_words(groups[rank].as_str().unwrap_or_default()),
        in_words(now.group(rank))
    ))
}

/// For `fabric.json`.
pub(super) fn recorded(arguments: &FabricArguments, tiers: &Tiers, names: &[String]) -> Value {
    let file = given(arguments).map(|(_, path, _)| path);
    let unknown: Vec<&String> = tiers.unknown().iter().map(|rank| &names[*rank]).collect();
    let pairs: serde_json::Map<String, Value> = tiers
        .pairs()
        .into_iter()
        .map(|(name, pairs)| (name.to_owned(), pairs.into()))
        .collect();
    json!({
        "source": tiers.source(),
        "file": file.map(|file| file.display().to_string()),
        "pairs": pairs,
        "unknown": unknown,
        "groups": (0..tiers.nodes()).map(|rank| tiers.group(rank)).collect::<Vec<_>>(),
    })
}

/// What must be known of tiers with too few pairs.
pub(super) fn of_small_tiers(tiers: &Tiers, small: &[usize]) -> Option<Finding> {
    let mut names = small.iter().map(|tier| tiers.name(*tier));
    let found = Finding::of(&TIER_TOO_SMALL).listed("tiers", names.next()?);
    Some(names.fold(found, |found, name| found.listed("tiers", name)))
}

/// What must be known of nodes that the source does not name.
pub(super) fn finding(tiers: &Tiers, names: &[String]) -> Option<Finding> {
    let unknown = tiers.unknown();
    if unknown.is_empty() {
        return None;
    }
    let mut found = Finding::of(&TIER_UNKNOWN).name("source", tiers.source());
    for rank in unknown.iter().take(NAMED) {
        found = found.listed("nodes", names[*rank].as_str());
    }
    if unknown.len() > NAMED {
        found = found.listed("nodes", format!("{} more", unknown.len() - NAMED));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_infiniband_has_its_guid_in_its_gid() {
        let prepared = |gid: Value| json!({ "device": "mlx5_1", "port": 2, "gid": gid });
        let gid = "fe80:0000:0000:0000:0002:c903:0010:0001";
        let found = endpoint("n1", &prepared(gid.into()));
        assert_eq!(found.guid, Some(0x0002_c903_0010_0001));
        assert_eq!(found.device, Some(("mlx5_1".to_owned(), 2)));
        assert_eq!(endpoint("n1", &prepared(Value::Null)).guid, None);
        assert_eq!(endpoint("n1", &Value::Null), Endpoint::of_host("n1"));
    }
}
