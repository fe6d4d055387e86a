//! Which route UC takes in a run. It is tried before the first point; where no route is there, the other service types
//! are measured all the same.

use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::settings::config::{Service, UcRouteRequest};
use crate::bench::hca::settings::path::Connect;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rig::port_choice;

/// Whether a point needs a route: UC by the connection manager.
pub fn uses_route(point: &Point) -> bool {
    point.service == Service::Uc && point.connect == Connect::Manager
}

/// Chooses the route for the UC points of a plan: the one asked for or, for `auto`, the first that `works`. If none
/// does, leaves those points out with the reason. `None` where no UC point remains.
///
/// # Errors
/// When a route was asked for by name and does not work.
pub fn choose_route(
    plan: Plan,
    asked: UcRouteRequest,
    works: impl Fn(UcRoute) -> Result<(), CmError>,
) -> Result<(Plan, Option<UcRoute>), String> {
    if !plan.points.iter().any(uses_route) {
        return Ok((plan, None));
    }
    let refusals = match port_choice::choose_route(asked, works) {
        Ok(route) => return Ok((plan, Some(route))),
        Err(refusals) => refusals,
    };
    if let (true, [(route, error)]) = (asked != UcRouteRequest::Auto, &refusals[..]) {
        let (name, other) = (route.name(), route.other().name());
        let advice = format!("leave uc out of --service, or try --uc-route {other}");
        return Err(format!("--uc-route {name}: {error}; {advice}"));
    }
    let told = |(route, error): &(UcRoute, CmError)| format!("{}: {error}", route.name());
    let refusals: Vec<String> = refusals.iter().map(told).collect();
    let reason = format!(
        "--service uc is impossible with --connect cm: the connection manager makes no id for UC by any route; use \
         --connect direct; {}",
        refusals.join("; ")
    );
    let plan = plan.without(|point| uses_route(point).then(|| reason.clone()));
    Ok((plan, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::Sweep;
    use crate::testing::Has as _;

    /// Chooses for these service types where the routes named work; what is left, and the route.
    fn choose(
        services: &[Service],
        asked: UcRouteRequest,
        working: &[UcRoute],
    ) -> Result<(Plan, Option<UcRoute>), String> {
        let plan = Plan::new(&Sweep {
            services: services.to_vec(),
            sizes: vec![8, 16],
            ..single()
        });
        let plan = plan.connected(|_| true);
        choose_route(plan, asked, |route| {
            let library = "librdmacm.so.1".to_owned();
            let refused = CmError::NoCreateId2 { library };
            working.contains(&route).then_some(()).ok_or(refused)
        })
    }

    #[test]
    fn auto_takes_the_patched_route_only_where_the_other_fails() {
        for (working, expected) in [
            (&UcRoute::ALL[..], UcRoute::Endpoint),
            (&[UcRoute::Patched], UcRoute::Patched),
        ] {
            let (plan, route) = choose(Service::ALL, UcRouteRequest::Auto, working).unwrap();
            assert_eq!((plan.points.len(), route), (6, Some(expected)));
        }
    }

    #[test]
    fn without_a_route_uc_is_left_out_with_the_reason_and_the_others_remain() {
        let (plan, route) = choose(Service::ALL, UcRouteRequest::Auto, &[]).unwrap();
        assert_eq!(plan.points.len(), 4);
        assert_eq!(plan.left_out.len(), 2);
        assert_eq!(route, None);
        assert_eq!(plan.check(), Ok(()));
        // Where there is nothing else, nothing is left to measure.
        let (plan, _) = choose(&[Service::Uc], UcRouteRequest::Auto, &[]).unwrap();
        let error = plan.check().unwrap_err();
        error.has(&[
            "--service uc",
            "endpoint: ",
            "patched: ",
            "librdmacm.so.1 does not export rdma_create_id2",
            "rdma-cm-patch/build",
        ]);
    }

    #[test]
    fn a_route_that_was_named_is_taken_or_an_error_with_advice() {
        for (asked, route, other) in [
            (UcRouteRequest::Endpoint, UcRoute::Endpoint, "patched"),
            (UcRouteRequest::Patched, UcRoute::Patched, "endpoint"),
        ] {
            let (_, chosen) = choose(Service::ALL, asked, &[route]).unwrap();
            assert_eq!(chosen, Some(route));
            let error = choose(Service::ALL, asked, &[route.other()]).unwrap_err();
            let of = format!("--uc-route {}: ", route.name());
            let or = format!("leave uc out of --service, or try --uc-route {other}");
            assert!(error.starts_with(&of) && error.ends_with(&or), "{error}");
        }
    }

    #[test]
    fn where_no_point_is_uc_no_route_is_needed() {
        let (plan, route) = choose(&[Service::Rc], UcRouteRequest::Patched, &[]).unwrap();
        assert_eq!((plan.points.len(), route), (2, None));
    }
}
