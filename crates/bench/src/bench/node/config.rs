//! What is the same for all points.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::between::peer::PeerConfig;
use crate::buffer::{Bytes, HugePagePolicy};
use crate::node::fallback::Fallback;
use crate::node::settings::{BrokerAddress, Poll, Qos, RedisKind, SocketSettings};
use crate::rig::named::{Named, named};
use crate::rig::ports::{PortRequest, UcRouteRequest};
use crate::stats::interval_of;
use crate::time::ClockKind;

/// The most publishers, and the most subscribers: each has a thread or a process.
pub const MOST_ENDS: u32 = 1024;

/// What tells a publisher that the next step is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerKind {
    /// The processor's counter, read again and again.
    Counter,
    /// A timer of the kernel, which wakes the thread.
    Timerfd,
}

impl TimerKind {
    /// The clock of the timer, with which everything is stamped.
    pub fn clock(self) -> ClockKind {
        match self {
            TimerKind::Counter => ClockKind::Counter,
            TimerKind::Timerfd => ClockKind::Monotonic,
        }
    }
}

impl Named for TimerKind {
    const ALL: &'static [Self] = &[TimerKind::Counter, TimerKind::Timerfd];
    const ALSO: &'static [(&'static str, Self)] = &[("counter", TimerKind::Counter)];

    fn name(self) -> &'static str {
        match self {
            TimerKind::Counter => ClockKind::Counter.name(),
            TimerKind::Timerfd => "timerfd",
        }
    }
}

named! {
    /// What becomes of steps that were due while the publisher was busy with something else.
    MissPolicy {
        /// They are missed, as in a control system: the sample of the last one due is sent.
        Skip = "skip",
        /// All of them follow at once: load that comes from outside behaves so.
        CatchUp = "catch-up",
    }
}

named! {
    /// What the ends of a node are.
    RunsAs {
        /// Threads of one process.
        Threads = "threads",
        /// Processes, one for each.
        Processes = "processes",
    }
}

/// Where ends note what they send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogPlace {
    /// In memory that has room for all.
    Memory,
    /// In a file, a buffer at a time.
    File {
        /// The size of the buffer.
        buffer: Bytes,
    },
}

named! {
    /// The format of files of samples.
    Format {
        /// CSV, with the columns of the schema.
        Hcabench = "hcabench",
        /// `villas.human` of VILLASnode.
        Villas = "villas",
    }
}

/// How long a publisher publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublishingLength {
    /// So many steps.
    Count(u64),
    /// As many as fall into this time.
    Duration(Duration),
}

/// What concerns the node-type infiniband alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerbsConfig {
    /// The port of the publishers.
    pub sender: Option<PortRequest>,
    /// The port of the subscribers.
    pub receiver: Option<PortRequest>,
    /// How queue pairs for UC are made.
    pub uc_route: UcRouteRequest,
    /// See [`Verbs`](crate::node::settings::Verbs).
    pub max_inline: u32,
    /// See [`Verbs`](crate::node::settings::Verbs).
    pub signal_every: u32,
    /// See [`Verbs`](crate::node::settings::Verbs).
    pub receive_threshold: Option<u32>,
    /// See [`Verbs`](crate::node::settings::Verbs); without one, they listen where they can.
    pub fallback: Option<Fallback>,
}

/// The broker of node-types that take one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerChoice {
    /// One of our own for each run.
    Spawn,
    /// One that runs.
    At(BrokerAddress),
}

/// The settings of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Config {
    /// What is measured of each publisher.
    pub length: PublishingLength,
    /// The time before that, at the same rate; what is sent in it does not count.
    pub warmup: Duration,
    /// How long is waited at most for what is still under way when all publishers have ended.
    pub drain: Duration,
    /// How long connecting may take.
    pub timeout: Duration,
    /// What publishers wait for.
    pub timer: TimerKind,
    /// How subscribers wait.
    pub poll: Poll,
    /// What becomes of missed steps.
    pub after_miss: MissPolicy,
    /// Samples that a subscriber takes in one call at most.
    pub vectorize: usize,
    /// See [`Settings`](crate::node::Settings).
    pub send_queue: u32,
    /// See [`Settings`](crate::node::Settings).
    pub receive_queue: u32,
    /// What concerns the node-type infiniband alone.
    pub verbs: VerbsConfig,
    /// See [`Settings`](crate::node::Settings).
    pub qos: Qos,
    /// See [`Settings`](crate::node::Settings).
    pub redis_kind: RedisKind,
    /// Who distributes, where a broker does.
    pub broker: BrokerChoice,
    /// The process of a broker that runs, whose processor time and memory are of interest.
    pub broker_process: Option<u32>,
    /// See [`Settings`](crate::node::Settings).
    pub zeromq_port: Option<u16>,
    /// See [`Settings`](crate::node::Settings).
    pub sockets: SocketSettings,
    /// The other host, on which the subscribers are, if there is one.
    pub peer: Option<PeerConfig>,
    /// Pages of samples and stamps.
    pub huge_pages: HugePagePolicy,
    /// What the values of samples follow from.
    pub seed: u64,
    /// Where ends note what they send and receive.
    pub log: LogPlace,
    /// Whether somebody looks at rate and percentile while it is measured.
    pub tells_progress: bool,
    /// The formats in which a row is written for each sample.
    pub keep_samples: Vec<Format>,
    /// The length of intervals in logs, where one was asked for.
    pub hlog_interval: Option<Duration>,
}

impl Config {
    /// Steps of a publisher that count, at that rate.
    pub fn steps(&self, rate_per_s: f64) -> u64 {
        match self.length {
            PublishingLength::Count(count) => count,
            PublishingLength::Duration(duration) => steps_in(duration, rate_per_s).max(1),
        }
    }

    /// How long steps that count go on, at that rate.
    pub(super) fn lasts(&self, rate_per_s: f64) -> Duration {
        let seconds = self.steps(rate_per_s) as f64 / rate_per_s;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The length of intervals in logs, at that rate; `None` where there are no logs: between two hosts samples have no
    /// latency but bounds of one.
    pub(super) fn interval(&self, rate_per_s: f64) -> Option<Duration> {
        let interval = interval_of(self.lasts(rate_per_s), self.hlog_interval);
        interval.filter(|_| self.peer.is_none())
    }

    /// Steps before them.
    pub fn warmup_steps(&self, rate_per_s: f64) -> u64 {
        steps_in(self.warmup, rate_per_s)
    }
}

fn steps_in(time: Duration, rate_per_s: f64) -> u64 {
    (time.as_secs_f64() * rate_per_s).round() as u64
}
