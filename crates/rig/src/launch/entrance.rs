//! Who connects, until it has greeted: in one thread, however many there are. None holds up another one.
//!
//! Where there is a secret, an end that does not show it gets no answer at all, and takes a file and some hundred bytes
//! until it is let go. All have the same time for their greeting. Where too many wait, the oldest of those without a
//! handshake goes; of those with one, which may be recorded, where they are more than half.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{Backlog, listen};
use serde_json::Value;

use super::secret::Secret;
use super::wire::{MAX_LINE, Wire};
use crate::host::open_files;

/// The longest greeting, in bytes.
const LONGEST_GREETING: usize = 64 << 10;
/// New connections that are taken before others are looked at.
const MOST_AT_ONCE: usize = 64;
/// Connections that may wait at an entrance, by the files that there are.
const ROOM: RangeInclusive<usize> = 64..=1024;
/// Files for what is measured beside.
const OTHER_FILES: usize = 512;
/// From here on an event is of a listener.
const LISTENER: u64 = 1 << 63;

/// Where others connect, and what they have to show.
#[derive(Debug)]
pub struct Door {
    /// The ports.
    pub listeners: Vec<TcpListener>,
    /// The secret, if there is one.
    pub secret: Option<Secret>,
}

impl From<TcpListener> for Door {
    fn from(listener: TcpListener) -> Self {
        Door {
            listeners: vec![listener],
            secret: None,
        }
    }
}

impl Door {
    /// Whether processes of other hosts can connect without a secret.
    fn is_open(&self) -> bool {
        let address = |listener: &TcpListener| listener.local_addr();
        let is_far = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
        let mut all = self.listeners.iter().map(address);
        self.secret.is_none() && all.any(|address| address.is_ok_and(is_far))
    }
}

/// Has this process have as many files open as its hard limit allows, and returns how many connections may wait at an
/// entrance, beside this many ranks.
pub(crate) fn raise_room(ranks: usize) -> usize {
    let others = ranks + OTHER_FILES;
    let wanted = others + 2 * ROOM.end();
    room(open_files::raise(wanted as u64).unwrap_or_default(), others)
}

/// How many connections may wait, where this process may have `files` open and needs some for other work.
fn room(files: u64, others: usize) -> usize {
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    // A rank 0 has two entrances.
    (files.saturating_sub(others) / 2).clamp(*ROOM.start(), *ROOM.end())
}

/// What came of a connection.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Its first line, which shows who it is.
    Greeting(Wire, Value),
    /// It is let go, and why.
    Refused(SocketAddr, String),
}

/// The connections that have not greeted.
#[derive(Debug)]
pub(crate) struct Entrance {
    door: Door,
    is_open: bool,
    epoll: Epoll,
    /// By the order in which they came, each with the end of its time.
    strangers: BTreeMap<u64, (Wire, Instant)>,
    next: u64,
    /// This many may wait.
    most: usize,
    patience: Duration,
}

impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

impl Entrance {
    /// Of `most` connections at a time at the most, each of which may take as long as `patience`.
    pub(crate) fn new(door: Door, most: usize, patience: Duration) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (name, listener) in (LISTENER..).zip(&door.listeners) {
            listener.set_nonblocking(true)?;
            // Many may come at once.
            listen(listener, Backlog::MAXCONN)?;
            epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, name))?;
        }
        Ok(Entrance {
            is_open: door.is_open(),
            door,
            epoll,
            strangers: BTreeMap::new(),
            next: 0,
            most,
            patience,
        })
    }

    /// Waits until something happens, `limit_ms` at the most.
    pub(crate) fn wait(&mut self, limit_ms: u8) -> io::Result<Vec<Arrival>> {
        let mut ready = [EpollEvent::empty(); 256];
        let count = match self.epoll.wait(&mut ready, limit_ms) {
            Err(Errno::EINTR) => 0,
            waited => waited?,
        };
        let mut arrivals = Vec::new();
        for event in &ready[..count] {
            match event.data() {
                listener @ LISTENER.. => {
                    self.accept((listener - LISTENER) as usize, &mut arrivals);
                }
                stranger => self.meet(stranger, &mut arrivals),
            }
        }
        let now = Instant::now();
        let is_late = |(_, end): &(Wire, Instant)| *end <= now;
        while let Some(stranger) = self.strangers.first_entry()
            && is_late(stranger.get())
        {
            let (wire, _) = stranger.remove();
            arrivals.push(refused(&wire, "it did not greet in time"));
        }
        Ok(arrivals)
    }

    /// Takes new connections, some at a time.
    fn accept(&mut self, listener: usize, arrivals: &mut Vec<Arrival>) {
        for _ in 0..MOST_AT_ONCE {
            let stream = match self.door.listeners[listener].accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Without room for another one somebody has to go, and it is tried again.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        arrivals.extend(self.let_one_go());
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return;
                }
            };
            // A connection that has closed already does not matter.
            let Ok(mut wire) = Wire::of(stream) else {
                continue;
            };
            wire.limit_lines(LONGEST_GREETING);
            if let Some(secret) = &self.door.secret {
                wire.expect(secret);
            }
            if self.is_open {
                wire.set_open();
            }
            if self.strangers.len() >= self.most {
                arrivals.extend(self.let_one_go());
            }
            let event = EpollEvent::new(EpollFlags::EPOLLIN, self.next);
            if self.epoll.add(&wire, event).is_ok() {
                let end = Instant::now() + self.patience;
                let name = self.next;
                self.strangers.insert(name, (wire, end));
                self.next += 1;
                // An end that connects shows the secret at once: it is known before others push it out.
                self.meet(name, arrivals);
            }
        }
    }

    fn let_one_go(&mut self) -> Option<Arrival> {
        let is_recorded = |wire: &Wire| wire.is_sealed() && !wire.is_proven();
        let recorded = self.strangers.values().filter(|it| is_recorded(&it.0));
        let too_many_recorded = 2 * recorded.count() > self.strangers.len();
        let mut all = self.strangers.iter();
        let goes = all.find(|(_, (wire, _))| match too_many_recorded {
            true => is_recorded(wire),
            false => !wire.is_sealed(),
        });
        let name = *goes.or_else(|| self.strangers.first_key_value())?.0;
        let (wire, _) = self.strangers.remove(&name)?;
        Some(refused(&wire, "too many connect"))
    }

    /// Takes the greeting of a connection, if it is there.
    fn meet(&mut self, name: u64, arrivals: &mut Vec<Arrival>) {
        let Some((wire, _)) = self.strangers.get_mut(&name) else {
            return;
        };
        let greeting = match wire.poll(Duration::ZERO) {
            Ok(None) => return,
            Ok(Some(greeting)) => Ok(greeting),
            Err(error) => Err(error.to_string()),
        };
        let Some((mut wire, _)) = self.strangers.remove(&name) else {
            return;
        };
        let arrival = match greeting {
            Err(reason) => refused(&wire, &reason),
            Ok(greeting) => match self.epoll.delete(&wire) {
                Ok(()) => {
                    wire.limit_lines(MAX_LINE);
                    Arrival::Greeting(wire, greeting)
                }
                Err(errno) => refused(&wire, &errno.to_string()),
            },
        };
        arrivals.push(arrival);
    }
}

fn refused(wire: &Wire, reason: &str) -> Arrival {
    Arrival::Refused(wire.peer(), reason.to_owned())
}

#[cfg(test)]
mod tests;
