//! Messaging as applications see it: nodes that are started, written to, read from and stopped.
//!
//! A node is one end of a connection. Samples lie in slots of a [`Pool`], which is mapped once. A slot has one owner at
//! a time: the holder of its [`Slot`]. A node that still needs a sample after `write` or `read` has returned, because
//! hardware works on it, keeps the slot, and gives it back in a later call or when it stops.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`pool`] | slots for samples in memory that is mapped, touched and locked |
//! | [`wiring`] | the subscribers of each publisher: the four scenarios |
//! | [`settings`] | the settings of node-types |
//! | [`kind`] | the node-types by name, and what each can do |
//! | [`fallback`] | what an end does that cannot connect |
//! | [`error`] | what can go wrong in any of them |
//! | [`rings`] | rings of our queue `baton-demoting`, in memory of the process or shared |
//! | `infiniband` | queue pairs of RC, UC and UD (feature `rdma`) |
//! | [`broker`] | a broker as a child, for `mqtt`, `nats` and `redis` |
//! | `broker_client` | what their clients share |
//! | `runtime` | what drives a library that is written for `tokio` |
//! | [`connected`] | connected sockets, for `tcp` and `unix` |
//! | `grpc` | streams of gRPC by tonic; feature `grpc` |
//! | `iceoryx2` | publish-subscribe of iceoryx2 in shared memory; feature `iceoryx2` |
//! | `mqtt` | by way of a broker of MQTT; feature `mqtt` |
//! | [`loopback_interface`] | whether it is up |
//! | [`multicast`] | datagrams to groups |
//! | `nats` | by way of a server of NATS; feature `nats` |
//! | `redis` | by way of a server of Redis; feature `redis` |
//! | [`tcp`] | connections of TCP |
//! | [`udp`] | datagrams |
//! | [`unix`] | Unix sockets |
//! | `zeromq` | sockets of libzmq; feature `zeromq` |

pub mod broker;
#[cfg(any(feature = "mqtt", feature = "nats", feature = "redis"))]
mod broker_client;
pub mod connected;
pub mod error;
pub mod fallback;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "iceoryx2")]
pub mod iceoryx2;
#[cfg(feature = "rdma")]
pub mod infiniband;
pub mod kind;
pub mod loopback_interface;
#[cfg(feature = "mqtt")]
pub mod mqtt;
pub mod multicast;
#[cfg(feature = "nats")]
pub mod nats;
pub mod pool;
#[cfg(feature = "redis")]
pub mod redis;
pub mod rings;
#[cfg(any(
    feature = "mqtt",
    feature = "nats",
    feature = "redis",
    feature = "grpc"
))]
mod runtime;
pub mod settings;
mod socket_option;
pub mod tcp;
#[cfg(test)]
mod test_samples;
pub mod udp;
pub mod unix;
pub mod wiring;
#[cfg(feature = "zeromq")]
pub mod zeromq;

pub use error::NodeError;
use fallback::FallbackCounts;
pub use kind::NodeType;
pub use pool::{Pool, Slot};
pub use settings::Settings;
pub use wiring::{Scenario, Wiring};

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How long an end that sleeps does not look at the stop flag, in milliseconds.
const LONGEST_SLEEP_MS: u16 = 20;
/// How often an end looks that waits for others, or for the kernel.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// One end of a connection.
///
/// One thread calls it. Everything that allocates is done in [`start`](Self::start). An end that only writes leaves
/// `read` as it is, and one that only reads `write`.
pub trait Node: Send + 'static {
    /// Connects, and takes from the pool what it needs before anything is sent. `go_on` is asked while it waits.
    ///
    /// # Errors
    /// When there is no connection, or `go_on` returns false before there is.
    fn start(
        &mut self,
        _pool: &mut Pool,
        _go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        Ok(())
    }

    /// Sends the samples, in their order, and returns how many were taken: the first ones. On return `samples` holds
    /// the slots that are the caller's to release: those that were not taken or are no longer needed, and others that
    /// have come back from an earlier call.
    ///
    /// # Errors
    /// When the connection is broken.
    fn write(&mut self, _pool: &mut Pool, _samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        Ok(0)
    }

    /// Sends what earlier calls of `write` have taken and not sent yet, as far as there is room. Called again and again
    /// by an end that writes no more and waits for those that read.
    ///
    /// # Errors
    /// When the connection is broken.
    fn flush(&mut self) -> Result<(), NodeError> {
        Ok(())
    }

    /// Waits for samples while `go_on` returns true, and returns how many have come: they lie in the first slots. On
    /// return `samples` holds the slots that are the caller's to release, after it has looked at them. It was given
    /// empty ones for as many as may come; a node that needs them for later keeps them.
    ///
    /// # Errors
    /// When the connection is broken.
    fn read(
        &mut self,
        _pool: &mut Pool,
        _samples: &mut Vec<Slot>,
        _go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        Ok(0)
    }

    /// What it has posted since its start, if it works by work requests.
    fn work(&self) -> Option<WorkRequestCounts> {
        None
    }

    /// Samples that were acknowledged since the start, in the order in which they were written; none where nothing
    /// acknowledges them. Asked of an end that writes, when it has stopped.
    fn acknowledged(&self) -> Option<u64> {
        None
    }

    /// Ends the connection once nothing is under way any more, and gives all slots back to the pool.
    ///
    /// # Errors
    /// When it cannot be ended in order.
    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        Ok(())
    }
}

/// Fills slots until there is nothing more to read, once there was something or `go_on` returns false; how many were
/// filled. [`Node::read`] of node-types that receive sample by sample.
///
/// `look` fills the first of the slots that are free, or several; its flag is set while none is filled. It returns how
/// many it filled, 0 for a message that is not a sample of this run (as by its size), `None` if there was nothing.
/// `wait` follows where nothing has come yet. Both get the end that reads.
///
/// # Errors
/// Those of `look`.
#[inline]
fn fill<E>(
    end: &mut E,
    slots: &[Slot],
    mut go_on: impl FnMut() -> bool,
    mut look: impl FnMut(&mut E, &[Slot], bool) -> Result<Option<usize>, NodeError>,
    mut wait: impl FnMut(&mut E),
) -> Result<usize, NodeError> {
    let mut filled = 0;
    while filled < slots.len() {
        match look(end, &slots[filled..], filled == 0)? {
            Some(taken) => filled += taken,
            None if filled > 0 || !go_on() => break,
            None => wait(end),
        }
    }
    Ok(filled)
}

/// Work requests of an end that writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRequestCounts {
    /// Those that were posted, a copy each.
    pub requests: u64,
    /// Completions of those that were signalled.
    pub completions: u64,
    /// Connections that came about as the end had fallen back to listening.
    pub fell_back: FallbackCounts,
}

impl WorkRequestCounts {
    /// That of two ends.
    pub fn and(self, other: Self) -> Self {
        WorkRequestCounts {
            requests: self.requests + other.requests,
            completions: self.completions + other.completions,
            fell_back: self.fell_back.and(other.fell_back),
        }
    }
}

/// Those that write, or those that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those that write.
    Publishers,
    /// Those that read.
    Subscribers,
}

/// A node-type for one wiring. It makes the ends one by one, each in the process in which it runs, and all subscribers
/// before any publisher.
pub trait Maker {
    /// The end that writes.
    type Publisher: Node;
    /// The end that reads.
    type Subscriber: Node;
    /// Where a subscriber is reached. It crosses processes and hosts.
    type Address: Serialize + DeserializeOwned;

    /// Makes the subscriber of that number.
    ///
    /// # Errors
    /// When the system has no room for it.
    fn subscriber(&self, number: u32) -> Result<(Self::Subscriber, Self::Address), NodeError>;

    /// Makes the publisher of that number. `addresses`: of all subscribers, by their numbers.
    ///
    /// # Errors
    /// When the system has no room for it.
    fn publisher(
        &self,
        number: u32,
        addresses: &[Self::Address],
    ) -> Result<Self::Publisher, NodeError>;
}

/// All ends of a connection, in the order of their numbers.
#[derive(Debug)]
pub struct Ends<P, S> {
    /// Those that write.
    pub publishers: Vec<P>,
    /// Those that read.
    pub subscribers: Vec<S>,
}

impl<P: Node, S: Node> Ends<P, S> {
    /// All of them, in this process.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn of<M>(maker: &M, wiring: &Wiring) -> Result<Self, NodeError>
    where
        M: Maker<Publisher = P, Subscriber = S>,
    {
        let made = (0..wiring.subscribers).map(|it| maker.subscriber(it));
        let made: Vec<_> = made.collect::<Result<_, _>>()?;
        let (subscribers, addresses): (_, Vec<_>) = made.into_iter().unzip();
        let made = (0..wiring.publishers).map(|it| maker.publisher(it, &addresses));
        let publishers = made.collect::<Result<_, _>>()?;
        Ok(Ends {
            publishers,
            subscribers,
        })
    }
}
