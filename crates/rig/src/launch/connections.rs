//! Rank 0's connections, in one thread: connections are accepted or refused, and messages of ranks are handed on.

use std::net::SocketAddr;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::entrance::{Arrival, Door, Entrance, raise_room};
use super::error::LaunchError;
use super::message::{FromRank, Hello, Terms, ToRank};
use super::wire::Wire;

/// How long a wait lasts at the most: then it looks whether a signal has come.
const LOOK_MS: u8 = 100;
/// How long a rank may take to take a message in: one that does not read has its kernel's buffers full.
const SENDING: Duration = Duration::from_secs(1);
/// A rank that sends this much at once, unrequested, is faulty.
const MOST_AT_ONCE: usize = 8;
/// The most letters of a rank's name, and of the reason why it is refused, which has some that it has sent.
const LONGEST_PART: usize = 300;
/// The longest name of a node, in bytes: a host's with its domain has 253 at the most.
const LONGEST_NODE: usize = 255;
/// Who is not known yet, among what is waited for. Ranks are there by their numbers.
const ENTRANCE: u64 = u64::MAX;

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
    /// Connections without a known rank.
    entrance: Entrance,
    epoll: Epoll,
    terms: Terms,
    ranks: Vec<Option<Wire>>,
    /// Whether ranks are still let in.
    open: bool,
    /// What has happened while something was sent.
    pending: Vec<RankEvent>,
    signal: fn() -> Option<Signal>,
}

impl Connections {
    /// `patience`: how long a connection may take to send its rank.
    pub(super) fn new(
        door: Door,
        terms: Terms,
        patience: Duration,
        signal: fn() -> Option<Signal>,
    ) -> Result<Self, LaunchError> {
        const SETTING_UP: &str = "setting up the connections of rank 0";
        let failed = |errno: Errno| LaunchError::io(SETTING_UP, errno);
        let count = terms.ranks as usize;
        // All ranks of a job may come at once.
        let entrance = Entrance::new(door, count + raise_room(count), patience);
        let entrance = entrance.map_err(|error| LaunchError::io(SETTING_UP, error))?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, ENTRANCE);
        epoll.add(&entrance, event).map_err(failed)?;
        Ok(Connections {
            entrance,
            epoll,
            terms,
            ranks: (0..count).map(|_| None).collect(),
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
            if event.data() != ENTRANCE {
                self.read_from(event.data() as u32, &mut events);
            }
        }
        let arrivals = self.entrance.wait(0);
        let arrivals = arrivals.map_err(|error| LaunchError::io("waiting for the ranks", error))?;
        for arrival in arrivals {
            match arrival {
                Arrival::Greeting(wire, greeting) => self.meet(wire, greeting, &mut events),
                Arrival::Refused(peer, reason) => let_go(peer, &reason, &mut events),
            }
        }
        Ok(events)
    }

    /// Lets a new connection in, if it is of a rank of this run.
    fn meet(&mut self, mut wire: Wire, greeting: Value, events: &mut Vec<RankEvent>) {
        let is_rank = greeting.get("Hello").is_some();
        let Ok(FromRank::Hello(hello)) = serde_json::from_value(greeting) else {
            if is_rank {
                let reason = "it is of another version of hcabench than rank 0".to_owned();
                let _ = wire.send(&ToRank::Refused(reason), Duration::ZERO);
            }
            return let_go(wire.peer(), "it did not send its rank", events);
        };
        if let Err(reason) = self.check(&hello) {
            // It is what a stranger sent, of whatever length.
            let cut = |text: String| text.chars().take(LONGEST_PART).collect::<String>();
            let reason = format!("{}: {}", cut(hello.name()), cut(reason));
            let _ = wire.send(&ToRank::Refused(reason.clone()), Duration::ZERO);
            let reason = format!("{}: {reason}", wire.peer());
            let rank = (hello.rank < self.terms.ranks).then_some(hello.rank);
            return events.push(RankEvent::Refused(rank, reason));
        }
        let rank = hello.rank;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, u64::from(rank));
        let let_in = self.epoll.add(&wire, event).is_ok();
        if let_in && wire.send(&ToRank::Welcome, SENDING).is_ok() {
            self.ranks[rank as usize] = Some(wire);
            events.push(RankEvent::Joined(hello));
            self.read_from(rank, events);
        }
    }

    /// Whether a rank belongs to this run.
    fn check(&self, hello: &Hello) -> Result<(), String> {
        let (own, its) = (&self.terms, &hello.terms);
        if hello.node.len() > LONGEST_NODE {
            return Err(format!(
                "the name of its node has more than {LONGEST_NODE} bytes"
            ));
        }
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

/// A connection is refused without a reason: a rank whose host is busy tries again.
fn let_go(peer: SocketAddr, reason: &str, events: &mut Vec<RankEvent>) {
    events.push(RankEvent::Refused(None, format!("{peer}: {reason}")));
}
