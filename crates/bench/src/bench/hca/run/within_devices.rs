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
use crate::bench::hca::settings::config::{Service, UcRouteRequest};
use crate::bench::hca::settings::path::Connect;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rig::port_choice::{without_address, without_immediate_data};

/// Leaves out of a plan what these two ends cannot do. Returns the route that UC takes, too, if there is a point that
/// needs one.
///
/// # Errors
/// When an end does not answer, or refuses the route to UC that is asked for by name.
pub(crate) fn within_devices<P: Peer>(
    peer: &P,
    plan: Plan,
    asked: UcRouteRequest,
) -> Result<(Plan, Option<UcRoute>), RunError> {
    let ends = peer.facts();
    let reason = without_immediate_data(ends.map(|end| (&*end.device, end.transport)));
    let plan = plan.without(|point| {
        let needs_it = point.operation.has_immediate_data();
        reason.clone().filter(|_| needs_it)
    });
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
    let plan = plan.connected(|service| has_addresses && (service != Service::Uc || can_uc));
    let by_manager = |point: &Point| point.connect == Connect::Manager;
    let plan = plan.without(|point| without_address.clone().filter(|_| by_manager(point)));
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
    match failed.into_inner() {
        Some(error) => Err(error),
        None => chosen.map_err(RunError::Usage),
    }
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
