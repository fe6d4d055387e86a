//! Which points are measured, and which cannot be.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::{Config, RunsAs};
use super::sample::HEADER_WORDS;
use super::{broker, rows};
use crate::node::settings::Verbs;
use crate::node::{NodeType, Settings, Wiring};
use crate::results::Record;
use crate::results::schema::REASON;
use crate::rig::named::Named as _;
use crate::rig::ports::Service;

/// Lists whose product is measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// Node-types.
    pub node_types: Vec<NodeType>,
    /// Service types of the node-type infiniband.
    pub services: Vec<Service>,
    /// Samples of each publisher in a second.
    pub rates: Vec<f64>,
    /// Values of a sample.
    pub values: Vec<u32>,
    /// Scenarios with their numbers.
    pub wirings: Vec<Wiring>,
    /// What ends are.
    pub ends: Vec<RunsAs>,
}

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
                fallback: verbs.fallback,
            },
            timeout: config.timeout,
            qos: config.qos,
            // It is known once it runs.
            broker: None,
            zeromq_port: config.zeromq_port,
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

/// What is measured, in this order, and what is not.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What is.
    pub points: Vec<Point>,
    /// What is not, with the reason.
    pub left_out: Vec<Record>,
}

impl Plan {
    /// The product of the lists, without what a node-type or its wiring rules out.
    pub fn new(sweep: &Sweep, config: &Config) -> Self {
        let mut plan = Plan::default();
        let services = |node_type| match node_type {
            NodeType::InfiniBand => sweep.services.iter().copied().map(Some).collect(),
            _ => vec![None],
        };
        for &node_type in &sweep.node_types {
            for service in services(node_type) {
                for &wiring in &sweep.wirings {
                    for &rate_per_s in &sweep.rates {
                        for &values in &sweep.values {
                            for &ends in &sweep.ends {
                                let point = Point {
                                    node_type,
                                    service,
                                    rate_per_s,
                                    values,
                                    wiring,
                                    ends,
                                };
                                plan.add(point, config);
                            }
                        }
                    }
                }
            }
        }
        plan
    }

    fn add(&mut self, point: Point, config: &Config) {
        let settings = point.settings(config);
        let refusal = (point.node_type).refusal(&point.wiring, &settings);
        let of_processes = || match point.ends {
            RunsAs::Threads => None,
            RunsAs::Processes => point.node_type.refusal_of_processes(&settings),
        };
        let refusal = refusal.or_else(of_processes);
        match refusal.or_else(|| broker::refusal(&point, config)) {
            None => self.points.push(point),
            Some(reason) => self.leave_out(&point, reason, config),
        }
    }

    fn leave_out(&mut self, point: &Point, reason: String, config: &Config) {
        let mut row = rows::settings(point, config);
        row.set(&REASON, reason);
        self.left_out.push(row);
    }

    /// Leaves out the points that have a reason.
    pub fn without(&mut self, config: &Config, reason: impl Fn(&Point) -> Option<String>) {
        for point in std::mem::take(&mut self.points) {
            match reason(&point) {
                None => self.points.push(point),
                Some(reason) => self.leave_out(&point, reason, config),
            }
        }
    }

    /// Why nothing is left to be measured, if so.
    pub fn why_empty(&self) -> Option<String> {
        let first = self.left_out.first();
        let reason = first.map_or("no node-type was named".to_owned(), |row| row.text(&REASON));
        self.points.is_empty().then_some(reason)
    }
}
