//! ZeroMQ over TCP of the loopback: a socket for each end, in a context of its own.
//!
//! | scenario | sockets | who binds |
//! | --- | --- | --- |
//! | straight-run | PAIR | the subscriber |
//! | fan-in | PUB and SUB | each subscriber, to which its publishers connect |
//! | fan-out | PUB and SUB | each publisher |
//! | round-robin | PUSH and PULL | each publisher |
//!
//! Inside the latency of a sample: `zmq_send`, which copies it, the I/O threads of the library at both ends, TCP over
//! the loopback, and `zmq_recv`. These threads have no CPU of their own: they run where the rest of the process does.
//! The library sets `TCP_NODELAY` on each connection, and allocates memory for each message. It distributes samples.
//!
//! Each socket holds so many messages for each peer as the queues' settings say (`ZMQ_SNDHWM`, `ZMQ_RCVHWM`), beside
//! what the kernel's buffers hold. Beyond that, PUB drops samples without a word; PAIR and PUSH refuse them.

mod library;
mod socket;

use std::ffi::{CString, c_int};

pub use library::load;
pub use socket::version;

use self::library::{ZMQ_PAIR, ZMQ_PUB, ZMQ_PULL, ZMQ_PUSH, ZMQ_SUB};
use self::socket::Socket;
use super::settings::Poll;
use super::{Ends, Node, NodeError, Pool, Scenario, Settings, Slot, Wiring};

/// How long a subscriber that sleeps does not look at the stop flag, in milliseconds.
const LONGEST_SLEEP_MS: u16 = 20;

/// The end that sends.
#[derive(Debug)]
pub struct Publisher {
    socket: Socket,
}

/// The end that receives.
#[derive(Debug)]
pub struct Subscriber {
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

/// Opens all sockets, and lets them connect. [`load`] must have been called.
///
/// # Errors
/// When a port is in use, or there is no file left.
pub fn ends(
    wiring: &Wiring,
    settings: &Settings,
) -> Result<Ends<Publisher, Subscriber>, NodeError> {
    load().map_err(NodeError::Setting)?;
    let (sends, receives) = kinds(wiring.scenario);
    let open = |kind, count: u32| -> Result<Vec<Socket>, NodeError> {
        let socket = |_| Socket::new(kind, settings.send_queue, settings.receive_queue);
        (0..count).map(socket).collect()
    };
    let publishers = open(sends, wiring.publishers)?;
    let subscribers = open(receives, wiring.subscribers)?;
    let publishers_bind = matches!(wiring.scenario, Scenario::FanOut | Scenario::RoundRobin);
    let binding = match publishers_bind {
        true => &publishers,
        false => &subscribers,
    };
    let port = |at| -> Result<Option<u16>, NodeError> {
        let Some(first) = settings.zeromq_port else {
            return Ok(None);
        };
        let port = u16::try_from(u32::from(first) + at);
        port.map(Some).map_err(|_| {
            NodeError::Setting(format!(
                "--zeromq-port {first}: {} ends bind to one port each from there, and 65535 is the last: name a \
                 lower one",
                binding.len()
            ))
        })
    };
    let endpoints: Result<Vec<CString>, NodeError> = (0..)
        .zip(binding)
        .map(|(at, socket)| socket.bind(port(at)?))
        .collect();
    let endpoints = endpoints?;
    for (publisher, sending) in (0..).zip(&publishers) {
        for subscriber in wiring.subscribers_of(publisher) {
            match publishers_bind {
                true => {
                    subscribers[subscriber as usize].connect(&endpoints[publisher as usize])?;
                }
                false => sending.connect(&endpoints[subscriber as usize])?,
            }
        }
    }
    let subscriber = |socket| Subscriber {
        socket,
        poll: settings.poll,
    };
    Ok(Ends {
        publishers: (publishers.into_iter())
            .map(|socket| Publisher { socket })
            .collect(),
        subscribers: subscribers.into_iter().map(subscriber).collect(),
    })
}

impl Node for Publisher {
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

impl Node for Subscriber {
    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let mut received = 0;
        while received < samples.len() {
            match self.socket.receive(pool.bytes_mut(&samples[received]))? {
                // What has another size was not sent by us.
                Some(bytes) => received += usize::from(bytes == pool.sample_bytes()),
                None => {
                    if received > 0 || !go_on() {
                        break;
                    }
                    if self.poll == Poll::Event {
                        self.socket.wait(LONGEST_SLEEP_MS);
                    }
                }
            }
        }
        Ok(received)
    }
}

#[cfg(test)]
mod tests;
