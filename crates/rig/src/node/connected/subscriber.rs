//! The end of connected sockets that receives.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, SockFlag, accept4, recv};

use super::{Connected, LENGTH, Sockets, failed, sleep_until};
use crate::node::settings::Poll;
use crate::node::{BETWEEN_LOOKS, LONGEST_SLEEP_MS};
use crate::node::{Node, NodeError, Pool, Slot, fill};

/// Bytes that one call reads at most, unless a sample is longer.
const LARGEST_READ: usize = 64 << 10;
/// Connections of which one call of `epoll_wait` reports that they have something.
const EVENTS: usize = 64;

/// The end that receives.
#[derive(Debug)]
pub struct ConnectedSubscriber {
    listener: Option<OwnedFd>,
    introduction: Vec<u8>,
    publishers: usize,
    connections: Vec<Option<Connection>>,
    /// For several connections: those that have something.
    ready: Option<ReadyConnections>,
    poll: Poll,
    /// Room for some frames, or for a message and one byte more: a longer one is none of ours.
    read: Vec<u8>,
    frame_bytes: usize,
    keeps_messages: bool,
    /// How long it waits for its publishers, which may have to touch their logs before.
    patience: Duration,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    /// What has come of a frame that is not whole.
    begun: Vec<u8>,
}

#[derive(Debug)]
struct ReadyConnections {
    epoll: Epoll,
    events: [EpollEvent; EVENTS],
    /// Those of the events that were not looked at.
    left: std::ops::Range<usize>,
}

impl ConnectedSubscriber {
    pub(super) fn new<S: Sockets>(
        maker: &Connected<'_, S>,
        listener: OwnedFd,
        publishers: usize,
    ) -> Self {
        let settings = maker.settings;
        let frame_bytes = maker.length_bytes() + maker.sample_bytes();
        let frames = (settings.vectorize).clamp(1, (LARGEST_READ / frame_bytes).max(1));
        let keeps_messages = maker.sockets.keeps_messages();
        let read_bytes = match keeps_messages {
            true => frame_bytes + 1,
            false => frames * frame_bytes,
        };
        ConnectedSubscriber {
            listener: Some(listener),
            introduction: maker.name.as_bytes().to_vec(),
            publishers,
            connections: Vec::new(),
            ready: None,
            poll: settings.poll,
            read: vec![0; read_bytes],
            frame_bytes,
            keeps_messages,
            patience: settings.patience(maker.wiring),
        }
    }

    /// Reads from a connection into slots of which there is one at least, and returns how many were filled, or none if
    /// nothing has come.
    #[inline]
    fn receive(
        &mut self,
        at: usize,
        pool: &mut Pool,
        slots: &[Slot],
    ) -> Result<Option<usize>, NodeError> {
        let Some(connection) = &mut self.connections[at] else {
            return Ok(None);
        };
        let begun = connection.begun.len();
        self.read[..begun].copy_from_slice(&connection.begun);
        // What is read has its slot at once: no whole frame stays here.
        let end = match self.keeps_messages {
            true => self.read.len(),
            false => self.read.len().min(slots.len() * self.frame_bytes),
        };
        let room = &mut self.read[begun..end];
        let bytes = match recv(connection.socket.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT) {
            Ok(bytes @ 1..) => begun + bytes,
            // Its publisher has ended, and with it the frame that it had begun.
            Ok(0) | Err(Errno::ECONNRESET) => {
                self.connections[at] = None;
                return Ok(Some(0));
            }
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR) => return Ok(Some(0)),
            Err(error) => return Err(failed("receive from", "a publisher", "check dmesg")(error)),
        };
        if self.keeps_messages {
            // What has another size was not sent by us.
            return Ok(Some(usize::from(
                pool.copy_in(&slots[0], &self.read[..bytes]),
            )));
        }
        let frames = self.read[..bytes].chunks_exact(self.frame_bytes);
        connection.begun.clear();
        connection.begun.extend_from_slice(frames.remainder());
        let mut filled = 0;
        for (frame, slot) in frames.zip(slots) {
            let (length, sample) = frame.split_at(LENGTH);
            let length = u32::from_le_bytes(length.try_into().expect("it has 4 bytes"));
            if length as usize != sample.len() {
                return Err(NodeError::Gone(format!(
                    "a publisher sent a frame of {length} bytes where a sample has {}",
                    sample.len()
                )));
            }
            pool.copy_in(slot, sample);
            filled += 1;
        }
        Ok(Some(filled))
    }

    /// The next connection that may have something, if there is one.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let Some(ready) = &mut self.ready else {
            return Some(0);
        };
        if ready.left.is_empty() {
            ready.wait(EpollTimeout::ZERO);
        }
        let event = ready.left.next()?;
        Some(ready.events[event].data() as usize)
    }

    fn sleep(&mut self) {
        match (&mut self.ready, &self.connections[0]) {
            (Some(ready), _) => ready.wait(EpollTimeout::from(LONGEST_SLEEP_MS)),
            (None, Some(connection)) => sleep_until(&connection.socket, PollFlags::POLLIN),
            (None, None) => std::thread::sleep(BETWEEN_LOOKS),
        }
    }

    /// Accepts connections until each publisher has one.
    fn accept_all(
        &mut self,
        listener: &OwnedFd,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let begun = Instant::now();
        let mut strangers: Vec<Connection> = Vec::new();
        while self.connections.len() < self.publishers {
            if !go_on() {
                return Err(NodeError::GivenUp);
            }
            if begun.elapsed() >= self.patience {
                return Err(NodeError::TooFew {
                    came: self.connections.len(),
                    all: self.publishers,
                    what: "publishers have connected".to_owned(),
                    patience: self.patience,
                });
            }
            match accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
                Ok(socket) => strangers.push(Connection {
                    // SAFETY: the call has just opened it, and nothing else has it.
                    socket: unsafe { OwnedFd::from_raw_fd(socket) },
                    begun: Vec::with_capacity(self.frame_bytes.max(self.introduction.len())),
                }),
                Err(Errno::EAGAIN) => std::thread::sleep(BETWEEN_LOOKS),
                Err(Errno::EINTR | Errno::ECONNABORTED) => {}
                Err(error) => return Err(failed("accept at", "a socket", "see dmesg")(error)),
            }
            let mut at = 0;
            while at < strangers.len() {
                match strangers[at].has_introduced_itself(&self.introduction) {
                    None => at += 1,
                    Some(false) => drop(strangers.swap_remove(at)),
                    Some(true) => self.connections.push(Some(strangers.swap_remove(at))),
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Whether it begins as those of this run do, once that is known.
    fn has_introduced_itself(&mut self, introduction: &[u8]) -> Option<bool> {
        let mut room = vec![0; introduction.len() - self.begun.len()];
        match recv(self.socket.as_raw_fd(), &mut room, MsgFlags::MSG_DONTWAIT) {
            Err(Errno::EAGAIN | Errno::EINTR) => return None,
            Ok(0) | Err(_) => return Some(false),
            Ok(bytes) => self.begun.extend_from_slice(&room[..bytes]),
        }
        if !introduction.starts_with(&self.begun) {
            return Some(false);
        }
        let is_whole = self.begun.len() == introduction.len();
        is_whole.then(|| {
            self.begun.clear();
            true
        })
    }
}

impl ReadyConnections {
    fn of(connections: &[Option<Connection>]) -> nix::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (number, connection) in (0..).zip(connections) {
            if let Some(connection) = connection {
                epoll.add(
                    &connection.socket,
                    EpollEvent::new(EpollFlags::EPOLLIN, number),
                )?;
            }
        }
        Ok(ReadyConnections {
            epoll,
            events: [EpollEvent::empty(); EVENTS],
            left: 0..0,
        })
    }

    /// An interrupted wait is like one that was in vain.
    fn wait(&mut self, limit: EpollTimeout) {
        self.left = 0..self.epoll.wait(&mut self.events, limit).unwrap_or(0);
    }
}

impl Node for ConnectedSubscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        // It is closed here: from now on there are no others.
        if let Some(listener) = self.listener.take() {
            self.accept_all(&listener, go_on)?;
        }
        if self.publishers > 1 {
            let ready = ReadyConnections::of(&self.connections);
            let ready = ready.map_err(failed("epoll_ctl", "a node", "see man 7 epoll"))?;
            self.ready = Some(ready);
        }
        Ok(())
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], _: bool| {
            let filled = match end.next() {
                Some(at) => end.receive(at, pool, free)?,
                None => None,
            };
            let has_others = || end.ready.as_ref().is_some_and(|it| !it.left.is_empty());
            Ok(filled.or_else(|| has_others().then_some(0)))
        };
        let wait = |end: &mut Self| {
            if end.poll == Poll::Event {
                end.sleep();
            }
        };
        fill(self, samples, go_on, look, wait)
    }
}
