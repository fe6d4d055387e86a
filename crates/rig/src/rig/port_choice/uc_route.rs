//! Which route to UC a run uses.

use super::super::ports::UcRouteRequest;
use crate::rdma::cm::{CmError, UcRoute};

/// The route to UC that was asked for or, for `auto`, the first that works.
///
/// # Errors
/// Why none does, by route.
pub fn choose_route(
    asked: UcRouteRequest,
    works: impl Fn(UcRoute) -> Result<(), CmError>,
) -> Result<UcRoute, Vec<(UcRoute, CmError)>> {
    let mut refusals = Vec::new();
    for route in asked.routes() {
        match works(*route) {
            Ok(()) => return Ok(*route),
            Err(error) => refusals.push((*route, error)),
        }
    }
    Err(refusals)
}

impl UcRouteRequest {
    fn routes(self) -> &'static [UcRoute] {
        match self {
            UcRouteRequest::Auto => &UcRoute::ALL,
            UcRouteRequest::Endpoint => &[UcRoute::Endpoint],
            UcRouteRequest::Patched => &[UcRoute::Patched],
        }
    }
}
