//! Who is served: one run at a time, with the processes of all its rounds. Others get that answer, and what is not
//! hcabench is turned away, while the run goes on.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::PeerError;
use super::message::ANSWER;
use super::peer::{Greeting, Hello};
use crate::host::{interrupt, threads};
use crate::launch::wire::{MAX_LINE, Wire, listen_at};
use crate::results::document::Program;
use crate::rig::benchmark::Failure;
use crate::rig::workers::instead_of_dropping;

/// How long a process that connects may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// Connections at a time that have not greeted yet: with one more, the oldest is let go.
const STRANGERS: usize = 64;
/// The longest line of who is not known yet, in bytes.
const LONGEST_HELLO: usize = 64 << 10;
/// How often the wait for a connection ends, to look for signals.
const LOOK: u8 = 100;
/// How long connections that are served may take to end after a signal.
const LEAVING: Duration = Duration::from_millis(800);

/// Where it is served, and for how long.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where to listen.
    pub bind: SocketAddr,
    /// Whether it ends after one run.
    pub once: bool,
}

/// What is done for those that are let in.
pub trait Served: Send + Sync {
    /// Called before it listens.
    ///
    /// # Errors
    /// When nothing can be served here.
    fn check(&self) -> Result<(), Failure>;

    /// Why a run is not let in, if so.
    fn refusal(&self, hello: &Hello) -> Option<Failure>;

    /// Answers the greeting, and does what the other host asks until it closes the connection.
    ///
    /// # Errors
    /// When something fails here, which the other host has as an answer, or a signal comes.
    fn serve(&self, wire: &mut Wire, hello: &Hello) -> Result<(), Failure>;
}

/// What happens, for people.
#[derive(Debug)]
pub enum Event {
    /// It listens there.
    Listening(SocketAddr),
    /// A run of a host begins.
    Begun { host: String, peer: SocketAddr },
    /// It is over.
    Over { host: String },
    /// Somebody was turned away.
    Refused { peer: SocketAddr, reason: String },
    /// A connection of the run failed.
    Failed { peer: SocketAddr, reason: String },
}

/// The run that is served.
#[derive(Debug, Default)]
struct ServedRun {
    run: Option<(String, String)>,
    connections: u32,
    served: u32,
    /// Why a connection of a run failed.
    failure: Option<String>,
}

impl ServedRun {
    fn serves_another_than(&self, run: &str) -> bool {
        self.run.as_ref().is_some_and(|(served, _)| served != run)
    }
}

/// Connections whose senders are not known yet, by the order in which they came.
#[derive(Debug, Default)]
struct UnknownConnections {
    next: u64,
    streams: BTreeMap<u64, TcpStream>,
}

impl UnknownConnections {
    /// Takes one more, if it can be taken; the oldest goes where there are too many.
    fn take(&mut self, stream: &TcpStream) -> std::io::Result<u64> {
        let copy = stream.try_clone()?;
        if self.streams.len() >= STRANGERS
            && let Some((_, oldest)) = self.streams.pop_first()
        {
            // Its thread sees that, and reports it.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let name = self.next;
        self.next += 1;
        self.streams.insert(name, copy);
        Ok(name)
    }

    /// Ends one.
    fn end(&mut self, name: u64) {
        if let Some(copy) = self.streams.remove(&name) {
            let _ = copy.shutdown(Shutdown::Both);
        }
    }
}

/// A connection whose sender is not known yet; counted until it is dropped, however that comes about.
struct UnknownConnection(Arc<ServiceState>, u64);

impl Drop for UnknownConnection {
    fn drop(&mut self) {
        self.0.strangers().streams.remove(&self.1);
    }
}

/// A connection of the run; the run is over when the last one is dropped, however that comes about.
struct RunConnection<'a>(&'a ServiceState);

impl Drop for RunConnection<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct ServiceState {
    holder: Mutex<ServedRun>,
    strangers: Mutex<UnknownConnections>,
    work: Arc<dyn Served>,
    once: bool,
    report: Box<dyn Fn(Event) + Send + Sync>,
}

impl ServiceState {
    fn strangers(&self) -> MutexGuard<'_, UnknownConnections> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn holder(&self) -> MutexGuard<'_, ServedRun> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run in, if none is served but this one. A run that is over may take a moment to leave.
    fn enter(&self, hello: &Hello, peer: SocketAddr) -> Result<(), Failure> {
        if let Some(refusal) = self.work.refusal(hello) {
            return Err(refusal);
        }
        let until = Instant::now() + LEAVING;
        let mut holder = self.holder();
        while holder.serves_another_than(&hello.run) && Instant::now() < until {
            drop(holder);
            std::thread::sleep(Duration::from_millis(10));
            holder = self.holder();
        }
        match &holder.run {
            Some((_, host)) if holder.serves_another_than(&hello.run) => {
                return Err(Failure::Run(format!(
                    "busy: it serves a run of {host}; try again when that is over"
                )));
            }
            Some(_) => {}
            None => {
                holder.run = Some((hello.run.clone(), hello.host.clone()));
                if !self.once {
                    holder.failure = None;
                }
                let host = hello.host.clone();
                (self.report)(Event::Begun { host, peer });
            }
        }
        holder.connections += 1;
        Ok(())
    }

    fn failed(&self, peer: SocketAddr, reason: String) {
        self.holder().failure = Some(reason.clone());
        (self.report)(Event::Failed { peer, reason });
    }

    fn leave(&self) {
        let mut holder = self.holder();
        holder.connections -= 1;
        if holder.connections == 0
            && let Some((_, host)) = holder.run.take()
        {
            holder.served += 1;
            (self.report)(Event::Over { host });
        }
    }
}

/// Serves other hosts until a signal comes, or one run is over. `report` is called with what happens, from any thread.
///
/// # Errors
/// When it cannot listen, or a signal ends it.
pub fn serve(
    service: &Service,
    work: Arc<dyn Served>,
    report: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), Failure> {
    // Before anybody waits for an answer.
    work.check()?;
    let listener = listen_at(service.bind).map_err(|error| {
        Failure::Usage(format!(
            "--bind {}: {error}: allowed is an address of this host with a free port",
            service.bind
        ))
    })?;
    let listening = listener.local_addr().unwrap_or(service.bind);
    let shared = Arc::new(ServiceState {
        holder: Mutex::default(),
        strangers: Mutex::default(),
        work,
        once: service.once,
        report: Box::new(report),
    });
    (shared.report)(Event::Listening(listening));
    loop {
        if let Some(signal) = interrupt::requested() {
            if shared.holder().connections == 0 {
                return Ok(());
            }
            let until = Instant::now() + LEAVING;
            while shared.holder().connections > 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            let holder = shared.holder();
            // A run that was over, of which only the end of its connections had not been seen.
            if holder.connections == 0 && holder.failure.is_none() {
                return Ok(());
            }
            return Err(Failure::Interrupted(signal.to_string()));
        }
        if service.once && shared.holder().served > 0 {
            let failure = shared.holder().failure.take();
            return failure.map_or(Ok(()), |text| Err(Failure::Run(text)));
        }
        let mut what = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut what, PollTimeout::from(LOOK)), Ok(1..)) {
            continue;
        }
        let Ok((stream, peer)) = listener.accept() else {
            // As when too many files are open: that may pass.
            std::thread::sleep(Duration::from_millis(LOOK.into()));
            continue;
        };
        let name = shared.strangers().take(&stream);
        let Ok(name) = name else {
            // Nor is there a file for a copy of it.
            continue;
        };
        let stranger = UnknownConnection(Arc::clone(&shared), name);
        // One that cannot be started drops what it was to do, and the connection with it.
        let thread = std::thread::Builder::new().name("hcabench-served".to_owned());
        let _ = threads::start(thread, move || receive_guest(stranger, stream, peer));
    }
}

/// Finds out who has connected, and serves it if it may be served.
fn receive_guest(stranger: UnknownConnection, stream: TcpStream, peer: SocketAddr) {
    let shared = Arc::clone(&stranger.0);
    // A panic ends this connection and no other.
    let copy = stream.try_clone();
    instead_of_dropping({
        let (shared, name) = (Arc::clone(&shared), stranger.1);
        move || shared.strangers().end(name)
    });
    let greeted = greet(stranger, stream, peer);
    match greeted {
        Err(error) => {
            let reason = error.to_string();
            (shared.report)(Event::Refused { peer, reason });
        }
        Ok((mut wire, hello)) => {
            let _guest = RunConnection(&shared);
            instead_of_dropping({
                let shared = Arc::clone(&shared);
                move || {
                    if let Ok(copy) = copy {
                        let _ = copy.shutdown(Shutdown::Both);
                    }
                    shared.failed(peer, "the thread that serves it panicked".to_owned());
                    shared.leave();
                }
            });
            let done = shared.work.serve(&mut wire, &hello);
            if let Err(error) = done {
                shared.failed(peer, error.to_string());
            }
        }
    }
}

/// Why a program is not served by another version or build, whose messages are others.
fn other_version(ours: &Program, theirs: &Program) -> Option<Failure> {
    let text = || format!("it is {ours}, and asked by {theirs}: install the same on both hosts");
    (theirs != ours).then(|| Failure::Run(text()))
}

fn greet(
    stranger: UnknownConnection,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<(Wire, Hello), PeerError> {
    let mut wire = Wire::of(stream)?;
    wire.limit_lines(LONGEST_HELLO);
    let ours = Program::this();
    let refused = |wire: &mut Wire, failure: Failure| {
        // One that has disconnected needs no answer.
        let _ = wire.send(&Greeting::Failed(failure.clone()), ANSWER);
        PeerError::Peer(peer, failure)
    };
    // Another version may have other messages: its version is looked at first.
    let said: serde_json::Value = wire.receive(GREETING)?;
    let theirs = said.pointer("/hello/program").cloned();
    let theirs = theirs.and_then(|theirs| serde_json::from_value::<Program>(theirs).ok());
    let Some(theirs) = theirs else {
        let failure = Failure::Run("sent a greeting that is not of hcabench".to_owned());
        return Err(PeerError::Peer(peer, failure));
    };
    if let Some(failure) = other_version(&ours, &theirs) {
        return Err(refused(&mut wire, failure));
    }
    let invalid = |error: &str| {
        let failure = Failure::Run(format!("sent an invalid greeting: {error}"));
        PeerError::Peer(peer, failure)
    };
    let hello = match serde_json::from_value(said) {
        Ok(Greeting::Hello(hello)) => *hello,
        Ok(Greeting::Failed(failure)) => return Err(PeerError::Peer(peer, failure)),
        Err(error) => return Err(invalid(&error.to_string())),
    };
    // Who is let in is not let go for others any more.
    let shared = Arc::clone(&stranger.0);
    drop(stranger);
    match shared.enter(&hello, peer) {
        Ok(()) => {
            wire.limit_lines(MAX_LINE);
            Ok((wire, hello))
        }
        Err(failure) => Err(refused(&mut wire, failure)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn another_version_or_build_is_refused_by_both_names() {
        let program = |version: &str, commit: &str| Program {
            version: version.to_owned(),
            commit: Some(commit.to_owned()),
            ..Program::this()
        };
        let ours = program("0.1.0", "0123abc");
        assert_eq!(other_version(&ours, &ours.clone()), None);
        for (theirs, name) in [
            (
                program("0.0.9", "0123abc"),
                "hcabench 0.0.9 of commit 0123abc",
            ),
            (
                program("0.1.0", "4567def"),
                "hcabench 0.1.0 of commit 4567def",
            ),
        ] {
            let refused = other_version(&ours, &theirs).unwrap().to_string();
            refused.has(&["it is hcabench 0.1.0 of commit 0123abc", "asked by", name]);
        }
    }

    #[test]
    fn the_oldest_stranger_is_let_go_for_a_new_one() {
        let listener = listen_at("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut strangers = UnknownConnections::default();
        let mut clients = Vec::new();
        let mut served = Vec::new();
        for expected in 0..STRANGERS as u64 + 2 {
            clients.push(TcpStream::connect(address).unwrap());
            served.push(listener.accept().unwrap().0);
            assert_eq!(
                strangers.take(&served[expected as usize]).unwrap(),
                expected
            );
        }
        assert_eq!(strangers.streams.len(), STRANGERS);
        for client in &mut clients[..2] {
            client
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0, "it was not let go");
        }
        clients[2].set_nonblocking(true).unwrap();
        let error = clients[2].read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
