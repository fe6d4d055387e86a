//! The ports that points of the node-type infiniband use.

use serde_json::{Value, json};

use super::config::Config;
use super::error::RunError;
use super::plan::Plan;
use super::point::Point;
use super::rows::sample_bytes;
use crate::node::infiniband::{Fabric, FabricRequest, rules};
use crate::node::{NodeError, NodeType, Settings, Side, Wiring};
use crate::rdma::cm::UcRoute;
use crate::rig::ports::{PortRequest, Service};

fn points(plan: &Plan) -> impl Iterator<Item = &Point> {
    let points = plan.points.iter();
    points.filter(|point| point.node_type == NodeType::InfiniBand)
}

/// Refuses numbers of requests that cannot work on any device.
pub(super) fn check(plan: &Plan, config: &Config) -> Result<(), RunError> {
    let mut points = points(plan);
    Ok(points.try_for_each(|point| check_rules(&point.settings(config)))?)
}

/// The same of one point.
fn check_rules(settings: &Settings) -> Result<(), NodeError> {
    rules::refusal(settings).map_or(Ok(()), |reason| Err(NodeError::Setting(reason)))
}

/// What decides which queue pairs a point has.
type QueuePairKind = (Option<Service>, Wiring);

/// Tries the queue pairs of a point on the devices of these sides, unless those of its kind were tried.
fn check_once(
    fabric: &Fabric,
    point: &Point,
    settings: &Settings,
    sides: &[Side],
    tried: &mut Vec<QueuePairKind>,
) -> Result<(), NodeError> {
    let kind = (point.service, point.wiring);
    if !tried.contains(&kind) {
        fabric.check(&point.wiring, settings, sides)?;
        tried.push(kind);
    }
    Ok(())
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
    // That of another host is its affair.
    let is_named =
        config.verbs.sender.is_some() || (config.peer.is_none() && config.verbs.receiver.is_some());
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
    let sides: &[Side] = match config.peer {
        None => &[Side::Publishers, Side::Subscribers],
        Some(_) => &[Side::Publishers],
    };
    let mut tried = Vec::new();
    for point in points(plan) {
        check_once(&fabric, point, &point.settings(config), sides, &mut tried)?;
    }
    Ok(Some(fabric))
}

/// Chooses the ports; that of this host, if another one has the subscribers.
pub(super) fn choose(config: &Config) -> Result<Fabric, NodeError> {
    let verbs = &config.verbs;
    if config.peer.is_some() {
        return Fabric::of_host("--sender", verbs.sender.as_ref(), verbs.uc_route);
    }
    Fabric::open(&FabricRequest {
        sender: verbs.sender.clone(),
        receiver: verbs.receiver.clone(),
        uc_route: verbs.uc_route,
    })
}

/// The port of a host that has subscribers for another one.
#[derive(Debug)]
pub(super) struct ServedPort {
    /// The one that `serve` names.
    named: Option<PortRequest>,
    /// Once a point needs it.
    fabric: Option<Fabric>,
    /// Whose queue pairs it can have.
    tried: Vec<QueuePairKind>,
}

impl ServedPort {
    pub(super) fn new(named: Option<PortRequest>) -> Self {
        ServedPort {
            named,
            fabric: None,
            tried: Vec::new(),
        }
    }

    pub(super) fn fabric(&self) -> Option<&Fabric> {
        self.fabric.as_ref()
    }

    /// Chooses the port, if that was not done. Why it cannot carry a point, if so.
    ///
    /// # Errors
    /// When there is none, or it cannot have the queues.
    pub(super) fn refusal(
        &mut self,
        point: &Point,
        config: &Config,
    ) -> Result<Option<String>, NodeError> {
        let settings = point.settings(config);
        check_rules(&settings)?;
        let fabric = match &mut self.fabric {
            Some(fabric) => fabric,
            none => {
                let verbs = &config.verbs;
                let asked = verbs.receiver.as_ref().or(self.named.as_ref());
                none.insert(Fabric::of_host("--receiver", asked, verbs.uc_route)?)
            }
        };
        check_once(
            fabric,
            point,
            &settings,
            &[Side::Subscribers],
            &mut self.tried,
        )?;
        let service = point.service;
        Ok(service.and_then(|service| fabric.refusal(service, sample_bytes(point))))
    }
}

/// What is told of the ports; of two hosts, of that of this one.
pub(super) fn facts(fabric: &Fabric, config: &Config) -> Value {
    let pair = fabric.pair();
    let is_here = config.peer.is_none();
    json!({
        "sender": pair.sender.request().to_string(),
        "receiver": is_here.then(|| pair.receiver.request().to_string()),
        "uc_route": fabric.uc_route().map(UcRoute::name),
        "libraries": crate::rdma::verbs::library_versions(),
    })
}

/// The devices, as the HCA benchmark has them. That of another host is its affair.
pub(super) fn devices(fabric: &Fabric, config: &Config) -> Value {
    let pair = fabric.pair();
    let mut devices = json!({ "sender": pair.sender.details() });
    if config.peer.is_none() {
        devices["receiver"] = pair.receiver.details();
    }
    devices
}
