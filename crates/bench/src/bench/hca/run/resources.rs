//! What the ends of a point are made with, and what the devices have of it: by their attributes, and by trial.

use super::peer::Peer;
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::ends::verbs_link::LinkSide;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::{Operation, Switch};
use crate::bench::hca::settings::resources::ResourceOption;
use crate::rdma::verbs::{EndPlan, PagedUse, ServiceType, Transport};

/// Both ends of a point, where each queue holds that number of receive requests.
pub(super) fn plans(point: &Point, receives: u32) -> [EndPlan; 2] {
    [LinkSide::Sending, LinkSide::Receiving].map(|side| side.plan(point, receives))
}

/// Why a point is impossible with what the devices report, both of this host or not.
pub(super) fn impossible_within(
    point: &Point,
    ports: &TwoPorts<'_>,
    receives: u32,
    is_local: bool,
) -> Option<String> {
    let shared = || lacks_shared_queue(point, ports, receives, is_local);
    (shared().or_else(|| lacks_paging(point, ports)))
        .or_else(|| keeps_locks_in_thread_domain(point, ports))
}

fn lacks_shared_queue(
    point: &Point,
    ports: &TwoPorts<'_>,
    receives: u32,
    is_local: bool,
) -> Option<String> {
    if !point.resources.srq.is_on() {
        return None;
    }
    let [_, receiver] = ports.0;
    let (device, limits) = (&receiver.device, &receiver.limits);
    let (queues, requests) = (
        limits.max_shared_receive_queues,
        limits.max_shared_receive_requests,
    );
    if queues == 0 || requests == 0 {
        let limit = if queues == 0 { "max_srq" } else { "max_srq_wr" };
        return Some(format!(
            "--srq is impossible: {device} has no shared receive queues ({limit} is 0); use --srq off"
        ));
    }
    let most = ports.longest_receive_queue(point);
    (receives > most).then(|| {
        // Between two hosts a queue holds the whole burst.
        let shorter = match is_local {
            true => "--depth",
            false => "--burst",
        };
        format!(
            "--srq is impossible with --burst {} and --depth {}: a shared receive queue of {device} holds at most \
             {most} requests (max_srq_wr {requests}, max_cqe {}), and {receives} are needed; use a shorter {shorter}, \
             of at most {most}",
            point.burst,
            point.depth,
            limits.max_completion_queue_entries
        )
    })
}

/// For what the memory of an end is used.
fn paged_use(point: &Point, side: LinkSide) -> PagedUse {
    match (point.operation, side) {
        (Operation::Send, LinkSide::Sending) => PagedUse::Send,
        (Operation::Send, LinkSide::Receiving) => match point.resources.srq {
            Switch::Off => PagedUse::Receive,
            Switch::On => PagedUse::SharedReceive,
        },
        (Operation::Write | Operation::WritePolled, _) => PagedUse::Write,
        (Operation::Read, _) => PagedUse::Read,
        (Operation::CompareSwap | Operation::FetchAdd, _) => PagedUse::Atomic,
    }
}

fn lacks_paging(point: &Point, ports: &TwoPorts<'_>) -> Option<String> {
    if !point.resources.odp.is_on() {
        return None;
    }
    let sides = [LinkSide::Sending, LinkSide::Receiving];
    (sides.into_iter().zip(ports.0)).find_map(|(side, end)| {
        let (device, caps) = (&end.device, end.limits.on_demand_paging.as_ref());
        let Some(caps) = caps.filter(|caps| caps.is_there()) else {
            return Some(format!(
                "--odp is impossible: {device} has no on-demand paging (no odp_caps in ibv_query_device_ex); \
                 use --odp off"
            ));
        };
        let wanted = paged_use(point, side);
        let has = caps.has(ServiceType::from(point.service), wanted);
        (!has).then(|| {
            format!(
                "--odp is impossible with --operation {} and --service {}: {device} has no on-demand paging for it (no \
                 {} in odp_caps); use --odp off",
                point.operation.name(),
                point.service.name(),
                wanted.flag()
            )
        })
    })
}

/// EFA takes its locks unless the completion queue is in the same parent domain (rdma-core, providers/efa/verbs.c:
/// `efa_check_cq_on_same_pd_td`), and ours are in none: with or without a thread domain the same would be measured.
fn keeps_locks_in_thread_domain(point: &Point, ports: &TwoPorts<'_>) -> Option<String> {
    let mut ends = ports.0.into_iter();
    let efa = ends.find(|end| end.transport == Transport::Other)?;
    point.resources.thread_domain.is_on().then(|| {
        format!(
            "--thread-domain is impossible: the driver of {} (EFA) omits a lock only if the completion queue is in the \
             thread domain as well, and it is not; use --thread-domain off",
            efa.device
        )
    })
}

/// Why an option of a point is refused, tried with the smallest ends that have nothing but it.
pub(super) fn refusal<P: Peer>(
    peer: &P,
    point: &Point,
    option: ResourceOption,
) -> Result<Option<String>, RunError> {
    let alone = Point {
        burst: 1,
        depth: 1,
        queue_pairs: 1,
        inline: Switch::Off,
        resources: point.resources.only(option),
        ..*point
    };
    let refused = peer.refuses(&plans(&alone, 1))?;
    let (service, option) = (point.service.name(), option.name());
    Ok(refused.map(|refused| {
        format!("--{option} is impossible with --service {service} on these devices: {refused}; use --{option} off")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::ends::facts::Facts;
    use crate::bench::hca::ends::two_ports::tests::port;
    use crate::bench::hca::plan::Plan;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::config::Service;
    use crate::rdma::verbs::{LinkLayer, OnDemandPaging};

    fn end(change: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = port(100, [16, 16], LinkLayer::Ethernet);
        facts.device = "mlx5_0".to_owned();
        change(&mut facts);
        facts
    }

    fn point(change: impl FnOnce(&mut Point)) -> Point {
        let mut point = Plan::new(&single()).points[0];
        change(&mut point);
        point
    }

    #[test]
    fn a_shared_receive_queue_must_be_there_and_long_enough_at_the_receiver() {
        let shared = |depth| {
            point(|it| {
                it.resources.srq = Switch::On;
                (it.depth, it.queue_pairs) = (depth, 8);
            })
        };
        let none = end(|it| it.limits.max_shared_receive_queues = 0);
        let short = end(|it| {
            it.limits.max_shared_receive_requests = 70;
            it.limits.max_completion_queue_entries = 4000;
        });
        let here = end(|_| ());
        let found =
            |point: &Point, ends| impossible_within(point, &TwoPorts(ends), point.depth, true);
        assert_eq!(found(&point(|_| ()), [&none, &none]), None);
        // Only the receiver has one.
        assert_eq!(found(&shared(70), [&none, &short]), None);
        let reason = found(&shared(70), [&here, &none]).unwrap();
        assert!(reason.contains("max_srq is 0"), "{reason}");
        let reason = found(&shared(71), [&here, &short]).unwrap();
        for words in [
            "--depth 71",
            "max_srq_wr 70",
            "use a shorter --depth, of at most 70",
        ] {
            assert!(reason.contains(words), "{reason}");
        }
        // Between two hosts it holds the whole burst, whatever the depth.
        let ports = TwoPorts([&here, &short]);
        let reason = impossible_within(&shared(100), &ports, 100, false).unwrap();
        assert!(
            reason.ends_with("use a shorter --burst, of at most 70"),
            "{reason}"
        );
        let empty = end(|it| it.limits.max_shared_receive_requests = 0);
        let reason = found(&shared(1), [&here, &empty]).unwrap();
        assert!(reason.contains("max_srq_wr is 0"), "{reason}");
    }

    #[test]
    fn a_thread_domain_that_leaves_the_locks_is_not_measured() {
        let other = end(|it| it.transport = Transport::Other);
        let here = end(|_| ());
        let domain = point(|it| it.resources.thread_domain = Switch::On);
        let found = |point: &Point, ends| impossible_within(point, &TwoPorts(ends), 1, true);
        assert_eq!(found(&domain, [&here, &here]), None);
        assert_eq!(found(&point(|_| ()), [&other, &other]), None);
        let reason = found(&domain, [&here, &other]).unwrap();
        assert!(reason.contains("(EFA) omits a lock only if"), "{reason}");
    }

    #[test]
    fn on_demand_paging_is_by_service_type_and_operation() {
        let paged = |operation, service| {
            point(|it| {
                it.resources.odp = Switch::On;
                (it.operation, it.service) = (operation, service);
            })
        };
        let plain = end(|_| ());
        let with = |uses: &[PagedUse]| {
            end(|it| it.limits.on_demand_paging = Some(OnDemandPaging::of_rc(uses)))
        };
        let sends = with(&[PagedUse::Send, PagedUse::Read]);
        let all = with(&[PagedUse::Send, PagedUse::Receive, PagedUse::Read]);
        let found = |point: &Point, ends| impossible_within(point, &TwoPorts(ends), 1, true);
        let (rc, ud) = (Service::Rc, Service::Ud);
        let send = paged(Operation::Send, rc);
        assert_eq!(found(&send, [&sends, &all]), None);
        assert_eq!(found(&paged(Operation::Read, rc), [&all, &sends]), None);
        let unknown = end(|it| it.limits.on_demand_paging = None);
        for (point, ends, words) in [
            (send, [&plain, &all], "has no on-demand paging (no odp_caps"),
            (
                send,
                [&all, &unknown],
                "has no on-demand paging (no odp_caps",
            ),
            (send, [&all, &sends], "no IBV_ODP_SUPPORT_RECV in odp_caps"),
            (paged(Operation::Send, ud), [&all, &all], "--service ud"),
            (
                paged(Operation::Write, rc),
                [&all, &all],
                "no IBV_ODP_SUPPORT_WRITE",
            ),
            (
                paged(Operation::FetchAdd, rc),
                [&all, &all],
                "no IBV_ODP_SUPPORT_ATOMIC",
            ),
        ] {
            let reason = found(&point, ends).unwrap();
            assert!(reason.starts_with("--odp is impossible"), "{reason}");
            assert!(reason.contains(words), "{reason}");
        }
        let mut shared = send;
        shared.resources.srq = Switch::On;
        let reason = found(&shared, [&all, &all]).unwrap();
        assert!(reason.contains("IBV_ODP_SUPPORT_SRQ_RECV"), "{reason}");
    }
}
