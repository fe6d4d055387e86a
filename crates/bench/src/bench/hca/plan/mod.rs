//! The sweep as a list: which points are measured, which cannot be and why.

#[cfg(feature = "rdma")]
pub(crate) mod crowded;
mod estimate;
mod operation;
pub mod placed;
#[allow(missing_docs)]
pub mod placement;
mod resources;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bench::hca::loops::signalling::Signalling;
use crate::bench::hca::settings::background::{Background, Traffic};
use crate::bench::hca::settings::config::{
    Arrivals, Operation, Poll, Rate, Service, Sweep, Switch, Timestamp,
};
use crate::bench::hca::settings::path::Connect;
use crate::bench::hca::settings::path::{PathSettings, impossible_by_manager, resolved};
use crate::bench::hca::settings::resources::{ResourceOption, ResourceSettings};
use crate::generators::MemoryLoad;
use crate::time::{ClockKind, Nanos};

/// The longest name of a folder on Linux, in bytes (NAME_MAX).
const LONGEST_NAME: usize = 255;

/// One combination of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Time between two posts, if they are not posted at a rate.
    pub pause_ns: Nanos,
    /// The rate at which they are posted.
    pub rate: Option<Rate>,
    /// What the receiver is away for before each look at its completion queue.
    pub receiver_pause_ns: Nanos,
    /// Which moment is stamped.
    pub timestamp: Timestamp,
    /// The clock.
    pub clock: ClockKind,
    /// How the queue pairs are connected.
    pub connect: Connect,
    /// Attributes of the path.
    pub path: PathSettings,
    /// What the ends are made with.
    pub resources: ResourceSettings,
    /// Queue pairs that the messages are spread over, in turn.
    pub queue_pairs: u32,
    /// Messages in flight at most.
    pub depth: u32,
    /// What is sent in the background.
    pub background: Option<Background>,
    /// What generators on other CPUs draw of memory bandwidth meanwhile.
    pub memory_load: MemoryLoad,
}

impl Point {
    /// Whether fewer messages may be in flight than a burst has, so that requests are posted anew while it runs.
    pub fn is_limited(&self) -> bool {
        self.depth < self.burst
    }

    /// Requests of each send queue. All messages in flight may be of one queue pair.
    pub fn sends(&self) -> u32 {
        self.depth.min(self.share(self.burst))
    }

    /// Of so many messages, those that one queue pair carries: the first of them carries as many.
    pub fn share(&self, messages: u32) -> u32 {
        messages.div_ceil(self.queue_pairs)
    }

    /// Queues that hold the receive requests of its queue pairs.
    pub fn receive_queues(&self) -> u32 {
        match self.resources.srq {
            Switch::Off => self.queue_pairs,
            Switch::On => 1,
        }
    }

    /// Bytes that are copied into the work request.
    pub fn inline_bytes(&self) -> u32 {
        if self.inline.is_on() { self.size } else { 0 }
    }

    /// The mean time between two posts, without what these take.
    pub fn mean_pause(&self) -> Duration {
        self.rate
            .map_or(Duration::from_nanos(self.pause_ns.0), Rate::interval)
    }

    /// The longest time between two posts.
    pub fn longest_pause(&self) -> Duration {
        self.rate.map_or(self.mean_pause(), Rate::longest_interval)
    }
}

impl fmt::Display for Point {
    /// The point's settings as a folder's name; of connection and path what was asked for.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pace = match self.rate {
            None => format!("pause{}ns", self.pause_ns.0),
            Some(rate) => match rate.arrivals {
                Arrivals::Constant => format!("rate{}", rate.per_second),
                Arrivals::Poisson => format!("poisson{}", rate.per_second),
            },
        };
        write!(
            formatter,
            "{}-{}-{}B-burst{}-{}-{}-recv_{}-comp_{}-{}-{}-{pace}-away{}ns",
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
            self.receiver_pause_ns.0,
        )?;
        if self.connect == Connect::Direct {
            write!(formatter, "-{}", self.connect.name())?;
        }
        for (name, value) in self.path.all() {
            if let Some(value) = value {
                write!(formatter, "-{}{value}", name.replace('-', "_"))?;
            }
        }
        if self.queue_pairs > 1 {
            write!(formatter, "-{}queue_pairs", self.queue_pairs)?;
        }
        for name in self.resources.chosen().map(ResourceOption::name) {
            write!(formatter, "-{}", name.replace('-', "_"))?;
        }
        if self.is_limited() {
            write!(formatter, "-depth{}", self.depth)?;
        }
        if let Some(background) = self.background {
            write!(formatter, "-background{background}")?;
            if background.traffic == Traffic::None {
                write!(formatter, "-unsent")?;
            }
        }
        formatter.write_str(&self.memory_load.in_name())
    }
}

/// A point that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExcludedPoint {
    /// The point.
    pub point: Point,
    /// Why, naming the options in question and what is possible.
    pub reason: String,
}

/// What the two devices and the way between them allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs, the smaller of the two devices.
    pub queue_pairs: u32,
    /// Work requests of a queue, the smaller of the two devices.
    pub queue_pair_work_requests: u32,
    /// Entries of a completion queue, the smaller of the two devices.
    pub completion_queue_entries: u32,
    /// Largest UD message: the smaller active MTU of the two ports, in bytes.
    pub path_mtu: u32,
    /// Largest message of the connected service types, in bytes.
    pub message: u32,
    /// RDMA reads and atomics that the sending device may have outstanding and the receiving one serves.
    pub reads: u8,
    /// Whether both have atomics.
    pub atomics: bool,
    /// Inline bytes that the sending device grants for each service type that both devices have.
    pub inline: Vec<(Service, u32)>,
}

/// The points of a sweep, in order, and those left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// To be measured.
    pub points: Vec<Point>,
    /// Impossible.
    pub left_out: Vec<ExcludedPoint>,
}

impl Plan {
    /// The product of the lists, without what is impossible on any device.
    pub fn new(sweep: &Sweep) -> Self {
        let whole = Plan {
            points: product(sweep),
            left_out: Vec::new(),
        };
        whole.each_once().without(impossible_anywhere)
    }

    /// The same with the way of connecting chosen for points that leave it open. `can` says of which service types the
    /// connection manager makes queue pairs.
    pub fn connected(mut self, can: impl Fn(Service) -> bool) -> Self {
        for point in &mut self.points {
            point.connect = resolved(point.connect, &point.path, can(point.service));
        }
        self.each_once()
    }

    /// The first of each set of equal points.
    fn each_once(mut self) -> Self {
        let mut seen = HashSet::new();
        self.points.retain(|point| seen.insert(*point));
        self
    }

    /// The same without what these devices cannot do.
    pub fn within(self, limits: &Limits) -> Self {
        self.without(|point| impossible_within(point, limits))
    }

    /// The same without the points that are impossible, by the reason that is given.
    pub fn without(mut self, mut impossible: impl FnMut(&Point) -> Option<String>) -> Self {
        for point in std::mem::take(&mut self.points) {
            match impossible(&point) {
                None => self.points.push(point),
                Some(reason) => self.left_out.push(ExcludedPoint { point, reason }),
            }
        }
        self
    }

    /// Fails if nothing is left to measure.
    pub fn check(&self) -> Result<(), String> {
        match (self.points.as_slice(), self.left_out.as_slice()) {
            ([_, ..], _) | ([], []) => Ok(()),
            ([], [only]) => Err(only.reason.clone()),
            ([], [first, ..]) => Err(format!(
                "none of the {} points of this sweep can be measured; the first: {}",
                self.left_out.len(),
                first.reason
            )),
        }
    }
}

/// All combinations; the last list changes fastest.
fn product(sweep: &Sweep) -> Vec<Point> {
    fn each<T: Copy>(points: Vec<Point>, values: &[T], set: impl Fn(&mut Point, T)) -> Vec<Point> {
        let with = |mut point: Point, value: T| {
            set(&mut point, value);
            point
        };
        let of = |point: Point| values.iter().map(move |&value| (point, value));
        let all = points.into_iter().flat_map(of);
        all.map(|(point, value)| with(point, value)).collect()
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
        rate: None,
        receiver_pause_ns: Nanos(0),
        timestamp: Timestamp::Submit,
        clock: ClockKind::Monotonic,
        connect: Connect::Auto,
        path: PathSettings::default(),
        resources: ResourceSettings::default(),
        queue_pairs: 1,
        depth: 1,
        background: None,
        memory_load: MemoryLoad::OFF,
    };
    let points = vec![blank];
    let points = each(points, &sweep.services, |p, value| p.service = value);
    let points = each(points, &sweep.operations, |p, value| p.operation = value);
    let points = each(points, &sweep.connects, |p, value| p.connect = value);
    let points = each(points, &sweep.paths, |p, value| {
        p.path = value.of(p.service)
    });
    let points = each(points, &sweep.queue_pairs, |p, value| p.queue_pairs = value);
    let points = each(points, &sweep.resources, |p, value| p.resources = value);
    let points = each(points, &sweep.clocks, |p, value| p.clock = value);
    let points = each(points, &sweep.timestamps, |p, value| p.timestamp = value);
    let points = each(points, &sweep.polls, |p, (recv, comp)| {
        (p.poll_recv, p.poll_comp) = (recv, comp);
    });
    let points = each(points, &sweep.unsignaled, |p, value| p.unsignaled = value);
    let points = each(points, &sweep.inline, |p, value| p.inline = value);
    let points = each(points, &sweep.pauses, |p, value| p.pause_ns = value);
    let points = each(points, &sweep.rates, |p, value| p.rate = value);
    let points = each(points, &sweep.receiver_pauses, |p, value| {
        p.receiver_pause_ns = value;
    });
    let points = each(points, &sweep.bursts, |p, value| p.burst = value);
    let points = each(points, &sweep.depths, |p, value| {
        p.depth = value.map_or(p.burst, |depth| depth.min(p.burst));
    });
    let points = each(points, &sweep.sizes, |p, value| p.size = value);
    let points = each(points, &sweep.backgrounds, |p, value| p.background = value);
    each(points, &sweep.memory_loads, |p, value| {
        p.memory_load = value;
    })
}

fn impossible_anywhere(point: &Point) -> Option<String> {
    let by_operation = operation::impossible_anywhere(point);
    if let Some(reason) = by_operation.or_else(|| resources::impossible_anywhere(point)) {
        return Some(reason);
    }
    if point.timestamp == Timestamp::Send && point.inline.is_on() {
        return Some(
            "--timestamp send is impossible with --inline: inline data is copied when the request is posted, so the \
             stamp cannot change afterwards; use --timestamp submit or --inline off"
                .to_owned(),
        );
    }
    let (queue_pairs, burst) = (point.queue_pairs, point.burst);
    if queue_pairs > burst {
        return Some(format!(
            "--queue-pairs {queue_pairs} is impossible with --burst {burst}: the messages of a burst are spread over the \
             queue pairs, and some would have none; use a longer burst"
        ));
    }
    if queue_pairs > 1 && point.timestamp == Timestamp::Send {
        return Some(format!(
            "--queue-pairs {queue_pairs} is impossible with --timestamp send: messages of different queue pairs \
             overtake each other, so the stamps still to be rewritten are unknown; use --timestamp submit"
        ));
    }
    let depth = point.depth;
    let is_each = Signalling::longest_run(depth, queue_pairs) == 1;
    if point.unsignaled.is_on() && point.is_limited() && is_each {
        return Some(format!(
            "--unsignaled is impossible with --depth {depth} and --queue-pairs {queue_pairs}: each message must be signalled, so \
             that there is room for the next; use a depth of at least {}",
            4 * queue_pairs
        ));
    }
    let longest = point.to_string().len();
    if longest > LONGEST_NAME {
        return Some(format!(
            "its settings make a folder's name of {longest} bytes, and at most {LONGEST_NAME} are possible: give fewer settings of \
             path, depth and background at once"
        ));
    }
    impossible_by_manager(point.connect, &point.path)
}

/// Requests that a queue of each of several queue pairs holds: all those of an end have one completion queue.
pub fn longest_queue(work_requests: u32, completion_queue_entries: u32, queue_pairs: u32) -> u32 {
    work_requests.min(completion_queue_entries / queue_pairs)
}

fn impossible_within(point: &Point, limits: &Limits) -> Option<String> {
    if let Some(reason) = operation::impossible_within(point, limits) {
        return Some(reason);
    }
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
    if let Some(background) = point.background
        && background.size > limits.message
    {
        return Some(format!(
            "--background {background} is impossible: the largest message of these ports is {} bytes",
            limits.message
        ));
    }
    let service = point.service.name();
    let mut granted = limits.inline.iter();
    let Some(&(_, inline)) = granted.find(|(of, _)| *of == point.service) else {
        return Some(format!(
            "--service {service} is impossible: not both of these devices have queue pairs of that type"
        ));
    };
    if point.inline.is_on() && size > inline {
        return Some(format!(
            "--inline is impossible with --size {size} and --service {service}: the sending device takes at most {inline} \
             bytes inline"
        ));
    }
    let (queue_pairs, most) = (point.queue_pairs, limits.queue_pairs);
    if queue_pairs > most {
        return Some(format!(
            "--queue-pairs {queue_pairs} is impossible: these devices have at most {most} (max_qp)"
        ));
    }
    let (requests, entries) = (
        limits.queue_pair_work_requests,
        limits.completion_queue_entries,
    );
    let queue = longest_queue(requests, entries, queue_pairs);
    if point.sends() > queue {
        let what = if point.is_limited() {
            format!("--depth {}", point.depth)
        } else {
            format!("--burst {} without a shorter --depth", point.burst)
        };
        let with = match queue_pairs {
            1 => String::new(),
            several => format!(" with --queue-pairs {several}"),
        };
        return Some(format!(
            "{what} is impossible{with}: these devices hold at most {} requests (max_qp_wr {requests}, max_cqe \
             {entries})",
            queue * queue_pairs
        ));
    }
    None
}

#[cfg(any(test, feature = "testing"))]
pub mod made_up;
#[cfg(test)]
mod tests;
