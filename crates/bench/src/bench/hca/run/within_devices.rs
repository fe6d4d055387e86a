//! What the devices of both ends can do of a plan. Queue pairs and routes are tried: on many HCAs the length of a queue
//! pair and its inline size bound each other.

use std::cell::RefCell;
use std::collections::HashMap;

use super::peer::Peer;
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::ends::uc_route::choose_route;
use crate::bench::hca::ends::verbs_link::queue_pair_lengths;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::settings::background::Background;
use crate::bench::hca::settings::config::{Operation, Service, UcRouteRequest};
use crate::bench::hca::settings::path::{Connect, resolved};
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::Transport;
use crate::results::finding::Finding;
use crate::results::finding::kinds::CONNECTED_DIRECTLY;
use crate::rig::port_choice::without_address;

/// What two ends can do of a plan.
pub(crate) struct Possible {
    pub(crate) plan: Plan,
    /// The route that UC takes, if there is a point that needs one.
    pub(crate) uc_route: Option<UcRoute>,
    pub(crate) findings: Vec<Finding>,
}

/// Leaves out of a plan what these two ends cannot do.
///
/// # Errors
/// When an end does not answer, or refuses the route to UC that is asked for by name.
pub(crate) fn within_devices<P: Peer>(
    peer: &P,
    plan: Plan,
    asked: UcRouteRequest,
) -> Result<Possible, RunError> {
    let ends = peer.facts();
    let iwarp = ends.iter().find(|end| end.transport == Transport::Iwarp);
    let lacks = |point: &Point| impossible_by_iwarp(point, &iwarp?.device);
    let plan = plan.without(lacks);
    let plan = plan.without(|point| peer.unsupported(point));
    let failed = RefCell::new(None);
    let fail = |error: RunError| {
        let text = error.to_string();
        failed.borrow_mut().get_or_insert(error);
        text
    };
    let works = |route: UcRoute| {
        let tried = peer.probe(route);
        tried.unwrap_or_else(|error| Err(CmError::Far(fail(error))))
    };
    let without_address = without_address(ends.map(|end| (&*end.device, end.port, end.address)));
    let has_addresses = without_address.is_none();
    // A route that is named is tried below, and its failure reported.
    let named = asked != UcRouteRequest::Auto;
    let can_uc = has_addresses
        && plan
            .points
            .iter()
            .any(|point| point.service == Service::Uc && point.connect == Connect::Auto)
        && (named || UcRoute::ALL.into_iter().any(|route| works(route).is_ok()));
    let can = |service| has_addresses && (service != Service::Uc || can_uc);
    let trouble = trouble_of_manager(peer, &plan, can, works)?;
    let falls_back = trouble.is_some() && iwarp.is_none();
    let plan = plan.connected(|service| can(service) && !falls_back);
    let by_manager = |point: &Point| point.connect == Connect::Manager;
    let plan = plan.without(|point| without_address.clone().filter(|_| by_manager(point)));
    // What could only be connected without the manager is left.
    let plan = plan.without(lacks);
    let ports = TwoPorts(ends);
    let plan = plan.within(&ports.limits());
    let path = ports.path_limits();
    let plan = plan.without(|point| path.impossible(point.connect, &point.path));
    let mut tried = HashMap::new();
    let plan = plan.without(|point| {
        let (burst, depth) = (point.burst, point.depth);
        let inline = point.inline_bytes();
        let key = (point.service, burst, depth, point.queue_pairs, inline);
        let refusal = || refusal(peer, point).unwrap_or_else(|error| Some(fail(error)));
        tried.entry(key).or_insert_with(refusal).clone()
    });
    let mut tried = HashMap::new();
    let plan = plan.without(|point| {
        let background = point.background?;
        let refusal =
            || refusal_of_background(peer, &background).unwrap_or_else(|error| Some(fail(error)));
        tried.entry(background).or_insert_with(refusal).clone()
    });
    let chosen = choose_route(plan, asked, works);
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let (plan, uc_route) = chosen.map_err(RunError::Usage)?;
    let found = trouble.filter(|_| falls_back);
    Ok(Possible {
        plan,
        uc_route,
        findings: found
            .map(|reason| Finding::of(&CONNECTED_DIRECTLY).name("reason", reason))
            .into_iter()
            .collect(),
    })
}

/// Why the connection manager does not connect the two ports, tried once where a point leaves the way open: on a host
/// with both ports it takes routes that few have, and connecting directly does not.
fn trouble_of_manager<P: Peer>(
    peer: &P,
    plan: &Plan,
    can: impl Fn(Service) -> bool,
    works: impl Fn(UcRoute) -> Result<(), CmError>,
) -> Result<Option<String>, RunError> {
    let by_manager = |point: &&Point| {
        let connect = resolved(point.connect, &point.path, can(point.service));
        point.connect == Connect::Auto && connect == Connect::Manager
    };
    let Some(point) = plan.points.iter().find(by_manager) else {
        return Ok(None);
    };
    let route = match point.service {
        Service::Uc => UcRoute::ALL.into_iter().find(|route| works(*route).is_ok()),
        Service::Rc | Service::Ud => None,
    };
    peer.try_manager(point, route.unwrap_or(UcRoute::Endpoint))
}

/// What iWARP does not have of a point (RFC 5040: it has RDMA writes, reads and sends over one reliable connection, and
/// no immediate data; its connections are made over TCP).
fn impossible_by_iwarp(point: &Point, device: &str) -> Option<String> {
    let (option, why) = match point {
        Point { service, .. } if *service != Service::Rc => (
            format!("--service {}", service.name()),
            "which has reliable connections only: use --service rc",
        ),
        Point {
            operation: Operation::Write,
            ..
        } => (
            "--operation write".to_owned(),
            "which has no immediate data, by which these messages are announced: use --operation send or write-polled",
        ),
        Point {
            connect: Connect::Direct,
            ..
        } => (
            "--connect direct".to_owned(),
            "whose connections are made over TCP by the connection manager: use --connect cm, and give the network \
             interfaces of both ports an IP address",
        ),
        _ => return None,
    };
    Some(format!("{option} is impossible: {device} is iWARP, {why}"))
}

/// Why the queue pairs of a point are refused.
fn refusal<P: Peer>(peer: &P, point: &Point) -> Result<Option<String>, RunError> {
    let (inline, count) = (point.inline_bytes(), point.queue_pairs);
    let requests = peer.receives(point).requests;
    let lengths = queue_pair_lengths(point.sends(), requests, inline);
    let refused = peer.refuses(point.service, lengths, count)?;
    let mut with = match count {
        1 => String::new(),
        several => format!(" over {several} queue pairs"),
    };
    if inline > 0 {
        with += &format!(" with {inline} bytes inline");
    }
    if point.is_limited() {
        with += &format!(" with --depth {}", point.depth);
    }
    let (burst, service) = (point.burst, point.service.name());
    Ok(refused.map(|refused| {
        format!("--burst {burst}{with} is impossible with --service {service} on these devices: {refused}")
    }))
}

/// Why queue pairs as the background has them are refused.
fn refusal_of_background<P: Peer>(
    peer: &P,
    background: &Background,
) -> Result<Option<String>, RunError> {
    let lengths = queue_pair_lengths(background.in_flight(), 1, 0);
    let refused = peer.refuses(Service::Rc, lengths, background.queue_pairs)?;
    Ok(refused.map(|refused| {
        format!("--background {background} is impossible on these devices, it takes RC queue pairs: {refused}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::Sweep;

    #[test]
    fn what_iwarp_does_not_have_is_left_out_with_a_way_out() {
        let sweep = Sweep {
            services: vec![Service::Rc, Service::Uc, Service::Ud],
            operations: vec![Operation::Send, Operation::Write, Operation::WritePolled],
            connects: vec![Connect::Auto, Connect::Direct],
            ..single()
        };
        let plan = Plan::new(&sweep).without(|point| impossible_by_iwarp(point, "siw0"));
        let measured: Vec<_> = plan
            .points
            .iter()
            .map(|point| (point.operation, point.connect))
            .collect();
        let auto = Connect::Auto;
        assert_eq!(
            measured,
            [(Operation::Send, auto), (Operation::WritePolled, auto)]
        );
        let reason = |says: &str| {
            let mut reasons = plan.left_out.iter().map(|one| &one.reason);
            assert!(
                reasons.any(|reason| reason.starts_with(says)),
                "{:?}",
                plan.left_out
            );
        };
        for option in [
            "--service uc",
            "--service ud",
            "--operation write",
            "--connect direct",
        ] {
            reason(&format!("{option} is impossible: siw0 is iWARP, "));
        }
    }
}
