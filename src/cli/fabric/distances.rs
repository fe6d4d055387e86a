//! Where the tiers come from: the file that the user gave, the ports of ranks in it, and what is recorded of it.

use std::net::Ipv6Addr;

use serde_json::{Value, json};

use super::FabricArguments;
use crate::arguments::UsageError;
use crate::bench::fabric::tiers::{Endpoint, TierFile, Tiers};
use crate::results::finding::Finding;
use crate::results::finding::kinds::TIER_UNKNOWN;

/// As many hosts are named in a finding.
const NAMED: usize = 8;

/// Reads the file of `--topology` or `--group`, if there is one.
pub(super) fn read(arguments: &FabricArguments) -> anyhow::Result<Option<TierFile>> {
    type Parse = fn(&str) -> Result<TierFile, crate::bench::fabric::tiers::TierError>;
    let (option, path, parse): (_, _, Parse) = match (&arguments.topology, &arguments.group) {
        (Some(path), _) => ("--topology", path, TierFile::topology),
        (None, Some(path)) => ("--group", path, TierFile::groups),
        (None, None) => return Ok(None),
    };
    let refused = |reason: String| UsageError(format!("{option} {}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let file = parse(&text).map_err(|error| refused(error.to_string()))?;
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

/// For `fabric.json`.
pub(super) fn recorded(arguments: &FabricArguments, tiers: &Tiers, names: &[String]) -> Value {
    let file = arguments.topology.as_ref().or(arguments.group.as_ref());
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
    })
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
