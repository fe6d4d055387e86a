//! What the devices of both ends can do of a plan. Queue pairs and routes are tried: on many HCAs the length of a queue
//! pair and its inline size bound each other.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::direct_services::{
    DirectServices, NOTICE_AFTER, TRIAL_LIMIT, open_points, shown_if_slow,
};
use super::peer::Peer;
use super::resources;
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::ends::uc_route::choose_route;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::settings::background::Background;
use crate::bench::hca::settings::config::{Operation, Service, UcRouteRequest};
use crate::bench::hca::settings::path::Connect;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::{Capabilities, EndPlan, ServiceType, Transport};
use crate::results::finding::Finding;
use crate::results::finding::kinds::{CONNECTED_DIRECTLY, RELAXED_ORDERING_IN_SOFTWARE};
use crate::rig::benchmark::ShowWait;
use crate::rig::port_choice::{choose_route as choose_any, without_address};

/// What two ends can measure of a plan.
pub(crate) struct FeasiblePlan {
    pub(crate) plan: Plan,
    /// The route that UC takes, if there is a point that needs one.
    pub(crate) uc_route: Option<UcRoute>,
    /// The service types that are connected directly where a point leaves the way open.
    pub(crate) direct_services: Vec<Service>,
    pub(crate) findings: Vec<Finding>,
}

/// Leaves out of a plan what these two ends cannot do. Which service types are to be connected directly a trial shows,
/// unless it is `known`: a process of a round has it from its parent. `show` is called where the trial takes long.
///
/// # Errors
/// When an end does not answer, or refuses the route to UC that is asked for by name.
pub(crate) fn within_devices<P: Peer>(
    peer: &P,
    plan: Plan,
    asked: UcRouteRequest,
    known: Option<&[Service]>,
    show: Option<ShowWait>,
) -> Result<FeasiblePlan, RunError> {
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
    // iWARP has no other way of connecting.
    let is_open = known.is_none() && has_addresses && iwarp.is_none();
    let mut direct = DirectServices {
        services: known.unwrap_or_default().to_vec(),
        reasons: Vec::new(),
    };
    if is_open && open_points(&plan).next().is_some() {
        direct.add(Service::ALL, peer.lacks_manager()?);
    }
    // A route that is named is tried below, and its failure reported.
    let named = asked != UcRouteRequest::Auto;
    let tries_uc = has_addresses
        && !direct.services.contains(&Service::Uc)
        && open_points(&plan).any(|point| point.service == Service::Uc);
    let uc_route = tries_uc.then(|| choose_any(asked, works).ok()).flatten();
    let can_uc = tries_uc && (named || uc_route.is_some());
    if is_open && direct.services.is_empty() {
        direct = shown_if_slow(show, NOTICE_AFTER, || {
            DirectServices::by_trial(&plan, uc_route, TRIAL_LIMIT, |point, route, until| {
                peer.try_manager(point, route, until)
            })
        })?;
    }
    let can = |service| has_addresses && (service != Service::Uc || can_uc);
    let plan = plan.connected(|service| can(service) && !direct.services.contains(&service));
    let by_manager = |point: &Point| point.connect == Connect::Manager;
    let plan = plan.without(|point| without_address.clone().filter(|_| by_manager(point)));
    // What could only be connected without the manager is left.
    let plan = plan.without(lacks);
    let ports = TwoPorts(ends);
    let plan = plan.within(&ports.limits());
    let path = ports.path_limits();
    let plan = plan.without(|point| path.impossible(point.connect, &point.path));
    let plan = plan.without(|point| {
        let receives = peer.receives(point).requests;
        resources::impossible_within(point, &ports, receives, P::IS_LOCAL)
    });
    let mut tried = HashMap::new();
    let plan = plan.without(|point| {
        let mut options = point.resources.chosen();
        options.find_map(|option| {
            let refusal = || {
                let refusal = resources::refusal(peer, point, option);
                refusal.unwrap_or_else(|error| Some(fail(error)))
            };
            let key = (point.service, point.operation, option);
            tried.entry(key).or_insert_with(refusal).clone()
        })
    });
    let mut tried = HashMap::new();
    let plan = plan.without(|point| {
        // The reason names burst and depth.
        let ends = resources::plans(point, peer.receives(point).requests);
        let key = (point.burst, point.depth, ends);
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
    let finding = |reason| Finding::of(&CONNECTED_DIRECTLY).name("reason", reason);
    let mut findings: Vec<_> = direct.reasons.into_iter().map(finding).collect();
    findings.extend(order_without_effect(&plan, ends));
    Ok(FeasiblePlan {
        plan,
        uc_route,
        direct_services: direct.services,
        findings,
    })
}

/// That the order of PCI Express is asked for of devices that have none.
fn order_without_effect(plan: &Plan, ends: [&Facts; 2]) -> Option<Finding> {
    let mut resources = plan.points.iter().map(|point| point.resources);
    let is_asked = resources.any(|it| it.relaxed_ordering.is_on());
    let software = ends.into_iter().filter(|end| is_asked && end.software);
    let devices: BTreeSet<&str> = software.map(|end| end.device.as_str()).collect();
    let start = Finding::of(&RELAXED_ORDERING_IN_SOFTWARE);
    let found = devices
        .iter()
        .fold(start, |found, name| found.listed("devices", *name));
    (!devices.is_empty()).then_some(found)
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

/// Why the queue pairs of a point are refused, and what to lower.
fn refusal<P: Peer>(peer: &P, point: &Point) -> Result<Option<String>, RunError> {
    let (inline, count) = (point.inline_bytes(), point.queue_pairs);
    let requests = peer.receives(point).requests;
    let refused = |sends, inline| {
        let mut ends = resources::plans(point, requests);
        ends[0].capabilities.send_requests = sends;
        ends[0].capabilities.inline_bytes = inline;
        peer.refuses(&ends)
    };
    let Some(reason) = refused(point.sends(), inline)? else {
        return Ok(None);
    };
    let granted = |sends, inline| Ok(refused(sends, inline)?.is_none());
    let advice = what_to_lower(point.sends(), inline, granted)?;
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
    for option in point.resources.chosen() {
        with += &format!(" with --{}", option.name());
    }
    let (burst, service) = (point.burst, point.service.name());
    Ok(Some(format!(
        "--burst {burst}{with} is impossible with --service {service} on these devices: {reason}{advice}"
    )))
}

/// What of the requests and their inline data has to be less, with its own separator, or nothing. The longer the inline
/// data, the fewer requests there can be where the bytes of a queue are limited (mlx5: `mlx5_calc_sq_size` of rdma-core).
fn what_to_lower(
    sends: u32,
    inline: u32,
    mut granted: impl FnMut(u32, u32) -> Result<bool, RunError>,
) -> Result<String, RunError> {
    let half = sends / 2;
    let without = inline > 0 && granted(sends, 0)?;
    let shorter = half > 0 && granted(half, inline)?;
    Ok(match (without, shorter) {
        (true, true) => format!(
            "; it is granted without inline data, and with half of the requests; fix: leave out --inline, or use --depth {half}"
        ),
        (true, false) => {
            "; it is granted without inline data; fix: leave out --inline, or use a smaller --size"
                .to_owned()
        }
        (false, true) => format!("; half of the requests are granted; fix: use --depth {half}"),
        (false, false) => String::new(),
    })
}

/// Why queue pairs as the background has them are refused.
fn refusal_of_background<P: Peer>(
    peer: &P,
    background: &Background,
) -> Result<Option<String>, RunError> {
    let end = |send_requests| {
        let capabilities = Capabilities {
            send_requests,
            receive_requests: 1,
            inline_bytes: 0,
        };
        let service = ServiceType::ReliableConnection;
        EndPlan::usual(service, capabilities, background.queue_pairs)
    };
    let refused = peer.refuses(&[end(background.in_flight()), end(1)])?;
    Ok(refused.map(|refused| {
        format!("--background {background} is impossible on these devices, it takes RC queue pairs: {refused}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::{Sweep, Switch};

    #[test]
    fn a_refusal_says_which_to_lower() {
        let advice = |sends, inline, granted: fn(u32, u32) -> bool| {
            let granted = |sends, inline| Ok(granted(sends, inline));
            what_to_lower(sends, inline, granted).unwrap()
        };
        // A queue whose bytes are limited, as mlx5 has it.
        let of_bytes = |sends, inline| sends * (64 + inline) <= 8192 * 192;
        let both = advice(8192, 200, of_bytes);
        assert!(
            both.ends_with("leave out --inline, or use --depth 4096"),
            "{both}"
        );
        let inline = advice(8192, 1000, of_bytes);
        assert!(
            inline.ends_with("leave out --inline, or use a smaller --size"),
            "{inline}"
        );
        let depth = advice(8192, 0, |sends, _| sends <= 4096);
        assert_eq!(
            depth,
            "; half of the requests are granted; fix: use --depth 4096"
        );
        assert_eq!(advice(8192, 8, |_, _| false), "");
        // Without inline data or a second request there is nothing to leave out.
        assert_eq!(advice(1, 0, |_, _| true), "");
    }

    #[test]
    fn relaxed_ordering_of_devices_in_software_is_told() {
        use crate::bench::hca::ends::two_ports::tests::port;
        use crate::rdma::verbs::LinkLayer;
        let end = |software| Facts {
            software,
            device: "rxe0".to_owned(),
            ..port(40, [1, 1], LinkLayer::Ethernet)
        };
        let (rxe, adapter) = (end(true), end(false));
        let mut plan = Plan::new(&single());
        assert!(order_without_effect(&plan, [&rxe, &rxe]).is_none());
        plan.points[0].resources.relaxed_ordering = Switch::On;
        assert!(order_without_effect(&plan, [&adapter, &adapter]).is_none());
        let found = order_without_effect(&plan, [&adapter, &rxe]).unwrap();
        let text = format!("{found:?}");
        assert!(
            text.contains("relaxed-ordering-in-software") && text.contains("rxe0"),
            "{text}"
        );
    }

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
