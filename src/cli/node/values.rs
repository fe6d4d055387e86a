//! The values of the options: rates, numbers of values and of samples, from text.

use crate::arguments::values::{List, bytes, count, list_of_ranges, one, rate};
use crate::bench::node::config::BrokerChoice;
use crate::buffer::Bytes;
use crate::node::NodeType;
use crate::node::settings::BrokerAddress;
use crate::rig::named::Named as _;

/// Values of a sample that there can be: with more it fits into no datagram of UD.
const VALUES: std::ops::RangeInclusive<u64> = 1..=4096;
/// Sizes of a log's buffer that there can be, in bytes. It holds one entry at least.
const BUFFER: std::ops::RangeInclusive<u64> = 1..=1 << 30;

/// Node-types, and whether those are left out that this machine cannot run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeTypes {
    /// In the order given.
    pub types: Vec<NodeType>,
    /// Whether `all` was among them.
    pub all: bool,
}

/// `all`, which is each type of this build, or names of types. A type that this build does not have is refused with the
/// way to get it.
pub(crate) fn node_types(text: &str) -> Result<NodeTypes, String> {
    let is_all = |part: &str| part.trim().eq_ignore_ascii_case("all");
    let types = list_of_ranges(text, |part| match is_all(part) {
        true => Ok(NodeType::ALL.to_vec()),
        false => match one(part) {
            Ok(found) => Ok(vec![found]),
            Err(refusal) => Err(match not_built(part, NodeType::NOT_BUILT) {
                Some(name) => NodeType::how_to_get(name),
                None => format!("{refusal}, all"),
            }),
        },
    })?;
    Ok(NodeTypes {
        types: types.0,
        all: text.split(',').any(is_all),
    })
}

/// Rates a second: `1k`, `100..100k`, which is 100 and each tenfold up to 100k.
pub(crate) fn rates(text: &str) -> Result<List<f64>, String> {
    list_of_ranges(text, |part| {
        let Some((from, to)) = part.split_once("..") else {
            return Ok(vec![rate(part)?]);
        };
        let (from, to) = (rate(from)?, rate(to)?);
        if from > to {
            return Err(format!("the range {part:?} ends before it starts"));
        }
        let tenfold = |exponent| from * 10_f64.powi(exponent);
        Ok((0..).map(tenfold).take_while(|rate| *rate <= to).collect())
    })
}

/// Values of a sample: `8`, `1..64`, which is 1 and each twofold up to 64.
pub(crate) fn values(text: &str) -> Result<List<u32>, String> {
    let number = |part: &str| count::<u32>(part, VALUES);
    list_of_ranges(text, |part| {
        let Some((from, to)) = part.split_once("..") else {
            return Ok(vec![number(part)?]);
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("the range {part:?} ends before it starts"));
        }
        let doubled = |exponent: u32| from << exponent;
        Ok((0..)
            .map(doubled)
            .take_while(|number| *number <= to)
            .collect())
    })
}

/// The size of a log's buffer.
pub(crate) fn buffer(text: &str) -> Result<Bytes, String> {
    let size = bytes(text).filter(|size| BUFFER.contains(&size.0));
    size.ok_or_else(|| {
        format!("{text:?} is not a size from 1 byte to 1 GiB, such as 4k, 100kB or 1MiB")
    })
}

/// The largest sample that is copied into a work request.
pub(crate) fn inline(text: &str) -> Result<u32, String> {
    let size = bytes(text).and_then(|size| u32::try_from(size.0).ok());
    size.ok_or_else(|| format!("{text:?} is not a size from 0 bytes to 4 GiB, such as 128 or 1k"))
}

/// The name of a node-type, if it is one of these that a build does not have.
fn not_built<'a>(part: &str, not_built: &[&'a str]) -> Option<&'a str> {
    let mut names = not_built.iter().copied();
    names.find(|name| part.trim().eq_ignore_ascii_case(name))
}

/// `spawn`, or where a broker listens: `localhost:1883`, `[::1]:1883`.
pub(crate) fn broker(text: &str) -> Result<BrokerChoice, String> {
    if text == "spawn" {
        return Ok(BrokerChoice::Spawn);
    }
    let address = || {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|&port: &u16| port > 0)?;
        let is_bare = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        (!host.is_empty() && !is_bare).then(|| BrokerAddress {
            host: host.to_owned(),
            port,
        })
    };
    let refused =
        || format!("{text:?} is neither spawn nor HOST:PORT, such as localhost:1883 or [::1]:1883");
    address().map(BrokerChoice::At).ok_or_else(refused)
}

/// The same as text.
pub(crate) fn broker_text(broker: &BrokerChoice) -> String {
    match broker {
        BrokerChoice::Spawn => "spawn".to_owned(),
        BrokerChoice::At(address) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn a_node_type_that_a_build_does_not_have_is_refused_with_the_way_to_get_it() {
        let found = not_built(" MQTT", &["zeromq", "mqtt"]).unwrap();
        assert_eq!(found, "mqtt");
        NodeType::how_to_get(found).has(&["\"mqtt\"", "package", "--features mqtt"]);
        assert_eq!(not_built("pipe", &["zeromq", "mqtt"]), None);
    }

    #[test]
    fn all_is_each_type_of_the_build_once() {
        for text in ["all", "All", "all,udp", " all "] {
            let found = node_types(text).unwrap();
            assert_eq!(found.types, NodeType::ALL, "{text}");
            assert!(found.all);
        }
        let found = node_types("udp,loopback,udp").unwrap();
        assert_eq!(found.types, [NodeType::Udp, NodeType::Loopback]);
        assert!(!found.all);
        for bad in ["", "alls", "udp,,shmem"] {
            assert!(node_types(bad).unwrap_err().ends_with(", all"), "{bad}");
        }
    }

    #[test]
    fn ranges_of_rates_are_tenfold_those_of_values_double_and_brokers_have_ports() {
        assert_eq!(rates("100..100k,5").unwrap().0, [100.0, 1e3, 1e4, 1e5, 5.0]);
        assert_eq!(values("1..64,3").unwrap().0, [1, 2, 4, 8, 16, 32, 64, 3]);
        for bad in ["1k..100", "..", "0", "x"] {
            assert!(rates(bad).is_err(), "{bad}");
        }
        for text in ["spawn", "localhost:1883", "[::1]:1"] {
            assert_eq!(broker_text(&broker(text).unwrap()), text);
        }
        for bad in ["", "localhost", ":1883", "::1", "a:0", "a:65536", "a:b"] {
            assert!(broker(bad).unwrap_err().contains("HOST:PORT"), "{bad}");
        }
        for bad in ["0", "4097", "8..4", "1.5", ""] {
            assert!(values(bad).is_err(), "{bad}");
        }
    }
}
