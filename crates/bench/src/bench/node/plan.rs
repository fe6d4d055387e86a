//! Which points are measured, and which cannot be.

use super::config::{Config, RunsAs};
use super::point::Point;
use super::{broker, rows};
use crate::host::system_files::SystemFiles;
use crate::node::fallback::Fallback;
use crate::node::{NodeType, Wiring};
use crate::results::Record;
use crate::results::schema::{REASON, node as columns};
use crate::rig::ports::Service;
use serde::{Deserialize, Serialize};

/// Lists whose product is measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// Node-types.
    pub node_types: Vec<NodeType>,
    /// Whether these are all there are: those that this machine cannot run are left out, where a named one ends the run.
    pub all_types: bool,
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

/// Whether infiniband has devices on this machine.
pub fn has_devices() -> bool {
    cfg!(feature = "rdma") && !SystemFiles::of_this_machine().names(DEVICES).is_empty()
}

const DEVICES: &str = "sys/class/infiniband";

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
        for name in NodeType::NOT_BUILT.iter().filter(|_| sweep.all_types) {
            let mut row = Record::new();
            row.set(&columns::TYPE, *name)
                .set(&REASON, NodeType::how_to_get(name));
            plan.left_out.push(row);
        }
        if sweep.all_types && cfg!(feature = "rdma") && !has_devices() {
            plan.without_infiniband(config, &format!("no RDMA device on this host (/{DEVICES})"));
        }
        plan
    }

    /// Leaves out the points of infiniband, for that reason.
    pub fn without_infiniband(&mut self, config: &Config, reason: &str) {
        self.without(config, |point| {
            (point.node_type == NodeType::InfiniBand).then(|| reason.to_owned())
        });
    }

    fn add(&mut self, point: Point, config: &Config) {
        let settings = point.settings(config);
        let refusal = (point.node_type).refusal(&point.wiring, &settings);
        let of_processes = || match point.ends {
            RunsAs::Threads => None,
            RunsAs::Processes => point.node_type.refusal_of_processes(),
        };
        let of_hosts = || {
            if config.peer.is_none() {
                return point.node_type.refusal_on_one_host();
            }
            let ends = "--ends processes is impossible with --peer: on each host, ends are threads of one process";
            let of_ends = (point.ends == RunsAs::Processes).then(|| ends.to_owned());
            let falls_back = config.verbs.fallback == Some(Fallback::Listen);
            let of_fallback = (falls_back && point.node_type == NodeType::InfiniBand).then(|| {
                "--fallback listen is impossible with --peer: subscribers on another host do not learn where a \
                 publisher listens"
                    .to_owned()
            });
            let of_type = point.node_type.refusal_between_hosts();
            of_type.or(of_ends).or(of_fallback)
        };
        let refusal = of_hosts().or(refusal).or_else(of_processes);
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
