//! What a shared receive queue and the registration of memory have to do with the other settings.

use super::Point;
use crate::bench::hca::settings::config::{Operation, Poll, Service};

/// Why what the ends of a point are made with is impossible with its other settings on any device.
pub(super) fn impossible_anywhere(point: &Point) -> Option<String> {
    let (resources, of) = (&point.resources, point.operation.name());
    if resources.srq.is_on() {
        if point.service == Service::Uc {
            return Some(
                "--srq is impossible with --service uc: shared receive queues are for RC and UD, the InfiniBand \
                 Architecture has none for UC; use --service rc or ud"
                    .to_owned(),
            );
        }
        if !point.operation.has_immediate_data() {
            return Some(format!(
                "--srq is impossible with --operation {of}: it takes no receive requests; use send or write"
            ));
        }
    }
    if resources.relaxed_ordering.is_on() && point.operation == Operation::WritePolled {
        return Some(format!(
            "--relaxed-ordering is impossible with --operation {of}: the receiver takes a message for whole once its \
             last byte is there, and with relaxed ordering others may arrive after it, so that latency would be too \
             short; use write, or --relaxed-ordering off"
        ));
    }
    if resources.thread_domain.is_on() && point.poll_comp == Poll::Event {
        return Some(
            "--thread-domain is impossible with --poll-comp event: a single thread uses its queue pairs, so the sender \
             takes the completions between posts, and cannot sleep for them; use --poll-comp busy"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::Plan;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::{Sweep, Switch};
    use crate::bench::hca::settings::resources::{ResourceOption, ResourceSettings};

    /// What is measured of all services and operations with this, and the reasons that name the option.
    fn planned(resources: ResourceSettings, option: &str) -> (Vec<(Service, Operation)>, usize) {
        let plan = Plan::new(&Sweep {
            services: Service::ALL.to_vec(),
            operations: Operation::ALL.to_vec(),
            resources: vec![resources],
            ..single()
        });
        let named = plan.left_out.iter();
        let named = named.filter(|one| one.reason.starts_with(&format!("{option} is impossible")));
        let points = plan.points.iter();
        let measured = points.map(|point| (point.service, point.operation));
        (measured.collect(), named.count())
    }

    #[test]
    fn a_shared_receive_queue_is_for_what_takes_receive_requests_on_rc_and_ud() {
        let shared = ResourceSettings {
            srq: Switch::On,
            ..ResourceSettings::default()
        };
        let (measured, named) = planned(shared, "--srq");
        let (rc, ud) = (Service::Rc, Service::Ud);
        let takes = [
            (rc, Operation::Send),
            (rc, Operation::Write),
            (ud, Operation::Send),
        ];
        assert_eq!(measured, takes);
        // Of RC four operations, of UC three.
        assert_eq!(named, 4 + 3);
    }

    #[test]
    fn relaxed_ordering_is_not_for_what_is_found_in_memory() {
        let relaxed = ResourceSettings {
            relaxed_ordering: Switch::On,
            ..ResourceSettings::default()
        };
        let (plain, _) = planned(ResourceSettings::default(), "");
        let (measured, named) = planned(relaxed, "--relaxed-ordering");
        let in_order = |(_, operation): &(Service, Operation)| *operation != Operation::WritePolled;
        assert!(measured.into_iter().eq(plain.into_iter().filter(in_order)));
        assert_eq!(named, 2);
    }

    #[test]
    fn what_is_in_a_thread_domain_is_not_waited_for() {
        let domain = ResourceSettings {
            thread_domain: Switch::On,
            ..ResourceSettings::default()
        };
        let plan = Plan::new(&Sweep {
            resources: vec![ResourceSettings::default(), domain],
            polls: vec![(Poll::Busy, Poll::Busy), (Poll::Event, Poll::Event)],
            ..single()
        });
        assert_eq!((plan.points.len(), plan.left_out.len()), (3, 1));
        let reason = &plan.left_out[0].reason;
        let says = "--thread-domain is impossible with --poll-comp event";
        assert!(reason.starts_with(says), "{reason}");
    }

    #[test]
    fn a_point_is_named_by_what_is_on() {
        let all = ResourceSettings {
            srq: Switch::On,
            relaxed_ordering: Switch::On,
            odp: Switch::On,
            thread_domain: Switch::On,
        };
        let plan = Plan::new(&Sweep {
            resources: vec![ResourceSettings::default(), all],
            queue_pairs: vec![4],
            ..single()
        });
        let [plain, with] = plan.points[..] else {
            panic!("{plan:?}");
        };
        let name = format!("{plain}-srq-relaxed_ordering-odp-thread_domain");
        assert_eq!(with.to_string(), name);
        assert_eq!((plain.receive_queues(), with.receive_queues()), (4, 1));
        for option in ResourceOption::ALL {
            assert!(all.only(option).chosen().eq([option]));
            assert_eq!(plain.resources.only(option), plain.resources);
        }
    }
}
