//! ZeroMQ over TCP of the loopback, or between two hosts: a socket for each end, in a separate context. Each subscriber
//! binds, and its publishers connect to it. A publisher of fan-out or round-robin binds as well where a port is named:
//! programs of others can connect there.
//!
//! | scenario | sockets |
//! | --- | --- |
//! | straight-run | PAIR |
//! | fan-in, fan-out | PUB and SUB |
//! | round-robin | PUSH and PULL |
//!
//! Inside the latency of a sample: `zmq_send`, which copies it, the I/O threads of the library at both ends, TCP over
//! the loopback or the network, and `zmq_recv`. These threads have no separate CPU: they run where the rest of the
//! process does. The library sets `TCP_NODELAY` on each connection, and allocates memory for each message. It
//! distributes samples.
//!
//! Each socket holds as many messages for each peer as the settings of the queues (`ZMQ_SNDHWM`, `ZMQ_RCVHWM`), beside
//! what the kernel's buffers hold. Beyond that, PUB drops samples without a word; PAIR and PUSH refuse them.

mod library;
mod socket;

use std::ffi::c_int;
use std::net::SocketAddr;

pub use library::load;
pub use socket::version;

use self::library::{ZMQ_PAIR, ZMQ_PUB, ZMQ_PULL, ZMQ_PUSH, ZMQ_SUB};
use self::socket::Socket;
use super::settings::Poll;
use super::{
    LONGEST_SLEEP_MS, Maker, Node, NodeError, Pool, Scenario, Settings, Side, Slot, Wiring, fill,
};

/// The end that sends.
#[derive(Debug)]
pub struct ZeromqPublisher {
    socket: Socket,
}

/// The end that receives.
#[derive(Debug)]
pub struct ZeromqSubscriber {
    socket: Socket,
    poll: Poll,
}

/// What the sockets of publishers and of subscribers are.
fn kinds(scenario: Scenario) -> (c_int, c_int) {
    match scenario {
        Scenario::StraightRun => (ZMQ_PAIR, ZMQ_PAIR),
        Scenario::FanIn | Scenario::FanOut => (ZMQ_PUB, ZMQ_SUB),
        Scenario::RoundRobin => (ZMQ_PUSH, ZMQ_PULL),
    }
}

/// Threads and files that sockets take: libzmq ends the process where it gets none. A context has two threads with an
/// event file and an epoll each, its socket two event files and perhaps one to listen. A connection is two sockets.
/// Some files are open for a moment while it is made.
pub(super) fn needs(ends: u64, connections: u64) -> (u64, u64) {
    (2 * ends, 8 * ends + 2 * connections + 4)
}

/// Opens sockets. [`load`] must have been called.
#[derive(Debug)]
pub struct Zeromq<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
}

impl Zeromq<'_> {
    fn socket(&self, kind: c_int) -> Result<Socket, NodeError> {
        Socket::new(kind, self.settings.send_queue, self.settings.receive_queue)
    }

    /// Whose port others are to know: theirs who have several peers.
    fn named_side(&self) -> Side {
        match self.wiring.scenario {
            Scenario::StraightRun | Scenario::FanIn => Side::Subscribers,
            Scenario::FanOut | Scenario::RoundRobin => Side::Publishers,
        }
    }

    /// The port that is named for an end, if one is.
    fn port(&self, side: Side, number: u32) -> Result<Option<u16>, NodeError> {
        let first = self.settings.zeromq_port;
        let Some(first) = first.filter(|_| side == self.named_side()) else {
            return Ok(None);
        };
        let port = u16::try_from(u32::from(first) + number);
        port.map(Some).map_err(|_| {
            let count = match side {
                Side::Publishers => self.wiring.publishers,
                Side::Subscribers => self.wiring.subscribers,
            };
            NodeError::Setting(format!(
                "--zeromq-port {first}: {count} ends bind to one port each from there, and 65535 is the last: name a \
                 lower one"
            ))
        })
    }
}

impl Maker for Zeromq<'_> {
    type Publisher = ZeromqPublisher;
    type Subscriber = ZeromqSubscriber;
    type Address = SocketAddr;

    fn publisher(
        &self,
        number: u32,
        addresses: &[SocketAddr],
    ) -> Result<ZeromqPublisher, NodeError> {
        let (kind, _) = kinds(self.wiring.scenario);
        let socket = self.socket(kind)?;
        if let Some(port) = self.port(Side::Publishers, number)? {
            socket.bind(self.settings.address, Some(port))?;
        }
        for subscriber in self.wiring.subscribers_of(number) {
            socket.connect(addresses[subscriber as usize])?;
        }
        Ok(ZeromqPublisher { socket })
    }

    fn subscriber(&self, number: u32) -> Result<(ZeromqSubscriber, SocketAddr), NodeError> {
        let (_, kind) = kinds(self.wiring.scenario);
        let socket = self.socket(kind)?;
        let address = socket.bind(self.settings.address, self.port(Side::Subscribers, number)?)?;
        let poll = self.settings.poll;
        Ok((ZeromqSubscriber { socket, poll }, address))
    }
}

impl Node for ZeromqPublisher {
    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        let mut taken = 0;
        for slot in &*samples {
            if !self.socket.send(pool.bytes(slot))? {
                break;
            }
            taken += 1;
        }
        Ok(taken)
    }
}

impl Node for ZeromqSubscriber {
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |socket: &mut Socket, free: &[Slot], _: bool| {
            let received = socket.receive(pool.bytes_mut(&free[0]))?;
            Ok(received.map(|bytes| (bytes == pool.sample_bytes()).into()))
        };
        let poll = self.poll;
        let wait = |socket: &mut Socket| {
            if poll == Poll::Event {
                socket.wait(LONGEST_SLEEP_MS);
            }
        };
        fill(&mut self.socket, samples, go_on, look, wait)
    }
}

#[cfg(test)]
mod tests;
