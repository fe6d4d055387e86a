//! What the devices of the two hosts can do of a plan: each end is asked, and tries queue pairs and routes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::super::message::{Message, WORK, only};
use super::super::serving::receives_of;
use super::Client;
use crate::bench::hca::config::{Connect, Service};
use crate::bench::hca::error::RunError;
use crate::bench::hca::path::PathLimits;
use crate::bench::hca::plan::{Limits, Plan, Point};
use crate::bench::hca::run::refusal_in_words;
use crate::bench::hca::uc_route::choose_route;
use crate::bench::hca::verbs_link::queue_pair_lengths;
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::{Capabilities, Transport};
use crate::sorting::distinct;

impl Client {
    /// Leaves out of a plan what these two hosts cannot do.
    ///
    /// # Errors
    /// When one of them cannot be asked, or refuses the route to UC that is named.
    pub(in super::super) fn within_devices(&mut self, plan: Plan) -> Result<Plan, RunError> {
        let ends = [&self.here, &self.there];
        let iwarp = ends.iter().find(|end| end.transport == Transport::Iwarp);
        let reason =
            iwarp.map(|end| format!("{} is iWARP, which has no immediate data", end.device));
        let plan = plan.without(|point| {
            let needs_it = point.operation.has_immediate_data();
            reason.clone().filter(|_| needs_it)
        });
        let plan = plan.without(only_on_one_host);
        let has_addresses = ends.iter().all(|end| end.address.is_some());
        let failed = RefCell::new(None);
        let probe = |route: UcRoute| match self.probe(route) {
            Ok(refused) => refused.map_or(Ok(()), |text| Err(CmError::Far(text))),
            Err(error) => {
                let text = error.to_string();
                failed.borrow_mut().get_or_insert(error);
                Err(CmError::Far(text))
            }
        };
        let uc = plan.points.iter().any(|point| point.service == Service::Uc);
        let can_uc =
            has_addresses && uc && UcRoute::ALL.into_iter().any(|route| probe(route).is_ok());
        let plan = plan.connected(|service| has_addresses && (service != Service::Uc || can_uc));
        let by_manager = |point: &Point| point.connect == Connect::Manager;
        let plan = plan.without(|point| {
            (by_manager(point) && !has_addresses).then(|| {
                "--connect cm is impossible: one of the two ports has no IP address, which the connection manager needs: \
                 use --connect direct"
                    .to_owned()
            })
        });
        let plan = plan.within(&self.limits());
        let path = self.path_limits();
        let plan = plan.without(|point| path.impossible(point.connect, &point.path));
        let mut tried = HashMap::new();
        let plan = plan.without(|point| {
            let key = (
                point.service,
                point.burst,
                point.depth,
                point.queue_pairs,
                point.inline_bytes(),
            );
            let refusal = || match self.refusal(point) {
                Ok(refusal) => refusal,
                Err(error) => {
                    let text = error.to_string();
                    failed.borrow_mut().get_or_insert(error);
                    Some(text)
                }
            };
            tried.entry(key).or_insert_with(refusal).clone()
        });
        let (plan, route) =
            choose_route(plan, self.config.uc_route, probe).map_err(RunError::Usage)?;
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        self.uc_route = route;
        Ok(plan)
    }

    /// Tries a route to UC at both ends; tells why it is refused.
    fn probe(&self, route: UcRoute) -> Result<Option<String>, RunError> {
        if let Err(error) = self.half.probe(route) {
            return Ok(Some(error.to_string()));
        }
        self.ask(
            &Message::Route(route),
            WORK,
            only!(Message::Tried(refusal) => refusal),
        )
    }

    /// Tries the queue pairs of a point at both ends; tells why they are refused.
    fn refusal(&self, point: &Point) -> Result<Option<String>, RunError> {
        let requests = receives_of(point, &self.here, &self.there).requests;
        let (sending, receiving) =
            queue_pair_lengths(point.sends(), requests, point.inline_bytes());
        let (service, count) = (point.service, point.queue_pairs);
        let here = self.half.refuses(service, sending, count);
        let refused = match here {
            Some(error) => Some(error.to_string()),
            None => self.refused_there(service, receiving, count)?,
        };
        Ok(refused.map(|refused| refusal_in_words(point, &refused)))
    }

    fn refused_there(
        &self,
        service: Service,
        capabilities: Capabilities,
        count: u32,
    ) -> Result<Option<String>, RunError> {
        let attempt = Message::Try {
            service,
            capabilities,
            count,
        };
        self.ask(&attempt, WORK, only!(Message::Tried(refusal) => refusal))
    }

    fn limits(&self) -> Limits {
        let there = distinct(self.there.inline.iter().map(|(service, _)| *service));
        let both = self
            .here
            .inline
            .iter()
            .filter(|(service, _)| there.contains(service));
        let ports = self.here.to(&self.there);
        ports.limits(both.copied().collect())
    }

    fn path_limits(&self) -> PathLimits {
        let (here, there) = (&self.here, &self.there);
        let keys = [&here.partition_keys, &there.partition_keys];
        here.to(there).path_limits([&here.gids, &there.gids], keys)
    }
}

/// Why a point is measured on one host only.
fn only_on_one_host(point: &Point) -> Option<String> {
    let option = if let Some(background) = point.background {
        format!("--background {background}")
    } else if point.memory_load.is_on() {
        "--memory-load".to_owned()
    } else {
        return None;
    };
    Some(format!(
        "{option} is not measured between two hosts: leave it out, or leave out --peer"
    ))
}
