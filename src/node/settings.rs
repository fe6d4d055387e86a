//! What node-types can be told. Each takes what concerns it.

use std::time::Duration;

use crate::buffer::HugePagePolicy;
use crate::rig::named::Named;
use crate::rig::ports::Service;

/// How a subscriber waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Poll {
    /// It looks again and again.
    Busy,
    /// It sleeps until something has come.
    Event,
}

impl Named for Poll {
    const ALL: &'static [Self] = &[Poll::Busy, Poll::Event];

    fn name(self) -> &'static str {
        match self {
            Poll::Busy => "busy",
            Poll::Event => "event",
        }
    }
}

/// The settings of a connection.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Words of a sample.
    pub words: usize,
    /// How subscribers wait.
    pub poll: Poll,
    /// Samples of one call at most.
    pub vectorize: usize,
    /// Work requests that a send queue holds, or messages that a library queues for sending.
    pub send_queue: u32,
    /// The same for receiving.
    pub receive_queue: u32,
    /// Pages of what a node-type maps itself.
    pub huge_pages: HugePagePolicy,
    /// What concerns `infiniband` alone.
    pub verbs: Verbs,
}

/// The settings of work requests.
#[derive(Debug, Clone, Copy)]
pub struct Verbs {
    /// The service type of the queue pairs.
    pub service: Service,
    /// Bytes of a sample up to which it is copied into the work request.
    pub max_inline: u32,
    /// One in so many inline samples is sent without, and signalled: its completion frees the send queue.
    pub signal_every: u32,
    /// Receive requests that are posted before a subscriber looks for samples.
    pub receive_threshold: u32,
    /// How long each step of connecting may take.
    pub timeout: Duration,
}

impl Default for Verbs {
    fn default() -> Self {
        Verbs {
            service: Service::Rc,
            max_inline: 0,
            signal_every: 1,
            receive_threshold: 1,
            timeout: Duration::from_secs(10),
        }
    }
}
