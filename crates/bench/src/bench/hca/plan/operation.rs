//! What the operations have to do with the other settings.

use super::{Limits, Point};
use crate::bench::hca::settings::config::{Operation, Poll, Service, Timestamp};
use crate::bench::hca::settings::limits::SMALLEST_SIZE;
use crate::time::Nanos;

/// Why the operation of a point is impossible with its other settings on any device.
pub(super) fn impossible_anywhere(point: &Point) -> Option<String> {
    let operation = point.operation;
    let (of, service) = (operation.name(), point.service.name());
    let no = |option: &str, why: &str| {
        Some(format!(
            "{option} is impossible with --operation {of}: {why}"
        ))
    };
    let from = |why: &str| {
        Some(format!(
            "--operation {of} is impossible with --service {service}: {why}"
        ))
    };
    match (operation, point.service) {
        (Operation::Send | Operation::Write, Service::Rc | Service::Uc)
        | (Operation::Send, Service::Ud) => return None,
        (Operation::Write | Operation::WritePolled, Service::Ud) => {
            return from("UD has no RDMA write; use send");
        }
        (Operation::WritePolled, Service::Uc) => {}
        (_, Service::Uc | Service::Ud) => {
            return from("only RC has RDMA reads and atomics; use --service rc");
        }
        (_, Service::Rc) => {}
    }
    if point.queue_pairs > 1 {
        let why = match operation {
            Operation::WritePolled => {
                "the receiver looks for one message after the other, and queue pairs keep no order between them; use write"
            }
            _ => "hcabench posts these requests to one queue pair; use --queue-pairs 1",
        };
        return no(&format!("--queue-pairs {}", point.queue_pairs), why);
    }
    if operation == Operation::WritePolled {
        return match point.poll_recv {
            Poll::Busy => None,
            Poll::Event => no(
                "--poll event of the receiver",
                "a write without immediate data makes no completion there, and so no event; use --poll-recv busy",
            ),
        };
    }
    if operation.is_atomic() && point.size != SMALLEST_SIZE {
        let size = format!("--size {}", point.size);
        return no(&size, "it changes 8 bytes; use --size 8");
    }
    if point.inline.is_on() {
        return no("--inline", "its request carries no data; use --inline off");
    }
    if point.unsignaled.is_on() {
        let why = "all that is seen of a request is its completion; use --unsignaled off";
        return no("--unsignaled", why);
    }
    if point.timestamp == Timestamp::Send {
        let why = "no message carries a stamp; use --timestamp submit";
        return no("--timestamp send", why);
    }
    let no_thread = "no thread of the receiving end takes part in it";
    if point.poll_recv == Poll::Event {
        let why = format!("{no_thread}; use --poll-recv busy");
        return no("--poll event of the receiver", &why);
    }
    if point.receiver_pause_ns > Nanos(0) {
        let why = format!("{no_thread}; use --receiver-pause 0");
        return no("--receiver-pause", &why);
    }
    None
}

/// Why it is impossible with these devices.
pub(super) fn impossible_within(point: &Point, limits: &Limits) -> Option<String> {
    if point.operation.is_one_way() {
        return None;
    }
    let of = point.operation.name();
    if limits.reads == 0 {
        return Some(format!(
            "--operation {of} is impossible: these devices allow no RDMA reads and atomics to be outstanding \
             (max_qp_init_rd_atom of the sender, max_qp_rd_atom of the receiver)"
        ));
    }
    (point.operation.is_atomic() && !limits.atomics).then(|| {
        format!("--operation {of} is impossible: not both of these devices have atomics (atomic_cap is none)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::plan::tests::limits;
    use crate::bench::hca::plan::{Plan, Sweep};
    use crate::bench::hca::settings::config::Switch;

    fn planned(change: impl FnOnce(&mut Sweep)) -> (Vec<Operation>, Vec<(Operation, String)>) {
        let mut sweep = Sweep {
            operations: Operation::ALL.to_vec(),
            ..single()
        };
        change(&mut sweep);
        let plan = Plan::new(&sweep).within(&limits());
        let measured = plan.points.iter().map(|point| point.operation);
        let left_out = plan.left_out.into_iter();
        let reasons = left_out.map(|one| (one.point.operation, one.reason));
        (measured.collect(), reasons.collect())
    }

    use Operation::{CompareSwap, FetchAdd, Read, Send, Write, WritePolled};

    #[test]
    fn reliable_connections_have_all_operations_with_eight_bytes() {
        assert_eq!(planned(|_| ()), (Operation::ALL.to_vec(), vec![]));
    }

    #[test]
    fn what_an_operation_cannot_do_is_left_out_with_the_option_and_a_way_out() {
        type Case = (fn(&mut Sweep), &'static [Operation], [&'static str; 2]);
        let cases: [Case; 9] = [
            (
                |sweep| sweep.queue_pairs = vec![2],
                &[Send, Write],
                ["--queue-pairs 2", "use"],
            ),
            (
                |sweep| sweep.services = vec![Service::Uc],
                &[Send, Write, WritePolled],
                ["--service uc", "use"],
            ),
            (
                |sweep| sweep.services = vec![Service::Ud],
                &[Send],
                ["--service ud", "use"],
            ),
            (
                |sweep| sweep.sizes = vec![9],
                &[Send, Write, WritePolled, Read],
                ["--size 9", "--size 8"],
            ),
            (
                |sweep| sweep.inline = vec![Switch::On],
                &[Send, Write, WritePolled],
                ["--inline", "off"],
            ),
            (
                |sweep| sweep.unsignaled = vec![Switch::On],
                &[Send, Write, WritePolled],
                ["--unsignaled", "off"],
            ),
            (
                |sweep| sweep.timestamps = vec![Timestamp::Send],
                &[Send, Write, WritePolled],
                ["--timestamp send", "submit"],
            ),
            (
                |sweep| sweep.polls = vec![(Poll::Event, Poll::Busy)],
                &[Send, Write],
                ["--poll event of the receiver", "--poll-recv busy"],
            ),
            (
                |sweep| sweep.receiver_pauses = vec![Nanos(7)],
                &[Send, Write, WritePolled],
                ["--receiver-pause", "--receiver-pause 0"],
            ),
        ];
        for (change, possible, words) in cases {
            let (measured, reasons) = planned(change);
            assert_eq!(measured, possible, "{reasons:?}");
            assert_eq!(measured.len() + reasons.len(), Operation::ALL.len());
            for (operation, reason) in reasons {
                let named = format!("--operation {}", operation.name());
                assert!(reason.contains(&named), "{reason}");
                assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
            }
        }
        // Completions have events.
        let (measured, _) = planned(|sweep| sweep.polls = vec![(Poll::Busy, Poll::Event)]);
        assert_eq!(measured, Operation::ALL);
    }

    #[test]
    fn devices_may_have_no_atomics_and_no_reads() {
        for (reads, atomics, possible) in [
            (1, false, &[Send, Write, WritePolled, Read][..]),
            (0, true, &[Send, Write, WritePolled]),
        ] {
            let limits = Limits {
                reads,
                atomics,
                ..limits()
            };
            let sweep = Sweep {
                operations: vec![Send, Write, WritePolled, Read, CompareSwap, FetchAdd],
                ..single()
            };
            let plan = Plan::new(&sweep).within(&limits);
            let measured: Vec<_> = plan.points.iter().map(|point| point.operation).collect();
            assert_eq!(measured, possible);
            assert!(plan.left_out[0].reason.contains("atom"));
        }
    }
}
