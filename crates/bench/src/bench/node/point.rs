//! What is measured at once.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::config::{Config, RunsAs};
use super::sample::HEADER_WORDS;
use crate::node::fallback::Fallback;
use crate::node::settings::Verbs;
use crate::node::{NodeType, Settings, Wiring};
use crate::rig::named::Named as _;
use crate::rig::ports::Service;

/// One node-type at one rate with samples of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which node-type.
    pub node_type: NodeType,
    /// Its service type, if it has several.
    pub service: Option<Service>,
    /// Samples of each publisher in a second.
    pub rate_per_s: f64,
    /// Values of a sample, of 8 bytes.
    pub values: u32,
    /// Who is wired to whom.
    pub wiring: Wiring,
    /// What its ends are.
    pub ends: RunsAs,
}

impl Point {
    /// Words of a sample.
    pub fn words(&self) -> usize {
        HEADER_WORDS + self.values as usize
    }

    /// What the node-type is told.
    pub fn settings(&self, config: &Config) -> Settings {
        let verbs = &config.verbs;
        Settings {
            words: self.words(),
            poll: config.poll,
            vectorize: config.vectorize,
            send_queue: config.send_queue,
            receive_queue: config.receive_queue,
            huge_pages: config.huge_pages,
            verbs: Verbs {
                service: self.service.unwrap_or(Verbs::default().service),
                max_inline: verbs.max_inline,
                signal_every: verbs.signal_every,
                receive_threshold: verbs.receive_threshold,
                fallback: verbs.fallback.unwrap_or(self.usual_fallback(config)),
            },
            timeout: config.timeout,
            qos: config.qos,
            redis_kind: config.redis_kind,
            // It is known once it runs.
            broker: None,
            zeromq_port: config.zeromq_port,
            sockets: config.sockets.clone(),
            // Of two hosts it is known once they are connected.
            address: Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// What publishers of infiniband do that cannot connect, where nothing else was asked for.
    fn usual_fallback(&self, config: &Config) -> Fallback {
        match (self.service, &config.peer) {
            (Some(Service::Ud), _) | (_, Some(_)) => Fallback::Fatal,
            _ => Fallback::Listen,
        }
    }
}

impl fmt::Display for Point {
    /// Unique in its sweep, and fit for the name of a folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wiring = &self.wiring;
        let service = self.service.map(|service| format!("-{}", service.name()));
        let ends = match self.ends {
            RunsAs::Threads => "",
            RunsAs::Processes => "-processes",
        };
        write!(
            formatter,
            "{}{}-rate{}-{}values-{}-{}to{}{ends}",
            self.node_type.name(),
            service.unwrap_or_default(),
            self.rate_per_s,
            self.values,
            wiring.scenario.name(),
            wiring.publishers,
            wiring.subscribers
        )
    }
}
