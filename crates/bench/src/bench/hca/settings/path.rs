//! The path between the two queue pairs: how it is connected, and its attributes.

use serde::{Deserialize, Serialize};

use crate::rig::named::named;
use crate::rig::ports::Service;

named! {
    /// How the queue pairs are connected.
    Connect {
        /// By the connection manager.
        Manager = "cm",
        /// By moving them to RTS here, with the LID or GID of the other.
        Direct = "direct",
        /// By the connection manager where it can.
        Auto = "auto",
    }
}

/// Attributes of the path; `None` is the choice of the connection manager, or of [`Connect::Direct`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathSettings {
    /// Index of the GID, at both ends.
    pub gid_index: Option<u8>,
    /// Service level, 0 to 15; on Ethernet the priority, 0 to 7.
    pub service_level: Option<u8>,
    /// Traffic class.
    pub traffic_class: Option<u8>,
    /// Largest payload of a packet, in bytes; not for UD.
    pub path_mtu: Option<u32>,
    /// Index of the partition key, at both ends.
    pub pkey_index: Option<u16>,
    /// Flow label.
    pub flow_label: Option<u32>,
    /// Repetitions of a packet without an answer; RC only.
    pub retry_count: Option<u8>,
    /// Repetitions when the receiver has no request posted, 7 is without end; RC only.
    pub rnr_retry: Option<u8>,
    /// Time until an unacknowledged packet is sent again, 4.096 us times two to this power; RC only.
    pub qp_timeout: Option<u8>,
}

impl PathSettings {
    /// Without what a service type does not have, so that a sweep over it is no sweep there.
    pub fn of(mut self, service: Service) -> Self {
        if service != Service::Rc {
            (self.retry_count, self.rnr_retry, self.qp_timeout) = (None, None, None);
        }
        if service == Service::Ud {
            self.path_mtu = None;
        }
        self
    }

    /// The names of its options, with the values that are set.
    pub fn all(&self) -> [(&'static str, Option<u32>); 9] {
        [
            ("gid-index", self.gid_index.map(u32::from)),
            ("service-level", self.service_level.map(u32::from)),
            ("traffic-class", self.traffic_class.map(u32::from)),
            ("path-mtu", self.path_mtu),
            ("pkey-index", self.pkey_index.map(u32::from)),
            ("flow-label", self.flow_label),
            ("retry-count", self.retry_count.map(u32::from)),
            ("rnr-retry", self.rnr_retry.map(u32::from)),
            ("qp-timeout", self.qp_timeout.map(u32::from)),
        ]
    }

    /// The first option that is set and that the connection manager does not take.
    fn beyond_manager(&self) -> Option<&'static str> {
        let direct_only = [
            "gid-index",
            "service-level",
            "path-mtu",
            "pkey-index",
            "flow-label",
        ];
        let set = self.all().into_iter().filter(|(_, value)| value.is_some());
        let mut names = set.map(|(name, _)| name);
        names.find(|name| direct_only.contains(name))
    }
}

/// How a point that is connected by any way is connected: by the connection manager where it `can`, and no option asks
/// for what it cannot set.
pub fn resolved(asked: Connect, path: &PathSettings, can: bool) -> Connect {
    match asked {
        Connect::Auto if can && path.beyond_manager().is_none() => Connect::Manager,
        Connect::Auto => Connect::Direct,
        named => named,
    }
}

/// Why a path is impossible by the connection manager.
pub fn impossible_by_manager(connect: Connect, path: &PathSettings) -> Option<String> {
    let option = path
        .beyond_manager()
        .filter(|_| connect == Connect::Manager)?;
    Some(format!(
        "--{option} is impossible with --connect cm: the connection manager chooses it; use --connect direct or auto"
    ))
}

/// What the two ports of a run allow of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathLimits {
    /// Largest payload of a packet, in bytes: the smaller active MTU.
    pub mtu: u32,
    /// Indices at which both ports have the same partition key.
    pub partition_keys: Vec<u16>,
    /// Whether a GID of the one port reaches one of the other without being named.
    pub has_usual_gids: bool,
    /// Indices of GIDs that both ports have, of kinds that reach each other.
    pub gids: Vec<u8>,
    /// Highest service level.
    pub service_level: u8,
}

impl PathLimits {
    /// Why a path is impossible between these ports.
    pub fn impossible(&self, connect: Connect, path: &PathSettings) -> Option<String> {
        if connect == Connect::Direct && path.gid_index.is_none() && !self.has_usual_gids {
            return Some(
                "--connect direct is impossible: the two ports have no GIDs of one kind".to_owned(),
            );
        }
        let over = |value: Option<u32>, most: u32| value.filter(|value| *value > most);
        if let Some(mtu) = over(path.path_mtu, self.mtu) {
            return Some(format!(
                "--path-mtu {mtu} is impossible: the smaller MTU of the two ports is {} bytes",
                self.mtu
            ));
        }
        let numbers = |all: &[u16]| {
            all.iter()
                .map(u16::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let key = path
            .pkey_index
            .filter(|index| !self.partition_keys.contains(index));
        if let Some(index) = key {
            return Some(format!(
                "--pkey-index {index} is impossible: both ports have the same partition key at {}",
                numbers(&self.partition_keys)
            ));
        }
        let most = self.service_level;
        if let Some(level) = over(path.service_level.map(u32::from), most.into()) {
            return Some(format!(
                "--service-level {level} is impossible: on these ports it is at most {most}"
            ));
        }
        let index = path.gid_index.filter(|index| !self.gids.contains(index))?;
        let there: Vec<String> = self.gids.iter().map(ToString::to_string).collect();
        let there = match there.as_slice() {
            [] => "there is no index of which both ports have one".to_owned(),
            some => format!("both ports have GIDs of one kind at {}", some.join(", ")),
        };
        Some(format!("--gid-index {index} is impossible: {there}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_the_manager_unless_it_lacks_addresses_or_an_attribute() {
        let plain = PathSettings::default();
        let retries = PathSettings {
            retry_count: Some(3),
            traffic_class: Some(8),
            ..plain
        };
        let level = PathSettings {
            service_level: Some(3),
            ..plain
        };
        for (asked, path, have_addresses, expected) in [
            (Connect::Auto, plain, true, Connect::Manager),
            (Connect::Auto, retries, true, Connect::Manager),
            (Connect::Auto, plain, false, Connect::Direct),
            (Connect::Auto, level, true, Connect::Direct),
            (Connect::Manager, level, true, Connect::Manager),
            (Connect::Direct, plain, true, Connect::Direct),
        ] {
            assert_eq!(resolved(asked, &path, have_addresses), expected);
        }
        assert_eq!(impossible_by_manager(Connect::Manager, &retries), None);
        assert_eq!(impossible_by_manager(Connect::Direct, &level), None);
        let reason = impossible_by_manager(Connect::Manager, &level).unwrap();
        assert!(reason.contains("--service-level is impossible with --connect cm"));
    }

    #[test]
    fn what_a_service_type_does_not_have_is_not_set() {
        let all = PathSettings {
            path_mtu: Some(512),
            retry_count: Some(1),
            rnr_retry: Some(1),
            qp_timeout: Some(10),
            ..PathSettings::default()
        };
        assert_eq!(all.of(Service::Rc), all);
        assert_eq!(all.of(Service::Uc).path_mtu, Some(512));
        assert_eq!(all.of(Service::Uc).retry_count, None);
        assert_eq!(all.of(Service::Ud), PathSettings::default());
    }

    #[test]
    fn limits_are_named_with_what_is_possible() {
        let limits = PathLimits {
            mtu: 1024,
            partition_keys: vec![0],
            has_usual_gids: true,
            gids: vec![0, 1],
            service_level: 7,
        };
        let plain = PathSettings::default();
        let within = PathSettings {
            path_mtu: Some(1024),
            pkey_index: Some(0),
            gid_index: Some(1),
            service_level: Some(7),
            ..plain
        };
        assert_eq!(limits.impossible(Connect::Direct, &within), None);
        for (path, said) in [
            (
                PathSettings {
                    path_mtu: Some(2048),
                    ..plain
                },
                "--path-mtu 2048 is impossible: the smaller MTU of the two ports is 1024 bytes",
            ),
            (
                PathSettings {
                    pkey_index: Some(1),
                    ..plain
                },
                "--pkey-index 1 is impossible: both ports have the same partition key at 0",
            ),
            (
                PathSettings {
                    service_level: Some(8),
                    ..plain
                },
                "--service-level 8 is impossible: on these ports it is at most 7",
            ),
            (
                PathSettings {
                    gid_index: Some(2),
                    ..plain
                },
                "--gid-index 2 is impossible: both ports have GIDs of one kind at 0, 1",
            ),
        ] {
            let reason = limits.impossible(Connect::Direct, &path).unwrap();
            assert!(reason.starts_with(said), "{reason}");
        }
        let strangers = PathLimits {
            has_usual_gids: false,
            ..limits
        };
        let reason = strangers.impossible(Connect::Direct, &plain).unwrap();
        assert!(reason.contains("no GIDs of one kind"), "{reason}");
        assert_eq!(strangers.impossible(Connect::Manager, &plain), None);
    }
}
