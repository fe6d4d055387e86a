//! Which points are measured, and which cannot be.

use std::fmt;

use super::config::Config;
use super::{broker, rows};
use crate::node::{NodeType, Wiring};
use crate::results::Record;
use crate::results::schema::REASON;
use crate::rig::named::Named as _;

/// Lists whose product is measured.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Node-types.
    pub node_types: Vec<NodeType>,
    /// Samples of each publisher in a second.
    pub rates: Vec<f64>,
    /// Values of a sample.
    pub values: Vec<u32>,
    /// Scenarios with their numbers.
    pub wirings: Vec<Wiring>,
}

/// One node-type at one rate with samples of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Which node-type.
    pub node_type: NodeType,
    /// Samples of each publisher in a second.
    pub rate_per_s: f64,
    /// Values of a sample, of 8 bytes.
    pub values: u32,
    /// Who is wired to whom.
    pub wiring: Wiring,
}

impl fmt::Display for Point {
    /// Unique in its sweep, and fit for the name of a folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wiring = &self.wiring;
        write!(
            formatter,
            "{}-rate{}-{}values-{}-{}to{}",
            self.node_type.name(),
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
        for &node_type in &sweep.node_types {
            for &wiring in &sweep.wirings {
                for &rate_per_s in &sweep.rates {
                    for &values in &sweep.values {
                        plan.add(
                            Point {
                                node_type,
                                rate_per_s,
                                values,
                                wiring,
                            },
                            config,
                        );
                    }
                }
            }
        }
        plan
    }

    fn add(&mut self, point: Point, config: &Config) {
        let refusal = point.node_type.refusal(&point.wiring);
        match refusal.or_else(|| broker::refusal(&point, config)) {
            None => self.points.push(point),
            Some(reason) => {
                let mut row = rows::settings(&point, config);
                row.set(&REASON, reason);
                self.left_out.push(row);
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
