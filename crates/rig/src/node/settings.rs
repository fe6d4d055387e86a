//! The settings of node-types. Each takes what concerns it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Wiring;
use super::fallback::Fallback;
use crate::buffer::HugePagePolicy;
use crate::rig::named::named;
use crate::rig::ports::Service;

named! {
    /// How a subscriber waits.
    Poll {
        /// It looks again and again.
        Busy = "busy",
        /// It sleeps until something has come.
        Event = "event",
    }
}

named! {
    /// What a broker of MQTT promises.
    Qos {
        /// Nothing: a sample may be lost.
        AtMostOnce = "0",
        /// Samples are acknowledged.
        AtLeastOnce = "1",
        /// The same in two steps, so that none comes twice.
        ExactlyOnce = "2",
    }
}

named! {
    /// The sockets of `unix`.
    UnixSocket {
        /// Streams of bytes.
        Stream = "stream",
        /// Messages in sequence.
        SeqPacket = "seqpacket",
    }
}

named! {
    /// By what Redis passes samples on.
    RedisKind {
        /// Channels.
        PubSub = "pubsub",
        /// Streams.
        Streams = "streams",
    }
}

/// The name of the loopback interface.
pub const LOOPBACK: &str = "lo";

/// What concerns `tcp`, `unix` and `multicast` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSettings {
    /// Of tcp: whether `TCP_NODELAY` is set.
    pub tcp_no_delay: bool,
    /// Of the same: how long a read polls the device's queue (`SO_BUSY_POLL`).
    pub tcp_busy_poll: Duration,
    /// The sockets of unix.
    pub unix_socket: UnixSocket,
    /// The interface over which multicast sends.
    pub multicast_interface: String,
}

impl Default for SocketSettings {
    fn default() -> Self {
        SocketSettings {
            tcp_no_delay: true,
            tcp_busy_poll: Duration::ZERO,
            unix_socket: UnixSocket::Stream,
            multicast_interface: LOOPBACK.to_owned(),
        }
    }
}

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerAddress {
    /// Its name, or its IP address; one of IPv6 in brackets.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
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
    /// How long connecting may take; of infiniband, that to one peer.
    pub timeout: Duration,
    /// Of the node-type mqtt: what the broker promises.
    pub qos: Qos,
    /// Of the node-type redis: by what it passes samples on.
    pub redis_kind: RedisKind,
    /// Of the node-types that take one: the broker.
    pub broker: Option<BrokerAddress>,
    /// Of the node-type zeromq: the port of the first publisher in fan-out and round-robin, else of the first subscriber;
    /// each further one gets the next. Without
    /// it they are free ones.
    pub zeromq_port: Option<u16>,
    /// What concerns `tcp`, `unix` and `multicast` alone.
    pub sockets: SocketSettings,
    /// Of `udp`, `tcp`, `grpc` and `zeromq`: the address of this host that ends are reached by.
    pub address: IpAddr,
    /// Pages of what a node-type maps itself.
    pub huge_pages: HugePagePolicy,
    /// What concerns `infiniband` alone.
    pub verbs: Verbs,
}

impl Settings {
    /// For samples of this many words, with defaults for all else, in small pages.
    pub fn of_words(words: usize) -> Self {
        Settings {
            words,
            poll: Poll::Busy,
            vectorize: 1,
            send_queue: 512,
            receive_queue: 512,
            timeout: Duration::from_secs(10),
            qos: Qos::AtMostOnce,
            redis_kind: RedisKind::PubSub,
            broker: None,
            zeromq_port: None,
            sockets: SocketSettings::default(),
            address: Ipv4Addr::LOCALHOST.into(),
            huge_pages: HugePagePolicy::Off,
            verbs: Verbs::default(),
        }
    }

    /// Receive requests that a subscriber of infiniband posts before it looks for samples: of what there is room for, as
    /// many as a call that finds fewer can still add to, if no number was given.
    pub fn receive_threshold(&self) -> u32 {
        let most = self.receive_queue.saturating_sub(2 * self.vectorize as u32);
        self.verbs.receive_threshold.unwrap_or(most)
    }

    /// How long an end waits at most to be connected to. Its peers may have to try all of theirs before, and the last
    /// of them fall back then.
    pub fn patience(&self, wiring: &Wiring) -> Duration {
        let others = wiring.publishers.max(wiring.subscribers);
        self.timeout.saturating_mul(others.saturating_add(2))
    }
}

/// The settings of work requests.
#[derive(Debug, Clone, Copy)]
pub struct Verbs {
    /// The service type of the queue pairs.
    pub service: Service,
    /// Bytes of a sample up to which it is copied into the work request.
    pub max_inline: u32,
    /// One of this many inline samples is sent without, and signalled: its completion frees the send queue.
    pub signal_every: u32,
    /// Receive requests that are posted before a subscriber looks for samples; see
    /// [`Settings::receive_threshold`].
    pub receive_threshold: Option<u32>,
    /// What an end does that cannot connect.
    pub fallback: Fallback,
}

impl Default for Verbs {
    fn default() -> Self {
        Verbs {
            service: Service::Rc,
            max_inline: 0,
            signal_every: 1,
            receive_threshold: None,
            fallback: Fallback::Listen,
        }
    }
}
