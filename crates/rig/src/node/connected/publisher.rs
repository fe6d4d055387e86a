//! The end of connected sockets that sends.

use std::fmt;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, SockFlag, connect, send};

use super::{Connected, Sockets, failed, sleep_until};
use crate::node::BETWEEN_LOOKS;
use crate::node::wiring::Distribution;
use crate::node::{Node, NodeError, Pool, Slot};

const ADVICE: &str = "check whether its subscriber has exited";

/// The end that sends.
#[derive(Debug)]
pub struct ConnectedPublisher<S: Sockets> {
    sockets: S,
    introduction: Vec<u8>,
    addresses: Vec<S::Address>,
    connections: Vec<Connection>,
    distribution: Distribution,
    /// A frame, or a message.
    frame: Vec<u8>,
    /// Where the sample begins in it.
    sample_at: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// The rest of a frame for which there was no room.
    unsent: Vec<u8>,
}

impl Connection {
    /// Sends as much as there is room for, and returns how much that was.
    #[inline]
    fn send(&self, bytes: &[u8]) -> nix::Result<usize> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        loop {
            match send(self.socket.as_raw_fd(), bytes, flags) {
                Err(Errno::EAGAIN) => return Ok(0),
                Err(Errno::EINTR) => {}
                sent => return sent,
            }
        }
    }

    /// The same for what is left of an earlier frame; returns whether nothing of it is left now.
    #[inline]
    fn flush(&mut self) -> nix::Result<bool> {
        if !self.unsent.is_empty() {
            let sent = self.send(&self.unsent)?;
            self.unsent.drain(..sent);
        }
        Ok(self.unsent.is_empty())
    }
}

impl<S: Sockets> ConnectedPublisher<S> {
    pub(super) fn new(
        maker: &Connected<'_, S>,
        addresses: Vec<S::Address>,
        distribution: Distribution,
    ) -> Self {
        let (bytes, sample_at) = (maker.sample_bytes(), maker.length_bytes());
        let mut frame = (bytes as u32).to_le_bytes()[..sample_at].to_vec();
        frame.resize(sample_at + bytes, 0);
        ConnectedPublisher {
            sockets: maker.sockets,
            introduction: maker.name.as_bytes().to_vec(),
            addresses,
            connections: Vec::new(),
            distribution,
            frame,
            sample_at,
            timeout: maker.settings.timeout,
        }
    }

    /// Connects to an address, and introduces itself. It sleeps a little at a time, but the attempt goes on meanwhile:
    /// the way there and back may take longer.
    fn connect(
        &self,
        address: &S::Address,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Connection, NodeError> {
        let begun = Instant::now();
        let socket = self.sockets.open(SockFlag::SOCK_NONBLOCK)?;
        loop {
            // Of an attempt that goes on, a further call is the question for what came of it.
            match connect(socket.as_raw_fd(), address) {
                Ok(()) | Err(Errno::EISCONN) => {
                    let mut connection = Connection {
                        socket,
                        unsent: Vec::with_capacity(self.frame.len().max(self.introduction.len())),
                    };
                    connection.unsent.extend_from_slice(&self.introduction);
                    let sent = connection.flush();
                    sent.map_err(|error| broken(address, error))?;
                    return Ok(connection);
                }
                Err(
                    error @ (Errno::EINTR | Errno::EAGAIN | Errno::EINPROGRESS | Errno::EALREADY),
                ) => {
                    if begun.elapsed() >= self.timeout {
                        return Err(failed("connect to", address, ADVICE)(Errno::ETIMEDOUT));
                    }
                    if !go_on() {
                        return Err(NodeError::GivenUp);
                    }
                    match error {
                        // A Unix socket that listens has as many as it takes at once: nothing is under way.
                        Errno::EAGAIN => std::thread::sleep(BETWEEN_LOOKS),
                        _ => sleep_until(&socket, PollFlags::POLLOUT),
                    }
                }
                // It has listened before: its thread, or process, has ended.
                Err(error @ (Errno::ECONNREFUSED | Errno::ECONNRESET)) => {
                    return Err(broken(address, error));
                }
                Err(error) => return Err(failed("connect to", address, ADVICE)(error)),
            }
        }
    }
}

#[cold]
fn broken(address: &impl fmt::Display, error: Errno) -> NodeError {
    match error {
        Errno::EPIPE | Errno::ECONNRESET | Errno::ECONNREFUSED => NodeError::PeerEnded(format!(
            "the subscriber at {address} has closed its connection"
        )),
        Errno::EMSGSIZE => failed("send to", address, "use fewer --values")(error),
        error => failed("send to", address, ADVICE)(error),
    }
}

impl<S: Sockets> Node for ConnectedPublisher<S> {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let connections = (self.addresses.iter()).map(|address| self.connect(address, go_on));
        self.connections = connections.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        for (taken, slot) in samples.iter().enumerate() {
            self.frame[self.sample_at..].copy_from_slice(pool.bytes(slot));
            let targets = self.distribution.next_targets();
            // All targets get it, or none.
            for target in targets.clone() {
                let flushed = self.connections[target].flush();
                if !flushed.map_err(|error| broken(&self.addresses[target], error))? {
                    return Ok(taken);
                }
            }
            for target in targets.clone() {
                let connection = &mut self.connections[target];
                match connection.send(&self.frame) {
                    Ok(0) if target == targets.start => return Ok(taken),
                    Ok(sent) => connection.unsent.extend_from_slice(&self.frame[sent..]),
                    Err(error) => return Err(broken(&self.addresses[target], error)),
                }
            }
        }
        Ok(samples.len())
    }

    fn flush(&mut self) -> Result<(), NodeError> {
        for connection in &mut self.connections {
            // A subscriber that has closed its connection gets nothing more.
            if connection.flush().is_err() {
                connection.unsent.clear();
            }
        }
        Ok(())
    }
}
