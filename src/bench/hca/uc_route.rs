//! Which route UC takes in a run. It is tried before the first point; where no route is there, the other service types
//! are measured all the same.

use std::convert::Infallible;

use super::config::{Service, UcRouteRequest};
use super::plan::{Plan, Point};
use crate::rdma::cm::{CmError, UcRoute};

/// The route that the user named is refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "--uc-route {}: {source}; leave uc out of --service, or try --uc-route {}",
    .route.name(),
    .route.other().name()
)]
pub struct RouteRefused {
    /// The route.
    pub route: UcRoute,
    /// Why.
    pub source: CmError,
}

/// Chooses the route for the UC points of a plan: the one asked for or, for `auto`, the first that `works`. If none does,
/// leaves those points out with the reason. `None` where no UC point remains.
///
/// # Errors
/// When a route was asked for by name and does not work.
pub fn choose_route(
    plan: Plan,
    asked: UcRouteRequest,
    works: impl Fn(UcRoute) -> Result<(), CmError>,
) -> Result<(Plan, Option<UcRoute>), RouteRefused> {
    let is_uc = |service| service == Service::Uc;
    if !plan.points.iter().any(|point| is_uc(point.service)) {
        return Ok((plan, None));
    }
    let named = match asked {
        UcRouteRequest::Auto => None,
        UcRouteRequest::Endpoint => Some(UcRoute::Endpoint),
        UcRouteRequest::Patched => Some(UcRoute::Patched),
    };
    if let Some(route) = named {
        return match works(route) {
            Ok(()) => Ok((plan, Some(route))),
            Err(source) => Err(RouteRefused { route, source }),
        };
    }
    let mut refusals = Vec::new();
    for route in UcRoute::ALL {
        match works(route) {
            Ok(()) => return Ok((plan, Some(route))),
            Err(error) => refusals.push(format!("{}: {error}", route.name())),
        }
    }
    let reason = format!(
        "--service uc is impossible: the connection manager makes no id for UC by any route; {}",
        refusals.join("; ")
    );
    let refused = |point: &Point| Ok::<_, Infallible>(is_uc(point.service).then(|| reason.clone()));
    let Ok(plan) = plan.admitted(refused);
    Ok((plan, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::config::Sweep;
    use crate::bench::hca::plan::LeftOut;
    use crate::bench::hca::plan::tests::single;
    use crate::rig::named::Named;

    fn plan(services: &[Service]) -> Plan {
        Plan::new(&Sweep {
            services: services.to_vec(),
            sizes: vec![8, 16],
            ..single()
        })
    }

    fn refused() -> CmError {
        CmError::NoCreateId2 {
            library: "librdmacm.so.1".to_owned(),
        }
    }

    #[test]
    fn auto_takes_the_patched_route_only_where_the_other_fails() {
        let choose = |works: fn(UcRoute) -> Result<(), CmError>| {
            let whole = plan(Service::ALL);
            let (left, route) =
                choose_route(whole.clone(), UcRouteRequest::Auto, works).expect("nothing is named");
            assert_eq!(left, whole);
            route
        };
        assert_eq!(choose(|_| Ok(())), Some(UcRoute::Endpoint));
        let only_patched = |route| match route {
            UcRoute::Endpoint => Err(refused()),
            UcRoute::Patched => Ok(()),
        };
        assert_eq!(choose(only_patched), Some(UcRoute::Patched));
    }

    #[test]
    fn without_a_route_uc_is_left_out_with_the_reason_and_the_others_remain() {
        let (left, route) =
            choose_route(plan(Service::ALL), UcRouteRequest::Auto, |_| Err(refused())).unwrap();
        assert_eq!(route, None);
        let services: Vec<_> = left.points.iter().map(|point| point.service).collect();
        assert_eq!(
            services,
            [Service::Rc, Service::Rc, Service::Ud, Service::Ud]
        );
        assert_eq!(left.left_out.len(), 2);
        for LeftOut { point, reason } in &left.left_out {
            assert_eq!(point.service, Service::Uc);
            for said in [
                "--service uc",
                "endpoint: ",
                "patched: ",
                "rdma-cm-patch/build",
            ] {
                assert!(reason.contains(said), "{said:?} is not in: {reason}");
            }
        }
        assert_eq!(left.check(), Ok(()));
    }

    #[test]
    fn with_nothing_but_uc_there_is_nothing_left_to_measure() {
        let (left, _) = choose_route(plan(&[Service::Uc]), UcRouteRequest::Auto, |_| {
            Err(refused())
        })
        .unwrap();
        let error = left.check().unwrap_err().to_string();
        assert!(error.contains("patched: "), "{error}");
    }

    #[test]
    fn a_route_that_was_named_is_taken_or_an_error_with_advice() {
        for (asked, route, other) in [
            (UcRouteRequest::Endpoint, UcRoute::Endpoint, "patched"),
            (UcRouteRequest::Patched, UcRoute::Patched, "endpoint"),
        ] {
            let works = choose_route(plan(Service::ALL), asked, |_| Ok(()));
            assert_eq!(works.unwrap().1, Some(route));
            let error = choose_route(plan(Service::ALL), asked, |_| Err(refused())).unwrap_err();
            let text = error.to_string();
            for said in [
                format!("--uc-route {}: ", route.name()),
                "leave uc out of --service".to_owned(),
                format!("--uc-route {other}"),
            ] {
                assert!(text.contains(&said), "{said:?} is not in: {text}");
            }
        }
    }

    #[test]
    fn where_no_point_is_uc_nothing_is_tried() {
        let untouched = |_| -> Result<(), CmError> { panic!("tried") };
        let (left, route) = choose_route(
            plan(&[Service::Rc, Service::Ud]),
            UcRouteRequest::Auto,
            untouched,
        )
        .unwrap();
        assert_eq!((left.points.len(), route), (4, None));
    }
}
