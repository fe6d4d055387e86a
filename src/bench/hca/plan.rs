//! The sweep as a list: which points are measured, which cannot be and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::{Operation, Poll, Service, Sweep, Switch, Timestamp};
use crate::rig::named::Named;
use crate::time::{ClockKind, Nanos};

/// One combination of settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Point {
    /// Service type.
    pub service: Service,
    /// Operation.
    pub operation: Operation,
    /// Message size in bytes.
    pub size: u32,
    /// Messages of a burst.
    pub burst: u32,
    /// Whether data is copied into the work request.
    pub inline: Switch,
    /// Whether only the last message of a queue's length is signalled.
    pub unsignaled: Switch,
    /// Poll mode of the receiving side.
    pub poll_recv: Poll,
    /// Poll mode of the completion side.
    pub poll_comp: Poll,
    /// Time between two posts.
    pub pause_ns: Nanos,
    /// What the receiver is away for before each look at its completion queue.
    pub receiver_pause_ns: Nanos,
    /// Which moment is stamped.
    pub timestamp: Timestamp,
    /// The clock.
    pub clock: ClockKind,
}

impl fmt::Display for Point {
    /// The point's settings as a folder's name.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}-{}-{}B-burst{}-{}-{}-recv_{}-comp_{}-{}-{}-pause{}ns-away{}ns",
            self.service.name(),
            self.operation.name(),
            self.size,
            self.burst,
            if self.inline.is_on() {
                "inline"
            } else {
                "buffer"
            },
            if self.unsignaled.is_on() {
                "unsignaled"
            } else {
                "signaled"
            },
            self.poll_recv.name(),
            self.poll_comp.name(),
            self.timestamp.name(),
            self.clock.name(),
            self.pause_ns.0,
            self.receiver_pause_ns.0,
        )
    }
}

/// A point that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The point.
    pub point: Point,
    /// Why, naming the options in question and what is possible.
    pub reason: String,
}

/// What the two devices and the way between them allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Work requests of a queue, the smaller of the two devices.
    pub queue_pair_work_requests: u32,
    /// Entries of a completion queue, the smaller of the two devices.
    pub completion_queue_entries: u32,
    /// Largest UD message: the smaller active MTU of the two ports, in bytes.
    pub path_mtu: u32,
    /// Largest message of the connected service types, in bytes.
    pub message: u32,
    /// Inline bytes that the sending device grants for each service type that both devices have.
    pub inline: Vec<(Service, u32)>,
}

/// The points of a sweep, in order, and those left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// To be measured.
    pub points: Vec<Point>,
    /// Impossible.
    pub left_out: Vec<LeftOut>,
}

/// Nothing can be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The only point asked for is impossible.
    #[error("{0}")]
    Impossible(String),
    /// So are all points of the sweep.
    #[error("none of the {count} points of this sweep can be measured; the first: {reason}")]
    AllImpossible {
        /// How many there are.
        count: usize,
        /// Why the first is impossible.
        reason: String,
    },
}

impl Plan {
    /// The product of the lists, without what is impossible on any device.
    pub fn new(sweep: &Sweep) -> Self {
        let mut plan = Plan {
            points: Vec::new(),
            left_out: Vec::new(),
        };
        for point in product(sweep) {
            match impossible_anywhere(&point) {
                None => plan.points.push(point),
                Some(reason) => plan.left_out.push(LeftOut { point, reason }),
            }
        }
        plan
    }

    /// The same without what these devices cannot do. `warmup` is the number of messages before the measured ones.
    pub fn within(self, limits: &Limits, warmup: u32) -> Self {
        let mut plan = Plan {
            points: Vec::new(),
            left_out: self.left_out,
        };
        for point in self.points {
            match impossible_within(&point, limits, warmup) {
                None => plan.points.push(point),
                Some(reason) => plan.left_out.push(LeftOut { point, reason }),
            }
        }
        plan
    }

    /// The same without the points to which `admit` objects, with its reason.
    ///
    /// # Errors
    /// Those of `admit`.
    pub fn admitted<E>(
        self,
        mut admit: impl FnMut(&Point) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let mut plan = Plan {
            points: Vec::new(),
            left_out: self.left_out,
        };
        for point in self.points {
            match admit(&point)? {
                None => plan.points.push(point),
                Some(reason) => plan.left_out.push(LeftOut { point, reason }),
            }
        }
        Ok(plan)
    }

    /// Fails if nothing is left to measure.
    ///
    /// # Errors
    /// With the reason of the first point that was left out.
    pub fn check(&self) -> Result<(), PlanError> {
        match (self.points.is_empty(), self.left_out.as_slice()) {
            (false, _) | (true, []) => Ok(()),
            (true, [only]) => Err(PlanError::Impossible(only.reason.clone())),
            (true, [first, ..]) => Err(PlanError::AllImpossible {
                count: self.left_out.len(),
                reason: first.reason.clone(),
            }),
        }
    }
}

/// All combinations; the last list changes fastest.
fn product(sweep: &Sweep) -> Vec<Point> {
    fn each<T: Copy>(points: Vec<Point>, values: &[T], set: impl Fn(&mut Point, T)) -> Vec<Point> {
        let with = |point: Point| {
            values
                .iter()
                .map(|&value| {
                    let mut point = point.clone();
                    set(&mut point, value);
                    point
                })
                .collect::<Vec<_>>()
        };
        points.into_iter().flat_map(with).collect()
    }
    // Its values are all set below.
    let blank = Point {
        service: Service::Rc,
        operation: Operation::Send,
        size: 0,
        burst: 0,
        inline: Switch::Off,
        unsignaled: Switch::Off,
        poll_recv: Poll::Busy,
        poll_comp: Poll::Busy,
        pause_ns: Nanos(0),
        receiver_pause_ns: Nanos(0),
        timestamp: Timestamp::Submit,
        clock: ClockKind::Monotonic,
    };
    let points = each(vec![blank], &sweep.services, |point, value| {
        point.service = value
    });
    let points = each(points, &sweep.operations, |point, value| {
        point.operation = value
    });
    let points = each(points, &sweep.clocks, |point, value| point.clock = value);
    let points = each(points, &sweep.timestamps, |point, value| {
        point.timestamp = value
    });
    let points = each(points, &sweep.polls, |point, value| {
        (point.poll_recv, point.poll_comp) = value;
    });
    let points = each(points, &sweep.unsignaled, |point, value| {
        point.unsignaled = value
    });
    let points = each(points, &sweep.inline, |point, value| point.inline = value);
    let points = each(points, &sweep.pauses, |point, value| point.pause_ns = value);
    let points = each(points, &sweep.receiver_pauses, |point, value| {
        point.receiver_pause_ns = value;
    });
    let points = each(points, &sweep.bursts, |point, value| point.burst = value);
    each(points, &sweep.sizes, |point, value| point.size = value)
}

fn impossible_anywhere(point: &Point) -> Option<String> {
    if point.service == Service::Ud && point.operation == Operation::Write {
        return Some(
            "--operation write is impossible with --service ud: UD has no RDMA write; use send"
                .to_owned(),
        );
    }
    if point.timestamp == Timestamp::Send && point.inline.is_on() {
        return Some(
            "--timestamp send is impossible with --inline: inline data is copied when the request is posted, so the \
             stamp cannot change afterwards; use --timestamp submit or --inline off"
                .to_owned(),
        );
    }
    None
}

fn impossible_within(point: &Point, limits: &Limits, warmup: u32) -> Option<String> {
    let size = point.size;
    if point.service == Service::Ud && size > limits.path_mtu {
        return Some(format!(
            "--size {size} is impossible with --service ud: a UD message is one packet, and the path MTU is {} bytes",
            limits.path_mtu
        ));
    }
    if size > limits.message {
        return Some(format!(
            "--size {size} is impossible: the largest message of these ports is {} bytes",
            limits.message
        ));
    }
    let granted = limits
        .inline
        .iter()
        .find(|(service, _)| *service == point.service);
    let Some(&(_, inline)) = granted else {
        return Some(format!(
            "--service {} is impossible: not both of these devices have queue pairs of that type",
            point.service.name()
        ));
    };
    if point.inline.is_on() && size > inline {
        return Some(format!(
            "--inline is impossible with --size {size} and --service {}: the sending device takes at most {inline} bytes inline",
            point.service.name()
        ));
    }
    let queue = limits
        .queue_pair_work_requests
        .min(limits.completion_queue_entries);
    for (option, messages) in [("--burst", point.burst), ("--warmup", warmup)] {
        if messages > queue {
            return Some(format!(
                "{option} {messages} is impossible: these devices hold at most {queue} requests (max_qp_wr {}, max_cqe {})",
                limits.queue_pair_work_requests, limits.completion_queue_entries
            ));
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::bench::hca) fn single() -> Sweep {
        Sweep {
            services: vec![Service::Rc],
            operations: vec![Operation::Send],
            inline: vec![Switch::Off],
            unsignaled: vec![Switch::Off],
            polls: vec![(Poll::Busy, Poll::Busy)],
            timestamps: vec![Timestamp::Submit],
            clocks: vec![ClockKind::Monotonic],
            pauses: vec![Nanos(0)],
            receiver_pauses: vec![Nanos(0)],
            bursts: vec![1000],
            sizes: vec![8],
        }
    }

    fn limits() -> Limits {
        Limits {
            queue_pair_work_requests: 16_384,
            completion_queue_entries: 4096,
            path_mtu: 1024,
            message: 1 << 30,
            inline: vec![(Service::Rc, 512), (Service::Uc, 512), (Service::Ud, 256)],
        }
    }

    #[test]
    fn one_value_each_is_one_point() {
        let plan = Plan::new(&single()).within(&limits(), 100);
        assert_eq!(plan.points.len(), 1);
        assert!(plan.left_out.is_empty());
        assert_eq!(
            plan.points[0].to_string(),
            "rc-send-8B-burst1000-buffer-signaled-recv_busy-comp_busy-submit-monotonic-pause0ns-away0ns"
        );
    }

    #[test]
    fn a_sweep_is_the_product_and_every_point_is_measured_or_has_a_reason() {
        let sweep = Sweep {
            services: Service::ALL.to_vec(),
            operations: Operation::ALL.to_vec(),
            inline: Switch::ALL.to_vec(),
            sizes: crate::bench::hca::config::all_sizes().collect(),
            ..single()
        };
        let plan = Plan::new(&sweep).within(&limits(), 100);
        assert_eq!(plan.points.len() + plan.left_out.len(), 3 * 2 * 2 * 13);
        // RC and UC: 13 sizes without inline and the 7 up to 512 B with it; UD send: 8 up to 1024 B, 6 up to 256 B.
        assert_eq!(plan.points.len(), 2 * 2 * (13 + 7) + 8 + 6);
        let names: std::collections::HashSet<_> =
            plan.points.iter().map(Point::to_string).collect();
        assert_eq!(names.len(), plan.points.len());
    }

    #[test]
    fn impossible_alone_is_an_error_that_names_the_options() {
        let cases = [
            (
                Sweep {
                    services: vec![Service::Ud],
                    operations: vec![Operation::Write],
                    ..single()
                },
                ["--operation write", "ud"],
            ),
            (
                Sweep {
                    inline: vec![Switch::On],
                    timestamps: vec![Timestamp::Send],
                    ..single()
                },
                ["--timestamp send", "--inline"],
            ),
            (
                Sweep {
                    services: vec![Service::Ud],
                    sizes: vec![2048],
                    ..single()
                },
                ["--size 2048", "1024"],
            ),
            (
                Sweep {
                    inline: vec![Switch::On],
                    sizes: vec![1024],
                    ..single()
                },
                ["--inline", "512"],
            ),
            (
                Sweep {
                    bursts: vec![8192],
                    ..single()
                },
                ["--burst 8192", "4096"],
            ),
        ];
        for (sweep, words) in cases {
            let error = Plan::new(&sweep)
                .within(&limits(), 100)
                .check()
                .unwrap_err()
                .to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }

    #[test]
    fn a_sweep_with_something_left_is_no_error_and_one_without_is() {
        let mut sweep = Sweep {
            services: vec![Service::Ud],
            sizes: vec![1024, 2048, 4096],
            ..single()
        };
        assert_eq!(Plan::new(&sweep).within(&limits(), 100).check(), Ok(()));
        sweep.sizes.remove(0);
        let error = Plan::new(&sweep)
            .within(&limits(), 100)
            .check()
            .unwrap_err();
        assert!(matches!(error, PlanError::AllImpossible { count: 2, .. }));
    }
}
