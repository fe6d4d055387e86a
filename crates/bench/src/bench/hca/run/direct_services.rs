//! Which service types the connection manager does not connect between two ports: that a trial shows.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::settings::config::Service;
use crate::bench::hca::settings::path::{Connect, resolved};
use crate::host::threads::start_scoped;
use crate::rdma::cm::UcRoute;
use crate::rig::benchmark::ShowWait;

/// How long the trials of the connection manager may take in all: it repeats a lost message once within it.
pub(crate) const TRIAL_LIMIT: Duration = Duration::from_secs(12);

/// A trial that takes longer is shown.
pub(super) const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Tries, and shows after a while that it does.
pub(super) fn shown_if_slow<T>(
    show: Option<ShowWait>,
    after: Duration,
    tries: impl FnOnce() -> T,
) -> T {
    let Some(show) = show else {
        return tries();
    };
    let (ended, ends) = mpsc::channel::<()>();
    let watch = move || {
        if ends.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
            show(&format!(
                "trying the connection manager between the two ports, for at most {} s (--connect direct needs no \
                 trial)",
                TRIAL_LIMIT.as_secs()
            ));
        }
    };
    thread::scope(|scope| {
        // Where there is no thread for it, it is not shown.
        let _ = start_scoped(scope, thread::Builder::new(), watch);
        let tried = tries();
        drop(ended);
        tried
    })
}

/// The points that leave open how they are connected, and that the connection manager could connect.
pub(super) fn open_points(plan: &Plan) -> impl Iterator<Item = &Point> {
    let by_manager = |point: &&Point| {
        let connect = resolved(point.connect, &point.path, true);
        point.connect == Connect::Auto && connect == Connect::Manager
    };
    plan.points.iter().filter(by_manager)
}

/// Service types that the connection manager does not connect between two ports, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DirectServices {
    pub(super) services: Vec<Service>,
    pub(super) reasons: Vec<String>,
}

impl DirectServices {
    /// Connects a queue pair on trial, where points leave the way open: between two ports of one host the connection
    /// manager takes routes that few hosts have, and connecting directly does not. UC is tried separately, by its
    /// route. All trials together end within `limit`, and what there is no time to try fails as the last one did.
    pub(super) fn by_trial(
        plan: &Plan,
        uc_route: Option<UcRoute>,
        limit: Duration,
        mut fails: impl FnMut(&Point, UcRoute, Instant) -> Result<Option<String>, RunError>,
    ) -> Result<Self, RunError> {
        let until = Instant::now() + limit;
        let mut direct = DirectServices::default();
        let by_address = [Service::Rc, Service::Ud];
        for (services, route) in [
            (&by_address[..], Some(UcRoute::Endpoint)),
            (&[Service::Uc], uc_route),
        ] {
            let mut points = open_points(plan);
            let first = points.find(|point| services.contains(&point.service));
            if let Some((point, route)) = first.zip(route) {
                let reason = match direct.reasons.last() {
                    Some(reason) if Instant::now() >= until => Some(reason.clone()),
                    _ => fails(point, route, until)?,
                };
                direct.add(services, reason);
            }
        }
        Ok(direct)
    }

    pub(super) fn add(&mut self, services: &[Service], reason: Option<String>) {
        let Some(reason) = reason else {
            return;
        };
        self.services.extend_from_slice(services);
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::Sweep;
    use crate::bench::hca::settings::path::PathSettings;

    /// What trials are made for these service types, of which the ones named fail, and what follows.
    fn tried(
        services: &[Service],
        uc_route: Option<UcRoute>,
        failing: &[Service],
        limit: Duration,
    ) -> (Vec<(Service, UcRoute)>, DirectServices) {
        let sweep = Sweep {
            services: services.to_vec(),
            sizes: vec![8, 16],
            ..single()
        };
        let mut trials = Vec::new();
        let mut deadlines = Vec::new();
        let direct = DirectServices::by_trial(
            &Plan::new(&sweep),
            uc_route,
            limit,
            |point, route, until| {
                trials.push((point.service, route));
                deadlines.push(until);
                let fails = failing.contains(&point.service);
                Ok(fails.then(|| format!("no route for {}", point.service.name())))
            },
        );
        deadlines.dedup();
        assert!(deadlines.len() <= 1, "one for all");
        (trials, direct.unwrap())
    }

    #[test]
    fn uc_is_tried_by_its_route_and_apart_from_the_others() {
        let (endpoint, patched) = (UcRoute::Endpoint, UcRoute::Patched);
        let reason = |service: &str| vec![format!("no route for {service}")];
        let (trials, direct) = tried(Service::ALL, Some(patched), &[], TRIAL_LIMIT);
        assert_eq!(trials, [(Service::Rc, endpoint), (Service::Uc, patched)]);
        assert_eq!(direct, DirectServices::default());
        let (_, direct) = tried(Service::ALL, Some(patched), &[Service::Uc], TRIAL_LIMIT);
        assert_eq!(direct.services, [Service::Uc]);
        assert_eq!(direct.reasons, reason("uc"));
        let (_, direct) = tried(Service::ALL, Some(endpoint), &[Service::Rc], TRIAL_LIMIT);
        assert_eq!(direct.services, [Service::Rc, Service::Ud]);
        assert_eq!(direct.reasons, reason("rc"));
        let (trials, direct) = tried(&[Service::Ud], None, Service::ALL, TRIAL_LIMIT);
        assert_eq!(trials, [(Service::Ud, endpoint)]);
        assert_eq!(direct.reasons, reason("ud"));
        // A route that does not work is reported elsewhere.
        let (trials, _) = tried(&[Service::Uc], None, Service::ALL, TRIAL_LIMIT);
        assert_eq!(trials, []);
    }

    #[test]
    fn what_there_is_no_time_to_try_fails_as_the_last_did() {
        let route = Some(UcRoute::Endpoint);
        let (trials, direct) = tried(Service::ALL, route, &[Service::Rc], Duration::ZERO);
        assert_eq!(trials, [(Service::Rc, UcRoute::Endpoint)]);
        assert_eq!(direct.services, [Service::Rc, Service::Ud, Service::Uc]);
        assert_eq!(direct.reasons, ["no route for rc"]);
        let (trials, direct) = tried(Service::ALL, route, &[], Duration::ZERO);
        assert_eq!((trials.len(), direct), (2, DirectServices::default()));
    }

    #[test]
    fn only_a_trial_that_takes_long_is_shown() {
        static SHOWN: AtomicUsize = AtomicUsize::new(0);
        let show: ShowWait = |text| {
            assert!(text.contains("the connection manager"), "{text}");
            SHOWN.fetch_add(1, Ordering::SeqCst);
        };
        let (long, short) = (Duration::from_secs(600), Duration::from_millis(1));
        assert_eq!(shown_if_slow(Some(show), long, || 7), 7);
        assert_eq!(SHOWN.load(Ordering::SeqCst), 0);
        let wait = || {
            while SHOWN.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
        };
        shown_if_slow(Some(show), short, wait);
        assert_eq!(shown_if_slow(None, short, || 8), 8);
        assert_eq!(SHOWN.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_is_connected_in_one_way_only_is_not_tried() {
        let level = PathSettings {
            service_level: Some(3),
            ..PathSettings::default()
        };
        for (connect, path, count) in [
            (Connect::Auto, PathSettings::default(), 1),
            (Connect::Auto, level, 0),
            (Connect::Manager, PathSettings::default(), 0),
            (Connect::Direct, PathSettings::default(), 0),
        ] {
            let plan = Plan::new(&Sweep {
                connects: vec![connect],
                paths: vec![path],
                ..single()
            });
            assert_eq!(open_points(&plan).count(), count, "{connect:?}");
        }
    }
}
