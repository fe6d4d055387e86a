//! What node-types can be told. Each takes what concerns it.

use crate::buffer::HugePagePolicy;
use crate::rig::named::Named;

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
    /// Of the node-type zeromq: the port that the first end which binds gets; each further one gets the next. Without
    /// it they are free ones.
    pub zeromq_port: Option<u16>,
    /// Pages of what a node-type maps itself.
    pub huge_pages: HugePagePolicy,
}
