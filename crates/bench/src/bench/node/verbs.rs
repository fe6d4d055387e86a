//! The ports that points of the node-type infiniband use.

use serde_json::{Value, json};

use super::config::Config;
use super::error::RunError;
use super::plan::Plan;
use super::point::Point;
use super::rows::sample_bytes;
use crate::node::infiniband::{Fabric, FabricRequest, rules};
use crate::node::{NodeError, NodeType};
use crate::rdma::cm::UcRoute;

fn points(plan: &Plan) -> impl Iterator<Item = &Point> {
    let points = plan.points.iter();
    points.filter(|point| point.node_type == NodeType::InfiniBand)
}

/// Refuses numbers of requests that cannot work on any device.
pub(super) fn check(plan: &Plan, config: &Config) -> Result<(), RunError> {
    let refusal = points(plan).find_map(|point| rules::refusal(&point.settings(config)));
    match refusal {
        Some(reason) => Err(NodeError::Setting(reason).into()),
        None => Ok(()),
    }
}

/// Chooses the ports, if a point needs them; leaves out what they cannot carry, and refuses queues that they
/// cannot have. Where `may_lack` them, points are left out for which there are no two ports.
pub(super) fn open(
    plan: &mut Plan,
    config: &Config,
    may_lack: bool,
) -> Result<Option<Fabric>, RunError> {
    if points(plan).next().is_none() {
        return Ok(None);
    }
    let is_named = config.verbs.sender.is_some() || config.verbs.receiver.is_some();
    let fabric = match choose(config) {
        Ok(fabric) => fabric,
        Err(reason) if may_lack && !is_named && !reason.is_shortage() => {
            plan.without_infiniband(config, &reason.to_string());
            return Ok(None);
        }
        Err(reason) => return Err(reason.into()),
    };
    plan.without(config, |point| {
        let service = point.service?;
        fabric.refusal(service, sample_bytes(point))
    });
    let mut tried = Vec::new();
    for point in points(plan) {
        let kind = (point.service, point.wiring);
        if !tried.contains(&kind) {
            fabric.check(&point.wiring, &point.settings(config))?;
            tried.push(kind);
        }
    }
    Ok(Some(fabric))
}

/// Chooses the ports.
pub(super) fn choose(config: &Config) -> Result<Fabric, NodeError> {
    let verbs = &config.verbs;
    Fabric::open(&FabricRequest {
        sender: verbs.sender.clone(),
        receiver: verbs.receiver.clone(),
        uc_route: verbs.uc_route,
    })
}

/// What is told of them.
pub(super) fn facts(fabric: &Fabric) -> Value {
    let pair = fabric.pair();
    json!({
        "sender": pair.sender.request().to_string(),
        "receiver": pair.receiver.request().to_string(),
        "uc_route": fabric.uc_route().map(UcRoute::name),
        "libraries": crate::rdma::verbs::library_versions(),
    })
}

/// The devices, as the HCA benchmark has them.
pub(super) fn devices(fabric: &Fabric) -> Value {
    let pair = fabric.pair();
    json!({ "sender": pair.sender.details(), "receiver": pair.receiver.details() })
}
