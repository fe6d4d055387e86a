//! Rank 0's connections, in one thread: connections are accepted or refused, and messages of ranks are handed on.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::signal::Signal;
use nix::sys::socket::{Backlog, listen};

use super::error::LaunchError;
use super::message::{FromRank, Hello, Terms, ToRank};
use super::wire::{MAX_LINE, Wire};
use crate::host::open_files;

/// How long a wait lasts at the most: then it looks whether a signal has come.
const LOOK_MS: u8 = 100;
/// How long a rank may take to take a message in: one that does not read has its kernel's buffers full.
const SENDING: Duration = Duration::from_secs(1);
/// The longest line before a rank is known.
const LONGEST_HELLO: usize = 64 << 10;
/// This many may be connected, besides the ranks.
const MOST_STRANGERS: usize = 64;
/// A rank that sends this much at once, unrequested, is faulty.
const MOST_AT_ONCE: usize = 8;
/// The listener among what is waited for. Ranks are there by their numbers, strangers from [`STRANGER`] on.
const LISTENER: u64 = u64::MAX;
const STRANGER: u64 = 1 << 32;

/// What has happened.
#[derive(Debug)]
pub(super) enum RankEvent {
    /// A rank is there.
    Joined(Box<Hello>),
    /// A rank has sent a message.
    Said(u32, FromRank),
    /// A rank's connection has ended, and why.
    Lost(u32, String),
    /// Somebody was not let in: the rank that it would be, and why.
    Refused(Option<u32>, String),
}

/// The connections.
#[derive(Debug)]
pub(super) struct Connections {
    listener: TcpListener,
    epoll: Epoll,
    terms: Terms,
    ranks: Vec<Option<Wire>>,
    /// Connections without a known rank, each with the end of its time.
    strangers: BTreeMap<u64, (Wire, Instant)>,
    next_stranger: u64,
    /// How long a connection may take to send its rank.
    patience: Duration,
    /// Whether ranks are still let in.
    open: bool,
    /// What has happened while something was sent.
    pending: Vec<RankEvent>,
    signal: fn() -> Option<Signal>,
}

impl Connections {
    pub(super) fn new(
        listener: TcpListener,
        terms: Terms,
        patience: Duration,
        signal: fn() -> Option<Signal>,
    ) -> Result<Self, LaunchError> {
        let failed = |errno: Errno| LaunchError::io("setting up the connections of rank 0", errno);
        let count = terms.ranks as usize;
        // As far as it goes: a connection that cannot be accepted gets the reason.
        let _ = open_files::raise((count + MOST_STRANGERS + 256) as u64);
        listener
            .set_nonblocking(true)
            .map_err(|error| LaunchError::io("setting up the port of rank 0", error))?;
        // All ranks of a job may come at once.
        listen(&listener, Backlog::MAXCONN).map_err(failed)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, LISTENER);
        epoll.add(&listener, event).map_err(failed)?;
        Ok(Connections {
            listener,
            epoll,
            terms,
            ranks: (0..count).map(|_| None).collect(),
            strangers: BTreeMap::new(),
            next_stranger: STRANGER,
            patience,
            open: true,
            pending: Vec::new(),
            signal,
        })
    }

    /// Lets in no more ranks.
    pub(super) fn close_registration(&mut self) {
        self.open = false;
    }

    /// Waits until something happens, or a moment has passed.
    pub(super) fn wait(&mut self) -> Result<Vec<RankEvent>, LaunchError> {
        if let Some(signal) = (self.signal)() {
            return Err(LaunchError::Interrupted(signal));
        }
        let mut events = std::mem::take(&mut self.pending);
        let limit = if events.is_empty() { LOOK_MS } else { 0 };
        let mut ready = [EpollEvent::empty(); 256];
        let count = match self.epoll.wait(&mut ready, limit) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(LaunchError::io("waiting for the ranks", errno)),
        };
        for event in &ready[..count] {
            match event.data() {
                LISTENER => self.accept(&mut events),
                stranger @ STRANGER.. => self.meet(stranger, &mut events),
                rank => self.read_from(rank as u32, &mut events),
            }
        }
        let now = Instant::now();
        while let Some(stranger) = self
            .strangers
            .first_entry()
            .filter(|entry| entry.get().1 <= now)
        {
            let (wire, _) = stranger.remove();
            let_go(&wire, "it did not send its rank in time", &mut events);
        }
        Ok(events)
    }

    /// Takes new connections, some at a time.
    fn accept(&mut self, events: &mut Vec<RankEvent>) {
        for _ in 0..MOST_STRANGERS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Without room for another one the oldest stranger goes, and it is tried again.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.refuse_oldest(events);
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return;
                }
            };
            // A connection that has closed already does not matter.
            let Ok(mut wire) = Wire::of(stream) else {
                continue;
            };
            wire.limit_lines(LONGEST_HELLO);
            if self.strangers.len() >= self.ranks.len() + MOST_STRANGERS {
                self.refuse_oldest(events);
            }
            let name = self.next_stranger;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, name);
            if self.epoll.add(&wire, event).is_ok() {
                self.next_stranger += 1;
                let end = Instant::now() + self.patience;
                self.strangers.insert(name, (wire, end));
            }
        }
    }

    fn refuse_oldest(&mut self, events: &mut Vec<RankEvent>) {
        if let Some((_, (wire, _))) = self.strangers.pop_first() {
            let_go(&wire, "too many connect", events);
        }
    }

    /// Receives the rank of a new connection.
    fn meet(&mut self, name: u64, events: &mut Vec<RankEvent>) {
        let Some((wire, _)) = self.strangers.get_mut(&name) else {
            return;
        };
        let said = wire.poll(Duration::ZERO);
        if matches!(said, Ok(None)) {
            return;
        }
        let Some((mut wire, _)) = self.strangers.remove(&name) else {
            return;
        };
        let hello = match said {
            Ok(Some(FromRank::Hello(hello))) => hello,
            Ok(_) => return refuse(wire, "it did not send its rank", events),
            Err(error) => return refuse(wire, &error.to_string(), events),
        };
        if let Err(reason) = self.check(&hello) {
            let reason = format!("{}: {reason}", hello.name());
            refuse(wire, &reason, events);
            if let Some(RankEvent::Refused(rank, _)) = events.last_mut() {
                *rank = Some(hello.rank);
            }
            return;
        }
        let rank = hello.rank;
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(rank));
        let let_in = self.epoll.modify(&wire, &mut event).is_ok();
        wire.limit_lines(MAX_LINE);
        if let_in && wire.send(&ToRank::Welcome, SENDING).is_ok() {
            self.ranks[rank as usize] = Some(wire);
            events.push(RankEvent::Joined(hello));
            self.read_from(rank, events);
        }
    }

    /// Whether a rank belongs to this run.
    fn check(&self, hello: &Hello) -> Result<(), String> {
        let (own, its) = (&self.terms, &hello.terms);
        if its.program != own.program {
            return Err(format!(
                "it is {}, and rank 0 is {}: all ranks must be of one build",
                its.program, own.program
            ));
        }
        if its.job != own.job {
            return Err(format!(
                "it is of job {}, and rank 0 of job {}",
                its.job, own.job
            ));
        }
        if its.ranks != own.ranks || hello.rank >= own.ranks {
            return Err(format!(
                "it is one of {}, and rank 0 one of {} ranks",
                its.ranks, own.ranks
            ));
        }
        if its.settings != own.settings {
            return Err("it was started with other options than rank 0".to_owned());
        }
        if self.ranks[hello.rank as usize].is_some() {
            return Err("there is such a rank already".to_owned());
        }
        if !self.open {
            return Err("it connects too late: the ranks measure already".to_owned());
        }
        Ok(())
    }

    /// Takes the messages of a rank.
    fn read_from(&mut self, rank: u32, events: &mut Vec<RankEvent>) {
        let Some(wire) = &mut self.ranks[rank as usize] else {
            return;
        };
        for _ in 0..MOST_AT_ONCE {
            match wire.poll(Duration::ZERO) {
                Ok(Some(message)) => events.push(RankEvent::Said(rank, message)),
                Ok(None) => return,
                Err(error) => {
                    self.close(rank);
                    return events.push(RankEvent::Lost(rank, error.to_string()));
                }
            }
        }
        self.close(rank);
        events.push(RankEvent::Lost(
            rank,
            "it sent more than was requested".to_owned(),
        ));
    }

    /// Sends a rank a message. One that does not take it is lost.
    pub(super) fn send(&mut self, rank: u32, message: &ToRank) {
        let Some(wire) = &mut self.ranks[rank as usize] else {
            return;
        };
        if let Err(error) = wire.send(message, SENDING) {
            self.close(rank);
            self.pending.push(RankEvent::Lost(rank, error.to_string()));
        }
    }

    /// Ends the connection of a rank.
    pub(super) fn close(&mut self, rank: u32) {
        self.ranks[rank as usize] = None;
    }

    /// Where a rank serves, as another one reaches it.
    pub(super) fn address(&self, serves: SocketAddr, of: u32, seen_from: u32) -> SocketAddr {
        if !serves.ip().is_unspecified() {
            return serves;
        }
        let wire = |rank: u32| self.ranks[rank as usize].as_ref();
        let its = wire(of).map(|wire| wire.peer().ip().to_canonical());
        let ip = match its {
            // It is on this host, which the other one reaches as it reaches rank 0.
            Some(ip) if ip.is_loopback() => {
                let local = wire(seen_from).and_then(|wire| wire.local().ok());
                local.map_or(ip, |local| local.ip().to_canonical())
            }
            Some(ip) => ip,
            None => serves.ip(),
        };
        SocketAddr::new(ip, serves.port())
    }
}

/// Sends the reason of a refusal, if the other end listens.
fn refuse(mut wire: Wire, reason: &str, events: &mut Vec<RankEvent>) {
    let _ = wire.send(&ToRank::Refused(reason.to_owned()), Duration::ZERO);
    let_go(&wire, reason, events);
}

/// A connection is refused without a reason: a rank whose host is busy tries again.
fn let_go(wire: &Wire, reason: &str, events: &mut Vec<RankEvent>) {
    let reason = format!("{}: {reason}", wire.peer());
    events.push(RankEvent::Refused(None, reason));
}
